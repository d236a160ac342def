/* SPDX-License-Identifier: Apache-2.0 */
/* stop_held.c - see stop_held.h. */
#include "stop_held.h"

#include <stdlib.h>

#include "sampler_loop.h"
#include "target.h"
#include "thread.h"
#include "wallprof/vec.h"

#define BYTES_MAX ((size_t)64 << 20)

/* Keep T and its WINDOW for later, with the loop's stack copy.  False: there is no room. */
static bool keep(struct wp_stops_held *held, struct wp_thread *t,
		 const struct wp_stop_window *window)
{
	const struct wp_stack_copy *copy = &t->target->loop->copy;
	size_t len = wp_stack_copy_size(copy);

	if (len > BYTES_MAX - held->len ||
	    WP_VEC_ROOM(held->v, held->n, held->cap, 1) ||
	    WP_VEC_ROOM(held->bytes, held->len, held->cap_bytes, len))
		return false;
	wp_stack_copy_save(copy, held->bytes + held->len);
	held->v[held->n++] = (struct wp_stop_held){
		.thread = t, .window = *window, .copy = *copy, .off = held->len
	};
	held->len += len;
	return true;
}

static int take(struct wp_stops_held *held, struct wp_tracee *tracee)
{
	struct wp_thread *t = wp_stop_window_thread(tracee);
	struct wp_stop_window window;
	int rc = wp_stop_window_read_held(tracee, &window);

	if (rc <= 0)
		return rc;
	return wp_stop_window_is_walked(t, &window) || !keep(held, t, &window) ?
		       wp_stop_window_finish(t, &window) :
		       0;
}

int wp_stops_held_take(struct wp_sampler *loop)
{
	struct wp_stops_held *held = &loop->held;
	struct wp_tracer *tracer = loop->tracer;
	int rc = 0;

	held->n = held->len = 0;
	for (size_t i = tracer->len; i-- > 0 && !rc;)
		if (tracer->v[i].stopped)
			rc = take(held, &tracer->v[i]);
	for (size_t i = 0; i < held->n && !rc; i++) {
		struct wp_stop_held *one = &held->v[i];

		wp_stack_copy_restore(&loop->copy, &one->copy,
				      held->bytes + one->off);
		rc = wp_stop_window_finish(one->thread, &one->window);
	}
	return rc;
}

void wp_stops_held_clear(struct wp_stops_held *held)
{
	free(held->v);
	free(held->bytes);
	*held = (struct wp_stops_held){ 0 };
}
