/* SPDX-License-Identifier: Apache-2.0 */
/* process_links.c - see wallprof/snapshot.h: waits that lead out of a process, and what is there.
 *
 * Goes in rounds: the processes that one round finds are looked at, and the
 * next asks what those wait for.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pid_namespace.h"
#include "wallprof/children.h"
#include "wallprof/fd_holders.h"
#include "wallprof/file_lock.h"
#include "wallprof/snapshot.h"
#include "wallprof/clock.h"
#include "wallprof/state.h"
#include "wallprof/unix_peer.h"
#include "wallprof/vec.h"

enum {
	/* Processes looked at because waits led there. */
	PEERS_MAX = 32,
	/* Distinct pipes and sockets asked for in a round, and descriptors of
	 * them that are counted. */
	OBJECTS_MAX = 256,
	HOLDERS_MAX = 4096,
	LOCKS_FILE_MAX = 16 << 20,
};
/* For all rounds together. */
#define FOLLOW_NS (2 * WP_NS_PER_S)

/* A thread that waits on one end of a pipe or socket, or for a file lock that
 * an open file has. */
struct ask {
	uint32_t thread;
	/* Index of objects[]. */
	uint32_t object;
	/* Of a file lock: the thread's own descriptor; who took the lock, by
	 * /proc/locks, 0 if that is not told. */
	int fd;
	pid_t taker;
	enum wp_edge_kind kind;
	/* The end that can end the wait. */
	bool wants_writer;
};

struct job {
	struct wp_snapshot *looks;
	uint64_t deadline_ns;
	uint32_t npeers;
	/* Of this round; links owned. */
	struct wp_fd_object objects[OBJECTS_MAX];
	struct wp_file_want wants[OBJECTS_MAX];
	uint32_t nobjects;
	struct ask *asks;
	uint32_t nasks, cap_asks;
	/* /proc/locks, once a round; LEN 0: not read. */
	struct wp_text locks;
};

static struct wp_dump *dump_of(const struct job *job)
{
	return &job->looks->dump;
}

static const struct wp_snapshot_process *look_of(const struct job *job,
						 uint32_t thread)
{
	return job->looks->v[dump_of(job)->threads[thread].process];
}

static bool has_edge(const struct wp_dump *dump, uint32_t from, pid_t pid)
{
	for (uint32_t i = dump->nedges; i-- > 0 && dump->edges[i].from == from;)
		if (dump->edges[i].to_pid == pid)
			return true;
	return false;
}

/* FROM waits for any thread of process PID.  0 or -ENOMEM. */
static int add_edge(struct job *job, enum wp_edge_kind kind, uint32_t from,
		    pid_t pid, const char *what)
{
	struct wp_dump *dump = dump_of(job);
	uint32_t id = wp_intern_add_str(&dump->strings, what);
	struct wp_edge *edge;

	if (id == UINT32_MAX)
		return -ENOMEM;
	if (has_edge(dump, from, pid))
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

/* An object's index, made if new, as one with a WANT always is; UINT32_MAX when
 * there are too many. */
static uint32_t add_object(struct job *job, const char *link,
			   const struct stat *st,
			   const struct wp_file_want *want)
{
	struct wp_fd_object *o;

	for (uint32_t i = 0; i < job->nobjects && !want; i++)
		if (!job->objects[i].want &&
		    !strcmp(job->objects[i].link, link) &&
		    job->objects[i].ino == st->st_ino &&
		    job->objects[i].dev == st->st_dev)
			return i;
	if (job->nobjects == OBJECTS_MAX)
		return UINT32_MAX;
	o = &job->objects[job->nobjects];
	o->link = strdup(link);
	if (!o->link)
		return UINT32_MAX;
	o->dev = st->st_dev;
	o->ino = st->st_ino;
	o->want = NULL;
	if (want) {
		job->wants[job->nobjects] = *want;
		o->want = &job->wants[job->nobjects];
	}
	return job->nobjects++;
}

/* Whoever has the object open is asked, at the end of the round. */
static int add_ask(struct job *job, const struct ask *ask)
{
	if (ask->object == UINT32_MAX) {
		dump_of(job)->threads[ask->thread].open_ended = true;
		return 0;
	}
	if (WP_VEC_ROOM(job->asks, job->nasks, job->cap_asks, 1))
		return -ENOMEM;
	job->asks[job->nasks++] = *ask;
	return 0;
}

static bool writes(const char *call)
{
	return !strncmp(call, "write", 5) || !strncmp(call, "pwrite", 6) ||
	       !strncmp(call, "send", 4);
}

/* What descriptor FD is open on: how it reads in /proc/PID/fd, into LINK, and
 * what stat(2) says. */
static bool find_open(const struct wp_snapshot_process *look, int fd,
		      char *link, size_t size, struct stat *ret_st)
{
	char name[32];
	ssize_t n;

	snprintf(name, sizeof(name), "fd/%d", fd);
	n = readlinkat(look->process.proc_fd, name, link, size - 1);
	if (n <= 0)
		return false;
	link[n] = '\0';
	return !wp_io_stat_open(look->process.proc_fd, name, ret_st);
}

/* The link that the other end of THREAD's descriptor FD reads as in
 * /proc/PID/fd, into LINK.  False when there is none to be found. */
static bool find_end(const struct wp_snapshot_process *look, int fd, char *link,
		     size_t size, struct stat *st, bool *is_socket)
{
	uint64_t peer;

	if (!find_open(look, fd, link, size, st))
		return false;
	*is_socket = S_ISSOCK(st->st_mode);
	if (!*is_socket)
		return S_ISFIFO(st->st_mode);
	if (wp_unix_peer_read(&peer, look->process.proc_fd, st->st_ino))
		return false;
	snprintf(link, size, "socket:[%llu]", (unsigned long long)peer);
	st->st_dev = 0;
	st->st_ino = 0;
	return true;
}

static int ask_end(struct job *job, uint32_t thread, int fd)
{
	const struct wp_dump_thread *t = &dump_of(job)->threads[thread];
	struct ask ask = { .thread = thread, .fd = fd };
	char link[PATH_MAX];
	bool is_socket;
	struct stat st;

	if (!find_end(look_of(job, thread), fd, link, sizeof(link), &st,
		      &is_socket))
		return 0;
	ask.object = add_object(job, link, &st, NULL);
	ask.kind = is_socket ? WP_EDGE_SOCKET : WP_EDGE_PIPE;
	ask.wants_writer = is_socket ||
			   !writes(wp_dump_str(dump_of(job), t->syscall));
	return add_ask(job, &ask);
}

/* The child that a vfork waits for is the last one of its thread. */
static pid_t vfork_child(const struct wp_snapshot_process *look, pid_t tid)
{
	struct wp_tids pids = WP_TIDS_INIT;
	char path[64], text[4096];
	ssize_t n;
	pid_t pid = 0;

	snprintf(path, sizeof(path), "%d/children", tid);
	n = wp_io_read_at(look->process.task_fd, path, text, sizeof(text));
	if (n > 0 && !wp_children_parse(&pids, text, (size_t)n) && pids.len)
		pid = pids.v[pids.len - 1];
	wp_tids_clear(&pids);
	return pid;
}

static int ask_vfork(struct job *job, uint32_t thread)
{
	const struct wp_dump_thread *t = &dump_of(job)->threads[thread];
	const char *call = wp_dump_str(dump_of(job), t->syscall);
	const struct wp_snapshot_process *look = look_of(job, thread);
	uint64_t flags = t->args[0];
	pid_t pid;

	if (!strcmp(call, "clone3") &&
	    wp_process_read(&look->process, t->args[0], &flags,
			    sizeof(flags)) != sizeof(flags))
		return 0;
	if (strcmp(call, "vfork") && !(flags & CLONE_VFORK))
		return 0;
	pid = vfork_child(look, t->tid);
	return pid ? add_edge(job, WP_EDGE_CHILD, thread, pid, "vfork child") :
		     0;
}

static int ask_any_child(struct job *job, uint32_t thread)
{
	struct wp_tids pids = WP_TIDS_INIT;
	int rc = wp_children_list(&pids, look_of(job, thread)->process.pid);

	for (size_t i = 0; i < pids.len && !rc; i++)
		rc = add_edge(job, WP_EDGE_CHILD, thread, pids.v[i], "child");
	wp_tids_clear(&pids);
	return rc == -ENOMEM ? rc : 0;
}

/* The child that T waits for in wait4 or waitid; 0: it is not there; -1: any. */
static pid_t child_of_wait(const struct wp_snapshot_process *look,
			   const struct wp_dump_thread *t, const char *call)
{
	int own = (int)t->args[0];

	if (!strcmp(call, "waitid")) {
		if (t->args[0] == WP_P_PIDFD)
			return wp_pid_namespace_pidfd(look, (int)t->args[1]);
		own = t->args[0] == P_PID ? (int)t->args[1] : 0;
	}
	return own > 0 ? wp_pid_namespace_child(look, own) : -1;
}

static int ask_child(struct job *job, uint32_t thread)
{
	const struct wp_dump_thread *t = &dump_of(job)->threads[thread];
	const char *call = wp_dump_str(dump_of(job), t->syscall);
	pid_t pid;

	if (strcmp(call, "wait4") && strcmp(call, "waitid"))
		return ask_vfork(job, thread);
	pid = child_of_wait(look_of(job, thread), t, call);
	if (pid < 0)
		return ask_any_child(job, thread);
	return pid ? add_edge(job, WP_EDGE_CHILD, thread, pid, "child") : 0;
}

static void set_unrecorded(struct wp_dump_thread *t)
{
	t->open_ended = true;
	t->lock = (struct wp_lock){
		.kind = WP_LOCK_FILE,
		.holder = WP_HOLDER_NOT_RECORDED,
	};
}

static int add_lock_edge(struct job *job, uint32_t thread, pid_t holder,
			 const char *type)
{
	const struct wp_dump_thread *t = &dump_of(job)->threads[thread];
	const struct wp_snapshot_process *look = look_of(job, thread);
	char what[WP_FD_TEXT_MAX + 32];
	struct wp_fd_desc desc;

	if (wp_fdinfo_describe((struct wp_fdinfo *)&look->fdinfo,
			       (int)t->args[0], wp_clock_ns(), &desc))
		desc.text[0] = '\0';
	snprintf(what, sizeof(what), "%s lock on %s", type, desc.text);
	return add_edge(job, WP_EDGE_FILE_LOCK, thread, holder, what);
}

/* The lock that T asks for; false when that cannot be told. */
static bool find_want(const struct wp_snapshot_process *look,
		      const struct wp_dump_thread *t, const char *call,
		      struct wp_file_want *want)
{
	struct flock lock = { 0 };
	int64_t last;

	*want = (struct wp_file_want){ WP_FILE_WANT_FLOCK,
				       (t->args[1] & ~(uint64_t)LOCK_NB) ==
					       LOCK_EX,
				       0, UINT64_MAX };
	if (!strcmp(call, "flock"))
		return true;
	if (wp_process_read(&look->process, t->args[2], &lock, sizeof(lock)) !=
		    sizeof(lock) ||
	    lock.l_whence != SEEK_SET || lock.l_start < 0 || lock.l_len < 0 ||
	    (lock.l_type != F_WRLCK && lock.l_type != F_RDLCK))
		return false;
	want->kind = t->args[1] == F_OFD_SETLKW ? WP_FILE_WANT_OFD :
						  WP_FILE_WANT_POSIX;
	want->write = lock.l_type == F_WRLCK;
	want->first = (uint64_t)lock.l_start;
	if (lock.l_len &&
	    !__builtin_add_overflow(lock.l_start, lock.l_len - 1, &last))
		want->last = (uint64_t)last;
	return true;
}

/* No open file was found that has it. */
static int blame_taker(struct job *job, uint32_t thread, pid_t taker)
{
	if (taker > 0 && !kill(taker, 0))
		return add_lock_edge(job, thread, taker, "FLOCK");
	set_unrecorded(&dump_of(job)->threads[thread]);
	return 0;
}

/* A lock that belongs to an open file can be let go by whoever has that open:
 * /proc/locks tells at most who took it, which may have gone or closed it.  The
 * fdinfo of a descriptor tells its file's locks. */
static int ask_open_files(struct job *job, uint32_t thread, pid_t taker)
{
	const struct wp_dump_thread *t = &dump_of(job)->threads[thread];
	const struct wp_snapshot_process *look = look_of(job, thread);
	struct ask ask = { .thread = thread,
			   .fd = (int)t->args[0],
			   .taker = taker,
			   .kind = WP_EDGE_FILE_LOCK };
	struct wp_file_want want;
	char link[PATH_MAX];
	struct stat st;

	if (!find_open(look, ask.fd, link, sizeof(link), &st) ||
	    !find_want(look, t, wp_dump_str(dump_of(job), t->syscall), &want))
		return blame_taker(job, thread, taker);
	ask.object = add_object(job, link, &st, &want);
	return add_ask(job, &ask);
}

/* What T waits for by /proc/locks: false if it is not there, as when who took
 * it has gone and wallprof is in a PID namespace. */
static bool find_file_lock(struct job *job,
			   const struct wp_snapshot_process *look,
			   const struct wp_dump_thread *t,
			   struct wp_file_lock *lock)
{
	char name[32];
	struct stat st;

	if (!job->locks.len &&
	    wp_text_read(&job->locks, AT_FDCWD, "/proc/locks", LOCKS_FILE_MAX))
		return false;
	snprintf(name, sizeof(name), "fd/%d", (int)t->args[0]);
	return !wp_io_stat_open(look->process.proc_fd, name, &st) &&
	       !wp_file_lock_find(lock, job->locks.data, job->locks.len,
				  look->process.pid, st.st_dev, st.st_ino);
}

static int ask_file_lock(struct job *job, uint32_t thread)
{
	const struct wp_dump_thread *t = &dump_of(job)->threads[thread];
	bool is_flock = !strcmp(wp_dump_str(dump_of(job), t->syscall), "flock");
	struct wp_file_lock lock = { .holder = 0 };

	/* It is not said who waits either (fs/locks.c, lock_get_status). */
	if (!is_flock && t->args[1] == F_OFD_SETLKW)
		return ask_open_files(job, thread, 0);
	if (!find_file_lock(job, look_of(job, thread), t, &lock))
		return is_flock ? ask_open_files(job, thread, 0) : 0;
	if (is_flock || lock.holder <= 0)
		return ask_open_files(job, thread, lock.holder);
	return add_lock_edge(job, thread, lock.holder, lock.type);
}

static int ask(struct job *job, uint32_t thread)
{
	const struct wp_dump_thread *t = &dump_of(job)->threads[thread];
	const char *call = wp_dump_str(dump_of(job), t->syscall);
	const struct wp_syscall_info *info = wp_syscall_find(t->syscall_nr);

	if (t->state != WP_STATE_WAITING && t->state != WP_STATE_STOPPED)
		return 0;
	if (!strcmp(call, "flock") || !strcmp(call, "fcntl"))
		return ask_file_lock(job, thread);
	if (t->wait == WP_WAIT_CHILD || !strcmp(call, "vfork") ||
	    !strncmp(call, "clone", 5))
		return ask_child(job, thread);
	if ((t->wait == WP_WAIT_PIPE || t->wait == WP_WAIT_SOCKET) && info &&
	    info->fd_arg >= 0)
		return ask_end(job, thread, (int)t->args[info->fd_arg]);
	return 0;
}

/* A lock is not in the way of others of the same open file. */
static bool is_own_file(const struct job *job, const struct ask *a,
			const struct wp_fd_holder *p)
{
	pid_t own = look_of(job, a->thread)->process.pid;

	return (p->pid == own && p->fd == a->fd) ||
	       !syscall(SYS_kcmp, own, p->pid, KCMP_FILE, a->fd, p->fd);
}

static bool is_waited_for(const struct job *job, const struct ask *a,
			  const struct wp_fd_holder *p)
{
	if (p->object != a->object)
		return false;
	if (a->kind == WP_EDGE_FILE_LOCK)
		return p->blocks && !is_own_file(job, a, p);
	return a->wants_writer ? p->writes : p->reads;
}

static int add_holder(struct job *job, const struct ask *a, pid_t pid)
{
	const struct wp_fd_object *o = &job->objects[a->object];

	if (a->kind != WP_EDGE_FILE_LOCK)
		return add_edge(job, a->kind, a->thread, pid, o->link);
	return add_lock_edge(job, a->thread, pid,
			     o->want->kind == WP_FILE_WANT_FLOCK ? "FLOCK" :
								   "OFDLCK");
}

static int add_holders(struct job *job, const struct wp_fd_holders *peers)
{
	int rc = 0;

	for (uint32_t i = 0; i < job->nasks && !rc; i++) {
		const struct ask *a = &job->asks[i];
		uint32_t before = dump_of(job)->nedges;

		if (peers->cut)
			dump_of(job)->threads[a->thread].open_ended = true;
		for (size_t k = 0; k < peers->len && !rc; k++)
			if (is_waited_for(job, a, &peers->v[k]))
				rc = add_holder(job, a, peers->v[k].pid);
		if (!rc && a->kind == WP_EDGE_FILE_LOCK &&
		    dump_of(job)->nedges == before)
			rc = blame_taker(job, a->thread, a->taker);
	}
	return rc;
}

static int find_holders(struct job *job)
{
	struct wp_fd_holders peers = WP_FD_HOLDERS_INIT;
	int rc;

	if (!job->nobjects)
		return 0;
	rc = wp_fd_holders_find(&peers, job->objects, job->nobjects,
				HOLDERS_MAX, job->deadline_ns);
	if (!rc)
		rc = add_holders(job, &peers);
	wp_fd_holders_clear(&peers);
	for (uint32_t i = 0; i < job->nobjects; i++)
		free((char *)job->objects[i].link);
	job->nobjects = 0;
	job->nasks = 0;
	return rc == -ENOTSUP ? 0 : rc;
}

/* Where edges from FIRST on lead, looked at if that was not done yet. */
static int look_at_peers(struct job *job, uint32_t first)
{
	struct wp_dump *dump = dump_of(job);

	for (uint32_t i = first; i < dump->nedges; i++) {
		pid_t pid = dump->edges[i].to_pid;
		uint32_t at = wp_dump_find_process(dump, pid);
		struct wp_err err = WP_ERR_INIT;

		if (at == UINT32_MAX && job->npeers < PEERS_MAX &&
		    wp_clock_ns() < job->deadline_ns) {
			job->npeers++;
			at = dump->nprocesses;
			if (wp_snapshot_add(job->looks, pid, true, NULL,
					    &err) == -ENOMEM)
				return -ENOMEM;
		}
		dump->edges[i].to_process = at;
	}
	return 0;
}

static int follow(struct job *job)
{
	struct wp_dump *dump = dump_of(job);
	uint32_t thread = 0;
	int rc = 0;

	while (!rc && thread < dump->nthreads) {
		uint32_t first = dump->nedges;

		for (; thread < dump->nthreads && !rc; thread++)
			rc = ask(job, thread);
		if (!rc)
			rc = find_holders(job);
		if (!rc)
			rc = look_at_peers(job, first);
		wp_text_clear(&job->locks);
	}
	return rc;
}

int wp_snapshot_follow(struct wp_snapshot *looks)
{
	struct job *job = calloc(1, sizeof(*job));
	int rc;

	if (!job)
		return -ENOMEM;
	job->looks = looks;
	job->deadline_ns = wp_clock_ns() + FOLLOW_NS;
	rc = follow(job);
	for (uint32_t i = 0; i < job->nobjects; i++)
		free((char *)job->objects[i].link);
	free(job->asks);
	wp_text_clear(&job->locks);
	free(job);
	return rc;
}
