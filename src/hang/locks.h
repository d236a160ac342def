/* SPDX-License-Identifier: Apache-2.0 */
/* locks.h - what the decoders of each C library's locks share; private. */
#ifndef WP_LOCKS_H
#define WP_LOCKS_H

#include "wallprof/dump.h"

/* include/uapi/linux/futex.h */
enum {
	WP_FUTEX_WAIT = 0,
	WP_FUTEX_LOCK_PI = 6,
	WP_FUTEX_WAIT_BITSET = 9,
	WP_FUTEX_WAIT_REQUEUE_PI = 11,
	WP_FUTEX_LOCK_PI2 = 13,
	WP_FUTEX_CMD = 127,
	WP_FUTEX_PRIVATE = 128,
};

#define WP_FUTEX_WAITERS UINT32_C(0x80000000)
#define WP_FUTEX_OWNER_DIED UINT32_C(0x40000000)
#define WP_FUTEX_TID UINT32_C(0x3fffffff)

/* PID_MAX_LIMIT of the kernel: no tid is above. */
enum { WP_MAX_TID = 4194304 };

/* Whose frame the stack shows to be waiting. */
enum wp_lock_frame {
	/* No names, or none that says so: only memory can tell. */
	WP_LOCK_FRAME_NONE,
	WP_LOCK_FRAME_MUTEX,
	/* pthread_cond_wait: waits for the condvar, or for its mutex. */
	WP_LOCK_FRAME_COND,
	WP_LOCK_FRAME_RDLOCK,
	WP_LOCK_FRAME_WRLOCK,
	WP_LOCK_FRAME_JOIN,
	/* Something else. */
	WP_LOCK_FRAME_OTHER,
};

/* One blocked call of futex(2). */
struct wp_lock_call {
	const struct wp_lock_query *query;
	uint64_t uaddr_avma;
	uint32_t cmd;
	uint32_t val;
	bool is_private;
	enum wp_lock_frame frame;
};

static inline bool wp_lock_is_wait(const struct wp_lock_call *call)
{
	return call->cmd == WP_FUTEX_WAIT || call->cmd == WP_FUTEX_WAIT_BITSET;
}

static inline bool wp_lock_is_pi(const struct wp_lock_call *call)
{
	return call->cmd == WP_FUTEX_LOCK_PI || call->cmd == WP_FUTEX_LOCK_PI2;
}

static inline bool wp_lock_is_tid(uint32_t tid)
{
	return tid && tid <= WP_MAX_TID;
}

/* Read BUF[0..len) from where an object lies whose futex word, OFF bytes into
 * it, is CALL's.  False when it cannot be had, or would wrap. */
bool wp_lock_read(void *buf, size_t len, const struct wp_lock_call *call,
		  uint64_t off);
/* Read BUF[0..len) at AVMA.  False when it cannot be had, or would wrap. */
bool wp_lock_read_at(void *buf, size_t len, const struct wp_lock_call *call,
		     uint64_t avma);
/* The number in our PID namespace of the live thread TID, 0: there is none. */
int32_t wp_lock_find_thread(const struct wp_lock_call *call, uint32_t tid);

/* Each: true when CALL's futex lies in an object of that kind, by all of its
 * checks, and RET says what and whose; else false and RET is untouched. */
bool wp_lock_decode_glibc_mutex(struct wp_lock *ret,
				const struct wp_lock_call *call);
bool wp_lock_decode_glibc_rwlock(struct wp_lock *ret,
				 const struct wp_lock_call *call);
bool wp_lock_decode_glibc_join(struct wp_lock *ret,
			       const struct wp_lock_call *call);
bool wp_lock_decode_musl_mutex(struct wp_lock *ret,
			       const struct wp_lock_call *call);
bool wp_lock_decode_musl_rwlock(struct wp_lock *ret,
				const struct wp_lock_call *call);
bool wp_lock_decode_musl_join(struct wp_lock *ret,
			      const struct wp_lock_call *call);

#endif
