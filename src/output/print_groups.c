/* SPDX-License-Identifier: Apache-2.0 */
/* print_groups.c - threads with equal stacks and waits are printed once. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "wallprof/hash.h"
#include "wallprof/index.h"

enum {
	MAX_NAMES = 8,
};

#define NONE UINT32_MAX

struct group {
	struct wp_print_same same;
	/* Its first and last thread: positions in order[]. */
	uint32_t first, last;
};

struct grouper {
	struct wp_print *t;
	/* The threads to group, borrowed. */
	const uint32_t *order;
	uint32_t n;
	/* next[i]: the position after I in the same group, NONE at its end. */
	uint32_t *next;
	struct group *groups;
	uint32_t ngroups;
	/* Groups by hash. */
	struct wp_index index;
};

static const struct wp_dump_thread *thread_at(const struct grouper *g,
					      uint32_t i)
{
	return &g->t->dump->threads[g->order[i]];
}

static uint64_t hash_thread(const struct wp_dump *dump,
			    const struct wp_dump_thread *thread)
{
	uint64_t h = wp_hash_u64((uint64_t)thread->state << 32 | thread->wait);

	h = wp_hash_u64(h ^ thread->lock.avma);
	for (uint32_t i = 0; i < thread->stack.nframes; i++) {
		const struct wp_dump_frame *f =
			&dump->frames[thread->stack.first_frame + i];

		h = wp_hash_u64(h ^ f->pc_avma);
		h = wp_hash_u64(h ^ f->function);
	}
	return h;
}

static bool is_same_wait(const struct wp_dump_thread *a,
			 const struct wp_dump_thread *b)
{
	return a->state == b->state && a->wait == b->wait &&
	       (a->wait != WP_WAIT_SYSCALL || a->call.nr == b->call.nr) &&
	       a->stuck == b->stuck && a->lock.kind == b->lock.kind &&
	       a->lock.avma == b->lock.avma &&
	       a->lock.holder == b->lock.holder &&
	       a->lock.owner_tid == b->lock.owner_tid &&
	       a->lock.readers == b->lock.readers;
}

static bool is_same(const struct wp_dump *dump, const struct wp_dump_thread *a,
		    const struct wp_dump_thread *b)
{
	if (!is_same_wait(a, b) || a->stack.nframes != b->stack.nframes ||
	    a->stack.site != b->stack.site || a->stack.end != b->stack.end ||
	    a->stack.end_module != b->stack.end_module)
		return false;
	for (uint32_t i = 0; i < a->stack.nframes; i++) {
		const struct wp_dump_frame *x =
			&dump->frames[a->stack.first_frame + i];
		const struct wp_dump_frame *y =
			&dump->frames[b->stack.first_frame + i];

		if (x->pc_avma != y->pc_avma || x->function != y->function)
			return false;
	}
	return true;
}

/* Put the thread at position I into its group, made if new. */
static int add_thread(struct grouper *g, uint32_t i)
{
	const struct wp_dump *dump = g->t->dump;
	const struct wp_dump_thread *thread = thread_at(g, i);
	uint64_t hash = hash_thread(dump, thread);
	uint32_t at = WP_INDEX_FIND(
		&g->index, hash, k,
		is_same(dump, thread_at(g, g->groups[k].first), thread));
	struct group *group = &g->groups[at != WP_INDEX_NONE ? at : g->ngroups];

	if (at == WP_INDEX_NONE) {
		if (wp_index_add(&g->index, hash, g->ngroups))
			return -ENOMEM;
		g->ngroups++;
		*group = (struct group){ .same = WP_PRINT_SAME_INIT,
					 .first = i,
					 .last = i };
	}
	g->next[group->last] = i;
	g->next[i] = NONE;
	group->last = i;
	wp_print_same_add(&group->same, thread);
	return 0;
}

static int compare_groups(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->same.nthreads != y->same.nthreads)
		return x->same.nthreads < y->same.nthreads ? 1 : -1;
	return (x->first > y->first) - (x->first < y->first);
}

static void put_group(struct grouper *g, const struct group *group)
{
	const struct wp_dump_thread *first = thread_at(g, group->first);
	struct wp_buf *buf = &g->t->buf;
	uint32_t n = group->same.nthreads, i = group->first;

	if (n == 1) {
		wp_print_whole(g->t, first);
		return;
	}
	wp_print_gap(g->t);
	wp_buf_printf(buf, "%" PRIu32 " threads ", n);
	wp_print_state(g->t, first, &group->same);
	wp_print_site(g->t, " ", &first->stack);
	for (uint32_t k = 0; k < n && k < MAX_NAMES; k++, i = g->next[i]) {
		wp_buf_printf(buf, "%s %" PRId32 " ", k ? "," : ":",
			      thread_at(g, i)->tid);
		wp_print_quoted(g->t, thread_at(g, i)->name);
	}
	if (n > MAX_NAMES)
		wp_buf_printf(buf, " and %" PRIu32 " more", n - MAX_NAMES);
	wp_buf_char(buf, '\n');
	wp_print_thread_frames(g->t, first);
}

static int group_threads(struct grouper *g)
{
	int rc = 0;

	g->next = calloc(g->n, sizeof(*g->next));
	g->groups = calloc(g->n, sizeof(*g->groups));
	if (!g->next || !g->groups)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n && !rc; i++)
		rc = add_thread(g, i);
	if (!rc)
		qsort(g->groups, g->ngroups, sizeof(*g->groups),
		      compare_groups);
	return rc;
}

int wp_print_groups(struct wp_print *t, const uint32_t *order, uint32_t n)
{
	struct grouper g = { .t = t, .order = order, .n = n };
	int rc = group_threads(&g);

	for (uint32_t i = 0; i < g.ngroups && !rc; i++)
		put_group(&g, &g.groups[i]);
	free(g.groups);
	free(g.next);
	wp_index_clear(&g.index);
	return rc;
}
