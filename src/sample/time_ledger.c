/* SPDX-License-Identifier: Apache-2.0 */
/* time_ledger.c - see time_ledger.h. */
#include "time_ledger.h"

#include "wallprof/clock.h"

/* The kernel has counted a thread that was on a CPU for this long: its slowest
 * tick is 100 Hz. */
#define COUNTED_NS (10 * WP_NS_PER_MS)

/* Intervals without a CPU sample after which the event is lost. */
enum { SILENT_INTERVALS = 20 };

void wp_time_ledger_init(struct wp_time_ledger *ledger, uint64_t since_ns)
{
	*ledger = (struct wp_time_ledger){ .accounted_ns = since_ns };
}

void wp_time_ledger_skip(struct wp_time_ledger *ledger, uint64_t now_ns)
{
	ledger->unwatched_ns += wp_time_ledger_pay_wait(ledger, now_ns);
}

void wp_time_ledger_skip_running(struct wp_time_ledger *ledger,
				 const struct wp_schedstat *now,
				 uint64_t now_ns)
{
	ledger->accounted_ns = now_ns;
	ledger->base = ledger->divided = *now;
}

bool wp_time_ledger_waits_for_cpu(const struct wp_time_ledger *ledger,
				  const struct wp_schedstat *now,
				  uint64_t now_ns)
{
	return !wp_time_ledger_has_run(ledger, now) &&
	       now_ns - ledger->base_ns >= COUNTED_NS;
}

void wp_time_ledger_end_sample(struct wp_time_ledger *ledger,
			       const struct wp_schedstat *now, uint64_t now_ns)
{
	ledger->base = *now;
	ledger->base_ns = now_ns;
}

uint64_t wp_time_ledger_pay_wait(struct wp_time_ledger *ledger, uint64_t now_ns)
{
	uint64_t ns = 0;

	/* A thread found late may have been accounted for up to a later time. */
	if (now_ns > ledger->accounted_ns) {
		ns = now_ns - ledger->accounted_ns;
		ledger->accounted_ns = now_ns;
	}
	return ns;
}

/* How much of NS since the last division the thread was on a CPU. */
static uint64_t divide(struct wp_time_ledger *ledger,
		       const struct wp_schedstat *now, uint64_t ns)
{
	const struct wp_schedstat *then = &ledger->divided;
	/* Less than before: another thread has the tid. */
	uint64_t run = now->run_ns < then->run_ns ? 0 :
						    now->run_ns - then->run_ns;
	uint64_t wait = now->wait_ns < then->wait_ns ?
				0 :
				now->wait_ns - then->wait_ns;
	double share;

	/* The kernel counts a wait for a CPU when it ends. */
	wait -= wait < ledger->called_runnable_ns ? wait :
						    ledger->called_runnable_ns;
	ledger->divided = *now;
	ledger->called_runnable_ns = 0;
	/* Both may be 0 still: the kernel counts time on a CPU at its ticks. */
	if (!run && !wait)
		return ns;
	share = (double)run / ((double)run + (double)wait);
	run = (uint64_t)((double)ns * share);
	return run < ns ? run : ns;
}

static void decide(struct wp_time_ledger *ledger,
		   const struct wp_schedstat *now)
{
	uint64_t ns = ledger->undecided_ns, running_ns;

	if (!ns)
		return;
	running_ns = divide(ledger, now, ns);
	ledger->running_ns += running_ns;
	ledger->runnable_ns += ns - running_ns;
	ledger->undecided_ns = 0;
}

void wp_time_ledger_found_waiting(struct wp_time_ledger *ledger,
				  const struct wp_schedstat *now)
{
	decide(ledger, now);
	ledger->base = ledger->divided = *now;
	ledger->called_runnable_ns = 0;
}

void wp_time_ledger_owe_ready(struct wp_time_ledger *ledger,
			      const struct wp_schedstat *now, uint64_t now_ns)
{
	ledger->count++;
	ledger->undecided_ns += wp_time_ledger_pay_wait(ledger, now_ns);
	if (wp_time_ledger_has_run(ledger, now)) {
		decide(ledger, now);
		wp_time_ledger_end_sample(ledger, now, now_ns);
	} else if (wp_time_ledger_waits_for_cpu(ledger, now, now_ns)) {
		ledger->called_runnable_ns += ledger->undecided_ns;
		ledger->runnable_ns += ledger->undecided_ns;
		ledger->undecided_ns = 0;
	}
}

void wp_time_ledger_owe_runnable(struct wp_time_ledger *ledger, uint64_t now_ns)
{
	uint64_t ns = wp_time_ledger_pay_wait(ledger, now_ns);

	ledger->called_runnable_ns += ns;
	ledger->runnable_ns += ns;
}

void wp_time_ledger_set_aside(struct wp_time_ledger *ledger,
			      const struct wp_schedstat *now, uint64_t now_ns)
{
	uint64_t ns = wp_time_ledger_pay_wait(ledger, now_ns) +
		      ledger->undecided_ns;
	uint64_t running_ns = divide(ledger, now, ns);

	ledger->undecided_ns = 0;
	wp_time_ledger_end_sample(ledger, now, now_ns);
	ledger->stop_running_ns += running_ns;
	ledger->stop_runnable_ns += ns - running_ns;
}

void wp_time_ledger_set_aside_wait(struct wp_time_ledger *ledger,
				   uint64_t now_ns)
{
	ledger->stop_running_ns += wp_time_ledger_pay_wait(ledger, now_ns);
}

/* What was set aside is owed. */
static void release_aside(struct wp_time_ledger *ledger)
{
	ledger->running_ns += ledger->stop_running_ns;
	ledger->runnable_ns += ledger->stop_runnable_ns;
	ledger->stop_running_ns = ledger->stop_runnable_ns = 0;
}

void wp_time_ledger_owe_stop(struct wp_time_ledger *ledger)
{
	release_aside(ledger);
	ledger->count++;
}

uint64_t wp_time_ledger_pay_stop(struct wp_time_ledger *ledger)
{
	uint64_t ns = ledger->stop_running_ns + ledger->stop_runnable_ns;

	ledger->stop_running_ns = ledger->stop_runnable_ns = 0;
	return ns;
}

static struct wp_payment pay(uint64_t *count, uint64_t *ns)
{
	struct wp_payment payment = { *count, *ns };

	*count = *ns = 0;
	return payment;
}

struct wp_payment wp_time_ledger_pay(struct wp_time_ledger *ledger,
				     enum wp_state state)
{
	ledger->count++;
	release_aside(ledger);
	return pay(&ledger->count, state == WP_STATE_RUNNING ?
					   &ledger->running_ns :
					   &ledger->runnable_ns);
}

struct wp_payments wp_time_ledger_pay_all(struct wp_time_ledger *ledger)
{
	uint64_t none = 0;
	bool ran = ledger->running_ns >= ledger->runnable_ns;
	struct wp_payments all;

	all.running = pay(ran ? &ledger->count : &none, &ledger->running_ns);
	all.runnable = pay(ran ? &none : &ledger->count, &ledger->runnable_ns);
	return all;
}

void wp_time_ledger_owe_rest(struct wp_time_ledger *ledger, uint64_t until_ns)
{
	ledger->runnable_ns += wp_time_ledger_pay_wait(ledger, until_ns);
}

void wp_time_ledger_close(struct wp_time_ledger *ledger)
{
	release_aside(ledger);
	ledger->runnable_ns += ledger->undecided_ns;
	ledger->undecided_ns = 0;
}

bool wp_time_ledger_lost_event(const struct wp_time_ledger *ledger,
			       uint64_t interval_ns)
{
	return ledger->count > SILENT_INTERVALS &&
	       ledger->running_ns > SILENT_INTERVALS * interval_ns;
}

void wp_time_ledger_owe_cpu(struct wp_time_ledger *ledger, uint64_t period_ns)
{
	ledger->cpu_count++;
	ledger->cpu_ns += period_ns;
}

struct wp_payment wp_time_ledger_pay_cpu(struct wp_time_ledger *ledger)
{
	return pay(&ledger->cpu_count, &ledger->cpu_ns);
}

void wp_time_ledger_owe_lock(struct wp_time_ledger *ledger, uint64_t count,
			     uint64_t ns)
{
	ledger->lock_count += count;
	ledger->lock_ns += ns;
}

struct wp_payment wp_time_ledger_pay_lock(struct wp_time_ledger *ledger)
{
	return pay(&ledger->lock_count, &ledger->lock_ns);
}

uint64_t wp_time_ledger_count_run(struct wp_time_ledger *ledger,
				  const struct wp_schedstat *now,
				  bool from_birth, uint64_t *ret_slices)
{
	uint64_t run_ns = 0, more_ns;

	if (!ledger->run_is_known) {
		ledger->run_before_ns += from_birth ? 0 : now->run_ns;
		ledger->slices = from_birth ? 0 : now->slices;
	}
	ledger->run_is_known = true;
	*ret_slices = now->slices - ledger->slices;
	ledger->slices = now->slices;
	if (now->run_ns > ledger->run_before_ns)
		run_ns = now->run_ns - ledger->run_before_ns;
	more_ns = run_ns - ledger->run_ns;
	ledger->run_ns = run_ns;
	return more_ns;
}

void wp_time_ledger_add_run(struct wp_time_ledger *ledger, uint64_t ns)
{
	ledger->run_ns += ns;
}

void wp_time_ledger_begin_entry(struct wp_time_ledger *ledger)
{
	ledger->run_before_ns += ledger->run_ns;
	ledger->run_ns = 0;
}
