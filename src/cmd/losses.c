/* SPDX-License-Identifier: Apache-2.0 */
/* losses.c - see losses.h. */
#include "losses.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	/* Least CPU time to judge by, in sampling intervals. */
	CPU_INTERVALS = 3,
	/* As many pass without a look that meets a thread by chance: exp(-10). */
	UNMET_INTERVALS = 10,
};

/* The part of MEASURE that has no whole stack.  OF_MANY: of several processes, of which
 * many have ended before a sample was due. */
static uint64_t cut_part(const struct wp_profile_measure *measure,
			 const struct wp_options *options, bool of_many)
{
	uint64_t cut = measure->all - measure->ends[WP_END_ROOT];
	uint64_t unmet = measure->ends[WP_END_NOT_SEEN];

	/* The waiter's stack stands for a holder's that no lock names. */
	cut -= measure->ends[WP_END_DEPTH_LIMIT] + measure->ends[WP_END_HOLDER];
	if (of_many || unmet < UNMET_INTERVALS * options->sampler.interval_ns)
		cut -= unmet;
	return options->sampler.stop == WP_STOP_NEVER ?
		       cut - measure->ends[WP_END_EMPTY] -
			       measure->ends[WP_END_NOT_SAMPLED] -
			       measure->ends[WP_END_NO_STOPS] :
		       cut;
}

/* LEAST: what is too little to judge by. */
static bool is_cut(const struct wp_profile_measure *measure, uint64_t least,
		   const struct wp_options *options, bool of_many,
		   char text[WP_LOSSES_TEXT])
{
	uint64_t cut = cut_part(measure, options, of_many);

	if (cut <= measure->all / 10 || cut < least)
		return false;
	snprintf(text, WP_LOSSES_TEXT, "%.3g %% of %s %s no whole stack",
		 100 * (double)cut / (double)measure->all, measure->name,
		 measure->name[0] == 't' ? "have" : "has");
	return true;
}

static bool has_cut_stacks(const struct wp_profile *profile,
			   const struct wp_options *options,
			   char text[WP_LOSSES_TEXT])
{
	/* A process that hardly runs: its CPU time is of one sample or two. */
	const uint64_t least[] = { 0, CPU_INTERVALS *
					      options->sampler.interval_ns };

	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++) {
		const struct wp_profile_sums *sums = &profile->sums[kind];

		if (!(options->kinds & 1u << kind))
			continue;
		for (unsigned int i = 0; i < sums->nmeasures; i++)
			if (is_cut(&sums->measures[i], least[i], options,
				   wp_profile_is_of_many(profile), text))
				return true;
	}
	return false;
}

bool wp_losses_find(const struct wp_profile *profile,
		    const struct wp_options *options, char text[WP_LOSSES_TEXT])
{
	const struct wp_counters *c = &profile->counters;
	uint64_t samples = profile->sums[WP_PROFILE_WALL].count;
	/* No allocation is sampled at a tick. */
	bool of_ticks = options->kinds != 1u << WP_PROFILE_HEAP;

	text[0] = '\0';
	if (c->unnamed)
		snprintf(text, WP_LOSSES_TEXT, "naming functions failed");
	else if (wp_counters_dropped(c))
		snprintf(text, WP_LOSSES_TEXT,
			 "the memory of --max-memory was full");
	else if (of_ticks && c->missed_ticks > c->ticks)
		snprintf(text, WP_LOSSES_TEXT,
			 "more ticks were missed (%" PRIu64
			 ") than made (%" PRIu64 ")",
			 c->missed_ticks, c->ticks);
	else if (c->samples_lost > (samples + c->samples_lost) / 10)
		snprintf(text, WP_LOSSES_TEXT,
			 "%" PRIu64 " samples could not be taken and %" PRIu64
			 " were",
			 c->samples_lost, samples);
	else if (c->heap_lost > c->heap_samples / 10)
		snprintf(text, WP_LOSSES_TEXT,
			 "%" PRIu64 " of %" PRIu64
			 " samples of allocations were lost",
			 c->heap_lost, c->heap_samples);
	else if (c->heap_overwritten)
		snprintf(text, WP_LOSSES_TEXT,
			 "the process has written over %" PRIu64
			 " probes on its allocator",
			 c->heap_overwritten);
	else if (c->heap_throwing)
		snprintf(text, WP_LOSSES_TEXT,
			 "%" PRIu64 " samples of allocations, of operator new, "
			 "are not known to be in use",
			 c->heap_throwing);
	else if (c->heap_ended)
		snprintf(text, WP_LOSSES_TEXT, "the heap profile %s",
			 wp_profile_is_of_many(profile) ?
				 "is not whole of each process" :
				 "ended before the recording");
	else if (c->heap_unread)
		snprintf(text, WP_LOSSES_TEXT,
			 "more than a tenth of the heap was not read, or "
			 "changed meanwhile");
	else
		return has_cut_stacks(profile, options, text);
	return true;
}
