/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: base.  .gopclntab made by hand: three functions, of which the second
 * has no frame sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "make_go_table.h"

static int open_table(struct section *s, struct wp_go_table *ret)
{
	s->image.fd = -1;
	s->image.data = s->v;
	s->image.size = s->len;
	s->image.go_table = (struct wp_elf_range){ TABLE, 0, s->len };
	return wp_go_table_open(ret, &s->image);
}

static int frame_at(const struct wp_go_table *table, uint64_t svma)
{
	struct wp_go_func func;
	uint32_t size;
	int rc = wp_go_table_find(table, svma, &func);

	if (!rc) {
		assert_true(svma >= func.start_svma && svma < func.end_svma);
		rc = wp_go_table_frame(table, &func, svma, &size);
	}
	return rc ? rc : (int)size;
}

static void functions_and_their_frames(void **state)
{
	static const uint32_t magics[] = { 0xfffffff0, 0xfffffff1 };
	struct section s = make();

	(void)state;
	for (size_t m = 0; m < 2; m++) {
		struct wp_go_table table;

		put_at(&s, MAGIC, magics[m], 4);
		assert_int_equal(open_table(&s, &table), 0);
		assert_int_equal(table.nfuncs, NFUNCS);
		for (uint32_t i = 0; i < NFUNCS; i++) {
			struct wp_go_func func;
			uint8_t *flags = flags_of(&s, &table, i, m);

			*flags = (uint8_t)i;
			assert_int_equal(wp_go_table_func(&table, i, &func), 0);
			*flags = 0;
			assert_int_equal(func.is_first, i == 1);
			assert_int_equal(func.sets_sp, i == 2);
			assert_int_equal(func.start_svma, TEXT + starts[i]);
			assert_int_equal(func.end_svma, TEXT + starts[i + 1]);
			assert_string_equal(s.v + func.name_off,
					    names + name_at[i]);
		}
		for (uint32_t off = 0; off < 0x200; off++) {
			int want = off < 4    ? 0 :
				   off < 0x3c ? 24 :
				   off < 0x40 ? 0 :
				   off < 0x60 ? -ENOENT :
				   off < 0x70 ? 0 :
						0x1000;

			assert_int_equal(frame_at(&table, TEXT + off), want);
		}
		assert_int_equal(frame_at(&table, TEXT - 1), -ENOENT);
		assert_int_equal(frame_at(&table, TEXT_END), -ENOENT);
		assert_int_equal(frame_at(&table, UINT64_MAX), -ENOENT);
	}
	test_free(s.v);
}

/* A table that ends before its function does says nothing of the rest. */
static void a_table_that_ends_early(void **state)
{
	struct section s = make();
	struct wp_go_table table;

	(void)state;
	assert_int_equal(open_table(&s, &table), 0);
	s.v[table.pctab_off + 5] = 0;
	assert_int_equal(frame_at(&table, TEXT + 0x3b), 24);
	assert_int_equal(frame_at(&table, TEXT + 0x3c), -ENOENT);
	/* The instructions of other machines are counted in fours. */
	table.quantum = 4;
	assert_int_equal(frame_at(&table, TEXT + 0x0f), 0);
	assert_int_equal(frame_at(&table, TEXT + 0x10), 24);
	test_free(s.v);
}

/* Put moduledata behind the table of S, which does not say where its code begins:
 * where the first word of moduledata is. */
static size_t put_module(struct section *s)
{
	size_t at = (s->len + 7) & ~7u;

	put_at(s, START, 0, 8);
	put_at(s, at, TABLE, 8);
	put_at(s, at + 8 * MODULE_LOW, TEXT, 8);
	put_at(s, at + 8 * MODULE_HIGH, TEXT_END, 8);
	put_at(s, at + 8 * MODULE_TEXT, TEXT, 8);
	s->image.go_module = (struct wp_elf_range){ MODULE, at, s->len - at };
	return at;
}

/* From Go 1.26 on. */
static void text_is_told_by_moduledata(void **state)
{
	static const size_t words[] = { 0, MODULE_LOW, MODULE_HIGH,
					MODULE_TEXT };
	struct section s = make();
	struct wp_go_table table;
	size_t at;

	(void)state;
	put_at(&s, START, 0, 8);
	assert_int_equal(open_table(&s, &table), -ENOTSUP);
	at = put_module(&s);
	assert_int_equal(open_table(&s, &table), 0);
	assert_int_equal(frame_at(&table, TEXT + 4), 24);
	/* Another version's, which has something else there. */
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		s.v[at + 8 * words[i]]++;
		assert_int_equal(open_table(&s, &table), -ENOTSUP);
		s.v[at + 8 * words[i]]--;
	}
	s.image.go_module.size = 8 * MODULE_TEXT;
	assert_int_equal(open_table(&s, &table), -ENOTSUP);
	test_free(s.v);
}

static size_t put_rela(struct section *s, size_t at, uint64_t place,
		       uint64_t kind, uint64_t target)
{
	put_at(s, at, place, 8);
	put_at(s, at + 8, kind, 8);
	put_at(s, at + 16, target, 8);
	return at + RELA;
}

/* In a program that may be anywhere. */
static void moduledata_is_relocated(void **state)
{
	static const struct {
		size_t word;
		uint64_t target;
	} words[] = { { 0, TABLE },
		      { MODULE_LOW, TEXT },
		      { MODULE_HIGH, TEXT_END },
		      { MODULE_TEXT, TEXT } };
	struct section s = make();
	struct wp_go_table table;
	size_t module, start, at;

	(void)state;
	module = put_module(&s);
	start = at = s.len;
	at = put_rela(&s, at, MODULE - 8, R_X86_64_RELATIVE, 1);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		put_at(&s, module + 8 * words[i].word, 0, 8);
		at = put_rela(&s, at, MODULE + 8 * words[i].word,
			      R_X86_64_RELATIVE, words[i].target);
	}
	/* The others are not in order. */
	at = put_rela(&s, at, MODULE + 8, R_X86_64_GLOB_DAT, 0);
	at = put_rela(&s, at, MODULE - 16, R_X86_64_64, 0);
	s.image.rela = (struct wp_elf_range){ 0, start, at - start };
	assert_int_equal(open_table(&s, &table), 0);
	assert_int_equal(frame_at(&table, TEXT + 4), 24);
	s.image.rela.size = RELA;
	assert_int_equal(open_table(&s, &table), -ENOTSUP);
	s.image.rela.size = 0;
	assert_int_equal(open_table(&s, &table), -ENOTSUP);
	test_free(s.v);
}

/* As lld links it: the header's word is 0, and a relocation. */
static void text_is_relocated(void **state)
{
	struct section s = make();
	struct wp_go_table table;
	size_t start = s.len;

	(void)state;
	put_at(&s, START, 0, 8);
	put_rela(&s, start, TABLE + START, R_X86_64_RELATIVE, TEXT);
	s.image.rela = (struct wp_elf_range){ 0, start, RELA };
	assert_int_equal(open_table(&s, &table), 0);
	assert_int_equal(table.text_svma, TEXT);
	assert_int_equal(frame_at(&table, TEXT + 4), 24);
	test_free(s.v);
}

/* The section of S has more before and behind the table, and another name: what
 * is found in it. */
static struct wp_elf_range search_section(const struct section *s,
					  size_t before, bool is_go,
					  unsigned int nothers)
{
	size_t len = before + s->len + 64;
	uint8_t *v = test_calloc(1, len);
	struct wp_elf_image image = {
		.fd = -1,
		.data = v,
		.size = len,
		.nloads = 1,
		.loads = { { TEXT, 0, 0x200, 0x200, PF_R | PF_X } },
		.go_buildinfo = { 0, 0, is_go ? 16 : 0 },
		.go_data = { [2] = { TABLE, 0, len } },
	};
	struct wp_elf_range found;

	memcpy(v + before, s->v, s->len);
	/* They begin as it does. */
	for (unsigned int i = 0; i < nothers; i++)
		memcpy(v + (size_t)8 * i, s->v, 8);
	wp_go_table_search(&image);
	found = image.go_table;
	test_free(v);
	return found;
}

static void a_table_is_found_among_other_data(void **state)
{
	/* The last is behind what is read at once. */
	static const size_t places[] = { 0, 8, 160, 100000 };
	struct section s = make();
	struct wp_elf_range found;

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		found = search_section(&s, places[i], true, 0);
		assert_int_equal(found.off, places[i]);
		assert_int_equal(found.svma, TABLE + places[i]);
		assert_int_equal(found.size, s.len + 64);
		assert_int_equal(search_section(&s, places[i], false, 0).size,
				 0);
	}
	found = search_section(&s, 8192, true, 15);
	assert_int_equal(found.off, 8192);
	/* That many look like one, that it is no use. */
	assert_int_equal(search_section(&s, 8192, true, 16).size, 0);
	/* Its functions are not in the code. */
	put_at(&s, START, TEXT + 0x1000, 8);
	assert_int_equal(search_section(&s, 160, true, 0).size, 0);
	test_free(s.v);
}

static void others_are_refused(void **state)
{
	static const struct {
		size_t at, size;
		uint64_t val;
		int rc;
	} cases[] = {
		/* Go 1.16; 1.2; a pointer of 4 bytes. */
		{ MAGIC, 4, 0xfffffffa, -ENOTSUP },
		{ MAGIC, 4, 0xfffffffb, -ENOTSUP },
		{ POINTER, 1, 4, -ENOTSUP },
		{ QUANTUM, 1, 0, -EBADMSG },
		{ COUNT, 8, NFUNCS + 10, -EBADMSG },
		{ COUNT, 8, UINT64_MAX, -EBADMSG },
		{ NAMES, 8, MAX, -EBADMSG },
		{ PCTAB, 8, UINT64_MAX, -EBADMSG },
		{ FUNCS, 8, MAX, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct section s = make();
		struct wp_go_table table;

		put_at(&s, cases[i].at, cases[i].val, cases[i].size);
		assert_int_equal(open_table(&s, &table), cases[i].rc);
		test_free(s.v);
	}
}

/* Pairs that stand still, and never come to the end of their function. */
static void pairs_without_end(void **state)
{
	enum { LEN = 3 << 20 };
	struct section s = make();
	struct wp_go_table table;
	struct wp_go_func func;
	uint32_t size;

	(void)state;
	s.v = test_realloc(s.v, LEN);
	assert_int_equal(open_table(&s, &table), 0);
	memset(s.v + s.len, 0, LEN - s.len);
	for (size_t i = s.len; i < LEN; i += 2)
		s.v[i] = 2 - i / 2 % 2;
	assert_int_equal(wp_go_table_find(&table, TEXT, &func), 0);
	func.frames_off = s.len;
	s.len = s.image.size = s.image.go_table.size = LEN;
	assert_int_equal(wp_go_table_frame(&table, &func, TEXT, &size),
			 -EBADMSG);
	test_free(s.v);
}

/* All that can be asked of the table of S, whose bytes may be anything. */
static void ask_all(struct section *s)
{
	struct wp_go_table table;

	if (open_table(s, &table))
		return;
	for (uint32_t i = 0; i < table.nfuncs; i++) {
		struct wp_go_func func;

		(void)!wp_go_table_func(&table, i, &func);
	}
	for (uint64_t off = 0; off < 0x210; off += 3)
		(void)frame_at(&table, TEXT + off);
}

static void every_prefix_is_safe(void **state)
{
	struct section s = make();

	(void)state;
	for (size_t len = 0; len < s.len; len++) {
		struct section cut = { .v = test_malloc(len + !len),
				       .len = len };

		memcpy(cut.v, s.v, len);
		ask_all(&cut);
		test_free(cut.v);
	}
	test_free(s.v);
}

static void every_flipped_byte_is_safe(void **state)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0xff };
	struct section s = make();

	(void)state;
	for (size_t n = 0; n < s.len * sizeof(flips); n++) {
		struct section flipped = { .v = test_malloc(s.len),
					   .len = s.len };

		memcpy(flipped.v, s.v, s.len);
		flipped.v[n / sizeof(flips)] ^= flips[n % sizeof(flips)];
		ask_all(&flipped);
		test_free(flipped.v);
	}
	test_free(s.v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_and_their_frames),
		cmocka_unit_test(a_table_that_ends_early),
		cmocka_unit_test(text_is_told_by_moduledata),
		cmocka_unit_test(moduledata_is_relocated),
		cmocka_unit_test(text_is_relocated),
		cmocka_unit_test(a_table_is_found_among_other_data),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(pairs_without_end),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(every_flipped_byte_is_safe),
	};

	return cmocka_run_group_tests_name("go_table", tests, NULL, NULL);
}
