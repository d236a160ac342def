/* SPDX-License-Identifier: Apache-2.0 */
/* unread_files.c - see unread_files.h. */
#include "unread_files.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "wallprof/base_name.h"
#include "wallprof/symbols.h"

/* Of what is read from the target's memory the child has no file, and it is given none
 * that has changed. */
static uint64_t count_unopened(const struct wp_profile *profile)
{
	uint64_t n = 0;

	for (uint32_t i = 1; i < profile->nmappings; i++) {
		const struct wp_profile_mapping *m = &profile->mappings[i];

		n += m->image && !m->is_data &&
		     *wp_profile_str(profile, m->path) == '/' &&
		     (m->image->fd < 0 || wp_elf_image_has_changed(m->image));
	}
	return n;
}

static const char *loss_text(enum wp_dwarf_loss loss)
{
	static_assert(WP_DWARF_BYTES_MAX == UINT64_C(512) << 20,
		      "the text says so");
	switch (loss) {
	case WP_DWARF_SPLIT:
		return "is partly in .dwo files, which are not read";
	case WP_DWARF_CUT:
		return "takes too much work for some addresses";
	case WP_DWARF_LACKS_SHARED:
		return "needs the file of its .gnu_debugaltlink, which was not found";
	case WP_DWARF_TOO_LARGE:
		return "is larger than 512 MiB";
	default:
		return "cannot be read";
	}
}

/* Count the files whose debug info was not read, or not all of it, and say why that of
 * the first was not. */
static int count_lineless(struct wp_profile *profile)
{
	const struct wp_elf_image *last = NULL;
	char why[PATH_MAX + 64] = "";

	profile->counters.files_lineless = 0;
	for (uint32_t i = 1; i < profile->nmappings; i++) {
		const struct wp_profile_mapping *m = &profile->mappings[i];
		const char *path = wp_profile_str(profile, m->path);

		/* A file may have several mappings, one after the other. */
		if (!m->dwarf_loss || m->image == last)
			continue;
		last = m->image;
		if (profile->counters.files_lineless++)
			continue;
		snprintf(why, sizeof(why), "the debug info of %s %s",
			 wp_base_name(path),
			 loss_text((enum wp_dwarf_loss)m->dwarf_loss));
	}
	profile->meta.lineless_why = wp_intern_add_str(&profile->strings, why);
	return profile->meta.lineless_why == UINT32_MAX ? -ENOMEM : 0;
}

int wp_unread_files_count(struct wp_profile *profile)
{
	profile->counters.files_unopened = count_unopened(profile);
	return count_lineless(profile);
}
