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
	/* Words of the stack in which the frames of pthread_cond_wait lie. */
	STACK_WORDS = 96,
};

/* Does the stack of CALL's thread hold A or B?  pthread_cond_wait keeps its
 * argument there, for a cancellation.  0: neither; else the one that does. */
static uint64_t find_on_stack(const struct wp_lock_call *call, uint64_t a,
			      uint64_t b)
{
	for (uint64_t i = 0; i < STACK_WORDS; i++) {
		uint64_t word;

		if (!wp_lock_read_at(&word, sizeof(word), call,
				     call->sp_avma + i * sizeof(word)))
			return 0;
		if (word == a || word == b)
			return word;
	}
	return 0;
}

bool wp_lock_decode_glibc_condvar(struct wp_lock *ret,
				  const struct wp_lock_call *call)
{
	/* Condvars are aligned to 8 bytes: the second word is not. */
	uint64_t signals_avma = call->uaddr_avma & ~UINT64_C(7), avma;
	uint32_t wrefs;

	/* A WAIT is for the mutex, on the way back from the condvar. */
	if (call->cmd != FUTEX_WAIT_BITSET || !call->sp_avma ||
	    signals_avma < SIGNALS ||
	    !wp_lock_read_at(&wrefs, sizeof(wrefs), call,
			     signals_avma - WREFS_BEFORE) ||
	    !(wrefs >> WREFS_SHIFT))
		return false;
	avma = find_on_stack(call, signals_avma - SIGNALS,
			     signals_avma - SIGNALS_2_41);
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
