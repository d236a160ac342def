/* SPDX-License-Identifier: Apache-2.0 */
/* digest.c - see digest.h. */
#include "digest.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "choose.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/vec.h"

/* A wait of so long may be for ever. */
#define SUSPECT_NS (2 * WP_NS_PER_S)

void wp_digest_describe(struct wp_recorder_status *status,
			const struct wp_recording *r)
{
	char comm[WP_SERVE_NAME_SIZE];
	ssize_t n;

	status->is_there = true;
	if (r->options->sampler.many) {
		wp_choose_describe(r->options, status->name,
				   sizeof(status->name));
		return;
	}
	n = wp_io_read_at(r->process.proc_fd, "comm", comm, sizeof(comm));
	if (n > 0 && comm[n - 1] == '\n')
		comm[n - 1] = '\0';
	snprintf(status->name, sizeof(status->name), "%s", n > 0 ? comm : "");
	status->pid = r->process.pid;
}

static int grow(struct wp_digest *d, uint32_t n)
{
	if (WP_VEC_ROOM(d->v, d->n, d->cap, n > d->n ? n - d->n : 0))
		return -ENOMEM;
	while (d->n < n)
		d->v[d->n++] = (struct wp_digest_thread){
			.sample = UINT32_MAX
		};
	return 0;
}

/* E is time of a thread in mark D->nmarks, which began at BEGIN_NS. */
static void add_time(struct wp_digest *d, const struct wp_sample_key *key,
		     const struct wp_history_entry *e, uint64_t begin_ns)
{
	struct wp_digest_thread *t = &d->v[key->thread];
	bool is_first = t->mark != d->nmarks;

	if (is_first && t->ran)
		t->runnable_ns = 0;
	t->ran = (!is_first && t->ran) || key->state == WP_STATE_RUNNING;
	if (key->state == WP_STATE_RUNNABLE)
		t->runnable_ns += (uint64_t)e->wall_ns;
	if (!is_first)
		t->since_ns = 0;
	else if (t->mark + 1 != d->nmarks || t->sample != e->sample ||
		 !t->since_ns)
		t->since_ns = begin_ns;
	t->sum_ns = (is_first ? 0 : t->sum_ns) + e->wall_ns;
	if (is_first || e->wall_ns > t->ns) {
		t->sample = e->sample;
		t->ns = e->wall_ns;
	}
	if (wp_types_state_is_ready((enum wp_state)key->state))
		t->since_ns = 0;
	t->mark = d->nmarks;
}

/* T was on a CPU in the mark at hand, however short, as the scheduler says: its stack
 * gets that time later. */
static void note_run(struct wp_digest *d, struct wp_digest_thread *t)
{
	if (t->mark != d->nmarks)
		return;
	t->ran = true;
	t->since_ns = 0;
}

/* Only another thread may end such a wait: is it in a cycle? */
static bool is_suspect(uint8_t wait)
{
	return wait == WP_WAIT_LOCK || wait == WP_WAIT_JOIN ||
	       wait == WP_WAIT_FUTEX || wait == WP_WAIT_BARRIER ||
	       wait == WP_WAIT_SEMAPHORE || wait == WP_WAIT_FILE;
}

/* N threads of entry T, most with SAMPLE, were in the mark that ended at END_NS. */
static void watch_threads(struct wp_digest *d, const struct wp_digest_thread *t,
			  const struct wp_profile_sample *sample, uint32_t n,
			  uint64_t end_ns)
{
	uint8_t wait = sample->key.state == WP_STATE_WAITING ?
			       sample->key.wait :
			       WP_WAIT_NONE;

	d->nthreads += n;
	d->nlocked += wait == WP_WAIT_LOCK ? n : 0;
	d->nsuspects += is_suspect(wait) && t->since_ns &&
			end_ns - t->since_ns >= SUSPECT_NS;
	if (t->ran)
		d->ran_ns = end_ns;
	/* What many waits for a CPU took may be told at once, when it runs. */
	if (!t->ran && t->runnable_ns > d->starved_ns)
		d->starved_ns = t->runnable_ns;
}

/* How many of those that share thread I lived in the last mark, of LENGTH_NS: each has
 * that much time in it. */
static uint32_t count_living(const struct wp_digest *d,
			     const struct wp_profile *profile, uint32_t i,
			     uint64_t length_ns)
{
	uint64_t most = 1 + (uint64_t)profile->threads[i].nmore;
	uint64_t n = ((uint64_t)d->v[i].sum_ns + length_ns / 2) /
		     (length_ns ? length_ns : 1);

	n = n < most ? n : most;
	return n ? (uint32_t)n : 1;
}

/* Threads are counted by what they did most in the last mark. */
static void count_threads(struct wp_digest *d, const struct wp_profile *profile,
			  const struct wp_history_mark *mark,
			  struct wp_recorder_status *status)
{
	uint64_t end_ns = mark->end_ns;
	const struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];

	memset(status->threads, 0, sizeof(status->threads));
	status->longest_wait_ns = 0;
	d->nthreads = d->nlocked = d->nsuspects = 0;
	d->starved_ns = 0;
	for (uint32_t i = 0; i < d->n; i++) {
		const struct wp_digest_thread *t = &d->v[i];
		uint64_t wait_ns;
		uint32_t n;

		if (t->mark != d->nmarks || t->sample == UINT32_MAX)
			continue;
		n = count_living(d, profile, i, end_ns - mark->begin_ns);
		watch_threads(d, t, &set->samples[t->sample], n, end_ns);
		status->threads[set->samples[t->sample].key.state] += n;
		wait_ns = t->since_ns ? end_ns - t->since_ns : 0;
		if (wait_ns > status->longest_wait_ns)
			status->longest_wait_ns = wait_ns;
		if (d->parts)
			wp_parts_count(d->parts, profile, i, n,
				       set->samples[t->sample].key.state,
				       wait_ns);
	}
}

static void count_losses(const struct wp_counters *c,
			 struct wp_recorder_status *status)
{
	status->ticks = c->ticks;
	status->missed_ticks = c->missed_ticks;
	status->spared_ticks = c->spared_ticks;
	status->samples_lost = c->samples_lost;
	status->stacks_dropped = c->stacks_dropped;
	status->mappings_dropped = c->mappings_dropped;
	status->files_dropped = c->files_dropped;
	status->threads_shared = c->threads_shared;
	status->objects_dropped = c->objects_dropped;
	status->names_dropped = c->names_dropped;
	status->processes_lost = c->processes_lost;
	status->processes_denied = c->processes_denied;
}

int wp_digest_add(struct wp_digest *d, const struct wp_profile *profile,
		  const struct wp_history_mark *mark, uint64_t keep_ns,
		  struct wp_recorder_status *status)
{
	const struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];

	if (grow(d, profile->nthreads) ||
	    (d->parts &&
	     wp_parts_begin(d->parts, profile, mark->end_ns, keep_ns)))
		return -ENOMEM;
	d->nmarks++;
	if (!d->ran_ns)
		d->ran_ns = mark->begin_ns;
	for (uint32_t i = 0; i < mark->n; i++) {
		const struct wp_history_entry *e = &mark->v[i];
		const struct wp_sample_key *key;

		if (e->kind != WP_PROFILE_WALL || !e->wall_ns)
			continue;
		key = &set->samples[e->sample].key;
		d->sums[key->state][key->wait] += e->wall_ns;
		if (d->parts)
			wp_parts_add(d->parts, profile, key, e->wall_ns,
				     mark->end_ns);
		add_time(d, key, e, mark->begin_ns);
	}
	for (uint32_t i = 0; i < mark->n; i++)
		if (mark->v[i].kind == WP_HISTORY_THREAD &&
		    mark->v[i].cpu_ns > 0)
			note_run(d, &d->v[mark->v[i].sample]);
	count_threads(d, profile, mark, status);
	wp_parts_raise(status->ns, d->sums);
	if (d->parts)
		wp_parts_end(d->parts);
	count_losses(&profile->counters, status);
	status->profile_bytes = wp_renumber_size(profile);
	return 0;
}

void wp_digest_renumber(struct wp_digest *d, struct wp_renumber *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < d->n; i++) {
		if (!wp_renumber_stays(r, WP_REF_THREAD, i))
			continue;
		d->v[n] = d->v[i];
		wp_renumber_ref(r, WP_REF_SAMPLE + WP_PROFILE_WALL,
				&d->v[n++].sample);
	}
	d->n = n;
}

void wp_digest_own(struct wp_recorder_status *status)
{
	char text[128];
	unsigned long long size, resident;
	ssize_t n = wp_io_read_at(-1, "/proc/self/statm", text, sizeof(text));

	status->cpu_ns = wp_clock_used_ns(RUSAGE_SELF) +
			 wp_clock_used_ns(RUSAGE_CHILDREN);
	if (n > 0 && sscanf(text, "%llu %llu", &size, &resident) == 2)
		status->memory = resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
