/* SPDX-License-Identifier: Apache-2.0 */
/* profile_maker.h - a small profile whose numbers the tests know by heart.
 *
 * Included by tests only, so it has code.
 */
#ifndef WP_PROFILE_MAKER_H
#define WP_PROFILE_MAKER_H

#include <string.h>

#include "wallprof/profile.h"

#define MAKER_UNUSED __attribute__((unused))

enum {
	EXE_START = 0x400000,
	LIBC_START = 0x7f0000000000,
	JIT_START = 0x10000000,
};

/* What the resolver would find: innermost first per address. */
struct maker_symbol {
	uint64_t avma;
	const char *name;
	const char *file;
	uint32_t line;
};

static MAKER_UNUSED uint32_t mk_str(struct wp_profile *p, const char *s)
{
	uint32_t id = wp_intern_add_str(&p->strings, s);

	assert_int_not_equal(id, UINT32_MAX);
	return id;
}

static MAKER_UNUSED uint32_t mk_thread(struct wp_profile *p, int32_t tid,
				       const char *name)
{
	struct wp_profile_thread t = { .tid = tid, .name = mk_str(p, name) };

	return wp_profile_add_thread(p, &t);
}

static MAKER_UNUSED uint32_t mk_mapping(struct wp_profile *p, uint64_t start,
					const char *path, const char *build_id)
{
	struct wp_profile_mapping m = {
		.start_avma = start,
		.end_avma = start + 0x10000,
		.off = 0x1000,
		.path = mk_str(p, path),
		.build_id = mk_str(p, build_id),
		.has_functions = true,
	};

	return wp_profile_add_mapping(p, &m);
}

/* PCS: innermost first, return addresses but for the first; 0 ends it. */
static MAKER_UNUSED uint32_t mk_stack(struct wp_profile *p, const uint64_t *pcs,
				      enum wp_stack_end end,
				      uint32_t end_mapping)
{
	struct wp_frame frames[64];
	struct wp_stack stack = { .frames = frames, .end = end };

	for (; pcs[stack.depth]; stack.depth++) {
		uint64_t pc = pcs[stack.depth];
		struct wp_frame *f = &frames[stack.depth];

		assert_true(stack.depth < 64);
		*f = (struct wp_frame){ .pc_avma = pc,
					.flags = stack.depth ? WP_FRAME_RETURN :
							       0 };
		for (uint32_t m = 1; m < p->nmappings; m++)
			if (p->mappings[m].start_avma <= pc &&
			    pc < p->mappings[m].end_avma)
				f->mapping = m;
	}
	return wp_profile_add_stack(p, &stack, end_mapping);
}

static MAKER_UNUSED void mk_sample(struct wp_profile *p, uint32_t thread,
				   uint32_t stack, enum wp_state state,
				   enum wp_wait wait, const char *object,
				   uint64_t count, uint64_t ns)
{
	struct wp_sample_key key = {
		.stack = stack,
		.thread = thread,
		.state = (uint8_t)state,
		.wait = (uint8_t)wait,
		.object = mk_str(p, object),
	};

	if (wait == WP_WAIT_SYSCALL)
		key.syscall = (uint16_t)mk_str(p, "membarrier");
	assert_int_equal(
		wp_profile_add_sample(p, WP_PROFILE_WALL, &key, count, ns), 0);
}

static MAKER_UNUSED void mk_lines(struct wp_profile *p,
				  const struct maker_symbol *symbols, size_t n)
{
	assert_int_equal(wp_profile_locate(p), 0);
	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		for (size_t i = 0; i < n; i++) {
			struct wp_profile_function f = {
				.name = mk_str(p, symbols[i].name),
				.system_name = mk_str(p, symbols[i].name),
				.file = mk_str(p, symbols[i].file),
			};
			struct wp_profile_line line = {
				.line = symbols[i].line,
			};

			if (p->locations[loc].text ||
			    p->locations[loc].avma != symbols[i].avma)
				continue;
			line.function = wp_profile_add_function(p, &f);
			assert_int_equal(wp_profile_add_line(p, loc, line), 0);
		}
	}
}

/* A server: main waits in epoll_wait for 9 s and runs for 1 s; two workers,
 * each 6 s on a lock, 3.95 s in a JIT and 50 ms in membarrier; a thread with a
 * name made to harm terminals, which no stack was read of.  40 s in all. */
static MAKER_UNUSED void make_server(struct wp_profile *p)
{
	static const struct maker_symbol symbols[] = {
		{ EXE_START + 0x10f, "main", "/src/server.c", 12 },
		{ EXE_START + 0x20f, "serve", "/src/server.c", 40 },
		{ EXE_START + 0x300, "parse_inline", "/src/parse.h", 7 },
		{ EXE_START + 0x300, "handle", "/src/server.c", 80 },
		{ EXE_START + 0x40f, "work", "/src/pool.c", 9 },
		{ LIBC_START + 0x100, "epoll_wait", "", 0 },
		{ LIBC_START + 0x20f, "start_thread", "", 0 },
		{ LIBC_START + 0x300, "__lll_lock_wait", "", 0 },
		{ LIBC_START + 0x400, "syscall", "", 0 },
		{ JIT_START + 0x100, "hot;loop\n(int)", "", 0 },
	};
	static const uint64_t wait[] = { LIBC_START + 0x100, EXE_START + 0x210,
					 EXE_START + 0x110, 0 };
	static const uint64_t run[] = { EXE_START + 0x300, EXE_START + 0x210,
					EXE_START + 0x110, 0 };
	static const uint64_t lock[] = { LIBC_START + 0x300, EXE_START + 0x410,
					 LIBC_START + 0x210, 0 };
	static const uint64_t jit[] = { JIT_START + 0x100, 0 };
	static const uint64_t rare[] = { LIBC_START + 0x400, EXE_START + 0x410,
					 LIBC_START + 0x210, 0 };
	static const uint64_t none[] = { 0 };
	uint32_t libc, jit_map, thread, stack;

	assert_int_equal(wp_profile_init(p), 0);
	libc = mk_mapping(p, LIBC_START, "/usr/lib/libc.so.6", "abcdef01");
	mk_mapping(p, EXE_START, "/usr/bin/server", "00ff");
	jit_map = mk_mapping(p, JIT_START, "", "");
	assert_int_equal(libc, 1);
	thread = mk_thread(p, 100, "server");
	mk_sample(p, thread, mk_stack(p, wait, WP_END_ROOT, 0),
		  WP_STATE_WAITING, WP_WAIT_POLL, "fd 5 epoll", 900,
		  9000000000);
	mk_sample(p, thread, mk_stack(p, run, WP_END_ROOT, 0), WP_STATE_RUNNING,
		  WP_WAIT_NONE, "", 100, 1000000000);
	for (int32_t i = 1; i <= 2; i++) {
		thread = mk_thread(p, 100 + i, i == 1 ? "work-1" : "work-2");
		stack = mk_stack(p, lock, WP_END_ROOT, 0);
		mk_sample(p, thread, stack, WP_STATE_WAITING, WP_WAIT_LOCK,
			  "0xdead0", 600, 6000000000);
		stack = mk_stack(p, jit, WP_END_NO_INFO, jit_map);
		mk_sample(p, thread, stack, WP_STATE_RUNNING, WP_WAIT_NONE, "",
			  395, 3950000000);
		stack = mk_stack(p, rare, WP_END_ROOT, 0);
		mk_sample(p, thread, stack, WP_STATE_WAITING, WP_WAIT_SYSCALL,
			  "", 5, 50000000);
	}
	thread = mk_thread(p, 103, "\033[31m\xff;e\xc3\xa9\n");
	mk_sample(p, thread, mk_stack(p, none, WP_END_UNREADABLE, 0),
		  WP_STATE_RUNNABLE, WP_WAIT_NONE, "", 1000, 10000000000);
	p->meta = (struct wp_profile_meta){
		.has_wall = true,
		.pid = 100,
		.command_line = mk_str(p, "/usr/bin/server --port 80"),
		.exe = mk_str(p, "/usr/bin/server"),
		.time_ns = 1700000000123456789,
		.duration_ns = 10000000000,
		.own_cpu_ns = 43000000,
		.period_ns = 10000000,
		.achieved_hz = 99.8,
		.stop_mode = mk_str(p, "auto"),
		.target_end = mk_str(p, "exited with status 3"),
	};
	p->counters.ticks = 998;
	p->counters.missed_ticks = 2;
	p->counters.no_stop = 3000;
	p->counters.stopped = p->counters.stops = 1000;
	p->counters.pause_p50_ns = 12000;
	p->counters.pause_p99_ns = 40000;
	p->counters.pause_max_ns = 90000;
	p->counters.pause_total_ns = 15000000;
	p->counters.threads_seen = 4;
	p->counters.eintr_repaired = 1;
	mk_lines(p, symbols, sizeof(symbols) / sizeof(*symbols));
	wp_profile_add_up(p);
}

#endif
