/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_entries.c - see wallprof/goroutine_entries.h. */
#include "wallprof/goroutine_entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/hash.h"
#include "wallprof/vec.h"

/* Bytes of all labels in the name of the entry that stands for them. */
enum { NAME_MAX_BYTES = 256 };

static const char *const part_names[] = {
	[WP_GOROUTINE_NONE] = "threads",
	[WP_GOROUTINE_OWN] = "goroutines",
	[WP_GOROUTINE_RUNTIME] = "Go's runtime",
	[WP_GOROUTINE_RUNTIME_IDLE] = "Go's runtime, idle",
	[WP_GOROUTINE_SCHEDULER] = "Go's scheduler",
};

const char *wp_goroutine_part_name(enum wp_goroutine_part part)
{
	return part_names[part];
}

/* "kind=parked, n=3", or "goroutines" without labels. */
static uint32_t name_of(struct wp_profile *profile,
			const struct wp_goroutine_entry *what)
{
	char name[NAME_MAX_BYTES];
	size_t at = 0;

	if (what->name)
		return what->name;
	snprintf(name, sizeof(name), "%s", part_names[what->part]);
	for (uint32_t i = 0; i < what->nlabels && at < sizeof(name); i++)
		at += (size_t)snprintf(
			name + at, sizeof(name) - at, "%s%s=%s", i ? ", " : "",
			wp_profile_str(profile, what->labels[i].key),
			wp_profile_str(profile, what->labels[i].value));
	return wp_intern_add_str(&profile->strings, name);
}

static bool is_of(const struct wp_profile *profile, uint32_t entry,
		  const struct wp_goroutine_entry *what)
{
	const struct wp_profile_thread *t = &profile->threads[entry];

	return t->part == what->part && t->process == what->process &&
	       t->goroutine == what->goroutine && t->nlabels == what->nlabels &&
	       (!what->nlabels ||
		!memcmp(profile->labels + t->first_label, what->labels,
			what->nlabels * sizeof(*what->labels)));
}

static uint32_t add_entry(struct wp_goroutine_entries *entries,
			  struct wp_profile *profile, uint64_t hash,
			  const struct wp_goroutine_entry *what)
{
	struct wp_profile_thread t = {
		.tid = (int32_t)(what->goroutine & INT32_MAX),
		.process = what->process,
		.name = name_of(profile, what),
		.first_ns = what->first_ns,
		.last_ns = what->first_ns,
		.part = what->part,
		.goroutine = what->goroutine,
		.is_shared = !what->goroutine ||
			     what->goroutine == WP_GOROUTINES_OTHER,
		.first_label = profile->nlabels,
		.nlabels = what->nlabels,
	};
	uint32_t entry;

	if (t.name == UINT32_MAX ||
	    WP_VEC_ROOM(profile->labels, profile->nlabels, profile->cap_labels,
			what->nlabels) ||
	    WP_VEC_ROOM(entries->v, entries->n, entries->cap, 1))
		return UINT32_MAX;
	if (what->nlabels)
		memcpy(profile->labels + profile->nlabels, what->labels,
		       what->nlabels * sizeof(*what->labels));
	profile->nlabels += what->nlabels;
	entry = wp_profile_add_thread(profile, &t);
	if (entry == UINT32_MAX ||
	    wp_index_add(&entries->index, hash, entries->n))
		return UINT32_MAX;
	entries->v[entries->n++] = entry;
	entries->nown += what->goroutine != 0;
	return entry;
}

static uint64_t hash_of(const struct wp_goroutine_entry *what)
{
	const uint64_t words[] = { (uint64_t)what->part, what->process,
				   what->goroutine, what->nlabels };

	return wp_hash_bytes(wp_hash_bytes(0, words, sizeof(words)),
			     what->labels,
			     what->nlabels * sizeof(*what->labels));
}

uint32_t wp_goroutine_entries_find(const struct wp_goroutine_entries *entries,
				   const struct wp_profile *profile,
				   const struct wp_goroutine_entry *what)
{
	uint32_t at = WP_INDEX_FIND(&entries->index, hash_of(what), i,
				    is_of(profile, entries->v[i], what));

	return at == WP_INDEX_NONE ? UINT32_MAX : entries->v[at];
}

uint32_t wp_goroutine_entries_find_or_add(struct wp_goroutine_entries *entries,
					  struct wp_profile *profile,
					  const struct wp_goroutine_entry *what)
{
	uint32_t at = wp_goroutine_entries_find(entries, profile, what);
	struct wp_goroutine_entry others = {
		.part = what->part,
		.process = what->process,
		.first_ns = what->first_ns,
	};

	if (at != UINT32_MAX)
		return at;
	if (!what->nlabels || what->goroutine ||
	    entries->n - entries->nown < WP_GOROUTINE_ENTRIES_MAX)
		return add_entry(entries, profile, hash_of(what), what);
	/* Told apart by a number that is no goroutine's. */
	others.goroutine = WP_GOROUTINES_OTHER;
	others.name = wp_intern_add_str(&profile->strings,
					"goroutines with other labels");
	return others.name == UINT32_MAX ? UINT32_MAX :
					   wp_goroutine_entries_find_or_add(
						   entries, profile, &others);
}

void wp_goroutine_entries_count(struct wp_profile *profile, uint32_t entry)
{
	struct wp_profile_thread *t = &profile->threads[entry];

	if (t->is_counted)
		t->nmore++;
	t->is_counted = true;
}

void wp_goroutine_entries_clear(struct wp_goroutine_entries *entries)
{
	free(entries->v);
	wp_index_clear(&entries->index);
	*entries = (struct wp_goroutine_entries)WP_GOROUTINE_ENTRIES_INIT;
}
