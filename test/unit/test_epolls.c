/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  What an epoll watches: of texts, and of an epoll of this process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "wallprof/epolls.h"

static void lines_of_watches_are_taken(void **state)
{
	static const char text[] =
		"pos:\t0\nflags:\t02000002\nmnt_id:\t16\nino:\t1057\n"
		"tfd:        5 events:       19 data:     ffff8000deadbeef"
		"  pos:0 ino:61af sdev:7\n"
		"tfd:       -1 events:       19 data:                7\n"
		"tfd: 99999999999999999999 events: 1 data: 7\n"
		"tfd:        6 events:       19\n"
		"tfd:        7 events:     19 data:";
	struct wp_epolls e = WP_EPOLLS_INIT;

	(void)state;
	assert_int_equal(wp_epolls_parse(&e, text), 0);
	assert_int_equal(e.n, 2);
	assert_int_equal(e.v[0].fd, 5);
	assert_int_equal(e.v[0].data, UINT64_C(0xffff8000deadbeef));
	assert_int_equal(e.v[1].fd, 7);
	assert_int_equal(e.v[1].data, 0);
	assert_int_equal(wp_epolls_parse(&e, ""), 0);
	assert_int_equal(e.n, 2);
	wp_epolls_clear(&e);
}

static void the_least_and_the_greatest_descriptor(void **state)
{
	static const char text[] = "tfd: 0 data: 1\ntfd: 2147483647 data: 2\n"
				   "tfd: 2147483648 data: 3\n";
	struct wp_epolls e = WP_EPOLLS_INIT;

	(void)state;
	assert_int_equal(wp_epolls_parse(&e, text), 0);
	assert_int_equal(e.n, 2);
	assert_int_equal(e.v[0].fd, 0);
	assert_int_equal(e.v[1].fd, INT32_MAX);
	wp_epolls_clear(&e);
}

static void so_many_watches_are_kept(void **state)
{
	enum { MOST = 1 << 16, MANY = MOST + 1 };
	static const char line[] = "tfd: 5 data: 7\n";
	const size_t len = sizeof(line) - 1;
	char *text = test_malloc(MANY * len + 1);
	struct wp_epolls e = WP_EPOLLS_INIT;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		memcpy(text + i * len, line, len + 1);
	assert_int_equal(wp_epolls_parse(&e, text), 0);
	assert_int_equal(e.n, MOST);
	assert_int_equal(wp_epolls_parse(&e, line), 0);
	assert_int_equal(e.n, MOST);
	wp_epolls_clear(&e);
	test_free(text);
}

static void a_process_that_has_gone_has_none(void **state)
{
	struct wp_epolls e = WP_EPOLLS_INIT;

	(void)state;
	assert_int_equal(wp_epolls_read(&e, -1), 0);
	assert_int_equal(e.n, 0);
}

static void an_epoll_of_this_process_is_found(void **state)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u64 = UINT64_C(0x1234567890abcdef) };
	int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), ends[2];
	struct wp_epolls e = WP_EPOLLS_INIT;

	(void)state;
	assert_true(proc_fd >= 0 && epoll_fd >= 0);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ends[0], &event),
			 0);
	assert_int_equal(wp_epolls_read(&e, proc_fd), 0);
	assert_int_equal(e.n, 1);
	assert_int_equal(e.v[0].fd, ends[0]);
	assert_int_equal(e.v[0].data, event.data.u64);
	wp_epolls_clear(&e);
	close(epoll_fd);
	close(ends[0]);
	close(ends[1]);
	close(proc_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_watches_are_taken),
		cmocka_unit_test(the_least_and_the_greatest_descriptor),
		cmocka_unit_test(so_many_watches_are_kept),
		cmocka_unit_test(a_process_that_has_gone_has_none),
		cmocka_unit_test(an_epoll_of_this_process_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
