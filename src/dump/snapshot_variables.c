/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_variables.c - the variables that threads of a dump wait at.
 *
 * A word is named with the stacks, as the only frame of one: its mapping is of the
 * file's data, and of the memory behind it that begins as 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "snapshot_priv.h"
#include "wallprof/maps.h"

/* The region of a file's data that holds AVMA, or that lies right below a region of
 * no file which does; NULL: there is none.  *RET_END: the end of both. */
static const struct wp_map *find_data(const struct wp_maps *maps, uint64_t avma,
				      uint64_t *ret_end)
{
	const struct wp_map *map = wp_maps_find(maps, avma);

	if (!map || !map->write)
		return NULL;
	*ret_end = map->end_avma;
	if (!map->ino && map > maps->v && !*wp_maps_path(maps, map) &&
	    map[-1].end_avma == map->start_avma)
		map--;
	return map->ino && map->write ? map : NULL;
}

/* Does a mapping of IMAGE that DATA is put beside by BIAS have a segment there? */
static bool is_segment(const struct wp_elf_image *image,
		       const struct wp_map *data, uint64_t bias)
{
	uint64_t svma;

	for (uint32_t i = 0; i < image->nloads; i++)
		if (wp_elf_image_shown(image, i, data->off, &svma) &&
		    svma + bias == data->start_avma)
			return true;
	return false;
}

/* A mapping of DATA's file in PROFILE, with its image, that was loaded with it: a file
 * may be loaded more than once. */
static const struct wp_profile_mapping *
find_code(const struct wp_profile *profile, const struct wp_maps *maps,
	  const struct wp_map *data)
{
	for (uint32_t i = 1; i < profile->nmappings; i++) {
		const struct wp_profile_mapping *m = &profile->mappings[i];

		if (m->image && is_segment(m->image, data, m->bias) &&
		    !strcmp(wp_profile_str(profile, m->path),
			    wp_maps_path(maps, data)))
			return m;
	}
	return NULL;
}

/* Find or add the mapping of DATA up to END of the file that CODE is of; UINT32_MAX:
 * no memory. */
static uint32_t add_mapping(struct wp_profile *profile,
			    const struct wp_map *data, uint64_t end_avma,
			    const struct wp_profile_mapping *code)
{
	struct wp_profile_mapping mapping = *code;

	for (uint32_t i = 1; i < profile->nmappings; i++) {
		struct wp_profile_mapping *m = &profile->mappings[i];

		if (m->start_avma != data->start_avma)
			continue;
		/* Another word was in the file's part. */
		if (m->is_data && m->end_avma < end_avma)
			m->end_avma = end_avma;
		return i;
	}
	mapping.start_avma = data->start_avma;
	mapping.end_avma = end_avma;
	mapping.off = data->off;
	mapping.is_data = true;
	return wp_profile_add_mapping(profile, &mapping);
}

/* Let the word at AVMA have a name: *RET as in struct wp_snapshot_note. */
static int want_word(struct wp_snapshot_sample *sample, uint64_t avma,
		     uint32_t *ret)
{
	const struct wp_maps *maps = wp_sampler_maps(sample->target);
	struct wp_profile *profile = &sample->profile;
	struct wp_frame frame = { .pc_avma = avma };
	uint64_t cfa_avma = 0, end_avma;
	const struct wp_stack stack = { .frames = &frame,
					.cfa_avma = &cfa_avma,
					.depth = 1,
					.cap = 1,
					.end = WP_END_ROOT };
	const struct wp_map *data = find_data(maps, avma, &end_avma);
	const struct wp_profile_mapping *code = data ? find_code(profile, maps,
								 data) :
						       NULL;
	uint32_t index;

	if (!code)
		return 0;
	frame.mapping = add_mapping(profile, data, end_avma, code);
	if (frame.mapping == UINT32_MAX)
		return -ENOMEM;
	index = wp_profile_add_stack(profile, &stack, frame.mapping);
	if (index == UINT32_MAX)
		return -ENOMEM;
	*ret = index + 1;
	return 0;
}

int wp_snapshot_want_variables(struct wp_snapshot_sample *sample)
{
	int rc = 0;

	for (uint32_t i = 0; i < sample->profile.nthreads && !rc; i++) {
		struct wp_snapshot_note *note = &sample->notes[i];

		if (note->sample && note->thread.call.nr == SYS_futex)
			rc = want_word(sample, note->thread.call.args[0],
				       &note->word_stack);
	}
	return rc;
}

int wp_snapshot_name_variable(struct wp_dump *dump, struct wp_dump_thread *t,
			      const struct wp_snapshot_sample *sample,
			      const struct wp_snapshot_note *note)
{
	const struct wp_profile *p = &sample->profile;
	const struct wp_profile_location *loc;
	const struct wp_profile_line *line;
	uint64_t word_avma = note->thread.call.args[0], off;
	char text[512];
	const char *name;

	if (!note->word_stack || t->lock.kind == WP_LOCK_NONE)
		return 0;
	loc = &p->locations
		       [p->loc_pool[p->stacks[note->word_stack - 1].loc_first]];
	if (!loc->nlines || loc->mapping == WP_MAPPING_NONE ||
	    !p->mappings[loc->mapping].has_functions)
		return 0;
	line = &p->lines[loc->line_first];
	name = wp_dump_str(dump, p->functions[line->function].name);
	/* Where the lock begins, which may be before the word. */
	off = line->line + t->lock.avma - word_avma;
	/* A place, not a name; or a variable that holds the word alone. */
	if (strstr(name, "+0x") || off > line->line)
		return 0;
	snprintf(text, sizeof(text), off ? "%.480s+%" PRIu64 : "%.480s", name,
		 off);
	t->variable = wp_intern_add_str(&dump->strings, text);
	return t->variable == UINT32_MAX ? -ENOMEM : 0;
}
