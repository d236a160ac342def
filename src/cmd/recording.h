/* SPDX-License-Identifier: Apache-2.0 */
/* recording.h - a recording that goes on, and the profile of part of its time.
 *
 * Layer: cmd.
 */
#ifndef WP_RECORDING_H
#define WP_RECORDING_H

#include "follow.h"
#include "options.h"
#include "recorded.h"
#include "wallprof/cumulative.h"
#include "wallprof/history.h"
#include "wallprof/sampler.h"
#include "wallprof/serve.h"

struct wp_recording {
	const struct wp_options *options;
	/* What is recorded; of several processes (options->sampler.many) RECORDED has
	 * them, and PROCESS and TARGET are nothing. */
	struct wp_process process;
	struct wp_recorded recorded;
	struct wp_follow follow;
	struct wp_profile profile;
	struct wp_tracer tracer;
	struct wp_sampler *sampler;
	struct wp_target *target;
	struct wp_history history;
	/* All waits since then. */
	struct wp_cumulative waits;
	uint64_t start_ns;
	/* 0: the process lives. */
	uint64_t ended_ns;
};

/* What to answer with. */
struct wp_recording_job {
	struct wp_serve_ask ask;
	/* Time of the profile; FROM_NS 0: all. */
	uint64_t from_ns, to_ns;
	/* Of a hang: why, and a descriptor of what the check printed, -1: none;
	 * both borrowed. */
	const char *reason;
	int report;
};

/* Why there is nothing of now any more. */
#define WP_RECORDING_HAS_ENDED                                                 \
	"the process has ended: its last minutes are there still "             \
	"(wall?seconds=60&ago=60)"

/* Is ASK for a recording of a Go program's goroutines, which begins when it is
 * answered? */
bool wp_recording_is_of_goroutines(const struct wp_recording *recording,
				   const struct wp_serve_ask *ask);

/* Begin to record process PID, 0: all that R's options choose.  0 or -errno with ERR;
 * ends by wp_recording_end in any case. */
WP_MUST_CHECK
int wp_recording_begin(struct wp_recording *r, pid_t pid, struct wp_err *err);

/* Make a tick, and meet the processes that have come and gone.  0; -ESRCH: nothing is left
 * to record; -errno with ERR: it may not go on. */
WP_MUST_CHECK
int wp_recording_tick(struct wp_recording *r, struct wp_err *err);

/* Let go of all threads.  What was recorded stays for the rest of the process. */
void wp_recording_end(struct wp_recording *r);

/* Does ASK choose process PID called NAME? */
bool wp_recording_chooses(const struct wp_serve_ask *ask, int32_t pid,
			  const char *name);

/* In a process forked from the one that records, whose memory this one changes: write
 * what JOB asks for to descriptor FILE.  The answer's status and text are set. */
void wp_recording_answer(struct wp_recording *recording,
			 const struct wp_recording_job *job, int file,
			 struct wp_serve_answer *ret);

/* There: do with the profile, which is of the time from FROM_NS to TO_NS, what the end
 * of a recording would.  0 or -errno. */
WP_MUST_CHECK
int wp_recording_finish(struct wp_recording *r,
			const struct wp_recording_job *job, uint64_t from_ns,
			uint64_t to_ns);

/* There: dump the threads, as text, to descriptor FILE. */
void wp_recording_dump(struct wp_recording *r, int file,
		       struct wp_serve_answer *ret);

#endif
