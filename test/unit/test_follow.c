/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: cmd.  follow.h, choose.h: which processes are recorded, and from when on.
 * The processes are children of the test; what is recorded is the test's: it defines
 * wp_recorded_*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/cmd/choose.h"
#include "../../src/cmd/follow.h"
#include "wallprof/clock.h"

enum { ADDED_MAX = 4096 };

static struct {
	pid_t pid[ADDED_MAX];
	uint64_t since_ns[ADDED_MAX];
	size_t n;
	int rc;
	bool sees_tasks;
	uint64_t lost;
	struct wp_profile profile;
	struct wp_recorded recorded;
	struct wp_options options;
	struct wp_follow follow;
	struct wp_task_watch watch;
	pid_t child;
	/* The child goes on when this is written to. */
	int order;
	/* And tells here that it has its name. */
	int told;
} it;

int wp_recorded_add(struct wp_recorded *recorded, pid_t pid, uint64_t since_ns,
		    struct wp_err *err)
{
	(void)recorded;
	assert_true(it.n < ADDED_MAX);
	it.pid[it.n] = pid;
	it.since_ns[it.n++] = since_ns;
	return it.rc ? wp_err_set(err, it.rc, "not today") : 0;
}

const struct wp_process *wp_recorded_find(const struct wp_recorded *recorded,
					  pid_t pid)
{
	(void)recorded;
	(void)pid;
	return NULL;
}

int wp_recorded_retire(struct wp_recorded *recorded)
{
	(void)recorded;
	return 0;
}

bool wp_sampler_sees_tasks(const struct wp_sampler *loop)
{
	(void)loop;
	return it.sees_tasks;
}

uint64_t wp_sampler_lost_tasks(const struct wp_sampler *loop)
{
	(void)loop;
	return it.lost;
}

static int setup(void **state)
{
	(void)state;
	memset(&it, 0, sizeof(it));
	it.sees_tasks = true;
	it.order = -1;
	it.recorded.profile = &it.profile;
	return wp_profile_init(&it.profile);
}

static void end_child(void)
{
	if (it.child > 0) {
		kill(it.child, SIGKILL);
		waitpid(it.child, NULL, 0);
		close(it.order);
		close(it.told);
	}
	it.child = 0;
}

static int teardown(void **state)
{
	(void)state;
	end_child();
	wp_follow_clear(&it.follow);
	wp_profile_clear(&it.profile);
	return 0;
}

/* A grandchild that will be called NAME: what wallprof itself has started is not
 * chosen. */
static pid_t start_child(const char *name)
{
	int pid_pipe[2], order[2];
	pid_t pid = 0;
	char c;

	assert_int_equal(pipe(pid_pipe), 0);
	assert_int_equal(pipe(order), 0);
	it.child = fork();
	assert_true(it.child >= 0);
	if (!it.child) {
		close(order[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pid = fork();
		if (pid) {
			for (;;)
				pause();
		}
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "before");
		pid = getpid();
		if (write(pid_pipe[1], &pid, sizeof(pid)) != sizeof(pid) ||
		    read(order[0], &c, 1) != 1)
			_exit(1);
		prctl(PR_SET_NAME, name);
		if (write(pid_pipe[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(pid_pipe[0], &pid, sizeof(pid)), sizeof(pid));
	close(order[0]);
	close(pid_pipe[1]);
	it.order = order[1];
	it.told = pid_pipe[0];
	return pid;
}

/* What no child of another run of this program is called, nor one of a test before, which
 * may still be about to end (NTH); with END behind it. */
static const char *chosen(int nth, const char *end)
{
	static char name[2][16];
	char *ret = name[*end == '*'];

	snprintf(ret, sizeof(name[0]), "w%d-%d%s", getpid(), nth, end);
	return ret;
}

/* Now the child gets its name. */
static void rename_child(void)
{
	pid_t pid;

	assert_int_equal(write(it.order, "", 1), 1);
	assert_int_equal(read(it.told, &pid, sizeof(pid)), sizeof(pid));
}

static void begin(pid_t pid)
{
	struct wp_err err = WP_ERR_INIT;

	wp_follow_init(&it.follow, &it.options, &it.recorded, &it.watch);
	assert_int_equal(wp_follow_begin(&it.follow, pid, &err), 0);
}

static void tell(enum wp_perf_type type, pid_t pid, pid_t parent,
		 uint64_t time_ns)
{
	const struct wp_perf_record record = { .type = type,
					       .pid = pid,
					       .tid = pid,
					       .parent_pid = parent,
					       .time_ns = time_ns };

	it.watch.tell(it.watch.ctx, &record);
}

static size_t count_added(pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < it.n; i++)
		n += it.pid[i] == pid;
	return n;
}

static void children_of_what_is_recorded_are_recorded(void **state)
{
	(void)state;
	it.options.children = true;
	begin(100);
	tell(WP_PERF_FORK, 101, 100, 7);
	tell(WP_PERF_FORK, 102, 101, 8);
	tell(WP_PERF_FORK, 201, 200, 9);
	assert_int_equal(it.n, 2);
	assert_int_equal(it.pid[1], 102);
	assert_int_equal(it.since_ns[1], 8);
	/* Who has its number later on is another's child. */
	tell(WP_PERF_EXIT, 101, 0, 10);
	tell(WP_PERF_FORK, 103, 101, 11);
	assert_int_equal(it.n, 2);
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_int_equal(it.n, 2);
}

static void without_being_asked_nobody_is_watched(void **state)
{
	(void)state;
	it.options.npids = 2;
	it.options.pids[0] = 100;
	it.options.pids[1] = 200;
	begin(100);
	assert_null(it.watch.tell);
	assert_int_equal(it.n, 1);
	assert_int_equal(it.pid[0], 200);
}

static void what_cannot_be_recorded_is_counted(void **state)
{
	(void)state;
	it.options.children = true;
	begin(100);
	it.rc = -ESRCH;
	tell(WP_PERF_FORK, 101, 100, 1);
	assert_int_equal(it.profile.counters.processes_lost, 1);
	/* Its own children are found still. */
	it.rc = -ENOTSUP;
	tell(WP_PERF_FORK, 102, 101, 2);
	assert_int_equal(it.profile.counters.processes_denied, 1);
	assert_int_equal(it.follow.why.code, -ENOTSUP);
	assert_int_equal(wp_follow_step(&it.follow), 0);
	it.rc = -ENOMEM;
	tell(WP_PERF_FORK, 103, 102, 3);
	assert_int_equal(wp_follow_step(&it.follow), -ENOMEM);
}

static void a_tree_has_what_was_there(void **state)
{
	pid_t pid = start_child("x");

	(void)state;
	it.options.pids[0] = it.options.pid = getpid();
	it.options.npids = 1;
	it.options.children = it.options.tree = true;
	begin(getpid());
	assert_int_equal(count_added(it.child), 1);
	assert_int_equal(count_added(pid), 1);
}

static void a_name_chooses_when_it_comes(void **state)
{
	pid_t pid = start_child(chosen(1, "x"));

	(void)state;
	it.options.globs[0] = "nobody*";
	it.options.globs[1] = chosen(1, "*");
	begin(0);
	assert_int_equal(it.n, 0);
	tell(WP_PERF_FORK, pid, 1, 5);
	assert_int_equal(it.n, 0);
	rename_child();
	tell(WP_PERF_NAME, pid, 0, 6);
	tell(WP_PERF_NAME, pid, 0, 7);
	assert_int_equal(it.n, 1);
	assert_int_equal(it.pid[0], pid);
	assert_int_equal(it.since_ns[0], 6);
}

/* What it did before is not that of the name. */
static void
a_process_that_has_lived_for_long_is_not_born_with_its_name(void **state)
{
	pid_t pid = start_child(chosen(5, "x"));

	(void)state;
	it.options.globs[0] = chosen(5, "*");
	begin(0);
	rename_child();
	tell(WP_PERF_NAME, pid, 0, wp_clock_ns() + WP_NS_PER_S);
	assert_int_equal(it.n, 1);
	assert_int_equal(it.since_ns[0], 0);
}

/* To look at it takes reads of /proc, and it may change its name all the time. */
static void new_names_of_a_process_are_looked_at_once_in_a_tick(void **state)
{
	pid_t pid = start_child(chosen(3, "x"));
	const struct wp_perf_record of_thread = { .type = WP_PERF_NAME,
						  .pid = pid,
						  .tid = pid + 1 };

	(void)state;
	it.options.globs[0] = chosen(3, "*");
	begin(0);
	tell(WP_PERF_NAME, pid, 0, 1);
	rename_child();
	tell(WP_PERF_NAME, pid, 0, 2);
	assert_int_equal(it.n, 0);
	assert_int_equal(wp_follow_step(&it.follow), 0);
	/* That is not its process's. */
	it.watch.tell(it.watch.ctx, &of_thread);
	assert_int_equal(it.n, 0);
	tell(WP_PERF_NAME, pid, 0, 3);
	assert_int_equal(it.n, 1);
	assert_int_equal(it.since_ns[0], 3);
}

/* Not by a record: as by a move to another group. */
static void who_comes_to_be_chosen_is_found_within_a_second(void **state)
{
	pid_t pid = start_child(chosen(2, "x"));

	(void)state;
	it.options.globs[0] = chosen(2, "*");
	begin(0);
	assert_int_equal(it.n, 0);
	rename_child();
	it.follow.chosen_ns -= WP_NS_PER_S;
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_int_equal(count_added(pid), 1);
}

static void proc_is_listed_where_the_kernel_does_not_tell(void **state)
{
	uint64_t before_ns;
	pid_t pid;

	(void)state;
	it.sees_tasks = false;
	it.options.children = true;
	begin(getpid());
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_int_equal(it.n, 0);
	before_ns = it.follow.listed_ns;
	pid = start_child("x");
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_int_equal(count_added(it.child), 1);
	assert_int_equal(count_added(pid), 1);
	assert_true(it.since_ns[0] >= before_ns);
	assert_true(it.since_ns[0] <= wp_clock_ns());
}

static bool is_parent(pid_t pid)
{
	for (size_t i = 0; i < it.follow.parents.len; i++)
		if (it.follow.parents.v[i] == pid)
			return true;
	return false;
}

/* A child that waits to be killed, or one that ENDS at once. */
static pid_t fork_child(bool ends)
{
	siginfo_t info;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!ends)
			pause();
		_exit(0);
	}
	if (ends)
		assert_int_equal(
			waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

/* The record of its parent's start was lost, and its own. */
static void a_child_is_found_whose_record_was_lost(void **state)
{
	pid_t before = fork_child(false), ended, child, pid;

	(void)state;
	it.options.children = true;
	/* By the clock of starts, it began before. */
	usleep(20000);
	begin(getpid());
	ended = fork_child(true);
	pid = start_child("x");
	child = it.child;
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_int_equal(it.n, 0);
	it.lost = 7;
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_int_equal(it.n, 2);
	assert_int_equal(count_added(child), 1);
	assert_int_equal(count_added(pid), 1);
	assert_true(it.since_ns[0] >= it.follow.begin_ns);
	assert_true(it.since_ns[0] <= wp_clock_ns());
	/* More are lost, but /proc has just been listed. */
	it.lost = 8;
	it.follow.lost_ns += 3600 * WP_NS_PER_S;
	end_child();
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_true(is_parent(child));
	/* The record of its end is among them. */
	it.follow.lost_ns -= 3601 * WP_NS_PER_S;
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_false(is_parent(child));
	assert_true(is_parent(getpid()));
	assert_int_equal(it.n, 2);
	kill(before, SIGKILL);
	assert_int_equal(waitpid(before, NULL, 0), before);
	assert_int_equal(waitpid(ended, NULL, 0), ended);
}

/* Another may get its number. */
static void what_could_not_be_recorded_is_forgotten_when_it_ends(void **state)
{
	pid_t child;

	(void)state;
	it.sees_tasks = false;
	it.options.children = true;
	it.rc = -EPERM;
	begin(getpid());
	assert_int_equal(wp_follow_step(&it.follow), 0);
	start_child("x");
	child = it.child;
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_int_equal(it.profile.counters.processes_denied, 2);
	assert_true(is_parent(child));
	end_child();
	assert_int_equal(wp_follow_step(&it.follow), 0);
	assert_false(is_parent(child));
	assert_true(is_parent(getpid()));
}

/* Exits with what wp_choose says of its parent's other children: 1 that of FORKED, 2 that
 * of EXECUTED. */
static void choose_siblings(pid_t forked, pid_t executed)
{
	it.options.all = true;
	_exit(wp_choose(&it.options, forked) | wp_choose(&it.options, executed)
						       << 1);
}

/* As in "sh -c 'server & exec wallprof --all'", or where wallprof is PID 1. */
static void
children_that_the_first_process_had_before_are_no_wallprofs(void **state)
{
	pid_t first, forked, executed, worker;
	int pipes[2], status;
	char byte;

	(void)state;
	first = fork();
	assert_true(first >= 0);
	if (!first) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The write end is closed by exec. */
		if (pipe2(pipes, O_CLOEXEC))
			_exit(4);
		forked = fork();
		if (!forked) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(pipes[1]);
			pause();
		}
		executed = fork();
		if (!executed) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			execl("/bin/sleep", "sleep", "1000", NULL);
			_exit(4);
		}
		close(pipes[1]);
		if (read(pipes[0], &byte, 1) != 0)
			_exit(4);
		worker = fork();
		if (!worker)
			choose_siblings(forked, executed);
		_exit(waitpid(worker, &status, 0) == worker &&
				      WIFEXITED(status) ?
			      WEXITSTATUS(status) :
			      4);
	}
	assert_int_equal(waitpid(first, &status, 0), first);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
}

static void all_are_all_but_wallprof_and_the_kernel(void **state)
{
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_err err = WP_ERR_INIT;
	pid_t pid = start_child("x");
	char text[64];

	(void)state;
	it.options.all = true;
	begin(0);
	assert_int_equal(count_added(pid), 1);
	assert_int_equal(count_added(getpid()), 0);
	assert_int_equal(count_added(getppid()), 0);
	assert_int_equal(count_added(it.child), 0);
	assert_false(wp_choose(&it.options, 999999999));
	assert_int_equal(wp_follow_first(&it.options, &process, &err), 0);
	wp_process_clear(&process);
	wp_follow_describe(&it.follow);
	assert_string_equal(
		wp_profile_str(&it.profile, it.profile.meta.command_line),
		"all processes");
	/* It had ended when its record was read. */
	tell(WP_PERF_FORK, 999999999, 1, 5);
	assert_int_equal(it.profile.counters.processes_lost, 1);
	it.options.all = false;
	it.options.globs[0] = "no such";
	it.options.cgroups[0] = "/none";
	assert_int_equal(wp_follow_first(&it.options, &process, &err), -ENOENT);
	wp_choose_describe(&it.options, text, sizeof(text));
	assert_string_equal(text, "processes named no such, cgroup /none");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(children_of_what_is_recorded_are_recorded),
		TEST(without_being_asked_nobody_is_watched),
		TEST(what_cannot_be_recorded_is_counted),
		TEST(a_tree_has_what_was_there),
		TEST(a_name_chooses_when_it_comes),
		TEST(a_process_that_has_lived_for_long_is_not_born_with_its_name),
		TEST(new_names_of_a_process_are_looked_at_once_in_a_tick),
		TEST(who_comes_to_be_chosen_is_found_within_a_second),
		TEST(proc_is_listed_where_the_kernel_does_not_tell),
		TEST(a_child_is_found_whose_record_was_lost),
		TEST(what_could_not_be_recorded_is_forgotten_when_it_ends),
		TEST(all_are_all_but_wallprof_and_the_kernel),
		TEST(children_that_the_first_process_had_before_are_no_wallprofs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
