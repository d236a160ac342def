/* SPDX-License-Identifier: Apache-2.0 */
/* bare_stops.c - the least that a stop takes, with nothing around it.
 *
 * bare_stops TID HZ SECONDS [WAIT_US]: SEIZE, INTERRUPT, wait, GETREGSET,
 * process_vm_readv of 16 KiB, DETACH, at HZ.  WAIT_US: the wait has a timer of so long,
 * as wallprof's has, which goes on to other threads then.  Prints one line of JSON.  A pause
 * is counted from and to where wallprof counts its own: from the INTERRUPT
 * until the DETACH, plus 2 us; "whole" is from before SEIZE until after DETACH.
 */
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "../../src/sample/pause.h"
#include "wallprof/clock.h"

enum { COPY = 16384, DETACH_NS = 2000 };

static struct wp_pauses pauses, wholes;
static sigset_t sigchld;

static int copy_stack(pid_t tid)
{
	static char stack[COPY];
	struct user_regs_struct regs;
	struct iovec local = { &regs, sizeof(regs) };
	struct iovec remote;

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &local))
		return -1;
#if defined(__x86_64__)
	remote = (struct iovec){ (void *)(uintptr_t)regs.rsp, COPY };
#else
	remote = (struct iovec){ (void *)(uintptr_t)regs.sp, COPY };
#endif
	local = (struct iovec){ stack, sizeof(stack) };
	return process_vm_readv(tid, &local, 1, &remote, 1, 0) > 0 ? 0 : -1;
}

/* Wait until TID has stopped, with a timer of WAIT_NS at first, if that is not 0. */
static int wait_for(pid_t tid, uint64_t wait_ns)
{
	struct timespec ts = { 0, (long)wait_ns };
	int status;

	if (wait_ns)
		(void)!sigtimedwait(&sigchld, NULL, &ts);
	return waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) ? 0 :
									    -1;
}

static int stop(pid_t tid, uint64_t wait_ns)
{
	uint64_t start = wp_clock_ns(), asked, copied;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		return -1;
	asked = wp_clock_ns();
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) || wait_for(tid, wait_ns) ||
	    copy_stack(tid))
		return -1;
	copied = wp_clock_ns();
	if (ptrace(PTRACE_DETACH, tid, 0, 0))
		return -1;
	wp_pauses_add(&wholes, wp_clock_ns() - start);
	wp_pauses_add(&pauses, copied + DETACH_NS - asked);
	return 0;
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / WP_NS_PER_S),
			       (long)(ns % WP_NS_PER_S) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

int main(int argc, char **argv)
{
	pid_t tid = argc >= 4 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	double hz = argc >= 4 ? strtod(argv[2], NULL) : 0;
	double seconds = argc >= 4 ? strtod(argv[3], NULL) : 0;
	uint64_t wait_ns = argc == 5 ? strtoull(argv[4], NULL, 10) * 1000 : 0;
	uint64_t start = wp_clock_ns(), n;

	if (tid <= 0 || hz < 1 || hz > 10000 || seconds <= 0)
		return 64;
	/* As wallprof does it, where it may. */
	if (setpriority(PRIO_PROCESS, 0, -10))
		fprintf(stderr, "bare_stops: priority unchanged\n");
	wp_pauses_init(&pauses, start, 0);
	wp_pauses_init(&wholes, start, 0);
	sigemptyset(&sigchld);
	sigaddset(&sigchld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &sigchld, NULL);
	n = (uint64_t)(hz * seconds);
	for (uint64_t i = 1; i <= n; i++) {
		sleep_until(start + (uint64_t)((double)i * 1e9 / hz));
		if (stop(tid, wait_ns)) {
			perror("bare_stops");
			return 1;
		}
	}
	printf("{\"n\": %llu, \"p50_us\": %.2f, \"p99_us\": %.2f, "
	       "\"whole_p50_us\": %.2f}\n",
	       (unsigned long long)pauses.n,
	       (double)wp_pauses_quantile(&pauses, 0.5) / 1e3,
	       (double)wp_pauses_quantile(&pauses, 0.99) / 1e3,
	       (double)wp_pauses_quantile(&wholes, 0.5) / 1e3);
	return 0;
}
