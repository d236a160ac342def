/* SPDX-License-Identifier: Apache-2.0 */
/* What of sampled mappings is mapped still.  Layer: sample.  The BPF program is a list of
 * what it said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../src/sample/heap_maps.h"
#include "few_allocations.h"

static struct wp_heap_mapped said[8];
static size_t nsaid;

void wp_heap_probe_each_mapped(struct wp_heap_probe *probe,
			       void (*each)(void *ctx,
					    const struct wp_heap_mapped *range),
			       void *ctx)
{
	(void)probe;
	for (size_t i = 0; i < nsaid; i++)
		each(ctx, &said[i]);
	nsaid = 0;
}

static struct wp_heap_maps maps;

/* The sample ID, which stands for two mappings, was made. */
static void sample(uint64_t id)
{
	assert_int_equal(
		wp_heap_maps_add(&maps, &(struct wp_heap_map){ .id = id,
							       .count = 2,
							       .weight = 2 }),
		0);
}

/* At TIME [START, END) was mapped for sample ID, or unmapped. */
static void place(uint64_t time, uint64_t start, uint64_t end, uint64_t id)
{
	assert_int_equal(
		wp_heap_maps_place(&maps, &(struct wp_heap_mapped){ time, start,
								    end, id }),
		0);
}

static void map(uint64_t id, uint64_t start, uint64_t end)
{
	sample(id);
	place(id, start, end, id);
}

/* BYTES and COUNT of it are mapped; all that is kept ends now. */
static void check(uint64_t bytes, uint64_t count)
{
	struct wp_profile_sample one = { 0 };
	struct wp_sample_set set = { .samples = &one, .nsamples = 1 };

	wp_heap_maps_count(&maps, &set, UINT64_MAX);
	assert_int_equal(one.cpu_ns, bytes);
	assert_int_equal(one.cpu_count, count);
	wp_heap_maps_clear(&maps);
}

static void what_is_unmapped_is_not_counted(void **state)
{
	(void)state;
	map(1, 100, 200);
	map(2, 200, 300);
	check(400, 4);
	/* Its begin, its end, its middle, all. */
	map(1, 100, 200);
	place(5, 50, 110, 0);
	check(180, 2);
	map(1, 100, 200);
	place(5, 190, 300, 0);
	check(180, 2);
	map(1, 100, 200);
	place(5, 140, 160, 0);
	check(160, 2);
	map(1, 100, 200);
	place(5, 0, 1000, 0);
	check(0, 0);
	/* From its begin on, and then the rest; at once when it was mapped. */
	map(1, 100, 200);
	place(5, 100, 150, 0);
	place(6, 150, 200, 0);
	check(0, 0);
	map(1, 100, 200);
	place(1, 100, 150, 0);
	check(100, 2);
	/* Parts of several. */
	map(1, 100, 200);
	map(2, 300, 400);
	place(5, 150, 350, 0);
	check(200, 4);
	/* Beside it, and no range at all. */
	map(1, 100, 200);
	place(5, 200, 300, 0);
	place(5, 50, 100, 0);
	place(5, 150, 150, 0);
	place(5, UINT64_MAX, 10, 0);
	sample(6);
	place(6, 300, 300, 6);
	check(200, 2);
}

static void the_newest_mapping_holds(void **state)
{
	(void)state;
	/* Mapped over; that which was unmapped before it is not. */
	map(3, 100, 200);
	map(4, 150, 250);
	place(2, 0, 1000, 0);
	check(300, 4);
	map(4, 100, 200);
	sample(3);
	place(3, 150, 160, 3);
	check(200, 2);
}

static void samples_get_their_places_in_any_order(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= 4; id++)
		sample(id);
	place(5, 100, 200, 2);
	place(6, 300, 400, 1);
	place(7, 500, 600, 4);
	place(8, 700, 800, 3);
	check(800, 8);
}

static void no_more_are_kept_than_a_process_has(void **state)
{
	const uint64_t most = 1 << 18;

	(void)state;
	for (uint64_t id = 1; id <= most + 3; id++)
		map(id, 10 * id, 10 * id + 1);
	assert_int_equal(maps.n, most);
	assert_int_equal(maps.ndropped, 3);
	check(2 * most, 2 * most);
}

#ifdef CAN_FAIL
static void without_memory_there_is_an_error(void **state)
{
	const struct wp_heap_map fresh = { .id = 1, .weight = 1 };
	const struct wp_heap_mapped range = { 50, 100, 200, 1 };
	const struct wp_heap_mapped hole = { 1000, 104, 106, 0 };
	uint64_t id;
	int rc[4];

	(void)state;
	allocations_left = 0;
	rc[0] = wp_heap_maps_add(&maps, &fresh);
	allocations_left = -1;
	assert_int_equal(wp_heap_maps_add(&maps, &fresh), 0);
	allocations_left = 0;
	rc[1] = wp_heap_maps_place(&maps, &range);
	allocations_left = -1;
	assert_int_equal(wp_heap_maps_add(&maps, &fresh), 0);
	said[nsaid++] = range;
	assert_int_equal(wp_heap_maps_read(&maps, NULL, 50), 0);
	allocations_left = 0;
	rc[2] = wp_heap_maps_read(&maps, NULL, 51);
	allocations_left = -1;
	/* What is unmapped in its middle becomes two. */
	id = 10;
	do {
		map(id, 10 * id, 10 * id + 10);
		id++;
	} while (maps.n < maps.cap);
	allocations_left = 0;
	rc[3] = wp_heap_maps_place(&maps, &hole);
	allocations_left = -1;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(rc[i], -ENOMEM);
	wp_heap_maps_clear(&maps);
}
#endif

static void a_sample_without_a_place_is_nothing(void **state)
{
	(void)state;
	sample(1);
	place(2, 100, 200, 7);
	check(0, 0);
	/* No end of calls that failed. */
	for (uint64_t id = 1; id < 10000; id++)
		sample(id);
	place(1, 0, 10, 9999);
	place(1, 10, 20, 1);
	assert_true(maps.cap_fresh < 10000);
	check(20, 2);
}

static void what_is_left_has_its_part_of_the_variance(void **state)
{
	const struct wp_heap_map sampled = {
		.id = 1, .weight = 2, .bytes = 200, .variance = 80
	};
	struct wp_profile_sample one = { 0 };
	struct wp_sample_set set = { .samples = &one, .nsamples = 1 };

	(void)state;
	assert_int_equal(wp_heap_maps_add(&maps, &sampled), 0);
	place(1, 100, 200, 1);
	place(2, 150, 175, 0);
	wp_heap_maps_count(&maps, &set, UINT64_MAX);
	assert_int_equal(one.cpu_ns, 150);
	assert_int_equal(one.looks, 60);
	wp_heap_maps_clear(&maps);
}

static void a_call_that_fails_is_taken_back(void **state)
{
	struct wp_profile_sample one = { .count = 7,
					 .wall_ns = 1000,
					 .weight_ns = 90 };
	struct wp_sample_set set = { .samples = &one, .nsamples = 1 };
	struct wp_heap_map map = {
		.id = 1, .count = 2, .bytes = 400, .variance = 30
	};

	(void)state;
	assert_int_equal(wp_heap_maps_add(&maps, &map), 0);
	assert_int_equal(wp_heap_maps_take_back(&maps, &set, 2), 0);
	assert_int_equal(wp_heap_maps_take_back(&maps, &set, 1), 400);
	assert_int_equal(one.count, 5);
	assert_int_equal(one.wall_ns, 600);
	assert_int_equal(one.weight_ns, 60);
	/* Once; and it has no place. */
	assert_int_equal(wp_heap_maps_take_back(&maps, &set, 1), 0);
	place(2, 0, 10, 1);
	/* Of a profile that is another by now. */
	map.at = 1;
	assert_int_equal(wp_heap_maps_add(&maps, &map), 0);
	assert_int_equal(wp_heap_maps_take_back(&maps, &set, 1), 0);
	assert_int_equal(one.count, 5);
	check(0, 0);
}

static void what_is_said_waits_for_its_sample(void **state)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	(void)state;
	/* The kernel gives back the rest of a page too. */
	said[nsaid++] = (struct wp_heap_mapped){ 50, page, 3 * page - 10, 1 };
	said[nsaid++] = (struct wp_heap_mapped){ 60, page, 2 * page - 99, 0 };
	assert_int_equal(wp_heap_maps_read(&maps, NULL, 50), 0);
	sample(1);
	assert_int_equal(wp_heap_maps_read(&maps, NULL, 60), 0);
	assert_int_equal(maps.n, 1);
	assert_int_equal(wp_heap_maps_read(&maps, NULL, 61), 0);
	check(2 * (page - 10), 2);
}

static void older_ones_only(void **state)
{
	struct wp_profile_sample v[2] = { 0 };
	struct wp_sample_set set = { .samples = v, .nsamples = 2 };

	(void)state;
	map(10, 0, 100);
	map(20, 200, 300);
	maps.v[0].at = 1;
	/* Of no sample. */
	maps.v[1].at = 2;
	wp_heap_maps_count(&maps, &set, 20);
	assert_int_equal(v[1].cpu_ns, 200);
	wp_heap_maps_count(&maps, &set, UINT64_MAX);
	assert_int_equal(v[0].cpu_ns, 0);
	wp_heap_maps_forget_all(&maps);
	check(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_unmapped_is_not_counted),
		cmocka_unit_test(the_newest_mapping_holds),
		cmocka_unit_test(samples_get_their_places_in_any_order),
		cmocka_unit_test(no_more_are_kept_than_a_process_has),
#ifdef CAN_FAIL
		cmocka_unit_test(without_memory_there_is_an_error),
#endif
		cmocka_unit_test(a_sample_without_a_place_is_nothing),
		cmocka_unit_test(what_is_left_has_its_part_of_the_variance),
		cmocka_unit_test(a_call_that_fails_is_taken_back),
		cmocka_unit_test(what_is_said_waits_for_its_sample),
		cmocka_unit_test(older_ones_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
