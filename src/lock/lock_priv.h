/* SPDX-License-Identifier: Apache-2.0 */
/* lock_priv.h - what the decoders of each C library's locks share. */
#ifndef WP_LOCK_PRIV_H
#define WP_LOCK_PRIV_H

#include <linux/futex.h>

#include "wallprof/lock.h"

/* PID_MAX_LIMIT of the kernel: no tid is above. */
enum { WP_MAX_TID = 4194304 };

/* The library function that waits, by the stack. */
enum wp_lock_caller {
	/* No frame tells: only memory can. */
	WP_LOCK_CALLER_UNKNOWN,
	WP_LOCK_CALLER_MUTEX,
	/* pthread_cond_wait, which waits for the condvar or for its mutex. */
	WP_LOCK_CALLER_COND,
	WP_LOCK_CALLER_RDLOCK,
	WP_LOCK_CALLER_WRLOCK,
	WP_LOCK_CALLER_JOIN,
	/* None of these. */
	WP_LOCK_CALLER_OTHER,
};

/* A blocked call of futex(2). */
struct wp_lock_call {
	const struct wp_lock_query *query;
	uint64_t uaddr_avma;
	uint32_t cmd;
	uint32_t val;
	bool is_private;
	enum wp_lock_caller caller;
	/* The waiting thread's stack pointer; 0: not known. */
	uint64_t sp_avma;
};

static inline bool wp_lock_is_wait(const struct wp_lock_call *call)
{
	return call->cmd == FUTEX_WAIT || call->cmd == FUTEX_WAIT_BITSET;
}

static inline bool wp_lock_is_pi(const struct wp_lock_call *call)
{
	return call->cmd == FUTEX_LOCK_PI || call->cmd == FUTEX_LOCK_PI2;
}

static inline bool wp_lock_is_tid(uint32_t tid)
{
	return tid && tid <= WP_MAX_TID;
}

/* Read BUF[0..len) from the start of the object that has CALL's futex word at
 * offset OFF.  False when it is unreadable, or an address would wrap. */
bool wp_lock_read(void *buf, size_t len, const struct wp_lock_call *call,
		  uint64_t off);
/* Read BUF[0..len) at AVMA.  False when it is unreadable, or would wrap. */
bool wp_lock_read_at(void *buf, size_t len, const struct wp_lock_call *call,
		     uint64_t avma);
/* struct wp_lock_query's find_thread for a TID that may be none at all. */
int32_t wp_lock_find_thread(const struct wp_lock_call *call, uint32_t tid);
/* What a thread in CALL waits for that joins live thread TID. */
struct wp_lock wp_lock_of_join(const struct wp_lock_call *call, int32_t tid);

/* Each decodes one kind of object.  True when CALL's futex passes all checks of
 * that kind, and RET is the lock; else false, and RET is untouched. */
bool wp_lock_decode_glibc_mutex(struct wp_lock *ret,
				const struct wp_lock_call *call);
bool wp_lock_decode_glibc_rwlock(struct wp_lock *ret,
				 const struct wp_lock_call *call);
bool wp_lock_decode_glibc_condvar(struct wp_lock *ret,
				  const struct wp_lock_call *call);
/* The same of Python's GIL with its condvar, of which CALL waits for the latter. */
bool wp_lock_decode_gil(struct wp_lock *ret, const struct wp_lock_call *call,
			uint64_t condvar_avma);
bool wp_lock_decode_glibc_join(struct wp_lock *ret,
			       const struct wp_lock_call *call);
bool wp_lock_decode_musl_mutex(struct wp_lock *ret,
			       const struct wp_lock_call *call);
bool wp_lock_decode_musl_rwlock(struct wp_lock *ret,
				const struct wp_lock_call *call);
bool wp_lock_decode_musl_join(struct wp_lock *ret,
			      const struct wp_lock_call *call);

#endif
