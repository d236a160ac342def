/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c - see wallprof/profile.h: threads, mappings and samples. */
#include "wallprof/profile.h"

#include <stdlib.h>
#include <string.h>

#include "slots.h"
#include "wallprof/hash.h"
#include "wallprof/vec.h"

_Static_assert(sizeof(struct wp_sample_key) == 16,
	       "keys are compared by their bytes, so they have no padding");

int wp_slots_room(const void *owner, uint32_t **slot, uint32_t *nslots,
		  uint32_t len,
		  uint64_t (*hash)(const void *owner, uint32_t index))
{
	uint32_t n = *nslots ? 2 * *nslots : 256;
	uint32_t *new_slot;

	if (len < *nslots / 2)
		return 0;
	if (!n)
		return -ENOMEM;
	new_slot = calloc(n, sizeof(*new_slot));
	if (!new_slot)
		return -ENOMEM;
	for (uint32_t index = 0; index < len; index++) {
		uint32_t i = (uint32_t)hash(owner, index) & (n - 1);

		while (new_slot[i])
			i = (i + 1) & (n - 1);
		new_slot[i] = index + 1;
	}
	free(*slot);
	*slot = new_slot;
	*nslots = n;
	return 0;
}

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
	free(profile->threads);
	free(profile->frames);
	free(profile->stacks);
	free(profile->stack_slot);
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++) {
		free(profile->sets[kind].samples);
		free(profile->sets[kind].slot);
	}
	free(profile->locations);
	free(profile->loc_pool);
	free(profile->lines);
	free(profile->functions);
	free(profile->function_slot);
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

uint32_t wp_profile_add_thread(struct wp_profile *profile,
			       const struct wp_profile_thread *thread)
{
	if (WP_VEC_ROOM(profile->threads, profile->nthreads,
			profile->cap_threads, 1))
		return UINT32_MAX;
	profile->threads[profile->nthreads] = *thread;
	return profile->nthreads++;
}

static uint32_t find_shared(const struct wp_profile *profile, const char *name)
{
	for (uint32_t i = profile->nthreads - profile->nshared;
	     i < profile->nthreads; i++)
		if (!strcmp(wp_profile_str(profile, profile->threads[i].name),
			    name))
			return i;
	return UINT32_MAX;
}

uint32_t wp_profile_share_thread(struct wp_profile *profile,
				 const struct wp_profile_thread *thread,
				 const char *name)
{
	static const char others[] = "[other threads]";
	uint32_t index = find_shared(profile, name);
	struct wp_profile_thread own = *thread;

	if (index == UINT32_MAX && profile->nshared >= WP_SHARED_NAMES) {
		name = others;
		index = find_shared(profile, name);
	}
	if (index != UINT32_MAX) {
		profile->threads[index].nmore++;
		return index;
	}
	own.name = wp_intern_add_str(&profile->strings, name);
	if (own.name == UINT32_MAX)
		return UINT32_MAX;
	index = wp_profile_add_thread(profile, &own);
	profile->nshared += index != UINT32_MAX;
	return index;
}

uint64_t wp_profile_count_threads(const struct wp_profile *profile)
{
	return profile->nthreads - profile->nshared +
	       profile->counters.threads_shared;
}

static uint64_t hash_sample(const void *owner, uint32_t index)
{
	const struct wp_sample_set *set = owner;
	const struct wp_sample_key *key = &set->samples[index].key;

	return wp_hash_bytes(0, key, sizeof(*key));
}

/* The slot of KEY's sample, or the free one where it belongs. */
static uint32_t *find_sample(const struct wp_sample_set *set,
			     const struct wp_sample_key *key)
{
	uint32_t mask = set->nslots - 1;
	uint32_t i = (uint32_t)wp_hash_bytes(0, key, sizeof(*key)) & mask;

	for (;; i = (i + 1) & mask) {
		uint32_t *slot = &set->slot[i];

		if (!*slot ||
		    !memcmp(&set->samples[*slot - 1].key, key, sizeof(*key)))
			return slot;
	}
}

static int new_sample(struct wp_sample_set *set,
		      const struct wp_sample_key *key)
{
	int rc = WP_VEC_ROOM(set->samples, set->nsamples, set->cap_samples, 1);

	if (!rc)
		rc = wp_slots_room(set, &set->slot, &set->nslots, set->nsamples,
				   hash_sample);
	if (rc)
		return rc;
	set->samples[set->nsamples] = (struct wp_profile_sample){ .key = *key };
	*find_sample(set, key) = ++set->nsamples;
	return 0;
}

/* KEY's sample, made if new; NULL when there is no memory. */
static struct wp_profile_sample *get_sample(struct wp_sample_set *set,
					    const struct wp_sample_key *key)
{
	uint32_t *slot = set->nslots ? find_sample(set, key) : NULL;

	if (slot && *slot)
		return &set->samples[*slot - 1];
	return new_sample(set, key) ? NULL : &set->samples[set->nsamples - 1];
}

int wp_profile_add_sample(struct wp_profile *profile, enum wp_profile_kind kind,
			  const struct wp_sample_key *key, uint64_t count,
			  uint64_t wall_ns)
{
	struct wp_profile_sample *sample = get_sample(&profile->sets[kind],
						      key);

	if (!sample)
		return -ENOMEM;
	sample->count += count;
	sample->wall_ns += wall_ns;
	return 0;
}

int wp_profile_add_cpu(struct wp_profile *profile,
		       const struct wp_sample_key *key, uint64_t count,
		       uint64_t cpu_ns)
{
	struct wp_profile_sample *sample = get_sample(
		&profile->sets[WP_PROFILE_WALL], key);

	if (!sample)
		return -ENOMEM;
	sample->cpu_count += count;
	sample->cpu_ns += cpu_ns;
	return 0;
}

uint64_t wp_profile_time(const struct wp_profile *profile,
			 enum wp_profile_kind kind,
			 const struct wp_profile_sample *sample)
{
	return kind == WP_PROFILE_WALL && !profile->meta.has_wall ?
		       sample->cpu_ns :
		       sample->wall_ns;
}

const char *wp_profile_kind_name(enum wp_profile_kind kind)
{
	static const char *const name[] = {
#define X(id, text) [WP_PROFILE_##id] = text,
		WP_PROFILE_KINDS(X)
#undef X
	};

	return (unsigned int)kind < WP_NPROFILE_KINDS ? name[kind] : "unknown";
}

const char *wp_profile_str(const struct wp_profile *profile, uint32_t id)
{
	return wp_intern_str(&profile->strings, id);
}
