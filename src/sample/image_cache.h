/* SPDX-License-Identifier: Apache-2.0 */
/* image_cache.h - the ELF files behind executable mappings, each opened once.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * All address spaces that one unwinder serves share a cache: the unwinder makes
 * its tables once per image, and images stay at their addresses.
 */
#ifndef WP_IMAGE_CACHE_H
#define WP_IMAGE_CACHE_H

#include <sys/resource.h>

#include "wallprof/elf_image.h"
#include "wallprof/index.h"
#include "wallprof/maps.h"
#include "wallprof/process.h"

struct wp_cached_image {
	/* The file. */
	uint64_t dev;
	uint64_t ino;
	/* NULL: not an ELF file, or not readable; owned. */
	struct wp_elf_image *image;
	/* The mapped parts of a file that cannot be opened, which are read from
	 * the memory of one process; NULL: the file was opened; owned. */
	struct wp_image_memory *memory;
};

struct wp_image_cache {
	/* v[0..len), owned. */
	struct wp_cached_image *v;
	size_t len, cap;
	/* Finds them by device and inode. */
	struct wp_index index;
	/* Files that were closed of which --max-memory had left out parts. */
	uint64_t ndropped;
	/* RLIMIT_NOFILE; 0: none. */
	rlim_t fd_limit;
	/* Generations of module lists that the address spaces have had. */
	uint64_t generations;
};

#define WP_IMAGE_CACHE_INIT                                                    \
	{                                                                      \
		0                                                              \
	}

/* The image of the file behind MAP, a region of MAPS, which are those of PROCESS,
 * in *RET: NULL when there is none that can be read.  PROCESS is borrowed until
 * wp_image_cache_forget.  0, or -ENOMEM: it cannot even be remembered. */
WP_MUST_CHECK
int wp_image_cache_find(struct wp_image_cache *cache,
			const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map,
			struct wp_elf_image **ret);

/* PROCESS is about to be freed: what was not read of its memory is lost. */
void wp_image_cache_forget(struct wp_image_cache *cache,
			   const struct wp_process *process);

/* How many images there are without is_held; RELEASE: take the mark from all others. */
size_t wp_image_cache_count_idle(const struct wp_image_cache *cache,
				 bool release);

/* Close the images without is_held, which nobody has any more, and take the mark from the
 * others.  What could not be had may be tried again.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_image_cache_drop(struct wp_image_cache *cache);

/* The number of files of which --max-memory left out parts, so far. */
uint64_t wp_image_cache_count_dropped(const struct wp_image_cache *cache);

void wp_image_cache_clear(struct wp_image_cache *cache);

#endif
