/* SPDX-License-Identifier: Apache-2.0 */
/* served.h - the processes that are served, each with its recorder.
 *
 * Layer: cmd.
 */
#ifndef WP_SERVED_H
#define WP_SERVED_H

#include "parts.h"
#include "pusher.h"
#include "recorder.h"
#include "stuck.h"

enum {
	/* As many clients as there can be. */
	WP_SERVED_ASKS_MAX = 128,
	/* That are left alone for a while. */
	WP_SERVED_FAILED_MAX = 1024,
};

/* A process that is served, or all that are recorded together. */
struct wp_served_one {
	/* 0: of several. */
	pid_t pid;
	/* Of it; 0: it has ended. */
	pid_t recorder;
	int sock;
	/* The last that came; and when it first said that the process has ended, 0: it
	 * has not. */
	struct wp_recorder_status status;
	uint64_t ended_ns;
	/* Looks at the recorder, and the time of the next. */
	struct wp_stuck stuck;
	uint64_t next_look_ns;
	/* What the pusher has asked and has no answer to, 0: nothing; the time that
	 * was asked for last; and whether that was the last, as the process has
	 * ended. */
	uint32_t push_id;
	uint64_t push_from_ns, push_to_ns;
	bool push_is_over;
};

struct wp_served {
	const struct wp_options *options;
	struct wp_served_one v[WP_SERVED_MAX];
	size_t n;
	/* Questions that are not answered yet, and of whom. */
	struct {
		bool is_open;
		uint32_t id;
		pid_t recorder;
	} asks[WP_SERVED_ASKS_MAX];
	/* Where answers go. */
	int answers;
	struct wp_pusher *pusher;
	/* What the recorder of several processes tells; NULL: there is none. */
	struct wp_parts_told *parts;
	uint64_t searched_ns;
	/* Times that a process found no room; and whether that is said. */
	uint64_t nleft_out;
	bool full_is_said;
	/* A recorder was ended by SIGTERM. */
	bool was_ended;
	/* Recorders that ended otherwise than they should, those among them whose process
	 * has another name; the last of them: of which process and when, NFAILED being
	 * the place of the next. */
	uint64_t nfailed;
	uint64_t nmistaken;
	/* Processes that recorders of several got stuck on, [NAVOIDED % WP_AVOIDED_MAX]
	 * being the place of the next. */
	struct wp_avoided avoided[WP_AVOIDED_MAX];
	size_t navoided;
	/* NAVOIDED when the recorder of several was started last. */
	size_t navoided_before;
	/* NS 0: it may begin again at once. */
	struct {
		pid_t pid;
		uint64_t ns;
	} failed[WP_SERVED_FAILED_MAX];
};

/* Find the processes that the command line names and start a recorder for each that
 * is new, those of a number at the first call only; or the one of all that it chooses.
 * One of a name whose recorder has failed is tried again after a minute.  One for which
 * there is no room has it at a later call: it takes that of the process that ended longest
 * ago.  0, or -errno
 * with ERR: what is left may be found by the next call. */
WP_MUST_CHECK
int wp_served_find(struct wp_served *served, struct wp_err *err);

/* Take what ONE's recorder sends, and pass answers on. */
void wp_served_take(struct wp_served *served, struct wp_served_one *one);

/* Kill each recorder that does not come back from the kernel, and say so.  That of several
 * processes, which wp_served_find starts again, leaves the one alone that held it up.  To
 * be called about once in a second, or more often. */
void wp_served_look(struct wp_served *served);

/* Recorder PID has ended with STATUS, as of waitpid(2). */
void wp_served_reap(struct wp_served *served, pid_t pid, int status);

/* Pass ASK on to the process that it chooses, or answer why not; or, if it cancels a
 * question, to who has that. */
void wp_served_ask(struct wp_served *served, const struct wp_serve_ask *ask);

/* Who asked has ended: cancel its questions. */
void wp_served_cancel_all(struct wp_served *served);

/* Is nothing recorded, and nothing to come, as no process is named by name? */
bool wp_served_is_over(const struct wp_served *served);

/* End all recorders. */
void wp_served_end(struct wp_served *served);

/* Make the page, the index of profiles (PLAIN: as text) or the metrics of all to OUT. */
void wp_served_write_page(const struct wp_served *served, FILE *out);
void wp_served_write_index(const struct wp_served *served, bool plain,
			   FILE *out);
void wp_served_write_metrics(const struct wp_served *served, FILE *out);

#endif
