/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h - what a recording found: stacks, threads, states, weights.
 *
 * Layer: profile.  Does not know how a sample was made.
 *
 * While sampling: wp_profile_add_sample, which allocates only for what was
 * never seen.  After sampling: wp_profile_locate turns stacks into locations,
 * the resolver fills their lines, and the writers read.
 */
#ifndef WP_PROFILE_H
#define WP_PROFILE_H

#include "wallprof/err.h"
#include "wallprof/index.h"
#include "wallprof/intern.h"
#include "wallprof/types.h"

/* One executable mapping, once per (range, file); never freed while recording,
 * so that a sample keeps the module it was taken in after a dlclose. */
struct wp_elf_image;

struct wp_profile_mapping {
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	/* String ids; PATH "" for anonymous memory, BUILD_ID in hex or "". */
	uint32_t path;
	uint32_t build_id;
	/* The ELF file that is mapped; borrowed from who samples, NULL for
	 * none.  Only wp_symbolize reads it. */
	struct wp_elf_image *image;
	/* Filled after symbolisation. */
	bool has_functions;
	bool has_filenames;
	bool has_line_numbers;
	bool has_inline_frames;
};

struct wp_profile_thread {
	/* As seen from wallprof's PID namespace; the first's, of several that
	 * share it. */
	int32_t tid;
	/* How many share it beside the first. */
	uint32_t nmore;
	/* String id; the last name it had. */
	uint32_t name;
	/* CLOCK_MONOTONIC, from when until when it was watched. */
	uint64_t first_ns;
	uint64_t last_ns;
	/* CPU time that it used meanwhile, by the scheduler's account. */
	uint64_t cpu_ns;
};

/* An interned stack: frames[first..first + depth) of the pool. */
struct wp_profile_stack {
	uint64_t first;
	uint32_t depth;
	/* enum wp_stack_end. */
	uint8_t end;
	/* Module (mapping id) that the walk ended in, for the message. */
	uint32_t end_mapping;
	/* Set by wp_profile_locate: locs[loc_first..loc_first + nlocs) of the
	 * location pool, innermost first. */
	uint64_t loc_first;
	uint32_t nlocs;
};

/* What tells one sample from another. */
struct wp_sample_key {
	/* Index of stacks[]. */
	uint32_t stack;
	/* Index of threads[]. */
	uint32_t thread;
	/* enum wp_state, enum wp_wait. */
	uint8_t state;
	uint8_t wait;
	/* String id: name of the blocking system call, "" when none. */
	uint16_t syscall;
	/* String id: what is waited on ("fd 7 tcp 127.0.0.1:41234 ->
	 * 127.0.0.1:5432"), "" when not known. */
	uint32_t object;
};

struct wp_profile_sample {
	struct wp_sample_key key;
	/* How often it was seen, and for how long in all.  BLOCK, MUTEX:
	 * waits, and how long they took.  THREADCREATE: threads, and how long
	 * they lived. */
	uint64_t count;
	uint64_t wall_ns;
	/* The same of CPU samples. */
	uint64_t cpu_count;
	uint64_t cpu_ns;
};

/* The samples of one kind of profile. */
struct wp_sample_set {
	struct wp_profile_sample *samples;
	uint32_t nsamples, cap_samples;
	/* Finds a sample by its key. */
	struct wp_index index;
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

/* One distinct address in one mapping, or a frame that is only a text. */
struct wp_profile_location {
	/* Where to look up (return addresses less one); 0 for a text. */
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

/* What was done and what was lost. */
struct wp_counters {
	/* Sampling ticks. */
	uint64_t ticks;
	/* Ticks that came too late and were left out. */
	uint64_t missed_ticks;
	/* Ticks at which all threads were asked by one BPF scan. */
	uint64_t scans;
	/* Samples of threads that had not run since the last. */
	uint64_t unchanged;
	/* Samples of waiting threads read without a stop. */
	uint64_t no_stop;
	/* Samples completed from the wait-site cache. */
	uint64_t cached_site;
	/* Samples taken in a stop window. */
	uint64_t stopped;
	/* Samples whose stack may be incomplete, thread not stopped. */
	uint64_t partial;
	/* Samples without a stack. */
	uint64_t no_stack;
	/* Samples of running threads with the stack of a CPU sample. */
	uint64_t sampled;
	/* CPU samples. */
	uint64_t cpu_samples;
	/* Records of perf events lost. */
	uint64_t cpu_lost;
	/* Stops made, more than one for some stacks. */
	uint64_t stops;
	/* Stops that did not happen in time. */
	uint64_t stops_given_up;
	/* Stops that the kernel refused. */
	uint64_t stops_refused;
	/* Stops left out to keep within --max-stopped. */
	uint64_t stops_over_budget;
	/* System calls restarted after a stop. */
	uint64_t eintr_repaired;
	/* Reads thrown away because the thread moved. */
	uint64_t inconsistent;
	/* Threads watched. */
	uint64_t threads_seen;
	/* Threads that ended before a first sample. */
	uint64_t threads_lost;
	/* Threads that are told by name only, being too many. */
	uint64_t threads_shared;
	/* Samples that could not be taken. */
	uint64_t samples_lost;
	/* Addresses left without a name by a failure. */
	uint64_t unnamed;
	/* Times the memory map was read. */
	uint64_t map_reloads;
	/* Times the target called exec. */
	uint64_t execs;
	/* Samples by why their stack ended; [WP_END_ROOT] is whole stacks. */
	uint64_t ends[WP_NSTACK_ENDS];
	/* The same of those that had not run since the last; threads that have
	 * ended need no stack, and count as whole. */
	uint64_t unchanged_ends[WP_NSTACK_ENDS];
	/* Stop windows, in ns, quantiles taken at the end. */
	uint64_t pause_p50_ns;
	uint64_t pause_p99_ns;
	uint64_t pause_max_ns;
	uint64_t pause_total_ns;
};

/* What samples are of: name. */
#define WP_PROFILE_KINDS(X)                                                    \
	/* Wall clock and CPU time, side by side. */                           \
	X(WALL, "wall")                                                        \
	/* Each thread once. */                                                \
	X(THREADS, "threads")                                                  \
	/* Waits, by the stack that waited. */                                 \
	X(BLOCK, "block")                                                      \
	/* Waits for locks, by the stack that held the lock. */                \
	X(MUTEX, "mutex")                                                      \
	/* Threads, by the stack that created them. */                         \
	X(THREADCREATE, "threadcreate")

enum wp_profile_kind {
#define X(name, text) WP_PROFILE_##name,
	WP_PROFILE_KINDS(X)
#undef X
		WP_NPROFILE_KINDS
};

/* About the whole recording; strings owned by the profile's intern table. */
struct wp_profile_meta {
	int32_t pid;
	uint32_t command_line;
	uint32_t exe;
	/* CLOCK_REALTIME at the first tick, UTC. */
	int64_t time_ns;
	int64_t duration_ns;
	int64_t period_ns;
	/* Mean ticks per second that were really made. */
	double achieved_hz;
	/* "auto", "all" or "never". */
	uint32_t stop_mode;
	/* WALL: which of the two columns there are, and how the second was
	 * made (string id). */
	bool has_wall;
	bool has_cpu;
	uint32_t cpu_source;
	/* How the samples of each other kind were made (string ids), 0 if there
	 * is nothing to say. */
	uint32_t source[WP_NPROFILE_KINDS];
	/* String id: why there was no BPF scan where one was wanted, "" if
	 * there was, or it was not. */
	uint32_t no_scan;
	/* How the target ended ("exited with status 3"), "" while it lives. */
	uint32_t target_end;
	/* String id: why addresses are unnamed ("the symboliser was killed by
	 * signal 11"), "" when none are. */
	uint32_t unnamed_why;
};

struct wp_profile {
	struct wp_intern strings;
	/* mappings[0] is unused, so that ids are indices: [1..nmappings). */
	struct wp_profile_mapping *mappings;
	uint32_t nmappings, cap_mappings;
	struct wp_profile_thread *threads;
	uint32_t nthreads, cap_threads;
	/* The last of them are shared. */
	uint32_t nshared;
	struct wp_frame *frames;
	uint64_t nframes, cap_frames;
	struct wp_profile_stack *stacks;
	uint32_t nstacks, cap_stacks;
	struct wp_sample_set sets[WP_NPROFILE_KINDS];
	struct wp_index stack_index;
	/* After wp_profile_locate. */
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
};

/* Returns 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_profile_init(struct wp_profile *profile);
void wp_profile_clear(struct wp_profile *profile);

/* Each returns the new index, or UINT32_MAX when there is no memory. */
uint32_t wp_profile_add_mapping(struct wp_profile *profile,
				const struct wp_profile_mapping *mapping);
uint32_t wp_profile_add_thread(struct wp_profile *profile,
			       const struct wp_profile_thread *thread);

enum { WP_SHARED_NAMES = 256 };

/* The index of the entry that all threads called NAME share, which is made of
 * THREAD if it is the first; beyond WP_SHARED_NAMES names the others share one
 * entry as well.  No thread is added in the other way after that.  UINT32_MAX
 * when there is no memory. */
uint32_t wp_profile_share_thread(struct wp_profile *profile,
				 const struct wp_profile_thread *thread,
				 const char *name);

/* Threads that were added; by entries that are shared, as many as the counter
 * says. */
uint64_t wp_profile_count_threads(const struct wp_profile *profile);

/* The index of the stack with exactly these frames and end, made if new.
 * END_MAPPING: where the walk stopped.  UINT32_MAX when there is no memory. */
uint32_t wp_profile_add_stack(struct wp_profile *profile,
			      const struct wp_stack *stack,
			      uint32_t end_mapping);

/* Add COUNT and WALL_NS to the sample of KEY in the set of KIND.  Returns 0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_profile_add_sample(struct wp_profile *profile, enum wp_profile_kind kind,
			  const struct wp_sample_key *key, uint64_t count,
			  uint64_t wall_ns);

/* The same for CPU time, in the set of WALL. */
WP_MUST_CHECK
int wp_profile_add_cpu(struct wp_profile *profile,
		       const struct wp_sample_key *key, uint64_t count,
		       uint64_t cpu_ns);

/* Make the CPU samples of each thread add up to its cpu_ns.  A thread that has
 * none gets it on the samples in which it was running or runnable, by their
 * wall time; one that has not even those keeps nothing.  After the last
 * sample. */
void wp_profile_finish_cpu(struct wp_profile *profile);

/* Build locations[] and each stack's list of them.  A stack that did not reach
 * its root ends in a text such as "[truncated: no unwind info in libfoo.so]".
 * Lines are empty for addresses, and done for texts and kernel frames.
 * Returns 0 or -ENOMEM.
 */
WP_MUST_CHECK
int wp_profile_locate(struct wp_profile *profile);

/* The mapping that STACK's walk ended in; WP_MAPPING_NONE where that has nothing
 * to do with its end. */
uint32_t wp_profile_end_mapping(const struct wp_profile *profile,
				const struct wp_profile_stack *stack);

/* Index of the function with these string ids, made if new; UINT32_MAX when
 * there is no memory. */
uint32_t wp_profile_add_function(struct wp_profile *profile,
				 const struct wp_profile_function *function);

/* Append a line to location LOC, whose lines must be the last ones added.
 * Returns 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_profile_add_line(struct wp_profile *profile, uint32_t loc,
			struct wp_profile_line line);

/* The time by which SAMPLE of the set of KIND is ranked: its CPU time in a
 * profile of CPU samples only, else its wall time. */
uint64_t wp_profile_time(const struct wp_profile *profile,
			 enum wp_profile_kind kind,
			 const struct wp_profile_sample *sample);

/* "wall", "threads", ... */
const char *wp_profile_kind_name(enum wp_profile_kind kind);

/* The text of string ID. */
const char *wp_profile_str(const struct wp_profile *profile, uint32_t id);

#endif
