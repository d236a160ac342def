/* SPDX-License-Identifier: Apache-2.0 */
/* site_cache.h - the stacks of one thread's wait sites.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * A waiting thread whose stack cannot be walked without its registers is
 * stopped once per site: when pc, sp and every return address in its place are
 * as they were in a walk with all registers, it is the same stack.
 */
#ifndef WP_SITE_CACHE_H
#define WP_SITE_CACHE_H

#include "wallprof/types.h"

enum { WP_SITES = 8 };

struct wp_site {
	uint64_t pc_avma;
	uint64_t sp_avma;
	/* Of the modules it was walked with. */
	uint64_t generation;
	/* frames[0..depth), cfa_avma[0..depth) as in wp_stack; owned. */
	struct wp_frame *frames;
	uint64_t *cfa_avma;
	uint32_t depth;
	enum wp_stack_end end;
};

struct wp_site_cache {
	struct wp_site v[WP_SITES];
	/* The one to be replaced next. */
	unsigned int next;
};

/* Fill STACK from the site that PC and SP and the return addresses which MEM
 * gives agree with.  False if there is none. */
bool wp_site_cache_find(const struct wp_site_cache *cache, uint64_t pc_avma,
			uint64_t sp_avma, uint64_t generation,
			const struct wp_mem *mem, struct wp_stack *stack);

/* Remember STACK, walked with all registers.  0 or -ENOMEM. */
int wp_site_cache_add(struct wp_site_cache *cache, uint64_t sp_avma,
		      uint64_t generation, const struct wp_stack *stack);

void wp_site_cache_clear(struct wp_site_cache *cache);

#endif
