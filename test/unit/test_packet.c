/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: base.  packet.h: messages between processes, and the descriptors in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wallprof/packet.h"

static int socks[2];

static int open_socks(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks);
}

static int close_socks(void **state)
{
	(void)state;
	close(socks[0]);
	close(socks[1]);
	return 0;
}

static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

static void
two_descriptors_come_in_order_and_are_closed_by_an_exec(void **state)
{
	const int sent[] = { socks[0], socks[1] };
	char byte = 0;
	int got[2];

	(void)state;
	assert_int_equal(wp_packet_send(socks[0], "x", 1, sent, 2), 0);
	assert_int_equal(wp_packet_take(socks[1], &byte, 1, true, got, 2), 1);
	assert_int_equal(byte, 'x');
	for (size_t i = 0; i < 2; i++) {
		assert_true(is_same_file(got[i], sent[i]));
		assert_int_equal(fcntl(got[i], F_GETFD), FD_CLOEXEC);
		close(got[i]);
	}
}

static void where_there_is_no_more_it_is_none(void **state)
{
	char byte;
	int got[2];

	(void)state;
	assert_int_equal(wp_packet_send(socks[0], "x", 1, socks, 1), 0);
	assert_int_equal(wp_packet_take(socks[1], &byte, 1, true, got, 2), 1);
	assert_true(is_same_file(got[0], socks[0]));
	assert_int_equal(got[1], -1);
	close(got[0]);
}

static void none_yet_and_none_any_more_are_told_apart(void **state)
{
	char byte;
	int fd = 0;

	(void)state;
	assert_int_equal(wp_packet_take(socks[1], &byte, 1, false, &fd, 1),
			 -EAGAIN);
	assert_int_equal(fd, -1);
	assert_int_equal(wp_packet_send(socks[0], "x", 1, NULL, 0), 0);
	assert_int_equal(wp_packet_take(socks[1], &byte, 1, false, &fd, 1), 1);
	assert_int_equal(fd, -1);
	shutdown(socks[0], SHUT_RDWR);
	assert_int_equal(wp_packet_take(socks[1], &byte, 1, true, &fd, 1), 0);
	assert_int_equal(wp_packet_send(socks[1], "x", 1, NULL, 0), -EPIPE);
}

/* It does not wait for a reader. */
static void a_full_socket_is_an_error(void **state)
{
	int rc;

	(void)state;
	do
		rc = wp_packet_send(socks[0], "x", 1, NULL, 0);
	while (!rc);
	assert_int_equal(rc, -EAGAIN);
}

/* Send N descriptors with one byte. */
static void send_many(int sock, const int *fds, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[256];
	} control = { .bytes = { 0 } };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(n * sizeof(*fds)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(*fds));
	memcpy(CMSG_DATA(c), fds, n * sizeof(*fds));
	assert_int_equal(sendmsg(sock, &msg, 0), 1);
}

/* Whoever sends more fills no table of the receiver. */
static void it_brings_no_more_descriptors_than_asked_for(void **state)
{
	int fds[5], fd;
	char byte;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		fds[i] = STDERR_FILENO;
	for (size_t n = 1; n <= 5; n++) {
		int before = dup(STDERR_FILENO), after;

		send_many(socks[0], fds, n);
		close(before);
		assert_int_equal(
			wp_packet_take(socks[1], &byte, 1, false, &fd, 1), 1);
		assert_int_equal(fd, before);
		close(fd);
		after = dup(STDERR_FILENO);
		assert_int_equal(after, before);
		close(after);
		/* None above that, either. */
		assert_int_equal(fcntl(before + 1, F_GETFD), -1);
	}
}

static void what_is_not_read_is_counted(void **state)
{
	char byte;

	(void)state;
	assert_int_equal(wp_packet_unread(socks[0]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wp_packet_send(socks[0], "x", 1, NULL, 0), 0);
	assert_true(wp_packet_unread(socks[0]) >= 2);
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			wp_packet_take(socks[1], &byte, 1, true, NULL, 0), 1);
	assert_int_equal(wp_packet_unread(socks[0]), 0);
	assert_int_equal(wp_packet_unread(-1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name)                                                             \
	cmocka_unit_test_setup_teardown(name, open_socks, close_socks)
		TEST(two_descriptors_come_in_order_and_are_closed_by_an_exec),
		TEST(where_there_is_no_more_it_is_none),
		TEST(none_yet_and_none_any_more_are_told_apart),
		TEST(a_full_socket_is_an_error),
		TEST(it_brings_no_more_descriptors_than_asked_for),
		TEST(what_is_not_read_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
