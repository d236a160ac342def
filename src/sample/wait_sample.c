/* SPDX-License-Identifier: Apache-2.0 */
/* wait_sample.c - see wait_sample.h. */
#include "wait_sample.h"

#include <string.h>

#include "books.h"
#include "kernel_frames.h"
#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "wallprof/clock.h"

#define ALL_KNOWN ((UINT64_C(1) << WP_NREGS) - 1)

_Static_assert((int)WP_TASK_REGS == WP_NREGS, "a record has all registers");

void wp_wait_sample_look(struct wp_thread *t, const struct wp_schedstat *now)
{
	struct wp_thread_look *look = &t->look;

	if (!t->memory ||
	    (look->exec_start_ns && !wp_time_ledger_differs(&look->times, now)))
		return;
	look->times = *now;
	look->exec_start_ns = wp_thread_files_exec_start(t);
}

/* The registers with the arguments of T's calls. */
static const uint8_t *arg_regs(const struct wp_thread *t)
{
	return t->target->space.is_32bit ? wp_syscall_i386_arg_regs :
					   wp_syscall_arg_regs;
}

/* Set FACTS' call to the one that T is in at PLACE. */
static void set_call(struct wp_thread *t, const struct wp_wait_place *place,
		     struct wp_thread_facts *facts)
{
	const struct wp_target *target = t->target;
	struct wp_proc_syscall call = place->call;

	if (target->space.is_32bit)
		facts->has_narrow_time = wp_call_memory_make_native(
			target->process, &call.nr, call.args);
	memcpy(facts->args, call.args, sizeof(facts->args));
	facts->syscall_nr = wp_wait_state_call(&t->wait, target->process,
					       target->space.is_32bit, &call);
}

bool wp_wait_sample_place(const struct wp_thread *t,
			  const struct wp_task_record *record,
			  struct wp_wait_place *ret)
{
	/* Who traces it is not in the record: it may be wallprof. */
	if (!record->state_char || record->state_char == 't' ||
	    t->target->space.is_32bit != record->is_32bit)
		return false;
	ret->before = wp_bpf_scan_times(record);
	ret->time_ns = record->time_ns;
	ret->cpu = -1;
	ret->state_char = record->state_char;
	ret->dumps_core = record->dumps_core;
	ret->record = record;
	memcpy(ret->regs.v, record->regs, sizeof(ret->regs.v));
	ret->regs.known = ALL_KNOWN;
	if (record->is_32bit)
		wp_regs_narrow(&ret->regs);
	ret->call = (struct wp_proc_syscall){
		.nr = record->nr < 0 ? -1 : (long)record->nr,
		.sp_avma = ret->regs.v[WP_REG_SP],
		.pc_avma = ret->regs.v[WP_REG_PC],
	};
	for (int i = 0; i < WP_SYSCALL_ARGS && ret->call.nr >= 0; i++)
		ret->call.args[i] = ret->regs.v[arg_regs(t)[i]];
	return true;
}

enum wp_sample_result wp_wait_sample_proc(struct wp_thread *t,
					  struct wp_wait_place *place)
{
	const struct wp_proc_syscall *call = &place->call;
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n;

	place->time_ns = wp_clock_ns();
	n = wp_thread_files_read(t, WP_THREAD_STAT, text, sizeof(text));
	if (n < 0)
		return wp_sample_result_of((int)n);
	if (wp_proc_stat_parse(&stat, text, (size_t)n))
		return WP_SAMPLE_FAILED;
	if (stat.state_char == 'R' ||
	    (stat.state_char == 't' &&
	     wp_tracer_end_late(t->target->loop->tracer, t->tid)))
		return WP_SAMPLE_MOVED;
	place->cpu = stat.cpu;
	wp_own_cpu_note(&t->target->loop->own_cpu, stat.cpu);
	place->state_char = stat.state_char;
	place->dumps_core = stat.dumps_core;
	place->regs.known = 0;
	wp_reg_set(&place->regs, WP_REG_PC, call->pc_avma);
	wp_reg_set(&place->regs, WP_REG_SP, call->sp_avma);
	/* vfork of glibc has its return address in an argument register; i386's are
	 * all that a call keeps. */
	for (int i = 0; i < WP_SYSCALL_ARGS && call->nr >= 0; i++)
		wp_reg_set(&place->regs, arg_regs(t)[i], call->args[i]);
	return wp_wait_sample(t, place);
}

/* AT: where T was met. */
static enum wp_sample_result queue(struct wp_thread *t,
				   const struct wp_thread_facts *facts,
				   uint32_t stack,
				   const struct wp_wait_place *at)
{
	struct wp_wait_queue *queue = &t->target->wait_queue;
	const struct wp_sampler *loop = t->target->loop;

	if (wp_wait_queue_add(t, facts, stack, t->time.region_ns))
		return WP_SAMPLE_NO_MEMORY;
	queue->v[queue->n - 1].by_chance = !loop->is_overdue &&
					   (loop->own_cpu.awaited < 0 ||
					    loop->own_cpu.awaited != at->cpu);
	return WP_SAMPLE_DONE;
}

/* T, a worker of the kernel's, waits.  The call in its registers is of the thread that
 * made it. */
static enum wp_sample_result sample_worker(struct wp_thread *t,
					   const struct wp_wait_place *place)
{
	const struct wp_thread_facts facts = {
		.state_char = place->state_char,
		.syscall_nr = -1,
		.is_worker = true,
	};
	struct wp_stack_walk walk = wp_stack_walk_none(t->target,
						       WP_END_WORKER);

	t->running_stack_holds = false;
	wp_books_look(t, &place->before, place->time_ns, false);
	if (t->target->loop->options.kernel)
		wp_kernel_frames_add_waiting(t, &walk.stack);
	t->target->profile->counters.no_stop++;
	return queue(t, &facts, wp_stack_walk_intern(t->target, &walk), place);
}

/* T has no user stack: it has ended or is about to, or never had one. */
static enum wp_sample_result sample_stackless(struct wp_thread *t,
					      const struct wp_wait_place *place)
{
	const struct wp_thread_facts facts = {
		.state_char = place->state_char,
		.syscall_nr = place->call.nr,
	};

	if (place->state_char != 'Z' && place->state_char != 'X' &&
	    wp_stop_guard_is_worker(t))
		return sample_worker(t, place);
	wp_books_look(t, &place->before, place->time_ns, false);
	t->target->profile->counters.no_stack++;
	return queue(t, &facts,
		     wp_stack_walk_intern_none(t->target, WP_END_EMPTY), place);
}

/* May T be stopped for its registers?  A thread that a signal has stopped would run, only
 * to stop once more: the next scan, where there is one, reads its registers instead. */
static bool may_stop_for_registers(struct wp_thread *t,
				   struct wp_thread_facts *facts)
{
	const struct wp_sampler *loop = t->target->loop;

	if (loop->options.stop == WP_STOP_NEVER ||
	    (facts->state_char == 'T' && !loop->finishing &&
	     wp_bpf_scan_is_next(loop)))
		return false;
	return wp_stop_guard_lets_waiting(t, facts);
}

/* WALK lacks a register: fill it from T's wait sites, or say that a stop is
 * wanted. */
static bool wants_stop(struct wp_thread *t, const struct wp_wait_place *place,
		       struct wp_thread_facts *facts,
		       struct wp_stack_walk *walk)
{
	struct wp_target *target = t->target;
	struct wp_sampler *loop = target->loop;
	struct wp_mem mem = wp_stack_copy_mem(&loop->copy);

	if (walk->stack.end != WP_END_UNKNOWN_REG)
		return false;
	loop->scan.wants_regs = true;
	if (t->sites && wp_site_cache_find(t->sites, place->call.pc_avma,
					   place->call.sp_avma,
					   target->space.view.generation, &mem,
					   &walk->stack)) {
		target->profile->counters.cached_site++;
		return false;
	}
	if (!may_stop_for_registers(t, facts)) {
		target->profile->counters.partial++;
		return false;
	}
	return true;
}

/* Copy T's stack at PLACE, or take the copy that was made of it ahead.  False: not one
 * byte can be read. */
static bool copy_stack(struct wp_thread *t, const struct wp_wait_place *place)
{
	const struct wp_address_space *space = &t->target->space;
	struct wp_stack_copy *copy = &t->target->loop->copy;
	const uint8_t *data;
	size_t len;

	if (!place->record ||
	    !wp_copies_ahead_take(t, place->record, &len, &data))
		return wp_stack_copy_take(copy, space, place->call.sp_avma,
					  t->copy_len_waiting) > 0;
	wp_stack_copy_use(copy, space, place->call.sp_avma, data, len);
	return true;
}

/* Copy T's stack at PLACE and walk it.  False: not one byte can be read. */
static bool walk_waiting(struct wp_thread *t, const struct wp_wait_place *place,
			 struct wp_stack_walk *ret)
{
	struct wp_target *target = t->target;
	struct wp_stack_copy *copy = &target->loop->copy;
	bool is_read = copy_stack(t, place);

	copy->live = true;
	copy->time_ns = wp_clock_ns();
	*ret = wp_stack_walk(target, &place->regs, WP_UNWIND_THOROUGH);
	while (copy->len > t->copy_len_waiting &&
	       t->copy_len_waiting < WP_COPY_MAX)
		t->copy_len_waiting *= 2;
	return is_read;
}

/* A stack by a stale map, or without a register that the next scan has, must not
 * be taken over for as long as the thread waits.  In a dump none is. */
static bool is_to_be_read_again(const struct wp_thread *t,
				const struct wp_wait_place *place,
				const struct wp_stack_walk *walk)
{
	return (walk->map_is_stale && !t->memory) ||
	       (walk->stack.end == WP_END_UNKNOWN_REG &&
		place->regs.known != ALL_KNOWN &&
		wp_bpf_scan_is_next(t->target->loop));
}

/* Copy what the arguments of T's call refer to.  False: T waits no more. */
static bool copy_call(struct wp_thread *t, const struct wp_wait_place *place,
		      const struct wp_thread_facts *facts)
{
	wp_call_memory_take(t->memory, t->target->process, facts,
			    place->call.sp_avma);
	return wp_thread_files_waits(t);
}

/* T has not moved.  SLEEPS is NULL: record WALK; else ask for a stop: *SLEEPS is how often
 * T had slept by then. */
static enum wp_sample_result settle(struct wp_thread *t,
				    const struct wp_wait_place *place,
				    const struct wp_thread_facts *facts,
				    struct wp_stack_walk *walk,
				    const uint64_t *sleeps)
{
	struct wp_target *target = t->target;
	enum wp_sample_result result = WP_SAMPLE_DONE;
	uint32_t stack;
	bool again;

	t->running_stack_holds = false;
	if (target->loop->options.kernel)
		wp_kernel_frames_add_waiting(t, &walk->stack);
	stack = wp_stack_walk_intern(target, walk);
	if (stack == UINT32_MAX)
		return WP_SAMPLE_NO_MEMORY;
	if (sleeps) {
		wp_wait_state_distrust(&t->wait);
		wp_stop_request_registers(
			t, &(struct wp_stop_request){
				   .weight_ns = t->time.region_ns,
				   .slices = t->time.base.slices,
				   .sleeps = *sleeps,
				   .sp_avma = place->call.sp_avma,
				   .partial_stack = stack,
				   .facts = *facts,
			   });
		return WP_SAMPLE_WANTS_STOP;
	}
	again = is_to_be_read_again(t, place, walk);
	/* The scan that is being loaded shows the whole stack: T's time goes to that. */
	if (!again || !target->loop->scan.loader.runs ||
	    target->loop->finishing) {
		target->profile->counters.no_stop++;
		result = queue(t, facts, stack, place);
	}
	if (again) {
		wp_wait_state_distrust(&t->wait);
		wp_bpf_scan_want(target->loop, target->process->pid, t->tid);
	}
	return result;
}

/* Set the hold in FACTS of T at PLACE.  The kernel is asked where T is in no call, in one
 * that should not sleep, or in a wait that no signal ends; in others the call tells what T
 * waits for as well. */
static void find_hold(const struct wp_thread *t,
		      const struct wp_wait_place *place,
		      struct wp_thread_facts *facts)
{
	enum wp_wait wait = wp_state_classify(facts).wait;

	if (place->dumps_core)
		facts->hold = WP_HOLD_CORE_DUMP;
	else if (facts->state_char == 'D' || wait == WP_WAIT_PAGE_FAULT ||
		 wait == WP_WAIT_SYSCALL)
		facts->hold = wp_hold_read(t->target->process->task_fd, t->tid);
}

/* T waits at PLACE, as FACTS say, for the lock of its memory map.  Whoever reads its stack
 * waits for that lock too, and gets it when T has gone on: record what is known without
 * memory. */
static enum wp_sample_result
sample_without_memory(struct wp_thread *t, const struct wp_wait_place *place,
		      const struct wp_thread_facts *facts)
{
	struct wp_stack_walk walk = wp_stack_walk_innermost(
		t->target, place->call.pc_avma, WP_END_MAP_LOCKED);
	struct wp_schedstat after;
	int rc = wp_thread_files_schedstat(t, &after);

	if (rc)
		return wp_sample_result_of(rc);
	/* A record is of one moment, whatever T has done since; a hold was asked for
	 * later. */
	if (wp_time_ledger_differs(&place->before, &after) &&
	    !(place->record && facts->hold == WP_HOLD_NONE))
		return WP_SAMPLE_MOVED;
	wp_books_look(t, &place->before, place->time_ns, false);
	t->target->profile->counters.partial++;
	return settle(t, place, facts, &walk, NULL);
}

enum wp_sample_result wp_wait_sample(struct wp_thread *t,
				     const struct wp_wait_place *place)
{
	const bool was_32bit = t->target->space.is_32bit;
	struct wp_thread_facts facts = { .state_char = place->state_char };
	struct wp_stack_walk walk;
	struct wp_schedstat after;
	uint64_t sleeps = 0;
	bool by_stop;
	int rc;

	wp_wait_sample_look(t, &place->before);
	t->look.cpu = place->cpu;
	if (place->state_char == 'Z' || place->state_char == 'X' ||
	    !place->call.sp_avma)
		return sample_stackless(t, place);
	set_call(t, place, &facts);
	/* Before the walk, which may take long: a thread that is woken while it
	 * goes on has not run, but waits no more. */
	if (t->memory && !copy_call(t, place, &facts))
		return WP_SAMPLE_MOVED;
	find_hold(t, place, &facts);
	if (!t->memory && wp_state_classify(&facts).wait == WP_WAIT_MMAP_LOCK)
		return sample_without_memory(t, place, &facts);
	/* The kernel has not been asked whether the registers of a record may
	 * be seen: where memory may not be read, /proc says what may. */
	if (!walk_waiting(t, place, &walk) && place->regs.known == ALL_KNOWN)
		return WP_SAMPLE_MOVED;
	/* The map that was read anew was another program's. */
	if (t->target->space.is_32bit != was_32bit)
		return WP_SAMPLE_MOVED;
	by_stop = wants_stop(t, place, &facts, &walk);
	if (by_stop)
		sleeps = wp_thread_files_sleeps(t);
	rc = wp_thread_files_schedstat(t, &after);
	if (rc)
		return wp_sample_result_of(rc);
	if (wp_time_ledger_differs(&place->before, &after))
		return WP_SAMPLE_MOVED;
	wp_books_look(t, &after, place->time_ns, false);
	return settle(t, place, &facts, &walk, by_stop ? &sleeps : NULL);
}
