/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.h - the process that records one process of serve, and answers of it.
 *
 * Layer: cmd.
 */
#ifndef WP_RECORDER_H
#define WP_RECORDER_H

#include "options.h"
#include "wallprof/history.h"
#include "wallprof/serve.h"

struct wp_parts_told;

/* What a recorder tells every second, of what it records and of itself. */
struct wp_recorder_status {
	/* Of several processes 0. */
	int32_t pid;
	/* It has told something. */
	bool is_there;
	/* The process has ended: what there is is its last minutes. */
	uint32_t has_ended;
	char name[WP_SERVE_NAME_SIZE];
	/* That are recorded now; that could not be in time, and that may not be. */
	uint64_t processes;
	uint64_t processes_lost;
	uint64_t processes_denied;
	uint64_t ticks;
	uint64_t missed_ticks;
	/* Left out for --max-cpu. */
	uint64_t spared_ticks;
	uint64_t samples_lost;
	/* Stacks, mappings, and parts of ELF files, left out for --max-memory; threads
	 * that share an entry; times that the object of a wait, or a new name, was left
	 * out. */
	uint64_t stacks_dropped;
	uint64_t mappings_dropped;
	uint64_t files_dropped;
	uint64_t threads_shared;
	uint64_t objects_dropped;
	uint64_t names_dropped;
	/* Threads by what they do now, and thread time since the recording began. */
	uint32_t threads[WP_NSTATES];
	uint64_t ns[WP_NSTATES][WP_NWAITS];
	/* Of a thread that is still in its wait. */
	uint64_t longest_wait_ns;
	/* How far the ring goes back, and its marks that went too early. */
	uint64_t history_ns;
	uint64_t history_bytes;
	uint64_t history_dropped;
	/* Of the profile that the marks of the ring refer to. */
	uint64_t profile_bytes;
	/* The last check found a deadlock, or no progress; checks made; hangs of
	 * which files were kept, and of which they could not be. */
	uint64_t deadlocks;
	uint64_t no_progress;
	uint64_t checks;
	uint64_t hangs_kept;
	uint64_t hangs_failed;
	/* CPU time and memory of the recorder, with its children's. */
	uint64_t cpu_ns;
	uint64_t memory;
	/* Answers given, and refused. */
	uint64_t answers;
	uint64_t refused;
};

_Static_assert(sizeof(struct wp_recorder_status) !=
		       sizeof(struct wp_serve_answer),
	       "packets are told apart by their size");

/* Record process PID, 0: all that OPTIONS choose, until SOCK is closed, answer what is
 * asked there, and tell its status; of several processes besides their PARTS.  The exit
 * status of this process. */
int wp_recorder_run(const struct wp_options *options, pid_t pid, int sock,
		    struct wp_parts_told *parts);

#endif
