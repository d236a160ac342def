/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - see record.h. */
#include "record.h"

#include <errno.h>

#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "wait_child.h"
#include "wait_object.h"

static int add_sample(struct wp_thread *t, const struct wp_sample_key *key,
		      uint64_t count, uint64_t wall_ns)
{
	struct wp_profile *profile = t->target->profile;
	struct wp_profile_thread *p = &profile->threads[t->index];

	int rc = wp_profile_add_unwatched(profile, t->index,
					  t->time.unwatched_ns);

	t->time.unwatched_ns = 0;
	if (p->last_ns < t->time.accounted_ns)
		p->last_ns = t->time.accounted_ns;
	return rc ? rc :
		    wp_profile_add_sample_hinted(
			    profile, t->target->loop->options.wall_kind, key,
			    &t->wait.sample, count, wall_ns);
}

int wp_record_wait(const struct wp_queued_wait *wait)
{
	struct wp_thread *t = wait->thread;
	struct wp_sample_key key = wait->key;
	int rc = 0;

	wp_lock_holders_note_wait(t, false, wait->wall_ns);
	if (key.state == WP_STATE_WAITING)
		rc = wp_wait_object_describe(t->target, &key, &wait->facts);
	if (!rc && key.wait == WP_WAIT_CHILD)
		rc = wp_wait_child_describe(t, &key);
	wp_wait_state_set_key(&t->wait, &key);
	wp_timeline_end_interval(&t->target->profile->timeline, t->index);
	if (!rc)
		rc = wp_block_waits_add(t, &key, false, wait->wall_ns);
	if (!rc)
		rc = wp_lock_holders_charge(t, &key);
	return rc ? rc : add_sample(t, &key, 1, wait->wall_ns);
}

int wp_record_unchanged(struct wp_thread *t, uint64_t wall_ns)
{
	struct wp_sample_key *key = &t->wait.key;
	int rc = wp_block_waits_add(t, key, true, wall_ns);

	if (!rc && key->wait == WP_WAIT_CHILD)
		rc = wp_wait_child_confirm(t, key);
	wp_lock_holders_note_wait(t, true, wall_ns);
	t->target->profile->counters.unchanged++;
	return rc ? rc : add_sample(t, key, 1, wall_ns);
}

/* Add PAYMENT to T's sample with STACK in STATE. */
static int add_payment(struct wp_thread *t, uint32_t stack, enum wp_state state,
		       struct wp_payment payment)
{
	const struct wp_sample_key key = { .stack = stack,
					   .thread = t->index,
					   .state = (uint8_t)state };
	int rc = wp_lock_holders_charge(t, &key);

	if (rc || (!payment.count && !payment.ns))
		return rc;
	return add_sample(t, &key, payment.count, payment.ns);
}

static int pay_cpu(struct wp_thread *t, uint32_t stack)
{
	struct wp_payment payment = wp_time_ledger_pay_cpu(&t->time);
	const struct wp_sample_key key = { .stack = stack,
					   .thread = t->index,
					   .state = WP_STATE_RUNNING };

	return payment.count ? wp_profile_add_cpu(t->target->profile, &key,
						  payment.count, payment.ns) :
			       0;
}

int wp_record_running(struct wp_thread *t, uint32_t stack, enum wp_state state)
{
	int rc;

	if (stack == UINT32_MAX)
		return -ENOMEM;
	t->last_running_stack = stack;
	wp_wait_state_distrust(&t->wait);
	rc = pay_cpu(t, stack);
	return rc ? rc :
		    add_payment(t, stack, state,
				wp_time_ledger_pay(&t->time, state));
}

/* Pay all owed time to STACK. */
static int pay_all(struct wp_thread *t, uint32_t stack)
{
	struct wp_payments all;
	int rc;

	if (stack == UINT32_MAX)
		return -ENOMEM;
	all = wp_time_ledger_pay_all(&t->time);
	rc = add_payment(t, stack, WP_STATE_RUNNING, all.running);
	return rc ? rc : add_payment(t, stack, WP_STATE_RUNNABLE, all.runnable);
}

int wp_record_cpu(struct wp_thread *t, uint32_t stack)
{
	/* Without wall-clock samples, CPU samples are all there is. */
	uint64_t count = t->target->wants_running ? t->time.count :
						    t->time.cpu_count;
	int rc = stack == UINT32_MAX ? -ENOMEM : pay_cpu(t, stack);

	if (rc)
		return rc;
	t->last_running_stack = stack;
	t->target->profile->counters.sampled += count;
	return t->time.count ? pay_all(t, stack) : 0;
}

int wp_record_without_stack(struct wp_thread *t, enum wp_stack_end why)
{
	uint32_t stack = wp_stack_walk_intern_none(t->target, why);

	if (stack == UINT32_MAX)
		return -ENOMEM;
	t->target->profile->counters.no_stack++;
	wp_wait_state_distrust(&t->wait);
	wp_time_ledger_owe_stop(&t->time);
	return pay_all(t, stack);
}

int wp_record_end(struct wp_thread *t)
{
	uint32_t stack = t->last_running_stack;
	int rc;

	wp_time_ledger_close(&t->time);
	if (!wp_time_ledger_owes(&t->time))
		return 0;
	if (wp_time_ledger_lost_event(&t->time,
				      t->target->loop->options.interval_ns))
		stack = UINT32_MAX;
	if (stack == UINT32_MAX)
		stack = wp_stack_walk_intern_none(t->target, WP_END_EMPTY);
	rc = pay_all(t, stack);
	return rc ? rc : pay_cpu(t, stack);
}
