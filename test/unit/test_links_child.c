/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  Waits of this process for its children. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/dump/links.h"
#include "../../src/dump/pid_namespace.h"
#include "wallprof/clock.h"
#include "wallprof/syscall_nr.h"

static struct wp_snapshot_process self;
static struct wp_snapshot_process *processes[] = { &self };
static struct wp_snapshot snapshot = { .dump = WP_DUMP_INIT,
				       .processes = processes };
static struct wp_links links = { .snapshot = &snapshot };
static struct wp_dump_thread *t;

static int open_self(void **state)
{
	(void)state;
	memset(&self, 0, sizeof(self));
	self.process = (struct wp_process)WP_PROCESS_INIT;
	return wp_process_open(&self.process, getpid(), NULL);
}

static int close_self(void **state)
{
	(void)state;
	wp_tids_clear(&links.tracers);
	wp_pid_namespace_clear(&self);
	wp_process_clear(&self.process);
	return 0;
}

/* Add the edges of this thread, which makes CALL. */
static void add_edges(struct wp_dump_call call)
{
	wp_dump_clear(&snapshot.dump);
	t = wp_dump_add_thread(&snapshot.dump);
	assert_non_null(t);
	t->tid = getpid();
	t->call = call;
	links.round_ns = wp_clock_ns();
	assert_int_equal(wp_links_add_child(&links, 0), 0);
}

static int sleep_on(void *arg)
{
	(void)arg;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pause();
}

/* At most CHILDREN at a time. */
static pid_t start_child(int flags)
{
	enum { CHILDREN = 4 };
	/* One that shares our memory is on its stack while the next is started. */
	static _Alignas(16) char stacks[CHILDREN][1 << 16];
	static unsigned int next;
	char *stack = stacks[next++ % CHILDREN];
	pid_t pid = clone(sleep_on, stack + sizeof(*stacks), flags | SIGCHLD,
			  NULL);

	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* As one that was given to this process after that. */
static void the_child_of_a_vfork_has_its_memory(void **state)
{
	const uint64_t clone3_args[11] = { CLONE_VFORK | CLONE_VM };
	const struct wp_dump_call calls[] = {
		{ .nr = SYS_vfork },
		{ .nr = SYS_clone, .args = { CLONE_VFORK | CLONE_VM } },
		{ .nr = SYS_clone3, .args = { (uintptr_t)clone3_args } },
	};
	const struct wp_edge *edges;
	pid_t first = start_child(0), child = start_child(CLONE_VM),
	      last = start_child(0);

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		add_edges(calls[i]);
		assert_int_equal(snapshot.dump.nedges, 1);
		assert_int_equal(snapshot.dump.edges[0].to_pid, child);
		assert_false(t->open_ended);
	}
	end(child);
	/* It may be any of those that are there. */
	for (int i = 0; i < 2; i++) {
		add_edges((struct wp_dump_call){
			.nr = SYS_clone,
			.args = { i ? CLONE_VFORK : CLONE_VFORK | CLONE_VM },
		});
		assert_int_equal(snapshot.dump.nedges, 2);
		edges = snapshot.dump.edges;
		assert_int_equal(edges[0].to_pid, first);
		assert_int_equal(edges[1].to_pid, last);
	}
	end(first);
	end(last);
	add_edges(calls[0]);
	assert_int_equal(snapshot.dump.nedges, 0);
	wp_dump_clear(&snapshot.dump);
}

static void what_makes_a_sibling_or_a_thread_waits_for_no_child(void **state)
{
	pid_t child = start_child(0);

	(void)state;
	add_edges((struct wp_dump_call){
		.nr = SYS_clone,
		.args = { CLONE_VFORK | CLONE_VM | CLONE_PARENT } });
	assert_int_equal(snapshot.dump.nedges, 0);
	assert_true(t->open_ended);
	add_edges(
		(struct wp_dump_call){ .nr = SYS_clone, .args = { CLONE_VM } });
	assert_int_equal(snapshot.dump.nedges, 0);
	/* Its arguments cannot be read. */
	add_edges((struct wp_dump_call){ .nr = SYS_clone3 });
	assert_int_equal(snapshot.dump.nedges, 0);
	end(child);
	wp_dump_clear(&snapshot.dump);
}

enum { TRACED = 6 };
static pid_t traced[TRACED];
static pthread_barrier_t turn;

/* Start a child that this thread traces. */
static pid_t start_traced(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) ||
		    write(ends[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return pid;
}

/* Start each second child, and end them. */
static void *start_some(void *arg)
{
	(void)arg;
	for (int i = 0; i < TRACED; i++) {
		if (i % 2)
			traced[i] = start_traced();
		pthread_barrier_wait(&turn);
	}
	pthread_barrier_wait(&turn);
	for (int i = 1; i < TRACED; i += 2)
		end(traced[i]);
	return NULL;
}

static void two_that_trace_by_turns_are_listed_once(void **state)
{
	const struct wp_dump_call call = { .nr = SYS_wait4,
					   .args = { (uint64_t)-1 } };
	pthread_t other;

	(void)state;
	pthread_barrier_init(&turn, NULL, 2);
	assert_int_equal(pthread_create(&other, NULL, start_some, NULL), 0);
	for (int i = 0; i < TRACED; i++) {
		if (i % 2 == 0)
			traced[i] = start_traced();
		pthread_barrier_wait(&turn);
	}
	links.tracers_known = false;
	add_edges(call);
	assert_true(links.tracers_known);
	assert_true(t->open_ended);
	assert_int_equal(snapshot.dump.nedges, TRACED);
	assert_true(links.tracers_cut || links.tracers.len >= 2);
	for (size_t i = 1; i < links.tracers.len; i++)
		assert_true(links.tracers.v[i - 1] < links.tracers.v[i]);
	pthread_barrier_wait(&turn);
	pthread_join(other, NULL);
	for (int i = 0; i < TRACED; i += 2)
		end(traced[i]);
	pthread_barrier_destroy(&turn);
	wp_dump_clear(&snapshot.dump);
}

/* A search that took too long found not all who trace. */
static void who_may_trace_unseen_waits_for_others_too(void **state)
{
	const struct wp_dump_call call = { .nr = SYS_wait4,
					   .args = { (uint64_t)-1 } };
	pid_t child = start_child(0);

	(void)state;
	links.tracers_known = true;
	for (int cut = 0; cut < 2; cut++) {
		links.tracers_cut = cut;
		add_edges(call);
		assert_int_equal(snapshot.dump.nedges, 1);
		assert_int_equal(t->open_ended, cut);
	}
	end(child);
	wp_dump_clear(&snapshot.dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_child_of_a_vfork_has_its_memory, open_self,
			close_self),
		cmocka_unit_test_setup_teardown(
			what_makes_a_sibling_or_a_thread_waits_for_no_child,
			open_self, close_self),
		cmocka_unit_test_setup_teardown(
			two_that_trace_by_turns_are_listed_once, open_self,
			close_self),
		cmocka_unit_test_setup_teardown(
			who_may_trace_unseen_waits_for_others_too, open_self,
			close_self),
	};

	return cmocka_run_group_tests_name("links_child", tests, NULL, NULL);
}
