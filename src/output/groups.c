/* SPDX-License-Identifier: Apache-2.0 */
/* groups.c - see groups.h. */
#include "groups.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "processes.h"

/* NAME with each run of digits made '*'. */
static void make_pattern(const char *name, char *pattern, size_t size)
{
	size_t n = 0;

	while (*name && n + 1 < size) {
		if (isdigit((unsigned char)*name)) {
			pattern[n++] = '*';
			while (isdigit((unsigned char)*name))
				name++;
		} else {
			pattern[n++] = *name++;
		}
	}
	pattern[n] = '\0';
}

/* The name of thread I as groups have it; in TITLE, which is made anew. */
static const char *title_of(const struct wp_profile *profile, uint32_t i,
			    struct wp_buf *title)
{
	if (!wp_profile_is_of_many(profile))
		return wp_profile_str(profile, profile->threads[i].name);
	wp_buf_reset(title);
	wp_processes_title(title, profile, &profile->threads[i]);
	wp_buf_char(title, '\0');
	return title->rc ? "" : title->data;
}

static uint32_t pattern_of(struct wp_groups *groups, const char *name)
{
	char pattern[256];

	make_pattern(name, pattern, sizeof(pattern));
	return wp_intern_add_str(&groups->names, pattern);
}

/* Set GROUP_OF[thread] to the pattern's string id. */
static int name_threads(struct wp_groups *groups,
			const struct wp_profile *profile,
			enum wp_profile_kind kind, uint32_t *group_of)
{
	struct wp_buf title = WP_BUF_INIT;
	uint32_t i;

	if (wp_intern_add(&groups->names, "", 0) == UINT32_MAX)
		return -ENOMEM;
	for (i = 0; i < profile->nthreads; i++) {
		group_of[i] = pattern_of(groups, title_of(profile, i, &title));
		if (group_of[i] == UINT32_MAX)
			break;
	}
	wp_buf_clear(&title);
	if (i < profile->nthreads)
		return -ENOMEM;
	groups->len = groups->names.len;
	groups->v = calloc(groups->len, sizeof(*groups->v));
	groups->next = calloc((size_t)profile->sets[kind].nsamples + 1,
			      sizeof(*groups->next));
	return groups->v && groups->next ? 0 : -ENOMEM;
}

/* Add the samples to their groups' lists; backwards, so that the lists are in
 * order. */
static void add_samples(struct wp_groups *groups,
			const struct wp_profile *profile,
			enum wp_profile_kind kind, bool idle_too,
			const uint32_t *group_of, bool *seen)
{
	const struct wp_sample_set *set = &profile->sets[kind];

	for (uint32_t i = set->nsamples; i-- > 0;) {
		const struct wp_profile_sample *s = &set->samples[i];
		struct wp_group *group = &groups->v[group_of[s->key.thread]];
		uint64_t ns = wp_profile_time(profile, kind, s);

		if (!ns || (wp_columns_is_idle(&profile->threads[s->key.thread],
					       kind) &&
			    !idle_too))
			continue;
		groups->next[i] = group->first;
		group->first = i + 1;
		group->ns[s->key.state % WP_NSTATES] += ns;
		group->total_ns += ns;
		if (!seen[s->key.thread]) {
			seen[s->key.thread] = true;
			group->nthreads +=
				1 + profile->threads[s->key.thread].nmore;
			group->thread = s->key.thread;
		}
	}
}

/* Name the groups: by their threads' name if that is the same, else by the
 * pattern. */
static int name_groups(struct wp_groups *groups,
		       const struct wp_profile *profile,
		       const uint32_t *group_of, const bool *seen)
{
	struct wp_buf title = WP_BUF_INIT;
	uint32_t i;

	for (uint32_t g = 0; g < groups->len; g++)
		groups->v[g].name = UINT32_MAX;
	for (i = 0; i < profile->nthreads; i++) {
		struct wp_group *group = &groups->v[group_of[i]];
		uint32_t name;

		if (!seen[i])
			continue;
		name = wp_intern_add_str(&groups->names,
					 title_of(profile, i, &title));
		if (name == UINT32_MAX)
			break;
		if (group->name == UINT32_MAX)
			group->name = name;
		else if (group->name != name)
			group->name = group_of[i];
	}
	wp_buf_clear(&title);
	return i < profile->nthreads ? -ENOMEM : 0;
}

static int busiest_first(const void *pa, const void *pb)
{
	const struct wp_group *a = pa, *b = pb;

	if (a->ns[WP_STATE_RUNNING] != b->ns[WP_STATE_RUNNING])
		return a->ns[WP_STATE_RUNNING] > b->ns[WP_STATE_RUNNING] ? -1 :
									   1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

static void drop_empty(struct wp_groups *groups)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < groups->len; i++)
		if (groups->v[i].nthreads)
			groups->v[n++] = groups->v[i];
	groups->len = n;
}

int wp_groups_init(struct wp_groups *groups, const struct wp_profile *profile,
		   enum wp_profile_kind kind, bool idle_too)
{
	uint32_t *group_of;
	bool *seen;
	int rc = -ENOMEM;

	*groups = (struct wp_groups){ .names = WP_INTERN_INIT };
	group_of = calloc((size_t)profile->nthreads + 1, sizeof(*group_of));
	seen = calloc((size_t)profile->nthreads + 1, sizeof(*seen));
	if (!group_of || !seen)
		goto out;
	rc = name_threads(groups, profile, kind, group_of);
	if (rc)
		goto out;
	add_samples(groups, profile, kind, idle_too, group_of, seen);
	rc = name_groups(groups, profile, group_of, seen);
	if (rc)
		goto out;
	drop_empty(groups);
	if (groups->len)
		qsort(groups->v, groups->len, sizeof(*groups->v),
		      busiest_first);
out:
	free(group_of);
	free(seen);
	return rc;
}

void wp_groups_clear(struct wp_groups *groups)
{
	free(groups->v);
	free(groups->next);
	wp_intern_clear(&groups->names);
}
