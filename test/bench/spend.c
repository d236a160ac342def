/* SPDX-License-Identifier: Apache-2.0 */
/* spend.c - run a command and say what it took.
 *
 * spend FILE COMMAND ARG...: a line of JSON goes to FILE.  The peak of memory
 * that a parent is told of a child starts with the parent's own, so the parent
 * has to be a small program.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double seconds(const struct timeval *tv)
{
	return (double)tv->tv_sec + (double)tv->tv_usec / 1e6;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	double start = now();
	int status;
	pid_t pid;
	FILE *f;

	if (argc < 3)
		return 64;
	pid = vfork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid)
		return 1;
	f = fopen(argv[1], "we");
	if (!f) {
		fprintf(stderr, "spend: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	fprintf(f,
		"{\"wall_s\": %.6f, \"cpu_s\": %.6f, \"peak_kib\": %ld, "
		"\"status\": %d}\n",
		now() - start,
		seconds(&usage.ru_utime) + seconds(&usage.ru_stime),
		usage.ru_maxrss,
		WIFEXITED(status) ? WEXITSTATUS(status) :
				    128 + WTERMSIG(status));
	return fclose(f) ? 1 : 0;
}
