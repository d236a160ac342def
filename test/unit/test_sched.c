/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/sched.h: the text, and threads of this process that
 * sleep since a time that is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guarded.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"
#include "wallprof/sched.h"

static const char text[] =
	"cat (12804, #threads: 1)\n"
	"-------------------------------------------------------------------\n"
	"se.exec_start                                :       8766490.882386\n"
	"se.vruntime                                  :          1519.098692\n";

/* Parse from memory that ends with the text. */
static int parse(uint64_t *ret_ns, const char *s)
{
	char *exact = guarded(s, strlen(s));
	int rc = wp_proc_sched_parse(ret_ns, exact, strlen(s));

	guarded_free(exact, strlen(s));
	return rc;
}

static void exec_start_is_in_nanoseconds(void **state)
{
	uint64_t ns;

	(void)state;
	assert_int_equal(wp_proc_sched_parse(&ns, text, strlen(text)), 0);
	assert_int_equal(ns, UINT64_C(8766490882386));
}

static void a_name_does_not_pass_for_the_line(void **state)
{
	static const char hostile[] = "\nse.exec_start: (7, #threads: 1)\n---\n"
				      "se.exec_start   :   2.000001\n";
	uint64_t ns;

	(void)state;
	assert_int_equal(wp_proc_sched_parse(&ns, hostile, strlen(hostile)), 0);
	assert_int_equal(ns, 2000001);
}

static void what_is_no_time_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"\n",
		"se.exec_start",
		"se.exec_start :",
		"se.exec_start : x\n",
		"se.exec_start : 1\n",
		"se.exec_start : 1.5\n",
		"se.exec_start : 1.0000000\n",
		"se.exec_start : -1.000000\n",
		"se.exec_start : .000000\n",
		"se.exec_start : 0.000000\n",
		"xse.exec_start : 1.000000\n",
		"se.exec_start : 99999999999999999999.000000\n",
		"se.exec_start : 18446744073709551.000000\n",
		"se.exec_start : 18446744073709550.000000\n",
		"se.exec_start : 1!500000\n",
		"se.exec_startx: 1.500000\n",
		"se.exec_stars : 1.500000\n",
		"ye.exec_start : 1.500000\n",
	};
	uint64_t ns = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(parse(&ns, texts[i]), -EBADMSG);
	assert_int_equal(ns, 7);
}

static void the_greatest_time_has_64_bits(void **state)
{
	uint64_t ns;

	(void)state;
	assert_int_equal(parse(&ns, "se.exec_start:18446744073708.999999\n"),
			 0);
	assert_int_equal(ns, UINT64_C(18446744073708999999));
}

/* A line that begins as another's end does. */
static void each_line_begins_behind_a_newline(void **state)
{
	uint64_t ns;

	(void)state;
	assert_int_equal(parse(&ns, "x\nse.exec_start : 1.000000\n"), 0);
	assert_int_equal(ns, 1000000);
	assert_int_equal(parse(&ns, "se.exec_start : x\n"
				    "se.exec_start : 2.000000\n"),
			 0);
	assert_int_equal(ns, 2000000);
}

static void every_prefix_is_safe(void **state)
{
	const char *line = strstr(text, "se.vruntime");

	(void)state;
	for (size_t n = 0; n <= strlen(text); n++) {
		char *exact = guarded(text, n);
		uint64_t ns = 0;
		int rc;

		rc = wp_proc_sched_parse(&ns, exact, n);
		/* A number that was cut must not pass for a smaller one. */
		assert_int_equal(rc, n < (size_t)(line - text) ? -EBADMSG : 0);
		guarded_free(exact, n);
	}
}

static void arithmetic_of_a_wait(void **state)
{
	const struct wp_sched_cpu ahead = { 0, 1, true, 100, 0 };
	const struct wp_sched_cpu behind = { 0, 1, true, (uint64_t)-100, 0 };
	const struct wp_sched_cpu good = { 0, 1, true, 0, 100000 };
	const struct wp_sched_cpu bad = { 0, 1, true, 0, 1000000 };

	(void)state;
	assert_int_equal(wp_sched_wait_ns(&ahead, 400, 1500), 1000);
	assert_int_equal(wp_sched_wait_ns(&behind, 600, 1500), 1000);
	/* A thread that slept after the clock was read. */
	assert_int_equal(wp_sched_wait_ns(&ahead, 1401, 1500), 0);
	/* A clock that was read badly tells of long waits only. */
	assert_int_equal(wp_sched_wait_ns(&bad, 0, 15999999), UINT64_MAX);
	assert_int_equal(wp_sched_wait_ns(&bad, 0, 16000000), 16000000);
	/* One that was read well, of any. */
	assert_int_equal(wp_sched_wait_ns(&good, 0, 1), 1);
	assert_int_equal(wp_sched_wait_ns(&good, 0, UINT64_MAX / 2),
			 UINT64_MAX / 2);
	assert_int_equal(wp_sched_wait_ns(&good, 0, UINT64_MAX / 2 + 1), 0);
}

struct sleeper {
	int cpu;
	int pipe[2];
	atomic_int tid;
	/* CLOCK_MONOTONIC just before it slept. */
	_Atomic uint64_t before_ns;
};

static void *sleep_in_read(void *arg)
{
	struct sleeper *s = arg;
	cpu_set_t set;
	char c;

	CPU_ZERO(&set);
	CPU_SET((size_t)s->cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return NULL;
	atomic_store(&s->before_ns, wp_clock_ns());
	atomic_store(&s->tid, gettid());
	return read(s->pipe[0], &c, 1) == 1 ? s : NULL;
}

static ssize_t read_of(int tid, const char *name, char *buf, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	return wp_io_read_at(AT_FDCWD, path, buf, size);
}

/* When it was first seen asleep. */
static uint64_t wait_until_asleep(struct sleeper *s, struct wp_proc_stat *stat)
{
	char buf[4096];

	for (;;) {
		int tid = atomic_load(&s->tid);
		ssize_t n = tid ? read_of(tid, "stat", buf, sizeof(buf)) : 0;

		if (n > 0 && !wp_proc_stat_parse(stat, buf, (size_t)n) &&
		    stat->state_char == 'S')
			return wp_clock_ns();
		sched_yield();
	}
}

enum { WATCH_NS = 100000000, STOLEN_NS = 20000000 };

/* Its wait lies between the two times when it is known to have been awake and
 * asleep; less what other machines and interrupts took of the CPU. */
static void check_wait(struct wp_sched_clock *clock, int cpu)
{
	struct sleeper s = { .cpu = cpu };
	const struct wp_sched_cpu *c;
	struct wp_proc_stat stat;
	uint64_t asleep_ns, before_ns, now_ns, exec_ns, wait;
	char buf[4096];
	pthread_t thread;
	ssize_t n;

	assert_int_equal(pipe(s.pipe), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_in_read, &s), 0);
	asleep_ns = wait_until_asleep(&s, &stat);
	before_ns = atomic_load(&s.before_ns);
	assert_int_equal(stat.cpu, cpu);
	n = read_of(atomic_load(&s.tid), "sched", buf, sizeof(buf));
	assert_true(n > 0);
	assert_int_equal(wp_proc_sched_parse(&exec_ns, buf, (size_t)n), 0);

	/* Just asleep, then after a while. */
	for (int i = 0; i < 2; i++) {
		c = wp_sched_clock_find(clock, cpu);
		assert_non_null(c);
		now_ns = wp_clock_ns();
		wait = wp_sched_wait_ns(c, exec_ns, now_ns);
		if (wait == UINT64_MAX) {
			assert_true(c->error_ns > WP_NS_PER_MS / 10);
		} else {
			assert_in_range(wait, 0,
					now_ns - before_ns + WP_NS_PER_MS);
			assert_in_range(wait + c->error_ns + STOLEN_NS,
					now_ns - asleep_ns, UINT64_MAX);
		}
		while (wp_clock_ns() - asleep_ns < WATCH_NS)
			usleep(1000);
	}
	assert_int_equal(write(s.pipe[1], "x", 1), 1);
	pthread_join(thread, NULL);
	close(s.pipe[0]);
	close(s.pipe[1]);
}

static void waits_are_right_on_every_cpu_from_every_cpu(void **state)
{
	struct wp_sched_clock clock = WP_SCHED_CLOCK_INIT;
	cpu_set_t all, now;

	(void)state;
	if (access("/proc/self/sched", R_OK)) {
		print_message("no /proc/self/sched in this kernel\n");
		skip();
	}
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	for (int cpu = 0, n = 0; cpu < CPU_SETSIZE && n < 4; cpu++) {
		if (!CPU_ISSET((size_t)cpu, &all))
			continue;
		check_wait(&clock, cpu);
		n++;
	}
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&all, &now));
	wp_sched_clock_clear(&clock);
}

struct spinner {
	atomic_bool runs, ends;
};

static void *spin(void *arg)
{
	struct spinner *s = arg;

	atomic_store(&s->runs, true);
	while (!atomic_load(&s->ends))
		;
	return NULL;
}

/* To give others the CPU, and to be given it again, takes milliseconds. */
static void a_cpu_that_others_want_has_a_clock(void **state)
{
	struct wp_sched_clock clock = WP_SCHED_CLOCK_INIT;
	struct spinner spinners[3] = { 0 };
	const struct wp_sched_cpu *found;
	pthread_t threads[3];
	pthread_attr_t attr;
	cpu_set_t one;
	int cpu = sched_getcpu();

	(void)state;
	if (access("/proc/self/sched", R_OK))
		skip();
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setaffinity_np(&attr, sizeof(one), &one),
			 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			pthread_create(&threads[i], &attr, spin, &spinners[i]),
			0);
		while (!atomic_load(&spinners[i].runs))
			usleep(1000);
	}
	for (int i = 0; i < 8; i++) {
		found = wp_sched_clock_find(&clock, cpu);
		assert_non_null(found);
		assert_in_range(found->error_ns, 0, WP_NS_PER_MS);
		wp_sched_clock_clear(&clock);
	}
	for (int i = 0; i < 3; i++) {
		atomic_store(&spinners[i].ends, true);
		pthread_join(threads[i], NULL);
	}
	pthread_attr_destroy(&attr);
}

static int count_descriptors(void)
{
	struct stat st;
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += !fstat(fd, &st);
	return n;
}

/* Its time of reading is moved back by hand. */
static void a_clock_is_read_again_when_it_is_old(void **state)
{
	struct wp_sched_clock clock = WP_SCHED_CLOCK_INIT;
	int cpu = sched_getcpu(), n = count_descriptors();
	const struct wp_sched_cpu *found;
	uint64_t before_ns;
	size_t used;

	(void)state;
	if (access("/proc/self/sched", R_OK))
		skip();
	assert_non_null(wp_sched_clock_find(&clock, cpu));
	assert_int_equal(clock.len, 1);
	assert_in_range(clock.v[0].read_ns, 1, wp_clock_ns());
	before_ns = wp_clock_ns();
	clock.v[0].read_ns = before_ns;
	clock.v[0].offset_ns = 12345;
	found = wp_sched_clock_find(&clock, cpu);
	if (wp_clock_ns() - before_ns < WP_NS_PER_S) {
		assert_ptr_equal(found, &clock.v[0]);
		assert_int_equal(found->read_ns, before_ns);
		assert_int_equal(found->offset_ns, 12345);
	}
	clock.v[0].read_ns = wp_clock_ns() - WP_NS_PER_S;
	clock.v[0].offset_ns = 12345;
	used = mallinfo2().uordblks;
	assert_non_null(wp_sched_clock_find(&clock, cpu));
	assert_int_equal(mallinfo2().uordblks, used);
	assert_int_not_equal(clock.v[0].offset_ns, 12345);
	assert_true(clock.v[0].read_ns >= before_ns);
	assert_int_equal(clock.len, 1);
	/* Another CPU has a row of its own. */
	assert_null(wp_sched_clock_find(&clock, 8191));
	assert_int_equal(clock.len, 2);
	assert_int_equal(clock.v[1].cpu, 8191);
	assert_int_equal(count_descriptors(), n);
	wp_sched_clock_clear(&clock);
	assert_int_equal(clock.len, 0);
}

static void a_cpu_that_is_not_ours_has_no_clock(void **state)
{
	struct wp_sched_clock clock = WP_SCHED_CLOCK_INIT;

	(void)state;
	assert_null(wp_sched_clock_find(&clock, -1));
	assert_null(wp_sched_clock_find(&clock, 8191));
	assert_null(wp_sched_clock_find(&clock, 8192));
	assert_null(wp_sched_clock_find(&clock, 1 << 20));
	wp_sched_clock_clear(&clock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exec_start_is_in_nanoseconds),
		cmocka_unit_test(a_name_does_not_pass_for_the_line),
		cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(the_greatest_time_has_64_bits),
		cmocka_unit_test(each_line_begins_behind_a_newline),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(a_clock_is_read_again_when_it_is_old),
		cmocka_unit_test(a_cpu_that_others_want_has_a_clock),
		cmocka_unit_test(arithmetic_of_a_wait),
		cmocka_unit_test(waits_are_right_on_every_cpu_from_every_cpu),
		cmocka_unit_test(a_cpu_that_is_not_ours_has_no_clock),
	};

	return cmocka_run_group_tests_name("sched", tests, NULL, NULL);
}
