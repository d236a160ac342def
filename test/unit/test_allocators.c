/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator functions of a file.  Layer: heap.  Against the addresses that the
 * dynamic linker gives of the C library's, and files made here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "make_elf.h"
#include "wallprof/allocators.h"

static const struct wp_allocator *find(const struct wp_allocators *v,
				       uint64_t svma)
{
	for (size_t i = 0; i < v->len; i++)
		if (v->v[i].svma == svma)
			return &v->v[i];
	return NULL;
}

static void those_of_the_c_library(void **state)
{
	static const struct {
		const char *name;
		enum wp_heap_call call;
	} wanted[] = {
		{ "malloc", WP_HEAP_MALLOC },
		{ "calloc", WP_HEAP_CALLOC },
		{ "realloc", WP_HEAP_REALLOC },
		{ "aligned_alloc", WP_HEAP_MEMALIGN },
		{ "posix_memalign", WP_HEAP_POSIX_MEMALIGN },
		{ "free", WP_HEAP_FREE },
		{ "mmap", WP_HEAP_MMAP },
		{ "munmap", WP_HEAP_MUNMAP },
		{ "mprotect", WP_HEAP_MPROTECT },
		{ "sbrk", WP_HEAP_SBRK },
		{ "mremap", WP_HEAP_MREMAP },
	};
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_allocators found = { 0 };
	void *libc = dlopen("libc.so.6", RTLD_NOW);
	Dl_info info;

	(void)state;
	assert_non_null(libc);
	assert_int_not_equal(dladdr(dlsym(libc, "malloc"), &info), 0);
	assert_int_equal(
		wp_elf_image_open(&image,
				  open(info.dli_fname, O_RDONLY | O_CLOEXEC),
				  NULL),
		0);
	assert_int_equal(wp_allocators_find(&found, &image, false), 0);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		uint64_t svma = (uint64_t)(uintptr_t)dlsym(libc,
							   wanted[i].name) -
				(uint64_t)(uintptr_t)info.dli_fbase;
		const struct wp_allocator *f = find(&found, svma);
		uint64_t off;

		assert_non_null(f);
		if (!f)
			break;
		/* It jumps to malloc, or does not. */
		if (f->call == WP_HEAP_REGROW)
			assert_int_equal(wanted[i].call, WP_HEAP_REALLOC);
		else
			assert_int_equal(f->call, wanted[i].call);
		assert_true(f->is_probed);
		assert_true(wp_elf_image_offset(&image, svma, &off));
		assert_in_range(f->probe_off, off, off + f->size - 1);
	}
	wp_allocators_clear(&found);
	wp_elf_image_clear(&image);
	dlclose(libc);
}

static void names(void **state)
{
	static const struct {
		const char *name;
		/* WP_HEAP_NCALLS: none. */
		enum wp_heap_call call;
		bool is_operator;
	} cases[] = {
		{ "malloc", WP_HEAP_MALLOC, false },
		{ "__libc_calloc", WP_HEAP_CALLOC, false },
		{ "je_malloc", WP_HEAP_MALLOC, false },
		{ "je_sdallocx", WP_HEAP_FREE, false },
		{ "sdallocx", WP_HEAP_FREE, false },
		{ "tc_realloc", WP_HEAP_REALLOC, false },
		{ "mi_free", WP_HEAP_FREE, false },
		{ "cfree", WP_HEAP_FREE, false },
		{ "_Znwm", WP_HEAP_NEW, true },
		{ "_ZnamSt11align_val_t", WP_HEAP_NEW, true },
		{ "_ZnwmRKSt9nothrow_t", WP_HEAP_MALLOC, true },
		{ "mi_new", WP_HEAP_NEW, false },
		{ "mi_new_nothrow", WP_HEAP_MALLOC, false },
		{ "mi_new_n", WP_HEAP_NEW_N, false },
		{ "mi_new_realloc", WP_HEAP_NEW_REALLOC, false },
		{ "_ZnamSt11align_val_tRKSt9nothrow_t", WP_HEAP_MALLOC, true },
		{ "_ZnwmPv", WP_HEAP_NCALLS, false },
		{ "_ZnwmSt11align_val_tRKSt9nothrow_t12__hot_cold_t",
		  WP_HEAP_MALLOC, true },
		{ "_Znam12__hot_cold_t", WP_HEAP_NEW, true },
		/* In an arena, as operators of placement may be. */
		{ "_ZnwmR5Arena", WP_HEAP_NCALLS, false },
		{ "_ZnwmP8MEM_ROOTRKSt9nothrow_t", WP_HEAP_NCALLS, false },
		{ "_ZnamRKSt9nothrow_tR5Arena", WP_HEAP_NCALLS, false },
		{ "_ZdlPvS_", WP_HEAP_NCALLS, false },
		{ "_ZdaPvR5Arena", WP_HEAP_NCALLS, false },
		{ "_ZdlPvm", WP_HEAP_FREE, true },
		{ "_ZdaPvmSt11align_val_t", WP_HEAP_FREE, true },
		{ "_ZdlPvSt11align_val_tRKSt9nothrow_t", WP_HEAP_FREE, true },
		{ "_rjem_malloc", WP_HEAP_MALLOC, false },
		{ "_rjem_mallocx", WP_HEAP_MALLOC, false },
		{ "_rjem_rallocx", WP_HEAP_REALLOC, false },
		{ "_rjem_posix_memalign", WP_HEAP_POSIX_MEMALIGN, false },
		{ "mi_malloc_aligned", WP_HEAP_MALLOC, false },
		{ "mi_zalloc_aligned", WP_HEAP_MALLOC, false },
		{ "mi_calloc_aligned", WP_HEAP_CALLOC, false },
		{ "mi_realloc_aligned", WP_HEAP_REALLOC, false },
		{ "mi_free_size_aligned", WP_HEAP_FREE, false },
		{ "free_sized", WP_HEAP_FREE, false },
		{ "mmap64", WP_HEAP_MMAP, false },
		{ "munmap", WP_HEAP_MUNMAP, false },
		{ "mprotect", WP_HEAP_MPROTECT, false },
		{ "sbrk", WP_HEAP_SBRK, false },
		{ "pthread_create", WP_HEAP_THREAD, false },
		{ "je_mmap", WP_HEAP_NCALLS, false },
		{ "malloc_aligned", WP_HEAP_NCALLS, false },
		{ "mi_heap_malloc", WP_HEAP_NCALLS, false },
		{ "tc_mallocx", WP_HEAP_NCALLS, false },
		{ "mi_sdallocx", WP_HEAP_NCALLS, false },
		{ "mallocs", WP_HEAP_NCALLS, false },
		{ "", WP_HEAP_NCALLS, false },
		{ "je_", WP_HEAP_NCALLS, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum wp_heap_call call;
		bool is_operator, is_known = wp_allocator_of_name(
					  cases[i].name, &call, &is_operator);

		assert_int_equal(is_known, cases[i].call != WP_HEAP_NCALLS);
		if (!is_known)
			continue;
		assert_int_equal(call, cases[i].call);
		assert_int_equal(is_operator, cases[i].is_operator);
	}
}

static void put_jump(uint8_t *code, int32_t distance)
{
#if defined(__x86_64__)
	code[0] = 0xe9;
	distance -= 5;
	memcpy(code + 1, &distance, sizeof(distance));
#else
	uint32_t insn = 5u << 26 | ((uint32_t)distance / 4 & 0x3ffffff);

	memcpy(code, &insn, sizeof(insn));
#endif
}

/* What realloc in a file with malloc too, BEFORE it or behind, is found to be, with a jump
 * as far as malloc and OFF. */
static enum wp_heap_call call_of_realloc(bool before, int32_t off)
{
	enum { LEN = 16, AT = 8 };
	static const char strings[] = "\0malloc\0realloc";
	static uint8_t text[2 * LEN];
	Elf64_Sym symbols[3] = { 0 };
	struct make_section sections[3] = {
		{ .name = ".text",
		  .type = SHT_PROGBITS,
		  .data = text,
		  .size = sizeof(text) },
		{ .name = ".dynsym",
		  .type = SHT_DYNSYM,
		  .data = symbols,
		  .size = sizeof(symbols),
		  .link = 3,
		  .entsize = sizeof(*symbols) },
		{ .name = ".strings",
		  .type = SHT_STRTAB,
		  .data = strings,
		  .size = sizeof(strings) },
	};
	uint64_t at = make_align(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
	int32_t distance = (before ? -LEN : LEN) - AT + off;
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_allocators found = { 0 };
	const struct wp_allocator *f;
	enum wp_heap_call call;
	uint8_t *bytes;
	size_t size;

	memset(text, 0, sizeof(text));
	put_jump(&text[(before ? LEN : 0) + AT], distance);
	for (int i = 0; i < 2; i++)
		symbols[i + 1] = (Elf64_Sym){
			.st_name = i ? 8 : 1,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = at + (i == before ? LEN : 0),
			.st_size = LEN,
		};
	bytes = make_elf(sections, 3, &size);
	assert_int_equal(wp_elf_image_open_bytes(&image, bytes, size, NULL), 0);
	assert_int_equal(wp_allocators_find(&found, &image, false), 0);
	f = find(&found, symbols[2].st_value);
	assert_non_null(f);
	call = f ? f->call : WP_HEAP_NCALLS;
	wp_allocators_clear(&found);
	wp_elf_image_clear(&image);
	free(bytes);
	return call;
}

/* Its objects count in malloc, or they would count twice. */
static void a_realloc_that_jumps_to_malloc_is_known(void **state)
{
	(void)state;
	for (int before = 0; before < 2; before++) {
		assert_int_equal(call_of_realloc(before, 0), WP_HEAP_REGROW);
		assert_int_equal(call_of_realloc(before, 4), WP_HEAP_REALLOC);
	}
}

#ifdef __x86_64__
/* Functions of a made file, at 16 bytes each of .text. */
enum {
	OPERATOR,
	MALLOC,
	MEMALIGN,
	ALIGNED_ALLOC,
	FREE,
	REALLOC,
	JE_REALLOC,
	FUNCTIONS,
	STEP = 16
};

/* A file with FIRST and the functions after it; all bytes of SIZE. */
static uint8_t *make_file(int first, bool dynamic, size_t *ret_size,
			  uint64_t *ret_text)
{
	static const char strings[] =
		"\0_Znwm\0malloc\0memalign\0aligned_alloc\0"
		"free\0realloc\0je_realloc";
	static const uint32_t offsets[] = { 1, 7, 14, 23, 37, 42, 50 };
	static uint8_t text[FUNCTIONS * STEP];
	Elf64_Sym symbols[FUNCTIONS + 1] = { 0 };
	struct make_section sections[3] = {
		{ .name = ".text",
		  .type = SHT_PROGBITS,
		  .data = text,
		  .size = sizeof(text) },
		{ .name = dynamic ? ".dynsym" : ".symtab",
		  .type = dynamic ? SHT_DYNSYM : SHT_SYMTAB,
		  .data = symbols,
		  .link = 3,
		  .entsize = sizeof(*symbols) },
		{ .name = ".strings",
		  .type = SHT_STRTAB,
		  .data = strings,
		  .size = sizeof(strings) },
	};
	size_t n = 1;
	/* What make_elf puts before the first section. */
	uint64_t at = make_align(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));

	memset(text, 0x90, sizeof(text));
	/* memalign is a jump to aligned_alloc. */
	text[MEMALIGN * STEP] = 0xe9;
	memcpy(&text[MEMALIGN * STEP + 1], &(int32_t){ STEP - 5 }, 4);
	/* In realloc there is a jump to malloc, in the other a call of it. */
	text[REALLOC * STEP + 3] = 0xe9;
	memcpy(&text[REALLOC * STEP + 4],
	       &(int32_t){ (MALLOC - REALLOC) * STEP - 8 }, 4);
	text[JE_REALLOC * STEP + 3] = 0xe8;
	memcpy(&text[JE_REALLOC * STEP + 4],
	       &(int32_t){ (MALLOC - JE_REALLOC) * STEP - 8 }, 4);
	/* free begins with what is not emulated. */
	text[FREE * STEP] = 0xc3;
	for (int i = first; i < FUNCTIONS; i++)
		symbols[n++] = (Elf64_Sym){
			.st_name = offsets[i],
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_value = at + (uint64_t)i * STEP,
			.st_size = STEP,
		};
	sections[1].size = n * sizeof(*symbols);
	*ret_text = at;
	return make_elf(sections, 3, ret_size);
}

static void search(struct wp_allocators *ret, uint8_t *bytes, size_t size,
		   bool all)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;

	*ret = (struct wp_allocators){ 0 };
	if (wp_elf_image_open_bytes(&image, bytes, size, NULL))
		return;
	assert_int_equal(wp_allocators_find(ret, &image, all), 0);
	wp_elf_image_clear(&image);
}

static void what_a_file_has_of_its_own(void **state)
{
	struct wp_allocators found;
	size_t size;
	uint64_t text;
	uint8_t *bytes = make_file(OPERATOR, true, &size, &text);

	(void)state;
	search(&found, bytes, size, false);
	assert_int_equal(found.len, FUNCTIONS);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		assert_int_equal(found.v[i].svma, text + i * STEP);
		assert_int_equal(found.v[i].size, STEP);
	}
	/* It has a malloc, so its operator may not call that. */
	assert_true(found.v[OPERATOR].is_probed);
	assert_int_equal(found.v[OPERATOR].call, WP_HEAP_NEW);
	assert_true(found.v[MALLOC].is_probed && found.v[MALLOC].is_cheap);
	assert_false(found.v[MEMALIGN].is_probed);
	assert_true(found.v[ALIGNED_ALLOC].is_probed);
	assert_true(found.v[FREE].is_probed);
	assert_false(found.v[FREE].is_cheap);
	/* Others than free are slow there too. */
	assert_true(found.nslow >= 1 && found.has_slow_usual);
	assert_true(found.v[MALLOC].is_usual && found.v[FREE].is_usual);
	assert_false(found.v[ALIGNED_ALLOC].is_usual ||
		     found.v[JE_REALLOC].is_usual);
	assert_int_equal(found.v[REALLOC].call, WP_HEAP_REGROW);
	assert_int_equal(found.v[JE_REALLOC].call, WP_HEAP_REALLOC);
	assert_true(found.v[REALLOC].is_probed &&
		    found.v[JE_REALLOC].is_probed);
	wp_allocators_clear(&found);
	free(bytes);
}

static void operators_that_call_malloc_are_not_probed(void **state)
{
	struct wp_allocators found;
	size_t size;
	uint64_t text;
	uint8_t *bytes = make_file(OPERATOR, true, &size, &text);
	Elf64_Ehdr eh;
	Elf64_Shdr sh;

	(void)state;
	/* The table ends behind the operator. */
	memcpy(&eh, bytes, sizeof(eh));
	memcpy(&sh, bytes + eh.e_shoff + 2 * sizeof(sh), sizeof(sh));
	sh.sh_size = 2 * sizeof(Elf64_Sym);
	memcpy(bytes + eh.e_shoff + 2 * sizeof(sh), &sh, sizeof(sh));
	search(&found, bytes, size, false);
	assert_int_equal(found.len, 1);
	assert_false(found.v[0].is_probed);
	wp_allocators_clear(&found);
	free(bytes);
}

/* As libstdc++'s in a static program. */
static void an_operator_that_calls_the_files_malloc_is_not_probed(void **state)
{
	struct wp_allocators found;
	size_t size;
	uint64_t text;
	uint8_t *bytes = make_file(OPERATOR, true, &size, &text);

	(void)state;
	bytes[text + OPERATOR * STEP] = 0xe8;
	memcpy(&bytes[text + OPERATOR * STEP + 1],
	       &(int32_t){ (MALLOC - OPERATOR) * STEP - 5 }, 4);
	search(&found, bytes, size, false);
	assert_int_equal(found.len, FUNCTIONS);
	assert_false(found.v[OPERATOR].is_probed);
	assert_true(found.v[MALLOC].is_probed);
	wp_allocators_clear(&found);
	free(bytes);
}

static void names_that_are_not_exported(void **state)
{
	struct wp_allocators found;
	size_t size;
	uint64_t text;
	uint8_t *bytes = make_file(MALLOC, false, &size, &text);

	(void)state;
	search(&found, bytes, size, false);
	assert_int_equal(found.len, 0);
	wp_allocators_clear(&found);
	search(&found, bytes, size, true);
	assert_int_equal(found.len, FUNCTIONS - MALLOC);
	wp_allocators_clear(&found);
	free(bytes);
}

/* What realloc is found to be where N jumps to an entry of a PLT that has no name come
 * before one to malloc's. */
static enum wp_heap_call call_behind_jumps(unsigned int n)
{
	enum { RELAS = 8192, GOT = 1 << 20, PLT = STEP, CODE = 3 * STEP };
	static const char strings[] = "\0malloc\0realloc";
	static uint8_t text[CODE + 4096];
	static Elf64_Rela relas[RELAS] = {
		[RELAS - 1] = { .r_offset = GOT,
				.r_info = ELF64_R_INFO(1, R_X86_64_JUMP_SLOT) },
	};
	const int32_t at = make_align(sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr));
	Elf64_Sym symbols[3] = {
		[1] = { 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1,
			(uint64_t)at, STEP },
		[2] = { 8, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1,
			(uint64_t)at + CODE, 5 * (n + 1) },
	};
	const struct make_section sections[] = {
		{ ".text", SHT_PROGBITS, 0, 0, text, sizeof(text), 0, 0 },
		{ ".dynsym", SHT_DYNSYM, 0, 0, symbols, sizeof(symbols), 3,
		  sizeof(*symbols) },
		{ ".strings", SHT_STRTAB, 0, 0, strings, sizeof(strings), 0,
		  0 },
		{ ".rela.plt", SHT_RELA, 0, 0, relas, sizeof(relas), 2,
		  sizeof(*relas) },
	};
	struct wp_allocators found;
	enum wp_heap_call call;
	uint8_t *bytes;
	size_t size;

	memset(text, 0x90, sizeof(text));
	for (int32_t i = 0; i < 2; i++) {
		int32_t entry = PLT + i * STEP;

		memcpy(&text[entry], "\xff\x25", 2);
		memcpy(&text[entry + 2],
		       &(int32_t){ GOT + i * 8 - (at + entry + 6) }, 4);
	}
	for (unsigned int i = 0; i <= n; i++)
		put_jump(&text[CODE + 5 * i],
			 PLT + (i < n) * STEP - (int32_t)(CODE + 5 * i));
	bytes = make_elf(sections, 4, &size);
	search(&found, bytes, size, false);
	assert_int_equal(found.len, 2);
	call = found.v[1].call;
	wp_allocators_clear(&found);
	free(bytes);
	return call;
}

/* They would be read for minutes in a file that was made for that. */
static void relocations_are_not_read_for_any_number_of_jumps(void **state)
{
	(void)state;
	assert_int_equal(call_behind_jumps(0), WP_HEAP_REGROW);
	assert_int_equal(call_behind_jumps(400), WP_HEAP_REGROW);
	assert_int_equal(call_behind_jumps(600), WP_HEAP_REALLOC);
}

static void every_prefix_and_changed_byte(void **state)
{
	struct wp_allocators found;
	size_t size;
	uint64_t text;
	uint8_t *bytes = make_file(OPERATOR, true, &size, &text);

	(void)state;
	for (size_t n = 0; n < size; n++) {
		uint8_t *copy = malloc(n + 1);

		memcpy(copy, bytes, n);
		search(&found, copy, n, true);
		wp_allocators_clear(&found);
		free(copy);
	}
	for (size_t i = 0; i < size; i++) {
		bytes[i] ^= 0xff;
		search(&found, bytes, size, true);
		assert_true(found.len <= FUNCTIONS);
		wp_allocators_clear(&found);
		bytes[i] ^= 0xff;
	}
	free(bytes);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_of_the_c_library),
		cmocka_unit_test(names),
		cmocka_unit_test(a_realloc_that_jumps_to_malloc_is_known),
#ifdef __x86_64__
		cmocka_unit_test(what_a_file_has_of_its_own),
		cmocka_unit_test(operators_that_call_malloc_are_not_probed),
		cmocka_unit_test(
			an_operator_that_calls_the_files_malloc_is_not_probed),
		cmocka_unit_test(names_that_are_not_exported),
		cmocka_unit_test(
			relocations_are_not_read_for_any_number_of_jumps),
		cmocka_unit_test(every_prefix_and_changed_byte),
#endif
	};

	return cmocka_run_group_tests_name("allocators", tests, NULL, NULL);
}
