/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - every unit test has a time limit of its own.
 *
 * Linked into each program of unit tests, which calls the wrapped function where
 * it calls cmocka's (the linker's --wrap).  A test that is not done in
 * UNIT_SECONDS (an environment variable; LIMIT_S without it) ends its program,
 * and says its name.  Children of a test have no such limit: fork(2) clears it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
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

/* The test that runs, of those given; before the first the one before it. */
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
	current++;
	alarm(seconds);
	return current->setup_func ? current->setup_func(state) : 0;
}

static int end_test(void **state)
{
	int rc = current->teardown_func ? current->teardown_func(state) : 0;

	alarm(0);
	return rc;
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
		limited[i] = tests[i];
		limited[i].setup_func = begin_test;
		limited[i].teardown_func = end_test;
	}
	current = tests - 1;
	signal(SIGALRM, on_alarm);
	return __real__cmocka_run_group_tests(name, limited, n, setup,
					      teardown);
}
