/* SPDX-License-Identifier: Apache-2.0 */
/* modules.c - see modules.h. */
#include "modules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load_bias.h"
#include "wallprof/budget.h"
#include "wallprof/hash.h"
#include "wallprof/unwind.h"
#include "wallprof/vec.h"

void wp_modules_init(struct wp_modules *modules, struct wp_profile *profile,
		     struct wp_image_cache *images)
{
	*modules = (struct wp_modules){ .profile = profile, .images = images };
}

void wp_modules_clear(struct wp_modules *modules)
{
	free(modules->v);
	wp_index_clear(&modules->index);
	*modules = (struct wp_modules){ 0 };
}

/* Code in no file, as [vsyscall], is at one address in all processes, each of which
 * has its own module: their hashes must differ. */
static uint64_t hash_module(const struct wp_module *m, const char *path)
{
	const uint64_t key[] = { m->start_avma, m->end_avma,
				 m->off,	m->dev,
				 m->ino,	m->ino ? 0 : m->process };

	return wp_hash_bytes(wp_hash_bytes(0, key, sizeof(key)), path,
			     strlen(path));
}

static uint64_t hash_place(const struct wp_module_place *place)
{
	const struct wp_map *map = place->map;
	const struct wp_module m = { .start_avma = map->start_avma,
				     .end_avma = map->end_avma,
				     .off = map->off,
				     .dev = map->dev,
				     .ino = map->ino,
				     .process = place->index };

	return hash_module(&m, wp_maps_path(place->maps, map));
}

static bool is_module(const struct wp_modules *modules, uint32_t id,
		      const struct wp_module_place *place)
{
	const struct wp_module *m = &modules->v[id];
	const struct wp_profile *profile = modules->profile;
	const struct wp_map *map = place->map;

	return m->start_avma == map->start_avma &&
	       m->end_avma == map->end_avma && m->off == map->off &&
	       m->dev == map->dev && m->ino == map->ino &&
	       (m->process == UINT32_MAX || m->process == place->index) &&
	       !(m->image && wp_elf_image_has_changed(m->image)) &&
	       !strcmp(wp_profile_str(profile, profile->mappings[id].path),
		       wp_maps_path(place->maps, map));
}

uint32_t wp_modules_find(const struct wp_modules *modules,
			 const struct wp_module_place *place)
{
	return WP_INDEX_FIND(&modules->index, hash_place(place), id,
			     is_module(modules, id, place));
}

static uint64_t cost(const struct wp_module_place *place)
{
	return 2 * (sizeof(struct wp_module) +
		    sizeof(struct wp_profile_mapping) +
		    sizeof(struct wp_unwind_module) +
		    sizeof(struct wp_index_slot)) +
	       strlen(wp_maps_path(place->maps, place->map));
}

bool wp_modules_fit(const struct wp_module_place *place)
{
	return wp_budget_take(WP_BUDGET_MAPPINGS, cost(place));
}

int wp_modules_add(struct wp_modules *modules,
		   const struct wp_module_place *place, uint32_t *ret_id)
{
	const struct wp_map *map = place->map;
	struct wp_intern *strings = &modules->profile->strings;
	struct wp_profile_mapping mapping = {
		.start_avma = map->start_avma,
		.end_avma = map->end_avma,
		.off = map->off,
		.process = place->index,
	};
	struct wp_module module = {
		.start_avma = map->start_avma,
		.end_avma = map->end_avma,
		.off = map->off,
		.dev = map->dev,
		.ino = map->ino,
		.process = map->ino ? UINT32_MAX : place->index,
		.paid = (uint32_t)cost(place),
	};
	uint32_t id;

	mapping.path = wp_intern_add_str(strings,
					 wp_maps_path(place->maps, map));
	mapping.build_id = wp_intern_add_str(strings, "");
	id = wp_profile_add_mapping(modules->profile, &mapping);
	if (id == UINT32_MAX ||
	    wp_index_add(&modules->index, hash_place(place), id))
		return -ENOMEM;
	/* Ids begin with 1; others may have added some before. */
	while (modules->len <= id) {
		if (WP_VEC_ROOM(modules->v, modules->len, modules->cap, 1))
			return -ENOMEM;
		modules->v[modules->len++] = module;
	}
	*ret_id = id;
	return 0;
}

/* M can be read from the memory of one process only: no other may have its index. */
static void renumber_process(struct wp_module *m, struct wp_renumber *r)
{
	if (m->process >= WP_MODULE_NO_PROCESS)
		return;
	wp_renumber_ref(r, WP_REF_PROCESS, &m->process);
	if (m->process == UINT32_MAX)
		m->process = WP_MODULE_NO_PROCESS;
}

/* No walk is to meet module ID before it is opened again. */
static void let_go_of_image(struct wp_modules *modules, size_t id)
{
	if (!modules->v[id].image)
		return;
	modules->v[id].is_opened = false;
	modules->v[id].image = NULL;
	modules->profile->mappings[id].image = NULL;
}

int wp_modules_renumber(struct wp_modules *modules, struct wp_renumber *r)
{
	const struct wp_profile *profile = modules->profile;
	size_t n = 0;
	int rc;

	for (uint32_t id = 0; id < modules->len; id++) {
		if (!wp_renumber_stays(r, WP_REF_MAPPING, id)) {
			wp_budget_give(WP_BUDGET_MAPPINGS, modules->v[id].paid);
			continue;
		}
		modules->v[n] = modules->v[id];
		if (r->is_idle[id])
			let_go_of_image(modules, n);
		n++;
	}
	modules->len = n;
	for (uint32_t id = 0; id < n; id++)
		renumber_process(&modules->v[id], r);
	wp_index_clear(&modules->index);
	rc = wp_index_reserve(&modules->index, (uint32_t)n);
	/* Id 0 is that of no module. */
	for (uint32_t id = 1; id < n && !rc; id++)
		rc = wp_index_add(
			&modules->index,
			hash_module(&modules->v[id],
				    wp_profile_str(profile,
						   profile->mappings[id].path)),
			id);
	return rc;
}

void wp_modules_hold_images(const struct wp_modules *modules)
{
	for (size_t id = 0; id < modules->len; id++)
		if (modules->v[id].image)
			modules->v[id].image->is_held = true;
}

void wp_modules_lose(struct wp_modules *modules, uint32_t id)
{
	modules->v[id].is_opened = true;
	modules->profile->mappings[id].is_lost = true;
	modules->profile->counters.files_lost++;
}

static uint32_t add_build_id(struct wp_modules *modules,
			     const struct wp_elf_image *image)
{
	char hex[2 * WP_BUILD_ID_MAX + 1] = "";

	for (uint32_t i = 0; image && i < image->build_id_len; i++)
		snprintf(hex + (size_t)2 * i, 3, "%02x", image->build_id[i]);
	return wp_intern_add_str(&modules->profile->strings, hex);
}

void wp_modules_open(struct wp_modules *modules, uint32_t id,
		     const struct wp_module_place *place)
{
	struct wp_profile_mapping *mapping = &modules->profile->mappings[id];
	struct wp_module *m = &modules->v[id];
	struct wp_elf_image *image = NULL;

	m->is_opened = true;
	if (!place->map || wp_image_cache_find(modules->images, place->process,
					       place->maps, place->map, &image))
		return;
	if (!image ||
	    !wp_load_bias_find(image, place->maps, place->map, &m->bias))
		return;
	m->image = image;
	mapping->bias = m->bias;
	if (image->fd < 0)
		m->process = place->index;
	mapping->image = image;
	mapping->build_id = add_build_id(modules, image);
}
