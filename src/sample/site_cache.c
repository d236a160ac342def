/* SPDX-License-Identifier: Apache-2.0 */
/* site_cache.c - see site_cache.h. */
#include "site_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* On x86-64 a call leaves the return address just below the CFA.  On aarch64
 * it is wherever the prologue saved lr, so nothing is compared there and the
 * site never matches.
 */
static bool same_return_addresses(const struct wp_site *site,
				  const struct wp_mem *mem)
{
#if defined(__x86_64__)
	for (uint32_t i = 0; i + 1 < site->depth; i++) {
		const struct wp_frame *caller = &site->frames[i + 1];
		uint64_t ra;

		/* The pc of a frame below a signal trampoline is not on the
		 * stack as a return address. */
		if (!(caller->flags & WP_FRAME_RETURN))
			return false;
		if (mem->read(mem->ctx, site->cfa_avma[i] - sizeof(ra), &ra,
			      sizeof(ra)) ||
		    ra != caller->pc_avma)
			return false;
	}
	return true;
#else
	(void)site;
	(void)mem;
	return false;
#endif
}

bool wp_site_cache_find(const struct wp_site_cache *cache, uint64_t pc_avma,
			uint64_t sp_avma, uint64_t generation,
			const struct wp_mem *mem, struct wp_stack *stack)
{
	for (unsigned int i = 0; i < WP_SITES; i++) {
		const struct wp_site *site = &cache->v[i];

		if (!site->depth || site->pc_avma != pc_avma ||
		    site->sp_avma != sp_avma ||
		    site->generation != generation ||
		    site->depth > stack->cap ||
		    !same_return_addresses(site, mem))
			continue;
		memcpy(stack->frames, site->frames,
		       site->depth * sizeof(*site->frames));
		memcpy(stack->cfa_avma, site->cfa_avma,
		       site->depth * sizeof(*site->cfa_avma));
		stack->depth = site->depth;
		stack->end = site->end;
		return true;
	}
	return false;
}

int wp_site_cache_add(struct wp_site_cache *cache, uint64_t sp_avma,
		      uint64_t generation, const struct wp_stack *stack)
{
	struct wp_site *site = &cache->v[cache->next];
	struct wp_frame *frames;
	uint64_t *cfa;

	if (!stack->depth)
		return 0;
	frames = reallocarray(site->frames, stack->depth, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	site->frames = frames;
	site->depth = 0;
	cfa = reallocarray(site->cfa_avma, stack->depth, sizeof(*cfa));
	if (!cfa)
		return -ENOMEM;
	site->cfa_avma = cfa;
	memcpy(frames, stack->frames, stack->depth * sizeof(*frames));
	memcpy(cfa, stack->cfa_avma, stack->depth * sizeof(*cfa));
	site->pc_avma = stack->frames[0].pc_avma;
	site->sp_avma = sp_avma;
	site->generation = generation;
	site->depth = stack->depth;
	site->end = stack->end;
	cache->next = (cache->next + 1) % WP_SITES;
	return 0;
}

void wp_site_cache_clear(struct wp_site_cache *cache)
{
	for (unsigned int i = 0; i < WP_SITES; i++) {
		free(cache->v[i].frames);
		free(cache->v[i].cfa_avma);
	}
	memset(cache, 0, sizeof(*cache));
}
