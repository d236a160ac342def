/* look.c - one look at one thread: see sampler_priv.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "sampler_priv.h"
#include "wallprof/clock.h"

enum {
	/* A thread that moves while it is read is read once more; more often
	 * where no stop can settle what it does. */
	TRIES = 2,
	TRIES_NEVER = 6,
	KERNEL_TEXT_MAX = 8192,
	/* Calls of 32-bit programs are numbered from here on. */
	FOREIGN_CALLS = 1000000,
};

/* A thread on a CPU for this long has been counted as running: the slowest
 * kernel tick is 100 Hz. */
#define COUNTED_NS (10 * WP_NS_PER_MS)

static bool has_run(const struct wp_schedstat *a, const struct wp_schedstat *b)
{
	return a->run_ns != b->run_ns || a->slices != b->slices;
}

static uint64_t take_time(struct wp_sampler *s, struct wp_thread *t)
{
	uint64_t ns = s->tick_ns - t->last_ns;

	t->last_ns = s->tick_ns;
	return ns;
}

static void walk(struct wp_sampler *s, struct wp_reuse *reuse,
		 const struct wp_regs *regs)
{
	struct wp_mem mem = wp_stack_copy_mem(&s->copy);

	s->stack.frames = s->frame_room + WP_KERNEL_FRAMES_MAX;
	s->stack.cfa_avma = s->cfa_room + WP_KERNEL_FRAMES_MAX;
	s->stack.cap = s->options.max_depth;
	if (reuse)
		wp_reuse_walk(reuse, &s->reuse_room, s->unwinder,
			      &s->space.view, regs, &mem, &s->stack);
	else
		wp_unwind_walk(s->unwinder, &s->space.view, regs, &mem,
			       &s->stack);
	if (s->stack.end == WP_END_UNREADABLE && s->copy.beyond && s->copy.len)
		s->stack.end = WP_END_BEYOND_COPY;
}

/* Did the walk meet an address that is in no mapping? */
static bool met_unknown(const struct wp_sampler *s)
{
	for (uint32_t i = 0; i < s->stack.depth; i++)
		if (s->stack.frames[i].mapping == WP_MAPPING_NONE)
			return true;
	return false;
}

/* Is such an address code only since the map was read, or another frame in a
 * mapping that is another by now: dlopen, dlclose, exec? */
static bool is_stale(struct wp_sampler *s)
{
	for (uint32_t i = 0; i < s->stack.depth; i++)
		if (s->stack.frames[i].mapping == WP_MAPPING_NONE &&
		    wp_space_misses(&s->space, s->stack.frames[i].pc_avma))
			return true;
	return !wp_space_check(&s->space, &s->stack, s->tick);
}

void wp_look_walk(struct wp_sampler *s, struct wp_reuse *reuse,
		  const struct wp_regs *regs)
{
	bool stale;

	s->map_is_stale = false;
	walk(s, reuse, regs);
	stale = is_stale(s);
	if (!stale && !met_unknown(s))
		return;
	if (wp_space_reload(&s->space, stale) == 1)
		walk(s, reuse, regs);
	else
		s->map_is_stale = true;
}

static void add_kernel_frame(struct wp_sampler *s, struct wp_frame *frames,
			     uint32_t *n, const char *name, size_t len)
{
	uint32_t id = wp_intern_add(&s->profile->strings, name, len);

	if (id != UINT32_MAX && *n < WP_KERNEL_FRAMES_MAX)
		frames[(*n)++] = (struct wp_frame){ id, WP_MAPPING_KERNEL,
						    WP_FRAME_KERNEL };
}

/* "[<0>] futex_wait+0x60/0x90 [module]", innermost first (proc(5), stack). */
void wp_look_add_kernel(struct wp_sampler *s, struct wp_thread *t)
{
	struct wp_frame frames[WP_KERNEL_FRAMES_MAX];
	char text[KERNEL_TEXT_MAX];
	uint32_t n = 0;

	if (wp_thread_read(s, -1, t->tid, "stack", text, sizeof(text)) <= 0)
		return;
	for (char *line = text; *line;) {
		char *eol = strchrnul(line, '\n');
		char *name = memchr(line, ']', (size_t)(eol - line));

		if (name && name + 2 < eol && strcspn(name + 2, "+ \n"))
			add_kernel_frame(s, frames, &n, name + 2,
					 strcspn(name + 2, "+ \n"));
		line = *eol ? eol + 1 : eol;
	}
	s->stack.frames -= n;
	s->stack.cfa_avma -= n;
	s->stack.depth += n;
	memcpy(s->stack.frames, frames, n * sizeof(*frames));
	memset(s->stack.cfa_avma, 0, n * sizeof(*s->stack.cfa_avma));
}

#if defined(__x86_64__)
/* `mov $NR, %eax; syscall`, or `xor %eax, %eax` for read(2). */
long wp_look_call_before(struct wp_sampler *s, uint64_t pc_avma)
{
	uint8_t code[7];
	int32_t nr;

	if (wp_process_read(s->process, pc_avma - sizeof(code), code,
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
long wp_look_call_before(struct wp_sampler *s, uint64_t pc_avma)
{
	(void)s;
	(void)pc_avma;
	return wp_syscall_restart;
}
#endif

static long real_number(struct wp_sampler *s, struct wp_thread *t,
			const struct wp_proc_syscall *call)
{
	long nr;

	/* Of another table: a number that no call has. */
	if (s->space.is_32bit)
		return call->nr < 0 ? call->nr : FOREIGN_CALLS + call->nr;
	if (call->nr != wp_syscall_restart) {
		t->wait_nr = call->nr;
		t->wait_pc_avma = call->pc_avma;
		return call->nr;
	}
	if (t->wait_pc_avma == call->pc_avma && t->wait_nr >= 0)
		return t->wait_nr;
	nr = wp_look_call_before(s, call->pc_avma);
	return nr < 0 ? wp_syscall_restart : nr;
}

/* How much of the time since it was last divided T was on a CPU. */
static double divide(struct wp_thread *t, const struct wp_schedstat *now)
{
	uint64_t run = now->run_ns - t->divided.run_ns;
	uint64_t wait = now->wait_ns - t->divided.wait_ns;

	/* A wait for a CPU is counted by the kernel when it ends. */
	wait -= wait < t->called_runnable_ns ? wait : t->called_runnable_ns;
	t->divided = *now;
	t->called_runnable_ns = 0;
	/* Both may be 0 still: the kernel counts time on a CPU at its ticks. */
	return run + wait ? (double)run / (double)(run + wait) : 1.0;
}

static void settle_undecided(struct wp_thread *t,
			     const struct wp_schedstat *now)
{
	uint64_t running_ns = t->undecided_ns;

	if (!t->undecided_ns)
		return;
	running_ns = (uint64_t)((double)running_ns * divide(t, now));
	t->owed_running_ns += running_ns;
	t->owed_runnable_ns += t->undecided_ns - running_ns;
	t->undecided_ns = 0;
}

/* Looks at a running thread without a CPU sample until it is stopped instead. */
enum { PATIENCE = 5 };

/* May T's stack come from its next CPU sample?  One that MOVED while it was
 * read is hardly on a CPU, and may have none for long. */
static bool comes_by_cpu_sample(const struct wp_sampler *s,
				const struct wp_thread *t, bool moved)
{
	if (!s->perf || s->options.stop == WP_STOP_ALL)
		return false;
	if (s->options.stop == WP_STOP_NEVER)
		return true;
	/* One that hardly runs may have none at all: a first stack is had by
	 * a stop. */
	if (t->owed_cpu_count || moved || t->last_running_stack == UINT32_MAX)
		return false;
	return s->finishing || t->owed_count < PATIENCE;
}

/* NS that T was ready to run are owed to its next CPU sample.  Unless it has run
 * meanwhile it waits for a CPU; that it has not is known after COUNTED_NS. */
static int owe(struct wp_sampler *s, struct wp_thread *t,
	       const struct wp_schedstat *now, uint64_t ns)
{
	t->owed_count++;
	t->undecided_ns += ns;
	if (has_run(&t->base, now)) {
		settle_undecided(t, now);
		t->base = *now;
		t->base_ns = s->tick_ns;
	} else if (s->tick_ns - t->base_ns >= COUNTED_NS) {
		t->called_runnable_ns += t->undecided_ns;
		t->owed_runnable_ns += t->undecided_ns;
		t->undecided_ns = 0;
	}
	return 0;
}

/* T is ready to run, or MOVED while it was read. */
static int look_running(struct wp_sampler *s, struct wp_thread *t,
			const struct wp_schedstat *now, bool moved)
{
	uint64_t ns = take_time(s, t), running_ns;

	t->asleep = false;
	t->facts = (struct wp_thread_facts){ .running = true,
					     .syscall_nr = -1 };
	/* Only what waits is of interest. */
	if (!s->wants_running) {
		t->base = t->divided = *now;
		return 0;
	}
	/* Ready, and it has not run since its stack was taken: it waits for a
	 * CPU, and stopping it would tell nothing new. */
	if (t->stack_holds && !has_run(&t->base, now) &&
	    s->tick_ns - t->base_ns >= COUNTED_NS) {
		t->called_runnable_ns += ns;
		t->ask = (struct wp_ask){ .runnable_ns = ns };
		s->profile->counters.unchanged++;
		return wp_record_running(s, t, t->last_running_stack,
					 WP_STATE_RUNNABLE);
	}
	t->stack_holds = false;
	if (comes_by_cpu_sample(s, t, moved))
		return owe(s, t, now, ns);
	ns += t->undecided_ns;
	t->undecided_ns = 0;
	t->base = *now;
	t->base_ns = s->tick_ns;
	running_ns = (uint64_t)((double)ns * divide(t, now));
	t->ask = (struct wp_ask){ .tick_ns = s->tick_ns,
				  .running_ns = running_ns,
				  .runnable_ns = ns - running_ns,
				  .slices = now->slices };
	s->askers[s->naskers++] = t;
	return 0;
}

static int look_exiting(struct wp_sampler *s, struct wp_thread *t,
			const struct wp_thread_facts *facts)
{
	return wp_record_waiting(s, t, facts, wp_record_no_stack(s),
				 take_time(s, t));
}

/* The stack needs a register: from the thread's wait sites, or by a stop. */
static int complete(struct wp_sampler *s, struct wp_thread *t,
		    const struct wp_proc_syscall *call,
		    const struct wp_thread_facts *facts)
{
	const struct wp_syscall_info *info = wp_syscall_find(facts->syscall_nr);
	struct wp_mem mem = wp_stack_copy_mem(&s->copy);
	struct wp_counters *counters = &s->profile->counters;

	if (t->sites && wp_site_cache_find(t->sites, call->pc_avma,
					   call->sp_avma,
					   s->space.view.generation, &mem,
					   &s->stack)) {
		counters->cached_site++;
		return 0;
	}
	/* A stop in such a call makes it go on as restart_syscall, for which a
	 * filter that does not allow it kills the thread. */
	if (s->options.stop == WP_STOP_NEVER ||
	    (info && info->restart_block && wp_tracer_has_filter(t->tid))) {
		counters->partial++;
		return 0;
	}
	return 1;
}

/* Read T where it stands and see whether it stood still.  1 done, 0 it moved,
 * or -errno.
 */
static int look_waiting(struct wp_sampler *s, struct wp_thread *t,
			const struct wp_schedstat *before,
			const struct wp_proc_syscall *call)
{
	struct wp_thread_facts facts = { .syscall_nr = call->nr };
	struct wp_schedstat after;
	struct wp_proc_stat stat;
	struct wp_regs regs = { .known = 0 };
	char text[1024];
	ssize_t n = wp_thread_read(s, -1, t->tid, "stat", text, sizeof(text));
	bool need_regs;
	uint32_t stack;
	int rc;

	if (n < 0)
		return (int)n;
	if (wp_proc_stat_parse(&stat, text, (size_t)n))
		return -EBADMSG;
	if (stat.letter == 'R')
		return 0;
	facts.letter = stat.letter;
	if (stat.letter == 'Z' || stat.letter == 'X' || !call->sp_avma) {
		t->base = *before;
		return look_exiting(s, t, &facts) ? -ENOMEM : 1;
	}
	facts.syscall_nr = real_number(s, t, call);
	memcpy(facts.args, call->args, sizeof(facts.args));
	wp_reg_set(&regs, WP_REG_PC, call->pc_avma);
	wp_reg_set(&regs, WP_REG_SP, call->sp_avma);
	/* vfork of glibc has its return address in one of them. */
	for (int i = 0; i < WP_SYSCALL_ARGS && call->nr >= 0; i++)
		wp_reg_set(&regs, wp_syscall_arg_regs[i], call->args[i]);
	wp_stack_copy_take(&s->copy, call->sp_avma,
			   wp_space_stack_end(&s->space, call->sp_avma),
			   t->copy_len_waiting);
	s->copy.live = true;
	wp_look_walk(s, &t->waiting_walks, &regs);
	while (s->copy.len > t->copy_len_waiting &&
	       t->copy_len_waiting < WP_COPY_MAX)
		t->copy_len_waiting *= 2;
	need_regs = s->stack.end == WP_END_UNKNOWN_REG &&
		    complete(s, t, call, &facts) == 1;
	rc = wp_thread_schedstat(s, t, &after);
	if (rc)
		return rc;
	if (has_run(before, &after))
		return 0;
	settle_undecided(t, &after);
	t->base = t->divided = after;
	t->called_runnable_ns = 0;
	t->stack_holds = false;
	if (s->options.kernel)
		wp_look_add_kernel(s, t);
	stack = wp_record_stack(s);
	if (stack == UINT32_MAX)
		return -ENOMEM;
	if (!need_regs) {
		s->profile->counters.no_stop++;
		rc = wp_record_waiting(s, t, &facts, stack, take_time(s, t));
		/* A stack by a map that is not right any more must not stay
		 * for as long as the thread waits. */
		if (s->map_is_stale)
			t->asleep = false;
		return rc ? -ENOMEM : 1;
	}
	t->asleep = false;
	t->ask = (struct wp_ask){ .tick_ns = s->tick_ns, .waiting = true,
				  .running_ns = take_time(s, t),
				  .slices = after.slices,
				  .pc_avma = call->pc_avma,
				  .sp_avma = call->sp_avma,
				  .partial_stack = stack, .facts = facts };
	s->askers[s->naskers++] = t;
	return 1;
}

/* T has run since the last look, or was not waiting then. */
static int look_again(struct wp_sampler *s, struct wp_thread *t,
		      struct wp_schedstat *now)
{
	int tries = s->options.stop == WP_STOP_NEVER ? TRIES_NEVER : TRIES;

	wp_threads_name(s, t);
	if (!t->watched)
		return 0;
	for (int try = 0; try < tries; try++) {
		struct wp_proc_syscall call;
		char text[256];
		ssize_t n = wp_thread_read(s, t->syscall_fd, t->tid, "syscall",
					   text, sizeof(text));
		int rc;

		if (n < 0)
			return (int)n;
		if (wp_proc_syscall_parse(&call, text, (size_t)n))
			return -EBADMSG;
		if (call.running)
			return look_running(s, t, now, false);
		if (s->wait_for_runners) {
			t->later = true;
			return 0;
		}
		rc = look_waiting(s, t, now, &call);
		if (rc)
			return rc < 0 ? rc : 0;
		s->profile->counters.inconsistent++;
		rc = wp_thread_schedstat(s, t, now);
		if (rc)
			return rc;
	}
	return look_running(s, t, now, true);
}

/* T has not run since the last look, says the scan. */
static int look_unchanged(struct wp_sampler *s, struct wp_thread *t)
{
	wp_cpu_account(s, t, &t->base);
	return wp_record_unchanged(s, t, take_time(s, t));
}

int wp_look(struct wp_sampler *s, struct wp_thread *t)
{
	struct wp_schedstat now;
	int rc;

	t->later = false;
	if (t->asked) {
		/* It may have ended under the stop. */
		if (wp_tracer_find(s->tracer, (uintptr_t)t))
			return 0;
		t->asked = false;
	}
	if ((t->asleep || !s->looks_at_all) && wp_scan_holds(s, t))
		return s->looks_at_all ? look_unchanged(s, t) : 0;
	rc = wp_thread_schedstat(s, t, &now);
	if (rc)
		return rc;
	if (s->schedstat_works)
		wp_cpu_account(s, t, &now);
	if (!s->looks_at_all) {
		t->base = now;
		return 0;
	}
	if (t->asleep && s->schedstat_works && !has_run(&t->base, &now))
		return wp_record_unchanged(s, t, take_time(s, t));
	return look_again(s, t, &now);
}
