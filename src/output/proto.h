/* SPDX-License-Identifier: Apache-2.0 */
/* proto.h - write protocol buffers (protobuf.dev, "Encoding"). */
#ifndef WP_PROTO_H
#define WP_PROTO_H

#include "buf.h"

/* A varint alone: 7 bits a byte, least significant first. */
void wp_proto_varint(struct wp_buf *buf, uint64_t val);
/* Field number FIELD with VAL, left out when 0 as proto3 does. */
void wp_proto_uint(struct wp_buf *buf, unsigned int field, uint64_t val);
/* A negative one is its two's complement, ten bytes long. */
void wp_proto_int(struct wp_buf *buf, unsigned int field, int64_t val);
/* N bytes, also when none: an element of a repeated field counts. */
void wp_proto_bytes(struct wp_buf *buf, unsigned int field, const void *data,
		    size_t n);

/* What is added between begin and end becomes field FIELD: a nested message,
 * or a packed array of varints.  END takes what BEGIN returned. */
WP_MUST_CHECK
size_t wp_proto_begin(struct wp_buf *buf, unsigned int field);
void wp_proto_end(struct wp_buf *buf, size_t begin);

#endif
