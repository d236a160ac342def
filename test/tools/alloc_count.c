/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_count - does sampling allocate?
 *
 * alloc_count [-c] [-k] PID FROM TO   tick until tick TO at 200 Hz, with CPU
 *                                     samples (-c), with the kernel's stacks
 *                                     (-k)
 *
 * Prints one JSON object: what malloc and its kin were asked between the ticks
 * FROM and TO, the samples of each kind in that time, how many stacks were
 * new, whether perf events were replaced, and where the first calls came from,
 * for addr2line.
 * Status 2: it cannot be looked at.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/sampler.h"

enum { CALLERS_MAX = 16 };

extern const char __executable_start[];

/* Between the marks. */
static bool counts;
static unsigned long nallocs, nfrees;
static uintptr_t callers[CALLERS_MAX];

/* A sanitizer has an allocator of its own. */
#ifndef __SANITIZE_ADDRESS__
static void note(unsigned long *count, const void *caller)
{
	if (!counts)
		return;
	if (nallocs + nfrees < CALLERS_MAX)
		callers[nallocs + nfrees] = (uintptr_t)caller;
	++*count;
}

/* glibc has them under these names too, for programs that replace them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

void *malloc(size_t size)
{
	note(&nallocs, __builtin_return_address(0));
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	note(&nallocs, __builtin_return_address(0));
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	note(&nallocs, __builtin_return_address(0));
	return __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	note(&nallocs, __builtin_return_address(0));
	return size && n > SIZE_MAX / size ? NULL : __libc_realloc(p, n * size);
}

void free(void *p)
{
	if (p)
		note(&nfrees, __builtin_return_address(0));
	__libc_free(p);
}
#endif

struct run {
	struct wp_process process;
	struct wp_profile profile;
	struct wp_tracer tracer;
	struct wp_sampler *sampler;
	struct wp_target *target;
};

static int start(struct run *r, pid_t pid,
		 const struct wp_sampler_options *options, struct wp_err *err)
{
	int rc = wp_profile_init(&r->profile);

	if (rc)
		return rc;
	wp_tracer_init(&r->tracer);
	rc = wp_process_open(&r->process, pid, err);
	if (!rc)
		rc = wp_sampler_new(&r->sampler, options, &r->tracer, err);
	return rc ? rc :
		    wp_sampler_add_target(r->sampler, &r->process, &r->profile,
					  &r->target, err);
}

/* What a profile has at one moment. */
struct mark {
	struct wp_counters counters;
	uint32_t nstacks;
	uint64_t cpu_samples;
	/* Where CPU time is from; interned. */
	uint32_t cpu_source;
};

static struct mark mark_of(struct run *r)
{
	wp_profile_add_up(&r->profile);
	return (struct mark){ r->profile.counters, r->profile.nstacks,
			      r->profile.sums[WP_PROFILE_WALL].cpu_count,
			      r->profile.meta.cpu_source };
}

/* Tick up to TO; BEFORE is what there is at FROM. */
static int tick(struct run *r, uint64_t from, uint64_t to, struct mark *before)
{
	int rc = 0;

	for (uint64_t n = 1; n <= to && !rc; n++) {
		uint64_t next = wp_sampler_next_tick(r->sampler, wp_clock_ns());

		if (n == from) {
			*before = mark_of(r);
			counts = true;
		}
		/* It may end early: see sampler.h. */
		while (!rc && wp_clock_ns() < next)
			rc = wp_sampler_sleep(r->sampler, next);
		if (!rc)
			rc = wp_sampler_tick(r->sampler);
	}
	counts = false;
	return rc;
}

static void print(const struct mark *before, const struct mark *after)
{
	const struct wp_counters *a = &before->counters, *b = &after->counters;

	printf("{\"allocs\": %lu, \"frees\": %lu, \"new_stacks\": %" PRIu32
	       ", \"unchanged\": %" PRIu64 ", \"no_stop\": %" PRIu64
	       ", \"stopped\": %" PRIu64 ", \"cpu\": %" PRIu64
	       ", \"new_events\": %d, \"callers\": [",
	       nallocs, nfrees, after->nstacks - before->nstacks,
	       b->unchanged - a->unchanged, b->no_stop - a->no_stop,
	       b->stopped - a->stopped,
	       after->cpu_samples - before->cpu_samples,
	       after->cpu_source != before->cpu_source);
	for (int i = 0; i < CALLERS_MAX && callers[i]; i++)
		printf("%s\"%#" PRIxPTR "\"", i ? ", " : "",
		       callers[i] - (uintptr_t)__executable_start);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	struct wp_sampler_options options = {
		.wall = true,
		.interval_ns = 5 * WP_NS_PER_MS,
		.stop = WP_STOP_AUTO,
		.max_depth = 512,
		.backend = WP_UNWIND_ROWS,
	};
	struct run r = { .process = WP_PROCESS_INIT };
	struct mark before = { .nstacks = 0 }, after;
	struct wp_err err = WP_ERR_INIT;
	int opt, rc;

	while ((opt = getopt(argc, argv, "ck")) != -1) {
		options.cpu |= opt == 'c';
		options.kernel |= opt == 'k';
	}
	if (argc - optind != 3)
		return 64;
	rc = start(&r, (pid_t)strtol(argv[optind], NULL, 10), &options, &err);
	if (!rc)
		rc = tick(&r, strtoul(argv[optind + 1], NULL, 10),
			  strtoul(argv[optind + 2], NULL, 10), &before);
	after = mark_of(&r);
	if (rc)
		fprintf(stderr, "alloc_count: %s\n",
			*err.msg ? err.msg : strerror(-rc));
	else
		print(&before, &after);
	wp_sampler_free(r.sampler);
	wp_tracer_clear(&r.tracer);
	wp_process_clear(&r.process);
	wp_profile_clear(&r.profile);
	return rc ? 2 : 0;
}
