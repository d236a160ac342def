/* SPDX-License-Identifier: Apache-2.0 */
/* links_calls.c - how a call uses its descriptors: see links.h. */
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "links.h"
#include "wallprof/clock.h"
#include "wallprof/file_servers.h"
#include "wallprof/kcmp.h"
#include "wallprof/syscall_nr.h"

static bool is_write(long nr)
{
	switch (nr) {
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
		return true;
	default:
		return false;
	}
}

/* May PROCESS write to its descriptor FD?  Not if that cannot be read. */
static bool is_writable(const struct wp_snapshot_process *process, int fd)
{
	bool reads, writes;
	char path[64], text[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "fdinfo/%d", fd);
	n = wp_io_read_at(process->process.proc_fd, path, text, sizeof(text));
	return n > 0 &&
	       !wp_fd_holders_parse_flags(&reads, &writes, text, (size_t)n) &&
	       writes;
}

bool wp_links_writes(const struct wp_links *links, uint32_t thread)
{
	const struct wp_dump_call *call = &wp_links_thread(links, thread)->call;

	/* fs/splice.c, vmsplice_type: a descriptor that may be written to is
	 * written to. */
	return call->nr == SYS_vmsplice ?
		       is_writable(wp_links_process(links, thread),
				   (int)call->args[0]) :
		       is_write(call->nr);
}

bool wp_links_has_time_limit(const struct wp_snapshot_process *process, int fd,
			     bool reads)
{
	struct timeval limit = { 0 };
	socklen_t len = sizeof(limit);
	int own = (int)syscall(SYS_pidfd_getfd, process->process.pidfd, fd, 0);
	bool is_known = own >= 0 &&
			!getsockopt(own, SOL_SOCKET,
				    reads ? SO_RCVTIMEO : SO_SNDTIMEO, &limit,
				    &len);

	if (own >= 0)
		close(own);
	return !is_known || limit.tv_sec || limit.tv_usec;
}

bool wp_links_has_own_files(struct wp_links *links, uint32_t thread)
{
	struct wp_dump_thread *t = wp_links_thread(links, thread);

	if (!wp_kcmp_files_differ(
		    wp_links_process(links, thread)->process.reader_tid,
		    t->tid))
		return false;
	t->open_ended = true;
	return true;
}

bool wp_links_is_local_file(const struct wp_links *links, uint32_t thread,
			    int fd)
{
	const struct wp_snapshot_process *process = wp_links_process(links,
								     thread);
	char link[PATH_MAX], fdinfo[32];
	struct stat st;

	snprintf(fdinfo, sizeof(fdinfo), "fdinfo/%d", fd);
	return wp_clock_ns() < links->deadline_ns &&
	       wp_links_read_fd(process, fd, link, sizeof(link), &st) &&
	       S_ISREG(st.st_mode) &&
	       wp_file_servers_lack_fd(process->process.proc_fd, fdinfo);
}
