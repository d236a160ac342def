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

/* Write the leak by SAMPLE's stack, of which BYTES and OBJECTS are left. */
static void put_leak(struct wp_report *r, uint32_t sample, uint64_t bytes,
		     uint64_t objects)
{
	const struct wp_profile_meta *meta = &r->profile->meta;
	double seconds = (double)meta->leaks_ns / 1e9;
	/* The variance of bytes that were sampled every so many. */
	double error = meta->is_census ?
			       0 :
			       sqrt((double)bytes * (double)meta->heap_period);
	char left[WP_CELL], rate[WP_CELL];
	struct way way = { .r = r };

	wp_report_bytes(left, bytes);
	wp_report_bytes(rate, (uint64_t)((double)bytes / seconds));
	wp_buf_printf(&r->out, "  %s  %s/s ±%3.0f %%  %8" PRIu64 "  ", left,
		      rate, bytes ? 200 * error / (double)bytes : 0, objects);
	/* Its line is the program's own, wherever the library allocates. */
	wp_view_walk(r->profile, r->set->samples[sample].key.stack, false,
		     count_library, &way);
	wp_view_walk(r->profile, r->set->samples[sample].key.stack, false,
		     put_caller, &way);
	wp_report_end(r, COLUMNS);
}

/* One stack may have a sample in each thread. */
static uint64_t by_stack(const struct wp_report *r, const uint32_t *samples,
			 uint32_t n, uint64_t *ret_objects)
{
	uint64_t bytes = 0;

	*ret_objects = 0;
	for (uint32_t i = 0; i < n; i++) {
		bytes += bytes_of(r, samples[i]);
		*ret_objects += r->set->samples[samples[i]].cpu_count;
	}
	return bytes;
}

static uint32_t stack_of(const struct wp_report *r, uint32_t sample)
{
	return r->set->samples[sample].key.stack;
}

struct leak {
	uint32_t sample;
	uint64_t bytes, objects;
};

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
			      stack_of(r, order[end]) == stack_of(r, order[i]);)
			end++;
		leak.bytes = by_stack(r, order + i, end - i, &leak.objects);
		if (leak.bytes)
			leaks[nleaks++] = leak;
	}
	qsort(leaks, nleaks, sizeof(*leaks), compare_leaks);
	wp_report_title(
		r,
		r->profile->meta.is_census ?
			"Growth: what malloc holds more of than at first" :
			"Leaks: not freed, and older than half of the recording");
	wp_buf_str(&r->out, "      left      growth         objects  ");
	wp_buf_str(&r->out,
		   r->profile->meta.is_census ? "of size\n" : "allocated by\n");
	for (; shown < nleaks && !wp_report_hides(r, shown, TOP_LEAKS); shown++)
		put_leak(r, leaks[shown].sample, leaks[shown].bytes,
			 leaks[shown].objects);
	if (shown < nleaks)
		wp_buf_printf(&r->out, "  ... %" PRIu32 " more\n",
			      nleaks - shown);
out:
	free(order);
	free(leaks);
}
