/* SPDX-License-Identifier: Apache-2.0 */
/* perf_drain.c - the rings' records in order of time. */
#include "perf_priv.h"

#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"

/* heap[0..n) holds CPUs whose ring has a record; that of heap[0] is the
 * earliest. */
static uint64_t time_of(const struct wp_perf *perf, size_t i)
{
	return perf->cpus[perf->heap[i]].ring.time_ns;
}

static void sift_down(struct wp_perf *perf, size_t i, size_t n)
{
	for (;;) {
		size_t child = 2 * i + 1;
		uint32_t swap;

		if (child >= n)
			return;
		if (child + 1 < n &&
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

static size_t load_rings(struct wp_perf *perf)
{
	size_t n = 0;

	for (size_t i = 0; i < perf->ncpus; i++) {
		struct wp_perf_ring *ring = &perf->cpus[i].ring;

		if (!wp_perf_ring_load(ring))
			perf->stats.malformed++;
		if (ring->len)
			perf->heap[n++] = (uint32_t)i;
	}
	for (size_t i = n / 2; i-- > 0;)
		sift_down(perf, i, n);
	return n;
}

/* Events of CPUs know the process by its number alone, which may be another's
 * once no thread is left, not even a zombie.  After load_rings: what is in them
 * happened before. */
static void look_for_process(struct wp_perf *perf)
{
	uint64_t now = wp_clock_ns();

	if (wp_process_count_threads(perf->process) <= 0) {
		perf->ours_until_ns = perf->there_ns;
		return;
	}
	perf->there_ns = now;
	perf->ours_until_ns = UINT64_MAX;
}

static const struct wp_perf_event *find_event(const struct wp_perf *perf,
					      uint64_t id)
{
	size_t at = WP_LOWER_BOUND(perf->nevents, i, perf->events[i].id < id);

	return at < perf->nevents && perf->events[at].id == id ?
		       &perf->events[at] :
		       NULL;
}

/* Is there, besides the event EVENT that thread TID inherited, one of its own,
 * which tells the same? */
static bool is_told_twice(const struct wp_perf *perf,
			  const struct wp_perf_event *event, pid_t tid,
			  uint64_t time_ns)
{
	size_t i;

	if (event->tid == -1 || event->tid == tid)
		return false;
	i = wp_perf_thread_index(perf, tid);
	return i < perf->nthreads && perf->threads[i].tid == tid &&
	       perf->threads[i].since_ns <= time_ns;
}

/* A new thread with the number of one that had events is another. */
static void forget_thread(struct wp_perf *perf,
			  const struct wp_perf_record *rec)
{
	size_t i = wp_perf_thread_index(perf, rec->tid);

	if (i == perf->nthreads || perf->threads[i].tid != rec->tid ||
	    perf->threads[i].since_ns > rec->time_ns)
		return;
	for (perf->nthreads--; i < perf->nthreads; i++)
		perf->threads[i] = perf->threads[i + 1];
}

static bool is_about_losses(enum wp_perf_type type)
{
	return type == WP_PERF_LOST || type == WP_PERF_THROTTLE ||
	       type == WP_PERF_UNTHROTTLE;
}

static bool is_ours(struct wp_perf *perf, struct wp_perf_record *rec,
		    const struct wp_perf_writer *writer)
{
	const struct wp_perf_event *event = find_event(perf, rec->id);

	if (!event || (event->tid == -1 && rec->time_ns > perf->ours_until_ns))
		return false;
	if (rec->type == WP_PERF_SAMPLE_CPU) {
		rec->period = wp_perf_kind_period(perf, event->kind);
		if (event->kind == WP_PERF_KIND_MAIN && perf->birth_id)
			rec->type = WP_PERF_SAMPLE_THREAD_START;
		if (event->kind == WP_PERF_KIND_SWITCHES) {
			rec->type = WP_PERF_SAMPLE_SWITCH;
			perf->stats.switch_samples++;
		}
	}
	/* -1: who has ended has no number any more. */
	return rec->pid == perf->process->pid && rec->tid > 0 &&
	       !is_told_twice(perf, event, writer->tid, rec->time_ns);
}

static bool is_asked_for(const struct wp_perf *perf,
			 const struct wp_perf_record *rec)
{
	return perf->options.tasks ||
	       (rec->type != WP_PERF_FORK && rec->type != WP_PERF_EXIT);
}

static void count(struct wp_perf *perf, const struct wp_perf_record *rec)
{
	struct wp_perf_stats *stats = &perf->stats;

	stats->records++;
	perf->lost_told += rec->lost;
	/* Or it is known already: see wp_perf_events_count_lost. */
	if (stats->lost < perf->lost_told)
		stats->lost = perf->lost_told;
	stats->throttled += rec->type == WP_PERF_THROTTLE;
	stats->truncated += rec->stack_full;
	stats->late += rec->time_ns < perf->last_ns;
	if (rec->time_ns > perf->last_ns)
		perf->last_ns = rec->time_ns;
}

/* Understand the record at hand.  Is it one to hand out? */
static bool take(struct wp_perf *perf, const struct wp_perf_ring *ring,
		 struct wp_perf_record *rec)
{
	const void *bytes = wp_perf_ring_bytes(ring, perf->bounce);
	struct wp_perf_writer writer;

	if (wp_perf_parse(rec, &writer, perf->sample_type, bytes, ring->len)) {
		perf->stats.malformed++;
		return false;
	}
	if (!is_about_losses(rec->type) && !is_ours(perf, rec, &writer)) {
		perf->stats.foreign++;
		return false;
	}
	if (rec->type == WP_PERF_FORK)
		forget_thread(perf, rec);
	if (!is_asked_for(perf, rec))
		return false;
	count(perf, rec);
	return true;
}

void wp_perf_drain(struct wp_perf *perf, uint64_t until_ns,
		   void (*each)(void *ctx, const struct wp_perf_record *record),
		   void *ctx)
{
	size_t n = load_rings(perf);

	look_for_process(perf);
	while (n && time_of(perf, 0) < until_ns) {
		struct wp_perf_ring *ring = &perf->cpus[perf->heap[0]].ring;
		struct wp_perf_record rec;

		if (take(perf, ring, &rec))
			each(ctx, &rec);
		if (!wp_perf_ring_next(ring))
			perf->stats.malformed++;
		if (!ring->len)
			perf->heap[0] = perf->heap[--n];
		sift_down(perf, 0, n);
	}
	for (size_t i = 0; i < perf->ncpus; i++)
		wp_perf_ring_release(&perf->cpus[i].ring);
}
