/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - see links.h and wp_snapshot_follow of wallprof/snapshot.h.
 *
 * Goes in rounds: a round samples the processes that its threads' waits lead to,
 * and the next round follows the waits of their threads.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "links.h"
#include "wallprof/clock.h"
#include "wallprof/state.h"
#include "wallprof/syscall_nr.h"
#include "wallprof/unix_peer.h"
#include "wallprof/vec.h"

enum {
	/* Processes sampled because waits lead there. */
	PEERS_MAX = 32,
	/* Descriptors that are found to be an object of the round. */
	HOLDERS_MAX = 4096,
};
/* Processes are added for so long, */
#define FOLLOW_NS (2 * WP_NS_PER_S)
/* and the descriptors of all processes read in each round: the naming of those
 * that were added before takes nothing from it. */
#define HOLDERS_NS (1 * WP_NS_PER_S)
/* How often descriptors that are on their way are looked for again, after a pause. */
enum { SENT_LOOKS = 3 };
#define SENT_NS (5 * WP_NS_PER_MS)

static bool has_edge(const struct wp_dump *dump, uint32_t from, pid_t pid)
{
	for (uint32_t i = dump->nedges; i-- > 0 && dump->edges[i].from == from;)
		if (dump->edges[i].to_pid == pid)
			return true;
	return false;
}

bool wp_links_is_full(struct wp_links *links, uint32_t thread)
{
	struct wp_snapshot *snapshot = links->snapshot;

	if (snapshot->dump.nedges < WP_LINKS_EDGES_MAX)
		return false;
	snapshot->edges_cut = true;
	wp_links_thread(links, thread)->open_ended = true;
	return true;
}

int wp_links_add_edge(struct wp_links *links, enum wp_edge_kind kind,
		      uint32_t from, pid_t pid, const char *what)
{
	struct wp_dump *dump = &links->snapshot->dump;
	uint32_t id = wp_intern_add_str(&dump->strings, what);
	struct wp_edge *edge;

	if (id == UINT32_MAX)
		return -ENOMEM;
	if (wp_links_is_full(links, from) || has_edge(dump, from, pid))
		return 0;
	edge = wp_dump_add_edge(dump);
	if (!edge)
		return -ENOMEM;
	*edge = (struct wp_edge){ .kind = kind,
				  .from = from,
				  .to = UINT32_MAX,
				  .to_process = UINT32_MAX,
				  .to_pid = pid,
				  .what = id };
	return 0;
}

/* The object's index; UINT32_MAX when there are too many.  One without a lock is
 * entered once. */
static uint32_t add_object(struct wp_links *links, const char *link,
			   const struct stat *st,
			   const struct wp_file_want *want)
{
	struct wp_fd_object *o;

	for (uint32_t i = 0; i < links->nobjects && !want; i++)
		if (!links->objects[i].want &&
		    !strcmp(links->objects[i].link, link) &&
		    links->objects[i].ino == st->st_ino &&
		    links->objects[i].dev == st->st_dev)
			return i;
	if (links->nobjects == WP_LINKS_OBJECTS_MAX)
		return UINT32_MAX;
	o = &links->objects[links->nobjects];
	o->link = strdup(link);
	if (!o->link)
		return UINT32_MAX;
	o->dev = st->st_dev;
	o->ino = st->st_ino;
	o->want = NULL;
	if (want) {
		links->wants[links->nobjects] = *want;
		o->want = &links->wants[links->nobjects];
	}
	return links->nobjects++;
}

int wp_links_add_wait(struct wp_links *links, const struct wp_links_wait *wait,
		      const char *link, const struct stat *st,
		      const struct wp_file_want *want)
{
	uint32_t object = add_object(links, link, st, want);

	if (object == UINT32_MAX) {
		wp_links_thread(links, wait->thread)->open_ended = true;
		return 0;
	}
	if (WP_VEC_ROOM(links->waits, links->nwaits, links->cap_waits, 1))
		return -ENOMEM;
	links->waits[links->nwaits] = *wait;
	links->waits[links->nwaits++].object = object;
	return 0;
}

bool wp_links_read_fd(const struct wp_snapshot_process *process, int fd,
		      char *link, size_t size, struct stat *ret_st)
{
	char name[32];
	ssize_t n;

	snprintf(name, sizeof(name), "fd/%d", fd);
	n = readlinkat(process->process.proc_fd, name, link, size - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	return !wp_io_stat_open(process->process.proc_fd, name, ret_st);
}

/* Is PROCESS's socket FD a unix socket that may have another end?  One that listens has
 * none, and whoever has that of a TCP socket is found on no kernel. */
static bool is_unix_end(struct wp_snapshot_process *process, int fd)
{
	static const char unix_word[] = "unix ";
	static const char listening[] = "unix listen ";
	struct wp_fd_desc desc;

	return !wp_fdinfo_describe(&process->fdinfo, 0, fd, wp_clock_ns(),
				   &desc) &&
	       desc.kind == WP_FD_SOCKET &&
	       !strncmp(desc.text, unix_word, strlen(unix_word)) &&
	       strncmp(desc.text, listening, strlen(listening));
}

/* The other end of THREAD's pipe or connected unix socket FD, as wp_links_read_fd; false
 * when there is none to be found. */
static bool find_other_end(struct wp_links *links, uint32_t thread, int fd,
			   char *link, size_t size, struct stat *st,
			   bool *is_socket)
{
	struct wp_snapshot_process *process = wp_links_process(links, thread);
	struct wp_snapshot *snapshot = links->snapshot;
	uint64_t peer;
	int rc;

	if (!wp_links_read_fd(process, fd, link, size, st))
		return false;
	*is_socket = S_ISSOCK(st->st_mode);
	if (!*is_socket)
		return S_ISFIFO(st->st_mode);
	rc = wp_unix_peer_read(&peer, process->process.proc_fd, st->st_ino);
	if ((rc == -ENOTSUP || rc == -EXDEV) && is_unix_end(process, fd)) {
		snapshot->npeers_untold++;
		snapshot->peers_untold_rc = rc;
	}
	if (rc)
		return false;
	snprintf(link, size, "socket:[%llu]", (unsigned long long)peer);
	st->st_dev = 0;
	st->st_ino = 0;
	return true;
}

/* Is LINK that of a FIFO with a name?  Whoever finds the name may open it at any time. */
static bool has_name(const char *link)
{
	size_t len = strlen(link);

	return link[0] == '/' && wp_maps_path_len(link, len) == len;
}

/* THREAD waits on its pipe or socket FD, if that is a pipe for a writer or a reader.
 * -ENOENT: nobody is known who has the other end. */
static int add_other_end(struct wp_links *links, uint32_t thread, int fd,
			 bool wants_writer)
{
	struct wp_links_wait wait = { .thread = thread, .fd = fd };
	char link[PATH_MAX];
	bool is_socket;
	struct stat st;

	if (wp_links_has_own_files(links, thread) ||
	    !find_other_end(links, thread, fd, link, sizeof(link), &st,
			    &is_socket))
		return -ENOENT;
	wait.kind = is_socket ? WP_EDGE_SOCKET : WP_EDGE_PIPE;
	wait.wants_writer = is_socket || wants_writer;
	if (is_socket &&
	    wp_links_has_time_limit(wp_links_process(links, thread), fd,
				    wants_writer))
		wp_links_thread(links, thread)->call.timed = true;
	if (has_name(link))
		wp_links_thread(links, thread)->open_ended = true;
	return wp_links_add_wait(links, &wait, link, &st, NULL);
}

/* THREAD moves data from IN to OUT, and waits for one of them: for which, nothing
 * tells.  With the edges of both it is stuck only if nobody could end either wait. */
static int add_both_ends(struct wp_links *links, uint32_t thread, int in,
			 int out)
{
	int rc = add_other_end(links, thread, in, true);

	if (!rc)
		rc = add_other_end(links, thread, out, false);
	if (rc == -ENOENT)
		wp_links_thread(links, thread)->open_ended = true;
	return rc;
}

static int add_ends(struct wp_links *links, uint32_t thread)
{
	const struct wp_dump_thread *t = wp_links_thread(links, thread);
	const struct wp_syscall_info *info = wp_syscall_find(t->call.nr);
	const uint64_t *args = t->call.args;

	switch (t->call.nr) {
	case SYS_splice:
		return add_both_ends(links, thread, (int)args[0], (int)args[2]);
	case SYS_tee:
		return add_both_ends(links, thread, (int)args[0], (int)args[1]);
	case SYS_sendfile:
		/* From Linux 5.12 on what is not a file may be moved to a pipe,
		 * and is waited for (fs/read_write.c, do_sendfile). */
		if (!wp_links_is_local_file(links, thread, (int)args[1]))
			return add_both_ends(links, thread, (int)args[1],
					     (int)args[0]);
		break;
	}
	if ((t->wait == WP_WAIT_PIPE || t->wait == WP_WAIT_SOCKET) && info &&
	    info->fd_arg >= 0)
		return add_other_end(links, thread, (int)args[info->fd_arg],
				     !wp_links_writes(links, thread));
	return 0;
}

static int add_call_links(struct wp_links *links, uint32_t thread)
{
	const struct wp_dump_thread *t = wp_links_thread(links, thread);
	int rc;

	if (t->state != WP_STATE_WAITING)
		return 0;
	switch (t->call.nr) {
	case SYS_flock:
	case SYS_fcntl:
		if (wp_links_has_own_files(links, thread))
			return 0;
		return wp_links_add_file_lock(links, thread);
	case SYS_vfork:
	case SYS_clone:
	case SYS_clone3:
		return wp_links_add_child(links, thread);
	}
	if (t->wait == WP_WAIT_CHILD)
		return wp_links_add_child(links, thread);
	rc = add_ends(links, thread);
	return rc == -ENOENT ? 0 : rc;
}

static int add_links(struct wp_links *links, uint32_t thread)
{
	int rc = add_call_links(links, thread);

	return rc ? rc : wp_links_add_sigchld(links, thread);
}

static bool can_end(const struct wp_links *links, const struct wp_links_wait *w,
		    const struct wp_fd_holder *holder)
{
	if (holder->object != w->object)
		return false;
	if (w->kind == WP_EDGE_FILE_LOCK)
		return holder->blocks &&
		       !wp_links_is_same_file(links, w, holder);
	return w->wants_writer ? holder->writes : holder->reads;
}

static int add_holder(struct wp_links *links, const struct wp_links_wait *w,
		      pid_t pid)
{
	const struct wp_fd_object *o = &links->objects[w->object];

	if (w->kind != WP_EDGE_FILE_LOCK)
		return wp_links_add_edge(links, w->kind, w->thread, pid,
					 o->link);
	return wp_links_add_lock_holder(
		links, w->thread, pid,
		o->want->kind == WP_FILE_WANT_FLOCK ? "FLOCK" : "OFDLCK");
}

static void add_doubt(struct wp_links *links, const struct wp_links_wait *w,
		      enum wp_wait_doubt doubt, pid_t pid, bool has_edges)
{
	struct wp_snapshot *snapshot = links->snapshot;

	wp_links_thread(links, w->thread)->open_ended = true;
	if (!has_edges)
		return;
	snapshot->nwaits_doubtful++;
	snapshot->wait_doubt = doubt;
	snapshot->doubtful_pid = pid;
}

static int add_holders(struct wp_links *links,
		       const struct wp_fd_holders *holders)
{
	const struct wp_dump *dump = &links->snapshot->dump;
	struct wp_links_doubt *doubts = calloc((size_t)links->nobjects + 1,
					       sizeof(*doubts));
	int rc = doubts ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < links->nwaits && !rc; i++) {
		const struct wp_links_wait *w = &links->waits[i];
		uint32_t nedges = dump->nedges;
		enum wp_wait_doubt doubt;
		pid_t pid = 0;

		if (wp_links_is_full(links, w->thread))
			continue;
		doubt = wp_links_find_doubt(links, w, holders,
					    &doubts[w->object], &pid);
		for (size_t k = 0; k < holders->len && !rc; k++)
			if (can_end(links, w, &holders->v[k]))
				rc = add_holder(links, w, holders->v[k].pid);
		if (!rc && w->kind == WP_EDGE_FILE_LOCK &&
		    dump->nedges == nedges)
			rc = wp_links_add_lock_taker(links, w->thread,
						     w->taker);
		if (doubt)
			add_doubt(links, w, doubt, pid, dump->nedges != nedges);
		if (!rc)
			rc = wp_links_add_sigchld(links, w->thread);
	}
	free(doubts);
	return rc;
}

static void clear_round(struct wp_links *links)
{
	for (uint32_t i = 0; i < links->nobjects; i++)
		free((char *)links->objects[i].link);
	links->nobjects = 0;
	links->nwaits = 0;
	wp_text_clear(&links->locks);
}

/* May the object of a wait be on its way to a process (SCM_RIGHTS)?  Most descriptors are
 * received at once, and are among those of the process then. */
static bool is_any_sent(const struct wp_links *links,
			const struct wp_fd_holders *holders)
{
	struct wp_links_doubt *doubts = calloc((size_t)links->nobjects + 1,
					       sizeof(*doubts));
	bool is_sent = false;

	for (uint32_t i = 0; doubts && i < links->nwaits && !is_sent; i++) {
		const struct wp_links_wait *w = &links->waits[i];
		pid_t pid;

		is_sent = wp_links_find_doubt(links, w, holders,
					      &doubts[w->object],
					      &pid) == WP_DOUBT_SENT;
	}
	free(doubts);
	return is_sent;
}

/* The edges of all waits of the round. */
static int find_holders(struct wp_links *links)
{
	struct wp_fd_holders holders = WP_FD_HOLDERS_INIT;
	int looks = 0;
	int rc;

	if (!links->nobjects)
		return 0;
	do {
		if (looks)
			nanosleep(&(struct timespec){ 0, SENT_NS }, NULL);
		rc = wp_fd_holders_find(&holders, links->objects,
					links->nobjects, HOLDERS_MAX,
					wp_clock_ns() + HOLDERS_NS);
	} while (!rc && looks++ < SENT_LOOKS && is_any_sent(links, &holders));
	if (!rc)
		rc = add_holders(links, &holders);
	wp_fd_holders_clear(&holders);
	return rc == -ENOTSUP ? 0 : rc;
}

/* Sample the processes that the edges from FIRST on lead to and that are not in
 * the dump. */
static int add_peers(struct wp_links *links, uint32_t first)
{
	struct wp_dump *dump = &links->snapshot->dump;
	int rc = 0;

	for (uint32_t i = first; i < dump->nedges && !rc; i++) {
		pid_t pid = dump->edges[i].to_pid;
		uint32_t at = wp_dump_find_process(dump, pid);
		struct wp_err err = WP_ERR_INIT;

		if (at == UINT32_MAX && links->npeers < PEERS_MAX &&
		    wp_clock_ns() < links->deadline_ns) {
			links->npeers++;
			at = dump->nprocesses;
			rc = wp_snapshot_add(links->snapshot, pid, true, &err);
			if (rc != -ENOMEM)
				rc = 0;
		}
		dump->edges[i].to_process = at;
	}
	return rc;
}

static int follow(struct wp_links *links)
{
	const struct wp_dump *dump = &links->snapshot->dump;
	uint32_t thread = 0;
	int rc = 0;

	while (!rc && thread < dump->nthreads) {
		uint32_t first = dump->nedges;

		links->round_ns = wp_clock_ns();
		for (; thread < dump->nthreads && !rc; thread++)
			rc = add_links(links, thread);
		if (!rc)
			rc = find_holders(links);
		clear_round(links);
		if (!rc)
			rc = add_peers(links, first);
	}
	return rc;
}

int wp_snapshot_follow(struct wp_snapshot *snapshot)
{
	struct wp_links *links = calloc(1, sizeof(*links));
	int rc;

	if (!links)
		return -ENOMEM;
	links->snapshot = snapshot;
	links->deadline_ns = wp_clock_ns() + FOLLOW_NS;
	rc = follow(links);
	free(links->waits);
	wp_tids_clear(&links->tracers);
	free(links);
	return rc;
}
