/* SPDX-License-Identifier: Apache-2.0 */
/* folded.c - "thread;root;...;leaf WEIGHT" lines, of several processes
 * "process;thread;root;...", as flamegraph.pl and speedscope read them.  The weight is
 * microseconds; of values that are no times it is the value itself.  By flamegraph.pl's
 * conventions _[k] ends a kernel function's name, _[i] an inlined one's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "escape.h"
#include "view.h"
#include "wallprof/output.h"
#include "wallprof/vec.h"

struct folder {
	const struct wp_profile *profile;
	/* What the weights are. */
	struct wp_column column;
	bool is_of_time;
	/* The line being made. */
	struct wp_buf line;
	/* The lines without weights, and weight[id] of line ID; owned. */
	struct wp_intern stacks;
	uint64_t *weight;
	uint32_t cap;
};

static bool add_frame(void *ctx, const struct wp_view *view)
{
	struct folder *f = ctx;

	wp_buf_char(&f->line, ';');
	wp_escape_folded(&f->line, wp_view_name(view));
	if (view->kernel)
		wp_buf_str(&f->line, "_[k]");
	else if (view->inlined)
		wp_buf_str(&f->line, "_[i]");
	return true;
}

static int fold(struct folder *f, const struct wp_profile_sample *sample)
{
	const struct wp_profile *profile = f->profile;
	const struct wp_profile_thread *thread =
		&profile->threads[sample->key.thread];
	const struct wp_profile_process *process = wp_profile_process_of(
		profile, thread);
	const char *name = wp_profile_str(profile, thread->name);
	const char *of;
	uint32_t before = f->stacks.len, id;

	wp_buf_reset(&f->line);
	if (process && wp_profile_is_of_many(profile)) {
		of = wp_profile_str(profile, process->name);
		wp_escape_folded(&f->line, *of ? of : "[no name]");
		wp_buf_char(&f->line, ';');
	}
	wp_escape_folded(&f->line, *name ? name : "[no name]");
	wp_view_walk(profile, sample->key.stack, true, add_frame, f);
	if (f->line.rc)
		return f->line.rc;
	id = wp_intern_add(&f->stacks, f->line.data, f->line.len);
	if (id == UINT32_MAX || WP_VEC_ROOM(f->weight, id, f->cap, 1))
		return -ENOMEM;
	if (f->stacks.len != before)
		f->weight[id] = 0;
	f->weight[id] += wp_columns_value(sample, &f->column);
	return 0;
}

static int by_text(const void *a, const void *b, void *stacks)
{
	return strcmp(wp_intern_str(stacks, *(const uint32_t *)a),
		      wp_intern_str(stacks, *(const uint32_t *)b));
}

static int write_sorted(struct folder *f, FILE *out)
{
	uint32_t n = f->stacks.len;
	uint32_t *order = calloc((size_t)n + 1, sizeof(*order));

	wp_buf_reset(&f->line);
	if (!order) {
		wp_buf_clear(&f->line);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), by_text, &f->stacks);
	/* String 0 is "", which is no line. */
	for (uint32_t i = 1; i < n; i++) {
		uint64_t weight = f->weight[order[i]];

		if (f->is_of_time)
			weight = (weight + 500) / 1000;
		if (!weight)
			continue;
		wp_buf_str(&f->line, wp_intern_str(&f->stacks, order[i]));
		wp_buf_printf(&f->line, " %" PRIu64 "\n", weight);
		if (f->line.len > 1 << 16)
			wp_buf_write(&f->line, out);
	}
	free(order);
	return wp_buf_finish(&f->line, out);
}

int wp_write_folded(const struct wp_profile *profile, enum wp_profile_kind kind,
		    FILE *out)
{
	struct wp_columns c = wp_columns_of(&profile->meta, kind);
	struct folder f = { .profile = profile,
			    .column = c.v[c.main],
			    .is_of_time = !strcmp(
				    wp_columns_unit(profile, kind),
				    "nanoseconds"),
			    .stacks = WP_INTERN_INIT };
	const struct wp_sample_set *set = &profile->sets[kind];
	int rc = 0;

	if (wp_intern_add(&f.stacks, "", 0) == UINT32_MAX)
		rc = -ENOMEM;
	for (uint32_t i = 0; i < set->nsamples && !rc; i++)
		rc = fold(&f, &set->samples[i]);
	if (!rc)
		rc = write_sorted(&f, out);
	else
		wp_buf_clear(&f.line);
	free(f.weight);
	wp_intern_clear(&f.stacks);
	return rc;
}
