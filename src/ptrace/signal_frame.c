/* SPDX-License-Identifier: Apache-2.0 */
/* signal_frame.c - see signal_frame.h. */
#include "signal_frame.h"

#include <string.h>
#include <sys/uio.h>

enum {
	/* Frames take 5 KiB, and up to 16 with SVE. */
	CHUNK = 4096,
	NCHUNKS = 5,
	NREGS = 31,
};

bool wp_signal_frame_find(const struct wp_signal_frame *frame, const void *buf,
			  size_t len)
{
	/* x0; sp, pc. */
	const uint64_t ends[2] = { frame->sp_avma, frame->pc_avma };
	const char *bytes = buf;

	for (size_t at = 0; at + 8 * (NREGS + 2) <= len; at += 8)
		if (!memcmp(bytes + at + sizeof(uint64_t[NREGS]), ends,
			    sizeof(ends)) &&
		    !memcmp(bytes + at, &frame->result, sizeof(frame->result)))
			return true;
	return false;
}

bool wp_signal_frame_is_below(pid_t tid, const struct wp_signal_frame *frame)
{
	static char buf[NCHUNKS * CHUNK];
	struct iovec local[NCHUNKS], remote[NCHUNKS];
	ssize_t n;

	/* The highest first: the others may not be there. */
	for (size_t i = 0; i < NCHUNKS; i++) {
		local[i] = (struct iovec){ buf + sizeof(buf) - (i + 1) * CHUNK,
					   CHUNK };
		remote[i] = (struct iovec){
			(void *)(uintptr_t)(frame->sp_avma - (i + 1) * CHUNK),
			CHUNK
		};
	}
	n = process_vm_readv(tid, local, NCHUNKS, remote, NCHUNKS, 0);
	return n > 0 &&
	       wp_signal_frame_find(frame, buf + sizeof(buf) - (size_t)n,
				    (size_t)n);
}
