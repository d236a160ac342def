/* SPDX-License-Identifier: Apache-2.0 */
/* site_cache.h - the stacks of one thread's wait sites.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * A waiting thread whose stack cannot be walked with pc and sp alone is stopped
 * once per site.  From then on, if pc, sp and each return address at its place on
 * the stack are as in the walk made then, the stack is the one found then.
 */
#ifndef WP_SITE_CACHE_H
#define WP_SITE_CACHE_H

#include "wallprof/types.h"

enum { WP_SITES = 8 };

struct wp_site {
	uint64_t pc_avma;
	uint64_t sp_avma;
	/* Generation of the module list that it was walked with. */
	uint64_t generation;
	/* frames[0..depth), cfa_avma[0..depth) as in wp_stack; owned. */
	struct wp_frame *frames;
	uint64_t *cfa_avma;
	uint32_t depth;
	enum wp_stack_end end;
};

struct wp_site_cache {
	struct wp_site v[WP_SITES];
	/* Index of the site to be replaced next. */
	unsigned int next;
};

/* Fill STACK from the site with this PC, SP and GENERATION whose return addresses
 * are in MEM.  False if there is none. */
bool wp_site_cache_find(const struct wp_site_cache *cache, uint64_t pc_avma,
			uint64_t sp_avma, uint64_t generation,
			const struct wp_mem *mem, struct wp_stack *stack);

/* Add STACK, walked with all registers from SP, in place of the oldest site.  0 or
 * -ENOMEM. */
int wp_site_cache_add(struct wp_site_cache *cache, uint64_t sp_avma,
		      uint64_t generation, const struct wp_stack *stack);

void wp_site_cache_clear(struct wp_site_cache *cache);

#endif
