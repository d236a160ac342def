/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.h - a copy of bytes that ends where a page begins that nobody may read.
 *
 * A parser that reads past the end of its text ends the test, in each build.
 */
#ifndef WP_TEST_GUARDED_H
#define WP_TEST_GUARDED_H

#include <string.h>
#include <sys/mman.h>

enum { GUARDED_PAGE = 65536 };

/* The bytes before the page, which is the last. */
static inline size_t guarded_size(size_t n)
{
	return (n + GUARDED_PAGE - 1) / GUARDED_PAGE * GUARDED_PAGE;
}

/* A copy of BYTES[0..N), of any alignment; for guarded_free with the same N. */
static inline void *guarded(const void *bytes, size_t n)
{
	const size_t size = guarded_size(n);
	char *p = mmap(NULL, size + GUARDED_PAGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	if (n) {
		assert_int_equal(mprotect(p, size, PROT_READ | PROT_WRITE), 0);
		memcpy(p + size - n, bytes, n);
	}
	return p + size - n;
}

static inline void guarded_free(void *copy, size_t n)
{
	char *end = (char *)copy + n;

	assert_int_equal(
		munmap(end - guarded_size(n), guarded_size(n) + GUARDED_PAGE),
		0);
}

#endif
