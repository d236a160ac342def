/* SPDX-License-Identifier: Apache-2.0 */
/* unread_files.c - see unread_files.h. */
#include "unread_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "wallprof/base_name.h"
#include "wallprof/symbols.h"

/* Of what is read from the target's memory the child has no file. */
static uint64_t count_unopened(const struct wp_profile *profile)
{
	uint64_t n = 0;

	for (uint32_t i = 1; i < profile->nmappings; i++) {
		const struct wp_profile_mapping *m = &profile->mappings[i];

		n += m->image && m->image->fd < 0 && !m->is_data &&
		     *wp_profile_str(profile, m->path) == '/';
	}
	return n;
}

/* Count the files whose debug info was not read, and say why that of the first was
 * not. */
static int count_lineless(struct wp_profile *profile)
{
	const struct wp_elf_image *last = NULL;
	char why[PATH_MAX + 64] = "";

	profile->counters.files_lineless = 0;
	for (uint32_t i = 1; i < profile->nmappings; i++) {
		const struct wp_profile_mapping *m = &profile->mappings[i];
		const char *path = wp_profile_str(profile, m->path);

		/* A file may have several mappings, one after the other. */
		if (!(m->dwarf_too_large || m->dwarf_unreadable) ||
		    m->image == last)
			continue;
		last = m->image;
		if (profile->counters.files_lineless++)
			continue;
		if (m->dwarf_too_large)
			snprintf(why, sizeof(why),
				 "the debug info of %s is larger than %d MiB",
				 wp_base_name(path),
				 (int)(WP_DWARF_BYTES_MAX >> 20));
		else
			snprintf(why, sizeof(why),
				 "the debug info of %s cannot be read",
				 wp_base_name(path));
	}
	profile->meta.lineless_why = wp_intern_add_str(&profile->strings, why);
	return profile->meta.lineless_why == UINT32_MAX ? -ENOMEM : 0;
}

int wp_unread_files_count(struct wp_profile *profile)
{
	profile->counters.files_unopened = count_unopened(profile);
	return count_lineless(profile);
}
