/* SPDX-License-Identifier: Apache-2.0 */
/* call_text.c - see call_text.h: the call that a thread sleeps in, in words. */
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

#include "call_text.h"
#include "pid_namespace.h"
#include "wallprof/clock.h"
#include "wallprof/state.h"

enum {
	/* Descriptors of a poll that are named; the rest is counted. */
	NAMED_MAX = 3,
	/* Words of a select's set that are looked at: 1024 descriptors. */
	SET_WORDS = 16,
	FDINFO_MAX = 16 << 20,
};

/* The words so far; what does not fit is left out. */
struct words {
	char text[1024];
	size_t len;
	struct wp_snapshot_process *look;
	const struct wp_dump_thread *thread;
	const char *call;
	const char *object;
};

WP_PRINTF(2, 3)
static void say(struct words *w, const char *fmt, ...)
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

static bool read_target(const struct words *w, uint64_t avma, void *buf,
			size_t len)
{
	return wp_process_read(&w->look->process, avma, buf, len) ==
	       (ssize_t)len;
}

static void say_time(struct words *w, const struct timespec *ts)
{
	double s = (double)ts->tv_sec + (double)ts->tv_nsec / 1e9;

	say(w, " %.*f s", s < 10 ? 3 : 0, s);
}

/* How long the call may last, where it says so. */
static void say_most(struct words *w, const struct timespec *ts)
{
	say(w, ", at most");
	say_time(w, ts);
}

static void say_most_ms(struct words *w, int ms)
{
	if (ms >= 0)
		say_most(w,
			 &(struct timespec){ ms / 1000,
					     ms % 1000 * (long)WP_NS_PER_MS });
}

static void say_most_at(struct words *w, uint64_t avma)
{
	struct timespec ts = { 0 };

	if (avma && read_target(w, avma, &ts, sizeof(ts)))
		say_most(w, &ts);
}

static void say_process(struct words *w, pid_t pid)
{
	char path[64], name[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	n = wp_io_read_at(-1, path, name, sizeof(name));
	say(w, " pid %d", pid);
	if (n > 1)
		say(w, " \"%.*s\"", (int)n - 1, name);
}

static void say_fd(struct words *w, int fd)
{
	struct wp_fd_desc desc;
	pid_t pid;

	say(w, "fd %d", fd);
	if (wp_fdinfo_describe(&w->look->fdinfo, fd, wp_clock_ns(), &desc))
		return;
	say(w, " %s", desc.text);
	pid = desc.kind == WP_FD_PIDFD ? wp_pid_namespace_pidfd(w->look, fd) :
					 0;
	if (pid) {
		say(w, " of");
		say_process(w, pid);
	}
}

static void futex_words(struct words *w)
{
	static const char *const names[] = {
		[FUTEX_WAIT] = "WAIT",
		[FUTEX_WAIT_BITSET] = "WAIT_BITSET",
		[FUTEX_LOCK_PI] = "LOCK_PI",
		[FUTEX_WAIT_REQUEUE_PI] = "WAIT_REQUEUE_PI",
		[13] = "LOCK_PI2",
	};
	unsigned int op = (unsigned int)w->thread->args[1] & FUTEX_CMD_MASK;

	say(w, " 0x%llx", (unsigned long long)w->thread->args[0]);
	if (op < sizeof(names) / sizeof(*names) && names[op])
		say(w, " %s", names[op]);
	if (w->thread->args[3])
		say(w, ", with a timeout");
}

static void poll_descriptors(struct words *w)
{
	uint64_t n = w->thread->args[1];
	struct pollfd fds[NAMED_MAX] = { 0 };
	size_t named = n < NAMED_MAX ? (size_t)n : NAMED_MAX;

	say(w, " of %llu descriptor%s", (unsigned long long)n,
	    n == 1 ? "" : "s");
	if (!named ||
	    !read_target(w, w->thread->args[0], fds, named * sizeof(*fds)))
		return;
	for (size_t i = 0; i < named; i++) {
		say(w, i ? ", " : ": ");
		say_fd(w, fds[i].fd);
	}
	if (n > named)
		say(w, ", ...");
}

static void poll_words(struct words *w)
{
	poll_descriptors(w);
	if (!strcmp(w->call, "poll"))
		say_most_ms(w, (int)w->thread->args[2]);
	else
		say_most_at(w, w->thread->args[2]);
}

static void select_descriptors(struct words *w)
{
	uint64_t n = w->thread->args[0], set[SET_WORDS] = { 0 };
	size_t words = (size_t)((n < 1024 ? n : 1024) + 63) / 64;
	unsigned int found = 0;

	if (!w->thread->args[1] ||
	    !read_target(w, w->thread->args[1], set, words * sizeof(*set)))
		return;
	for (unsigned int fd = 0; fd < n && fd < 1024; fd++) {
		if (!(set[fd / 64] >> fd % 64 & 1))
			continue;
		if (found++ == NAMED_MAX) {
			say(w, ", ...");
			return;
		}
		say(w, found == 1 ? " to read " : ", ");
		say_fd(w, (int)fd);
	}
}

static void select_words(struct words *w)
{
	uint64_t avma = w->thread->args[4];
	struct timeval tv = { 0 };

	select_descriptors(w);
	if (!strcmp(w->call, "pselect6"))
		say_most_at(w, avma);
	else if (avma && read_target(w, avma, &tv, sizeof(tv)))
		say_most(w,
			 &(struct timespec){ tv.tv_sec,
					     tv.tv_usec * (long)WP_NS_PER_US });
}

/* "tfd:" begins a line for each descriptor watched (proc_pid_fdinfo(5)). */
static void epoll_descriptors(struct words *w)
{
	struct wp_text text = WP_TEXT_INIT;
	char path[64];
	unsigned int n = 0;

	say(w, " fd %d", (int)w->thread->args[0]);
	snprintf(path, sizeof(path), "fdinfo/%d", (int)w->thread->args[0]);
	if (wp_text_read(&text, w->look->process.proc_fd, path, FDINFO_MAX))
		return;
	for (const char *p = strstr(text.data, "\ntfd:"); p;
	     p = strstr(p + 1, "\ntfd:"))
		n++;
	wp_text_clear(&text);
	say(w, " watching %u descriptor%s", n, n == 1 ? "" : "s");
}

static void epoll_words(struct words *w)
{
	epoll_descriptors(w);
	if (!strcmp(w->call, "epoll_pwait2"))
		say_most_at(w, w->thread->args[3]);
	else
		say_most_ms(w, (int)w->thread->args[3]);
}

static void sleep_words(struct words *w, uint64_t avma)
{
	struct timespec ts = { 0 };

	if (avma && read_target(w, avma, &ts, sizeof(ts)))
		say_time(w, &ts);
}

/* Until a time of a clock: what is left of it says more. */
static void sleep_until_words(struct words *w, clockid_t clock, uint64_t avma)
{
	struct timespec ts = { 0 }, now;
	double left;

	if (!avma || !read_target(w, avma, &ts, sizeof(ts)) ||
	    clock_gettime(clock, &now))
		return;
	left = (double)(ts.tv_sec - now.tv_sec) +
	       (double)(ts.tv_nsec - now.tv_nsec) / 1e9;
	say(w, " for %.*f s more", left < 10 ? 3 : 0, left);
}

static void wait_words(struct words *w, bool by_id, int id, bool group)
{
	pid_t pid = by_id ? wp_pid_namespace_child(w->look, id) : 0;

	if (pid)
		say_process(w, pid);
	else if (by_id)
		say(w, " pid %d, which is no child", id);
	else if (group)
		say(w, " any child of group %d", id);
	else
		say(w, " any child");
}

static void wait4_words(struct words *w)
{
	int pid = (int)w->thread->args[0];

	wait_words(w, pid > 0, pid > 0 ? pid : -pid, pid < -1);
}

static void waitid_words(struct words *w)
{
	unsigned int type = (unsigned int)w->thread->args[0];
	int id = (int)w->thread->args[1];

	if (type == WP_P_PIDFD) {
		say(w, " ");
		say_fd(w, id);
	} else {
		wait_words(w, type == P_PID, id, type == P_PGID);
	}
}

static void flock_words(struct words *w)
{
	say(w, " %s %s", w->object,
	    (w->thread->args[1] & LOCK_EX) ? "exclusively" : "shared");
}

static void fcntl_words(struct words *w)
{
	switch (w->thread->args[1]) {
	case F_SETLKW:
		say(w, " F_SETLKW");
		break;
	case F_OFD_SETLKW:
		say(w, " F_OFD_SETLKW");
		break;
	}
	say(w, " %s", w->object);
}

static void plain_words(struct words *w)
{
	if (w->object[0])
		say(w, " %s", w->object);
}

static void describe(struct words *w)
{
	const uint64_t *args = w->thread->args;
	const char *name = w->call;

	if (!strcmp(name, "futex"))
		futex_words(w);
	else if (!strcmp(name, "poll") || !strcmp(name, "ppoll"))
		poll_words(w);
	else if (!strcmp(name, "select") || !strcmp(name, "pselect6"))
		select_words(w);
	else if (!strncmp(name, "epoll_", 6) || !strncmp(name, "epoll_p", 7))
		epoll_words(w);
	else if (!strcmp(name, "nanosleep"))
		sleep_words(w, args[0]);
	else if (!strcmp(name, "clock_nanosleep") && args[1] & TIMER_ABSTIME)
		sleep_until_words(w, (clockid_t)args[0], args[2]);
	else if (!strcmp(name, "clock_nanosleep"))
		sleep_words(w, args[2]);
	else if (!strcmp(name, "wait4"))
		wait4_words(w);
	else if (!strcmp(name, "waitid"))
		waitid_words(w);
	else if (!strcmp(name, "flock"))
		flock_words(w);
	else if (!strcmp(name, "fcntl"))
		fcntl_words(w);
	else
		plain_words(w);
}

int wp_call_text(uint32_t *ret, struct wp_dump *dump,
		 struct wp_snapshot_process *look,
		 const struct wp_dump_thread *thread, const char *object)
{
	struct words w = { .look = look,
			   .thread = thread,
			   .object = object,
			   .call = wp_dump_str(dump, thread->syscall) };
	uint32_t id = 0;

	if (thread->state == WP_STATE_WAITING && w.call[0]) {
		say(&w, "%s", w.call);
		describe(&w);
		id = wp_intern_add_str(&dump->strings, w.text);
	}
	*ret = id;
	return id == UINT32_MAX ? -ENOMEM : 0;
}
