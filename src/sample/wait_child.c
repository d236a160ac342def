/* SPDX-License-Identifier: Apache-2.0 */
/* wait_child.c - see wait_child.h. */
#include "wait_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target.h"
#include "thread_files.h"
#include "threads.h"
#include "wait_object.h"
#include "wallprof/children.h"

enum {
	/* To read the children of one thread takes some microseconds: those of
	 * all threads are read up to this number. */
	THREADS_MAX = 64,
	/* Children among which one is looked for by its pid in its own
	 * namespace. */
	CHILDREN_MAX = 64,
	COMMAND_MAX = 200,
};

/* The children that T may wait for.  None: not known. */
static int list_children(const struct wp_thread *t, struct wp_tids *pids)
{
	char text[1024];
	ssize_t n = wp_thread_files_read_once(t->target, t->tid, "children",
					      text, sizeof(text));
	int rc = 0;

	/* Mostly those that it made itself. */
	if (n > 0 && (size_t)n < sizeof(text) - 1)
		rc = wp_children_parse(pids, text, (size_t)n);
	if (!rc && !pids->len && t->target->nthreads <= THREADS_MAX)
		rc = wp_children_list(pids, t->target->process->pid);
	return rc == -ENOMEM ? rc : 0;
}

/* The pid, in T's namespace, of the child that it waits for; 0: any. */
static int32_t wanted_pid(const struct wp_thread *t)
{
	const uint64_t *args = t->wait.facts.args;
	int pid = (int)args[0];

	if (t->wait.facts.syscall_nr == SYS_waitid)
		pid = args[0] == P_PID ? (int)args[1] : 0;
	return pid > 0 ? pid : 0;
}

/* Move the child with pid WANTED to the front of PIDS.  False: it is not there. */
static bool find_child(struct wp_tids *pids, int32_t wanted)
{
	for (size_t i = 0; i < pids->len && i < CHILDREN_MAX; i++) {
		int32_t ns[WP_PID_LEVELS];
		char path[48];
		int n;

		snprintf(path, sizeof(path), "/proc/%d/status", pids->v[i]);
		n = wp_proc_nspid_read(ns, AT_FDCWD, path);
		if (n <= 0 || ns[n - 1] != wanted)
			continue;
		ns[0] = pids->v[0];
		pids->v[0] = pids->v[i];
		pids->v[i] = ns[0];
		return true;
	}
	return false;
}

/* Write the command line of process PID, in brackets, into TEXT. */
static void describe_command(pid_t pid, char *text, size_t size)
{
	struct wp_process process = WP_PROCESS_INIT;
	char path[32], command[COMMAND_MAX] = "";

	snprintf(path, sizeof(path), "/proc/%d", pid);
	process.proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process.proc_fd >= 0)
		wp_process_command_line(&process, command, sizeof(command));
	wp_process_clear(&process);
	snprintf(text, size, "%d%s%s%s", pid, *command ? " (" : "", command,
		 *command ? ")" : "");
}

int wp_wait_child_describe(struct wp_thread *t, struct wp_sample_key *key)
{
	struct wp_tids pids = WP_TIDS_INIT;
	char text[COMMAND_MAX + 80], child[COMMAND_MAX + 16];
	int32_t wanted = wanted_pid(t);
	int rc = list_children(t, &pids);
	bool is_known = pids.len == 1 || (wanted && find_child(&pids, wanted));

	if (!rc && pids.len) {
		describe_command(pids.v[0], child, sizeof(child));
		if (is_known)
			snprintf(text, sizeof(text), "child %s", child);
		else
			snprintf(text, sizeof(text),
				 "one of %zu children, %s ...", pids.len,
				 child);
		key->object = wp_wait_object_intern(t->target, text);
	}
	wp_tids_clear(&pids);
	return rc || key->object == UINT32_MAX ? -ENOMEM : 0;
}

int wp_wait_child_confirm(struct wp_thread *t, struct wp_sample_key *key)
{
	uint32_t looks = ++t->wait.child_looks;

	return looks & (looks - 1) ? 0 : wp_wait_child_describe(t, key);
}
