/* SPDX-License-Identifier: Apache-2.0 */
/* sums.c - see wp_profile_add_up of wallprof/profile.h. */
#include <string.h>

#include "wallprof/profile.h"

bool wp_profile_is_sample(const struct wp_profile *profile,
			  enum wp_profile_kind kind,
			  const struct wp_profile_sample *sample)
{
	bool cpu = kind == WP_PROFILE_WALL && profile->meta.has_cpu &&
		   (sample->cpu_count || sample->cpu_ns);
	bool wall = kind != WP_PROFILE_WALL || profile->meta.has_wall;

	return cpu || (wall && (sample->count || sample->wall_ns));
}

/* The samples of KIND are numbers of threads or goroutines. */
static bool is_of_numbers(enum wp_profile_kind kind)
{
	return kind == WP_PROFILE_THREADS || kind == WP_PROFILE_THREADCREATE ||
	       kind == WP_PROFILE_GOROUTINE;
}

static void begin_measures(struct wp_profile_sums *sums,
			   enum wp_profile_kind kind)
{
	sums->measures[0].name = kind == WP_PROFILE_WALL      ? "wall time" :
				 kind == WP_PROFILE_GOROUTINE ? "goroutines" :
				 kind == WP_PROFILE_HEAP      ? "bytes" :
				 is_of_numbers(kind)	      ? "threads" :
								"delay";
	sums->measures[1].name = "CPU time";
	sums->nmeasures = kind == WP_PROFILE_WALL ? 2 : 1;
}

/* S's part of measure I of KIND. */
static uint64_t part_of(const struct wp_profile_meta *meta,
			enum wp_profile_kind kind,
			const struct wp_profile_sample *s, unsigned int i)
{
	if (i == 0 && kind == WP_PROFILE_WALL)
		return meta->has_wall ? s->wall_ns : 0;
	if (i == 0)
		return is_of_numbers(kind) ? s->count : s->wall_ns;
	if (meta->has_cpu)
		return s->cpu_ns;
	return s->key.state == WP_STATE_RUNNING ? s->wall_ns : 0;
}

static void add_sample(const struct wp_profile *profile,
		       enum wp_profile_kind kind, struct wp_profile_sums *sums,
		       const struct wp_profile_sample *s)
{
	unsigned int end = profile->stacks[s->key.stack].end;

	/* Neither has a stack that could be cut. */
	if (s->key.state == WP_STATE_EXITING || end == WP_END_WORKER)
		end = WP_END_ROOT;
	sums->count += s->count;
	sums->wall_ns += s->wall_ns;
	sums->cpu_count += s->cpu_count;
	sums->cpu_ns += s->cpu_ns;
	for (unsigned int i = 0; i < sums->nmeasures; i++) {
		uint64_t part = part_of(&profile->meta, kind, s, i);

		sums->measures[i].all += part;
		sums->measures[i].ends[end] += part;
	}
}

/* The threads, or goroutines, whose entries have BIT. */
static uint64_t count_threads(const struct wp_profile *profile, uint32_t bit)
{
	uint64_t own = 0, shared = 0;

	for (uint32_t i = 0; i < profile->nthreads; i++) {
		if (!(profile->threads[i].kinds & bit))
			continue;
		if (profile->threads[i].part)
			own += profile->threads[i].is_counted +
			       profile->threads[i].nmore;
		else if (!profile->threads[i].is_shared)
			own += 1 + (uint64_t)profile->threads[i].nmore;
		else
			shared += 1 + profile->threads[i].nmore;
	}
	/* A thread that was renamed is in the entries of both names. */
	return own + (shared < profile->counters.threads_shared ?
			      shared :
			      profile->counters.threads_shared);
}

static void add_up_kind(struct wp_profile *profile, enum wp_profile_kind kind)
{
	const struct wp_sample_set *set = &profile->sets[kind];
	struct wp_profile_sums *sums = &profile->sums[kind];
	uint32_t bit = 1u << kind;

	memset(sums, 0, sizeof(*sums));
	begin_measures(sums, kind);
	for (uint32_t i = 0; i < profile->nthreads; i++)
		profile->threads[i].kinds &= ~bit;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];

		add_sample(profile, kind, sums, s);
		if (wp_profile_is_sample(profile, kind, s))
			profile->threads[s->key.thread].kinds |= bit;
	}
	sums->threads = count_threads(profile, bit);
}

void wp_profile_add_up(struct wp_profile *profile)
{
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		add_up_kind(profile, (enum wp_profile_kind)kind);
}
