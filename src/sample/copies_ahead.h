/* SPDX-License-Identifier: Apache-2.0 */
/* copies_ahead.h - stacks of threads that wait, copied before these are looked at.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * To copy one stack by a system call takes 1.8 us, most of it to find the process and
 * to see whether it may be read; where one call copies sixteen, each takes 0.65 us.
 * A thread's look finds out whether it has moved since the record that the copy was
 * made by, as it does with a copy of its own.
 */
#ifndef WP_COPIES_AHEAD_H
#define WP_COPIES_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/task_record.h"

struct wp_thread;

enum { WP_COPIES_AHEAD = 16 };

struct wp_copy_ahead {
	/* Of whose stack; borrowed from the tick's scan. */
	const struct wp_task_record *record;
	/* 0: it could not be read. */
	size_t len;
};

struct wp_copies_ahead {
	/* Reserved memory, owned: WP_STACK_COPY_SHORT bytes for each. */
	uint8_t *buf;
	/* v[next..n) are of threads that have not been looked at. */
	struct wp_copy_ahead v[WP_COPIES_AHEAD];
	size_t n, next;
	/* Records of the scan that were gone through. */
	size_t seen;
};

/* 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_copies_ahead_init(struct wp_copies_ahead *ahead);
void wp_copies_ahead_clear(struct wp_copies_ahead *ahead);

/* The tick's records are given back. */
static inline void wp_copies_ahead_forget(struct wp_copies_ahead *ahead)
{
	ahead->n = ahead->next = ahead->seen = 0;
}

/* *RET_DATA[0..*RET_LEN) is the stack of T, from WP_RED_ZONE below its sp on.  T is
 * looked at by RECORD, the scan's last one asked for; the stack is copied now, with
 * those of threads whose records follow, or was with one before.  Borrowed until the
 * next call.  False: T's is to be copied alone. */
bool wp_copies_ahead_take(struct wp_thread *t,
			  const struct wp_task_record *record, size_t *ret_len,
			  const uint8_t **ret_data);

#endif
