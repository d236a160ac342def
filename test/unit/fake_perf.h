/* SPDX-License-Identifier: Apache-2.0 */
/* fake_perf.h - perf events whose records the test writes.
 *
 * A test that includes this defines wp_perf_*, so that those of the library are
 * not linked.
 */
#ifndef WP_TEST_FAKE_PERF_H
#define WP_TEST_FAKE_PERF_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/perf.h"

enum { FAKE_RECORDS = 256, FAKE_EVENTS = 32 };

struct wp_perf {
	struct wp_perf_options options;
	struct wp_perf_facts facts;
	struct wp_perf_stats stats;
	bool enabled, closed;
	struct wp_perf_record records[FAKE_RECORDS];
	size_t n, next;
	/* Wakes of these tids are recorded. */
	pid_t first_woken, last_woken;
	/* Calls of wp_perf_draw_periods. */
	uint32_t ndraws;
};

/* All events that were opened since fake_perf_reset, the last at [nopened - 1].
 */
static struct {
	/* What opening events of each scope gives: 0 or -errno. */
	int open_rc[WP_PERF_CPU + 1];
	/* What events are like that are opened from now on. */
	struct wp_perf_facts facts;
	/* Records of other processes that are read with each of ours. */
	uint64_t foreign_each;
	struct wp_perf *opened[FAKE_EVENTS];
	size_t nopened;
} fake_perf;

__attribute__((unused)) static void fake_perf_reset(void)
{
	while (fake_perf.nopened)
		free(fake_perf.opened[--fake_perf.nopened]);
	memset(&fake_perf, 0, sizeof(fake_perf));
	fake_perf.facts = (struct wp_perf_facts){
		.main_scope = WP_PERF_TASK,
		.switch_scope = WP_PERF_CPU,
		.switch_samples = true,
		.nrings = 1,
	};
}

__attribute__((unused)) static struct wp_perf *fake_perf_last(void)
{
	if (!fake_perf.nopened)
		abort();
	return fake_perf.opened[fake_perf.nopened - 1];
}

/* PERF records RECORD, whose borrowed parts the test keeps. */
__attribute__((unused)) static void
fake_perf_put(struct wp_perf *perf, const struct wp_perf_record *record)
{
	if (perf->next == perf->n)
		perf->next = perf->n = 0;
	if (perf->n == FAKE_RECORDS || perf->closed)
		abort();
	perf->records[perf->n++] = *record;
}

int wp_perf_open(struct wp_perf **ret, const struct wp_process *process,
		 const struct wp_perf_options *options, struct wp_err *err)
{
	int rc = fake_perf.open_rc[options->scope];
	struct wp_perf *perf;

	(void)process;
	if (rc)
		return wp_err_set(err, rc, "refused by the test");
	perf = calloc(1, sizeof(*perf));
	if (!perf || fake_perf.nopened == FAKE_EVENTS)
		abort();
	perf->options = *options;
	perf->facts = fake_perf.facts;
	if (options->scope == WP_PERF_CPU)
		perf->facts.main_scope = WP_PERF_CPU;
	fake_perf.opened[fake_perf.nopened++] = perf;
	*ret = perf;
	return 0;
}

void wp_perf_enable(struct wp_perf *perf)
{
	perf->enabled = true;
}

void wp_perf_disable(struct wp_perf *perf)
{
	perf->enabled = false;
}

void wp_perf_set_switch_samples(struct wp_perf *perf, uint64_t every)
{
	perf->options.switch_sample_every = every;
}

void wp_perf_set_wake_samples(struct wp_perf *perf, uint64_t every)
{
	perf->options.wake_sample_every = every;
}

void wp_perf_filter_wakes(struct wp_perf *perf,
			  const struct wp_tid_range *ranges, size_t n,
			  pid_t next)
{
	perf->first_woken = ranges[0].first;
	perf->last_woken = ranges[n - 1].last + next;
}

void wp_perf_draw_periods(struct wp_perf *perf, uint64_t period_ns)
{
	(void)period_ns;
	perf->ndraws++;
}

int wp_perf_each_output(const struct wp_perf *perf,
			int (*each)(void *ctx, int cpu, int fd), void *ctx)
{
	return perf->options.bpf_output ? each(ctx, 0, -1) : -EINVAL;
}

bool wp_perf_next(struct wp_perf *perf, uint64_t until_ns,
		  struct wp_perf_record *ret)
{
	if (perf->next == perf->n ||
	    perf->records[perf->next].time_ns >= until_ns)
		return false;
	*ret = perf->records[perf->next++];
	perf->stats.records++;
	perf->stats.foreign += fake_perf.foreign_each;
	perf->stats.lost += ret->lost;
	perf->stats.switch_samples += ret->type == WP_PERF_SAMPLE_SWITCH;
	perf->stats.wake_samples += ret->type == WP_PERF_SAMPLE_WAKE;
	return true;
}

const struct wp_perf_facts *wp_perf_facts(const struct wp_perf *perf)
{
	return &perf->facts;
}

const struct wp_perf_stats *wp_perf_stats(const struct wp_perf *perf)
{
	return &perf->stats;
}

/* It stays readable for the test until fake_perf_reset. */
void wp_perf_close(struct wp_perf *perf)
{
	if (perf)
		perf->closed = true;
}

#endif
