/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbols.  symbols/symtab.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../symbols/elf_file.h"
#include "../../symbols/symtab.h"
#include "make_elf.h"

enum { TEXT = 1, TEXT_ADDR = 0x1000, TEXT_SIZE = 0x1000 };

/* A file whose .text is section 1, with SYMBOLS as its .symtab. */
static uint8_t *file_of(const struct make_symbols *symbols, size_t *ret_size)
{
	const struct make_section sections[] = {
		{ ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_ADDR,
		  NULL, TEXT_SIZE, 0, 0 },
		{ ".symtab", SHT_SYMTAB, 0, 0, symbols->v,
		  symbols->len * sizeof(*symbols->v), 3, sizeof(Elf64_Sym) },
		{ ".strtab", SHT_STRTAB, 0, 0, symbols->names,
		  symbols->names_len, 0, 0 },
		{ ".data", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 0x3000, NULL,
		  0x1000, 0, 0 },
	};

	return make_elf(sections, 4, ret_size);
}

static void close_bytes(struct wp_elf_file *file)
{
	wp_elf_file_close(file);
	free(file->image->data);
	test_free(file->image);
	*file = (struct wp_elf_file){ 0 };
}

/* Everything that reads a table, for a file of BYTES, which pass, of MACHINE if
 * that is not 0. */
static void open_machine(struct wp_symtab *tab, struct wp_elf_file *file,
			 uint8_t *bytes, size_t size, unsigned int machine)
{
	file->image = test_calloc(1, sizeof(*file->image));
	file->image->data = bytes;
	if (wp_elf_image_open_bytes(file->image, bytes, size, NULL))
		return;
	/* Files of another machine than this are not opened. */
	if (machine)
		((Elf64_Ehdr *)(void *)bytes)->e_machine = (Elf64_Half)machine;
	if (wp_elf_file_open(file))
		return;
	assert_int_equal(wp_symtab_add(tab, file, SHT_SYMTAB, 0), 0);
	assert_int_equal(wp_symtab_add(tab, file, SHT_DYNSYM, 0), 0);
	wp_symtab_finish(tab);
	assert_int_equal(wp_symtab_add_plt(tab, file->elf), 0);
	wp_symtab_finish(tab);
}

static void open_bytes(struct wp_symtab *tab, struct wp_elf_file *file,
		       uint8_t *bytes, size_t size)
{
	open_machine(tab, file, bytes, size, 0);
}

/* What is found at ADDR: its name, or "" for nothing. */
static const char *name_at(const struct wp_symtab *tab, uint64_t addr)
{
	static char name[64];
	const struct wp_symtab_entry *entry = wp_symtab_find(tab, addr);

	name[0] = '\0';
	if (entry)
		wp_symtab_name(tab, entry, name, sizeof(name));
	return name;
}

static void find_is_half_open(void **state)
{
	struct wp_elf_file file = { 0 };
	struct wp_symtab tab = WP_SYMTAB_INIT;
	struct make_symbols s = { 0 };
	uint8_t *bytes;
	size_t size;

	(void)state;
	make_symbol(&s, "b", STB_GLOBAL, STT_FUNC, TEXT, 0x1100, 0x20);
	make_symbol(&s, "a", STB_GLOBAL, STT_FUNC, TEXT, 0x1010, 0x10);
	bytes = file_of(&s, &size);
	open_bytes(&tab, &file, bytes, size);
	assert_string_equal(name_at(&tab, 0x100f), "");
	assert_string_equal(name_at(&tab, 0x1010), "a");
	assert_string_equal(name_at(&tab, 0x101f), "a");
	assert_string_equal(name_at(&tab, 0x1020), "");
	assert_string_equal(name_at(&tab, 0x111f), "b");
	assert_string_equal(name_at(&tab, UINT64_MAX), "");
	assert_non_null(wp_symtab_at(&tab, 0x1010));
	assert_null(wp_symtab_at(&tab, 0x1011));
	wp_symtab_clear(&tab);
	close_bytes(&file);
}

static void the_better_of_two_names_wins(void **state)
{
	static const struct {
		const char *name;
		int bind, type;
		uint64_t size;
		const char *worse;
		int worse_bind, worse_type;
		uint64_t worse_size;
	} pairs[] = {
		/* As in glibc: the names that programs call. */
		{ "read", STB_WEAK, STT_FUNC, 8, "__read", STB_GLOBAL, STT_FUNC,
		  8 },
		{ "__pthread_mutex_lock@GLIBC_2.2.5", STB_GLOBAL, STT_FUNC, 8,
		  "___pthread_mutex_lock", STB_LOCAL, STT_FUNC, 8 },
		{ "__lll_lock_wait", STB_LOCAL, STT_FUNC, 8,
		  "__GI___lll_lock_wait", STB_LOCAL, STT_FUNC, 8 },
		{ "__x", STB_GLOBAL, STT_FUNC, 8, "x", STB_LOCAL, STT_FUNC, 8 },
		{ "__f", STB_LOCAL, STT_FUNC, 8, "l", STB_GLOBAL, STT_NOTYPE,
		  8 },
		{ "__f", STB_LOCAL, STT_FUNC, 8, "g", STB_GLOBAL, STT_FUNC, 0 },
		{ "g", STB_GLOBAL, STT_FUNC, 8, "w", STB_WEAK, STT_FUNC, 8 },
		{ "zz", STB_GLOBAL, STT_FUNC, 9, "aa", STB_GLOBAL, STT_FUNC,
		  8 },
		{ "aa", STB_GLOBAL, STT_FUNC, 8, "bb", STB_GLOBAL, STT_FUNC,
		  8 },
		{ "i", STB_GLOBAL, STT_GNU_IFUNC, 8, "__i", STB_GLOBAL,
		  STT_FUNC, 8 },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(pairs) / sizeof(*pairs); i++) {
		struct wp_elf_file file = { 0 };
		struct wp_symtab tab = WP_SYMTAB_INIT;
		struct make_symbols s = { 0 };
		char want[64];
		uint8_t *bytes;
		size_t size;

		/* In both orders. */
		for (size_t k = 0; k < 2; k++)
			if ((k ^ i) & 1)
				make_symbol(&s, pairs[i / 2].name,
					    pairs[i / 2].bind,
					    pairs[i / 2].type, TEXT, 0x1100,
					    pairs[i / 2].size);
			else
				make_symbol(&s, pairs[i / 2].worse,
					    pairs[i / 2].worse_bind,
					    pairs[i / 2].worse_type, TEXT,
					    0x1100, pairs[i / 2].worse_size);
		bytes = file_of(&s, &size);
		open_bytes(&tab, &file, bytes, size);
		assert_int_equal(tab.len, 1);
		strcpy(want, pairs[i / 2].name);
		want[strcspn(want, "@")] = '\0';
		assert_string_equal(name_at(&tab, 0x1101), want);
		wp_symtab_clear(&tab);
		close_bytes(&file);
	}
}

static void a_symbol_without_size_reaches_to_the_next(void **state)
{
	struct wp_elf_file file = { 0 };
	struct wp_symtab tab = WP_SYMTAB_INIT;
	struct make_symbols s = { 0 };
	uint8_t *bytes;
	size_t size;

	(void)state;
	make_symbol(&s, "start", STB_GLOBAL, STT_NOTYPE, TEXT, 0x1000, 0);
	make_symbol(&s, "f", STB_GLOBAL, STT_FUNC, TEXT, 0x1100, 0x100);
	/* A label inside a function does not hide it... */
	make_symbol(&s, "loop", STB_LOCAL, STT_NOTYPE, TEXT, 0x1180, 0);
	/* ...but a function does. */
	make_symbol(&s, "inner", STB_LOCAL, STT_FUNC, TEXT, 0x11c0, 0x10);
	make_symbol(&s, "last", STB_GLOBAL, STT_FUNC, TEXT, 0x1f00, 0);
	bytes = file_of(&s, &size);
	open_bytes(&tab, &file, bytes, size);
	assert_string_equal(name_at(&tab, 0x10ff), "start");
	assert_string_equal(name_at(&tab, 0x1190), "f");
	assert_string_equal(name_at(&tab, 0x11c0), "inner");
	assert_string_equal(name_at(&tab, 0x11d0), "f");
	assert_string_equal(name_at(&tab, 0x1200), "");
	/* To the end of the section. */
	assert_string_equal(name_at(&tab, 0x1fff), "last");
	assert_string_equal(name_at(&tab, 0x2000), "");
	wp_symtab_clear(&tab);
	close_bytes(&file);
}

/* A table, or code that a compiler wrote as data. */
static void an_object_in_code_has_its_name(void **state)
{
	struct wp_elf_file file = { 0 };
	struct wp_symtab tab = WP_SYMTAB_INIT;
	struct make_symbols s = { 0 };
	uint8_t *bytes;
	size_t size;

	(void)state;
	make_symbol(&s, "dummy", STB_LOCAL, STT_FUNC, TEXT, 0x1000, 0);
	make_symbol(&s, "object", STB_GLOBAL, STT_OBJECT, TEXT, 0x1100, 8);
	make_symbol(&s, "ml", STB_LOCAL, STT_OBJECT, TEXT, 0x1200, 0);
	make_symbol(&s, "f", STB_GLOBAL, STT_FUNC, TEXT, 0x1300, 0x100);
	make_symbol(&s, "table", STB_LOCAL, STT_OBJECT, TEXT, 0x1310, 8);
	bytes = file_of(&s, &size);
	open_bytes(&tab, &file, bytes, size);
	assert_string_equal(name_at(&tab, 0x10ff), "dummy");
	assert_string_equal(name_at(&tab, 0x1107), "object");
	assert_string_equal(name_at(&tab, 0x1108), "");
	assert_string_equal(name_at(&tab, 0x12ff), "ml");
	assert_string_equal(name_at(&tab, 0x1310), "f");
	assert_false(wp_symtab_is_variable(wp_symtab_find(&tab, 0x1100)));
	wp_symtab_clear(&tab);
	close_bytes(&file);
}

static void only_code_counts(void **state)
{
	struct wp_elf_file file = { 0 };
	struct wp_symtab tab = WP_SYMTAB_INIT;
	struct make_symbols s = { 0 };
	uint8_t *bytes;
	size_t size;

	(void)state;
	make_symbol(&s, "data", STB_GLOBAL, STT_FUNC, 4, 0x3100, 8);
	make_symbol(&s, "undefined", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0x1200,
		    8);
	make_symbol(&s, "absolute", STB_GLOBAL, STT_FUNC, SHN_ABS, 0x1300, 8);
	make_symbol(&s, "$x", STB_LOCAL, STT_NOTYPE, TEXT, 0x1400, 0);
	make_symbol(&s, ".L1", STB_LOCAL, STT_NOTYPE, TEXT, 0x1500, 0);
	make_symbol(&s, "huge", STB_LOCAL, STT_FUNC, TEXT, 0x1f00, UINT64_MAX);
	bytes = file_of(&s, &size);
	open_bytes(&tab, &file, bytes, size);
	assert_int_equal(tab.len, 1);
	assert_int_equal(tab.v[0].size, 0x100);
	wp_symtab_clear(&tab);
	close_bytes(&file);
}

/* In sections that are written, with a size that fits in there. */
static void variables_count_too(void **state)
{
	enum { DATA = 4 };
	struct wp_elf_file file = { 0 };
	struct wp_symtab tab = WP_SYMTAB_INIT;
	struct make_symbols s = { 0 };
	const struct wp_symtab_entry *entry;
	char name[16];
	uint8_t *bytes;
	size_t size;

	(void)state;
	make_symbol(&s, "job", STB_LOCAL, STT_OBJECT, DATA, 0x3010, 0x30);
	make_symbol(&s, "label", STB_GLOBAL, STT_OBJECT, DATA, 0x3050, 0);
	make_symbol(&s, "long", STB_GLOBAL, STT_OBJECT, DATA, 0x3060, 1 << 20);
	make_symbol(&s, "thread", STB_GLOBAL, STT_TLS, DATA, 0x3070, 8);
	make_symbol(&s, "f", STB_GLOBAL, STT_FUNC, TEXT, 0x1100, 0x20);
	bytes = file_of(&s, &size);
	open_bytes(&tab, &file, bytes, size);
	assert_int_equal(tab.len, 2);
	assert_false(wp_symtab_is_variable(wp_symtab_find(&tab, 0x1100)));
	assert_null(wp_symtab_find(&tab, 0x300f));
	entry = wp_symtab_find(&tab, 0x303f);
	assert_non_null(entry);
	assert_true(wp_symtab_is_variable(entry));
	assert_int_equal(entry->svma, 0x3010);
	wp_symtab_name(&tab, entry, name, sizeof(name));
	assert_string_equal(name, "job");
	assert_null(wp_symtab_find(&tab, 0x3040));
	wp_symtab_clear(&tab);
	close_bytes(&file);
}

/* A file's PLT from 0x1800 on, for a machine that need not be this one: puts,
 * exit, and strlen, which is the file's own, by words of the GOT at 0x3000. */
struct plt {
	unsigned int machine, jump_slot, glob_dat, irelative, relative;
	const void *code;
	size_t len;
	/* Of the slots; the second is one with a landing pad. */
	uint64_t puts_svma, exit_svma, strlen_svma, end_svma;
};

/* clang-format off */
static const uint8_t plt_x86[] = {
	/* push, jmp *0x10(%rip): the header, which has no name. */
	0xff, 0x35, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0,
	/* 0x1810: jmp *0x3000; push; jmp: lazy. */
	0xff, 0x25, 0xea, 0x17, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0,
	/* 0x1820: endbr64; bnd jmp *0x3008; nop: IBT. */
	0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xdd, 0x17, 0, 0,
	0x0f, 0x1f, 0x44, 0, 0,
	/* 0x1830: jmp *0x3010. */
	0xff, 0x25, 0xda, 0x17, 0, 0, 0x66, 0x90,
};
static const uint32_t plt_arm[] = {
	/* stp x16, x30, [sp, #-16]!; adrp x16; ldr x17, [x16, #0xff8]; add. */
	0xa9bf7bf0, 0xd0000010, 0xf947fe11, 0x913fe210,
	/* 0x1810: adrp x16, 0x3000; ldr x17, [x16]; add; br x17. */
	0xd0000010, 0xf9400211, 0x91000210, 0xd61f0220,
	/* 0x1820: bti c; adrp; ldr x17, [x16, #8]; add; autia1716; br x17. */
	0xd503245f, 0xd0000010, 0xf9400611, 0x91002210, 0xd503219f, 0xd61f0220,
	/* 0x1838: adrp; ldr x17, [x16, #16]; add; br x17. */
	0xd0000010, 0xf9400a11, 0x91004210, 0xd61f0220,
};
/* clang-format on */

static const struct plt plts[] = {
	{ EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE,
	  R_X86_64_RELATIVE, plt_x86, sizeof(plt_x86), 0x1810, 0x1820, 0x1830,
	  0x1838 },
	{ EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT,
	  R_AARCH64_IRELATIVE, R_AARCH64_RELATIVE, plt_arm, sizeof(plt_arm),
	  0x1810, 0x1820, 0x1838, 0x1848 },
};

static uint8_t *file_with_plt(const struct plt *plt, size_t *ret_size)
{
	static struct make_symbols dynsym, symtab;
	const Elf64_Rela rela[] = {
		{ 0x3008, ELF64_R_INFO(2, plt->glob_dat), 0 },
		{ 0x3000, ELF64_R_INFO(1, plt->jump_slot), 0 },
		/* A function of this file: by its address. */
		{ 0x3010, ELF64_R_INFO(0, plt->irelative), 0x1100 },
		{ 0x3018, ELF64_R_INFO(0, plt->relative), 0x1100 },
	};
	const struct make_section sections[] = {
		{ ".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_ADDR,
		  NULL, 0x800, 0, 0 },
		{ ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1800,
		  plt->code, plt->len, 0, 16 },
		{ ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, dynsym.v,
		  3 * sizeof(Elf64_Sym), 4, sizeof(Elf64_Sym) },
		{ ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, dynsym.names, 64, 0, 0 },
		{ ".rela.plt", SHT_RELA, SHF_ALLOC, 0, rela, sizeof(rela), 3,
		  sizeof(*rela) },
		{ ".symtab", SHT_SYMTAB, 0, 0, symtab.v, 2 * sizeof(Elf64_Sym),
		  7, sizeof(Elf64_Sym) },
		{ ".strtab", SHT_STRTAB, 0, 0, symtab.names, 64, 0, 0 },
	};

	memset(&dynsym, 0, sizeof(dynsym));
	memset(&symtab, 0, sizeof(symtab));
	make_symbol(&dynsym, "puts", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0, 0);
	make_symbol(&dynsym, "exit", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0, 0);
	make_symbol(&symtab, "strlen", STB_GLOBAL, STT_GNU_IFUNC, TEXT, 0x1100,
		    0x10);
	return make_elf(sections, 7, ret_size);
}

static void slots_of_the_plt_have_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(plts) / sizeof(*plts); i++) {
		const struct plt *plt = &plts[i];
		struct wp_elf_file file = { 0 };
		struct wp_symtab tab = WP_SYMTAB_INIT;
		size_t size;
		uint8_t *bytes = file_with_plt(plt, &size);

		open_machine(&tab, &file, bytes, size, plt->machine);
		assert_string_equal(name_at(&tab, 0x1800), "");
		assert_string_equal(name_at(&tab, plt->puts_svma), "puts@plt");
		assert_string_equal(name_at(&tab, plt->puts_svma + 15),
				    "puts@plt");
		assert_string_equal(name_at(&tab, plt->exit_svma), "exit@plt");
		assert_string_equal(name_at(&tab, plt->strlen_svma),
				    "strlen@plt");
		assert_string_equal(name_at(&tab, plt->end_svma), "");
		wp_symtab_clear(&tab);
		close_bytes(&file);
	}
}

static void every_prefix_is_safe(void **state)
{
	size_t size;
	uint8_t *whole = file_with_plt(plts, &size);

	(void)state;
	for (size_t n = 1; n < size; n++) {
		struct wp_elf_file file = { 0 };
		struct wp_symtab tab = WP_SYMTAB_INIT;
		uint8_t *bytes = malloc(n);

		memcpy(bytes, whole, n);
		open_bytes(&tab, &file, bytes, n);
		(void)name_at(&tab, 0x1810);
		wp_symtab_clear(&tab);
		close_bytes(&file);
	}
	free(whole);
}

/* One byte at a time, in all of the file's headers and tables. */
static void every_wrong_byte_is_safe(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	size_t size;
	uint8_t *whole = file_with_plt(plts, &size);

	(void)state;
	for (size_t i = 0; i < size * sizeof(values); i++) {
		struct wp_elf_file file = { 0 };
		struct wp_symtab tab = WP_SYMTAB_INIT;
		uint8_t *bytes = malloc(size);

		memcpy(bytes, whole, size);
		bytes[i / sizeof(values)] = values[i % sizeof(values)];
		open_bytes(&tab, &file, bytes, size);
		for (uint32_t k = 0; k < tab.len; k++)
			(void)name_at(&tab, tab.v[k].svma);
		wp_symtab_clear(&tab);
		close_bytes(&file);
	}
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find_is_half_open),
		cmocka_unit_test(the_better_of_two_names_wins),
		cmocka_unit_test(a_symbol_without_size_reaches_to_the_next),
		cmocka_unit_test(an_object_in_code_has_its_name),
		cmocka_unit_test(only_code_counts),
		cmocka_unit_test(variables_count_too),
		cmocka_unit_test(slots_of_the_plt_have_names),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(every_wrong_byte_is_safe),
	};

	return cmocka_run_group_tests_name("symtab", tests, NULL, NULL);
}
