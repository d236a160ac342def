/* SPDX-License-Identifier: Apache-2.0 */
/* switch_sample.h - from a sample at a context switch to the key of a wait.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_SWITCH_SAMPLE_H
#define WP_SWITCH_SAMPLE_H

#include "wallprof/err.h"
#include "wallprof/perf.h"
#include "wallprof/profile.h"

struct wp_perf_source;
struct wp_target;
struct wp_thread;

enum { WP_SWITCH_SAMPLE_CALLS = 256 };

/* System calls that code makes, by the pc after the instruction: a cache. */
struct wp_switch_sample_calls {
	struct {
		uint64_t pc_avma;
		pid_t pid;
		/* Generation of the map that it was read in. */
		uint64_t generation;
		/* As by wp_wait_state_call_before. */
		long nr;
	} v[WP_SWITCH_SAMPLE_CALLS];
};

/* The system call that the code of TARGET before PC_AVMA makes: -1: none, or as by
 * wp_wait_state_call_before. */
long wp_switch_sample_call(struct wp_switch_sample_calls *calls,
			   struct wp_target *target, uint64_t pc_avma);

/* Is T, at a switch with registers REGS, a worker of the kernel's?  The kernel hands out its
 * registers as 0, or not at all. */
bool wp_switch_sample_is_worker(struct wp_thread *t,
				const struct wp_regs *regs);

/* Set state, wait and system call of KEY, which has no object, to those of the wait that
 * T begins with registers REGS; a worker of the kernel's is in no call, and for what it
 * waits is not known.  RETURN_AVMA: where the innermost function returns to,
 * before which an i386 program's call is told; 0: not known. */
void wp_switch_sample_wait(struct wp_switch_sample_calls *calls,
			   struct wp_thread *t, const struct wp_regs *regs,
			   uint64_t return_avma, struct wp_sample_key *key);

/* Fill RET with the key of the wait that T begins: RECORD is a sample, from SOURCE,
 * of T as it leaves its CPU, with its registers.  The key has no object.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_switch_sample_key(struct wp_switch_sample_calls *calls,
			 struct wp_thread *t, struct wp_perf_source *source,
			 const struct wp_perf_record *record,
			 struct wp_sample_key *ret);

#endif
