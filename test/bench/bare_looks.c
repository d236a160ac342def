/* SPDX-License-Identifier: Apache-2.0 */
/* bare_looks.c - the least that a look at waiting threads takes.
 *
 * bare_looks PID: /proc/PID/task/TID/schedstat of every thread is kept open and
 * read over and over for half a second; prints the microseconds of CPU that
 * one reading of all took, in the median.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 65536, ROUNDS = 2000 };

static int fds[MAX];
static double us[ROUNDS];

static double clock_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static size_t open_all(const char *pid)
{
	char path[64];
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	dir = opendir(path);
	while (dir && n < MAX && (e = readdir(dir))) {
		char name[300];

		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/schedstat", e->d_name);
		fds[n] = openat(dirfd(dir), name, O_RDONLY | O_CLOEXEC);
		if (fds[n] >= 0)
			n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	size_t n, rounds = 0;
	double end;

	if (argc != 2)
		return 64;
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	n = open_all(argv[1]);
	end = clock_s(CLOCK_MONOTONIC) + 0.5;
	while (n && rounds < ROUNDS && clock_s(CLOCK_MONOTONIC) < end) {
		double start = clock_s(CLOCK_THREAD_CPUTIME_ID);

		for (size_t i = 0; i < n; i++) {
			char text[128];

			if (pread(fds[i], text, sizeof(text), 0) <= 0)
				return 1;
		}
		us[rounds++] = 1e6 * (clock_s(CLOCK_THREAD_CPUTIME_ID) - start);
	}
	if (!rounds)
		return 1;
	qsort(us, rounds, sizeof(*us), by_value);
	printf("%.2f\n", us[rounds / 2]);
	return 0;
}
