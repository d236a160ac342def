/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_frames.h - the kernel's part of a stack, put before a thread's own.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_KERNEL_FRAMES_H
#define WP_KERNEL_FRAMES_H

#include "wallprof/perf.h"
#include "wallprof/types.h"

struct wp_target;
struct wp_thread;

/* Most frames of the kernel in a stack. */
enum { WP_KERNEL_FRAMES_MAX = 64 };

/* Put the frames of waiting T, from /proc/TID/stack, before those of STACK, which
 * is from a walk and so has room.  Where that file may not be read it is counted. */
void wp_kernel_frames_add_waiting(struct wp_thread *t, struct wp_stack *stack);

/* The same with the kernel's chain in RECORD, a CPU sample of TARGET. */
void wp_kernel_frames_add_chain(struct wp_target *target,
				const struct wp_perf_record *record,
				struct wp_stack *stack);

#endif
