/* SPDX-License-Identifier: Apache-2.0 */
/* debugdata.c - .gnu_debugdata, the packed symbols of some distributions.
 *
 * libdw unpacks it only inside its own search for modules (libdwfl), and
 * without a bound; liblzma, which libdw needs anyway, lets us set one.
 */
#include "debugfile.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

enum {
	UNPACKED_MAX = 64 << 20,
	FIRST_SIZE = 1 << 16,
	/* xz -9 needs 65 MiB to unpack; what distributions use needs 9. */
	DECODER_MAX = 80 << 20,
};

/* Room for more output; 0, -EOVERFLOW or -ENOMEM. */
static int grow_output(uint8_t **buf, size_t *cap, lzma_stream *lz)
{
	size_t used = (size_t)lz->total_out;
	size_t want = *cap ? 2 * *cap : FIRST_SIZE;
	uint8_t *p;

	if (want > UNPACKED_MAX)
		return -EOVERFLOW;
	p = realloc(*buf, want);
	if (!p)
		return -ENOMEM;
	*buf = p;
	*cap = want;
	lz->next_out = p + used;
	lz->avail_out = want - used;
	return 0;
}

static int unpack(const Elf_Data *in, uint8_t **ret, size_t *ret_len)
{
	lzma_stream lz = LZMA_STREAM_INIT;
	uint8_t *buf = NULL;
	size_t cap = 0;
	lzma_ret state;
	int rc = 0;

	if (lzma_stream_decoder(&lz, DECODER_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	lz.next_in = in->d_buf;
	lz.avail_in = in->d_size;
	do {
		if (!lz.avail_out)
			rc = grow_output(&buf, &cap, &lz);
		if (rc)
			goto out;
		state = lzma_code(&lz, LZMA_FINISH);
	} while (state == LZMA_OK);
	if (state != LZMA_STREAM_END || !lz.total_out) {
		rc = state == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
		goto out;
	}
	*ret = buf;
	*ret_len = (size_t)lz.total_out;
	buf = NULL;
out:
	lzma_end(&lz);
	free(buf);
	return rc;
}

int wp_debugfile_unpack(uint8_t **ret, size_t *ret_len,
			const struct wp_elf_file *file)
{
	GElf_Shdr sh;
	Elf_Scn *scn = wp_elf_file_section(file, ".gnu_debugdata", &sh);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;

	return data && data->d_buf ? unpack(data, ret, ret_len) : -ENOENT;
}
