/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  When a process is checked for hangs, what is over a threshold, and which
 * files stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/cmd/hang_files.h"
#include "../../src/cmd/hang_watch.h"
#include "wallprof/clock.h"
#include "profile_maker.h"

enum { S = 1000000000 };

static void a_check_is_made_at_once_and_then_ever_more_seldom(void **state)
{
	static const unsigned int pauses[] = { 4, 8, 16, 32, 60, 60 };
	const struct wp_options options = { .on_hang = NULL };
	struct wp_digest d = { .nthreads = 3 };
	uint64_t now = 100 * (uint64_t)S;
	struct wp_hang_watch w;

	(void)state;
	wp_hang_watch_init(&w);
	assert_false(wp_hang_watch_is_due(&w, &options, &d, now));
	for (int again = 0; again < 2; again++) {
		d.nsuspects = 1;
		assert_true(wp_hang_watch_is_due(&w, &options, &d, now));
		for (size_t i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
			uint64_t ns = pauses[i] * WP_NS_PER_S;

			assert_false(wp_hang_watch_is_due(&w, &options, &d,
							  now + ns - 1));
			now += ns;
			assert_true(
				wp_hang_watch_is_due(&w, &options, &d, now));
		}
		/* The waits have ended; other begin later. */
		d.nsuspects = 0;
		assert_false(wp_hang_watch_is_due(&w, &options, &d, ++now));
	}
}

static void where_files_are_wanted_it_is_checked_each_minute(void **state)
{
	const struct wp_options options = { .on_hang = "/" };
	const struct wp_digest d = { .nthreads = 3 };
	uint64_t now = 100 * (uint64_t)S;
	struct wp_hang_watch w;

	(void)state;
	wp_hang_watch_init(&w);
	for (int i = 0; i < 3; i++) {
		assert_false(wp_hang_watch_is_due(&w, &options, &d, now));
		now += 60 * (uint64_t)S;
		assert_true(wp_hang_watch_is_due(&w, &options, &d, now));
	}
}

static void a_threshold_is_over_when_it_is(void **state)
{
	const struct wp_options options = {
		.hang_lock = 50,
		.hang_idle_ns = 30 * WP_NS_PER_S,
		.hang_runnable_ns = 5 * WP_NS_PER_S,
	};
	const uint64_t now = 100 * WP_NS_PER_S;
	struct wp_digest d = { .nthreads = 4, .nlocked = 2, .ran_ns = now };
	char text[128];

	(void)state;
	assert_false(
		wp_hang_watch_is_over(&options, &d, now, text, sizeof(text)));
	d.nlocked = 3;
	assert_true(
		wp_hang_watch_is_over(&options, &d, now, text, sizeof(text)));
	assert_string_equal(text, "threads in wait=lock: 3 of 4 (over 50 %)");
	d.nlocked = 0;
	d.ran_ns = now - 31 * WP_NS_PER_S;
	assert_true(
		wp_hang_watch_is_over(&options, &d, now, text, sizeof(text)));
	assert_string_equal(text, "no thread has run for 31 s (over 30 s)");
	d.ran_ns = now - 30 * WP_NS_PER_S;
	assert_false(
		wp_hang_watch_is_over(&options, &d, now, text, sizeof(text)));
	d.starved_ns = 6 * WP_NS_PER_S;
	assert_true(
		wp_hang_watch_is_over(&options, &d, now, text, sizeof(text)));
	assert_string_equal(text, "a thread that was ready to run had no CPU "
				  "for 6.0 s (over 5 s)");
	/* None is set. */
	assert_false(wp_hang_watch_is_over(&(struct wp_options){ .quiet = 0 },
					   &d, now, text, sizeof(text)));
}

static struct wp_profile profile;
static struct wp_history history;
static struct wp_digest digest;
static struct wp_recorder_status status;

/* A second of threads of which THREAD did KEY for NS. */
static void mark(uint64_t at_s, const struct wp_sample_key *key, uint64_t ns)
{
	const struct wp_history_mark *m;

	if (ns)
		assert_int_equal(wp_profile_add_sample(
					 &profile, WP_PROFILE_WALL, key, 1, ns),
				 0);
	m = wp_history_add(&history, &profile, at_s * S);
	assert_non_null(m);
	assert_int_equal(wp_digest_add(&digest, &profile, m, S, &status), 0);
}

static void the_digest_tells_who_waits_and_who_starves(void **state)
{
	static const uint64_t none[] = { 0 };
	struct wp_sample_key lock = { .state = WP_STATE_WAITING,
				      .wait = WP_WAIT_LOCK };
	struct wp_sample_key ready = { .state = WP_STATE_RUNNABLE };
	struct wp_sample_key runs = { .state = WP_STATE_RUNNING };

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	wp_history_init(&history, 100 * (uint64_t)S, 1 << 20, S);
	lock.thread = mk_thread(&profile, 1, "lock");
	ready.thread = runs.thread = mk_thread(&profile, 2, "ready");
	lock.stack = ready.stack = runs.stack = mk_stack(&profile, none,
							 WP_END_ROOT, 0);
	mark(2, &lock, S);
	assert_int_equal(digest.nlocked, 1);
	assert_int_equal(digest.nsuspects, 0);
	mark(3, &lock, S);
	assert_int_equal(digest.nsuspects, 1);
	assert_int_equal(digest.ran_ns, S);
	/* Told all at once, when it gets a CPU; and in parts. */
	mark(4, &ready, 6 * (uint64_t)S);
	assert_int_equal(digest.starved_ns, 6 * (uint64_t)S);
	mark(5, &ready, S);
	assert_int_equal(digest.starved_ns, 7 * (uint64_t)S);
	assert_int_equal(digest.nlocked, 0);
	mark(6, &runs, S);
	assert_int_equal(digest.ran_ns, 6 * (uint64_t)S);
	mark(7, &ready, S / 2);
	assert_int_equal(digest.starved_ns, S / 2);
	wp_history_clear(&history);
	wp_profile_clear(&profile);
	free(digest.v);
	digest = (struct wp_digest){ 0 };
}

/* Thousands have shared the entry; as many live as have time in a mark. */
static void
threads_that_share_an_entry_are_counted_while_they_live(void **state)
{
	static const uint64_t none[] = { 0 };
	struct wp_sample_key key = { .state = WP_STATE_WAITING,
				     .wait = WP_WAIT_SLEEP };

	(void)state;
	assert_int_equal(wp_profile_init(&profile), 0);
	wp_history_init(&history, 100 * (uint64_t)S, 1 << 20, S);
	key.thread = mk_thread(&profile, 1, "worker");
	key.stack = mk_stack(&profile, none, WP_END_ROOT, 0);
	profile.threads[key.thread].nmore = 5000;
	mark(2, &key, 3 * (uint64_t)S);
	assert_int_equal(status.threads[WP_STATE_WAITING], 3);
	/* One that lived for a moment was there. */
	mark(3, &key, S / 10);
	assert_int_equal(status.threads[WP_STATE_WAITING], 1);
	mark(4, &key, 0);
	assert_int_equal(status.threads[WP_STATE_WAITING], 0);
	profile.threads[key.thread].nmore = 1;
	mark(5, &key, 7 * (uint64_t)S);
	assert_int_equal(status.threads[WP_STATE_WAITING], 2);
	wp_history_clear(&history);
	wp_profile_clear(&profile);
	free(digest.v);
}

static void the_newest_files_stay(void **state)
{
	char path[] = "/tmp/wallprof-test-XXXXXX", name[64];
	int dir, fd;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 9; i++) {
		snprintf(name, sizeof(name),
			 "wallprof-hang-20261123T07000%dZ-main-1.txt", i);
		fd = openat(dir, i == 8 ? "of-another" : name,
			    O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		close(fd);
	}
	wp_hang_files_prune(dir, 3);
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name),
			 "wallprof-hang-20261123T07000%dZ-main-1.txt", i);
		assert_int_equal(!unlinkat(dir, name, 0), i >= 5);
	}
	assert_int_equal(unlinkat(dir, "of-another", 0), 0);
	close(dir);
	assert_int_equal(rmdir(path), 0);
}

static void what_a_writer_left_goes_when_it_is_old(void **state)
{
	static const char *const names[] = { ".part-wallprof-hang-a.txt",
					     ".part-wallprof-hang-b.txt",
					     ".part-of-another" };
	const struct timespec old[2] = { { 1, 0 }, { 1, 0 } };
	char path[] = "/tmp/wallprof-test-XXXXXX";
	int dir, fd;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		fd = openat(dir, names[i], O_WRONLY | O_CREAT | O_CLOEXEC,
			    0600);
		assert_true(fd >= 0);
		if (i != 1)
			assert_int_equal(futimens(fd, old), 0);
		close(fd);
	}
	wp_hang_files_prune(dir, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(!unlinkat(dir, names[i], 0), i > 0);
	close(dir);
	assert_int_equal(rmdir(path), 0);
}

/* Seconds in which a thread waited: 1 s, of which then a half is found to be time that
 * it was ready to run. */
static void time_that_is_taken_back_is_not_told_as_a_fall(void **state)
{
	static const uint64_t none[] = { 0 };
	struct wp_sample_key waits = { .state = WP_STATE_WAITING,
				       .wait = WP_WAIT_POLL };
	struct wp_sample_key ready = { .state = WP_STATE_RUNNABLE };
	const uint64_t *told = &status.ns[WP_STATE_WAITING][WP_WAIT_POLL];

	(void)state;
	status = (struct wp_recorder_status){ .pid = 1 };
	assert_int_equal(wp_profile_init(&profile), 0);
	wp_history_init(&history, 100 * (uint64_t)S, 1 << 20, S);
	waits.thread = ready.thread = mk_thread(&profile, 1, "late");
	waits.stack = ready.stack = mk_stack(&profile, none, WP_END_ROOT, 0);
	mark(2, &waits, S);
	assert_int_equal(*told, S);
	profile.sets[WP_PROFILE_WALL].samples[0].exact_ns = S;
	wp_profile_take_back(&profile, WP_PROFILE_WALL, 0, S / 2);
	mark(3, &ready, S / 2);
	assert_int_equal(*told, S);
	assert_int_equal(status.ns[WP_STATE_RUNNABLE][0], S / 2);
	mark(4, &waits, S / 4);
	assert_int_equal(*told, S);
	mark(5, &waits, S / 2);
	assert_int_equal(*told, S + S / 4);
	wp_history_clear(&history);
	wp_profile_clear(&profile);
	free(digest.v);
	digest = (struct wp_digest){ 0 };
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_check_is_made_at_once_and_then_ever_more_seldom),
		cmocka_unit_test(
			where_files_are_wanted_it_is_checked_each_minute),
		cmocka_unit_test(a_threshold_is_over_when_it_is),
		cmocka_unit_test(the_digest_tells_who_waits_and_who_starves),
		cmocka_unit_test(time_that_is_taken_back_is_not_told_as_a_fall),
		cmocka_unit_test(
			threads_that_share_an_entry_are_counted_while_they_live),
		cmocka_unit_test(the_newest_files_stay),
		cmocka_unit_test(what_a_writer_left_goes_when_it_is_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
