/* inflate.h - unpack a zlib stream bit by bit, into memory of its full size.
 *
 * Layer: symbols.
 *
 * zlib's own inflate keeps a window and a checksum, as it does not know where
 * its output goes.  Here all that was unpacked lies before the next byte, so
 * it is about twice as fast, and can stop anywhere and go on later.
 */
#ifndef WP_INFLATE_H
#define WP_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

enum {
	WP_INFLATE_LIT_BITS = 11,
	WP_INFLATE_DIST_BITS = 8,
	/* The most entries that a complete code of 286 or 30 symbols and 15
	 * bits takes with tables of those bits (zlib's examples/enough.c). */
	WP_INFLATE_LIT_MAX = 2342,
	WP_INFLATE_DIST_MAX = 402,
};

enum wp_inflate_state {
	WP_INFLATE_BLOCK,
	WP_INFLATE_STORED,
	WP_INFLATE_CODES,
	WP_INFLATE_DONE,
	WP_INFLATE_BAD,
};

struct wp_inflate {
	enum wp_inflate_state state;
	/* What is still to be read, [in, in_end), borrowed; and what was read
	 * of it, lowest bit first. */
	const uint8_t *in;
	const uint8_t *in_end;
	uint64_t bits;
	unsigned int nbits;
	/* The block is the last one. */
	bool last;
	/* Bytes left of a stored block; what is left of a copy from DIST
	 * before. */
	uint32_t stored_left;
	uint32_t copy_left;
	uint32_t copy_dist;
	uint32_t lit[WP_INFLATE_LIT_MAX];
	uint32_t dist[WP_INFLATE_DIST_MAX];
};

/* Begin with the zlib stream IN[0..len), which must live as long.  Returns 0,
 * or -EBADMSG if it does not begin as one. */
WP_MUST_CHECK
int wp_inflate_init(struct wp_inflate *z, const uint8_t *in, size_t len);

/* Unpack into OUT[pos..stop), where OUT[0..pos) is what it unpacked before.
 * Returns the new POS: STOP, or less when the stream ended or is malformed.
 * Neither allocates nor makes a system call.  The checksum at the end is not
 * looked at.
 */
size_t wp_inflate_until(struct wp_inflate *z, uint8_t *out, size_t pos,
			size_t stop);

#endif
