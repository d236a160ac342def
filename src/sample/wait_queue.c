/* SPDX-License-Identifier: Apache-2.0 */
/* wait_queue.c - see wait_queue.h. */
#include "wait_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "target.h"
#include "thread.h"
#include "wallprof/vec.h"

int wp_wait_queue_reserve(struct wp_wait_queue *queue, size_t n)
{
	return n > queue->n ? WP_VEC_ROOM(queue->v, queue->n, queue->cap,
					  n - queue->n) :
			      0;
}

void wp_wait_queue_clear(struct wp_wait_queue *queue)
{
	free(queue->v);
	*queue = (struct wp_wait_queue){ 0 };
}

int wp_wait_queue_add(struct wp_thread *t, const struct wp_thread_facts *facts,
		      uint32_t stack, uint64_t weight_ns)
{
	struct wp_wait_queue *queue = &t->target->wait_queue;
	struct wp_thread_state state;

	if (stack == UINT32_MAX || queue->n == queue->cap)
		return -ENOMEM;
	state = wp_wait_state_begin(&t->wait, facts);
	queue->v[queue->n++] = (struct wp_queued_wait){
		.thread = t,
		.key = { .stack = stack,
			 .thread = t->index,
			 .state = (uint8_t)state.state,
			 .wait = (uint8_t)state.wait },
		.wall_ns = wp_time_ledger_pay_wait(&t->time),
		.weight_ns = weight_ns,
		.by_chance = weight_ns > 0,
		.facts = *facts,
	};
	return 0;
}
