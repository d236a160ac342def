/* SPDX-License-Identifier: Apache-2.0 */
/* profile_refs.c - what a sampler keeps of a profile's entries: see
 * wp_sampler_renumber of wallprof/sampler.h. */
#include <string.h>

#include "block_records.h"
#include "sampler_loop.h"
#include "target.h"
#include "thread.h"
#include "thread_starts.h"
#include "wallprof/sampler.h"

static void refs_of_thread(struct wp_thread *t, struct wp_renumber *r)
{
	enum wp_ref sample = WP_REF_SAMPLE + t->target->loop->options.wall_kind;

	wp_renumber_ref(r, WP_REF_THREAD, &t->index);
	wp_renumber_key(r, WP_PROFILE_WALL, &t->wait.key);
	wp_renumber_ref(r, sample, &t->wait.sample);
	wp_renumber_ref(r, sample, &t->wait.look_sample);
	wp_renumber_ref(r, WP_REF_STACK, &t->last_running_stack);
	for (int kind = 0; kind < WP_NASIDES; kind++)
		wp_renumber_ref(r, WP_REF_STACK, &t->aside.stacks[kind]);
	if (t->stop.listed || t->stop.pending)
		wp_renumber_ref(r, WP_REF_STACK, &t->stop.partial_stack);
	wp_renumber_ref(r, WP_REF_STRING, &t->waits.waker);
	if (t->waits.every)
		wp_renumber_key(r, WP_PROFILE_WALL, &t->waits.key);
	if (t->waits.wake_ns)
		wp_renumber_key(r, WP_PROFILE_WAKE, &t->waits.wake);
}

static void refs_of_block_waits(struct wp_block_waits *b, struct wp_renumber *r)
{
	for (uint32_t i = 0; i < b->nwaits; i++)
		wp_renumber_key(r,
				b->waits[i].is_wake ? WP_PROFILE_WAKE :
						      WP_PROFILE_WALL,
				&b->waits[i].key);
	/* They are found again. */
	memset(b->wakers.names, 0, sizeof(b->wakers.names));
}

static void refs_of_target(struct wp_target *target, struct wp_renumber *r)
{
	wp_renumber_ref(r, WP_REF_PROCESS, &target->index);
	target->space.index = target->index;
	for (size_t i = 0; i < target->nthreads; i++)
		refs_of_thread(target->threads[i], r);
	for (size_t i = 0; i < target->nended; i++)
		refs_of_thread(target->ended[i], r);
	for (size_t i = 0; i < target->wait_queue.n; i++)
		wp_renumber_key(r, WP_PROFILE_WALL,
				&target->wait_queue.v[i].key);
	wp_thread_starts_renumber(target, r);
	wp_address_space_renumber(&target->space, r);
}

/* Calls' names, which a sample's key has room for only if they come first. */
static void refs_of_common(struct wp_common *common, struct wp_renumber *r)
{
	for (uint32_t i = 0; i < common->ncalls; i++) {
		uint32_t id = i;

		wp_renumber_ref(r, WP_REF_STRING, &id);
	}
	if (common->block_waits)
		refs_of_block_waits(common->block_waits, r);
}

static uint32_t count_objects(const struct wp_profile *profile)
{
	const struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];
	uint32_t n = 0;

	/* Several samples may have one. */
	for (uint32_t i = 0; i < set->nsamples; i++)
		n += set->samples[i].key.object != 0;
	set = &profile->sets[WP_PROFILE_BLOCK];
	for (uint32_t i = 0; i < set->nsamples; i++)
		n += set->samples[i].key.object >> 8 != 0;
	return n;
}

/* Close the files that no module is of any more.  The unwinder keeps what it made of a
 * file by its image: a new one begins without. */
static int close_files(struct wp_sampler *loop)
{
	struct wp_unwinder *unwinder;
	int rc = 0;

	for (size_t i = 0; i < loop->ncommons; i++)
		wp_modules_hold_images(&loop->commons[i]->modules);
	if (wp_image_cache_count_idle(&loop->images, false)) {
		rc = wp_unwinder_new(&unwinder, loop->options.backend);
		if (rc)
			return rc;
		wp_unwinder_free(loop->unwinder);
		loop->unwinder = unwinder;
	}
	return wp_image_cache_drop(&loop->images);
}

size_t wp_sampler_count_idle_files(const struct wp_sampler *loop)
{
	for (size_t i = 0; i < loop->ntargets; i++) {
		const struct wp_unwind_modules *view =
			&loop->targets[i]->space.view;

		for (size_t k = 0; k < view->len; k++)
			if (view->v[k].image)
				view->v[k].image->is_held = true;
	}
	return wp_image_cache_count_idle(&loop->images, true);
}

int wp_sampler_renumber(struct wp_sampler *loop, struct wp_profile *profile,
			struct wp_renumber *r)
{
	struct wp_common *common = wp_common_find_or_add(loop, profile);
	uint32_t nobjects;
	int rc;

	if (!common)
		return -ENOMEM;
	refs_of_common(common, r);
	for (size_t i = 0; i < loop->ntargets; i++)
		if (loop->targets[i]->profile == profile)
			refs_of_target(loop->targets[i], r);
	if (!r->is_numbered)
		return 0;
	nobjects = count_objects(profile);
	if (nobjects < common->nobjects)
		common->nobjects = nobjects;
	/* Those that have gone make room; the others are as many as entries. */
	common->nnames = 0;
	rc = wp_modules_renumber(&common->modules, r);
	return rc ? rc : close_files(loop);
}
