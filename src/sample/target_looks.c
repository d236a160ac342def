/* SPDX-License-Identifier: Apache-2.0 */
/* target_looks.c - look at the threads of a target: see target_looks.h. */
#include "target_looks.h"

#include <errno.h>
#include <limits.h>

#include "sample_thread.h"
#include "sampler_loop.h"
#include "stop_together.h"
#include "target.h"
#include "threads.h"
#include "wallprof/vec.h"

/* Threads that are not watched are read for their names only. */
static enum wp_sample_result sample_thread(struct wp_thread *t,
					   bool running_first)
{
	if (t->watched)
		return wp_sample_thread(t, running_first);
	wp_threads_name(t, wp_bpf_scan_find(t->target->loop,
					    t->target->process->pid, t->tid));
	return WP_SAMPLE_DONE;
}

enum pass {
	/* Every thread. */
	PASS_ALL,
	/* --stop=all: every thread, but those that wait and have run are put
	 * off; then those. */
	PASS_RUNNING_FIRST,
	PASS_PUT_OFF,
};

enum {
	/* Threads are looked at one by one where not one in so many has moved. */
	FEW = 4,
	CACHE_LINE = 64,
	/* A wait for a child is looked at so often before it is passed over: the child may
	 * still execute its program. */
	CHILD_LOOKS = 1024,
	/* Threads that are fetched before their look. */
	FETCH_AHEAD = 4,
};

/* Have the CPU fetch what a look at T reads if it has not run, which lies up to its
 * stop: where threads are thousands, most of a look is to wait for memory. */
static void fetch(const struct wp_thread *t)
{
	for (size_t at = 0; at < offsetof(struct wp_thread, guard);
	     at += CACHE_LINE)
		__builtin_prefetch((const char *)t + at);
}

/* Is T to be looked at in the next tick, even if it does not move? */
static bool is_restless(const struct wp_thread *t)
{
	const struct wp_wait_state *wait = &t->wait;

	if (!t->watched || t->stop.listed || t->stop.pending)
		return true;
	if (!t->target->samples_threads)
		return t->time.cpu_count > 0;
	return !wait->waiting ||
	       (wait->for_child && wait->child_looks < CHILD_LOOKS);
}

/* Look at T. */
static enum wp_sample_result look_at(struct wp_thread *t, bool running_first)
{
	struct wp_target *target = t->target;
	struct wp_tids *restless = &target->restless;
	enum wp_sample_result result = sample_thread(t, running_first);

	target->profile->counters.samples_lost += result == WP_SAMPLE_FAILED;
	if (result == WP_SAMPLE_GONE || !is_restless(t))
		return result;
	restless->v[restless->len++] = t->tid;
	return result;
}

/* Look at T in PASS; others may stand still meanwhile. */
static enum wp_sample_result look_in_pass(struct wp_thread *t, enum pass pass)
{
	if (pass != PASS_PUT_OFF)
		return look_at(t, pass == PASS_RUNNING_FIRST);
	if (!t->put_off)
		return WP_SAMPLE_DONE;
	return wp_stop_together_go_on(t->target) ? WP_SAMPLE_NO_MEMORY :
						   look_at(t, false);
}

static int sample_threads(struct wp_target *target, enum pass pass)
{
	for (size_t i = 0; i < target->nthreads;) {
		enum wp_sample_result result;

		if (i + FETCH_AHEAD < target->nthreads)
			fetch(target->threads[i + FETCH_AHEAD]);
		result = look_in_pass(target->threads[i], pass);
		if (result == WP_SAMPLE_NO_MEMORY)
			return -ENOMEM;
		if (result != WP_SAMPLE_GONE)
			i++;
		else if (wp_threads_end(target, i))
			return -ENOMEM;
	}
	return 0;
}

/* May threads that have not moved be passed over, and paid when they do? */
static bool may_pass_over(const struct wp_target *target, size_t nmoved)
{
	const struct wp_sampler *loop = target->loop;

	return loop->scan.is_of_moved && !target->has_new &&
	       !target->goroutines && !target->lock_holders &&
	       (nmoved + target->was_restless.len) * FEW < target->nthreads;
}

static int sample_one(struct wp_target *target, pid_t tid)
{
	struct wp_thread *t = wp_threads_find(target, tid);
	enum wp_sample_result result = t ? look_at(t, false) : WP_SAMPLE_DONE;

	if (result == WP_SAMPLE_GONE)
		return wp_threads_end_found(t);
	return result == WP_SAMPLE_NO_MEMORY ? -ENOMEM : 0;
}

/* Sample the threads that may have moved; the others still wait. */
static int sample_moved(struct wp_target *target,
			const struct wp_task_record *const *v, size_t n)
{
	const struct wp_tids *was = &target->was_restless;
	size_t i = 0, k = 0;
	int rc = 0;

	while ((i < n || k < was->len) && !rc) {
		pid_t tid = i < n ? v[i]->tid : INT_MAX;

		if (k < was->len && was->v[k] < tid)
			tid = was->v[k];
		i += i < n && v[i]->tid == tid;
		k += k < was->len && was->v[k] == tid;
		rc = sample_one(target, tid);
	}
	return rc;
}

/* A scan of all threads takes 0.1 us per thread, to read one thread 12 us. */
enum { SCAN_PAYS = 100 };

static void scan_again(struct wp_target *target)
{
	size_t nput_off = 0;

	for (size_t i = 0; i < target->nthreads; i++)
		nput_off += target->threads[i]->put_off;
	/* To load the programs of one takes 0.1 s, in which nobody is to be held. */
	if (target->loop->scan.scan && nput_off > target->nthreads / SCAN_PAYS)
		wp_bpf_scan_take(target->loop);
	else
		wp_bpf_scan_forget(target->loop);
}

/* --stop=all: the threads that run are brought to a halt first. */
static int sample_instant(struct wp_target *target)
{
	int rc = sample_threads(target, PASS_RUNNING_FIRST);

	if (!rc)
		rc = wp_stop_together_begin(target);
	if (rc)
		return rc;
	scan_again(target);
	return sample_threads(target, PASS_PUT_OFF);
}

int wp_target_looks(struct wp_target *target)
{
	struct wp_tids was = target->was_restless;
	const struct wp_task_record *const *v;
	size_t n;

	target->was_restless = target->restless;
	target->restless = was;
	target->restless.len = 0;
	/* Now, for ticks are to take no memory once all threads are known.  Of --stop=all
	 * each may be looked at twice. */
	if (WP_VEC_ROOM(target->restless.v, 0, target->restless.cap,
			2 * target->nthreads))
		return -ENOMEM;
	/* At the first tick of a recording files are opened, and each thread is met: that
	 * takes too long while others stand still. */
	if (target->loop->options.stop == WP_STOP_ALL &&
	    (target->tick > 1 || target->loop->options.call_memory))
		return sample_instant(target);
	v = wp_bpf_scan_of(target->loop, target->process->pid, &n);
	if (may_pass_over(target, n))
		return sample_moved(target, v, n);
	target->has_new = false;
	return sample_threads(target, PASS_ALL);
}
