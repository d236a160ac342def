/* SPDX-License-Identifier: Apache-2.0 */
/* sample_thread.c - see sample_thread.h. */
#include "sample_thread.h"

#include "books.h"
#include "record.h"
#include "sampler_loop.h"
#include "stop_window.h"
#include "target.h"
#include "threads.h"
#include "unsampled.h"
#include "wait_sample.h"
#include "wallprof/clock.h"

enum {
	/* A thread that moves while it is read is read once more; more often
	 * where no stop is likely to settle what it does. */
	TRIES = 2,
	TRIES_NEVER = 6,
	/* Samples of a running thread without a CPU sample until it is stopped
	 * instead. */
	PATIENCE = 5,
};

static enum wp_sample_result done_or_no_memory(int rc)
{
	return rc ? WP_SAMPLE_NO_MEMORY : WP_SAMPLE_DONE;
}

/* May T's stack come from its next CPU sample?  A thread that MOVED while it was
 * read is hardly on a CPU, and may have no CPU sample for long. */
static bool comes_by_cpu_sample(struct wp_thread *t, bool moved)
{
	const struct wp_target *target = t->target;
	bool by_stop;

	if (!target->cpu_events->perf ||
	    target->loop->options.stop == WP_STOP_ALL)
		return false;
	if (target->loop->options.stop == WP_STOP_NEVER)
		return true;
	/* A thread that hardly runs may have no CPU sample at all: its first
	 * stack comes by a stop. */
	by_stop = t->aside.stops || moved || wp_unsampled_wants_stop(t) ||
		  t->last_running_stack == UINT32_MAX ||
		  (!target->loop->finishing && t->time.count >= PATIENCE);
	return !by_stop || (!t->aside.stops && wp_stop_guard_has_filter(t));
}

/* T is ready to run, or MOVED while it was read. */
static enum wp_sample_result
sample_ready(struct wp_thread *t, const struct wp_schedstat *now, bool moved)
{
	struct wp_target *target = t->target;
	bool ran = wp_time_ledger_has_run(&t->time, now);

	wp_wait_state_end(&t->wait);
	t->look = (struct wp_thread_look){
		.times = *now,
		.cpu = t->memory ? wp_thread_files_cpu(t) : -1,
	};
	if (!t->time.looks) {
		t->sleeps_before = wp_thread_files_sleeps(t);
		t->nstops = 0;
	}
	wp_books_look(t, now, wp_clock_ns(), true);
	/* This recording needs no stacks of running threads, unless CPU samples
	 * still lack theirs. */
	if (!target->wants_running && !t->aside.stops) {
		wp_time_ledger_drop_ready(&t->time);
		return WP_SAMPLE_DONE;
	}
	/* Ready, and it has not run since its stack was read: it waits for a
	 * CPU, and a stop would tell nothing new. */
	if (t->running_stack_holds && !ran &&
	    wp_time_ledger_waits_for_cpu(&t->time)) {
		target->profile->counters.unchanged++;
		return done_or_no_memory(wp_record_running(
			t, t->last_running_stack, WP_STATE_RUNNABLE,
			t->time.region_ns));
	}
	t->running_stack_holds = false;
	if (comes_by_cpu_sample(t, moved)) {
		wp_time_ledger_owe_look(&t->time, t->time.region_ns);
		return WP_SAMPLE_DONE;
	}
	if (wp_stop_guard_is_worker(t))
		return done_or_no_memory(wp_record_without_stack(
			t, WP_END_WORKER, t->time.region_ns));
	wp_stop_guard_see_running(t, now);
	wp_stop_request_stack(t, now->slices, t->time.region_ns);
	return WP_SAMPLE_WANTS_STOP;
}

/* One try: T has run since its last sample, and schedstat was NOW. */
static enum wp_sample_result read_once(struct wp_thread *t,
				       const struct wp_schedstat *now,
				       bool running_first)
{
	struct wp_wait_place place = { .before = *now };
	char text[256];
	ssize_t n = wp_thread_files_read(t, WP_THREAD_SYSCALL, text,
					 sizeof(text));

	if (n < 0)
		return wp_sample_result_of((int)n);
	if (wp_proc_syscall_parse(&place.call, text, (size_t)n))
		return WP_SAMPLE_FAILED;
	if (place.call.running)
		return sample_ready(t, now, false);
	if (!running_first)
		return wp_wait_sample_proc(t, &place);
	/* While it is put off, threads that run are held. */
	wp_wait_sample_look(t, now);
	return WP_SAMPLE_PUT_OFF;
}

/* T has run since its last sample, or was not waiting then. */
static enum wp_sample_result
read_thread(struct wp_thread *t, struct wp_schedstat *now, bool running_first)
{
	bool is_hard_to_stop = t->target->loop->options.stop == WP_STOP_NEVER ||
			       t->guard.has_filter;
	int tries = is_hard_to_stop ? TRIES_NEVER : TRIES;

	for (int try = 0; try < tries; try++) {
		enum wp_sample_result result = read_once(t, now, running_first);
		int rc;

		if (result != WP_SAMPLE_MOVED)
			return result;
		t->target->profile->counters.inconsistent++;
		rc = wp_thread_files_schedstat(t, now);
		if (rc)
			return wp_sample_result_of(rc);
	}
	t->nslipped++;
	return sample_ready(t, now, true);
}

/* T waits at PLACE, as its BPF scan record says. */
static enum wp_sample_result sample_by_scan(struct wp_thread *t,
					    const struct wp_wait_place *place,
					    struct wp_schedstat *now,
					    bool running_first)
{
	enum wp_sample_result result = running_first ? WP_SAMPLE_PUT_OFF :
						       wp_wait_sample(t, place);
	int rc;

	if (result != WP_SAMPLE_MOVED)
		return result;
	t->target->profile->counters.inconsistent++;
	rc = wp_thread_files_schedstat(t, now);
	return rc ? wp_sample_result_of(rc) :
		    read_thread(t, now, running_first);
}

/* Does what the last sample of T found still hold, by schedstat NOW? */
static bool holds(const struct wp_thread *t, const struct wp_schedstat *now)
{
	return (t->wait.waiting || !t->target->samples_threads) &&
	       t->target->loop->schedstat_works &&
	       !wp_time_ledger_has_run(&t->time, now);
}

static enum wp_sample_result sample_unchanged(struct wp_thread *t)
{
	/* CPU samples that came after the last look may be of before it, so of a time
	 * that its books had already. */
	if (t->time.has_base)
		wp_books_count(t, &t->time.base);
	if (!t->target->samples_threads)
		return WP_SAMPLE_DONE;
	return done_or_no_memory(
		wp_record_unchanged(t, 1, t->target->loop->tick_ns,
				    t->target->loop->region_end_ns));
}

/* T has no record: is that since it has not been on a CPU since its last look? */
static bool is_not_noted(const struct wp_thread *t)
{
	if (!t->target->loop->scan.is_of_moved)
		return false;
	return t->target->samples_threads ? t->wait.waiting :
					    t->time.run_is_known;
}

/* Sample T, which RECORD, its BPF scan result, says has run; NULL: there is no
 * record. */
static enum wp_sample_result sample(struct wp_thread *t,
				    const struct wp_task_record *record,
				    bool running_first)
{
	struct wp_target *target = t->target;
	struct wp_wait_place place;
	struct wp_schedstat now;
	bool has_place = record && wp_wait_sample_place(t, record, &place);

	if (has_place) {
		now = place.before;
	} else {
		int rc = wp_thread_files_schedstat(t, &now);

		if (rc)
			return wp_sample_result_of(rc);
		if (holds(t, &now))
			return sample_unchanged(t);
	}
	if (!target->samples_threads && !t->aside.stops) {
		if (t->watched)
			wp_books_count(t, &now);
		return WP_SAMPLE_DONE;
	}
	wp_threads_name(t, record);
	if (!t->watched)
		return WP_SAMPLE_DONE;
	return has_place ? sample_by_scan(t, &place, &now, running_first) :
			   read_thread(t, &now, running_first);
}

enum wp_sample_result wp_sample_thread(struct wp_thread *t, bool running_first)
{
	const struct wp_task_record *record;
	enum wp_sample_result result;

	record = wp_bpf_scan_find(t->target->loop, t->target->process->pid,
				  t->tid);
	t->put_off = false;
	wp_threads_settle(t);
	t->paid_tick = t->target->tick;
	if (wp_stop_window_is_open(t))
		return WP_SAMPLE_DONE;
	if (record && wp_threads_is_another(t, record))
		return WP_SAMPLE_GONE;
	if (record) {
		struct wp_schedstat then = wp_bpf_scan_times(record);

		if (holds(t, &then))
			return sample_unchanged(t);
	} else if (is_not_noted(t)) {
		return sample_unchanged(t);
	}
	result = sample(t, record, running_first);
	t->put_off = result == WP_SAMPLE_PUT_OFF;
	return result;
}
