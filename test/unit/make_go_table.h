/* SPDX-License-Identifier: Apache-2.0 */
/* make_go_table.h - .gopclntab made by hand: three functions, of which the second
 * has no frame sizes.  Include after cmocka.h.
 */
#ifndef MAKE_GO_TABLE_H
#define MAKE_GO_TABLE_H

#include <stdlib.h>
#include <string.h>

#include "wallprof/go_table.h"

enum {
	MAX = 1024,
	NFUNCS = 3,
	/* The addresses of the section, and of moduledata. */
	TABLE = 0x500000,
	MODULE = 0x600000,
	TEXT = 0x401000,
	TEXT_END = TEXT + 0x200,
	/* Where fields of the header are. */
	MAGIC = 0,
	QUANTUM = 6,
	POINTER = 7,
	COUNT = 8,
	START = 24,
	NAMES = 32,
	PCTAB = 56,
	FUNCS = 64,
	HEADER = 72,
	FUNC_SIZE = 44,
	/* Which words of moduledata say from where to where the code of functions
	 * is, and what their addresses count from. */
	MODULE_LOW = 20,
	MODULE_HIGH = 21,
	MODULE_TEXT = 22,
	RELA = 24,
	/* Of a function: its flags, in Go 1.18 and from 1.20 on. */
	FLAGS_118 = 37,
	FLAGS_120 = 41,
};

static const uint32_t starts[NFUNCS + 1] = { 0, 0x40, 0x60, 0x200 };
static const char names[] = "main.a\0main.bb\0main.ccc";
static const uint32_t name_at[NFUNCS] = { 0, 7, 15 };

/* The first byte is nobody's.  At 1: 0 for 4 bytes, 24 for 0x38, 0.  At 8: 0
 * for 0x10, 0x1000 for 0x190. */
static const uint8_t pctab[] = { 0, 2,	  4,	48,   0x38, 47,	  4, 0,
				 2, 0x10, 0x80, 0x40, 0x90, 0x03, 0 };
static const uint32_t frames_at[NFUNCS] = { 1, 0, 8 };

struct section {
	uint8_t *v;
	size_t len;
	struct wp_elf_image image;
};

static void put_at(struct section *s, size_t at, uint64_t val, size_t size)
{
	assert_true(at + size <= MAX);
	memcpy(s->v + at, &val, size);
	if (at + size > s->len)
		s->len = at + size;
}

__attribute__((unused)) static struct section make(void)
{
	struct section s = { .v = test_calloc(1, MAX) };
	size_t pctab_at, funcs_at, at;

	put_at(&s, MAGIC, 0xfffffff1, 4);
	put_at(&s, QUANTUM, 1, 1);
	put_at(&s, POINTER, 8, 1);
	put_at(&s, COUNT, NFUNCS, 8);
	put_at(&s, START, TEXT, 8);
	put_at(&s, NAMES, HEADER, 8);
	memcpy(s.v + HEADER, names, sizeof(names));
	pctab_at = HEADER + sizeof(names);
	put_at(&s, PCTAB, pctab_at, 8);
	memcpy(s.v + pctab_at, pctab, sizeof(pctab));
	funcs_at = (pctab_at + sizeof(pctab) + 7) & ~7u;
	put_at(&s, FUNCS, funcs_at, 8);
	at = NFUNCS * 8 + 4;
	for (size_t i = 0; i < NFUNCS; i++, at += FUNC_SIZE) {
		put_at(&s, funcs_at + 8 * i, starts[i], 4);
		put_at(&s, funcs_at + 8 * i + 4, at, 4);
		put_at(&s, funcs_at + at, starts[i], 4);
		put_at(&s, funcs_at + at + 4, name_at[i], 4);
		put_at(&s, funcs_at + at + 16, frames_at[i], 4);
		put_at(&s, funcs_at + at + FUNC_SIZE - 1, 0, 1);
	}
	put_at(&s, funcs_at + (size_t)8 * NFUNCS, starts[NFUNCS], 4);
	return s;
}

__attribute__((unused)) static uint8_t *
flags_of(struct section *s, const struct wp_go_table *table, uint32_t i,
	 bool is_120)
{
	uint32_t func_off;

	memcpy(&func_off, s->v + table->funcs_off + (size_t)i * 8 + 4, 4);
	return s->v + table->funcs_off + func_off +
	       (is_120 ? FLAGS_120 : FLAGS_118);
}

#endif
