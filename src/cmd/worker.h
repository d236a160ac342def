/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - wallprof's process that looks, and the one that answers for it.
 *
 * Layer: cmd.
 *
 * To look at a process is to open files, to read memory and to stop threads: each
 * may block for ever, and a looker that is stopped itself holds what it stopped.
 * So the worker does that, a child in a process group or session of its own that no
 * key of a terminal and no kill(2) of a group reaches.  The process that was started, its
 * supervisor, never does: it answers signals and holds deadlines.
 */
#ifndef WP_WORKER_H
#define WP_WORKER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The worker as its supervisor has it. */
struct wp_worker {
	/* 0: it has ended and was reaped. */
	pid_t pid;
	/* A socket to it, by packets; and what it writes to standard error. */
	int sock;
	int messages;
};

/* What a packet from a worker says by its first byte. */
enum wp_worker_says {
	/* It begins to look. */
	WP_WORKER_LOOKS = 'L',
	/* It has looked, and waits for standard output and error. */
	WP_WORKER_WRITES = 'W',
};

/* Keep what a command of the user's is to have: the signal mask OLD, and the limit of
 * descriptors, which is raised for wallprof.  Call it before wp_worker_fork. */
void wp_worker_keep(const sigset_t *old);

/* For a command that is forked: have the signal mask and the limit of descriptors that
 * wallprof was started with. */
void wp_worker_restore(void);

/* Fork a worker.  Returns as fork(2) does; in the worker *RET is left alone. */
pid_t wp_worker_fork(struct wp_worker *ret);

/* Give WORKER the standard output and error that it waits for. */
void wp_worker_give_streams(const struct wp_worker *worker);

/* In the worker: send a packet to the supervisor. */
void wp_worker_send(const void *packet, size_t len);

/* In the worker, once the user's command is forked, which stays where it is: part
 * with the process group, or with SESSION with the session; with standard output
 * and error, until wp_worker_take_streams; and with all that the command inherits: a
 * worker that is stuck would hold it.  SESSION is for who has a command, or reads
 * the terminal's keys, which only a foreground group of its session may. */
void wp_worker_part(bool session);

/* In the worker: wait for standard output and error.  What cannot be had is left
 * as it is. */
void wp_worker_take_streams(void);

/* In the worker: is standard error the user's terminal? */
bool wp_worker_has_terminal(void);

/* In the worker: is the supervisor stopped, as by Ctrl-Z? */
bool wp_worker_is_suspended(void);

/* The process that was started as wallprof: of a worker its supervisor. */
pid_t wp_worker_first(void);

/* In the worker: has the supervisor ended before it? */
bool wp_worker_is_orphan(void);

#endif
