/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h - an unwinder as the bench drives it. */
#ifndef WP_BENCH_BACKEND_H
#define WP_BENCH_BACKEND_H

#include "snap.h"

struct backend {
	const char *name;
	/* Get ready for snapshots of SET's process; NULL: it cannot. */
	void *(*open)(struct snap_set *set);
	/* Walk SNAP into pcs[0..), room for SNAP_FRAMES_MAX: how many. */
	size_t (*walk)(void *self, struct snap *snap, uint64_t *pcs);
	void (*close)(void *self);
};

/* wallprof's rows, and libunwind as wallprof drives it: a cursor a step, 64
 * address spaces. */
extern const struct backend backend_rows;
extern const struct backend backend_sharded;
/* libunwind as perf drives it: one address space, a cursor a walk. */
extern const struct backend backend_libunwind;
extern const struct backend backend_uncached;
/* As eu-stack. */
extern const struct backend backend_libdw;

#endif
