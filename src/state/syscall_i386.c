/* SPDX-License-Identifier: Apache-2.0 */
/* syscall_i386.c - system calls of i386 programs: see wallprof/state.h.
 *
 * Most have a call of the same name and arguments among the native ones, and some one of
 * nearly the same name; two stand for many.
 */
#include <linux/net.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "wallprof/state.h"

enum {
	/* arch/x86/entry/syscalls/syscall_32.tbl. */
	SOCKETCALL = 102,
	IPC = 117,
	/* include/uapi/linux/ipc.h. */
	IPC_SEMOP = 1,
	IPC_SEMTIMEDOP = 4,
	IPC_MSGSND = 11,
	IPC_MSGRCV = 12,
	/* The first with times of 64 bits; all later calls have those. */
	TIME64_FIRST = 403,
	UNKNOWN = -1,
};

#if defined(__x86_64__)
const uint8_t wp_syscall_i386_arg_regs[WP_SYSCALL_ARGS] = {
	3, 2, 1, WP_REG_ESI, WP_REG_EDI, WP_REG_FP
};
#else
const uint8_t wp_syscall_i386_arg_regs[WP_SYSCALL_ARGS] = { 0 };
#endif

/* Names that differ by more than an ending. */
static const struct {
	const char *i386;
	const char *native;
} renamed[] = {
	{ "_newselect", "select" },
	{ "waitpid", "wait4" },
	{ "sigsuspend", "rt_sigsuspend" },
	{ "fstatat64", "newfstatat" },
	{ "umount", "umount2" },
	{ "_llseek", "lseek" },
	{ "mmap2", "mmap" },
	{ "fadvise64_64", "fadvise64" },
};

/* Endings of calls that have wider arguments than i386's first ones; native calls of
 * their names without these have the same. */
static const char *const endings[] = { "_time64", "64", "32" };

/* Made at the first question; never changed after. */
static int16_t native[WP_SYSCALLS_MAX];
static bool is_made;

static int16_t number_of(const char *name)
{
	int nr = seccomp_syscall_resolve_name_arch(SCMP_ARCH_NATIVE, name);

	/* Below 0: no machine's, or not this one's. */
	return nr >= 0 && nr < WP_SYSCALLS_MAX ? (int16_t)nr : UNKNOWN;
}

static int16_t find_native(const char *name)
{
	int16_t nr = number_of(name);
	char base[64];
	size_t len = strlen(name);

	for (size_t i = 0; nr < 0 && i < sizeof(renamed) / sizeof(*renamed);
	     i++)
		if (!strcmp(name, renamed[i].i386))
			nr = number_of(renamed[i].native);
	for (size_t i = 0; nr < 0 && i < sizeof(endings) / sizeof(*endings);
	     i++) {
		size_t end = strlen(endings[i]);

		if (len <= end || len >= sizeof(base) ||
		    strcmp(name + len - end, endings[i]) != 0)
			continue;
		memcpy(base, name, len - end);
		base[len - end] = '\0';
		nr = number_of(base);
	}
	return nr;
}

static void make_table(void)
{
	for (int nr = 0; nr < WP_SYSCALLS_MAX; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86,
							      nr);

		/* Since 424 all machines have one number for a new call. */
		native[nr] = name		? find_native(name) :
			     nr >= TIME64_FIRST ? (int16_t)nr :
						  UNKNOWN;
		free(name);
	}
	is_made = true;
}

bool wp_syscall_is_i386_socketcall(long nr)
{
	return nr == SOCKETCALL;
}

/* socketcall(2): its first argument says which call it is. */
static void make_socketcall(struct wp_native_call *ret, uint64_t which,
			    const uint32_t *block)
{
	static const int16_t calls[] = {
		[SYS_CONNECT] = SYS_connect,   [SYS_ACCEPT] = SYS_accept,
		[SYS_SEND] = SYS_sendto,       [SYS_RECV] = SYS_recvfrom,
		[SYS_SENDTO] = SYS_sendto,     [SYS_RECVFROM] = SYS_recvfrom,
		[SYS_SENDMSG] = SYS_sendmsg,   [SYS_RECVMSG] = SYS_recvmsg,
		[SYS_ACCEPT4] = SYS_accept4,   [SYS_RECVMMSG] = SYS_recvmmsg,
		[SYS_SENDMMSG] = SYS_sendmmsg,
	};

	if (!block || which >= sizeof(calls) / sizeof(*calls) || !calls[which])
		return;
	ret->nr = calls[which];
	for (int i = 0; i < WP_SYSCALL_ARGS; i++)
		ret->args[i] = block[i];
	/* They have no more than four. */
	if (which == SYS_SEND || which == SYS_RECV)
		ret->args[4] = ret->args[5] = 0;
}

/* ipc(2): call, first, second, third, pointer, fifth. */
static void make_ipc(struct wp_native_call *ret, const uint64_t *args)
{
	switch (args[0] & 0xffff) {
	case IPC_SEMOP:
		ret->nr = SYS_semop;
		break;
	case IPC_SEMTIMEDOP:
		ret->nr = SYS_semtimedop;
		break;
	case IPC_MSGSND:
		ret->nr = SYS_msgsnd;
		break;
	case IPC_MSGRCV:
		ret->nr = SYS_msgrcv;
		break;
	default:
		return;
	}
	ret->args[0] = args[1];
	ret->args[1] = args[4];
	ret->args[2] = args[2];
	ret->args[3] = ret->nr == SYS_semtimedop ? args[5] : args[3];
}

void wp_syscall_of_i386(struct wp_native_call *ret, long nr,
			const uint64_t *args, const uint32_t *block)
{
	bool is_known = nr >= 0 && nr < WP_SYSCALLS_MAX;

	if (!is_made)
		make_table();
	*ret = (struct wp_native_call){
		.nr = is_known && native[nr] >= 0 ? native[nr] :
		      nr < 0			  ? nr :
						    WP_SYSCALL_FOREIGN + nr,
		.has_narrow_time = nr < TIME64_FIRST,
	};
	memcpy(ret->args, args, sizeof(ret->args));
	if (nr == SOCKETCALL)
		make_socketcall(ret, args[0], block);
	else if (nr == IPC)
		make_ipc(ret, args);
}
