/* SPDX-License-Identifier: Apache-2.0 */
/* lock_glibc.c - mutexes and threads of glibc: see lock_priv.h.
 *
 * Layouts and protocols: glibc's struct_mutex.h, pthreadP.h, descr.h,
 * pthread_mutex_lock.c and pthread_join_common.c; checked against 2.36.
 */
#include <limits.h>

#include "lock_priv.h"

/* __kind */
enum {
	TYPE = 3,
	RECURSIVE = 1,
	ERROR_CHECKING = 2,
	ADAPTIVE = 3,
	ROBUST = 16,
	PRIO_INHERIT = 32,
	PRIO_PROTECT = 64,
	/* Set for robust mutexes as well. */
	SHARED = 128,
	/* With lock elision, and without. */
	ELISION = 256 | 512,
	KINDS = TYPE | ROBUST | PRIO_INHERIT | PRIO_PROTECT | SHARED | ELISION,
	/* The lock word under PRIO_PROTECT has the priority above. */
	BELOW_CEILING = (1 << 19) - 1,
};

/* The same on x86-64 and aarch64; what x86-64 has of its own is in SPINS. */
struct mutex {
	uint32_t lock;
	uint32_t count;
	uint32_t owner;
	uint32_t nusers;
	uint32_t kind;
	uint32_t spins;
	/* Links of a robust mutex in its owner's list. */
	uint64_t list[2];
};

_Static_assert(sizeof(struct mutex) == 40, "layout");

/* i386's. */
struct mutex_32 {
	uint32_t lock;
	uint32_t count;
	uint32_t owner;
	uint32_t kind;
	uint32_t nusers;
	/* Link of a robust mutex in its owner's list; else what SPINS is. */
	uint32_t list;
};

_Static_assert(sizeof(struct mutex_32) == 24, "layout");

/* Read the mutex whose word CALL waits for. */
static bool read_mutex(struct mutex *ret, const struct wp_lock_call *call)
{
	struct mutex_32 m;
	uint32_t link;

	if (!call->query->is_32bit)
		return wp_lock_read(ret, sizeof(*ret), call, 0);
	if (!wp_lock_read(&m, sizeof(m), call, 0))
		return false;
	link = m.kind & ROBUST ? m.list : 0;
	*ret = (struct mutex){ .lock = m.lock,
			       .count = m.count,
			       .owner = m.owner,
			       .nusers = m.nusers,
			       .kind = m.kind,
			       .list = { link, link } };
	return true;
}

static bool has_tid_in_word(const struct mutex *m)
{
	return m->kind & (ROBUST | PRIO_INHERIT);
}

static uint32_t owner_of(const struct mutex *m)
{
	return has_tid_in_word(m) ? m->lock & FUTEX_TID_MASK : m->owner;
}

static bool is_locked(const struct mutex *m)
{
	uint32_t word = m->lock;

	if (has_tid_in_word(m))
		return word & (FUTEX_TID_MASK | FUTEX_OWNER_DIED);
	if (m->kind & PRIO_PROTECT)
		word &= BELOW_CEILING;
	return word == 1 || word == 2;
}

/* Is CALL one that waits for a mutex of this kind? */
static bool fits_call(const struct mutex *m, const struct wp_lock_call *call)
{
	bool is_shared = m->kind & SHARED;

	if ((m->kind & ~(uint32_t)KINDS) || call->is_private == is_shared)
		return false;
	if (m->kind & PRIO_INHERIT)
		return wp_lock_is_pi(call);
	/* What waits for a condvar is a WAIT_BITSET; what takes its mutex back
	 * is without a time, so it is a WAIT. */
	if (!wp_lock_is_wait(call) ||
	    (call->caller == WP_LOCK_CALLER_COND && call->cmd != FUTEX_WAIT))
		return false;
	if (m->kind & ROBUST)
		return call->val & FUTEX_WAITERS;
	if (m->kind & PRIO_PROTECT)
		return (call->val & BELOW_CEILING) == 2;
	return call->val == 2;
}

static bool fits_owner(const struct mutex *m)
{
	if (has_tid_in_word(m))
		/* OWNER is not set yet, or INCONSISTENT: the last owner died. */
		return !m->owner || m->owner >= INT_MAX - 1 ||
		       m->owner == owner_of(m) || (m->lock & FUTEX_OWNER_DIED);
	/* Threads that wait for a condvar with this mutex count as users. */
	if (!m->nusers || m->nusers > WP_MAX_TID)
		return false;
	if (m->kind & PRIO_PROTECT)
		return m->count != 0;
	return (m->count != 0) == ((m->kind & TYPE) == RECURSIVE);
}

/* Further checks where no frame says that it is a mutex. */
static bool is_beyond_doubt(const struct mutex *m)
{
	bool is_linked = m->list[0] && m->list[1];

	if (m->kind & ROBUST)
		return is_linked && m->owner == owner_of(m) && m->nusers;
	return !m->list[0] && !m->list[1] && m->owner == owner_of(m) &&
	       m->nusers;
}

static const char *type_of(const struct mutex *m)
{
	static const char *const name[] = {
		"",
		[RECURSIVE] = "recursive",
		[ERROR_CHECKING] = "error-checking",
		[ADAPTIVE] = "adaptive",
	};

	if (m->kind & ROBUST)
		return "robust";
	return m->kind & PRIO_INHERIT ? "PI" : name[m->kind & TYPE];
}

static void set_mutex_holder(struct wp_lock *ret, const struct mutex *m,
			     const struct wp_lock_call *call)
{
	uint32_t owner = owner_of(m);
	int32_t tid = wp_lock_find_thread(call, owner);

	if (tid) {
		ret->holder = WP_HOLDER_THREAD;
		ret->owner_tid = tid;
	} else if (!owner && has_tid_in_word(m)) {
		ret->holder = WP_HOLDER_GONE;
		if (wp_lock_is_tid(m->owner))
			ret->owner_tid = (int32_t)m->owner;
	} else if (wp_lock_is_tid(owner) && !(m->kind & SHARED)) {
		ret->holder = WP_HOLDER_GONE;
		ret->owner_tid = (int32_t)owner;
	} else if (wp_lock_is_tid(owner)) {
		ret->shared_owner = (int32_t)owner;
	}
}

static bool still_holds(const struct mutex *m, const struct wp_lock_call *call)
{
	struct mutex now;

	return read_mutex(&now, call) && now.kind == m->kind &&
	       is_locked(&now) && owner_of(&now) == owner_of(m);
}

bool wp_lock_decode_glibc_mutex(struct wp_lock *ret,
				const struct wp_lock_call *call)
{
	bool is_named = call->caller == WP_LOCK_CALLER_MUTEX ||
			call->caller == WP_LOCK_CALLER_COND;
	struct wp_lock lock = { .kind = WP_LOCK_MUTEX,
				.holder = WP_HOLDER_NOT_RECORDED,
				.avma = call->uaddr_avma };
	struct mutex m;

	if ((!is_named && call->caller != WP_LOCK_CALLER_UNKNOWN) ||
	    !read_mutex(&m, call) || !fits_call(&m, call) || !is_locked(&m) ||
	    !fits_owner(&m))
		return false;
	lock.type = type_of(&m);
	set_mutex_holder(&lock, &m, call);
	if (!is_named &&
	    (lock.holder != WP_HOLDER_THREAD || !is_beyond_doubt(&m)))
		return false;
	if (!still_holds(&m, call)) {
		lock.holder = WP_HOLDER_NOT_RECORDED;
		lock.owner_tid = lock.shared_owner = 0;
	}
	*ret = lock;
	return true;
}

/* Links in the list of all threads, in words of the program: next, prev. */
static bool read_links(uint64_t ret[2], const struct wp_lock_call *call,
		       uint64_t avma)
{
	uint32_t narrow[2];

	if (!call->query->is_32bit)
		return wp_lock_read_at(ret, 2 * sizeof(*ret), call, avma);
	if (!wp_lock_read_at(narrow, sizeof(narrow), call, avma))
		return false;
	ret[0] = narrow[0];
	ret[1] = narrow[1];
	return true;
}

/* CALL's word is the tid of a struct pthread, which the kernel clears when the thread
 * ends: right before it are links to its neighbours in the list of threads, which link
 * to it. */
static bool is_thread(const struct wp_lock_call *call)
{
	uint64_t base_avma = call->uaddr_avma -
			     (call->query->is_32bit ? 8 : 16);
	/* Links of the thread, of the one before and of the one after. */
	uint64_t links[2], before[2], after[2];

	return base_avma < call->uaddr_avma &&
	       read_links(links, call, base_avma) &&
	       read_links(before, call, links[1]) &&
	       read_links(after, call, links[0]) && before[0] == base_avma &&
	       after[1] == base_avma;
}

bool wp_lock_decode_glibc_join(struct wp_lock *ret,
			       const struct wp_lock_call *call)
{
	uint32_t word;
	int32_t tid;

	if (!wp_lock_is_wait(call) || call->is_private ||
	    !wp_lock_is_tid(call->val) ||
	    (call->caller != WP_LOCK_CALLER_JOIN &&
	     (call->caller != WP_LOCK_CALLER_UNKNOWN || !is_thread(call))))
		return false;
	tid = wp_lock_find_thread(call, call->val);
	/* Read last: the word is 0 once the thread has ended. */
	if (!tid || !wp_lock_read(&word, sizeof(word), call, 0) ||
	    word != call->val)
		return false;
	*ret = wp_lock_of_join(call, tid);
	return true;
}
