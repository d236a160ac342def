/* fuzz_filelocks.c - /proc/locks, asked for the processes and the file that the
 * inputs in test/data/fuzz/filelocks name.
 *
 * Layer: proc.
 */
#include <sys/sysmacros.h>

#include "fuzz.h"
#include "wallprof/peers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const pid_t waiters[] = { 200, 300, 400, -1 };
	struct wp_file_lock lock;

	for (size_t i = 0; i < sizeof(waiters) / sizeof(*waiters); i++) {
		memset(&lock, 0x5a, sizeof(lock));
		if (wp_file_lock_find(&lock, (const char *)data, size,
				      waiters[i], makedev(0xfd, 1), 131))
			continue;
		FUZZ_CHECK(memchr(lock.type, '\0', sizeof(lock.type)));
	}
	return 0;
}
