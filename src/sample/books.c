/* SPDX-License-Identifier: Apache-2.0 */
/* books.c - see books.h. */
#include "books.h"

#include "goroutine_times.h"
#include "sampler_loop.h"
#include "target.h"
#include "thread.h"
#include "wallprof/clock.h"

void wp_books_add_cpu(struct wp_thread *t, uint64_t ns)
{
	struct wp_target *target = t->target;

	if (target->goroutines)
		target->goroutines->cpu_ns += ns;
	else
		target->profile->threads[t->index].cpu_ns += ns;
}

void wp_books_add_sample(struct wp_thread *t, uint64_t time_ns,
			 uint64_t period_ns)
{
	if (time_ns <= t->time.told_ns)
		return;
	wp_books_add_cpu(t, period_ns);
	wp_time_ledger_add_run(&t->time, period_ns);
	t->time.guessed_ns += period_ns;
}

void wp_books_close(struct wp_thread *t, bool ended)
{
	struct wp_time_ledger *ledger = &t->time;
	uint64_t before_ns = ledger->running_ns;
	uint64_t ns = wp_time_ledger_close(ledger, ended);

	if (ended && ledger->ready && t->target->samples_threads &&
	    t->target->loop->schedstat_works)
		ns = ledger->running_ns - before_ns - ledger->guessed_ns;
	wp_books_add_cpu(t, ns);
}

/* Add T's run time, by schedstat NOW, which was read at TIME_NS, to its entry in the
 * profile. */
static void count_run(struct wp_thread *t, const struct wp_schedstat *now,
		      uint64_t time_ns)
{
	struct wp_target *target = t->target;
	uint64_t slices;

	t->time.told_ns = time_ns;
	t->time.guessed_ns = 0;
	/* CPU samples may have told more. */
	wp_books_add_cpu(t, wp_time_ledger_count_run(
				    &t->time, now, target->tick > 1, &slices));
	target->switches += slices;
}

/* Up to when the books are kept of what is read at TIME_NS: at the end to the last
 * tick, all of them. */
static uint64_t keep_until(const struct wp_sampler *loop, uint64_t time_ns)
{
	return loop->finishing ? loop->tick_ns : time_ns;
}

/* Take back what was paid too much to the wait that held last. */
static void take_back(struct wp_thread *t)
{
	uint64_t ns = wp_time_ledger_take_back(&t->time);

	if (ns && !t->target->goroutines)
		wp_profile_take_back(t->target->profile,
				     t->target->loop->options.wall_kind,
				     t->wait.look_sample, ns);
}

void wp_books_look(struct wp_thread *t, const struct wp_schedstat *now,
		   uint64_t time_ns, bool ready)
{
	const struct wp_sampler *loop = t->target->loop;

	if (!loop->schedstat_works) {
		wp_time_ledger_look_blind(&t->time, loop->tick_ns,
					  loop->region_end_ns, ready);
		return;
	}
	wp_time_ledger_look(&t->time, now, keep_until(loop, time_ns),
			    loop->region_end_ns, ready);
	count_run(t, now, time_ns);
	take_back(t);
}

void wp_books_read(struct wp_thread *t, const struct wp_schedstat *now,
		   uint64_t time_ns)
{
	if (!t->target->loop->schedstat_works)
		return;
	wp_time_ledger_read(&t->time, now,
			    keep_until(t->target->loop, time_ns));
	count_run(t, now, time_ns);
	take_back(t);
}

void wp_books_count(struct wp_thread *t, const struct wp_schedstat *now)
{
	if (!t->target->loop->schedstat_works)
		return;
	/* They are now those of a thread that has executed a program and had run less. */
	if (t->time.run_is_known && now->run_ns < t->time.base.run_ns)
		t->time.run_refused_ns -= t->time.base.run_ns - now->run_ns;
	count_run(t, now, wp_clock_ns());
	t->time.base = *now;
}
