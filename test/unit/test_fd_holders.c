/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/fd_holders.h: hostile texts, and children of this process
 * that hold what they are said to hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guarded.h"
#include "wallprof/children.h"
#include "wallprof/clock.h"
#include "wallprof/fd_holders.h"
#include "wallprof/file_lock.h"
#include "wallprof/io.h"
#include "wallprof/unix_peer.h"

#define FOREVER UINT64_MAX
enum { MANY = 1000 };

static const char locks_text[] =
	"1: POSIX  ADVISORY  WRITE 100 fd:01:131 0 EOF\n"
	"1: -> POSIX  ADVISORY  WRITE 200 fd:01:131 0 EOF\n"
	"1:     -> POSIX  ADVISORY  READ  300 fd:01:131 0 10\n"
	"2: FLOCK  ADVISORY  READ  101 00:1a:131 0 EOF\n"
	"2:  -> FLOCK  ADVISORY  WRITE 200 00:1a:131 0 EOF\n"
	"3: OFDLCK ADVISORY  WRITE -1 103:02:77 0 EOF\n"
	"3:  -> OFDLCK ADVISORY  WRITE -1 103:02:77 0 EOF\n"
	"3:  -> POSIX  ADVISORY  WRITE 400 103:02:77 0 EOF\n"
	"4: LEASE  ACTIVE    WRITE 102 fd:01:9 0 EOF\n";

static int find(struct wp_file_lock *lock, pid_t waiter, uint64_t dev,
		uint64_t ino)
{
	return wp_file_lock_find(
		lock, locks_text, strlen(locks_text),
		&(struct wp_file_waiter){ waiter, dev, ino, NULL, false });
}

static void a_waiter_leads_to_the_holder(void **state)
{
	struct wp_file_lock lock;

	(void)state;
	assert_int_equal(find(&lock, 200, makedev(0xfd, 1), 131), 0);
	assert_int_equal(lock.holder, 100);
	assert_string_equal(lock.type, "POSIX");
	assert_true(lock.write);
	/* Same process and inode number, another device, and flock(2). */
	assert_int_equal(
		wp_file_lock_find(&lock, locks_text, strlen(locks_text),
				  &(struct wp_file_waiter){ 200,
							    makedev(0, 0x1a),
							    131, NULL, true }),
		0);
	assert_int_equal(lock.holder, 101);
	assert_string_equal(lock.type, "FLOCK");
	assert_false(lock.write);
	/* Behind another waiter. */
	assert_int_equal(find(&lock, 300, makedev(0xfd, 1), 131), 0);
	assert_int_equal(lock.holder, 100);
	/* stat(2) showed another device. */
	assert_int_equal(find(&lock, 300, makedev(9, 9), 131), 0);
	assert_int_equal(lock.holder, 100);
	assert_int_equal(find(&lock, 400, makedev(0x103, 2), 77), 0);
	assert_int_equal(lock.holder, -1);
	assert_string_equal(lock.type, "OFDLCK");
}

/* Of one file, of all its bytes. */
static void threads_of_a_process_wait_in_calls_of_their_own(void **state)
{
	static const char text[] =
		"5: FLOCK  ADVISORY  WRITE 100 fd:01:131 0 EOF\n"
		"5: -> FLOCK  ADVISORY  WRITE 200 fd:01:131 0 EOF\n"
		"6: POSIX  ADVISORY  WRITE 101 fd:01:131 0 EOF\n"
		"6: -> POSIX  ADVISORY  WRITE 200 fd:01:131 0 EOF\n";
	static const struct wp_file_want all = { WP_FILE_WANT_POSIX, true, 0,
						 UINT64_MAX };
	struct wp_file_lock lock;

	(void)state;
	for (int is_flock = 0; is_flock < 2; is_flock++) {
		const struct wp_file_waiter waiter = { 200, makedev(0xfd, 1),
						       131, &all, is_flock };

		assert_int_equal(
			wp_file_lock_find(&lock, text, strlen(text), &waiter),
			0);
		assert_int_equal(lock.holder, is_flock ? 100 : 101);
	}
}

static void threads_of_a_process_wait_for_their_own_bytes(void **state)
{
	static const char text[] =
		"1: POSIX  ADVISORY  WRITE 100 fd:01:131 0 9\n"
		"1: -> POSIX  ADVISORY  WRITE 200 fd:01:131 0 9\n"
		"2: POSIX  ADVISORY  WRITE 101 fd:01:131 10 EOF\n"
		"2: -> POSIX  ADVISORY  WRITE 200 fd:01:131 20 EOF\n"
		"2: -> POSIX  ADVISORY  WRITE 200 fd:01:131 12";
	static const struct {
		struct wp_file_want want;
		uint64_t dev;
		pid_t holder;
	} rows[] = {
		{ { WP_FILE_WANT_POSIX, true, 0, 9 }, 1, 100 },
		{ { WP_FILE_WANT_POSIX, true, 20, UINT64_MAX }, 1, 101 },
		{ { WP_FILE_WANT_POSIX, true, 20, UINT64_MAX }, 2, 101 },
		/* In no whole line. */
		{ { WP_FILE_WANT_POSIX, true, 12, 12 }, 1, 100 },
	};
	struct wp_file_lock lock;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct wp_file_waiter waiter = {
			200, makedev(0xfd, (unsigned int)rows[i].dev), 131,
			&rows[i].want, false
		};

		assert_int_equal(
			wp_file_lock_find(&lock, text, strlen(text), &waiter),
			0);
		assert_int_equal(lock.holder, rows[i].holder);
	}
}

static void who_holds_waits_for_nobody(void **state)
{
	struct wp_file_lock lock;

	(void)state;
	assert_int_equal(find(&lock, 100, makedev(0xfd, 1), 131), -ENOENT);
	assert_int_equal(find(&lock, 102, makedev(0xfd, 1), 9), -ENOENT);
	assert_int_equal(find(&lock, 200, makedev(0xfd, 1), 132), -ENOENT);
	assert_int_equal(find(&lock, 999, makedev(0xfd, 1), 131), -ENOENT);
}

static void a_waiter_without_a_holder_before_it_is_not_trusted(void **state)
{
	static const char *const texts[] = {
		"1:  -> POSIX ADVISORY WRITE 200 fd:01:131 0 EOF\n",
		"2: POSIX ADVISORY WRITE 100 fd:01:131 0 EOF\n"
		"1:  -> POSIX ADVISORY WRITE 200 fd:01:131 0 EOF\n",
		"1: POSIX ADVISORY WRITE 100 fd:01:132 0 EOF\n"
		"1:  -> POSIX ADVISORY WRITE 200 fd:01:131 0 EOF\n",
		"1: POSIX ADVISORY WRITE 4294967396 fd:01:131 0 EOF\n"
		"1:  -> POSIX ADVISORY WRITE 200 fd:01:131 0 EOF\n",
		/* No pid_t holds the negation. */
		"1: POSIX ADVISORY WRITE -2147483648 fd:01:131 0 EOF\n"
		"1:  -> POSIX ADVISORY WRITE 200 fd:01:131 0 EOF\n",
	};
	const struct wp_file_waiter waiter = { 200, makedev(0xfd, 1), 131, NULL,
					       false };
	struct wp_file_lock lock;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(wp_file_lock_find(&lock, texts[i],
						   strlen(texts[i]), &waiter),
				 -ENOENT);
}

static void the_greatest_pid_is_one(void **state)
{
	static const char text[] =
		"1: A_TYPE_WITH_A_LONG_NAME ADVISORY RW 2147483647 0:1:2 0 EOF\n"
		"1: -> POSIX ADVISORY WRITE 200 0:1:2 0 EOF";
	const struct wp_file_waiter waiter = { 200, makedev(0, 1), 2, NULL,
					       false };
	struct wp_file_lock lock;

	(void)state;
	assert_int_equal(wp_file_lock_find(&lock, text, strlen(text), &waiter),
			 0);
	assert_int_equal(lock.holder, INT32_MAX);
	assert_true(lock.write);
	assert_int_equal(strlen(lock.type), sizeof(lock.type) - 1);
	assert_memory_equal(lock.type, "A_TYPE_WITH_A_LONG_NAME",
			    strlen(lock.type));
	/* A blank has to follow its inode. */
	assert_int_equal(
		wp_file_lock_find(&lock, text, strlen(text) - 6, &waiter),
		-ENOENT);
}

static const char fdinfo_text[] =
	"pos:\t0\nflags:\t02100002\nmnt_id:\t27\nino:\t131\n"
	"lock:\t1: FLOCK  ADVISORY  READ 101 fd:01:131 0 EOF\n"
	"lock:\t2: OFDLCK ADVISORY  WRITE -1 fd:01:131 10 29\n"
	"lock:\t3: OFDLCK ADVISORY  READ -1 fd:01:131 100 EOF\n"
	"lock:\t5: OFDLCK ADVISORY  WRITE -1 fd:01:131 70 100\n"
	"lock:\t4: POSIX  ADVISORY  WRITE 101 fd:01:131 50 50\n";

static void locks_of_an_open_file_block_what_they_overlap(void **state)
{
	static const struct {
		struct wp_file_want want;
		bool blocks;
	} rows[] = {
		{ { WP_FILE_WANT_OFD, true, 0, 9 }, false },
		{ { WP_FILE_WANT_OFD, true, 0, 10 }, true },
		{ { WP_FILE_WANT_OFD, false, 29, 40 }, true },
		{ { WP_FILE_WANT_OFD, true, 30, 49 }, false },
		{ { WP_FILE_WANT_OFD, false, 30, 50 }, true },
		{ { WP_FILE_WANT_OFD, false, 100, 100 }, true },
		{ { WP_FILE_WANT_OFD, false, 101, 200 }, false },
		/* A process's own lock is told by /proc/locks. */
		{ { WP_FILE_WANT_POSIX, false, 30, 50 }, false },
		{ { WP_FILE_WANT_POSIX, true, 10, 10 }, true },
		/* Readers share. */
		{ { WP_FILE_WANT_OFD, false, 101, UINT64_MAX }, false },
		{ { WP_FILE_WANT_OFD, true, 51, UINT64_MAX }, true },
		{ { WP_FILE_WANT_OFD, true, UINT64_MAX, UINT64_MAX }, true },
		{ { WP_FILE_WANT_FLOCK, false, 0, UINT64_MAX }, false },
		{ { WP_FILE_WANT_FLOCK, true, 0, UINT64_MAX }, true },
	};
	static const char *const others[] = {
		"",
		"lock:\t",
		"lock:\t\n",
		"lock:\t1: OFDLCK\n",
		/* Cut: of a number only digits may be there. */
		"lock:\t1: OFDLCK ADVISORY WRITE -1 fd:01:131 0 EOF",
		"lock:\t1: OFDLCK ADVISORY WRITE -1 fd:01:131 0 \n",
		"lock:\t1: OFDLCK ADVISORY WRITE -1 fd:01:131 0 EOFX\n",
		"lock:\t1: OFDLCK ADVISORY WRITE -1 fd:01:131 -1 EOF\n",
		"lock:\t1: LEASE ACTIVE WRITE 7 fd:01:131 0 EOF\n",
		"block:\t1: OFDLCK ADVISORY WRITE -1 fd:01:131 0 EOF\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(wp_file_lock_blocks(&rows[i].want, fdinfo_text,
						     strlen(fdinfo_text)),
				 rows[i].blocks);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(wp_file_lock_blocks(&rows[1].want, others[i],
						 strlen(others[i])));
}

/* As the kernel writes it. */
static void own_locks_are_found(void **state)
{
	const struct wp_file_want want = { WP_FILE_WANT_OFD, true, 15, 15 };
	const struct wp_file_want other = { WP_FILE_WANT_OFD, true, 0, 9 };
	struct flock lock = { .l_type = F_RDLCK, .l_start = 10, .l_len = 10 };
	char path[] = "/tmp/test_peers_XXXXXX", name[64], text[1024];
	int fd = mkstemp(path);
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", fd);
	n = wp_io_read_at(AT_FDCWD, name, text, sizeof(text));
	assert_true(n > 0);
	assert_true(wp_file_lock_blocks(&want, text, (size_t)n));
	assert_false(wp_file_lock_blocks(&other, text, (size_t)n));
	close(fd);
}

static void every_prefix_is_safe(void **state)
{
	const struct wp_file_want last = { WP_FILE_WANT_OFD, false, 50, 50 };
	static const char flags[] = "pos:\t0\nflags:\t0100001\nmnt_id:\t14\n";
	static const char kids[] = "12 345 6 ";
	struct wp_file_lock lock;
	struct wp_tids pids = WP_TIDS_INIT;
	char *exact;
	bool r, w;

	(void)state;
	for (size_t n = 0; n <= strlen(fdinfo_text); n++) {
		exact = guarded(fdinfo_text, n);
		assert_int_equal(wp_file_lock_blocks(&last, exact, n),
				 n == strlen(fdinfo_text));
		guarded_free(exact, n);
	}
	for (size_t n = 0; n <= strlen(locks_text); n++) {
		exact = guarded(locks_text, n);
		(void)!wp_file_lock_find(
			&lock, exact, n,
			&(struct wp_file_waiter){ 400, makedev(0x103, 2), 77,
						  &last, false });
		guarded_free(exact, n);
	}
	for (size_t n = 0; n <= strlen(flags); n++) {
		exact = guarded(flags, n);
		assert_int_equal(wp_fd_holders_parse_flags(&r, &w, exact, n),
				 n < 22 ? -EBADMSG : 0);
		guarded_free(exact, n);
	}
	for (size_t n = 0; n <= strlen(kids); n++) {
		exact = guarded(kids, n);
		assert_int_equal(wp_children_parse(&pids, exact, n),
				 n && kids[n - 1] != ' ' ? -EBADMSG : 0);
		guarded_free(exact, n);
	}
	wp_tids_clear(&pids);
}

static void flags_tell_ends(void **state)
{
	static const struct {
		const char *text;
		int rc;
		bool reads, writes;
	} rows[] = {
		{ "flags:\t0100000\n", 0, true, false },
		{ "pos:\t0\nflags:\t02000001\n", 0, false, true },
		{ "flags:\t02\n", 0, true, true },
		/* O_PATH */
		{ "flags:\t010000000\n", 0, false, false },
		{ "flags:\t8\n", -EBADMSG, false, false },
		{ "flags:\t\n", -EBADMSG, false, false },
		{ "xflags:\t01\n", -EBADMSG, false, false },
		{ "flags:\t7777777777777777777777777\n", -EBADMSG, false,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool r = false, w = false;

		assert_int_equal(
			wp_fd_holders_parse_flags(&r, &w, rows[i].text,
						  strlen(rows[i].text)),
			rows[i].rc);
		assert_int_equal(r, rows[i].reads);
		assert_int_equal(w, rows[i].writes);
	}
}

static void lists_of_children_that_are_no_numbers_are_refused(void **state)
{
	static const char *const texts[] = { "1",	    "x ",    " 1 ",
					     "0 ",	    "1  2 ", "-1 ",
					     "2147483648 ", "1\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct wp_tids pids = WP_TIDS_INIT;

		assert_int_equal(
			wp_children_parse(&pids, texts[i], strlen(texts[i])),
			-EBADMSG);
		wp_tids_clear(&pids);
	}
}

/* What the kernel would say of socket 7 whose peer is 9. */
struct answer {
	struct nlmsghdr h;
	struct unix_diag_msg msg;
	struct rtattr other;
	uint32_t other_val;
	struct rtattr attr;
	uint32_t peer;
};

static struct answer make_answer(void)
{
	return (struct answer){
		.h = { .nlmsg_len = sizeof(struct answer),
		       .nlmsg_type = SOCK_DIAG_BY_FAMILY },
		.msg = { .udiag_family = AF_UNIX, .udiag_ino = 7 },
		.other = { 8, UNIX_DIAG_SHUTDOWN },
		.attr = { 8, UNIX_DIAG_PEER },
		.peer = 9,
	};
}

static int parse_answer(uint64_t *peer, const struct answer *a, size_t len)
{
	void *exact = guarded(a, len);
	int rc = wp_unix_peer_parse(peer, exact, len, 7);

	guarded_free(exact, len);
	return rc;
}

static void answers_of_the_socket_tables_are_checked(void **state)
{
	struct answer a = make_answer();
	uint64_t peer = 0;

	(void)state;
	assert_int_equal(parse_answer(&peer, &a, sizeof(a)), 0);
	assert_int_equal(peer, 9);
	for (size_t n = 0; n < sizeof(a); n++) {
		assert_int_equal(parse_answer(&peer, &a, n), -EBADMSG);
		a.h.nlmsg_len = (uint32_t)n;
		assert_int_not_equal(parse_answer(&peer, &a, n), 0);
		a = make_answer();
	}
	for (int len = 0; len < 70000; len += 3) {
		a.other.rta_len = (unsigned short)len;
		(void)!parse_answer(&peer, &a, sizeof(a));
	}
	a = make_answer();
	a.msg.udiag_ino = 8;
	assert_int_equal(parse_answer(&peer, &a, sizeof(a)), -EBADMSG);
	a = make_answer();
	a.peer = 0;
	assert_int_equal(parse_answer(&peer, &a, sizeof(a)), -ENOENT);
	a = make_answer();
	a.h.nlmsg_type = NLMSG_ERROR;
	a.msg.udiag_family = 0;
	assert_int_equal(parse_answer(&peer, &a, sizeof(a)), -ENOTSUP);
}

/* Answers that are exactly as long as they have to be, and that say no. */
static void answers_that_are_short_say_what_they_can(void **state)
{
	struct answer a = make_answer();
	uint64_t peer = 0;
	int error = -ENOENT;

	(void)state;
	a.h.nlmsg_type = NLMSG_ERROR;
	a.h.nlmsg_len = sizeof(a.h) + sizeof(error);
	memcpy(&a.msg, &error, sizeof(error));
	assert_int_equal(parse_answer(&peer, &a, a.h.nlmsg_len), -ENOENT);
	a.h.nlmsg_len--;
	assert_int_equal(parse_answer(&peer, &a, a.h.nlmsg_len), -EBADMSG);
	error = -EINVAL;
	a.h.nlmsg_len++;
	memcpy(&a.msg, &error, sizeof(error));
	assert_int_equal(parse_answer(&peer, &a, a.h.nlmsg_len), -ENOTSUP);
	a = make_answer();
	a.h.nlmsg_type = NLMSG_DONE;
	assert_int_equal(parse_answer(&peer, &a, sizeof(a)), -EBADMSG);
	/* No attribute at all; one without a value; one that is another's. */
	a = make_answer();
	a.h.nlmsg_len = offsetof(struct answer, other);
	assert_int_equal(parse_answer(&peer, &a, a.h.nlmsg_len), -ENOENT);
	a.h.nlmsg_len += sizeof(a.other);
	a.other = (struct rtattr){ 4, UNIX_DIAG_PEER };
	assert_int_equal(parse_answer(&peer, &a, a.h.nlmsg_len), -EBADMSG);
	a.other.rta_type = UNIX_DIAG_SHUTDOWN;
	assert_int_equal(parse_answer(&peer, &a, a.h.nlmsg_len), -ENOENT);
	a.other.rta_len = 3;
	assert_int_equal(parse_answer(&peer, &a, a.h.nlmsg_len), -EBADMSG);
	a = make_answer();
	a.attr.rta_len = 7;
	assert_int_equal(parse_answer(&peer, &a, sizeof(a)), -EBADMSG);
	assert_int_equal(peer, 0);
}

/* A child that keeps all but OTHER open, until it is killed. */
static pid_t fork_holder(int other)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	close(other);
	for (;;)
		pause();
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool has(const struct wp_fd_holders *peers, uint32_t object, pid_t pid,
		int fd, bool reads, bool writes)
{
	for (size_t i = 0; i < peers->len; i++) {
		const struct wp_fd_holder *p = &peers->v[i];

		if (p->object == object && p->pid == pid && p->fd == fd &&
		    p->reads == reads && p->writes == writes)
			return true;
	}
	return false;
}

static void link_of(int fd, char *buf, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, buf, size - 1);
	assert_true(n > 0);
	buf[n] = '\0';
}

/* Holds once the child has closed what it is to close. */
static void scan_until(struct wp_fd_holders *peers,
		       const struct wp_fd_object *objects, size_t n,
		       size_t want)
{
	do
		assert_int_equal(
			wp_fd_holders_find(peers, objects, n, MANY, FOREVER),
			0);
	while (peers->len != want);
	assert_false(peers->cut);
}

static void holders_of_pipes_and_fifos_are_found(void **state)
{
	char pipe_link[64], dir[] = "/tmp/peersXXXXXX", fifo[64];
	struct wp_fd_holders peers = WP_FD_HOLDERS_INIT;
	struct wp_fd_object objects[2];
	int pipes[2], fd;
	struct stat st;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_non_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/f", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fd = open(fifo, O_RDWR);
	assert_true(fd >= 0);
	link_of(pipes[0], pipe_link, sizeof(pipe_link));
	fstat(fd, &st);
	objects[0] = (struct wp_fd_object){ fifo, st.st_dev, st.st_ino, NULL };
	objects[1] = (struct wp_fd_object){ pipe_link, 0, 0, NULL };
	child = fork_holder(pipes[0]);
	close(pipes[1]);

	scan_until(&peers, objects, 2, 4);
	assert_true(has(&peers, 1, getpid(), pipes[0], true, false));
	assert_true(has(&peers, 1, child, pipes[1], false, true));
	assert_true(has(&peers, 0, getpid(), fd, true, true));
	assert_true(has(&peers, 0, child, fd, true, true));
	/* The path of another fifo that is now elsewhere. */
	objects[0].ino++;
	scan_until(&peers, objects, 1, 0);

	end(child);
	close(pipes[0]);
	close(fd);
	unlink(fifo);
	rmdir(dir);
	wp_fd_holders_clear(&peers);
}

static void *pause_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A child whose first thread has left, and another one has not. */
static void what_a_process_without_its_leader_holds_is_found(void **state)
{
	struct wp_fd_holders peers = WP_FD_HOLDERS_INIT;
	char link[64], path[64], text[1024] = "";
	struct wp_fd_object object = { .link = link };
	pid_t parent = getpid(), child;
	pthread_t thread;
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	link_of(pipes[0], link, sizeof(link));
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent ||
		    pthread_create(&thread, NULL, pause_for_ever, NULL))
			_exit(1);
		close(pipes[0]);
		pthread_exit(NULL);
	}
	close(pipes[1]);
	snprintf(path, sizeof(path), "/proc/%d/stat", child);
	while (!strstr(text, ") Z "))
		assert_true(wp_io_read_at(-1, path, text, sizeof(text)) > 0);
	assert_int_equal(wp_fd_holders_find(&peers, &object, 1, MANY, FOREVER),
			 0);
	assert_int_equal(peers.len, 2);
	assert_true(has(&peers, 0, getpid(), pipes[0], true, false));
	assert_true(has(&peers, 0, child, pipes[1], false, true));
	end(child);
	close(pipes[0]);
	wp_fd_holders_clear(&peers);
}

static int *pipes_of_child;

static void *keep_own_descriptors(void *told)
{
	if (unshare(CLONE_FILES))
		_exit(1);
	close(pipes_of_child[0]);
	(void)!write(*(int *)told, "x", 1);
	return pause_for_ever(NULL);
}

/* A child whose first thread has closed the pipe that another one still has. */
static void what_a_thread_has_of_its_own_is_found(void **state)
{
	struct wp_fd_holders peers = WP_FD_HOLDERS_INIT;
	struct wp_fd_object object;
	pid_t parent = getpid(), child;
	int pipes[2], told[2], done[2];
	pthread_t thread;
	char link[64], byte;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(done), 0);
	link_of(pipes[0], link, sizeof(link));
	object = (struct wp_fd_object){ .link = link };
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pipes_of_child = pipes;
		if (getppid() != parent ||
		    pthread_create(&thread, NULL, keep_own_descriptors,
				   &told[1]) ||
		    read(told[0], &byte, 1) != 1)
			_exit(1);
		close(pipes[0]);
		close(pipes[1]);
		(void)!write(done[1], "y", 1);
		pause_for_ever(NULL);
	}
	close(pipes[1]);
	assert_int_equal(read(done[0], &byte, 1), 1);
	assert_int_equal(wp_fd_holders_find(&peers, &object, 1, MANY, FOREVER),
			 0);
	assert_int_equal(peers.len, 2);
	assert_true(has(&peers, 0, getpid(), pipes[0], true, false));
	assert_true(has(&peers, 0, child, pipes[1], false, true));
	end(child);
	close(pipes[0]);
	close(told[0]);
	close(told[1]);
	close(done[0]);
	close(done[1]);
	wp_fd_holders_clear(&peers);
}

static void bounds_end_a_scan_and_it_says_so(void **state)
{
	struct wp_fd_holders peers = WP_FD_HOLDERS_INIT;
	struct wp_fd_object object;
	char link[64];
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	link_of(pipes[0], link, sizeof(link));
	object = (struct wp_fd_object){ link, 0, 0, NULL };
	scan_until(&peers, &object, 1, 2);
	assert_int_equal(wp_fd_holders_find(&peers, &object, 1, 1, FOREVER), 0);
	assert_int_equal(peers.len, 1);
	assert_true(peers.cut);
	assert_int_equal(
		wp_fd_holders_find(&peers, &object, 1, MANY, wp_clock_ns()), 0);
	assert_int_equal(peers.len, 0);
	assert_true(peers.cut);
	assert_int_equal(wp_fd_holders_find(&peers, NULL, 0, MANY, FOREVER), 0);
	assert_false(peers.cut);
	close(pipes[0]);
	close(pipes[1]);
	wp_fd_holders_clear(&peers);
}

static ino_t ino_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void ends_of_unix_sockets_lead_to_each_other(void **state)
{
	int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY);
	int pair[2], lone = socket(AF_UNIX, SOCK_STREAM, 0);
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	uint64_t ino;
	int rc;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	rc = wp_unix_peer_read(&ino, proc_fd, ino_of(pair[0]));
	if (rc == -ENOTSUP) {
		print_message("no sock_diag(7) for unix sockets here\n");
		skip();
	}
	assert_int_equal(rc, 0);
	assert_int_equal(ino, ino_of(pair[1]));
	assert_int_equal(wp_unix_peer_read(&ino, proc_fd, ino_of(pair[1])), 0);
	assert_int_equal(ino, ino_of(pair[0]));
	assert_int_equal(wp_unix_peer_read(&ino, proc_fd, ino_of(lone)),
			 -ENOENT);
	assert_int_equal(wp_unix_peer_read(&ino, proc_fd, ino_of(tcp)),
			 -ENOENT);
	assert_int_equal(wp_unix_peer_read(&ino, proc_fd, 0), -ENOENT);
	assert_int_equal(wp_unix_peer_read(&ino, proc_fd, UINT64_MAX), -ENOENT);
	/* Not a process, so in no namespace that we know. */
	assert_int_equal(wp_unix_peer_read(&ino, tcp, ino_of(pair[0])), -EXDEV);
	close(pair[1]);
	assert_int_equal(wp_unix_peer_read(&ino, proc_fd, ino_of(pair[0])),
			 -ENOENT);
	close(pair[0]);
	close(lone);
	close(tcp);
	close(proc_fd);
}

/* A namespace whose name is as long as that of this process. */
static void sockets_of_another_namespace_are_not_asked_for(void **state)
{
	char dir[] = "/tmp/test_peers_XXXXXX", name[64];
	ssize_t n = readlink("/proc/self/ns/net", name, sizeof(name) - 1);
	uint64_t ino;
	int fd;

	(void)state;
	assert_true(n > 2);
	name[n] = '\0';
	name[n - 2] = name[n - 2] == '1' ? '2' : '1';
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(fd, "ns", 0700), 0);
	assert_int_equal(symlinkat(name, fd, "ns/net"), 0);
	assert_int_equal(wp_unix_peer_read(&ino, fd, 7), -EXDEV);
	assert_int_equal(wp_unix_peer_read(&ino, fd, UINT32_MAX), -EXDEV);
	/* No socket has such a number, whatever the namespace. */
	assert_int_equal(wp_unix_peer_read(&ino, fd, UINT32_MAX + 1ULL),
			 -ENOENT);
	assert_int_equal(unlinkat(fd, "ns/net", 0), 0);
	assert_int_equal(unlinkat(fd, "ns", AT_REMOVEDIR), 0);
	close(fd);
	rmdir(dir);
}

static void holders_of_the_root_directory_are_found(void **state)
{
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct wp_fd_holders holders = WP_FD_HOLDERS_INIT;
	struct wp_fd_object object = { .link = "/" };
	struct stat st;
	bool found = false;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	object.dev = st.st_dev;
	object.ino = st.st_ino;
	assert_int_equal(
		wp_fd_holders_find(&holders, &object, 1, MANY, FOREVER), 0);
	for (size_t i = 0; i < holders.len; i++)
		found |= holders.v[i].pid == getpid() && holders.v[i].fd == fd;
	assert_true(found);
	wp_fd_holders_clear(&holders);
	close(fd);
}

/* A child that waits for a lock on PATH that this process holds. */
static pid_t fork_waiter(const char *path, bool posix)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	pid_t parent = getpid(), pid = fork();
	int fd;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fd = open(path, O_RDWR);
	if (posix)
		_exit(fcntl(fd, F_SETLKW, &lock) ? 1 : 0);
	_exit(flock(fd, LOCK_EX) ? 1 : 0);
}

static void real_file_locks_are_told(void **state)
{
	char path[] = "/tmp/peersXXXXXX";
	int fd = mkstemp(path);
	struct stat st;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	for (int posix = 0; posix < 2; posix++) {
		struct flock hold = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
		struct wp_text text = WP_TEXT_INIT;
		struct wp_file_lock lock;
		pid_t child;

		if (posix)
			assert_int_equal(fcntl(fd, F_SETLK, &hold), 0);
		else
			assert_int_equal(flock(fd, LOCK_EX), 0);
		child = fork_waiter(path, posix);
		do
			assert_int_equal(wp_text_read(&text, AT_FDCWD,
						      "/proc/locks", 16 << 20),
					 0);
		while (wp_file_lock_find(
			&lock, text.data, text.len,
			&(struct wp_file_waiter){ child, st.st_dev, st.st_ino,
						  NULL, !posix }));
		assert_int_equal(lock.holder, getpid());
		assert_string_equal(lock.type, posix ? "POSIX" : "FLOCK");
		assert_true(lock.write);
		wp_text_clear(&text);
		end(child);
		flock(fd, LOCK_UN);
	}
	close(fd);
	unlink(path);
}

static void children_and_their_children_are_listed(void **state)
{
	struct wp_tids pids = WP_TIDS_INIT;
	int pipes[2];
	pid_t child, grandchild = 0;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		grandchild = fork_holder(-1);
		if (write(pipes[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pipes[0], &grandchild, sizeof(grandchild)),
			 sizeof(grandchild));
	assert_int_equal(wp_children_list(&pids, getpid()), 0);
	assert_int_equal(pids.len, 1);
	assert_int_equal(pids.v[0], child);
	assert_int_equal(wp_children_list_all(&pids, getpid(), MANY), 0);
	assert_int_equal(pids.len, 2);
	assert_int_equal(pids.v[0], child);
	assert_int_equal(pids.v[1], grandchild);
	assert_int_equal(wp_children_list_all(&pids, getpid(), 1), 0);
	assert_int_equal(pids.len, 1);
	assert_int_equal(wp_children_list(&pids, grandchild), 0);
	assert_int_equal(pids.len, 0);
	kill(grandchild, SIGKILL);
	end(child);
	assert_int_equal(wp_children_list(&pids, child), -ESRCH);
	close(pipes[0]);
	close(pipes[1]);
	wp_tids_clear(&pids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_waiter_leads_to_the_holder),
		cmocka_unit_test(the_greatest_pid_is_one),
		cmocka_unit_test(
			threads_of_a_process_wait_in_calls_of_their_own),
		cmocka_unit_test(threads_of_a_process_wait_for_their_own_bytes),
		cmocka_unit_test(who_holds_waits_for_nobody),
		cmocka_unit_test(
			a_waiter_without_a_holder_before_it_is_not_trusted),
		cmocka_unit_test(locks_of_an_open_file_block_what_they_overlap),
		cmocka_unit_test(own_locks_are_found),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(flags_tell_ends),
		cmocka_unit_test(
			lists_of_children_that_are_no_numbers_are_refused),
		cmocka_unit_test(answers_of_the_socket_tables_are_checked),
		cmocka_unit_test(answers_that_are_short_say_what_they_can),
		cmocka_unit_test(holders_of_pipes_and_fifos_are_found),
		cmocka_unit_test(
			what_a_process_without_its_leader_holds_is_found),
		cmocka_unit_test(what_a_thread_has_of_its_own_is_found),
		cmocka_unit_test(bounds_end_a_scan_and_it_says_so),
		cmocka_unit_test(ends_of_unix_sockets_lead_to_each_other),
		cmocka_unit_test(
			sockets_of_another_namespace_are_not_asked_for),
		cmocka_unit_test(holders_of_the_root_directory_are_found),
		cmocka_unit_test(real_file_locks_are_told),
		cmocka_unit_test(children_and_their_children_are_listed),
	};

	return cmocka_run_group_tests_name("peers", tests, NULL, NULL);
}
