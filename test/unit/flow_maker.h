/* SPDX-License-Identifier: Apache-2.0 */
/* flow_maker.h - a flow through code that is an array, for tests. */
#ifndef WP_TEST_FLOW_MAKER_H
#define WP_TEST_FLOW_MAKER_H

#include <string.h>

#include "../../unwind/flow.h"

#define CODE(bytes) bytes, sizeof(bytes) - 1

enum {
	/* Where code begins: near the end of a window. */
	AT = WP_FLOW_WINDOW - 20,
	MEMORY = 2 * WP_FLOW_WINDOW,
	BUDGET = 1000,
	READS = 4,
	WAYS_MAX = 128,
};

#define AVMA UINT64_C(0x400000)
#define HERE (AVMA + AT)

static struct fixture {
	uint8_t memory[MEMORY];
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_mem mem;
	struct wp_flow flow;
	/* The ways that were reported. */
	unsigned int n;
	enum wp_flow_stop stop[WAYS_MAX];
	struct wp_flow_state s[WAYS_MAX];
} f;

static inline enum wp_mem_result read_mem(void *ctx, uint64_t avma, void *buf,
					  size_t len)
{
	(void)ctx;
	if (avma < AVMA || len > MEMORY || avma - AVMA > MEMORY - len)
		return WP_MEM_UNREADABLE;
	memcpy(buf, f.memory + (avma - AVMA), len);
	return WP_MEM_OK;
}

/* Code of no file, of int3. */
static inline int start(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	memset(f.memory, 0xcc, sizeof(f.memory));
	f.module = (struct wp_unwind_module){ .start_avma = AVMA,
					      .end_avma = AVMA + MEMORY,
					      .bias = AVMA };
	f.modules = (struct wp_unwind_modules){ .v = &f.module, .len = 1 };
	f.mem.read = read_mem;
	return 0;
}

static inline void put(size_t at, const char *code, size_t len)
{
	memcpy(f.memory + at, code, len);
}

static inline void follow(uint64_t start_avma, uint64_t goal_avma,
			  unsigned int budget)
{
	const struct wp_flow_state *s;
	enum wp_flow_stop stop;

	wp_flow_open(&f.flow, &f.modules, &f.mem, READS);
	wp_flow_start(&f.flow, start_avma, goal_avma, budget);
	for (f.n = 0; (stop = wp_flow_next(&f.flow, &s)) != WP_FLOW_OVER;
	     f.n++) {
		assert_true(f.n < WAYS_MAX);
		f.stop[f.n] = stop;
		f.s[f.n] = *s;
	}
}

/* Follow CODE, with nothing around it, to its returns. */
static inline void follow_code(const char *code, size_t len)
{
	start(NULL);
	put(AT, code, len);
	follow(HERE, 0, BUDGET);
}

/* The same to what is GOAL bytes behind its start. */
static inline void follow_to(const char *code, size_t len, size_t goal)
{
	start(NULL);
	put(AT, code, len);
	follow(HERE, HERE + goal, BUDGET);
}

#endif
