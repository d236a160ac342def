/* SPDX-License-Identifier: Apache-2.0 */
/* dump.h - one look at every thread of some processes, and who waits for whom.
 *
 * Layer: hang.
 *
 * Plain data: src/dump/snapshot.c takes the look and fills it in, wp_lock_decode says
 * what a futex is and who holds it, wp_graph_build finds what can never end,
 * and the writers of wallprof/output.h print it.  Strings are ids of the dump's own
 * intern table, 0 for "".
 */
#ifndef WP_DUMP_H
#define WP_DUMP_H

#include "wallprof/err.h"
#include "wallprof/intern.h"
#include "wallprof/lock.h"
#include "wallprof/types.h"

struct wp_dump_frame {
	uint64_t pc_avma;
	/* String ids: function (demangled, and as in the file), file, base name
	 * of the module. */
	uint32_t function;
	uint32_t system_name;
	uint32_t file;
	uint32_t module;
	uint32_t line;
	bool inlined;
	bool kernel;
	/* Found without unwind info. */
	bool guessed;
};

struct wp_dump_thread {
	/* Index of processes[]. */
	uint32_t process;
	int32_t tid;
	uint32_t name;
	/* "futex", "read", ... of the blocking call; "" when none. */
	uint32_t syscall;
	/* With its arguments: "read fd 7 tcp 127.0.0.1:41234 ->
	 * 127.0.0.1:5432", "wait4 pid 99 \"child\"", "futex 0x55aa WAIT". */
	uint32_t call;
	/* The raw call: number (-1 none) and arguments. */
	long syscall_nr;
	uint64_t args[6];
	enum wp_state state;
	enum wp_wait wait;
	/* The call itself has a time after which it returns. */
	bool timed;
	/* Something that the graph does not know may end its wait as well. */
	bool open_ended;
	/* CPU it last ran on, -1 not known. */
	int32_t cpu;
	/* How long it has been in this wait; UINT64_MAX: not known. */
	uint64_t waited_ns;
	/* Run time and times put on a CPU just before the look, to compare two
	 * looks; SLICES is UINT64_MAX when it ran meanwhile. */
	uint64_t run_ns;
	uint64_t slices;
	/* Times put on a CPU after the look, which may have stopped it. */
	uint64_t slices_after;
	/* Of the dump's frames[], innermost first. */
	uint32_t first_frame;
	uint32_t nframes;
	/* Index into those, of the wait's site; NFRAMES when there is none. */
	uint32_t site;
	/* Why the stack ended early, "" when it is whole. */
	uint32_t truncated;
	struct wp_lock lock;
	/* It did not run between two looks. */
	bool still;
	/* Set by wp_graph_build: nothing inside the graph can end its wait. */
	bool stuck;
	/* Set by wp_graph_build: threads that wait for it, directly or through
	 * others. */
	uint32_t waiters;
};

struct wp_dump_process {
	int32_t pid;
	int32_t ppid;
	uint32_t command_line;
	uint32_t user;
	/* "" when the look succeeded, else why not. */
	uint32_t error;
	/* Of threads[]: they lie together. */
	uint32_t first_thread;
	uint32_t nthreads;
	/* Threads that came and went and could not be read. */
	uint32_t nlost;
	/* Whole pause of the look and how many threads were stopped for it. */
	uint64_t pause_ns;
	uint32_t nstopped;
	/* Only looked at because a wait led here: printed with
	 * --follow-processes only. */
	bool is_peer;
	/* It has signal handlers, which may end waits for itself. */
	bool catches_signals;
	/* Set by wp_graph_build: all of its threads are stuck. */
	bool stuck;
};

#define WP_EDGE_KINDS(X)                                                       \
	X(LOCK, "lock")                                                        \
	X(JOIN, "join")                                                        \
	X(FILE_LOCK, "file lock")                                              \
	X(CHILD, "child")                                                      \
	X(PIPE, "pipe")                                                        \
	X(SOCKET, "socket")

enum wp_edge_kind {
#define X(name, text) WP_EDGE_##name,
	WP_EDGE_KINDS(X)
#undef X
		WP_NEDGE_KINDS
};

/* FROM waits for TO.  Several edges from one thread: any of them can end its
 * wait (a pipe that two processes may write to). */
struct wp_edge {
	enum wp_edge_kind kind;
	/* Index of threads[]. */
	uint32_t from;
	/* A thread; UINT32_MAX: any thread of process TO_PROCESS. */
	uint32_t to;
	/* Index of processes[]; UINT32_MAX: one that was not looked at. */
	uint32_t to_process;
	int32_t to_pid;
	/* What is waited on, in words: "mutex 0x55aa", "pipe:[7]", "flock
	 * /var/lib/x.lock", "child". */
	uint32_t what;
};

struct wp_dump {
	struct wp_intern strings;
	/* The ones asked for first, then peers. */
	struct wp_dump_process *processes;
	uint32_t nprocesses, cap_processes;
	struct wp_dump_thread *threads;
	uint32_t nthreads, cap_threads;
	struct wp_dump_frame *frames;
	uint32_t nframes, cap_frames;
	struct wp_edge *edges;
	uint32_t nedges, cap_edges;
	/* Set by wp_graph_build.  Cycles end to end as indices of edges[]:
	 * cycle I is cycle_edges[cycle_first[I]..cycle_first[I + 1]), each edge
	 * going on where the one before it led (to that thread, or to a thread
	 * of that process). */
	uint32_t *cycle_edges;
	uint32_t ncycle_edges, cap_cycle_edges;
	/* ncycles + 1 of them, once built. */
	uint32_t *cycle_first;
	uint32_t ncycles, cap_cycles;
	/* Threads that two or more others wait for, directly or through others,
	 * and that wait for no thread themselves: most waiters first. */
	uint32_t *roots;
	uint32_t nroots, cap_roots;
	/* CLOCK_REALTIME of the look. */
	int64_t time_ns;
	/* Between the two looks; 0: there was one. */
	uint64_t interval_ns;
};

#define WP_DUMP_INIT                                                           \
	{                                                                      \
		.strings = WP_INTERN_INIT                                      \
	}

void wp_dump_clear(struct wp_dump *dump);

/* Each appends a zeroed entry and returns it, valid until the next call, or
 * NULL when there is no memory. */
struct wp_dump_process *wp_dump_add_process(struct wp_dump *dump);
struct wp_dump_thread *wp_dump_add_thread(struct wp_dump *dump);
struct wp_dump_frame *wp_dump_add_frame(struct wp_dump *dump);
struct wp_edge *wp_dump_add_edge(struct wp_dump *dump);

/* The text of string ID; valid until a string is added. */
const char *wp_dump_str(const struct wp_dump *dump, uint32_t id);

/* The index of the process with this number; UINT32_MAX: none. */
uint32_t wp_dump_find_process(const struct wp_dump *dump, int32_t pid);

const char *wp_edge_kind_name(enum wp_edge_kind kind);

/* Find what can never end: set stuck, waiters, cycles and roots from threads
 * and edges (edges of locks and joins are added here from each thread's lock;
 * those of pipes, sockets, children and file locks are there already).
 * Idempotent but for that.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_graph_build(struct wp_dump *dump);

#define WP_VERDICTS(X)                                                           \
	/* Something runs, or what is waited for comes from outside. */          \
	X(HEALTHY, "healthy")                                                    \
	/* A cycle of waits: nothing can end it from inside. */                  \
	X(DEADLOCK, "deadlock")                                                  \
	/* No thread ran between two looks, and a wait is one that another     \
	 * part of the process must end. */ \
	X(NO_PROGRESS, "no progress")

enum wp_verdict {
#define X(name, text) WP_VERDICT_##name,
	WP_VERDICTS(X)
#undef X
		WP_NVERDICTS
};

const char *wp_verdict_name(enum wp_verdict verdict);

/* Judge the processes asked for, after wp_graph_build.  WHY[0..size) says on
 * what it was judged, in one sentence without a full stop.
 *
 * Returns 0; -ESRCH when not one of their threads was read, and WHY says so;
 * -ENOMEM.
 */
WP_MUST_CHECK
int wp_graph_judge(const struct wp_dump *dump, enum wp_verdict *ret, char *why,
		   size_t size);

#endif
