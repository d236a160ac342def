/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbols.  wallprof/symbols.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "make_elf.h"
#include "wallprof/symbols.h"

enum { TEXT = 1, BASE = 0x7f0000 };

/* Open a file with the functions f at 0x1000 and _Z1gv at 0x2000. */
static void open_elf(struct wp_elf_image *ret)
{
	struct make_symbols s = { 0 };
	int fd = memfd_create("elf", MFD_CLOEXEC);
	uint8_t *bytes;
	size_t size;

	make_symbol(&s, "f", STB_GLOBAL, STT_FUNC, TEXT, 0x1000, 0x10);
	make_symbol(&s, "_Z1gv", STB_GLOBAL, STT_FUNC, TEXT, 0x2000, 0x10);
	{
		static uint8_t text[0x2000];
		const struct make_section sections[] = {
			{ ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR,
			  0x1000, text, sizeof(text), 0, 0 },
			{ ".symtab", SHT_SYMTAB, 0, 0, s.v,
			  s.len * sizeof(*s.v), 3, sizeof(*s.v) },
			{ ".strtab", SHT_STRTAB, 0, 0, s.names, s.names_len, 0,
			  0 },
		};

		bytes = make_elf(sections, 3, &size);
	}
	assert_int_equal(write(fd, bytes, size), size);
	free(bytes);
	assert_int_equal(wp_elf_image_open(ret, fd, NULL), 0);
}

static struct wp_symbols *open_symbols(const char *perf_map)
{
	struct wp_symbol_options options = { .perf_map_fd = -1 };
	struct wp_symbols *symbols = NULL;

	if (perf_map) {
		options.perf_map_fd = memfd_create("map", MFD_CLOEXEC);
		assert_int_equal(
			write(options.perf_map_fd, perf_map, strlen(perf_map)),
			strlen(perf_map));
	}
	assert_int_equal(wp_symbols_new(&symbols, &options), 0);
	if (perf_map)
		close(options.perf_map_fd);
	return symbols;
}

static void add(struct wp_symbols *symbols, uint32_t id, uint64_t start,
		uint64_t off, const char *path, struct wp_elf_image *image)
{
	struct wp_symbol_module module = {
		.start_avma = start,
		.end_avma = start + 0x10000,
		.off = off,
		/* An address is an offset in the files here. */
		.bias = start - off,
		.path = path,
		.image = image,
	};

	assert_int_equal(wp_symbols_add(symbols, id, &module), 0);
}

/* The only level of AVMA. */
static const struct wp_symbol_line *one(struct wp_symbols *symbols, uint32_t id,
					uint64_t avma)
{
	const struct wp_symbol_line *lines = NULL;

	assert_int_equal(wp_symbols_resolve(symbols, id, avma, &lines), 1);
	assert_non_null(lines[0].file);
	return &lines[0];
}

static void assert_name(struct wp_symbols *symbols, uint32_t id, uint64_t avma,
			const char *want)
{
	const struct wp_symbol_line *line = one(symbols, id, avma);

	assert_string_equal(line->function, want);
}

static void addresses_are_turned_into_those_of_the_file(void **state)
{
	struct wp_symbols *symbols = open_symbols(NULL);
	struct wp_elf_image elf;

	(void)state;
	open_elf(&elf);
	/* Twice at different places, the second from an offset on; ids in no
	 * order. */
	add(symbols, 900, BASE, 0, "/lib/libx.so", &elf);
	add(symbols, 7, 2 * BASE, 0x2000, "/lib/libx.so", &elf);
	assert_name(symbols, 900, BASE + 0x1000, "f");
	assert_name(symbols, 900, BASE + 0x100f, "f");
	assert_string_equal(one(symbols, 900, BASE + 0x2001)->function, "g");
	assert_string_equal(one(symbols, 900, BASE + 0x2001)->system_name,
			    "_Z1gv");
	assert_string_equal(one(symbols, 7, 2 * BASE + 1)->function, "g");
	assert_ptr_equal(one(symbols, 7, 2 * BASE + 1)->function,
			 one(symbols, 900, BASE + 0x2001)->function);
	wp_symbols_free(symbols);
	wp_elf_image_clear(&elf);
}

static long read_nothing(void *src, void *buf, size_t len, uint64_t off)
{
	(void)src;
	(void)buf;
	(void)len;
	(void)off;
	return -ESRCH;
}

static void without_a_name_the_place_is_told(void **state)
{
	struct wp_symbols *symbols = open_symbols(NULL);
	struct wp_elf_image elf, memory = { .fd = -1, .read = read_nothing };

	(void)state;
	open_elf(&elf);
	/* Memory of a process that has gone. */
	memory.data = elf.data;
	memory.size = elf.size;
	memory.loaded = test_calloc(1, 1);
	add(symbols, 1, BASE, 0x1000, "/lib/libx.so", &elf);
	add(symbols, 2, 0x10000, 0, "", NULL);
	add(symbols, 3, 0x20000, 0x3000, "/tmp/unreadable", &memory);
	/* Files that cannot be had. */
	add(symbols, 4, 0x30000, 0x3000, "/gone/lib.so", NULL);
	add(symbols, 5, 0x40000, 0, "/lib/other\377", NULL);
	add(symbols, 6, 0x50000, 0x2000, "/memfd:jit (deleted)", &memory);
	assert_name(symbols, 1, BASE + 0x10, "libx.so+0x1010");
	assert_name(symbols, 2, 0x10123, "[anon]+0x10000");
	assert_name(symbols, 3, 0x20008, "unreadable+0x3008");
	assert_name(symbols, 4, 0x30001, "lib.so+0x3001");
	assert_name(symbols, 5, 0x40001, "other?+0x1");
	/* Code that the program made: one function per mapping. */
	assert_name(symbols, 6, 0x50123, "memfd:jit (deleted)+0x2000");
	assert_name(symbols, 0, 0x7fffdeadbeef, "0x7fffdeadbeef");
	/* An id that was never given is no module. */
	assert_name(symbols, 55, 0x1234, "0x1234");
	assert_false(wp_symbols_has(symbols, 1).functions);
	assert_false(wp_symbols_has(symbols, 55).functions);
	wp_symbols_free(symbols);
	test_free(memory.loaded);
	wp_elf_image_clear(&elf);
}

static void jit_code_has_the_names_of_its_map(void **state)
{
	struct wp_symbols *symbols = open_symbols("10100 20 Lfoo;::bar\n"
						  "10200 20 app.cold\n"
						  "90000 10 outside\n");

	(void)state;
	add(symbols, 2, 0x10000, 0, "", NULL);
	assert_name(symbols, 2, 0x10100, "Lfoo;::bar");
	assert_name(symbols, 2, 0x10120, "[anon]+0x10000");
	/* No compiler's suffix. */
	assert_name(symbols, 2, 0x10200, "app.cold");
	assert_name(symbols, 0, 0x90005, "outside");
	assert_true(wp_symbols_has(symbols, 2).functions);
	wp_symbols_free(symbols);
}

static long read_vdso(void *src, void *buf, size_t len, uint64_t off)
{
	memcpy(buf, (const uint8_t *)src + off, len);
	return (long)len;
}

static void a_module_may_be_of_memory(void **state)
{
	struct wp_symbols *symbols = open_symbols(NULL);
	void *vdso = (void *)getauxval(AT_SYSINFO_EHDR);
	struct wp_elf_image image;
	bool found = false;

	(void)state;
	if (!vdso)
		skip();
	assert_int_equal(
		wp_elf_image_open_memory(&image, 8192, read_vdso, vdso, NULL),
		0);
	add(symbols, 1, BASE, 0, "[vdso]", &image);
	/* Where it is in there is the kernel's choice. */
	for (uint64_t off = 0; off < 8192 && !found; off += 8) {
		const char *name = one(symbols, 1, BASE + off)->function;

		found = !strcmp(name, "clock_gettime") ||
			!strcmp(name, "__vdso_clock_gettime") ||
			/* On aarch64. */
			!strcmp(name, "__kernel_clock_gettime");
	}
	assert_true(found);
	wp_symbols_free(symbols);
	wp_elf_image_clear(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_turned_into_those_of_the_file),
		cmocka_unit_test(without_a_name_the_place_is_told),
		cmocka_unit_test(jit_code_has_the_names_of_its_map),
		cmocka_unit_test(a_module_may_be_of_memory),
	};

	return cmocka_run_group_tests_name("resolver", tests, NULL, NULL);
}
