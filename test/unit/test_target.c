/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  Ticks of a target with a fake /proc, clock and tracer: what each
 * thread is credited with is the time that the clock passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/syscall.h>

#include "fake_target.h"

static struct fake_target fake;
static struct fake_stack stack;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_target_close(&fake);
	return 0;
}

static void start(const struct wp_sampler_options *options)
{
	assert_int_equal(fake_target_start(&fake, options), 0);
}

static void a_waiting_thread_is_credited_with_all_its_time(void **state)
{
	const struct wp_sampler_options options = fake_target_options();
	const struct wp_regs regs = fake_stack_regs(&stack);

	(void)state;
	fake_target_add_thread(&fake, 7, "waiter");
	fake_target_waits(&fake, 7, SYS_nanosleep, 0, &regs);
	start(&options);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fake_target_tick(&fake, 10 * WP_NS_PER_MS), 0);
	assert_int_equal(fake_target_wall_ns(&fake, 7, WP_STATE_WAITING),
			 100 * WP_NS_PER_MS);
	assert_int_equal(fake.profile.counters.no_stop, 1);
	assert_int_equal(fake.profile.counters.unchanged, 9);
	/* The leaf, its caller, and what glibc begins a context with. */
	assert_int_equal(fake.profile.stacks[0].depth, 3);
	assert_int_equal(fake_stop.ninterrupts, 0);
}

static void a_thread_that_ends_is_paid_what_it_is_owed(void **state)
{
	const struct wp_sampler_options options = fake_target_options();

	(void)state;
	fake_target_add_thread(&fake, 7, "a");
	fake_target_add_thread(&fake, 8, "b");
	start(&options);
	fake_stop.dies = true;
	assert_int_equal(fake_target_tick(&fake, 10 * WP_NS_PER_MS), 0);
	fake_target_end_thread(&fake, 7);
	assert_int_equal(fake_target_tick(&fake, 10 * WP_NS_PER_MS), 0);
	assert_int_equal(fake_target_wall_ns(&fake, 7, WP_NSTATES),
			 10 * WP_NS_PER_MS);
	assert_int_equal(fake.target->nthreads, 1);
	assert_int_equal(fake.target->nended, 0);
}

static void threads_that_are_not_watched_are_read_for_their_names(void **state)
{
	struct wp_sampler_options options = fake_target_options();

	(void)state;
	options.thread_globs[0] = "io";
	fake_target_add_thread(&fake, 7, "main");
	start(&options);
	assert_int_equal(fake_target_tick(&fake, 10 * WP_NS_PER_MS), 0);
	assert_int_equal(fake.profile.sets[WP_PROFILE_WALL].nsamples, 0);
	fake_target_write(&fake, 7, "comm", "io\n");
	assert_int_equal(fake_target_tick(&fake, 10 * WP_NS_PER_MS), 0);
	assert_int_equal(fake_target_tick(&fake, 10 * WP_NS_PER_MS), 0);
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	/* And what a stop took. */
	assert_in_range(fake_target_wall_ns(&fake, 7, WP_NSTATES),
			10 * WP_NS_PER_MS, 11 * WP_NS_PER_MS);
}

/* The group and unit of each of many processes are said, but of one that shares its
 * entry with others. */
static void each_of_many_processes_has_its_group(void **state)
{
	static const char cgroup[] = "0::/system.slice/x.service\n";
	struct wp_sampler_options options = fake_target_options();
	const struct wp_profile_process *p;

	(void)state;
	options.many = true;
	fake_target_write(&fake, 0, "cgroup", cgroup);
	start(&options);
	p = &fake.profile.processes[fake.target->index];
	assert_string_equal(wp_profile_str(&fake.profile, p->cgroup),
			    "/system.slice/x.service");
	assert_string_equal(wp_profile_str(&fake.profile, p->unit),
			    "x.service");
	teardown(state);
	setup(state);
	options.own_threads = 1;
	fake_target_write(&fake, 0, "cgroup", cgroup);
	wp_profile_add_process(&fake.profile,
			       &(struct wp_profile_process){ .pid = 1 });
	start(&options);
	p = &fake.profile.processes[fake.target->index];
	assert_true(p->is_shared);
	assert_int_equal(p->cgroup, 0);
}

static void what_has_no_group_or_is_alone_has_none(void **state)
{
	for (int many = 0; many < 2; many++) {
		struct wp_sampler_options options = fake_target_options();
		const struct wp_profile_process *p;

		options.many = many;
		if (!many)
			fake_target_write(&fake, 0, "cgroup", "0::/a\n");
		start(&options);
		p = &fake.profile.processes[fake.target->index];
		assert_int_equal(p->cgroup, 0);
		teardown(state);
		setup(state);
	}
}

static void a_process_that_has_gone_is_said(void **state)
{
	const struct wp_sampler_options options = fake_target_options();
	struct wp_err err = WP_ERR_INIT;
	char path[128], want[64];

	(void)state;
	start(&options);
	snprintf(path, sizeof(path), "%s/maps", fake.dir);
	unlink(path);
	/* As of a zombie. */
	fake_target_write(&fake, 0, "maps", "");
	assert_int_equal(wp_sampler_add_target(fake.sampler, &fake.process,
					       &fake.profile, &fake.target,
					       &err),
			 -ESRCH);
	snprintf(want, sizeof(want), "process %d has gone", fake.process.pid);
	assert_string_equal(err.msg, want);
}

/* With --stop=all what calls refer to is copied while all are stopped, else after the
 * looks. */
static void memory_is_of_one_moment_only_where_it_is_asked_for(void **state)
{
	struct wp_sampler_options options = fake_target_options();
	const struct wp_regs regs = fake_stack_regs(&stack);

	for (int asked = 0; asked < 2; asked++) {
		options.call_memory = asked;
		fake_target_add_thread(&fake, 7, "waiter");
		fake_target_waits(&fake, 7, SYS_nanosleep, 0, &regs);
		start(&options);
		assert_int_equal(fake_target_tick(&fake, WP_NS_PER_MS), 0);
		assert_int_equal(fake.target->threads[0]->at_instant, asked);
		teardown(state);
		setup(state);
	}
}

/* Threads in a random life: they run, wait, wait for a CPU, begin and end, and
 * their stops come, come late, are refused, or kill them. */
enum { FIRST_TID = 10, NTIDS = 5 };

struct life {
	unsigned int seed;
	bool there[NTIDS];
	uint64_t run_ns[NTIDS], wait_ns[NTIDS], slices[NTIDS];
};

static unsigned int dice(struct life *life, unsigned int n)
{
	return (unsigned int)rand_r(&life->seed) % n;
}

static void live(struct life *life, unsigned int i, uint64_t ns)
{
	const struct wp_regs regs = fake_stack_regs(&stack);
	pid_t tid = FIRST_TID + (pid_t)i;

	if (!life->there[i]) {
		if (dice(life, 4))
			return;
		fake_target_add_thread(&fake, tid, "t");
		life->there[i] = true;
		life->run_ns[i] = life->wait_ns[i] = life->slices[i] = 1;
		return;
	}
	switch (dice(life, 8)) {
	case 0:
		fake_target_end_thread(&fake, tid);
		life->there[i] = false;
		return;
	case 1:
	case 2:
		/* It has not run. */
		return;
	case 3:
		life->wait_ns[i] += ns;
		break;
	case 4:
		fake_target_waits(&fake, tid, SYS_nanosleep, 0, &regs);
		break;
	default:
		life->run_ns[i] += ns / (1 + dice(life, 3));
		fake_target_runs(&fake, tid);
	}
	life->slices[i]++;
	fake_target_schedstat(&fake, tid, life->run_ns[i], life->wait_ns[i],
			      life->slices[i]);
}

static void choose_stops(struct life *life)
{
	static const int codes[] = { 0, 0, 0, -EPERM, -EALREADY, -ESRCH };

	fake_stop.interrupt_rc = codes[dice(life, 6)];
	fake_stop.comes = dice(life, 3);
	fake_stop.dies = !dice(life, 6);
	fake_stop.facts.asleep = !dice(life, 4);
}

/* The wall time of each thread is the time between its first moment and its last
 * sample, and that is now for a thread that is there. */
static void assert_time_is_whole(void)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];

	for (uint32_t n = 0; n < fake.profile.nthreads; n++) {
		const struct wp_profile_thread *p = &fake.profile.threads[n];
		uint64_t ns = 0;

		for (uint32_t i = 0; i < set->nsamples; i++)
			if (set->samples[i].key.thread == n)
				ns += set->samples[i].wall_ns;
		assert_int_equal(ns, p->last_ns - p->first_ns);
	}
	for (size_t i = 0; i < fake.target->nthreads; i++)
		assert_int_equal(
			fake.profile.threads[fake.target->threads[i]->index]
				.last_ns,
			fake.target->last_tick_ns);
}

static void play(unsigned int seed)
{
	static const uint64_t steps[] = { 100, 10 * WP_NS_PER_MS,
					  40 * WP_NS_PER_MS,
					  900 * WP_NS_PER_MS };
	struct wp_sampler_options options = fake_target_options();
	struct life life = { .seed = seed };

	options.stop = (enum wp_stop_mode)(seed % WP_NSTOP_MODES);
	options.max_stopped = seed % 2 ? 0.001 : 0;
	fake_target_add_thread(&fake, 5, "main");
	fake_stop.regs = fake_stack_regs(&stack);
	start(&options);
	for (int tick = 0; tick < 150; tick++) {
		uint64_t ns = steps[dice(&life, 4)];

		for (unsigned int i = 0; i < NTIDS; i++)
			live(&life, i, ns);
		choose_stops(&life);
		assert_int_equal(fake_target_tick(&fake, ns), 0);
		if (dice(&life, 2))
			assert_int_equal(wp_sampler_sleep(fake.sampler,
							  fake_now_ns + 1000),
					 0);
	}
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_time_is_whole();
}

static void sums_stay_right_whatever_threads_and_stops_do(void **state)
{
	for (unsigned int seed = 1; seed <= 24; seed++) {
		play(seed);
		teardown(state);
		setup(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_waiting_thread_is_credited_with_all_its_time, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_thread_that_ends_is_paid_what_it_is_owed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			threads_that_are_not_watched_are_read_for_their_names,
			setup, teardown),
		cmocka_unit_test_setup_teardown(
			sums_stay_right_whatever_threads_and_stops_do, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			each_of_many_processes_has_its_group, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_has_no_group_or_is_alone_has_none, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_process_that_has_gone_is_said,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			memory_is_of_one_moment_only_where_it_is_asked_for,
			setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
