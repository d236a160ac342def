/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - one thread of a target.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_THREAD_H
#define WP_THREAD_H

#include "aside.h"
#include "block_waits.h"
#include "lock_holders.h"
#include "ready_share.h"
#include "sample_result.h"
#include "site_cache.h"
#include "stop_guard.h"
#include "stop_request.h"
#include "thread_files.h"
#include "time_ledger.h"
#include "wait_state.h"
#include "wallprof/call_memory.h"
#include "wallprof/sampler.h"

struct wp_target;

struct wp_thread {
	/* Borrowed. */
	struct wp_target *target;
	pid_t tid;
	/* Index in the profile's threads, and whether others have it too. */
	uint32_t index;
	bool shared;
	/* Counts the threads of the target from 1; never given twice. */
	uint64_t serial;
	/* When it was first watched. */
	uint64_t first_ns;
	/* The target's tick up to which it has been looked at, or is paid as one that did
	 * not move. */
	uint64_t paid_tick;
	/* Its name matches the glob, or one of its names has. */
	bool watched;
	bool was_watched;
	struct wp_thread_files files;
	/* When it began, by its first BPF scan record; 0: it had none. */
	uint64_t began_ns;

	struct wp_time_ledger time;
	struct wp_wait_state wait;
	struct wp_stop_request stop;
	struct wp_stop_guard guard;

	/* The last stack it was seen running with: takes what is still owed
	 * when the thread or the recording ends; UINT32_MAX: none. */
	uint32_t last_running_stack;
	/* That stack was read at the ledger's base: it holds as long as base
	 * does. */
	bool running_stack_holds;
	/* How often it had slept at its first look, if that found it ready to
	 * run; else UINT64_MAX. */
	uint64_t sleeps_before;
	/* Looks that found it waiting, and could not read it before it went on. */
	uint64_t nslipped;
	/* Stops of it, which the kernel counts as sleeps. */
	uint64_t nstops;
	/* Stops that found it running, and those of them at the end of a system call. */
	uint64_t nstops_running;
	uint64_t nstops_at_call;
	/* The last sample was WP_SAMPLE_PUT_OFF. */
	bool put_off;
	struct wp_aside aside;
	/* The stack did not fit in one copy: a stop walks it before it ends. */
	bool walk_in_stop;
	/* Where the last stack that did not fit goes on: the stop copies what is
	 * there, as the walk in it may not get so far; 0: not known. */
	uint64_t other_stack_avma;

	/* Bytes that copies of its stack take, without and with a stop. */
	uint32_t copy_len_waiting;
	uint32_t copy_len_running;
	/* Samples that found it changed; its name is read again at some. */
	uint32_t nsamples;
	/* The target's tick in which its name was read last. */
	uint64_t name_tick;
	/* Its last name by perf records of this tick, if IS_RENAMED; the next such
	 * thread. */
	char new_name[16];
	bool is_renamed;
	struct wp_thread *next_renamed;
	/* NULL until needed; owned. */
	struct wp_site_cache *sites;
	/* Copied with the stack of its last wait; NULL: not asked for.  Owned. */
	struct wp_call_memory *memory;
	/* Of its last look; valid if MEMORY is asked for. */
	struct wp_thread_look look;
	/* It did not move from its sample to the end of the tick's instant:
	 * what is said of all such threads is true of one moment. */
	bool at_instant;
	/* It moved, but at the instant it waited in the same call again, made at the
	 * same place for the same futex. */
	bool waits_again;
	/* Its tid in the program's PID namespace, 0: not known so far. */
	int32_t own_tid;
	/* The profile's entry of the goroutine that the last look at goroutines
	 * found it run, and of the one that its last CPU sample is of; UINT32_MAX:
	 * none. */
	uint32_t goroutine_entry;
	uint32_t cpu_entry;
	struct wp_ready_share ready_share;
	struct wp_thread_waits waits;
	struct wp_thread_locks locks;
};

#endif
