/* SPDX-License-Identifier: Apache-2.0 */
/* merge_threads.c - see wallprof/merge_threads.h. */
#include "wallprof/merge_threads.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/profile_processes.h"

enum { NAME_MAX_BYTES = 64 };

/* NAME with each run of digits made '*'. */
static void make_pattern(const char *name, char pattern[NAME_MAX_BYTES])
{
	size_t n = 0;

	for (; *name && n + 1 < NAME_MAX_BYTES; name++) {
		bool digit = isdigit((unsigned char)*name);

		if (!digit || !n || pattern[n - 1] != '*')
			pattern[n++] = digit ? '*' : *name;
	}
	pattern[n] = '\0';
}

struct merge {
	struct wp_profile *profile;
	/* Index of the first entry that is made, and how many there may be. */
	uint32_t first;
	uint32_t most;
};

/* The process of the entry of THREAD: of many processes, one that stands for all with
 * the name of THREAD's. */
static uint32_t process_of(struct wp_profile *p, uint32_t thread)
{
	const struct wp_profile_process *process = wp_profile_process_of(
		p, &p->threads[thread]);

	return process && wp_profile_is_of_many(p) ?
		       wp_profile_share_process(
			       p, 0, wp_profile_str(p, process->name), 1) :
		       0;
}

/* The entry of NAME of PROCESS, made if new and if there are less than MOST;
 * UINT32_MAX: there is none. */
static uint32_t entry_of(struct merge *m, uint32_t process, const char *name,
			 uint32_t most)
{
	struct wp_profile *p = m->profile;
	struct wp_profile_thread thread = {
		.process = process,
		.name = wp_intern_add_str(&p->strings, name),
	};

	for (uint32_t i = m->first; i < p->nthreads; i++)
		if (p->threads[i].name == thread.name &&
		    p->threads[i].process == process)
			return i;
	return p->nthreads - m->first < most && thread.name != UINT32_MAX &&
			       process != UINT32_MAX ?
		       wp_profile_add_thread(p, &thread) :
		       UINT32_MAX;
}

/* The entry that thread I's samples go to; UINT32_MAX without memory. */
static uint32_t find_entry(struct merge *m, uint32_t i)
{
	static const char others[] = "[other threads]";
	struct wp_profile *p = m->profile;
	uint32_t process = process_of(p, i), index;
	char pattern[NAME_MAX_BYTES];

	make_pattern(wp_profile_str(p, p->threads[i].name), pattern);
	index = entry_of(m, process, pattern, m->most);
	/* Each process has others. */
	return index == UINT32_MAX ?
		       entry_of(m, process, others,
				m->most + 1 + p->nshared_processes) :
		       index;
}

static int add(struct wp_profile *p, const struct wp_profile_sample *s,
	       uint32_t thread)
{
	struct wp_sample_key key = s->key;
	struct wp_profile_sample *to;
	uint32_t hint = UINT32_MAX;
	int rc;

	key.thread = thread;
	key.object = 0;
	rc = wp_profile_add_sample_hinted(p, WP_PROFILE_WALL, &key, &hint,
					  s->count, s->wall_ns);
	if (rc)
		return rc;
	to = &p->sets[WP_PROFILE_WALL].samples[hint];
	to->cpu_count += s->cpu_count;
	to->cpu_ns += s->cpu_ns;
	to->exact_ns += s->exact_ns;
	to->looks += s->looks;
	to->weight_ns += s->weight_ns;
	return 0;
}

int wp_merge_threads(struct wp_profile *p, uint32_t most)
{
	struct wp_sample_set was = p->sets[WP_PROFILE_WALL];
	struct merge m = { .profile = p, .first = p->nthreads, .most = most };
	uint32_t *entry = calloc((size_t)p->nthreads + 1, sizeof(*entry));
	int rc = entry ? 0 : -ENOMEM;

	wp_timeline_clear(&p->timeline);
	p->sets[WP_PROFILE_WALL] = (struct wp_sample_set){ 0 };
	for (uint32_t i = 0; i < was.nsamples && !rc; i++) {
		const struct wp_profile_sample *s = &was.samples[i];
		uint32_t thread = s->key.thread;

		if (!wp_profile_is_sample(p, WP_PROFILE_WALL, s))
			continue;
		/* 0: not looked for; else the entry's index plus 1. */
		if (!entry[thread]) {
			entry[thread] = find_entry(&m, thread) + 1;
			rc = entry[thread] ? 0 : -ENOMEM;
		}
		if (!rc)
			rc = add(p, s, entry[thread] - 1);
	}
	free(entry);
	free(was.samples);
	wp_index_clear(&was.index);
	return rc;
}
