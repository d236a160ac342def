/* SPDX-License-Identifier: Apache-2.0 */
/* print_goroutine_waits.c - what goroutines wait for: channels, locks, descriptors. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

/* Different ones that a group names. */
enum { NAMED_MAX = 3 };
/* Locks that have a line of their own. */
enum { LOCKS_MAX = 8 };

static void put_wait(struct wp_print *t, const struct wp_dump_wait *wait)
{
	wp_escape_terminal(&t->buf, wp_dump_str(t->dump, wait->kind));
	if (wait->avma)
		wp_buf_printf(&t->buf, " 0x%" PRIx64, wait->avma);
	else
		wp_buf_printf(&t->buf, " %" PRId32, wait->fd);
	if (!wait->text)
		return;
	wp_buf_str(&t->buf, wait->avma ? ", " : " ");
	wp_escape_terminal(&t->buf, wp_dump_str(t->dump, wait->text));
}

/* Waits for one thing: all[first..first + n) of those by what they are for. */
struct same_wait {
	const struct wp_dump_wait *wait;
	uint32_t n;
};

static int by_object(const void *a, const void *b)
{
	const struct wp_dump_wait *x = ((const struct same_wait *)a)->wait;
	const struct wp_dump_wait *y = ((const struct same_wait *)b)->wait;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->avma != y->avma)
		return x->avma < y->avma ? -1 : 1;
	return (x->fd > y->fd) - (x->fd < y->fd);
}

static int by_number(const void *a, const void *b)
{
	const struct same_wait *x = a, *y = b;

	return x->n != y->n ? (x->n < y->n ? 1 : -1) : by_object(a, b);
}

/* Make one of each of ALL[0..n) that are for the same; their number. */
static size_t merge(struct same_wait *all, size_t n)
{
	size_t len = 0;

	qsort(all, n, sizeof(*all), by_object);
	for (size_t i = 0; i < n; i++)
		if (len && !by_object(&all[len - 1], &all[i]))
			all[len - 1].n++;
		else
			all[len++] = all[i];
	qsort(all, len, sizeof(*all), by_number);
	return len;
}

/* Do the waits ALL[0..n) belong to each of N_KNOWN goroutines, as those of a select? */
static bool are_everyones(const struct same_wait *all, size_t n,
			  uint32_t n_known)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].n != n_known)
			return false;
	return true;
}

/* NGOROUTINES wait; of N_KNOWN of them it is known for what. */
static void put_all(struct wp_print *t, const struct same_wait *all, size_t n,
		    uint32_t ngoroutines, uint32_t n_known)
{
	bool each = are_everyones(all, n, n_known);
	const char *noun = all[0].wait->is_channel ? "channels" :
			   all[0].wait->avma	   ? "objects" :
						     "descriptors";

	wp_buf_str(&t->buf, ngoroutines > 1 ? "  wait for " : "  waits for ");
	if (!each)
		wp_buf_printf(&t->buf, "%zu %s: ", n, noun);
	for (size_t i = 0; i < n && (i < NAMED_MAX || each); i++) {
		if (i)
			wp_buf_str(&t->buf, each ? " or " : "; ");
		put_wait(t, all[i].wait);
		if (!each && all[i].n > 1)
			wp_buf_printf(&t->buf, " (%" PRIu32 ")", all[i].n);
	}
	if (n > NAMED_MAX && !each)
		wp_buf_printf(&t->buf, "; and %zu more", n - NAMED_MAX);
	if (n_known < ngoroutines)
		wp_buf_printf(&t->buf, "; of %" PRIu32 " not known",
			      ngoroutines - n_known);
	wp_buf_char(&t->buf, '\n');
}

int wp_print_goroutine_waits(struct wp_print *t,
			     const struct wp_dump_goroutine *const *group,
			     uint32_t n)
{
	struct same_wait *all;
	uint32_t n_known = 0;
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++) {
		len += group[i]->nwaits;
		n_known += group[i]->nwaits != 0;
	}
	if (!len)
		return 0;
	all = calloc(len, sizeof(*all));
	if (!all)
		return -ENOMEM;
	len = 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < group[i]->nwaits; k++)
			all[len++] = (struct same_wait){
				&t->dump->waits[group[i]->first_wait + k], 1
			};
	put_all(t, all, merge(all, len), n, n_known);
	free(all);
	return 0;
}

int wp_print_goroutine_locks(struct wp_print *t,
			     const struct wp_dump_process *process)
{
	const struct wp_dump_goroutine *v;
	struct same_wait *all;
	size_t n = 0;

	if (!process->ngoroutines)
		return 0;
	v = t->dump->goroutines + process->first_goroutine;
	all = calloc(process->ngoroutines, sizeof(*all));
	if (!all)
		return -ENOMEM;
	/* A lock is no case of a select. */
	for (uint32_t i = 0; i < process->ngoroutines; i++)
		if (v[i].nwaits &&
		    wp_dump_is_lock(t->dump, &t->dump->waits[v[i].first_wait]))
			all[n++] = (struct same_wait){
				&t->dump->waits[v[i].first_wait], 1
			};
	n = n ? merge(all, n) : 0;
	for (size_t i = 0; i < n && i < LOCKS_MAX && all[i].n > 1; i++) {
		wp_buf_printf(&t->buf, "%" PRIu32 " goroutines wait for ",
			      all[i].n);
		put_wait(t, all[i].wait);
		wp_buf_str(&t->buf, "; Go does not note by whom\n");
	}
	free(all);
	return 0;
}
