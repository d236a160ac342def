/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what the fuzzers share.
 *
 * fuzz_NAME.c defines LLVMFuzzerTestOneInput, without state that outlives the
 * call, and is linked either with libFuzzer or with replay.c.  Either hands it
 * bytes in exact-size heap memory, so that sanitizers see one byte too far.
 */
#ifndef WP_FUZZ_H
#define WP_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Like assert, in every build. */
#define FUZZ_CHECK(cond)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, \
				__LINE__, #cond);                              \
			abort();                                               \
		}                                                              \
	} while (0)

/* A file in memory of DATA[0..size), or -1. */
static inline int fuzz_memfd(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, data, size) != (ssize_t)size) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Bytes that end where a page begins that is not there: libraries that no
 * sanitizer watches fault on the first byte too far. */
struct fuzz_pages {
	uint8_t *data;
	void *map;
	size_t map_len;
};

static inline bool fuzz_pages_make(struct fuzz_pages *ret, const void *data,
				   size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t room = (size + page - 1) / page * page;

	ret->map_len = room + page;
	ret->map = mmap(NULL, ret->map_len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ret->map == MAP_FAILED)
		return false;
	mprotect((uint8_t *)ret->map + room, page, PROT_NONE);
	ret->data = (uint8_t *)ret->map + (room - size);
	memcpy(ret->data, data, size);
	return true;
}

static inline void fuzz_pages_free(struct fuzz_pages *pages)
{
	munmap(pages->map, pages->map_len);
}

#endif
