/* SPDX-License-Identifier: Apache-2.0 */
/* proto.h - write protocol buffers (protobuf.dev, "Encoding"). */
#ifndef WP_PROTO_H
#define WP_PROTO_H

#include "buf.h"

/* Write VAL as a varint: 7 bits per byte, least significant first. */
void wp_proto_varint(struct wp_buf *buf, uint64_t val);
/* Write field number FIELD with value VAL; nothing if VAL is 0, as in proto3. */
void wp_proto_uint(struct wp_buf *buf, unsigned int field, uint64_t val);
/* The same; a negative VAL takes ten bytes. */
void wp_proto_int(struct wp_buf *buf, unsigned int field, int64_t val);
/* Write field number FIELD with N bytes, also if N is 0: an element of a repeated
 * field may be empty. */
void wp_proto_bytes(struct wp_buf *buf, unsigned int field, const void *data,
		    size_t n);

/* Make all that is written between the two calls field number FIELD: a nested
 * message, or a packed array of varints.  BEGIN is what wp_proto_begin returned. */
WP_MUST_CHECK
size_t wp_proto_begin(struct wp_buf *buf, unsigned int field);
void wp_proto_end(struct wp_buf *buf, size_t begin);

#endif
