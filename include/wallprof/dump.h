/* SPDX-License-Identifier: Apache-2.0 */
/* dump.h - the threads of some processes at one moment, and what each waits for.
 *
 * Layer: hang.
 *
 * Plain data: wp_snapshot_add fills it in, wp_graph_build adds what can never
 * end, the writers of wallprof/output.h print it.  A string is an id of the
 * dump's own table, 0 for "".
 */
#ifndef WP_DUMP_H
#define WP_DUMP_H

#include "wallprof/err.h"
#include "wallprof/hold.h"
#include "wallprof/intern.h"
#include "wallprof/lock.h"
#include "wallprof/types.h"

struct wp_dump_frame {
	uint64_t pc_avma;
	/* String ids: the function, demangled and as in the file; the source
	 * file; the base name of the module. */
	uint32_t function;
	uint32_t system_name;
	uint32_t file;
	uint32_t module;
	uint32_t line;
	/* Of a Go program: how far its pc is behind the start of its function;
	 * 0: not known, or inlined. */
	uint32_t go_off;
	bool inlined;
	bool kernel;
	/* Found without unwind info. */
	bool guessed;
};

/* The system call that a thread sleeps in. */
struct wp_dump_call {
	/* Its number; -1: none. */
	long nr;
	uint64_t args[6];
	/* String id: the call and its arguments in words, "read fd 7 tcp
	 * 127.0.0.1:41234 -> 127.0.0.1:5432", "wait4 pid 99 \"child\"". */
	uint32_t text;
	/* It may return after a time of its own. */
	bool timed;
};

struct wp_dump_stack {
	/* frames[first_frame..first_frame + nframes) of the dump, innermost
	 * first. */
	uint32_t first_frame;
	uint32_t nframes;
	/* Which of these is the wait's site; NFRAMES: there is none. */
	uint32_t site;
	/* Why the walk ended, and a string id: base name of the module that it
	 * ended in, "" where that tells nothing. */
	enum wp_stack_end end;
	uint32_t end_module;
};

/* What the scheduler says of a thread. */
struct wp_dump_times {
	/* CPU it last ran on; -1: not known. */
	int32_t cpu;
	/* It ran at no time between two snapshots. */
	bool still;
	/* How long it has been in its wait; UINT64_MAX: not known. */
	uint64_t waited_ns;
	/* Run time and timeslices of schedstat just before the thread was
	 * sampled; SLICES is UINT64_MAX if it ran between the two. */
	uint64_t run_ns;
	uint64_t slices;
	/* Timeslices at its sample, before WAS_STOPPED, a stop for it; with that,
	 * how often it had gone to sleep, UINT64_MAX where that is not known. */
	uint64_t slices_at;
	uint64_t sleeps_at;
	bool was_stopped;
	/* Timeslices after it was sampled, for which it may have been stopped. */
	uint64_t slices_after;
};

struct wp_dump_thread {
	/* Index of processes[]. */
	uint32_t process;
	int32_t tid;
	/* String id. */
	uint32_t name;
	enum wp_state state;
	enum wp_wait wait;
	struct wp_dump_call call;
	struct wp_dump_stack stack;
	struct wp_dump_times times;
	struct wp_lock lock;
	/* String id: the variable that LOCK is, or is in ("queue+8"); "": not
	 * known. */
	uint32_t variable;
	/* It ran while other threads were sampled: what is said of it is of
	 * another moment than what is said of them. */
	bool moved;
	/* Something that the graph does not know may end its wait as well. */
	bool open_ended;
	/* Set by wp_graph_build: no thread of the dump can end its wait, and
	 * how many threads wait for it, directly or through others. */
	bool stuck;
	uint32_t waiters;
};

#define WP_DUMP_THREAD_INIT                                                    \
	((struct wp_dump_thread){                                              \
		.call.nr = -1,                                                 \
		.times = { .cpu = -1, .waited_ns = UINT64_MAX },               \
		.lock.type = "",                                               \
	})

/* A goroutine of a Go program. */
struct wp_dump_goroutine {
	uint64_t id;
	/* Which one created it; 0: not known. */
	uint64_t parent_id;
	/* String ids, in Go's words: its state ("waiting"), and what it waits
	 * for ("chan receive"), "" where it does not. */
	uint32_t state;
	uint32_t reason;
	/* How long it has waited at most; UINT64_MAX: not known. */
	uint64_t waited_ns;
	/* The thread that runs it or is in its system call; that it is locked
	 * to; 0: none. */
	int32_t tid;
	int32_t locked_tid;
	/* labels[first_label..first_label + nlabels) of the dump, by key. */
	uint32_t first_label;
	uint32_t nlabels;
	/* What it waits for: waits[first_wait..first_wait + nwaits) of the dump, any
	 * one of them. */
	uint32_t first_wait;
	uint32_t nwaits;
	/* Of one that runs on a thread of the dump, that thread's. */
	struct wp_dump_stack stack;
	/* Its only frame, if any, created it. */
	struct wp_dump_stack created;
};

/* A profiler label of goroutines: string ids. */
struct wp_dump_label {
	uint32_t key;
	uint32_t value;
};

/* What a goroutine waits for. */
struct wp_dump_wait {
	/* String ids: "channel", "sync.Mutex", "fd", ...; what of it is known
	 * besides: "unbuffered", "locked", "tcp 127.0.0.1:80 -> 127.0.0.1:4711, to
	 * read". */
	uint32_t kind;
	uint32_t text;
	/* Where it is; 0: it is a descriptor. */
	uint64_t avma;
	int32_t fd;
	/* Of a channel: it is a timer's, or like one; its values, and how many it has
	 * room for. */
	bool is_channel;
	bool is_timers;
	bool may_be_timers;
	uint64_t len;
	uint64_t cap;
};

struct wp_dump_process {
	int32_t pid;
	int32_t ppid;
	/* String ids. */
	uint32_t command_line;
	uint32_t user;
	/* String id: why it could not be read; "" if it could. */
	uint32_t error;
	/* threads[first_thread..first_thread + nthreads). */
	uint32_t first_thread;
	uint32_t nthreads;
	/* Threads that came and went unread. */
	uint32_t nlost;
	/* Threads that were not asked for by their names, and not read. */
	uint32_t nunchosen;
	/* How long its threads were stopped in all, and how many were. */
	uint64_t pause_ns;
	uint32_t nstopped;
	/* String ids: which Go built it ("go1.22.3"), "" if none did; why its
	 * goroutines could not be read, "" if they could. */
	uint32_t go_version;
	uint32_t go_error;
	/* goroutines[first_goroutine..first_goroutine + ngoroutines). */
	uint32_t first_goroutine;
	uint32_t ngoroutines;
	/* Goroutines that were not read, at the look of the most. */
	uint64_t nlost_goroutines;
	/* Of two looks.  A group of goroutines of which none has run or ended,
	 * and which has got more: index of one plus 1, 0: there is none; how many
	 * there were and are. */
	uint32_t grown;
	uint32_t nbefore;
	uint32_t nafter;
	/* That group may be a queue: older ones of it have ended. */
	bool grown_is_queue;
	/* None of its NOWN_GOROUTINES, those of Go's runtime left out, has run,
	 * and each waits for what another must do; or waits for signals. */
	bool goroutines_wait_inside;
	bool goroutines_take_signals;
	uint32_t nown_goroutines;
	/* What holds it up, whatever its threads wait for. */
	enum wp_hold hold;
	/* It was read only because a wait led there. */
	bool is_peer;
	/* It has signal handlers, which may end its waits. */
	bool catches_signals;
	/* One for SIGALRM, by which alarm(2) ends any call after a time, or for the
	 * signal of a timer that it has (timer_create(2)). */
	bool catches_alarm;
	/* One for SIGCHLD. */
	bool catches_child;
	/* One for another signal than SIGINT. */
	bool catches_more;
	/* Another process has its memory (CLONE_VM), and may end any wait that its own
	 * threads could. */
	bool shares_memory;
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

/* FROM waits for TO.  A thread with several edges waits for any one of them: a
 * pipe that two processes may write to. */
struct wp_edge {
	enum wp_edge_kind kind;
	/* Index of threads[]. */
	uint32_t from;
	/* Index of threads[]; UINT32_MAX: any thread of TO_PROCESS. */
	uint32_t to;
	/* Index of processes[]; UINT32_MAX: not in the dump. */
	uint32_t to_process;
	int32_t to_pid;
	/* String id, for people: "mutex 0x55aa", "pipe:[7]", "FLOCK lock on
	 * /var/lib/x.lock", "child". */
	uint32_t what;
};

struct wp_dump {
	struct wp_intern strings;
	/* Those asked for first, then peers; all arrays are owned. */
	struct wp_dump_process *processes;
	uint32_t nprocesses, cap_processes;
	struct wp_dump_thread *threads;
	uint32_t nthreads, cap_threads;
	struct wp_dump_goroutine *goroutines;
	uint32_t ngoroutines, cap_goroutines;
	struct wp_dump_label *labels;
	uint32_t nlabels, cap_labels;
	struct wp_dump_wait *waits;
	uint32_t nwaits, cap_waits;
	struct wp_dump_frame *frames;
	uint32_t nframes, cap_frames;
	struct wp_edge *edges;
	uint32_t nedges, cap_edges;
	/* Set by wp_graph_build: cycle I is the edges cycle_edges[cycle_first[I]
	 * ..cycle_first[I + 1]), each of which starts from the thread, or from a
	 * thread of the process, that the one before leads to. */
	uint32_t *cycle_edges;
	uint32_t ncycle_edges, cap_cycle_edges;
	/* ncycles + 1 of them once built. */
	uint32_t *cycle_first;
	uint32_t ncycles, cap_cycles;
	/* Set by wp_graph_build: threads that two or more others wait for and
	 * that wait for no thread themselves, most waiters first. */
	uint32_t *roots;
	uint32_t nroots, cap_roots;
	/* What its goroutines have taken of the budget. */
	uint64_t taken;
	/* CLOCK_REALTIME when the threads were sampled. */
	int64_t time_ns;
	/* Time between the two snapshots; 0: there was one. */
	uint64_t interval_ns;
};

#define WP_DUMP_INIT                                                           \
	{                                                                      \
		.strings = WP_INTERN_INIT                                      \
	}

void wp_dump_clear(struct wp_dump *dump);

/* Each appends an entry without content and returns it, valid until the next
 * call; NULL: no memory. */
struct wp_dump_process *wp_dump_add_process(struct wp_dump *dump);
struct wp_dump_thread *wp_dump_add_thread(struct wp_dump *dump);
struct wp_dump_goroutine *wp_dump_add_goroutine(struct wp_dump *dump);
struct wp_dump_label *wp_dump_add_label(struct wp_dump *dump);
struct wp_dump_wait *wp_dump_add_wait(struct wp_dump *dump);
struct wp_dump_frame *wp_dump_add_frame(struct wp_dump *dump);
struct wp_edge *wp_dump_add_edge(struct wp_dump *dump);

/* The text of string ID, valid until a string is added. */
const char *wp_dump_str(const struct wp_dump *dump, uint32_t id);

/* Is WAIT, a goroutine's, for a lock of Go's library? */
bool wp_dump_is_lock(const struct wp_dump *dump,
		     const struct wp_dump_wait *wait);

/* The index of process PID; UINT32_MAX: not in the dump. */
uint32_t wp_dump_find_process(const struct wp_dump *dump, int32_t pid);

/* The indices of all threads by tid, which the caller frees; NULL: no memory. */
uint32_t *wp_dump_sort_tids(const struct wp_dump *dump);
/* For qsort_r(3): indices of threads by tid. */
int wp_dump_compare_tids(const void *a, const void *b, void *dump);
/* The index of thread TID, BY_TID being as sorted above; UINT32_MAX: none. */
uint32_t wp_dump_find_tid(const struct wp_dump *dump, const uint32_t *by_tid,
			  int32_t tid);

/* Element I of cycle_edges[]. */
static inline const struct wp_edge *
wp_dump_cycle_edge(const struct wp_dump *dump, uint32_t i)
{
	return &dump->edges[dump->cycle_edges[i]];
}

enum { WP_DUMP_CUT_MAX = 384 };

/* Set BUF to why STACK is cut, "no unwind info in libfoo.so", or to "" if it is
 * whole; returns BUF. */
const char *wp_dump_cut_text(const struct wp_dump *dump,
			     const struct wp_dump_stack *stack,
			     char buf[WP_DUMP_CUT_MAX]);

/* The walk of STACK ended before the thread's first function. */
static inline bool wp_dump_is_cut(const struct wp_dump_stack *stack)
{
	return stack->end != WP_END_ROOT && stack->end != WP_END_EMPTY &&
	       stack->end != WP_END_WORKER;
}

const char *wp_dump_edge_name(enum wp_edge_kind kind);

#endif
