/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_unixdiag.c - the kernel's answer about unix socket 7.
 *
 * Layer: proc.
 */
#include <errno.h>

#include "wallprof/unix_peer.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t peer = 0;
	int rc = wp_unix_peer_parse(&peer, data, size, 7);

	FUZZ_CHECK(rc == 0 || rc == -ENOENT || rc == -ENOTSUP ||
		   rc == -EBADMSG);
	FUZZ_CHECK(!rc == !!peer);
	return 0;
}
