/* SPDX-License-Identifier: Apache-2.0 */
/* signals.h - signals that ask wallprof to end, and its resource limits.
 *
 * Layer: cmd.
 */
#ifndef WP_SIGNALS_H
#define WP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

/* The SIGINT, SIGTERM and SIGHUP caught so far, each counted as what was chosen; from
 * 2 on functions are not named any more. */
extern volatile sig_atomic_t wp_interrupts;

/* What a worker (worker.h) is sent that is to end at once: by the kernel when its
 * supervisor has ended, by that at a second interrupt.  It counts as two. */
enum { WP_SIGNAL_AT_ONCE = SIGUSR1 };

/* Catch SIGINT, SIGTERM and SIGHUP, except those that are ignored already
 * (nohup(1)); EACH counts for so many.  Ignore SIGPIPE and SIGXFSZ: the write fails
 * instead. */
void wp_signals_catch(int each);

/* From now on end by them: what is written has no name that would be left behind, and
 * may be a pipe that nobody reads, at which stdio(3) goes on to wait. */
void wp_signals_leave(void);

/* Catch the same signals, and end by the first, also by one that was counted before, at
 * any moment at which no thread is held (tracer.h), after REMOVE(CTX), which must be
 * safe in a signal handler (signal-safety(7)); REMOVE may be NULL. */
void wp_signals_end_at_once(void (*remove)(const void *ctx), const void *ctx);

/* What REMOVE would remove is done, or gone: CTX may go, too. */
void wp_signals_forget_files(void);

/* After that: count them, as wp_signals_catch does. */
void wp_signals_put_off(int each);

/* Sleep until UNTIL_NS, or until one of the blocked SIGNALS comes, which *RET_INFO then
 * describes.  Returns the signal, or -1 (sigtimedwait(2)). */
int wp_signals_wait(const sigset_t *signals, uint64_t until_ns,
		    siginfo_t *ret_info);

/* Are there stack and descriptors enough to look at a process, or to read a profile?
 * If not, it is said. */
bool wp_limits_suffice(void);

/* Can N more descriptors be had, 64 at the most? */
bool wp_limits_leave(unsigned int n);

/* Raise the soft limit of descriptors to the hard one; *RET_BEFORE: what it was.  False,
 * and 0, if it is not told. */
bool wp_limits_raise_files(struct rlimit *ret_before);

/* The same, and raise the scheduling priority if that is permitted. */
void wp_limits_raise(void);

/* Take the priority back: nothing is sampled any more. */
void wp_priority_lower(void);

/* The same a tenth of a second later, by SIGALRM: what a user waits for after Ctrl-C
 * is short, and a target that keeps every CPU busy would make it long. */
void wp_priority_lower_soon(void);

#endif
