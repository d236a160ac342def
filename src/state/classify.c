/* SPDX-License-Identifier: Apache-2.0 */
/* classify.c - see wallprof/state.h. */
#include <linux/futex.h>
#include <sys/mman.h>

#include "wallprof/state.h"
#include "wallprof/syscall_nr.h"

/* Of io_uring_enter(2): its fifth argument is a struct with a time limit
 * (include/uapi/linux/io_uring.h). */
enum { ENTER_EXT_ARG = 1 << 3 };

/* Does the call of FACTS change the memory map, and ask no file and read no page?  Then what
 * it sleeps for is the lock of the map (mmap_lock), which other threads' faults and calls
 * have. */
static bool is_for_mmap_lock(const struct wp_thread_facts *facts)
{
	switch (facts->syscall_nr) {
	case SYS_brk:
	case SYS_munmap:
	case SYS_mremap:
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		return true;
	case SYS_mmap:
		return (facts->args[3] & MAP_ANONYMOUS) &&
		       !(facts->args[3] & (MAP_POPULATE | MAP_LOCKED));
	case SYS_madvise:
		return facts->args[2] == MADV_DONTNEED ||
		       facts->args[2] == MADV_FREE;
	default:
		return false;
	}
}

static const enum wp_wait wait_of_hold[] = {
	[WP_HOLD_FROZEN] = WP_WAIT_FROZEN,
	[WP_HOLD_CORE_DUMP] = WP_WAIT_CORE_DUMP,
	[WP_HOLD_MMAP_LOCK] = WP_WAIT_MMAP_LOCK,
};

static enum wp_wait wait_of(const struct wp_thread_facts *facts)
{
	const struct wp_syscall_info *info;
	enum wp_wait wait;

	if (facts->is_worker)
		return facts->state_char == 'D' ? WP_WAIT_DISK : WP_WAIT_NONE;
	if (facts->hold != WP_HOLD_NONE)
		return wait_of_hold[facts->hold];
	/* Asleep outside of a call: the kernel handles its page fault. */
	if (facts->syscall_nr < 0)
		return WP_WAIT_PAGE_FAULT;
	info = wp_syscall_find(facts->syscall_nr);
	wait = info ? info->wait : WP_WAIT_SYSCALL;
	if (is_for_mmap_lock(facts))
		return WP_WAIT_MMAP_LOCK;
	/* D: a wait that no signal ends.  A vfork parent waits so for its
	 * child; a call on a file, or one that should not sleep at all, waits
	 * for the disk. */
	if (facts->state_char == 'D' &&
	    (wait == WP_WAIT_FILE || wait == WP_WAIT_SYSCALL))
		wait = WP_WAIT_DISK;
	return wp_state_refine_fd(wait, facts->syscall_nr, facts->fd_kind);
}

struct wp_thread_state wp_state_classify(const struct wp_thread_facts *facts)
{
	struct wp_thread_state state = { WP_STATE_WAITING, WP_WAIT_NONE };

	if (facts->running) {
		state.state = WP_STATE_RUNNING;
		return state;
	}
	switch (facts->state_char) {
	case 'R':
		state.state = WP_STATE_RUNNING;
		break;
	case 'T':
	case 't':
		state.state = WP_STATE_STOPPED;
		break;
	case 'Z':
	case 'X':
	case 'x':
		state.state = WP_STATE_EXITING;
		break;
	default:
		state.wait = wait_of(facts);
	}
	return state;
}

enum wp_wait wp_state_refine_fd(enum wp_wait wait, long nr,
				enum wp_fd_kind kind)
{
	/* Calls that read or write any kind of file are FILE in the table. */
	if (wait != WP_WAIT_FILE && wait != WP_WAIT_DISK)
		return wait;
	/* Its descriptor is what it writes to, which it waits for in S; others
	 * wait in D for the lock of a pipe that a splice has. */
	if (wait == WP_WAIT_DISK && nr == SYS_sendfile)
		return wait;
	switch (kind) {
	case WP_FD_PIPE:
		return WP_WAIT_PIPE;
	case WP_FD_SOCKET:
		return WP_WAIT_SOCKET;
	case WP_FD_TTY:
		return WP_WAIT_TTY;
	case WP_FD_TIMERFD:
		return WP_WAIT_TIMER;
	case WP_FD_SIGNALFD:
		return WP_WAIT_SIGNAL;
	case WP_FD_EVENTFD:
	case WP_FD_INOTIFY:
	case WP_FD_FANOTIFY:
	case WP_FD_EPOLL:
	case WP_FD_PIDFD:
	case WP_FD_IO_URING:
		/* Waits for an event to be signalled. */
		return WP_WAIT_POLL;
	default:
		return wait;
	}
}

enum wp_wait wp_state_refine_futex(const uint64_t args[WP_SYSCALL_ARGS])
{
	unsigned int op = (unsigned int)args[1];
	unsigned int cmd = op & FUTEX_CMD_MASK;

	if (cmd == FUTEX_LOCK_PI || cmd == FUTEX_LOCK_PI2)
		return WP_WAIT_LOCK;
	/* glibc's pthread_join waits for the kernel to clear the joined
	 * thread's tid: shared, real-time clock, and a value that looks like a
	 * tid (0 and 1 are words of other objects). */
	if (cmd == FUTEX_WAIT_BITSET && !(op & FUTEX_PRIVATE_FLAG) &&
	    (op & FUTEX_CLOCK_REALTIME) && (uint32_t)args[2] > 1 &&
	    (uint32_t)args[2] < 1 << 22)
		return WP_WAIT_JOIN;
	return WP_WAIT_FUTEX;
}

/* Has the call INFO with these ARGS no time limit? */
static bool is_endless(const struct wp_syscall_info *info,
		       const uint64_t args[WP_SYSCALL_ARGS])
{
	if (info->limit_arg < 0)
		return true;
	return info->limit_is_ms ? (int32_t)args[info->limit_arg] < 0 :
				   !args[info->limit_arg];
}

static bool futex_takes_time(uint64_t op)
{
	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
	case FUTEX_LOCK_PI:
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_LOCK_PI2:
		return true;
	default:
		return false;
	}
}

bool wp_state_is_timed(long nr, const uint64_t args[WP_SYSCALL_ARGS])
{
	const struct wp_syscall_info *info = wp_syscall_find(nr);

	switch (nr) {
	case SYS_restart_syscall:
		/* Of a sleep, a futex or a poll; these have limits but for a
		 * few of the latter. */
		return true;
	case SYS_io_uring_enter:
		return args[3] & ENTER_EXT_ARG;
	case SYS_futex:
		/* Of others it is a count. */
		return futex_takes_time(args[1]) && args[3];
	default:
		return info && !is_endless(info, args);
	}
}

/* Is what is behind the descriptor read without a time limit of its own? */
static bool is_plain_source(enum wp_fd_kind kind)
{
	return kind == WP_FD_PIPE || kind == WP_FD_EVENTFD ||
	       kind == WP_FD_TIMERFD || kind == WP_FD_SIGNALFD ||
	       kind == WP_FD_INOTIFY;
}

bool wp_state_may_stop(const struct wp_thread_facts *facts, bool has_filter)
{
	const struct wp_syscall_info *info = wp_syscall_find(facts->syscall_nr);

	/* By a signal, and in no call. */
	if (facts->state_char == 'T' && facts->syscall_nr < 0)
		return true;
	if (!info || info->restart == WP_RESTART_OVER)
		return false;
	if (has_filter)
		return info->only_waits && is_endless(info, facts->args);
	if (info->restart == WP_RESTART_BY_FD)
		return is_plain_source(facts->fd_kind);
	return info->restart == WP_RESTART_KEEPS_TIME ||
	       is_endless(info, facts->args);
}
