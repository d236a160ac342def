/* SPDX-License-Identifier: Apache-2.0 */
/* lock_musl.c - mutexes, rwlocks and threads of musl (1.1.21 and later): see
 * lock_priv.h.
 *
 * Layouts and protocols: musl's src/internal/pthread_impl.h,
 * pthread_mutex_timedlock.c, pthread_rwlock_timedrdlock.c and pthread_join.c;
 * checked against 1.2.3.
 */
#include "lock_priv.h"

/* _m_type */
enum {
	TYPE = 3,
	RECURSIVE = 1,
	ERROR_CHECKING = 2,
	ROBUST = 4,
	PRIO_INHERIT = 8,
	SHARED = 128,
	TYPES = TYPE | ROBUST | PRIO_INHERIT | SHARED,
};

struct mutex {
	uint32_t type;
	uint32_t lock;
	uint32_t waiters;
	uint32_t unused[2];
	/* Locks of a recursive mutex beyond the first. */
	uint32_t count;
	/* Links in the list of the owner's mutexes. */
	uint64_t prev;
	uint64_t next;
};

_Static_assert(sizeof(struct mutex) == 40, "layout");

enum { LOCK = offsetof(struct mutex, lock) };

static bool fits_call(const struct mutex *m, const struct wp_lock_call *call)
{
	bool is_shared = m->type & SHARED;

	if ((m->type & ~(uint32_t)TYPES) || (m->type & TYPE) == TYPE ||
	    call->is_private == is_shared)
		return false;
	if (m->type & PRIO_INHERIT)
		return wp_lock_is_pi(call);
	/* A normal mutex records no owner. */
	return (m->type & (TYPE | ROBUST)) && call->cmd == FUTEX_WAIT &&
	       (call->val & FUTEX_WAITERS) && m->waiters &&
	       m->waiters <= WP_MAX_TID;
}

static bool is_locked(const struct mutex *m)
{
	return m->lock & (FUTEX_TID_MASK | FUTEX_OWNER_DIED);
}

static bool is_beyond_doubt(const struct mutex *m)
{
	return !m->unused[0] && !m->unused[1] && m->prev && m->next &&
	       m->count <= INT32_MAX;
}

static const char *type_of(const struct mutex *m)
{
	if (m->type & ROBUST)
		return "robust";
	if (m->type & PRIO_INHERIT)
		return "PI";
	return (m->type & TYPE) == RECURSIVE ? "recursive" : "error-checking";
}

bool wp_lock_decode_musl_mutex(struct wp_lock *ret,
			       const struct wp_lock_call *call)
{
	bool is_named = call->caller == WP_LOCK_CALLER_MUTEX ||
			call->caller == WP_LOCK_CALLER_COND;
	struct mutex m, now;
	uint32_t owner;
	int32_t tid;

	if ((!is_named && call->caller != WP_LOCK_CALLER_UNKNOWN) ||
	    !wp_lock_read(&m, sizeof(m), call, LOCK) || !fits_call(&m, call) ||
	    !is_locked(&m))
		return false;
	owner = m.lock & FUTEX_TID_MASK;
	tid = wp_lock_find_thread(call, owner);
	/* A thread that ended leaves OWNER_DIED and no tid, in mutexes that are
	 * not robust too. */
	if ((!tid && (owner || !is_named)) ||
	    (!is_named && !is_beyond_doubt(&m)))
		return false;
	*ret = (struct wp_lock){
		.kind = WP_LOCK_MUTEX,
		.holder = WP_HOLDER_NOT_RECORDED,
		.avma = call->uaddr_avma - LOCK,
		.type = type_of(&m),
	};
	if (!wp_lock_read(&now, sizeof(now), call, LOCK) || !is_locked(&now) ||
	    now.type != m.type || (now.lock & FUTEX_TID_MASK) != owner)
		return true;
	ret->holder = tid ? WP_HOLDER_THREAD : WP_HOLDER_GONE;
	ret->owner_tid = tid;
	return true;
}

/* _rw_lock: the number of readers, or RW_WRITER; bit 31: a thread waits. */
#define RW_COUNT UINT32_C(0x7fffffff)
#define RW_WRITER RW_COUNT

bool wp_lock_decode_musl_rwlock(struct wp_lock *ret,
				const struct wp_lock_call *call)
{
	bool is_reader = call->caller == WP_LOCK_CALLER_RDLOCK;
	uint32_t word;

	if ((!is_reader && call->caller != WP_LOCK_CALLER_WRLOCK) ||
	    call->cmd != FUTEX_WAIT || !(call->val & FUTEX_WAITERS) ||
	    !wp_lock_read(&word, sizeof(word), call, 0))
		return false;
	*ret = (struct wp_lock){
		.kind = is_reader ? WP_LOCK_RWLOCK_READ : WP_LOCK_RWLOCK_WRITE,
		.holder = WP_HOLDER_NOT_RECORDED,
		.avma = call->uaddr_avma,
		.type = "",
	};
	if (!is_reader && (word & RW_COUNT) && (word & RW_COUNT) != RW_WRITER) {
		ret->holder = WP_HOLDER_READERS;
		ret->readers = word & RW_COUNT;
	}
	return true;
}

/* detach_state: up to DT_JOINABLE, of a thread that can be joined. */
enum { MAX_JOINABLE = 2 };

struct thread {
	uint64_t self;
#if defined(__x86_64__)
	/* aarch64 has these two at the end. */
	uint64_t dtv;
#endif
	uint64_t prev;
	uint64_t next;
	uint64_t sysinfo;
#if defined(__x86_64__)
	uint64_t canary;
#endif
	uint32_t tid;
	uint32_t errno_val;
	uint32_t detach_state;
};

enum { DETACH_STATE = offsetof(struct thread, detach_state) };

#if defined(__x86_64__)
_Static_assert(DETACH_STATE == 56, "layout");
#else
_Static_assert(DETACH_STATE == 40, "layout");
#endif

bool wp_lock_decode_musl_join(struct wp_lock *ret,
			      const struct wp_lock_call *call)
{
	uint64_t base_avma = call->uaddr_avma - DETACH_STATE;
	struct thread t, next;
	int32_t tid;

	if ((call->caller != WP_LOCK_CALLER_JOIN &&
	     call->caller != WP_LOCK_CALLER_UNKNOWN) ||
	    call->cmd != FUTEX_WAIT || !call->is_private || !call->val ||
	    call->val > MAX_JOINABLE ||
	    !wp_lock_read(&t, sizeof(t), call, DETACH_STATE) ||
	    t.self != base_avma || t.detach_state != call->val ||
	    !wp_lock_read_at(&next, sizeof(next), call, t.next) ||
	    next.prev != base_avma)
		return false;
	tid = wp_lock_find_thread(call, t.tid);
	if (!tid)
		return false;
	*ret = wp_lock_of_join(call, tid);
	return true;
}
