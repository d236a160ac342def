/* dump.h - one look at every thread of a process, and who waits for whom.
 *
 * Layer: hang.
 *
 * Plain data: src/dump.c takes the look and fills it in, wp_lock_decode says
 * what a futex is and who holds it, wp_graph_build draws the edges and finds
 * cycles, and the writers of src/hang/ print it.  Strings are owned by the
 * dump's intern table unless said otherwise and never NULL.
 */
#ifndef WP_DUMP_H
#define WP_DUMP_H

#include <stdio.h>

#include "wallprof/err.h"
#include "wallprof/intern.h"
#include "wallprof/types.h"

/* What a waiting thread's lock is, as far as memory tells. */
enum wp_lock_kind {
	WP_LOCK_NONE,
	WP_LOCK_MUTEX,
	WP_LOCK_RWLOCK_READ,
	WP_LOCK_RWLOCK_WRITE,
	WP_LOCK_JOIN,
	/* flock(2), fcntl(2) locks. */
	WP_LOCK_FILE,
	/* A futex whose user is not known. */
	WP_LOCK_FUTEX,
};

/* What is known of the holder. */
enum wp_holder {
	/* Nothing holds it, or holding is not what is waited for (a condition
	 * variable, a semaphore). */
	WP_HOLDER_NONE,
	/* The design of this lock records no owner, or what is recorded does
	 * not stand up to checking. */
	WP_HOLDER_NOT_RECORDED,
	/* OWNER_TID, checked: alive, and the lock word agrees. */
	WP_HOLDER_THREAD,
	/* Owner gone without unlocking; OWNER_TID is its number if known. */
	WP_HOLDER_DIED,
	/* A rwlock held by readers: READERS of them, who are not recorded. */
	WP_HOLDER_READERS,
};

struct wp_lock {
	enum wp_lock_kind kind;
	enum wp_holder holder;
	/* Address of the lock object, not of the futex word inside it. */
	uint64_t avma;
	/* As in wallprof's PID namespace. */
	int32_t owner_tid;
	uint32_t readers;
	/* "robust", "PI", "recursive", "error-checking", "adaptive", "" . */
	const char *type;
};

struct wp_dump_frame {
	uint64_t pc_avma;
	/* String ids: function (demangled), file, base name of the module. */
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
	int32_t pid;
	int32_t tid;
	/* String ids. */
	uint32_t name;
	/* "futex", "read", ... of the blocking call; "" when none. */
	uint32_t syscall;
	/* The call with its arguments decoded: "read fd 7 tcp 127.0.0.1:41234
	 * -> 127.0.0.1:5432", "wait4 pid 99 \"child\"", "futex 0x55aa WAIT". */
	uint32_t call;
	/* What a descriptor argument is: kernel object as /proc/PID/fd links
	 * name it, "pipe:[123]", "socket:[456]", a path; "" when none. */
	uint32_t fd_link;
	/* The raw call: number (-1 none) and arguments. */
	long syscall_nr;
	uint64_t args[6];
	enum wp_state state;
	enum wp_wait wait;
	/* CPU it last ran on, -1 not known. */
	int32_t cpu;
	/* How long it has been in this wait; UINT64_MAX: not known. */
	uint64_t waited_ns;
	/* Run time and times put on a CPU, to compare two looks. */
	uint64_t run_ns;
	uint64_t slices;
	/* frames[first_frame..first_frame + nframes) of the dump, innermost
	 * first. */
	uint32_t first_frame;
	uint32_t nframes;
	/* Index into those of the wait's site; NFRAMES when there is none. */
	uint32_t site;
	/* String id: why the stack ended early, "" when it is whole. */
	uint32_t truncated;
	struct wp_lock lock;
	/* After a second look: did not run between the two. */
	bool still;
};

struct wp_dump_process {
	int32_t pid;
	int32_t ppid;
	/* String ids. */
	uint32_t command_line;
	uint32_t user;
	/* "" when the look succeeded, else why not. */
	uint32_t error;
	uint32_t nthreads;
	/* Whole pause of the look and how many threads were stopped for it. */
	uint64_t pause_ns;
	uint32_t nstopped;
};

/* FROM waits for TO. */
enum wp_edge_kind {
	WP_EDGE_LOCK,
	WP_EDGE_JOIN,
	WP_EDGE_FILE_LOCK,
	WP_EDGE_CHILD,
	WP_EDGE_PIPE,
	WP_EDGE_SOCKET,
};

struct wp_edge {
	enum wp_edge_kind kind;
	/* Indices of threads[]. */
	uint32_t from;
	/* A thread, or UINT32_MAX when it is a whole process that is waited
	 * for (any thread of it could end the wait): TO_PID then. */
	uint32_t to;
	int32_t to_pid;
	/* String id: what is waited on, for words ("mutex 0x55aa", "pipe:[7]",
	 * "flock /var/lib/x.lock"). */
	uint32_t what;
};

struct wp_dump {
	struct wp_intern strings;
	struct wp_dump_process *processes;
	uint32_t nprocesses, cap_processes;
	struct wp_dump_thread *threads;
	uint32_t nthreads, cap_threads;
	struct wp_dump_frame *frames;
	uint32_t nframes, cap_frames;
	/* Filled by wp_graph_build. */
	struct wp_edge *edges;
	uint32_t nedges, cap_edges;
	/* Cycles end to end as indices of edges[]: cycle I is
	 * cycle_edges[cycle_first[I]..cycle_first[I + 1]). */
	uint32_t *cycle_edges;
	uint32_t ncycle_edges, cap_cycle_edges;
	uint32_t *cycle_first;
	uint32_t ncycles, cap_cycles;
	/* Threads (indices) that others wait for, directly or through others,
	 * and that wait for nobody: roots of a hang, most waiters first; and how
	 * many wait for each. */
	uint32_t *roots;
	uint32_t *root_waiters;
	uint32_t nroots, cap_roots;
	/* CLOCK_REALTIME of the look. */
	int64_t time_ns;
};

#define WP_DUMP_INIT { .strings = WP_INTERN_INIT }

void wp_dump_clear(struct wp_dump *dump);

/* Each appends a zeroed entry and returns it, valid until the next call, or
 * NULL when there is no memory. */
struct wp_dump_process *wp_dump_add_process(struct wp_dump *dump);
struct wp_dump_thread *wp_dump_add_thread(struct wp_dump *dump);
struct wp_dump_frame *wp_dump_add_frame(struct wp_dump *dump);

const char *wp_dump_str(const struct wp_dump *dump, uint32_t id);

/* What the decoder of locks may ask. */
struct wp_lock_query {
	/* The target's memory, live. */
	struct wp_mem mem;
	/* Is TID, as the target's own PID namespace numbers it, a live thread
	 * of this process?  Its number in ours, or 0. */
	int32_t (*find_thread)(void *ctx, int32_t tid);
	void *ctx;
	/* musl's libc is loaded, not glibc (layouts differ). */
	bool musl;
};

/* Say what THREAD, which waits in futex(2), waits for: its wait (refined by the
 * stack), call arguments and frames are filled in.  Sets THREAD->lock.  Never
 * guesses: see enum wp_holder. */
void wp_lock_decode(struct wp_dump *dump, struct wp_dump_thread *thread,
		    const struct wp_lock_query *query);

/* Ends of pipes and sockets, file locks, children: what crosses processes. */
struct wp_graph_peers {
	/* Processes that hold the other end of what FD_LINK of PID names
	 * ("pipe:[123]": those with the write end when it is read, and the
	 * other way round; "socket:[456]": the peer).  Fills RET[0..max), returns
	 * how many there are, or 0. */
	size_t (*find_peers)(void *ctx, int32_t pid, const char *fd_link,
			     bool reads, int32_t *ret, size_t max);
	/* The process that holds the file lock THREAD waits for, or 0. */
	int32_t (*find_file_lock)(void *ctx, const struct wp_dump_thread *thread);
	void *ctx;
};

/* Draw the edges of DUMP (locks, joins; and by PEERS, which may be NULL, the
 * rest), find every cycle once and the roots.  A pipe that the waiting process
 * itself holds the other end of counts as waiting for its own threads.
 * 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_graph_build(struct wp_dump *dump, const struct wp_graph_peers *peers);

/* What the edges and two looks say (SECOND has still set; NULL: one look). */
enum wp_verdict {
	WP_VERDICT_HEALTHY,
	/* A cycle of waits: nothing can end it from inside. */
	WP_VERDICT_DEADLOCK,
	/* No thread ran between the looks and some wait is one that another
	 * part of the process (or graph) must end. */
	WP_VERDICT_NO_PROGRESS,
};

enum wp_verdict wp_graph_judge(const struct wp_dump *dump, bool two_looks);

struct wp_dump_options {
	/* Identical stacks once, with count and names. */
	bool group;
	/* Wait time by which threads of two looks are marked; 0: one look. */
	uint64_t looks_apart_ns;
	unsigned int width;
};

/* Write DUMP for people; deadlocks first, then the main thread and the rest.
 * Control characters in names are escaped.  0 or -errno of the stream. */
WP_MUST_CHECK
int wp_dump_write_text(const struct wp_dump *dump,
		       const struct wp_dump_options *options, FILE *out);

/* The same as JSON (schema: test/data/dump.schema.json).  Valid UTF-8 always. */
WP_MUST_CHECK
int wp_dump_write_json(const struct wp_dump *dump,
		       const struct wp_dump_options *options, FILE *out);

#endif
