/* SPDX-License-Identifier: Apache-2.0 */
/* links_child.c - waits for children: see links.h. */
#include <dirent.h>
#include <errno.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "links.h"
#include "pid_namespace.h"
#include "wallprof/access.h"
#include "wallprof/children.h"
#include "wallprof/clock.h"
#include "wallprof/kcmp.h"
#include "wallprof/procfs.h"
#include "wallprof/syscall_nr.h"
#include "wallprof/vec.h"

/* Bytes of a thread's list of children. */
enum { CHILDREN_MAX = 1 << 22 };
/* The processes are asked who traces them for so long. */
#define TRACERS_NS (1 * WP_NS_PER_S)

/* Replace PIDS by the children of PROCESS's thread TID; by none if they cannot be read.
 * 0 or -ENOMEM. */
static int list_children(struct wp_tids *pids,
			 const struct wp_snapshot_process *process, pid_t tid)
{
	struct wp_text text = WP_TEXT_INIT;
	char path[64];
	int rc;

	pids->len = 0;
	snprintf(path, sizeof(path), "%d/children", tid);
	rc = wp_text_read(&text, process->process.task_fd, path, CHILDREN_MAX);
	if (!rc)
		rc = wp_children_parse(pids, text.data, text.len);
	wp_text_clear(&text);
	if (rc)
		pids->len = 0;
	return rc == -ENOMEM ? rc : 0;
}

/* Keep those of PIDS that have the memory of TID. */
static void keep_sharers(struct wp_tids *pids, pid_t tid)
{
	size_t n = 0;

	for (size_t i = 0; i < pids->len; i++)
		if (wp_kcmp_memory_is_one(tid, pids->v[i]))
			pids->v[n++] = pids->v[i];
	/* None may be looked into, or the call did not ask for that. */
	if (n)
		pids->len = n;
}

/* The flags of clone(2) that CALL has; 0: not known. */
static uint64_t clone_flags(const struct wp_snapshot_process *process,
			    const struct wp_dump_call *call)
{
	uint64_t flags = call->args[0];

	if (call->nr == SYS_vfork)
		return CLONE_VFORK | CLONE_VM;
	if (call->nr == SYS_clone3 &&
	    wp_process_read(&process->process, call->args[0], &flags,
			    sizeof(flags)) != sizeof(flags))
		return 0;
	return flags;
}

/* The thread's last child may be another one: it gets the orphans below it if it is a
 * subreaper or the first process (prctl(2)).  A vfork's has its memory. */
static int add_vfork_child(struct wp_links *links, uint32_t thread)
{
	struct wp_dump_thread *t = wp_links_thread(links, thread);
	const struct wp_snapshot_process *process = wp_links_process(links,
								     thread);
	uint64_t flags = clone_flags(process, &t->call);
	struct wp_tids pids = WP_TIDS_INIT;
	int rc;

	if (!(flags & CLONE_VFORK) || wp_links_is_full(links, thread))
		return 0;
	/* It is the parent's child then. */
	if (flags & CLONE_PARENT) {
		t->open_ended = true;
		return 0;
	}
	rc = list_children(&pids, process, t->tid);
	if (flags & CLONE_VM)
		keep_sharers(&pids, t->tid);
	for (size_t i = 0; i < pids.len && !rc; i++)
		rc = wp_links_add_edge(links, WP_EDGE_CHILD, thread, pids.v[i],
				       "vfork child");
	wp_tids_clear(&pids);
	return rc;
}

/* Add who traces thread TID, if anybody does, unless it was added last: most threads of a
 * process have one tracer. */
static int add_tracer(struct wp_tids *tracers, pid_t tid)
{
	pid_t tracer = wp_access_tracer(tid);

	if (!tracer || (tracers->len && tracers->v[tracers->len - 1] == tracer))
		return 0;
	if (WP_VEC_ROOM(tracers->v, tracers->len, tracers->cap, 1))
		return -ENOMEM;
	tracers->v[tracers->len++] = tracer;
	return 0;
}

/* Add who traces a thread of process PID; each may have another tracer (ptrace(2)).  One
 * that has ended, or may not be looked into, counts as traced by nobody. */
static int add_tracers_of(struct wp_links *links, pid_t pid, uint64_t until_ns)
{
	const struct dirent *entry;
	char path[64];
	int rc = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && !rc && !links->tracers_cut && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		rc = add_tracer(&links->tracers,
				(pid_t)strtol(entry->d_name, NULL, 10));
		links->tracers_cut = wp_clock_ns() > until_ns;
	}
	if (dir)
		closedir(dir);
	return rc;
}

/* Sort TRACERS and drop repeats: two may trace threads by turns. */
static void keep_different(struct wp_tids *tracers)
{
	size_t n = 0;

	wp_tids_sort(tracers);
	for (size_t i = 0; i < tracers->len; i++)
		if (!n || tracers->v[n - 1] != tracers->v[i])
			tracers->v[n++] = tracers->v[i];
	tracers->len = n;
}

static int find_tracers(struct wp_links *links)
{
	uint64_t until_ns = wp_clock_ns() + TRACERS_NS;
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	int rc = 0;

	links->tracers_known = true;
	links->tracers_cut = !dir;
	while (dir && !rc && !links->tracers_cut && (entry = readdir(dir))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		rc = add_tracers_of(links,
				    (pid_t)strtol(entry->d_name, NULL, 10),
				    until_ns);
	}
	if (dir)
		closedir(dir);
	keep_different(&links->tracers);
	return rc;
}

/* Does a thread of PROCESS trace another process, for all that is known? */
static bool may_trace(const struct wp_links *links,
		      const struct wp_process *process)
{
	if (links->tracers_cut)
		return true;
	for (size_t i = 0; i < links->tracers.len; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%d", (int)links->tracers.v[i]);
		if (!faccessat(process->task_fd, name, F_OK, 0))
			return true;
	}
	return false;
}

/* wait4(2) ends for what a process traces as well, which need be no child of it. */
static int add_all_children(struct wp_links *links, uint32_t thread)
{
	struct wp_snapshot_process *process = wp_links_process(links, thread);
	const struct wp_ns_tids *children = &process->children;
	int rc;

	if (wp_links_is_full(links, thread))
		return 0;
	rc = wp_pid_namespace_children(process, links->round_ns);
	if (!rc && children->len && !links->tracers_known)
		rc = find_tracers(links);
	if (!rc && may_trace(links, &process->process))
		wp_links_thread(links, thread)->open_ended = true;
	for (size_t i = 0; i < children->len && !rc; i++)
		rc = wp_links_add_edge(links, WP_EDGE_CHILD, thread,
				       children->v[i].tid, "child");
	return rc;
}

/* The pid of the child that T, in wait4(2) or waitid(2), waits for; 0: it is not there;
 * -1: any child. */
static pid_t child_of_wait(struct wp_snapshot_process *process,
			   const struct wp_dump_thread *t, uint64_t since_ns)
{
	const struct wp_dump_call *call = &t->call;
	int own = (int)call->args[0];

	if (call->nr == SYS_waitid) {
		if (call->args[0] == WP_P_PIDFD)
			return wp_pid_namespace_pidfd(process, t->tid,
						      (int)call->args[1]);
		own = call->args[0] == P_PID ? (int)call->args[1] : 0;
	}
	return own > 0 ? wp_pid_namespace_child(process, own, since_ns) : -1;
}

int wp_links_add_child(struct wp_links *links, uint32_t thread)
{
	const struct wp_dump_thread *t = wp_links_thread(links, thread);
	pid_t pid;

	if (t->call.nr != SYS_wait4 && t->call.nr != SYS_waitid)
		return add_vfork_child(links, thread);
	pid = child_of_wait(wp_links_process(links, thread), t,
			    links->round_ns);
	if (pid < 0)
		return add_all_children(links, thread);
	return pid ? wp_links_add_edge(links, WP_EDGE_CHILD, thread, pid,
				       "child") :
		     0;
}

/* Has child PID, which may wait to be reaped, sent its last SIGCHLD? */
static bool has_ended(pid_t pid)
{
	struct wp_proc_stat stat;

	return wp_proc_stat_read(&stat, pid) || wp_proc_stat_has_ended(&stat);
}

/* Once for each list: there may be many, and many threads. */
static void find_ended(struct wp_ns_tids *children)
{
	if (children->looked_ns == children->time_ns)
		return;
	for (size_t i = 0; i < children->len; i++)
		children->v[i].has_ended = has_ended(children->v[i].tid);
	children->looked_ns = children->time_ns;
}

int wp_links_add_sigchld(struct wp_links *links, uint32_t thread)
{
	struct wp_snapshot_process *process = wp_links_process(links, thread);
	const struct wp_dump *dump = &links->snapshot->dump;
	struct wp_ns_tids *children = &process->children;
	int rc = 0;

	if (!dump->processes[dump->threads[thread].process].catches_child ||
	    !dump->nedges || dump->edges[dump->nedges - 1].from != thread)
		return 0;
	rc = wp_pid_namespace_children(process, links->round_ns);
	if (!rc)
		find_ended(children);
	for (size_t i = 0; i < children->len && !rc; i++)
		if (!children->v[i].has_ended)
			rc = wp_links_add_edge(links, WP_EDGE_CHILD, thread,
					       children->v[i].tid,
					       "child, by SIGCHLD");
	return rc;
}
