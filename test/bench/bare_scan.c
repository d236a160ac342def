/* SPDX-License-Identifier: Apache-2.0 */
/* bare_scan.c - the least that a BPF scan of waiting threads takes.
 *
 * bare_scan PID: scans all threads of PID at 100 Hz for two seconds, does nothing with
 * the records, and prints the microseconds of CPU that one scan took, in the median.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "wallprof/task_scan.h"

enum { ROUNDS = 200, PAUSE_NS = 10000000 };

static double cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return 1e6 * (double)ts.tv_sec + (double)ts.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	const struct timespec pause = { 0, PAUSE_NS };
	const struct wp_task_record *const *v;
	struct wp_err err = WP_ERR_INIT;
	struct wp_task_scan *scan;
	double us[ROUNDS];
	size_t n = 0;

	if (argc != 2)
		return 64;
	if (wp_task_scan_open(&scan, 10000, &err) ||
	    wp_task_scan_add(scan, atoi(argv[1]))) {
		fprintf(stderr, "bare_scan: %s\n", err.msg);
		return 1;
	}
	for (int i = 0; i < ROUNDS; i++) {
		double start;

		/* As long as between two ticks: caches are cold. */
		nanosleep(&pause, NULL);
		start = cpu_us();
		if (wp_task_scan_read(scan, &v, &n))
			return 1;
		us[i] = cpu_us() - start;
	}
	wp_task_scan_close(scan);
	if (!n)
		return 1;
	qsort(us, ROUNDS, sizeof(*us), by_value);
	printf("%.2f\n", us[ROUNDS / 2]);
	return 0;
}
