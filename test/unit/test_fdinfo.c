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
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "guarded.h"
#include "wallprof/clock.h"
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

/* The kernel prints names as they are, and any user may bind such a one. */
static void a_name_cannot_say_what_another_socket_is(void **state)
{
	static const char forged[] =
		"Num       RefCount Protocol Flags    Type St Inode Path\n"
		"0: 00000002 00000000 00010000 0001 01 900 @x\n"
		"0: 00000002 00000000 00010000 0001 01 101 /run/forged.sock\n"
		"0: 00000002 00000000 00010000 0001 01 105 /run/forged.sock\n";
	static const struct {
		const char *name, *text;
	} order[] = { { "unix", forged },
		      { "tcp", tcp_text },
		      { "unix", unix_text } };
	struct wp_fdinfo fi;

	(void)state;
	for (int last = 0; last < 2; last++) {
		wp_fdinfo_init(&fi, -1);
		for (int i = 0; i < 3; i++) {
			int at = (i + last) % 3;

			assert_int_equal(
				wp_fdinfo_parse_net(&fi, order[at].name,
						    order[at].text,
						    strlen(order[at].text)),
				0);
		}
		assert_null(wp_fdinfo_find_socket(&fi, 101));
		assert_null(wp_fdinfo_find_socket(&fi, 105));
		assert_string_equal(wp_fdinfo_find_socket(&fi, 102),
				    "tcp 127.0.0.1:41234 -> 127.0.0.2:5432");
		/* A table that changes while it is read may have a line twice. */
		assert_int_equal(wp_fdinfo_parse_net(&fi, "tcp", tcp_text,
						     strlen(tcp_text)),
				 0);
		assert_string_equal(wp_fdinfo_find_socket(&fi, 102),
				    "tcp 127.0.0.1:41234 -> 127.0.0.2:5432");
		wp_fdinfo_clear(&fi);
	}
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

	assert_int_equal(wp_fdinfo_describe(&fi, 0, pipes[0], 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_PIPE);
	assert_int_equal(strncmp(desc.text, "pipe:[", 6), 0);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, pair[0], 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_SOCKET);
	assert_string_equal(desc.text, "unix (unnamed)");
	assert_int_equal(wp_fdinfo_describe(&fi, 0, listener, 1, &desc), 0);
	snprintf(want, sizeof(want), "tcp listen 127.0.0.1:%d",
		 ntohs(addr.sin_port));
	assert_string_equal(desc.text, want);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, epoll_create1(0), 1, &desc),
			 0);
	assert_string_equal(desc.text, "epoll");
	assert_int_equal(wp_fdinfo_describe(&fi, 0, eventfd(0, 0), 1, &desc),
			 0);
	assert_int_equal(desc.kind, WP_FD_EVENTFD);
	assert_int_equal(wp_fdinfo_describe(&fi, 0,
					    timerfd_create(CLOCK_MONOTONIC, 0),
					    1, &desc),
			 0);
	assert_int_equal(desc.kind, WP_FD_TIMERFD);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, open("/dev/null", O_RDONLY),
					    1, &desc),
			 0);
	assert_string_equal(desc.text, "device /dev/null");
	assert_int_equal(
		wp_fdinfo_describe(&fi, 0, open("/", O_RDONLY), 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_DIRECTORY);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, 987654, 1, &desc), -ENOENT);
	wp_fdinfo_clear(&fi);
}

/* A socket that is not in the tables yet costs a reading of them, but not one
 * each time. */
/* As a TCP socket without an address is, or one of another network namespace. */
static void a_socket_that_is_in_no_table_cannot_be_given_a_name(void **state)
{
	int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int own = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int fds[] = { tcp, own };
	struct wp_fd_desc desc;
	char text[512], want[32];
	struct wp_fdinfo fi;
	struct stat st[2];

	(void)state;
	assert_int_equal(fstat(tcp, &st[0]), 0);
	assert_int_equal(fstat(own, &st[1]), 0);
	snprintf(text, sizeof(text),
		 "Num       RefCount Protocol Flags    Type St Inode Path\n"
		 "0: 00000002 00000000 00010000 0001 01 %lu /run/x.sock\n"
		 "0: 00000002 00000000 00010000 0001 01 %lu /run/x.sock\n",
		 (unsigned long)st[0].st_ino, (unsigned long)st[1].st_ino);
	wp_fdinfo_init(&fi, proc_fd);
	assert_int_equal(wp_fdinfo_parse_net(&fi, "unix", text, strlen(text)),
			 0);
	/* The second look is as the first. */
	for (int i = 0; i < 4; i++) {
		assert_int_equal(
			wp_fdinfo_describe(&fi, 0, fds[i % 2], 1, &desc), 0);
		snprintf(want, sizeof(want), "socket:[%lu]",
			 (unsigned long)st[0].st_ino);
		assert_string_equal(desc.text,
				    i % 2 ? "unix listen /run/x.sock" : want);
		assert_int_equal(desc.kind, WP_FD_SOCKET);
	}
	wp_fdinfo_clear(&fi);
	close(tcp);
	close(own);
	close(proc_fd);
}

static int own_fd;
static pthread_barrier_t barrier;

/* Has a pipe of its own where the process has /dev/null. */
static void *have_a_table(void *arg)
{
	pid_t *tid = arg;
	int pipes[2];

	*tid = (pid_t)syscall(SYS_gettid);
	assert_int_equal(unshare(CLONE_FILES), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(dup2(pipes[0], own_fd), own_fd);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void a_thread_has_its_own_descriptors(void **state)
{
	int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct wp_fd_desc desc;
	struct wp_fdinfo fi;
	pthread_t thread;
	pid_t tid = 0;

	(void)state;
	own_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, have_a_table, &tid), 0);
	pthread_barrier_wait(&barrier);
	wp_fdinfo_init(&fi, proc_fd);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, own_fd, 1, &desc), 0);
	assert_string_equal(desc.text, "device /dev/null");
	assert_int_equal(wp_fdinfo_kind(&fi, 0, own_fd), WP_FD_FILE);
	assert_int_equal(wp_fdinfo_describe(&fi, getpid(), own_fd, 1, &desc),
			 0);
	assert_string_equal(desc.text, "device /dev/null");
	assert_int_equal(wp_fdinfo_describe(&fi, tid, own_fd, 1, &desc), 0);
	assert_memory_equal(desc.text, "pipe:[", 6);
	assert_int_equal(wp_fdinfo_kind(&fi, tid, own_fd), WP_FD_PIPE);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	/* It is gone. */
	assert_true(wp_fdinfo_describe(&fi, tid, own_fd, 1, &desc) < 0);
	wp_fdinfo_clear(&fi);
	close(own_fd);
	close(proc_fd);
}

static void tables_are_not_read_at_every_look(void **state)
{
	int proc_fd = open("/proc/self", O_RDONLY);
	struct wp_fd_desc desc;
	struct wp_fdinfo fi;
	int fd;

	(void)state;
	wp_fdinfo_init(&fi, proc_fd);
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, fd, 1000, &desc), 0);
	assert_string_equal(desc.text, "unix (unnamed)");
	fi.cost_ns = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, fd, 2000, &desc), 0);
	assert_int_equal(strncmp(desc.text, "socket:[", 8), 0);
	assert_int_equal(
		wp_fdinfo_describe(&fi, 0, fd, 1000 + 199999999, &desc), 0);
	assert_int_equal(strncmp(desc.text, "socket:[", 8), 0);
	assert_int_equal(
		wp_fdinfo_describe(&fi, 0, fd, 1000 + 200000000, &desc), 0);
	assert_string_equal(desc.text, "unix (unnamed)");
	wp_fdinfo_clear(&fi);
}

/* The text of socket INO in table NAME of LINES under a heading; NULL: none. */
static uint64_t read_at(struct wp_fdinfo *fi, int fd, uint64_t now_ns)
{
	struct wp_fd_desc desc;

	assert_int_equal(wp_fdinfo_describe(fi, 0, fd, now_ns, &desc), 0);
	return fi->read_ns;
}

/* Nor more often than a twentieth of the time is enough for, nor as often for sockets
 * that they lack: those for IPv4 get an address later. */
static void tables_are_read_seldom_if_that_is_dear_or_in_vain(void **state)
{
	int proc_fd = open("/proc/self", O_RDONLY), fds[2];
	struct wp_fdinfo fi;

	(void)state;
	wp_fdinfo_init(&fi, proc_fd);
	for (int i = 0; i < 2; i++)
		fds[i] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(read_at(&fi, fds[0], 1000), 1000);
	assert_true(fi.cost_ns > 0);
	fi.cost_ns = WP_NS_PER_S;
	assert_int_equal(read_at(&fi, fds[1], 19 * WP_NS_PER_S), 1000);
	assert_int_equal(read_at(&fi, fds[0], 21 * WP_NS_PER_S), 1000);
	assert_int_equal(read_at(&fi, fds[1], 21 * WP_NS_PER_S),
			 21 * WP_NS_PER_S);
	/* Both are known to be missing. */
	fi.cost_ns = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(read_at(&fi, fds[i], 22 * WP_NS_PER_S),
				 21 * WP_NS_PER_S);
	assert_int_equal(read_at(&fi, fds[0], 23 * WP_NS_PER_S),
			 23 * WP_NS_PER_S);
	for (int i = 0; i < 2; i++)
		close(fds[i]);
	close(proc_fd);
	wp_fdinfo_clear(&fi);
}

static void assert_socket(const char *name, const char *lines, uint64_t ino,
			  const char *want)
{
	char text[2048], *exact;
	size_t n = (size_t)snprintf(text, sizeof(text), "heading\n%s", lines);
	struct wp_fdinfo fi;
	const char *got;

	exact = guarded(text, n);
	wp_fdinfo_init(&fi, -1);
	assert_int_equal(wp_fdinfo_parse_net(&fi, name, exact, n), 0);
	guarded_free(exact, n);
	got = wp_fdinfo_find_socket(&fi, ino);
	if (want) {
		assert_non_null(got);
		assert_string_equal(got, want);
		assert_int_equal(fi.texts_len, strlen(want) + 1);
	} else {
		assert_null(got);
		assert_int_equal(fi.nsockets, 0);
	}
	wp_fdinfo_clear(&fi);
}

#define INET(local, remote, state)                                             \
	" 1: " local " " remote " " state " 0:0 0:0 0 1000 0 9 1\n"

static void addresses_are_read_or_passed_over(void **state)
{
	static const char *const bad[] = {
		INET("0100007F", "0200007F:1", "01"),
		INET("0100007:18EB", "0200007F:1", "01"),
		INET("0100007F0:18EB", "0200007F:1", "01"),
		INET("010000ZF:18EB", "0200007F:1", "01"),
		INET("0100007F:18EB", "0200007:1", "01"),
		INET(":18EB", "0200007F:1", "01"),
		INET("0100007F0100007F:18EB", "0200007F:1", "01"),
		" 1: 0100007F:18EB 0200007F:1 01 0:0 0:0 0 1000 0 0 1\n",
		" 1: 0100007F:18EB 0200007F:1 01 0:0 0:0 0 1000 0\n",
		"\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_socket("tcp", bad[i], 9, NULL);
	assert_socket("udp", INET("0100007F:0035", "00000000:0000", "07"), 9,
		      "udp 127.0.0.1:53");
	assert_socket("udp", INET("0100007F:0035", "0200007F:C350", "01"), 9,
		      "udp 127.0.0.1:53 -> 127.0.0.2:50000");
	/* Only TCP listens. */
	assert_socket("udp", INET("0100007F:0035", "0200007F:C350", "0A"), 9,
		      "udp 127.0.0.1:53 -> 127.0.0.2:50000");
	assert_socket("udp", INET("0100007F:0035", "0200007F:000A", "01"), 9,
		      "udp 127.0.0.1:53 -> 127.0.0.2:10");
	/* Not quite an IPv4 address in one of IPv6. */
	assert_socket("tcp6",
		      INET("0000000000000001FFFF00000100007F:0050",
			   "0000000100000000FFFF00000100007F:0051", "01"),
		      9,
		      "tcp [::100:0:0:ffff:7f00:1]:80 -> "
		      "[100::ffff:7f00:1]:81");
}

static void lines_of_other_tables_are_read_or_passed_over(void **state)
{
	char line[600];

	(void)state;
	assert_socket("netlink", "7\n", 7, "netlink");
	assert_socket("netlink", "x\n7\n", 7, "netlink");
	assert_socket("packet", "7", 7, "packet");
	assert_socket("netlink", "\n  \n", 0, NULL);
	assert_socket("netlink", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18",
		      17, "netlink");
	assert_socket("unix", "f: 2 0 0 1 1\n", 1, NULL);
	assert_socket("unix", "f: 2 0 0 1 1 0 /x\n", 0, NULL);
	assert_socket("unix", "f: 2 0 0 1 1 7 /x\n", 7, "unix /x");
	/* No line is as long as that. */
	for (size_t n = 511; n <= 512; n++) {
		memset(line, ' ', n);
		line[n - 1] = '7';
		line[n] = '\0';
		assert_socket("netlink", line, 7, n < 512 ? "netlink" : NULL);
	}
}

/* Descriptor 3 of a process is what the test says. */
static void paths_are_printable_and_cut(void **state)
{
	char dir[] = "/tmp/test_fdinfoXXXXXX", path[128], target[512];
	struct wp_fd_desc desc;
	struct wp_fdinfo fi;
	int dir_fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkdirat(dir_fd, "fd", 0700), 0);
	wp_fdinfo_init(&fi, dir_fd);
	assert_int_equal(symlinkat("/gone/a\x01\x1f \x7f\x80", dir_fd, "fd/3"),
			 0);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, 3, 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_FILE);
	assert_string_equal(desc.text, "file /gone/a\\x01\\x1f \\x7f\x80");
	memset(target, 'x', sizeof(target) - 1);
	target[0] = '/';
	target[sizeof(target) - 1] = '\0';
	assert_int_equal(unlinkat(dir_fd, "fd/3", 0), 0);
	assert_int_equal(symlinkat(target, dir_fd, "fd/3"), 0);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, 3, 1, &desc), 0);
	assert_int_equal(strlen(desc.text), sizeof(desc.text) - 5);
	assert_int_equal(wp_fdinfo_kind(&fi, 0, 3), WP_FD_FILE);
	assert_int_equal(wp_fdinfo_kind(&fi, 0, 4), WP_FD_UNKNOWN);
	assert_string_equal(wp_fd_kind_name(WP_NFD_KINDS), "");
	wp_fdinfo_clear(&fi);
	snprintf(path, sizeof(path), "rm -r %s", dir);
	assert_int_equal(system(path), 0);
	close(dir_fd);
}

static void files_of_a_path_have_kinds(void **state)
{
	char dir[] = "/tmp/test_fdinfoXXXXXX", path[128], want[160];
	int proc_fd = open("/proc/self", O_RDONLY), fd;
	struct wp_fd_desc desc;
	struct wp_fdinfo fi;

	(void)state;
	assert_non_null(mkdtemp(dir));
	wp_fdinfo_init(&fi, proc_fd);
	snprintf(path, sizeof(path), "%s/f", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDWR);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, fd, 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_PIPE);
	snprintf(want, sizeof(want), "%s %s", wp_fd_kind_name(WP_FD_PIPE),
		 path);
	assert_string_equal(desc.text, want);
	close(fd);
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, fd, 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_FILE);
	close(fd);
	unlink(path);
	assert_int_equal(mknod(path, S_IFSOCK | 0600, 0), 0);
	fd = open(path, O_PATH);
	assert_int_equal(wp_fdinfo_describe(&fi, 0, fd, 1, &desc), 0);
	assert_int_equal(desc.kind, WP_FD_SOCKET);
	close(fd);
	unlink(path);
	rmdir(dir);
	wp_fdinfo_clear(&fi);
	close(proc_fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_read_as_a_person_would_write_them),
		cmocka_unit_test(a_name_cannot_say_what_another_socket_is),
		cmocka_unit_test(every_prefix_of_a_table_is_safe),
		cmocka_unit_test(addresses_are_read_or_passed_over),
		cmocka_unit_test(lines_of_other_tables_are_read_or_passed_over),
		cmocka_unit_test(paths_are_printable_and_cut),
		cmocka_unit_test(files_of_a_path_have_kinds),
		cmocka_unit_test(links_tell_kinds),
		cmocka_unit_test(own_descriptors_are_told),
		cmocka_unit_test(
			a_socket_that_is_in_no_table_cannot_be_given_a_name),
		cmocka_unit_test(a_thread_has_its_own_descriptors),
		cmocka_unit_test(tables_are_not_read_at_every_look),
		cmocka_unit_test(
			tables_are_read_seldom_if_that_is_dear_or_in_vain),
	};

	return cmocka_run_group_tests_name("fdinfo", tests, NULL, NULL);
}
