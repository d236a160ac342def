/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  sample_thread.h: what /proc says of one thread decides what its
 * sample is.  The records of a BPF scan are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "../../src/sample/books.h"
#include "../../src/sample/sample_thread.h"
#include "fake_perf.h"
#include "one_target.h"

enum { TID = 7 };

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "worker");
	fake_stack_init(&stack, fake_stack_root);
	options = fake_target_options();
	return 0;
}

/* Begin, with the thread in the table and 10 ms to be accounted for. */
static struct wp_thread *start(void)
{
	struct wp_thread *t;

	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	fake_now_ns += 10 * WP_NS_PER_MS;
	fake.sampler->tick_ns = fake_now_ns;
	fake.target->tick = 2;
	return t;
}

/* 10 ms pass. */
static void pass_tick(void)
{
	fake.target->last_tick_ns = fake.sampler->tick_ns;
	fake_now_ns += 10 * WP_NS_PER_MS;
	fake.sampler->tick_ns = fake_now_ns;
}

static void waits(void)
{
	const struct wp_regs regs = fake_stack_regs(&stack);

	fake_target_waits(&fake, TID, SYS_nanosleep, 0, &regs);
}

static void a_thread_that_has_not_run_is_not_read_again(void **state)
{
	struct wp_thread *t;

	(void)state;
	waits();
	t = start();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_true(t->wait.waiting);
	assert_int_equal(fake.target->wait_queue.n, 1);
	fake.target->wait_queue.n = 0;
	pass_tick();
	/* What is in the other files does not matter then. */
	fake_target_write(&fake, TID, "syscall", "nonsense");
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.counters.unchanged, 1);
	assert_int_equal(fake.target->wait_queue.n, 0);
	/* It has run: now they do. */
	pass_tick();
	fake_target_schedstat(&fake, TID, 2000, 0, 2);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_FAILED);
}

/* A CPU sample may be of before the last look and be taken after it. */
static void a_late_cpu_sample_adds_no_time_that_the_books_had(void **state)
{
	const uint64_t period = 5 * WP_NS_PER_MS;
	uint64_t *cpu_ns, before;
	struct wp_thread *t;

	(void)state;
	waits();
	t = start();
	cpu_ns = &fake.profile.threads[t->index].cpu_ns;
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	before = *cpu_ns;
	wp_books_add_cpu(t, period);
	wp_time_ledger_add_run(&t->time, period);
	assert_int_equal(*cpu_ns, before + period);
	pass_tick();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.counters.unchanged, 1);
	assert_int_equal(*cpu_ns, before);
}

static void without_schedstat_every_thread_is_read(void **state)
{
	struct wp_thread *t;

	(void)state;
	waits();
	t = start();
	fake.sampler->schedstat_works = false;
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	pass_tick();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.counters.unchanged, 0);
	assert_int_equal(fake.target->wait_queue.n, 2);
}

static void a_running_thread_wants_a_stop(void **state)
{
	struct wp_thread *t;

	(void)state;
	t = start();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	assert_int_equal(fake.target->stop_requests.n, 1);
	assert_ptr_equal(fake.target->stop_requests.v[0], t);
	assert_true(wp_stop_request_exists(t));
	assert_int_equal(t->time.waiting_ns, 10 * WP_NS_PER_MS);
	assert_false(t->wait.waiting);
}

/* /proc/TID/syscall has numbers, but the thread is ready by the time its state is
 * read. */
static void a_thread_that_moves_is_tried_again_and_then_stopped(void **state)
{
	struct wp_thread *t;

	(void)state;
	waits();
	fake_target_stat(&fake, TID, 'R');
	t = start();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	assert_int_equal(fake.profile.counters.inconsistent, 2);
}

static void it_is_tried_more_often_where_nothing_may_be_stopped(void **state)
{
	struct wp_thread *t;

	(void)state;
	options.stop = WP_STOP_NEVER;
	waits();
	fake_target_stat(&fake, TID, 'R');
	t = start();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	assert_int_equal(fake.profile.counters.inconsistent, 6);
}

static void
a_waiting_thread_is_put_off_when_those_that_run_come_first(void **state)
{
	struct wp_thread *t;

	(void)state;
	waits();
	t = start();
	assert_int_equal(wp_sample_thread(t, true), WP_SAMPLE_PUT_OFF);
	assert_true(t->put_off);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_false(t->put_off);
	/* As it was: there is nothing to put off. */
	fake.target->wait_queue.n = 0;
	pass_tick();
	assert_int_equal(wp_sample_thread(t, true), WP_SAMPLE_DONE);
}

static void a_thread_that_has_ended_is_gone(void **state)
{
	struct wp_thread *t;

	(void)state;
	t = start();
	/* No descriptor is kept that would hide it. */
	fake.sampler->fd_limit = 0;
	fake_target_end_thread(&fake, TID);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_GONE);
}

static void a_thread_whose_call_cannot_be_read_has_failed(void **state)
{
	struct wp_thread *t;

	(void)state;
	fake_target_write(&fake, TID, "syscall", "");
	t = start();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_FAILED);
	/* Its time is still ahead. */
	assert_int_equal(fake.sampler->tick_ns - t->time.accounted_ns,
			 10 * WP_NS_PER_MS);
}

static void a_thread_waiting_for_a_cpu_keeps_its_stack(void **state)
{
	struct wp_thread *t;
	uint32_t none;

	(void)state;
	t = start();
	none = wp_profile_add_stack(&fake.profile, &(struct wp_stack){ 0 }, 0);
	/* Its stack was read, and it has not run since. */
	wp_time_ledger_look(&t->time, &(struct wp_schedstat){ 1000, 0, 1 },
			    fake_now_ns, fake_now_ns, true);
	wp_time_ledger_pay_running(&t->time, 0);
	t->last_running_stack = none;
	t->running_stack_holds = true;
	pass_tick();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.target->stop_requests.n, 0);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_RUNNABLE),
			 10 * WP_NS_PER_MS);
}

/* There are perf events, as far as samples are concerned. */
static void has_cpu_samples(void)
{
	static struct wp_perf events;

	fake.target->cpu_events->perf = &events;
}

static void no_cpu_samples(void)
{
	fake.target->cpu_events->perf = NULL;
}

static void a_running_thread_waits_for_its_cpu_sample_for_a_while(void **state)
{
	struct wp_thread *t;

	(void)state;
	t = start();
	has_cpu_samples();
	fake.sampler->region_end_ns = fake_now_ns;
	/* It has had none yet: its first stack comes by a stop. */
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	wp_stop_requests_take(&fake.target->stop_requests, 0);
	t->last_running_stack = 0;
	for (uint64_t i = 0; i < 5; i++) {
		pass_tick();
		fake.sampler->region_end_ns = fake_now_ns;
		fake_target_schedstat(&fake, TID, (i + 2) * 10000000, 0, i + 2);
		assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
		assert_int_equal(t->time.count, i + 1);
		assert_int_equal(t->time.weight_ns, (i + 1) * 10000000);
	}
	pass_tick();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	no_cpu_samples();
}

static void a_cut_cpu_sample_has_its_thread_stopped(void **state)
{
	struct wp_thread *t;

	(void)state;
	t = start();
	has_cpu_samples();
	t->last_running_stack = 0;
	t->aside.stops = 1;
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	no_cpu_samples();
}

static void where_nothing_is_stopped_cpu_samples_are_waited_for(void **state)
{
	struct wp_thread *t;

	(void)state;
	options.stop = WP_STOP_NEVER;
	t = start();
	has_cpu_samples();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(t->time.waiting_ns, 10 * WP_NS_PER_MS);
	no_cpu_samples();
}

static void with_stop_all_cpu_samples_are_not_waited_for(void **state)
{
	struct wp_thread *t;

	(void)state;
	options.stop = WP_STOP_ALL;
	t = start();
	has_cpu_samples();
	t->last_running_stack = 0;
	assert_int_equal(wp_sample_thread(t, true), WP_SAMPLE_WANTS_STOP);
	no_cpu_samples();
}

static void a_recording_of_waits_has_no_running_time(void **state)
{
	struct wp_thread *t;

	(void)state;
	options.wall = false;
	options.mutex = true;
	t = start();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.target->stop_requests.n, 0);
	assert_int_equal(t->time.accounted_ns, fake.sampler->tick_ns);
	assert_false(wp_time_ledger_owes(&t->time));
}

static void a_recording_of_cpu_time_reads_no_calls(void **state)
{
	struct wp_thread *t;

	(void)state;
	fake_target_write(&fake, TID, "syscall", "nonsense");
	t = start();
	fake.target->samples_threads = fake.target->wants_running = false;
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	pass_tick();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	fake_target_schedstat(&fake, TID, 500000, 0, 2);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.threads[t->index].cpu_ns, 500000);
}

/* What a BPF scan says of the thread. */
static struct wp_task_record record_of(char letter, uint64_t slices)
{
	struct wp_task_record record = { .pid = getpid(),
					 .tid = TID,
					 .state_char = letter,
					 .run_ns = 1000,
					 .slices = slices,
					 .start_ns = 50,
					 .nr = SYS_nanosleep,
					 .comm = "worker" };
	const struct wp_regs regs = fake_stack_regs(&stack);

	memcpy(record.regs, regs.v, sizeof(record.regs));
	return record;
}

static void scan(const struct wp_task_record *record)
{
	static const struct wp_task_record *v;

	v = record;
	fake.sampler->scan.v = &v;
	fake.sampler->scan.n = 1;
	fake.sampler->scan.next = 0;
}

static void a_record_takes_the_place_of_reads(void **state)
{
	const struct wp_task_record record = record_of('S', 1);
	struct wp_thread *t;

	(void)state;
	fake_target_write(&fake, TID, "syscall", "nonsense");
	t = start();
	scan(&record);
	assert_int_equal(wp_sample_thread(t, true), WP_SAMPLE_PUT_OFF);
	scan(&record);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.counters.no_stop, 1);
	fake.target->wait_queue.n = 0;
	pass_tick();
	scan(&record);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.counters.unchanged, 1);
}

/* It is woken right after its record was made, and wallprof has no CPU for long: the
 * kernel tells later that it was in the queue all that time. */
static void a_record_tells_of_the_time_when_it_was_made(void **state)
{
	struct wp_task_record record = record_of('S', 1);
	struct wp_thread *t;

	(void)state;
	t = start();
	record.time_ns = fake_now_ns;
	fake_now_ns += 10 * WP_NS_PER_MS;
	scan(&record);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	fake_target_schedstat(&fake, TID, 1000, 10 * WP_NS_PER_MS, 2);
	wp_bpf_scan_forget(fake.sampler);
	fake.sampler->tick_ns = fake_now_ns;
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	assert_int_equal(t->time.runnable_ns, 10 * WP_NS_PER_MS);
}

static void a_record_that_is_out_of_date_is_read_again(void **state)
{
	const struct wp_task_record record = record_of('S', 1);
	struct wp_thread *t;

	(void)state;
	t = start();
	fake_target_schedstat(&fake, TID, 2000, 0, 2);
	scan(&record);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	assert_int_equal(fake.profile.counters.inconsistent, 1);
}

static void a_record_of_a_running_thread_says_only_that_it_has_run(void **state)
{
	const struct wp_task_record record = record_of(0, 5);
	struct wp_thread *t;

	(void)state;
	waits();
	t = start();
	scan(&record);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.counters.no_stop, 1);
}

static void a_later_thread_with_the_same_tid_is_another(void **state)
{
	struct wp_task_record record = record_of('S', 1);
	struct wp_thread *t;

	(void)state;
	t = start();
	scan(&record);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	record.start_ns++;
	pass_tick();
	scan(&record);
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_GONE);
}

static void a_thread_whose_stop_is_to_come_is_left_alone(void **state)
{
	struct wp_thread *t;

	(void)state;
	t = start();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	wp_stop_requests_take(&fake.target->stop_requests, 0);
	wp_stop_request_sent(t, 1);
	assert_int_equal(wp_tracer_interrupt(&fake.tracer, TID, (uintptr_t)t),
			 0);
	pass_tick();
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_int_equal(fake.target->stop_requests.n, 0);
	/* It is not held any more: it ended under the stop, or so it seems. */
	fake.tracer.len = 0;
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_WANTS_STOP);
	assert_int_equal(t->time.running_ns + t->time.runnable_ns +
				 t->time.waiting_ns,
			 20 * WP_NS_PER_MS);
}

static void a_thread_renamed_out_of_the_glob_is_not_sampled(void **state)
{
	struct wp_thread *t;

	(void)state;
	options.thread_globs[0] = "work*";
	t = start();
	assert_true(t->watched);
	fake_target_write(&fake, TID, "comm", "other\n");
	assert_int_equal(wp_sample_thread(t, false), WP_SAMPLE_DONE);
	assert_false(t->watched);
	assert_int_equal(fake.target->stop_requests.n, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_that_has_not_run_is_not_read_again),
		TEST(a_late_cpu_sample_adds_no_time_that_the_books_had),
		TEST(without_schedstat_every_thread_is_read),
		TEST(a_running_thread_wants_a_stop),
		TEST(a_thread_that_moves_is_tried_again_and_then_stopped),
		TEST(it_is_tried_more_often_where_nothing_may_be_stopped),
		TEST(a_waiting_thread_is_put_off_when_those_that_run_come_first),
		TEST(a_thread_that_has_ended_is_gone),
		TEST(a_thread_whose_call_cannot_be_read_has_failed),
		TEST(a_thread_waiting_for_a_cpu_keeps_its_stack),
		TEST(a_running_thread_waits_for_its_cpu_sample_for_a_while),
		TEST(a_cut_cpu_sample_has_its_thread_stopped),
		TEST(where_nothing_is_stopped_cpu_samples_are_waited_for),
		TEST(with_stop_all_cpu_samples_are_not_waited_for),
		TEST(a_recording_of_waits_has_no_running_time),
		TEST(a_recording_of_cpu_time_reads_no_calls),
		TEST(a_record_takes_the_place_of_reads),
		TEST(a_record_tells_of_the_time_when_it_was_made),
		TEST(a_record_that_is_out_of_date_is_read_again),
		TEST(a_record_of_a_running_thread_says_only_that_it_has_run),
		TEST(a_later_thread_with_the_same_tid_is_another),
		TEST(a_thread_whose_stop_is_to_come_is_left_alone),
		TEST(a_thread_renamed_out_of_the_glob_is_not_sampled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
