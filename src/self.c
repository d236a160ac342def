/* self.c - see self.h. */
#include "self.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

volatile sig_atomic_t wp_interrupts;

static void on_signal(int sig)
{
	(void)sig;
	wp_interrupts++;
}

void wp_catch_signals(void)
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
}

void wp_raise_limits(void)
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

/* One write a line, so that lines of several programs do not mix. */
void wp_say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}
