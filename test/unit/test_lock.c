/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: lock.  wp_lock_decode: words as glibc 2.36 and musl 1.2.3 write them,
 * the same words damaged, and the locks of this very process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "wallprof/lock.h"

enum {
	WAIT = 0,
	PRIVATE = 128,
	WAIT_BITSET = 9,
	REALTIME = 256,
	/* What glibc passes for most waits. */
	TIMED_WAIT = WAIT_BITSET | REALTIME | PRIVATE,
	LOCK_PI = 6,
	LOCK_PI2 = 13,
	WAIT_REQUEUE_PI = 11,
	WAITV_NR = 449,
	/* A thread that lives, in its own numbers; in ours it is +1000. */
	LIVE = 4242,
	LIVE_HERE = LIVE + 1000,
	/* One that does not. */
	DEAD = 4343,
};

#define BASE UINT64_C(0x7f0000001000)
#define W(x) (0x80000000u | (x))
#define DIED 0x40000000u

enum { NWORDS = 18 };

struct row {
	const char *what;
	/* The object, and where in it the futex is. */
	uint32_t words[NWORDS];
	uint32_t off;
	uint32_t op, val;
	/* Function of the C library that waits; NULL: no names. */
	const char *frame;
	enum wp_lock_kind kind;
	enum wp_holder holder;
	int32_t owner;
	uint32_t readers;
	const char *type;
	/* Of the lock, from BASE. */
	uint32_t lock_off;
};

#define MUTEX WP_LOCK_MUTEX
#define READ WP_LOCK_RWLOCK_READ
#define WRITE WP_LOCK_RWLOCK_WRITE
#define JOIN WP_LOCK_JOIN
#define FUTEX WP_LOCK_FUTEX
#define THREAD WP_HOLDER_THREAD
#define GONE WP_HOLDER_GONE
#define READERS WP_HOLDER_READERS
#define UNKNOWN WP_HOLDER_NOT_RECORDED

/* Links of a robust mutex. */
#define LINKS 0x1000, 0x7f00, 0x1008, 0x7f00

/* What these threads wait for is so, and whose it is. */
/* clang-format off */
static const struct row rows[] = {
	{ "normal", { 2, 0, LIVE, 1, 0x200 }, 0, WAIT | PRIVATE, 2,
	  "___pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0, "", 0 },
	{ "bare normal", { 2, 0, LIVE, 1, 0 }, 0, WAIT | PRIVATE, 2, NULL,
	  MUTEX, THREAD, LIVE_HERE, 0, "", 0 },
	{ "taken since", { 1, 0, LIVE, 1, 0 }, 0, WAIT | PRIVATE, 2,
	  "pthread_mutex_lock@@GLIBC_2.2.5", MUTEX, THREAD, LIVE_HERE, 0, "",
	  0 },
	{ "timed", { 2, 0, LIVE, 1, 0 }, 0, TIMED_WAIT, 2,
	  "__pthread_mutex_clocklock_common", MUTEX, THREAD, LIVE_HERE, 0, "",
	  0 },
	{ "recursive", { 2, 3, LIVE, 1, 1 }, 0, WAIT | PRIVATE, 2,
	  "pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0, "recursive", 0 },
	{ "error-checking", { 2, 0, LIVE, 1, 2 }, 0, WAIT | PRIVATE, 2,
	  "pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0, "error-checking",
	  0 },
	{ "adaptive", { 2, 0, LIVE, 1, 3, 10 }, 0, WAIT | PRIVATE, 2,
	  "__GI___pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0, "adaptive",
	  0 },
	{ "shared", { 2, 0, LIVE, 1, 0x280 }, 0, WAIT, 2, "pthread_mutex_lock",
	  MUTEX, THREAD, LIVE_HERE, 0, "", 0 },
	{ "shared with others", { 2, 0, DEAD, 1, 0x80 }, 0, WAIT, 2,
	  "pthread_mutex_lock", MUTEX, UNKNOWN, 0, 0, "", 0 },
	{ "its owner ended", { 2, 0, DEAD, 1, 0 }, 0, WAIT | PRIVATE, 2,
	  "pthread_mutex_lock", MUTEX, GONE, DEAD, 0, "", 0 },
	{ "priority ceiling", { 0x280002, 1, LIVE, 1, 0x40 }, 0, WAIT | PRIVATE,
	  0x280002, "pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0, "", 0 },
	{ "robust", { W(LIVE), 1, LIVE, 1, 0x290, 0, LINKS }, 0, WAIT, W(LIVE),
	  "pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0, "robust", 0 },
	{ "bare robust", { W(LIVE), 1, LIVE, 1, 0x91, 0, LINKS }, 0,
	  WAIT_BITSET | REALTIME, W(LIVE), NULL, MUTEX, THREAD, LIVE_HERE, 0,
	  "robust", 0 },
	{ "robust, inherited", { W(DIED | LIVE), 1, 0x7fffffff, 1, 0x90, 0,
	  LINKS }, 0, WAIT, W(LIVE), "pthread_mutex_lock", MUTEX, THREAD,
	  LIVE_HERE, 0, "robust", 0 },
	{ "robust, its owner ended", { W(DIED), 1, DEAD, 1, 0x90, 0, LINKS }, 0,
	  WAIT, W(DEAD), "pthread_mutex_lock", MUTEX, GONE, DEAD, 0, "robust",
	  0 },
	{ "robust, another process", { W(DEAD), 1, DEAD, 1, 0x90, 0, LINKS }, 0,
	  WAIT, W(DEAD), "pthread_mutex_lock", MUTEX, UNKNOWN, 0, 0, "robust",
	  0 },
	{ "PI", { W(LIVE), 1, LIVE, 1, 0x220 }, 0, LOCK_PI | PRIVATE, 0,
	  "__pthread_mutex_lock_full", MUTEX, THREAD, LIVE_HERE, 0, "PI", 0 },
	{ "PI, shared", { W(LIVE), 1, LIVE, 1, 0x2a0 }, 0, LOCK_PI2, 0, NULL,
	  MUTEX, THREAD, LIVE_HERE, 0, "PI", 0 },
	{ "PI, robust", { W(LIVE), 1, LIVE, 1, 0x2b0, 0, LINKS }, 0, LOCK_PI, 0,
	  "pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0, "robust", 0 },
	{ "PI, forked away from", { W(DEAD), 1, DEAD, 1, 0x20 }, 0,
	  LOCK_PI | PRIVATE, 0, "pthread_mutex_lock", MUTEX, GONE, DEAD, 0,
	  "PI", 0 },
	{ "PI of no library", { 7, W(LIVE), 0xffffffff, 7, 7, 7, 7 }, 4,
	  LOCK_PI | PRIVATE, 0, "syscall", MUTEX, THREAD, LIVE_HERE, 0, "PI",
	  4 },
	{ "after a condvar", { 2, 0, LIVE, 9, 0 }, 0, WAIT | PRIVATE, 2,
	  "pthread_cond_wait", MUTEX, THREAD, LIVE_HERE, 0, "", 0 },
	{ "reader, writer", { 0xb, 0, 3, 1, 0, 0, LIVE }, 8, TIMED_WAIT, 3,
	  "___pthread_rwlock_rdlock", READ, THREAD, LIVE_HERE, 0, "", 0 },
	{ "bare reader", { 0x1b, 0, 3, 3, 0, 0, LIVE }, 8, TIMED_WAIT, 3, NULL,
	  READ, THREAD, LIVE_HERE, 0, "", 0 },
	{ "shared reader", { 0xb, 0, 3, 1, 0, 0, LIVE, 1, 0, 0, 0, 0, 2 }, 8,
	  WAIT_BITSET | REALTIME, 3, "pthread_rwlock_timedrdlock", READ, THREAD,
	  LIVE_HERE, 0, "", 0 },
	{ "writer, writer", { 0x13, 0, 3, 3, 0, 0, LIVE }, 12, TIMED_WAIT, 3,
	  "pthread_rwlock_wrlock", WRITE, THREAD, LIVE_HERE, 0, "", 0 },
	{ "bare writer", { 3, 1, 1, 3, 0, 0, LIVE, 0, 0, 0, 0, 0, 2 }, 12,
	  TIMED_WAIT, 3, NULL, WRITE, THREAD, LIVE_HERE, 0, "", 0 },
	{ "writer, writer ended", { 3, 0, 1, 3, 0, 0, DEAD }, 12, TIMED_WAIT, 3,
	  "pthread_rwlock_wrlock", WRITE, GONE, DEAD, 0, "", 0 },
	{ "writer, another process", { 3, 0, 1, 3, 0, 0, DEAD, 1 }, 12,
	  WAIT_BITSET | REALTIME, 3, "pthread_rwlock_wrlock", WRITE, UNKNOWN, 0,
	  0, "", 0 },
	{ "writer, readers", { 0x12, 0, 2, 1 }, 8, TIMED_WAIT, 2,
	  "pthread_rwlock_clockwrlock", WRITE, READERS, 0, 2, "", 0 },
	{ "second writer, readers", { 0xa, 0, 2, 3 }, 12, TIMED_WAIT, 3,
	  "pthread_rwlock_wrlock", WRITE, READERS, 0, 1, "", 0 },
	{ "reader behind a writer", { 0xe, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 2 },
	  0, TIMED_WAIT, 0xe, "pthread_rwlock_rdlock", READ, READERS, 0, 1, "",
	  0 },
	{ "writer of yet unknown name", { 0xb, 0, 3, 1 }, 8, TIMED_WAIT, 3,
	  "pthread_rwlock_rdlock", READ, UNKNOWN, 0, 0, "", 0 },
	{ "writer, nobody yet", { 2, 0, 0, 3 }, 12, TIMED_WAIT, 3,
	  "pthread_rwlock_wrlock", WRITE, UNKNOWN, 0, 0, "", 0 },
	{ "writer where readers read", { 0xa, 0, 2, 3, 0, 0, LIVE }, 8,
	  TIMED_WAIT, 2, "pthread_rwlock_wrlock", WRITE, UNKNOWN, 0, 0, "", 0 },
	{ "private join", { LIVE }, 0, TIMED_WAIT, LIVE, "pthread_join", JOIN,
	  UNKNOWN, 0, 0, "", 0 },
	{ "join", { LIVE }, 0, WAIT_BITSET | REALTIME, LIVE,
	  "__pthread_clockjoin_ex", JOIN, THREAD, LIVE_HERE, 0, "", 0 },
	/* next and prev: itself, as in a list without others. */
	{ "bare join", { 0x1000, 0x7f00, 0x1000, 0x7f00, LIVE }, 16,
	  WAIT_BITSET | REALTIME, LIVE, NULL, JOIN, THREAD, LIVE_HERE, 0, "",
	  16 },
	{ "joined thread has ended", { 0 }, 0, WAIT_BITSET | REALTIME, LIVE,
	  "pthread_join", JOIN, UNKNOWN, 0, 0, "", 0 },
	{ "musl recursive", { 1, W(LIVE), 1, 0, 0, 0, LINKS }, 4,
	  WAIT | PRIVATE, W(LIVE), "__pthread_mutex_timedlock", MUTEX, THREAD,
	  LIVE_HERE, 0, "recursive", 0 },
	{ "bare musl error-checking", { 2, W(LIVE), 1, 0, 0, 0, LINKS }, 4,
	  WAIT | PRIVATE, W(LIVE), NULL, MUTEX, THREAD, LIVE_HERE, 0,
	  "error-checking", 0 },
	{ "musl robust", { 4, W(LIVE), 1, 0, 0, 0, LINKS }, 4, WAIT | PRIVATE,
	  W(LIVE), "pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0, "robust",
	  0 },
	{ "musl PI", { 8, W(LIVE), 0, 0, 0, 0, LINKS }, 4, LOCK_PI | PRIVATE, 0,
	  "pthread_mutex_timedlock_pi", MUTEX, THREAD, LIVE_HERE, 0, "PI", 0 },
	{ "musl shared recursive", { 0x81, W(LIVE), 1, 0, 0, 16, LINKS }, 4,
	  WAIT, W(LIVE), "pthread_mutex_lock", MUTEX, THREAD, LIVE_HERE, 0,
	  "recursive", 0 },
	{ "musl, its owner ended", { 1, W(DIED), 1, 0, 0, 0, LINKS }, 4,
	  WAIT | PRIVATE, W(DIED), "pthread_mutex_lock", MUTEX, GONE, 0, 0,
	  "recursive", 0 },
	{ "musl reader", { 0xffffffff, 1 }, 0, WAIT | PRIVATE, 0xffffffff,
	  "pthread_rwlock_rdlock", READ, UNKNOWN, 0, 0, "", 0 },
	{ "musl writer, writer", { 0xffffffff, 1 }, 0, WAIT | PRIVATE,
	  0xffffffff, "pthread_rwlock_wrlock", WRITE, UNKNOWN, 0, 0, "", 0 },
	{ "musl writer, readers", { W(2), 1 }, 0, WAIT | PRIVATE, W(2),
	  "__pthread_rwlock_timedwrlock", WRITE, READERS, 0, 2, "", 0 },
#if defined(__x86_64__)
	/* self, dtv, prev, next, sysinfo, canary, tid, errno, state. */
	{ "musl join", { 0x1000, 0x7f00, 0, 0, 0x1000, 0x7f00, 0x1000, 0x7f00,
	  0, 0, 5, 5, LIVE, 0, 2 }, 56, WAIT | PRIVATE, 2, NULL, JOIN, THREAD,
	  LIVE_HERE, 0, "", 56 },
#endif
	{ "musl join, another layout", { 0, 0, 0, 0, 2 }, 16, WAIT | PRIVATE, 2,
	  "pthread_timedjoin_np", JOIN, UNKNOWN, 0, 0, "", 16 },
};
/* clang-format on */

/* Whom these wait for, nobody can tell. */
/* clang-format off */
static const struct row unknowns[] = {
	{ .what = "musl normal", .words = { 0, W(16), 1 }, .off = 4,
	  .op = WAIT | PRIVATE, .val = W(16), .frame = "pthread_mutex_lock" },
	{ .what = "malloc", .words = { 2, 0, LIVE, 1 }, .op = WAIT | PRIVATE,
	  .val = 2, .frame = "malloc" },
	{ .what = "arena", .words = { 2, 0, 1, 0, 0, 0x7f00 },
	  .op = WAIT | PRIVATE, .val = 2 },
	{ .what = "stdio", .words = { 2, 1, LIVE, 0x7f00 },
	  .op = WAIT | PRIVATE, .val = 2 },
	{ .what = "mutex in Rust", .words = { 2, 0, LIVE, 1 },
	  .op = WAIT_BITSET | PRIVATE, .val = 2,
	  .frame = "std::sys::sync::mutex::futex::Mutex::lock_contended" },
	{ .what = "mutex in GLib", .words = { 2, 0, LIVE, 1 },
	  .op = WAIT | PRIVATE, .val = 2, .frame = "syscall" },
	{ .what = "once", .words = { 1 }, .op = WAIT | PRIVATE, .val = 1,
	  .frame = "pthread_once" },
	{ .what = "a kind of no glibc", .words = { 2, 0, LIVE, 1, 0x400 },
	  .op = WAIT | PRIVATE, .val = 2, .frame = "pthread_mutex_lock" },
	{ .what = "destroyed", .words = { 2, 0, LIVE, 1, 0xffffffff },
	  .op = WAIT | PRIVATE, .val = 2, .frame = "pthread_mutex_lock" },
	{ .what = "kind says shared, call private",
	  .words = { 2, 0, LIVE, 1, 0x80 }, .op = WAIT | PRIVATE, .val = 2,
	  .frame = "pthread_mutex_lock" },
	{ .what = "kind says private, call shared",
	  .words = { 2, 0, LIVE, 1, 0 }, .op = WAIT, .val = 2,
	  .frame = "pthread_mutex_lock" },
	{ .what = "unlocked", .words = { 0, 0, LIVE, 1, 0 },
	  .op = WAIT | PRIVATE, .val = 2, .frame = "pthread_mutex_lock" },
	{ .what = "no users", .words = { 2, 0, LIVE, 0, 0 },
	  .op = WAIT | PRIVATE, .val = 2, .frame = "pthread_mutex_lock" },
	{ .what = "normal with a count", .words = { 2, 1, LIVE, 1, 0 },
	  .op = WAIT | PRIVATE, .val = 2, .frame = "pthread_mutex_lock" },
	{ .what = "recursive without", .words = { 2, 0, LIVE, 1, 1 },
	  .op = WAIT | PRIVATE, .val = 2, .frame = "pthread_mutex_lock" },
	{ .what = "another value", .words = { 2, 0, LIVE, 1, 0 },
	  .op = WAIT | PRIVATE, .val = 1, .frame = "pthread_mutex_lock" },
	{ .what = "condvar itself", .words = { 2, 0, LIVE, 1, 0 },
	  .op = TIMED_WAIT, .val = 2, .frame = "pthread_cond_wait" },
	{ .what = "bare, dead owner", .words = { 2, 0, DEAD, 1, 0 },
	  .op = WAIT | PRIVATE, .val = 2 },
	{ .what = "bare, links", .words = { 2, 0, LIVE, 1, 0, 0, 1 },
	  .op = WAIT | PRIVATE, .val = 2 },
	{ .what = "bare, a bit of two layouts", .off = 12,
	  .words = { 3, 0xb, 3, 3, 0, 0, LIVE, LIVE },
	  .op = TIMED_WAIT, .val = 3 },
	{ .what = "bare writer, readers", .words = { 0x12, 0, 2, 1 }, .off = 8,
	  .op = TIMED_WAIT, .val = 2 },
	{ .what = "rwlock before 2.25", .off = 8,
	  .words = { 0, 0, 3, 1, 1, 0, LIVE }, .op = TIMED_WAIT, .val = 3,
	  .frame = "pthread_rwlock_rdlock" },
	{ .what = "bare join of no thread",
	  .words = { 0x1000, 0x7f00, 0x1008, 0x7f00, LIVE }, .off = 16,
	  .op = WAIT_BITSET | REALTIME, .val = LIVE },
	{ .what = "bare musl, its owner ended",
	  .words = { 1, W(DIED), 1, 0, 0, 0, LINKS }, .off = 4,
	  .op = WAIT | PRIVATE, .val = W(DIED) },
	{ .what = "bare musl join of no thread",
	  .words = { 0x1000, 0x7f00, 0, 0, 0x1000, 0x7f00, 0x1038, 0x7f00, 0, 0,
		     5, 5, LIVE, 0, 2 },
	  .off = 56, .op = WAIT | PRIVATE, .val = 2 },
	{ .what = "bare musl join of a thread that nobody knows",
	  .words = { 0x1000, 0x7f00, 0, 0, 0x1001, 0x7f00, 0x1000, 0x7f00, 0, 0,
		     5, 5, LIVE, 0, 2 },
	  .off = 56, .op = WAIT | PRIVATE, .val = 2 },
	{ .what = "requeued", .words = { W(LIVE) }, .op = WAIT_REQUEUE_PI },
	{ .what = "wake", .words = { 2, 0, LIVE, 1, 0 }, .op = 1 | PRIVATE,
	  .val = 2, .frame = "pthread_mutex_lock" },
	{ .what = "musl type of none", .words = { 3, W(LIVE), 1 }, .off = 4,
	  .op = WAIT | PRIVATE, .val = W(LIVE),
	  .frame = "pthread_mutex_lock" },
	{ .what = "musl, dead owner", .words = { 1, W(DEAD), 1 }, .off = 4,
	  .op = WAIT | PRIVATE, .val = W(DEAD),
	  .frame = "pthread_mutex_lock" },
	{ .what = "bare musl without links", .words = { 1, W(LIVE), 1 },
	  .off = 4, .op = WAIT | PRIVATE, .val = W(LIVE) },
};
/* clang-format on */

enum {
	NROWS = sizeof(rows) / sizeof(*rows),
	NUNKNOWNS = sizeof(unknowns) / sizeof(*unknowns),
};

/* The target: BYTES[0..len) at AVMA and nothing else. */
struct target {
	uint64_t avma;
	const unsigned char *bytes;
	size_t len;
	/* What the bytes are from read number CHANGES_AT on, counted from 0. */
	const unsigned char *later;
	unsigned int changes_at;
	unsigned int nreads;
};

static enum wp_mem_result read_target(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	struct target *t = ctx;
	const unsigned char *bytes = t->bytes;

	/* Whoever asks for more than there is of addresses has wrapped. */
	assert_true(avma <= UINT64_MAX - len);
	if (t->later && t->nreads >= t->changes_at)
		bytes = t->later;
	t->nreads++;
	if (avma < t->avma || avma - t->avma > t->len ||
	    len > t->len - (avma - t->avma))
		return WP_MEM_UNREADABLE;
	memcpy(buf, bytes + (avma - t->avma), len);
	return WP_MEM_OK;
}

static int32_t find_one(void *ctx, int32_t tid)
{
	(void)ctx;
	assert_in_range(tid, 1, 4194304);
	return tid == LIVE ? LIVE_HERE : 0;
}

enum { FRAMES_MAX = 128, LIBC = 1, PROGRAM = 2 };

/* A waiting thread, and what is decoded of it. */
struct waiter {
	long syscall_nr;
	uint64_t args[6];
	enum wp_wait by_stack;
	struct wp_lock_frame frames[FRAMES_MAX];
	uint32_t nframes;
	uint64_t sp_avma;
	struct wp_lock lock;
	enum wp_wait wait;
	bool timed;
};

static void add_frame(struct waiter *t, const char *name, uint32_t module)
{
	assert_true(t->nframes < FRAMES_MAX);
	t->frames[t->nframes++] = (struct wp_lock_frame){ name, module, false };
}

static void decode(struct waiter *t, const struct wp_lock_query *query)
{
	const struct wp_lock_wait wait = {
		.syscall_nr = t->syscall_nr,
		.args = t->args,
		.wait = t->by_stack,
		.frames = t->frames,
		.nframes = t->nframes,
		.sp_avma = t->sp_avma,
	};
	struct wp_lock_answer answer;

	wp_lock_decode(&wait, query, &answer);
	t->lock = answer.lock;
	t->wait = answer.wait;
	t->timed = t->args[3] != 0;
}

/* The thread of ROW in TARGET. */
static struct waiter decode_row(const struct row *row, struct target *target,
				enum wp_wait wait)
{
	const struct wp_lock_query query = {
		{ read_target, target }, find_one, NULL, false, { NULL, NULL }
	};

	struct waiter t = { .syscall_nr = SYS_futex, .by_stack = wait };

	if (row->frame) {
		add_frame(&t, "__futex_abstimed_wait_common64", LIBC);
		add_frame(&t, row->frame, LIBC);
	} else {
		add_frame(&t, "libc.so.6+0x82f16", LIBC);
	}
	add_frame(&t, "main", PROGRAM);
	t.args[0] = BASE + row->off;
	t.args[1] = row->op;
	/* /proc shows an int with its sign. */
	t.args[2] = (uint64_t)(int32_t)row->val;
	decode(&t, &query);
	return t;
}

static struct target target_of(const struct row *row)
{
	return (struct target){ .avma = BASE,
				.bytes = (const unsigned char *)row->words,
				.len = sizeof(row->words) };
}

static void assert_row(const struct row *row, const struct waiter *t)
{
	const struct wp_lock *l = &t->lock;

	if (l->kind != row->kind || l->holder != row->holder ||
	    l->owner_tid != row->owner || l->readers != row->readers ||
	    strcmp(l->type, row->type) || l->avma != BASE + row->lock_off ||
	    t->wait != (row->kind == JOIN ? WP_WAIT_JOIN : WP_WAIT_LOCK))
		fail_msg("%s: kind %d holder %s tid %d readers %u \"%s\" at "
			 "+%ld, wait %s",
			 row->what, l->kind, wp_lock_holder_name(l->holder),
			 l->owner_tid, l->readers, l->type,
			 (long)(l->avma - BASE), wp_wait_name(t->wait));
}

static bool is_unknown(const struct wp_lock *l)
{
	return l->holder == UNKNOWN && !l->owner_tid && !l->readers;
}

static void assert_undecoded(const struct row *row, const struct waiter *t)
{
	if (t->lock.kind != FUTEX || !is_unknown(&t->lock) ||
	    t->lock.avma != BASE + row->off || *t->lock.type)
		fail_msg("%s: kind %d holder %s tid %d", row->what,
			 t->lock.kind, wp_lock_holder_name(t->lock.holder),
			 t->lock.owner_tid);
}

static void each_kind_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		struct target target = target_of(&rows[i]);

		struct waiter t = decode_row(&rows[i], &target, WP_WAIT_FUTEX);

		assert_row(&rows[i], &t);
	}
}

/* That is of whatever process: who else has the memory is not known here. */
static void a_shared_mutex_has_its_owners_tid(void **state)
{
	static const uint32_t let_go[NWORDS] = { [4] = 0x80 };
	unsigned int nshared = 0;

	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		bool is_shared = !strcmp(rows[i].what, "shared with others") ||
				 !strcmp(rows[i].what,
					 "robust, another process");
		struct target target = target_of(&rows[i]);
		struct waiter t = decode_row(&rows[i], &target, WP_WAIT_FUTEX);

		assert_int_equal(t.lock.shared_owner, is_shared ? DEAD : 0);
		nshared += is_shared;
		if (!is_shared)
			continue;
		target.later = (const unsigned char *)let_go;
		target.nreads = 0;
		target.changes_at = 1;
		t = decode_row(&rows[i], &target, WP_WAIT_FUTEX);
		assert_int_equal(t.lock.shared_owner, 0);
	}
	assert_int_equal(nshared, 2);
}

static void what_fails_a_check_is_not_guessed(void **state)
{
	(void)state;
	for (size_t i = 0; i < NUNKNOWNS; i++) {
		struct target target = target_of(&unknowns[i]);
		struct waiter t = decode_row(&unknowns[i], &target,
					     WP_WAIT_LOCK);

		assert_undecoded(&unknowns[i], &t);
		assert_int_equal(t.wait, WP_WAIT_LOCK);
	}
}

/* Either all that is needed could be read, or it is not known. */
static void assert_row_or_less(const struct row *row, const struct waiter *t)
{
	struct row less = *row;

	/* That a mutex is PI is in the call. */
	if ((row->op & 127) == LOCK_PI && !strcmp(t->lock.type, "PI")) {
		less.type = "PI";
		less.lock_off = (uint32_t)(t->lock.avma - BASE);
	}
	if (!is_unknown(&t->lock))
		assert_row(&less, t);
}

static void every_part_of_memory_is_safe(void **state)
{
	const size_t all = sizeof(rows[0].words);

	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		for (size_t n = 0; n <= 2 * all; n++) {
			/* The first n bytes, then all but the first n. */
			size_t from = n > all ? n - all : 0;
			size_t len = n > all ? all - from : n;
			unsigned char *exact = test_malloc(len ? len : 1);
			struct target target = { .avma = BASE + from,
						 .bytes = exact,
						 .len = len };
			struct waiter t;

			memcpy(exact, (const char *)rows[i].words + from, len);
			t = decode_row(&rows[i], &target, WP_WAIT_FUTEX);
			assert_row_or_less(&rows[i], &t);
			test_free(exact);
		}
	}
}

/* What ROW gives when its memory is LATER's from one read on: how often, over
 * all reads, its holder is not known.  Else it is AFTER: the last read
 * decides. */
static unsigned int count_unknown(const struct row *row,
				  const struct row *later, enum wp_holder after,
				  unsigned int *ret_nreads)
{
	struct target target = target_of(row);
	unsigned int count = 0, nreads;

	decode_row(row, &target, WP_WAIT_FUTEX);
	nreads = target.nreads;
	target.later = (const unsigned char *)later->words;
	for (unsigned int n = 0; n < nreads; n++) {
		struct waiter t;

		target.nreads = 0;
		target.changes_at = n;
		t = decode_row(row, &target, WP_WAIT_FUTEX);
		if (is_unknown(&t.lock))
			count++;
		else
			assert_int_equal(t.lock.holder, after);
	}
	*ret_nreads = nreads;
	return count;
}

static void a_lock_that_is_let_go_meanwhile_has_no_holder(void **state)
{
	const struct row zeros = { 0 };
	struct row unlocked;

	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		unsigned int nreads, n;

		n = count_unknown(&rows[i], &zeros, UNKNOWN, &nreads);
		if (n != nreads)
			fail_msg("%s: %u", rows[i].what, n);
		if (rows[i].kind != MUTEX)
			continue;
		unlocked = rows[i];
		unlocked.words[rows[i].off / 4] = 0;
		n = count_unknown(&rows[i], &unlocked, UNKNOWN, &nreads);
		if (n != nreads)
			fail_msg("%s, unlocked: %u", rows[i].what, n);
	}
}

static void another_owner_meanwhile_is_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		struct row later = rows[i];
		unsigned int nreads, n;

		if (rows[i].holder != THREAD || rows[i].kind == JOIN)
			continue;
		for (size_t k = 0; k < NWORDS; k++)
			if ((later.words[k] & 0x3fffffff) == LIVE)
				later.words[k] += DEAD - LIVE;
		n = count_unknown(&rows[i], &later, GONE, &nreads);
		if (!n)
			fail_msg("%s", rows[i].what);
	}
}

/* xorshift64 */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void garbage_names_nobody(void **state)
{
	uint64_t seed = 88172645463325252u;

	(void)state;
	for (size_t i = 0; i < 200000; i++) {
		struct row row = rows[i % NROWS];
		struct target target = target_of(&row);
		struct waiter t;

		/* Numbers of all sizes; LIVE only by a chance of one to
		 * millions, which the seed does not meet. */
		for (size_t k = 0; k < NWORDS; k++)
			row.words[k] = (uint32_t)(next_random(&seed) >>
						  (seed % 64));
		t = decode_row(&row, &target, WP_WAIT_FUTEX);
		assert_int_not_equal(t.lock.holder, THREAD);
		if (!row.frame)
			assert_true(is_unknown(&t.lock));
		assert_true(t.lock.kind && t.lock.type);
	}
}

static void one_damaged_word_names_nobody_else(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (size_t i = 0; i < 100000; i++) {
		struct row row = rows[i % NROWS];
		struct target target = target_of(&row);
		struct waiter t;

		row.words[next_random(&seed) % NWORDS] ^=
			(uint32_t)1 << next_random(&seed) % 32;
		t = decode_row(&row, &target, WP_WAIT_FUTEX);
		if (t.lock.holder == THREAD)
			assert_int_equal(t.lock.owner_tid, LIVE_HERE);
		else if (t.lock.holder != GONE)
			assert_int_equal(t.lock.owner_tid, 0);
	}
}

static void addresses_at_the_ends_do_not_wrap(void **state)
{
	static const unsigned char zeros[64];

	(void)state;
	for (size_t i = 0; i < NROWS; i++) {
		for (uint64_t a = 0; a < 128; a++) {
			struct target target = { .bytes = zeros, .len = 64 };
			const struct wp_lock_query query = { { read_target,
							       &target },
							     find_one,
							     NULL,
							     false,
							     { NULL, NULL } };
			struct waiter t = decode_row(&rows[i], &target,
						     WP_WAIT_FUTEX);

			for (int high = 0; high < 2; high++) {
				t.args[0] = high ? UINT64_MAX - a : a;
				target.avma = high ? UINT64_MAX - 63 : 0;
				decode(&t, &query);
				assert_int_not_equal(t.lock.holder, THREAD);
			}
		}
	}
}

static void what_is_not_held_has_no_holder(void **state)
{
	static const enum wp_wait waits[] = { WP_WAIT_CONDVAR,
					      WP_WAIT_SEMAPHORE,
					      WP_WAIT_BARRIER };
	struct row row = { .words = { 2, 0, LIVE, 1, 0 },
			   .op = TIMED_WAIT,
			   .val = 2 };
	static const char *const frames[] = { NULL, "pthread_cond_wait",
					      "__new_sem_wait_slow64",
					      "pthread_barrier_wait" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (size_t k = 0; k < 4; k++) {
			struct target target = target_of(&row);
			struct waiter t;

			row.frame = frames[k];
			t = decode_row(&row, &target, waits[i]);
			assert_int_equal(t.lock.kind, FUTEX);
			assert_int_equal(t.lock.holder, WP_HOLDER_NONE);
			assert_int_equal(t.wait, waits[i]);
		}
	}
}

/* The frame that says so lies deep, or where it says nothing. */
static void only_frames_of_the_wait_itself_count(void **state)
{
	/* It only decides where its owner does not live. */
	const struct row row = { .words = { 2, 0, DEAD, 1, 0 },
				 .op = WAIT | PRIVATE,
				 .val = 2 };
	static const struct {
		const char *name[3];
		uint32_t module;
		bool counts, is_guessed;
	} stacks[] = {
		{ { "__lll_lock_wait", "pthread_mutex_lock", "main" },
		  LIBC,
		  true,
		  false },
		{ { "__lll_lock_wait", "pthread_mutex_lock", "main" },
		  LIBC,
		  false,
		  true },
		{ { "", "libc.so.6+0x1", "pthread_mutex_lock" },
		  LIBC,
		  true,
		  false },
		{ { "__lll_lock_wait", "__restore_rt", "pthread_mutex_lock" },
		  LIBC,
		  false,
		  false },
		{ { "__lll_lock_wait_private", "malloc", "pthread_mutex_lock" },
		  LIBC,
		  false,
		  false },
		{ { "__lll_lock_wait", "", "pthread_mutex_lock" },
		  PROGRAM,
		  false,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
		struct target target = target_of(&row);
		const struct wp_lock_query query = { { read_target, &target },
						     find_one,
						     NULL,
						     false,
						     { NULL, NULL } };
		struct waiter t = decode_row(&row, &target, WP_WAIT_LOCK);

		t.nframes = 0;
		for (size_t k = 0; k < 3; k++)
			add_frame(&t, stacks[i].name[k],
				  k < 2 ? LIBC : stacks[i].module);
		t.frames[1].guessed = stacks[i].is_guessed;
		decode(&t, &query);
		if (stacks[i].counts)
			assert_int_equal(t.lock.holder, GONE);
		else
			assert_undecoded(&row, &t);
	}
}

static void a_lock_of_python_is_told_by_its_function(void **state)
{
	const struct row row = { .words = { 0, LIVE, 1 },
				 .op = TIMED_WAIT,
				 .val = 0 };
	static const struct {
		const char *name[3];
		uint32_t second;
		bool is_python;
	} stacks[] = {
		{ { "do_futex_wait.constprop.0", "__new_sem_wait_slow64",
		    "PyThread_acquire_lock_timed" },
		  LIBC,
		  true },
		{ { "sem_wait", "_PySemaphore_Wait", "_PyParkingLot_Park" },
		  PROGRAM,
		  true },
		{ { "sem_wait", "_PyParkingLot_Park", "_PyMutex_LockTimed" },
		  PROGRAM,
		  true },
		{ { "sem_wait", "queue_pop", "PyThread_acquire_lock_timed" },
		  PROGRAM,
		  false },
		{ { "__lll_lock_wait", "__restore_rt",
		    "PyThread_acquire_lock_timed" },
		  LIBC,
		  false },
		{ { "sem_wait", "take_gil", "PyEval_RestoreThread" },
		  PROGRAM,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
		struct target target = target_of(&row);
		const struct wp_lock_query query = { { read_target, &target },
						     find_one,
						     NULL,
						     false,
						     { NULL, NULL } };
		struct waiter t = decode_row(&row, &target, WP_WAIT_LOCK);

		t.nframes = 0;
		for (size_t k = 0; k < 3; k++)
			add_frame(&t, stacks[i].name[k],
				  k == 0 ? LIBC :
				  k == 1 ? stacks[i].second :
					   PROGRAM);
		decode(&t, &query);
		assert_int_equal(t.lock.kind == WP_LOCK_PYTHON,
				 stacks[i].is_python);
		assert_int_equal(t.wait, WP_WAIT_LOCK);
		assert_int_equal(t.lock.holder, WP_HOLDER_NOT_RECORDED);
	}
}

static void a_frame_too_deep_does_not_count(void **state)
{
	const struct row row = { .words = { 2, 0, DEAD, 1, 0 },
				 .op = WAIT | PRIVATE,
				 .val = 2 };
	struct target target = target_of(&row);
	const struct wp_lock_query query = {
		{ read_target, &target }, find_one, NULL, false, { NULL, NULL }
	};
	struct waiter t = decode_row(&row, &target, WP_WAIT_LOCK);

	(void)state;
	t.nframes = 0;
	while (t.nframes < 100)
		add_frame(&t, "", LIBC);
	add_frame(&t, "pthread_mutex_lock", LIBC);
	decode(&t, &query);
	assert_undecoded(&row, &t);
}

static void several_words_have_no_holder(void **state)
{
	static const struct {
		uint32_t op;
	} ops[] = {
		{ WAIT },    { WAIT | PRIVATE },     { TIMED_WAIT },
		{ LOCK_PI }, { LOCK_PI2 | PRIVATE }, { WAIT_REQUEUE_PI },
		{ 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		const struct row row = { .op = ops[i].op };
		struct target target = target_of(&row);
		const struct wp_lock_query query = { { read_target, &target },
						     find_one,
						     NULL,
						     false,
						     { NULL, NULL } };
		struct waiter t = decode_row(&row, &target, WP_WAIT_FUTEX);

		t.syscall_nr = WAITV_NR;
		decode(&t, &query);
		assert_int_equal(t.lock.kind, FUTEX);
		assert_true(is_unknown(&t.lock));
	}
}

/* From here on: threads of this process. */
struct blocked {
	const char *what;
	/* Waits for OBJECT for ever. */
	void *(*wait)(void *arg);
	void *object;
	/* Function of the C library that it waits in. */
	const char *frame;
	enum wp_lock_kind kind;
	enum wp_holder holder;
	uint32_t readers;
	const char *type;
	/* The futex call itself has a time limit. */
	bool timed;
	/* Memory alone shows as much. */
	bool is_told_bare;
	enum wp_wait wait_hint;
	/* 0: main. */
	int32_t owner;
};

static const struct timespec far = { INT64_C(4000000000), 0 };
static _Atomic int32_t waiter_tid, other_tid;
static pthread_t other;
static pthread_mutex_t mutexes[16];
static pthread_rwlock_t rwlocks[8];
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static FILE *file;

#define WAITER(name, ...)                                                      \
	static void *name(void *arg)                                           \
	{                                                                      \
		waiter_tid = (int32_t)syscall(SYS_gettid);                     \
		__VA_ARGS__;                                                   \
		return arg;                                                    \
	}

WAITER(lock, pthread_mutex_lock(arg))
WAITER(lock_timed, pthread_mutex_timedlock(arg, &far))
WAITER(lock_clock, pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &far))
WAITER(lock_read, pthread_rwlock_rdlock(arg))
WAITER(lock_read_timed, pthread_rwlock_timedrdlock(arg, &far))
WAITER(lock_write, pthread_rwlock_wrlock(arg))
WAITER(lock_write_clock, pthread_rwlock_clockwrlock(arg, CLOCK_MONOTONIC, &far))
WAITER(wait_cond, pthread_mutex_lock(&cond_mutex);
       pthread_cond_wait(arg, &cond_mutex))
WAITER(wait_sem, sem_wait(arg))
WAITER(wait_barrier, pthread_barrier_wait(arg))
WAITER(join, pthread_join(*(pthread_t *)arg, NULL))
WAITER(join_timed, pthread_timedjoin_np(*(pthread_t *)arg, NULL, &far))
WAITER(wait_file, fputc('x', arg))

static void *sleep_for_ever(void *arg)
{
	other_tid = (int32_t)syscall(SYS_gettid);
	for (;;)
		pause();
	return arg;
}

static void *lock_and_end(void *arg)
{
	other_tid = (int32_t)syscall(SYS_gettid);
	pthread_mutex_lock(arg);
	return NULL;
}

enum { ROBUST = 1, SHARED = 2 };

static void *make_mutex(int type, int protocol, unsigned int flags)
{
	static unsigned int n;
	pthread_mutexattr_t attr;

	assert_true(n < sizeof(mutexes) / sizeof(*mutexes));
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	pthread_mutexattr_setprotocol(&attr, protocol);
	if (flags & ROBUST)
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (flags & SHARED)
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	assert_int_equal(pthread_mutex_init(&mutexes[n], &attr), 0);
	assert_int_equal(pthread_mutex_lock(&mutexes[n]), 0);
	return &mutexes[n++];
}

static void *make_rwlock(bool is_written, int kind, bool is_shared)
{
	static unsigned int n;
	pthread_rwlockattr_t attr;

	assert_true(n < sizeof(rwlocks) / sizeof(*rwlocks));
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, kind);
	pthread_rwlockattr_setpshared(&attr, is_shared);
	assert_int_equal(pthread_rwlock_init(&rwlocks[n], &attr), 0);
	if (is_written)
		assert_int_equal(pthread_rwlock_wrlock(&rwlocks[n]), 0);
	else
		assert_int_equal(pthread_rwlock_rdlock(&rwlocks[n]), 0);
	return &rwlocks[n++];
}

static void read_text(char *buf, size_t size, int32_t tid, const char *name)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, buf, size - 1);
	assert_true(n > 0);
	buf[n] = '\0';
	close(fd);
}

static void pause_briefly(void)
{
	const struct timespec ts = { 0, 1000000 };

	nanosleep(&ts, NULL);
}

/* Wait until TID sleeps in futex(2) and give its call. */
static void read_call(struct waiter *t, int32_t tid)
{
	char text[512];
	const char *state;
	char *p;

	for (;; pause_briefly()) {
		read_text(text, sizeof(text), tid, "stat");
		state = strrchr(text, ')');
		assert_non_null(state);
		if (state[2] != 'S')
			continue;
		read_text(text, sizeof(text), tid, "syscall");
		t->syscall_nr = strtol(text, &p, 10);
		if (p == text || t->syscall_nr != SYS_futex)
			continue;
		for (size_t i = 0; i < 6; i++)
			t->args[i] = strtoull(p, &p, 16);
		return;
	}
}

static enum wp_mem_result read_self(void *ctx, uint64_t avma, void *buf,
				    size_t len)
{
	const struct iovec here = { buf, len };
	const struct iovec there = { (void *)(uintptr_t)avma, len };

	(void)ctx;
	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) ==
			       (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

static int32_t find_self(void *ctx, int32_t tid)
{
	char path[64];

	(void)ctx;
	snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
	return access(path, F_OK) ? 0 : tid;
}

static const struct wp_lock_query self_query = {
	{ read_self, NULL }, find_self, NULL, false, { NULL, NULL }
};

static void assert_blocked(const struct blocked *b, const struct waiter *t)
{
	const struct wp_lock *l = &t->lock;
	int32_t owner = 0;

	if (b->holder == THREAD || b->holder == GONE)
		owner = b->owner ? b->owner : getpid();
	if (l->kind != b->kind || l->holder != b->holder ||
	    l->owner_tid != owner || l->readers != b->readers ||
	    strcmp(l->type, b->type) || t->timed != b->timed ||
	    ((l->kind == MUTEX || l->kind == READ || l->kind == WRITE) &&
	     l->avma != (uintptr_t)b->object))
		fail_msg("%s: kind %d holder %s tid %d (want %d) readers %u "
			 "\"%s\" timed %d",
			 b->what, l->kind, wp_lock_holder_name(l->holder),
			 l->owner_tid, owner, l->readers, l->type, t->timed);
}

/* A new thread that waits; what is decoded is what is. */
static void check_blocked(const struct blocked *b)
{
	struct waiter t = { 0 };
	pthread_t thread;

	waiter_tid = 0;
	assert_int_equal(pthread_create(&thread, NULL, b->wait, b->object), 0);
	pthread_detach(thread);
	while (!waiter_tid)
		pause_briefly();
	t.by_stack = b->wait_hint;
	read_call(&t, waiter_tid);
	add_frame(&t, b->frame, LIBC);
	decode(&t, &self_query);
	assert_blocked(b, &t);

	/* Without a stack. */
	t.nframes = 0;
	t.by_stack = b->wait_hint;
	decode(&t, &self_query);
	if (b->is_told_bare)
		assert_blocked(b, &t);
	else
		assert_true(t.lock.kind == FUTEX && !t.lock.owner_tid);
}

static void real_mutexes_are_told(void **state)
{
	enum { NONE = PTHREAD_PRIO_NONE, PI = PTHREAD_PRIO_INHERIT };
	void *normal = make_mutex(PTHREAD_MUTEX_NORMAL, NONE, 0);
	const struct blocked b[] = {
		{ "normal", lock, normal, "pthread_mutex_lock", MUTEX, THREAD,
		  0, "", false, true, 0, 0 },
		{ "timed", lock_timed, normal, "pthread_mutex_timedlock", MUTEX,
		  THREAD, 0, "", true, true, 0, 0 },
		{ "clock", lock_clock, normal, "pthread_mutex_clocklock", MUTEX,
		  THREAD, 0, "", true, true, 0, 0 },
		{ "recursive", lock,
		  make_mutex(PTHREAD_MUTEX_RECURSIVE, NONE, 0),
		  "pthread_mutex_lock", MUTEX, THREAD, 0, "recursive", false,
		  true, 0, 0 },
		{ "error-checking", lock,
		  make_mutex(PTHREAD_MUTEX_ERRORCHECK, NONE, 0),
		  "pthread_mutex_lock", MUTEX, THREAD, 0, "error-checking",
		  false, true, 0, 0 },
		{ "adaptive", lock,
		  make_mutex(PTHREAD_MUTEX_ADAPTIVE_NP, NONE, 0),
		  "pthread_mutex_lock", MUTEX, THREAD, 0, "adaptive", false,
		  true, 0, 0 },
		{ "shared", lock,
		  make_mutex(PTHREAD_MUTEX_DEFAULT, NONE, SHARED),
		  "pthread_mutex_lock", MUTEX, THREAD, 0, "", false, true, 0,
		  0 },
		{ "robust", lock,
		  make_mutex(PTHREAD_MUTEX_DEFAULT, NONE, ROBUST),
		  "pthread_mutex_lock", MUTEX, THREAD, 0, "robust", false, true,
		  0, 0 },
		{ "robust timed", lock_timed,
		  make_mutex(PTHREAD_MUTEX_RECURSIVE, NONE, ROBUST),
		  "pthread_mutex_timedlock", MUTEX, THREAD, 0, "robust", true,
		  true, 0, 0 },
		{ "PI", lock, make_mutex(PTHREAD_MUTEX_DEFAULT, PI, 0),
		  "pthread_mutex_lock", MUTEX, THREAD, 0, "PI", false, true, 0,
		  0 },
		{ "PI timed", lock_timed,
		  make_mutex(PTHREAD_MUTEX_DEFAULT, PI, SHARED),
		  "pthread_mutex_timedlock", MUTEX, THREAD, 0, "PI", true, true,
		  0, 0 },
		{ "PI robust", lock,
		  make_mutex(PTHREAD_MUTEX_DEFAULT, PI, ROBUST),
		  "pthread_mutex_lock", MUTEX, THREAD, 0, "robust", false, true,
		  0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(b) / sizeof(*b); i++)
		check_blocked(&b[i]);
}

static void a_real_owner_that_ended_is_gone(void **state)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	struct blocked b = { "owner ended",
			     lock,
			     &m,
			     "pthread_mutex_lock",
			     MUTEX,
			     GONE,
			     0,
			     "",
			     false,
			     false,
			     WP_WAIT_LOCK,
			     0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, lock_and_end, &m), 0);
	pthread_join(thread, NULL);
	b.owner = other_tid;
	/* The kernel lets joiners go before the thread has left /proc. */
	while (find_self(NULL, b.owner))
		pause_briefly();
	check_blocked(&b);
}

static void real_rwlocks_are_told(void **state)
{
	enum {
		ANY = PTHREAD_RWLOCK_DEFAULT_NP,
		WRITERS = PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP
	};
	void *written = make_rwlock(true, ANY, false);
	void *was_read = make_rwlock(false, ANY, false);
	void *preferring = make_rwlock(false, WRITERS, false);
	void *shared = make_rwlock(true, WRITERS, true);
	const struct blocked b[] = {
		{ "reader, writer", lock_read, written, "pthread_rwlock_rdlock",
		  READ, THREAD, 0, "", false, true, 0, 0 },
		{ "timed reader", lock_read_timed, written,
		  "pthread_rwlock_timedrdlock", READ, THREAD, 0, "", true, true,
		  0, 0 },
		{ "writer, writer", lock_write, written,
		  "pthread_rwlock_wrlock", WRITE, THREAD, 0, "", false, true, 0,
		  0 },
		{ "writer, readers", lock_write, was_read,
		  "pthread_rwlock_wrlock", WRITE, READERS, 1, "", false, false,
		  0, 0 },
		{ "second writer", lock_write_clock, was_read,
		  "pthread_rwlock_clockwrlock", WRITE, READERS, 1, "", true,
		  false, 0, 0 },
		{ "preferred writer", lock_write, preferring,
		  "pthread_rwlock_wrlock", WRITE, READERS, 1, "", false, false,
		  0, 0 },
		{ "reader behind a writer", lock_read, preferring,
		  "pthread_rwlock_rdlock", READ, READERS, 1, "", false, false,
		  0, 0 },
		{ "shared reader", lock_read, shared, "pthread_rwlock_rdlock",
		  READ, THREAD, 0, "", false, true, 0, 0 },
		{ "shared writer", lock_write_clock, shared,
		  "pthread_rwlock_clockwrlock", WRITE, THREAD, 0, "", true,
		  true, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(b) / sizeof(*b); i++)
		check_blocked(&b[i]);
}

static void real_joins_are_told(void **state)
{
	struct blocked b = { "join",	   join, &other, "pthread_join", JOIN,
			     THREAD,	   0,	 "",	 false,		 true,
			     WP_WAIT_JOIN, 0 };

	(void)state;
	other_tid = 0;
	assert_int_equal(pthread_create(&other, NULL, sleep_for_ever, NULL), 0);
	while (!other_tid)
		pause_briefly();
	b.owner = other_tid;
	check_blocked(&b);
	/* glibc lets one thread join another: the next is tried with a thread
	 * of its own. */
	other_tid = 0;
	assert_int_equal(pthread_create(&other, NULL, sleep_for_ever, NULL), 0);
	while (!other_tid)
		pause_briefly();
	b.owner = other_tid;
	b.what = "timed join";
	b.wait = join_timed;
	b.frame = "__pthread_clockjoin_ex";
	b.timed = true;
	check_blocked(&b);
}

static void real_waits_for_nobody_are_not_laid_at_a_door(void **state)
{
	const struct blocked b[] = {
		{ "condvar", wait_cond, &cond, "__pthread_cond_wait_common",
		  FUTEX, WP_HOLDER_NONE, 0, "", false, true, WP_WAIT_CONDVAR,
		  0 },
		{ "semaphore", wait_sem, &sem, "sem_wait", FUTEX,
		  WP_HOLDER_NONE, 0, "", false, true, WP_WAIT_SEMAPHORE, 0 },
		{ "barrier", wait_barrier, &barrier, "pthread_barrier_wait",
		  FUTEX, WP_HOLDER_NONE, 0, "", false, true, WP_WAIT_BARRIER,
		  0 },
		{ "stream", wait_file, file, "putc", FUTEX, UNKNOWN, 0, "",
		  false, true, WP_WAIT_LOCK, 0 },
		{ "stream", wait_file, file, "", FUTEX, UNKNOWN, 0, "", false,
		  true, WP_WAIT_FUTEX, 0 },
	};

	(void)state;
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	flockfile(file);
	for (size_t i = 0; i < sizeof(b) / sizeof(*b); i++)
		check_blocked(&b[i]);
	funlockfile(file);
}

/* The waiter of the condvar is woken and has to take the mutex back. */
static void a_condvar_that_was_signalled_waits_for_its_mutex(void **state)
{
	struct waiter t = { 0 };
	pthread_t thread;

	(void)state;
	waiter_tid = 0;
	assert_int_equal(pthread_create(&thread, NULL, wait_cond, &cond), 0);
	pthread_detach(thread);
	while (!waiter_tid)
		pause_briefly();
	/* In its wait it has let go of the mutex. */
	read_call(&t, waiter_tid);
	pthread_mutex_lock(&cond_mutex);
	pthread_cond_broadcast(&cond);
	do {
		read_call(&t, waiter_tid);
		pause_briefly();
	} while (t.args[0] != (uintptr_t)&cond_mutex);
	add_frame(&t, "pthread_cond_wait", LIBC);
	t.wait = WP_WAIT_CONDVAR;
	decode(&t, &self_query);
	assert_int_equal(t.lock.kind, MUTEX);
	assert_int_equal(t.lock.holder, THREAD);
	assert_int_equal(t.lock.owner_tid, getpid());
	assert_true(t.lock.avma == (uintptr_t)&cond_mutex);
	assert_int_equal(t.wait, WP_WAIT_LOCK);
	pthread_mutex_unlock(&cond_mutex);
}

/* A condvar at BASE, whose waiter sleeps on the word at SIGNALS, and the stack
 * behind it, which has its address. */
struct condvar_waiter {
	uint32_t words[12];
	uint64_t stack[8];
};

static struct waiter decode_condvar(const struct condvar_waiter *c,
				    uint32_t signals, uint32_t op,
				    enum wp_wait wait)
{
	struct target target = { .avma = BASE,
				 .bytes = (const unsigned char *)c,
				 .len = sizeof(*c) };
	const struct wp_lock_query query = {
		{ read_target, &target }, find_one, NULL, false, { NULL, NULL }
	};
	struct waiter t = { .syscall_nr = SYS_futex,
			    .by_stack = wait,
			    .args = { BASE + signals, op, 4242 },
			    .sp_avma = BASE +
				       offsetof(struct condvar_waiter, stack) };

	add_frame(&t, "__futex_abstimed_wait_common64", LIBC);
	add_frame(&t, "pthread_cond_wait@@GLIBC_2.3.2", LIBC);
	decode(&t, &query);
	return t;
}

static void a_condvar_is_one_object(void **state)
{
	/* Of glibc to 2.40, and from 2.41 on: where __wrefs is, and the words
	 * that a thread may sleep on. */
	static const uint32_t layouts[][3] = { { 9, 40, 44 }, { 7, 32, 36 } };
	/* Its call may look like a join's; Python's GIL is a lock. */
	static const enum wp_wait waits[][2] = {
		{ WP_WAIT_CONDVAR, WP_WAIT_CONDVAR },
		{ WP_WAIT_JOIN, WP_WAIT_CONDVAR },
		{ WP_WAIT_LOCK, WP_WAIT_LOCK },
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct condvar_waiter c = { .stack = { 1, 2, BASE + 1, BASE } };
		struct waiter t;

		c.words[layouts[i][0]] = 2 << 3;
		for (int k = 0; k < 6; k++) {
			t = decode_condvar(&c, layouts[i][1 + k % 2],
					   WAIT_BITSET | REALTIME,
					   waits[k / 2][0]);
			assert_int_equal(t.lock.kind, WP_LOCK_CONDVAR);
			assert_int_equal(t.lock.holder, WP_HOLDER_NONE);
			assert_int_equal(t.lock.avma, BASE);
			assert_int_equal(t.wait, waits[k / 2][1]);
		}
		/* Nobody waits for it, by its own account; or the stack does
		 * not have it. */
		c.words[layouts[i][0]] = 7;
		t = decode_condvar(&c, layouts[i][1], TIMED_WAIT,
				   WP_WAIT_CONDVAR);
		assert_int_equal(t.lock.kind, WP_LOCK_FUTEX);
		c.words[layouts[i][0]] = 1 << 3;
		c.stack[3] = 0;
		t = decode_condvar(&c, layouts[i][1], TIMED_WAIT,
				   WP_WAIT_CONDVAR);
		assert_int_equal(t.lock.kind, WP_LOCK_FUTEX);
	}
}

/* Python's GIL, and the PyThreadState of who had it last, of 3.11. */
struct gil {
	uint64_t interval, holder_avma, locked, switches;
	struct condvar_waiter cond;
	uint64_t tstate[16];
};

static struct waiter decode_gil(const struct gil *gil, const char *caller)
{
	struct target target = { .avma = BASE,
				 .bytes = (const unsigned char *)gil,
				 .len = sizeof(*gil) };
	const struct wp_lock_query query = { { read_target, &target },
					     find_one,
					     NULL,
					     false,
					     { read_target, &target } };
	struct waiter t = { .syscall_nr = SYS_futex,
			    .by_stack = WP_WAIT_CONDVAR,
			    .args = { BASE + offsetof(struct gil, cond) + 40,
				      TIMED_WAIT, 0, BASE },
			    .sp_avma = BASE +
				       offsetof(struct gil, cond.stack) };

	add_frame(&t, "pthread_cond_timedwait@@GLIBC_2.3.2", LIBC);
	add_frame(&t, "python3.11+0x21c9d4", PROGRAM);
	add_frame(&t, caller, PROGRAM);
	decode(&t, &query);
	return t;
}

static void pythons_gil_has_a_holder(void **state)
{
	const uint64_t gil_avma = BASE + offsetof(struct gil, cond);
	const struct gil good = {
		.interval = 5000,
		.holder_avma = BASE + offsetof(struct gil, tstate),
		.locked = 1,
		.cond.words[9] = 2 << 3,
		.cond.stack = { gil_avma },
		/* A number before it that is no pointer; one of no thread. */
		.tstate = { BASE, DEAD, 1000, LIVE, BASE + 8, LIVE, BASE + 64,
			    LIVE },
	};
	struct gil gil = good;
	struct waiter t;

	(void)state;
	t = decode_gil(&gil, "PyEval_RestoreThread");
	assert_int_equal(t.lock.kind, WP_LOCK_GIL);
	assert_int_equal(t.lock.holder, WP_HOLDER_THREAD);
	assert_int_equal(t.lock.owner_tid, LIVE_HERE);
	assert_int_equal(t.lock.avma, gil_avma);
	assert_int_equal(t.wait, WP_WAIT_LOCK);
	/* Another condvar; nobody has it; who had it last has ended, or is not to be
	 * found. */
	for (int i = 0; i < 4; i++) {
		gil = good;
		if (i == 1)
			gil.locked = 0;
		if (i == 2)
			gil.tstate[7] = DEAD;
		if (i == 3)
			gil.holder_avma = UINT64_MAX - 8;
		t = decode_gil(&gil, i ? "_PyEval_EvalFrameDefault" : "serve");
		assert_int_equal(t.lock.kind, WP_LOCK_CONDVAR);
		assert_int_equal(t.wait, WP_WAIT_CONDVAR);
	}
}

/* A thread that lives, in its own numbers, unless it is DEAD. */
static int32_t find_any(void *ctx, int32_t own)
{
	(void)ctx;
	return own == DEAD ? 0 : own + 1000;
}

/* What a thread of a program waits for that has a lock of its own, with WORD. */
static struct waiter decode_word(uint32_t word, uint32_t val, uint32_t op,
				 const char *frame, enum wp_wait wait)
{
	struct target target = { .avma = BASE,
				 .bytes = (const unsigned char *)&word,
				 .len = sizeof(word) };
	const struct wp_lock_query query = {
		{ read_target, &target }, find_any, NULL, false, { NULL, NULL }
	};
	struct waiter t = { .syscall_nr = SYS_futex,
			    .by_stack = wait,
			    .args = { BASE, op, val } };

	add_frame(&t, frame, PROGRAM);
	decode(&t, &query);
	return t;
}

static struct waiter decode_own(uint32_t word, uint32_t val, const char *frame,
				enum wp_wait wait)
{
	return decode_word(word, val, WAIT | PRIVATE, frame, wait);
}

static void
a_word_with_a_tid_tells_the_holder_of_a_lock_of_the_program(void **state)
{
	struct waiter t = decode_own(W(LIVE), W(LIVE), "own_lock",
				     WP_WAIT_FUTEX);

	(void)state;
	assert_int_equal(t.lock.kind, WP_LOCK_FUTEX);
	assert_int_equal(t.lock.holder, WP_HOLDER_THREAD);
	assert_int_equal(t.lock.owner_tid, LIVE_HERE);
	assert_int_equal(t.lock.avma, BASE);
	/* No such thread; a word that changed; no name that tells that it is the
	 * program's; a condvar. */
	t = decode_own(DEAD, DEAD, "own_lock", WP_WAIT_FUTEX);
	assert_int_equal(t.lock.holder, UNKNOWN);
	t = decode_own(LIVE, W(LIVE), "own_lock", WP_WAIT_FUTEX);
	assert_int_equal(t.lock.holder, UNKNOWN);
	t = decode_own(LIVE, LIVE, "a.out+0x1234", WP_WAIT_FUTEX);
	assert_int_equal(t.lock.holder, UNKNOWN);
	t = decode_own(LIVE, LIVE, "own_wait", WP_WAIT_CONDVAR);
	assert_int_equal(t.lock.holder, WP_HOLDER_NONE);
}

/* As Zig's Thread.join waits. */
static void a_word_that_the_kernel_clears_is_a_join(void **state)
{
	struct waiter t = decode_word(LIVE, LIVE, WAIT, "Thread.join",
				      WP_WAIT_FUTEX);
	static const struct {
		uint32_t word, op;
	} locks[] = {
		{ LIVE, WAIT | PRIVATE },
		{ W(LIVE), WAIT },
		{ LIVE, WAIT_BITSET },
	};

	(void)state;
	assert_int_equal(t.lock.kind, WP_LOCK_JOIN);
	assert_int_equal(t.lock.owner_tid, LIVE_HERE);
	assert_int_equal(t.lock.avma, BASE);
	assert_int_equal(t.wait, WP_WAIT_JOIN);
	for (size_t i = 0; i < sizeof(locks) / sizeof(*locks); i++) {
		t = decode_word(locks[i].word, locks[i].word, locks[i].op,
				"own_lock", WP_WAIT_FUTEX);
		assert_int_equal(t.lock.kind, WP_LOCK_FUTEX);
		assert_int_equal(t.lock.owner_tid, LIVE_HERE);
		assert_int_equal(t.wait, WP_WAIT_LOCK);
	}
}

static void a_small_word_is_a_state_and_no_tid(void **state)
{
	struct waiter t = decode_own(1000, 1000, "own_lock", WP_WAIT_FUTEX);

	(void)state;
	assert_int_equal(t.lock.owner_tid, 2000);
	for (uint32_t word = 1; word < 1000; word++) {
		t = decode_own(word, word, "own_lock", WP_WAIT_FUTEX);
		assert_int_equal(t.lock.holder, UNKNOWN);
		t = decode_own(W(word), W(word), "own_lock", WP_WAIT_FUTEX);
		assert_int_equal(t.lock.holder, UNKNOWN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_condvar_is_one_object),
		cmocka_unit_test(pythons_gil_has_a_holder),
		cmocka_unit_test(
			a_word_with_a_tid_tells_the_holder_of_a_lock_of_the_program),
		cmocka_unit_test(a_word_that_the_kernel_clears_is_a_join),
		cmocka_unit_test(a_small_word_is_a_state_and_no_tid),
		cmocka_unit_test(each_kind_is_told),
		cmocka_unit_test(a_shared_mutex_has_its_owners_tid),
		cmocka_unit_test(what_fails_a_check_is_not_guessed),
		cmocka_unit_test(every_part_of_memory_is_safe),
		cmocka_unit_test(a_lock_that_is_let_go_meanwhile_has_no_holder),
		cmocka_unit_test(another_owner_meanwhile_is_none),
		cmocka_unit_test(garbage_names_nobody),
		cmocka_unit_test(one_damaged_word_names_nobody_else),
		cmocka_unit_test(addresses_at_the_ends_do_not_wrap),
		cmocka_unit_test(what_is_not_held_has_no_holder),
		cmocka_unit_test(only_frames_of_the_wait_itself_count),
		cmocka_unit_test(a_lock_of_python_is_told_by_its_function),
		cmocka_unit_test(a_frame_too_deep_does_not_count),
		cmocka_unit_test(several_words_have_no_holder),
		cmocka_unit_test(real_mutexes_are_told),
		cmocka_unit_test(a_real_owner_that_ended_is_gone),
		cmocka_unit_test(real_rwlocks_are_told),
		cmocka_unit_test(real_joins_are_told),
		cmocka_unit_test(real_waits_for_nobody_are_not_laid_at_a_door),
		cmocka_unit_test(
			a_condvar_that_was_signalled_waits_for_its_mutex),
	};

	file = fopen("/dev/null", "w");
	if (!file)
		return 1;
	return cmocka_run_group_tests_name("locks", tests, NULL, NULL);
}
