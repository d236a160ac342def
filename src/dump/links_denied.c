/* SPDX-License-Identifier: Apache-2.0 */
/* links_denied.c - who may have the other end of a wait though it is not seen.
 *
 * A process whose descriptors may not be read is taken to have a pipe, socket or
 * file by fork(2) from where the waiting process has it, as a child of sudo(8)
 * does.  Then it is no older than the process that made it, which is taken to be
 *  - of the session of the waiting process, and
 *  - the first of its ancestors that has nothing of it open (a shell has closed
 *    the pipe between its children), or below that one.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "links.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"

enum {
	/* Ancestors that are asked: a shell in a script in a job of a CI has ten. */
	ANCESTORS_MAX = 64,
	/* Most bytes of a memory map that are read. */
	MAPS_MAX = 4 << 20,
};

/* Of a process's start, in clock ticks, and of an inode's times. */
#define COARSE_NS (20 * WP_NS_PER_MS)

/* What DIR, a /proc/PID/fd, has: 0 none, 1 one that is OWN or OTHER, -1 not known,
 * as of a process that has ended. */
static int has_any(DIR *dir, const char *own, const char *other)
{
	const struct dirent *entry;
	char link[PATH_MAX];
	int found = -1;

	while (found < 1 && (entry = readdir(dir))) {
		ssize_t n;

		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		n = readlinkat(dirfd(dir), entry->d_name, link,
			       sizeof(link) - 1);
		if (n <= 0)
			return -1;
		link[n] = '\0';
		found = !strcmp(link, own) || !strcmp(link, other);
	}
	return found;
}

/* Has process PID neither OWN nor OTHER open, for all that is known? */
static bool lacks(pid_t pid, const char *own, const char *other)
{
	char path[32];
	bool lacking;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return false;
	lacking = has_any(dir, own, other) == 0;
	closedir(dir);
	return lacking;
}

/* A process and its ancestors. */
struct line {
	/* pid[0..n), its own first. */
	pid_t pid[ANCESTORS_MAX];
	uint32_t n;
	/* Index of the first that has nothing of the object open; N: none is known. */
	uint32_t lacking;
	/* Its start, and not before that of the session; 0: not known. */
	uint64_t start_time;
};

static void find_ancestors(struct line *line, pid_t pid, const char *own,
			   const char *other)
{
	struct wp_proc_stat stat;

	line->n = 0;
	line->start_time = 0;
	line->lacking = UINT32_MAX;
	for (; line->n < ANCESTORS_MAX && pid > 0; pid = stat.ppid) {
		if (wp_proc_stat_read(&stat, pid))
			break;
		if (line->n && line->lacking == UINT32_MAX &&
		    lacks(pid, own, other)) {
			line->lacking = line->n;
			line->start_time = stat.start_time;
		}
		line->pid[line->n++] = pid;
	}
	if (line->lacking > line->n)
		line->lacking = line->n;
}

static uint32_t find_pid(const struct line *line, pid_t pid)
{
	uint32_t i = 0;

	while (i < line->n && line->pid[i] != pid)
		i++;
	return i;
}

/* The parent of process PID, and in *START_TIME when PID started; -1: not known. */
static pid_t find_parent(const struct wp_fd_holders *holders, pid_t pid,
			 uint64_t *start_time)
{
	struct wp_proc_stat stat;

	for (size_t i = 0; i < holders->ndenied; i++) {
		if (holders->denied[i].pid != pid)
			continue;
		*start_time = holders->denied[i].start_time;
		return holders->denied[i].ppid;
	}
	if (wp_proc_stat_read(&stat, pid))
		return -1;
	*start_time = stat.start_time;
	return stat.ppid;
}

/* May DENIED descend from the first of LINE that has nothing of the object?  If its
 * parents lead to one above that, only if the last of them may have been adopted there:
 * a process that outlives its parent is, by an ancestor of both. */
static bool may_descend(const struct wp_fd_denied *denied,
			const struct line *line,
			const struct wp_fd_holders *holders)
{
	uint64_t start_time = denied->start_time;
	pid_t pid = denied->pid;

	if (!pid || line->lacking == line->n)
		return true;
	for (int i = 0; i < ANCESTORS_MAX; i++) {
		pid_t parent = find_parent(holders, pid, &start_time);
		uint32_t at = find_pid(line, parent);

		if (parent < 0 || at <= line->lacking)
			return true;
		if (at < line->n || !parent)
			return start_time >= line->start_time;
		pid = parent;
	}
	return true;
}

/* Has any of HOLDERS' processes that may not be read started at START_TIME or later? */
static bool is_any_since(const struct wp_fd_holders *holders,
			 uint64_t start_time)
{
	for (size_t i = 0; i < holders->ndenied; i++)
		if (holders->denied[i].start_time >= start_time)
			return true;
	return false;
}

/* A process that may have what WAIT waits for, or receive it, though it was not seen to;
 * NULL: none. */
static const struct wp_fd_denied *
find_denied(const struct wp_links *links, const struct wp_links_wait *wait,
	    const struct wp_fd_holders *holders)
{
	const struct wp_snapshot_process *p = wp_links_process(links,
							       wait->thread);
	const char *other = links->objects[wait->object].link;
	struct wp_proc_stat leader;
	char own[PATH_MAX] = "";
	uint64_t session = 0;
	struct line line;
	struct stat st;

	/* Its leader may have ended, or be of another PID namespace. */
	if (!wp_proc_stat_read(&leader, getsid(p->process.pid)))
		session = leader.start_time;
	if (!is_any_since(holders, session))
		return NULL;
	/* A file may have been opened by its name, by anybody in the session. */
	if (other[0] != '/')
		(void)!wp_links_read_fd(p, wait->fd, own, sizeof(own), &st);
	find_ancestors(&line, p->process.pid, own, other);
	if (session > line.start_time)
		line.start_time = session;
	for (size_t i = 0; i < holders->ndenied; i++)
		if (holders->denied[i].start_time >= line.start_time &&
		    may_descend(&holders->denied[i], &line, holders))
			return &holders->denied[i];
	return NULL;
}

static bool is_among(const struct wp_tids *pids, pid_t pid)
{
	size_t i = 0;

	while (i < pids->len && pids->v[i] != pid)
		i++;
	return i < pids->len;
}

/* Has PROCESS an io_uring mapped?  What was begun in one goes on after close of its
 * descriptor. */
static bool maps_ring(const struct wp_process *process)
{
	static const char ring[] = "anon_inode:[io_uring]";
	struct wp_text text = WP_TEXT_INIT;
	int rc = wp_text_read(&text, process->proc_fd, "maps", MAPS_MAX);
	bool found = rc == -EOVERFLOW ||
		     (!rc &&
		      memmem(text.data, text.len, ring, sizeof(ring) - 1));

	wp_text_clear(&text);
	return found;
}

/* Has the process of WAIT's thread, or one that has what that waits for, an io_uring, by
 * which the kernel may write or read for it? */
static bool may_be_in_ring(const struct wp_links *links,
			   const struct wp_links_wait *wait,
			   const struct wp_fd_holders *holders)
{
	const struct wp_process *own =
		&wp_links_process(links, wait->thread)->process;

	if (is_among(&holders->rings, own->pid) || maps_ring(own))
		return true;
	for (size_t i = 0; i < holders->len; i++)
		if (holders->v[i].object == wait->object &&
		    is_among(&holders->rings, holders->v[i].pid))
			return true;
	return false;
}

/* When a process that started START_TIME clock ticks after boot did, by CLOCK_REALTIME. */
static int64_t real_ns(uint64_t start_time)
{
	struct timespec real, boot;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (real.tv_sec - boot.tv_sec) * (int64_t)WP_NS_PER_S +
	       real.tv_nsec - boot.tv_nsec +
	       (int64_t)(start_time * WP_NS_PER_S /
			 (uint64_t)sysconf(_SC_CLK_TCK));
}

/* When PROCESS's pipe FD was made, by CLOCK_REALTIME; 0: not known, as of one whose times
 * its use has changed, which newer kernels do not, or of a socket, which has none. */
static int64_t made_ns(const struct wp_snapshot_process *process, int fd)
{
	struct statx st = { 0 };
	char name[32];

	snprintf(name, sizeof(name), "fd/%d", fd);
	if (statx(process->process.proc_fd, name, AT_STATX_DONT_SYNC,
		  STATX_ATIME | STATX_MTIME, &st) ||
	    st.stx_atime.tv_sec != st.stx_mtime.tv_sec ||
	    st.stx_atime.tv_nsec != st.stx_mtime.tv_nsec)
		return 0;
	return st.stx_mtime.tv_sec * (int64_t)WP_NS_PER_S +
	       st.stx_mtime.tv_nsec;
}

/* What processes of a PID namespace have from outside came in with the first of their
 * ancestors there: what is older than that, or if that is not known, what all of them
 * have. */
/* May a process outside of wallprof's PID namespace, which no /proc here shows, have what
 * WAIT waits for? */
static bool may_be_outside(const struct wp_links *links,
			   const struct wp_links_wait *wait)
{
	const struct wp_snapshot_process *p = wp_links_process(links,
							       wait->thread);
	char own[PATH_MAX] = "";
	struct wp_proc_stat first;
	int64_t made;
	struct line line;
	struct stat st;

	if (wp_proc_is_in_first_pid_namespace() != 0)
		return false;
	(void)!wp_links_read_fd(p, wait->fd, own, sizeof(own), &st);
	find_ancestors(&line, p->process.pid, own,
		       links->objects[wait->object].link);
	made = made_ns(p, wait->fd);
	if (made && line.n && !wp_proc_stat_read(&first, line.pid[line.n - 1]))
		return made < real_ns(first.start_time) + (int64_t)COARSE_NS;
	return line.lacking == line.n;
}

/* Why others than HOLDERS may end wait W, and in *PID which process, where that is known. */
static enum wp_wait_doubt find_doubt(const struct wp_links *links,
				     const struct wp_links_wait *w,
				     const struct wp_fd_holders *holders,
				     pid_t *pid)
{
	const struct wp_fd_denied *denied;

	if (holders->cut)
		return WP_DOUBT_CUT;
	denied = find_denied(links, w, holders);
	if (denied) {
		*pid = denied->pid;
		return denied->receives ? WP_DOUBT_SENT : WP_DOUBT_DENIED;
	}
	if (w->kind == WP_EDGE_FILE_LOCK)
		return WP_DOUBT_NONE;
	if (may_be_in_ring(links, w, holders))
		return WP_DOUBT_RING;
	return may_be_outside(links, w) ? WP_DOUBT_OUTSIDE : WP_DOUBT_NONE;
}

enum wp_wait_doubt wp_links_find_doubt(const struct wp_links *links,
				       const struct wp_links_wait *w,
				       const struct wp_fd_holders *holders,
				       struct wp_links_doubt *known, pid_t *pid)
{
	uint32_t process = links->snapshot->dump.threads[w->thread].process;

	if (!known->is_known || known->process != process ||
	    known->kind != w->kind) {
		*known = (struct wp_links_doubt){ .is_known = true,
						  .process = process,
						  .kind = w->kind };
		known->doubt = find_doubt(links, w, holders, &known->pid);
	}
	*pid = known->pid;
	return known->doubt;
}
