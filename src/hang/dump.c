/* SPDX-License-Identifier: Apache-2.0 */
/* dump.c - see wallprof/dump.h. */
#include "wallprof/dump.h"
#include "wallprof/enum_name.h"

#include <stdio.h>
#include <string.h>

#include "wallprof/budget.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

void wp_dump_clear(struct wp_dump *dump)
{
	wp_intern_clear(&dump->strings);
	free(dump->processes);
	free(dump->threads);
	free(dump->goroutines);
	free(dump->labels);
	free(dump->waits);
	free(dump->frames);
	free(dump->edges);
	free(dump->cycle_edges);
	free(dump->cycle_first);
	free(dump->roots);
	wp_budget_give(WP_BUDGET_GOROUTINES, dump->taken);
	*dump = (struct wp_dump)WP_DUMP_INIT;
}

#define ADD(dump, v, n, cap)                                                   \
	({                                                                     \
		__typeof__((dump)->v) add_p_ = NULL;                           \
		if (!WP_VEC_ROOM((dump)->v, (dump)->n, (dump)->cap, 1)) {      \
			add_p_ = &(dump)->v[(dump)->n++];                      \
			memset(add_p_, 0, sizeof(*add_p_));                    \
		}                                                              \
		add_p_;                                                        \
	})

struct wp_dump_process *wp_dump_add_process(struct wp_dump *dump)
{
	return ADD(dump, processes, nprocesses, cap_processes);
}

struct wp_dump_thread *wp_dump_add_thread(struct wp_dump *dump)
{
	struct wp_dump_thread *t = ADD(dump, threads, nthreads, cap_threads);

	if (t)
		*t = WP_DUMP_THREAD_INIT;
	return t;
}

struct wp_dump_goroutine *wp_dump_add_goroutine(struct wp_dump *dump)
{
	struct wp_dump_goroutine *g = ADD(dump, goroutines, ngoroutines,
					  cap_goroutines);

	if (g)
		g->waited_ns = UINT64_MAX;
	return g;
}

struct wp_dump_label *wp_dump_add_label(struct wp_dump *dump)
{
	return ADD(dump, labels, nlabels, cap_labels);
}

struct wp_dump_wait *wp_dump_add_wait(struct wp_dump *dump)
{
	return ADD(dump, waits, nwaits, cap_waits);
}

struct wp_dump_frame *wp_dump_add_frame(struct wp_dump *dump)
{
	return ADD(dump, frames, nframes, cap_frames);
}

struct wp_edge *wp_dump_add_edge(struct wp_dump *dump)
{
	return ADD(dump, edges, nedges, cap_edges);
}

const char *wp_dump_str(const struct wp_dump *dump, uint32_t id)
{
	return wp_intern_str(&dump->strings, id);
}

bool wp_dump_is_lock(const struct wp_dump *dump,
		     const struct wp_dump_wait *wait)
{
	const char *kind = wp_dump_str(dump, wait->kind);

	return !strcmp(kind, "sync.Mutex") || !strcmp(kind, "sync.RWMutex");
}

uint32_t wp_dump_find_process(const struct wp_dump *dump, int32_t pid)
{
	for (uint32_t i = 0; i < dump->nprocesses; i++)
		if (dump->processes[i].pid == pid)
			return i;
	return UINT32_MAX;
}

const char *wp_dump_cut_text(const struct wp_dump *dump,
			     const struct wp_dump_stack *stack,
			     char buf[WP_DUMP_CUT_MAX])
{
	const char *module = wp_dump_str(dump, stack->end_module);

	buf[0] = '\0';
	if (wp_dump_is_cut(stack))
		snprintf(buf, WP_DUMP_CUT_MAX, "%s%s%.256s",
			 wp_stack_end_text(stack->end), *module ? " in " : "",
			 module);
	return buf;
}

int wp_dump_compare_tids(const void *a, const void *b, void *dump)
{
	const struct wp_dump *d = dump;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int32_t s = d->threads[x].tid, t = d->threads[y].tid;

	return s != t ? (s > t) - (s < t) : (x > y) - (x < y);
}

uint32_t *wp_dump_sort_tids(const struct wp_dump *dump)
{
	uint32_t *by_tid = calloc((size_t)dump->nthreads + 1, sizeof(*by_tid));

	if (!by_tid)
		return NULL;
	for (uint32_t i = 0; i < dump->nthreads; i++)
		by_tid[i] = i;
	qsort_r(by_tid, dump->nthreads, sizeof(*by_tid), wp_dump_compare_tids,
		(void *)dump);
	return by_tid;
}

uint32_t wp_dump_find_tid(const struct wp_dump *dump, const uint32_t *by_tid,
			  int32_t tid)
{
	uint32_t at = (uint32_t)WP_LOWER_BOUND(
		dump->nthreads, i, dump->threads[by_tid[i]].tid < tid);

	return at < dump->nthreads && dump->threads[by_tid[at]].tid == tid ?
		       by_tid[at] :
		       UINT32_MAX;
}

const char *wp_dump_edge_name(enum wp_edge_kind kind)
{
	return WP_ENUM_NAME(WP_EDGE_KINDS, kind);
}
