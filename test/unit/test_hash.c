/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: base.  wallprof/hash.h: keys that somebody chose so that they fall on one place
 * of a table do not, without this process's key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "wallprof/hash.h"
#include "wallprof/intern.h"

enum { KEYS = 8192 };

/* The factor of the function without a key, which tables had before, and what undoes
 * it. */
#define FACTOR UINT64_C(0xd6e8feb86659fd93)

static uint64_t hash_without_key(uint64_t x)
{
	x ^= x >> 32;
	x *= FACTOR;
	x ^= x >> 32;
	x *= FACTOR;
	return x ^ x >> 32;
}

static uint64_t undo(uint64_t y)
{
	uint64_t inverse = FACTOR;

	/* Newton's method doubles the bits that are right, at first three. */
	for (int i = 0; i < 5; i++)
		inverse *= 2 - FACTOR * inverse;
	y ^= y >> 32;
	y *= inverse;
	y ^= y >> 32;
	y *= inverse;
	return y ^ y >> 32;
}

/* The Nth number whose hash without a key has the low half of all others'. */
static uint64_t colliding(uint64_t n)
{
	uint64_t x = undo(n << 32 | 0x12345678);

	assert_int_equal((uint32_t)hash_without_key(x), 0x12345678);
	return x;
}

/* The slots that are looked at to find all elements of INDEX, each once. */
static uint64_t count_probes(const struct wp_index *index)
{
	uint64_t n = 0;

	for (uint32_t at = 0; at < index->cap; at++)
		if (index->v[at].element)
			n += ((at - index->v[at].hash) & (index->cap - 1)) + 1;
	return n;
}

static void chosen_numbers_do_not_collide(void **state)
{
	struct wp_index plain = WP_INDEX_INIT, index = WP_INDEX_INIT;

	(void)state;
	for (uint32_t i = 0; i < KEYS; i++) {
		uint64_t x = colliding(i);

		assert_int_equal(wp_index_add(&plain, hash_without_key(x), i),
				 0);
		assert_int_equal(wp_index_add(&index, wp_hash_u64(x), i), 0);
	}
	assert_int_equal(count_probes(&plain), (uint64_t)KEYS * (KEYS + 1) / 2);
	assert_true(count_probes(&index) < 2 * KEYS);
	wp_index_clear(&plain);
	wp_index_clear(&index);
}

/* Of 8 bytes: without a key these are hashed with their number, and then as a word of
 * nothing. */
static void chosen_strings_do_not_collide(void **state)
{
	struct wp_intern in = WP_INTERN_INIT;
	uint32_t n = 0;

	(void)state;
	for (uint64_t i = 0; n < KEYS; i++) {
		uint64_t word = undo(colliding(i)) ^ sizeof(word);

		if (memchr(&word, 0, sizeof(word)))
			continue;
		assert_int_equal(
			wp_intern_add(&in, (const char *)&word, sizeof(word)),
			++n);
	}
	assert_int_equal(in.len, KEYS + 1);
	assert_true(count_probes(&in.index) < 2 * KEYS);
	wp_intern_clear(&in);
}

/* As addresses of functions, and numbers one after the other, are. */
static void numbers_in_a_row_do_not_collide(void **state)
{
	(void)state;
	for (unsigned int shift = 0; shift < 52; shift += 4) {
		struct wp_index index = WP_INDEX_INIT;

		for (uint64_t i = 0; i < KEYS; i++)
			assert_int_equal(wp_index_add(&index,
						      wp_hash_u64(i << shift),
						      (uint32_t)i),
					 0);
		assert_true(count_probes(&index) < 2 * KEYS);
		wp_index_clear(&index);
	}
}

static void each_process_has_a_key_of_its_own(void **state)
{
	const struct wp_hash_key before = wp_hash_key;
	uint64_t number = wp_hash_u64(7), text = wp_hash_bytes(0, "abc", 3);
	uint64_t lasting = wp_hash_lasting(0, "abc", 3);

	(void)state;
	assert_int_equal(lasting, text);
	wp_hash_draw_key();
	assert_int_not_equal(wp_hash_u64(7), number);
	assert_int_not_equal(wp_hash_bytes(0, "abc", 3), text);
	assert_int_equal(wp_hash_lasting(0, "abc", 3), lasting);
	number = wp_hash_u64(7);
	wp_hash_draw_key();
	assert_int_not_equal(wp_hash_u64(7), number);
	chosen_numbers_do_not_collide(NULL);
	chosen_strings_do_not_collide(NULL);
	wp_hash_key = before;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen_numbers_do_not_collide),
		cmocka_unit_test(chosen_strings_do_not_collide),
		cmocka_unit_test(numbers_in_a_row_do_not_collide),
		cmocka_unit_test(each_process_has_a_key_of_its_own),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
