/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  host_events.h, wait_child.h: events of CPUs reach the process and
 * the thread they belong to, and who watches processes; which child is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../src/sample/block_records.h"
#include "../../src/sample/block_waits.h"
#include "../../src/sample/host_events.h"
#include "../../src/sample/wait_child.h"
#include "fake_perf.h"
#include "few_allocations.h"
#include "one_target.h"

enum { TID = 7, PERIOD = 10 * WP_NS_PER_MS };

/* What the watch was told. */
static struct {
	enum wp_perf_type types[8];
	size_t n;
} told;
static pid_t children[2];

static void tell(void *ctx, const struct wp_perf_record *record)
{
	assert_ptr_equal(ctx, &told);
	told.types[told.n++ % 8] = record->type;
}

static int setup(void **state)
{
	(void)state;
	told.n = 0;
	children[0] = children[1] = 0;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	fake_target_add_thread(&fake, TID, "worker");
	options = fake_target_options();
	options.cpu = true;
	options.many = true;
	options.watch = (struct wp_task_watch){ tell, &told };
	return 0;
}

static int end(void **state)
{
	for (size_t i = 0; i < 2; i++)
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
	return teardown(state);
}

static void put(enum wp_perf_type type, pid_t pid, pid_t tid)
{
	struct wp_perf_record record = {
		.type = type,
		.time_ns = fake_now_ns,
		.pid = pid,
		.tid = tid,
		.period = PERIOD,
		.regs = fake_stack_regs(&stack),
	};

	fake_perf_put(fake.sampler->host_events.perf, &record);
}

static uint64_t cpu_ns(void)
{
	uint64_t ns = 0;

	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < fake.profile.sets[kind].nsamples; i++)
			ns += fake.profile.sets[kind].samples[i].cpu_ns;
	return ns;
}

static void samples_reach_their_process(void **state)
{
	(void)state;
	start_target();
	assert_non_null(fake.sampler->host_events.perf);
	assert_int_equal(fake.sampler->host_events.perf->options.scope,
			 WP_PERF_CPU);
	tick();
	put(WP_PERF_SAMPLE_CPU, getpid(), TID);
	put(WP_PERF_SAMPLE_CPU, getpid() + 1, TID);
	assert_int_equal(wp_host_events_read(fake.sampler), 0);
	assert_int_equal(cpu_ns(), PERIOD);
	put(WP_PERF_SAMPLE_CPU, getpid(), TID);
	assert_int_equal(wp_host_events_finish(fake.sampler), 0);
	assert_int_equal(cpu_ns(), 2 * PERIOD);
	assert_false(fake.sampler->host_events.perf->enabled);
	/* It has ended. */
	/* It ran before it ended. */
	fake.target->gone = true;
	put(WP_PERF_SAMPLE_CPU, getpid(), TID);
	assert_int_equal(wp_host_events_finish(fake.sampler), 0);
	assert_int_equal(cpu_ns(), 3 * PERIOD);
	fake.target->forgotten = true;
	put(WP_PERF_SAMPLE_CPU, getpid(), TID);
	assert_int_equal(wp_host_events_finish(fake.sampler), 0);
	assert_int_equal(cpu_ns(), 3 * PERIOD);
	fake.target->gone = fake.target->forgotten = false;
}

static void who_watches_is_told_of_processes(void **state)
{
	(void)state;
	start_target();
	put(WP_PERF_FORK, 50, 50);
	/* A thread. */
	put(WP_PERF_FORK, 50, 51);
	put(WP_PERF_EXIT, 50, 51);
	put(WP_PERF_NAME, 50, 50);
	put(WP_PERF_EXIT, 50, 50);
	put(WP_PERF_SAMPLE_CPU, 50, 50);
	assert_int_equal(wp_host_events_read(fake.sampler), 0);
	assert_int_equal(told.n, 3);
	assert_int_equal(told.types[0], WP_PERF_FORK);
	assert_int_equal(told.types[1], WP_PERF_NAME);
	assert_int_equal(told.types[2], WP_PERF_EXIT);
	fake.sampler->finishing = true;
	put(WP_PERF_FORK, 60, 60);
	assert_int_equal(wp_host_events_finish(fake.sampler), 0);
	assert_int_equal(told.n, 3);
}

static void put_name(pid_t tid, const char *name, bool by_exec)
{
	const struct wp_perf_record record = {
		.type = WP_PERF_NAME,
		.time_ns = fake_now_ns,
		.pid = getpid(),
		.tid = tid,
		.name = name,
		.by_exec = by_exec,
	};

	fake_perf_put(fake.sampler->host_events.perf, &record);
}

static const char *name_of(pid_t tid)
{
	const struct wp_thread *t = wp_threads_find(fake.target, tid);

	assert_non_null(t);
	return wp_profile_str(&fake.profile,
			      fake.profile.threads[t->index].name);
}

/* What renames itself all the time takes one name of each tick. */
static void of_new_names_within_a_tick_the_last_is_kept(void **state)
{
	uint32_t len;

	(void)state;
	fake_target_add_thread(&fake, TID + 1, "other");
	start_target();
	tick();
	len = fake.profile.strings.len;
	put_name(TID, "one", false);
	put_name(TID, "two", false);
	put_name(TID + 1, "else", false);
	put_name(TID, "a name too long for a thread", false);
	assert_int_equal(wp_host_events_read(fake.sampler), 0);
	assert_string_equal(name_of(TID), "a name too long");
	assert_string_equal(name_of(TID + 1), "else");
	assert_int_equal(fake.profile.strings.len, len + 2);
	put_name(TID, "", false);
	put_name(TID + 1, "three", false);
	assert_int_equal(wp_host_events_read(fake.sampler), 0);
	assert_string_equal(name_of(TID), "");
	assert_string_equal(name_of(TID + 1), "three");
	assert_int_equal(fake.profile.strings.len, len + 3);
	/* A program has its samples from then on. */
	put_name(TID, "program", true);
	put_name(TID, "end", false);
	assert_int_equal(wp_host_events_read(fake.sampler), 0);
	assert_string_equal(name_of(TID), "end");
	assert_int_not_equal(wp_intern_find(&fake.profile.strings, "program"),
			     UINT32_MAX);
}

static void put_wait_record(enum wp_perf_type type, pid_t pid, pid_t tid)
{
	const struct wp_perf_record record = {
		.type = type,
		.time_ns = fake_now_ns,
		.pid = pid,
		.tid = tid,
		.waker_tid = 1,
	};

	fake_perf_put(fake_perf_last(), &record);
}

/* The time of the block profile in STATE. */
static uint64_t blocked_ns(enum wp_state state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_BLOCK];
	uint64_t ns = 0;

	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].key.state == state)
			ns += set->samples[i].wall_ns;
	return ns;
}

/* Waits of all processes, told by every switch. */
static void start_waits(void)
{
	options.wall = options.cpu = false;
	options.block = true;
	options.block_rate.every = 1;
	options.stop = WP_STOP_NEVER;
	start_target();
}

/* Thread TID leaves its CPU, and enters it a millisecond later. */
static void put_wait(pid_t pid, pid_t tid)
{
	put_wait_record(WP_PERF_SWITCH_OUT, pid, tid);
	fake_now_ns += WP_NS_PER_MS;
	put_wait_record(WP_PERF_SWITCH_IN, pid, tid);
}

/* A thread of another process leaves its CPU and enters it between. */
static void waits_reach_their_process(void **state)
{
	const pid_t other = getpid() + 1;

	(void)state;
	start_waits();
	assert_int_equal(fake_perf_last()->options.scope, WP_PERF_CPU);
	assert_true(fake_perf_last()->options.wakes);
	tick();
	put_wait_record(WP_PERF_SWITCH_OUT, other, TID + 1);
	put_wait_record(WP_PERF_SWITCH_OUT, getpid(), TID);
	fake_now_ns += WP_NS_PER_MS;
	put_wait_record(WP_PERF_SWITCH_IN, other, TID + 1);
	fake_now_ns += WP_NS_PER_MS;
	/* Wakes tell no process. */
	put_wait_record(WP_PERF_WAKE, 0, TID + 1);
	put_wait_record(WP_PERF_WAKE, 0, TID);
	fake_now_ns += WP_NS_PER_MS;
	put_wait_record(WP_PERF_SWITCH_IN, getpid(), TID);
	tick();
	tick();
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_int_equal(blocked_ns(WP_STATE_WAITING), 2 * WP_NS_PER_MS);
	assert_int_equal(blocked_ns(WP_STATE_RUNNABLE), WP_NS_PER_MS);
}

/* No tick has listed the thread when the first record, a wake, tells of it. */
static void a_wake_before_the_first_tick_hides_no_wait(void **state)
{
	(void)state;
	start_waits();
	put_wait_record(WP_PERF_WAKE, 0, TID);
	fake_now_ns += WP_NS_PER_MS;
	put_wait_record(WP_PERF_SWITCH_IN, getpid(), TID);
	put_wait(getpid(), TID);
	fake_now_ns += 2 * WP_NS_PER_MS;
	tick();
	put_wait(getpid(), TID);
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_int_equal(blocked_ns(WP_STATE_WAITING), 2 * WP_NS_PER_MS);
}

static void a_tid_of_another_process_may_become_ours(void **state)
{
	(void)state;
	start_waits();
	tick();
	put_wait(getpid() + 1, TID);
	put_wait_record(WP_PERF_WAKE, 0, TID);
	put_wait(getpid(), TID);
	put_wait(getpid() + 1, TID);
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_int_equal(blocked_ns(WP_STATE_WAITING), WP_NS_PER_MS);
}

/* The first switches of a child come before it is looked at. */
static void waits_of_a_process_that_is_added_later_are_told(void **state)
{
	(void)state;
	start_waits();
	tick();
	fake.sampler->ntargets = 0;
	put_wait(getpid(), TID);
	assert_int_equal(
		wp_block_records_read(fake.target->block_waits, UINT64_MAX), 0);
	fake.sampler->ntargets = 1;
	assert_int_equal(wp_block_waits_open(fake.target), 0);
	put_wait(getpid(), TID);
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_int_equal(blocked_ns(WP_STATE_WAITING), WP_NS_PER_MS);
}

static void one_process_has_no_events_of_all(void **state)
{
	(void)state;
	options.many = false;
	start_target();
	assert_null(fake.sampler->host_events.perf);
	assert_int_equal(wp_host_events_read(fake.sampler), 0);
	assert_int_equal(wp_host_events_finish(fake.sampler), 0);
}

/* Which child TID waits for, with PID as the argument of wait4(2). */
static const char *child_of(int32_t pid)
{
	struct wp_thread *t = wp_threads_find_or_add(fake.target, TID);
	struct wp_sample_key key = { 0 };

	assert_non_null(t);
	t->wait.facts.syscall_nr = SYS_wait4;
	t->wait.facts.args[0] = (uint64_t)(int64_t)pid;
	assert_int_equal(wp_wait_child_describe(t, &key), 0);
	assert_int_equal(wp_wait_child_confirm(t, &key), 0);
	return wp_profile_str(&fake.profile, key.object);
}

static void the_child_that_is_waited_for_is_named(void **state)
{
	char text[64], want[64];

	(void)state;
	options.many = false;
	start_target();
	for (size_t i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		assert_true(children[i] > 0);
	}
	snprintf(text, sizeof(text), "%d ", children[0]);
	fake_target_write(&fake, TID, "children", text);
	snprintf(want, sizeof(want), "child %d (", children[0]);
	assert_memory_equal(child_of(-1), want, strlen(want));
	snprintf(text, sizeof(text), "%d %d ", children[0], children[1]);
	fake_target_write(&fake, TID, "children", text);
	snprintf(want, sizeof(want), "one of 2 children, %d (", children[0]);
	assert_memory_equal(child_of(-1), want, strlen(want));
	snprintf(want, sizeof(want), "child %d (", children[1]);
	assert_memory_equal(child_of(children[1]), want, strlen(want));
}

/* CPU samples are taken where they are wanted, the kernel's frames with them if those
 * are, and the tasks of the host always. */
static void events_are_opened_for_what_is_wanted(void **state)
{
	for (int cpu = 0; cpu < 2; cpu++)
		for (int kernel = 0; kernel < 2; kernel++) {
			const struct wp_perf_options *o;

			options.cpu = cpu;
			options.kernel = kernel;
			start_target();
			o = &fake.sampler->host_events.perf->options;
			assert_int_equal(o->period_ns,
					 cpu ? options.interval_ns : 0);
			assert_int_equal(o->stack_bytes,
					 cpu ? WP_PERF_SOURCE_FIRST_STACK : 0);
			assert_int_equal(o->user_regs, cpu);
			assert_int_equal(o->kernel_chain, cpu && kernel);
			assert_true(o->tasks);
			assert_true(fake.sampler->host_events.perf->enabled);
			teardown(state);
			setup(state);
		}
}

/* The next period is any: what runs in step with the last is met, too. */
static void periods_of_cpu_samples_are_drawn_anew(void **state)
{
	for (int cpu = 0; cpu < 2; cpu++) {
		uint32_t before;

		options.cpu = cpu;
		start_target();
		before = fake.sampler->host_events.perf->ndraws;
		assert_int_equal(wp_host_events_read(fake.sampler), 0);
		assert_int_equal(fake.sampler->host_events.perf->ndraws,
				 before + (uint32_t)cpu);
		teardown(state);
		setup(state);
	}
}

static void lost_records_are_counted(void **state)
{
	const struct wp_perf_record lost = { .type = WP_PERF_LOST, .lost = 3 };

	(void)state;
	start_target();
	fake_perf_put(fake.sampler->host_events.perf, &lost);
	assert_int_equal(wp_host_events_read(fake.sampler), 0);
	assert_int_equal(fake.profile.counters.cpu_lost, 3);
	assert_int_equal(told.n, 0);
}

static void a_thread_has_the_name_that_an_event_tells(void **state)
{
	struct wp_perf_record name = { .type = WP_PERF_NAME,
				       .pid = getpid(),
				       .tid = TID,
				       .name = "other" };
	const struct wp_thread *t;

	(void)state;
	start_target();
	tick();
	fake_perf_put(fake.sampler->host_events.perf, &name);
	/* Of a thread and of a process that are not known. */
	name.tid = 4711;
	fake_perf_put(fake.sampler->host_events.perf, &name);
	name.pid = 4711;
	fake_perf_put(fake.sampler->host_events.perf, &name);
	assert_int_equal(wp_host_events_read(fake.sampler), 0);
	t = wp_threads_find(fake.target, TID);
	assert_string_equal(wp_profile_str(&fake.profile,
					   fake.profile.threads[t->index].name),
			    "other");
}

#ifdef CAN_FAIL
static void a_sample_without_memory_is_an_error(void **state)
{
	uint32_t ndraws;

	(void)state;
	start_target();
	tick();
	ndraws = fake.sampler->host_events.perf->ndraws;
	/* A thread that is not known yet. */
	put(WP_PERF_SAMPLE_CPU, getpid(), TID + 1);
	allocations_left = 0;
	assert_int_equal(wp_host_events_read(fake.sampler), -ENOMEM);
	allocations_left = -1;
	assert_int_equal(fake.sampler->host_events.perf->ndraws, ndraws);
	put(WP_PERF_SAMPLE_CPU, getpid(), TID + 2);
	allocations_left = 0;
	assert_int_equal(wp_host_events_finish(fake.sampler), -ENOMEM);
	allocations_left = -1;
}
#endif

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_reach_their_process),
		TEST(who_watches_is_told_of_processes),
		TEST(of_new_names_within_a_tick_the_last_is_kept),
		TEST(waits_reach_their_process),
		TEST(a_wake_before_the_first_tick_hides_no_wait),
		TEST(a_tid_of_another_process_may_become_ours),
		TEST(waits_of_a_process_that_is_added_later_are_told),
		TEST(one_process_has_no_events_of_all),
		TEST(the_child_that_is_waited_for_is_named),
		TEST(events_are_opened_for_what_is_wanted),
		TEST(periods_of_cpu_samples_are_drawn_anew),
		TEST(lost_records_are_counted),
		TEST(a_thread_has_the_name_that_an_event_tells),
#ifdef CAN_FAIL
		TEST(a_sample_without_memory_is_an_error),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
