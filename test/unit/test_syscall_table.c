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
 * descriptor. */
static void every_blocking_call_has_its_reason(void **state)
{
	static const struct {
		const char *name;
		enum wp_wait wait;
		int fd_arg;
	} rows[] = {
		{ "read", WP_WAIT_FILE, 0 },
		{ "readv", WP_WAIT_FILE, 0 },
		{ "pread64", WP_WAIT_FILE, 0 },
		{ "preadv", WP_WAIT_FILE, 0 },
		{ "preadv2", WP_WAIT_FILE, 0 },
		{ "write", WP_WAIT_FILE, 0 },
		{ "writev", WP_WAIT_FILE, 0 },
		{ "pwrite64", WP_WAIT_FILE, 0 },
		{ "fsync", WP_WAIT_FILE, 0 },
		{ "fdatasync", WP_WAIT_FILE, 0 },
		{ "sync", WP_WAIT_FILE, -1 },
		{ "getdents64", WP_WAIT_FILE, 0 },
		{ "openat", WP_WAIT_FILE, -1 },
		{ "sendfile", WP_WAIT_FILE, 0 },
		{ "copy_file_range", WP_WAIT_FILE, 0 },
		{ "splice", WP_WAIT_FILE, 0 },
		{ "tee", WP_WAIT_PIPE, 0 },
		{ "vmsplice", WP_WAIT_PIPE, 0 },
		{ "recvfrom", WP_WAIT_SOCKET, 0 },
		{ "recvmsg", WP_WAIT_SOCKET, 0 },
		{ "recvmmsg", WP_WAIT_SOCKET, 0 },
		{ "accept", WP_WAIT_SOCKET, 0 },
		{ "accept4", WP_WAIT_SOCKET, 0 },
		{ "connect", WP_WAIT_SOCKET, 0 },
		{ "sendto", WP_WAIT_SOCKET, 0 },
		{ "sendmsg", WP_WAIT_SOCKET, 0 },
		{ "sendmmsg", WP_WAIT_SOCKET, 0 },
#if defined(__x86_64__)
		{ "poll", WP_WAIT_POLL, -1 },
		{ "select", WP_WAIT_POLL, -1 },
		{ "epoll_wait", WP_WAIT_POLL, 0 },
		{ "pause", WP_WAIT_SIGNAL, -1 },
		{ "vfork", WP_WAIT_CHILD, -1 },
		{ "open", WP_WAIT_FILE, -1 },
#endif
		{ "ppoll", WP_WAIT_POLL, -1 },
		{ "pselect6", WP_WAIT_POLL, -1 },
		{ "epoll_pwait", WP_WAIT_POLL, 0 },
		{ "epoll_pwait2", WP_WAIT_POLL, 0 },
		{ "io_uring_enter", WP_WAIT_POLL, 0 },
		{ "io_getevents", WP_WAIT_DISK, -1 },
		{ "futex", WP_WAIT_FUTEX, -1 },
		{ "futex_waitv", WP_WAIT_FUTEX, -1 },
		{ "futex_wait", WP_WAIT_FUTEX, -1 },
		{ "nanosleep", WP_WAIT_SLEEP, -1 },
		{ "clock_nanosleep", WP_WAIT_SLEEP, -1 },
		{ "wait4", WP_WAIT_CHILD, -1 },
		{ "waitid", WP_WAIT_CHILD, -1 },
		{ "clone", WP_WAIT_CHILD, -1 },
		{ "clone3", WP_WAIT_CHILD, -1 },
		{ "rt_sigsuspend", WP_WAIT_SIGNAL, -1 },
		{ "rt_sigtimedwait", WP_WAIT_SIGNAL, -1 },
		{ "semop", WP_WAIT_SEMAPHORE, -1 },
		{ "semtimedop", WP_WAIT_SEMAPHORE, -1 },
		{ "flock", WP_WAIT_LOCK, 0 },
		{ "fcntl", WP_WAIT_LOCK, 0 },
		{ "msgrcv", WP_WAIT_SYSCALL, -1 },
		{ "mq_timedreceive", WP_WAIT_SYSCALL, -1 },
		{ "getpid", WP_WAIT_SYSCALL, -1 },
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
		    info->fd_arg != rows[i].fd_arg)
			fail_msg("%s: wait %s fd %d", rows[i].name,
				 wp_wait_name(info->wait), info->fd_arg);
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
