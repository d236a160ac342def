/* SPDX-License-Identifier: Apache-2.0 */
/* counter.c - busy threads whose account of their work can be read any time.
 *
 * counter N FILE: thread I counts in the I-th line of 64 bytes of FILE, which a
 * reader maps.  The count is the thread's own, so it is exact: what a thread
 * did not do while it was held up is missing.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "../../fixtures/fixture.h"

enum { LINE = 64, MAX = 64, DEPTH = 12 };

static char *file;

/* As good as without end, but the compiler is not to know. */
NOINLINE static void spin(volatile uint64_t *count)
{
	for (uint64_t i = 1; i; i++)
		__atomic_store_n(count, i, __ATOMIC_RELAXED);
}

/* A stack of usual depth under the loop. */
NOINLINE static int descend(volatile uint64_t *count, int depth)
{
	if (depth)
		return descend(count, depth - 1) + 1;
	spin(count);
	return 0;
}

static void *run(void *arg)
{
	return descend(arg, DEPTH) ? NULL : arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	int fd = argc > 2 ? open(argv[2], O_RDWR | O_CREAT, 0600) : -1;
	pthread_t t;

	if (n < 1 || n > MAX || fd < 0 || ftruncate(fd, MAX * LINE))
		return 64;
	file = mmap(NULL, MAX * LINE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (file == MAP_FAILED)
		return 1;
	block_sigterm();
	for (int i = 0; i < n; i++)
		pthread_create(&t, NULL, run, file + (size_t)i * LINE);
	ready("");
	wait_sigterm();
	_exit(0);
}
