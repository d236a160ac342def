/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c - see wallprof/profile.h: threads, mappings and samples. */
#include "wallprof/enum_name.h"
#include "wallprof/profile.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "budget_bytes.h"
#include "sample_find.h"
#include "wallprof/budget.h"
#include "wallprof/vec.h"

_Static_assert(sizeof(struct wp_sample_key) == 16,
	       "keys are compared by their bytes, so they have no padding");

int wp_profile_init(struct wp_profile *profile)
{
	static const struct wp_profile_mapping unused;

	*profile = (struct wp_profile){ .strings = WP_INTERN_INIT };
	profile->meta.has_wall = true;
	if (wp_intern_add(&profile->strings, "", 0) == UINT32_MAX ||
	    wp_profile_add_mapping(profile, &unused) == UINT32_MAX) {
		wp_profile_clear(profile);
		return -ENOMEM;
	}
	return 0;
}

void wp_profile_clear(struct wp_profile *profile)
{
	wp_intern_clear(&profile->strings);
	free(profile->mappings);
	free(profile->processes);
	free(profile->threads);
	free(profile->shared);
	free(profile->labels);
	wp_timeline_clear(&profile->timeline);
	free(profile->frames);
	wp_index_clear(&profile->frame_index);
	free(profile->frame_ids);
	free(profile->stacks);
	wp_index_clear(&profile->stack_index);
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++) {
		free(profile->sets[kind].samples);
		wp_index_clear(&profile->sets[kind].index);
	}
	free(profile->comments);
	free(profile->locations);
	free(profile->loc_pool);
	free(profile->lines);
	free(profile->functions);
	wp_index_clear(&profile->function_index);
	*profile = (struct wp_profile){ .strings = WP_INTERN_INIT };
}

uint32_t wp_profile_add_mapping(struct wp_profile *profile,
				const struct wp_profile_mapping *mapping)
{
	if (WP_VEC_ROOM(profile->mappings, profile->nmappings,
			profile->cap_mappings, 1))
		return UINT32_MAX;
	profile->mappings[profile->nmappings] = *mapping;
	return profile->nmappings++;
}

uint32_t wp_profile_add_process(struct wp_profile *profile,
				const struct wp_profile_process *process)
{
	if (WP_VEC_ROOM(profile->processes, profile->nprocesses,
			profile->cap_processes, 1))
		return UINT32_MAX;
	profile->processes[profile->nprocesses] = *process;
	return profile->nprocesses++;
}

bool wp_profile_is_of_many(const struct wp_profile *profile)
{
	return profile->meta.is_of_many || profile->nprocesses > 1 ||
	       (profile->nprocesses && profile->processes[0].nmore);
}

const struct wp_profile_process *
wp_profile_process_of(const struct wp_profile *profile,
		      const struct wp_profile_thread *thread)
{
	return thread->process < profile->nprocesses ?
		       &profile->processes[thread->process] :
		       NULL;
}

uint32_t wp_profile_add_thread(struct wp_profile *profile,
			       const struct wp_profile_thread *thread)
{
	if (WP_VEC_ROOM(profile->threads, profile->nthreads,
			profile->cap_threads, 1))
		return UINT32_MAX;
	profile->threads[profile->nthreads] = *thread;
	return profile->nthreads++;
}

/* The string id of the name of THREAD's process. */
static uint32_t process_name(const struct wp_profile *profile,
			     const struct wp_profile_thread *thread)
{
	const struct wp_profile_process *process = wp_profile_process_of(
		profile, thread);

	return process ? process->name : 0;
}

/* The entry that threads called NAME of processes with the name of OF's share. */
static uint32_t find_shared(const struct wp_profile *profile,
			    const struct wp_profile_thread *of,
			    const char *name)
{
	for (uint32_t i = 0; i < profile->nshared; i++) {
		const struct wp_profile_thread *t =
			&profile->threads[profile->shared[i]];

		if (process_name(profile, t) == process_name(profile, of) &&
		    !strcmp(wp_profile_str(profile, t->name), name))
			return profile->shared[i];
	}
	return UINT32_MAX;
}

uint32_t wp_profile_share_thread(struct wp_profile *profile,
				 const struct wp_profile_thread *thread,
				 const char *name)
{
	static const char others[] = "[other threads]";
	uint32_t index = find_shared(profile, thread, name);
	struct wp_profile_thread own = *thread;

	if (index == UINT32_MAX && profile->nshared >= WP_SHARED_NAMES) {
		name = others;
		index = find_shared(profile, thread, name);
	}
	if (index != UINT32_MAX) {
		profile->threads[index].nmore++;
		return index;
	}
	own.name = wp_intern_add_str(&profile->strings, name);
	own.is_shared = true;
	if (own.name == UINT32_MAX ||
	    WP_VEC_ROOM(profile->shared, profile->nshared, profile->cap_shared,
			1))
		return UINT32_MAX;
	index = wp_profile_add_thread(profile, &own);
	if (index != UINT32_MAX)
		profile->shared[profile->nshared++] = index;
	return index;
}

/* Is NAME that of one of the first N threads? */
static bool is_among(const struct wp_profile *profile, uint32_t n,
		     uint32_t name)
{
	for (uint32_t i = 0; i < n; i++)
		if (profile->threads[i].name == name)
			return true;
	return false;
}

void wp_profile_list_names(const struct wp_profile *profile, char *text,
			   size_t size)
{
	enum { SHOWN = 12 };
	size_t len = 0;
	uint32_t i, n = 0;

	text[0] = '\0';
	for (i = 0; i < profile->nthreads && n < SHOWN; i++) {
		uint32_t name = profile->threads[i].name;
		const char *word = wp_profile_str(profile, name);

		if (!*word || is_among(profile, i, name))
			continue;
		if (len + strlen(word) + sizeof(", ...") > size)
			break;
		len += (size_t)snprintf(text + len, size - len, "%s%s",
					n++ ? ", " : "", word);
	}
	if (i < profile->nthreads)
		snprintf(text + len, size - len, ", ...");
}

/* KEY's sample, made if new; NULL where there is no memory for it, or, unless BEYOND,
 * no room in the budget. */
static struct wp_profile_sample *find_or_add(struct wp_sample_set *set,
					     const struct wp_sample_key *key,
					     bool beyond)
{
	uint32_t found = wp_sample_find(set, key);

	if (found != WP_INDEX_NONE)
		return &set->samples[found];
	if (!beyond && !wp_budget_take(WP_BUDGET_SAMPLES, WP_SAMPLE_BYTES))
		return NULL;
	set->npaid += !beyond;
	if (WP_VEC_ROOM(set->samples, set->nsamples, set->cap_samples, 1) ||
	    wp_index_add(&set->index, wp_sample_hash(key), set->nsamples))
		return NULL;
	set->samples[set->nsamples] = (struct wp_profile_sample){ .key = *key };
	return &set->samples[set->nsamples++];
}

/* KEY's sample, made if new.  Past the budget it is the one of KEY's thread and state
 * that has the stack of those dropped: not many.  NULL without memory. */
static struct wp_profile_sample *intern_sample(struct wp_profile *profile,
					       enum wp_profile_kind kind,
					       const struct wp_sample_key *key)
{
	struct wp_sample_set *set = &profile->sets[kind];
	/* What is read is bounded by its file. */
	struct wp_profile_sample *sample = find_or_add(set, key,
						       profile->meta.was_read);
	struct wp_sample_key dropped = { .thread = key->thread,
					 .state = key->state,
					 .wait = key->wait };

	if (sample)
		return sample;
	dropped.stack = wp_profile_drop_stack(profile);
	return dropped.stack == UINT32_MAX ? NULL :
					     find_or_add(set, &dropped, true);
}

/* Do several threads or goroutines have the entry?  They have no timeline. */
static bool is_shared(const struct wp_profile *profile, uint32_t thread)
{
	return thread < profile->nthreads && profile->threads[thread].is_shared;
}

int wp_profile_add_sample_hinted(struct wp_profile *profile,
				 enum wp_profile_kind kind,
				 const struct wp_sample_key *key,
				 uint32_t *hint, uint64_t count,
				 uint64_t wall_ns)
{
	struct wp_sample_set *set = &profile->sets[kind];
	struct wp_profile_sample *sample;

	if (*hint < set->nsamples &&
	    !memcmp(&set->samples[*hint].key, key, sizeof(*key)))
		sample = &set->samples[*hint];
	else
		sample = intern_sample(profile, kind, key);
	if (!sample)
		return -ENOMEM;
	*hint = (uint32_t)(sample - set->samples);
	sample->count += count;
	sample->wall_ns += wall_ns;
	if (kind != WP_PROFILE_WALL || is_shared(profile, key->thread))
		return 0;
	return wp_timeline_add(&profile->timeline, key->thread, *hint, wall_ns);
}

void wp_profile_take_back(struct wp_profile *profile, enum wp_profile_kind kind,
			  uint32_t i, uint64_t ns)
{
	struct wp_profile_sample *sample = &profile->sets[kind].samples[i];

	if (ns > sample->exact_ns)
		ns = sample->exact_ns;
	sample->wall_ns -= ns;
	sample->exact_ns -= ns;
	if (kind == WP_PROFILE_WALL && !is_shared(profile, sample->key.thread))
		wp_timeline_take_back(&profile->timeline, sample->key.thread, i,
				      ns);
}

int wp_profile_add_unwatched(struct wp_profile *profile, uint32_t thread,
			     uint64_t ns)
{
	return is_shared(profile, thread) ?
		       0 :
		       wp_timeline_add(&profile->timeline, thread,
				       WP_TIMELINE_UNWATCHED, ns);
}

int wp_profile_add_sample(struct wp_profile *profile, enum wp_profile_kind kind,
			  const struct wp_sample_key *key, uint64_t count,
			  uint64_t wall_ns)
{
	uint32_t hint = UINT32_MAX;

	return wp_profile_add_sample_hinted(profile, kind, key, &hint, count,
					    wall_ns);
}

int wp_profile_add_cpu(struct wp_profile *profile,
		       const struct wp_sample_key *key, uint64_t count,
		       uint64_t cpu_ns)
{
	struct wp_profile_sample *sample = intern_sample(profile,
							 WP_PROFILE_WALL, key);

	if (!sample)
		return -ENOMEM;
	sample->cpu_count += count;
	sample->cpu_ns += cpu_ns;
	return 0;
}

/* The second of the two values of a sample counts: its CPU time, or what is in use. */
static bool is_ranked_by_second(const struct wp_profile *profile,
				enum wp_profile_kind kind)
{
	if (kind == WP_PROFILE_HEAP)
		return !profile->meta.is_of_allocations;
	return kind == WP_PROFILE_WALL && !profile->meta.has_wall;
}

uint64_t wp_profile_time(const struct wp_profile *profile,
			 enum wp_profile_kind kind,
			 const struct wp_profile_sample *sample)
{
	return is_ranked_by_second(profile, kind) ? sample->cpu_ns :
						    sample->wall_ns;
}

uint64_t wp_profile_total(const struct wp_profile *profile,
			  enum wp_profile_kind kind)
{
	const struct wp_profile_sums *sums = &profile->sums[kind];

	return is_ranked_by_second(profile, kind) ? sums->cpu_ns :
						    sums->wall_ns;
}

const char *wp_profile_kind_name(enum wp_profile_kind kind)
{
	return WP_ENUM_NAME(WP_PROFILE_KINDS, kind);
}

const char *wp_profile_str(const struct wp_profile *profile, uint32_t id)
{
	return wp_intern_str(&profile->strings, id);
}
