/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_stacks.c - see wallprof/goroutine_stacks.h. */
#include "wallprof/goroutine_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <stdio.h>

#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "wallprof/clock.h"
#include "wallprof/vec.h"

struct walker {
	struct wp_target *target;
	struct wp_goroutine_list *list;
	int rc;
};

static int read_ranges(void *ctx, struct wp_process_range *v, size_t n)
{
	return wp_process_read_ranges(ctx, v, n);
}

/* The index of the stack whose only frame returns to PC; UINT32_MAX without
 * memory. */
static uint32_t intern_caller(struct wp_target *target, uint64_t pc_avma)
{
	const struct wp_unwind_module *module = wp_unwind_find_module(
		&target->space.view, pc_avma - 1);
	struct wp_frame frame = {
		.pc_avma = pc_avma,
		.mapping = module ? module->mapping : WP_MAPPING_NONE,
		.flags = WP_FRAME_RETURN,
	};
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

static bool is_whole(const struct wp_stack *stack)
{
	return stack->end == WP_END_ROOT || stack->end == WP_END_DEPTH_LIMIT;
}

static bool walk_one(void *ctx, struct wp_goroutine *g,
		     const struct wp_goroutine_stack *stack, bool last)
{
	struct walker *walker = ctx;
	struct wp_target *target = walker->target;
	struct wp_regs regs = { .known = 0 };
	struct wp_stack_walk walk;

	if (walker->rc)
		return true;
	if (!stack) {
		walker->rc = add(
			walker, g,
			wp_stack_walk_intern_none(target, WP_END_EMPTY));
		return true;
	}
	wp_reg_set(&regs, WP_REG_PC, stack->pc_avma);
	wp_reg_set(&regs, WP_REG_SP, stack->sp_avma);
	if (stack->fp_avma)
		wp_reg_set(&regs, WP_REG_FP, stack->fp_avma);
	wp_stack_copy_set(&target->loop->copy, &target->space, stack->sp_avma,
			  stack->bytes, stack->len);
	walk = wp_stack_walk(target, &regs, WP_UNWIND_THOROUGH);
	if (!is_whole(&walk.stack) && !last)
		return false;
	/* It goes on behind the call that it parked in, unless it has not
	 * begun. */
	if (walk.stack.depth && stack->pc_avma != g->start_avma)
		walk.stack.frames[0].flags |= WP_FRAME_RETURN;
	walker->rc = add(walker, g, wp_stack_walk_intern(target, &walk));
	return true;
}

/* The Go program in TARGET: the first of its modules, or another that a walk has
 * met, as a library built by Go; NULL: none. */
static const struct wp_unwind_module *find_go(struct wp_target *target)
{
	const struct wp_unwind_modules *view = &target->space.view;

	if (view->len)
		(void)wp_unwind_find_module(view, view->v[0].start_avma);
	for (size_t i = 0; i < view->len; i++)
		if (!view->v[i].is_unopened && view->v[i].image &&
		    view->v[i].image->go_table.size)
			return &view->v[i];
	return NULL;
}

int wp_goroutine_stacks_read(struct wp_target *target,
			     struct wp_goroutine_list *list, struct wp_err *err)
{
	const struct wp_unwind_module *module = find_go(target);
	const struct wp_go_reader reader = { read_ranges, target->process };
	struct walker walker = { .target = target, .list = list };
	const struct wp_goroutine_user user = { walk_one, &walker,
						&target->profile->strings };
	struct wp_go_program *program = NULL;
	int rc;

	if (!module)
		return 0;
	rc = wp_go_program_open(&program, module->image, module->bias, &reader,
				err);
	if (rc == -ENOENT) {
		if (err)
			*err = (struct wp_err)WP_ERR_INIT;
		return 0;
	}
	if (!rc) {
		snprintf(list->version, sizeof(list->version), "%s",
			 wp_go_program_version(program));
		list->time_ns = wp_clock_ns();
		rc = wp_goroutines_read(program, &user, &list->all);
	}
	wp_go_program_free(program);
	return rc ? rc : walker.rc;
}

void wp_goroutine_stacks_clear(struct wp_goroutine_list *list)
{
	wp_goroutines_clear(&list->all);
	free(list->stacks);
	*list = (struct wp_goroutine_list)WP_GOROUTINE_LIST_INIT;
}
