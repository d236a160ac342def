/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: serve.  Profiles that wait for a collector, by a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/serve/push_confine.h"
#include "../../src/serve/push_queue.h"
#include "wallprof/clock.h"

static struct wp_push_queue queue;

static int begin(void **state)
{
	(void)state;
	memset(&queue, 0, sizeof(queue));
	return 0;
}

static void add(int32_t pid, uint64_t size)
{
	const struct wp_push_item item = { .pid = pid };
	int file = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(file >= 0);
	wp_push_queue_add(&queue, &item, file, size);
}

static int count_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void the_oldest_goes_first(void **state)
{
	(void)state;
	add(1, 10);
	add(2, 10);
	assert_int_equal(wp_push_queue_begin(&queue, 5)->item.pid, 1);
	/* One at a time. */
	assert_null(wp_push_queue_begin(&queue, 5));
	wp_push_queue_end(&queue, 200, "", 6);
	assert_int_equal(wp_push_queue_begin(&queue, 6)->item.pid, 2);
	wp_push_queue_end(&queue, 204, "", 7);
	assert_null(wp_push_queue_begin(&queue, 8));
	assert_int_equal(queue.stats.sent, 2);
	assert_int_equal(queue.stats.sent_bytes, 20);
	assert_int_equal(queue.stats.queued + queue.stats.queued_bytes, 0);
}

static void a_pause_follows_a_failure_and_doubles(void **state)
{
	static const long statuses[] = { 0, 429, 408, 500, 503, 0, 0, 0, 0 };
	static const unsigned int pauses[] = { 1, 2, 4, 8, 16, 32, 60, 60, 60 };
	uint64_t now = 7;

	(void)state;
	add(1, 10);
	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		assert_non_null(wp_push_queue_begin(&queue, now));
		wp_push_queue_end(&queue, statuses[i], "no route", now);
		assert_string_equal(queue.stats.why,
				    statuses[i] == 0   ? "no route" :
				    statuses[i] == 429 ? "HTTP status 429" :
				    statuses[i] == 408 ? "HTTP status 408" :
				    statuses[i] == 500 ? "HTTP status 500" :
							 "HTTP status 503");
		assert_true(queue.stats.is_kept);
		assert_null(wp_push_queue_begin(
			&queue, now + pauses[i] * WP_NS_PER_S - 1));
		now += pauses[i] * WP_NS_PER_S;
	}
	assert_int_equal(queue.stats.retries, 9);
	assert_non_null(wp_push_queue_begin(&queue, now));
	wp_push_queue_end(&queue, 200, "", now);
	assert_string_equal(queue.stats.why, "");
	/* Then it begins anew. */
	add(2, 1);
	assert_non_null(wp_push_queue_begin(&queue, now));
	wp_push_queue_end(&queue, 0, "", now);
	assert_non_null(wp_push_queue_begin(&queue, now + WP_NS_PER_S));
	wp_push_queue_end(&queue, 200, "", now);
}

static void what_is_refused_for_good_is_dropped(void **state)
{
	static const long statuses[] = { 400, 401, 404, 413, 422, 301 };

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++) {
		add(1, 10);
		assert_non_null(wp_push_queue_begin(&queue, 1));
		wp_push_queue_end(&queue, statuses[i], "", 1);
		assert_int_equal(queue.n, 0);
		assert_false(queue.stats.is_kept);
	}
	assert_non_null(strstr(queue.stats.why, "does not say which"));
	assert_int_equal(queue.stats.rejected, 6);
}

static void a_full_queue_drops_the_oldest_that_is_not_under_way(void **state)
{
	int files = count_files();

	(void)state;
	for (int i = 0; i < WP_PUSH_QUEUE_MAX; i++)
		add(i, 10);
	assert_int_equal(wp_push_queue_begin(&queue, 1)->item.pid, 0);
	add(1000, 10);
	assert_int_equal(queue.n, WP_PUSH_QUEUE_MAX);
	assert_int_equal(queue.stats.dropped, 1);
	assert_int_equal(queue.v[0].item.pid, 0);
	assert_int_equal(queue.v[1].item.pid, 2);
	add(1001, WP_PUSH_QUEUE_BYTES - 10);
	assert_int_equal(queue.n, 2);
	assert_int_equal(queue.v[1].item.pid, 1001);
	assert_int_equal(queue.stats.queued_bytes, WP_PUSH_QUEUE_BYTES);
	/* One that fits nowhere. */
	add(1002, WP_PUSH_QUEUE_BYTES);
	assert_int_equal(queue.n, 1);
	wp_push_queue_end(&queue, 200, "", 1);
	assert_int_equal(count_files(), files);
}

/* 0: a process that has given up its rights can do none of this to PARENT. */
static int look_at(pid_t parent)
{
	char byte, path[64];
	struct iovec here = { &byte, 1 }, there = { &queue, 1 };

	if (wp_push_confine(parent))
		return 1;
	if (process_vm_readv(parent, &here, 1, &there, 1, 0) > 0)
		return 2;
	snprintf(path, sizeof(path), "/proc/%d/mem", parent);
	if (open(path, O_RDONLY) >= 0)
		return 3;
	return !setuid(0) && !geteuid() ? 4 : 0;
}

/* A directory of root's. */
static char dir[] = "/tmp/wallprof-push-XXXXXX";

/* Write a file there. */
static int write_there(pid_t parent)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/file", dir);
	if (wp_push_confine(parent))
		return 1;
	return open(path, O_CREAT | O_WRONLY, 0600) >= 0 ? 2 : 0;
}

static void run_confined(int (*attempt)(pid_t parent))
{
	pid_t parent = getpid(), child = fork();
	int status;

	if (!child)
		_exit(attempt(parent));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void who_pushes_can_read_no_other_process(void **state)
{
	(void)state;
	if (!geteuid())
		run_confined(look_at);
}

static int make_dir(void **state)
{
	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/file", dir);
	unlink(path);
	return rmdir(dir);
}

static void who_pushes_can_write_no_file_of_roots(void **state)
{
	(void)state;
	if (!geteuid())
		run_confined(write_there);
}

/* Where everybody may. */
static void behind_landlock_it_can_write_none(void **state)
{
	(void)state;
	/* Since Linux 5.13, where it is not turned off. */
	if (syscall(SYS_landlock_create_ruleset, NULL, 0,
		    LANDLOCK_CREATE_RULESET_VERSION) < 1)
		skip();
	assert_int_equal(chmod(dir, 01777), 0);
	run_confined(write_there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_oldest_goes_first, begin),
		cmocka_unit_test_setup(a_pause_follows_a_failure_and_doubles,
				       begin),
		cmocka_unit_test_setup(what_is_refused_for_good_is_dropped,
				       begin),
		cmocka_unit_test_setup(
			a_full_queue_drops_the_oldest_that_is_not_under_way,
			begin),
		cmocka_unit_test_setup(who_pushes_can_read_no_other_process,
				       begin),
		cmocka_unit_test_setup_teardown(
			who_pushes_can_write_no_file_of_roots, make_dir,
			remove_dir),
		cmocka_unit_test_setup_teardown(
			behind_landlock_it_can_write_none, make_dir,
			remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
