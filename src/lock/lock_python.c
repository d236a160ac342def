/* SPDX-License-Identifier: Apache-2.0 */
/* lock_python.c - Python's global interpreter lock: see lock_priv.h.
 *
 * Layout: CPython's struct _gil_runtime_state, 3.7 to 3.14 (Include/internal/
 * pycore_gil.h): interval, last_holder, locked, switch_number, cond, mutex.  Who waits
 * for it (Python/ceval_gil.c, take_gil) waits for the condvar again and again, each time
 * for the interval.
 */
#include "lock_priv.h"

enum {
	/* Words before the condvar. */
	HOLDER_BEFORE = 24,
	LOCKED_BEFORE = 16,
	/* Bytes of a PyThreadState in which its ids are. */
	TSTATE_BYTES = 512,
	/* A struct pthread is aligned to as much at least. */
	PTHREAD_ALIGN = 16,
	LEAST_POINTER = 4096,
};

static bool read_live(uint64_t *ret, const struct wp_lock_call *call,
		      uint64_t avma)
{
	const struct wp_mem *mem = &call->query->live;

	return avma <= UINT64_MAX - sizeof(*ret) &&
	       !mem->read(mem->ctx, avma, ret, sizeof(*ret));
}

/* The thread of the PyThreadState at AVMA, which has two ids of it side by side from 3.11
 * on (thread_id, native_thread_id): a pthread_t, and its tid.  0: not known. */
static int32_t find_owner(const struct wp_lock_call *call, uint64_t avma)
{
	uint64_t before, word = 0;
	int32_t tid;

	for (uint64_t off = 0; off < TSTATE_BYTES; off += sizeof(word)) {
		before = word;
		if (avma > UINT64_MAX - off ||
		    !read_live(&word, call, avma + off))
			return 0;
		if (word > WP_MAX_TID || before < LEAST_POINTER ||
		    before % PTHREAD_ALIGN)
			continue;
		tid = wp_lock_find_thread(call, (uint32_t)word);
		if (tid)
			return tid;
	}
	return 0;
}

bool wp_lock_decode_gil(struct wp_lock *ret, const struct wp_lock_call *call,
			uint64_t condvar_avma)
{
	uint64_t holder_avma;
	uint32_t locked;
	int32_t tid;

	if (call->query->is_32bit || !call->query->live.read ||
	    condvar_avma < HOLDER_BEFORE ||
	    !wp_lock_read_at(&locked, sizeof(locked), call,
			     condvar_avma - LOCKED_BEFORE) ||
	    locked != 1 ||
	    !wp_lock_read_at(&holder_avma, sizeof(holder_avma), call,
			     condvar_avma - HOLDER_BEFORE))
		return false;
	tid = find_owner(call, holder_avma);
	if (!tid)
		return false;
	*ret = (struct wp_lock){
		.kind = WP_LOCK_GIL,
		.holder = WP_HOLDER_THREAD,
		.owner_tid = tid,
		.avma = condvar_avma,
		.type = "",
	};
	return true;
}
