/* SPDX-License-Identifier: Apache-2.0 */
/* perf_decode.h - parses the records of a ring buffer.
 *
 * Layer: perf.  Private to src/perf/.  Pure computation.
 */
#ifndef WP_PERF_DECODE_H
#define WP_PERF_DECODE_H

#include <linux/perf_event.h>

#include "wallprof/perf.h"

/* attr.sample_type of every event: fields of all samples, in the kernel's order
 * (linux/perf_event.h, PERF_RECORD_SAMPLE).  Not PERF_SAMPLE_PERIOD: a software
 * event that has it samples every time, whatever its period is
 * (kernel/events/core.c, perf_swevent_event). */
#define WP_PERF_SAMPLE_BASE                                                    \
	((uint64_t)(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |                  \
		    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU))
/* Fields that some events have besides. */
#define WP_PERF_SAMPLE_EXTRA                                                   \
	((uint64_t)(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |            \
		    PERF_SAMPLE_STACK_USER))
/* attr.sample_type of events of wakes. */
#define WP_PERF_WAKE_TYPE (WP_PERF_SAMPLE_BASE | (uint64_t)PERF_SAMPLE_RAW)

/* attr.sample_regs_user: the registers of struct wp_regs. */
uint64_t wp_perf_regs_mask(void);

/* Set REGS from VALUES, 8 bytes for each bit of wp_perf_regs_mask(). */
void wp_perf_regs_set(struct wp_regs *regs, const uint8_t *values);

/* The thread on the CPU when the record was written; of a FORK record it is not
 * the thread that the record is about. */
struct wp_perf_writer {
	pid_t pid;
	pid_t tid;
};

/* Parse one record, BYTES[0..len), aligned to 8, of an event whose
 * attr.sample_type is WP_PERF_SAMPLE_BASE and any of WP_PERF_SAMPLE_EXTRA and
 * PERF_SAMPLE_RAW, with attr.sample_id_all.  A sample gets type WP_PERF_SAMPLE_CPU
 * and no period: the caller corrects both by the event's id.  *RET borrows from
 * BYTES.
 *
 * 0; -ENOTSUP: a record of another type; -EBADMSG: malformed.
 */
WP_MUST_CHECK
int wp_perf_parse(struct wp_perf_record *ret, struct wp_perf_writer *ret_writer,
		  uint64_t sample_type, const void *bytes, size_t len);

/* Make REC, a sample of tracepoint sched:sched_waking, a WP_PERF_WAKE.  0; -EBADMSG:
 * its data are too short. */
WP_MUST_CHECK
int wp_perf_parse_wake(struct wp_perf_record *rec);

/* The id of the event that wrote the sample BYTES[0..len); 0: it is no sample. */
uint64_t wp_perf_sample_id(const void *bytes, size_t len);

/* The offset of the time in a record of TYPE and SIZE; 0: the record is too short
 * to have one. */
size_t wp_perf_time_off(uint32_t type, size_t size);

#endif
