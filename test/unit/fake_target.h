/* SPDX-License-Identifier: Apache-2.0 */
/* fake_target.h - a target whose /proc is a directory of the test, whose clock
 * stands still until the test moves it, and whose threads stop as the test says.
 *
 * A test that includes this defines wp_clock_* and wp_tracer_*, so that those of
 * the libraries are not linked.  Memory and map of the target are the test's own:
 * a thread can be given the stack of a coroutine that has been left.
 */
#ifndef WP_TEST_FAKE_TARGET_H
#define WP_TEST_FAKE_TARGET_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "../../src/sample/sampler_loop.h"
#include "../../src/sample/target.h"
#include "../../src/sample/threads.h"
#include "wallprof/clock.h"

/* The clock. */
static uint64_t fake_now_ns = 1000 * WP_NS_PER_S;
/* Called before it is read; may be NULL. */
static void (*fake_before_clock)(void);

uint64_t wp_clock_ns(void)
{
	if (fake_before_clock)
		fake_before_clock();
	return fake_now_ns;
}

uint64_t wp_clock_cpu_ns(void)
{
	return fake_now_ns;
}

uint64_t wp_clock_used_ns(int who)
{
	(void)who;
	return fake_now_ns;
}

int64_t wp_clock_utc_ns(void)
{
	return (int64_t)fake_now_ns;
}

/* What the next stops do. */
static struct {
	/* Of PTRACE_INTERRUPT: 0 or -errno. */
	int interrupt_rc;
	/* The stop comes, at the next wait; otherwise waits end by time. */
	bool comes;
	/* The thread dies in the stop. */
	bool dies;
	struct wp_regs regs;
	struct wp_stop_facts facts;
	/* Called when registers are read: the thread stands still. */
	void (*in_window)(void);
	/* Is called when the thread is let go; NULL: not. */
	void (*after_window)(void);
	bool has_filter;
	/* Only this thread has it; 0: all. */
	pid_t filter_tid;
	/* Released before it stopped. */
	pid_t late_tid;
	unsigned int ninterrupts, nreleases;
} fake_stop;

void wp_tracer_init(struct wp_tracer *tracer)
{
	*tracer = (struct wp_tracer)WP_TRACER_INIT;
}

int wp_tracer_interrupt(struct wp_tracer *tracer, pid_t tid, uint64_t cookie)
{
	struct wp_tracee *v;

	if (fake_stop.interrupt_rc)
		return fake_stop.interrupt_rc;
	v = reallocarray(tracer->v, tracer->len + 1, sizeof(*tracer->v));
	if (!v)
		return -ENOMEM;
	tracer->v = v;
	tracer->v[tracer->len++] = (struct wp_tracee){
		.tid = tid,
		.asked_ns = fake_now_ns,
		.cookie = cookie,
	};
	fake_stop.ninterrupts++;
	return 0;
}

struct wp_tracee *wp_tracer_wait(struct wp_tracer *tracer, uint64_t until_ns)
{
	for (size_t i = 0; fake_stop.comes && i < tracer->len; i++) {
		if (tracer->v[i].stopped)
			continue;
		fake_now_ns += 10 * WP_NS_PER_US;
		tracer->v[i].stopped = true;
		tracer->v[i].stopped_ns = fake_now_ns;
		return &tracer->v[i];
	}
	if (until_ns > fake_now_ns)
		fake_now_ns = until_ns;
	return NULL;
}

struct wp_tracee *wp_tracer_sleep(struct wp_tracer *tracer, uint64_t until_ns)
{
	return wp_tracer_wait(tracer, until_ns);
}

int wp_tracer_read_regs(struct wp_tracee *tracee, struct wp_regs *ret_regs,
			struct wp_stop_facts *ret_facts)
{
	(void)tracee;
	if (fake_stop.dies)
		return -ESRCH;
	*ret_regs = fake_stop.regs;
	*ret_facts = fake_stop.facts;
	if (fake_stop.in_window)
		fake_stop.in_window();
	return 0;
}

bool wp_tracer_has_filter(pid_t tid)
{
	return fake_stop.has_filter &&
	       (!fake_stop.filter_tid || tid == fake_stop.filter_tid);
}

void wp_tracer_release(struct wp_tracer *tracer, struct wp_tracee *tracee)
{
	*tracee = tracer->v[--tracer->len];
	fake_stop.nreleases++;
	if (fake_stop.after_window)
		fake_stop.after_window();
}

struct wp_tracee *wp_tracer_find(struct wp_tracer *tracer, uint64_t cookie)
{
	for (size_t i = 0; i < tracer->len; i++)
		if (tracer->v[i].cookie == cookie && !tracer->v[i].stopped)
			return &tracer->v[i];
	return NULL;
}

bool wp_tracer_end_late(struct wp_tracer *tracer, pid_t tid)
{
	(void)tracer;
	return tid == fake_stop.late_tid;
}

void wp_tracer_clear(struct wp_tracer *tracer)
{
	free(tracer->v);
	*tracer = (struct wp_tracer)WP_TRACER_INIT;
}

/* A coroutine that has been left: what a thread's stack looks like. */
struct fake_stack {
	ucontext_t here, there;
	uint8_t room[64 * 1024] __attribute__((aligned(16)));
};

static struct fake_stack *fake_stack_entered;

/* glibc's own: ASan would put a frame of its own between. */
static int (*fake_swapcontext)(ucontext_t *, const ucontext_t *);

/* Without a frame pointer, so that pc and sp suffice to walk it. */
#if defined(__clang__)
#define FAKE_NO_FP
#else
#define FAKE_NO_FP __attribute__((optimize("O2", "omit-frame-pointer")))
#endif

FAKE_NO_FP __attribute__((noinline, unused)) static void fake_stack_leaf(void)
{
	fake_swapcontext(&fake_stack_entered->there, &fake_stack_entered->here);
	__asm__ volatile("");
}

FAKE_NO_FP __attribute__((noinline, unused)) static void fake_stack_root(void)
{
	fake_stack_leaf();
	__asm__ volatile("");
}

/* With one: it is a register that /proc/TID/syscall does not tell. */
__attribute__((noinline, unused, no_sanitize_address)) static void
fake_stack_needs_fp(void)
{
	void *volatile fp = __builtin_frame_address(0);

	fake_stack_leaf();
	(void)fp;
}

#if defined(__aarch64__)
static void (*fake_stack_entry)(void);

/* glibc's __start_context has no end for unwinders there. */
FAKE_NO_FP __attribute__((noinline, unused)) static void fake_stack_start(void)
{
	__asm__ volatile(".cfi_undefined x30");
	fake_stack_entry();
	__asm__ volatile("");
}
#endif

/* Leave STACK in ENTRY (fake_stack_root or fake_stack_needs_fp). */
__attribute__((unused)) static void fake_stack_init(struct fake_stack *stack,
						    void (*entry)(void))
{
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	*(void **)&fake_swapcontext = dlsym(libc, "swapcontext");
	memset(stack, 0, sizeof(*stack));
	getcontext(&stack->there);
	stack->there.uc_stack.ss_sp = stack->room;
	stack->there.uc_stack.ss_size = sizeof(stack->room);
	stack->there.uc_link = &stack->here;
#if defined(__aarch64__)
	fake_stack_entry = entry;
	entry = fake_stack_start;
#endif
	makecontext(&stack->there, entry, 0);
	fake_stack_entered = stack;
	fake_swapcontext(&stack->here, &stack->there);
}

/* The registers that STACK was left with. */
__attribute__((unused)) static struct wp_regs
fake_stack_regs(const struct fake_stack *stack)
{
	struct wp_regs regs = { .known = 0 };

#if defined(__x86_64__)
	const greg_t *g = stack->there.uc_mcontext.gregs;

	for (unsigned int n = 0; n < WP_NREGS; n++)
		wp_reg_set(&regs, n, 0);
	wp_reg_set(&regs, WP_REG_PC, (uint64_t)g[REG_RIP]);
	wp_reg_set(&regs, WP_REG_SP, (uint64_t)g[REG_RSP]);
	wp_reg_set(&regs, WP_REG_FP, (uint64_t)g[REG_RBP]);
	wp_reg_set(&regs, 3, (uint64_t)g[REG_RBX]);
	for (unsigned int n = 0; n < 4; n++)
		wp_reg_set(&regs, 12 + n, (uint64_t)g[REG_R12 + (int)n]);
#else
	for (unsigned int n = 0; n < 31; n++)
		wp_reg_set(&regs, n, stack->there.uc_mcontext.regs[n]);
	/* glibc's swapcontext has it go on at a `ret x1`. */
	wp_reg_set(&regs, WP_REG_PC, stack->there.uc_mcontext.regs[1]);
	wp_reg_set(&regs, WP_REG_SP, stack->there.uc_mcontext.sp);
#endif
	return regs;
}

/* The target. */
struct fake_target {
	/* The process is held before it executes its program. */
	bool held;
	char dir[64];
	struct wp_process process;
	struct wp_profile profile;
	struct wp_tracer tracer;
	struct wp_sampler *sampler;
	struct wp_target *target;
};

/* Write TEXT over file NAME of thread TID (0: of the process). */
__attribute__((unused)) static void
fake_target_write(const struct fake_target *fake, pid_t tid, const char *name,
		  const char *text)
{
	char path[128];
	ssize_t len = (ssize_t)strlen(text);
	int fd;

	if (tid)
		snprintf(path, sizeof(path), "%s/task/%d/%s", fake->dir, tid,
			 name);
	else
		snprintf(path, sizeof(path), "%s/%s", fake->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		abort();
	close(fd);
}

/* Thread TID has these numbers in its schedstat. */
__attribute__((unused)) static void
fake_target_schedstat(const struct fake_target *fake, pid_t tid,
		      uint64_t run_ns, uint64_t wait_ns, uint64_t slices)
{
	char text[96];

	snprintf(text, sizeof(text), "%llu %llu %llu\n",
		 (unsigned long long)run_ns, (unsigned long long)wait_ns,
		 (unsigned long long)slices);
	fake_target_write(fake, tid, "schedstat", text);
}

/* Thread TID is in state LETTER of /proc/TID/stat. */
__attribute__((unused)) static void
fake_target_stat(const struct fake_target *fake, pid_t tid, char letter)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "%d (fake) %c 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 100 "
		 "0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 "
		 "0 0 0 0 0 0 0 0 0 0\n",
		 tid ? tid : getpid(), letter);
	fake_target_write(fake, tid, "stat", text);
}

/* Thread TID is in state LETTER, and a worker of the kernel's, as io_uring has. */
__attribute__((unused)) static void
fake_target_is_worker(const struct fake_target *fake, pid_t tid, char letter)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "%d (iou-wrk-1) %c 1 1 1 0 -1 4210768 0 0 0 0 0 0 0 0 20 0 1 "
		 "0 100 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 "
		 "0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		 tid, letter);
	fake_target_write(fake, tid, "stat", text);
}

/* Thread TID is on a CPU. */
__attribute__((unused)) static void
fake_target_runs(const struct fake_target *fake, pid_t tid)
{
	fake_target_write(fake, tid, "syscall", "running\n");
	fake_target_stat(fake, tid, 'R');
}

/* Thread TID waits in system call NR with first argument ARG, with the pc and sp
 * of REGS. */
__attribute__((unused)) static void
fake_target_waits_timed(const struct fake_target *fake, pid_t tid, long nr,
			uint64_t arg, uint64_t limit,
			const struct wp_regs *regs)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "%ld 0x%llx 0x0 0x0 0x%llx 0x0 0x0 0x%llx 0x%llx\n", nr,
		 (unsigned long long)arg, (unsigned long long)limit,
		 (unsigned long long)regs->v[WP_REG_SP],
		 (unsigned long long)regs->v[WP_REG_PC]);
	fake_target_write(fake, tid, "syscall", text);
	fake_target_stat(fake, tid, 'S');
}

__attribute__((unused)) static void
fake_target_waits(const struct fake_target *fake, pid_t tid, long nr,
		  uint64_t arg, const struct wp_regs *regs)
{
	fake_target_waits_timed(fake, tid, nr, arg, 0, regs);
}

/* Thread TID called NAME begins: it runs. */
__attribute__((unused)) static void
fake_target_add_thread(const struct fake_target *fake, pid_t tid,
		       const char *name)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), "%s/task/%d", fake->dir, tid);
	if (mkdir(path, 0700))
		abort();
	snprintf(text, sizeof(text), "%s\n", name);
	fake_target_write(fake, tid, "comm", text);
	snprintf(text, sizeof(text), "NSpid:\t%d\n", tid);
	fake_target_write(fake, tid, "status", text);
	snprintf(path, sizeof(path), "%s/task/%d/fd", fake->dir, tid);
	if (symlink("/proc/self/fd", path))
		abort();
	fake_target_schedstat(fake, tid, 1000, 0, 1);
	fake_target_runs(fake, tid);
}

/* Thread TID ends: its directory goes, and what is open of it has nothing more
 * to be read. */
__attribute__((unused)) static void
fake_target_end_thread(const struct fake_target *fake, pid_t tid)
{
	static const char *const name[] = { "schedstat", "syscall", "stat",
					    "comm",	 "status",  "stack",
					    "sched",	 "fd" };
	char path[128];

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++) {
		snprintf(path, sizeof(path), "%s/task/%d/%s", fake->dir, tid,
			 name[i]);
		(void)!truncate(path, 0);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/task/%d", fake->dir, tid);
	if (rmdir(path))
		abort();
}

static int fake_target_open_dir(const struct fake_target *fake,
				const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", fake->dir, name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		abort();
	return fd;
}

static void fake_target_link(const struct fake_target *fake, const char *name)
{
	char path[128], self[64];

	snprintf(path, sizeof(path), "%s/%s", fake->dir, name);
	snprintf(self, sizeof(self), "/proc/self/%s", name);
	if (symlink(self, path))
		abort();
}

/* A process without threads yet; add some, then fake_target_start. */
__attribute__((unused)) static void fake_target_open(struct fake_target *fake)
{
	static const char *const own[] = { "maps", "exe", "fd", "net",
					   "map_files" };
	char path[128];

	memset(fake, 0, sizeof(*fake));
	memset(&fake_stop, 0, sizeof(fake_stop));
	fake_stop.comes = true;
	fake_stop.facts.syscall_nr = -1;
	snprintf(fake->dir, sizeof(fake->dir), "%s/wallprof-fake-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(fake->dir))
		abort();
	snprintf(path, sizeof(path), "%s/task", fake->dir);
	if (mkdir(path, 0700))
		abort();
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		fake_target_link(fake, own[i]);
	fake_target_stat(fake, 0, 'S');
	fake->process = (struct wp_process)WP_PROCESS_INIT;
	fake->process.pid = fake->process.reader_tid = getpid();
	fake->process.proc_fd = fake_target_open_dir(fake, ".");
	fake->process.task_fd = fake_target_open_dir(fake, "task");
	if (wp_profile_init(&fake->profile))
		abort();
	wp_tracer_init(&fake->tracer);
}

/* Options of a wall-clock recording at 100 Hz. */
__attribute__((unused)) static struct wp_sampler_options
fake_target_options(void)
{
	return (struct wp_sampler_options){
		.wall = true,
		.interval_ns = 10 * WP_NS_PER_MS,
		.stop = WP_STOP_AUTO,
		.scan = WP_SCAN_PROC,
		.max_depth = 64,
	};
}

/* Begin to sample: 0, or what adding the target gave. */
__attribute__((unused)) static int
fake_target_start(struct fake_target *fake,
		  const struct wp_sampler_options *options)
{
	struct wp_err err = WP_ERR_INIT;
	int rc = wp_sampler_new(&fake->sampler, options, &fake->tracer, &err);

	/* Of the fake's schedstat only. */
	if (!rc) {
		fake->sampler->schedstat_works = true;
		close(fake->sampler->own_cpu.schedstat_fd);
		fake->sampler->own_cpu.schedstat_fd = -1;
		wp_sampler_prepare(fake->sampler, 1);
	}
	if (!rc && !fake->held)
		rc = wp_sampler_add_target(fake->sampler, &fake->process,
					   &fake->profile, &fake->target, &err);
	if (!rc && fake->held)
		rc = wp_sampler_add_held_target(fake->sampler, &fake->process,
						&fake->profile, &fake->target,
						&err);
	return rc;
}

/* NS pass, then there is a tick. */
__attribute__((unused)) static int fake_target_tick(struct fake_target *fake,
						    uint64_t ns)
{
	fake_now_ns += ns;
	return wp_sampler_tick(fake->sampler);
}

/* Wall time in the samples of thread TID in STATE (WP_NSTATES: in any). */
__attribute__((unused)) static uint64_t
fake_target_wall_ns(const struct fake_target *fake, pid_t tid,
		    enum wp_state state)
{
	const struct wp_sample_set *set = &fake->profile.sets[WP_PROFILE_WALL];
	uint64_t ns = 0;

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_sample_key *key = &set->samples[i].key;

		if (fake->profile.threads[key->thread].tid == tid &&
		    (state == WP_NSTATES || key->state == state))
			ns += set->samples[i].wall_ns;
	}
	return ns;
}

/* Number of distinct samples, of any kind, whose stack ended as END. */
__attribute__((unused)) static uint32_t
fake_target_ends(const struct fake_target *fake, enum wp_stack_end end)
{
	uint32_t n = 0;

	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++) {
		const struct wp_sample_set *set = &fake->profile.sets[kind];

		for (uint32_t i = 0; i < set->nsamples; i++)
			n += fake->profile.stacks[set->samples[i].key.stack]
				     .end == end;
	}
	return n;
}

__attribute__((unused)) static void fake_target_close(struct fake_target *fake)
{
	char command[128];

	wp_sampler_free(fake->sampler);
	wp_tracer_clear(&fake->tracer);
	wp_profile_clear(&fake->profile);
	close(fake->process.proc_fd);
	close(fake->process.task_fd);
	snprintf(command, sizeof(command), "rm -rf %s", fake->dir);
	if (system(command))
		abort();
}

#endif
