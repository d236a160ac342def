/* SPDX-License-Identifier: Apache-2.0 */
/* ready_share.c - see ready_share.h. */
#include "ready_share.h"

#include "wallprof/clock.h"

/* What a share is of: long beside what the books tell late, short beside the time in
 * which a program comes to do something else. */
#define LATELY_NS WP_NS_PER_S

/* What ALL has grown to since it was *SEEN, which becomes that.  It may go back. */
static uint64_t growth(uint64_t *seen, uint64_t all)
{
	uint64_t ns = all > *seen ? all - *seen : 0;

	*seen = all;
	return ns;
}

/* How much of what goroutines had was a wait for a CPU. */
static uint64_t due(const struct wp_ready_share *share)
{
	uint64_t ready_ns = share->running_ns + share->runnable_ns;

	return ready_ns ? (uint64_t)((__uint128_t)share->had_ns *
				     share->runnable_ns / ready_ns) :
			  0;
}

/* What is older counts for half as much; what is not made up for stays. */
static void age(struct wp_ready_share *share)
{
	int64_t before_ns = (int64_t)due(share);

	share->running_ns /= 2;
	share->runnable_ns /= 2;
	share->had_ns /= 2;
	share->waited_ns += (int64_t)due(share) - before_ns;
}

uint64_t wp_ready_share_take(struct wp_ready_share *share,
			     const struct wp_time_ledger *ledger, uint64_t ns)
{
	int64_t left_ns;

	share->running_ns += growth(&share->all_running_ns,
				    ledger->all_running_ns);
	share->runnable_ns += growth(&share->all_runnable_ns,
				     ledger->all_runnable_ns);
	while (share->running_ns + share->runnable_ns > LATELY_NS)
		age(share);
	share->had_ns += ns;
	left_ns = (int64_t)due(share) - share->waited_ns;
	if (left_ns <= 0)
		return 0;
	if ((uint64_t)left_ns < ns)
		ns = (uint64_t)left_ns;
	share->waited_ns += (int64_t)ns;
	return ns;
}
