/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  bpf_scan.h: when a scan is made, and which record is whose.  The
 * records are the test's: it defines wp_task_scan_*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>

#include "one_target.h"

static struct {
	int open_rc, read_rc;
	struct wp_task_record records[6];
	const struct wp_task_record *sorted[6];
	size_t n;
	unsigned int nopens, nreads, ncloses;
	/* What is scanned: the processes that were added and not dropped. */
	int nadded;
	/* What a reading of moved threads answers: v[0..nmoved), at so many switches. */
	int moved_rc;
	const struct wp_task_record *moved[6];
	size_t nmoved;
	uint64_t switches;
	/* Time that a reading of all takes. */
	uint64_t read_ns;
	unsigned int nmoved_reads;
	bool notes;
	/* A thread that opens one waits while it is set. */
	atomic_bool is_loading;
	/* Threads for which there is no room; those that the last was opened for. */
	size_t lacks_room, opened_for;
} scan;

int wp_task_scan_open(struct wp_task_scan **ret, size_t nthreads,
		      struct wp_err *err)
{
	scan.nopens++;
	scan.opened_for = nthreads;
	while (atomic_load(&scan.is_loading))
		sched_yield();
	if (scan.open_rc)
		return wp_err_set(err, scan.open_rc, "no scan today");
	*ret = (struct wp_task_scan *)&scan;
	return 0;
}

int wp_task_scan_add(struct wp_task_scan *s, pid_t pid)
{
	(void)s;
	scan.nadded += pid == getpid();
	return 0;
}

void wp_task_scan_drop(struct wp_task_scan *s, pid_t pid)
{
	(void)s;
	scan.nadded -= pid == getpid();
}

int wp_task_scan_read(struct wp_task_scan *s,
		      const struct wp_task_record *const **ret, size_t *ret_n)
{
	(void)s;
	scan.nreads++;
	fake_now_ns += scan.read_ns;
	if (scan.read_rc)
		return scan.read_rc;
	*ret = scan.sorted;
	*ret_n = scan.n;
	return 0;
}

size_t wp_task_scan_lacks_room(const struct wp_task_scan *s)
{
	(void)s;
	return scan.lacks_room;
}

int wp_task_scan_note_switches(struct wp_task_scan *s, bool on)
{
	(void)s;
	scan.notes = on;
	return 0;
}

int wp_task_scan_read_moved(struct wp_task_scan *s,
			    const struct wp_task_record *const **ret,
			    size_t *ret_n, uint64_t *ret_switches)
{
	(void)s;
	assert_true(scan.notes);
	scan.nmoved_reads++;
	*ret_switches = scan.switches;
	if (scan.moved_rc)
		return scan.moved_rc;
	*ret = scan.moved;
	*ret_n = scan.nmoved;
	return 0;
}

void wp_task_scan_close(struct wp_task_scan *s)
{
	scan.ncloses += s != NULL;
}

static int setup(void **state)
{
	(void)state;
	memset(&scan, 0, sizeof(scan));
	fake_target_open(&fake);
	/* Before and behind the target's are those of other processes. */
	for (pid_t tid = 9; tid < 15; tid++) {
		struct wp_task_record *record = &scan.records[scan.n];

		*record = (struct wp_task_record){
			.pid = getpid() + (tid > 13) - (tid < 10),
			.tid = tid,
			.start_ns = 1,
		};
		scan.sorted[scan.n++] = record;
		if (record->pid == getpid())
			fake_target_add_thread(&fake, tid, "t");
	}
	options = fake_target_options();
	options.stop = WP_STOP_NEVER;
	options.scan = WP_SCAN_BPF;
	return 0;
}

static void every_thread_finds_its_own_record(void **state)
{
	static const pid_t order[] = { 10, 11, 13, 12, 10, 12 };

	(void)state;
	start_target();
	assert_null(wp_bpf_scan_find(fake.sampler, getpid(), 10));
	wp_bpf_scan_take(fake.sampler);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		assert_int_equal(
			wp_bpf_scan_find(fake.sampler, getpid(), order[i])->tid,
			order[i]);
	assert_null(wp_bpf_scan_find(fake.sampler, getpid(), 9));
	assert_null(wp_bpf_scan_find(fake.sampler, getpid(), 14));
	assert_non_null(wp_bpf_scan_find(fake.sampler, getpid() + 1, 14));
	wp_bpf_scan_forget(fake.sampler);
	assert_null(wp_bpf_scan_find(fake.sampler, getpid(), 10));
}

/* No file of a process is read to see that its threads are those of before. */
static void a_scan_tells_whether_threads_are_the_same(void **state)
{
	size_t n;

	(void)state;
	start_target();
	tick();
	assert_int_equal(fake.target->nthreads, 4);
	assert_ptr_equal(wp_bpf_scan_of(fake.sampler, getpid(), &n),
			 &scan.sorted[1]);
	assert_int_equal(n, 4);
	assert_null(wp_bpf_scan_of(fake.sampler, getpid() + 9, &n));
	assert_true(wp_threads_are_as_scanned(fake.target));
	/* Another thread has a tid of before; one has ended; one is new. */
	scan.records[2].start_ns = 2;
	assert_false(wp_threads_are_as_scanned(fake.target));
	scan.records[2].start_ns = 1;
	scan.records[4].pid++;
	assert_false(wp_threads_are_as_scanned(fake.target));
	scan.records[4].pid--;
	scan.records[4].tid++;
	assert_false(wp_threads_are_as_scanned(fake.target));
	wp_bpf_scan_forget(fake.sampler);
	assert_false(wp_threads_are_as_scanned(fake.target));
}

static void a_process_is_scanned_while_it_is_a_target(void **state)
{
	(void)state;
	start_target();
	assert_int_equal(scan.nadded, 1);
	wp_bpf_scan_take(fake.sampler);
	assert_int_equal(scan.nadded, 1);
	/* Another process that has ended had its pid. */
	wp_bpf_scan_drop(fake.sampler, getpid());
	assert_int_equal(scan.nadded, 1);
	fake.target->gone = true;
	wp_bpf_scan_drop(fake.sampler, getpid());
	assert_int_equal(scan.nadded, 0);
	fake.target->gone = false;
}

/* Begin ticks until the scan that is loaded beside them is there, or is not. */
static void take_when_loaded(void)
{
	do
		wp_bpf_scan_take(fake.sampler);
	while (fake.sampler->scan.loader.runs);
}

static void a_scan_is_opened_where_it_is_wanted(void **state)
{
	(void)state;
	options.scan = WP_SCAN_AUTO;
	start_target();
	/* Four threads: not worth it. */
	assert_false(wp_bpf_scan_is_next(fake.sampler));
	wp_bpf_scan_take(fake.sampler);
	assert_int_equal(scan.nopens, 0);
	/* But a stack lacks a register. */
	fake.sampler->scan.wants_regs = true;
	assert_true(wp_bpf_scan_is_next(fake.sampler));
	/* Without schedstat no sample is known to hold. */
	fake.sampler->schedstat_works = false;
	assert_false(wp_bpf_scan_is_next(fake.sampler));
	fake.sampler->schedstat_works = true;
	fake.sampler->options.scan = WP_SCAN_PROC;
	assert_false(wp_bpf_scan_is_next(fake.sampler));
	fake.sampler->options.scan = WP_SCAN_AUTO;
	take_when_loaded();
	assert_int_equal(scan.nopens, 1);
	assert_int_equal(scan.nreads, 1);
	assert_int_equal(scan.nadded, 1);
}

/* The verifier takes ten ticks' time. */
static void ticks_go_on_while_a_scan_is_loaded(void **state)
{
	(void)state;
	options.scan = WP_SCAN_AUTO;
	start_target();
	fake.sampler->scan.wants_regs = true;
	atomic_store(&scan.is_loading, true);
	for (int i = 0; i < 3; i++) {
		tick();
		assert_null(fake.sampler->scan.scan);
		assert_true(wp_bpf_scan_is_next(fake.sampler));
	}
	atomic_store(&scan.is_loading, false);
	take_when_loaded();
	assert_int_equal(scan.nopens, 1);
	assert_int_equal(scan.nadded, 1);
}

/* Its end waits for the load. */
static void a_recording_may_end_while_a_scan_is_loaded(void **state)
{
	(void)state;
	options.scan = WP_SCAN_AUTO;
	start_target();
	fake.sampler->scan.wants_regs = true;
	wp_bpf_scan_take(fake.sampler);
	wp_bpf_scan_close(fake.sampler);
	assert_int_equal(scan.nopens, 1);
	assert_int_equal(scan.ncloses, 1);
	assert_null(fake.sampler->scan.scan);
}

static void why_none_could_be_loaded_is_kept(void **state)
{
	(void)state;
	options.scan = WP_SCAN_AUTO;
	scan.open_rc = -EPERM;
	start_target();
	fake.sampler->scan.wants_regs = true;
	take_when_loaded();
	assert_int_equal(fake.sampler->scan.why.code, -EPERM);
	assert_false(wp_bpf_scan_is_next(fake.sampler));
	wp_bpf_scan_take(fake.sampler);
	assert_int_equal(scan.nopens, 1);
}

/* It would be over when the scan is there. */
static void a_scan_is_loaded_before_the_first_tick(void **state)
{
	(void)state;
	options.scan = WP_SCAN_AUTO;
	start_target();
	assert_int_equal(scan.nopens, 0);
	wp_sampler_prepare(fake.sampler, 49);
	assert_int_equal(scan.nopens, 0);
	wp_sampler_prepare(fake.sampler, 50);
	assert_int_equal(scan.nopens, 1);
	assert_false(fake.sampler->scan.loader.runs);
	tick();
	assert_int_equal(scan.nreads, 1);
}

/* The old one is read until the new one is there. */
static void a_scan_without_room_is_replaced_beside_the_ticks(void **state)
{
	(void)state;
	options.scan = WP_SCAN_SWITCHES;
	start_target();
	wp_bpf_scan_take(fake.sampler);
	take_when_loaded();
	assert_int_equal(scan.nopens, 1);
	atomic_store(&scan.is_loading, true);
	scan.lacks_room = 5000;
	fake.sampler->scan.wants_all = true;
	tick();
	assert_true(fake.sampler->scan.loader.runs);
	/* What moved does not tell of all. */
	scan.nreads = scan.nmoved_reads = 0;
	tick();
	tick();
	assert_int_equal(scan.nreads, 2);
	assert_int_equal(scan.ncloses, 0);
	atomic_store(&scan.is_loading, false);
	fake.sampler->scan.notes.switches = 1000000;
	take_when_loaded();
	assert_int_equal(scan.nopens, 2);
	assert_int_equal(scan.opened_for, 5000);
	assert_int_equal(scan.ncloses, 1);
	/* Its notes count switches from 0. */
	assert_int_equal(fake.sampler->scan.notes.switches, 0);
	assert_non_null(wp_bpf_scan_find(fake.sampler, getpid(), 10));
	/* It was opened for so many, and lacks room again: another would, too. */
	fake.sampler->scan.wants_all = true;
	tick();
	assert_false(fake.sampler->scan.loader.runs);
	scan.open_rc = -ENOMEM;
	scan.lacks_room = 5001;
	fake.sampler->scan.wants_all = true;
	take_when_loaded();
	take_when_loaded();
	assert_int_equal(scan.nopens, 3);
	/* The one that is there goes on. */
	assert_int_equal(scan.ncloses, 1);
	assert_int_equal(fake.sampler->scan.why.code, 0);
	assert_non_null(wp_bpf_scan_find(fake.sampler, getpid(), 10));
}

static void why_there_is_no_scan_is_in_the_profile(void **state)
{
	const struct wp_profile *profile = &fake.profile;

	(void)state;
	scan.open_rc = -EPERM;
	start_target();
	assert_int_equal(fake_target_tick(&fake, 0), 0);
	assert_int_equal(fake_target_tick(&fake, 1), 0);
	/* Tried once. */
	assert_int_equal(scan.nopens, 1);
	wp_common_fill_counters(fake.target->common, fake.sampler);
	assert_string_equal(wp_profile_str(profile, profile->meta.no_scan),
			    "no scan today");
}

static void a_scan_that_fails_is_closed(void **state)
{
	(void)state;
	start_target();
	wp_bpf_scan_take(fake.sampler);
	scan.read_rc = -EIO;
	wp_bpf_scan_take(fake.sampler);
	assert_int_equal(scan.ncloses, 1);
	assert_null(wp_bpf_scan_find(fake.sampler, getpid(), 10));
	assert_int_equal(fake.sampler->scan.why.code, -EIO);
	assert_false(wp_bpf_scan_is_next(fake.sampler));
}

/* Have the next scan be at tick AT_NS. */
static void scan_at(uint64_t at_ns)
{
	fake.sampler->tick_ns = at_ns;
	wp_bpf_scan_take(fake.sampler);
}

static void what_moved_is_read_and_all_once_a_second(void **state)
{
	uint64_t at_ns = UINT64_C(1000) * WP_NS_PER_S;

	(void)state;
	options.scan = WP_SCAN_SWITCHES;
	options.stop = WP_STOP_AUTO;
	start_target();
	scan.moved[0] = &scan.records[2];
	scan.nmoved = 1;
	/* Notes begin with a scan of all behind them. */
	scan_at(at_ns);
	assert_true(scan.notes);
	assert_int_equal(scan.nreads, 1);
	scan_at(at_ns += TICK);
	assert_int_equal(scan.nreads, 2);
	for (int i = 0; i < 99; i++)
		scan_at(at_ns += TICK);
	assert_int_equal(scan.nreads, 2);
	assert_true(fake.sampler->scan.is_of_moved);
	assert_non_null(wp_bpf_scan_find(fake.sampler, getpid(), 11));
	assert_null(wp_bpf_scan_find(fake.sampler, getpid(), 10));
	scan_at(at_ns += TICK);
	assert_int_equal(scan.nreads, 3);
	assert_false(fake.sampler->scan.is_of_moved);
	assert_non_null(wp_bpf_scan_find(fake.sampler, getpid(), 10));
	/* A thread without a record is to have one. */
	scan_at(at_ns += TICK);
	wp_bpf_scan_want(fake.sampler, getpid(), 11);
	scan_at(at_ns += TICK);
	assert_int_equal(scan.nreads, 3);
	wp_bpf_scan_want(fake.sampler, getpid(), 10);
	scan_at(at_ns += TICK);
	assert_int_equal(scan.nreads, 4);
	/* Not all is noted. */
	scan.moved_rc = -EAGAIN;
	scan_at(at_ns += TICK);
	assert_int_equal(scan.nreads, 5);
	assert_true(scan.notes);
}

/* Ticks from *AT_NS on for NS, with so many switches of the machine at each. */
static void go_on(uint64_t *at_ns, uint64_t ns, uint64_t switches)
{
	for (uint64_t end_ns = *at_ns + ns; *at_ns < end_ns;) {
		scan.switches += scan.notes ? switches : 0;
		scan_at(*at_ns += TICK);
	}
}

/* A scan of all takes 100 us, so at 100 Hz one that is spared each time is worth the time
 * of some 20,000 switches a second. */
static void notes_are_given_up_where_switches_are_many(void **state)
{
	uint64_t at_ns = UINT64_C(1000) * WP_NS_PER_S;

	(void)state;
	options.scan = WP_SCAN_AUTO;
	options.stop = WP_STOP_AUTO;
	start_target();
	fake.sampler->scan.wants_regs = true;
	scan.read_ns = WP_NS_PER_US;
	fake.sampler->tick_ns = at_ns;
	take_when_loaded();
	assert_false(scan.notes);
	fake.sampler->scan.notes.all_ns = 0;
	scan.read_ns = 100 * WP_NS_PER_US;
	go_on(&at_ns, 3 * WP_NS_PER_S, 150);
	assert_true(scan.notes);
	go_on(&at_ns, WP_NS_PER_S, 300);
	assert_false(scan.notes);
	/* It is tried again, later each time. */
	go_on(&at_ns, 8 * WP_NS_PER_S, 300);
	assert_false(scan.notes);
	go_on(&at_ns, 2 * WP_NS_PER_S, 150);
	assert_true(scan.notes);
	go_on(&at_ns, WP_NS_PER_S, 300);
	assert_false(scan.notes);
	go_on(&at_ns, 18 * WP_NS_PER_S, 300);
	assert_false(scan.notes);
	go_on(&at_ns, 2 * WP_NS_PER_S, 150);
	assert_true(scan.notes);
}

static void all_are_read_where_that_is_asked_for(void **state)
{
	static const struct {
		enum wp_scan_mode scan;
		enum wp_stop_mode stop;
	} v[] = { { WP_SCAN_BPF, WP_STOP_AUTO },
		  { WP_SCAN_SWITCHES, WP_STOP_ALL } };
	uint64_t at_ns = UINT64_C(1000) * WP_NS_PER_S;

	(void)state;
	start_target();
	scan.read_ns = WP_NS_PER_MS;
	for (size_t i = 0; i < 2; i++) {
		fake.sampler->options.scan = v[i].scan;
		fake.sampler->options.stop = v[i].stop;
		go_on(&at_ns, WP_NS_PER_S, 0);
		assert_false(scan.notes);
	}
	assert_int_equal(scan.nmoved_reads, 0);
}

/* Threads that did not move are paid for the ticks that passed them over, as others are
 * at each. */
static void who_is_passed_over_is_paid_the_same(void **state)
{
	static const struct wp_sample_key key = { .state = WP_STATE_WAITING };
	struct wp_profile_sample got[2];

	(void)state;
	for (int notes = 0; notes < 2; notes++) {
		const struct wp_sample_set *set =
			&fake.profile.sets[WP_PROFILE_WALL];
		struct wp_thread *t;

		if (notes) {
			fake_target_close(&fake);
			memset(&scan, 0, sizeof(scan));
			setup(state);
		}
		options.stop = WP_STOP_AUTO;
		options.scan = notes ? WP_SCAN_SWITCHES : WP_SCAN_BPF;
		start_target();
		for (int i = 0; i < 3; i++)
			tick();
		t = fake.target->threads[1];
		t->wait.waiting = true;
		t->wait.key = key;
		t->wait.key.thread = t->index;
		for (int i = 0; i < 20; i++)
			tick();
		assert_int_equal(scan.nmoved_reads > 0, notes);
		wp_threads_settle(t);
		assert_int_equal(t->paid_tick, fake.target->tick);
		assert_true(t->wait.sample < set->nsamples);
		got[notes] = set->samples[t->wait.sample];
	}
	assert_int_equal(got[0].count, 20);
	assert_int_equal(got[1].count, got[0].count);
	assert_int_equal(got[1].wall_ns, got[0].wall_ns);
	assert_int_equal(got[1].exact_ns, got[0].exact_ns);
	assert_int_equal(got[1].weight_ns, got[0].weight_ns);
	assert_int_equal(got[1].looks, got[0].looks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			every_thread_finds_its_own_record, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_scan_tells_whether_threads_are_the_same, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_process_is_scanned_while_it_is_a_target, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_scan_is_opened_where_it_is_wanted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			ticks_go_on_while_a_scan_is_loaded, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_recording_may_end_while_a_scan_is_loaded, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			why_none_could_be_loaded_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_scan_is_loaded_before_the_first_tick, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_scan_without_room_is_replaced_beside_the_ticks, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			why_there_is_no_scan_is_in_the_profile, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_scan_that_fails_is_closed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_moved_is_read_and_all_once_a_second, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			notes_are_given_up_where_switches_are_many, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			all_are_read_where_that_is_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(
			who_is_passed_over_is_paid_the_same, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
