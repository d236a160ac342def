/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c - see wallprof/pages.h. */
#include "wallprof/pages.h"

#include <sys/mman.h>

void *wp_pages_new(size_t len)
{
	void *pages = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

void wp_pages_free(void *pages, size_t len)
{
	if (pages)
		munmap(pages, len);
}
