/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_stacks.c - see wallprof/goroutine_stacks.h. */
#include "wallprof/goroutine_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "go_target.h"
#include "stack_walk.h"
#include "target.h"
#include "wallprof/clock.h"
#include "wallprof/epolls.h"
#include "wallprof/vec.h"

struct walker {
	struct wp_target *target;
	struct wp_goroutine_list *list;
	int rc;
};

/* The index of the stack whose only frame returns to PC; UINT32_MAX without
 * memory. */
static uint32_t intern_caller(struct wp_target *target, uint64_t pc_avma)
{
	struct wp_frame frame = wp_go_target_caller(target, pc_avma);
	struct wp_stack stack = { .frames = &frame,
				  .depth = 1,
				  .end = WP_END_ROOT };

	if (!pc_avma)
		return wp_stack_walk_intern_none(target, WP_END_EMPTY);
	return wp_profile_add_stack(target->profile, &stack, frame.mapping);
}

static int add(struct walker *walker, struct wp_goroutine *g, uint32_t own)
{
	struct wp_goroutine_list *list = walker->list;
	struct wp_goroutine_stacks stacks = {
		/* What began the first is the start of the program. */
		own,
		intern_caller(walker->target, g->id == 1 ? 0 : g->created_avma)
	};

	if (stacks.own == UINT32_MAX || stacks.created == UINT32_MAX ||
	    WP_VEC_ROOM(list->stacks, list->nstacks, list->cap_stacks, 1))
		return -ENOMEM;
	g->stack = list->nstacks;
	list->stacks[list->nstacks++] = stacks;
	return 0;
}

static bool walk_one(void *ctx, struct wp_goroutine *g,
		     const struct wp_goroutine_stack *stack, bool last)
{
	struct walker *walker = ctx;
	struct wp_target *target = walker->target;
	struct wp_stack_walk walk;

	if (walker->rc)
		return true;
	if (!stack) {
		walker->rc = add(
			walker, g,
			wp_stack_walk_intern_none(target, WP_END_EMPTY));
		return true;
	}
	walk = wp_go_target_walk(target, g, stack);
	if (!wp_stack_walk_is_whole(walk.stack.end) && !last)
		return false;
	walker->rc = add(walker, g, wp_stack_walk_intern(target, &walk));
	return true;
}

/* Which descriptors those wait for that wait in the runtime's poller. */
static int read_polls(struct wp_target *target, struct wp_go_target *go,
		      struct wp_goroutines *all)
{
	const struct wp_intern *strings = &target->profile->strings;
	struct wp_epolls epolls = WP_EPOLLS_INIT;
	bool any = false;
	int rc = 0;

	for (uint32_t i = 0; !any && i < all->len; i++)
		any = !strcmp(wp_intern_str(strings, all->v[i].reason),
			      "IO wait");
	if (any)
		rc = wp_epolls_read(&epolls, target->process->proc_fd);
	if (!rc)
		rc = wp_goroutine_objects_poll(go->program, epolls.v, epolls.n,
					       all);
	wp_epolls_clear(&epolls);
	return rc;
}

int wp_goroutine_stacks_read(struct wp_target *target,
			     struct wp_goroutine_list *list, struct wp_err *err)
{
	struct wp_go_target go = { .target = target };
	struct walker walker = { .target = target, .list = list };
	const struct wp_goroutine_user user = {
		.walk = walk_one,
		.ctx = &walker,
		.strings = &target->profile->strings,
		.reads_objects = true,
	};
	int rc = wp_go_target_open(&go, err);

	if (rc == -ENOENT) {
		if (err)
			*err = (struct wp_err)WP_ERR_INIT;
		return 0;
	}
	if (!rc) {
		snprintf(list->version, sizeof(list->version), "%s",
			 wp_go_program_version(go.program));
		list->time_ns = wp_clock_ns();
		rc = wp_goroutines_read(go.program, &user, &list->all);
	}
	if (!rc && !walker.rc)
		rc = read_polls(target, &go, &list->all);
	if (!rc && err)
		wp_go_target_say_more(&go, err->msg, sizeof(err->msg));
	wp_go_target_close(&go);
	return rc ? rc : walker.rc;
}

void wp_goroutine_stacks_clear(struct wp_goroutine_list *list)
{
	wp_goroutines_clear(&list->all);
	free(list->stacks);
	*list = (struct wp_goroutine_list)WP_GOROUTINE_LIST_INIT;
}
