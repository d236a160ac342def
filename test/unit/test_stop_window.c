/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  stop_window.h and stop_request.h: whatever becomes of a stop,
 * the thread is released and its time is paid or owed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "../../src/sample/record.h"
#include "../../src/sample/sample_thread.h"
#include "../../src/sample/stack_walk.h"
#include "../../src/sample/stop_together.h"
#include "../../src/sample/stop_window.h"
#include "one_target.h"

enum { TID = 7, OTHER = 8, SLEEPS = 30 };

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	fake_target_add_thread(&fake, OTHER, "worker");
	fake_stack_init(&stack, fake_stack_root);
	fake_stop.regs = fake_stack_regs(&stack);
	options = fake_target_options();
	return 0;
}

static void start(void)
{
	start_target();
	fake.target->tick = 1;
}

/* Thread TID, which ran for a tick, is to be stopped. */
static struct wp_thread *request(pid_t tid)
{
	struct wp_thread *t = wp_threads_find_or_add(fake.target, tid);
	struct wp_schedstat now;

	assert_non_null(t);
	fake.sampler->tick_ns = t->time.accounted_ns + TICK;
	if (fake_now_ns < fake.sampler->tick_ns)
		fake_now_ns = fake.sampler->tick_ns;
	if (!t->time.looks)
		wp_time_ledger_look(&t->time, &t->time.base,
				    t->time.accounted_ns, t->time.accounted_ns,
				    true);
	now = (struct wp_schedstat){ t->time.base.run_ns + TICK, 0, 1 };
	wp_time_ledger_look(&t->time, &now, fake.sampler->tick_ns,
			    fake.sampler->tick_ns, true);
	wp_stop_request_stack(t, 1, TICK);
	return t;
}

/* The same, of a thread that waits and whose registers are missing. */
static struct wp_thread *request_registers(pid_t tid)
{
	struct wp_thread *t = wp_threads_find_or_add(fake.target, tid);
	const struct wp_stack partial = { .end = WP_END_UNKNOWN_REG };

	assert_non_null(t);
	fake.sampler->tick_ns = t->time.accounted_ns + TICK;
	fake_now_ns = fake.sampler->tick_ns;
	wp_time_ledger_look(&t->time, &(struct wp_schedstat){ 1000, 0, 1 },
			    fake.sampler->tick_ns, fake.sampler->tick_ns,
			    false);
	wp_stop_request_registers(
		t, &(struct wp_stop_request){
			   .weight_ns = TICK,
			   .slices = 1,
			   .sleeps = SLEEPS,
			   .sp_avma = fake_stop.regs.v[WP_REG_SP],
			   .partial_stack = wp_profile_add_stack(&fake.profile,
								 &partial, 0),
			   .facts = { .state_char = 'S',
				      .syscall_nr = SYS_nanosleep },
		   });
	return t;
}

static void record_queue(void)
{
	struct wp_wait_queue *queue = &fake.target->wait_queue;

	for (size_t i = 0; i < queue->n; i++)
		assert_int_equal(wp_record_wait(&queue->v[i]), 0);
	queue->n = 0;
}

static uint64_t in_state(enum wp_state state)
{
	return fake_target_wall_ns(&fake, TID, state);
}

/* Nothing is held and nothing is requested. */
static void assert_settled(const struct wp_thread *t)
{
	assert_int_equal(fake.tracer.len, 0);
	assert_int_equal(fake.target->stop_requests.n, 0);
	assert_false(wp_stop_request_exists(t));
	assert_int_equal(wp_stop_window_count(fake.target), 0);
}

static void a_stop_gives_a_running_thread_its_stack(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request(TID);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_int_equal(in_state(WP_STATE_RUNNING), TICK);
	assert_int_equal(fake.profile.counters.stopped, 1);
	assert_int_equal(fake.profile.counters.stops, 1);
	assert_true(t->running_stack_holds);
	assert_int_equal(fake.profile.stacks[t->last_running_stack].depth, 3);
	assert_true(fake.target->pauses.total_ns > 0);
}

static void move_slices(void)
{
	fake_target_schedstat(&fake, TID, 1000, 500, 2);
}

static void a_thread_put_on_a_cpu_for_the_stop_was_runnable(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request(TID);
	fake_stop.in_window = move_slices;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	/* By schedstat it ran all the time: with this stack, as far as is
	 * known. */
	assert_int_equal(in_state(WP_STATE_RUNNING), TICK);
	assert_int_equal(t->time.running_ns, 0);
}

/* A thread that is let go may wait long for a CPU, and wallprof too. */
static void wait_for_cpu(void)
{
	fake_now_ns += TICK;
}

static void a_wait_ends_where_its_stop_does(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request_registers(TID);
	fake_stop.facts = (struct wp_stop_facts){ .syscall_nr = SYS_nanosleep,
						  .asleep = true };
	fake_stop.after_window = wait_for_cpu;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	record_queue();
	/* All of it in the run queue, as the kernel tells in the end. */
	fake_target_schedstat(&fake, TID, 1000, TICK, 2);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	assert_int_equal(t->time.runnable_ns, TICK);
}

/* ... but no look met it in that wait. */
static void a_thread_asleep_at_its_stop_is_recorded_as_waiting(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	fake_stop.facts = (struct wp_stop_facts){ .syscall_nr = SYS_ppoll,
						  .asleep = true,
						  .eintr_repaired = true };
	t = request(TID);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	record_queue();
	assert_settled(t);
	/* What the stop took; what it ran before is owed. */
	assert_in_range(in_state(WP_STATE_WAITING), 1, WP_NS_PER_MS);
	assert_int_equal(t->time.running_ns, TICK);
	assert_int_equal(fake.profile.counters.eintr_repaired, 1);
	/* The stop made it run. */
	assert_false(t->wait.waiting);
	for (uint32_t i = 0; i < fake.profile.sets[WP_PROFILE_WALL].nsamples;
	     i++)
		assert_int_equal(
			fake.profile.sets[WP_PROFILE_WALL].samples[i].weight_ns,
			0);
}

static void a_waiting_thread_gets_its_registers_and_a_wait_site(void **state)
{
	struct wp_thread *t;

	(void)state;
	options.kernel = true;
	fake_target_write(&fake, TID, "stack", "[<0>] do_nanosleep+0x1/0x2\n");
	start();
	t = request_registers(TID);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	record_queue();
	assert_settled(t);
	assert_in_range(in_state(WP_STATE_WAITING), TICK, TICK + WP_NS_PER_MS);
	assert_non_null(t->sites);
	/* Of the thread's own frames: the kernel's may be others next time. */
	assert_int_equal(t->sites->v[0].depth, 3);
	assert_int_equal(fake.profile.stacks[fake.profile.nstacks - 1].depth,
			 4);
}

static void a_waiting_thread_that_moved_leaves_no_wait_site(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request_registers(TID);
	t->stop.sp_avma -= 8;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	record_queue();
	assert_settled(t);
	assert_null(t->sites);
	assert_in_range(in_state(WP_STATE_WAITING), TICK, TICK + WP_NS_PER_MS);
}

static void time_of_a_thread_that_dies_in_the_stop_is_owed(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request(TID);
	fake_stop.dies = true;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_int_equal(in_state(WP_NSTATES), TICK);
}

static void end_thread(void)
{
	fake_target_write(&fake, TID, "schedstat", "");
	fake_target_write(&fake, TID, "stat", "");
}

static void time_of_a_thread_that_ends_after_the_stop_is_owed(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request(TID);
	fake_stop.in_window = end_thread;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_int_equal(in_state(WP_NSTATES), TICK);
}

static void a_stop_that_is_refused_leaves_a_sample_without_a_stack(void **state)
{
	static const int codes[] = { -EPERM, -EALREADY };
	struct wp_thread *t;

	(void)state;
	start();
	for (size_t i = 0; i < 2; i++) {
		fake_stop.interrupt_rc = codes[i];
		t = request(TID);
		assert_int_equal(wp_stop_window_make(fake.target), 0);
		assert_settled(t);
		assert_int_equal(in_state(WP_NSTATES), (i + 1) * TICK);
	}
	assert_int_equal(fake.profile.counters.no_stack, 2);
	assert_int_equal(fake.profile.counters.stops_refused, 1);
	assert_int_equal(fake.profile.counters.stops_given_up, 1);
	fake_stop.interrupt_rc = -ENOMEM;
	request(TID);
	assert_int_equal(wp_stop_window_make(fake.target), -ENOMEM);
}

static void a_thread_on_its_way_out_refuses_too(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request(TID);
	fake_stop.interrupt_rc = -ESRCH;
	end_thread();
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_int_equal(fake.profile.counters.stops_refused, 0);
	assert_int_equal(t->time.running_ns, TICK);
}

static void
a_waiting_thread_without_its_stop_keeps_its_partial_stack(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	fake_stop.interrupt_rc = -EPERM;
	t = request_registers(TID);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	record_queue();
	assert_settled(t);
	assert_int_equal(fake.profile.counters.partial, 1);
	assert_int_equal(fake_target_ends(&fake, WP_END_UNKNOWN_REG), 1);
	assert_int_equal(in_state(WP_STATE_WAITING), TICK);
}

static void past_the_budget_time_is_owed(void **state)
{
	struct wp_thread *t, *waiting;

	(void)state;
	options.max_stopped = 0.0001;
	start();
	wp_pauses_add(&fake.target->pauses, 100 * WP_NS_PER_MS);
	t = request(TID);
	waiting = request_registers(OTHER);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	record_queue();
	assert_settled(t);
	assert_settled(waiting);
	assert_int_equal(fake_stop.ninterrupts, 0);
	assert_int_equal(fake.profile.counters.stops_over_budget, 2);
	assert_int_equal(t->time.running_ns, TICK);
	/* In the last tick, too: it is said, and goes to no stack. */
	fake.sampler->finishing = true;
	request(TID);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_int_equal(fake_stop.ninterrupts, 0);
	assert_int_equal(fake.profile.counters.stops_over_budget, 3);
	assert_int_equal(wp_record_end(t, false), 0);
	assert_int_equal(in_state(WP_STATE_RUNNING), 2 * TICK);
	assert_int_equal(fake.profile.stacks[1].depth, 0);
}

static void take_long(void)
{
	fake_now_ns += 5 * WP_NS_PER_MS;
}

static void threads_held_at_once_keep_to_the_budget(void **state)
{
	struct wp_thread *t, *other;

	(void)state;
	options.stop = WP_STOP_ALL;
	options.max_stopped = 0.01;
	start();
	fake_stop.in_window = take_long;
	t = request(TID);
	other = request(OTHER);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_settled(other);
	/* The first took more than there was: the other is let go unread. */
	assert_int_equal(fake_stop.ninterrupts, 2);
	assert_int_equal(fake_stop.nreleases, 2);
	assert_int_equal(fake.profile.counters.stopped, 1);
	assert_int_equal(fake.profile.counters.stops_over_budget, 1);
	/* Both stops are known as such: neither is a wait of its thread. */
	assert_true(t->waits.stop_end_ns > t->waits.stop_begin_ns);
	assert_true(other->waits.stop_end_ns > other->waits.stop_begin_ns);
	request(TID);
	request(OTHER);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_int_equal(fake_stop.ninterrupts, 2);
}

static void a_late_stop_is_taken_when_it_comes(void **state)
{
	struct wp_tracee *tracee;
	struct wp_thread *t;

	(void)state;
	start();
	fake_stop.comes = false;
	t = request(TID);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_true(t->stop.pending);
	assert_true(wp_stop_window_is_open(t));
	assert_int_equal(wp_stop_window_count(fake.target), 1);
	assert_int_equal(in_state(WP_NSTATES), 0);
	fake_stop.comes = true;
	fake_now_ns += WP_NS_PER_MS;
	tracee = wp_tracer_wait(&fake.tracer, 0);
	assert_non_null(tracee);
	assert_int_equal(wp_target_take_stop(tracee), 0);
	assert_settled(t);
	assert_int_equal(in_state(WP_STATE_RUNNING), TICK);
	/* It waited for a CPU for most of that: no pause of ours. */
	assert_true(fake.target->pauses.max_ns < WP_NS_PER_MS);
}

/* A stop that is requested and does not come. */
static struct wp_thread *late(void)
{
	struct wp_thread *t;

	start();
	fake_stop.comes = false;
	t = request(TID);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	return t;
}

static void a_stop_is_given_up_after_a_while(void **state)
{
	struct wp_thread *t = late();

	(void)state;
	/* It waits: it is not a CPU that the stop lacks. */
	fake_target_stat(&fake, TID, 'D');
	fake.sampler->tick_ns += 100 * WP_NS_PER_MS;
	assert_int_equal(wp_stop_window_expire(fake.target, 200 * WP_NS_PER_MS),
			 0);
	assert_true(wp_stop_window_is_open(t));
	fake.sampler->tick_ns += 100 * WP_NS_PER_MS;
	assert_int_equal(wp_stop_window_expire(fake.target, 200 * WP_NS_PER_MS),
			 0);
	assert_settled(t);
	assert_int_equal(fake.profile.counters.stops_given_up, 1);
	assert_int_equal(in_state(WP_NSTATES), TICK);
}

static void
a_stop_is_not_given_up_while_the_thread_waits_for_a_cpu(void **state)
{
	struct wp_thread *t = late();

	(void)state;
	fake.sampler->tick_ns += 300 * WP_NS_PER_MS;
	assert_int_equal(wp_stop_window_expire(fake.target, 200 * WP_NS_PER_MS),
			 0);
	assert_true(wp_stop_window_is_open(t));
	/* At the end it is: to no stack, for it has had none. */
	assert_int_equal(wp_stop_window_expire(fake.target, 0), 0);
	assert_settled(t);
	assert_int_equal(in_state(WP_NSTATES), TICK);
}

static void a_thread_that_waits_for_a_cpu_is_where_it_was(void **state)
{
	struct wp_thread *t = late();

	(void)state;
	t->last_running_stack = wp_profile_add_stack(
		&fake.profile, &(struct wp_stack){ 0 }, 0);
	assert_int_equal(wp_stop_window_expire(fake.target, 0), 0);
	assert_settled(t);
	assert_int_equal(in_state(WP_NSTATES), 0);
	assert_int_equal(t->time.running_ns, TICK);
	assert_int_equal(fake.profile.counters.stops_given_up, 0);
}

static void a_thread_freed_under_its_stop_is_released(void **state)
{
	(void)state;
	late();
	wp_threads_clear(fake.target);
	assert_int_equal(fake.tracer.len, 0);
	assert_int_equal(fake_stop.nreleases, 1);
}

static void with_stop_never_nothing_is_stopped(void **state)
{
	struct wp_thread *t, *waiting;

	(void)state;
	options.stop = WP_STOP_NEVER;
	start();
	t = request(TID);
	waiting = request_registers(OTHER);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	record_queue();
	assert_settled(t);
	assert_settled(waiting);
	assert_int_equal(fake_stop.ninterrupts, 0);
	assert_int_equal(in_state(WP_NSTATES), TICK);
	assert_int_equal(fake_target_wall_ns(&fake, OTHER, WP_STATE_WAITING),
			 TICK);
}

static unsigned int nheld_most;

static void count_held(void)
{
	if (fake.tracer.len > nheld_most)
		nheld_most = (unsigned int)fake.tracer.len;
}

static void with_stop_all_all_are_held_at_once(void **state)
{
	struct wp_thread *t, *other;

	(void)state;
	options.stop = WP_STOP_ALL;
	start();
	nheld_most = 0;
	fake_stop.in_window = count_held;
	t = request(TID);
	other = request(OTHER);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_settled(other);
	assert_int_equal(nheld_most, 2);
	assert_int_equal(in_state(WP_STATE_RUNNING), TICK);
}

static struct fake_stack second_stack;
static uint64_t nwalked_held;

/* The next that is read has the other stack. */
static void change_stack(void)
{
	fake_stop.regs = fake_stack_regs(&second_stack);
}

static void note_released(void)
{
	nwalked_held = fake.profile.counters.stopped;
	/* They go on. */
	if (fake_stop.nreleases == 2) {
		memset(stack.room, 0xff, sizeof(stack.room));
		memset(second_stack.room, 0xff, sizeof(second_stack.room));
	}
}

static void with_stop_all_all_go_on_before_a_stack_is_walked(void **state)
{
	struct wp_thread *t, *other;

	(void)state;
	options.stop = WP_STOP_ALL;
	start();
	fake_stack_init(&second_stack, fake_stack_needs_fp);
	fake_stop.in_window = change_stack;
	fake_stop.after_window = note_released;
	t = request(TID);
	other = request(OTHER);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_settled(other);
	assert_int_equal(fake_stop.nreleases, 2);
	assert_int_equal(nwalked_held, 0);
	assert_int_equal(fake.profile.counters.stopped, 2);
	assert_int_not_equal(t->last_running_stack, other->last_running_stack);
	assert_int_equal(fake.profile.stacks[t->last_running_stack].end,
			 WP_END_ROOT);
	assert_int_equal(fake.profile.stacks[other->last_running_stack].end,
			 WP_END_ROOT);
}

/* Thread TID stands still while others are read. */
static struct wp_thread *hold(void)
{
	struct wp_thread *t;

	options.stop = WP_STOP_ALL;
	start();
	t = request(TID);
	assert_int_equal(wp_stop_together_begin(fake.target), 0);
	return t;
}

static void with_stop_all_a_pause_counts_while_others_are_read(void **state)
{
	struct wp_thread *t = hold();

	(void)state;
	fake_now_ns += 5 * WP_NS_PER_MS;
	assert_int_equal(wp_stop_together_go_on(fake.target), 0);
	assert_true(t->stop.pending);
	fake_now_ns += WP_NS_PER_MS;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_int_equal(in_state(WP_STATE_RUNNING), TICK);
	assert_true(fake.target->pauses.max_ns >= 6 * WP_NS_PER_MS);
}

static void with_stop_all_a_pause_is_bounded_while_others_are_read(void **state)
{
	struct wp_thread *t = hold();

	(void)state;
	fake_now_ns += 20 * WP_NS_PER_MS;
	assert_int_equal(wp_stop_together_go_on(fake.target), 0);
	assert_settled(t);
	assert_int_equal(in_state(WP_STATE_RUNNING), TICK);
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_int_equal(fake_stop.ninterrupts, 1);
}

static void
with_stop_all_the_budget_ends_a_pause_while_others_are_read(void **state)
{
	struct wp_thread *t;

	(void)state;
	options.max_stopped = 0.01;
	t = hold();
	/* The first 2 ms, and 0.01 of the time since. */
	fake_now_ns += 3 * WP_NS_PER_MS;
	assert_int_equal(wp_stop_together_go_on(fake.target), 0);
	assert_settled(t);
	assert_int_equal(in_state(WP_STATE_RUNNING), TICK);
}

static void with_stop_all_a_late_stop_is_not_waited_for_for_ever(void **state)
{
	struct wp_thread *t;
	uint64_t before_ns;

	(void)state;
	options.stop = WP_STOP_ALL;
	start();
	fake_stop.comes = false;
	t = request(TID);
	before_ns = fake_now_ns;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_true(t->stop.pending);
	assert_int_equal(fake_now_ns - before_ns, 20 * WP_NS_PER_MS);
}

/* A stack of more than the first copy: the thread is stopped again at once, and
 * more is copied. */
static void a_stack_deeper_than_the_copy_is_copied_whole(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request(TID);
	t->copy_len_running = 200;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_true(fake_stop.ninterrupts >= 1);
	assert_int_equal(fake.profile.stacks[t->last_running_stack].depth, 3);
}

/* Once a stack was found to be in two pieces, it is walked in the window. */
static void a_stack_in_two_pieces_is_walked_in_the_window(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	/* What it takes to walk it has been opened. */
	wp_stack_copy_take(&fake.sampler->copy, &fake.target->space,
			   fake_stop.regs.v[WP_REG_SP], 4096);
	wp_stack_walk(fake.target, &fake_stop.regs, WP_UNWIND_THOROUGH);
	t = request(TID);
	t->walk_in_stop = true;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_int_equal(in_state(WP_STATE_RUNNING), TICK);
	assert_int_equal(fake.profile.stacks[t->last_running_stack].depth, 3);
	/* It is in one piece again. */
	assert_false(t->walk_in_stop);
}

#if defined(__x86_64__)
/* The stack goes on at fp, in ROOM, which is not the stack's. */
static void move_frames(uint8_t *room)
{
	uint64_t off;

	fake_stack_init(&stack, fake_stack_needs_fp);
	fake_stop.regs = fake_stack_regs(&stack);
	off = fake_stop.regs.v[WP_REG_FP] - (uintptr_t)stack.room;
	assert_true(off < sizeof(stack.room));
	memcpy(room + off, stack.room + off, sizeof(stack.room) - off);
	wp_reg_set(&fake_stop.regs, WP_REG_FP, (uintptr_t)room + off);
}

/* What is not walked in a window may lead to another stack, behind it: the next
 * window copies what is there, if IS_KNOWN the first. */
static void stop_on_two_stacks(bool is_known)
{
	uint8_t *room = mmap(NULL, sizeof(stack.room), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wp_thread *t;

	assert_true(room != MAP_FAILED);
	start();
	move_frames(room);
	t = request(TID);
	t->walk_in_stop = is_known;
	wp_time_ledger_owe_cpu(&t->time, 5);
	wp_time_ledger_set_aside(&t->time, WP_ASIDE_FILE);
	wp_time_ledger_owe_cpu(&t->time, 7);
	wp_time_ledger_set_aside(&t->time, WP_ASIDE_CODE);
	t->aside.stops = 4;
	if (is_known)
		t->other_stack_avma = fake_stop.regs.v[WP_REG_FP];
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_int_equal(fake_stop.ninterrupts, is_known ? 1 : 2);
	assert_true(t->other_stack_avma - fake_stop.regs.v[WP_REG_FP] < 16);
	assert_int_equal(fake.profile.stacks[t->last_running_stack].depth, 3);
	/* What waits for C on a stack of its own is paid, not what waits for code of no
	 * file. */
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].samples[0].cpu_ns,
			 5);
	assert_int_equal(t->time.aside[WP_ASIDE_CODE].cpu_ns, 7);
	assert_int_equal(t->aside.stacks[WP_ASIDE_FILE], t->last_running_stack);
	assert_int_equal(t->aside.stops, 3);
	munmap(room, sizeof(stack.room));
}

static void where_another_stack_is_is_learnt(void **state)
{
	(void)state;
	stop_on_two_stacks(false);
}

static void what_lies_on_another_stack_is_copied_by_the_stop(void **state)
{
	(void)state;
	stop_on_two_stacks(true);
}
#endif

/* What takes too long in the window, as to open files, is done after it, and the
 * stack is the copy's all the same. */
static void what_the_window_had_no_time_for_is_walked_after_it(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request(TID);
	t->walk_in_stop = true;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_settled(t);
	assert_int_equal(fake_stop.ninterrupts, 1);
	assert_int_equal(fake.profile.stacks[t->last_running_stack].depth, 3);
}

static void run_twice(void)
{
	fake_target_schedstat(&fake, TID, 1000, 0, 3);
}

static void set_sleeps(unsigned n)
{
	char text[64];

	snprintf(text, sizeof(text), "voluntary_ctxt_switches:\t%u\n", n);
	fake_target_write(&fake, TID, "status", text);
}

static void lose_the_cpu(void)
{
	run_twice();
	set_sleeps(SLEEPS + 1);
}

static void lose_the_cpu_and_sleep(void)
{
	run_twice();
	set_sleeps(SLEEPS + 2);
}

/* TID is stopped for its registers in the very call with the very arguments, as in a
 * loop, and IN_WINDOW says what it did on the way. */
static struct wp_thread *stop_asleep(void (*in_window)(void))
{
	struct wp_thread *t;

	start();
	t = request_registers(TID);
	fake_stop.facts.asleep = true;
	fake_stop.facts.syscall_nr = SYS_nanosleep;
	fake_stop.in_window = in_window;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	return t;
}

static void a_thread_that_ran_to_another_sleep_has_moved(void **state)
{
	const struct wp_thread *t = stop_asleep(run_twice);

	(void)state;
	assert_true(t->stop.moved);
	assert_false(t->at_instant);
	/* In which it was put on a CPU twice, the third time for the stop. */
	assert_int_equal(t->stop.slices, 2);
	assert_null(t->sites);
}

static void a_thread_that_lost_its_cpu_on_the_way_has_not_moved(void **state)
{
	const struct wp_thread *t = stop_asleep(lose_the_cpu);

	(void)state;
	assert_false(t->stop.moved);
	assert_int_equal(t->stop.slices, 1);
	assert_int_equal(t->stop.sleeps, SLEEPS);
	assert_non_null(t->sites);
}

static void who_sleeps_is_copied_whole_in_one_stop(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request_registers(TID);
	t->copy_len_running = 64;
	t->at_instant = true;
	fake_stop.facts.asleep = true;
	fake_stop.facts.syscall_nr = SYS_nanosleep;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_int_equal(fake_stop.ninterrupts, 1);
	assert_true(t->at_instant);
	assert_int_equal(
		fake.profile.stacks[fake.target->wait_queue.v[0].key.stack]
			.depth,
		3);
}

static void a_thread_that_slept_on_the_way_has_moved(void **state)
{
	const struct wp_thread *t = stop_asleep(lose_the_cpu_and_sleep);

	(void)state;
	assert_true(t->stop.moved);
	assert_true(t->stop.sleeps == UINT64_MAX);
}

static void a_thread_woken_before_the_stop_may_sleep_elsewhere(void **state)
{
	struct wp_thread *t;

	(void)state;
	start();
	t = request_registers(TID);
	fake_stop.facts.asleep = false;
	assert_int_equal(wp_stop_window_make(fake.target), 0);
	assert_false(t->stop.moved);
	assert_true(t->stop.sleeps == UINT64_MAX);
}

static void stops_are_requested_once(void **state)
{
	struct wp_thread *t, *other;

	(void)state;
	start();
	t = request(TID);
	other = request(OTHER);
	assert_true(wp_stop_request_exists(t));
	assert_ptr_equal(wp_stop_requests_take(&fake.target->stop_requests, 0),
			 t);
	assert_false(wp_stop_request_exists(t));
	assert_ptr_equal(fake.target->stop_requests.v[0], other);
	wp_stop_request_sent(t, 5);
	assert_true(wp_stop_request_exists(t));
	assert_int_equal(t->stop.slices, 5);
	wp_stop_request_done(t);
	assert_false(wp_stop_request_exists(t));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_stop_gives_a_running_thread_its_stack),
		TEST(a_thread_put_on_a_cpu_for_the_stop_was_runnable),
		TEST(a_wait_ends_where_its_stop_does),
		TEST(a_thread_asleep_at_its_stop_is_recorded_as_waiting),
		TEST(a_waiting_thread_gets_its_registers_and_a_wait_site),
		TEST(a_waiting_thread_that_moved_leaves_no_wait_site),
		TEST(time_of_a_thread_that_dies_in_the_stop_is_owed),
		TEST(time_of_a_thread_that_ends_after_the_stop_is_owed),
		TEST(a_stop_that_is_refused_leaves_a_sample_without_a_stack),
		TEST(a_thread_on_its_way_out_refuses_too),
		TEST(a_waiting_thread_without_its_stop_keeps_its_partial_stack),
		TEST(past_the_budget_time_is_owed),
		TEST(a_late_stop_is_taken_when_it_comes),
		TEST(a_stop_is_given_up_after_a_while),
		TEST(a_stop_is_not_given_up_while_the_thread_waits_for_a_cpu),
		TEST(a_thread_that_waits_for_a_cpu_is_where_it_was),
		TEST(a_thread_freed_under_its_stop_is_released),
		TEST(with_stop_never_nothing_is_stopped),
		TEST(with_stop_all_all_are_held_at_once),
		TEST(with_stop_all_all_go_on_before_a_stack_is_walked),
		TEST(threads_held_at_once_keep_to_the_budget),
		TEST(with_stop_all_a_pause_counts_while_others_are_read),
		TEST(with_stop_all_a_pause_is_bounded_while_others_are_read),
		TEST(with_stop_all_the_budget_ends_a_pause_while_others_are_read),
		TEST(with_stop_all_a_late_stop_is_not_waited_for_for_ever),
		TEST(a_stack_deeper_than_the_copy_is_copied_whole),
		TEST(a_stack_in_two_pieces_is_walked_in_the_window),
#if defined(__x86_64__)
		TEST(where_another_stack_is_is_learnt),
		TEST(what_lies_on_another_stack_is_copied_by_the_stop),
#endif
		TEST(what_the_window_had_no_time_for_is_walked_after_it),
		TEST(a_thread_that_ran_to_another_sleep_has_moved),
		TEST(a_thread_that_lost_its_cpu_on_the_way_has_not_moved),
		TEST(who_sleeps_is_copied_whole_in_one_stop),
		TEST(a_thread_that_slept_on_the_way_has_moved),
		TEST(a_thread_woken_before_the_stop_may_sleep_elsewhere),
		TEST(stops_are_requested_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
