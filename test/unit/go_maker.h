/* SPDX-License-Identifier: Apache-2.0 */
/* go_maker.h - a Go program made by hand: its file, and its memory, in which
 * four goroutines are. */
#ifndef WP_TEST_GO_MAKER_H
#define WP_TEST_GO_MAKER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "wallprof/go_program.h"

enum {
	/* The file: .gopclntab, then .noptrdata with moduledata, then
	 * .go.buildinfo; all of it is one segment. */
	MADE_FILE = 0x1000,
	MADE_TABLE = 0x500000,
	MADE_DATA_OFF = 0x400,
	MADE_INFO_OFF = 0x800,
	MADE_NAMES = 72,
	MADE_PCTAB = 128,
	MADE_FUNCS = 160,
	MADE_TEXT = 0x401000,
	/* Bytes of each of its two functions. */
	MADE_FUNC = 0x100,
	/* What moduledata says of the memory. */
	MADE_BIAS = 0x10000000,
	MADE_BSS = 0x700000,
	MADE_VARS = 0x710000,
	/* The memory: one piece at MADE_BSS + MADE_BIAS. */
	MADE_MEMORY = 0x20000,
	MADE_LIST = 0x1000,
	MADE_ALLGS = 0x40,
	MADE_G = 0x2000,
	MADE_G_STEP = 0x200,
	MADE_STACK = 0x4000,
	MADE_STACK_STEP = 0x800,
	MADE_LABELS = 0x8000,
	MADE_M = 0x9000,
	/* Structs sudog and hchan, what locks wait at, and a struct pollDesc. */
	MADE_SUDOG = 0xa000,
	MADE_SUDOG_STEP = 0x80,
	MADE_CHANNEL = 0xb000,
	MADE_CHANNEL_STEP = 0x60,
	MADE_SEMAPHORE = 0xc010,
	MADE_POLL = 0xd000,
	MADE_REASONS = 0x10000,
	MADE_GOROUTINES = 4,
};

struct made_go {
	uint8_t file[MADE_FILE];
	uint8_t memory[MADE_MEMORY];
	struct wp_elf_image image;
	/* Called before each read; NULL: none. */
	void (*before)(struct made_go *made);
	/* Reads so far. */
	unsigned int nreads;
};

static inline uint64_t made_avma(uint64_t off)
{
	return MADE_BSS + MADE_BIAS + off;
}

static inline void made_put(uint8_t *bytes, size_t off, uint64_t val,
			    size_t size)
{
	memcpy(bytes + off, &val, size);
}

/* Where field OFF of goroutine I is in the memory. */
static inline uint8_t *made_g(struct made_go *made, size_t i, size_t off)
{
	return made->memory + MADE_G + i * MADE_G_STEP + off;
}

static inline void made_table(struct made_go *made)
{
	uint8_t *f = made->file;

	made_put(f, 0, 0xfffffff1, 4);
	f[6] = 1;
	f[7] = 8;
	made_put(f, 8, 2, 8);
	made_put(f, 24, MADE_TEXT, 8);
	made_put(f, 32, MADE_NAMES, 8);
	made_put(f, 56, MADE_PCTAB, 8);
	made_put(f, 64, MADE_FUNCS, 8);
	memcpy(f + MADE_NAMES, "main.main\0main.wait", 20);
	for (size_t i = 0; i < 3; i++) {
		made_put(f, MADE_FUNCS + 8 * i, i * MADE_FUNC, 4);
		made_put(f, MADE_FUNCS + 8 * i + 4, 28 + 44 * i, 4);
	}
	for (size_t i = 0; i < 2; i++) {
		made_put(f, MADE_FUNCS + 28 + 44 * i, i * MADE_FUNC, 4);
		made_put(f, MADE_FUNCS + 28 + 44 * i + 4, 10 * i, 4);
	}
}

static inline void made_module(struct made_go *made, const char *version)
{
	uint8_t *m = made->file + MADE_DATA_OFF;
	uint8_t *info = made->file + MADE_INFO_OFF;
	static const uint64_t ranges[] = { MADE_VARS, MADE_VARS,
					   MADE_VARS, MADE_VARS + 0x1000,
					   MADE_BSS,  MADE_BSS + 0x1000,
					   MADE_VARS, MADE_VARS };

	made_put(m, 0, MADE_TABLE, 8);
	made_put(m, 8, MADE_TABLE + MADE_NAMES, 8);
	for (size_t i = 0; i < 8; i++)
		made_put(m, 8 * (24 + i), ranges[i], 8);
	for (size_t i = 38; i < 44; i++)
		made_put(m, 8 * i, MADE_TABLE, 8);
	memcpy(info, "\xff Go buildinf:", 14);
	info[14] = 8;
	info[15] = 2;
	info[32] = (uint8_t)strlen(version);
	memcpy(info + 33, version, strlen(version));
}

/* Goroutine I of Go 1.22, in STATUS: its stack is MADE_STACK_STEP / 2 bytes below
 * its end. */
static inline void made_goroutine(struct made_go *made, size_t i,
				  uint32_t status)
{
	uint64_t lo = made_avma(MADE_STACK + i * MADE_STACK_STEP);
	uint64_t g = made_avma(MADE_G + i * MADE_G_STEP);

	made_put(made->memory, MADE_LIST + 8 * i, g, 8);
	made_put(made_g(made, i, 0), 0, lo, 8);
	made_put(made_g(made, i, 8), 0, lo + MADE_STACK_STEP, 8);
	made_put(made_g(made, i, 56), 0, lo + MADE_STACK_STEP / 2, 8);
	made_put(made_g(made, i, 64), 0, MADE_TEXT + MADE_BIAS + 0x10, 8);
	made_put(made_g(made, i, 72), 0, g, 8);
	made_put(made_g(made, i, 144), 0, status, 4);
	made_put(made_g(made, i, 152), 0, i + 1, 8);
	*made_g(made, i, 176) = 2;
	made_put(made_g(made, i, 272), 0, 1, 8);
	made_put(made_g(made, i, 280), 0, MADE_TEXT + MADE_BIAS + 0x20, 8);
	made_put(made_g(made, i, 296), 0, MADE_TEXT + MADE_BIAS, 8);
}

static inline void made_reason(struct made_go *made, size_t i, const char *text)
{
	size_t text_off = MADE_REASONS + 0x800 + 32 * i;

	made_put(made->memory, MADE_REASONS + 16 * i,
		 *text ? made_avma(text_off) : 0, 8);
	made_put(made->memory, MADE_REASONS + 16 * i + 8, strlen(text), 8);
	memcpy(made->memory + text_off, text, strlen(text));
}

/* Sudog NUMBER is goroutine I's. */
static inline void made_sudog(struct made_go *made, size_t number, size_t i)
{
	made_put(made->memory, MADE_SUDOG + number * MADE_SUDOG_STEP,
		 made_avma(MADE_G + i * MADE_G_STEP), 8);
}

/* Channel NUMBER has room for CAP values, and sudog NUMBER is at it. */
static inline void made_channel(struct made_go *made, size_t number,
				uint64_t cap)
{
	size_t at = MADE_CHANNEL + number * MADE_CHANNEL_STEP;

	made_put(made->memory, at + 8, cap, 8);
	made_put(made->memory, MADE_SUDOG + number * MADE_SUDOG_STEP + 80,
		 made_avma(at), 8);
}

/* The sudogs 0 and 1 of goroutine 0 are at a channel each, 2 of goroutine 2 at a
 * semaphore: the word 5 of its stack leads there.  Whether they wait so their reasons
 * tell, which are others.  Descriptor 3 has a struct pollDesc for which goroutine 0
 * waits to write. */
static inline void made_waits(struct made_go *made)
{
	made_sudog(made, 0, 0);
	made_sudog(made, 1, 0);
	made_sudog(made, 2, 2);
	made_channel(made, 0, 0);
	made_channel(made, 1, 10);
	made_put(made->memory, MADE_SUDOG + 64,
		 made_avma(MADE_SUDOG + MADE_SUDOG_STEP), 8);
	made_put(made_g(made, 0, 312), 0, made_avma(MADE_SUDOG), 8);
	made_put(made->memory, MADE_SUDOG + 2 * MADE_SUDOG_STEP + 24,
		 made_avma(MADE_SEMAPHORE), 8);
	made_put(made->memory,
		 MADE_STACK + 2 * MADE_STACK_STEP + MADE_STACK_STEP / 2 + 40,
		 made_avma(MADE_SUDOG + 2 * MADE_SUDOG_STEP), 8);
	made_put(made->memory, MADE_POLL + 8, 3, 8);
	made_put(made->memory, MADE_POLL + 40, made_avma(MADE_G), 8);
}

/* A program of Go 1.22.3: a goroutine that waits, one that runs on a thread with
 * tid 77, one that waits and has the label k=v, and one that has ended. */
static inline void made_go_init(struct made_go *made)
{
	memset(made, 0, sizeof(*made));
	made_table(made);
	made_module(made, "go1.22.3");
	made->image.fd = -1;
	made->image.data = made->file;
	made->image.size = MADE_FILE;
	made->image.loads[0] = (struct wp_elf_load){ MADE_TABLE, 0, MADE_FILE,
						     MADE_FILE, 4 };
	made->image.nloads = 1;
	made->image.go_table = (struct wp_elf_range){ MADE_TABLE, 0,
						      MADE_DATA_OFF };
	made->image.go_data[0] = (struct wp_elf_range){
		MADE_TABLE + MADE_DATA_OFF, MADE_DATA_OFF, 0x200
	};
	made->image.go_buildinfo = (struct wp_elf_range){
		MADE_TABLE + MADE_INFO_OFF, MADE_INFO_OFF, 0x80
	};
	made_put(made->memory, MADE_ALLGS, made_avma(MADE_LIST), 8);
	made_put(made->memory, MADE_ALLGS + 8, MADE_GOROUTINES, 8);
	made_put(made->memory, MADE_ALLGS + 16, 8, 8);
	made_goroutine(made, 0, 4);
	made_goroutine(made, 1, 2);
	made_goroutine(made, 2, 4);
	made_goroutine(made, 3, 6);
	made_put(made_g(made, 1, 48), 0, made_avma(MADE_M), 8);
	made_put(made->memory, MADE_M + 72, 77, 8);
	/* map[string]string of one entry: the map, its bucket. */
	made_put(made_g(made, 2, 344), 0, made_avma(MADE_LABELS), 8);
	made_put(made->memory, MADE_LABELS, made_avma(MADE_LABELS + 8), 8);
	made_put(made->memory, MADE_LABELS + 8 + 16,
		 made_avma(MADE_LABELS + 0x100), 8);
	made->memory[MADE_LABELS + 0x100] = 5;
	made_put(made->memory, MADE_LABELS + 0x108,
		 made_avma(MADE_LABELS + 0x300), 8);
	made_put(made->memory, MADE_LABELS + 0x110, 1, 8);
	made_put(made->memory, MADE_LABELS + 0x188,
		 made_avma(MADE_LABELS + 0x301), 8);
	made_put(made->memory, MADE_LABELS + 0x190, 1, 8);
	memcpy(made->memory + MADE_LABELS + 0x300, "kv", 2);
	made_reason(made, 0, "");
	made_reason(made, 1, "GC assist marking");
	made_reason(made, 2, "IO wait");
	made_reason(made, 3, "chan receive");
	made_reason(made, 4, "sync.Mutex.Lock");
	made_waits(made);
}

static inline int made_read(void *ctx, struct wp_process_range *v, size_t n)
{
	struct made_go *made = ctx;

	made->nreads++;
	if (made->before)
		made->before(made);
	for (size_t i = 0; i < n; i++) {
		uint64_t off = v[i].avma - made_avma(0);

		v[i].is_read = off <= MADE_MEMORY &&
			       v[i].len <= MADE_MEMORY - off;
		if (v[i].is_read && v[i].len)
			memcpy(v[i].buf, made->memory + off, v[i].len);
	}
	return 0;
}

static inline int made_open(struct made_go *made, struct wp_go_program **ret,
			    struct wp_err *err)
{
	const struct wp_go_reader reader = { .read = made_read, .ctx = made };

	return wp_go_program_open(ret, &made->image, MADE_BIAS, &reader, err);
}

#endif
