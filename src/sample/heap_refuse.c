/* SPDX-License-Identifier: Apache-2.0 */
/* heap_refuse.c - targets that probes on this kernel would end: see heap_state.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "heap_state.h"
#include "target.h"
#include "wallprof/procfs.h"

/* Does thread TID, an entry of the directory TASK_FD, have it? */
typedef bool (*has_it)(int task_fd, pid_t tid);

static bool some_thread(const struct wp_target *target, has_it has)
{
	struct wp_tids tids = WP_TIDS_INIT;
	bool found = false;

	(void)!wp_process_list_threads(target->process, &tids);
	for (size_t i = 0; i < tids.len && !found; i++)
		found = has(target->process->task_fd, tids.v[i]);
	wp_tids_clear(&tids);
	return found;
}

/* A filter, or the strict mode (proc(5), "Seccomp"). */
static bool is_under_seccomp(int task_fd, pid_t tid)
{
	char path[32];
	uint64_t mode;
	int rc;

	snprintf(path, sizeof(path), "%d/status", tid);
	rc = wp_proc_status_read_at(&mode, task_fd, path, "Seccomp", 10);
	/* A thread that has ended, and a kernel without seccomp, have no such line. */
	if (rc == -ENOENT || rc == -ESRCH || rc == -EBADMSG)
		return false;
	return rc || mode;
}

/* arch/x86/kernel/cpu/proc.c, arch_proc_pid_thread_features. */
static bool has_shadow_stack(int task_fd, pid_t tid)
{
	char path[32];
	int rc;

	snprintf(path, sizeof(path), "%d/status", tid);
	rc = wp_proc_status_has_word_at(task_fd, path, "x86_Thread_features",
					"shstk");
	return rc && rc != -ENOENT && rc != -ESRCH;
}

/* Is this x86-64?  Then the kernel's RELEASE. */
static bool is_x86_64(struct utsname *release)
{
	return !uname(release) && !strcmp(release->machine, "x86_64");
}

int wp_heap_refuse(const struct wp_target *target, struct wp_err *err)
{
	struct utsname name;

	if (!is_x86_64(&name))
		return 0;
	if (wp_heap_probe_ends_filtered(name.release) &&
	    some_thread(target, is_under_seccomp))
		return wp_err_set(
			err, -ENOTSUP,
			"the process has a seccomp filter (or its strict "
			"mode), and Linux 6.11 to 6.13 end such a process when "
			"its allocator is probed: this is Linux %s",
			name.release);
	if (wp_heap_probe_ends_shadowed(name.release) &&
	    some_thread(target, has_shadow_stack))
		return wp_err_set(
			err, -ENOTSUP,
			"the process has a shadow stack, and Linux 6.6 to 6.10 "
			"end such a process when its allocator is probed (this "
			"is %.32s): give --heap-census, or start it with "
			"GLIBC_TUNABLES=glibc.cpu.x86_shstk=off",
			name.release);
	return 0;
}

bool wp_heap_refuse_wants_perf(void)
{
	struct utsname name;

	return is_x86_64(&name) && wp_heap_probe_ends_filtered(name.release);
}
