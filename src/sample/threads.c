/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - see threads.h. */
#include "threads.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "record.h"
#include "sampler_loop.h"
#include "target.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	FIRST_COPY_RUNNING = 16384,
	NAME_EVERY = 512,
	/* Threads that the CPU fetches before they are compared. */
	FETCH_AHEAD = 8,
	/* A list of as many threads as before is made for 1 in so many of a CPU's time. */
	LIST_SHARE = 50,
	/* After a thread has ended, others may end and begin for so many ticks. */
	CHURN_TICKS = 100,
};

bool wp_threads_read_name(const struct wp_target *target, pid_t tid,
			  char name[WP_COMM_MAX])
{
	ssize_t n = wp_thread_files_read_once(target, tid, "comm", name,
					      WP_COMM_MAX);

	name[n > 0 ? n - (name[n - 1] == '\n') : 0] = '\0';
	return n > 0;
}

/* Add T to the profile: an entry of its own, or while there are too many of
 * those the entry of its name.  UINT32_MAX without memory. */
static uint32_t add_entry(struct wp_thread *t, const char *name)
{
	struct wp_profile *profile = t->target->profile;
	const struct wp_profile_thread p = {
		.tid = t->tid,
		.process = t->target->index,
		.first_ns = t->first_ns,
		.last_ns = t->time.accounted_ns,
	};
	uint32_t most = t->target->loop->options.own_threads;

	if (!most || profile->nthreads - profile->nshared < most)
		return wp_profile_add_thread(profile, &p);
	t->shared = true;
	profile->counters.threads_shared++;
	return wp_profile_share_thread(profile, &p, name);
}

/* T goes on in the entry of its new name. */
static void change_entry(struct wp_thread *t, const char *name)
{
	struct wp_profile *profile = t->target->profile;
	const struct wp_profile_thread p = {
		.tid = t->tid,
		.process = t->target->index,
		.first_ns = t->time.accounted_ns,
		.last_ns = t->time.accounted_ns,
	};
	struct wp_profile_thread *old = &profile->threads[t->index];
	uint32_t index;

	if (!strcmp(wp_profile_str(profile, old->name), name))
		return;
	index = wp_profile_share_thread(profile, &p, name);
	if (index == UINT32_MAX)
		return;
	/* No sample has the name that it began with, or it shares with threads
	 * of any name. */
	old = &profile->threads[t->index];
	if (old->nmore && (t->nsamples <= 1 || index == t->index))
		old->nmore--;
	if (index == t->index)
		return;
	t->index = index;
	wp_time_ledger_begin_entry(&t->time);
}

static void set_watched(struct wp_thread *t, bool watched)
{
	struct wp_target *target = t->target;

	if (watched == t->watched)
		return;
	t->watched = watched;
	target->has_new = true;
	if (watched) {
		target->nwatched++;
		target->profile->counters.threads_seen += !t->was_watched;
		t->was_watched = true;
		/* Renamed into the glob: watched from now on. */
		if (t->nsamples)
			wp_time_ledger_skip(&t->time, target->loop->tick_ns);
	} else {
		target->nwatched--;
		wp_wait_state_distrust(&t->wait);
	}
}

bool wp_sampler_wants(const char *const *globs, const char *name)
{
	bool only = false, is_in = false;

	for (size_t i = 0; i < WP_THREAD_GLOBS_MAX && globs[i]; i++) {
		bool is_out = globs[i][0] == '!';
		bool fits = !fnmatch(globs[i] + is_out, name, 0);

		if (is_out && fits)
			return false;
		only |= !is_out;
		is_in |= fits;
	}
	return is_in || !only;
}

void wp_threads_rename(struct wp_thread *t, const char *name)
{
	uint32_t *is;

	if (t->tid == t->target->process->pid)
		wp_target_rename(t->target, name);
	if (t->shared) {
		change_entry(t, name);
	} else {
		is = &t->target->profile->threads[t->index].name;
		*is = wp_common_rename(t->target->common, *is, name);
	}
	set_watched(t, wp_sampler_wants(t->target->loop->options.thread_globs,
					name));
}

static struct wp_thread *new_thread(struct wp_target *target, pid_t tid)
{
	struct wp_thread *t = calloc(1, sizeof(*t));
	char name[WP_COMM_MAX];
	bool named;

	if (!t)
		return NULL;
	if (target->loop->options.call_memory) {
		t->memory = calloc(1, sizeof(*t->memory));
		if (!t->memory) {
			free(t);
			return NULL;
		}
	}
	t->target = target;
	t->tid = tid;
	t->serial = ++target->nserials;
	t->paid_tick = target->over.tick;
	target->has_new = true;
	/* It began some time after the last tick: the region that its first look
	 * stands for is its own. */
	t->first_ns = target->region_end_ns;
	wp_time_ledger_init(&t->time, t->first_ns, target->tick > 1);
	wp_wait_state_init(&t->wait);
	wp_thread_files_init(&t->files);
	t->copy_len_waiting = WP_STACK_COPY_SHORT;
	t->copy_len_running = FIRST_COPY_RUNNING;
	t->last_running_stack = UINT32_MAX;
	wp_aside_init(&t->aside);
	t->goroutine_entry = t->cpu_entry = UINT32_MAX;
	t->look.cpu = -1;
	t->look.times.slices = UINT64_MAX;
	t->sleeps_before = UINT64_MAX;
	named = wp_threads_read_name(target, tid, name);
	t->name_tick = target->tick;
	t->index = add_entry(t, name);
	if (t->index == UINT32_MAX) {
		free(t->memory);
		free(t);
		return NULL;
	}
	/* A thread that has ended already cannot tell its name. */
	if (named)
		wp_threads_rename(t, name);
	else
		set_watched(t, !target->loop->options.thread_globs[0]);
	return t;
}

static void free_thread(struct wp_thread *t)
{
	struct wp_target *target = t->target;
	struct wp_tracee *tracee;

	if (t->stop.pending) {
		tracee = wp_tracer_find(target->loop->tracer, (uintptr_t)t);
		if (tracee)
			wp_tracer_release(target->loop->tracer, tracee);
		wp_stop_request_done(t);
	}
	if (t->watched) {
		target->nwatched--;
		if (!t->nsamples &&
		    (target->samples_threads || target->cpu_events->perf))
			target->profile->counters.threads_lost++;
	}
	wp_thread_files_close(&t->files);
	if (t->sites)
		wp_site_cache_clear(t->sites);
	free(t->sites);
	free(t->memory);
	free(t);
}

/* Make room for N threads in every array with an entry per thread.  Each thread
 * has two: it may end and be followed by another with its tid in one tick. */
static int reserve(struct wp_target *target, size_t n)
{
	int rc = wp_stop_requests_reserve(&target->stop_requests, 2 * n);

	if (!rc)
		rc = wp_wait_queue_reserve(&target->wait_queue, 2 * n);
	return rc;
}

static int end_thread(struct wp_target *target, struct wp_thread *t)
{
	int rc = WP_VEC_ROOM(target->ended, target->nended, target->cap_ended,
			     1);

	/* No look of this tick has met T. */
	wp_threads_settle(t);
	if (!rc)
		target->ended[target->nended++] = t;
	target->churn_until = target->tick + CHURN_TICKS;
	return rc;
}

/* Move the threads before TID, from threads[*I] on, to the ended ones. */
static int end_before(struct wp_target *target, size_t *i, pid_t tid)
{
	int rc = 0;

	for (; *i < target->nthreads && target->threads[*i]->tid < tid && !rc;
	     ++*i)
		rc = end_thread(target, target->threads[*i]);
	return rc;
}

/* Merge the sorted table with the sorted list of tids. */
static int merge(struct wp_target *target)
{
	size_t i = 0, n = 0, cap = target->nthreads + target->tids.len + 1;
	struct wp_thread **v = reallocarray(NULL, cap, sizeof(*v));
	int rc = v ? reserve(target, cap) : -ENOMEM;

	for (size_t k = 0; !rc && k < target->tids.len; k++) {
		pid_t tid = target->tids.v[k];
		struct wp_thread *t = NULL;

		rc = end_before(target, &i, tid);
		if (!rc && i < target->nthreads &&
		    target->threads[i]->tid == tid) {
			t = target->threads[i++];
			if (!wp_thread_files_answer(t)) {
				rc = end_thread(target, t);
				t = NULL;
			}
		}
		if (!rc && !t)
			t = new_thread(target, tid);
		if (t)
			v[n++] = t;
		else
			rc = -ENOMEM;
	}
	for (; i < target->nthreads && !rc; i++)
		rc = end_thread(target, target->threads[i]);
	/* Without memory the recording ends: what is left is freed. */
	for (; i < target->nthreads; i++)
		free_thread(target->threads[i]);
	free(target->threads);
	target->threads = v;
	target->nthreads = v ? n : 0;
	target->cap_threads = v ? cap : 0;
	return rc;
}

bool wp_threads_is_another(struct wp_thread *t,
			   const struct wp_task_record *record)
{
	if (!t->began_ns)
		t->began_ns = record->start_ns;
	return t->began_ns != record->start_ns;
}

void wp_threads_settle(struct wp_thread *t)
{
	struct wp_target *target = t->target;
	uint64_t nticks = target->over.tick - t->paid_tick;

	if (t->paid_tick >= target->over.tick)
		return;
	t->paid_tick = target->over.tick;
	if (!t->watched || !target->samples_threads || !t->wait.waiting)
		return;
	if (wp_record_unchanged(t, nticks, target->over.tick_ns,
				target->over.region_end_ns))
		target->no_memory = true;
}

/* Does the table have all of V[0..N), threads that a scan found to have moved? */
static bool are_known(const struct wp_target *target,
		      const struct wp_task_record *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct wp_thread *t = wp_threads_find(target, v[i]->tid);

		if (!t || wp_threads_is_another(t, v[i]))
			return false;
	}
	return true;
}

bool wp_threads_are_as_scanned(const struct wp_target *target)
{
	size_t n;
	const struct wp_task_record *const *v = wp_bpf_scan_of(
		target->loop, target->process->pid, &n);

	/* A thread has to be put on a CPU to start another, and to end; the other may
	 * wait for its first one. */
	if (target->loop->scan.is_of_moved)
		return target->nthreads && are_known(target, v, n) &&
		       (!n || wp_process_count_threads(target->process) ==
				      (long)target->nthreads);
	if (!n || n != target->nthreads)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct wp_thread *t = target->threads[i];

		/* Each of them is of another place in memory. */
		if (i + FETCH_AHEAD < n) {
			__builtin_prefetch(target->threads[i + FETCH_AHEAD]);
			__builtin_prefetch(v[i + FETCH_AHEAD]);
		}
		if (t->tid != v[i]->tid || wp_threads_is_another(t, v[i]))
			return false;
	}
	return true;
}

/* Are the threads to be listed though their number is the same?  Where a scan knows one
 * that the table does not, or threads begin and end, one may have taken another's place;
 * those that are not watched are not met. */
static bool may_differ(const struct wp_target *target)
{
	size_t nscanned;

	(void)wp_bpf_scan_of(target->loop, target->process->pid, &nscanned);
	return (nscanned || target->tick < target->churn_until ||
		target->nwatched < target->nthreads) &&
	       target->loop->tick_ns - target->listed_ns >=
		       LIST_SHARE * target->list_cost_ns;
}

static int list(struct wp_target *target)
{
	uint64_t begin_ns = wp_clock_cpu_ns();
	int rc = wp_process_list_threads(target->process, &target->tids);

	wp_tids_sort(&target->tids);
	target->listed_ns = target->loop->tick_ns;
	target->list_cost_ns = wp_clock_cpu_ns() - begin_ns;
	return rc;
}

static bool are_as_listed(const struct wp_target *target)
{
	if (target->nthreads != target->tids.len)
		return false;
	for (size_t i = 0; i < target->nthreads; i++)
		if (target->threads[i]->tid != target->tids.v[i])
			return false;
	return true;
}

int wp_threads_update(struct wp_target *target)
{
	long count = wp_process_count_threads(target->process);
	bool is_same = count >= 0 && (size_t)count == target->nthreads;
	int rc;

	if (count < 0)
		return (int)count;
	/* Equal numbers, and every known thread answers: the same threads.  One that
	 * does not is ended as it is met: the numbers differ in the next tick. */
	if (is_same && !may_differ(target))
		return count ? 0 : -ESRCH;
	rc = list(target);
	if (rc)
		return rc;
	if (is_same && are_as_listed(target))
		return 0;
	rc = merge(target);
	return rc ? rc : (target->nthreads ? 0 : -ESRCH);
}

size_t wp_threads_place(const struct wp_target *target, pid_t tid)
{
	return WP_LOWER_BOUND(target->nthreads, i,
			      target->threads[i]->tid < tid);
}

struct wp_thread *wp_threads_find(const struct wp_target *target, pid_t tid)
{
	size_t i = wp_threads_place(target, tid);

	if (i == target->nthreads || target->threads[i]->tid != tid)
		return NULL;
	wp_threads_settle(target->threads[i]);
	return target->threads[i];
}

struct wp_thread *wp_threads_find_or_add(struct wp_target *target, pid_t tid)
{
	struct wp_thread *t = wp_threads_find(target, tid);
	size_t i = wp_threads_place(target, tid);

	if (t)
		return t;
	if (reserve(target, target->nthreads + 1) ||
	    WP_VEC_ROOM(target->threads, target->nthreads, target->cap_threads,
			1))
		return NULL;
	t = new_thread(target, tid);
	if (!t)
		return NULL;
	memmove(&target->threads[i + 1], &target->threads[i],
		(target->nthreads - i) * sizeof(*target->threads));
	target->threads[i] = t;
	target->nthreads++;
	return t;
}

int wp_threads_end(struct wp_target *target, size_t i)
{
	int rc = end_thread(target, target->threads[i]);

	if (rc)
		return rc;
	target->nthreads--;
	memmove(&target->threads[i], &target->threads[i + 1],
		(target->nthreads - i) * sizeof(*target->threads));
	return 0;
}

int wp_threads_end_found(struct wp_thread *t)
{
	return wp_threads_end(t->target, wp_threads_place(t->target, t->tid));
}

void wp_threads_free_ended(struct wp_target *target)
{
	for (size_t i = 0; i < target->nended; i++)
		free_thread(target->ended[i]);
	target->nended = 0;
}

void wp_threads_name(struct wp_thread *t, const struct wp_task_record *record)
{
	char name[WP_COMM_MAX];

	t->nsamples++;
	if (t->nsamples & (t->nsamples - 1) && t->nsamples % NAME_EVERY)
		return;
	if (t->name_tick == t->target->tick)
		return;
	t->name_tick = t->target->tick;
	if (record)
		wp_threads_rename(t, record->comm);
	else if (wp_threads_read_name(t->target, t->tid, name))
		wp_threads_rename(t, name);
}

void wp_threads_clear(struct wp_target *target)
{
	wp_threads_free_ended(target);
	for (size_t i = 0; i < target->nthreads; i++)
		free_thread(target->threads[i]);
	free(target->threads);
	free(target->ended);
	wp_tids_clear(&target->restless);
	wp_tids_clear(&target->was_restless);
	wp_stop_requests_clear(&target->stop_requests);
	wp_wait_queue_clear(&target->wait_queue);
	wp_tids_clear(&target->tids);
	target->threads = target->ended = NULL;
	target->nthreads = target->cap_threads = target->cap_ended = 0;
}
