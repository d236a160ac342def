/* SPDX-License-Identifier: Apache-2.0 */
/* proto.c - see proto.h. */
#include "proto.h"

#include <string.h>

enum wire_type {
	WIRE_VARINT = 0,
	WIRE_LEN = 2,
};

enum {
	VARINT_MAX = 10,
};

static size_t encode(uint64_t val, unsigned char bytes[VARINT_MAX])
{
	size_t n = 0;

	for (; val >= 0x80; val >>= 7)
		bytes[n++] = (unsigned char)(val | 0x80);
	bytes[n++] = (unsigned char)val;
	return n;
}

void wp_proto_varint(struct wp_buf *buf, uint64_t val)
{
	unsigned char bytes[VARINT_MAX];

	wp_buf_add(buf, bytes, encode(val, bytes));
}

static void add_tag(struct wp_buf *buf, unsigned int field, enum wire_type type)
{
	wp_proto_varint(buf, (uint64_t)field << 3 | type);
}

void wp_proto_uint(struct wp_buf *buf, unsigned int field, uint64_t val)
{
	if (!val)
		return;
	add_tag(buf, field, WIRE_VARINT);
	wp_proto_varint(buf, val);
}

void wp_proto_int(struct wp_buf *buf, unsigned int field, int64_t val)
{
	wp_proto_uint(buf, field, (uint64_t)val);
}

void wp_proto_bytes(struct wp_buf *buf, unsigned int field, const void *data,
		    size_t n)
{
	add_tag(buf, field, WIRE_LEN);
	wp_proto_varint(buf, n);
	wp_buf_add(buf, data, n);
}

size_t wp_proto_begin(struct wp_buf *buf, unsigned int field)
{
	add_tag(buf, field, WIRE_LEN);
	return buf->len;
}

void wp_proto_end(struct wp_buf *buf, size_t begin)
{
	unsigned char bytes[VARINT_MAX];
	size_t len = buf->len - begin;
	size_t n = encode(len, bytes);

	/* Make room for the length before the content. */
	wp_buf_fill(buf, 0, n);
	if (buf->rc)
		return;
	memmove(buf->data + begin + n, buf->data + begin, len);
	memcpy(buf->data + begin, bytes, n);
}
