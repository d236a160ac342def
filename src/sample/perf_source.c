/* SPDX-License-Identifier: Apache-2.0 */
/* perf_source.c - see perf_source.h. */
#include "perf_source.h"

#include <errno.h>

#include "wallprof/clock.h"

/* Close *PERF, counting what it lost. */
static void close_events(struct wp_perf_source *source, struct wp_perf **perf)
{
	if (*perf)
		source->closed_lost += wp_perf_stats(*perf)->lost;
	wp_perf_close(*perf);
	*perf = NULL;
}

/* PERF records from now on, and SOURCE's events no longer. */
static void replace(struct wp_perf_source *source, struct wp_perf *perf)
{
	close_events(source, &source->old);
	if (source->enabled)
		wp_perf_enable(perf);
	if (source->perf) {
		source->from_ns = wp_clock_ns();
		wp_perf_disable(source->perf);
		if (source->enabled)
			source->old = source->perf;
		else
			close_events(source, &source->perf);
	}
	source->perf = perf;
}

int wp_perf_source_open(struct wp_perf_source *source,
			const struct wp_process *process,
			const struct wp_perf_options *options,
			struct wp_err *err)
{
	struct wp_perf_options own = *options;
	struct wp_perf *perf;
	int rc;

	/* Records of OLD that were not read would be dropped. */
	if (source->enabled && source->old)
		return wp_err_set(err, -EBUSY,
				  "perf events are being replaced already");
	rc = wp_perf_open(&perf, process, &own, err);
	/* Events of threads are one for each thread on each CPU. */
	if (rc == -EMFILE && own.scope == WP_PERF_AUTO) {
		own.scope = WP_PERF_CPU;
		rc = wp_perf_open(&perf, process, &own, err);
	}
	if (rc)
		return rc;
	replace(source, perf);
	source->options = own;
	return 0;
}

void wp_perf_source_enable(struct wp_perf_source *source)
{
	source->enabled = true;
	if (source->perf)
		wp_perf_enable(source->perf);
}

void wp_perf_source_disable(struct wp_perf_source *source)
{
	source->enabled = false;
	if (source->perf)
		wp_perf_disable(source->perf);
}

bool wp_perf_source_next(struct wp_perf_source *source, uint64_t until_ns,
			 struct wp_perf_record *ret)
{
	if (source->old) {
		uint64_t from_ns = source->from_ns;

		if (wp_perf_next(source->old,
				 until_ns < from_ns ? until_ns : from_ns, ret))
			return true;
		if (until_ns < from_ns)
			return false;
		close_events(source, &source->old);
		/* By the copies of OLD, which were shorter. */
		source->stack_was_cut = false;
	}
	while (source->perf && wp_perf_next(source->perf, until_ns, ret))
		if (ret->time_ns >= source->from_ns)
			return true;
	return false;
}

void wp_perf_source_grow(struct wp_perf_source *source,
			 const struct wp_process *process)
{
	struct wp_perf_options options = source->options;

	if (!source->stack_was_cut || source->old)
		return;
	source->stack_was_cut = false;
	options.stack_bytes *= 4;
	if (options.stack_bytes > WP_PERF_STACK_MAX)
		options.stack_bytes = WP_PERF_STACK_MAX;
	source->cannot_grow = options.stack_bytes ==
				      source->options.stack_bytes ||
			      wp_perf_source_open(source, process, &options,
						  NULL);
}

uint64_t wp_perf_source_lost(const struct wp_perf_source *source)
{
	uint64_t lost = source->closed_lost;

	if (source->old)
		lost += wp_perf_stats(source->old)->lost;
	if (source->perf)
		lost += wp_perf_stats(source->perf)->lost;
	return lost;
}

void wp_perf_source_close(struct wp_perf_source *source)
{
	close_events(source, &source->old);
	close_events(source, &source->perf);
}
