/* SPDX-License-Identifier: Apache-2.0 */
/* syscall_table.c - what each system call waits for: see wallprof/state.h.
 *
 * Names and numbers come from libseccomp, for the machine's own architecture;
 * a row here is what the kernel's tables do not tell.
 */
#include <seccomp.h>
#include <stdio.h>
#include <string.h>

#include "wallprof/state.h"

#if defined(__x86_64__)
const long wp_syscall_restart = 219;
/* rdi, rsi, rdx, r10, r8, r9 */
const uint8_t wp_syscall_arg_regs[WP_SYSCALL_ARGS] = { 5, 4, 1, 10, 8, 9 };
#elif defined(__aarch64__)
const long wp_syscall_restart = 128;
const uint8_t wp_syscall_arg_regs[WP_SYSCALL_ARGS] = { 0, 1, 2, 3, 4, 5 };
#endif

/* Rows are of system calls of one kind, NAME being their names, separated by blanks.
 * A call without a row is WP_WAIT_SYSCALL and has no descriptor, and what a restart does
 * to it is not known.
 *
 * Time limits: signal(7), "Interruption of system calls ... by stop signals", and
 * measured on Linux 6.18.  select(2) and ppoll(2) write the rest of their time to
 * the program's memory, where they can (fs/select.c).  restart_syscall: calls that
 * return -ERESTART_RESTARTBLOCK. */
#define OVER WP_RESTART_OVER, -1, false, false

static const struct wp_syscall_info rows[] = {
	{ "read readv", WP_WAIT_FILE, 0, WP_RESTART_BY_FD, -1, false, false },
	{ "write close fstat ioctl pread64 pwrite64 writev fsync "
	  "fdatasync ftruncate getdents getdents64 fchdir fchmod fchown "
	  "fstatfs readahead fgetxattr fsetxattr flistxattr fremovexattr "
	  "sync_file_range fallocate preadv pwritev preadv2 pwritev2 syncfs "
	  "copy_file_range splice sendfile",
	  WP_WAIT_FILE, 0, OVER },
	{ "open openat openat2 open_by_handle_at name_to_handle_at creat stat "
	  "lstat newfstatat statx statfs ustat access faccessat faccessat2 "
	  "truncate chdir chroot pivot_root rename renameat renameat2 mkdir "
	  "mkdirat mknod mknodat rmdir link linkat unlink unlinkat symlink "
	  "symlinkat readlink readlinkat chmod fchmodat chown lchown fchownat "
	  "utime utimes utimensat futimesat getxattr lgetxattr setxattr "
	  "lsetxattr listxattr llistxattr removexattr lremovexattr mount "
	  "umount2 swapon swapoff quotactl acct uselib sync msync execve "
	  "execveat",
	  WP_WAIT_FILE, -1, OVER },
	{ "io_getevents io_pgetevents", WP_WAIT_DISK, -1, WP_RESTART_OVER, 4,
	  false, false },
	{ "tee vmsplice", WP_WAIT_PIPE, 0, OVER },
	{ "accept accept4 connect recvfrom recvmsg recvmmsg sendto sendmsg "
	  "sendmmsg",
	  WP_WAIT_SOCKET, 0, OVER },
	{ "poll", WP_WAIT_POLL, -1, WP_RESTART_KEEPS_TIME, 2, true, false },
	{ "ppoll", WP_WAIT_POLL, -1, WP_RESTART_WAITS, 2, false, true },
	{ "select pselect6", WP_WAIT_POLL, -1, WP_RESTART_WAITS, 4, false,
	  true },
	{ "epoll_wait epoll_pwait", WP_WAIT_POLL, 0, WP_RESTART_WAITS, 3, true,
	  false },
	{ "epoll_pwait2", WP_WAIT_POLL, 0, WP_RESTART_WAITS, 3, false, false },
	{ "io_uring_enter", WP_WAIT_POLL, 0, OVER },
	{ "futex futex_waitv", WP_WAIT_FUTEX, -1, WP_RESTART_KEEPS_TIME, 3,
	  false, true },
	{ "futex_wait", WP_WAIT_FUTEX, -1, WP_RESTART_KEEPS_TIME, 4, false,
	  true },
	{ "fcntl flock", WP_WAIT_LOCK, 0, OVER },
	{ "semop", WP_WAIT_SEMAPHORE, -1, WP_RESTART_WAITS, -1, false, false },
	{ "semtimedop", WP_WAIT_SEMAPHORE, -1, WP_RESTART_WAITS, 3, false,
	  false },
	{ "nanosleep", WP_WAIT_SLEEP, -1, WP_RESTART_KEEPS_TIME, 0, false,
	  false },
	{ "clock_nanosleep", WP_WAIT_SLEEP, -1, WP_RESTART_KEEPS_TIME, 2, false,
	  false },
	{ "fork vfork clone clone3", WP_WAIT_CHILD, -1, OVER },
	{ "wait4 waitid", WP_WAIT_CHILD, -1, WP_RESTART_WAITS, -1, false,
	  false },
	{ "pause rt_sigsuspend", WP_WAIT_SIGNAL, -1, WP_RESTART_WAITS, -1,
	  false, true },
	{ "rt_sigtimedwait", WP_WAIT_SIGNAL, -1, WP_RESTART_WAITS, 2, false,
	  false },
	{ "msgsnd msgrcv", WP_WAIT_SYSCALL, -1, WP_RESTART_WAITS, -1, false,
	  false },
	{ "mq_timedsend mq_timedreceive", WP_WAIT_SYSCALL, -1, WP_RESTART_OVER,
	  4, false, false },
	{ "restart_syscall", WP_WAIT_SYSCALL, -1, WP_RESTART_KEEPS_TIME, -1,
	  false, false },
};

/* Calls that libseccomp 2.5 does not know.  All architectures have had one
 * number for a new call since 424 (include/uapi/asm-generic/unistd.h). */
enum { RECENT_FIRST = 441 };
static const char *const recent[] = {
	"epoll_pwait2",	     "mount_setattr",
	"quotactl_fd",	     "landlock_create_ruleset",
	"landlock_add_rule", "landlock_restrict_self",
	"memfd_secret",	     "process_mrelease",
	"futex_waitv",	     "set_mempolicy_home_node",
	"cachestat",	     "fchmodat2",
	"map_shadow_stack",  "futex_wake",
	"futex_wait",	     "futex_requeue",
	"statmount",	     "listmount",
	"lsm_get_self_attr", "lsm_set_self_attr",
	"lsm_list_modules",  "mseal",
	"setxattrat",	     "getxattrat",
	"listxattrat",	     "removexattrat",
	"open_tree_attr",    "file_getattr",
	"file_setattr",
};

enum { NRECENT = sizeof(recent) / sizeof(*recent) };

/* Made at the first question, never changed after. */
static struct wp_syscall_info table[WP_SYSCALLS_MAX];
static bool is_made;

static bool has_name(const char *names, const char *name)
{
	size_t len = strlen(name);
	const char *at = names;

	while ((at = strstr(at, name))) {
		if ((at == names || at[-1] == ' ') &&
		    (at[len] == ' ' || !at[len]))
			return true;
		at += len;
	}
	return false;
}

static struct wp_syscall_info describe(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_syscall_info info = rows[i];

		if (!has_name(info.name, name))
			continue;
		info.name = name;
		return info;
	}
	return (struct wp_syscall_info){ name, WP_WAIT_SYSCALL, -1, OVER };
}

static void make_table(void)
{
	for (int nr = 0; nr < WP_SYSCALLS_MAX; nr++) {
		/* Ours to free; kept for the life of the program. */
		const char *name = seccomp_syscall_resolve_num_arch(
			SCMP_ARCH_NATIVE, nr);

		if (!name && nr >= RECENT_FIRST && nr < RECENT_FIRST + NRECENT)
			name = recent[nr - RECENT_FIRST];
		if (name)
			table[nr] = describe(name);
	}
	is_made = true;
}

const struct wp_syscall_info *wp_syscall_find(long nr)
{
	if (!is_made)
		make_table();
	if (nr < 0 || nr >= WP_SYSCALLS_MAX || !table[nr].name)
		return NULL;
	return &table[nr];
}

const char *wp_syscall_name(long nr, char *buf, size_t len)
{
	const struct wp_syscall_info *info = wp_syscall_find(nr);

	if (info)
		return info->name;
	if (nr >= WP_SYSCALL_FOREIGN)
		snprintf(buf, len, "i386_syscall_%ld", nr - WP_SYSCALL_FOREIGN);
	else
		snprintf(buf, len, "syscall_%ld", nr);
	return buf;
}
