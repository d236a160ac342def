/* SPDX-License-Identifier: Apache-2.0 */
/* leaks.c - the table of leaks: stacks that allocate what is not freed. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

enum {
	TOP_LEAKS = 10,
	/* Callers of a leak that are shown beside it. */
	CALLERS = 3,
	COLUMNS = 2 + 8 + 2 + 10 + 9 + 2 + 8 + 2,
};

struct leak {
	uint32_t sample;
	uint64_t bytes, objects;
	/* Of BYTES. */
	double variance;
	/* Processes of one program may have one stack. */
	bool is_of_several;
};

static uint64_t bytes_of(const struct wp_report *r, uint32_t sample)
{
	return r->set->samples[sample].cpu_ns;
}

/* Names on the way from who allocates to its callers. */
struct way {
	struct wp_report *r;
	/* Frames of the standard library that it begins with, and whether there are
	 * others behind them. */
	unsigned int nlibrary;
	bool has_own;
	/* Seen so far, written so far. */
	unsigned int seen, n;
};

/* Of C++'s or Rust's standard library, as allocators, strings and vectors are. */
static bool is_of_library(const struct wp_view *view)
{
	static const char *const prefixes[] = {
		"std::",    "__gnu_cxx::", "alloc::", "core::",
		"<alloc::", "<core::",	   "<std::",
	};
	const char *name = view->function;

	for (size_t i = 0; name && i < sizeof(prefixes) / sizeof(*prefixes);
	     i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	/* Its traits are the library's own: <u8 as alloc::...>. */
	return name && name[0] == '<' && strstr(name, " as alloc::");
}

static bool count_library(void *ctx, const struct wp_view *view)
{
	struct way *way = ctx;

	way->has_own = !is_of_library(view);
	way->nlibrary += !way->has_own;
	return !way->has_own;
}

static bool put_caller(void *ctx, const struct wp_view *view)
{
	struct way *way = ctx;

	if (way->has_own && way->seen++ < way->nlibrary)
		return true;
	if (way->n++)
		wp_buf_str(&way->r->name, " < ");
	wp_report_name(way->r, view);
	return way->n <= CALLERS;
}

static uint32_t stack_of(const struct wp_report *r, uint32_t sample)
{
	return r->set->samples[sample].key.stack;
}

static const struct wp_profile_process *process_of(const struct wp_report *r,
						   uint32_t sample)
{
	return wp_profile_process_of(
		r->profile,
		&r->profile->threads[r->set->samples[sample].key.thread]);
}

/* Whose leak it is, where it could be another's. */
static void put_process(struct wp_report *r, const struct leak *leak)
{
	const struct wp_profile_process *process = process_of(r, leak->sample);

	if (!wp_profile_is_of_many(r->profile) || !process)
		return;
	if (leak->is_of_several) {
		wp_buf_str(&r->name, "several processes: ");
		return;
	}
	wp_escape_terminal(&r->name, wp_profile_str(r->profile, process->name));
	wp_buf_printf(&r->name, " (pid %" PRId32 "): ", process->pid);
}

static void put_leak(struct wp_report *r, const struct leak *leak)
{
	const struct wp_profile_meta *meta = &r->profile->meta;
	uint64_t bytes = leak->bytes;
	double seconds = (double)meta->leaks_ns / 1e9;
	double error = sqrt(leak->variance);
	char left[WP_CELL], rate[WP_CELL];
	struct way way = { .r = r };

	wp_report_bytes(left, bytes);
	wp_report_bytes(rate, (uint64_t)((double)bytes / seconds));
	wp_buf_printf(&r->out, "  %s  %s/s ±%3.0f %%  %8" PRIu64 "  ", left,
		      rate, bytes ? 200 * error / (double)bytes : 0,
		      leak->objects);
	put_process(r, leak);
	/* Its line is the program's own, wherever the library allocates. */
	wp_view_walk(r->profile, stack_of(r, leak->sample), false,
		     count_library, &way);
	wp_view_walk(r->profile, stack_of(r, leak->sample), false, put_caller,
		     &way);
	wp_report_end(r, COLUMNS);
}

/* Add to LEAK what SAMPLE, of the same stack, has: there may be one of each thread. */
static void add_sample(const struct wp_report *r, struct leak *leak,
		       uint32_t sample)
{
	uint64_t bytes = bytes_of(r, sample);

	if (!bytes)
		return;
	if (!leak->bytes)
		leak->sample = sample;
	leak->is_of_several |= process_of(r, sample) !=
			       process_of(r, leak->sample);
	leak->bytes += bytes;
	leak->objects += r->set->samples[sample].cpu_count;
	leak->variance += (double)r->set->samples[sample].weight_ns *
			  (double)r->profile->meta.heap_period;
}

static int compare_leaks(const void *a, const void *b)
{
	const struct leak *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static int compare_stacks(const void *a, const void *b, void *ctx)
{
	uint32_t x = stack_of(ctx, *(const uint32_t *)a),
		 y = stack_of(ctx, *(const uint32_t *)b);

	return (x > y) - (x < y);
}

static void put_title(struct wp_report *r)
{
	const struct wp_profile_meta *meta = &r->profile->meta;
	char title[512];

	snprintf(title, sizeof(title),
		 "Leaks: not freed in the %.1f s that the probes stood, and "
		 "older than half of them",
		 (double)meta->watched_ns / 1e9);
	wp_report_title(
		r,
		meta->is_census ?
			"Growth: what malloc holds more of than at first" :
		meta->watched_ns ?
			title :
			"Leaks: not freed, and older than half of the recording");
}

void wp_report_leaks(struct wp_report *r)
{
	uint32_t n = r->set->nsamples, nleaks = 0, shown = 0;
	uint32_t *order = calloc(n ? n : 1, sizeof(*order));
	struct leak *leaks = calloc(n ? n : 1, sizeof(*leaks));

	if (!r->profile->meta.leaks_ns || !order || !leaks) {
		wp_report_fail(r, order && leaks ? 0 : -ENOMEM);
		goto out;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), compare_stacks, r);
	for (uint32_t i = 0, end; i < n; i = end) {
		struct leak leak = { .sample = order[i] };

		for (end = i; end < n &&
			      stack_of(r, order[end]) == stack_of(r, order[i]);
		     end++)
			add_sample(r, &leak, order[end]);
		if (leak.bytes)
			leaks[nleaks++] = leak;
	}
	qsort(leaks, nleaks, sizeof(*leaks), compare_leaks);
	put_title(r);
	wp_buf_str(&r->out, "      left      growth         objects  ");
	wp_buf_str(&r->out,
		   r->profile->meta.is_census ? "of size\n" : "allocated by\n");
	for (; shown < nleaks && !wp_report_hides(r, shown, TOP_LEAKS); shown++)
		put_leak(r, &leaks[shown]);
	if (shown < nleaks)
		wp_buf_printf(&r->out, "  ... %" PRIu32 " more\n",
			      nleaks - shown);
out:
	free(order);
	free(leaks);
}
