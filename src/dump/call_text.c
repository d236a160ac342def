/* SPDX-License-Identifier: Apache-2.0 */
/* call_text.c - see call_text.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "call_words.h"
#include "pid_namespace.h"
#include "wallprof/clock.h"
#include "wallprof/state.h"
#include "wallprof/syscall_nr.h"

enum {
	/* 64-bit words of a select's set that are read: 1024 descriptors. */
	SET_WORDS = 16,
	/* A hundred years after 1970: times of other clocks are less. */
	MOST_SECONDS = 100u * 366 * 86400,
};

void wp_call_say(struct wp_call_words *w, const char *fmt, ...)
{
	size_t room = sizeof(w->text) - w->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->text + w->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		w->len += (size_t)n < room ? (size_t)n : room - 1;
}

static bool read_target(const struct wp_call_words *w, uint64_t avma, void *buf,
			size_t len)
{
	return w->found->memory &&
	       wp_call_memory_read(w->found->memory, avma, buf, len);
}

static void say_time(struct wp_call_words *w, const struct timespec *ts)
{
	double s = (double)ts->tv_sec + (double)ts->tv_nsec / 1e9;

	if (ts->tv_sec)
		wp_call_say(w, " %.*f s", s < 10 ? 3 : 0, s);
	else if (ts->tv_nsec >= (long)WP_NS_PER_MS)
		wp_call_say(w, " %g ms", (double)(ts->tv_nsec / 1000) / 1e3);
	else if (ts->tv_nsec >= (long)WP_NS_PER_US)
		wp_call_say(w, " %g us", (double)ts->tv_nsec / 1e3);
	else
		wp_call_say(w, " %ld ns", ts->tv_nsec);
}

/* The call's own time limit.  A limit of 0 is what the kernel has left of a longer one, in a
 * call that ends. */
static void say_most(struct wp_call_words *w, const struct timespec *ts)
{
	if (!ts->tv_sec && !ts->tv_nsec)
		return;
	wp_call_say(w, ", at most");
	say_time(w, ts);
}

static void say_most_ms(struct wp_call_words *w, int ms)
{
	if (ms >= 0)
		say_most(w,
			 &(struct timespec){ ms / 1000,
					     ms % 1000 * (long)WP_NS_PER_MS });
}

static void say_most_at(struct wp_call_words *w, uint64_t avma)
{
	struct timespec ts = { 0 };

	if (avma && read_target(w, avma, &ts, sizeof(ts)))
		say_most(w, &ts);
}

static void say_process(struct wp_call_words *w, pid_t pid)
{
	char path[64], name[64];
	ssize_t n;

	wp_call_say(w, " pid %d", pid);
	if (w->found->moved)
		return;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	n = wp_io_read_at(-1, path, name, sizeof(name));
	if (n > 1)
		wp_call_say(w, " \"%.*s\"", (int)n - 1, name);
}

void wp_call_say_fd(struct wp_call_words *w, int fd)
{
	struct wp_fd_desc desc;
	pid_t pid;

	wp_call_say(w, "fd %d", fd);
	if (w->found->moved ||
	    wp_fdinfo_describe(&w->process->fdinfo, w->found->tid, fd,
			       wp_clock_ns(), &desc))
		return;
	wp_call_say(w, " %s", desc.text);
	pid = desc.kind == WP_FD_PIDFD ?
		      wp_pid_namespace_pidfd(w->process, w->found->tid, fd) :
		      0;
	if (pid) {
		wp_call_say(w, " of");
		say_process(w, pid);
	}
}

static void futex_words(struct wp_call_words *w)
{
	static const char *const names[] = {
		[FUTEX_WAIT] = "WAIT",
		[FUTEX_WAIT_BITSET] = "WAIT_BITSET",
		[FUTEX_LOCK_PI] = "LOCK_PI",
		[FUTEX_WAIT_REQUEUE_PI] = "WAIT_REQUEUE_PI",
		[FUTEX_LOCK_PI2] = "LOCK_PI2",
	};
	unsigned int op = (unsigned int)w->call->args[1] & FUTEX_CMD_MASK;

	wp_call_say(w, " 0x%llx", (unsigned long long)w->call->args[0]);
	if (op < sizeof(names) / sizeof(*names) && names[op])
		wp_call_say(w, " %s", names[op]);
	if (w->call->args[3])
		wp_call_say(w, ", with a timeout");
}

static void poll_descriptors(struct wp_call_words *w)
{
	uint64_t n = w->call->args[1];
	struct pollfd fds[WP_CALL_NAMED_MAX] = { 0 };
	size_t named = n < WP_CALL_NAMED_MAX ? (size_t)n : WP_CALL_NAMED_MAX;

	wp_call_say(w, " of %llu descriptor%s", (unsigned long long)n,
		    n == 1 ? "" : "s");
	if (!named ||
	    !read_target(w, w->call->args[0], fds, named * sizeof(*fds)))
		return;
	for (size_t i = 0; i < named; i++) {
		wp_call_say(w, i ? ", " : ": ");
		wp_call_say_fd(w, fds[i].fd);
	}
	if (n > named)
		wp_call_say(w, ", ...");
}

static void poll_words(struct wp_call_words *w)
{
	poll_descriptors(w);
	if (w->call->nr == SYS_poll)
		say_most_ms(w, (int)w->call->args[2]);
	else
		say_most_at(w, w->call->args[2]);
}

static void select_descriptors(struct wp_call_words *w)
{
	uint64_t n = w->call->args[0], set[SET_WORDS] = { 0 };
	size_t words = (size_t)((n < 1024 ? n : 1024) + 63) / 64;
	unsigned int found = 0;

	if (!w->call->args[1] ||
	    !read_target(w, w->call->args[1], set, words * sizeof(*set)))
		return;
	for (unsigned int fd = 0; fd < n && fd < 1024; fd++) {
		if (!(set[fd / 64] >> fd % 64 & 1))
			continue;
		if (found++ == WP_CALL_NAMED_MAX) {
			wp_call_say(w, ", ...");
			return;
		}
		wp_call_say(w, found == 1 ? " to read " : ", ");
		wp_call_say_fd(w, (int)fd);
	}
}

static void select_words(struct wp_call_words *w)
{
	uint64_t avma = w->call->args[4];
	struct timeval tv = { 0 };

	select_descriptors(w);
	if (w->call->nr == SYS_pselect6)
		say_most_at(w, avma);
	else if (avma && read_target(w, avma, &tv, sizeof(tv)))
		say_most(w,
			 &(struct timespec){ tv.tv_sec,
					     tv.tv_usec * (long)WP_NS_PER_US });
}

static void epoll_words(struct wp_call_words *w)
{
	wp_call_epoll(w);
	if (w->call->nr == SYS_epoll_pwait2)
		say_most_at(w, w->call->args[3]);
	else
		say_most_ms(w, (int)w->call->args[3]);
}

static void sleep_words(struct wp_call_words *w, uint64_t avma)
{
	struct timespec ts = { 0 };

	if (avma && read_target(w, avma, &ts, sizeof(ts)))
		say_time(w, &ts);
}

/* Is CLOCK of the program the same here?  Those of CPU time are the program's own, and
 * time_namespaces(7) has some begin at another time. */
static bool is_our_clock(const struct wp_process *process, clockid_t clock)
{
	switch (clock) {
	case CLOCK_REALTIME:
	case CLOCK_TAI:
		return true;
	case CLOCK_MONOTONIC:
	case CLOCK_BOOTTIME:
		/* Before Linux 5.6 there is one for all. */
		return access("/proc/self/ns/time", F_OK) ||
		       wp_proc_shares_namespace(process->proc_fd, "time");
	default:
		return false;
	}
}

/* A sleep until a time of CLOCK, as the time that is left where that is known. */
static void sleep_until_words(struct wp_call_words *w, clockid_t clock,
			      uint64_t avma)
{
	struct timespec ts = { 0 }, now;
	int64_t left_ns;

	if (!avma || !read_target(w, avma, &ts, sizeof(ts)) ||
	    !is_our_clock(&w->process->process, clock) ||
	    clock_gettime(clock, &now) || ts.tv_sec > MOST_SECONDS)
		return;
	/* At the sample. */
	left_ns = (ts.tv_sec - now.tv_sec) * (int64_t)WP_NS_PER_S + ts.tv_nsec -
		  now.tv_nsec +
		  (int64_t)(wp_clock_ns() - w->found->memory->time_ns);
	if (left_ns < 0)
		left_ns = 0;
	ts.tv_sec = left_ns / (int64_t)WP_NS_PER_S;
	ts.tv_nsec = left_ns % (int64_t)WP_NS_PER_S;
	wp_call_say(w, " for");
	say_time(w, &ts);
	wp_call_say(w, " more");
}

static void wait_words(struct wp_call_words *w, bool by_id, int id, bool group)
{
	const struct wp_call_memory *memory = w->found->memory;
	pid_t pid = 0;

	if (by_id && !w->found->moved)
		pid = wp_pid_namespace_child(w->process, id,
					     memory ? memory->time_ns : 0);
	if (pid)
		say_process(w, pid);
	else if (by_id && w->found->moved)
		wp_call_say(w, " pid %d", id);
	else if (by_id)
		wp_call_say(w, " pid %d, which is no child", id);
	else if (group)
		wp_call_say(w, " any child of group %d", id);
	else
		wp_call_say(w, " any child");
}

static void wait4_words(struct wp_call_words *w)
{
	int pid = (int)w->call->args[0];

	wait_words(w, pid > 0, pid > 0 ? pid : -pid, pid < -1);
}

static void waitid_words(struct wp_call_words *w)
{
	unsigned int type = (unsigned int)w->call->args[0];
	int id = (int)w->call->args[1];

	if (type == WP_P_PIDFD) {
		wp_call_say(w, " ");
		wp_call_say_fd(w, id);
	} else {
		wait_words(w, type == P_PID, id, type == P_PGID);
	}
}

/* What is behind the descriptor argument was read after the sample. */
static void say_object(struct wp_call_words *w)
{
	const struct wp_syscall_info *info = wp_syscall_find(w->call->nr);

	if (!w->found->object[0])
		return;
	if (!w->found->moved)
		wp_call_say(w, " %s", w->found->object);
	else if (info && info->fd_arg >= 0)
		wp_call_say(w, " fd %d", (int)w->call->args[info->fd_arg]);
}

static void move_words(struct wp_call_words *w, uint64_t out)
{
	say_object(w);
	wp_call_say(w, " to ");
	wp_call_say_fd(w, (int)out);
}

/* Its first descriptor is the one that is written to. */
static void sendfile_words(struct wp_call_words *w)
{
	wp_call_say(w, " ");
	wp_call_say_fd(w, (int)w->call->args[1]);
	wp_call_say(w, " to ");
	wp_call_say_fd(w, (int)w->call->args[0]);
}

static void flock_words(struct wp_call_words *w)
{
	say_object(w);
	wp_call_say(w,
		    (w->call->args[1] & LOCK_EX) ? " exclusively" : " shared");
}

static void fcntl_words(struct wp_call_words *w)
{
	switch (w->call->args[1]) {
	case F_SETLKW:
		wp_call_say(w, " F_SETLKW");
		break;
	case WP_F_SETLKW64:
		wp_call_say(w, " F_SETLKW64");
		break;
	case F_OFD_SETLKW:
		wp_call_say(w, " F_OFD_SETLKW");
		break;
	}
	say_object(w);
}

static void clock_nanosleep_words(struct wp_call_words *w)
{
	const uint64_t *args = w->call->args;

	if (args[1] & TIMER_ABSTIME)
		sleep_until_words(w, (clockid_t)args[0], args[2]);
	else
		sleep_words(w, args[2]);
}

static void describe_arguments(struct wp_call_words *w)
{
	switch (w->call->nr) {
	case SYS_futex:
		futex_words(w);
		break;
	case SYS_poll:
	case SYS_ppoll:
		poll_words(w);
		break;
	case SYS_select:
	case SYS_pselect6:
		select_words(w);
		break;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		epoll_words(w);
		break;
	case SYS_nanosleep:
		sleep_words(w, w->call->args[0]);
		break;
	case SYS_clock_nanosleep:
		clock_nanosleep_words(w);
		break;
	case SYS_wait4:
		wait4_words(w);
		break;
	case SYS_waitid:
		waitid_words(w);
		break;
	case SYS_splice:
		move_words(w, w->call->args[2]);
		break;
	case SYS_tee:
		move_words(w, w->call->args[1]);
		break;
	case SYS_sendfile:
		sendfile_words(w);
		break;
	case SYS_flock:
		flock_words(w);
		break;
	case SYS_fcntl:
		fcntl_words(w);
		break;
	default:
		say_object(w);
	}
}

int wp_call_text(struct wp_dump_call *call, struct wp_intern *strings,
		 struct wp_snapshot_process *process,
		 const struct wp_call_found *found)
{
	struct wp_call_words w = { .process = process,
				   .call = call,
				   .found = found };
	char name[32];
	uint32_t id;

	if (call->nr < 0)
		return 0;
	wp_call_say(&w, "%s", wp_syscall_name(call->nr, name, sizeof(name)));
	describe_arguments(&w);
	if (found->wchan && !found->moved)
		wp_call_say(&w, ", in %s of the kernel", found->wchan);
	id = wp_intern_add_str(strings, w.text);
	if (id == UINT32_MAX)
		return -ENOMEM;
	call->text = id;
	return 0;
}
