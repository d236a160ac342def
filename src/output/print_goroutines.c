/* SPDX-License-Identifier: Apache-2.0 */
/* print_goroutines.c - goroutines of a Go program, alone or in groups. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

enum {
	/* Ids that a group names. */
	MAX_IDS = 8,
};

/* Goroutines that are printed together: order[first..first + n) by id. */
struct group {
	uint32_t first;
	uint32_t n;
};

void wp_print_goroutine_count(struct wp_print *t,
			      const struct wp_dump_process *process)
{
	const char *why = wp_dump_str(t->dump, process->go_error);

	if (*why) {
		wp_buf_str(&t->buf, "goroutines could not be read: ");
		wp_escape_terminal(&t->buf, why);
		wp_buf_char(&t->buf, '\n');
	}
	if (!process->ngoroutines && !process->nlost_goroutines)
		return;
	wp_buf_printf(&t->buf, "%" PRIu32 " goroutine%s of ",
		      process->ngoroutines,
		      wp_print_plural(process->ngoroutines));
	wp_escape_terminal(&t->buf, wp_dump_str(t->dump, process->go_version));
	if (process->nlost_goroutines)
		wp_buf_printf(&t->buf, ", %" PRIu64 " more not read",
			      process->nlost_goroutines);
	wp_buf_char(&t->buf, '\n');
}

/* Write "[chan receive, at most 8.8 s]" of GROUP[0..n), which are in one
 * state. */
static void put_state(struct wp_print *t,
		      const struct wp_dump_goroutine *const *group, uint32_t n)
{
	const struct wp_dump_goroutine *g = group[0];
	uint64_t most_ns = 0;

	wp_buf_char(&t->buf, '[');
	wp_escape_terminal(&t->buf, wp_dump_str(t->dump, g->reason ? g->reason :
								     g->state));
	for (uint32_t i = 0; i < n; i++)
		if (group[i]->waited_ns != UINT64_MAX &&
		    group[i]->waited_ns > most_ns)
			most_ns = group[i]->waited_ns;
	if (most_ns) {
		wp_buf_str(&t->buf, ", at most ");
		wp_print_time(&t->buf, most_ns);
	}
	wp_buf_char(&t->buf, ']');
}

static void put_labels(struct wp_print *t, const struct wp_dump_goroutine *g)
{
	if (!g->nlabels)
		return;
	wp_buf_str(&t->buf, "  labels");
	for (uint32_t i = 0; i < g->nlabels; i++) {
		const struct wp_dump_label *label =
			&t->dump->labels[g->first_label + i];

		wp_buf_str(&t->buf, i ? ", " : " ");
		wp_print_quoted(t, label->key);
		wp_buf_str(&t->buf, ": ");
		wp_print_quoted(t, label->value);
	}
	wp_buf_char(&t->buf, '\n');
}

/* Write who created G; PARENT: by which goroutine. */
static void put_created(struct wp_print *t, const struct wp_dump_goroutine *g,
			bool parent)
{
	if (!g->created.nframes)
		return;
	wp_buf_str(&t->buf, "  created by ");
	/* Innermost first: what was inlined into the next. */
	wp_print_place(t, &t->dump->frames[g->created.first_frame], false, " ");
	if (parent && g->parent_id)
		wp_buf_printf(&t->buf, " in goroutine %" PRIu64, g->parent_id);
	wp_buf_char(&t->buf, '\n');
}

static void put_stack(struct wp_print *t, const struct wp_dump_goroutine *g)
{
	wp_print_frames(t, &g->stack,
			g->tid ? "it runs" :
				 "it ran on each time that it was read");
}

static int put_one(struct wp_print *t, const struct wp_dump_goroutine *g)
{
	int rc;

	wp_print_gap(t);
	wp_buf_printf(&t->buf, "goroutine %" PRIu64 " ", g->id);
	put_state(t, &g, 1);
	if (g->tid)
		wp_buf_printf(&t->buf, " on thread %" PRId32, g->tid);
	if (g->locked_tid)
		wp_buf_printf(&t->buf, " locked to thread %" PRId32,
			      g->locked_tid);
	wp_print_site(t, ", ", &g->stack);
	wp_buf_char(&t->buf, '\n');
	put_labels(t, g);
	rc = wp_print_goroutine_waits(t, &g, 1);
	put_stack(t, g);
	put_created(t, g, true);
	return rc;
}

/* Orders goroutines by what makes a group. */
static int compare_kinds(const struct wp_dump *dump,
			 const struct wp_dump_goroutine *a,
			 const struct wp_dump_goroutine *b)
{
	const uint32_t x[] = { a->state,
			       a->reason,
			       a->stack.nframes,
			       a->stack.first_frame,
			       a->created.first_frame,
			       a->created.nframes,
			       a->nlabels };
	const uint32_t y[] = { b->state,
			       b->reason,
			       b->stack.nframes,
			       b->stack.first_frame,
			       b->created.first_frame,
			       b->created.nframes,
			       b->nlabels };

	for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return a->nlabels ? memcmp(dump->labels + a->first_label,
				   dump->labels + b->first_label,
				   a->nlabels * sizeof(*dump->labels)) :
			    0;
}

static int compare_order(const void *a, const void *b, void *ctx)
{
	const struct wp_dump_goroutine *x = *(
		const struct wp_dump_goroutine *const *)a;
	const struct wp_dump_goroutine *y = *(
		const struct wp_dump_goroutine *const *)b;
	int kind = compare_kinds(ctx, x, y);

	return kind ? kind : (x->id > y->id) - (x->id < y->id);
}

static int compare_groups(const void *a, const void *b, void *ctx)
{
	const struct wp_dump_goroutine *const *order = ctx;
	const struct group *x = a, *y = b;
	uint64_t i = order[x->first]->id, j = order[y->first]->id;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (i > j) - (i < j);
}

static int put_group(struct wp_print *t,
		     const struct wp_dump_goroutine *const *group, uint32_t n)
{
	int rc;

	if (n == 1)
		return put_one(t, group[0]);
	wp_print_gap(t);
	wp_buf_printf(&t->buf, "%" PRIu32 " goroutines ", n);
	put_state(t, group, n);
	wp_print_site(t, " ", &group[0]->stack);
	for (uint32_t i = 0; i < n && i < MAX_IDS; i++)
		wp_buf_printf(&t->buf, "%s %" PRIu64, i ? "," : ":",
			      group[i]->id);
	if (n > MAX_IDS)
		wp_buf_printf(&t->buf, " and %" PRIu32 " more", n - MAX_IDS);
	wp_buf_char(&t->buf, '\n');
	put_labels(t, group[0]);
	rc = wp_print_goroutine_waits(t, group, n);
	put_stack(t, group[0]);
	put_created(t, group[0], false);
	return rc;
}

/* Print ORDER[0..n), in which the members of a group follow each other. */
static int put_groups(struct wp_print *t,
		      const struct wp_dump_goroutine **order, uint32_t n)
{
	struct group *groups = calloc(n, sizeof(*groups));
	uint32_t ngroups = 0;
	int rc = 0;

	if (!groups)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		if (!i || compare_kinds(t->dump, order[i - 1], order[i]))
			groups[ngroups++].first = i;
		groups[ngroups - 1].n++;
	}
	qsort_r(groups, ngroups, sizeof(*groups), compare_groups, order);
	for (uint32_t i = 0; !rc && i < ngroups; i++)
		rc = put_group(t, order + groups[i].first, groups[i].n);
	free(groups);
	return rc;
}

int wp_print_goroutines(struct wp_print *t,
			const struct wp_dump_process *process, bool group)
{
	const struct wp_dump_goroutine *all, **order;
	uint32_t n = process->ngoroutines;
	int rc = 0;

	if (!n)
		return 0;
	all = t->dump->goroutines + process->first_goroutine;
	for (uint32_t i = 0; !rc && i < n && !group; i++)
		rc = put_one(t, &all[i]);
	if (!group)
		return rc;
	order = calloc(n, sizeof(const struct wp_dump_goroutine *));
	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		order[i] = &all[i];
	qsort_r(order, n, sizeof(const struct wp_dump_goroutine *),
		compare_order, (void *)t->dump);
	rc = put_groups(t, order, n);
	free(order);
	return rc;
}
