/* SPDX-License-Identifier: Apache-2.0 */
/* print_words.c - threads, processes, times and waits of a dump in words. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/lower_bound.h"

#include "print.h"

enum {
	/* Most processes that a wait names. */
	MAX_PEERS = 3,
};

void wp_print_time(struct wp_buf *buf, uint64_t ns)
{
	uint64_t s = ns / 1000000000, min = s / 60, h = min / 60;
	unsigned int tenth = (unsigned int)(ns / 100000000 % 10);

	if (ns < 1000000)
		wp_buf_printf(buf, "%" PRIu64 " us", ns / 1000);
	else if (!s)
		wp_buf_printf(buf, "%" PRIu64 " ms", ns / 1000000);
	else if (s < 10 && tenth)
		wp_buf_printf(buf, "%" PRIu64 ".%u s", s, tenth);
	else if (s < 120)
		wp_buf_printf(buf, "%" PRIu64 " s", s);
	else if (min < 60)
		wp_buf_printf(buf, "%" PRIu64 " min", min);
	else if (h < 48 && min % 60)
		wp_buf_printf(buf, "%" PRIu64 " h %" PRIu64 " min", h,
			      min % 60);
	else if (h < 48)
		wp_buf_printf(buf, "%" PRIu64 " h", h);
	else if (h % 24)
		wp_buf_printf(buf, "%" PRIu64 " d %" PRIu64 " h", h / 24,
			      h % 24);
	else
		wp_buf_printf(buf, "%" PRIu64 " d", h / 24);
}

void wp_print_quoted(struct wp_print *t, uint32_t id)
{
	const char *s = wp_dump_str(t->dump, id);
	size_t n;

	wp_buf_char(&t->buf, '"');
	for (; *s; s += n) {
		n = strcspn(s, "\"\\");
		if (!n) {
			wp_buf_char(&t->buf, '\\');
			wp_buf_char(&t->buf, *s);
			n = 1;
			continue;
		}
		wp_buf_reset(&t->part);
		wp_buf_add(&t->part, s, n);
		wp_buf_char(&t->part, '\0');
		if (!t->part.rc)
			wp_escape_terminal(&t->buf, t->part.data);
	}
	wp_buf_char(&t->buf, '"');
}

void wp_print_thread(struct wp_print *t, const struct wp_dump_thread *thread)
{
	wp_buf_printf(&t->buf, "thread %" PRId32 " ", thread->tid);
	wp_print_quoted(t, thread->name);
}

/* Thread TID; NULL: not in the dump. */
static const struct wp_dump_thread *find_thread(const struct wp_print *t,
						int32_t tid)
{
	uint32_t i = wp_dump_find_tid(t->dump, t->by_tid, tid);

	return i != UINT32_MAX ? &t->dump->threads[i] : NULL;
}

void wp_print_tid(struct wp_print *t, int32_t tid, uint32_t from)
{
	const struct wp_dump_thread *thread = find_thread(t, tid);

	if (!thread) {
		wp_buf_printf(&t->buf, "thread %" PRId32, tid);
		return;
	}
	wp_print_thread(t, thread);
	if (thread->process != from)
		wp_buf_printf(&t->buf, " of process %" PRId32,
			      t->dump->processes[thread->process].pid);
}

void wp_print_process(struct wp_print *t, int32_t pid)
{
	const struct wp_dump_thread *thread = find_thread(t, pid);

	wp_buf_printf(&t->buf, "process %" PRId32, pid);
	if (thread) {
		wp_buf_char(&t->buf, ' ');
		wp_print_quoted(t, thread->name);
	}
}

/* Is what is said of THREAD of another moment than what is said of the holder of
 * its lock? */
static bool is_apart(const struct wp_print *t,
		     const struct wp_dump_thread *thread)
{
	const struct wp_dump_thread *holder = find_thread(
		t, thread->lock.owner_tid);

	return thread->moved ||
	       (holder && holder->moved && holder->state == WP_STATE_WAITING);
}

static void put_holder(struct wp_print *t, const struct wp_dump_thread *thread)
{
	static const char gone[] = ", which is in the process no more (it"
				   " ended, or a fork copied the lock)";
	const struct wp_lock *lock = &thread->lock;
	struct wp_buf *buf = &t->buf;

	switch (lock->holder) {
	case WP_HOLDER_NOT_RECORDED:
		wp_buf_str(buf, ", holder not recorded");
		break;
	case WP_HOLDER_THREAD:
		wp_buf_str(buf, is_apart(t, thread) ? " held then by " :
						      " held by ");
		if (lock->owner_tid == thread->tid)
			wp_buf_str(buf, "itself");
		else
			wp_print_tid(t, lock->owner_tid, thread->process);
		break;
	case WP_HOLDER_GONE:
		wp_buf_str(buf, ", held by ");
		if (lock->owner_tid)
			wp_buf_printf(buf, "thread %" PRId32, lock->owner_tid);
		else
			wp_buf_str(buf, "a thread");
		wp_buf_str(buf, gone);
		break;
	case WP_HOLDER_READERS:
		wp_buf_printf(
			buf, " held by %" PRIu32 " reader%s (not recorded who)",
			lock->readers, wp_print_plural(lock->readers));
		break;
	default:
		break;
	}
}

void wp_print_variable(struct wp_print *t, const struct wp_dump_thread *thread)
{
	const char *name = wp_dump_str(t->dump, thread->variable);

	if (!*name)
		return;
	wp_buf_str(&t->buf, " <");
	wp_escape_terminal(&t->buf, name);
	wp_buf_char(&t->buf, '>');
}

static void put_lock(struct wp_print *t, const struct wp_dump_thread *thread)
{
	const struct wp_lock *lock = &thread->lock;
	const char *type = lock->type ? lock->type : "";

	wp_buf_printf(&t->buf, " %s%s", type, *type ? " " : "");
	/* The reasons "futex" and "condvar" say the kind. */
	if (lock->kind != WP_LOCK_CONDVAR &&
	    (lock->kind != WP_LOCK_FUTEX || thread->wait != WP_WAIT_FUTEX))
		wp_buf_printf(&t->buf, "%s ", wp_lock_kind_name(lock->kind));
	wp_buf_printf(&t->buf, "0x%" PRIx64, lock->avma);
	wp_print_variable(t, thread);
	if (lock->kind == WP_LOCK_RWLOCK_READ)
		wp_buf_str(&t->buf, " for reading");
	else if (lock->kind == WP_LOCK_RWLOCK_WRITE)
		wp_buf_str(&t->buf, " for writing");
	put_holder(t, thread);
}

static void put_join(struct wp_print *t, const struct wp_dump_thread *thread)
{
	const struct wp_lock *lock = &thread->lock;

	if (lock->kind != WP_LOCK_JOIN || lock->owner_tid <= 0)
		return;
	wp_buf_str(&t->buf, " of ");
	wp_print_tid(t, lock->owner_tid, thread->process);
	if (lock->holder == WP_HOLDER_GONE)
		wp_buf_str(&t->buf, ", which is in the process no more");
}

/* Write what THREAD waits for, without its edges. */
static void put_reason(struct wp_print *t, const struct wp_dump_thread *thread)
{
	char name[WP_PRINT_CALL_MAX];

	wp_buf_printf(&t->buf, ": %s", wp_wait_name(thread->wait));
	switch (thread->wait) {
	case WP_WAIT_SYSCALL:
		wp_buf_char(&t->buf, ':');
		wp_buf_str(&t->buf, wp_print_call_name(&thread->call, name));
		break;
	case WP_WAIT_JOIN:
		put_join(t, thread);
		break;
	case WP_WAIT_LOCK:
	case WP_WAIT_FUTEX:
		/* A file lock has no address: its edges name it. */
		if (thread->lock.kind == WP_LOCK_FILE)
			put_holder(t, thread);
		else if (thread->lock.kind != WP_LOCK_NONE &&
			 thread->lock.kind != WP_LOCK_JOIN)
			put_lock(t, thread);
		break;
	case WP_WAIT_CONDVAR:
		if (thread->lock.kind == WP_LOCK_CONDVAR)
			put_lock(t, thread);
		break;
	default:
		break;
	}
}

/* The first of by_from[] that starts from thread FROM or a later one. */
static uint32_t first_edge(const struct wp_print *t, uint32_t from)
{
	return WP_LOWER_BOUND(t->dump->nedges, i,
			      t->dump->edges[t->by_from[i]].from < from);
}

void wp_print_target(struct wp_print *t, const struct wp_edge *edge)
{
	const struct wp_dump_thread *from = &t->dump->threads[edge->from];

	if (edge->to == edge->from)
		wp_buf_str(&t->buf, "itself");
	else if (edge->to < t->dump->nthreads)
		wp_print_tid(t, t->dump->threads[edge->to].tid, from->process);
	else if (edge->to_process == from->process)
		wp_buf_str(&t->buf, "its own process");
	else
		wp_print_process(t, edge->to_pid);
}

/* Write the targets of THREAD's edges but for locks in memory. */
static void put_peers(struct wp_print *t, const struct wp_dump_thread *thread)
{
	uint32_t from = (uint32_t)(thread - t->dump->threads), n = 0;
	const char *joint = "or";

	for (uint32_t i = first_edge(t, from); i < t->dump->nedges; i++) {
		const struct wp_edge *e = &t->dump->edges[t->by_from[i]];

		if (e->from != from)
			break;
		if (e->kind == WP_EDGE_LOCK || e->kind == WP_EDGE_JOIN)
			continue;
		if (++n > MAX_PEERS)
			continue;
		if (n == 1 && e->kind == WP_EDGE_FILE_LOCK) {
			wp_buf_str(&t->buf,
				   thread->wait == WP_WAIT_LOCK ? " " : ", ");
			wp_escape_terminal(&t->buf,
					   wp_dump_str(t->dump, e->what));
			/* Each has it, alone or in a file that they share. */
			joint = "and";
			wp_buf_str(&t->buf, " held by ");
		} else if (n == 1) {
			wp_buf_str(&t->buf, ", waits for ");
		} else {
			wp_buf_printf(&t->buf, " %s ", joint);
		}
		wp_print_target(t, e);
	}
	if (n > MAX_PEERS)
		wp_buf_printf(&t->buf, " %s %" PRIu32 " more", joint,
			      n - MAX_PEERS);
}

void wp_print_same_add(struct wp_print_same *same,
		       const struct wp_dump_thread *thread)
{
	same->nthreads++;
	same->nstill += thread->times.still;
	if (thread->times.waited_ns == UINT64_MAX)
		return;
	if (same->least_ns > thread->times.waited_ns)
		same->least_ns = thread->times.waited_ns;
	if (same->most_ns == UINT64_MAX ||
	    same->most_ns < thread->times.waited_ns)
		same->most_ns = thread->times.waited_ns;
}

static void put_times(struct wp_print *t, const struct wp_print_same *same)
{
	size_t least, most;

	if (same->most_ns == UINT64_MAX)
		return;
	wp_buf_str(&t->buf, ", ");
	least = t->buf.len;
	wp_print_time(&t->buf, same->least_ns);
	most = t->buf.len;
	wp_buf_str(&t->buf, " to ");
	wp_print_time(&t->buf, same->most_ns);
	/* Not "3 min to 3 min". */
	if (!t->buf.rc && t->buf.len - most == most - least + 4 &&
	    !memcmp(t->buf.data + least, t->buf.data + most + 4, most - least))
		t->buf.len = most;
}

static void put_still(struct wp_print *t, const struct wp_print_same *same)
{
	if (!same->nstill)
		return;
	if (same->nstill == same->nthreads)
		wp_buf_str(&t->buf, ", still");
	else
		wp_buf_printf(&t->buf, ", %" PRIu32 " of %" PRIu32 " still",
			      same->nstill, same->nthreads);
	if (t->dump->interval_ns) {
		wp_buf_str(&t->buf, " for ");
		wp_print_time(&t->buf, t->dump->interval_ns);
	}
}

void wp_print_state(struct wp_print *t, const struct wp_dump_thread *thread,
		    const struct wp_print_same *same)
{
	wp_buf_printf(&t->buf, "[%s", wp_types_state_name(thread->state));
	if (thread->state == WP_STATE_WAITING) {
		if (thread->wait != WP_WAIT_NONE)
			put_reason(t, thread);
		if (same->nthreads == 1)
			put_peers(t, thread);
		put_times(t, same);
	}
	put_still(t, same);
	if (thread->stuck)
		wp_buf_str(&t->buf, ", stuck");
	wp_buf_char(&t->buf, ']');
}
