/* SPDX-License-Identifier: Apache-2.0 */
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
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "wallprof/budget.h"
#include "wallprof/elf_image.h"
#include "wallprof/inflate.h"

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
	f->phdrs[0] = (Elf64_Phdr){ .p_type = PT_LOAD,
				    .p_offset = 0,
				    .p_vaddr = 0,
				    .p_filesz = 4096,
				    .p_memsz = 4096,
				    .p_flags = PF_R };
	f->phdrs[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
				    .p_offset = 0x1234,
				    .p_vaddr = 0x5234,
				    .p_filesz = 0x2000,
				    .p_memsz = 0x3000,
				    .p_flags = PF_R | PF_X };
	f->phdrs[2] = (Elf64_Phdr){ .p_type = PT_GNU_EH_FRAME,
				    .p_offset = 0x300,
				    .p_vaddr = 0x300,
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
						  read_source, &src, NULL),
			 0);
	assert_int_equal(image.nloads, 2);
	assert_int_equal(image.build_id_len, 20);
	assert_int_equal(image.build_id[19], 20);
	assert_int_equal(image.eh_frame_hdr.svma, 0x300);
	assert_true(wp_elf_image_offset(&image, 0x5234, &val));
	assert_int_equal(val, 0x1234);
	/* memsz past filesz has no bytes in the file. */
	assert_false(wp_elf_image_offset(&image, 0x5234 + 0x2000, &val));
	/* A mapping begins at a page: offset 0x1000 shows svma 0x5000. */
	assert_true(wp_elf_image_shown(&image, 1, 0x1000, &val));
	assert_int_equal(val, 0x5000);
	assert_false(wp_elf_image_shown(&image, 0, 0x1000, &val));
	wp_elf_image_clear(&image);
	wp_elf_image_clear(&image);
	test_free(f);
}

/* However many parts of it a file says to be notes. */
static void so_many_bytes_of_notes_are_looked_at(void **state)
{
	(void)state;
	for (uint32_t n = 1; n < 3; n++) {
		struct file *f = make_file();
		struct source src = { f, sizeof(*f), 0 };
		struct wp_elf_image image;

		for (uint32_t i = 0; i < n; i++)
			f->phdrs[i] = (Elf64_Phdr){
				.p_type = PT_NOTE,
				.p_offset = offsetof(struct file, rest),
				.p_filesz = 1 << 15,
			};
		/* More than all may be are left out, and use nothing up. */
		f->phdrs[2].p_type = PT_NOTE;
		f->phdrs[2].p_filesz = (1 << 16) + 1;
		assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
							  read_source, &src,
							  NULL),
				 0);
		/* Two of them take the 64 KiB that are looked at. */
		assert_int_equal(image.build_id_len, n == 1 ? 20 : 0);
		wp_elf_image_clear(&image);
		test_free(f);
	}
}

/* As lld lays out a program for aarch64, whose pages may have 64 KiB: they hold
 * more than code. */
static void a_mapping_begins_at_a_page_of_this_kernel(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;
	uint64_t val;

	(void)state;
	f->phdrs[0].p_filesz = f->phdrs[0].p_memsz = 0x1230;
	f->phdrs[1].p_offset = 0x1230;
	f->phdrs[1].p_vaddr = 0x11230;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL),
			 0);
	assert_int_equal(image.page, sysconf(_SC_PAGESIZE));
	image.page = 4096;
	assert_true(wp_elf_image_shown(&image, 1, 0x1000, &val));
	assert_int_equal(val, 0x11000);
	assert_false(wp_elf_image_shown(&image, 1, 0, &val));
	assert_true(wp_elf_image_shown(&image, 0, 0, &val));
	assert_int_equal(val, 0);
	image.page = 65536;
	assert_true(wp_elf_image_shown(&image, 1, 0, &val));
	assert_int_equal(val, 0x10000);
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
						  read_source, &src, NULL),
			 0);
	reads = src.reads;
	assert_int_equal(reads, 1);
	assert_int_equal(*wp_elf_image_at(&image,
					  offsetof(struct file, rest) + 30000,
					  1),
			 0xab);
	assert_int_equal(src.reads, reads + 1);
	assert_non_null(wp_elf_image_at(
		&image, offsetof(struct file, rest) + 30001, 8));
	assert_int_equal(src.reads, reads + 1);
	assert_null(wp_elf_image_at(&image, sizeof(*f) - 1, 2));
	assert_null(wp_elf_image_at(&image, UINT64_MAX, 2));
	assert_null(wp_elf_image_at(&image, 1, UINT64_MAX));
	wp_elf_image_clear(&image);
	assert_null(wp_elf_image_at(&image, 0, 1));
	test_free(f);
}

/* A search in a table touches a few bytes here and there, which shall not read
 * all that is between; who reads on shall not ask for each block by itself. */
static void blocks_are_small_and_read_ahead(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;
	uint64_t taken;

	(void)state;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL),
			 0);
	taken = image.taken;
	assert_non_null(wp_elf_image_at(&image, 20000, 1));
	assert_int_equal(image.taken - taken, 4096);
	assert_int_equal(src.reads, 2);
	/* Front to back: blocks 1 to 3, which end where 4 was read, and 5 to 8, and
	 * what is left. */
	for (uint64_t off = 0; off < sizeof(*f); off++)
		assert_ptr_equal(wp_elf_image_at(&image, off, 1),
				 image.data + off);
	assert_memory_equal(image.data, f, sizeof(*f));
	assert_int_equal(src.reads, 5);
	wp_elf_image_clear(&image);
	/* All at once. */
	src.reads = 0;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL),
			 0);
	assert_non_null(wp_elf_image_at(&image, 0, sizeof(*f)));
	assert_memory_equal(image.data, f, sizeof(*f));
	assert_int_equal(src.reads, 2);
	wp_elf_image_clear(&image);
	test_free(f);
}

static void a_file_cut_short_later_is_no_crash(void **state)
{
	struct file *f = make_file();
	struct source src = { f, sizeof(*f), 0 };
	struct wp_elf_image image;

	(void)state;
	assert_int_equal(wp_elf_image_open_memory(&image, sizeof(*f),
						  read_source, &src, NULL),
			 0);
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
	assert_int_equal(
		wp_elf_image_open_memory(&image, 0, read_source, &src, NULL),
		-ENOTSUP);
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
			(void)(image.nloads &&
			       wp_elf_image_shown(&image, 0, 0x1300, &val));
			wp_elf_image_clear(&image);
		}
		((uint8_t *)f)[i] ^= 0xff;
	}
	test_free(f);
}

enum { FRAME_LEN = 50000, PACKED_ROOM = 8192 };

/* A file with a compressed .debug_frame, which becomes the bytes of FRAME. */
struct packed_file {
	Elf64_Ehdr ehdr;
	Elf64_Shdr shdrs[3];
	char names[40];
	/* Its header, of either kind, and zlib's stream. */
	uint8_t section[PACKED_ROOM];
	uint8_t behind[16];
};

static uint8_t frame[FRAME_LEN];
/* Bytes of the stream. */
static uLongf stream_len;

static void make_packed(struct packed_file *f, bool is_old)
{
	const char names[] = "\0.debug_frame\0.zdebug_frame";
	size_t lead = is_old ? 12 : sizeof(Elf64_Chdr);
	Elf64_Chdr ch = { .ch_type = ELFCOMPRESS_ZLIB, .ch_size = FRAME_LEN };

	*f = (struct packed_file){ 0 };
	memcpy(f->ehdr.e_ident, ELFMAG, SELFMAG);
	f->ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	f->ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	f->ehdr.e_machine = MACHINE;
	f->ehdr.e_type = ET_EXEC;
	f->ehdr.e_phentsize = sizeof(Elf64_Phdr);
	f->ehdr.e_shoff = offsetof(struct packed_file, shdrs);
	f->ehdr.e_shentsize = sizeof(Elf64_Shdr);
	f->ehdr.e_shnum = 3;
	f->ehdr.e_shstrndx = 2;
	memcpy(f->names, names, sizeof(names));
	/* Compressible, and no two stretches of it alike. */
	for (size_t i = 0; i < FRAME_LEN; i++)
		frame[i] = (uint8_t)(i % 64 ? i / 64 : i / 4096);
	stream_len = PACKED_ROOM - lead;
	assert_int_equal(
		compress(f->section + lead, &stream_len, frame, FRAME_LEN),
		Z_OK);
	if (is_old)
		memcpy(f->section, "ZLIB\0\0\0\0\0\0\xc3\x50", 12);
	else
		memcpy(f->section, &ch, sizeof(ch));
	f->shdrs[1] = (Elf64_Shdr){
		.sh_name = is_old ? 14 : 1,
		.sh_type = SHT_PROGBITS,
		.sh_flags = is_old ? 0 : SHF_COMPRESSED,
		.sh_offset = offsetof(struct packed_file, section),
		.sh_size = lead + stream_len,
	};
	f->shdrs[2] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct packed_file, names),
		.sh_size = sizeof(f->names),
	};
}

static void open_file(struct wp_elf_image *image, const void *data, size_t len)
{
	int fd = memfd_create("elf", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	assert_int_equal(wp_elf_image_open(image, fd, NULL), 0);
}

static void set_chdr(struct packed_file *f, uint32_t type, uint64_t size)
{
	Elf64_Chdr ch = { .ch_type = type, .ch_size = size };

	memcpy(f->section, &ch, sizeof(ch));
}

/* The file has no .debug_frame, or one of which no byte can be had; all its own
 * bytes can. */
static void assert_refused(const struct packed_file *f)
{
	struct wp_elf_image image;
	const uint8_t *bytes;

	open_file(&image, f, sizeof(*f));
	if (image.debug_frame.size) {
		for (int i = 0; i < 2; i++)
			assert_null(wp_elf_image_at(&image,
						    image.debug_frame.off, 1));
		assert_int_equal(image.packed.state, WP_ELF_BROKEN);
	}
	bytes = wp_elf_image_at(&image, 0, sizeof(*f));
	assert_non_null(bytes);
	assert_memory_equal(bytes, f, sizeof(*f));
	wp_elf_image_clear(&image);
}

static void a_compressed_section_is_unpacked_when_wanted(void **state)
{
	(void)state;
	for (int is_old = 0; is_old < 2; is_old++) {
		struct wp_elf_image image;
		const struct wp_elf_range *r = &image.debug_frame;
		struct packed_file f;
		const uint8_t *p;

		make_packed(&f, is_old);
		open_file(&image, &f, sizeof(f));
		assert_int_equal(r->size, FRAME_LEN);
		assert_int_equal(image.size, sizeof(f));
		assert_true(r->off > image.size);
		assert_int_equal(image.packed.state, WP_ELF_PACKED);
		assert_null(wp_elf_image_at(&image, r->off + FRAME_LEN, 1));
		assert_null(wp_elf_image_at(&image, r->off, FRAME_LEN + 1));
		assert_null(wp_elf_image_at(&image, r->off - 1, 1));
		assert_null(wp_elf_image_at(&image, r->off, UINT64_MAX));
		assert_null(wp_elf_image_at(&image, image.size, 1));
		assert_int_equal(image.packed.state, WP_ELF_PACKED);
		p = wp_elf_image_at(&image, r->off + 100, 8);
		assert_non_null(p);
		assert_int_equal(image.packed.state, WP_ELF_UNPACKED);
		assert_memory_equal(p, frame + 100, 8);
		p = wp_elf_image_at(&image, r->off, FRAME_LEN);
		assert_memory_equal(p, frame, FRAME_LEN);
		assert_int_equal(wp_elf_image_left(&image, r->off + 1),
				 FRAME_LEN - 1);
		assert_int_equal(wp_elf_image_left(&image, r->off + FRAME_LEN),
				 0);
		assert_int_equal(wp_elf_image_left(&image, 1), sizeof(f) - 1);
		wp_elf_image_clear(&image);
		assert_null(wp_elf_image_at(&image, 1 << 20, 1));
	}
}

static bool unpacks(void)
{
	struct wp_elf_image image;
	struct packed_file f;
	bool ret;

	make_packed(&f, false);
	open_file(&image, &f, sizeof(f));
	ret = wp_elf_image_at(&image, image.debug_frame.off, 1);
	wp_elf_image_clear(&image);
	return ret;
}

static void what_is_read_and_unpacked_has_a_budget(void **state)
{
	struct packed_file f;
	/* The blocks of F that are read, and the section. */
	uint64_t one;

	(void)state;
	make_packed(&f, false);
	one = offsetof(struct packed_file, section) + sizeof(Elf64_Chdr) +
	      stream_len;
	one = ((one + 4095) & ~UINT64_C(4095)) + FRAME_LEN;
	/* More than one file may take. */
	wp_budget_set(16 * (one - 1));
	assert_false(unpacks());
	wp_budget_set(16 * one);
	/* What it took is given back. */
	for (int i = 0; i < 100; i++)
		assert_true(unpacks());
	wp_budget_set(WP_BUDGET_DEFAULT);
}

static void files_together_have_a_budget(void **state)
{
	struct wp_elf_image images[5];

	(void)state;
	wp_budget_set(UINT64_C(64) << 10);
	for (int i = 0; i < 5; i++) {
		images[i] = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
		/* A sixteenth, of which a quarter has four. */
		assert_int_equal(wp_elf_image_take(&images[i], 4 << 10), i < 4);
		assert_int_equal(images[i].lacks_memory, i == 4);
	}
	assert_false(wp_elf_image_take(&images[0], 1));
	assert_true(images[0].lacks_memory);
	wp_elf_image_clear(&images[0]);
	assert_true(wp_elf_image_take(&images[4], 4 << 10));
	for (int i = 1; i < 5; i++)
		wp_elf_image_clear(&images[i]);
	wp_budget_set(WP_BUDGET_DEFAULT);
}

static void a_lying_size_is_refused(void **state)
{
	const uint64_t sizes[] = {
		0,
		1,
		FRAME_LEN - 1,
		FRAME_LEN + 1,
		2 * FRAME_LEN,
		UINT64_C(64) << 20,
		(UINT64_C(64) << 20) + 1,
		UINT32_MAX,
		UINT64_C(1) << 32,
		UINT64_MAX - 1,
		UINT64_MAX,
		/* What so many bytes can become at most, and more. */
		WP_INFLATE_RATIO_MAX * stream_len,
		WP_INFLATE_RATIO_MAX * (stream_len + 2),
	};
	struct wp_elf_image image;
	struct packed_file f;

	(void)state;
	make_packed(&f, false);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		set_chdr(&f, ELFCOMPRESS_ZLIB, sizes[i]);
		assert_refused(&f);
	}
	/* Neither is room kept for what cannot be. */
	open_file(&image, &f, sizeof(f));
	assert_int_equal(image.debug_frame.size, 0);
	assert_int_equal(image.reserved, image.size);
	wp_elf_image_clear(&image);
	/* zstd, and no type at all. */
	for (uint32_t type = 0; type <= 3; type += type ? 1 : 2) {
		set_chdr(&f, type, FRAME_LEN);
		assert_refused(&f);
	}
	set_chdr(&f, ELFCOMPRESS_ZLIB, FRAME_LEN);
	f.shdrs[1].sh_size = UINT64_MAX - 100;
	assert_refused(&f);
	f.shdrs[1].sh_size = sizeof(Elf64_Chdr) + stream_len;
	f.shdrs[1].sh_offset = UINT64_MAX - 10;
	assert_refused(&f);
	f.shdrs[1].sh_offset = sizeof(f) - 4;
	assert_refused(&f);
}

static void every_prefix_of_a_compressed_section_is_refused(void **state)
{
	struct packed_file f;

	(void)state;
	for (int is_old = 0; is_old < 2; is_old++) {
		make_packed(&f, is_old);
		for (uint64_t n = f.shdrs[1].sh_size; n-- > 0;) {
			f.shdrs[1].sh_size = n;
			assert_refused(&f);
		}
		make_packed(&f, is_old);
		/* One byte too many, too. */
		f.shdrs[1].sh_size++;
		assert_refused(&f);
	}
}

/* zlib's stream has checksums of its head and of what it becomes. */
static void a_changed_byte_is_refused(void **state)
{
	struct packed_file f;

	(void)state;
	make_packed(&f, false);
	for (size_t i = 0; i < stream_len; i++) {
		uint8_t *byte = &f.section[sizeof(Elf64_Chdr) + i];

		*byte ^= 0xff;
		assert_refused(&f);
		*byte ^= 0xff;
	}
	make_packed(&f, true);
	f.section[0] = 'z';
	assert_refused(&f);
}

static void a_file_cut_before_it_is_unpacked(void **state)
{
	struct wp_elf_image image;
	struct packed_file *f = test_calloc(1, sizeof(*f) + 100000);

	(void)state;
	make_packed(f, false);
	memmove((uint8_t *)f + 90000, f->section, sizeof(f->section));
	f->shdrs[1].sh_offset = 90000;
	open_file(&image, f, sizeof(*f) + 100000);
	assert_int_equal(image.debug_frame.size, FRAME_LEN);
	assert_int_equal(ftruncate(image.fd, 90100), 0);
	/* The block with the section's header was read when it was opened. */
	image.loaded[90000 >> WP_ELF_BLOCK_BITS] = 0;
	assert_null(wp_elf_image_at(&image, image.debug_frame.off, 1));
	wp_elf_image_clear(&image);
	test_free(f);
}

static void bytes_of_the_caller_are_read_in_place(void **state)
{
	struct wp_elf_image image;
	struct packed_file *f = test_calloc(1, sizeof(*f));

	(void)state;
	make_packed(f, false);
	assert_int_equal(wp_elf_image_open_bytes(&image, f, sizeof(*f), NULL),
			 0);
	assert_ptr_equal(wp_elf_image_whole(&image), f);
	assert_ptr_equal(wp_elf_image_at(&image, 8, sizeof(*f) - 8),
			 (uint8_t *)f + 8);
	assert_null(wp_elf_image_at(&image, 8, sizeof(*f) - 7));
	/* Nothing can be unpacked behind them. */
	assert_int_equal(image.packed.size, 0);
	wp_elf_image_drop(&image, 0, 0);
	wp_elf_image_clear(&image);
	assert_memory_equal(f->ehdr.e_ident, ELFMAG, SELFMAG);
	f->ehdr.e_ident[0] = 0;
	assert_int_equal(wp_elf_image_open_bytes(&image, f, sizeof(*f), NULL),
			 -ENOTSUP);
	test_free(f);
}

static void a_whole_file_is_mapped_and_dropped(void **state)
{
	const size_t PAGE = (size_t)sysconf(_SC_PAGESIZE), LEN = 24 * PAGE + 7;
	struct wp_elf_image image;
	uint8_t *f = test_calloc(1, LEN), *bytes;

	(void)state;
	make_packed((struct packed_file *)f, false);
	memset(f + 3 * PAGE, 'x', LEN - 3 * PAGE);
	open_file(&image, f, LEN);
	bytes = wp_elf_image_whole(&image);
	assert_non_null(bytes);
	assert_int_equal(image.fd, -1);
	assert_memory_equal(bytes, f, LEN);
	assert_ptr_equal(wp_elf_image_whole(&image), bytes);
	/* What is unpacked lies behind the mapping as before. */
	assert_non_null(
		wp_elf_image_at(&image, image.debug_frame.off, FRAME_LEN));
	/* Changes stay here, and go with the page unless it is kept. */
	bytes[3 * PAGE] = bytes[5 * PAGE - 1] = bytes[6 * PAGE] = 'y';
	wp_elf_image_drop(&image, 4 * PAGE + 1, PAGE - 1);
	assert_int_equal(bytes[3 * PAGE], 'x');
	assert_int_equal(bytes[5 * PAGE - 1], 'y');
	assert_int_equal(bytes[6 * PAGE], 'x');
	wp_elf_image_drop(&image, LEN, 1);
	assert_memory_equal(bytes, f, LEN);
	assert_non_null(
		wp_elf_image_at(&image, image.debug_frame.off, FRAME_LEN));
	wp_elf_image_clear(&image);
	test_free(f);
}

/* As dwz(1) makes files: a note, and no program header. */
static void a_build_id_is_found_by_sections_too(void **state)
{
	static const uint8_t note[] = { 4,   0, 0,    0,    2, 0,   0,
					0,   3, 0,    0,    0, 'G', 'N',
					'U', 0, 0xab, 0xcd, 0, 0 };
	struct packed_file *f = test_calloc(1, sizeof(*f));
	struct wp_elf_image image;

	(void)state;
	make_packed(f, false);
	f->ehdr.e_phnum = f->ehdr.e_phentsize = 0;
	f->shdrs[1].sh_type = SHT_NOTE;
	f->shdrs[1].sh_flags = 0;
	f->shdrs[1].sh_name = 0;
	f->shdrs[1].sh_size = sizeof(note);
	memcpy((uint8_t *)f + f->shdrs[1].sh_offset, note, sizeof(note));
	assert_int_equal(wp_elf_image_open_bytes(&image, f, sizeof(*f), NULL),
			 0);
	assert_int_equal(image.build_id_len, 2);
	assert_int_equal(image.build_id[0], 0xab);
	assert_int_equal(image.build_id[1], 0xcd);
	test_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_understood),
		cmocka_unit_test(so_many_bytes_of_notes_are_looked_at),
		cmocka_unit_test(a_mapping_begins_at_a_page_of_this_kernel),
		cmocka_unit_test(bytes_are_fetched_once_and_when_asked),
		cmocka_unit_test(blocks_are_small_and_read_ahead),
		cmocka_unit_test(a_file_cut_short_later_is_no_crash),
		cmocka_unit_test(other_machines_are_refused),
		cmocka_unit_test(
			every_prefix_and_every_flipped_header_byte_is_safe),
		cmocka_unit_test(a_compressed_section_is_unpacked_when_wanted),
		cmocka_unit_test(what_is_read_and_unpacked_has_a_budget),
		cmocka_unit_test(files_together_have_a_budget),
		cmocka_unit_test(a_lying_size_is_refused),
		cmocka_unit_test(
			every_prefix_of_a_compressed_section_is_refused),
		cmocka_unit_test(a_changed_byte_is_refused),
		cmocka_unit_test(a_file_cut_before_it_is_unpacked),
		cmocka_unit_test(bytes_of_the_caller_are_read_in_place),
		cmocka_unit_test(a_whole_file_is_mapped_and_dropped),
		cmocka_unit_test(a_build_id_is_found_by_sections_too),
	};

	return cmocka_run_group_tests_name("elf_image", tests, NULL, NULL);
}
