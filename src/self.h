/* self.h - what concerns wallprof's own process.
 *
 * Layer: main.
 */
#ifndef WP_SELF_H
#define WP_SELF_H

#include <signal.h>

#include "wallprof/err.h"

/* Exit statuses; the first four as eu-stack has them, the last three as
 * timeout(1). */
enum {
	WP_EXIT_WHOLE = 0,
	WP_EXIT_LOSSES = 1,
	WP_EXIT_NOTHING = 2,
	WP_EXIT_DEADLOCK = 3,
	WP_EXIT_NO_PROGRESS = 4,
	WP_EXIT_USAGE = 64,
	WP_EXIT_TIMEOUT = 124,
	WP_EXIT_CANNOT_RUN = 126,
	WP_EXIT_NOT_FOUND = 127,
};

/* How many signals have asked for the end, once they are caught. */
extern volatile sig_atomic_t wp_interrupts;

/* Catch SIGINT, SIGTERM and SIGHUP, but for those that are ignored already;
 * ignore SIGPIPE. */
void wp_catch_signals(void);

/* Put down what capabilities wallprof's file has given it without need, before
 * anything else.  CAP_SYS_PTRACE is kept only where Yama keeps users from their
 * own processes; whom they may look at is for wp_process_open to find out.
 *
 * Returns 0, or -EPERM when it is set-user-ID, with ERR. */
WP_MUST_CHECK
int wp_settle_rights(struct wp_err *err);

/* Allow as many descriptors as may be, and ask for a CPU before others. */
void wp_raise_limits(void);

/* A line on standard error; '?' for what is not to be printed. */
void wp_say(const char *fmt, ...) WP_PRINTF(1, 2);

#endif
