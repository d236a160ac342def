/* SPDX-License-Identifier: Apache-2.0 */
/* time_ledger.c - see time_ledger.h. */
#include "time_ledger.h"

#include "wallprof/clock.h"

/* The kernel has counted a thread that was on a CPU for this long: its slowest
 * tick is 100 Hz. */
#define COUNTED_NS (10 * WP_NS_PER_MS)

/* Intervals without a CPU sample after which the event is lost. */
enum { SILENT_INTERVALS = 20 };

/* Those that CPU samples may lack by chance, but for one of each CPU. */
enum { CHANCE_INTERVALS = 10 };

static uint64_t pay(uint64_t *owed)
{
	uint64_t all = *owed;

	*owed = 0;
	return all;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void wp_time_ledger_init(struct wp_time_ledger *ledger, uint64_t since_ns,
			 bool born)
{
	*ledger = (struct wp_time_ledger){ .accounted_ns = since_ns,
					   .region_end_ns = since_ns,
					   .has_base = born };
}

void wp_time_ledger_skip(struct wp_time_ledger *ledger, uint64_t now_ns)
{
	if (now_ns > ledger->accounted_ns) {
		ledger->unwatched_ns += now_ns - ledger->accounted_ns;
		ledger->accounted_ns = now_ns;
	}
	if (now_ns > ledger->region_end_ns)
		ledger->region_end_ns = now_ns;
	/* What the next reading tells of run time is before the entry goes on. */
	ledger->run_before_ns = -ledger->run_ns - ledger->run_refused_ns;
	ledger->has_base = ledger->run_is_known = false;
	ledger->was_skipped = true;
	ledger->looks = ledger->still_since_ns = 0;
}

/* By how much VALUE has grown since BEFORE; less than before: another thread has
 * the tid. */
static uint64_t growth(uint64_t value, uint64_t before)
{
	return value < before ? 0 : value - before;
}

/* Take NS, or as much as there is, from what is owed as waiting. */
static uint64_t take(struct wp_time_ledger *ledger, uint64_t ns)
{
	ns = least(ns, ledger->waiting_ns);
	ledger->waiting_ns -= ns;
	return ns;
}

/* The same for time that the kernel tells of.  What was paid as a wait that holds may
 * have been the end of that wait and then a wait for a CPU, in which schedstat stands
 * still as well. */
static uint64_t take_told(struct wp_time_ledger *ledger, uint64_t ns)
{
	uint64_t taken = take(ledger, ns);
	uint64_t paid = least(ns - taken, ledger->same_ns);

	ledger->same_ns -= paid;
	ledger->overpaid_ns += paid;
	return taken + paid;
}

/* Owe TOLD_NS of running time: not what was owed early, and no more than there was,
 * for the kernel may tell of time before the thread was watched. */
static void owe_running(struct wp_time_ledger *ledger, uint64_t told_ns)
{
	uint64_t early = least(told_ns, ledger->running_early_ns), ns;

	ledger->running_early_ns -= early;
	ns = take(ledger, told_ns - early);
	ledger->run_refused_ns += told_ns - early - ns;
	ledger->running_ns += ns;
	ledger->all_running_ns += ns;
}

static void owe_runnable(struct wp_time_ledger *ledger, uint64_t told_ns)
{
	uint64_t early = least(told_ns, ledger->runnable_early_ns), ns;

	ledger->runnable_early_ns -= early;
	ns = take_told(ledger, told_ns - early);
	ledger->still_owed_ns += ns;
	ledger->runnable_ns += ns;
	ledger->all_runnable_ns += ns;
}

/* Owe what NOW tells that was not told before. */
static void owe_told(struct wp_time_ledger *ledger,
		     const struct wp_schedstat *now)
{
	const struct wp_schedstat *base = &ledger->base;
	uint64_t refused_ns = ledger->run_refused_ns;

	owe_running(ledger, growth(now->run_ns, base->run_ns));
	ledger->run_refused_ns -= growth(base->run_ns, now->run_ns);
	/* A thread that executes a program has the tid of the first thread from then
	 * on (execve(2)), and brings its own books, of more or of less: what it ran
	 * and waited for a CPU before is not of this tid. */
	if (ledger->run_refused_ns - refused_ns <= COUNTED_NS)
		owe_runnable(ledger, growth(now->wait_ns, base->wait_ns));
}

/* Owe the time up to NOW_NS as waiting.  It may have been accounted for up to a
 * later time. */
static void pass(struct wp_time_ledger *ledger, uint64_t now_ns)
{
	uint64_t ns = growth(now_ns, ledger->accounted_ns);

	ledger->accounted_ns += ns;
	ledger->all_ns += ns;
	ledger->waiting_ns += ns;
}

void wp_time_ledger_read(struct wp_time_ledger *ledger,
			 const struct wp_schedstat *now, uint64_t now_ns)
{
	bool moved = !ledger->has_base || wp_time_ledger_has_run(ledger, now);
	uint64_t waiting_ns = ledger->waiting_ns;

	pass(ledger, now_ns);
	if (ledger->has_base)
		owe_told(ledger, now);
	if (moved) {
		ledger->still_since_ns = ledger->ready ? ledger->accounted_ns :
							 0;
		ledger->untold_ns = ledger->still_owed_ns = 0;
	}
	ledger->untold_ns += growth(ledger->waiting_ns, waiting_ns);
	ledger->base = *now;
	ledger->has_base = true;
}

static void begin_region(struct wp_time_ledger *ledger, uint64_t end_ns)
{
	ledger->region_ns = growth(end_ns, ledger->region_end_ns);
	ledger->region_end_ns += ledger->region_ns;
}

/* Owe as running what is owed as waiting. */
static void owe_rest(struct wp_time_ledger *ledger)
{
	uint64_t ns = take(ledger, UINT64_MAX);

	ledger->running_ns += ns;
	ledger->all_running_ns += ns;
}

/* Ready at two looks, without having run between them for longer than the kernel
 * needs to count: it waited for a CPU. */
static void owe_standstill(struct wp_time_ledger *ledger)
{
	uint64_t ns;

	if (!wp_time_ledger_waits_for_cpu(ledger))
		return;
	/* A thread that is moved to another CPU's queue is told of at once. */
	ns = take(ledger, growth(ledger->accounted_ns - ledger->still_since_ns,
				 ledger->still_owed_ns));
	ledger->still_owed_ns += ns;
	ledger->runnable_ns += ns;
	ledger->runnable_early_ns += ns;
	ledger->all_runnable_ns += ns;
}

/* A first look at a thread that was born since the last tick: all the time goes to
 * what that found, for it is not known how long the thread was there, and those that
 * end before a second look stand for others that no look meets. */
static void owe_first(struct wp_time_ledger *ledger)
{
	ledger->first_ns = ledger->waiting_ns;
	owe_rest(ledger);
	ledger->running_early_ns += ledger->first_ns;
}

void wp_time_ledger_look(struct wp_time_ledger *ledger,
			 const struct wp_schedstat *now, uint64_t now_ns,
			 uint64_t region_end_ns, bool ready)
{
	bool is_first = !ledger->looks && ledger->has_base;

	ledger->looks++;
	ledger->first_ns = 0;
	begin_region(ledger, region_end_ns);
	wp_time_ledger_read(ledger, now, now_ns);
	if (!ready) {
		wp_time_ledger_found_waiting(ledger);
		return;
	}
	if (is_first)
		owe_first(ledger);
	ledger->ready = true;
	if (ledger->still_since_ns) {
		owe_standstill(ledger);
	} else {
		ledger->still_since_ns = ledger->accounted_ns;
		ledger->still_owed_ns = 0;
	}
}

void wp_time_ledger_found_waiting(struct wp_time_ledger *ledger)
{
	uint64_t first_ns = least(ledger->first_ns, ledger->running_ns);

	ledger->ready = false;
	ledger->same_ns = 0;
	ledger->still_since_ns = ledger->untold_ns = 0;
	ledger->first_ns = 0;
	ledger->running_ns -= first_ns;
	ledger->all_running_ns -= first_ns;
	ledger->running_early_ns -= least(ledger->running_early_ns, first_ns);
	ledger->waiting_ns += first_ns;
}

void wp_time_ledger_look_blind(struct wp_time_ledger *ledger, uint64_t now_ns,
			       uint64_t region_end_ns, bool ready)
{
	begin_region(ledger, region_end_ns);
	/* All of the region: where in it the look fell was left to chance. */
	pass(ledger, region_end_ns > now_ns ? region_end_ns : now_ns);
	ledger->ready = ready;
	if (ready)
		owe_rest(ledger);
}

uint64_t wp_time_ledger_pay_same(struct wp_time_ledger *ledger, uint64_t now_ns,
				 uint64_t region_end_ns, uint64_t *ret_left_ns,
				 uint64_t *ret_weight_ns)
{
	uint64_t ns = growth(now_ns, ledger->accounted_ns);

	*ret_left_ns = growth(ledger->region_end_ns, ledger->accounted_ns);
	begin_region(ledger, region_end_ns);
	ledger->accounted_ns += ns;
	ledger->all_ns += ns;
	ledger->same_ns += ns;
	*ret_weight_ns = growth(ledger->region_end_ns, ledger->accounted_ns);
	return ns;
}

uint64_t wp_time_ledger_take_back(struct wp_time_ledger *ledger)
{
	return pay(&ledger->overpaid_ns);
}

uint64_t wp_time_ledger_pay_wait(struct wp_time_ledger *ledger)
{
	return take(ledger, UINT64_MAX);
}

bool wp_time_ledger_waits_for_cpu(const struct wp_time_ledger *ledger)
{
	return ledger->still_since_ns &&
	       ledger->accounted_ns - ledger->still_since_ns >= COUNTED_NS;
}

uint64_t wp_time_ledger_pay_running(struct wp_time_ledger *ledger,
				    uint64_t keep_ns)
{
	uint64_t ns = ledger->running_ns > keep_ns ?
			      ledger->running_ns - keep_ns :
			      ledger->running_ns;

	ledger->running_ns -= ns;
	return ns;
}

uint64_t wp_time_ledger_pay_runnable(struct wp_time_ledger *ledger)
{
	return pay(&ledger->runnable_ns);
}

void wp_time_ledger_owe_look(struct wp_time_ledger *ledger, uint64_t weight_ns)
{
	ledger->count++;
	ledger->weight_ns += weight_ns;
}

struct wp_payment wp_time_ledger_pay_looks(struct wp_time_ledger *ledger)
{
	return (struct wp_payment){ pay(&ledger->count),
				    pay(&ledger->weight_ns) };
}

/* How much of NS, in which it was ready, it ran, as its time before was: all where
 * nothing is told. */
static uint64_t running_part(const struct wp_time_ledger *ledger, uint64_t ns)
{
	uint64_t ready_ns = ledger->all_running_ns + ledger->all_runnable_ns;

	return ready_ns ?
		       (uint64_t)((double)ns * (double)ledger->all_running_ns /
				  (double)ready_ns) :
		       ns;
}

/* What the kernel has not told of a thread that is ready to run, at most its last
 * gap between looks, is shared out as the time before was; but no more of it is
 * called running or runnable than can be untold of a thread that has waited.
 * Returns how much of it is running. */
static uint64_t owe_untold(struct wp_time_ledger *ledger)
{
	uint64_t ready_ns = ledger->all_running_ns + ledger->all_runnable_ns;
	uint64_t untold_ns = least(ledger->untold_ns, ledger->waiting_ns);
	uint64_t waited_ns = growth(ledger->all_ns, ready_ns + untold_ns);
	uint64_t ns = untold_ns, running_ns;

	if (waited_ns && untold_ns > COUNTED_NS)
		ns = COUNTED_NS;
	if (ready_ns)
		ns = (uint64_t)((double)ns * (double)ready_ns /
				(double)(ready_ns + waited_ns));
	running_ns = running_part(ledger, ns);
	ns = take(ledger, ns);
	/* It would have told of more by now. */
	running_ns = least(running_ns, least(ns, COUNTED_NS));
	ledger->running_ns += running_ns;
	ledger->runnable_ns += ns - running_ns;
	return running_ns;
}

uint64_t wp_time_ledger_close(struct wp_time_ledger *ledger, bool ended)
{
	uint64_t ns = ended ? growth(ledger->region_end_ns,
				     ledger->accounted_ns) :
			      0;

	pass(ledger, ledger->accounted_ns + ns);
	if (!ledger->ready)
		return 0;
	ns = take(ledger, ns);
	ledger->running_ns += running_part(ledger, ns);
	ledger->runnable_ns += ns - running_part(ledger, ns);
	return owe_untold(ledger);
}

bool wp_time_ledger_was_held_up(const struct wp_time_ledger *ledger,
				uint64_t ns, uint64_t stopped_ns,
				uint64_t nwaiting)
{
	double due = (double)ns * (double)ledger->looks;

	/* Not told at the begin and at the end; or it has a chance of less than about
	 * exp(-5) that so few looks meet a wait of that length (Chernoff's bound). */
	return ns <= stopped_ns + 2 * COUNTED_NS ||
	       due > (5 + 3 * (double)nwaiting) * (double)ledger->all_ns;
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
	ledger->sampled_ns += period_ns;
	ledger->unsampled_ns -= (int64_t)period_ns;
	ledger->silent_ns = 0;
}

uint64_t wp_time_ledger_unsampled(const struct wp_time_ledger *ledger,
				  uint64_t interval_ns, size_t ncpus)
{
	uint64_t chance_ns = ledger->backlog_ns ?
				     0 :
				     ledger->sampled_ns / 10 +
					     (CHANCE_INTERVALS + ncpus) *
						     interval_ns;

	return ledger->unsampled_ns > (int64_t)chance_ns ?
		       (uint64_t)ledger->unsampled_ns :
		       0;
}

uint64_t wp_time_ledger_stop_unsampled(struct wp_time_ledger *ledger,
				       uint64_t ns, uint64_t interval_ns)
{
	bool is_first = !ledger->backlog_ns;
	int64_t since_ns = ledger->since_stop_ns;

	ledger->since_stop_ns = 0;
	if (is_first)
		ledger->backlog_ns = ns;
	return is_first || since_ns < (int64_t)interval_ns ? interval_ns :
							     (uint64_t)since_ns;
}

void wp_time_ledger_owe_unsampled(struct wp_time_ledger *ledger, uint64_t ns)
{
	if (!ledger->backlog_ns)
		ledger->backlog_ns = ns;
	ledger->cpu_count++;
	ledger->cpu_ns += ns;
	ledger->unsampled_ns -= (int64_t)ns;
}

bool wp_time_ledger_is_silent(const struct wp_time_ledger *ledger,
			      uint64_t interval_ns)
{
	return ledger->silent_ns > (int64_t)(SILENT_INTERVALS * interval_ns);
}

struct wp_payment wp_time_ledger_pay_cpu(struct wp_time_ledger *ledger)
{
	return (struct wp_payment){ pay(&ledger->cpu_count),
				    pay(&ledger->cpu_ns) };
}

void wp_time_ledger_set_aside(struct wp_time_ledger *ledger,
			      enum wp_aside_kind kind)
{
	struct wp_time_aside *aside = &ledger->aside[kind];

	aside->running_ns += wp_time_ledger_pay_running(ledger, 1);
	aside->runnable_ns += pay(&ledger->runnable_ns);
	aside->count += pay(&ledger->count);
	aside->weight_ns += pay(&ledger->weight_ns);
	aside->cpu_count += pay(&ledger->cpu_count);
	aside->cpu_ns += pay(&ledger->cpu_ns);
}

void wp_time_ledger_take_aside(struct wp_time_ledger *ledger,
			       enum wp_aside_kind kind)
{
	struct wp_time_aside *aside = &ledger->aside[kind];

	ledger->running_ns += aside->running_ns;
	ledger->runnable_ns += aside->runnable_ns;
	ledger->count += aside->count;
	ledger->weight_ns += aside->weight_ns;
	ledger->cpu_count += aside->cpu_count;
	ledger->cpu_ns += aside->cpu_ns;
	*aside = (struct wp_time_aside){ 0 };
}

void wp_time_ledger_owe_lock(struct wp_time_ledger *ledger, uint64_t count,
			     uint64_t ns)
{
	ledger->lock_count += count;
	ledger->lock_ns += ns;
}

struct wp_payment wp_time_ledger_pay_lock(struct wp_time_ledger *ledger)
{
	return (struct wp_payment){ pay(&ledger->lock_count),
				    pay(&ledger->lock_ns) };
}

uint64_t wp_time_ledger_count_run(struct wp_time_ledger *ledger,
				  const struct wp_schedstat *now,
				  bool from_birth, uint64_t *ret_slices)
{
	uint64_t run_ns, more_ns;

	from_birth &= !ledger->was_skipped;
	if (!ledger->run_is_known) {
		ledger->run_before_ns += from_birth ? 0 : now->run_ns;
		ledger->slices = from_birth ? 0 : now->slices;
	}
	ledger->run_is_known = true;
	*ret_slices = growth(now->slices, ledger->slices);
	ledger->slices = now->slices;
	run_ns = now->run_ns - ledger->run_before_ns - ledger->run_refused_ns;
	if (run_ns > INT64_MAX)
		run_ns = 0;
	more_ns = run_ns - ledger->run_ns;
	ledger->silent_ns += (int64_t)more_ns;
	wp_time_ledger_add_run(ledger, more_ns);
	return more_ns;
}

void wp_time_ledger_add_run(struct wp_time_ledger *ledger, uint64_t ns)
{
	ledger->run_ns += ns;
	ledger->unsampled_ns += (int64_t)ns;
	ledger->since_stop_ns += (int64_t)ns;
}
