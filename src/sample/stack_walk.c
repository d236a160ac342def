/* SPDX-License-Identifier: Apache-2.0 */
/* stack_walk.c - see stack_walk.h. */
#include "stack_walk.h"

#include "heap_state.h"
#include "heap_trap.h"
#include "probed_return.h"
#include "sampler_loop.h"
#include "target.h"

static struct wp_stack_walk walk_once(struct wp_target *target,
				      const struct wp_regs *given,
				      enum wp_unwind_pace pace)
{
	struct wp_sampler *loop = target->loop;
	struct wp_regs regs = *given;
	struct wp_mem mem = wp_stack_copy_mem(&loop->copy);
	struct wp_stack_walk walk = {
		.stack = { .frames = loop->frame_room + WP_KERNEL_FRAMES_MAX,
			   .cfa_avma = loop->cfa_room + WP_KERNEL_FRAMES_MAX,
			   .cap = loop->options.max_depth },
	};

	if (target->heap_samples)
		wp_heap_trap_leave(&target->heap_samples->sites, &mem, &regs);
	if (target->space.uprobes_avma)
		wp_probed_return_leave(&loop->copy, &regs);
	wp_unwind_walk(loop->unwinder, &target->space.view, &regs, &mem, pace,
		       &walk.stack);
	walk.is_beyond_copy = loop->copy.beyond;
	walk.read_len = loop->copy.read_len;
	walk.is_on_two_stacks = loop->copy.elsewhere;
	return walk;
}

/* Did the walk meet an address that is in no mapping? */
static bool met_unknown(const struct wp_stack *stack)
{
	for (uint32_t i = 0; i < stack->depth; i++)
		if (stack->frames[i].mapping == WP_MAPPING_NONE)
			return true;
	return false;
}

/* Has the map changed since it was read (dlopen, dlclose, exec): is there code
 * now at an address that is in no mapping, or another file at a frame's? */
static bool is_stale(struct wp_target *target, const struct wp_stack *stack)
{
	for (uint32_t i = 0; i < stack->depth; i++)
		if (stack->frames[i].mapping == WP_MAPPING_NONE &&
		    wp_address_space_misses(&target->space,
					    stack->frames[i].pc_avma))
			return true;
	return !wp_address_space_check(&target->space, stack, target->tick);
}

/* Does the thread itself run where the address space that was asked has no code?  Then
 * that is its parent's, if it was met between vfork(2) and exec. */
static bool runs_elsewhere(const struct wp_target *target,
			   const struct wp_stack *stack)
{
	return stack->depth && stack->frames[0].mapping == WP_MAPPING_NONE &&
	       wp_address_space_lacks(&target->space, stack->frames[0].pc_avma);
}

struct wp_stack_walk wp_stack_walk(struct wp_target *target,
				   const struct wp_regs *regs,
				   enum wp_unwind_pace pace)
{
	struct wp_stack_walk walk = walk_once(target, regs, pace);
	bool stale = is_stale(target, &walk.stack);

	/* The kernel that was asked knows of no code there. */
	if (!stale && !runs_elsewhere(target, &walk.stack) &&
	    (target->space.can_query || !met_unknown(&walk.stack)))
		return walk;
	/* To read the map takes too long for a stop window. */
	if (pace != WP_UNWIND_IN_STOP &&
	    wp_address_space_reload(&target->space, stale) == 1)
		return walk_once(target, regs, pace);
	walk.map_is_stale = true;
	return walk;
}

/* Walk the stack in RECORD, a sample of SOURCE, and with MAY_FOLLOW what is above it. */
static struct wp_stack_walk walk_sample(struct wp_target *target,
					const struct wp_perf_source *source,
					const struct wp_perf_record *record,
					bool may_follow)
{
	struct wp_stack_copy *copy = &target->loop->copy;
	struct wp_regs regs = record->regs;

	/* Code of another width than the program's has no stack that is known. */
	if (record->is_32bit != target->space.is_32bit)
		regs.known = 0;
	wp_stack_copy_set(copy, &target->space, regs.v[WP_REG_SP],
			  record->stack, record->stack_len);
	copy->time_ns = record->time_ns;
	/* A jump of a probed function to another is known by where that returns to. */
	if (source->options.bpf_output)
		copy->kept_avma = regs.v[WP_REG_SP];
	copy->may_follow = may_follow;
	return wp_stack_walk(target, &regs, WP_UNWIND_THOROUGH);
}

struct wp_stack_walk wp_stack_walk_sample(struct wp_target *target,
					  struct wp_perf_source *source,
					  const struct wp_perf_record *record)
{
	struct wp_sampler *loop = target->loop;
	bool is_cut = record->stack_full && !source->cannot_grow;
	struct wp_stack_walk walk = walk_sample(target, source, record,
						!is_cut);

	if (!wp_stack_join_holds(&loop->joins, &loop->copy, record->tid,
				 loop->ntick)) {
		walk = walk_sample(target, source, record, false);
		loop->copy.has_left = true;
	}
	source->stack_was_cut |= is_cut && walk.is_beyond_copy &&
				 walk.stack.end == WP_END_BEYOND_COPY;
	return walk;
}

/* Did a walk that ended with END lack what --max-memory left out of its file? */
static bool lacks_memory(const struct wp_target *target, uint32_t mapping,
			 enum wp_stack_end end)
{
	const struct wp_elf_image *image =
		target->profile->mappings[mapping].image;

	return image && image->lacks_memory &&
	       (end == WP_END_NO_INFO || end == WP_END_BAD_INFO);
}

uint32_t wp_stack_walk_intern(struct wp_target *target,
			      const struct wp_stack_walk *walk)
{
	struct wp_stack stack = walk->stack;
	uint32_t end_mapping = stack.depth ?
				       stack.frames[stack.depth - 1].mapping :
				       WP_MAPPING_NONE;

	/* All of it is the kernel's. */
	if (end_mapping == WP_MAPPING_KERNEL)
		end_mapping = WP_MAPPING_NONE;
	if (lacks_memory(target, end_mapping, stack.end))
		stack.end = WP_END_DROPPED;
	return wp_profile_add_stack(target->profile, &stack, end_mapping);
}

struct wp_stack_walk wp_stack_walk_none(struct wp_target *target,
					enum wp_stack_end end)
{
	const struct wp_regs none = { .known = 0 };
	struct wp_stack_walk walk = walk_once(target, &none, WP_UNWIND_IN_STOP);

	walk.stack.end = end;
	return walk;
}

struct wp_stack_walk wp_stack_walk_innermost(struct wp_target *target,
					     uint64_t pc_avma,
					     enum wp_stack_end end)
{
	struct wp_stack_walk walk = wp_stack_walk_none(target, end);
	const struct wp_unwind_module *module = wp_unwind_find_module(
		&target->space.view, pc_avma);

	walk.stack.frames[0] = (struct wp_frame){
		.pc_avma = pc_avma,
		.mapping = module ? module->mapping : WP_MAPPING_NONE,
	};
	walk.stack.cfa_avma[0] = 0;
	walk.stack.depth = 1;
	return walk;
}

uint32_t wp_stack_walk_intern_none(struct wp_target *target,
				   enum wp_stack_end end)
{
	const struct wp_stack none = { .end = end };

	return wp_profile_add_stack(target->profile, &none, WP_MAPPING_NONE);
}

struct wp_frame wp_stack_walk_text_frame(struct wp_profile *profile,
					 const char *text)
{
	return (struct wp_frame){
		.pc_avma = wp_intern_add_str(&profile->strings, text),
		.mapping = WP_MAPPING_NONE,
		.flags = WP_FRAME_NAMED,
	};
}
