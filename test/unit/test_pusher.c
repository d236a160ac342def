/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  Which time of a process is pushed, also where an answer fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../src/cmd/served.h"
#include "wallprof/clock.h"
#include "wallprof/packet.h"

static const struct wp_options options = {
	.push = "http://localhost",
	.push_interval_ns = WP_NS_PER_S,
	.keep_ns = 600 * WP_NS_PER_S,
};
static struct wp_pusher pusher;
static struct wp_served served;
static struct wp_served_one *const one = &served.v[0];
/* The other ends: of the recorder, and of who pushes. */
static int recorder, sender;
static uint64_t end_ns;

static int connect_both(void **state)
{
	int socks[2];

	(void)state;
	/* It is not started again. */
	pusher = (struct wp_pusher){ .options = &options, .pid = 1 };
	served = (struct wp_served){ .options = &options,
				     .pusher = &pusher,
				     .n = 1 };
	one->pid = 1;
	one->status.is_there = true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -1;
	one->sock = socks[0];
	recorder = socks[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -1;
	pusher.sock = socks[0];
	sender = socks[1];
	end_ns = 0;
	return 0;
}

static int close_both(void **state)
{
	(void)state;
	wp_served_end(&served);
	wp_pusher_end(&pusher);
	close(recorder);
	close(sender);
	return 0;
}

/* The next interval is over, and its profile answered by STATUS: when it begins; 0: it was
 * not asked for. */
static uint64_t push(uint32_t status)
{
	struct wp_serve_answer a = { .status = status };
	struct wp_serve_ask ask;
	int file, fd;

	pusher.due_ns = wp_clock_ns();
	wp_pusher_step(&pusher, &served);
	if (wp_packet_take(recorder, &ask, sizeof(ask), false, &fd, 1) !=
	    sizeof(ask))
		return 0;
	assert_true(ask.to_ns > ask.from_ns && ask.to_ns > end_ns);
	end_ns = ask.to_ns;
	a.id = ask.id;
	file = status == 200 ? memfd_create("answer", MFD_CLOEXEC) : -1;
	wp_pusher_pass(&pusher, one, &a, file);
	if (file >= 0)
		close(file);
	return ask.from_ns;
}

static void what_has_failed_comes_with_the_next(void **state)
{
	uint64_t from, to;

	(void)state;
	from = push(200);
	assert_true(from);
	to = end_ns;
	assert_int_equal(push(503), to);
	assert_int_equal(push(500), to);
	assert_int_equal(push(200), to);
	assert_int_equal(pusher.failed, 2);
	/* Nothing was recorded then: nothing is to come. */
	to = end_ns;
	assert_int_equal(push(404), to);
	to = end_ns;
	assert_int_equal(push(200), to);
	/* Nobody takes it on. */
	to = end_ns;
	wp_pusher_end(&pusher);
	assert_int_equal(push(200), to);
	assert_int_equal(one->push_to_ns, to);
	assert_int_equal(pusher.failed, 3);
}

static void the_last_is_asked_for_until_it_is_there(void **state)
{
	uint64_t to;

	(void)state;
	assert_true(push(200));
	to = end_ns;
	one->status.has_ended = 1;
	assert_int_equal(push(503), to);
	assert_true(wp_pusher_lacks(&pusher, one));
	assert_int_equal(push(200), to);
	assert_false(wp_pusher_lacks(&pusher, one));
	assert_int_equal(push(200), 0);
}

static void no_more_is_asked_for_than_is_kept(void **state)
{
	(void)state;
	one->push_to_ns = 1;
	assert_true(push(200) >=
		    end_ns - options.keep_ns - options.push_interval_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_has_failed_comes_with_the_next, connect_both,
			close_both),
		cmocka_unit_test_setup_teardown(
			the_last_is_asked_for_until_it_is_there, connect_both,
			close_both),
		cmocka_unit_test_setup_teardown(
			no_more_is_asked_for_than_is_kept, connect_both,
			close_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
