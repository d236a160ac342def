/* SPDX-License-Identifier: Apache-2.0 */
/* gzip.c - see gzip.h. */
#include "gzip.h"

#include <errno.h>

enum {
	/* zlib.h, deflateInit2: 15 bits of window, 16 more for gzip. */
	WINDOW_BITS = 15 + 16,
	MEM_LEVEL = 8,
	/* Bytes per call, fewer than uInt holds. */
	CHUNK = 1 << 30,
};

int wp_gzip_init(struct wp_gzip *gz, FILE *out)
{
	*gz = (struct wp_gzip){ .out = out };
	if (deflateInit2(&gz->z, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS,
			 MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		gz->rc = -ENOMEM;
	return gz->rc;
}

/* Compress all of the input; with Z_FINISH also what zlib has kept. */
static void drain(struct wp_gzip *gz, int flush)
{
	size_t n;

	do {
		gz->z.next_out = gz->block;
		gz->z.avail_out = sizeof(gz->block);
		/* Fails only when BLOCK is full, and it is emptied below. */
		deflate(&gz->z, flush);
		n = sizeof(gz->block) - gz->z.avail_out;
		errno = 0;
		if (fwrite(gz->block, 1, n, gz->out) != n)
			gz->rc = errno ? -errno : -EIO;
	} while (!gz->z.avail_out && !gz->rc);
}

void wp_gzip_add(struct wp_gzip *gz, struct wp_buf *buf)
{
	size_t done = 0;

	if (!gz->rc)
		gz->rc = buf->rc;
	while (done < buf->len && !gz->rc) {
		size_t n = buf->len - done < CHUNK ? buf->len - done : CHUNK;

		gz->z.next_in = (Bytef *)buf->data + done;
		gz->z.avail_in = (uInt)n;
		drain(gz, Z_NO_FLUSH);
		done += n;
	}
	wp_buf_reset(buf);
}

int wp_gzip_finish(struct wp_gzip *gz)
{
	if (!gz->rc)
		drain(gz, Z_FINISH);
	deflateEnd(&gz->z);
	if (!gz->rc && fflush(gz->out))
		gz->rc = errno ? -errno : -EIO;
	return gz->rc;
}

/* Unpack what is left of one stream into BUF. */
static int unpack_stream(z_stream *z, size_t max, struct wp_buf *buf)
{
	Bytef block[16384];
	int rc;

	do {
		z->next_out = block;
		z->avail_out = sizeof(block);
		rc = inflate(z, Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END)
			return rc == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
		if (buf->len + sizeof(block) - z->avail_out > max)
			return -EOVERFLOW;
		wp_buf_add(buf, block, sizeof(block) - z->avail_out);
	} while (rc != Z_STREAM_END && !buf->rc);
	return buf->rc;
}

int wp_gzip_unpack(const void *data, size_t n, size_t max, char **ret,
		   size_t *ret_n)
{
	struct wp_buf buf = WP_BUF_INIT;
	z_stream z = { 0 };
	int rc = 0;

	if (n > UINT32_MAX)
		return -EOVERFLOW;
	if (inflateInit2(&z, WINDOW_BITS) != Z_OK)
		return -ENOMEM;
	z.next_in = (Bytef *)(uintptr_t)data;
	z.avail_in = (uInt)n;
	do {
		rc = unpack_stream(&z, max, &buf);
	} while (!rc && z.avail_in && inflateReset(&z) == Z_OK);
	inflateEnd(&z);
	if (rc) {
		wp_buf_clear(&buf);
		return rc;
	}
	*ret = buf.data;
	*ret_n = buf.len;
	return 0;
}
