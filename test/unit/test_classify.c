/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: state.  src/state/classify.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "wallprof/state.h"

static void letters_and_calls_make_states(void **state)
{
	static const struct {
		char state_char;
		bool running;
		long nr;
		enum wp_fd_kind kind;
		enum wp_state want;
		enum wp_wait wait;
	} rows[] = {
		{ 0, true, -1, 0, WP_STATE_RUNNING, WP_WAIT_NONE },
		{ 'R', false, -1, 0, WP_STATE_RUNNING, WP_WAIT_NONE },
		{ 'T', false, SYS_read, 0, WP_STATE_STOPPED, WP_WAIT_NONE },
		{ 't', false, -1, 0, WP_STATE_STOPPED, WP_WAIT_NONE },
		{ 'Z', false, -1, 0, WP_STATE_EXITING, WP_WAIT_NONE },
		{ 'X', false, -1, 0, WP_STATE_EXITING, WP_WAIT_NONE },
		{ 'S', false, -1, 0, WP_STATE_WAITING, WP_WAIT_PAGE_FAULT },
		{ 'D', false, -1, 0, WP_STATE_WAITING, WP_WAIT_PAGE_FAULT },
		{ 'S', false, SYS_futex, 0, WP_STATE_WAITING, WP_WAIT_FUTEX },
		{ 'S', false, SYS_read, 0, WP_STATE_WAITING, WP_WAIT_FILE },
		{ 'D', false, SYS_read, 0, WP_STATE_WAITING, WP_WAIT_DISK },
		{ 'S', false, SYS_read, WP_FD_PIPE, WP_STATE_WAITING,
		  WP_WAIT_PIPE },
		{ 'D', false, SYS_clone, 0, WP_STATE_WAITING, WP_WAIT_CHILD },
		{ 'S', false, SYS_getpid, 0, WP_STATE_WAITING,
		  WP_WAIT_SYSCALL },
		{ 'D', false, SYS_getpid, 0, WP_STATE_WAITING, WP_WAIT_DISK },
		{ 'S', false, 100000, 0, WP_STATE_WAITING, WP_WAIT_SYSCALL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_thread_facts facts = {
			.state_char = rows[i].state_char,
			.running = rows[i].running,
			.syscall_nr = rows[i].nr,
			.fd_kind = rows[i].kind
		};
		struct wp_thread_state got = wp_state_classify(&facts);

		if (got.state != rows[i].want || got.wait != rows[i].wait)
			fail_msg("row %zu: %s %s", i,
				 wp_types_state_name(got.state),
				 wp_wait_name(got.wait));
	}
}

static void a_read_waits_for_what_is_behind_it(void **state)
{
	static const enum wp_wait want[WP_NFD_KINDS] = {
		[WP_FD_UNKNOWN] = WP_WAIT_FILE,
		[WP_FD_FILE] = WP_WAIT_FILE,
		[WP_FD_DIRECTORY] = WP_WAIT_FILE,
		[WP_FD_PIPE] = WP_WAIT_PIPE,
		[WP_FD_SOCKET] = WP_WAIT_SOCKET,
		[WP_FD_TTY] = WP_WAIT_TTY,
		[WP_FD_DEVICE] = WP_WAIT_FILE,
		[WP_FD_EPOLL] = WP_WAIT_POLL,
		[WP_FD_EVENTFD] = WP_WAIT_POLL,
		[WP_FD_TIMERFD] = WP_WAIT_TIMER,
		[WP_FD_SIGNALFD] = WP_WAIT_SIGNAL,
		[WP_FD_INOTIFY] = WP_WAIT_POLL,
		[WP_FD_FANOTIFY] = WP_WAIT_POLL,
		[WP_FD_PIDFD] = WP_WAIT_POLL,
		[WP_FD_IO_URING] = WP_WAIT_POLL,
		[WP_FD_OTHER] = WP_WAIT_FILE,
	};

	(void)state;
	for (int kind = 0; kind < WP_NFD_KINDS; kind++) {
		assert_int_equal(
			wp_state_refine_fd(WP_WAIT_FILE, (enum wp_fd_kind)kind),
			want[kind]);
		/* A call that says what it waits for is not overruled. */
		assert_int_equal(
			wp_state_refine_fd(WP_WAIT_LOCK, (enum wp_fd_kind)kind),
			WP_WAIT_LOCK);
	}
}

/* Arguments as threads blocked in glibc 2.36 have them. */
static void futex_arguments_that_decide(void **state)
{
	static const struct {
		uint64_t args[WP_SYSCALL_ARGS];
		enum wp_wait want;
	} rows[] = {
		{ { 0x1000, 0x80, 2 }, WP_WAIT_FUTEX },
		{ { 0x1000, 0x189, 0 }, WP_WAIT_FUTEX },
		{ { 0x1000, 0x86, 0 }, WP_WAIT_LOCK },
		{ { 0x1000, 0x8d, 0 }, WP_WAIT_LOCK },
		{ { 0x1000, 0x109, 4242 }, WP_WAIT_JOIN },
		{ { 0x1000, 0x109, 0 }, WP_WAIT_FUTEX },
		{ { 0x1000, 0x0, 0x80001092 }, WP_WAIT_FUTEX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(wp_state_refine_futex(rows[i].args),
				 rows[i].want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_and_calls_make_states),
		cmocka_unit_test(a_read_waits_for_what_is_behind_it),
		cmocka_unit_test(futex_arguments_that_decide),
	};

	return cmocka_run_group_tests_name("classify", tests, NULL, NULL);
}
