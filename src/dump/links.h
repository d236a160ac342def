/* SPDX-License-Identifier: Apache-2.0 */
/* links.h - waits that lead out of a process, and where to.
 *
 * Layer: dump.
 */
#ifndef WP_LINKS_H
#define WP_LINKS_H

#include <sys/stat.h>

#include "wallprof/fd_holders.h"
#include "wallprof/file_lock.h"
#include "wallprof/snapshot.h"

enum {
	/* Pipes, sockets and files of a round. */
	WP_LINKS_OBJECTS_MAX = 256,
	/* Edges of a dump: as many threads may wait for as many processes.  Enough
	 * for 250 workers that all have the ends of each other's pipes. */
	WP_LINKS_EDGES_MAX = 1 << 16,
};

/* A thread whose wait can be ended by whoever has an object open: the other end
 * of a pipe or socket, or the open file that has a lock. */
struct wp_links_wait {
	uint32_t thread;
	/* Index of objects[]; UINT32_MAX: there was no room for it. */
	uint32_t object;
	enum wp_edge_kind kind;
	/* Of a pipe: a writer ends the wait, else a reader. */
	bool wants_writer;
	/* Of a file lock: the thread's own descriptor, and the pid that took
	 * the lock by /proc/locks, 0 if that does not tell. */
	int fd;
	pid_t taker;
};

struct wp_links {
	/* Borrowed. */
	struct wp_snapshot *snapshot;
	/* CLOCK_MONOTONIC after which no process is added. */
	uint64_t deadline_ns;
	uint32_t npeers;
	/* CLOCK_MONOTONIC when this round began. */
	uint64_t round_ns;
	/* Of this round: objects[0..nobjects), whose links are owned and whose
	 * WANT points into wants[]; and waits[0..nwaits), owned. */
	struct wp_fd_object objects[WP_LINKS_OBJECTS_MAX];
	struct wp_file_want wants[WP_LINKS_OBJECTS_MAX];
	uint32_t nobjects;
	struct wp_links_wait *waits;
	uint32_t nwaits, cap_waits;
	/* /proc/locks, read once a round; LEN 0: not read yet. */
	struct wp_text locks;
	/* Threads that trace other threads, once TRACERS_KNOWN; all of them, unless the
	 * search took too long. */
	struct wp_tids tracers;
	bool tracers_known;
	bool tracers_cut;
};

static inline struct wp_dump_thread *
wp_links_thread(const struct wp_links *links, uint32_t thread)
{
	return &links->snapshot->dump.threads[thread];
}

/* The process of thread THREAD. */
static inline struct wp_snapshot_process *
wp_links_process(const struct wp_links *links, uint32_t thread)
{
	uint32_t p = wp_links_thread(links, thread)->process;

	return links->snapshot->processes[p];
}

/* Is there no room for more edges?  THREAD, which may lack some then, is marked as one
 * whose wait others may end, so that no verdict is made of what is missing. */
bool wp_links_is_full(struct wp_links *links, uint32_t thread);

/* Add an edge from thread FROM to any thread of process PID, unless FROM has
 * one to it, or there is no room.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_links_add_edge(struct wp_links *links, enum wp_edge_kind kind,
		      uint32_t from, pid_t pid, const char *what);

/* Add WAIT, for an object that reads LINK in /proc/PID/fd and is ST; WANT, which
 * may be NULL, is the lock that is waited for.  At the end of the round it gets
 * an edge to each process that has the object open.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_links_add_wait(struct wp_links *links, const struct wp_links_wait *wait,
		      const char *link, const struct stat *st,
		      const struct wp_file_want *want);

/* What PROCESS's descriptor FD refers to: its link in /proc/PID/fd into
 * LINK[0..size), and what stat(2) says.  False when that cannot be read. */
bool wp_links_read_fd(const struct wp_snapshot_process *process, int fd,
		      char *link, size_t size, struct stat *ret_st);

/* links_calls.c: does THREAD's call write to its descriptor, not read? */
bool wp_links_writes(const struct wp_links *links, uint32_t thread);
/* May a call that waits on PROCESS's socket FD, to read or to write, end by a time
 * limit (SO_RCVTIMEO, SO_SNDTIMEO)?  Also if that cannot be known: it takes ptrace's
 * right, and Linux 5.6. */
bool wp_links_has_time_limit(const struct wp_snapshot_process *process, int fd,
			     bool reads);
/* Has THREAD descriptors of its own (unshare(2), CLONE_FILES)?  Which object its
 * descriptor is is not read then, and it is marked as one whose wait others may end. */
bool wp_links_has_own_files(struct wp_links *links, uint32_t thread);
/* Is THREAD's descriptor FD a file that is read without waiting for anybody?  A file
 * server may never answer.  No, if that took too long to know. */
bool wp_links_is_local_file(const struct wp_links *links, uint32_t thread,
			    int fd);

/* links_child.c: add the edges of THREAD's wait for a child.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_links_add_child(struct wp_links *links, uint32_t thread);

/* Add edges from THREAD, whose other edges are there, to the children whose SIGCHLD may
 * end its wait as well, if it has any edge and a handler for that.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_links_add_sigchld(struct wp_links *links, uint32_t thread);

/* links_file_lock.c: add the edges of THREAD's wait for a file lock, or a wait
 * for it.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_links_add_file_lock(struct wp_links *links, uint32_t thread);
/* Add an edge to HOLDER of a lock of TYPE ("FLOCK", "POSIX").  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_links_add_lock_holder(struct wp_links *links, uint32_t thread,
			     pid_t holder, const char *type);
/* No open file was found that has the lock: add an edge to TAKER if that lives,
 * else mark the lock's holder as not recorded.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_links_add_lock_taker(struct wp_links *links, uint32_t thread,
			    pid_t taker);

/* What doubt there is of the waits of a process for an object. */
struct wp_links_doubt {
	bool is_known;
	uint32_t process;
	enum wp_edge_kind kind;
	enum wp_wait_doubt doubt;
	pid_t pid;
};

/* links_denied.c: why processes other than HOLDERS may end WAIT; *PID is such a process,
 * 0: not known.  KNOWN, empty at first, is kept from one wait for an object to the next. */
enum wp_wait_doubt wp_links_find_doubt(const struct wp_links *links,
				       const struct wp_links_wait *wait,
				       const struct wp_fd_holders *holders,
				       struct wp_links_doubt *known,
				       pid_t *pid);

/* HOLDER has the same open file as WAIT's thread, whose own lock does not keep
 * it waiting. */
bool wp_links_is_same_file(const struct wp_links *links,
			   const struct wp_links_wait *wait,
			   const struct wp_fd_holder *holder);

#endif
