/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - every unit test has a time limit of its own, and can run alone.
 *
 * Linked into each program of unit tests, which calls the wrapped function where
 * it calls cmocka's (the linker's --wrap).  A test that is not done in
 * UNIT_SECONDS (an environment variable; LIMIT_S without it) ends its program,
 * and says its name.  Children of a test have no such limit: fork(2) clears it.
 * With UNIT_TESTS=3,7 only those tests run, counted from 0.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The longest takes 4 s under ASan on an idle machine. */
enum { LIMIT_S = 200, MAX_TESTS = 256 };

int __real__cmocka_run_group_tests(const char *name,
				   const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup,
				   CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name,
				   const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup,
				   CMFixtureFunction teardown);

/* test/mutate/mutants.c: test NTH begins.  Not there in other programs. */
void wp_mutants_begin_test(size_t nth) __attribute__((weak));

/* v[0..n): the tests that run; NEXT: how many have begun. */
static struct {
	const struct CMUnitTest *v[MAX_TESTS];
	size_t nth[MAX_TESTS];
	size_t n, next;
} tests_to_run;
static const struct CMUnitTest *current;
static unsigned int seconds = LIMIT_S;

static void on_alarm(int sig)
{
	static const char too_long[] = ": not done in time\n";

	(void)!write(STDERR_FILENO, current->name, strlen(current->name));
	(void)!write(STDERR_FILENO, too_long, sizeof(too_long) - 1);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* cmocka runs tests in their order, each after its setup. */
static int begin_test(void **state)
{
	if (wp_mutants_begin_test)
		wp_mutants_begin_test(tests_to_run.nth[tests_to_run.next]);
	current = tests_to_run.v[tests_to_run.next++];
	alarm(seconds);
	return current->setup_func ? current->setup_func(state) : 0;
}

static int end_test(void **state)
{
	int rc = current->teardown_func ? current->teardown_func(state) : 0;

	alarm(0);
	return rc;
}

static bool is_wanted(size_t nth)
{
	const char *list = getenv("UNIT_TESTS");

	while (list && *list) {
		char *end;

		if (strtoul(list, &end, 10) == nth)
			return true;
		list = *end ? end + 1 : end;
	}
	return !list;
}

int __wrap__cmocka_run_group_tests(const char *name,
				   const struct CMUnitTest *tests, size_t n,
				   CMFixtureFunction setup,
				   CMFixtureFunction teardown)
{
	struct CMUnitTest limited[MAX_TESTS];
	const char *given = getenv("UNIT_SECONDS");

	if (n > MAX_TESTS)
		abort();
	if (given)
		seconds = (unsigned int)atoi(given);
	for (size_t i = 0; i < n; i++) {
		struct CMUnitTest *test = &limited[tests_to_run.n];

		if (!is_wanted(i))
			continue;
		*test = tests[i];
		test->setup_func = begin_test;
		test->teardown_func = end_test;
		tests_to_run.v[tests_to_run.n] = &tests[i];
		tests_to_run.nth[tests_to_run.n++] = i;
	}
	signal(SIGALRM, on_alarm);
	return __real__cmocka_run_group_tests(name, limited, tests_to_run.n,
					      setup, teardown);
}
