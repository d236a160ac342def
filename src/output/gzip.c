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
	if (deflateInit2(&gz->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS,
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
