/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbols.  symbols/unpacked.h: what zlib packed here comes out again, and
 * nothing of what is no good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <zlib.h>

#include "../../symbols/unpacked.h"
#include "make_elf.h"

enum { INFO = 100000, MAX = 1 << 20, MANY = 80 };

static uint8_t info[INFO];
static const char str[] = "one\0two";

/* A compressed section of INFO. */
struct packed {
	Elf64_Chdr ch;
	uint8_t stream[INFO];
};

static size_t pack(struct packed *ret)
{
	uLongf len = sizeof(ret->stream);

	for (size_t i = 0; i < INFO; i++)
		info[i] = (uint8_t)(i * i >> 7);
	ret->ch = (Elf64_Chdr){ .ch_type = ELFCOMPRESS_ZLIB,
				.ch_size = INFO,
				.ch_addralign = 1 };
	assert_int_equal(compress(ret->stream, &len, info, INFO), Z_OK);
	return sizeof(ret->ch) + len;
}

static int open_bytes(struct wp_unpacked *ret, struct wp_elf_file *file,
		      uint8_t *bytes, size_t size)
{
	elf_version(EV_CURRENT);
	file->image = NULL;
	file->elf = elf_memory((char *)bytes, size);
	return file->elf ? wp_unpacked_open(ret, file, MAX) : -ENOTSUP;
}

/* Open a file of PACKED[0..len), beside sections of other kinds. */
static int open_packed(struct wp_unpacked *ret, struct wp_elf_file *file,
		       uint8_t **bytes, const struct packed *packed, size_t len)
{
	const struct make_section sections[] = {
		{ .name = ".text",
		  .type = SHT_PROGBITS,
		  .data = str,
		  .size = 8 },
		{ .name = ".debug_info",
		  .type = SHT_PROGBITS,
		  .flags = SHF_COMPRESSED,
		  .data = packed,
		  .size = len },
		{ .name = ".debug_loc",
		  .type = SHT_NOBITS,
		  .flags = SHF_COMPRESSED,
		  .size = 1 << 30 },
		{ .name = ".debug_str",
		  .type = SHT_PROGBITS,
		  .data = str,
		  .size = sizeof(str) },
	};
	size_t size;

	*bytes = make_elf(sections, 4, &size);
	return open_bytes(ret, file, *bytes, size);
}

static void assert_section(const struct wp_unpacked *unpacked, const char *name,
			   const void *want, size_t size)
{
	const struct wp_elf_file file = { .elf = unpacked->elf };
	GElf_Shdr sh;
	Elf_Scn *scn = wp_elf_file_section(&file, name, &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

	if (!data) {
		fail();
		return;
	}
	assert_false(sh.sh_flags & SHF_COMPRESSED);
	assert_int_equal(data->d_size, size);
	assert_memory_equal(data->d_buf, want, size);
}

static void sections_come_out_as_they_were_packed(void **state)
{
	static struct packed packed;
	size_t len = pack(&packed), n;
	struct wp_unpacked unpacked;
	struct wp_elf_file file;
	uint8_t *bytes;

	(void)state;
	assert_int_equal(open_packed(&unpacked, &file, &bytes, &packed, len),
			 0);
	assert_section(&unpacked, ".debug_info", info, INFO);
	assert_section(&unpacked, ".debug_str", str, sizeof(str));
	/* Of none, those two, and their names: nothing else is of use. */
	assert_int_equal(elf_getshdrnum(unpacked.elf, &n), 0);
	assert_int_equal(n, 4);
	wp_unpacked_close(&unpacked);
	assert_null(unpacked.elf);
	elf_end(file.elf);
	free(bytes);
}

static void sections_of_several_huge_pages_come_out_whole(void **state)
{
	static struct packed packed;
	static uint8_t big[5 << 20];
	const struct make_section sections[] = {
		{ .name = ".debug_info",
		  .type = SHT_PROGBITS,
		  .flags = SHF_COMPRESSED,
		  .data = &packed,
		  .size = pack(&packed) },
		{ .name = ".debug_str",
		  .type = SHT_PROGBITS,
		  .data = big,
		  .size = sizeof(big) },
	};
	struct wp_unpacked unpacked;
	struct wp_elf_file file = { NULL };
	uint8_t *bytes;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (uint8_t)(i * 7 >> 3);
	bytes = make_elf(sections, 2, &size);
	elf_version(EV_CURRENT);
	file.elf = elf_memory((char *)bytes, size);
	assert_int_equal(wp_unpacked_open(&unpacked, &file, 8 << 20), 0);
	assert_section(&unpacked, ".debug_info", info, INFO);
	assert_section(&unpacked, ".debug_str", big, sizeof(big));
	wp_unpacked_close(&unpacked);
	elf_end(file.elf);
	free(bytes);
}

static void refuse(const struct packed *packed, size_t len)
{
	struct wp_unpacked unpacked;
	struct wp_elf_file file;
	uint8_t *bytes;

	assert_int_equal(open_packed(&unpacked, &file, &bytes, packed, len),
			 -ENOTSUP);
	assert_null(unpacked.elf);
	assert_null(unpacked.bytes);
	elf_end(file.elf);
	free(bytes);
}

static void what_is_broken_is_left_to_libelf(void **state)
{
	static struct packed good, bad;
	size_t len = pack(&good);

	(void)state;
	for (size_t n = 0; n < len; n += n < 100 ? 1 : 997)
		refuse(&good, n);
	bad = good;
	bad.ch.ch_size--;
	refuse(&bad, len);
	bad.ch.ch_size += 2;
	refuse(&bad, len);
	bad.ch.ch_size = MAX;
	refuse(&bad, len);
	bad.ch.ch_size = UINT64_MAX;
	refuse(&bad, len);
	bad = good;
	bad.ch.ch_type = 2;
	refuse(&bad, len);
	bad = good;
	bad.stream[len / 2] ^= 1;
	refuse(&bad, len);
}

static void nothing_compressed_is_left_as_it_is(void **state)
{
	const struct make_section sections[] = {
		{ .name = ".debug_str",
		  .type = SHT_PROGBITS,
		  .data = str,
		  .size = sizeof(str) },
	};
	struct wp_unpacked unpacked;
	struct wp_elf_file file;
	size_t size;
	uint8_t *bytes = make_elf(sections, 1, &size);

	(void)state;
	assert_int_equal(open_bytes(&unpacked, &file, bytes, size), -ENOTSUP);
	elf_end(file.elf);
	free(bytes);
}

/* Each of many sections is the whole file again. */
static void sections_that_lie_over_each_other_are_bounded(void **state)
{
	static struct packed packed;
	struct make_section sections[] = {
		{ .name = ".debug_info",
		  .type = SHT_PROGBITS,
		  .flags = SHF_COMPRESSED,
		  .data = &packed,
		  .size = pack(&packed) },
	};
	struct wp_unpacked unpacked;
	struct wp_elf_file file;
	Elf64_Ehdr eh;
	Elf64_Shdr sh;
	size_t size;
	uint8_t *bytes = make_elf(sections, 1, &size), *more;

	(void)state;
	memcpy(&eh, bytes, sizeof(eh));
	memcpy(&sh, bytes + eh.e_shoff + sizeof(sh), sizeof(sh));
	more = malloc(size + MANY * sizeof(sh));
	memcpy(more, bytes, size);
	for (size_t i = 0; i < MANY; i++)
		memcpy(more + size + i * sizeof(sh), &sh, sizeof(sh));
	eh.e_shnum = (Elf64_Half)(eh.e_shnum + MANY);
	memcpy(more, &eh, sizeof(eh));
	assert_int_equal(
		open_bytes(&unpacked, &file, more, size + MANY * sizeof(sh)),
		-ENOTSUP);
	elf_end(file.elf);
	free(more);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_come_out_as_they_were_packed),
		cmocka_unit_test(sections_of_several_huge_pages_come_out_whole),
		cmocka_unit_test(what_is_broken_is_left_to_libelf),
		cmocka_unit_test(nothing_compressed_is_left_as_it_is),
		cmocka_unit_test(sections_that_lie_over_each_other_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
