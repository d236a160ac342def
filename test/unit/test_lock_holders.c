/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  Holders of locks in a target with a fake /proc, clock and
 * tracer: time that a thread waits for a mutex of the test's own memory goes to
 * the thread that the mutex names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "one_target.h"

enum { WAITER = 7, HOLDER = 8 };

static struct fake_stack waiter_stack, holder_stack;

/* As a default mutex of glibc lies in memory (struct_mutex.h). */
static struct {
	uint32_t lock, count, owner, nusers, kind, spins;
	uint64_t list[2];
} mutex __attribute__((aligned(16)));

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_stack_init(&holder_stack, fake_stack_root);
	fake_stack_init(&waiter_stack, fake_stack_root);
	fake_target_add_thread(&fake, WAITER, "waiter");
	fake_target_add_thread(&fake, HOLDER, "holder");
	fake_stop.regs = fake_stack_regs(&holder_stack);
	options = fake_target_options();
	options.wall = false;
	options.mutex = true;
	mutex.lock = 2;
	mutex.owner = HOLDER;
	mutex.nusers = 1;
	return 0;
}

static void start(void)
{
	struct wp_regs regs = fake_stack_regs(&waiter_stack);
	char text[256];

	/* pthread_mutex_lock's futex(&lock, WAIT_PRIVATE, 2, NULL). */
	snprintf(text, sizeof(text),
		 "%ld 0x%llx 0x%x 0x2 0x0 0x0 0x0 0x%llx 0x%llx\n",
		 (long)SYS_futex, (unsigned long long)(uintptr_t)&mutex,
		 FUTEX_WAIT_PRIVATE, (unsigned long long)regs.v[WP_REG_SP],
		 (unsigned long long)regs.v[WP_REG_PC]);
	fake_target_write(&fake, WAITER, "syscall", text);
	fake_target_stat(&fake, WAITER, 'S');
	start_target();
}

static void finish(void)
{
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
}

enum stack_kind { OWN_STACK, NO_STACK, STACK_OF_WAITER };

static enum stack_kind kind_of(const struct wp_profile_stack *s)
{
	if (s->end == WP_END_HOLDER)
		return STACK_OF_WAITER;
	return s->depth ? OWN_STACK : NO_STACK;
}

/* Waits that thread TID is charged with, by stacks of KIND, and their time. */
static uint64_t charged(pid_t tid, enum stack_kind kind, uint64_t *ret_ns)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_MUTEX];
	uint64_t n = 0;

	*ret_ns = 0;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];

		if (fake.profile.threads[s->key.thread].tid != tid ||
		    kind_of(&fake.profile.stacks[s->key.stack]) != kind)
			continue;
		n += s->count;
		*ret_ns += s->wall_ns;
	}
	return n;
}

static void assert_charged(pid_t tid, enum stack_kind kind, uint64_t want,
			   uint64_t want_ns)
{
	uint64_t ns, n = charged(tid, kind, &ns);

	assert_int_equal(n, want);
	assert_int_equal(ns, want_ns);
}

static void a_running_holder_is_stopped_for_its_stack(void **state)
{
	(void)state;
	start();
	for (int i = 0; i < 3; i++)
		tick();
	assert_int_equal(fake_stop.ninterrupts, 3);
	/* One wait: it counts once.  Stops take time of their own. */
	assert_charged(HOLDER, OWN_STACK, 1,
		       fake.sampler->tick_ns - fake.target->start_ns);
	assert_charged(WAITER, STACK_OF_WAITER, 0, 0);
}

static void a_waiting_holder_is_charged_with_its_stack_at_once(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&waiter_stack);

	(void)state;
	fake_target_waits(&fake, HOLDER, SYS_nanosleep, 0, &regs);
	start();
	for (int i = 0; i < 3; i++)
		tick();
	assert_int_equal(fake_stop.ninterrupts, 0);
	assert_charged(HOLDER, OWN_STACK, 1, 3 * (uint64_t)TICK);
}

static void without_stops_the_charge_is_paid_at_the_end(void **state)
{
	(void)state;
	options.stop = WP_STOP_NEVER;
	start();
	tick();
	tick();
	finish();
	assert_int_equal(fake_stop.ninterrupts, 0);
	assert_charged(HOLDER, NO_STACK, 1, 2 * (uint64_t)TICK);
}

static void a_wait_for_an_unknown_holder_stays_with_the_waiter(void **state)
{
	(void)state;
	mutex.owner = 4711;
	start();
	tick();
	tick();
	assert_charged(WAITER, STACK_OF_WAITER, 1, 2 * (uint64_t)TICK);
	assert_charged(HOLDER, OWN_STACK, 0, 0);
}

static void other_waits_charge_nobody(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&waiter_stack);

	(void)state;
	start();
	fake_target_waits(&fake, WAITER, SYS_nanosleep, 0, &regs);
	tick();
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_MUTEX].nsamples, 0);
}

static void a_holder_is_found_by_the_tid_of_its_own_namespace(void **state)
{
	char status[64];

	(void)state;
	/* The process is in a PID namespace below wallprof's. */
	fake_target_add_thread(&fake, getpid(), "leader");
	snprintf(status, sizeof(status), "NSpid:\t%d\t1\n", getpid());
	fake_target_write(&fake, getpid(), "status", status);
	fake_target_write(&fake, WAITER, "status", "NSpid:\t7\t2\n");
	fake_target_write(&fake, HOLDER, "status", "NSpid:\t8\t3\n");
	mutex.owner = 3;
	start();
	tick();
	assert_charged(HOLDER, OWN_STACK, 1, TICK);
}

/* A holder that no look finds running has no stack of its own. */
static void what_a_holder_owes_alone_is_paid_at_the_end(void **state)
{
	struct wp_thread *holder;

	(void)state;
	start();
	tick();
	holder = wp_threads_find(fake.target, HOLDER);
	assert_non_null(holder);
	wp_time_ledger_drop_ready(&holder->time);
	(void)wp_time_ledger_pay_looks(&holder->time);
	wp_time_ledger_owe_lock(&holder->time, 1, TICK);
	holder->last_running_stack = UINT32_MAX;
	assert_int_equal(wp_lock_holders_finish(fake.target), 0);
	assert_charged(HOLDER, NO_STACK, 1, TICK);
	assert_int_equal(fake_target_ends(&fake, WP_END_EMPTY), 1);
	/* It is paid once. */
	assert_int_equal(wp_lock_holders_finish(fake.target), 0);
	assert_charged(HOLDER, NO_STACK, 1, TICK);
}

/* For the timeline alone nobody is charged and nobody is stopped for it. */
static void who_only_notes_holders_charges_none(void **state)
{
	(void)state;
	options.mutex = false;
	options.wall = options.note_holders = true;
	options.stop = WP_STOP_NEVER;
	start();
	for (int i = 0; i < 20; i++)
		tick();
	finish();
	assert_int_equal(fake.profile.sets[WP_PROFILE_MUTEX].nsamples, 0);
	assert_int_equal(fake_stop.ninterrupts, 0);
}

/* What a thread waits for is known of a look at this tick only. */
static void a_wait_that_this_tick_did_not_meet_charges_nobody(void **state)
{
	(void)state;
	start();
	tick();
	assert_charged(HOLDER, OWN_STACK, 1,
		       fake.sampler->tick_ns - fake.target->start_ns);
	fake.sampler->tick_ns += TICK;
	assert_int_equal(wp_lock_holders_tick(fake.target), 0);
	assert_int_equal(fake.target->stop_requests.n, 0);
	assert_charged(HOLDER, OWN_STACK, 1,
		       fake.sampler->tick_ns - TICK - fake.target->start_ns);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_running_holder_is_stopped_for_its_stack),
		TEST(a_waiting_holder_is_charged_with_its_stack_at_once),
		TEST(without_stops_the_charge_is_paid_at_the_end),
		TEST(a_wait_for_an_unknown_holder_stays_with_the_waiter),
		TEST(other_waits_charge_nobody),
		TEST(a_holder_is_found_by_the_tid_of_its_own_namespace),
		TEST(what_a_holder_owes_alone_is_paid_at_the_end),
		TEST(who_only_notes_holders_charges_none),
		TEST(a_wait_that_this_tick_did_not_meet_charges_nobody),
	};

	return cmocka_run_group_tests_name("lock_holders", tests, NULL, NULL);
}
