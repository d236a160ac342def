/* SPDX-License-Identifier: Apache-2.0 */
/* waiting.c - one look at a thread that waits: see sampler_priv.h. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "sampler_priv.h"

enum {
	KERNEL_TEXT_MAX = 8192,
	/* Calls of 32-bit programs are numbered from here on. */
	FOREIGN_CALLS = 1000000,
};

#define ALL_KNOWN ((UINT64_C(1) << WP_NREGS) - 1)

_Static_assert((int)WP_TASK_REGS == WP_NREGS, "a record has all registers");

static void add_kernel_frame(struct wp_target *target, struct wp_frame *frames,
			     uint32_t *n, const char *name, size_t len)
{
	uint32_t id = wp_intern_add(&target->profile->strings, name, len);

	if (id != UINT32_MAX && *n < WP_KERNEL_FRAMES_MAX)
		frames[(*n)++] = (struct wp_frame){ id, WP_MAPPING_KERNEL,
						    WP_FRAME_KERNEL };
}

/* "[<0>] futex_wait+0x60/0x90 [module]", innermost first (proc(5), stack). */
void wp_waiting_add_kernel(struct wp_target *target, struct wp_thread *t)
{
	struct wp_frame frames[WP_KERNEL_FRAMES_MAX];
	char text[KERNEL_TEXT_MAX];
	uint32_t n = 0;

	if (wp_thread_read_once(target, t->tid, "stack", text, sizeof(text)) <=
	    0)
		return;
	for (char *line = text; *line;) {
		char *eol = strchrnul(line, '\n');
		char *name = memchr(line, ']', (size_t)(eol - line));

		if (name && name + 2 < eol && strcspn(name + 2, "+ \n"))
			add_kernel_frame(target, frames, &n, name + 2,
					 strcspn(name + 2, "+ \n"));
		line = *eol ? eol + 1 : eol;
	}
	target->loop->stack.frames -= n;
	target->loop->stack.cfa_avma -= n;
	target->loop->stack.depth += n;
	memcpy(target->loop->stack.frames, frames, n * sizeof(*frames));
	memset(target->loop->stack.cfa_avma, 0,
	       n * sizeof(*target->loop->stack.cfa_avma));
}

#if defined(__x86_64__)
/* `mov $NR, %eax; syscall`, or `xor %eax, %eax` for read(2). */
long wp_waiting_call_before(struct wp_target *target, uint64_t pc_avma)
{
	uint8_t code[7];
	int32_t nr;

	if (wp_process_read(target->process, pc_avma - sizeof(code), code,
			    sizeof(code)) != sizeof(code) ||
	    code[5] != 0x0f || code[6] != 0x05)
		return -1;
	if (code[3] == 0x31 && code[4] == 0xc0)
		return SYS_read;
	if (code[0] != 0xb8)
		return wp_syscall_restart;
	memcpy(&nr, code + 1, sizeof(nr));
	return nr;
}
#else
long wp_waiting_call_before(struct wp_target *target, uint64_t pc_avma)
{
	(void)target;
	(void)pc_avma;
	return wp_syscall_restart;
}
#endif

static long real_number(struct wp_target *target, struct wp_thread *t,
			const struct wp_proc_syscall *call)
{
	long nr;

	/* Of another table: a number that no call has. */
	if (target->space.is_32bit)
		return call->nr < 0 ? call->nr : FOREIGN_CALLS + call->nr;
	if (call->nr != wp_syscall_restart) {
		t->wait_nr = call->nr;
		t->wait_pc_avma = call->pc_avma;
		return call->nr;
	}
	if (t->wait_pc_avma == call->pc_avma && t->wait_nr >= 0)
		return t->wait_nr;
	nr = wp_waiting_call_before(target, call->pc_avma);
	return nr < 0 ? wp_syscall_restart : nr;
}

int wp_waiting_stand(struct wp_target *target, struct wp_thread *t,
		     struct wp_stand *ret)
{
	const struct wp_proc_syscall *call = &ret->call;
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n = wp_thread_read(target, t, WP_THREAD_STAT, text,
				   sizeof(text));

	if (n < 0)
		return (int)n;
	if (wp_proc_stat_parse(&stat, text, (size_t)n))
		return -EBADMSG;
	ret->letter = stat.letter;
	ret->regs.known = 0;
	wp_reg_set(&ret->regs, WP_REG_PC, call->pc_avma);
	wp_reg_set(&ret->regs, WP_REG_SP, call->sp_avma);
	/* vfork of glibc has its return address in one of them. */
	for (int i = 0; i < WP_SYSCALL_ARGS && call->nr >= 0; i++)
		wp_reg_set(&ret->regs, wp_syscall_arg_regs[i], call->args[i]);
	return stat.letter != 'R';
}

bool wp_waiting_stand_of(const struct wp_target *target,
			 const struct wp_task_record *record,
			 struct wp_stand *ret)
{
	if (!record->letter || target->space.is_32bit)
		return false;
	ret->before = wp_bpf_scan_times(record);
	ret->letter = record->letter;
	memcpy(ret->regs.v, record->regs, sizeof(ret->regs.v));
	ret->regs.known = ALL_KNOWN;
	ret->call = (struct wp_proc_syscall){
		.nr = record->nr < 0 ? -1 : (long)record->nr,
		.sp_avma = record->regs[WP_REG_SP],
		.pc_avma = record->regs[WP_REG_PC],
	};
	for (int i = 0; i < WP_SYSCALL_ARGS && ret->call.nr >= 0; i++)
		ret->call.args[i] = record->regs[wp_syscall_arg_regs[i]];
	return true;
}

static int look_exiting(struct wp_target *target, struct wp_thread *t,
			const struct wp_stand *stand)
{
	const struct wp_thread_facts facts = {
		.letter = stand->letter,
		.syscall_nr = stand->call.nr,
	};

	t->base = stand->before;
	return wp_record_waiting(target, t, &facts, wp_record_no_stack(target),
				 wp_look_take_time(target, t)) ?
		       -ENOMEM :
		       1;
}

/* The stack needs a register: from the thread's wait sites (false), or by a
 * stop. */
static bool wants_stop(struct wp_target *target, struct wp_thread *t,
		       const struct wp_stand *stand, long nr)
{
	const struct wp_syscall_info *info = wp_syscall_find(nr);
	struct wp_mem mem = wp_stack_copy_mem(&target->loop->copy);
	struct wp_counters *counters = &target->profile->counters;

	if (target->loop->stack.end != WP_END_UNKNOWN_REG)
		return false;
	target->loop->scan.wants_regs = true;
	if (t->sites && wp_site_cache_find(t->sites, stand->call.pc_avma,
					   stand->call.sp_avma,
					   target->space.view.generation, &mem,
					   &target->loop->stack)) {
		counters->cached_site++;
		return false;
	}
	/* A stop in such a call makes it go on as restart_syscall, for which a
	 * filter that does not allow it kills the thread. */
	if (target->loop->options.stop == WP_STOP_NEVER ||
	    (info && info->restart_block && wp_tracer_has_filter(t->tid))) {
		counters->partial++;
		return false;
	}
	return true;
}

/* False: no byte of its stack can be had. */
static bool walk(struct wp_target *target, struct wp_thread *t,
		 const struct wp_stand *stand)
{
	uint64_t sp_avma = stand->call.sp_avma;
	ssize_t n = wp_stack_copy_take(&target->loop->copy, &target->space,
				       sp_avma, t->copy_len_waiting);

	target->loop->copy.live = true;
	wp_look_walk(target, &stand->regs, WP_UNWIND_THOROUGH);
	while (target->loop->copy.len > t->copy_len_waiting &&
	       t->copy_len_waiting < WP_COPY_MAX)
		t->copy_len_waiting *= 2;
	return n > 0;
}

/* What is still missing comes by a stop. */
static int ask(struct wp_target *target, struct wp_thread *t,
	       const struct wp_stand *stand,
	       const struct wp_thread_facts *facts, uint32_t stack)
{
	t->asleep = false;
	t->ask = (struct wp_ask){ .tick_ns = target->loop->tick_ns,
				  .waiting = true,
				  .running_ns = wp_look_take_time(target, t),
				  .slices = t->base.slices,
				  .pc_avma = stand->call.pc_avma,
				  .sp_avma = stand->call.sp_avma,
				  .partial_stack = stack,
				  .facts = *facts };
	target->askers[target->naskers++] = t;
	return 1;
}

/* A stack by a map that is not right any more, or without a register that the
 * next scan has, must not stay for as long as the thread waits. */
static bool is_better_had_again(const struct wp_target *target,
				const struct wp_stand *stand)
{
	return target->loop->map_is_stale ||
	       (target->loop->stack.end == WP_END_UNKNOWN_REG &&
		stand->regs.known != ALL_KNOWN &&
		wp_bpf_scan_is_next(target->loop));
}

static int record(struct wp_target *target, struct wp_thread *t,
		  const struct wp_stand *stand,
		  const struct wp_thread_facts *facts, uint32_t stack)
{
	target->profile->counters.no_stop++;
	if (wp_record_waiting(target, t, facts, stack,
			      wp_look_take_time(target, t)))
		return -ENOMEM;
	if (is_better_had_again(target, stand))
		t->asleep = false;
	return 1;
}

int wp_waiting_look(struct wp_target *target, struct wp_thread *t,
		    const struct wp_stand *stand)
{
	struct wp_thread_facts facts = { .letter = stand->letter };
	struct wp_schedstat after;
	bool by_stop;
	uint32_t stack;
	int rc;

	if (stand->letter == 'Z' || stand->letter == 'X' ||
	    !stand->call.sp_avma)
		return look_exiting(target, t, stand);
	facts.syscall_nr = real_number(target, t, &stand->call);
	memcpy(facts.args, stand->call.args, sizeof(facts.args));
	/* Nobody has asked the kernel whether we may see these registers: who
	 * may not read memory is told by /proc what there is to be told. */
	if (!walk(target, t, stand) && stand->regs.known == ALL_KNOWN)
		return 0;
	by_stop = wants_stop(target, t, stand, facts.syscall_nr);
	rc = wp_thread_schedstat(target, t, &after);
	if (rc)
		return rc;
	if (wp_has_run(&stand->before, &after))
		return 0;
	wp_look_settle(t, &after);
	t->base = t->divided = after;
	t->called_runnable_ns = 0;
	t->stack_holds = false;
	if (target->loop->options.kernel)
		wp_waiting_add_kernel(target, t);
	stack = wp_record_stack(target);
	if (stack == UINT32_MAX)
		return -ENOMEM;
	return by_stop ? ask(target, t, stand, &facts, stack) :
			 record(target, t, stand, &facts, stack);
}
