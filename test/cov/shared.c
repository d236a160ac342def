/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c - lines that a forked child runs are counted by its parent.
 *
 * Linked into what BUILD=cov makes.  Counts are written to files at exit(3).
 * The sandboxed child may not open any and leaves by _exit(2) or is killed, so
 * its counts are the parent's memory: shared before there is a child.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

extern char wp_cov_start[], wp_cov_end[];

__attribute__((constructor)) static void share_counts(void)
{
	size_t size = (size_t)(wp_cov_end - wp_cov_start);
	struct rlimit limit;

	if (size &&
	    mmap(wp_cov_start, size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
	/* A file of counts cut short spoils those of all other runs. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY) {
		setenv("GCOV_PREFIX", "/dev/null", 1);
		setenv("GCOV_ERROR_FILE", "/dev/null", 1);
	}
}
