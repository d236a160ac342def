/* SPDX-License-Identifier: Apache-2.0 */
/* books.h - take the scheduler's books of a thread over to its ledger and its
 * entry in the profile.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_BOOKS_H
#define WP_BOOKS_H

#include <stdbool.h>

#include "wallprof/procfs.h"

struct wp_thread;

/* A look at T with schedstat NOW at TIME_NS finds it READY to run, or else waiting:
 * its time up to then is owed.  Of a thread that waits, TIME_NS is before it was found
 * to wait: it may be woken right after, while wallprof has no CPU.  Of one that is
 * ready it is after NOW was read: what NOW tells has passed by then. */
void wp_books_look(struct wp_thread *t, const struct wp_schedstat *now,
		   uint64_t time_ns, bool ready);

/* T's schedstat was NOW at TIME_NS, between two looks. */
void wp_books_read(struct wp_thread *t, const struct wp_schedstat *now,
		   uint64_t time_ns);

/* The same in a recording that takes no samples of waiting and running threads: only
 * T's CPU time is wanted. */
void wp_books_count(struct wp_thread *t, const struct wp_schedstat *now);

/* T has had NS more of CPU time, modulo 2^64: so has its entry in the profile, or the
 * goroutines of its target. */
void wp_books_add_cpu(struct wp_thread *t, uint64_t ns);

/* A CPU sample of T at TIME_NS stands for PERIOD_NS: they are added if schedstat was read
 * last before that.  What it tells next makes them exact; if T ends before, they stand. */
void wp_books_add_sample(struct wp_thread *t, uint64_t time_ns,
			 uint64_t period_ns);

/* Close T's ledger: see wp_time_ledger_close.  Of a thread that ran when it was looked at
 * last, and has ENDED since, what the ledger owes as running is its CPU time since then:
 * the few samples since would tell the same with more noise. */
void wp_books_close(struct wp_thread *t, bool ended);

#endif
