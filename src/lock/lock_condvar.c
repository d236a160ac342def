/* SPDX-License-Identifier: Apache-2.0 */
/* lock_condvar.c - condition variables of glibc: see lock_priv.h.
 *
 * Layouts and protocol: glibc's bits/thread-shared-types.h and
 * pthread_cond_wait.c, 2.25 to 2.40 and from 2.41 on; checked against 2.36.
 */
#include "lock_priv.h"

enum {
	/* Offset of the two words that waiters sleep on, __g_signals. */
	SIGNALS = 40,
	SIGNALS_2_41 = 32,
	/* From __wrefs to them: the number of waiters, above three flags. */
	WREFS_BEFORE = 4,
	WREFS_SHIFT = 3,
	/* Bytes of the stack in which the frames of pthread_cond_wait lie. */
	STACK_BYTES = 768,
};

/* Does the stack of CALL's thread hold A or B?  pthread_cond_wait keeps its
 * argument there, for a cancellation.  0: neither; else the one that does. */
static uint64_t find_on_stack(const struct wp_lock_call *call, uint64_t a,
			      uint64_t b)
{
	const uint64_t size = call->query->is_32bit ? 4 : 8;

	for (uint64_t off = 0; off < STACK_BYTES; off += size) {
		uint64_t word = 0;

		if (!wp_lock_read_at(&word, size, call, call->sp_avma + off))
			return 0;
		if (word == a || word == b)
			return word;
	}
	return 0;
}

/* The condvar whose signals, of which CALL waits for one, are at SIGNALS_AVMA; 0: none
 * is there. */
static uint64_t find_condvar(const struct wp_lock_call *call,
			     uint64_t signals_avma)
{
	uint32_t wrefs;

	if (signals_avma < SIGNALS ||
	    !wp_lock_read_at(&wrefs, sizeof(wrefs), call,
			     signals_avma - WREFS_BEFORE) ||
	    !(wrefs >> WREFS_SHIFT))
		return 0;
	return find_on_stack(call, signals_avma - SIGNALS,
			     signals_avma - SIGNALS_2_41);
}

bool wp_lock_decode_glibc_condvar(struct wp_lock *ret,
				  const struct wp_lock_call *call)
{
	uint64_t uaddr_avma = call->uaddr_avma, avma;

	/* A WAIT is for the mutex, on the way back from the condvar. */
	if (call->cmd != FUTEX_WAIT_BITSET || !call->sp_avma)
		return false;
	/* Condvars are aligned to 8 bytes: the second word is not.  i386's are to 4. */
	avma = find_condvar(call, call->query->is_32bit ?
					  uaddr_avma :
					  uaddr_avma & ~UINT64_C(7));
	if (!avma && call->query->is_32bit)
		avma = find_condvar(call, uaddr_avma - sizeof(uint32_t));
	if (!avma)
		return false;
	*ret = (struct wp_lock){
		.kind = WP_LOCK_CONDVAR,
		.holder = WP_HOLDER_NONE,
		.avma = avma,
		.type = "",
	};
	return true;
}
