/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_entries.c - how many threads or goroutines the entries of a profile stand for, as
 * a comment: "entries: 3=9600 7=2", each the number of a sample in the file, from 1, and
 * how many its entry is.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"
#include "pprof_read.h"
#include "pprof_writer.h"
#include "processes.h"

/* Does a file not tell T from others by a label, so that it may be several? */
static bool is_several(const struct wp_profile *profile,
		       const struct wp_profile_thread *t)
{
	return t->nmore ||
	       (t->part && !(profile->meta.has_goroutine_ids && t->goroutine &&
			     t->goroutine != WP_GOROUTINES_OTHER));
}

bool wp_pprof_list_entries(struct wp_pprof_writer *w, struct wp_buf *line)
{
	const struct wp_profile *profile = w->profile;
	const struct wp_sample_set *set = &profile->sets[w->kind];
	bool *is_told = calloc((size_t)profile->nthreads + 1, sizeof(*is_told));
	/* Goroutines of a part and process are one entry to who reads the file. */
	struct wp_pairs entries = WP_PAIRS_INIT;

	if (!is_told)
		line->rc = -ENOMEM;
	for (uint32_t i = 0; i < set->nsamples && !line->rc; i++) {
		uint32_t at, thread = set->samples[i].key.thread;
		const struct wp_profile_thread *t = &profile->threads[thread];

		if (!w->number[i] || is_told[thread] || !is_several(profile, t))
			continue;
		is_told[thread] = true;
		at = wp_pairs_add(&entries, t->part,
				  t->part ? t->process : thread);
		if (at == UINT32_MAX) {
			line->rc = -ENOMEM;
			break;
		}
		entries.v[at].loc = w->number[i];
		entries.v[at].total += wp_processes_threads(t);
	}
	wp_buf_str(line, "entries:");
	for (uint32_t i = 0; i < entries.len; i++)
		wp_buf_printf(line, " %" PRIu32 "=%" PRIu64, entries.v[i].loc,
			      entries.v[i].total);
	wp_buf_char(line, '\0');
	wp_pairs_clear(&entries);
	free(is_told);
	return !line->rc && strchr(line->data, '=');
}

/* Entries that the file tells apart by labels of the program are one that was read. */
static void set_counts(struct wp_profile *profile, const uint64_t *counts)
{
	for (uint32_t i = 0; i < profile->nthreads; i++) {
		struct wp_profile_thread *t = &profile->threads[i];
		uint64_t n = counts[i] > UINT32_MAX ? UINT32_MAX : counts[i];

		/* 1 more than the count; 0: it is not told. */
		if (!n)
			continue;
		t->is_counted = n > 1;
		t->nmore = n > 2 ? (uint32_t)n - 2 : 0;
	}
}

void wp_pprof_read_entries(struct wp_pprof *p)
{
	struct wp_profile *profile = p->profile;
	const struct wp_sample_set *set = &profile->sets[p->kind];
	const char *at = wp_profile_str(profile, p->entries);
	uint64_t *counts = calloc((size_t)profile->nthreads + 1,
				  sizeof(*counts));

	if (!counts)
		p->rc = p->rc ? p->rc : -ENOMEM;
	while (!p->rc && *at) {
		char *end;
		uint64_t number = strtoull(at, &end, 10), n, *count;

		n = *end == '=' ? strtoull(end + 1, &end, 10) : UINT64_MAX;
		at = end;
		if (!number || number > p->nsamples || n > UINT32_MAX) {
			wp_pprof_bad(p, "its numbers of threads");
			break;
		}
		count = &counts[set->samples[p->samples[number - 1]]
					.key.thread];
		*count += n + !*count;
	}
	if (!p->rc)
		set_counts(profile, counts);
	free(counts);
}
