/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: state.  src/state/classify.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
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
		{ 'D', false, SYS_read, WP_FD_PIPE, WP_STATE_WAITING,
		  WP_WAIT_PIPE },
		{ 'D', false, SYS_sendfile, WP_FD_PIPE, WP_STATE_WAITING,
		  WP_WAIT_DISK },
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

/* Pages are read with the lock held, so those calls may wait for the disk. */
static void who_changes_the_memory_map_waits_for_its_lock(void **state)
{
	static const struct {
		long nr;
		int arg;
		uint64_t value;
		enum wp_wait in_d, in_s;
	} rows[] = {
#define LOCK WP_WAIT_MMAP_LOCK, WP_WAIT_MMAP_LOCK
#define PAGES WP_WAIT_DISK, WP_WAIT_SYSCALL
		{ SYS_brk, 0, 0, LOCK },
		{ SYS_munmap, 0, 0, LOCK },
		{ SYS_mremap, 0, 0, LOCK },
		{ SYS_mprotect, 0, 0, LOCK },
		{ SYS_pkey_mprotect, 0, 0, LOCK },
		{ SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS, LOCK },
		{ SYS_mmap, 3, MAP_PRIVATE, PAGES },
		{ SYS_mmap, 3, MAP_ANONYMOUS | MAP_POPULATE, PAGES },
		{ SYS_mmap, 3, MAP_ANONYMOUS | MAP_LOCKED, PAGES },
		{ SYS_madvise, 2, MADV_DONTNEED, LOCK },
		{ SYS_madvise, 2, MADV_FREE, LOCK },
		{ SYS_madvise, 2, MADV_WILLNEED, PAGES },
		{ SYS_mlock, 0, 0, PAGES },
#undef LOCK
#undef PAGES
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_thread_facts facts = { .state_char = 'D',
						 .syscall_nr = rows[i].nr };

		facts.args[rows[i].arg] = rows[i].value;
		assert_int_equal(wp_state_classify(&facts).wait, rows[i].in_d);
		facts.state_char = 'S';
		assert_int_equal(wp_state_classify(&facts).wait, rows[i].in_s);
	}
}

/* The call in its registers is of the thread that made it. */
static void a_worker_of_the_kernel_is_in_no_call(void **state)
{
	struct wp_thread_facts facts = { .state_char = 'S',
					 .syscall_nr = -1,
					 .is_worker = true };

	(void)state;
	assert_int_equal(wp_state_classify(&facts).state, WP_STATE_WAITING);
	assert_int_equal(wp_state_classify(&facts).wait, WP_WAIT_NONE);
	facts.state_char = 'D';
	assert_int_equal(wp_state_classify(&facts).wait, WP_WAIT_DISK);
}

/* Whatever it was doing before. */
static void a_thread_that_is_held_waits_for_the_end_of_that(void **state)
{
	static const long calls[] = { -1, SYS_read, SYS_futex, SYS_tgkill };
	struct wp_thread_facts facts = { .state_char = 'S' };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		facts.syscall_nr = calls[i];
		facts.hold = WP_HOLD_FROZEN;
		assert_int_equal(wp_state_classify(&facts).state,
				 WP_STATE_WAITING);
		assert_int_equal(wp_state_classify(&facts).wait,
				 WP_WAIT_FROZEN);
		facts.hold = WP_HOLD_CORE_DUMP;
		assert_int_equal(wp_state_classify(&facts).wait,
				 WP_WAIT_CORE_DUMP);
	}
	assert_string_equal(wp_wait_name(WP_WAIT_FROZEN), "frozen");
	assert_string_equal(wp_wait_name(WP_WAIT_CORE_DUMP), "core-dump");
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
	for (int at = 0; at < WP_NFD_KINDS; at++) {
		enum wp_fd_kind kind = (enum wp_fd_kind)at;

		assert_int_equal(
			wp_state_refine_fd(WP_WAIT_FILE, SYS_read, kind),
			want[kind]);
		/* In D state: for a pipe's lock, which a splice(2) has. */
		assert_int_equal(
			wp_state_refine_fd(WP_WAIT_DISK, SYS_read, kind),
			want[kind] == WP_WAIT_FILE ? WP_WAIT_DISK : want[kind]);
		/* A call that says what it waits for is not overruled. */
		assert_int_equal(
			wp_state_refine_fd(WP_WAIT_LOCK, SYS_read, kind),
			WP_WAIT_LOCK);
		/* D: sendfile(2) waits for the file that it reads. */
		assert_int_equal(
			wp_state_refine_fd(WP_WAIT_DISK, SYS_sendfile, kind),
			WP_WAIT_DISK);
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

/* May a thread in NR be stopped, its argument LIMIT being VALUE, and a pipe what it
 * reads? */
static bool may_stop(long nr, int limit, uint64_t value, bool has_filter)
{
	struct wp_thread_facts facts = { .syscall_nr = nr,
					 .fd_kind = WP_FD_PIPE };

	facts.args[limit] = value;
	return wp_state_may_stop(&facts, has_filter);
}

static void only_what_waits_on_the_same_may_be_stopped(void **state)
{
	/* With and without a time limit in argument LIMIT, without and with a
	 * seccomp filter. */
	static const struct {
		long nr;
		int limit;
		uint64_t with, without;
		bool stop_with, stop_without, stop_filtered;
	} rows[] = {
#if defined(__x86_64__)
		{ SYS_epoll_wait, 3, 300, (uint32_t)-1, false, true, false },
		{ SYS_epoll_wait, 3, 0, UINT64_MAX, false, true, false },
		{ SYS_poll, 2, 300, UINT64_MAX, true, true, false },
		{ SYS_select, 4, 4096, 0, false, true, true },
		{ SYS_pause, 0, 1, 0, true, true, true },
#endif
		{ SYS_epoll_pwait, 3, 300, UINT64_MAX, false, true, false },
		{ 441, 3, 4096, 0, false, true, false },
		{ SYS_ppoll, 2, 4096, 0, false, true, true },
		{ SYS_pselect6, 4, 0xffffffff, 0, false, true, true },
		{ SYS_semtimedop, 3, 4096, 0, false, true, false },
		{ SYS_semop, 3, 4096, 0, true, true, false },
		{ SYS_rt_sigtimedwait, 2, 4096, 0, false, true, false },
		{ SYS_rt_sigsuspend, 2, 4096, 0, true, true, true },
		{ SYS_futex, 3, 4096, 0, true, true, true },
		{ 455, 4, 4096, 0, true, true, true },
		{ SYS_nanosleep, 0, 4096, 0, true, true, false },
		{ SYS_clock_nanosleep, 0, 4096, 0, true, true, false },
		{ SYS_restart_syscall, 0, 1, 0, true, true, false },
		{ SYS_wait4, 0, 1, 0, true, true, false },
		{ SYS_read, 0, 1, 0, true, true, false },
		/* What may be cut short, have a limit that is not in its
		 * arguments, or be seen by a file server. */
		{ SYS_write, 0, 1, 0, false, false, false },
		{ SYS_recvfrom, 0, 1, 0, false, false, false },
		{ SYS_recvmsg, 0, 1, 0, false, false, false },
		{ SYS_sendto, 0, 1, 0, false, false, false },
		{ SYS_accept, 0, 1, 0, false, false, false },
		{ SYS_connect, 0, 1, 0, false, false, false },
		{ SYS_io_getevents, 4, 1, 0, false, false, false },
		{ SYS_io_uring_enter, 0, 1, 0, false, false, false },
		{ SYS_openat, 0, 1, 0, false, false, false },
		{ SYS_ioctl, 0, 1, 0, false, false, false },
		{ SYS_flock, 0, 1, 0, false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		long nr = rows[i].nr;
		int limit = rows[i].limit;

		if (may_stop(nr, limit, rows[i].with, false) !=
			    rows[i].stop_with ||
		    may_stop(nr, limit, rows[i].without, false) !=
			    rows[i].stop_without ||
		    may_stop(nr, limit, rows[i].without, true) !=
			    rows[i].stop_filtered)
			fail_msg("row %zu, call %ld", i, nr);
	}
	/* Under a filter a time limit would start over even where the kernel
	 * keeps it, as restart_syscall is avoided. */
	assert_false(may_stop(SYS_futex, 3, 4096, true));
}

static void what_may_harm_is_the_rule(void **state)
{
	static const enum wp_fd_kind kinds[] = { WP_FD_UNKNOWN, WP_FD_SOCKET,
						 WP_FD_TTY,	WP_FD_FILE,
						 WP_FD_DEVICE,	WP_FD_OTHER };
	struct wp_thread_facts facts = { .syscall_nr = SYS_read };
	unsigned int nmay = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		facts.fd_kind = kinds[i];
		assert_false(wp_state_may_stop(&facts, false));
	}
	/* A call without a row, one that no table has, a page fault. */
	for (long nr = -1; nr < WP_SYSCALLS_MAX; nr++)
		nmay += may_stop(nr, 0, 1, false);
	assert_in_range(nmay, 15, 25);
	assert_false(may_stop(SYS_getpid, 0, 0, false));
	assert_false(may_stop(-1, 0, 0, false));
	assert_false(may_stop(1000001, 0, 0, false));
	/* Stopped by a signal: a call that it was in is one all the same. */
	facts = (struct wp_thread_facts){ .state_char = 'T', .syscall_nr = -1 };
	assert_true(wp_state_may_stop(&facts, false));
	assert_true(wp_state_may_stop(&facts, true));
	facts.syscall_nr = SYS_getpid;
	assert_false(wp_state_may_stop(&facts, false));
}

/* Is a call of NR timed whose argument LIMIT is VALUE, all others being OTHERS? */
static bool is_timed(long nr, int limit, uint64_t value, uint64_t others)
{
	uint64_t args[WP_SYSCALL_ARGS];

	for (int i = 0; i < WP_SYSCALL_ARGS; i++)
		args[i] = i == limit ? value : others;
	return wp_state_is_timed(nr, args);
}

static void a_time_limit_is_told(void **state)
{
	/* Which argument says so, without a limit and with one. */
	static const struct {
		long nr;
		int limit;
		uint64_t none, some;
	} rows[] = {
#if defined(__x86_64__)
		{ SYS_poll, 2, UINT64_MAX, 60000 },
		{ SYS_poll, 2, (uint32_t)-1, 60000 },
		{ SYS_select, 4, 0, 0x7f00 },
		{ SYS_epoll_wait, 3, UINT64_MAX, 1 },
#endif
		{ SYS_ppoll, 2, 0, 0x7f00 },
		{ SYS_pselect6, 4, 0, 0x7f00 },
		{ SYS_epoll_pwait, 3, (uint32_t)-1, 3600000 },
		{ 441, 3, 0, 0x7f00 },
		{ SYS_semtimedop, 3, 0, 0x7f00 },
		{ SYS_rt_sigtimedwait, 2, 0, 0x7f00 },
		{ SYS_mq_timedsend, 4, 0, 0x7f00 },
		{ SYS_mq_timedreceive, 4, 0, 0x7f00 },
		{ SYS_io_getevents, 4, 0, 0x7f00 },
		{ SYS_io_uring_enter, 3, 1, 9 },
		/* futex_waitv, futex_wait. */
		{ 449, 3, 0, 0x7f00 },
		{ 455, 4, 0, 0x7f00 },
	};
	/* WAIT, WAIT_BITSET private, LOCK_PI, WAIT_REQUEUE_PI, LOCK_PI2. */
	static const uint64_t ops[] = { 0, 9 | 128, 6, 11, 13 | 128 };
	static const long always[] = { SYS_nanosleep, SYS_restart_syscall };
	static const long never[] = { SYS_read,	 SYS_recvfrom, SYS_semop,
				      SYS_flock, SYS_wait4,    SYS_getpid,
				      -1,	 1000001 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (uint64_t others = 0; others < 2; others++)
			if (is_timed(rows[i].nr, rows[i].limit, rows[i].none,
				     others) ||
			    !is_timed(rows[i].nr, rows[i].limit, rows[i].some,
				      others))
				fail_msg("row %zu, call %ld", i, rows[i].nr);
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		assert_true(is_timed(SYS_futex, 1, ops[i], 0x7f00));
		assert_false(is_timed(SYS_futex, 1, ops[i], 0));
	}
	/* CMP_REQUEUE: a count. */
	assert_false(is_timed(SYS_futex, 1, 4, 0x7f00));
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		assert_true(is_timed(always[i], 0, 0x7f00, 0));
	assert_true(is_timed(SYS_clock_nanosleep, 2, 0x7f00, 0));
	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
		assert_false(is_timed(never[i], 0, 0x7f00, 0x7f00));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_and_calls_make_states),
		cmocka_unit_test(a_read_waits_for_what_is_behind_it),
		cmocka_unit_test(who_changes_the_memory_map_waits_for_its_lock),
		cmocka_unit_test(a_worker_of_the_kernel_is_in_no_call),
		cmocka_unit_test(
			a_thread_that_is_held_waits_for_the_end_of_that),
		cmocka_unit_test(futex_arguments_that_decide),
		cmocka_unit_test(only_what_waits_on_the_same_may_be_stopped),
		cmocka_unit_test(what_may_harm_is_the_rule),
		cmocka_unit_test(a_time_limit_is_told),
	};

	return cmocka_run_group_tests_name("classify", tests, NULL, NULL);
}
