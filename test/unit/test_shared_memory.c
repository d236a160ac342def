/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  Processes whose memory another process has, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/dump/shared_memory.h"

static int sleep_on(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pause();
}

/* A process that has this one's memory. */
static pid_t start_sharer(void)
{
	static _Alignas(16) char stack[1 << 16];
	pid_t pid = clone(sleep_on, stack + sizeof(stack), CLONE_VM | SIGCHLD,
			  NULL);

	assert_true(pid > 0);
	return pid;
}

/* Is this process, with a thread in each of STATES[0..n) of which number GONE waits for a
 * holder that is gone, asked who has its memory?  *HOLDER is that thread's then. */
static bool is_found(const enum wp_state *states, uint32_t n, uint32_t gone,
		     enum wp_holder *holder)
{
	struct wp_snapshot_process self = { .process = WP_PROCESS_INIT };
	struct wp_snapshot_process *processes[] = { &self };
	struct wp_snapshot snapshot = { .dump = WP_DUMP_INIT,
					.processes = processes };
	struct wp_dump_process *p = wp_dump_add_process(&snapshot.dump);
	bool found;

	assert_non_null(p);
	self.process.reader_tid = getpid();
	p->nthreads = n;
	for (uint32_t i = 0; i < n; i++) {
		struct wp_dump_thread *t = wp_dump_add_thread(&snapshot.dump);

		assert_non_null(t);
		t->state = states[i];
		t->lock.holder = i == gone ? WP_HOLDER_GONE : WP_HOLDER_NONE;
	}
	wp_shared_memory_find(&snapshot);
	found = p->shares_memory;
	if (gone < n)
		*holder = snapshot.dump.threads[gone].lock.holder;
	wp_dump_clear(&snapshot.dump);
	return found;
}

static void a_holder_that_is_gone_is_asked_for_at_any_place(void **state)
{
	static const enum wp_state waiting[] = { WP_STATE_WAITING,
						 WP_STATE_EXITING };
	static const enum wp_state first[] = { WP_STATE_WAITING,
					       WP_STATE_RUNNING };
	static const enum wp_state last[] = { WP_STATE_RUNNING,
					      WP_STATE_WAITING };
	pid_t pid = start_sharer();
	enum wp_holder holder;

	(void)state;
	assert_true(is_found(waiting, 2, UINT32_MAX, &holder));
	assert_false(is_found(first, 2, UINT32_MAX, &holder));
	assert_false(is_found(last, 2, UINT32_MAX, &holder));
	assert_true(is_found(first, 2, 0, &holder));
	assert_int_equal(holder, WP_HOLDER_NOT_RECORDED);
	assert_true(is_found(last, 2, 1, &holder));
	assert_int_equal(holder, WP_HOLDER_NOT_RECORDED);
	assert_false(is_found(last, 0, UINT32_MAX, &holder));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(is_found(last, 2, 1, &holder));
	assert_int_equal(holder, WP_HOLDER_GONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_holder_that_is_gone_is_asked_for_at_any_place),
	};

	return cmocka_run_group_tests_name("shared_memory", tests, NULL, NULL);
}
