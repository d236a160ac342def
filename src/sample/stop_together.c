/* SPDX-License-Identifier: Apache-2.0 */
/* stop_together.c - see stop_together.h. */
#include "stop_together.h"

#include "instant.h"
#include "sampler_loop.h"
#include "stop_guard.h"
#include "stop_held.h"
#include "stop_window.h"
#include "target.h"
#include "wallprof/clock.h"

/* Threads are held until the last has stopped, but not longer. */
#define BOUND_NS (20 * WP_NS_PER_MS)
/* How long the first stops are waited for before other threads are read: one that comes
 * later is noted then, and was not held until it had a CPU. */
#define FIRST_NS (60 * WP_NS_PER_US)
/* Stops are noted so often while other threads are interrupted, and while others are
 * read. */
enum { NOTE_EVERY = 8 };
#define NOTE_NS (100 * WP_NS_PER_US)

static void begin_bill(struct wp_target *target)
{
	const struct wp_tracer *tracer = target->loop->tracer;
	struct wp_stop_together *together = &target->together;
	uint64_t now_ns = wp_clock_ns();

	wp_pause_bill_init(&together->bill,
			   wp_stop_window_credit(target, now_ns), now_ns);
	for (size_t i = 0; i < tracer->len; i++)
		together->bill.nheld += tracer->v[i].stopped;
	together->end_ns = now_ns + BOUND_NS;
}

/* Note the stops that come until UNTIL_NS.  False: the bounds are reached. */
static bool note_stops(struct wp_target *target, uint64_t until_ns)
{
	struct wp_pause_bill *bill = &target->together.bill;
	uint64_t now_ns;

	while (wp_tracer_wait(target->loop->tracer, until_ns)) {
		if (!wp_pause_bill_pay(bill, wp_clock_ns()))
			return false;
		bill->nheld++;
	}
	now_ns = wp_clock_ns();
	target->together.next_ns = now_ns + NOTE_NS;
	return wp_pause_bill_pay(bill, now_ns) &&
	       now_ns < target->together.end_ns;
}

static int interrupt_listed(struct wp_target *target)
{
	const struct wp_stop_requests *list = &target->stop_requests;
	struct wp_thread *t;
	size_t i = 0;
	int rc = 0;

	while (i < list->n && !wp_stop_guard_wants_rest(list->v[i]))
		i++;
	/* Once for all. */
	if (i < list->n)
		wp_stop_guard_rest();
	for (i = 1; list->n && !rc; i++) {
		rc = wp_stop_window_begin_any(target, &t, false);
		/* The first stand still already. */
		if (i % NOTE_EVERY == 0)
			(void)!note_stops(target, 0);
	}
	return rc;
}

int wp_stop_together_begin(struct wp_target *target)
{
	int rc;

	begin_bill(target);
	rc = interrupt_listed(target);
	if (!rc)
		(void)!note_stops(target, wp_clock_ns() + FIRST_NS);
	return rc;
}

int wp_stop_together_go_on(struct wp_target *target)
{
	int rc;

	if (!target->loop->tracer->len ||
	    wp_clock_ns() < target->together.next_ns || note_stops(target, 0) ||
	    target->loop->options.call_memory)
		return 0;
	rc = wp_stops_held_take(target->loop);
	begin_bill(target);
	return rc;
}

static bool is_of_this_tick(const struct wp_target *target,
			    const struct wp_tracee *tracee)
{
	const struct wp_thread *t = wp_stop_window_thread(tracee);

	return t && t->target == target &&
	       t->stop.tick_ns == target->loop->tick_ns;
}

/* Hold the threads of this tick until the last has stopped, or for as long as the
 * bounds let. */
static void hold(struct wp_target *target)
{
	struct wp_tracer *tracer = target->loop->tracer;
	struct wp_stop_together *together = &target->together;
	struct wp_tracee *tracee;
	size_t n = 0;

	for (size_t i = 0; i < tracer->len; i++)
		n += !tracer->v[i].stopped &&
		     is_of_this_tick(target, &tracer->v[i]);
	while (n) {
		uint64_t until_ns = wp_pause_bill_end(&together->bill);

		if (until_ns > together->end_ns)
			until_ns = together->end_ns;
		tracee = wp_tracer_wait(tracer, until_ns);
		if (!tracee ||
		    !wp_pause_bill_pay(&together->bill, wp_clock_ns()))
			break;
		together->bill.nheld++;
		n -= is_of_this_tick(target, tracee);
	}
}

int wp_stop_together_make(struct wp_target *target)
{
	bool dumps = target->loop->options.call_memory;
	int rc;

	if (!target->together.end_ns)
		begin_bill(target);
	rc = interrupt_listed(target);
	/* A dump has those that stop now at the same moment, too. */
	if (dumps)
		begin_bill(target);
	if (!rc)
		hold(target);
	target->together.end_ns = 0;
	if (dumps)
		wp_instant_take(target);
	return rc ? rc : wp_stops_held_take(target->loop);
}
