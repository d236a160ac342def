/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: state.  the table of system calls, row by row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/syscall.h>

#include "wallprof/state.h"

/* Numbers and names, from the system's own header. */
static void names_are_those_of_the_system(void **state)
{
	static const struct {
		long nr;
		const char *name;
	} rows[] = {
#define ROW(name) { SYS_##name, #name },
		/* clang-format off */
		ROW(read) ROW(write) ROW(close) ROW(fstat)
		ROW(lseek) ROW(mmap) ROW(ioctl) ROW(readv)
		ROW(writev) ROW(nanosleep) ROW(socket) ROW(connect)
		ROW(accept) ROW(sendto) ROW(recvfrom) ROW(sendmsg)
		ROW(recvmsg) ROW(clone) ROW(execve) ROW(exit)
		ROW(wait4) ROW(kill) ROW(fcntl) ROW(flock)
		ROW(fsync) ROW(semop) ROW(msgrcv) ROW(ptrace)
		ROW(futex) ROW(io_getevents) ROW(restart_syscall) ROW(semtimedop)
		ROW(clock_nanosleep) ROW(mq_timedreceive) ROW(waitid) ROW(pselect6)
		ROW(ppoll) ROW(splice) ROW(accept4) ROW(epoll_pwait)
		ROW(recvmmsg) ROW(sendmmsg) ROW(openat) ROW(io_uring_enter)
		ROW(clone3) ROW(rt_sigtimedwait) ROW(rt_sigsuspend) ROW(copy_file_range)
		ROW(process_vm_readv)
/* clang-format on */
#undef ROW
	};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_string_equal(
			wp_syscall_name(rows[i].nr, buf, sizeof(buf)),
			rows[i].name);
	assert_int_equal(wp_syscall_restart, SYS_restart_syscall);
	assert_string_equal(wp_syscall_name(9999, buf, sizeof(buf)),
			    "syscall_9999");
	assert_null(wp_syscall_find(-1));
	assert_null(wp_syscall_find(100000));
}

/* Every call that can block: what it waits for, which argument is the
 * descriptor, what a stop does to it.
 */
static void every_blocking_call_has_its_reason(void **state)
{
	static const struct {
		const char *name;
		enum wp_wait wait;
		int fd_arg;
		bool eintr;
		bool restart;
	} rows[] = {
		{ "read", WP_WAIT_FILE, 0, false, false },
		{ "readv", WP_WAIT_FILE, 0, false, false },
		{ "pread64", WP_WAIT_FILE, 0, false, false },
		{ "preadv", WP_WAIT_FILE, 0, false, false },
		{ "preadv2", WP_WAIT_FILE, 0, false, false },
		{ "write", WP_WAIT_FILE, 0, false, false },
		{ "writev", WP_WAIT_FILE, 0, false, false },
		{ "pwrite64", WP_WAIT_FILE, 0, false, false },
		{ "fsync", WP_WAIT_FILE, 0, false, false },
		{ "fdatasync", WP_WAIT_FILE, 0, false, false },
		{ "sync", WP_WAIT_FILE, -1, false, false },
		{ "getdents64", WP_WAIT_FILE, 0, false, false },
		{ "openat", WP_WAIT_FILE, -1, false, false },
		{ "sendfile", WP_WAIT_FILE, 1, false, false },
		{ "copy_file_range", WP_WAIT_FILE, 0, false, false },
		{ "splice", WP_WAIT_FILE, 0, false, false },
		{ "tee", WP_WAIT_PIPE, 0, false, false },
		{ "vmsplice", WP_WAIT_PIPE, 0, false, false },
		{ "recvfrom", WP_WAIT_SOCKET, 0, true, false },
		{ "recvmsg", WP_WAIT_SOCKET, 0, true, false },
		{ "recvmmsg", WP_WAIT_SOCKET, 0, true, false },
		{ "accept", WP_WAIT_SOCKET, 0, true, false },
		{ "accept4", WP_WAIT_SOCKET, 0, true, false },
		{ "connect", WP_WAIT_SOCKET, 0, true, false },
		{ "sendto", WP_WAIT_SOCKET, 0, true, false },
		{ "sendmsg", WP_WAIT_SOCKET, 0, true, false },
		{ "sendmmsg", WP_WAIT_SOCKET, 0, true, false },
#if defined(__x86_64__)
		{ "poll", WP_WAIT_POLL, -1, false, true },
		{ "select", WP_WAIT_POLL, -1, false, false },
		{ "epoll_wait", WP_WAIT_POLL, 0, true, false },
		{ "pause", WP_WAIT_SIGNAL, -1, false, false },
		{ "vfork", WP_WAIT_CHILD, -1, false, false },
		{ "open", WP_WAIT_FILE, -1, false, false },
#endif
		{ "ppoll", WP_WAIT_POLL, -1, false, false },
		{ "pselect6", WP_WAIT_POLL, -1, false, false },
		{ "epoll_pwait", WP_WAIT_POLL, 0, true, false },
		{ "epoll_pwait2", WP_WAIT_POLL, 0, true, false },
		{ "io_uring_enter", WP_WAIT_POLL, 0, true, false },
		{ "io_getevents", WP_WAIT_DISK, -1, true, false },
		{ "futex", WP_WAIT_FUTEX, -1, false, true },
		{ "futex_waitv", WP_WAIT_FUTEX, -1, false, true },
		{ "futex_wait", WP_WAIT_FUTEX, -1, false, true },
		{ "nanosleep", WP_WAIT_SLEEP, -1, false, true },
		{ "clock_nanosleep", WP_WAIT_SLEEP, -1, false, true },
		{ "wait4", WP_WAIT_CHILD, -1, false, false },
		{ "waitid", WP_WAIT_CHILD, -1, false, false },
		{ "clone", WP_WAIT_CHILD, -1, false, false },
		{ "clone3", WP_WAIT_CHILD, -1, false, false },
		{ "rt_sigsuspend", WP_WAIT_SIGNAL, -1, false, false },
		{ "rt_sigtimedwait", WP_WAIT_SIGNAL, -1, true, false },
		{ "semop", WP_WAIT_SEMAPHORE, -1, true, false },
		{ "semtimedop", WP_WAIT_SEMAPHORE, -1, true, false },
		{ "flock", WP_WAIT_LOCK, 0, false, false },
		{ "fcntl", WP_WAIT_LOCK, 0, false, false },
		{ "msgrcv", WP_WAIT_SYSCALL, -1, false, false },
		{ "mq_timedreceive", WP_WAIT_SYSCALL, -1, false, false },
		{ "getpid", WP_WAIT_SYSCALL, -1, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct wp_syscall_info *info = NULL;

		for (long nr = 0; nr < 1000; nr++) {
			const struct wp_syscall_info *row = wp_syscall_find(nr);

			if (row && !strcmp(row->name, rows[i].name))
				info = row;
		}
		if (!info)
			fail_msg("%s is not in the table", rows[i].name);
		if (info->wait != rows[i].wait ||
		    info->fd_arg != rows[i].fd_arg ||
		    info->eintr_on_stop != rows[i].eintr ||
		    info->restart_block != rows[i].restart)
			fail_msg("%s: wait %s fd %d eintr %d restart %d",
				 rows[i].name, wp_wait_name(info->wait),
				 info->fd_arg, info->eintr_on_stop,
				 info->restart_block);
	}
}

static void no_name_comes_twice(void **state)
{
	(void)state;
	for (long a = 0; a < 600; a++)
		for (long b = a + 1; wp_syscall_find(a) && b < 600; b++)
			if (wp_syscall_find(b))
				assert_string_not_equal(
					wp_syscall_find(a)->name,
					wp_syscall_find(b)->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_the_system),
		cmocka_unit_test(every_blocking_call_has_its_reason),
		cmocka_unit_test(no_name_comes_twice),
	};

	return cmocka_run_group_tests_name("syscall_table", tests, NULL, NULL);
}
