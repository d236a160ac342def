/* SPDX-License-Identifier: Apache-2.0 */
/* heap_cost.c - what probes on allocators take of their targets' time: see heap_state.h. */
#include <errno.h>
#include <math.h>

#include "heap_state.h"
#include "sampler_loop.h"
#include "target.h"
#include "wallprof/clock.h"

/* A probe that the kernel executes one step at a time, as those on mmap and its kin, costs
 * as much as so many others. */
enum { SLOW_PROBES = 15 };
/* A sampled call takes so much longer, with the probe of its return and the copy of its
 * stack: 8 us with a shallow one and 21 us with 32 KiB were measured. */
#define SAMPLE_NS (20 * WP_NS_PER_US)
/* Probes that have become too dear are told by what they took in the last such time. */
#define RECENT_NS (20 * WP_NS_PER_MS)

/* CPU time that COUNTS of probes took. */
static double spent_ns(const struct wp_target *target,
		       const struct wp_heap_counts *counts)
{
	const struct wp_heap_samples *h = target->heap_samples;
	/* Without --heap-anyway no such function is probed. */
	bool is_slow = h->sites.nslow && target->loop->options.heap_anyway;
	uint64_t ncalls = (counts->calls + counts->frees) *
				  (is_slow ? SLOW_PROBES : 1) +
			  SLOW_PROBES * counts->maps;

	/* Of several processes children have probes of their own, which count. */
	return (double)ncalls * (double)h->cost_ns +
	       (double)(counts->samples * SAMPLE_NS) +
	       (target->loop->options.many ? 0 : (double)h->children.spent_ns);
}

/* Measure what probes on TARGET took since the last call. */
static void measure(struct wp_target *target, uint64_t now)
{
	struct wp_heap_samples *h = target->heap_samples;
	struct wp_heap_counts counts = wp_heap_probe_counts(h->probe);
	uint64_t cpu_ns = wp_process_cpu_ns(target->process);
	double spent = spent_ns(target, &counts);
	double ns = (double)(now - h->counted_ns);

	h->spent = ns > 0 ? (spent - h->spent_ns) / ns : 0;
	h->ran = ns > 0 && cpu_ns > h->target_cpu_ns ?
			 (double)(cpu_ns - h->target_cpu_ns) / ns :
			 0;
	h->counted_ns = now;
	h->spent_ns = spent;
	h->target_cpu_ns = cpu_ns;
}

void wp_heap_cost_begin(struct wp_target *target, uint64_t now)
{
	measure(target, now);
	/* Since it began, no part of which was looked at. */
	target->heap_samples->spent = target->heap_samples->ran = 0;
}

double wp_heap_cost_take(struct wp_target *target, uint64_t now,
			 bool *ret_is_dearest)
{
	const struct wp_sampler *loop = target->loop;
	struct wp_heap_sums *sums = &target->common->heap;
	double spent = 0, ran = 0, most = 0, cost;

	measure(target, now);
	for (size_t i = 0; i < loop->ntargets; i++) {
		const struct wp_heap_samples *h =
			loop->targets[i]->heap_samples;

		if (loop->targets[i]->common != target->common || !h)
			continue;
		spent += h->spent;
		ran += h->ran;
		if (h->spent > most)
			most = h->spent;
	}
	*ret_is_dearest = target->heap_samples->spent >= most;
	cost = spent / (ran > 1 ? ran : 1);
	if (cost > sums->cost)
		sums->cost = cost;
	return cost;
}

bool wp_heap_cost_is_beyond(struct wp_target *target, uint64_t now,
			    uint64_t window_ns)
{
	const struct wp_sampler_options *options = &target->loop->options;
	struct wp_heap_samples *h = target->heap_samples;
	struct wp_heap_counts counts = wp_heap_probe_counts(h->probe);
	double spent = spent_ns(target, &counts);
	double ran = (double)wp_process_cpu_ns(target->process) -
		     (double)h->target_cpu_ns;

	if (options->heap_anyway)
		return false;
	if (now - h->recent_ns >= RECENT_NS) {
		h->recent = (spent - h->recent_spent_ns) /
			    (double)(now - h->recent_ns);
		h->recent_ns = now;
		h->recent_spent_ns = spent;
	}
	if (ran < (double)window_ns)
		ran = (double)window_ns;
	return spent - h->spent_ns > options->max_overhead * ran;
}

int wp_heap_cost_judge(struct wp_target *target, uint64_t now,
		       struct wp_err *err)
{
	const struct wp_sampler_options *options = &target->loop->options;
	struct wp_heap_samples *h = target->heap_samples;
	bool is_dearest;
	double cost = wp_heap_cost_take(target, now, &is_dearest);
	double recent = h->recent / (h->ran > 1 ? h->ran : 1);

	if (options->heap_anyway || cost <= options->max_overhead ||
	    !is_dearest)
		return 0;
	wp_heap_probe_detach(h->probe, false);
	h->state = WP_HEAP_STOPPED;
	h->stood_ns = now;
	h->spent = h->ran = 0;
	return wp_err_set(
		err, -EDQUOT,
		"probes on the allocator would take %.0f %% of the "
		"time of %s (%.1f us for each call, 20 us for each "
		"sample), and "
		"--max-overhead is %.0f %%: give --heap-anyway to "
		"make the profile all the same, --heap-large[=BYTES] "
		"to see what it takes from the kernel (so much and "
		"more at a time), which costs next to nothing, or "
		"--heap-census to see what its heap holds, by size",
		fmax(cost, recent) * 100,
		options->many	     ? "the threads of all processes" :
		h->children.spent_ns ? "its threads and forked children" :
				       "its threads",
		(double)h->cost_ns / 1e3, options->max_overhead * 100);
}
