/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbols.  symbols/dwarf_lines.h, through wallprof/symbols.h: the
 * program asks about its own functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/symbols.h"

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline, noclone))

/* Where the calls below stand: the truth to compare with. */
static struct {
	uint64_t pc;
	uint32_t inner, middle, outer;
	uint32_t inner_start, middle_start, outer_start;
} at;

/* An address inside the caller: that of the call. */
static NOINLINE uint64_t here(void)
{
	__asm__ volatile("");
	return (uint64_t)(uintptr_t)__builtin_return_address(0) - 1;
}

enum { INNER_START = __LINE__ + 1 };
INLINE uint64_t inner(void)
{
	uint64_t pc;

	at.inner = __LINE__ + 1;
	pc = here();
	__asm__ volatile("");
	return pc;
}

enum { MIDDLE_START = __LINE__ + 1 };
INLINE uint64_t middle(void)
{
	uint64_t pc;

	{
		/* A block in between is no level. */
		volatile int block = 1;

		at.middle = __LINE__ + 1;
		pc = inner() + (uint64_t)block - 1;
	}
	return pc;
}

enum { OUTER_START = __LINE__ + 1 };
static NOINLINE void outer(void)
{
	at.outer = __LINE__ + 1;
	at.pc = middle();
	__asm__ volatile("");
}

enum { RECURSE_START = __LINE__ + 1 };
static NOINLINE uint64_t recurse(unsigned int n)
{
	uint64_t pc = n ? recurse(n - 1) : here();

	__asm__ volatile("");
	return pc;
}

/* 71 functions, each in the next. */
INLINE uint64_t deep_00(void)
{
	uint64_t pc = here();

	__asm__ volatile("");
	return pc;
}

#define DEEP(n, below)                                                         \
	INLINE uint64_t deep_##n(void)                                         \
	{                                                                      \
		uint64_t pc = deep_##below();                                  \
                                                                               \
		__asm__ volatile("");                                          \
		return pc;                                                     \
	}
#define DEEP_TEN(t, below)                                                     \
	DEEP(t##0, below)                                                      \
	DEEP(t##1, t##0)                                                       \
	DEEP(t##2, t##1)                                                       \
	DEEP(t##3, t##2)                                                       \
	DEEP(t##4, t##3)                                                       \
	DEEP(t##5, t##4)                                                       \
	DEEP(t##6, t##5)                                                       \
	DEEP(t##7, t##6)                                                       \
	DEEP(t##8, t##7)                                                       \
	DEEP(t##9, t##8)

enum { DEEP_LINE = __LINE__ + 1 };
DEEP_TEN(1, 00)
DEEP_TEN(2, 19)
DEEP_TEN(3, 29)
DEEP_TEN(4, 39)
DEEP_TEN(5, 49)
DEEP_TEN(6, 59)
DEEP_TEN(7, 69)

static NOINLINE uint64_t around_deep(void)
{
	uint64_t pc = deep_79();

	__asm__ volatile("");
	return pc;
}

struct self {
	uint64_t start, end, off, bias;
};

/* The first object is the program itself (dl_iterate_phdr(3)). */
static int find_self(struct dl_phdr_info *info, size_t size, void *data)
{
	struct self *self = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		self->off = ph->p_offset & ~UINT64_C(4095);
		self->start = (info->dlpi_addr + ph->p_vaddr) & ~UINT64_C(4095);
		self->end = info->dlpi_addr + ph->p_vaddr + ph->p_memsz;
		self->bias = info->dlpi_addr;
	}
	return 1;
}

static struct wp_elf_image self_image;

static void close_self(struct wp_symbols *symbols)
{
	wp_symbols_free(symbols);
	wp_elf_image_clear(&self_image);
}

static struct wp_symbols *open_self(bool names_only)
{
	struct wp_symbol_options options = { .perf_map_fd = -1,
					     .names_only = names_only };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct wp_symbols *symbols = NULL;
	struct wp_symbol_module module = { .path = "/bin/self",
					   .image = &self_image };
	struct self self = { 0 };

	assert_int_equal(wp_elf_image_open(&self_image, fd, NULL), 0);
	dl_iterate_phdr(find_self, &self);
	module.start_avma = self.start;
	module.end_avma = self.end;
	module.off = self.off;
	module.bias = self.bias;
	assert_int_equal(wp_symbols_new(&symbols, &options), 0);
	assert_int_equal(wp_symbols_add(symbols, 1, &module), 0);
	/* What the caller does with its descriptor is its own affair. */
	return symbols;
}

static void assert_level(const struct wp_symbol_line *line, const char *name,
			 uint32_t number, uint32_t start)
{
	assert_string_equal(line->function, name);
	assert_string_equal(line->system_name, name);
	assert_int_equal(line->line, number);
	assert_int_equal(line->start_line, start);
	assert_string_equal(strrchr(line->file, '/'), "/test_dwarf_lines.c");
	/* Relative names are told with the directory of the compilation. */
	assert_int_equal(line->file[0], '/');
}

static void inlined_functions_are_levels(void **state)
{
	struct wp_symbols *symbols = open_self(false);
	const struct wp_symbol_line *lines;

	(void)state;
	outer();
	assert_int_equal(wp_symbols_resolve(symbols, 1, at.pc, &lines), 3);
	assert_level(&lines[0], "inner", at.inner, INNER_START);
	assert_level(&lines[1], "middle", at.middle, MIDDLE_START);
	assert_level(&lines[2], "outer", at.outer, OUTER_START);
	close_self(symbols);
}

/* 64 of 72 levels, from the outermost one on: each with the line of the call in it. */
static void levels_past_the_limit_are_told(void **state)
{
	struct wp_symbols *symbols = open_self(false);
	const struct wp_symbol_line *lines;

	(void)state;
	assert_int_equal(wp_symbols_resolve(symbols, 1, around_deep(), &lines),
			 64);
	assert_level(&lines[0], "deep_17", DEEP_LINE, DEEP_LINE);
	assert_level(&lines[62], "deep_79", DEEP_LINE + 6, DEEP_LINE + 6);
	assert_string_equal(lines[63].function, "around_deep");
	assert_int_equal(wp_symbols_has(symbols, 1).dwarf_loss, WP_DWARF_CUT);
	close_self(symbols);
}

static void a_plain_function_is_one_level(void **state)
{
	struct wp_symbols *symbols = open_self(false);
	const struct wp_symbol_line *lines;
	uint64_t pc = recurse(2);

	(void)state;
	assert_int_equal(wp_symbols_resolve(symbols, 1, pc, &lines), 1);
	assert_level(&lines[0], "recurse", RECURSE_START + 2, RECURSE_START);
	close_self(symbols);
}

static void the_module_says_what_it_has(void **state)
{
	struct wp_symbols *symbols = open_self(false);
	const struct wp_symbol_line *lines;
	struct wp_symbol_has has = wp_symbols_has(symbols, 1);

	(void)state;
	assert_false(has.functions || has.filenames || has.line_numbers ||
		     has.inline_frames || has.debug_file);
	outer();
	assert_int_equal(wp_symbols_resolve(symbols, 1, at.pc, &lines), 3);
	has = wp_symbols_has(symbols, 1);
	assert_true(has.functions && has.filenames && has.line_numbers &&
		    has.inline_frames);
	assert_false(has.debug_file);
	assert_int_equal(has.dwarf_loss, WP_DWARF_WHOLE);
	close_self(symbols);
}

static void names_only_reads_no_dwarf(void **state)
{
	struct wp_symbols *symbols = open_self(true);
	const struct wp_symbol_line *lines;
	struct wp_symbol_has has;

	(void)state;
	outer();
	assert_int_equal(wp_symbols_resolve(symbols, 1, at.pc, &lines), 1);
	assert_string_equal(lines[0].function, "outer");
	assert_string_equal(lines[0].file, "");
	assert_int_equal(lines[0].line, 0);
	has = wp_symbols_has(symbols, 1);
	assert_true(has.functions);
	assert_false(has.filenames || has.line_numbers || has.inline_frames);
	close_self(symbols);
}

static void strings_stay_where_they_are(void **state)
{
	struct wp_symbols *symbols = open_self(false);
	const struct wp_symbol_line *lines;
	const char *function, *file;
	uint64_t pc = recurse(1);

	(void)state;
	assert_int_equal(wp_symbols_resolve(symbols, 1, pc, &lines), 1);
	function = lines[0].function;
	file = lines[0].file;
	for (uint64_t k = 0; k < 4096; k++)
		assert_true(wp_symbols_resolve(symbols, 1, pc + 4096 - k,
					       &lines) > 0);
	assert_int_equal(wp_symbols_resolve(symbols, 1, pc, &lines), 1);
	assert_ptr_equal(lines[0].function, function);
	assert_ptr_equal(lines[0].file, file);
	assert_string_equal(function, "recurse");
	close_self(symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions_are_levels),
		cmocka_unit_test(levels_past_the_limit_are_told),
		cmocka_unit_test(a_plain_function_is_one_level),
		cmocka_unit_test(the_module_says_what_it_has),
		cmocka_unit_test(names_only_reads_no_dwarf),
		cmocka_unit_test(strings_stay_where_they_are),
	};

	return cmocka_run_group_tests_name("dwarf_lines", tests, NULL, NULL);
}
