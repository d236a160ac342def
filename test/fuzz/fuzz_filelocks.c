/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_filelocks.c - /proc/locks, asked for the processes and the file that the
 * inputs in test/data/fuzz/filelocks name; the lines "lock:" of an fdinfo.
 *
 * Layer: proc.
 */
#include <sys/sysmacros.h>

#include "wallprof/file_lock.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const pid_t waiters[] = { 200, 300, 400, -1 };
	static const struct wp_file_want wants[] = {
		{ WP_FILE_WANT_OFD, true, 5, 15 },
		{ WP_FILE_WANT_POSIX, false, 100, UINT64_MAX },
		{ WP_FILE_WANT_FLOCK, true, 0, UINT64_MAX },
	};
	struct wp_file_lock lock;

	for (size_t i = 0; i < sizeof(waiters) / sizeof(*waiters); i++) {
		const struct wp_file_waiter waiter = { waiters[i],
						       makedev(0xfd, 1), 131,
						       i % 2 ? &wants[1] : NULL,
						       i / 2 };

		memset(&lock, 0x5a, sizeof(lock));
		if (wp_file_lock_find(&lock, (const char *)data, size, &waiter))
			continue;
		FUZZ_CHECK(memchr(lock.type, '\0', sizeof(lock.type)));
	}
	for (size_t i = 0; i < sizeof(wants) / sizeof(*wants); i++)
		/* What is not there can be in nobody's way. */
		FUZZ_CHECK(!wp_file_lock_blocks(&wants[i], (const char *)data,
						size) ||
			   memmem(data, size, "lock:\t", 6));
	return 0;
}
