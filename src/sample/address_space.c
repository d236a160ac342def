/* SPDX-License-Identifier: Apache-2.0 */
/* address_space.c - see address_space.h. */
#include "address_space.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/budget.h"
#include "wallprof/clock.h"
#include "wallprof/hash.h"
#include "wallprof/vec.h"

static uint32_t add_build_id(struct wp_address_space *space,
			     const struct wp_elf_image *image)
{
	char hex[2 * WP_BUILD_ID_MAX + 1] = "";

	for (uint32_t i = 0; image && i < image->build_id_len; i++)
		snprintf(hex + (size_t)2 * i, 3, "%02x", image->build_id[i]);
	return wp_intern_add_str(&space->profile->strings, hex);
}

static uint64_t hash_map(const struct wp_address_space *space,
			 const struct wp_map *map)
{
	const uint64_t key[] = { map->start_avma, map->end_avma, map->off,
				 map->dev, map->ino };
	const char *path = wp_maps_path(&space->maps, map);

	return wp_hash_bytes(wp_hash_bytes(0, key, sizeof(key)), path,
			     strlen(path));
}

/* Enter MAP into the profile: its new mapping id. */
static int add_module(struct wp_address_space *space, const struct wp_map *map,
		      uint64_t hash, uint32_t *ret_id)
{
	struct wp_profile_mapping mapping = {
		.start_avma = map->start_avma,
		.end_avma = map->end_avma,
		.off = map->off,
	};
	struct wp_address_space_module module = {
		.start_avma = map->start_avma,
		.end_avma = map->end_avma,
		.off = map->off,
		.dev = map->dev,
		.ino = map->ino,
	};
	uint32_t id;

	mapping.path = wp_intern_add_str(&space->profile->strings,
					 wp_maps_path(&space->maps, map));
	mapping.build_id = wp_intern_add_str(&space->profile->strings, "");
	id = wp_profile_add_mapping(space->profile, &mapping);
	if (id == UINT32_MAX || wp_index_add(&space->index, hash, id))
		return -ENOMEM;
	/* Ids begin with 1; others may have added some before. */
	while (space->nmodules <= id) {
		if (WP_VEC_ROOM(space->modules, space->nmodules,
				space->cap_modules, 1))
			return -ENOMEM;
		space->modules[space->nmodules++] = module;
	}
	*ret_id = id;
	return 0;
}

/* Open the file of M, module ID: what cannot be had costs the frames in it. */
static void open_module(struct wp_address_space *space,
			struct wp_address_space_module *m, uint32_t id)
{
	const struct wp_map *map = wp_maps_find(&space->maps, m->start_avma);
	struct wp_profile_mapping *mapping = &space->profile->mappings[id];
	struct wp_elf_image *image = NULL;
	uint64_t svma;

	m->is_opened = true;
	if (!map || wp_image_cache_find(space->images, space->process,
					&space->maps, map, &image))
		return;
	if (!image || !wp_elf_image_svma(image, m->off, &svma))
		return;
	m->image = image;
	m->bias = m->start_avma - svma;
	mapping->image = image;
	mapping->build_id = add_build_id(space, image);
}

/* Open the file of current[I]: see struct wp_unwind_modules. */
static void open_current(void *ctx, size_t i)
{
	struct wp_address_space *space = ctx;
	struct wp_unwind_module *current = &space->current[i];
	struct wp_address_space_module *m = &space->modules[current->mapping];

	if (!m->is_opened)
		open_module(space, m, current->mapping);
	current->image = m->image;
	current->bias = m->bias;
	current->is_unopened = false;
}

static bool is_module(const struct wp_address_space *space, uint32_t id,
		      const struct wp_map *map)
{
	const struct wp_address_space_module *m = &space->modules[id];
	const struct wp_profile *profile = space->profile;

	return m->start_avma == map->start_avma &&
	       m->end_avma == map->end_avma && m->off == map->off &&
	       m->dev == map->dev && m->ino == map->ino &&
	       !strcmp(wp_profile_str(profile, profile->mappings[id].path),
		       wp_maps_path(&space->maps, map));
}

/* A file that cannot be had costs the frames in it. */
static void lose_module(struct wp_address_space *space, uint32_t id)
{
	space->modules[id].is_opened = true;
	space->profile->mappings[id].is_lost = true;
	space->profile->counters.files_lost++;
}

/* Enter MAP, which has not been seen before; *HAS_MOUNTS: the servers have been read
 * for this map. */
static int meet_module(struct wp_address_space *space, const struct wp_map *map,
		       uint64_t hash, bool *has_mounts, uint32_t *ret_id)
{
	int rc = map->ino && !*has_mounts ?
			 wp_file_servers_read(&space->servers, space->process) :
			 0;

	*has_mounts |= map->ino != 0;
	if (!rc)
		rc = add_module(space, map, hash, ret_id);
	if (!rc && map->ino &&
	    !wp_file_servers_answer(&space->servers, space->process,
				    &space->maps, map))
		lose_module(space, *ret_id);
	return rc;
}

/* The id of MAP if it has been seen before, or WP_INDEX_NONE. */
static uint32_t find_module(const struct wp_address_space *space,
			    const struct wp_map *map, uint64_t hash)
{
	return WP_INDEX_FIND(&space->index, hash, id,
			     is_module(space, id, map));
}

/* Is there room in the budget for one more module? */
static bool fits(const struct wp_address_space *space, const struct wp_map *map)
{
	return wp_budget_take(WP_BUDGET_MAPPINGS,
			      2 * (sizeof(struct wp_address_space_module) +
				   sizeof(struct wp_profile_mapping) +
				   sizeof(struct wp_unwind_module) +
				   sizeof(struct wp_index_slot)) +
				      strlen(wp_maps_path(&space->maps, map)));
}

static int list_modules(struct wp_address_space *space)
{
	bool has_mounts = false;

	space->profile->counters.mappings_dropped += space->maps.is_cut;
	space->ncurrent = 0;
	for (size_t i = 0; i < space->maps.len; i++) {
		const struct wp_map *map = &space->maps.v[i];
		const struct wp_address_space_module *m;
		uint64_t hash;
		uint32_t id;
		int rc;

		if (!map->exec)
			continue;
		hash = hash_map(space, map);
		id = find_module(space, map, hash);
		if (id == WP_INDEX_NONE && !fits(space, map)) {
			space->profile->counters.mappings_dropped++;
			continue;
		}
		rc = id == WP_INDEX_NONE ?
			     meet_module(space, map, hash, &has_mounts, &id) :
			     0;
		if (rc)
			return rc;
		if (WP_VEC_ROOM(space->current, space->ncurrent,
				space->cap_current, 1))
			return -ENOMEM;
		m = &space->modules[id];
		space->current[space->ncurrent++] = (struct wp_unwind_module){
			m->start_avma, m->end_avma,   m->bias, id,
			m->image,      !m->is_opened,
		};
	}
	space->view.v = space->current;
	space->view.len = space->ncurrent;
	space->view.generation = ++space->images->generations;
	space->view.open = open_current;
	space->view.ctx = space;
	return 0;
}

/* After an exec the descriptor still stands for the address space before, of
 * which nothing is left to read.
 */
static bool has_gone(int maps_fd)
{
	char byte[2];

	return maps_fd >= 0 && wp_io_pread(maps_fd, byte, sizeof(byte)) == 0;
}

static void reopen_maps(struct wp_address_space *space)
{
	if (has_gone(space->maps_fd) && wp_process_is_alive(space->process))
		space->profile->counters.execs++;
	if (space->maps_fd >= 0)
		close(space->maps_fd);
	space->maps_fd = wp_process_open_maps(space->process);
	space->is_32bit = wp_process_is_32bit(space->process);
}

int wp_address_space_reload(struct wp_address_space *space, bool force)
{
	uint64_t now = wp_clock_ns(), cpu_ns = wp_clock_cpu_ns();
	int rc;

	if (!force && now - space->reloaded_ns < 20 * space->reload_cost_ns)
		return 0;
	reopen_maps(space);
	rc = wp_process_read_maps(space->process, &space->text, &space->maps);
	if (rc)
		return rc;
	/* Files are opened once only, so they are no part of what it costs. */
	space->reloaded_ns = wp_clock_ns();
	space->reload_cost_ns = wp_clock_cpu_ns() - cpu_ns;
	rc = list_modules(space);
	space->profile->counters.map_reloads++;
	return rc ? rc : 1;
}

int wp_address_space_open(struct wp_address_space *space,
			  const struct wp_process *process,
			  struct wp_profile *profile,
			  struct wp_image_cache *images)
{
	int rc;

	*space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
	space->process = process;
	space->profile = profile;
	space->images = images;
	rc = wp_address_space_reload(space, true);
	if (rc < 0) {
		wp_address_space_close(space);
		return rc;
	}
	space->can_query = wp_process_check_map(space->maps_fd, 0, 0, 0, 0) !=
			   -ENOTSUP;
	return 0;
}

void wp_address_space_close(struct wp_address_space *space)
{
	free(space->modules);
	wp_index_clear(&space->index);
	free(space->current);
	wp_maps_clear(&space->maps);
	wp_text_clear(&space->text);
	wp_file_servers_clear(&space->servers);
	if (space->maps_fd >= 0)
		close(space->maps_fd);
	*space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
}

bool wp_address_space_misses(const struct wp_address_space *space,
			     uint64_t pc_avma)
{
	return space->can_query &&
	       wp_process_check_code(space->maps_fd, pc_avma) == 1 &&
	       !wp_unwind_find_module(&space->view, pc_avma);
}

static bool check_module(struct wp_address_space *space, uint32_t id,
			 uint64_t tick)
{
	struct wp_address_space_module *m = &space->modules[id];

	if (m->checked_tick == tick)
		return true;
	if (!wp_process_check_map(space->maps_fd, m->start_avma, m->start_avma,
				  m->off, m->ino))
		return false;
	m->checked_tick = tick;
	return true;
}

bool wp_address_space_check(struct wp_address_space *space,
			    const struct wp_stack *stack, uint64_t tick)
{
	/* Without the question a map is believed for as long as reading it
	 * anew would cost too much. */
	if (!space->can_query)
		return space->reloaded_ns + 20 * space->reload_cost_ns >
		       wp_clock_ns();
	for (uint32_t i = 0; i < stack->depth; i++) {
		uint32_t id = stack->frames[i].mapping;

		if (id && id < space->nmodules &&
		    !check_module(space, id, tick))
			return false;
	}
	return true;
}

uint64_t wp_address_space_stack_end(const struct wp_address_space *space,
				    uint64_t sp_avma)
{
	const struct wp_map *map = wp_maps_find_stack(&space->maps, sp_avma);

	return map ? map->end_avma : 0;
}
