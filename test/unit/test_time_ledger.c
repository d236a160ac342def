/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  time_ledger.h: what is paid and what is owed is the time since
 * the thread was first watched, in every order of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "../../src/sample/time_ledger.h"
#include "wallprof/clock.h"

#define MS WP_NS_PER_MS

/* All time that is neither ahead nor paid. */
static uint64_t owed_ns(const struct wp_time_ledger *l)
{
	return l->running_ns + l->runnable_ns + l->undecided_ns +
	       l->stop_running_ns + l->stop_runnable_ns;
}

static const struct wp_schedstat none = { 0, 0, 0 };

static void a_wait_is_paid_once(void **state)
{
	struct wp_time_ledger l;

	(void)state;
	wp_time_ledger_init(&l, 5 * MS);
	assert_int_equal(wp_time_ledger_pay_wait(&l, 15 * MS), 10 * MS);
	assert_int_equal(wp_time_ledger_pay_wait(&l, 15 * MS), 0);
	/* A clock that is behind what was accounted for. */
	assert_int_equal(wp_time_ledger_pay_wait(&l, 14 * MS), 0);
	assert_int_equal(wp_time_ledger_pay_wait(&l, 16 * MS), 1 * MS);
	assert_int_equal(owed_ns(&l), 0);
}

static void time_set_aside_is_divided_as_the_scheduler_says(void **state)
{
	const struct wp_schedstat now = { 6 * MS, 2 * MS, 9 };
	struct wp_time_ledger l;
	struct wp_payment p;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_set_aside(&l, &now, 8 * MS);
	assert_int_equal(l.stop_running_ns, 6 * MS);
	assert_int_equal(l.stop_runnable_ns, 2 * MS);
	p = wp_time_ledger_pay(&l, WP_STATE_RUNNING);
	assert_int_equal(p.ns, 6 * MS);
	assert_int_equal(p.count, 1);
	/* The rest goes with the next stack that was waiting for a CPU. */
	assert_int_equal(l.runnable_ns, 2 * MS);
	p = wp_time_ledger_pay(&l, WP_STATE_RUNNABLE);
	assert_int_equal(p.ns, 2 * MS);
	assert_int_equal(owed_ns(&l), 0);
}

/* Half of the last 6 ms was running: schedstat tells of a wait of 7 ms for a CPU
 * when it ends, and 4 ms of it have been called runnable. */
static void what_was_called_runnable_is_not_divided_again(void **state)
{
	const struct wp_schedstat first = { 5 * MS, 0, 1 };
	const struct wp_schedstat later = { 8 * MS, 7 * MS, 2 };
	struct wp_time_ledger l;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_set_aside(&l, &first, 5 * MS);
	wp_time_ledger_pay(&l, WP_STATE_RUNNING);
	wp_time_ledger_owe_runnable(&l, 9 * MS);
	assert_int_equal(wp_time_ledger_pay(&l, WP_STATE_RUNNABLE).ns, 4 * MS);
	wp_time_ledger_set_aside(&l, &later, 15 * MS);
	assert_int_equal(l.stop_running_ns, 3 * MS);
	assert_int_equal(l.stop_runnable_ns, 3 * MS);
}

static void a_ready_thread_is_undecided_until_it_has_run(void **state)
{
	const struct wp_schedstat ran = { 3 * MS, 1 * MS, 1 };
	struct wp_time_ledger l;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_owe_ready(&l, &none, 4 * MS);
	assert_int_equal(l.undecided_ns, 4 * MS);
	wp_time_ledger_owe_ready(&l, &ran, 8 * MS);
	assert_int_equal(l.undecided_ns, 0);
	assert_int_equal(l.running_ns, 6 * MS);
	assert_int_equal(l.runnable_ns, 2 * MS);
	assert_int_equal(l.count, 2);
	/* For 10 ms it has not run: it waits for a CPU. */
	wp_time_ledger_owe_ready(&l, &ran, 18 * MS);
	assert_int_equal(l.runnable_ns, 12 * MS);
}

static void a_kernel_that_has_counted_nothing_yet_means_running(void **state)
{
	struct wp_time_ledger l;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_set_aside(&l, &none, 3 * MS);
	assert_int_equal(l.stop_running_ns, 3 * MS);
}

static void a_stop_that_does_not_come_is_owed(void **state)
{
	struct wp_time_ledger l;
	struct wp_payments all;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_set_aside(&l, &none, 3 * MS);
	wp_time_ledger_owe_stop(&l);
	wp_time_ledger_set_aside(&l, &none, 5 * MS);
	wp_time_ledger_owe_stop(&l);
	assert_true(wp_time_ledger_owes(&l));
	all = wp_time_ledger_pay_all(&l);
	assert_int_equal(all.running.ns, 5 * MS);
	assert_int_equal(all.running.count, 2);
	assert_int_equal(all.runnable.count, 0);
	assert_false(wp_time_ledger_owes(&l));
}

static void a_stop_that_finds_a_wait_is_paid_to_it(void **state)
{
	struct wp_time_ledger l;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_set_aside_wait(&l, 3 * MS);
	assert_int_equal(wp_time_ledger_pay_stop(&l), 3 * MS);
	assert_int_equal(wp_time_ledger_pay_stop(&l), 0);
}

static void the_end_makes_undecided_time_runnable(void **state)
{
	struct wp_time_ledger l;
	struct wp_payments all;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_owe_ready(&l, &none, 2 * MS);
	wp_time_ledger_owe_rest(&l, 5 * MS);
	/* Accounted for already. */
	wp_time_ledger_owe_rest(&l, 4 * MS);
	wp_time_ledger_close(&l);
	all = wp_time_ledger_pay_all(&l);
	assert_int_equal(all.runnable.ns, 5 * MS);
	assert_int_equal(all.runnable.count, 1);
}

static void time_of_a_thread_that_was_not_watched_is_dropped(void **state)
{
	const struct wp_schedstat now = { 9 * MS, 0, 4 };
	struct wp_time_ledger l;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_skip(&l, 7 * MS);
	assert_int_equal(wp_time_ledger_pay_wait(&l, 8 * MS), 1 * MS);
	wp_time_ledger_skip_running(&l, &now, 10 * MS);
	assert_false(wp_time_ledger_has_run(&l, &now));
	assert_int_equal(wp_time_ledger_pay_wait(&l, 11 * MS), 1 * MS);
}

static void an_event_is_lost_after_twenty_silent_intervals(void **state)
{
	struct wp_time_ledger l;

	(void)state;
	wp_time_ledger_init(&l, 0);
	for (uint64_t i = 1; i <= 22; i++) {
		const struct wp_schedstat now = { i * 10 * MS, 0, i };

		assert_int_equal(wp_time_ledger_lost_event(&l, 10 * MS),
				 i > 21);
		wp_time_ledger_owe_ready(&l, &now, i * 10 * MS);
	}
}

static void cpu_samples_and_locks_are_paid_once(void **state)
{
	struct wp_time_ledger l;
	struct wp_payment p;

	(void)state;
	wp_time_ledger_init(&l, 0);
	wp_time_ledger_owe_cpu(&l, 3);
	wp_time_ledger_owe_cpu(&l, 4);
	wp_time_ledger_owe_lock(&l, 1, 20);
	wp_time_ledger_owe_lock(&l, 0, 30);
	p = wp_time_ledger_pay_cpu(&l);
	assert_true(p.count == 2 && p.ns == 7);
	p = wp_time_ledger_pay_cpu(&l);
	assert_true(!p.count && !p.ns);
	p = wp_time_ledger_pay_lock(&l);
	assert_true(p.count == 1 && p.ns == 50);
	p = wp_time_ledger_pay_lock(&l);
	assert_true(!p.count && !p.ns);
}

static void run_time_before_the_recording_is_no_part_of_it(void **state)
{
	const struct wp_schedstat first = { 100, 0, 7 }, later = { 130, 0, 9 };
	struct wp_time_ledger l;
	uint64_t slices, entry = 0;

	(void)state;
	wp_time_ledger_init(&l, 0);
	entry += wp_time_ledger_count_run(&l, &first, false, &slices);
	assert_true(entry == 0 && slices == 0);
	/* A CPU sample tells of more than has been used. */
	wp_time_ledger_add_run(&l, 50);
	entry += 50;
	entry += wp_time_ledger_count_run(&l, &later, false, &slices);
	assert_true(entry == 30 && slices == 2);
	/* In another entry only what comes is counted. */
	wp_time_ledger_begin_entry(&l);
	assert_int_equal(wp_time_ledger_count_run(&l, &later, false, &slices),
			 0);

	wp_time_ledger_init(&l, 0);
	assert_int_equal(wp_time_ledger_count_run(&l, &later, true, &slices),
			 130);
	assert_int_equal(slices, 9);
}

/* One thread in a random life. */
struct life {
	unsigned int seed;
	uint64_t now_ns, paid_ns, dropped_ns;
	struct wp_schedstat stat;
	struct wp_time_ledger l;
};

static unsigned int dice(struct life *life, unsigned int n)
{
	return (unsigned int)rand_r(&life->seed) % n;
}

/* Time passes: a tick, a missed tick, or hours; the thread runs for some of it,
 * and schedstat may stand still, jump, or be another thread's. */
static void pass_time(struct life *life)
{
	static const uint64_t steps[] = { 0, 1, 10 * MS, 137 * MS,
					  (uint64_t)3600000 * MS };
	uint64_t ns = steps[dice(life, 5)];

	life->now_ns += ns;
	switch (dice(life, 8)) {
	case 0:
		life->stat = none;
		break;
	case 1:
		life->stat.run_ns += UINT64_C(1) << 50;
		break;
	case 2:
		life->stat.run_ns /= 2;
		life->stat.wait_ns /= 3;
		break;
	case 3:
		break;
	case 4:
		life->stat.wait_ns += ns;
		life->stat.slices++;
		break;
	default:
		life->stat.run_ns += ns / (1 + dice(life, 3));
		life->stat.slices++;
	}
}

static void pay_payments(struct life *life)
{
	struct wp_payments all = wp_time_ledger_pay_all(&life->l);

	assert_int_equal(life->l.count, 0);
	life->paid_ns += all.running.ns + all.runnable.ns;
}

static void do_something(struct life *life)
{
	struct wp_time_ledger *l = &life->l;
	uint64_t ahead_ns = life->now_ns - l->accounted_ns;

	switch (dice(life, 14)) {
	case 0:
		life->paid_ns += wp_time_ledger_pay_wait(l, life->now_ns);
		wp_time_ledger_found_waiting(l, &life->stat);
		break;
	case 1:
		life->paid_ns += wp_time_ledger_pay_wait(l, life->now_ns);
		break;
	case 2:
	case 3:
		wp_time_ledger_owe_ready(l, &life->stat, life->now_ns);
		break;
	case 4:
		wp_time_ledger_owe_runnable(l, life->now_ns);
		break;
	case 5:
		wp_time_ledger_set_aside(l, &life->stat, life->now_ns);
		break;
	case 6:
		wp_time_ledger_set_aside_wait(l, life->now_ns);
		break;
	case 7:
		wp_time_ledger_owe_stop(l);
		break;
	case 8:
		life->paid_ns += wp_time_ledger_pay_stop(l);
		wp_time_ledger_end_sample(l, &life->stat, life->now_ns);
		break;
	case 9:
		life->paid_ns += wp_time_ledger_pay(l, WP_STATE_RUNNING).ns;
		break;
	case 10:
		life->paid_ns += wp_time_ledger_pay(l, WP_STATE_RUNNABLE).ns;
		break;
	case 11:
		pay_payments(life);
		break;
	case 12:
		wp_time_ledger_skip(l, life->now_ns);
		life->dropped_ns += ahead_ns;
		break;
	case 13:
		wp_time_ledger_skip_running(l, &life->stat, life->now_ns);
		life->dropped_ns += ahead_ns;
		break;
	}
}

/* Nothing is lost and nothing is paid twice. */
static void assert_balance(const struct life *life, uint64_t since_ns)
{
	uint64_t ahead_ns = life->now_ns - life->l.accounted_ns;

	assert_int_equal(life->paid_ns + life->dropped_ns + ahead_ns +
				 owed_ns(&life->l),
			 life->now_ns - since_ns);
}

static void no_order_of_events_loses_time_or_pays_it_twice(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 400; seed++) {
		uint64_t since_ns = seed * UINT64_C(1000003);
		struct life life = { .seed = seed, .now_ns = since_ns };

		wp_time_ledger_init(&life.l, since_ns);
		for (int i = 0; i < 500; i++) {
			pass_time(&life);
			do_something(&life);
			assert_balance(&life, since_ns);
		}
		wp_time_ledger_owe_rest(&life.l, life.now_ns);
		wp_time_ledger_close(&life.l);
		pay_payments(&life);
		assert_int_equal(owed_ns(&life.l), 0);
		assert_int_equal(life.paid_ns + life.dropped_ns,
				 life.now_ns - since_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_is_paid_once),
		cmocka_unit_test(
			time_set_aside_is_divided_as_the_scheduler_says),
		cmocka_unit_test(what_was_called_runnable_is_not_divided_again),
		cmocka_unit_test(a_ready_thread_is_undecided_until_it_has_run),
		cmocka_unit_test(
			a_kernel_that_has_counted_nothing_yet_means_running),
		cmocka_unit_test(a_stop_that_does_not_come_is_owed),
		cmocka_unit_test(a_stop_that_finds_a_wait_is_paid_to_it),
		cmocka_unit_test(the_end_makes_undecided_time_runnable),
		cmocka_unit_test(
			time_of_a_thread_that_was_not_watched_is_dropped),
		cmocka_unit_test(
			an_event_is_lost_after_twenty_silent_intervals),
		cmocka_unit_test(cpu_samples_and_locks_are_paid_once),
		cmocka_unit_test(
			run_time_before_the_recording_is_no_part_of_it),
		cmocka_unit_test(
			no_order_of_events_loses_time_or_pays_it_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
