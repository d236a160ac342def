/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_perfmap.c - /tmp/perf-PID.map.
 *
 * Layer: symbols.
 */
#include "../../symbols/perf_map.h"
#include "fuzz.h"

static void check_entry(const struct wp_perf_map *map, uint32_t i)
{
	const struct wp_perf_map_entry *e = &map->v[i];
	const char *name = wp_perf_map_find(map, e->start);

	FUZZ_CHECK(e->start < e->end);
	FUZZ_CHECK(!i || map->v[i - 1].end <= e->start);
	FUZZ_CHECK(name == map->text.data + e->name && *name);
	FUZZ_CHECK(name + strlen(name) <= map->text.data + map->text.len);
	FUZZ_CHECK(wp_perf_map_find(map, e->end - 1) == name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_text text = { malloc(size + 1), size, size + 1 };
	struct wp_perf_map map;

	FUZZ_CHECK(text.data);
	memcpy(text.data, data, size);
	text.data[size] = '\0';
	FUZZ_CHECK(!wp_perf_map_parse(&map, text));
	/* Pieces of lines that overlap: at most two more for each line. */
	FUZZ_CHECK(map.len <= size);
	FUZZ_CHECK(map.nbad <= size);
	for (uint32_t i = 0; i < map.len; i++)
		check_entry(&map, i);
	(void)wp_perf_map_find(&map, 0);
	FUZZ_CHECK(!wp_perf_map_find(&map, UINT64_MAX));
	wp_perf_map_clear(&map);
	return 0;
}
