/* SPDX-License-Identifier: Apache-2.0 */
/* image_cache.c - see image_cache.h. */
#include "image_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/hash.h"
#include "wallprof/vec.h"

/* Descriptors left for the output and the rest, of a low limit a quarter.  Fewer than
 * the files of threads leave: those take none of what is kept for images. */
enum { SPARE_FDS = 64 };

/* Parts of a file that PROCESS has mapped. */
struct wp_image_memory {
	/* NULL: it has ended. */
	const struct wp_process *process;
	/* In the order of addresses. */
	size_t len;
	struct {
		uint64_t off;
		uint64_t size;
		uint64_t avma;
	} v[];
};

static long read_memory(void *src, void *buf, size_t len, uint64_t off)
{
	const struct wp_image_memory *m = src;

	if (!m->process)
		return -ESRCH;
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

static bool is_same_file(const struct wp_maps *maps, const struct wp_map *a,
			 const struct wp_map *b)
{
	return a->dev == b->dev && a->ino == b->ino &&
	       !strcmp(wp_maps_path(maps, a), wp_maps_path(maps, b));
}

/* The readable regions of MAP's file; *RET_SIZE: where the last one ends in it.
 * NULL without memory. */
static struct wp_image_memory *list_regions(const struct wp_process *process,
					    const struct wp_maps *maps,
					    const struct wp_map *map,
					    uint64_t *ret_size)
{
	struct wp_image_memory *m;
	size_t n = 0;

	for (size_t i = 0; i < maps->len; i++)
		n += is_same_file(maps, &maps->v[i], map);
	m = malloc(sizeof(*m) + n * sizeof(m->v[0]));
	if (!m)
		return NULL;
	m->process = process;
	m->len = 0;
	*ret_size = 0;
	for (size_t i = 0; i < maps->len; i++) {
		const struct wp_map *r = &maps->v[i];
		uint64_t size = r->end_avma - r->start_avma;

		if (!is_same_file(maps, r, map) || !r->read)
			continue;
		m->v[m->len].off = r->off;
		m->v[m->len].size = size;
		m->v[m->len++].avma = r->start_avma;
		if (r->off + size > *ret_size)
			*ret_size = r->off + size;
	}
	return m;
}

static void clear_image(struct wp_cached_image *entry)
{
	if (entry->image)
		wp_elf_image_clear(entry->image);
	free(entry->image);
	free(entry->memory);
	entry->image = NULL;
	entry->memory = NULL;
}

static bool is_past_limit(const struct wp_image_cache *cache, int fd)
{
	rlim_t limit = cache->fd_limit;
	rlim_t spare = limit / 4 < SPARE_FDS ? limit / 4 : SPARE_FDS;

	return limit && (rlim_t)fd >= limit - spare;
}

/* 0, -ENOMEM, or another -errno: MAP's file is not to be read. */
static int open_image(const struct wp_image_cache *cache,
		      struct wp_cached_image *entry,
		      const struct wp_process *process,
		      const struct wp_maps *maps, const struct wp_map *map)
{
	int fd = wp_process_open_map(process, maps, map);
	uint64_t size;
	int rc = -ENOENT;

	/* Other things want descriptors, too: then it is read from memory. */
	if (fd >= 0 && is_past_limit(cache, fd)) {
		close(fd);
		fd = -1;
	}
	entry->image = malloc(sizeof(*entry->image));
	if (entry->image) {
		*entry->image = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
		if (fd >= 0)
			rc = wp_elf_image_open(entry->image, fd, NULL);
	} else {
		rc = -ENOMEM;
	}
	if (fd >= 0 && rc)
		close(fd);
	if (!rc || rc == -ENOTSUP || rc == -ENOMEM)
		return rc;
	entry->memory = list_regions(process, maps, map, &size);
	if (!entry->memory)
		return -ENOMEM;
	rc = wp_elf_image_open_memory(entry->image, size, read_memory,
				      entry->memory, NULL);
	/* The vDSO, of some pages, is named when its process may have ended. */
	if (!rc && !map->ino)
		(void)!wp_elf_image_whole(entry->image);
	return rc;
}

static bool has_elf(const struct wp_maps *maps, const struct wp_map *map)
{
	return map->ino || !strcmp(wp_maps_path(maps, map), "[vdso]");
}

/* What is opened of a map to compare, once. */
struct probe {
	const struct wp_process *process;
	const struct wp_maps *maps;
	const struct wp_map *map;
	/* -1: it cannot be had. */
	int fd;
	bool is_open;
};

/* Is the file of IMAGE, which has the device and inode of PROBE's, that file as it is now?
 * Of two subvolumes of btrfs maps tell the same device. */
static bool is_as_it_was(const struct wp_elf_image *image, struct probe *probe)
{
	if (image->fd < 0)
		return true;
	if (!probe->is_open)
		probe->fd = wp_process_open_map(probe->process, probe->maps,
						probe->map);
	probe->is_open = true;
	return wp_elf_image_is_of(image, probe->fd < 0 ? image->fd : probe->fd);
}

/* Is ENTRY MAP's file, as PROCESS may read it?  Of two widths are the vDSOs of programs
 * that it has executed. */
static bool is_file(const struct wp_cached_image *entry,
		    const struct wp_process *process, const struct wp_map *map)
{
	return entry->dev == map->dev && entry->ino == map->ino &&
	       (!entry->memory || entry->memory->process == process) &&
	       (map->ino || !entry->image ||
		wp_elf_image_is_32bit(entry->image) ==
			wp_process_is_32bit(process));
}

static uint64_t hash_file(uint64_t dev, uint64_t ino)
{
	const uint64_t key[] = { dev, ino };

	return wp_hash_bytes(0, &key, sizeof(key));
}

int wp_image_cache_find(struct wp_image_cache *cache,
			const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map,
			struct wp_elf_image **ret)
{
	struct wp_cached_image entry = { .dev = map->dev, .ino = map->ino };
	struct probe probe = { process, maps, map, -1, false };
	uint64_t hash = hash_file(map->dev, map->ino);
	uint32_t known;

	*ret = NULL;
	if (!has_elf(maps, map))
		return 0;
	known = WP_INDEX_FIND(
		&cache->index, hash, i,
		is_file(&cache->v[i], process, map) &&
			(!cache->v[i].image ||
			 is_as_it_was(cache->v[i].image, &probe)));
	if (probe.fd >= 0)
		close(probe.fd);
	if (known != WP_INDEX_NONE) {
		*ret = cache->v[known].image;
		return 0;
	}
	if (WP_VEC_ROOM(cache->v, cache->len, cache->cap, 1) ||
	    wp_index_add(&cache->index, hash, (uint32_t)cache->len))
		return -ENOMEM;
	/* A file that cannot be had, be it for want of memory, is remembered
	 * too, so that it is not tried again. */
	if (open_image(cache, &entry, process, maps, map))
		clear_image(&entry);
	cache->v[cache->len++] = entry;
	*ret = entry.image;
	return 0;
}

void wp_image_cache_forget(struct wp_image_cache *cache,
			   const struct wp_process *process)
{
	for (size_t i = 0; i < cache->len; i++) {
		struct wp_image_memory *memory = cache->v[i].memory;

		if (memory && memory->process == process)
			memory->process = NULL;
	}
}

size_t wp_image_cache_count_idle(const struct wp_image_cache *cache,
				 bool release)
{
	size_t n = 0;

	for (size_t i = 0; i < cache->len; i++) {
		struct wp_elf_image *image = cache->v[i].image;

		n += image && !image->is_held;
		if (image && release)
			image->is_held = false;
	}
	return n;
}

int wp_image_cache_drop(struct wp_image_cache *cache)
{
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < cache->len; i++) {
		struct wp_cached_image *entry = &cache->v[i];

		if (entry->image && entry->image->is_held) {
			entry->image->is_held = false;
			cache->v[n++] = *entry;
			continue;
		}
		cache->ndropped += entry->image && entry->image->lacks_memory;
		clear_image(entry);
	}
	cache->len = n;
	wp_index_clear(&cache->index);
	rc = wp_index_reserve(&cache->index, (uint32_t)n);
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = wp_index_add(&cache->index,
				  hash_file(cache->v[i].dev, cache->v[i].ino),
				  i);
	return rc;
}

uint64_t wp_image_cache_count_dropped(const struct wp_image_cache *cache)
{
	uint64_t n = cache->ndropped;

	for (size_t i = 0; i < cache->len; i++)
		n += cache->v[i].image && cache->v[i].image->lacks_memory;
	return n;
}

void wp_image_cache_clear(struct wp_image_cache *cache)
{
	for (size_t i = 0; i < cache->len; i++)
		clear_image(&cache->v[i]);
	free(cache->v);
	wp_index_clear(&cache->index);
	*cache = (struct wp_image_cache)WP_IMAGE_CACHE_INIT;
}
