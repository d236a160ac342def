/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbols.  symbols/debugfile.h; how files are found is a matter of
 * test/e2e/test_symbols.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "../../symbols/debugfile.h"
#include "make_elf.h"

static void the_checksum_is_that_of_debuglink(void **state)
{
	static const uint8_t check[] = "123456789";

	(void)state;
	/* The check value of CRC-32/ISO-HDLC. */
	assert_int_equal(wp_debug_crc32(0, check, 9), 0xcbf43926);
	assert_int_equal(wp_debug_crc32(0, check, 0), 0);
	assert_int_equal(
		wp_debug_crc32(wp_debug_crc32(0, check, 4), check + 4, 5),
		0xcbf43926);
}

/* A file whose .gnu_debugdata is DATA[0..n); returns its bytes. */
static uint8_t *open_with(struct wp_elf_file *file, const void *data, size_t n)
{
	const struct make_section sections[] = {
		{ ".gnu_debugdata", SHT_PROGBITS, 0, 0, data, n, 0, 0 },
	};
	size_t size;
	uint8_t *bytes = make_elf(sections, 1, &size);

	assert_int_equal(
		wp_elf_image_open_bytes(file->image, bytes, size, NULL), 0);
	assert_int_equal(wp_elf_file_open(file), 0);
	return bytes;
}

/* SRC[0..n) in xz; exactly *RET_LEN bytes. */
static uint8_t *pack(const void *src, size_t n, size_t *ret_len)
{
	size_t cap = lzma_stream_buffer_bound(n);
	uint8_t *out = malloc(cap), *exact;

	*ret_len = 0;
	assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, src,
						 n, out, ret_len, cap),
			 LZMA_OK);
	exact = malloc(*ret_len);
	memcpy(exact, out, *ret_len);
	free(out);
	return exact;
}

static int unpack(const void *data, size_t n, size_t *ret_size)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_elf_file file = { .image = &image };
	uint8_t *bytes = open_with(&file, data, n), *unpacked = NULL;
	int rc;

	*ret_size = 0;
	rc = wp_debugfile_unpack(&unpacked, ret_size, &file);
	assert_int_equal(!rc, unpacked != NULL);
	free(unpacked);
	wp_elf_file_close(&file);
	free(bytes);
	return rc;
}

static void packed_symbols_are_unpacked(void **state)
{
	static uint8_t text[200000];
	const struct make_section sections[] = {
		{ ".text", SHT_PROGBITS, 0, 0, text, sizeof(text), 0, 0 },
	};
	size_t size, packed_len, got;
	uint8_t *bytes = make_elf(sections, 1, &size);
	uint8_t *packed = pack(bytes, size, &packed_len);

	(void)state;
	assert_int_equal(unpack(packed, packed_len, &got), 0);
	assert_int_equal(got, size);
	/* Every prefix is malformed, and safe. */
	for (size_t n = 0; n < packed_len; n++) {
		uint8_t *prefix = malloc(n ? n : 1);

		memcpy(prefix, packed, n);
		assert_int_equal(unpack(prefix, n, &got),
				 n ? -EBADMSG : -ENOENT);
		free(prefix);
	}
	free(packed);
	free(bytes);
}

static void what_unpacks_to_too_much_is_refused(void **state)
{
	size_t size = (64 << 20) + 1, packed_len, got;
	uint8_t *zeros = calloc(1, size);
	uint8_t *packed = pack(zeros, size, &packed_len);

	(void)state;
	assert_true(packed_len < size / 100);
	assert_int_equal(unpack(packed, packed_len, &got), -EOVERFLOW);
	free(packed);
	free(zeros);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_checksum_is_that_of_debuglink),
		cmocka_unit_test(packed_symbols_are_unpacked),
		cmocka_unit_test(what_unpacks_to_too_much_is_refused),
	};

	return cmocka_run_group_tests_name("debugfile", tests, NULL, NULL);
}
