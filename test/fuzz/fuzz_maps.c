/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_maps.c - /proc/PID/maps.
 *
 * Layer: proc.
 */
#include "fuzz.h"
#include "wallprof/maps.h"

static void check_region(const struct wp_maps *maps, size_t i)
{
	const struct wp_map *map = &maps->v[i];

	FUZZ_CHECK(map->start_avma < map->end_avma);
	FUZZ_CHECK(!i || maps->v[i - 1].end_avma <= map->start_avma);
	FUZZ_CHECK(map->path < maps->paths_len);
	/* Ends inside the texts. */
	FUZZ_CHECK(memchr(maps->paths + map->path, '\0',
			  maps->paths_len - map->path));
	FUZZ_CHECK(wp_maps_path(maps, map) == maps->paths + map->path);
	FUZZ_CHECK(wp_maps_find(maps, map->start_avma) == map);
	FUZZ_CHECK(wp_maps_find(maps, map->end_avma - 1) == map);
	FUZZ_CHECK(wp_maps_find(maps, map->end_avma) != map);
	FUZZ_CHECK(wp_maps_find_stack(maps, map->start_avma) == map);
	(void)wp_maps_find_stack(maps, map->start_avma - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_maps maps = WP_MAPS_INIT;
	/* The second time with the memory of the first. */
	size_t half = size / 2;

	(void)!wp_maps_parse(&maps, (const char *)data, half);
	if (wp_maps_parse(&maps, (const char *)data, size))
		FUZZ_CHECK(!maps.len);
	for (size_t i = 0; i < maps.len; i++)
		check_region(&maps, i);
	FUZZ_CHECK(!wp_maps_find(&maps, UINT64_MAX));
	wp_maps_clear(&maps);
	return 0;
}
