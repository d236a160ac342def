/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  wait_child.h: the child that a thread waits for, among those of its
 * process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../src/sample/wait_child.h"
#include "few_allocations.h"
#include "one_target.h"

enum { TID = 7, NCHILDREN = 3 };

static struct wp_thread *t;
static struct wp_sample_key key;
static pid_t children[NCHILDREN];

static int setup(void **state)
{
	for (int i = 0; i < NCHILDREN; i++) {
		children[i] = fork();
		if (!children[i]) {
			pause();
			_exit(0);
		}
	}
	(void)state;
	fake_target_open(&fake);
	options = fake_target_options();
	fake_target_add_thread(&fake, TID, "seven");
	start_target();
	assert_int_equal(wp_threads_update(fake.target), 0);
	t = fake.target->threads[0];
	memset(&key, 0, sizeof(key));
	return 0;
}

static int end(void **state)
{
	for (int i = 0; i < NCHILDREN; i++) {
		if (!children[i])
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	return teardown(state);
}

/* What is said of T in call NR with ARGS, whose children file has the first N. */
static const char *describe(int n, long nr, uint64_t arg0, uint64_t arg1)
{
	char text[128] = "";
	size_t at = 0;

	for (int i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%d ",
				       children[i]);
	fake_target_write(&fake, TID, "children", text);
	wp_wait_state_begin(&t->wait, &(struct wp_thread_facts){
					      .state_char = 'S',
					      .syscall_nr = nr,
					      .args = { arg0, arg1 },
				      });
	assert_int_equal(wp_wait_child_describe(t, &key), 0);
	return wp_profile_str(&fake.profile, key.object);
}

/* TEXT is PREFIX, child I's pid and its command line. */
static void assert_begins(const char *text, const char *prefix, int i)
{
	char want[64];

	snprintf(want, sizeof(want), "%s%d (", prefix, children[i]);
	if (strncmp(text, want, strlen(want)) != 0)
		fail_msg("%s, wanted %s", text, want);
	/* That of the test. */
	assert_non_null(strstr(text, "test_wait_child"));
}

static void one_child_is_the_child(void **state)
{
	(void)state;
	assert_begins(describe(1, SYS_wait4, (uint64_t)-1, 0), "child ", 0);
	assert_null(strstr(wp_profile_str(&fake.profile, key.object), "..."));
	/* Also where another is asked for: there is no such one. */
	assert_begins(describe(1, SYS_wait4, 1, 0), "child ", 0);
}

static void of_several_one_is_known_by_its_pid(void **state)
{
	uint64_t second = (uint64_t)children[1], third = (uint64_t)children[2];

	(void)state;
	assert_begins(describe(3, SYS_wait4, (uint64_t)-1, 0),
		      "one of 3 children, ", 0);
	assert_begins(describe(3, SYS_wait4, 0, 0), "one of 3 children, ", 0);
	assert_begins(describe(3, SYS_wait4, second, 0), "child ", 1);
	assert_begins(describe(3, SYS_wait4, third, 0), "child ", 2);
	/* A pid that is none of theirs. */
	assert_begins(describe(3, SYS_wait4, 1, 0), "one of 3 children, ", 0);
	assert_begins(describe(3, SYS_waitid, P_PID, second), "child ", 1);
	assert_begins(describe(3, SYS_waitid, P_ALL, second),
		      "one of 3 children, ", 0);
	assert_begins(describe(3, SYS_waitid, P_PGID, second),
		      "one of 3 children, ", 0);
}

/* Other threads' children are read where a thread made none. */
static void children_of_the_process_are_its_threads_too(void **state)
{
	(void)state;
	assert_begins(describe(0, SYS_wait4, (uint64_t)children[2], 0),
		      "child ", 2);
	/* Too many threads to be asked: nothing is said. */
	key.object = 0;
	fake.target->nthreads = 65;
	t->wait.facts.args[0] = (uint64_t)children[2];
	assert_int_equal(wp_wait_child_describe(t, &key), 0);
	assert_int_equal(key.object, 0);
	fake.target->nthreads = 64;
	assert_int_equal(wp_wait_child_describe(t, &key), 0);
	assert_begins(wp_profile_str(&fake.profile, key.object), "child ", 2);
	fake.target->nthreads = 1;
}

static void a_child_that_has_ended_is_a_name_or_a_number(void **state)
{
	pid_t pid = children[0];
	char text[32], want[64];
	siginfo_t info;

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	snprintf(want, sizeof(want), "child %d ([test_wait_child])", pid);
	assert_string_equal(describe(3, SYS_wait4, (uint64_t)pid, 0), want);
	/* Waited for by now. */
	waitpid(pid, NULL, 0);
	children[0] = 0;
	snprintf(text, sizeof(text), "%d ", pid);
	fake_target_write(&fake, TID, "children", text);
	assert_int_equal(wp_wait_child_describe(t, &key), 0);
	snprintf(want, sizeof(want), "child %d", pid);
	assert_string_equal(wp_profile_str(&fake.profile, key.object), want);
}

/* Of a list that was cut off nothing is believed. */
static void a_list_that_is_too_long_is_read_otherwise(void **state)
{
	char text[1400] = "";

	(void)state;
	while (strlen(text) < 1200)
		strcat(text, "1 ");
	fake_target_write(&fake, TID, "children", text);
	t->wait.facts = (struct wp_thread_facts){ .syscall_nr = SYS_wait4,
						  .args = { (uint64_t)-1 } };
	assert_int_equal(wp_wait_child_describe(t, &key), 0);
	assert_begins(wp_profile_str(&fake.profile, key.object),
		      "one of 3 children, ", 0);
}

/* Its program may be executed at any time. */
static void a_child_is_looked_at_ever_more_rarely(void **state)
{
	uint32_t first;

	(void)state;
	describe(1, SYS_wait4, (uint64_t)-1, 0);
	first = key.object;
	for (int wait = 0; wait < 2; wait++) {
		describe(2, SYS_wait4, (uint64_t)-1, 0);
		assert_int_not_equal(key.object, first);
		for (int looks = 1; looks <= 20; looks++) {
			bool is_read = looks == 1 || looks == 2 || looks == 4 ||
				       looks == 8 || looks == 16;

			key.object = first;
			assert_int_equal(wp_wait_child_confirm(t, &key), 0);
			assert_int_equal(key.object != first, is_read);
		}
	}
}

/* It is looked for among the first 64: to read each costs some microseconds. */
static void a_pid_is_looked_for_among_few_children(void **state)
{
	char text[1000];

	(void)state;
	t->wait.facts = (struct wp_thread_facts){
		.syscall_nr = SYS_wait4, .args = { (uint64_t)children[0] }
	};
	for (int before = 63; before <= 64; before++) {
		char want[64];
		size_t at = 0;

		for (int i = 0; i < before; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%d ", children[1]);
		snprintf(text + at, sizeof(text) - at, "%d ", children[0]);
		fake_target_write(&fake, TID, "children", text);
		assert_int_equal(wp_wait_child_describe(t, &key), 0);
		snprintf(want, sizeof(want), "one of %d children, ",
			 before + 1);
		assert_begins(wp_profile_str(&fake.profile, key.object),
			      before == 63 ? "child " : want, before == 64);
	}
}

#ifdef CAN_FAIL
static void a_child_without_memory_is_an_error(void **state)
{
	(void)state;
	describe(2, SYS_wait4, (uint64_t)-1, 0);
	allocations_left = 0;
	assert_int_equal(wp_wait_child_describe(t, &key), -ENOMEM);
	assert_int_equal(wp_wait_child_confirm(t, &key), -ENOMEM);
	allocations_left = -1;
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_child_is_the_child),
		TEST(of_several_one_is_known_by_its_pid),
		TEST(children_of_the_process_are_its_threads_too),
		TEST(a_child_that_has_ended_is_a_name_or_a_number),
		TEST(a_list_that_is_too_long_is_read_otherwise),
		TEST(a_child_is_looked_at_ever_more_rarely),
		TEST(a_pid_is_looked_for_among_few_children),
#ifdef CAN_FAIL
		TEST(a_child_without_memory_is_an_error),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
