/* SPDX-License-Identifier: Apache-2.0 */
/* locks.c - what a futex is and who holds it: see wallprof/dump.h. */
#include "locks.h"

#include <string.h>
#include <sys/syscall.h>

/* Linux 5.16; one number everywhere. */
enum { FUTEX_WAITV_NR = 449 };

/* Between the call and the pthread function lie a few frames at most. */
enum { MAX_FRAMES = 12 };

bool wp_lock_read_at(void *buf, size_t len, const struct wp_lock_call *call,
		     uint64_t avma)
{
	const struct wp_mem *mem = &call->query->mem;

	return avma <= UINT64_MAX - len && !mem->read(mem->ctx, avma, buf, len);
}

bool wp_lock_read(void *buf, size_t len, const struct wp_lock_call *call,
		  uint64_t off)
{
	return off <= call->uaddr_avma &&
	       wp_lock_read_at(buf, len, call, call->uaddr_avma - off);
}

int32_t wp_lock_find_thread(const struct wp_lock_call *call, uint32_t tid)
{
	if (!wp_lock_is_tid(tid))
		return 0;
	return call->query->find_thread(call->query->ctx, (int32_t)tid);
}

static bool begins(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* A function without a name may be any of the library's own. */
static enum wp_lock_frame classify(const char *name)
{
	static const struct {
		const char *prefix;
		enum wp_lock_frame frame;
	} rows[] = {
		{ "pthread_mutex_lock", WP_LOCK_FRAME_MUTEX },
		{ "pthread_mutex_timedlock", WP_LOCK_FRAME_MUTEX },
		{ "pthread_mutex_clocklock", WP_LOCK_FRAME_MUTEX },
		{ "pthread_mutex_cond_lock", WP_LOCK_FRAME_MUTEX },
		{ "pthread_cond_wait", WP_LOCK_FRAME_COND },
		{ "pthread_cond_timedwait", WP_LOCK_FRAME_COND },
		{ "pthread_cond_clockwait", WP_LOCK_FRAME_COND },
		{ "pthread_rwlock_rdlock", WP_LOCK_FRAME_RDLOCK },
		{ "pthread_rwlock_timedrdlock", WP_LOCK_FRAME_RDLOCK },
		{ "pthread_rwlock_clockrdlock", WP_LOCK_FRAME_RDLOCK },
		{ "pthread_rwlock_wrlock", WP_LOCK_FRAME_WRLOCK },
		{ "pthread_rwlock_timedwrlock", WP_LOCK_FRAME_WRLOCK },
		{ "pthread_rwlock_clockwrlock", WP_LOCK_FRAME_WRLOCK },
		{ "pthread_join", WP_LOCK_FRAME_JOIN },
		{ "pthread_timedjoin", WP_LOCK_FRAME_JOIN },
		{ "pthread_clockjoin", WP_LOCK_FRAME_JOIN },
		{ "thrd_join", WP_LOCK_FRAME_JOIN },
		{ "pthread_", WP_LOCK_FRAME_OTHER },
		/* What they wait by; syscall() itself is what others use. */
		{ "futex", WP_LOCK_FRAME_NONE },
		{ "lll_", WP_LOCK_FRAME_NONE },
		{ "libc_", WP_LOCK_FRAME_NONE },
		{ "internal_syscall_cancel", WP_LOCK_FRAME_NONE },
		{ "syscall_c", WP_LOCK_FRAME_NONE },
		{ "timedwait", WP_LOCK_FRAME_NONE },
		{ "cp_", WP_LOCK_FRAME_NONE },
		{ "sccp", WP_LOCK_FRAME_NONE },
	};

	if (!*name || strstr(name, "+0x"))
		return WP_LOCK_FRAME_NONE;
	while (*name == '_')
		name++;
	if (begins(name, "GI_"))
		name += strlen("GI_");
	while (*name == '_')
		name++;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (begins(name, rows[i].prefix))
			return rows[i].frame;
	return WP_LOCK_FRAME_OTHER;
}

/* The innermost frame that says what is waited for, or that it is of no kind
 * known here: any other name ends the search, be it malloc or the trampoline
 * of a signal, below which nothing waits.  It is in the same file as the call:
 * what other files' functions are called proves nothing, nor does a guess. */
static enum wp_lock_frame find_frame(const struct wp_dump *dump,
				     const struct wp_dump_thread *thread)
{
	uint32_t module = UINT32_MAX;
	unsigned int seen = 0;

	for (uint32_t i = 0; i < thread->nframes && seen < MAX_FRAMES; i++) {
		const struct wp_dump_frame *f =
			&dump->frames[thread->first_frame + i];
		const char *name = wp_dump_str(dump, f->system_name);
		enum wp_lock_frame found;

		if (f->kernel)
			continue;
		if (!seen++)
			module = f->module;
		if (!*name)
			name = wp_dump_str(dump, f->function);
		if (f->module != module || f->guessed)
			break;
		found = classify(name);
		if (found)
			return found;
	}
	return WP_LOCK_FRAME_NONE;
}

/* The kernel's own rule for a PI lock, whatever library it is of: the word
 * holds the owner. */
static bool decode_pi(struct wp_lock *ret, const struct wp_lock_call *call)
{
	uint32_t word;
	int32_t tid;

	if (!wp_lock_is_pi(call) || !wp_lock_read(&word, sizeof(word), call, 0))
		return false;
	tid = wp_lock_find_thread(call, word & WP_FUTEX_TID);
	*ret = (struct wp_lock){
		.kind = WP_LOCK_MUTEX,
		.holder = tid ? WP_HOLDER_THREAD : WP_HOLDER_NOT_RECORDED,
		.owner_tid = tid,
		.avma = call->uaddr_avma,
		.type = "PI",
	};
	return true;
}

/* A join whose futex says nothing of the joined thread. */
static bool decode_join(struct wp_lock *ret, const struct wp_lock_call *call)
{
	if (call->frame != WP_LOCK_FRAME_JOIN)
		return false;
	*ret = (struct wp_lock){
		.kind = WP_LOCK_JOIN,
		.holder = WP_HOLDER_NOT_RECORDED,
		.avma = call->uaddr_avma,
		.type = "",
	};
	return true;
}

/* Where the stack shows a condvar, but not whose, memory alone is not asked: a
 * false answer is worse than none. */
static bool is_ownerless(const struct wp_dump_thread *thread,
			 enum wp_lock_frame frame)
{
	return frame == WP_LOCK_FRAME_NONE &&
	       (thread->wait == WP_WAIT_CONDVAR ||
		thread->wait == WP_WAIT_SEMAPHORE ||
		thread->wait == WP_WAIT_BARRIER);
}

static bool decode(struct wp_lock *ret, const struct wp_lock_call *call)
{
	/* Most demanding checks first. */
	return wp_lock_decode_glibc_join(ret, call) ||
	       wp_lock_decode_musl_join(ret, call) ||
	       wp_lock_decode_glibc_mutex(ret, call) ||
	       wp_lock_decode_glibc_rwlock(ret, call) ||
	       wp_lock_decode_musl_mutex(ret, call) ||
	       wp_lock_decode_musl_rwlock(ret, call) || decode_pi(ret, call) ||
	       decode_join(ret, call);
}

static bool has_timeout(uint32_t cmd, const uint64_t *args)
{
	switch (cmd) {
	case WP_FUTEX_WAIT:
	case WP_FUTEX_LOCK_PI:
	case WP_FUTEX_WAIT_BITSET:
	case WP_FUTEX_WAIT_REQUEUE_PI:
	case WP_FUTEX_LOCK_PI2:
		return args[3] != 0;
	default:
		return false;
	}
}

static void set_undecoded(struct wp_dump_thread *thread)
{
	bool is_held = thread->wait != WP_WAIT_CONDVAR &&
		       thread->wait != WP_WAIT_SEMAPHORE &&
		       thread->wait != WP_WAIT_BARRIER;

	thread->lock = (struct wp_lock){
		.kind = WP_LOCK_FUTEX,
		.holder = is_held ? WP_HOLDER_NOT_RECORDED : WP_HOLDER_NONE,
		.avma = thread->args[0],
		.type = "",
	};
}

static void decode_futex(struct wp_dump *dump, struct wp_dump_thread *thread,
			 const struct wp_lock_query *query)
{
	uint32_t op = (uint32_t)thread->args[1];
	struct wp_lock_call call = {
		.query = query,
		.uaddr_avma = thread->args[0],
		.cmd = op & WP_FUTEX_CMD,
		.is_private = op & WP_FUTEX_PRIVATE,
		.val = (uint32_t)thread->args[2],
		.frame = find_frame(dump, thread),
	};

	thread->timed = has_timeout(call.cmd, thread->args);
	set_undecoded(thread);
	/* The kernel refuses an unaligned word: these are no such arguments. */
	if (call.uaddr_avma % sizeof(uint32_t) ||
	    is_ownerless(thread, call.frame) || !decode(&thread->lock, &call))
		return;
	thread->wait = thread->lock.kind == WP_LOCK_JOIN ? WP_WAIT_JOIN :
							   WP_WAIT_LOCK;
}

void wp_lock_decode(struct wp_dump *dump, struct wp_dump_thread *thread,
		    const struct wp_lock_query *query)
{
	if (thread->syscall_nr == SYS_futex) {
		decode_futex(dump, thread, query);
	} else if (thread->syscall_nr == FUTEX_WAITV_NR) {
		/* Several words, and no library of ours waits so. */
		thread->timed = thread->args[3] != 0;
		set_undecoded(thread);
	}
}
