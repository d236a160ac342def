/* SPDX-License-Identifier: Apache-2.0 */
/* mutants.c - see mutants.h. */
#include "mutants.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MUTANTS_MAX = 16384, TESTS_MAX = 257 };

/* The file MUTANTS_REACHED: what was reached before the first test, then by each;
 * and how long each took. */
struct reached {
	unsigned char v[TESTS_MAX][MUTANTS_MAX];
	double begin_s[TESTS_MAX];
	double end_s;
};

int wp_mutant;
static unsigned char nowhere[MUTANTS_MAX];
unsigned char *wp_mutants_reached = nowhere;
static struct reached *reached;

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void wp_mutants_begin_test(size_t nth)
{
	if (!reached)
		return;
	wp_mutants_reached = reached->v[nth + 1];
	reached->begin_s[nth + 1] = now_s();
}

static void end(void)
{
	if (reached)
		reached->end_s = now_s();
}

/* Shared with processes that are forked, and there when one is killed. */
__attribute__((constructor)) static void begin(void)
{
	const char *mutant = getenv("MUTANT"),
		   *file = getenv("MUTANTS_REACHED");
	int fd = file ? open(file, O_RDWR | O_CLOEXEC) : -1;
	void *p = MAP_FAILED;

	if (mutant)
		wp_mutant = atoi(mutant);
	if (fd < 0)
		return;
	if (!ftruncate(fd, sizeof(*reached)))
		p = mmap(NULL, sizeof(*reached), PROT_READ | PROT_WRITE,
			 MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		abort();
	reached = p;
	wp_mutants_reached = reached->v[0];
	atexit(end);
}
