/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_maker.h - the server of profile_maker.h with a timeline of 10 s.
 *
 * Included by tests only, so it has code.  "server" alternates 900 ms of waiting in
 * epoll_wait and 100 ms of running; the workers wait for the lock, of which work-1
 * waits for work-2 at the end and work-2 for work-1, and run in the JIT, each 3 s
 * and 2 s in turn; a thread that nobody could read is runnable all the time,
 * and "idler" waits in epoll_wait.  50 s in all.
 */
#ifndef WP_TIMELINE_MAKER_H
#define WP_TIMELINE_MAKER_H

#include "profile_maker.h"

/* Add NS to sample I of WALL, which is in the log where it is added. */
static inline void mk_interval(struct wp_profile *p, uint32_t i, uint64_t ns)
{
	const struct wp_sample_key key =
		p->sets[WP_PROFILE_WALL].samples[i].key;

	assert_int_equal(wp_profile_add_sample(p, WP_PROFILE_WALL, &key,
					       ns / 10000000, ns),
			 0);
	p->sets[WP_PROFILE_WALL].samples[i].looks += ns / 10000000;
}

static inline void make_timeline(struct wp_profile *p)
{
	const uint64_t ms = 1000000, begin = UINT64_C(77) * 1000000000;
	struct wp_sample_set *set = &p->sets[WP_PROFILE_WALL];

	make_server(p);
	mk_sample(p, mk_thread(p, 104, "idler"), set->samples[0].key.stack,
		  WP_STATE_WAITING, WP_WAIT_POLL, "fd 6 epoll", 1, 1);
	wp_timeline_start(&p->timeline, 1 << 20);
	/* Samples: server waits, runs; each worker waits, runs, rare; the
	 * last. */
	for (uint32_t i = 0; i < set->nsamples; i++)
		set->samples[i].count = set->samples[i].wall_ns = 0;
	for (uint32_t i = 0; i < p->nthreads; i++) {
		p->threads[i].first_ns = begin;
		p->threads[i].last_ns = begin + 10000 * ms;
	}
	for (int i = 0; i < 10; i++) {
		mk_interval(p, 0, 900 * ms);
		mk_interval(p, 1, 100 * ms);
	}
	for (uint32_t worker = 0; worker < 2; worker++) {
		uint32_t first = 2 + 3 * worker;

		mk_interval(p, first, 3000 * ms);
		mk_interval(p, first + 1, 3950 * ms);
		mk_interval(p, first + 2, 50 * ms);
		mk_interval(p, first, 3000 * ms);
		wp_timeline_set_holder(&p->timeline, 1 + worker, 2 - worker);
	}
	mk_interval(p, 8, 10000 * ms);
	mk_interval(p, 9, 10000 * ms);
	wp_profile_add_up(p);
}

#endif
