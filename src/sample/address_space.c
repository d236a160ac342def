/* SPDX-License-Identifier: Apache-2.0 */
/* address_space.c - see address_space.h. */
#include "address_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/vec.h"

static struct wp_module_place place_of(const struct wp_address_space *space,
				       const struct wp_map *map)
{
	return (struct wp_module_place){ space->process, space->index,
					 &space->maps, map };
}

static struct wp_counters *counters_of(const struct wp_address_space *space)
{
	return &space->modules->profile->counters;
}

/* Open the file of current[I]: see struct wp_unwind_modules. */
static void open_current(void *ctx, size_t i)
{
	struct wp_address_space *space = ctx;
	struct wp_unwind_module *current = &space->current[i];
	const struct wp_module *m = &space->modules->v[current->mapping];
	struct wp_module_place place = place_of(
		space, wp_maps_find(&space->maps, current->start_avma));

	if (!m->is_opened)
		wp_modules_open(space->modules, current->mapping, &place);
	current->image = m->image;
	current->bias = m->bias;
	current->is_unopened = false;
}

/* How many mounts there are the target has in its hand: to read them is a part of what a
 * reading of the map costs. */
static int read_servers(struct wp_address_space *space)
{
	uint64_t cpu_ns = wp_clock_cpu_ns();
	int rc = wp_file_servers_read(&space->servers, space->process);

	space->reload_cost_ns += wp_clock_cpu_ns() - cpu_ns;
	return rc;
}

/* Enter PLACE, which has not been seen before; *HAS_MOUNTS: the servers have been
 * read for this map. */
static int meet_module(struct wp_address_space *space,
		       const struct wp_module_place *place, bool *has_mounts,
		       uint32_t *ret_id)
{
	const struct wp_map *map = place->map;
	int rc = map->ino && !*has_mounts ? read_servers(space) : 0;

	*has_mounts |= map->ino != 0;
	if (!rc)
		rc = wp_modules_add(space->modules, place, ret_id);
	if (!rc && map->ino &&
	    !wp_file_servers_answer(&space->servers, space->process,
				    &space->maps, map))
		wp_modules_lose(space->modules, *ret_id);
	return rc;
}

/* Add module ID to what is mapped now. */
static int add_current(struct wp_address_space *space, uint32_t id)
{
	const struct wp_module *m = &space->modules->v[id];

	if (WP_VEC_ROOM(space->current, space->ncurrent, space->cap_current,
			1) ||
	    WP_VEC_ROOM(space->checked, space->nchecked, space->cap_checked, 1))
		return -ENOMEM;
	space->checked[space->nchecked++] = 0;
	space->current[space->ncurrent++] = (struct wp_unwind_module){
		m->start_avma, m->end_avma, m->bias, id, m->image, !m->is_opened
	};
	return 0;
}

static int list_modules(struct wp_address_space *space)
{
	size_t nbefore = space->ncurrent;
	bool has_mounts = false, is_same = space->view.generation != 0;

	counters_of(space)->mappings_dropped += space->maps.is_cut;
	space->ncurrent = space->nchecked = 0;
	for (size_t i = 0; i < space->maps.len; i++) {
		const struct wp_module_place place = place_of(
			space, &space->maps.v[i]);
		uint32_t id;
		int rc = 0;

		if (!place.map->exec)
			continue;
		id = wp_modules_find(space->modules, &place);
		if (id == WP_INDEX_NONE && !wp_modules_fit(&place)) {
			counters_of(space)->mappings_dropped++;
			continue;
		}
		if (id == WP_INDEX_NONE)
			rc = meet_module(space, &place, &has_mounts, &id);
		is_same &= space->ncurrent < nbefore &&
			   space->current[space->ncurrent].mapping == id;
		if (!rc)
			rc = add_current(space, id);
		if (rc)
			return rc;
	}
	space->view.is_32bit = space->is_32bit;
	space->view.v = space->current;
	space->view.len = space->ncurrent;
	/* What is known by address still holds where the same is mapped: a map that
	 * cannot be asked about is read again and again. */
	if (!is_same || space->ncurrent != nbefore)
		space->view.generation = ++space->modules->images->generations;
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

/* [vsyscall] is in the kernel's half, and a descriptor of a map knows nothing of it. */
static bool is_own_code(const struct wp_map *map)
{
	return map->exec && !(map->start_avma >> 63);
}

/* Is the map that was read last not of the address space behind BEFORE_FD?  A process
 * that was met between vfork(2) and exec had its parent's, which has not gone.  In the
 * middle of an exec there is no code to tell by. */
static bool is_of_another(const struct wp_address_space *space, int before_fd)
{
	const struct wp_map *map = space->maps.v;
	const struct wp_map *end = map + space->maps.len;

	while (map < end && !is_own_code(map))
		map++;
	return map < end &&
	       !wp_process_check_map(before_fd, map->start_avma,
				     map->start_avma, map->off, map->ino);
}

/* Read the map anew, by a descriptor of the present address space. */
static int read_maps(struct wp_address_space *space)
{
	int before_fd = space->maps_fd, rc;

	space->maps_fd = wp_process_open_maps(space->process);
	rc = wp_process_read_maps(space->process, &space->text, &space->maps);
	if (before_fd < 0)
		return rc;
	if (!rc && (has_gone(before_fd) || is_of_another(space, before_fd)) &&
	    wp_process_is_alive(space->process)) {
		counters_of(space)->execs++;
		space->nexecs++;
	}
	close(before_fd);
	return rc;
}

/* kernel/events/uprobes.c, xol_add_vma and get_trampoline_vaddr: where it begins. */
static uint64_t find_uprobes(const struct wp_maps *maps)
{
	/* It is near the end. */
	for (size_t i = maps->len; i-- > 0;)
		if (!strcmp(wp_maps_path(maps, &maps->v[i]), "[uprobes]"))
			return maps->v[i].start_avma;
	return 0;
}

int wp_address_space_reload(struct wp_address_space *space, bool force)
{
	uint64_t now = wp_clock_ns(), cpu_ns = wp_clock_cpu_ns();
	int rc;

	if (!force && now - space->reloaded_ns < 20 * space->reload_cost_ns)
		return 0;
	rc = read_maps(space);
	if (rc)
		return rc;
	space->is_32bit = wp_process_is_32bit(space->process);
	space->uprobes_avma = find_uprobes(&space->maps);
	/* Files are opened once only, so they are no part of what it costs. */
	space->reloaded_ns = wp_clock_ns();
	space->reload_cost_ns = wp_clock_cpu_ns() - cpu_ns;
	rc = list_modules(space);
	counters_of(space)->map_reloads++;
	return rc ? rc : 1;
}

int wp_address_space_open(struct wp_address_space *space,
			  const struct wp_process *process,
			  struct wp_modules *modules, uint32_t index)
{
	int rc;

	*space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
	space->process = process;
	space->modules = modules;
	space->index = index;
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
	free(space->current);
	free(space->checked);
	wp_maps_clear(&space->maps);
	wp_text_clear(&space->text);
	wp_file_servers_clear(&space->servers);
	if (space->maps_fd >= 0)
		close(space->maps_fd);
	*space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
}

void wp_address_space_renumber(struct wp_address_space *space,
			       struct wp_renumber *r)
{
	bool differs = false;

	for (size_t i = 0; i < space->ncurrent; i++) {
		uint32_t *id = &space->current[i].mapping, was = *id;

		wp_renumber_ref(r, WP_REF_MAPPING, id);
		differs |= *id != was;
	}
	/* Walks that are remembered have the old ones. */
	if (differs)
		space->view.generation = ++space->modules->images->generations;
}

bool wp_address_space_misses(const struct wp_address_space *space,
			     uint64_t pc_avma)
{
	return space->can_query &&
	       wp_process_check_code(space->maps_fd, pc_avma) == 1 &&
	       !wp_unwind_find_module(&space->view, pc_avma);
}

bool wp_address_space_lacks(const struct wp_address_space *space,
			    uint64_t pc_avma)
{
	return space->can_query &&
	       wp_process_check_code(space->maps_fd, pc_avma) == 0;
}

static bool check_module(struct wp_address_space *space, uint32_t id,
			 uint64_t tick)
{
	const struct wp_module *m = &space->modules->v[id];
	const struct wp_unwind_module *current = wp_unwind_find_module(
		&space->view, m->start_avma);
	uint64_t *checked;

	if (!current || current->mapping != id)
		return false;
	checked = &space->checked[current - space->current];
	if (*checked == tick)
		return true;
	if (!wp_process_check_map(space->maps_fd, m->start_avma, m->start_avma,
				  m->off, m->ino))
		return false;
	*checked = tick;
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

		if (id && id < space->modules->len &&
		    !check_module(space, id, tick))
			return false;
	}
	return true;
}

uint64_t wp_address_space_stack_end(const struct wp_address_space *space,
				    uint64_t sp_avma)
{
	const struct wp_map *map = wp_maps_find_stack(&space->maps, sp_avma);

	if (map || !space->can_query)
		return map ? map->end_avma : 0;
	/* The thread has started since the map was read. */
	return wp_process_region_end(space->maps_fd, sp_avma);
}
