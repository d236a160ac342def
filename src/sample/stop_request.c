/* SPDX-License-Identifier: Apache-2.0 */
/* stop_request.c - see stop_request.h. */
#include "stop_request.h"

#include <stdlib.h>

#include "sampler_loop.h"
#include "target.h"
#include "thread.h"
#include "wallprof/vec.h"

int wp_stop_requests_reserve(struct wp_stop_requests *list, size_t n)
{
	return n > list->n ?
		       WP_VEC_ROOM(list->v, list->n, list->cap, n - list->n) :
		       0;
}

void wp_stop_requests_clear(struct wp_stop_requests *list)
{
	free(list->v);
	*list = (struct wp_stop_requests){ 0 };
}

bool wp_stop_request_exists(const struct wp_thread *t)
{
	return t->stop.listed || t->stop.pending;
}

static void add(struct wp_thread *t, const struct wp_stop_request *request)
{
	struct wp_stop_requests *list = &t->target->stop_requests;

	t->stop = *request;
	t->stop.listed = true;
	t->stop.tick_ns = t->target->loop->tick_ns;
	list->v[list->n++] = t;
}

void wp_stop_request_stack(struct wp_thread *t, uint64_t slices,
			   uint64_t weight_ns)
{
	const struct wp_stop_request request = { .weight_ns = weight_ns,
						 .slices = slices,
						 .sleeps = UINT64_MAX };

	add(t, &request);
}

void wp_stop_request_registers(struct wp_thread *t,
			       const struct wp_stop_request *sample)
{
	add(t, sample);
	t->stop.for_registers = true;
}

struct wp_thread *wp_stop_requests_take(struct wp_stop_requests *list, size_t i)
{
	struct wp_thread *t = list->v[i];

	list->v[i] = list->v[--list->n];
	t->stop.listed = false;
	return t;
}

void wp_stop_request_sent(struct wp_thread *t, uint64_t slices)
{
	t->stop.pending = true;
	t->target->stop_requests.npending++;
	t->stop.slices = slices;
}

void wp_stop_request_done(struct wp_thread *t)
{
	t->target->stop_requests.npending -= t->stop.pending;
	t->stop.pending = false;
}
