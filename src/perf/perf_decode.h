/* SPDX-License-Identifier: Apache-2.0 */
/* perf_decode.h - bytes of a ring to records.
 *
 * Layer: perf.  Private to src/trace/.  Pure computation.
 */
#ifndef WP_TRACE_PERF_DECODE_H
#define WP_TRACE_PERF_DECODE_H

#include <linux/perf_event.h>

#include "wallprof/perf.h"

/* What all our events have in their samples, in the kernel's order
 * (linux/perf_event.h, PERF_RECORD_SAMPLE).  Not PERF_SAMPLE_PERIOD: a software
 * event that has it samples every time, whatever its period is
 * (kernel/events/core.c, perf_swevent_event). */
#define WP_PERF_SAMPLE_BASE                                                    \
	((uint64_t)(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |                  \
		    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU))
/* and what some have. */
#define WP_PERF_SAMPLE_EXTRA                                                   \
	((uint64_t)(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |            \
		    PERF_SAMPLE_STACK_USER))

/* attr.sample_regs_user: the registers that struct wp_regs has. */
uint64_t wp_perf_regs_mask(void);

/* Registers from VALUES, one for each bit of wp_perf_regs_mask(). */
void wp_perf_regs_set(struct wp_regs *regs, const uint8_t *values);

/* Who ran when a record was written, which of FORK is not whom it is about. */
struct wp_perf_writer {
	pid_t pid;
	pid_t tid;
};

/* Fill *RET from one record, BYTES[0..len), aligned to 8, of an event whose
 * attr.sample_type is WP_PERF_SAMPLE_BASE and any of WP_PERF_SAMPLE_EXTRA,
 * with attr.sample_id_all.  Every sample is told as WP_PERF_SAMPLE_CPU and
 * without a period: the event's id tells more.  What *RET points to lies in
 * BYTES.
 *
 * 0; -ENOTSUP: another type of record; -EBADMSG.
 */
WP_MUST_CHECK
int wp_perf_parse(struct wp_perf_record *ret, struct wp_perf_writer *ret_writer,
		  uint64_t sample_type, const void *bytes, size_t len);

/* Where the time is in a record of TYPE and SIZE; 0 if it is too short. */
size_t wp_perf_time_off(uint32_t type, size_t size);

#endif
