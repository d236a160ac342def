/* Layer: base.  wallprof/elf_image.h, over bytes made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/elf_image.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

struct file {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[4];
	struct {
		Elf64_Nhdr nhdr;
		char name[4];
		uint8_t id[20];
	} note;
	uint8_t rest[40000];
};

/* What is read comes from here; reads past LEN fail as a short file would. */
struct source {
	const void *data;
	size_t len;
	unsigned int reads;
};

static long read_source(void *src, void *buf, size_t len, uint64_t off)
{
	struct source *s = src;

	s->reads++;
	if (off >= s->len)
		return 0;
	if (len > s->len - off)
		len = s->len - off;
	memcpy(buf, (const char *)s->data + off, len);
	return (long)len;
}

static struct file *make_file(void)
{
	struct file *f = test_calloc(1, sizeof(*f));

	memcpy(f->ehdr.e_ident, ELFMAG, SELFMAG);
	f->ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	f->ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	f->ehdr.e_machine = MACHINE;
	f->ehdr.e_type = ET_DYN;
	f->ehdr.e_phoff = offsetof(struct file, phdrs);
	f->ehdr.e_phentsize = sizeof(Elf64_Phdr);
	f->ehdr.e_phnum = 4;
	f->phdrs[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = 0,
				    .p_vaddr = 0, .p_filesz = 4096,
				    .p_memsz = 4096, .p_flags = PF_R };
	f->phdrs[1] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = 0x1234,
				    .p_vaddr = 0x5234, .p_filesz = 0x2000,
				    .p_memsz = 0x3000, .p_flags = PF_R | PF_X };
	f->phdrs[2] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
				    .p_offset = 0x300, .p_vaddr = 0x300,
				    .p_filesz = 0x40 };
	f->phdrs[3] = (Elf64_Phdr){ .p_type = PT_NOTE,
				    .p_offset = offsetof(struct file, note),
				    .p_filesz = sizeof(f->note) };
	f->note.nhdr = (Elf64_Nhdr){ 4, 20, NT_GNU_BUILD_ID };
	memcpy(f->note.name, "GNU", 4);
	for (int i = 0; i < 20; i++)
		f->note.id[i] = (uint8_t)(i + 1);
	return f;
}

static void headers_are_understood(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;
	uint64_t val;

	(void)state;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL), 0);
	assert_int_equal(image.nloads, 2);
	assert_int_equal(image.build_id_len, 20);
	assert_int_equal(image.build_id[19], 20);
	assert_int_equal(image.eh_frame_hdr.svma, 0x300);
	assert_true(wp_elf_image_offset(&image, 0x5234, &val));
	assert_int_equal(val, 0x1234);
	/* memsz past filesz has no bytes in the file. */
	assert_false(wp_elf_image_offset(&image, 0x5234 + 0x2000, &val));
	/* A mapping begins at a page: offset 0x1000 shows svma 0x5000. */
	assert_true(wp_elf_image_svma(&image, 0x1000, &val));
	assert_int_equal(val, 0x5000);
	wp_elf_image_clear(&image);
	wp_elf_image_clear(&image);
	test_free(f);
}

/* As lld lays them out: readelf -lW of any program of rustc 1.90. */
static void segments_may_share_a_page_of_the_file(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;
	uint64_t val;

	(void)state;
	f->phdrs[0].p_filesz = f->phdrs[0].p_memsz = 0x1230;
	/* Without bytes in the file it is not mapped from there. */
	f->phdrs[2] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = 0x1240,
				    .p_vaddr = 0x9240, .p_memsz = 0x100,
				    .p_flags = PF_R | PF_W };
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL), 0);
	assert_int_equal(image.nloads, 3);
	assert_true(wp_elf_image_svma(&image, 0, &val));
	assert_int_equal(val, 0);
	assert_true(wp_elf_image_svma(&image, 0x1000, &val));
	assert_int_equal(val, 0x5000);
	wp_elf_image_clear(&image);
	test_free(f);
}

/* As lld 14 lays out a short program: headers, code and data in one page. */
static void code_may_be_between_others_in_a_page(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;
	uint64_t val;

	(void)state;
	f->phdrs[0].p_filesz = f->phdrs[0].p_memsz = 0x400;
	f->phdrs[1].p_offset = 0x440;
	f->phdrs[1].p_vaddr = 0x1440;
	f->phdrs[1].p_filesz = f->phdrs[1].p_memsz = 0x80;
	f->phdrs[2] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_offset = 0x4c0,
				    .p_vaddr = 0x24c0, .p_filesz = 0x80,
				    .p_memsz = 0x80, .p_flags = PF_R | PF_W };
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL), 0);
	assert_int_equal(image.nloads, 3);
	assert_true(wp_elf_image_svma(&image, 0, &val));
	assert_int_equal(val, 0x1000);
	wp_elf_image_clear(&image);
	test_free(f);
}

static void bytes_are_fetched_once_and_when_asked(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;
	unsigned int reads;

	(void)state;
	f->rest[30000] = 0xab;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL), 0);
	reads = src.reads;
	assert_int_equal(reads, 1);
	assert_int_equal(*wp_elf_image_at(&image, offsetof(struct file, rest) +
					  30000, 1), 0xab);
	assert_int_equal(src.reads, reads + 1);
	assert_non_null(wp_elf_image_at(&image, offsetof(struct file, rest) +
					30001, 8));
	assert_int_equal(src.reads, reads + 1);
	assert_null(wp_elf_image_at(&image, sizeof(*f) - 1, 2));
	assert_null(wp_elf_image_at(&image, UINT64_MAX, 2));
	assert_null(wp_elf_image_at(&image, 1, UINT64_MAX));
	wp_elf_image_clear(&image);
	assert_null(wp_elf_image_at(&image, 0, 1));
	test_free(f);
}

static void a_file_cut_short_later_is_no_crash(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;

	(void)state;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL), 0);
	src.len = 20000;
	assert_null(wp_elf_image_at(&image, 30000, 1));
	assert_non_null(wp_elf_image_at(&image, 100, 1));
	wp_elf_image_clear(&image);
	test_free(f);
}

static void other_machines_are_refused(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;
	struct wp_err err = WP_ERR_INIT;

	(void)state;
	f->ehdr.e_machine = EM_386;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, &err),
			 -ENOTSUP);
	assert_int_equal(err.code, -ENOTSUP);
	f->ehdr.e_machine = MACHINE;
	f->ehdr.e_phentsize = 7;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL),
			 -EBADMSG);
	assert_int_equal(wp_elf_image_open_memory(&image, 0, read_source, &src,
						  NULL), -ENOTSUP);
	assert_int_equal(wp_elf_image_open_memory(&image, UINT64_C(1) << 40,
						  read_source, &src, NULL),
			 -EOVERFLOW);
	test_free(f);
}

static void every_prefix_and_every_flipped_header_byte_is_safe(void **state)
{
	struct file *f = make_file();
	struct wp_elf_image image;

	(void)state;
	for (size_t n = 1; n <= offsetof(struct file, rest); n++) {
		struct source src = { f, n, 0 };

		if (!wp_elf_image_open_memory(&image, n, read_source, &src,
					      NULL))
			wp_elf_image_clear(&image);
	}
	for (size_t i = 0; i < offsetof(struct file, rest); i++) {
		struct source src = { f, sizeof(*f), 0 };
		uint64_t val;

		((uint8_t *)f)[i] ^= 0xff;
		if (!wp_elf_image_open_memory(&image, sizeof(*f), read_source,
					      &src, NULL)) {
			(void)wp_elf_image_offset(&image, 0x5300, &val);
			(void)wp_elf_image_svma(&image, 0x1300, &val);
			wp_elf_image_clear(&image);
		}
		((uint8_t *)f)[i] ^= 0xff;
	}
	test_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_understood),
		cmocka_unit_test(segments_may_share_a_page_of_the_file),
		cmocka_unit_test(code_may_be_between_others_in_a_page),
		cmocka_unit_test(bytes_are_fetched_once_and_when_asked),
		cmocka_unit_test(a_file_cut_short_later_is_no_crash),
		cmocka_unit_test(other_machines_are_refused),
		cmocka_unit_test(
			every_prefix_and_every_flipped_header_byte_is_safe),
	};

	return cmocka_run_group_tests_name("elf_image", tests, NULL, NULL);
}
