/* SPDX-License-Identifier: Apache-2.0 */
/* heap_samples.c - see heap_samples.h. */
#include "heap_samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "heap_state.h"
#include "sampler_loop.h"
#include "target.h"
#include "wallprof/clock.h"
#include "wallprof/go_books.h"

enum {
	/* Ring buffers of all CPUs together, and most of one. */
	RINGS_BYTES = 64 << 20,
	RING_MOST = 16 << 20,
	FIRST_STACK = 32 << 10,
	/* While others are recorded, this part of the time is used to open more, past
	 * the first OPEN_NS. */
	OPEN_EVERY = 10,
	/* Times that an allocator is searched in a process that runs already: it
	 * may just have executed a program. */
	TRIES = 5,
};
#define OPEN_NS WP_NS_PER_S
/* Calls are counted for so long before they are sampled. */
#define COUNT_NS (20 * WP_NS_PER_MS)
/* Time between two looks at costs and mappings; until an allocator is found, the other. */
#define LOOK_NS WP_NS_PER_S
#define FIRST_LOOK_NS WP_NS_PER_MS
/* A program that has begun maps its libraries within HURRY_NS.  Records are handed out in
 * order of time when they are ORDER_NS old. */
#define HURRY_NS WP_NS_PER_S
#define ORDER_NS (2 * WP_NS_PER_MS)

static int set_output(void *ctx, int cpu, int fd)
{
	return wp_heap_probe_set_output(ctx, cpu, fd);
}

static int open_events(struct wp_target *target, struct wp_err *err)
{
	struct wp_heap_samples *h = target->heap_samples;
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	/* Of 16 processes all together have 3.4 times as much as one. */
	size_t share = (size_t)RINGS_BYTES / (size_t)(cpus > 0 ? cpus : 1) /
		       (target->common->heap.nopen + 1);
	const struct wp_perf_options options = {
		.scope = WP_PERF_CPU,
		.bpf_output = true,
		.tasks = true,
		.stack_bytes = FIRST_STACK,
		.user_regs = true,
		.ring_bytes = share < RING_MOST ? share : RING_MOST,
	};
	int rc = wp_perf_source_open(&h->events, NULL, &options, err);

	if (rc)
		return rc;
	wp_perf_source_enable(&h->events);
	rc = wp_perf_each_output(h->events.perf, set_output, h->probe);
	return rc ? wp_err_set(err, rc,
			       "cannot connect BPF and perf events: %s",
			       strerror(-rc)) :
		    0;
}

/* Calls have been counted long enough: sample, or say that it would cost too much. */
static int begin_sampling(struct wp_target *target, uint64_t now,
			  struct wp_err *err)
{
	struct wp_heap_samples *h = target->heap_samples;
	int rc = wp_heap_cost_judge(target, now, err);

	if (rc)
		return rc;
	rc = wp_heap_probe_arm(h->probe);
	if (rc)
		return wp_err_set(err, rc, "cannot begin to sample: %s",
				  strerror(-rc));
	h->state = WP_HEAP_SAMPLING;
	h->next_look_ns = now + LOOK_NS;
	return 0;
}

static int say_slow(const struct wp_target *target, struct wp_err *err)
{
	const char *file = target->heap_samples->sites.slow_file;

	return wp_err_set(err, -ENOTSUP,
			  "each probe on the allocator%s%s would take 10 us "
			  "and more, as the kernel emulates none of its first "
			  "instructions: give --heap-anyway to make it all the "
			  "same",
			  *file ? " of " : "", file);
}

/* Probe what is mapped now; when there is something, begin to count. */
static int search(struct wp_target *target, uint64_t now, struct wp_err *err)
{
	struct wp_heap_samples *h = target->heap_samples;
	int rc;

	h->nexecs = target->space.nexecs;
	rc = wp_heap_sites_search(&h->sites, target, h->probe, err);
	/* It has executed another program: the next look, which is soon, finds that. */
	if (rc == -ENOENT) {
		*err = (struct wp_err)WP_ERR_INIT;
		h->next_look_ns = now + FIRST_LOOK_NS;
		return 0;
	}
	/* Of what others allocate and free, little could be told; one that comes later
	 * may not be the allocator. */
	if (!rc && h->state != WP_HEAP_SAMPLING && h->sites.slow_file[0] &&
	    !target->loop->options.heap_large &&
	    !target->loop->options.heap_anyway)
		return say_slow(target, err);
	if (rc || h->state != WP_HEAP_SEARCHING)
		return rc;
	h->next_look_ns = now + FIRST_LOOK_NS;
	if (!h->sites.nprobed)
		return 0;
	if (target->loop->options.heap_anyway)
		return begin_sampling(target, now, err);
	h->state = WP_HEAP_COUNTING;
	wp_heap_cost_begin(target, now);
	h->next_look_ns = now + COUNT_NS;
	return 0;
}

static int say_none_found(const struct wp_target *target, struct wp_err *err)
{
	const struct wp_heap_samples *h = target->heap_samples;

	if (h->sites.nvanished || target->space.nexecs > 1)
		return wp_err_set(err, -ENOENT,
				  "the process executes one program after the "
				  "other, or unmaps its allocator, before that "
				  "can be probed");
	if (target->loop->options.heap_large)
		return wp_err_set(err, -ENOENT,
				  "no mmap is found in the program or its "
				  "libraries (a static program without "
				  "symbols?)");
	if (h->sites.nslow)
		return say_slow(target, err);
	return wp_err_set(err, -ENOENT,
			  "no malloc is found in the program or its libraries "
			  "(%s): give --heap-large to see what it takes from "
			  "the kernel",
			  h->sites.ncut ? "not all symbols could be read" :
					  "a static program without symbols, "
					  "or one that ended at once?");
}

/* Links find a process's memory by its first thread, perf events by any. */
static int open_probe(struct wp_target *target, struct wp_err *err)
{
	const struct wp_sampler_options *options = &target->loop->options;
	const struct wp_process *process = target->process;
	bool headless = process->reader_tid != process->pid;
	enum wp_heap_tier tier = options->heap_tier;
	struct wp_heap_samples *h = target->heap_samples;
	int rc;

	if (headless && tier == WP_HEAP_TIER_AUTO)
		tier = WP_HEAP_TIER_PERF;
	if (headless && tier != WP_HEAP_TIER_PERF)
		return wp_err_set(
			err, -ENOTSUP,
			"the process's first thread has ended, so its "
			"allocator can be probed with --heap-probe "
			"perf only");
	h->probe_tid = process->reader_tid;
	if (tier == WP_HEAP_TIER_AUTO && wp_heap_refuse_wants_perf())
		tier = WP_HEAP_TIER_PERF;
	/* A session has each call of another session's process return through its
	 * probe (kernel/trace/bpf_trace.c, uprobe_prog_run): what several cost is
	 * what two probes for each call cost. */
	if (options->many && tier == WP_HEAP_TIER_AUTO) {
		rc = wp_heap_probe_open(&h->probe, h->probe_tid,
					options->heap_rate, WP_HEAP_TIER_MULTI,
					err);
		if (rc != -ENOTSUP)
			return rc;
		tier = WP_HEAP_TIER_PERF;
	}
	return wp_heap_probe_open(&h->probe, h->probe_tid, options->heap_rate,
				  tier, err);
}

/* As many are probed as rings and tables are bounded for, and others that begin later as
 * long as the first are recorded meanwhile. */
static int refuse_one_more(const struct wp_target *target, struct wp_err *err)
{
	const struct wp_heap_sums *sums = &target->common->heap;

	if (sums->nopen >= WP_HEAP_PROCESSES_MAX)
		return wp_err_set(err, -EMFILE,
				  "no more than %d processes are probed at "
				  "once",
				  WP_HEAP_PROCESSES_MAX);
	if (sums->open_ns >
	    OPEN_NS + (wp_clock_ns() - target->loop->start_ns) / OPEN_EVERY)
		return wp_err_set(err, -EAGAIN,
				  "processes began faster than they can be "
				  "probed");
	return 0;
}

static int open_probes(struct wp_target *target, struct wp_err *err)
{
	struct wp_heap_samples *h = target->heap_samples;
	const struct timespec wait = { .tv_nsec = COUNT_NS };
	const struct timespec again = { .tv_nsec = FIRST_LOOK_NS };
	int rc = wp_heap_refuse(target, err);

	if (!rc)
		rc = refuse_one_more(target, err);
	if (!rc)
		rc = open_probe(target, err);
	if (!rc)
		rc = open_events(target, err);
	if (rc)
		return rc;
	target->space.probe = h->probe;
	h->cost_ns = wp_heap_probe_cost_ns(h->probe);
	h->counted_ns = wp_clock_ns();
	rc = search(target, h->counted_ns, err);
	/* The command has ended. */
	if (rc == -ESRCH && target->held)
		return 0;
	/* A program that has just begun has no libraries so far; others are not to
	 * wait for it. */
	if (rc || target->held || target->loop->options.many)
		return rc;
	for (int i = 0; !rc && h->state == WP_HEAP_SEARCHING && i < TRIES;
	     i++) {
		nanosleep(&again, NULL);
		if (wp_address_space_reload(&target->space, true) == 1)
			rc = search(target, wp_clock_ns(), err);
	}
	if (rc)
		return rc;
	if (h->state == WP_HEAP_SEARCHING && !h->sites.nvanished &&
	    !target->space.nexecs)
		return say_none_found(target, err);
	if (h->state != WP_HEAP_COUNTING)
		return 0;
	nanosleep(&wait, NULL);
	return begin_sampling(target, wp_clock_ns(), err);
}

static int open_kind(struct wp_target *target, struct wp_err *err)
{
	const struct wp_sampler_options *options = &target->loop->options;
	struct wp_heap_samples *h = target->heap_samples;

	h->is_go = wp_go_books_can_read(target);
	if (h->is_go && (options->heap_census || options->many))
		return wp_err_set(err, -ENOTSUP,
				  "a Go program has no heap of malloc: leave "
				  "out %s to have its own profile",
				  options->many ? "the other processes" :
						  "--heap-census");
	if (h->is_go)
		return 0;
	if (target->space.is_32bit)
		return wp_err_set(err, -ENOTSUP,
				  "no heap profiles of 32-bit programs");
	if (options->heap_census)
		return wp_heap_census_begin(&h->census, target, err);
	return open_probes(target, err);
}

int wp_heap_samples_open(struct wp_target *target, struct wp_err *err)
{
	struct wp_heap_sums *sums = &target->common->heap;
	struct wp_heap_samples *h = calloc(1, sizeof(*h));
	uint64_t begin_ns = wp_clock_ns();
	int rc;

	if (!h)
		return wp_err_set(err, -ENOMEM, "no memory");
	target->heap_samples = h;
	rc = open_kind(target, err);
	h->is_open = h->probe != NULL;
	sums->nopen += h->is_open;
	if (target->loop->opened)
		sums->open_ns += wp_clock_ns() - begin_ns;
	if (!rc || !target->loop->options.many || rc == -ENOMEM ||
	    rc == -EPERM || rc == -ESRCH)
		return rc;
	/* The others are recorded all the same. */
	h->state = WP_HEAP_STOPPED;
	h->is_go = false;
	h->why = *err;
	*err = (struct wp_err)WP_ERR_INIT;
	return 0;
}

/* Longer copies of stacks, if one was cut; the program's records go there. */
static void grow_copies(struct wp_target *target)
{
	struct wp_heap_samples *h = target->heap_samples;
	const struct wp_perf *before = h->events.perf;

	wp_perf_source_grow(&h->events, NULL);
	if (h->events.perf != before)
		(void)!wp_perf_each_output(h->events.perf, set_output,
					   h->probe);
}

/* A process may write its code over the kernel's breakpoints. */
static void note_overwritten(struct wp_target *target)
{
	struct wp_heap_samples *h = target->heap_samples;
	size_t n;

	/* They are removed; they are those of another program, until the next
	 * search. */
	if (h->state == WP_HEAP_STOPPED || target->space.nexecs != h->nexecs)
		return;
	n = wp_heap_sites_count_overwritten(&h->sites, target);
	if (n > h->noverwritten)
		h->noverwritten = n;
}

/* Do TARGET's probes stand?  The kernel removes those by perf events when the thread by
 * which it knows the process's memory ends, though other threads live. */
static bool are_probes_there(struct wp_target *target)
{
	struct wp_heap_samples *h = target->heap_samples;

	if (h->why.code || wp_heap_probe_tier(h->probe) != WP_HEAP_TIER_PERF ||
	    wp_process_has_living(target->process, h->probe_tid) ||
	    !wp_process_is_alive(target->process))
		return true;
	h->state = WP_HEAP_STOPPED;
	(void)!wp_err_set(
		&h->why, -ESRCH,
		"the thread by which the kernel finds probes of perf "
		"events has ended (the next recording takes another)");
	return false;
}

/* It is time: see what probes cost, and what is mapped. */
static int look(struct wp_target *target, uint64_t now)
{
	struct wp_heap_samples *h = target->heap_samples;
	int rc = 0;

	h->next_look_ns = now + LOOK_NS;
	if (!are_probes_there(target))
		return 0;
	h->stood_ns = now;
	if (wp_heap_refuse(target, &h->why)) {
		h->state = WP_HEAP_STOPPED;
		wp_heap_probe_detach(h->probe, true);
		return 0;
	}
	if (h->state == WP_HEAP_COUNTING)
		rc = begin_sampling(target, now, &h->why);
	else if (h->state == WP_HEAP_SAMPLING)
		rc = wp_heap_cost_judge(target, now, &h->why);
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	if (wp_address_space_reload(&target->space,
				    h->state == WP_HEAP_SEARCHING) == 1 ||
	    h->sites.generation != target->space.view.generation)
		rc = search(target, now, &h->why);
	note_overwritten(target);
	if (!rc || rc == -ENOMEM)
		return rc;
	h->state = WP_HEAP_STOPPED;
	return 0;
}

int wp_heap_samples_tick(struct wp_target *target)
{
	struct wp_heap_samples *h = target->heap_samples;
	uint64_t now;
	int rc;

	if (!h || !h->probe)
		return 0;
	now = wp_clock_ns();
	rc = wp_heap_records_read(target, now - ORDER_NS);
	if (wp_heap_probe_tier(h->probe) != WP_HEAP_TIER_PERF)
		wp_heap_children_spare(&h->children, h->probe, now);
	if (h->state == WP_HEAP_STOPPED)
		wp_heap_probe_detach(h->probe, false);
	else if (!rc && (now >= h->next_look_ns ||
			 (h->state == WP_HEAP_SAMPLING &&
			  wp_heap_cost_is_beyond(target, now, LOOK_NS))))
		rc = look(target, now);
	if (!rc)
		grow_copies(target);
	return rc;
}

bool wp_heap_samples_hurry(const struct wp_target *target)
{
	const struct wp_heap_samples *h = target->heap_samples;

	return h && h->probe && h->state == WP_HEAP_SEARCHING &&
	       wp_clock_ns() - target->start_ns < HURRY_NS;
}

/* Read the heap profile that the Go program keeps. */
static int read_go(struct wp_target *target)
{
	struct wp_heap_samples *h = target->heap_samples;
	struct wp_profile *profile = target->profile;
	int rc = wp_go_books_read(target, WP_PROFILE_HEAP, &h->why);

	if (!rc || rc == -ENOMEM)
		return rc;
	profile->meta.source[WP_PROFILE_HEAP] = wp_intern_add_str(
		&profile->strings, h->why.msg);
	return 0;
}

static int finish_probes(struct wp_target *target)
{
	struct wp_heap_samples *h = target->heap_samples;
	bool is_dearest;
	int rc;

	(void)wp_heap_cost_take(target, wp_clock_ns(), &is_dearest);
	if (are_probes_there(target) &&
	    wp_address_space_reload(&target->space, false) >= 0)
		note_overwritten(target);
	/* Now: what follows may take long, and they cost the target time. */
	wp_heap_probe_detach(h->probe, true);
	wp_perf_source_disable(&h->events);
	rc = wp_heap_records_read(target, UINT64_MAX);
	if (!rc && h->state == WP_HEAP_SEARCHING)
		(void)!say_none_found(target, &h->why);
	return rc ? rc : wp_heap_in_use_add(target);
}

int wp_heap_samples_finish(struct wp_target *target)
{
	struct wp_heap_samples *h = target->heap_samples;
	int rc;

	if (!h)
		return 0;
	if (h->is_go)
		return read_go(target);
	if (h->census)
		return wp_heap_census_end(h->census, target);
	rc = h->probe ? finish_probes(target) : 0;
	wp_heap_sums_add(target);
	return rc;
}

void wp_heap_samples_close(struct wp_target *target)
{
	struct wp_heap_samples *h = target->heap_samples;

	if (!h)
		return;
	target->common->heap.nopen -= h->is_open;
	target->space.probe = NULL;
	wp_heap_probe_close(h->probe);
	wp_perf_source_close(&h->events);
	wp_heap_sites_clear(&h->sites);
	wp_heap_objects_clear(&h->objects);
	wp_heap_maps_clear(&h->maps);
	free(h->census);
	free(h);
	target->heap_samples = NULL;
}
