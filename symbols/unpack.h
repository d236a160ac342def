/* unpack.h - compressed sections that unpack themselves as they are read.
 *
 * Layer: symbols.
 *
 * A few addresses need a few pages of a file's DWARF, and a compressed section
 * can only be unpacked from its start.  So memory of its size is reserved, and
 * unpacked when and as far as somebody reads there: SIGSEGV has a handler
 * while there is such memory.
 */
#ifndef WP_UNPACK_H
#define WP_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

struct wp_unpack;

/* Make the zlib stream IN[0..len), which must live as long, readable in
 * *RET_DATA[0..size).  What is malformed or not there reads as zeros.  Returns
 * 0, -EBADMSG if it does not begin as a stream, or -ENOMEM. */
WP_MUST_CHECK
int wp_unpack_new(struct wp_unpack **ret, const uint8_t *in, size_t len,
		  size_t size, uint8_t **ret_data);
void wp_unpack_free(struct wp_unpack *area);

#endif
