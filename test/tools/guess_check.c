/* SPDX-License-Identifier: Apache-2.0 */
/* guess_check - are steps without unwind info what the info would say?
 *
 * guess_check PID [ROUNDS]   stop the process's threads ROUNDS times, walk each
 *                            by its files' CFI, and at each frame let the
 *                            guesser step too, as if there were no CFI
 *
 * Prints one line of totals: steps compared, guessed right, refused, wrong; and
 * first a line for each different wrong one (at most 20).  A wrong register of
 * the caller is a wrong guess.  Status 1 if there was a wrong one.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "../../src/sample/address_space.h"
#include "../../unwind/prover.h"

enum {
	DEPTH_MAX = 300,
	SHOWN_MAX = 20,
};

struct totals {
	unsigned long compared;
	unsigned long right;
	unsigned long refused;
	unsigned long wrong;
	/* Frames that the CFI cannot step from, and a guess can. */
	unsigned long more;
	/* CPU time of all steps; of those refused; of the longest. */
	uint64_t ns;
	uint64_t refused_ns;
	uint64_t max_ns;
	/* A walk came to where the map has no code. */
	bool left_map;
	unsigned int shown;
	uint64_t shown_pc[SHOWN_MAX];
};

static struct wp_address_space space = WP_ADDRESS_SPACE_INIT;
static struct wp_image_cache images;
static struct wp_modules modules;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static enum wp_mem_result read_target(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	return wp_process_read(ctx, avma, buf, len) == (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

#if defined(__x86_64__)
static bool get_regs(pid_t tid, struct wp_regs *ret)
{
	struct user_regs_struct u;
	struct iovec iov = { &u, sizeof(u) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &iov))
		return false;
	*ret = (struct wp_regs){
		.v = { u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp,
		       u.r8, u.r9, u.r10, u.r11, u.r12, u.r13, u.r14, u.r15,
		       u.rip },
		.known = (1u << WP_NREGS) - 1,
	};
	return true;
}
#else
static bool get_regs(pid_t tid, struct wp_regs *ret)
{
	(void)tid;
	(void)ret;
	return false;
}
#endif

static bool differs(const struct wp_regs *guess, const struct wp_regs *truth)
{
	for (unsigned int r = 0; r < WP_NREGS; r++)
		if ((guess->known & truth->known & WP_ARCH_CALLEE_SAVED) >> r &
			    1 &&
		    guess->v[r] != truth->v[r])
			return true;
	return guess->v[WP_REG_PC] != truth->v[WP_REG_PC] ||
	       guess->v[WP_REG_SP] != truth->v[WP_REG_SP];
}

static void show(struct totals *t, const struct wp_step *step, uint64_t pc,
		 enum wp_step_result truth, const struct wp_regs *want,
		 enum wp_step_result result, const struct wp_regs *got)
{
	for (unsigned int i = 0; i < t->shown; i++)
		if (t->shown_pc[i] == pc)
			return;
	if (t->shown == SHOWN_MAX)
		return;
	t->shown_pc[t->shown++] = pc;
	printf("wrong at %" PRIx64 " (svma %" PRIx64 ", mapping %u%s):"
	       " %d for %d, pc %" PRIx64 " for %" PRIx64 ", sp %" PRIx64
	       " for %" PRIx64 ", registers",
	       pc, pc - step->module->bias, step->module->mapping,
	       step->is_return ? ", return" : "", (int)result, (int)truth,
	       got->v[WP_REG_PC], want->v[WP_REG_PC], got->v[WP_REG_SP],
	       want->v[WP_REG_SP]);
	for (unsigned int r = 0; r < WP_NREGS; r++)
		if ((got->known & want->known & WP_ARCH_CALLEE_SAVED) >> r &
			    1 &&
		    got->v[r] != want->v[r])
			printf(" %u", r);
	printf("\n");
}

/* The guesser's step from where STEP is about to start, told WANT. */
static void compare(struct totals *t, struct wp_prover *prover,
		    const struct wp_step *before, const struct wp_regs *regs,
		    enum wp_step_result truth, const struct wp_regs *want)
{
	struct wp_regs got = *regs;
	struct wp_step step = *before;
	enum wp_step_result result;
	uint64_t ns = now_ns();

	step.regs = &got;
	result = wp_step_guess(prover, &step, &space.view);
	ns = now_ns() - ns;
	t->ns += ns;
	if (ns > t->max_ns)
		t->max_ns = ns;
	t->compared++;
	if (truth == WP_STEP_NO_INFO) {
		t->compared--;
		t->more += result == WP_STEP_OK || result == WP_STEP_ROOT;
	} else if (result != WP_STEP_OK && result != WP_STEP_ROOT) {
		t->refused++;
		t->refused_ns += ns;
		if (getenv("REFUSED"))
			printf("refused %" PRIx64 " mapping %u%s\n",
			       regs->v[WP_REG_PC] - step.module->bias,
			       step.module->mapping,
			       step.is_return ? " return" : "");
	} else if (result != truth ||
		   (truth == WP_STEP_OK && differs(&got, want))) {
		t->wrong++;
		show(t, &step, regs->v[WP_REG_PC], truth, want, result, &got);
	} else {
		t->right++;
	}
}

static void walk(struct totals *t, void *rows, struct wp_prover *prover,
		 struct wp_regs regs, struct wp_mem *mem)
{
	struct wp_step step = { .mem = mem };

	for (unsigned int depth = 0; depth < DEPTH_MAX; depth++) {
		struct wp_regs before = regs;
		enum wp_step_result result;

		step.regs = &regs;
		step.is_signal = false;
		step.module = wp_unwind_find_module(
			&space.view, regs.v[WP_REG_PC] - step.is_return);
		t->left_map |= !step.module;
		if (!step.module || !step.module->image)
			return;
		result = wp_step_rows.step(rows, &step);
		if (result != WP_STEP_OK && result != WP_STEP_ROOT &&
		    result != WP_STEP_NO_INFO)
			return;
		compare(t, prover, &step, &before, result, &regs);
		if (result != WP_STEP_OK)
			return;
		step.is_return = !step.is_signal;
	}
}

static void check_thread(struct totals *t, void *rows, struct wp_prover *prover,
			 pid_t tid, struct wp_mem *mem)
{
	struct wp_regs regs;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, 0, 0))
		return;
	if (!ptrace(PTRACE_INTERRUPT, tid, 0, 0) &&
	    waitpid(tid, &status, __WALL) == tid && get_regs(tid, &regs)) {
		walk(t, rows, prover, regs, mem);
		/* As for a thread that was not stopped. */
		regs.known &= UINT64_C(1) << WP_REG_PC | UINT64_C(1)
								 << WP_REG_SP;
		walk(t, rows, prover, regs, mem);
	}
	ptrace(PTRACE_DETACH, tid, 0, 0);
}

static void check(struct totals *t, struct wp_process *process, long rounds)
{
	struct wp_unwind_stats stats = { 0 };
	struct wp_prover *prover = wp_prover_new(&stats);
	void *rows = wp_step_rows.open(&stats);
	struct wp_mem mem = { read_target, process };
	struct wp_tids tids = WP_TIDS_INIT;
	struct timespec pause = { 0, 3000000 };

	while (rows && prover && rounds--) {
		if (wp_process_list_threads(process, &tids))
			break;
		for (size_t i = 0; i < tids.len; i++)
			check_thread(t, rows, prover, tids.v[i], &mem);
		if (t->left_map && wp_address_space_reload(&space, false) < 0)
			break;
		t->left_map = false;
		nanosleep(&pause, NULL);
	}
	wp_tids_clear(&tids);
	if (rows)
		wp_step_rows.close(rows);
	wp_prover_free(prover);
}

int main(int argc, char **argv)
{
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_profile profile;
	struct totals t = { 0 };

	if (argc < 2)
		return 64;
	wp_modules_init(&modules, &profile, &images);
	if (wp_process_open(&process, (pid_t)strtol(argv[1], NULL, 10), NULL) ||
	    wp_profile_init(&profile) ||
	    wp_address_space_open(&space, &process, &modules, 0)) {
		fprintf(stderr, "guess_check: cannot look at %s\n", argv[1]);
		return 2;
	}
	check(&t, &process, argc > 2 ? strtol(argv[2], NULL, 10) : 100);
	printf("compared=%lu right=%lu refused=%lu wrong=%lu more=%lu"
	       " ns_per_guess=%" PRIu64 " ns_per_refusal=%" PRIu64
	       " max_us=%" PRIu64 "\n",
	       t.compared, t.right, t.refused, t.wrong, t.more,
	       t.right + t.more ? (t.ns - t.refused_ns) / (t.right + t.more) :
				  0,
	       t.refused ? t.refused_ns / t.refused : 0, t.max_ns / 1000);
	wp_address_space_close(&space);
	wp_modules_clear(&modules);
	wp_image_cache_clear(&images);
	wp_profile_clear(&profile);
	wp_process_clear(&process);
	return t.wrong != 0;
}
