/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  What becomes of a process for which there is no recorder left, and which
 * process is asked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/cmd/served.h"
#include "wallprof/packet.h"

static struct wp_options options;
static struct wp_pusher pusher = { .options = &options, .sock = -1 };
static struct wp_served served;
static char name[16];
static pid_t child;

/* A process of a name of its own; and all recorders are taken. */
static int fill(void **state)
{
	int ends[2];
	char byte;

	(void)state;
	snprintf(name, sizeof(name), "sv%d", getpid());
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		(void)!write(ends[1], "", 1);
		for (;;)
			pause();
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) != 1)
		return -1;
	close(ends[0]);
	options.served[0] = name;
	options.nserved = 1;
	options.push = NULL;
	pusher.failed = 0;
	served = (struct wp_served){ .options = &options,
				     .answers = -1,
				     .pusher = &pusher };
	/* None of them is looked for, and none is a process. */
	for (; served.n < WP_SERVED_MAX; served.n++)
		served.v[served.n] = (struct wp_served_one){
			.pid = -2 - (pid_t)served.n,
			.sock = dup(STDIN_FILENO),
		};
	return 0;
}

static int empty(void **state)
{
	(void)state;
	wp_served_end(&served);
	kill(child, SIGKILL);
	return waitpid(child, NULL, 0) == child ? 0 : -1;
}

static void find(void)
{
	struct wp_err err = WP_ERR_INIT;

	assert_int_equal(wp_served_find(&served, &err), 0);
	assert_int_equal(served.n, WP_SERVED_MAX);
}

static void who_ended_longest_ago_makes_room(void **state)
{
	(void)state;
	served.v[7].ended_ns = 2000;
	served.v[9].ended_ns = 1000;
	find();
	assert_int_equal(served.v[9].sock, -1);
	assert_true(served.v[7].sock >= 0);
	/* Another that comes before it has ended. */
	find();
	assert_int_equal(served.v[7].sock, -1);
	assert_int_equal(served.nleft_out, 0);
	assert_false(served.full_is_said);
}

/* Its last profile is asked for at the end of an interval. */
static void who_has_been_pushed_to_the_end_goes_first(void **state)
{
	(void)state;
	options.push = "http://localhost";
	for (int i = 7; i <= 10; i++) {
		served.v[i].ended_ns = (uint64_t)i * 1000;
		served.v[i].recorder = i;
		served.v[i].status.is_there = true;
		served.v[i].push_is_over = i != 7;
	}
	/* It has no answer yet. */
	served.v[8].push_id = WP_PUSHER_ID;
	find();
	assert_int_equal(served.v[9].sock, -1);
	find();
	assert_int_equal(served.v[10].sock, -1);
	find();
	assert_int_equal(served.v[7].sock, -1);
	assert_true(served.v[8].sock >= 0);
	/* In this order, as the last takes the place of who goes. */
	for (int i = 10; i >= 7; i--)
		wp_served_reap(&served, i, 0);
	assert_int_equal(served.n, WP_SERVED_MAX - 4);
	assert_int_equal(pusher.failed, 2);
}

static void among_the_living_nobody_has_to_go(void **state)
{
	(void)state;
	find();
	assert_true(served.full_is_said);
	find();
	assert_int_equal(served.nleft_out, 2);
	for (size_t i = 0; i < served.n; i++)
		assert_true(served.v[i].sock >= 0);
}

enum { OLD, NEW, OTHER, NASKED };

/* The other ends: of recorders, and of who asks. */
static int ends[NASKED + 1];

/* Two of a name, of which the first has ended, and another. */
static int serve_three(void **state)
{
	static const char *const names[] = { "db", "db", "other" };
	int socks[2];

	(void)state;
	options.nserved = 0;
	served = (struct wp_served){ .options = &options, .pusher = &pusher };
	for (size_t i = 0; i <= NASKED; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			       socks))
			return -1;
		ends[i] = socks[1];
		if (i == NASKED) {
			served.answers = socks[0];
			break;
		}
		served.v[i].pid = (pid_t)i + 1;
		served.v[i].sock = socks[0];
		strcpy(served.v[i].status.name, names[i]);
	}
	served.n = NASKED;
	served.v[OLD].status.has_ended = 1;
	return 0;
}

static int leave_three(void **state)
{
	(void)state;
	wp_served_end(&served);
	close(served.answers);
	for (size_t i = 0; i <= NASKED; i++)
		close(ends[i]);
	return 0;
}

/* Who is asked; -1: nobody. */
static int asked(pid_t pid, const char *of)
{
	struct wp_serve_ask ask = { .endpoint = WP_SERVE_WALL,
				    .seconds = 1,
				    .pid = pid },
			    got;
	int ret = -1, fd;

	snprintf(ask.name, sizeof(ask.name), "%s", of);
	wp_served_ask(&served, &ask);
	for (int i = 0; i < NASKED; i++)
		if (wp_packet_take(ends[i], &got, sizeof(got), false, &fd, 1) ==
		    sizeof(got))
			ret = i;
	return ret;
}

static void of_those_of_a_name_the_living_is_asked(void **state)
{
	(void)state;
	assert_int_equal(asked(0, "db"), NEW);
	assert_int_equal(asked(OLD + 1, ""), OLD);
	/* Two live. */
	assert_int_equal(asked(0, ""), -1);
	served.v[OTHER].status.has_ended = 1;
	assert_int_equal(asked(0, ""), NEW);
	/* Of those that have ended none is the one. */
	served.v[NEW].status.has_ended = 1;
	assert_int_equal(asked(0, "db"), -1);
	assert_int_equal(asked(0, "other"), OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			who_ended_longest_ago_makes_room, fill, empty),
		cmocka_unit_test_setup_teardown(
			who_has_been_pushed_to_the_end_goes_first, fill, empty),
		cmocka_unit_test_setup_teardown(
			among_the_living_nobody_has_to_go, fill, empty),
		cmocka_unit_test_setup_teardown(
			of_those_of_a_name_the_living_is_asked, serve_three,
			leave_three),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
