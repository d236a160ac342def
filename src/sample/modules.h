/* SPDX-License-Identifier: Apache-2.0 */
/* modules.h - the executable mappings of a profile, with their ELF files.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * Processes that map the same file at the same addresses, as those forked from one
 * do, share the mapping.
 */
#ifndef WP_MODULES_H
#define WP_MODULES_H

#include "image_cache.h"
#include "wallprof/index.h"
#include "wallprof/maps.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/renumber.h"

#define WP_MODULE_NO_PROCESS (UINT32_MAX - 1)

struct wp_module {
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	uint64_t dev;
	uint64_t ino;
	uint64_t bias;
	/* NULL: not an ELF file, not readable, of a server that does not answer, or
	 * not opened so far, as no pc has been met in it; borrowed from the cache. */
	struct wp_elf_image *image;
	bool is_opened;
	/* What it took of the budget. */
	uint32_t paid;
	/* What is there can be read from the memory of one process only: index of
	 * the profile's processes, WP_MODULE_NO_PROCESS: one that is no longer there;
	 * else UINT32_MAX. */
	uint32_t process;
};

struct wp_modules {
	/* Borrowed. */
	struct wp_profile *profile;
	struct wp_image_cache *images;
	/* v[0..len) by the profile's mapping id; owned. */
	struct wp_module *v;
	size_t len, cap;
	/* Finds modules by a hash of their range and file. */
	struct wp_index index;
};

/* A region of a process: MAP of MAPS, of the profile's process INDEX. */
struct wp_module_place {
	const struct wp_process *process;
	uint32_t index;
	const struct wp_maps *maps;
	const struct wp_map *map;
};

/* PROFILE and IMAGES are borrowed for the life of MODULES. */
void wp_modules_init(struct wp_modules *modules, struct wp_profile *profile,
		     struct wp_image_cache *images);
void wp_modules_clear(struct wp_modules *modules);

/* The id of PLACE's module, or WP_INDEX_NONE. */
uint32_t wp_modules_find(const struct wp_modules *modules,
			 const struct wp_module_place *place);

/* Take of the budget what PLACE's module takes, if there is room. */
bool wp_modules_fit(const struct wp_module_place *place);

/* Enter PLACE, which wp_modules_find has not found, into the profile: its new mapping
 * id.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_modules_add(struct wp_modules *modules,
		   const struct wp_module_place *place, uint32_t *ret_id);

/* See wp_sampler_renumber; once RENUMBER has been applied.  Modules that nothing refers to
 * have no image until they are met again.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_modules_renumber(struct wp_modules *modules,
			struct wp_renumber *renumber);

/* Say of all images of MODULES that they are needed: see wp_image_cache_drop. */
void wp_modules_hold_images(const struct wp_modules *modules);

/* The file of module ID cannot be had: it costs the frames in it. */
void wp_modules_lose(struct wp_modules *modules, uint32_t id);

/* Open the file of module ID, which is at PLACE; what cannot be had costs the frames
 * in it. */
void wp_modules_open(struct wp_modules *modules, uint32_t id,
		     const struct wp_module_place *place);

#endif
