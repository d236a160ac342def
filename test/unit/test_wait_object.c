/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  wait_object.h: what a thread waits on is told by its call, and what
 * the target chooses takes bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>

#include "../../src/sample/wait_object.h"
#include "one_target.h"
#include "wallprof/syscall_nr.h"

enum { OBJECTS = 20000 };

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, 7, "waiter");
	options = fake_target_options();
	start_target();
	return 0;
}

static struct wp_sample_key describe(enum wp_wait wait, long nr, uint64_t arg)
{
	const struct wp_thread_facts facts = { .state_char = 'S',
					       .syscall_nr = nr,
					       .args = { arg } };
	struct wp_sample_key key = { .state = WP_STATE_WAITING,
				     .wait = (uint8_t)wait };

	assert_int_equal(wp_wait_object_describe(fake.target, 0, &key, &facts),
			 0);
	return key;
}

static const char *object_of(struct wp_sample_key key)
{
	return wp_profile_str(&fake.profile, key.object);
}

static const char *call_of(struct wp_sample_key key)
{
	return wp_profile_str(&fake.profile, key.syscall);
}

static void the_first_descriptor_is_one(void **state)
{
	struct wp_sample_key key;
	int fds[2], own = dup(0);

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[0], 0), 0);
	key = describe(WP_WAIT_FILE, SYS_read, 0);
	assert_int_equal(key.wait, WP_WAIT_PIPE);
	assert_memory_equal(object_of(key), "fd 0 pipe:[", 11);
	assert_string_equal(call_of(key), "read");
	close(fds[0]);
	close(fds[1]);
	close(0);
	if (own >= 0) {
		assert_int_equal(dup2(own, 0), 0);
		close(own);
	}
}

/* The kernel reads 32 bits of the register. */
static void what_is_above_a_descriptor_does_not_matter(void **state)
{
	struct wp_sample_key key;
	char want[32];
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	key = describe(WP_WAIT_FILE, SYS_read,
		       UINT64_C(0xabcd) << 32 | (uint64_t)fds[0]);
	snprintf(want, sizeof(want), "fd %d pipe:[", fds[0]);
	assert_memory_equal(object_of(key), want, strlen(want));
	close(fds[0]);
	close(fds[1]);
}

static void what_is_no_descriptor_is_no_object(void **state)
{
	static const uint64_t none[] = { UINT32_MAX, INT32_MAX,
					 UINT32_C(1) << 31, UINT64_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		struct wp_sample_key key = describe(WP_WAIT_FILE, SYS_read,
						    none[i]);

		assert_int_equal(key.object, 0);
		assert_int_equal(key.wait, WP_WAIT_FILE);
		assert_string_equal(call_of(key), "read");
	}
}

static void a_futex_is_its_address(void **state)
{
	struct wp_sample_key key = describe(WP_WAIT_FUTEX, SYS_futex,
					    UINT64_C(0x7fffdeadbee0));

	(void)state;
	assert_string_equal(object_of(key), "0x7fffdeadbee0");
	assert_string_equal(call_of(key), "futex");
	/* Another call's first argument is none. */
	assert_int_equal(describe(WP_WAIT_SLEEP, SYS_nanosleep, 5).object, 0);
}

/* Their second argument is how many words there are, or the value of one: 6 and 13 are
 * operations of futex(2) on locks. */
static void only_futex_has_an_operation(void **state)
{
	static const long calls[] = { SYS_futex_waitv, SYS_futex_wait };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		for (uint64_t n = 0; n < 128; n++) {
			const struct wp_thread_facts facts = {
				.state_char = 'S',
				.syscall_nr = calls[i],
				.args = { 0x1000, n },
			};
			struct wp_sample_key key = { .state = WP_STATE_WAITING,
						     .wait = WP_WAIT_FUTEX };

			assert_int_equal(wp_wait_object_describe(fake.target, 0,
								 &key, &facts),
					 0);
			assert_int_equal(key.wait, WP_WAIT_FUTEX);
			assert_string_equal(object_of(key), "0x1000");
		}
}

static void outside_of_a_call_nothing_is_named(void **state)
{
	struct wp_sample_key key = describe(WP_WAIT_PAGE_FAULT, -1, 5);

	(void)state;
	assert_int_equal(key.object, 0);
	assert_int_equal(key.syscall, 0);
	assert_int_equal(key.wait, WP_WAIT_PAGE_FAULT);
	/* 0 is a call. */
	assert_string_equal(call_of(describe(WP_WAIT_SYSCALL, 0, UINT32_MAX)),
			    wp_syscall_find(0)->name);
}

static void an_object_met_again_is_the_same(void **state)
{
	uint32_t first = describe(WP_WAIT_FUTEX, SYS_futex, 16).object;

	(void)state;
	assert_int_equal(fake.target->common->nobjects, 1);
	assert_int_equal(describe(WP_WAIT_FUTEX, SYS_futex, 16).object, first);
	assert_int_equal(fake.target->common->nobjects, 1);
	assert_int_not_equal(describe(WP_WAIT_FUTEX, SYS_futex, 32).object,
			     first);
	assert_int_equal(fake.target->common->nobjects, 2);
}

/* In seccomp_unotify(2) a thread sleeps in a call of any number. */
static void calls_without_a_name_are_bounded(void **state)
{
	const struct wp_intern *strings = &fake.profile.strings;
	uint32_t before = strings->len;
	long nr = WP_SYSCALLS_MAX;

	(void)state;
	for (int i = 0; i < OBJECTS; i++) {
		struct wp_sample_key key = describe(WP_WAIT_SYSCALL, nr++, 0);
		char want[32];

		snprintf(want, sizeof(want), "syscall_%ld", nr - 1);
		if (i % 1000 == 0)
			assert_string_equal(call_of(key), want);
	}
	assert_int_equal(strings->len, before + OBJECTS);
	assert_int_equal(describe(WP_WAIT_SYSCALL, nr, 0).syscall, 0);
	assert_int_equal(strings->len, before + OBJECTS);
	/* Those that have one are told on. */
	assert_string_equal(call_of(describe(WP_WAIT_SLEEP, SYS_nanosleep, 0)),
			    "nanosleep");
}

/* A target with ever new ones does not take the names from those that stay. */
static void objects_that_are_known_stay_when_there_are_too_many(void **state)
{
	const uint64_t *dropped = &fake.profile.counters.objects_dropped;
	uint32_t first = describe(WP_WAIT_FUTEX, SYS_futex, 0x1000).object;

	(void)state;
	for (uint64_t i = 1; i < OBJECTS; i++)
		describe(WP_WAIT_FUTEX, SYS_futex, 0x1000 + 4 * i);
	assert_int_equal(*dropped, 0);
	assert_int_equal(describe(WP_WAIT_FUTEX, SYS_futex, 16).object, 0);
	assert_int_equal(*dropped, 1);
	assert_int_equal(describe(WP_WAIT_FUTEX, SYS_futex, 0x1000).object,
			 first);
	/* What has none lacks none. */
	assert_int_equal(describe(WP_WAIT_SLEEP, SYS_nanosleep, 5).object, 0);
	assert_int_equal(*dropped, 1);
	assert_int_equal(fake.target->common->nobjects, OBJECTS);
}

static void an_object_that_is_not_told_takes_no_place(void **state)
{
	const struct wp_thread_facts facts = {
		.state_char = 'S',
		.syscall_nr = SYS_futex,
		.args = { 0x1000, FUTEX_LOCK_PI_PRIVATE },
	};
	struct wp_sample_key key = { .wait = WP_WAIT_FUTEX };
	uint32_t len = fake.profile.strings.len;

	(void)state;
	wp_wait_object_refine(fake.target, 0, &key, &facts);
	assert_int_equal(key.wait, WP_WAIT_LOCK);
	assert_string_equal(call_of(key), "futex");
	assert_int_equal(key.object, 0);
	assert_int_equal(fake.target->common->nobjects, 0);
	assert_int_equal(fake.profile.strings.len, len);
}

/* A key has 16 bits for a call: one that does not fit is not another's. */
static void a_name_that_does_not_fit_a_key_is_left_out(void **state)
{
	struct wp_intern *strings = &fake.profile.strings;
	char text[16];

	(void)state;
	while (strings->len < UINT16_MAX) {
		snprintf(text, sizeof(text), "%u", strings->len);
		wp_intern_add_str(strings, text);
	}
	assert_int_equal(describe(WP_WAIT_SYSCALL, 1 << 20, 0).syscall,
			 UINT16_MAX);
	assert_int_equal(describe(WP_WAIT_SYSCALL, 1 << 21, 0).syscall, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_descriptor_is_one),
		TEST(what_is_above_a_descriptor_does_not_matter),
		TEST(what_is_no_descriptor_is_no_object),
		TEST(a_futex_is_its_address),
		TEST(only_futex_has_an_operation),
		TEST(outside_of_a_call_nothing_is_named),
		TEST(an_object_met_again_is_the_same),
		TEST(calls_without_a_name_are_bounded),
		TEST(objects_that_are_known_stay_when_there_are_too_many),
		TEST(an_object_that_is_not_told_takes_no_place),
		TEST(a_name_that_does_not_fit_a_key_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
