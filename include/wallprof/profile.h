/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h - the result of a recording: stacks, threads, samples, counters.
 *
 * Layer: profile.  Does not know how a sample was made.
 *
 * While sampling, wp_profile_add_sample allocates only for a key that is new, and
 * for the timeline where one is kept.
 * After sampling, wp_profile_locate makes locations of stacks, the resolver fills
 * their lines, and the writers read.
 */
#ifndef WP_PROFILE_H
#define WP_PROFILE_H

#include "wallprof/counters.h"
#include "wallprof/err.h"
#include "wallprof/index.h"
#include "wallprof/intern.h"
#include "wallprof/timeline.h"
#include "wallprof/types.h"

struct wp_elf_image;

/* An executable mapping: one entry per (range, file).  It stays after a dlclose, so
 * that samples keep the module they were taken in. */
struct wp_profile_mapping {
	uint64_t start_avma, end_avma, off;
	/* avma - svma, where there is an IMAGE. */
	uint64_t bias;
	/* String ids; PATH "" for anonymous memory, BUILD_ID in hex or "". */
	uint32_t path;
	uint32_t build_id;
	/* The ELF file that is mapped; borrowed from who samples, NULL for
	 * none.  Only wp_symbolize reads it. */
	struct wp_elf_image *image;
	/* Index in processes[] of the process that it was first seen in. */
	uint32_t process;
	/* Its file is not to be opened, its server is dead; of variables, not code. */
	bool is_lost, is_data;
	/* Filled after symbolisation; why DWARF was not read (enum wp_dwarf_loss). */
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
	uint8_t dwarf_loss;
};

/* A profiler label of goroutines: string ids. */
struct wp_profile_label {
	uint32_t key;
	uint32_t value;
};

/* A process that was recorded. */
struct wp_profile_process {
	/* In wallprof's PID namespace; if processes share the entry, the first
	 * process's. */
	int32_t pid;
	/* Number of processes that share the entry besides the first. */
	uint32_t nmore;
	/* It is one that processes of a name share; what it has may not be told. */
	bool is_shared, is_forgotten;
	/* String id of its last name (comm). */
	uint32_t name;
	/* String ids of its control group, container and unit (cgroup.h) when it was
	 * first seen; "": none, or not known. */
	uint32_t cgroup, container, unit;
};

struct wp_profile_thread {
	/* In wallprof's PID namespace; if threads share the entry, the first
	 * thread's. */
	int32_t tid;
	/* Index of processes[]. */
	uint32_t process;
	/* Number of threads that share the entry besides the first. */
	uint32_t nmore;
	/* The entry is one that threads of a name, or goroutines, share. */
	bool is_shared;
	/* String id of the thread's last name. */
	uint32_t name;
	/* CLOCK_MONOTONIC: begin and end of the time that it was watched. */
	uint64_t first_ns;
	uint64_t last_ns;
	/* CPU time in between, by schedstat. */
	uint64_t cpu_ns;
	/* Bit 1 << kind: it has samples of that kind; set by
	 * wp_profile_add_up. */
	uint32_t kinds;
	/* It waited in its outermost loop all the time; set by wp_idle_mark. */
	bool idle;
	/* PART other than NONE: all goroutines with labels[first_label..first_label +
	 * nlabels), which NAME tells as well, or if GOROUTINE is not 0 that with this
	 * id.  IS_COUNTED: besides NMORE there is a first one. */
	enum wp_goroutine_part part;
	bool is_counted;
	uint64_t goroutine;
	uint32_t first_label;
	uint32_t nlabels;
};

/* An interned stack: its frames have the indices frame_ids[first..first + depth),
 * innermost first. */
struct wp_profile_stack {
	uint64_t first;
	/* Set by wp_profile_locate: its locations are the indices
	 * loc_pool[loc_first..loc_first + nlocs), innermost first. */
	uint64_t loc_first;
	uint32_t depth;
	uint32_t nlocs;
	/* Id of the mapping in which the walk ended. */
	uint32_t end_mapping;
	/* enum wp_stack_end. */
	uint8_t end;
};

/* Samples with the same key are one sample. */
struct wp_sample_key {
	/* Index of stacks[]. */
	uint32_t stack;
	/* Index of threads[]. */
	uint32_t thread;
	/* enum wp_state, enum wp_wait. */
	uint8_t state;
	uint8_t wait;
	/* String id: name of the blocking system call, of WP_WAIT_GO what is
	 * waited for in Go's words; "" when none. */
	uint16_t syscall;
	/* String id: GOROUTINE: of what it waits for, in Go's words.  HEAP: of the
	 * objects' size in bytes.  BLOCK: of who woke it ("main (4711)"); WAKE: of who
	 * was woken.  Else: of what it waits for ("fd 7 tcp 127.0.0.1:5432"), "": not known. */
	uint32_t object;
};

struct wp_profile_sample {
	struct wp_sample_key key;
	/* WALL, THREADS: number of samples, and their wall time.  BLOCK, MUTEX: of
	 * waits, and their time; WAKE: of ended ones.  THREADCREATE: of threads, and
	 * the time that they lived.  HEAP: objects allocated, and their bytes. */
	uint64_t count;
	uint64_t wall_ns;
	/* WALL: number of CPU samples, and their CPU time.  HEAP: objects in
	 * use, and their bytes. */
	uint64_t cpu_count;
	uint64_t cpu_ns;
	/* WALL: the part of WALL_NS that is known exactly, as two looks found the thread
	 * in this wait and it had not run between them; looks divide the rest.  Their
	 * number, and what they and those before without a stack stand for.  HEAP: WEIGHT_NS
	 * is the variance, over meta.heap_period, of the bytes shown (LOOKS: in use). */
	uint64_t exact_ns;
	uint64_t looks;
	uint64_t weight_ns;
};

/* The samples of one kind of profile. */
struct wp_sample_set {
	struct wp_profile_sample *samples;
	uint32_t nsamples, cap_samples;
	/* Samples that were taken of the budget. */
	uint32_t npaid;
	/* By key. */
	struct wp_index index;
};

/* A quantity of which each sample has a part. */
struct wp_profile_measure {
	/* "wall time", "CPU time" (where none was recorded: wall time in state
	 * running), "delay", "threads", "goroutines" or "bytes". */
	const char *name;
	/* Of all samples, and of those whose stack ended so; an exiting thread
	 * and a worker of the kernel's need no stack, and count as WP_END_ROOT. */
	uint64_t all;
	uint64_t ends[WP_NSTACK_ENDS];
};

/* What the samples of one kind add up to: the only source of such numbers for
 * messages, reports and files. */
struct wp_profile_sums {
	/* The sums of the same fields of the samples. */
	uint64_t count;
	uint64_t wall_ns;
	uint64_t cpu_count;
	uint64_t cpu_ns;
	/* Threads that have a sample. */
	uint64_t threads;
	/* measures[0..nmeasures) */
	struct wp_profile_measure measures[2];
	unsigned int nmeasures;
};

struct wp_profile_function {
	/* String ids. */
	uint32_t name;
	uint32_t system_name;
	uint32_t file;
	uint32_t start_line;
};

struct wp_profile_line {
	/* Index of functions[]. */
	uint32_t function;
	uint32_t line;
};

/* An address in a mapping, or a text that stands in place of a frame. */
struct wp_profile_location {
	/* The address to look up (a return address less one); 0 for a text. */
	uint64_t avma;
	/* WP_MAPPING_NONE for a text, WP_MAPPING_KERNEL for kernel code. */
	uint32_t mapping;
	/* String id of the text; 0 for an address. */
	uint32_t text;
	/* The frame was found without unwind info. */
	bool guessed;
	/* Filled after symbolisation: lines[line_first..+nlines), innermost
	 * inlined first.  A text has one line too. */
	uint32_t line_first;
	uint32_t nlines;
};

/* Kinds of profile: name, text. */
#define WP_PROFILE_KINDS(X)                                                    \
	/* Wall time and CPU time, side by side. */                            \
	X(WALL, "wall")                                                        \
	/* Each thread once. */                                                \
	X(THREADS, "threads")                                                  \
	/* Waits, by the stack that waited. */                                 \
	X(BLOCK, "block")                                                      \
	/* Waits for locks, by the stack that held the lock. */                \
	X(MUTEX, "mutex")                                                      \
	/* Threads, by the stack that created them. */                         \
	X(THREADCREATE, "threadcreate")                                        \
	/* Each goroutine once. */                                             \
	X(GOROUTINE, "goroutine")                                              \
	/* Objects on the heap, by the stack that allocated them. */           \
	X(HEAP, "heap")                                                        \
	/* Wakes, by the stack of the thread that woke another. */             \
	X(WAKE, "wake")

enum wp_profile_kind {
#define X(name, text) WP_PROFILE_##name,
	WP_PROFILE_KINDS(X)
#undef X
		WP_NPROFILE_KINDS
};

/* Facts about the whole recording. */
struct wp_profile_meta {
	int32_t pid;
	uint32_t command_line;
	uint32_t exe;
	/* CLOCK_REALTIME at the first tick, UTC. */
	int64_t time_ns;
	int64_t duration_ns;
	/* CPU time of our own in DURATION_NS; 0: not known. */
	uint64_t own_cpu_ns;
	int64_t period_ns;
	/* Ticks per second that were made, on average. */
	double achieved_hz;
	/* Several processes were recorded, however few are left of them. */
	bool is_of_many;
	/* "auto", "all" or "never". */
	uint32_t stop_mode;
	/* WALL: the samples are of goroutines; those of single ones are labelled
	 * with their ids. */
	bool is_of_goroutines, has_goroutine_ids;
	/* WALL: wall time was recorded; CPU time was recorded; string id of how
	 * CPU time was measured. */
	bool has_wall, has_cpu;
	uint32_t cpu_source;
	/* String ids of how samples of each other kind were made; 0: nothing to say. */
	uint32_t source[WP_NPROFILE_KINDS];
	/* HEAP: bytes that one sampled object stands for, on average. */
	int64_t heap_period;
	/* HEAP: all that was allocated is shown by default, not what is in use; or it is
	 * a census of what is, and who allocated is not known. */
	bool is_of_allocations, is_census;
	/* HEAP: what is in use was allocated in this time; 0: in all of it. */
	uint64_t leaks_ns;
	/* HEAP: what was freed is known for this time only; 0: for all of it. */
	uint64_t watched_ns;
	/* String id of why BPF scans were wanted and not made; "": none. */
	uint32_t no_scan;
	/* String id of how the target ended ("exited with status 3"); "": it lives. */
	uint32_t target_end;
	/* String id of which cgroup had no CPU time left, and how often; "": none. */
	uint32_t throttled;
	/* The profile was read from a file; as samples of this kind, WALL for all but
	 * delays; with string ids of what values of others are ("inuse_space", "bytes"; 0:
	 * as the kind says); no sample has a state. */
	bool was_read, stateless;
	enum wp_profile_kind read_kind;
	uint32_t value_type, value_unit;
	/* String id of the reason why addresses have no name ("the symboliser
	 * was killed by signal 11"); "": none. */
	uint32_t unnamed_why;
	/* String id of why servers were not asked for all debug files; "": they were. */
	uint32_t no_servers;
	/* String id of which file was the first of files_lineless, and why. */
	uint32_t lineless_why;
	/* Time that servers of debug files may take, 0: they are not asked. */
	uint64_t servers_ns;
	/* Use names that were kept, and keep those of this time. */
	bool keeps_names;
};

/* Names whose threads, or processes, share an entry. */
enum { WP_SHARED_NAMES = 256 };

struct wp_profile {
	struct wp_intern strings;
	/* mappings[0] is unused, so that ids are indices: [1..nmappings). */
	struct wp_profile_mapping *mappings;
	uint32_t nmappings, cap_mappings;
	/* Of a profile that was read without labels of processes: none. */
	struct wp_profile_process *processes;
	uint32_t nprocesses, cap_processes;
	/* shared_processes[0..nshared_processes): the entries that processes of one name
	 * share. */
	uint32_t shared_processes[WP_SHARED_NAMES + 1];
	uint32_t nshared_processes;
	struct wp_profile_thread *threads;
	uint32_t nthreads, cap_threads;
	struct wp_profile_label *labels;
	uint32_t nlabels, cap_labels;
	/* shared[0..nshared): the entries that threads of one name share; owned. */
	uint32_t *shared;
	uint32_t nshared, cap_shared;
	/* Each distinct frame once: a program has far fewer than its stacks. */
	struct wp_frame *frames;
	uint32_t nframes, cap_frames;
	struct wp_index frame_index;
	uint32_t *frame_ids;
	uint64_t nframe_ids, cap_frame_ids;
	struct wp_profile_stack *stacks;
	uint32_t nstacks, cap_stacks;
	struct wp_sample_set sets[WP_NPROFILE_KINDS];
	/* By kind; see wp_profile_add_up. */
	struct wp_profile_sums sums[WP_NPROFILE_KINDS];
	struct wp_index stack_index;
	/* The samples of WALL in order of time, but of threads that share an
	 * entry; empty unless started. */
	struct wp_timeline timeline;
	/* After wp_profile_locate, of the first NLOCATED stacks. */
	uint32_t nlocated;
	struct wp_profile_location *locations;
	uint32_t nlocations, cap_locations;
	uint32_t *loc_pool;
	uint64_t nloc_pool, cap_loc_pool;
	struct wp_profile_line *lines;
	uint32_t nlines, cap_lines;
	struct wp_profile_function *functions;
	uint32_t nfunctions, cap_functions;
	struct wp_index function_index;

	struct wp_counters counters;
	struct wp_profile_meta meta;
	/* Of a profile that was read: ids of its comments, as counters; owned. */
	uint32_t *comments;
	uint32_t ncomments, cap_comments;
};

/* Returns 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_profile_init(struct wp_profile *profile);
void wp_profile_clear(struct wp_profile *profile);

/* Frame I of STACK, from 0 for the innermost; valid until a stack is added. */
static inline const struct wp_frame *
wp_profile_frame(const struct wp_profile *profile,
		 const struct wp_profile_stack *stack, uint32_t i)
{
	return &profile->frames[profile->frame_ids[stack->first + i]];
}

/* Each returns the new index, or UINT32_MAX when there is no memory. */
uint32_t wp_profile_add_mapping(struct wp_profile *profile,
				const struct wp_profile_mapping *mapping);
uint32_t wp_profile_add_thread(struct wp_profile *profile,
			       const struct wp_profile_thread *thread);
uint32_t wp_profile_add_process(struct wp_profile *profile,
				const struct wp_profile_process *process);

/* Were several processes recorded? */
bool wp_profile_is_of_many(const struct wp_profile *profile);

/* The process of THREAD, an entry of threads[]; NULL: none is known. */
const struct wp_profile_process *
wp_profile_process_of(const struct wp_profile *profile,
		      const struct wp_profile_thread *thread);

/* Find, or make of THREAD, the entry that all threads called NAME of processes of one
 * name share; beyond WP_SHARED_NAMES names, all others of these share one entry.  The
 * entry's index, or UINT32_MAX when there is no memory. */
uint32_t wp_profile_share_thread(struct wp_profile *profile,
				 const struct wp_profile_thread *thread,
				 const char *name);

/* Set TEXT to the names of PROFILE's threads, each once: "main, worker-0, ...". */
void wp_profile_list_names(const struct wp_profile *profile, char *text,
			   size_t size);

/* Find or add the stack with exactly these frames and end; END_MAPPING is the id
 * of the mapping in which the walk ended.  Its index, or UINT32_MAX when there is
 * no memory. */
uint32_t wp_profile_add_stack(struct wp_profile *profile,
			      const struct wp_stack *stack,
			      uint32_t end_mapping);

/* Count a stack without memory for it: the index of what stands for all, or UINT32_MAX. */
uint32_t wp_profile_drop_stack(struct wp_profile *profile);

/* Add COUNT and WALL_NS to the sample of KEY in the set of KIND, and of WALL to the
 * timeline of KEY's thread; past --max-memory, to that of its thread, state and wait with
 * the stack "[dropped: memory]" if KEY has none yet.  Returns 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_profile_add_sample(struct wp_profile *profile, enum wp_profile_kind kind,
			  const struct wp_sample_key *key, uint64_t count,
			  uint64_t wall_ns);

/* The same, without a search of the set if *HINT is the index of KEY's sample; any
 * other value does no harm.  *HINT is set to the index of the sample that got it. */
WP_MUST_CHECK
int wp_profile_add_sample_hinted(struct wp_profile *profile,
				 enum wp_profile_kind kind,
				 const struct wp_sample_key *key,
				 uint32_t *hint, uint64_t count,
				 uint64_t wall_ns);

/* Take NS, as much of it as was added last, from sample I of KIND: of its time, and
 * of what is known exactly of that. */
void wp_profile_take_back(struct wp_profile *profile, enum wp_profile_kind kind,
			  uint32_t i, uint64_t ns);

/* THREAD was not watched for NS, a gap in its timeline.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_profile_add_unwatched(struct wp_profile *profile, uint32_t thread,
			     uint64_t ns);

/* Add COUNT CPU samples and CPU_NS to KEY's sample in the set of WALL.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_profile_add_cpu(struct wp_profile *profile,
		       const struct wp_sample_key *key, uint64_t count,
		       uint64_t cpu_ns);

/* After the last sample: scale the CPU samples of each thread so that they add up
 * to the thread's cpu_ns.  A thread without CPU samples gets its CPU time on its
 * running and runnable samples, in proportion to their wall time; a thread without
 * those gets none. */
void wp_profile_finish_cpu(struct wp_profile *profile);

/* Is SAMPLE in the file of KIND?  A thread that was seen for no time is no
 * sample. */
bool wp_profile_is_sample(const struct wp_profile *profile,
			  enum wp_profile_kind kind,
			  const struct wp_profile_sample *sample);

/* After that: fill the sums of each kind. */
void wp_profile_add_up(struct wp_profile *profile);

/* After that: divide the time of each thread in each state anew over its samples.
 * What is known exactly stays.  The rest of its waiting time goes to its waits in
 * proportion to the weights of the looks that found them; its running time to its
 * stacks in proportion to their CPU samples, or if it has none, or BY_LOOKS, to the
 * weights of looks.  No sum over a thread and a state changes, and the timeline still
 * agrees with the samples. */
void wp_profile_divide_wall(struct wp_profile *profile, bool by_looks);

/* Make locations[] and each stack's list of them.  A stack that does not reach its
 * root ends in a text such as "[truncated: no unwind info in libfoo.so]".  Texts
 * and kernel frames get their line; lines of addresses are the resolver's.
 * Returns 0 or -ENOMEM.
 */
WP_MUST_CHECK
int wp_profile_locate(struct wp_profile *profile);

/* The mapping that STACK's walk ended in; WP_MAPPING_NONE: it has nothing to do with that. */
uint32_t wp_profile_end_mapping(const struct wp_profile *profile,
				const struct wp_profile_stack *stack);

/* Find or add the function with these string ids.  Its index; UINT32_MAX: no memory. */
uint32_t wp_profile_add_function(struct wp_profile *profile,
				 const struct wp_profile_function *function);

/* Append a line to location LOC, whose lines were the last ones added.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_profile_add_line(struct wp_profile *profile, uint32_t loc,
			struct wp_profile_line line);

/* The time by which SAMPLE of the set of KIND is ranked: its CPU time in a
 * profile of CPU samples only, else its wall time.  HEAP: the bytes of it that are in
 * use, or that were allocated (meta.is_of_allocations). */
uint64_t wp_profile_time(const struct wp_profile *profile,
			 enum wp_profile_kind kind,
			 const struct wp_profile_sample *sample);
/* The same of all samples of KIND, after wp_profile_add_up. */
uint64_t wp_profile_total(const struct wp_profile *profile,
			  enum wp_profile_kind kind);

/* "wall", "threads", ...; the text of string ID. */
const char *wp_profile_kind_name(enum wp_profile_kind kind);
const char *wp_profile_str(const struct wp_profile *profile, uint32_t id);

#endif
