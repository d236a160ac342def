/* SPDX-License-Identifier: Apache-2.0 */
/* instant.c - see instant.h. */
#include "instant.h"

#include <string.h>

#include "target.h"
#include "thread.h"
#include "wallprof/clock.h"
#include "wallprof/hash.h"
#include "wallprof/syscall_nr.h"

enum {
	WORDS_BITS = 6,
	WORDS = 1 << WORDS_BITS,
	/* Where others want the CPU all the time, the last try is taken. */
	TRIES = 4,
};

/* One thread takes some microseconds. */
#define HELD_UP_NS (100 * WP_NS_PER_US)

/* What T waits for, as its sample found it. */
static const struct wp_thread_facts *facts_of(const struct wp_thread *t)
{
	if (t->stop.pending)
		return t->stop.for_registers ? &t->stop.facts : NULL;
	return t->wait.waiting ? &t->wait.facts : NULL;
}

/* Has T, which waits, done so without a break since its sample?  One that was
 * woken and has not had a CPU yet has the same schedstat. */
static bool still_waits(struct wp_thread *t)
{
	struct wp_schedstat now;

	return wp_thread_files_waits(t) &&
	       !wp_thread_files_schedstat(t, &now) &&
	       !wp_time_ledger_has_run(&t->time, &now);
}

static bool is_still(struct wp_thread *t)
{
	return t->stop.pending ? !t->stop.moved :
				 t->wait.waiting && still_waits(t);
}

/* T has moved: does it wait again in the call of its sample, which has a time limit, as one
 * does that wakes each few milliseconds to see whether it still has to wait? */
static bool waits_again(struct wp_thread *t)
{
	const struct wp_wait_state *wait = &t->wait;
	struct wp_proc_syscall call;

	return !t->stop.pending && wait->waiting &&
	       wait->facts.syscall_nr == SYS_futex &&
	       wait->call_nr == SYS_futex && wait->facts.args[3] &&
	       wp_thread_files_call(t, &call) && call.nr == SYS_futex &&
	       call.args[0] == wait->facts.args[0] &&
	       call.sp_avma == wait->call_sp_avma &&
	       call.pc_avma == wait->call_pc_avma;
}

/* The threads whose futex words were read last, by the word's address. */
struct words {
	const struct wp_thread *of[WORDS];
};

/* Does MEMORY begin with the futex word at AVMA?  With one that cannot be read it
 * begins with the stack, which is longer. */
static bool has_word(const struct wp_call_memory *memory, uint64_t avma)
{
	return memory->nparts && memory->parts[0].avma <= avma &&
	       avma - memory->parts[0].avma < memory->parts[0].len &&
	       memory->parts[0].len <= sizeof(memory->lock);
}

/* Read the word that T waits for anew, unless that was done for a thread before: of
 * one moment, who holds a lock is one thread. */
static void read_lock(struct wp_thread *t, struct words *words)
{
	const struct wp_thread_facts *facts = facts_of(t);
	struct wp_call_memory *memory = t->memory;
	const struct wp_thread **of;
	const struct wp_call_memory *first;
	uint32_t len = memory->parts[0].len;

	memory->lock_len = 0;
	if (!facts || facts->syscall_nr != SYS_futex ||
	    !has_word(memory, facts->args[0]))
		return;
	of = &words->of[wp_hash_u64(facts->args[0]) >> (64 - WORDS_BITS)];
	first = *of ? (*of)->memory : NULL;
	if (first && first->parts[0].avma == memory->parts[0].avma &&
	    first->lock_len == len) {
		memcpy(memory->lock, first->lock, len);
	} else {
		if (wp_process_read(t->target->process, memory->parts[0].avma,
				    memory->lock, len) != (ssize_t)len)
			return;
		*of = t;
	}
	memory->lock_len = len;
}

/* T has not moved since its sample: is its memory that of the instant at NOW_NS, too? */
static bool take_lock(struct wp_thread *t, uint64_t now_ns)
{
	const struct wp_thread_facts *facts = facts_of(t);
	struct wp_call_memory *memory = t->memory;

	if (facts && facts->syscall_nr == SYS_futex && !memory->lock_len &&
	    has_word(memory, facts->args[0]))
		return false;
	memcpy(memory->bytes, memory->lock, memory->lock_len);
	memory->time_ns = now_ns;
	return true;
}

/* Did this process lose its CPU since *LAST_NS, which is set to now? */
static bool was_held_up(uint64_t *last_ns)
{
	uint64_t now_ns = wp_clock_ns(), took_ns = now_ns - *last_ns;

	*last_ns = now_ns;
	return took_ns > HELD_UP_NS;
}

/* False: what was read first may be old by the time of what was checked last. */
static bool take_at_once(struct wp_target *target)
{
	uint64_t last_ns = wp_clock_ns(), now_ns;
	struct words words = { { NULL } };
	bool is_at_once = true;

	for (size_t i = 0; i < target->nthreads; i++) {
		if (target->threads[i]->memory)
			read_lock(target->threads[i], &words);
		is_at_once &= !was_held_up(&last_ns);
	}
	now_ns = last_ns;
	for (size_t i = 0; i < target->nthreads; i++) {
		struct wp_thread *t = target->threads[i];

		t->at_instant = is_still(t) &&
				(!t->memory || take_lock(t, now_ns));
		t->waits_again = !t->at_instant && waits_again(t) &&
				 (!t->memory || take_lock(t, now_ns));
		is_at_once &= !was_held_up(&last_ns);
	}
	return is_at_once;
}

void wp_instant_take(struct wp_target *target)
{
	for (int try = 0; try < TRIES && !take_at_once(target); try++)
		;
}
