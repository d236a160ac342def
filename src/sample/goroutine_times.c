/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_times.c - see goroutine_times.h: a look, and who gets its time. */
#include "goroutine_times.h"

#include <errno.h>
#include <string.h>

#include "goroutine_kept.h"
#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "wallprof/budget.h"
#include "wallprof/clock.h"
#include "wallprof/vec.h"

/* Looks take at most one part in so many of a CPU's time, and so much at the
 * begin, when every stack is new. */
enum { LOOK_SHARE = 4 };
#define FIRST_NS (200 * WP_NS_PER_MS)

static struct wp_sample_set *wall_of(const struct wp_goroutine_times *times)
{
	return &times->target->profile->sets[WP_PROFILE_WALL];
}

/* Give NS to SLOT's key, as what a look found if IS_LOOK.  HELD: it was in that wait
 * all this time. */
static void pay_part(struct wp_goroutine_times *times,
		     struct wp_goroutine_slot *slot, uint64_t ns, bool is_look,
		     bool held)
{
	struct wp_profile *profile = times->target->profile;
	const struct wp_sample_key key = slot->key;
	struct wp_profile_sample *sample;

	if (times->rc)
		return;
	times->rc = wp_profile_add_sample_hinted(profile, WP_PROFILE_WALL, &key,
						 &slot->sample, is_look, ns);
	if (times->rc)
		return;
	sample = &wall_of(times)->samples[slot->sample];
	if (held && key.state == WP_STATE_WAITING)
		sample->exact_ns += ns;
	else
		sample->weight_ns += ns;
	sample->looks += is_look;
	profile->threads[key.thread].last_ns = times->target->loop->tick_ns;
}

/* Give the time of the look at hand to SLOT's key. */
static void pay(struct wp_goroutine_times *times,
		struct wp_goroutine_slot *slot, bool held)
{
	pay_part(times, slot, times->ns, times->ns > 0, held);
}

/* The same for a goroutine with a thread, which waited for a CPU for RUNNABLE_NS of that
 * time. */
static void pay_runner(struct wp_goroutine_times *times,
		       struct wp_goroutine_slot *slot, uint64_t runnable_ns)
{
	bool has_run = runnable_ns < times->ns;

	if (runnable_ns) {
		slot->key.state = WP_STATE_RUNNABLE;
		pay_part(times, slot, runnable_ns, !has_run, false);
		slot->key.state = WP_STATE_RUNNING;
	}
	if (has_run)
		pay_part(times, slot, times->ns - runnable_ns, true, false);
}

static bool has_moved(const struct wp_goroutine_words *a,
		      const struct wp_goroutine_words *b)
{
	return a->id != b->id || a->status != b->status || a->seq != b->seq ||
	       a->sp_avma != b->sp_avma || a->pc_avma != b->pc_avma;
}

/* It is another goroutine than the last look found there. */
static void meet(struct wp_goroutine_times *times,
		 struct wp_goroutine_slot *slot, uint64_t id,
		 const struct wp_goroutine_more *more)
{
	bool is_new = slot->words.id != id || !slot->look;
	uint32_t counted;

	if (!is_new && slot->labels_avma == more->labels_avma)
		return;
	if (is_new)
		slot->is_runtime = wp_go_program_is_runtime(times->go.program,
							    more->start_avma);
	slot->labels_avma = more->labels_avma;
	slot->entry = wp_goroutine_kept_entry(times, id, more,
					      slot->is_runtime);
	counted = slot->is_runtime ? wp_goroutine_kept_idle(times) :
				     slot->entry;
	if (slot->entry == UINT32_MAX || counted == UINT32_MAX)
		times->rc = -ENOMEM;
	else if (is_new)
		wp_goroutine_entries_count(times->target->profile, counted);
}

static void look_at(void *ctx, uint32_t index,
		    const struct wp_goroutine_words *words,
		    const uint8_t *bytes)
{
	struct wp_goroutine_times *times = ctx;
	struct wp_goroutine_slot *slot = &times->slots[index];
	struct wp_goroutine_more more;
	bool has_thread = words->state == WP_GOROUTINE_RUNNING ||
			  words->state == WP_GOROUTINE_SYSCALL;

	if (times->rc || index >= times->n || slot->look == times->look)
		return;
	if (!has_thread && slot->holds && slot->look + 1 == times->look &&
	    !has_moved(&slot->words, words)) {
		slot->look = times->look;
		pay(times, slot, true);
		return;
	}
	more = wp_goroutine_looks_more(times->looks, bytes);
	/* One that is parked has no thread: it says that it waits while it marks for the
	 * garbage collector on its thread's own stack, so that its own can be scanned
	 * (runtime/proc.go, casGToWaitingForSuspendG). */
	has_thread |= words->state == WP_GOROUTINE_WAITING && more.m_avma;
	meet(times, slot, words->id, &more);
	slot->words = *words;
	slot->look = times->look;
	slot->holds = false;
	if (times->rc)
		return;
	if (has_thread)
		times->runners[times->nrunners++] =
			(struct wp_goroutine_runner){ index, 0, more.m_avma };
	else
		times->changed[times->nchanged++] = index;
}

/* Room for N goroutines in all that has one place for each. */
static int make_room(struct wp_goroutine_times *times, uint32_t n)
{
	const uint64_t bytes = (uint64_t)(n - times->n) *
			       (sizeof(*times->slots) +
				sizeof(*times->changed) +
				sizeof(*times->runners));

	if (n == times->n)
		return 0;
	if (!wp_budget_take(WP_BUDGET_GO, bytes))
		return 0;
	times->taken += bytes;
	if (WP_VEC_ROOM(times->slots, times->n, times->cap, n - times->n) ||
	    WP_VEC_ROOM(times->changed, times->n, times->cap_changed,
			n - times->n) ||
	    WP_VEC_ROOM(times->runners, times->n, times->cap_runners,
			n - times->n))
		return -ENOMEM;
	memset(times->slots + times->n, 0,
	       (n - times->n) * sizeof(*times->slots));
	times->n = n;
	return 0;
}

static enum wp_state state_of(enum wp_goroutine_state state)
{
	return state == WP_GOROUTINE_RUNNABLE ||
			       state == WP_GOROUTINE_PREEMPTED ?
		       WP_STATE_RUNNABLE :
		       WP_STATE_WAITING;
}

/* Is the program's code on STACK, of a goroutine of the runtime's: a finalizer, or what
 * runtime.AddCleanup was given? */
static bool is_of_program(const struct wp_goroutine_times *times,
			  uint32_t stack)
{
	const struct wp_profile *profile = times->target->profile;
	const struct wp_profile_stack *s = &profile->stacks[stack];

	for (uint32_t i = 0; i < s->depth; i++) {
		const char *name = wp_go_program_function(
			times->go.program,
			wp_frame_lookup_avma(wp_profile_frame(profile, s, i)));

		if (name && strncmp(name, "runtime.", 8) &&
		    strncmp(name, "internal/runtime/", 17))
			return true;
	}
	return false;
}

/* Set SLOT's key: it has STACK and, unless it is to run, waits for REASON. */
static void settle(struct wp_goroutine_times *times,
		   struct wp_goroutine_slot *slot, uint32_t stack,
		   enum wp_state state, uint32_t reason)
{
	bool waits = state == WP_STATE_WAITING;
	bool is_idle = waits && slot->is_runtime &&
		       (stack == UINT32_MAX || !is_of_program(times, stack));

	slot->key = (struct wp_sample_key){
		.stack = stack,
		.thread = is_idle ? wp_goroutine_kept_idle(times) : slot->entry,
		.state = (uint8_t)state,
		.wait = waits ? WP_WAIT_GO : WP_WAIT_NONE,
		.syscall = waits && reason <= UINT16_MAX ? (uint16_t)reason : 0,
	};
	slot->holds = true;
	if (stack == UINT32_MAX || slot->key.thread == UINT32_MAX)
		times->rc = -ENOMEM;
	else
		pay(times, slot, false);
}

/* Give G, whose stack has been read, its time. */
static void take(struct wp_goroutine_times *times, const struct wp_goroutine *g)
{
	struct wp_goroutine_slot *slot = &times->slots[g->index];

	/* Read twice, or another by now. */
	if (slot->holds || slot->words.id != g->id)
		return;
	if (g->state == WP_GOROUTINE_RUNNING ||
	    g->state == WP_GOROUTINE_SYSCALL ||
	    (g->state == WP_GOROUTINE_WAITING && g->tid)) {
		if (times->nrunners < times->cap_runners)
			times->runners[times->nrunners++] =
				(struct wp_goroutine_runner){ g->index, g->tid,
							      0 };
		slot->holds = true;
		return;
	}
	settle(times, slot, g->stack, state_of(g->state), g->reason);
}

/* Read the stacks of those that have moved since the last look. */
static void read_changed(struct wp_goroutine_times *times)
{
	struct wp_profile *profile = times->target->profile;
	const struct wp_goroutine_user user = {
		.walk = wp_goroutine_kept_walk,
		.ctx = times,
		.strings = &profile->strings,
		.skips_labels = true,
	};
	uint32_t none = wp_stack_walk_intern_none(times->target, WP_END_EMPTY);

	times->read.len = times->read.nlabels = 0;
	if (!times->rc && times->nchanged)
		times->rc = wp_goroutine_looks_read(
			times->looks, &user, times->changed, times->nchanged,
			&times->read);
	for (uint32_t i = 0; !times->rc && i < times->read.len; i++)
		take(times, &times->read.v[i]);
	/* They ended after the look. */
	for (uint32_t i = 0; !times->rc && i < times->nchanged; i++) {
		struct wp_goroutine_slot *slot =
			&times->slots[times->changed[i]];

		if (!slot->holds)
			settle(times, slot, none, state_of(slot->words.state),
			       0);
		/* What has no whole stack is read again. */
		slot->holds = wp_stack_walk_is_whole(
			(enum wp_stack_end)profile->stacks[slot->key.stack]
				.end);
	}
}

/* Can a thread come into WAIT without a call? */
static bool needs_no_call(enum wp_wait wait)
{
	return wait == WP_WAIT_PAGE_FAULT || wait == WP_WAIT_MMAP_LOCK ||
	       wait == WP_WAIT_FROZEN || wait == WP_WAIT_CORE_DUMP;
}

/* Is what T's last sample found a wait that still holds, and its goroutine's, which is
 * IN_CALL? */
static bool waits(const struct wp_thread *t, bool in_call)
{
	return t && t->wait.waiting && t->wait.key.state == WP_STATE_WAITING &&
	       (in_call || needs_no_call((enum wp_wait)t->wait.key.wait));
}

/* Is STACK one that Go's scheduler has on a thread?  The thread had it when it was
 * sampled, before the look, at which it runs a goroutine. */
static bool is_schedulers(const struct wp_goroutine_times *times,
			  uint32_t stack)
{
	const struct wp_profile *profile = times->target->profile;
	const struct wp_profile_stack *s = &profile->stacks[stack];
	const char *root;

	if (!s->depth || s->end != WP_END_ROOT)
		return false;
	root = wp_go_program_function(times->go.program,
				      wp_frame_lookup_avma(wp_profile_frame(
					      profile, s, s->depth - 1)));
	return root && strcmp(root, "runtime.goexit") != 0;
}

/* Goroutine R runs, or its thread is in a system call or C code: what its thread
 * does, it does.  A goroutine that runs waits for pages, too, and is held with its
 * process. */
static void take_runner(struct wp_goroutine_times *times,
			struct wp_goroutine_runner *r)
{
	struct wp_goroutine_slot *slot = &times->slots[r->index];
	bool in_call = slot->words.state == WP_GOROUTINE_SYSCALL;
	struct wp_thread *t;

	if (!r->tid)
		r->tid = wp_goroutine_looks_tid(times->looks, r->m_avma);
	t = wp_goroutine_kept_thread(times, r->tid);
	slot->key = (struct wp_sample_key){
		.thread = slot->entry,
		.state = in_call && !t ? WP_STATE_WAITING : WP_STATE_RUNNING,
	};
	if (waits(t, in_call) && !is_schedulers(times, t->wait.key.stack)) {
		slot->key = t->wait.key;
		slot->key.thread = slot->entry;
	} else if (t && t->last_running_stack != UINT32_MAX &&
		   !is_schedulers(times, t->last_running_stack)) {
		slot->key.stack = t->last_running_stack;
	} else {
		slot->key.stack = wp_stack_walk_intern_none(times->target,
							    WP_END_EMPTY);
	}
	slot->holds = false;
	if (t)
		t->goroutine_entry = slot->entry;
	if (slot->key.stack == UINT32_MAX)
		times->rc = -ENOMEM;
	else if (t && slot->key.state == WP_STATE_RUNNING)
		pay_runner(times, slot,
			   wp_ready_share_take(&t->ready_share, &t->time,
					       times->ns));
	else
		pay(times, slot, false);
}

/* 0, -ENOMEM, or -ESRCH: there is nothing to be read any more. */
static int look(struct wp_goroutine_times *times)
{
	struct wp_target *target = times->target;
	uint32_t n, nleft, nunread;
	int rc = wp_goroutine_looks_update(times->looks, &n, &nleft);

	if (!rc)
		rc = make_room(times, n);
	if (rc)
		return rc;
	nleft += n - times->n;
	times->look++;
	times->nchanged = times->nrunners = 0;
	times->ns = target->loop->tick_ns - times->last_ns;
	times->last_ns = target->loop->tick_ns;
	times->since_ns = times->last_ns - times->ns;
	for (size_t i = 0; i < target->nthreads; i++)
		target->threads[i]->goroutine_entry = UINT32_MAX;
	rc = wp_goroutine_looks_make(times->looks, look_at, times, &nunread);
	if (rc) {
		/* The time is still to be paid, by the look before. */
		times->look--;
		times->last_ns = times->since_ns;
		return rc;
	}
	read_changed(times);
	for (uint32_t i = 0; !times->rc && i < times->nrunners; i++)
		take_runner(times, &times->runners[i]);
	times->since_ns = times->last_ns;
	nunread += nleft;
	if (times->nunread < nunread)
		times->nunread = nunread;
	return times->rc;
}

/* Is the next look to be put off? */
static bool costs_too_much(const struct wp_goroutine_times *times)
{
	uint64_t ns = times->target->loop->tick_ns - times->begin_ns;

	return times->cost_ns > FIRST_NS &&
	       times->cost_ns - FIRST_NS > ns / LOOK_SHARE;
}

/* No look is made any more: each goes on up to END_NS in what it was found in. */
static int pay_until(struct wp_goroutine_times *times, uint64_t end_ns)
{
	times->ns = end_ns > times->last_ns ? end_ns - times->last_ns : 0;
	for (uint32_t i = 0; times->ns && i < times->n; i++)
		if (times->slots[i].look && times->slots[i].look == times->look)
			pay(times, &times->slots[i], false);
	times->last_ns = times->since_ns = end_ns;
	return times->rc;
}

/* Divide the CPU time of all threads over the entries: by their CPU samples, or
 * where there are none by their running time. */
static void pay_cpu(struct wp_goroutine_times *times)
{
	struct wp_profile *profile = times->target->profile;
	const struct wp_sample_set *set = wall_of(times);
	uint64_t all = 0, cpu_ns = times->cpu_ns;
	bool by_cpu = false;

	/* CPU samples may have told more than the scheduler. */
	if (cpu_ns > INT64_MAX)
		return;
	for (uint32_t i = 0; i < set->nsamples; i++)
		by_cpu |= wp_goroutine_kept_owns(times, &set->samples[i]) &&
			  set->samples[i].cpu_ns;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < set->nsamples; i++) {
			const struct wp_profile_sample *s = &set->samples[i];
			uint64_t weight = by_cpu ? s->cpu_ns :
					  s->key.state == WP_STATE_RUNNING ?
						   s->wall_ns :
						   0;

			if (!weight || !wp_goroutine_kept_owns(times, s))
				continue;
			if (!pass)
				all += weight;
			else
				profile->threads[s->key.thread].cpu_ns +=
					(uint64_t)((__uint128_t)cpu_ns *
						   weight / all);
		}
}

/* TARGET has executed another program, or cannot be looked at any more: pay what is
 * due; its threads are recorded from now on. */
static int leave(struct wp_target *target)
{
	struct wp_goroutine_times *times = target->goroutines;
	int rc = pay_until(times, target->loop->tick_ns);

	if (!rc) {
		pay_cpu(times);
		rc = wp_goroutine_kept_describe(times);
	}
	wp_goroutine_times_close(target);
	return rc;
}

int wp_goroutine_times_tick(struct wp_target *target)
{
	struct wp_sampler *loop = target->loop;
	struct wp_goroutine_times *times = target->goroutines;
	uint64_t begin_ns;
	int rc;

	if (!times)
		return 0;
	/* Where the list was there may be memory of another program. */
	if (target->go_execs != target->space.nexecs)
		return leave(target);
	if (!loop->finishing && costs_too_much(times)) {
		times->nput_off++;
		return 0;
	}
	begin_ns = wp_clock_cpu_ns();
	rc = look(times);
	times->cost_ns += wp_clock_cpu_ns() - begin_ns;
	if (rc != -ESRCH && rc != -EPERM)
		return rc;
	/* Its last thread gives up the memory some time before it ends, which may be
	 * ticks from now: wp_goroutine_times_finish pays the CPU time until then. */
	if (wp_address_space_reload(&target->space, true) == -ESRCH)
		return pay_until(times, loop->tick_ns);
	return leave(target);
}

int wp_goroutine_times_finish(struct wp_target *target)
{
	struct wp_goroutine_times *times = target->goroutines;
	int rc = 0;

	if (!times)
		return 0;
	if (target->gone)
		rc = pay_until(times, target->last_tick_ns);
	if (!rc)
		pay_cpu(times);
	if (!rc)
		rc = wp_goroutine_kept_describe(times);
	return rc;
}
