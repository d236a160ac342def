/* SPDX-License-Identifier: Apache-2.0 */
/* go_target.c - see go_target.h. */
#include "go_target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "sampler_loop.h"
#include "target.h"

/* Files that may have one more of Go's runtimes: each is searched for it. */
enum { TRIED_MAX = 16 };

static int read_ranges(void *ctx, struct wp_process_range *v, size_t n)
{
	const struct wp_go_target *go = ctx;

	return wp_process_read_ranges(go->target->process, v, n);
}

static bool is_code(void *ctx, uint64_t avma)
{
	const struct wp_go_target *go = ctx;

	return wp_unwind_find_module(&go->target->space.view, avma);
}

static bool is_go(const struct wp_unwind_module *module)
{
	return !module->is_unopened && module->image &&
	       module->image->go_table.size;
}

/* The Go program in TARGET: the first of its modules, or another that a walk
 * has met, as a library built by Go; NULL: none. */
static const struct wp_unwind_module *find_go(struct wp_target *target)
{
	const struct wp_unwind_modules *view = &target->space.view;

	if (view->len)
		(void)wp_unwind_find_module(view, view->v[0].start_avma);
	for (size_t i = 0; i < view->len; i++)
		if (is_go(&view->v[i]))
			return &view->v[i];
	return NULL;
}

int wp_go_target_open(struct wp_go_target *go, struct wp_err *err)
{
	const struct wp_unwind_module *module = find_go(go->target);
	const struct wp_go_reader reader = { read_ranges, go, is_code };

	if (!module)
		return wp_err_set(err, -ENOENT, "not a Go program");
	return wp_go_program_open(&go->program, module->image, module->bias,
				  &reader, err);
}

/* Has MODULE a runtime of its own?  A plugin has the program's. */
static bool has_runtime(struct wp_go_target *go,
			const struct wp_unwind_module *module)
{
	const struct wp_go_reader reader = { read_ranges, go, is_code };
	struct wp_go_program *program = NULL;
	bool has = !wp_go_program_open(&program, module->image, module->bias,
				       &reader, NULL);

	wp_go_program_free(program);
	return has;
}

void wp_go_target_say_more(struct wp_go_target *go, char *text, size_t size)
{
	const struct wp_unwind_modules *view = &go->target->space.view;
	const struct wp_profile *profile = go->target->profile;
	const struct wp_unwind_module *last = find_go(go->target), *more = NULL;
	uint32_t n = 0, ntried = 0;

	text[0] = '\0';
	if (!last)
		return;
	/* A file may have several mappings, one after the other. */
	for (size_t i = 0; i < view->len && ntried < TRIED_MAX; i++) {
		const struct wp_unwind_module *m = &view->v[i];

		if (!is_go(m) ||
		    (m->image == last->image && m->bias == last->bias))
			continue;
		last = m;
		ntried++;
		if (!has_runtime(go, m))
			continue;
		more = more ? more : m;
		n++;
	}
	if (more)
		snprintf(text, size,
			 "those of %" PRIu32 " more Go runtime%s (%s%s)", n,
			 n == 1 ? "" : "s",
			 wp_profile_str(profile,
					profile->mappings[more->mapping].path),
			 n == 1 ? "" : ", ...");
}

void wp_go_target_close(struct wp_go_target *go)
{
	wp_go_program_free(go->program);
	go->program = NULL;
}

struct wp_frame wp_go_target_caller(struct wp_target *target, uint64_t pc_avma)
{
	const struct wp_unwind_module *module = wp_unwind_find_module(
		&target->space.view, pc_avma - 1);

	return (struct wp_frame){
		.pc_avma = pc_avma,
		.mapping = module ? module->mapping : WP_MAPPING_NONE,
		.flags = WP_FRAME_RETURN,
	};
}

struct wp_stack_walk wp_go_target_walk(struct wp_target *target,
				       const struct wp_goroutine *g,
				       const struct wp_goroutine_stack *stack)
{
	struct wp_regs regs = { .known = 0 };
	struct wp_stack_walk walk;

	wp_reg_set(&regs, WP_REG_PC, stack->pc_avma);
	wp_reg_set(&regs, WP_REG_SP, stack->sp_avma);
	if (stack->fp_avma)
		wp_reg_set(&regs, WP_REG_FP, stack->fp_avma);
	wp_stack_copy_set(&target->loop->copy, &target->space, stack->sp_avma,
			  stack->bytes, stack->len);
	walk = wp_stack_walk(target, &regs, WP_UNWIND_THOROUGH);
	/* It goes on behind the call that it parked in, unless it has not
	 * begun. */
	if (walk.stack.depth && stack->pc_avma != g->start_avma)
		walk.stack.frames[0].flags |= WP_FRAME_RETURN;
	return walk;
}
