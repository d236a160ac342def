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

/* The recorder answers what it was asked by STATUS: when that begins; 0: nothing was
 * asked. */
static uint64_t answer(uint32_t status)
{
	struct wp_serve_answer a = { .status = status };
	struct wp_serve_ask ask;
	int file, fd;

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

/* The same when the next interval is over. */
static uint64_t push(uint32_t status)
{
	pusher.due_ns = wp_clock_ns();
	wp_pusher_step(&pusher, &served);
	return answer(status);
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

static void what_was_begun_is_asked_for_when_serve_ends(void **state)
{
	uint64_t to;

	(void)state;
	assert_true(push(200));
	to = end_ns;
	assert_true(wp_pusher_finish(&pusher, &served));
	/* Once, and again where it fails. */
	assert_true(wp_pusher_finish(&pusher, &served));
	assert_int_equal(answer(503), to);
	assert_int_equal(answer(503), 0);
	assert_true(wp_pusher_finish(&pusher, &served));
	assert_int_equal(answer(200), to);
	assert_false(wp_pusher_finish(&pusher, &served));
	assert_int_equal(answer(200), 0);
	wp_pusher_lose(&pusher, one);
	assert_int_equal(pusher.nlost, 0);
}

/* A recorder that is killed, two profiles that the collector did not take, and one that it
 * did. */
static void what_is_not_sent_at_the_end_is_counted(void **state)
{
	const struct wp_push_stats stats = { .sent = 1, .queued = 1 };

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(push(200));
	assert_true(wp_pusher_finish(&pusher, &served));
	wp_pusher_lose(&pusher, one);
	assert_int_equal(pusher.nlost, 1);
	wp_pusher_shut(&pusher);
	/* It still tells. */
	assert_int_equal(wp_packet_send(sender, &stats, sizeof(stats), NULL, 0),
			 0);
	wp_pusher_reap(&pusher, 0);
	assert_int_equal(pusher.nleft, 2);
	assert_int_equal(pusher.before.sent, 1);
	assert_int_equal(pusher.before.dropped, 2);
	/* There is nobody to ask for. */
	assert_false(wp_pusher_finish(&pusher, &served));
}

static void no_more_is_asked_for_than_is_kept(void **state)
{
	uint64_t from_ns;

	(void)state;
	one->push_to_ns = 1;
	from_ns = push(200);
	/* The clock may have begun later than that. */
	assert_true(end_ns - from_ns <=
		    options.keep_ns + options.push_interval_ns);
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
			what_was_begun_is_asked_for_when_serve_ends,
			connect_both, close_both),
		cmocka_unit_test_setup_teardown(
			what_is_not_sent_at_the_end_is_counted, connect_both,
			close_both),
		cmocka_unit_test_setup_teardown(
			no_more_is_asked_for_than_is_kept, connect_both,
			close_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
