/* SPDX-License-Identifier: Apache-2.0 */
/* dump_maker.h - dumps made by hand, for the tests of their writers. */
#ifndef DUMP_MAKER_H
#define DUMP_MAKER_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/output.h"
#include "wallprof/syscall_nr.h"

static inline uint32_t add_text(struct wp_dump *d, const char *text)
{
	uint32_t id = wp_intern_add_str(&d->strings, text);

	assert_true(id != UINT32_MAX);
	return id;
}

/* 2026-11-21 14:30:12.345 UTC, by date(1). */
#define MAKER_TIME INT64_C(1795271412345000000)

/* The process that the threads added after it are of. */
static inline struct wp_dump_process *
add_process(struct wp_dump *d, int32_t pid, const char *command_line)
{
	struct wp_dump_process *p = wp_dump_add_process(d);

	assert_non_null(p);
	d->time_ns = MAKER_TIME;
	p->pid = pid;
	p->ppid = 1;
	p->command_line = add_text(d, command_line);
	p->first_thread = d->nthreads;
	return p;
}

static inline struct wp_dump_thread *add_thread(struct wp_dump *d, int32_t tid,
						const char *name,
						enum wp_state state,
						enum wp_wait wait)
{
	struct wp_dump_thread *t = wp_dump_add_thread(d);

	assert_non_null(t);
	t->process = d->nprocesses - 1;
	t->tid = tid;
	t->name = add_text(d, name);
	t->state = state;
	t->wait = wait;
	t->stack.first_frame = d->nframes;
	/* The number of frames: none. */
	t->stack.site = 0;
	d->processes[t->process].nthreads++;
	return t;
}

/* A frame of the thread added last, below those that it has.  Its pc follows
 * from the function's name, so the same frame is the same twice. */
static inline struct wp_dump_frame *add_frame(struct wp_dump *d,
					      const char *function,
					      const char *file, uint32_t line,
					      const char *module)
{
	struct wp_dump_frame *f = wp_dump_add_frame(d);
	struct wp_dump_thread *t = &d->threads[d->nthreads - 1];

	assert_non_null(f);
	f->function = f->system_name = add_text(d, function);
	f->pc_avma = 0x1000 + f->function;
	f->file = add_text(d, file);
	f->line = line;
	f->module = add_text(d, module);
	t->stack.site += t->stack.site == t->stack.nframes;
	t->stack.nframes++;
	return f;
}

/* The frame added last is the site of its thread's wait. */
static inline void set_site(struct wp_dump *d)
{
	struct wp_dump_thread *t = &d->threads[d->nthreads - 1];

	t->stack.site = t->stack.nframes - 1;
}

/* Index FROM of threads[] waits for TO, or for any of the process TO_PID. */
static inline void add_edge(struct wp_dump *d, enum wp_edge_kind kind,
			    uint32_t from, uint32_t to, int32_t to_pid,
			    const char *what)
{
	struct wp_edge *e = wp_dump_add_edge(d);

	assert_non_null(e);
	e->kind = kind;
	e->from = from;
	e->to = to;
	e->to_process = wp_dump_find_process(d, to_pid);
	e->to_pid = to_pid;
	e->what = add_text(d, what);
}

/* A cycle of the edges [first..first + n). */
static inline void add_cycle(struct wp_dump *d, uint32_t first, uint32_t n)
{
	uint32_t have = d->ncycle_edges;

	d->cycle_first = reallocarray(d->cycle_first, d->ncycles + 2,
				      sizeof(*d->cycle_first));
	d->cycle_edges = reallocarray(d->cycle_edges, have + n,
				      sizeof(*d->cycle_edges));
	assert_true(d->cycle_first && d->cycle_edges);
	for (uint32_t i = 0; i < n; i++)
		d->cycle_edges[have + i] = first + i;
	d->ncycle_edges = have + n;
	d->cycle_first[0] = 0;
	d->cycle_first[++d->ncycles] = have + n;
}

static inline void add_root(struct wp_dump *d, uint32_t thread,
			    uint32_t waiters)
{
	d->roots = reallocarray(d->roots, d->nroots + 1, sizeof(*d->roots));
	assert_non_null(d->roots);
	d->roots[d->nroots++] = thread;
	d->threads[thread].waiters = waiters;
}

static inline void set_mutex(struct wp_dump_thread *t, uint64_t avma,
			     int32_t owner)
{
	t->lock.kind = WP_LOCK_MUTEX;
	t->lock.holder = WP_HOLDER_THREAD;
	t->lock.avma = avma;
	t->lock.owner_tid = owner;
}

/* Threads 4243 and 4244, each with the mutex that the other wants, and the main
 * thread, which is not the first of the list and joins the first. */
static inline void make_deadlock(struct wp_dump *d)
{
	struct wp_dump_thread *t;
	struct wp_dump_process *p = add_process(d, 4242, "./server --port 80");

	p->user = add_text(d, "www-data");
	p->nstopped = 1;
	p->pause_ns = 38000;
	t = add_thread(d, 4243, "a", WP_STATE_WAITING, WP_WAIT_LOCK);
	set_mutex(t, 0x55aa60, 4244);
	t->times.waited_ns = UINT64_C(190000000000);
	t->stuck = true;
	add_frame(d, "__lll_lock_wait", "./nptl/lowlevellock.c", 49,
		  "libc.so.6");
	add_frame(d, "take_b", "/src/ab.c", 21, "ab");
	set_site(d);
	t = add_thread(d, 4244, "b", WP_STATE_WAITING, WP_WAIT_LOCK);
	set_mutex(t, 0x55aa10, 4243);
	t->times.waited_ns = UINT64_C(12000000000);
	t->lock.type = "recursive";
	t->stuck = true;
	add_frame(d, "take_a", "/src/ab.c", 33, "ab");
	set_site(d);
	t = add_thread(d, 4242, "server", WP_STATE_WAITING, WP_WAIT_JOIN);
	t->lock.kind = WP_LOCK_JOIN;
	t->lock.holder = WP_HOLDER_THREAD;
	t->lock.owner_tid = 4243;
	t->times.cpu = 1;
	t->call.text = add_text(d, "futex 0x7f01 WAIT_BITSET");
	t->call.nr = SYS_futex;
	t->stuck = true;
	add_frame(d, "main", "server.c", 55, "server");
	set_site(d);
	add_edge(d, WP_EDGE_LOCK, 0, 1, 4242, "mutex 0x55aa60");
	add_edge(d, WP_EDGE_LOCK, 1, 0, 4242, "mutex 0x55aa10");
	add_edge(d, WP_EDGE_JOIN, 2, 0, 4242, "thread 4243");
	add_cycle(d, 0, 2);
}

#endif
