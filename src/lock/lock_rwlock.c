/* SPDX-License-Identifier: Apache-2.0 */
/* lock_rwlock.c - rwlocks of glibc (2.25 and later): see lock_priv.h.
 *
 * Layout and protocol: glibc's struct_rwlock.h and pthread_rwlock_common.c;
 * checked against 2.36.
 */
#include <string.h>

#include "lock_priv.h"

/* __readers: flags, and above them the number of readers. */
enum {
	WRPHASE = 1,
	WRLOCKED = 2,
	RWAITING = 4,
	READER_SHIFT = 3,
};

/* __wrphase_futex and __writers_futex: the value, and "a thread waits". */
enum {
	FUTEX_SET = 1,
	FUTEX_USED = 2,
};

/* __flags: readers wait behind waiting writers. */
enum { PREFER_WRITER_NONRECURSIVE = 2 };

/* As x86-64 and aarch64 have it; glibc's generic struct_rwlock.h differs. */
#if defined(__x86_64__) || defined(__aarch64__)
struct rwlock {
	uint32_t readers;
	uint32_t writers;
	uint32_t wrphase_futex;
	uint32_t writers_futex;
	uint32_t pad3;
	uint32_t pad4;
	uint32_t cur_writer;
	uint32_t shared;
	/* On x86-64 its first byte is the state of elision. */
	uint64_t pad1;
	uint64_t pad2;
	uint32_t flags;
	uint32_t tail;
};
#endif

/* i386's, from behind what is the same. */
struct rwlock_32_end {
	uint8_t flags;
	uint8_t shared;
	uint8_t elision;
	uint8_t pad2;
	uint32_t cur_writer;
};

_Static_assert(sizeof(struct rwlock_32_end) == 8, "layout");
_Static_assert(offsetof(struct rwlock, cur_writer) == 24, "layout");
_Static_assert(offsetof(struct rwlock, flags) == 48, "layout");

/* Read the rwlock that has CALL's word at OFF. */
static bool read_rwlock(struct rwlock *ret, const struct wp_lock_call *call,
			uint32_t off)
{
	enum { SAME = offsetof(struct rwlock, cur_writer) };
	struct rwlock_32_end end;
	uint8_t bytes[SAME + sizeof(end)];

	if (!call->query->is_32bit)
		return wp_lock_read(ret, sizeof(*ret), call, off);
	if (!wp_lock_read(bytes, sizeof(bytes), call, off))
		return false;
	*ret = (struct rwlock){ 0 };
	memcpy(ret, bytes, SAME);
	memcpy(&end, bytes + SAME, sizeof(end));
	ret->cur_writer = end.cur_writer;
	ret->shared = end.shared;
	ret->pad2 = end.pad2;
	ret->flags = end.flags;
	return true;
}

/* A way to wait for a rwlock: which word is the futex, and its value. */
struct rwlock_wait {
	uint32_t off;
	bool is_reader;
	/* Not for __readers. */
	uint32_t val;
};

static const struct rwlock_wait rwlock_waits[] = {
	/* A reader waits for the writer. */
	{ offsetof(struct rwlock, wrphase_futex), true,
	  FUTEX_SET | FUTEX_USED },
	/* A reader waits behind a writer, which waits for other readers. */
	{ offsetof(struct rwlock, readers), true, 0 },
	/* A writer waits for the readers. */
	{ offsetof(struct rwlock, wrphase_futex), false, FUTEX_USED },
	/* A writer waits for other writers. */
	{ offsetof(struct rwlock, writers_futex), false,
	  FUTEX_SET | FUTEX_USED },
};

enum { NRWLOCK_WAITS = sizeof(rwlock_waits) / sizeof(*rwlock_waits) };

static bool is_rwlock(const struct rwlock *rw, const struct wp_lock_call *call)
{
	uint32_t futexes = rw->wrphase_futex | rw->writers_futex;

	/* glibc before 2.25 has other fields in the padding. */
	return rw->shared == !call->is_private && !rw->pad3 && !rw->pad4 &&
	       !rw->pad2 && rw->flags <= PREFER_WRITER_NONRECURSIVE &&
	       !(futexes & ~(uint32_t)(FUTEX_SET | FUTEX_USED)) &&
	       (rw->readers & WRLOCKED);
}

static bool fits_wait(const struct rwlock *rw, const struct rwlock_wait *w,
		      const struct wp_lock_call *call)
{
	uint32_t bits = WRLOCKED | RWAITING, word;

	if (!w->off)
		return (call->val & (bits | WRPHASE)) == bits &&
		       rw->flags == PREFER_WRITER_NONRECURSIVE;
	memcpy(&word, (const char *)rw + w->off, sizeof(word));
	return call->val == w->val && word == w->val;
}

static void set_rwlock_holder(struct wp_lock *ret, const struct rwlock *rw,
			      const struct wp_lock_call *call)
{
	uint32_t readers = rw->readers >> READER_SHIFT;
	int32_t tid = wp_lock_find_thread(call, rw->cur_writer);

	if (!(rw->readers & WRPHASE)) {
		/* A writer waits for the readers and has not recorded itself. */
		if (readers && !rw->cur_writer) {
			ret->holder = WP_HOLDER_READERS;
			ret->readers = readers;
		}
	} else if (tid) {
		ret->holder = WP_HOLDER_THREAD;
		ret->owner_tid = tid;
	} else if (wp_lock_is_tid(rw->cur_writer) && !rw->shared) {
		ret->holder = WP_HOLDER_GONE;
		ret->owner_tid = (int32_t)rw->cur_writer;
	}
}

static bool still_held(const struct rwlock *rw, uint32_t off,
		       const struct wp_lock_call *call)
{
	const uint32_t bits = WRPHASE | WRLOCKED;
	struct rwlock now;

	return read_rwlock(&now, call, off) &&
	       (now.readers & bits) == (rw->readers & bits) &&
	       now.cur_writer == rw->cur_writer &&
	       ((now.readers & WRPHASE) || now.readers >> READER_SHIFT);
}

static bool decode_wait(struct wp_lock *ret, const struct rwlock_wait *w,
			const struct wp_lock_call *call)
{
	struct wp_lock lock = {
		.kind = w->is_reader ? WP_LOCK_RWLOCK_READ :
				       WP_LOCK_RWLOCK_WRITE,
		.holder = WP_HOLDER_NOT_RECORDED,
		.avma = call->uaddr_avma - w->off,
		.type = "",
	};
	struct rwlock rw;

	if (!read_rwlock(&rw, call, w->off) || !is_rwlock(&rw, call) ||
	    !fits_wait(&rw, w, call))
		return false;
	set_rwlock_holder(&lock, &rw, call);
	if (call->caller == WP_LOCK_CALLER_UNKNOWN &&
	    lock.holder != WP_HOLDER_THREAD)
		return false;
	if (!still_held(&rw, w->off, call)) {
		lock.holder = WP_HOLDER_NOT_RECORDED;
		lock.owner_tid = 0;
		lock.readers = 0;
	}
	*ret = lock;
	return true;
}

bool wp_lock_decode_glibc_rwlock(struct wp_lock *ret,
				 const struct wp_lock_call *call)
{
	bool can_read = call->caller == WP_LOCK_CALLER_RDLOCK ||
			call->caller == WP_LOCK_CALLER_UNKNOWN;
	bool can_write = call->caller == WP_LOCK_CALLER_WRLOCK ||
			 call->caller == WP_LOCK_CALLER_UNKNOWN;

	if (!wp_lock_is_wait(call))
		return false;
	for (unsigned int i = 0; i < NRWLOCK_WAITS; i++) {
		const struct rwlock_wait *w = &rwlock_waits[i];

		/* At most one fits: each wants the writer in a word that is
		 * padding in the other. */
		if ((w->is_reader ? can_read : can_write) &&
		    decode_wait(ret, w, call))
			return true;
	}
	return false;
}
