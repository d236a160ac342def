/* SPDX-License-Identifier: Apache-2.0 */
/* wait_sample.h - read a thread that waits, without a stop.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_WAIT_SAMPLE_H
#define WP_WAIT_SAMPLE_H

#include "thread.h"
#include "wallprof/task_record.h"

/* Where a thread waits. */
struct wp_wait_place {
	/* schedstat before the rest was read: if it is the same afterwards, the
	 * thread has not moved meanwhile. */
	struct wp_schedstat before;
	/* A time after that, and before the state was read. */
	uint64_t time_ns;
	/* CPU that it last ran on; -1: not known. */
	int32_t cpu;
	/* State character of /proc/TID/stat. */
	char state_char;
	/* As in struct wp_proc_stat. */
	bool dumps_core;
	struct wp_proc_syscall call;
	/* The registers that are known. */
	struct wp_regs regs;
	/* What all this is by; NULL: /proc. */
	const struct wp_task_record *record;
};

/* T, which waits, had schedstat NOW.  If its call memory is asked for, set T->look to NOW
 * and to when its wait began, unless T->look has both. */
void wp_wait_sample_look(struct wp_thread *t, const struct wp_schedstat *now);

/* Fill *RET from RECORD, T's BPF scan result.  False if RECORD has no registers:
 * T does not wait. */
bool wp_wait_sample_place(const struct wp_thread *t,
			  const struct wp_task_record *record,
			  struct wp_wait_place *ret);

/* Sample T at PLACE, of which /proc/TID/syscall has filled BEFORE and CALL: DONE,
 * MOVED, WANTS_STOP, GONE, FAILED or NO_MEMORY. */
enum wp_sample_result wp_wait_sample_proc(struct wp_thread *t,
					  struct wp_wait_place *place);

/* The same with all of PLACE filled. */
enum wp_sample_result wp_wait_sample(struct wp_thread *t,
				     const struct wp_wait_place *place);

#endif
