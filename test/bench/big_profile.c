/* SPDX-License-Identifier: Apache-2.0 */
/* big_profile.c - write a profile of 1,000,000 intervals of 50 threads over 10,000
 * stacks of 8 to 24 frames, at 100 Hz with its jitter: big_profile FORMAT FILE.
 * big_profile FORMAT FILE distinct: each interval has a stack of its own.
 * How long the writing took, in seconds, is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/budget.h"
#include "wallprof/clock.h"
#include "wallprof/enum_name.h"
#include "wallprof/output.h"

enum {
	NTHREADS = 50,
	NSTACKS = 10000,
	NINTERVALS = 20000,
	DEEPEST = 24,
	NFUNCTIONS = 4000,
	EXE = 0x400000,
};

static uint64_t seed = 1;

/* A number below N; small ones are more likely if SKEWED. */
static uint32_t below(uint32_t n, bool skewed)
{
	uint64_t r;

	seed = seed * 6364136223846793005u + 1442695040888963407u;
	r = seed >> 33;
	if (skewed)
		r = r * (seed >> 12 & 0x3ff) / 0x400 % 0x7fffffff;
	return (uint32_t)(r % n);
}

static void check(bool ok)
{
	if (!ok) {
		fputs("big_profile: no memory\n", stderr);
		exit(1);
	}
}

/* Stacks share their outer frames, as those of a program do. */
static uint32_t make_stack(struct wp_profile *p, uint32_t mapping)
{
	static uint64_t path[DEEPEST];
	struct wp_frame frames[DEEPEST];
	struct wp_stack stack = { .frames = frames, .end = WP_END_ROOT };
	uint32_t keep = 2 + below(DEEPEST - 8, false);

	stack.depth = 8 + below(DEEPEST - 8, false);
	for (uint32_t i = keep; i < DEEPEST; i++)
		path[i] = EXE + 16 * (1 + below(NFUNCTIONS, true));
	for (uint32_t i = 0; i < stack.depth; i++)
		frames[stack.depth - 1 - i] = (struct wp_frame){
			.pc_avma = path[i] + 1, .mapping = mapping
		};
	return wp_profile_add_stack(p, &stack, WP_MAPPING_NONE);
}

static void name_functions(struct wp_profile *p)
{
	check(!wp_profile_locate(p));
	for (uint32_t i = 0; i < p->nlocations; i++) {
		struct wp_profile_function f = { 0 };
		struct wp_profile_line line = { .line = i };
		char name[64];

		if (p->locations[i].text)
			continue;
		snprintf(name, sizeof(name), "module_%u::function_%u",
			 (unsigned int)(p->locations[i].avma / 16 % 97),
			 (unsigned int)((p->locations[i].avma - EXE) / 16));
		f.name = wp_intern_add_str(&p->strings, name);
		line.function = wp_profile_add_function(p, &f);
		check(!wp_profile_add_line(p, i, line));
	}
}

static void add_interval(struct wp_profile *p, uint32_t thread, uint32_t stack,
			 uint64_t ns)
{
	static const struct {
		enum wp_state state;
		enum wp_wait wait;
	} kinds[] = { { WP_STATE_RUNNING, WP_WAIT_NONE },
		      { WP_STATE_WAITING, WP_WAIT_LOCK },
		      { WP_STATE_WAITING, WP_WAIT_POLL },
		      { WP_STATE_RUNNABLE, WP_WAIT_NONE } };
	/* A stack waits in one place. */
	const struct wp_sample_key key = { .thread = thread,
					   .stack = stack,
					   .state = kinds[stack % 4].state,
					   .wait = kinds[stack % 4].wait };

	check(!wp_profile_add_sample(p, WP_PROFILE_WALL, &key, 1, ns));
	wp_timeline_end_interval(&p->timeline, thread);
}

/* IS_DISTINCT: as many stacks as intervals. */
static void make(struct wp_profile *p, bool is_distinct)
{
	static uint32_t stacks[NINTERVALS * NTHREADS];
	uint32_t nstacks = is_distinct ? NINTERVALS * NTHREADS : NSTACKS;
	struct wp_profile_mapping m = { .start_avma = EXE,
					.end_avma = EXE + 0x1000000 };
	uint32_t mapping, n = 0;

	check(!wp_profile_init(p));
	m.path = p->meta.exe = wp_intern_add_str(&p->strings, "/usr/bin/big");
	mapping = wp_profile_add_mapping(p, &m);
	while (n < nstacks) {
		stacks[n] = make_stack(p, mapping);
		n += stacks[n] == n;
	}
	wp_timeline_start(&p->timeline, (size_t)1 << 30);
	for (uint32_t t = 0; t < NTHREADS; t++) {
		struct wp_profile_thread thread = { .tid = (int32_t)t + 1 };
		char name[32];

		snprintf(name, sizeof(name), "worker-%u", t);
		thread.name = wp_intern_add_str(&p->strings, name);
		check(wp_profile_add_thread(p, &thread) == t);
	}
	for (uint32_t i = 0; i < NINTERVALS; i++) {
		uint64_t ns = 5000000 + below(10000000, false);

		/* One tick for all threads; each is looked at a little later. */
		for (uint32_t t = 0; t < NTHREADS; t++)
			add_interval(p, t,
				     stacks[is_distinct ? i * NTHREADS + t :
							  below(NSTACKS, true)],
				     ns + below(20000, false));
	}
	for (uint32_t i = 0; i < p->sets[WP_PROFILE_WALL].nsamples; i++)
		p->sets[WP_PROFILE_WALL].samples[i].looks =
			p->sets[WP_PROFILE_WALL].samples[i].count;
	p->meta.duration_ns = 200000000000;
	p->meta.period_ns = 10000000;
	p->meta.command_line = p->meta.exe;
	name_functions(p);
	wp_profile_add_up(p);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { WP_FORMATS(WP_ENUM_TEXT) };
	unsigned int format = 0;
	struct wp_profile p;
	bool is_distinct = argc == 4 && !strcmp(argv[3], "distinct");
	FILE *out = argc == 3 || is_distinct ? fopen(argv[2], "w") : NULL;
	uint64_t begin_ns;

	while (out && format < WP_NFORMATS && strcmp(names[format], argv[1]))
		format++;
	if (!out || format == WP_NFORMATS) {
		fputs("usage: big_profile FORMAT FILE [distinct]\n", stderr);
		return 64;
	}
	wp_budget_set((uint64_t)4 << 30);
	make(&p, is_distinct);
	begin_ns = wp_clock_ns();
	if (wp_write_profile(&p, WP_PROFILE_WALL, (enum wp_format)format, NULL,
			     out) ||
	    fclose(out))
		return 1;
	printf("%.3f\n", (double)(wp_clock_ns() - begin_ns) / 1e9);
	wp_profile_clear(&p);
	return 0;
}
