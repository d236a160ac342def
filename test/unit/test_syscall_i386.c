/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: state.  system calls of i386 programs, by the system's header of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/net.h>
#include <string.h>

#include "wallprof/state.h"

#if defined(__x86_64__)
/* i386's numbers: no header with native ones is included here. */
#include <asm/unistd_32.h>

static const uint64_t args[WP_SYSCALL_ARGS] = { 11, 12, 13, 14, 15, 16 };

static const char *name_of(const struct wp_native_call *call)
{
	const struct wp_syscall_info *info = wp_syscall_find(call->nr);

	return info ? info->name : "";
}

static void calls_are_those_of_the_same_name(void **state)
{
	static const struct {
		long nr;
		const char *name;
	} rows[] = {
#define SAME(name) { __NR_##name, #name },
#define NOW(name, now) { __NR_##name, now },
		/* clang-format off */
		SAME(restart_syscall) SAME(read) SAME(write) SAME(open) SAME(close)
		SAME(execve) SAME(lseek) SAME(pause) SAME(ioctl) SAME(fcntl)
		SAME(fsync) SAME(flock) SAME(readv) SAME(writev) SAME(msync)
		SAME(poll) SAME(nanosleep) SAME(wait4) SAME(vfork) SAME(clone)
		SAME(rt_sigsuspend) SAME(rt_sigtimedwait) SAME(pread64) SAME(sendfile)
		SAME(futex) SAME(io_getevents) SAME(epoll_wait) SAME(clock_nanosleep)
		SAME(mq_timedreceive) SAME(waitid) SAME(openat) SAME(pselect6)
		SAME(ppoll) SAME(splice) SAME(tee) SAME(epoll_pwait) SAME(recvmmsg)
		SAME(accept4) SAME(connect) SAME(recvfrom) SAME(recvmsg) SAME(sendto)
		SAME(sendmsg) SAME(copy_file_range) SAME(io_uring_enter) SAME(clone3)
		SAME(msgsnd) SAME(msgrcv) SAME(epoll_pwait2)
		NOW(_newselect, "select") NOW(waitpid, "wait4")
		NOW(sigsuspend, "rt_sigsuspend") NOW(fcntl64, "fcntl")
		NOW(futex_time64, "futex") NOW(ppoll_time64, "ppoll")
		NOW(pselect6_time64, "pselect6") NOW(sendfile64, "sendfile")
		NOW(clock_nanosleep_time64, "clock_nanosleep")
		NOW(rt_sigtimedwait_time64, "rt_sigtimedwait")
		NOW(semtimedop_time64, "semtimedop")
		NOW(recvmmsg_time64, "recvmmsg")
		NOW(mq_timedreceive_time64, "mq_timedreceive")
		NOW(io_pgetevents_time64, "io_pgetevents")
		NOW(fstatat64, "newfstatat") NOW(stat64, "stat")
		NOW(ftruncate64, "ftruncate") NOW(fstatfs64, "fstatfs")
		NOW(_llseek, "lseek") NOW(umount, "umount2")
		NOW(mmap2, "mmap") NOW(fchown32, "fchown") NOW(lchown32, "lchown")
		NOW(fadvise64_64, "fadvise64")
/* clang-format on */
#undef SAME
#undef NOW
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_native_call call;

		wp_syscall_of_i386(&call, rows[i].nr, args, NULL);
		assert_string_equal(name_of(&call), rows[i].name);
		assert_memory_equal(call.args, args, sizeof(args));
		assert_int_equal(call.has_narrow_time, rows[i].nr < 403);
	}
}

static void others_are_none_of_ours(void **state)
{
	static const long rows[] = {
		__NR_sigreturn, __NR_vm86, __NR_socketcall, 222, 600, 1000000
	};
	struct wp_native_call call;
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		wp_syscall_of_i386(&call, rows[i], args, NULL);
		assert_int_equal(call.nr, WP_SYSCALL_FOREIGN + rows[i]);
		assert_null(wp_syscall_find(call.nr));
	}
	wp_syscall_of_i386(&call, __NR_vm86, args, NULL);
	assert_string_equal(wp_syscall_name(call.nr, buf, sizeof(buf)),
			    "i386_syscall_166");
	wp_syscall_of_i386(&call, -1, args, NULL);
	assert_int_equal(call.nr, -1);
}

static void socketcall_is_the_call_in_its_first_argument(void **state)
{
	static const uint32_t block[6] = { 3, 0x1000, 0xffffffff, 7, 8, 9 };
	static const struct {
		unsigned int which;
		const char *name;
		uint64_t fifth;
	} rows[] = {
		{ SYS_ACCEPT, "accept", 8 },
		{ SYS_CONNECT, "connect", 8 },
		{ SYS_SEND, "sendto", 0 },
		{ SYS_RECV, "recvfrom", 0 },
		{ SYS_SENDTO, "sendto", 8 },
		{ SYS_RECVFROM, "recvfrom", 8 },
		{ SYS_SENDMSG, "sendmsg", 8 },
		{ SYS_RECVMSG, "recvmsg", 8 },
		{ SYS_ACCEPT4, "accept4", 8 },
		{ SYS_RECVMMSG, "recvmmsg", 8 },
		{ SYS_SENDMMSG, "sendmmsg", 8 },
		{ SYS_SOCKET, "", 0 },
		{ 0, "", 0 },
		{ 21, "", 0 },
		{ UINT32_MAX, "", 0 },
	};

	(void)state;
	assert_true(wp_syscall_is_i386_socketcall(__NR_socketcall));
	assert_false(wp_syscall_is_i386_socketcall(__NR_ipc));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const uint64_t own[WP_SYSCALL_ARGS] = { rows[i].which, 0x5000 };
		struct wp_native_call call;

		wp_syscall_of_i386(&call, __NR_socketcall, own, block);
		assert_string_equal(name_of(&call), rows[i].name);
		if (!*rows[i].name)
			continue;
		assert_int_equal(call.args[0], 3);
		assert_int_equal(call.args[2], 0xffffffff);
		assert_int_equal(call.args[4], rows[i].fifth);
		wp_syscall_of_i386(&call, __NR_socketcall, own, NULL);
		assert_string_equal(name_of(&call), "");
	}
}

static void ipc_is_the_call_in_its_first_argument(void **state)
{
	static const struct {
		uint64_t which;
		const char *name;
		uint64_t third, fourth;
	} rows[] = {
		{ 1, "semop", 13, 14 },	      { 4, "semtimedop", 13, 16 },
		{ 11, "msgsnd", 13, 14 },     { 12, "msgrcv", 13, 14 },
		{ 0x10001, "semop", 13, 14 }, { 2, "", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t own[WP_SYSCALL_ARGS];
		struct wp_native_call call;

		memcpy(own, args, sizeof(own));
		own[0] = rows[i].which;
		wp_syscall_of_i386(&call, __NR_ipc, own, NULL);
		assert_string_equal(name_of(&call), rows[i].name);
		if (!*rows[i].name)
			continue;
		assert_int_equal(call.args[0], 12);
		assert_int_equal(call.args[1], 15);
		assert_int_equal(call.args[2], rows[i].third);
		assert_int_equal(call.args[3], rows[i].fourth);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_those_of_the_same_name),
		cmocka_unit_test(others_are_none_of_ours),
		cmocka_unit_test(socketcall_is_the_call_in_its_first_argument),
		cmocka_unit_test(ipc_is_the_call_in_its_first_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
/* Programs of i386 run on x86-64 alone. */
int main(void)
{
	return 0;
}
#endif
