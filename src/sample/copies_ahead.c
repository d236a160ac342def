/* SPDX-License-Identifier: Apache-2.0 */
/* copies_ahead.c - see copies_ahead.h. */
#include "copies_ahead.h"

#include <errno.h>

#include "sampler_loop.h"
#include "target.h"
#include "threads.h"
#include "wallprof/pages.h"

enum {
	/* Records that are gone through for threads to copy the stacks of. */
	SEEN_MAX = 2 * WP_COPIES_AHEAD,
	SIZE = WP_COPIES_AHEAD * WP_STACK_COPY_SHORT,
};

int wp_copies_ahead_init(struct wp_copies_ahead *ahead)
{
	*ahead = (struct wp_copies_ahead){ .buf = wp_pages_new(SIZE) };
	return ahead->buf ? 0 : -ENOMEM;
}

void wp_copies_ahead_clear(struct wp_copies_ahead *ahead)
{
	wp_pages_free(ahead->buf, SIZE);
	*ahead = (struct wp_copies_ahead){ 0 };
}

/* Will a look at T by its RECORD copy a short piece of its stack? */
static bool is_short_wait(const struct wp_thread *t,
			  const struct wp_task_record *record)
{
	const struct wp_schedstat then = wp_bpf_scan_times(record);

	return t->watched && record->state_char && record->state_char != 't' &&
	       record->regs[WP_REG_SP] &&
	       t->copy_len_waiting == WP_STACK_COPY_SHORT &&
	       (!t->wait.waiting || wp_time_ledger_has_run(&t->time, &then));
}

static void add(struct wp_copies_ahead *ahead, struct wp_process_range *range,
		const struct wp_task_record *record, size_t page)
{
	const uint64_t start_avma = record->regs[WP_REG_SP] - WP_RED_ZONE;

	*range = (struct wp_process_range){
		.avma = start_avma,
		.buf = ahead->buf + ahead->n * WP_STACK_COPY_SHORT,
		.len = wp_stack_copy_short(start_avma, page),
	};
	ahead->v[ahead->n++] = (struct wp_copy_ahead){ record, range->len };
}

/* Copy the stacks of threads of TARGET by their records, from the last one that was
 * asked for on. */
static void fill(struct wp_copies_ahead *ahead, const struct wp_target *target)
{
	const struct wp_bpf_scan *scan = &target->loop->scan;
	struct wp_process_range ranges[WP_COPIES_AHEAD];
	size_t at = scan->next - 1, most = at + SEEN_MAX;
	size_t i = wp_threads_place(target, scan->v[at]->tid);

	ahead->n = ahead->next = 0;
	for (; at < scan->n && at < most && ahead->n < WP_COPIES_AHEAD; at++) {
		const struct wp_task_record *record = scan->v[at];

		if (record->pid != target->process->pid)
			break;
		while (i < target->nthreads &&
		       target->threads[i]->tid < record->tid)
			i++;
		if (i < target->nthreads &&
		    target->threads[i]->tid == record->tid &&
		    is_short_wait(target->threads[i], record))
			add(ahead, &ranges[ahead->n], record,
			    target->loop->copy.page);
	}
	ahead->seen = at;
	/* One alone costs no less this way. */
	if (ahead->n < 2 ||
	    wp_process_read_ranges(target->process, ranges, ahead->n)) {
		ahead->n = 0;
		return;
	}
	for (size_t k = 0; k < ahead->n; k++)
		if (!ranges[k].is_read)
			ahead->v[k].len = 0;
}

bool wp_copies_ahead_take(struct wp_thread *t,
			  const struct wp_task_record *record, size_t *ret_len,
			  const uint8_t **ret_data)
{
	struct wp_copies_ahead *ahead = &t->target->loop->ahead;
	const struct wp_bpf_scan *scan = &t->target->loop->scan;
	size_t i = ahead->next;

	if (t->copy_len_waiting != WP_STACK_COPY_SHORT || !scan->next ||
	    scan->v[scan->next - 1] != record)
		return false;
	/* Threads before it were not looked at, or not by their records. */
	while (i < ahead->n && ahead->v[i].record != record)
		i++;
	if (i == ahead->n) {
		/* RECORD itself may have been gone through. */
		if (scan->next <= ahead->seen)
			return false;
		fill(ahead, t->target);
		i = 0;
		if (!ahead->n || ahead->v[0].record != record)
			return false;
	}
	ahead->next = i + 1;
	*ret_len = ahead->v[i].len;
	*ret_data = ahead->buf + i * WP_STACK_COPY_SHORT;
	return *ret_len > 0;
}
