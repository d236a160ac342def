/* SPDX-License-Identifier: Apache-2.0 */
/* pusher.h - the profiles of each interval, from the recorders to what sends them.
 *
 * Layer: cmd.
 */
#ifndef WP_PUSHER_H
#define WP_PUSHER_H

#include "options.h"
#include "wallprof/push.h"

struct wp_served;
struct wp_served_one;

/* As the id of a question: the recorder's answer is to be pushed; no client has such. */
#define WP_PUSHER_ID (UINT32_C(1) << 31)

/* A bearer token may be some KiB. */
enum { WP_PUSHER_AUTH_SIZE = 8192 };

struct wp_pusher {
	const struct wp_options *options;
	/* Of the process that sends; 0: none.  SOCK leads there. */
	pid_t pid;
	int sock;
	/* When it was started last, and when recorders are to be asked again. */
	uint64_t started_ns;
	uint64_t due_ns;
	uint32_t nasked;
	/* serve ends: recorders are asked for their last; of so many it did not come. */
	bool is_ending;
	uint64_t nlost;
	/* Profiles that were passed to the process; that it had when it ended, after
	 * wp_pusher_shut. */
	uint64_t npassed;
	uint64_t nleft;
	/* As it told last, with the sums of those that ran before it. */
	struct wp_push_stats stats;
	struct wp_push_stats before;
	/* Profiles that could not be made, or found no room on their way, whose time
	 * comes with the next; and recorders that ended before their last. */
	uint64_t failed;
	/* It was said that the collector does not take any, and that they are
	 * dropped [0] or kept [1]. */
	bool is_said[2];
	/* What the collector wants to see, of --push-auth; "": nothing. */
	char auth[WP_PUSHER_AUTH_SIZE];
};

/* Start what sends, if options want it.  0; -ENOTSUP or -errno with ERR. */
WP_MUST_CHECK
int wp_pusher_start(struct wp_pusher *pusher, struct wp_err *err);

/* Start it again if it has ended, and ask recorders for what is due. */
void wp_pusher_step(struct wp_pusher *pusher, struct wp_served *served);

/* ONE's recorder has answered A, with FILE or -1, which stays the caller's. */
void wp_pusher_pass(struct wp_pusher *pusher, struct wp_served_one *one,
		    const struct wp_serve_answer *a, int file);

/* Is there time of ONE that is still to be pushed? */
bool wp_pusher_lacks(const struct wp_pusher *pusher,
		     const struct wp_served_one *one);

/* serve ends: ask the recorders for what is not pushed yet.  False: nothing is to come,
 * or nobody sends. */
bool wp_pusher_finish(struct wp_pusher *pusher, struct wp_served *served);

/* ONE's recorder has ended: what it lacks is lost, and is counted. */
void wp_pusher_lose(struct wp_pusher *pusher, const struct wp_served_one *one);

/* Take what the process tells. */
void wp_pusher_take(struct wp_pusher *pusher);

/* The process has ended with STATUS, as of waitpid(2). */
void wp_pusher_reap(struct wp_pusher *pusher, int status);

/* Ask it to send what it has and to end; it tells what became of that. */
void wp_pusher_shut(struct wp_pusher *pusher);

/* At the end: say what was not sent. */
void wp_pusher_say_unsent(const struct wp_pusher *pusher);

/* Part with it. */
void wp_pusher_end(struct wp_pusher *pusher);
/* In a process that does not push: forget the socket and the secret. */
void wp_pusher_leave(struct wp_pusher *pusher);

void wp_pusher_write_metrics(const struct wp_pusher *pusher, FILE *out);

#endif
