/* SPDX-License-Identifier: Apache-2.0 */
/* call_memory.h - the memory behind the arguments of a blocked system call,
 * copied while the thread sleeps in it.
 *
 * Layer: sample.
 */
#ifndef WP_CALL_MEMORY_H
#define WP_CALL_MEMORY_H

#include "wallprof/process.h"
#include "wallprof/state.h"

enum {
	/* Around the word of a futex: locks of the C libraries begin at most
	 * BEFORE bytes before it and end at most AFTER bytes after. */
	WP_CALL_MEMORY_BEFORE = 80,
	WP_CALL_MEMORY_AFTER = 128,
	/* Of a poll's descriptors, and of a select's set. */
	WP_CALL_MEMORY_POLLED = 8,
	WP_CALL_MEMORY_SET = 128,
	/* Of the stack above a futex call: the library's frames, in which the
	 * address of a condvar is. */
	WP_CALL_MEMORY_STACK = 768,
	WP_CALL_MEMORY_PARTS = 3,
	WP_CALL_MEMORY_LOCK = WP_CALL_MEMORY_BEFORE + WP_CALL_MEMORY_AFTER,
	WP_CALL_MEMORY_BYTES = WP_CALL_MEMORY_LOCK + WP_CALL_MEMORY_STACK,
};

struct wp_call_memory {
	/* CLOCK_MONOTONIC of the copy; 0: there is none. */
	uint64_t time_ns;
	/* bytes[OFF..OFF + LEN) are a copy of the target's memory at AVMA. */
	struct {
		uint64_t avma;
		uint32_t off;
		uint32_t len;
	} parts[WP_CALL_MEMORY_PARTS];
	uint32_t nparts;
	/* The thread's stack pointer; 0: not known. */
	uint64_t sp_avma;
	uint8_t bytes[WP_CALL_MEMORY_BYTES];
	/* lock[0..lock_len): part 0, a lock, as it was read for the instant of
	 * all threads. */
	uint32_t lock_len;
	uint8_t lock[WP_CALL_MEMORY_LOCK];
};

/* Turn call *NR of PROCESS, an i386 program, with ARGS[0..6), into a native one.  Returns
 * has_narrow_time of struct wp_native_call. */
bool wp_call_memory_make_native(const struct wp_process *process, long *nr,
				uint64_t *args);

/* Copy what the arguments of FACTS' call, made with stack pointer SP, refer to;
 * what is unreadable is left out.  Times are as this machine's own programs have them. */
void wp_call_memory_take(struct wp_call_memory *memory,
			 const struct wp_process *process,
			 const struct wp_thread_facts *facts, uint64_t sp_avma);

/* Read BUF[0..len) at AVMA from the copy.  False if not all of it is there. */
bool wp_call_memory_read(const struct wp_call_memory *memory, uint64_t avma,
			 void *buf, size_t len);

#endif
