/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  file_servers.h: which devices have a server, and that it is asked
 * once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guarded.h"
#include "wallprof/file_servers.h"

static struct wp_file_servers servers;

static int setup(void **state)
{
	(void)state;
	servers = (struct wp_file_servers)WP_FILE_SERVERS_INIT;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_file_servers_clear(&servers);
	return 0;
}

static void parse(const char *text)
{
	char *exact = guarded(text, strlen(text));

	assert_int_equal(wp_file_servers_parse(&servers, exact, strlen(text)),
			 0);
	guarded_free(exact, strlen(text));
}

/* Has DEV, which is listed, a server that is still to be asked? */
static void assert_is(uint64_t dev, bool is_served)
{
	uint32_t i = 0;

	while (i < servers.len && servers.v[i].dev != dev)
		i++;
	assert_in_range(i, 0, servers.len - 1);
	assert_int_equal(servers.v[i].was_asked, !is_served);
	assert_int_equal(servers.v[i].answers, !is_served);
}

static void types_tell_who_asks_a_server(void **state)
{
	(void)state;
	parse("22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	      "36 35 98:0 /a /b rw,noatime master:1 shared:7 - ext3 /dev/r rw\n"
	      "37 35 0:50 / /m rw - fuse.sshfs host:/ rw,user_id=0\n"
	      "38 35 0:51 / /n rw - nfs4 host:/x rw\n"
	      "39 35 0:52 / /c rw shared:3 - fusectl fusectl rw\n"
	      "40 35 0:53 / /k rw - fuse fuse rw\n"
	      "41 35 0:54 / /l rw - nfsd nfsd rw\n"
	      "42 35 0:55 / /o rw - fuseblk /dev/sdb rw\n"
	      "43 35 259:1048575 / /p rw master:2 - 9p host rw");
	assert_int_equal(servers.len, 9);
	assert_is(makedev(0, 21), false);
	assert_is(makedev(98, 0), false);
	assert_is(makedev(0, 50), true);
	assert_is(makedev(0, 51), true);
	assert_is(makedev(0, 52), false);
	assert_is(makedev(0, 53), true);
	assert_is(makedev(0, 54), false);
	assert_is(makedev(0, 55), true);
	assert_is(makedev(259, 1048575), true);
}

static void a_mount_is_known_to_be_no_servers(void **state)
{
	static const char text[] =
		"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
		"nonsense\n"
		"36 35 98:0 / /b rw master:1 - ext3 /dev/r rw\n"
		"37 35 0:50 / /m rw - fuse.sshfs host:/ rw\n"
		"3";
	static const struct {
		uint64_t mount;
		bool lack;
	} rows[] = { { 22, true },  { 36, true },  { 37, false },
		     { 35, false }, { 50, false }, { 3, false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_int_equal(
			wp_file_servers_lack(text, strlen(text), rows[i].mount),
			rows[i].lack);
}

/* The program's own file, and a pipe, which is on no mount that has a path. */
static void an_open_file_leads_to_its_mount(void **state)
{
	int proc_fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC), pipes[2];
	char name[32];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	assert_true(wp_file_servers_lack_fd(proc_fd, name));
	snprintf(name, sizeof(name), "fdinfo/%d", pipes[0]);
	assert_false(wp_file_servers_lack_fd(proc_fd, name));
	close(fd);
	assert_false(wp_file_servers_lack_fd(proc_fd, "fdinfo/987654"));
	close(pipes[0]);
	close(pipes[1]);
	close(proc_fd);
}

static void a_device_is_listed_once(void **state)
{
	(void)state;
	parse("37 35 0:50 / /m rw - fuse x rw\n37 35 0:50 / /m2 rw - fuse x rw");
	servers.v[0].was_asked = true;
	parse("37 35 0:50 / /m rw - fuse x rw\n38 35 0:51 / /n rw - nfs y rw\n");
	assert_int_equal(servers.len, 2);
	assert_true(servers.v[0].was_asked);
	assert_false(servers.v[1].was_asked);
}

static void lines_that_lie_are_passed_over(void **state)
{
	static const char whole[] = "37 35 0:50 / /m rw master:1 - fuse x rw";
	char text[sizeof(whole)];

	(void)state;
	parse("");
	parse("\n\n");
	/* The type has to be followed by a blank. */
	for (size_t n = 0; n < sizeof(whole) - 5; n++) {
		memcpy(text, whole, n);
		text[n] = '\0';
		parse(text);
		assert_int_equal(servers.len, 0);
	}
	parse("37 35 :50 / /m rw - fuse x rw");
	parse("37 35 0-50 / /m rw - fuse x rw");
	parse("37 35 0: / /m rw - fuse x rw");
	parse("37 35 0:50 / /m rw fuse x rw");
	assert_int_equal(servers.len, 0);
	parse("nonsense\n37 35 0:50 / /m rw - fuse x rw");
	assert_int_equal(servers.len, 1);
}

/* This program's memory map, and in it the mapping of its own code. */
struct own {
	struct wp_process process;
	struct wp_text text;
	struct wp_maps maps;
	const struct wp_map *map;
};

static struct own read_own(void)
{
	struct own own = { WP_PROCESS_INIT, WP_TEXT_INIT, WP_MAPS_INIT, NULL };

	if (!wp_process_open(&own.process, getpid(), NULL) &&
	    !wp_process_read_maps(&own.process, &own.text, &own.maps))
		own.map = wp_maps_find(&own.maps, (uint64_t)(uintptr_t)parse);
	return own;
}

static void clear_own(struct own *own)
{
	wp_maps_clear(&own->maps);
	wp_text_clear(&own->text);
	wp_process_clear(&own->process);
}

static bool does_answer(const struct own *own)
{
	return wp_file_servers_answer(&servers, &own->process, &own->maps,
				      own->map);
}

/* A device that is on no mount is asked as a server: here this program's own file,
 * which answers. */
static void what_answers_is_asked_once(void **state)
{
	struct own own = read_own();

	(void)state;
	assert_non_null(own.map);
	assert_true(does_answer(&own));
	assert_int_equal(servers.len, 1);
	assert_true(servers.v[0].was_asked && servers.v[0].answers);
	/* Who asked has been waited for. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	servers.v[0].answers = false;
	assert_false(does_answer(&own));
	clear_own(&own);
}

static void after_three_silent_ones_none_is_asked(void **state)
{
	struct own own = read_own();

	(void)state;
	servers.nsilent = 3;
	assert_false(does_answer(&own));
	/* What is local needs none. */
	wp_file_servers_clear(&servers);
	assert_int_equal(wp_file_servers_read(&servers, &own.process), 0);
	servers.nsilent = 3;
	assert_true(does_answer(&own));
	clear_own(&own);
}

/* As who asks does not return where it was asked from, and an interruption that is
 * over is none. */
static void who_asked_goes_on(void **state)
{
	enum { ANSWERED = 7 };
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct own own = read_own();

		if (!own.map)
			_exit(1);
		errno = EINTR;
		_exit(does_answer(&own) ? ANSWERED : 1);
	}
	(void)state;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == ANSWERED);
}

static void mounts_that_cannot_be_read_are_none(void **state)
{
	const struct wp_process process = WP_PROCESS_INIT;

	(void)state;
	assert_int_equal(wp_file_servers_read(&servers, &process), 0);
	assert_int_equal(servers.len, 0);
}

static void mounts_are_read(void **state)
{
	static const char line[] = "37 35 0:50 / /m rw - fuse x rw\n";
	struct wp_process process = WP_PROCESS_INIT;
	char dir[] = "/tmp/test_serversXXXXXX";
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	fd = openat(process.proc_fd, "mountinfo", O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	close(fd);
	assert_int_equal(wp_file_servers_read(&servers, &process), 0);
	assert_int_equal(servers.len, 1);
	assert_int_equal(unlinkat(process.proc_fd, "mountinfo", 0), 0);
	wp_process_clear(&process);
	rmdir(dir);
}

/* A blank is the last that there is. */
static void lines_end_where_the_text_does(void **state)
{
	(void)state;
	parse("37 35 0:50 / /m rw ");
	parse("37 35 0:50 / /m rw - ");
	assert_int_equal(servers.len, 0);
	parse("37 35 0:50 / /m rw - fus ");
	assert_is(makedev(0, 50), false);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(types_tell_who_asks_a_server),
		TEST(a_mount_is_known_to_be_no_servers),
		TEST(an_open_file_leads_to_its_mount),
		TEST(a_device_is_listed_once),
		TEST(lines_that_lie_are_passed_over),
		TEST(mounts_are_read),
		TEST(lines_end_where_the_text_does),
		TEST(what_answers_is_asked_once),
		TEST(after_three_silent_ones_none_is_asked),
		TEST(who_asked_goes_on),
		TEST(mounts_that_cannot_be_read_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
