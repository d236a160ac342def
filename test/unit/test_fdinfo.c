/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/fdinfo.h: recorded tables, and this very process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "guarded.h"
#include "wallprof/fdinfo.h"

static const char tcp_text[] =
	"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	"   0: 0100007F:18EB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1 0000000000000000 100 0 0 10 0\n"
	"   1: 0100007F:A112 0200007F:1538 01 00000000:00000000 00:00000000 00000000  1000        0 102 1 0000000000000000 20 4 30 10 -1\n";
static const char tcp6_text[] =
	"  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	"   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1 0000000000000000 100 0 0 10 0\n"
	"   1: 0000000000000000FFFF00000100007F:0050 0000000000000000FFFF00000100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 104 1 0000000000000000 100 0 0 10 0\n";
static const char unix_text[] =
	"Num       RefCount Protocol Flags    Type St Inode Path\n"
	"ffff9f0000000000: 00000002 00000000 00010000 0001 01 105 /run/a.sock\n"
	"ffff9f0000000000: 00000003 00000000 00000000 0001 03 106\n";
static const char netlink_text[] =
	"sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"
	"0000000000000000 0   1234       00000000 0        0        0     2        0        107\n";

static const struct {
	const char *name;
	const char *text;
} tables[] = {
	{ "tcp", tcp_text },
	{ "tcp6", tcp6_text },
	{ "unix", unix_text },
	{ "netlink", netlink_text },
};

static void sockets_read_as_a_person_would_write_them(void **state)
{
	static const struct {
		uint64_t ino;
		const char *want;
	} rows[] = {
		{ 101, "tcp listen 127.0.0.1:6379" },
		{ 102, "tcp 127.0.0.1:41234 -> 127.0.0.2:5432" },
		{ 103, "tcp listen [::1]:80" },
		{ 104, "tcp 127.0.0.1:80 -> 127.0.0.1:50000" },
		{ 105, "unix listen /run/a.sock" },
		{ 106, "unix (unnamed)" },
		{ 107, "netlink" },
	};
	struct wp_fdinfo fi;

	(void)state;
	wp_fdinfo_init(&fi, -1);
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		assert_int_equal(wp_fdinfo_parse_net(&fi, tables[i].name,
						     tables[i].text,
						     strlen(tables[i].text)),
				 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_string_equal(wp_fdinfo_find_socket(&fi, rows[i].ino),
				    rows[i].want);
	assert_null(wp_fdinfo_find_socket(&fi, 1));
	wp_fdinfo_clear(&fi);
}

static void every_prefix_of_a_table_is_safe(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		for (size_t n = 0; n <= strlen(tables[i].text); n++) {
			char *exact = guarded(tables[i].text, n);
			struct wp_fdinfo fi;

			wp_fdinfo_init(&fi, -1);
			assert_int_equal(wp_fdinfo_parse_net(
						 &fi, tables[i].name, exact, n),
					 0);
			wp_fdinfo_clear(&fi);
			guarded_free(exact, n);
		}
	}
}

static void links_tell_kinds(void **state)
{
	static const struct {
		const char *link;
		enum wp_fd_kind want;
	} rows[] = {
		{ "pipe:[123]", WP_FD_PIPE },
		{ "socket:[123]", WP_FD_SOCKET },
		{ "anon_inode:[eventpoll]", WP_FD_EPOLL },
		{ "anon_inode:[eventfd]", WP_FD_EVENTFD },
		{ "anon_inode:[eventfd:7]", WP_FD_EVENTFD },
		{ "anon_inode:[timerfd]", WP_FD_TIMERFD },
		{ "anon_inode:[signalfd]", WP_FD_SIGNALFD },
		{ "anon_inode:inotify", WP_FD_INOTIFY },
		{ "anon_inode:[pidfd]", WP_FD_PIDFD },
		{ "anon_inode:[io_uring]", WP_FD_IO_URING },
		{ "anon_inode:[perf_event]", WP_FD_OTHER },
		{ "/dev/pts/3", WP_FD_TTY },
		{ "/var/lib/x", WP_FD_FILE },
		{ "/memfd:x (deleted)", WP_FD_FILE },
		{ "mnt:[4026531840]", WP_FD_OTHER },
		{ "", WP_FD_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(wp_fdinfo_classify(rows[i].link),
				 rows[i].want);
}

/* Descriptors of this process, made here. */
static void own_descriptors_are_told(void **state)
{
	int pipes[2], pair[2], proc_fd = open("/proc/self", O_RDONLY);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);
	struct wp_fd_desc desc;
	struct wp_fdinfo fi;
	char want[64];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (void *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 1), 0);
	getsockname(listener, (void *)&addr, &len);
	wp_fdinfo_init(&fi, proc_fd);

	assert_int_equal(wp_fdinfo_describe(&fi, pipes[0], 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_PIPE);
	assert_int_equal(strncmp(desc.text, "pipe:[", 6), 0);
	assert_int_equal(wp_fdinfo_describe(&fi, pair[0], 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_SOCKET);
	assert_string_equal(desc.text, "unix (unnamed)");
	assert_int_equal(wp_fdinfo_describe(&fi, listener, 1, &desc), 0);
	snprintf(want, sizeof(want), "tcp listen 127.0.0.1:%d",
		 ntohs(addr.sin_port));
	assert_string_equal(desc.text, want);
	assert_int_equal(wp_fdinfo_describe(&fi, epoll_create1(0), 1, &desc),
			 0);
	assert_string_equal(desc.text, "epoll");
	assert_int_equal(wp_fdinfo_describe(&fi, eventfd(0, 0), 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_EVENTFD);
	assert_int_equal(wp_fdinfo_describe(&fi,
					    timerfd_create(CLOCK_MONOTONIC, 0),
					    1, &desc),
			 0);
	assert_int_equal(desc.kind, WP_FD_TIMERFD);
	assert_int_equal(
		wp_fdinfo_describe(&fi, open("/dev/null", O_RDONLY), 1, &desc),
		0);
	assert_string_equal(desc.text, "device /dev/null");
	assert_int_equal(wp_fdinfo_describe(&fi, open("/", O_RDONLY), 1, &desc),
			 0);
	assert_int_equal(desc.kind, WP_FD_DIRECTORY);
	assert_int_equal(wp_fdinfo_describe(&fi, 987654, 1, &desc), -ENOENT);
	wp_fdinfo_clear(&fi);
}

/* A socket that is not in the tables yet costs a reading of them, but not one
 * each time. */
static void tables_are_not_read_at_every_look(void **state)
{
	int proc_fd = open("/proc/self", O_RDONLY);
	struct wp_fd_desc desc;
	struct wp_fdinfo fi;
	int fd;

	(void)state;
	wp_fdinfo_init(&fi, proc_fd);
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(wp_fdinfo_describe(&fi, fd, 1000, &desc), 0);
	assert_string_equal(desc.text, "unix (unnamed)");
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(wp_fdinfo_describe(&fi, fd, 2000, &desc), 0);
	assert_int_equal(strncmp(desc.text, "socket:[", 8), 0);
	assert_int_equal(wp_fdinfo_describe(&fi, fd, 1000000000, &desc), 0);
	assert_string_equal(desc.text, "unix (unnamed)");
	wp_fdinfo_clear(&fi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_read_as_a_person_would_write_them),
		cmocka_unit_test(every_prefix_of_a_table_is_safe),
		cmocka_unit_test(links_tell_kinds),
		cmocka_unit_test(own_descriptors_are_told),
		cmocka_unit_test(tables_are_not_read_at_every_look),
	};

	return cmocka_run_group_tests_name("fdinfo", tests, NULL, NULL);
}
