/* SPDX-License-Identifier: Apache-2.0 */
/* lock_holders.c - waits for locks, by the stack that held the lock: see
 * lock_holders.h.
 *
 * At each tick, the time that a thread has waited for a lock is charged to the
 * thread that the lock records as its holder, with the holder's stack at this tick.
 * A running holder is stopped for its stack.
 */
#include "lock_holders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "threads.h"
#include "wallprof/lock.h"

/* Arguments of futex(2) that tell a lock: the word's address, operation and value. */
enum { LOCK_ARGS = 3 };

struct wp_lock_holders {
	/* Number of PID namespaces from wallprof's down to the target's. */
	int level;
	/* The lock that was decoded last, at which tick, and its holder's tid, 0: none.
	 * Where a thousand threads wait for one lock it is read once. */
	uint64_t tick;
	uint64_t args[LOCK_ARGS];
	pid_t holder;
};

/* The tid that thread TID has in its own PID namespace, *RET_LEVEL namespaces below
 * wallprof's; 0: not known. */
static pid_t read_ns_tid(const struct wp_target *target, pid_t tid,
			 int *ret_level)
{
	int32_t pids[WP_PID_LEVELS];
	char path[32];
	int n;

	snprintf(path, sizeof(path), "%d/status", tid);
	n = wp_proc_nspid_read(pids, target->process->task_fd, path);
	*ret_level = n > 0 ? n - 1 : 0;
	return n > 0 ? pids[n - 1] : 0;
}

int wp_lock_holders_open(struct wp_target *target)
{
	static const char how[] =
		"from wall-clock samples: the time that threads waited for a "
		"lock goes to the thread that the lock names as its holder, a "
		"wait counts when it is first seen";
	struct wp_lock_holders *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	read_ns_tid(target, target->process->pid, &m->level);
	target->lock_holders = m;
	target->profile->meta.source[WP_PROFILE_MUTEX] = wp_intern_add_str(
		&target->profile->strings, how);
	return 0;
}

/* For the timeline alone, the holder of a lock that a thread still waits for is read
 * again so seldom: a thousand idle threads cost little. */
enum { UNCHANGED_TICKS = 16 };

/* The thread that has tid OWN in the target's PID namespace; NULL: none. */
static struct wp_thread *find_by_ns_tid(struct wp_target *target, pid_t own)
{
	int level;

	if (!target->lock_holders->level)
		return wp_threads_find(target, own);
	for (size_t i = 0; i < target->nthreads; i++) {
		struct wp_thread *t = target->threads[i];

		if (!t->locks.ns_tid)
			t->locks.ns_tid = read_ns_tid(target, t->tid, &level);
		if (t->locks.ns_tid == own)
			return t;
	}
	return NULL;
}

static int32_t find_thread(void *ctx, int32_t own)
{
	const struct wp_thread *t = find_by_ns_tid(ctx, own);

	return t ? t->tid : 0;
}

static enum wp_mem_result read_memory(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	const struct wp_target *target = ctx;

	return wp_process_read(target->process, avma, buf, len) ==
			       (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

/* The tid of the holder of the lock that T waits for; 0: the lock does not record it, or
 * T waits for something else. */
static pid_t read_holder(struct wp_target *target, const struct wp_thread *t)
{
	const struct wp_lock_query query = {
		.mem = { read_memory, target },
		.is_32bit = target->space.is_32bit,
		.find_thread = find_thread,
		.ctx = target,
	};
	const struct wp_lock_wait wait = {
		.syscall_nr = t->wait.facts.syscall_nr,
		.args = t->wait.facts.args,
		.wait = WP_WAIT_FUTEX,
	};
	struct wp_lock_answer answer;

	wp_lock_decode(&wait, &query, &answer);
	if (answer.lock.kind == WP_LOCK_JOIN ||
	    answer.lock.holder != WP_HOLDER_THREAD)
		return 0;
	return answer.lock.owner_tid;
}

/* The thread that holds the lock; NULL: it is not known. */
static struct wp_thread *find_holder(struct wp_target *target,
				     const struct wp_thread *t)
{
	struct wp_lock_holders *m = target->lock_holders;

	if (m->tick != target->tick ||
	    memcmp(m->args, t->wait.facts.args, sizeof(m->args)) != 0) {
		m->holder = read_holder(target, t);
		m->tick = target->tick;
		memcpy(m->args, t->wait.facts.args, sizeof(m->args));
	}
	return m->holder ? wp_threads_find(target, m->holder) : NULL;
}

/* Add the stack with index ID, ended by a text that says that it is the waiter's. */
static uint32_t waiter_stack(struct wp_target *target, uint32_t id)
{
	const struct wp_profile_stack *from = &target->profile->stacks[id];
	struct wp_stack stack = {
		.frames = target->loop->frame_room,
		.depth = from->depth,
		.end = WP_END_HOLDER,
	};

	for (uint32_t i = 0; i < from->depth; i++)
		stack.frames[i] = *wp_profile_frame(target->profile, from, i);
	return wp_profile_add_stack(target->profile, &stack, WP_MAPPING_NONE);
}

static int charge_waiter(struct wp_target *target, const struct wp_thread *t)
{
	struct wp_sample_key key = t->wait.key;

	key.object = 0;
	key.stack = waiter_stack(target, t->wait.key.stack);
	return key.stack == UINT32_MAX ?
		       -ENOMEM :
		       wp_profile_add_sample(target->profile, WP_PROFILE_MUTEX,
					     &key, !t->locks.same,
					     t->locks.wait_ns);
}

int wp_lock_holders_charge(struct wp_thread *t, const struct wp_sample_key *key)
{
	struct wp_payment payment = wp_time_ledger_pay_lock(&t->time);
	struct wp_sample_key own = *key;

	if (!payment.ns && !payment.count)
		return 0;
	own.object = 0;
	return wp_profile_add_sample(t->target->profile, WP_PROFILE_MUTEX, &own,
				     payment.count, payment.ns);
}

static int charge_holder(struct wp_target *target, struct wp_thread *holder,
			 const struct wp_thread *t)
{
	wp_time_ledger_owe_lock(&holder->time, !t->locks.same,
				t->locks.wait_ns);
	if (holder->wait.waiting)
		return wp_lock_holders_charge(holder, &holder->wait.key);
	if (target->loop->options.stop != WP_STOP_NEVER &&
	    !wp_stop_request_exists(holder))
		wp_stop_request_stack(holder, holder->time.base.slices, 0);
	return 0;
}

void wp_lock_holders_note_wait(struct wp_thread *t, bool same, uint64_t wall_ns)
{
	t->locks.tick_ns = t->target->loop->tick_ns;
	t->locks.same = same;
	t->locks.wait_ns = wall_ns;
}

int wp_lock_holders_tick(struct wp_target *target)
{
	const struct wp_sampler_options *options = &target->loop->options;
	bool only_note = options->note_holders && !options->mutex;
	int rc = 0;

	for (size_t i = 0; i < target->nthreads && target->lock_holders && !rc;
	     i++) {
		struct wp_thread *t = target->threads[i], *holder;

		if (!t->wait.waiting ||
		    t->locks.tick_ns != target->loop->tick_ns ||
		    t->wait.facts.syscall_nr != SYS_futex ||
		    (only_note && t->locks.same &&
		     (target->tick + i) % UNCHANGED_TICKS))
			continue;
		holder = find_holder(target, t);
		if (holder)
			wp_timeline_set_holder(&target->profile->timeline,
					       t->index, holder->index);
		if (only_note)
			continue;
		rc = holder ? charge_holder(target, holder, t) :
			      charge_waiter(target, t);
	}
	return rc;
}

int wp_lock_holders_finish(struct wp_target *target)
{
	int rc = 0;

	/* The stacks of some holders did not come. */
	for (size_t i = 0; i < target->nthreads && target->lock_holders && !rc;
	     i++) {
		struct wp_thread *t = target->threads[i];
		struct wp_sample_key key = {
			.stack = t->last_running_stack != UINT32_MAX ?
					 t->last_running_stack :
					 wp_stack_walk_intern_none(
						 target, WP_END_EMPTY),
			.thread = t->index
		};

		rc = wp_lock_holders_charge(t, &key);
	}
	return rc;
}

void wp_lock_holders_close(struct wp_target *target)
{
	free(target->lock_holders);
	target->lock_holders = NULL;
}
