/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_resolver.c - the whole of symbols/ as the program uses it: an ELF file
 * behind a descriptor and behind a pointer, addresses all over its code.
 *
 * Layer: symbols.
 */
#include "fuzz.h"
#include "wallprof/symbols.h"

enum {
	START = 0x400000,
	STEP = 0x30,
	LOOKUPS = 24,
	/* symbols/dwarf_lines.h. */
	LEVELS_MAX = 64,
};

/* RFC 3629, 4. */
static size_t utf8_len(const uint8_t *s)
{
	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		return s[1] >> 6 == 2 ? 2 : 0;
	if (s[0] >= 0xe0 && s[0] <= 0xef) {
		if (s[1] >> 6 != 2 || s[2] >> 6 != 2 ||
		    (s[0] == 0xe0 && s[1] < 0xa0) ||
		    (s[0] == 0xed && s[1] > 0x9f))
			return 0;
		return 3;
	}
	if (s[0] < 0xf0 || s[0] > 0xf4 || s[1] >> 6 != 2 || s[2] >> 6 != 2 ||
	    s[3] >> 6 != 2 || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return 4;
}

static void check_text(const char *text)
{
	const uint8_t *p = (const uint8_t *)text;

	FUZZ_CHECK(text);
	while (*p) {
		size_t n = utf8_len(p);

		FUZZ_CHECK(n);
		p += n;
	}
}

static void resolve(struct wp_symbols *s, uint32_t id, uint64_t avma)
{
	const struct wp_symbol_line *lines, *again;
	int n = wp_symbols_resolve(s, id, avma, &lines);
	const char *function;

	FUZZ_CHECK(n >= 1 && n <= LEVELS_MAX);
	for (int i = 0; i < n; i++) {
		check_text(lines[i].function);
		check_text(lines[i].system_name);
		check_text(lines[i].file);
		FUZZ_CHECK(*lines[i].function && *lines[i].system_name);
	}
	/* The cache says the same, by the same pointers. */
	function = lines[0].function;
	FUZZ_CHECK(wp_symbols_resolve(s, id, avma, &again) == n);
	FUZZ_CHECK(again[0].function == function);
}

static void resolve_all(struct wp_symbols *s, uint32_t id)
{
	for (unsigned int i = 0; i < LOOKUPS; i++)
		resolve(s, id, START + STEP * i);
	resolve(s, id, START + 0x1000);
	resolve(s, id, START + 0x1010);
	resolve(s, id, 0);
	(void)wp_symbols_has(s, id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_symbol_options options = { .perf_map_fd = -1 };
	struct wp_symbol_module module = {
		.start_avma = START,
		.end_avma = START + 0x100000,
		.bias = START,
		.path = "/d/libx.so",
	};
	struct wp_elf_image file, memory;
	struct wp_symbols *s;
	int fd = fuzz_memfd(data, size);
	uint8_t *bytes;

	if (fd < 0 || wp_symbols_new(&s, &options))
		return 0;
	if (wp_elf_image_open(&file, fd, NULL)) {
		close(fd);
		wp_symbols_free(s);
		return 0;
	}
	bytes = malloc(size);
	FUZZ_CHECK(bytes);
	memcpy(bytes, data, size);
	FUZZ_CHECK(!wp_elf_image_open_bytes(&memory, bytes, size, NULL));
	module.image = &file;
	FUZZ_CHECK(!wp_symbols_add(s, 1, &module));
	module.image = &memory;
	module.path = "[vdso]";
	FUZZ_CHECK(!wp_symbols_add(s, 2, &module));
	resolve_all(s, 1);
	resolve_all(s, 2);
	wp_symbols_free(s);
	wp_elf_image_clear(&file);
	free(bytes);
	return 0;
}
