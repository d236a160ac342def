/* SPDX-License-Identifier: Apache-2.0 */
/* call_epoll.c - what an epoll watches, in words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "call_words.h"
#include "wallprof/clock.h"

enum {
	FDINFO_MAX = 16 << 20,
	/* Descriptors whose kinds are read, and different kinds. */
	WATCHED_MAX = 1024,
	KINDS_MAX = 16,
};
/* What the epolls of a process watch is read for so long: any number of threads may wait
 * in one that watches a lot, and the kernel locks it while it is read. */
#define EPOLLS_NS (1 * WP_NS_PER_S)

struct watched_fd {
	int fd;
	bool closed;
};

/* The descriptors that an epoll watches, and how many are of each kind. */
struct watched {
	/* fds[0..n), at most WATCHED_MAX of them. */
	struct watched_fd fds[WATCHED_MAX];
	unsigned int n;
	struct {
		char name[16];
		unsigned int n;
	} kinds[KINDS_MAX];
	unsigned int nkinds;
};

/* Is descriptor FD the file with inode INO no more?  An epoll goes on to watch a
 * file whose descriptor was closed while another refers to it. */
static bool is_closed(const struct wp_call_words *w, int fd, uint64_t ino)
{
	struct stat st;
	char path[WP_FD_PATH_MAX];

	wp_fdinfo_path(path, "fd", w->found->tid, fd);
	return wp_io_stat_open(w->process->process.proc_fd, path, &st) ||
	       st.st_ino != ino;
}

/* Count FD, "tcp listen", "tcp", "pipe", ...; what has no room is not. */
static void count_kind(struct watched *v, struct wp_call_words *w, int fd)
{
	struct wp_fd_desc desc;
	const char *name;
	int len;
	unsigned int i = 0;

	if (wp_fdinfo_describe(&w->process->fdinfo, w->found->tid, fd,
			       wp_clock_ns(), &desc))
		return;
	name = desc.kind == WP_FD_SOCKET ? desc.text :
					   wp_fd_kind_name(desc.kind);
	len = (int)strcspn(name, " :");
	if (!strncmp(name + len, " listen", strlen(" listen")))
		len += (int)strlen(" listen");
	while (i < v->nkinds && ((int)strlen(v->kinds[i].name) != len ||
				 strncmp(v->kinds[i].name, name, (size_t)len)))
		i++;
	if (i == KINDS_MAX)
		return;
	if (i == v->nkinds) {
		snprintf(v->kinds[i].name, sizeof(v->kinds[i].name), "%.*s",
			 len, name);
		v->kinds[v->nkinds++].n = 0;
	}
	v->kinds[i].n++;
}

static int compare_fds(const void *a, const void *b)
{
	const struct watched_fd *x = a, *y = b;

	return (x->fd > y->fd) - (x->fd < y->fd);
}

/* Read fds[]: "tfd:" begins a line for each (proc_pid_fdinfo(5)), in any order. */
static void read_fds(struct watched *v, const struct wp_call_words *w,
		     const char *fdinfo)
{
	static const char tfd[] = "\ntfd:", inode[] = " ino:";

	for (const char *p = strstr(fdinfo, tfd); p; p = strstr(p + 1, tfd)) {
		const char *ino = strstr(p, inode);
		int fd = (int)strtol(p + strlen(tfd), NULL, 10);

		if (v->n++ >= WATCHED_MAX)
			continue;
		v->fds[v->n - 1] = (struct watched_fd){
			fd, !ino || is_closed(w, fd,
					      strtoull(ino + strlen(inode),
						       NULL, 16))
		};
	}
	qsort(v->fds, v->n < WATCHED_MAX ? v->n : WATCHED_MAX, sizeof(*v->fds),
	      compare_fds);
}

static void say_each(struct wp_call_words *w, const struct watched *v)
{
	for (unsigned int i = 0; i < v->n; i++) {
		wp_call_say(w, i ? ", " : ": ");
		if (v->fds[i].closed)
			wp_call_say(w, "fd %d, closed", v->fds[i].fd);
		else
			wp_call_say_fd(w, v->fds[i].fd);
	}
}

static void say_kinds(struct wp_call_words *w, struct watched *v)
{
	for (unsigned int i = 0; i < v->n && i < WATCHED_MAX; i++)
		if (!v->fds[i].closed)
			count_kind(v, w, v->fds[i].fd);
	for (unsigned int i = 0; i < v->nkinds; i++)
		wp_call_say(w, "%s%u %s", i ? ", " : ": ", v->kinds[i].n,
			    v->kinds[i].name);
	if (v->n > WATCHED_MAX)
		wp_call_say(w, ", %u more", v->n - WATCHED_MAX);
}

static void say_watched(struct wp_call_words *w)
{
	struct wp_text text = WP_TEXT_INIT;
	struct watched v;
	char path[WP_FD_PATH_MAX];

	wp_fdinfo_path(path, "fdinfo", w->found->tid, (int)w->call->args[0]);
	if (wp_text_read(&text, w->process->process.proc_fd, path,
			 FDINFO_MAX)) {
		wp_text_clear(&text);
		return;
	}
	v.n = v.nkinds = 0;
	read_fds(&v, w, text.data);
	wp_text_clear(&text);
	wp_call_say(w, " watching %u descriptor%s", v.n, v.n == 1 ? "" : "s");
	if (v.n <= WP_CALL_NAMED_MAX)
		say_each(w, &v);
	else
		say_kinds(w, &v);
}

void wp_call_epoll(struct wp_call_words *w)
{
	uint64_t begin_ns = wp_clock_ns();

	wp_call_say(w, " fd %d", (int)w->call->args[0]);
	if (w->found->moved || w->process->epolls_ns >= EPOLLS_NS)
		return;
	say_watched(w);
	w->process->epolls_ns += wp_clock_ns() - begin_ns;
}
