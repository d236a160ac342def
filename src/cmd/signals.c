/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - see signals.h. */
#include "signals.h"

#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

volatile sig_atomic_t wp_interrupts;

static void on_signal(int sig)
{
	(void)sig;
	wp_interrupts++;
}

void wp_signals_catch(void)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction act = { .sa_handler = on_signal };
	struct sigaction old;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		/* nohup(1) wants to be heeded. */
		if (!sigaction(wanted[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(wanted[i], &act, NULL);
	/* A reader that goes away is a failed write, to be told as one. */
	act.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &act, NULL);
	/* So is one past RLIMIT_FSIZE; its signal would end us with the part of
	 * a profile left behind. */
	sigaction(SIGXFSZ, &act, NULL);
}

void wp_limits_raise(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) &&
	    limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	/* A sampler that loses its CPU in a stop window holds the target up:
	 * where it may, it goes before others.  Denied is no matter. */
	if (setpriority(PRIO_PROCESS, 0, -10))
		errno = 0;
}
