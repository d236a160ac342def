/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - see base64.h. */
#include "base64.h"

#include <errno.h>
#include <stdint.h>

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The text of in[0..n), of which there are 1 to 3. */
static void put_group(const unsigned char *in, size_t n, char out[4])
{
	uint32_t bits = (uint32_t)in[0] << 16 |
			(n > 1 ? (uint32_t)in[1] << 8 : 0) |
			(n > 2 ? in[2] : 0u);

	out[0] = digits[bits >> 18];
	out[1] = digits[bits >> 12 & 63];
	out[2] = n > 1 ? digits[bits >> 6 & 63] : '=';
	out[3] = n > 2 ? digits[bits & 63] : '=';
}

int wp_base64_write(const void *data, size_t n, FILE *out)
{
	const unsigned char *in = data;
	char text[4096];
	size_t len = 0;

	for (size_t i = 0; i < n; i += 3) {
		put_group(in + i, n - i < 3 ? n - i : 3, text + len);
		len += 4;
		if (len < sizeof(text) && i + 3 < n)
			continue;
		errno = 0;
		if (fwrite(text, 1, len, out) != len)
			return errno ? -errno : -EIO;
		len = 0;
	}
	return 0;
}
