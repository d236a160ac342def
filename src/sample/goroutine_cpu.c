/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_cpu.c - which goroutine a CPU sample is of.
 *
 * Go's code keeps the current g in a register (cmd/compile/abi-internal.md): the
 * goroutine's, or on the thread's own stack that of the thread, g0, whose m tells
 * the current one.  Scheduling and what the runtime does for a goroutine are told
 * apart by the stack, which a walk follows back to the goroutine.
 */
#include <string.h>

#include "goroutine_kept.h"
#include "target.h"

#if defined(__x86_64__)
enum { G_REG = 14 };
#else
enum { G_REG = 28 };
#endif

/* Does STACK begin with a goroutine's first function? */
static bool is_goroutines(const struct wp_goroutine_times *times,
			  const struct wp_stack *stack)
{
	const char *name;

	if (!stack->depth || stack->end != WP_END_ROOT)
		return false;
	name = wp_go_program_function(
		times->go.program,
		wp_frame_lookup_avma(&stack->frames[stack->depth - 1]));
	return name && !strcmp(name, "runtime.goexit");
}

/* The entry of the goroutine that T runs, where the register does not tell. */
static uint32_t find_otherwise(struct wp_goroutine_times *times,
			       const struct wp_thread *t, bool is_of_goroutine)
{
	if (t->goroutine_entry != UINT32_MAX)
		return t->goroutine_entry;
	return is_of_goroutine ? wp_goroutine_kept_unlabelled(times) :
				 wp_goroutine_kept_scheduler(times);
}

void wp_goroutine_times_note(struct wp_thread *t, const struct wp_regs *regs,
			     const struct wp_stack *stack)
{
	struct wp_goroutine_times *times = t->target->goroutines;
	struct wp_goroutine_more more;
	bool is_of_goroutine, is_threads = false;
	uint64_t id;

	if (!times)
		return;
	is_of_goroutine = is_goroutines(times, stack);
	if (!wp_reg_known(regs, G_REG) ||
	    !wp_goroutine_looks_at(times->looks, regs->v[G_REG], &id, &more,
				   &is_threads)) {
		t->cpu_entry = is_threads && !is_of_goroutine ?
				       wp_goroutine_kept_scheduler(times) :
				       find_otherwise(times, t,
						      is_of_goroutine);
		return;
	}
	if (is_threads && !is_of_goroutine && stack->end == WP_END_ROOT)
		t->cpu_entry = wp_goroutine_kept_scheduler(times);
	else
		t->cpu_entry = wp_goroutine_kept_entry(
			times, id, &more,
			wp_go_program_is_runtime(times->go.program,
						 more.start_avma));
}

uint32_t wp_goroutine_times_entry(const struct wp_thread *t)
{
	struct wp_goroutine_times *times = t->target->goroutines;

	return t->cpu_entry != UINT32_MAX ? t->cpu_entry :
					    find_otherwise(times, t, false);
}
