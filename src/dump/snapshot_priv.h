/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_priv.h - the sampling of one process, and how it becomes a dump's.
 *
 * Layer: dump.
 */
#ifndef WP_SNAPSHOT_PRIV_H
#define WP_SNAPSHOT_PRIV_H

#include "wallprof/goroutine_stacks.h"
#include "wallprof/snapshot.h"

/* A process that was sampled once. */
struct wp_snapshot_sample {
	struct wp_profile profile;
	struct wp_tracer tracer;
	/* NULL: not made. */
	struct wp_sampler *sampler;
	struct wp_target *target;
	/* Empty if the program is not Go's; GO_ERR: why they could not be
	 * read. */
	struct wp_goroutine_list goroutines;
	struct wp_err go_err;
	/* The functions of the Go program's image; without an image: none. */
	struct wp_go_table go_table;
	/* notes[0..profile.nthreads), owned; NULL: not made. */
	struct wp_snapshot_note *notes;
};

/* What was read of a thread besides its stack. */
struct wp_snapshot_note {
	struct wp_thread_view view;
	/* All but its stack, wait reason and lock. */
	struct wp_dump_thread thread;
	/* Its sample in the profile's set of THREADS: index + 1; 0: none. */
	uint32_t sample;
	/* It waits at a word of memory that a variable may hold: the profile's
	 * stack whose only frame is that word: index + 1; 0: none. */
	uint32_t word_stack;
};

/* Make SAMPLE's notes of PROCESS's threads, reading CLOCK for their CPUs.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_snapshot_note_threads(struct wp_snapshot_sample *sample,
			     struct wp_snapshot_process *process,
			     struct wp_sched_clock *clock);

/* Let the words that SAMPLE's threads wait at have names with its stacks: to be
 * called before these get theirs.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_snapshot_want_variables(struct wp_snapshot_sample *sample);

/* Set the variable that T's lock is in, by NOTE of it.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_snapshot_name_variable(struct wp_dump *dump, struct wp_dump_thread *t,
			      const struct wp_snapshot_sample *sample,
			      const struct wp_snapshot_note *note);

/* Add the threads of SAMPLE to the dump, as those of its process number INDEX,
 * whose entry is filled in but for them.  SAMPLE's strings are the dump's.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_snapshot_add_threads(struct wp_snapshot *snapshot, uint32_t index,
			    const struct wp_snapshot_sample *sample);

/* Fill in the entry P of DUMP for PROCESS but for its threads, which come next; what its
 * sampling cost by COUNTERS. */
void wp_snapshot_describe_process(struct wp_dump *dump,
				  struct wp_dump_process *p,
				  const struct wp_process *process,
				  const struct wp_counters *counters);

/* Open the table of functions of the Go program that SAMPLE is of, if it is. */
void wp_snapshot_open_go(struct wp_snapshot_sample *sample);

/* Add stack number INDEX of SAMPLE's profile, whose strings are the dump's.  0
 * or -ENOMEM. */
WP_MUST_CHECK
int wp_snapshot_add_stack(struct wp_dump *dump,
			  const struct wp_snapshot_sample *sample,
			  uint32_t index, struct wp_dump_stack *ret);

/* Add SAMPLE's goroutines, after its threads, as those of process number INDEX; what
 * they have taken of the budget for that becomes the dump's.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_snapshot_add_goroutines(struct wp_snapshot *snapshot, uint32_t index,
			       struct wp_snapshot_sample *sample);

#endif
