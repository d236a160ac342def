/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_process.c - what a dump says of a process: its command, its user, and the
 * signals that it catches.
 */
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "snapshot_priv.h"
#include "wallprof/cgroup.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"

/* Of some ten thousand timers. */
enum { TIMERS_FILE_MAX = 1 << 20 };

static uint32_t user_name(struct wp_dump *dump, uid_t uid)
{
	struct passwd pw, *found = NULL;
	char buf[4096], number[16];
	void *room = malloc(sizeof(buf));

	/* glibc's getpwuid_r dies of SIGSEGV where there is no memory (2.36,
	 * nss_database_check_reload_and_get). */
	free(room);
	if (room && !getpwuid_r(uid, &pw, buf, sizeof(buf), &found) && found)
		return wp_intern_add_str(&dump->strings, pw.pw_name);
	snprintf(number, sizeof(number), "%u", uid);
	return wp_intern_add_str(&dump->strings, number);
}

/* Handlers for what the process does itself (faults) and those of glibc's
 * threads (32, 33: nptl/nptl_init) do not end a wait from outside. */
static uint64_t caught_signals(const struct wp_process *process)
{
	static const uint64_t own = 1u << (SIGSEGV - 1) | 1u << (SIGBUS - 1) |
				    1u << (SIGILL - 1) | 1u << (SIGFPE - 1) |
				    1u << (SIGABRT - 1) | 1u << (SIGTRAP - 1) |
				    1u << (SIGSYS - 1) | UINT64_C(3) << 31;
	uint64_t caught;

	if (wp_proc_status_read_at(&caught, process->proc_fd, "status",
				   "SigCgt", 16))
		return UINT64_MAX;
	return caught & ~own;
}

/* The signals by which the timers of PROCESS may end a wait of it: alarm(2)'s, and those
 * of timer_create(2).  All, if there are too many of these to be read. */
static uint64_t timer_signals(const struct wp_process *process)
{
	uint64_t signals = UINT64_C(1) << (SIGALRM - 1);
	struct wp_text text = WP_TEXT_INIT;
	int rc = wp_text_read(&text, process->proc_fd, "timers",
			      TIMERS_FILE_MAX);

	if (!rc)
		signals |= wp_proc_timers_parse(text.data, text.len);
	/* No such file is where CONFIG_CHECKPOINT_RESTORE was left out (fs/proc/base.c). */
	else if (rc == -EOVERFLOW || rc == -ENOMEM || rc == -ENOENT)
		signals = UINT64_MAX;
	wp_text_clear(&text);
	return signals;
}

/* Its first thread tells of a cgroup whose files are not to be seen here, unless it was
 * frozen in a call. */
static enum wp_hold hold_of(const struct wp_process *process)
{
	char cgroup[WP_CGROUP_MAX];
	uint64_t dumps = 0;
	enum wp_hold hold;

	if (!wp_proc_status_read_at(&dumps, process->proc_fd, "status",
				    "CoreDumping", 10) &&
	    dumps)
		return WP_HOLD_CORE_DUMP;
	if (wp_cgroup_read(process->proc_fd, 0, cgroup) > 0 &&
	    wp_cgroup_is_frozen(cgroup, "/sys/fs/cgroup"))
		return WP_HOLD_FROZEN;
	hold = wp_hold_read(process->task_fd, process->reader_tid);
	/* Of that thread alone. */
	return hold == WP_HOLD_MMAP_LOCK ? WP_HOLD_NONE : hold;
}

void wp_snapshot_describe_process(struct wp_dump *dump,
				  struct wp_dump_process *p,
				  const struct wp_process *process,
				  const struct wp_counters *counters)
{
	struct wp_proc_stat stat;
	uint64_t caught;
	char text[4096];
	ssize_t n;

	p->pid = process->pid;
	n = wp_io_read_at(process->proc_fd, "stat", text, sizeof(text));
	if (n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n))
		p->ppid = stat.ppid;
	wp_process_command_line(process, text, sizeof(text));
	p->command_line = wp_intern_add_str(&dump->strings, text);
	p->user = user_name(dump, process->uid);
	caught = caught_signals(process);
	p->catches_signals = caught;
	p->catches_alarm = (caught & timer_signals(process)) != 0;
	p->catches_child = caught >> (SIGCHLD - 1) & 1;
	p->catches_more = caught & ~(UINT64_C(1) << (SIGINT - 1));
	p->hold = hold_of(process);
	p->pause_ns = counters->pause_total_ns;
	p->nstopped = (uint32_t)counters->stopped;
	p->nlost = (uint32_t)(counters->samples_lost + counters->threads_lost);
	p->first_thread = dump->nthreads;
}
