/* SPDX-License-Identifier: Apache-2.0 */
/* signals.c - see signals.h. */
#include "signals.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "exit_status.h"
#include "messages.h"
#include "wallprof/clock.h"
#include "wallprof/tracer.h"

/* For how long what follows a recording goes before the target. */
enum { HASTE_US = 100000 };

volatile sig_atomic_t wp_interrupts;

/* The nice value that wallprof was started with. */
static int nice_before;
/* What each adds to wp_interrupts. */
static int weight;
/* The first one caught; 0: none. */
static volatile sig_atomic_t caught;

/* Called at each where no thread is held; NULL: nobody is. */
static void (*on_interrupt)(void);
static void (*remove_files)(const void *ctx);
static const void *files;

static const int ending[] = { SIGINT, SIGTERM, SIGHUP };

static void on_signal(int sig)
{
	if (!caught)
		caught = sig;
	wp_interrupts += weight;
	if (on_interrupt && !wp_tracer_nheld)
		on_interrupt();
}

/* Of one interrupt the names of functions are still waited for. */
static void on_at_once(int sig)
{
	(void)sig;
	wp_interrupts += 2;
	if (on_interrupt && !wp_tracer_nheld)
		on_interrupt();
}

void wp_signals_catch(int each)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct sigaction old;
	sigset_t set;

	weight = each;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		/* As under nohup(1). */
		if (!sigaction(ending[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(ending[i], &act, NULL);
		sigaddset(&set, ending[i]);
	}
	sigaddset(&set, WP_SIGNAL_AT_ONCE);
	act.sa_handler = on_at_once;
	sigaction(WP_SIGNAL_AT_ONCE, &act, NULL);
	/* The write fails, and its error is reported. */
	act.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &act, NULL);
	/* A write past RLIMIT_FSIZE likewise: the signal would end wallprof and
	 * leave a part of the profile behind. */
	sigaction(SIGXFSZ, &act, NULL);
	/* Whoever started wallprof may have blocked them. */
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* End as by the signal that was caught, if one was. */
static void end(void)
{
	sigset_t set;

	if (caught) {
		signal(caught, SIG_DFL);
		sigemptyset(&set);
		sigaddset(&set, caught);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		raise(caught);
	}
	_exit(WP_EXIT_NOTHING);
}

static void on_last_signal(int sig)
{
	(void)sig;
	end();
}

void wp_signals_leave(void)
{
	struct sigaction old;

	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
		if (!sigaction(ending[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			signal(ending[i], SIG_DFL);
	signal(WP_SIGNAL_AT_ONCE, on_last_signal);
}

static void end_if_asked(void)
{
	if (!wp_interrupts)
		return;
	if (remove_files)
		remove_files(files);
	end();
}

void wp_signals_end_at_once(void (*remove)(const void *ctx), const void *ctx)
{
	remove_files = remove;
	files = ctx;
	wp_tracer_on_release = end_if_asked;
	on_interrupt = end_if_asked;
	wp_signals_catch(2);
	/* One may have come before. */
	if (!wp_tracer_nheld)
		end_if_asked();
}

void wp_signals_forget_files(void)
{
	remove_files = NULL;
}

void wp_signals_put_off(int each)
{
	weight = each;
	on_interrupt = NULL;
	wp_tracer_on_release = NULL;
}

int wp_signals_wait(const sigset_t *signals, uint64_t until_ns,
		    siginfo_t *ret_info)
{
	uint64_t now = wp_clock_ns();
	uint64_t ns = until_ns > now ? until_ns - now : 0;
	const struct timespec ts = { (time_t)(ns / WP_NS_PER_S),
				     (long)(ns % WP_NS_PER_S) };

	return sigtimedwait(signals, ret_info, &ts);
}

/* Where the kernel groups processes by session for scheduling, the nice value counts
 * within the session only, and the session, if it is wallprof's own, has another
 * (sched(7), "The autogroup feature").  What is not permitted is left as it is. */
static void set_nice(int own, const char *of_session)
{
	int saved = errno, fd = -1;

	setpriority(PRIO_PROCESS, 0, own);
	if (getsid(0) == getpid())
		fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, of_session, strlen(of_session));
		close(fd);
	}
	errno = saved;
}

void wp_priority_lower(void)
{
	set_nice(nice_before, "0");
	/* What it was at first. */
	prctl(PR_SET_TIMERSLACK, 0);
}

static void on_alarm(int sig)
{
	int saved = errno;

	(void)sig;
	/* Who names addresses is in the group. */
	setpriority(PRIO_PGRP, 0, nice_before);
	set_nice(nice_before, "0");
	errno = saved;
}

void wp_priority_lower_soon(void)
{
	const struct itimerval after = { .it_value.tv_usec = HASTE_US };
	struct sigaction act = { .sa_handler = on_alarm,
				 .sa_flags = SA_RESTART };
	sigset_t set;

	/* Others may be in a group that is not its own. */
	if (getpgrp() != getpid() || sigaction(SIGALRM, &act, NULL)) {
		wp_priority_lower();
		return;
	}
	prctl(PR_SET_TIMERSLACK, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	if (setitimer(ITIMER_REAL, &after, NULL))
		wp_priority_lower();
}

bool wp_limits_suffice(void)
{
	enum { STACK_KIB = 256, DESCRIPTORS = 32 };
	struct rlimit limit;

	if (!getrlimit(RLIMIT_STACK, &limit) &&
	    limit.rlim_cur < STACK_KIB * 1024) {
		wp_say("wallprof: its stack may have %llu KiB only, and %d are "
		       "needed: raise the limit (ulimit -s %d)",
		       (unsigned long long)limit.rlim_cur / 1024, STACK_KIB,
		       STACK_KIB);
		return false;
	}
	/* The soft one is raised to it. */
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_max < DESCRIPTORS) {
		wp_say("wallprof: it may have %llu files open only, and %d are "
		       "needed at least: raise the limit (ulimit -n)",
		       (unsigned long long)limit.rlim_max, DESCRIPTORS);
		return false;
	}
	return true;
}

bool wp_limits_leave(unsigned int n)
{
	int fds[64];
	unsigned int got = 0;

	assert(n <= sizeof(fds) / sizeof(*fds));
	while (got < n &&
	       (fds[got] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		got++;
	for (unsigned int i = 0; i < got; i++)
		close(fds[i]);
	return got == n;
}

bool wp_limits_raise_files(struct rlimit *ret_before)
{
	struct rlimit raised;

	*ret_before = (struct rlimit){ 0 };
	if (getrlimit(RLIMIT_NOFILE, ret_before))
		return false;
	raised = (struct rlimit){ ret_before->rlim_max, ret_before->rlim_max };
	setrlimit(RLIMIT_NOFILE, &raised);
	return true;
}

void wp_limits_raise(void)
{
	struct rlimit before;

	(void)wp_limits_raise_files(&before);
	/* A sampler that loses its CPU in a stop window holds the target up. */
	nice_before = getpriority(PRIO_PROCESS, 0);
	set_nice(-10, "-10");
	/* With slack the kernel puts a tick off to the next interrupt of its CPU, which
	 * may be the target's own timer: most ticks would meet its waits as they end. */
	prctl(PR_SET_TIMERSLACK, 1);
}
