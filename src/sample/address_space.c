/* SPDX-License-Identifier: Apache-2.0 */
/* address_space.c - see address_space.h. */
#include "address_space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/hash.h"

/* Makes room for one more entry of SIZE in *V[0..len). */
static int grow(void *v, size_t len, size_t *cap, size_t size)
{
	void **array = v, *more;
	size_t want = *cap ? 2 * *cap : 64;

	if (len < *cap)
		return 0;
	more = reallocarray(*array, want, size);
	if (!more)
		return -ENOMEM;
	*array = more;
	*cap = want;
	return 0;
}

/* A file that cannot be opened is seen through the target's memory: the parts
 * of it that are mapped, which unwind info is.
 */
struct wp_address_space_memory {
	const struct wp_process *process;
	size_t len;
	struct {
		uint64_t off;
		uint64_t size;
		uint64_t avma;
	} v[];
};

static long read_memory(void *src, void *buf, size_t len, uint64_t off)
{
	const struct wp_address_space_memory *m = src;

	for (size_t i = 0; i < m->len; i++) {
		uint64_t at = off - m->v[i].off, left;

		if (off < m->v[i].off) {
			if (m->v[i].off - off < len)
				len = (size_t)(m->v[i].off - off);
			continue;
		}
		if (at >= m->v[i].size)
			continue;
		left = m->v[i].size - at;
		return wp_process_read(m->process, m->v[i].avma + at, buf,
				       len < left ? len : (size_t)left);
	}
	/* Holes between segments read as zeros: the next block may matter. */
	memset(buf, 0, len);
	return (long)len;
}

static bool same_file(const struct wp_address_space *space,
		      const struct wp_map *a, const struct wp_map *b)
{
	return a->dev == b->dev && a->ino == b->ino &&
	       !strcmp(wp_maps_path(&space->maps, a),
		       wp_maps_path(&space->maps, b));
}

/* The regions of MAP's file, as one list. */
static struct wp_address_space_memory *
list_regions(const struct wp_address_space *space, const struct wp_map *map,
	     uint64_t *ret_size)
{
	struct wp_address_space_memory *m;
	size_t n = 0;

	for (size_t i = 0; i < space->maps.len; i++)
		n += same_file(space, &space->maps.v[i], map);
	m = malloc(sizeof(*m) + n * sizeof(m->v[0]));
	if (!m)
		return NULL;
	m->process = space->process;
	m->len = 0;
	*ret_size = 0;
	for (size_t i = 0; i < space->maps.len; i++) {
		const struct wp_map *r = &space->maps.v[i];
		uint64_t size = r->end_avma - r->start_avma;

		if (!same_file(space, r, map) || !r->read)
			continue;
		m->v[m->len].off = r->off;
		m->v[m->len].size = size;
		m->v[m->len++].avma = r->start_avma;
		if (r->off + size > *ret_size)
			*ret_size = r->off + size;
	}
	return m;
}

static int open_image(struct wp_address_space *space, const struct wp_map *map,
		      struct wp_address_space_image *entry)
{
	int fd = wp_process_open_map(space->process, &space->maps, map);
	uint64_t size;
	int rc = -ENOENT;

	if (fd >= 0) {
		rc = wp_elf_image_open(entry->image, fd, NULL);
		if (rc)
			close(fd);
	}
	if (!rc || rc == -ENOTSUP || rc == -ENOMEM)
		return rc;
	entry->memory = list_regions(space, map, &size);
	if (!entry->memory)
		return -ENOMEM;
	return wp_elf_image_open_memory(entry->image, size, read_memory,
					entry->memory, NULL);
}

static void clear_image(struct wp_address_space_image *entry)
{
	if (entry->image)
		wp_elf_image_clear(entry->image);
	free(entry->image);
	free(entry->memory);
}

static bool has_elf(const struct wp_address_space *space,
		    const struct wp_map *map)
{
	return map->ino || !strcmp(wp_maps_path(&space->maps, map), "[vdso]");
}

/* The image of MAP's file in *RET, NULL when it is not an ELF file that can be
 * read: known from before, or opened now.
 */
static int find_image(struct wp_address_space *space, const struct wp_map *map,
		      struct wp_elf_image **ret)
{
	struct wp_address_space_image entry = { map->dev, map->ino, NULL,
						NULL };
	int rc;

	*ret = NULL;
	if (!has_elf(space, map))
		return 0;
	for (size_t i = 0; i < space->nimages; i++) {
		if (space->images[i].dev == map->dev &&
		    space->images[i].ino == map->ino) {
			*ret = space->images[i].image;
			return 0;
		}
	}
	if (grow(&space->images, space->nimages, &space->cap_images,
		 sizeof(*space->images)))
		return -ENOMEM;
	entry.image = malloc(sizeof(*entry.image));
	if (!entry.image)
		return -ENOMEM;
	*entry.image = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
	rc = open_image(space, map, &entry);
	if (rc) {
		clear_image(&entry);
		if (rc == -ENOMEM)
			return rc;
		/* Remembered, so that it is not tried at each reload. */
		entry.image = NULL;
		entry.memory = NULL;
	}
	space->images[space->nimages++] = entry;
	*ret = entry.image;
	return 0;
}

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

static void put_slot(const struct wp_address_space *space, uint32_t *slot,
		     size_t nslots, uint32_t id)
{
	size_t i = space->modules[id].hash & (nslots - 1);

	while (slot[i])
		i = (i + 1) & (nslots - 1);
	slot[i] = id;
}

/* Room for one module more at half load. */
static int reserve_slot(struct wp_address_space *space)
{
	size_t n = space->nslots ? 2 * space->nslots : 256;
	uint32_t *slot;

	if (space->nmodules < space->nslots / 2)
		return 0;
	slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t id = 1; id < space->nmodules; id++)
		put_slot(space, slot, n, id);
	free(space->slot);
	space->slot = slot;
	space->nslots = n;
	return 0;
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
	struct wp_address_space_module module = { map->start_avma,
						  map->end_avma,
						  map->off,
						  map->dev,
						  map->ino,
						  0,
						  NULL,
						  hash,
						  0 };
	uint64_t svma;
	int rc = find_image(space, map, &module.image);

	if (!rc)
		rc = reserve_slot(space);
	if (rc)
		return rc;
	if (module.image && wp_elf_image_svma(module.image, map->off, &svma))
		module.bias = map->start_avma - svma;
	else
		module.image = NULL;
	mapping.path = wp_intern_add_str(&space->profile->strings,
					 wp_maps_path(&space->maps, map));
	mapping.build_id = add_build_id(space, module.image);
	mapping.image = module.image;
	*ret_id = wp_profile_add_mapping(space->profile, &mapping);
	while (*ret_id != UINT32_MAX && space->nmodules <= *ret_id) {
		if (grow(&space->modules, space->nmodules, &space->cap_modules,
			 sizeof(*space->modules)))
			return -ENOMEM;
		space->modules[space->nmodules++] = module;
	}
	if (*ret_id == UINT32_MAX)
		return -ENOMEM;
	put_slot(space, space->slot, space->nslots, *ret_id);
	return 0;
}

/* The id of MAP if it has been seen before. */
static uint32_t find_module(const struct wp_address_space *space,
			    const struct wp_map *map, uint64_t hash)
{
	const char *path = wp_maps_path(&space->maps, map);
	size_t mask = space->nslots - 1;
	uint32_t id;

	if (!space->nslots)
		return WP_MAPPING_NONE;
	for (size_t i = hash & mask; (id = space->slot[i]);
	     i = (i + 1) & mask) {
		const struct wp_address_space_module *m = &space->modules[id];

		if (m->hash == hash && m->start_avma == map->start_avma &&
		    m->end_avma == map->end_avma && m->off == map->off &&
		    m->dev == map->dev && m->ino == map->ino &&
		    !strcmp(wp_profile_str(space->profile,
					   space->profile->mappings[id].path),
			    path))
			break;
	}
	return id;
}

static int list_modules(struct wp_address_space *space)
{
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
		rc = id ? 0 : add_module(space, map, hash, &id);
		if (rc)
			return rc;
		if (grow(&space->current, space->ncurrent, &space->cap_current,
			 sizeof(*space->current)))
			return -ENOMEM;
		m = &space->modules[id];
		space->current[space->ncurrent++] = (struct wp_unwind_module){
			m->start_avma, m->end_avma, m->bias, id, m->image
		};
	}
	space->view.v = space->current;
	space->view.len = space->ncurrent;
	space->view.generation = ++*space->generations;
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
	uint64_t now = wp_clock_ns();
	int rc;

	if (!force && now - space->reloaded_ns < 20 * space->reload_cost_ns)
		return 0;
	reopen_maps(space);
	rc = wp_process_read_maps(space->process, &space->text, &space->maps);
	if (rc)
		return rc;
	/* Files are opened once only, so they are no part of what it costs. */
	space->reloaded_ns = wp_clock_ns();
	space->reload_cost_ns = space->reloaded_ns - now;
	rc = list_modules(space);
	space->profile->counters.map_reloads++;
	return rc ? rc : 1;
}

int wp_address_space_open(struct wp_address_space *space,
			  const struct wp_process *process,
			  struct wp_profile *profile, uint64_t *generations)
{
	int rc;

	*space = (struct wp_address_space)WP_ADDRESS_SPACE_INIT;
	space->process = process;
	space->profile = profile;
	space->generations = generations;
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
	for (size_t i = 0; i < space->nimages; i++)
		clear_image(&space->images[i]);
	free(space->images);
	free(space->modules);
	free(space->slot);
	free(space->current);
	wp_maps_clear(&space->maps);
	wp_text_clear(&space->text);
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
