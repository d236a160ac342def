/* SPDX-License-Identifier: Apache-2.0 */
/* perf_next.c - hand out the records of all rings in order of time. */
#include "perf_priv.h"

#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"

/* The time of the record at hand in the ring of heap[I]. */
static uint64_t time_of(const struct wp_perf *perf, size_t i)
{
	return perf->cpus[perf->heap[i]].ring.time_ns;
}

/* Restore the heap's order after heap[I] got a later time. */
static void sift_down(struct wp_perf *perf, size_t i)
{
	for (;;) {
		size_t child = 2 * i + 1;
		uint32_t swap;

		if (child >= perf->nheap)
			return;
		if (child + 1 < perf->nheap &&
		    time_of(perf, child + 1) < time_of(perf, child))
			child++;
		if (time_of(perf, i) <= time_of(perf, child))
			return;
		swap = perf->heap[i];
		perf->heap[i] = perf->heap[child];
		perf->heap[child] = swap;
		i = child;
	}
}

/* See what each ring holds now and fill the heap with those that hold a
 * record. */
static void load_rings(struct wp_perf *perf)
{
	perf->nheap = 0;
	for (size_t i = 0; i < perf->ncpus; i++) {
		struct wp_perf_ring *ring = &perf->cpus[i].ring;

		if (!wp_perf_ring_load(ring))
			perf->stats.malformed++;
		if (ring->len)
			perf->heap[perf->nheap++] = (uint32_t)i;
	}
	for (size_t i = perf->nheap / 2; i-- > 0;)
		sift_down(perf, i);
}

/* Events of CPUs know the process by its pid alone, which another process may
 * have once no thread is left, not even a zombie.  Call after load_rings: what
 * the rings hold then happened before the check. */
static void check_process(struct wp_perf *perf)
{
	uint64_t now = wp_clock_ns();

	if (perf->process && wp_process_count_threads(perf->process) <= 0) {
		perf->ours_until_ns = perf->there_ns;
		return;
	}
	perf->there_ns = now;
	perf->ours_until_ns = UINT64_MAX;
}

static struct wp_perf_event *find_event(const struct wp_perf *perf, uint64_t id)
{
	size_t at = WP_LOWER_BOUND(perf->nevents, i, perf->events[i].id < id);

	return at < perf->nevents && perf->events[at].id == id ?
		       &perf->events[at] :
		       NULL;
}

/* Thread TID inherited EVENT and has an event of its own as well, which records
 * the same.  The first thread inherited none: one that has its tid and another's event
 * took it over when it executed a program (execve(2)), and has that event alone. */
static bool is_told_twice(const struct wp_perf *perf,
			  const struct wp_perf_event *event, pid_t tid)
{
	return event->tid != -1 && event->tid != tid &&
	       tid != perf->process->pid && wp_perf_has_thread(perf, tid);
}

/* A thread TID has started: what a former thread of that tid had is not its. */
static void forget_thread(struct wp_perf *perf, pid_t tid)
{
	size_t i = wp_perf_thread_index(perf, tid);

	if (!wp_perf_has_thread(perf, tid))
		return;
	for (perf->nthreads--; i < perf->nthreads; i++)
		perf->threads[i] = perf->threads[i + 1];
}

static bool is_about_losses(enum wp_perf_type type)
{
	return type == WP_PERF_LOST || type == WP_PERF_THROTTLE ||
	       type == WP_PERF_UNTHROTTLE;
}

/* What a CPU sample by EVENT at TIME_NS, taken of the thread TID, stands for. */
static uint64_t cpu_period(const struct wp_perf *perf,
			   const struct wp_perf_event *event, uint64_t time_ns,
			   pid_t tid)
{
	/* None has been drawn since. */
	if (!event->changed_ns)
		return event->period;
	/* Inherited: it has the period of then. */
	if (event->tid != -1 && event->tid != tid)
		return wp_perf_kind_period(perf, event->kind);
	return wp_perf_drawn_covers(perf, time_ns < event->changed_ns ?
						  event->period_before :
						  event->period);
}

/* Fill in what the kernel does not tell of REC, a sample by EVENT but of a wake. */
static void complete_sample(struct wp_perf *perf, struct wp_perf_event *event,
			    struct wp_perf_record *rec)
{
	if (event->kind == WP_PERF_KIND_SWITCHES) {
		rec->type = WP_PERF_SAMPLE_SWITCH;
		rec->period = wp_perf_kind_period(perf, event->kind);
		perf->stats.switch_samples++;
	} else if (perf->newtask_id || perf->options.bpf_output) {
		rec->type = perf->newtask_id ? WP_PERF_SAMPLE_THREAD_START :
					       WP_PERF_SAMPLE_OUTPUT;
		rec->period = wp_perf_kind_period(perf, event->kind);
	} else {
		rec->period = cpu_period(perf, event, rec->time_ns, rec->tid);
		event->nsamples++;
	}
}

/* Make REC a sample of who wakes, if it is one of a thread. */
static bool is_wake_sample(struct wp_perf *perf, struct wp_perf_record *rec)
{
	perf->stats.wake_samples++;
	if (wp_perf_parse_wake(rec))
		return false;
	rec->type = WP_PERF_SAMPLE_WAKE;
	return !rec->hard_interrupt && rec->waker_pid > 0 && rec->waker_tid > 0;
}

static bool is_ours(struct wp_perf *perf, struct wp_perf_record *rec,
		    const struct wp_perf_writer *writer)
{
	struct wp_perf_event *event = find_event(perf, rec->id);

	if (!event || (event->tid == -1 && rec->time_ns > perf->ours_until_ns))
		return false;
	if (event->kind == WP_PERF_KIND_WAKES)
		return !wp_perf_parse_wake(rec);
	if (event->kind == WP_PERF_KIND_WAKE_STACKS)
		return is_wake_sample(perf, rec);
	if (rec->type == WP_PERF_SAMPLE_CPU)
		complete_sample(perf, event, rec);
	/* A thread that has ended has tid -1. */
	if (!perf->process)
		return rec->pid > 0 && rec->tid > 0;
	return rec->pid == perf->process->pid && rec->tid > 0 &&
	       !is_told_twice(perf, event, writer->tid);
}

static bool is_asked_for(const struct wp_perf *perf,
			 const struct wp_perf_record *rec)
{
	return perf->options.tasks ||
	       (rec->type != WP_PERF_FORK && rec->type != WP_PERF_EXIT &&
		rec->type != WP_PERF_NAME);
}

static void count(struct wp_perf *perf, const struct wp_perf_record *rec)
{
	struct wp_perf_stats *stats = &perf->stats;

	stats->records++;
	perf->lost_told += rec->lost;
	/* wp_perf_events_count_lost may have counted more. */
	if (stats->lost < perf->lost_told)
		stats->lost = perf->lost_told;
	stats->throttled += rec->type == WP_PERF_THROTTLE;
	stats->truncated += rec->stack_full;
	stats->late += rec->time_ns < perf->last_ns;
	if (rec->time_ns > perf->last_ns)
		perf->last_ns = rec->time_ns;
}

/* attr.sample_type of the event that wrote BYTES[0..len). */
static uint64_t sample_type_of(const struct wp_perf *perf, const void *bytes,
			       size_t len)
{
	const struct wp_perf_event *event;

	if (!perf->waking_id)
		return perf->sample_type;
	event = find_event(perf, wp_perf_sample_id(bytes, len));
	if (event && event->kind == WP_PERF_KIND_WAKES)
		return WP_PERF_WAKE_TYPE;
	return event && event->kind == WP_PERF_KIND_WAKE_STACKS ?
		       perf->sample_type | (uint64_t)PERF_SAMPLE_RAW :
		       perf->sample_type;
}

/* Parse RING's record at hand into *REC.  False: it is not one to hand out. */
static bool parse_wanted(struct wp_perf *perf, const struct wp_perf_ring *ring,
			 struct wp_perf_record *rec)
{
	const void *bytes = wp_perf_ring_bytes(ring, perf->bounce);
	struct wp_perf_writer writer;

	if (wp_perf_parse(rec, &writer, sample_type_of(perf, bytes, ring->len),
			  bytes, ring->len)) {
		perf->stats.malformed++;
		return false;
	}
	if (!is_about_losses(rec->type) && !is_ours(perf, rec, &writer)) {
		perf->stats.foreign++;
		return false;
	}
	if (rec->type == WP_PERF_FORK)
		forget_thread(perf, rec->tid);
	if (!is_asked_for(perf, rec))
		return false;
	count(perf, rec);
	return true;
}

/* Go past the earliest record. */
static void skip_first(struct wp_perf *perf)
{
	struct wp_perf_ring *ring = &perf->cpus[perf->heap[0]].ring;

	if (!wp_perf_ring_next(ring))
		perf->stats.malformed++;
	if (!ring->len)
		perf->heap[0] = perf->heap[--perf->nheap];
	sift_down(perf, 0);
}

bool wp_perf_next(struct wp_perf *perf, uint64_t until_ns,
		  struct wp_perf_record *ret)
{
	if (!perf->loaded) {
		load_rings(perf);
		check_process(perf);
	} else if (perf->handed_out) {
		skip_first(perf);
	}
	perf->handed_out = false;
	while (perf->nheap && time_of(perf, 0) < until_ns) {
		perf->loaded = true;
		perf->handed_out = parse_wanted(
			perf, &perf->cpus[perf->heap[0]].ring, ret);
		if (perf->handed_out)
			return true;
		skip_first(perf);
	}
	perf->loaded = false;
	for (size_t i = 0; i < perf->ncpus; i++)
		wp_perf_ring_release(&perf->cpus[i].ring);
	return false;
}
