/* SPDX-License-Identifier: Apache-2.0 */
/* print_waiters.c - threads that wait for one futex whose holder is not known. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "print.h"

/* Does THREAD wait for a lock, or what may be one, that tells no holder? */
static bool is_waiter(const struct wp_dump_thread *thread)
{
	return thread->state == WP_STATE_WAITING && !thread->moved &&
	       (thread->wait == WP_WAIT_LOCK ||
		thread->wait == WP_WAIT_FUTEX) &&
	       thread->lock.holder == WP_HOLDER_NOT_RECORDED &&
	       thread->lock.avma && thread->lock.kind != WP_LOCK_FILE;
}

static bool same_futex(const struct wp_dump_thread *a,
		       const struct wp_dump_thread *b)
{
	return a->process == b->process && a->lock.avma == b->lock.avma;
}

/* By process and address, then in the order of the dump. */
static int compare(const void *a, const void *b, void *ctx)
{
	const struct wp_dump *dump = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct wp_dump_thread *x = &dump->threads[i];
	const struct wp_dump_thread *y = &dump->threads[k];

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->lock.avma != y->lock.avma)
		return x->lock.avma < y->lock.avma ? -1 : 1;
	return (i > k) - (i < k);
}

static void put_waiters(struct wp_print *t, const struct wp_dump_thread *first,
			uint32_t n)
{
	wp_buf_printf(&t->buf,
		      "WAITERS: %" PRIu32 " threads wait for %s 0x%" PRIx64, n,
		      wp_lock_kind_name(first->lock.kind), first->lock.avma);
	wp_print_variable(t, first);
	wp_buf_str(&t->buf, ", holder not recorded");
	wp_print_site(t, ", ", &first->stack);
	wp_buf_char(&t->buf, '\n');
}

int wp_print_waiters(struct wp_print *t)
{
	const struct wp_dump *dump = t->dump;
	uint32_t *waiters = calloc((size_t)dump->nthreads + 1,
				   sizeof(*waiters));
	uint32_t n = 0;
	bool any = false;

	if (!waiters)
		return -ENOMEM;
	for (uint32_t i = 0; i < dump->nthreads; i++)
		if (is_waiter(&dump->threads[i]))
			waiters[n++] = i;
	qsort_r(waiters, n, sizeof(*waiters), compare, (void *)dump);
	for (uint32_t i = 0, end; i < n; i = end) {
		const struct wp_dump_thread *first = &dump->threads[waiters[i]];

		for (end = i + 1; end < n; end++)
			if (!same_futex(first, &dump->threads[waiters[end]]))
				break;
		if (end - i < 2)
			continue;
		if (!any)
			wp_print_gap(t);
		any = true;
		put_waiters(t, first, end - i);
	}
	free(waiters);
	return 0;
}
