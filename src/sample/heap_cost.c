/* SPDX-License-Identifier: Apache-2.0 */
/* heap_cost.c - what probes on allocators take of their targets' time: see heap_state.h. */
#include <errno.h>

#include "heap_state.h"
#include "sampler_loop.h"
#include "target.h"

/* A probe that the kernel executes one step at a time, as those on mmap and its kin, costs
 * as much as so many others. */
enum { SLOW_PROBES = 15 };

/* Measure what probes on TARGET took since the last call. */
static void measure(struct wp_target *target, uint64_t now)
{
	struct wp_heap_samples *h = target->heap_samples;
	struct wp_heap_counts counts = wp_heap_probe_counts(h->probe);
	uint64_t ncalls = (counts.calls + counts.frees) *
				  (h->sites.nslow ? SLOW_PROBES : 1) +
			  SLOW_PROBES * counts.maps;
	uint64_t cpu_ns = wp_process_cpu_ns(target->process);
	double ns = (double)(now - h->counted_ns);

	h->spent = ns > 0 ? (double)(ncalls - h->ncalls) * (double)h->cost_ns /
				    ns :
			    0;
	h->ran = ns > 0 && cpu_ns > h->target_cpu_ns ?
			 (double)(cpu_ns - h->target_cpu_ns) / ns :
			 0;
	h->counted_ns = now;
	h->ncalls = ncalls;
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

int wp_heap_cost_judge(struct wp_target *target, uint64_t now,
		       struct wp_err *err)
{
	const struct wp_sampler_options *options = &target->loop->options;
	struct wp_heap_samples *h = target->heap_samples;
	bool is_dearest;
	double cost = wp_heap_cost_take(target, now, &is_dearest);

	if (options->heap_anyway || cost <= options->max_overhead ||
	    !is_dearest)
		return 0;
	wp_heap_probe_detach(h->probe, false);
	h->state = WP_HEAP_STOPPED;
	h->spent = h->ran = 0;
	return wp_err_set(
		err, -EDQUOT,
		"probes on the allocator would take %.0f %% of the "
		"time of %s (%.1f us for each call), and "
		"--max-overhead is %.0f %%: give --heap-anyway to "
		"make the profile all the same, --heap-large[=BYTES] "
		"to see what it takes from the kernel (so much and "
		"more at a time), which costs next to nothing, or "
		"--heap-census to see what its heap holds, by size",
		cost * 100,
		options->many ? "the threads of all processes" : "its threads",
		(double)h->cost_ns / 1e3, options->max_overhead * 100);
}
