/* SPDX-License-Identifier: Apache-2.0 */
/* test_walk.c - walks of this very process, compared with what libgcc finds
 * (the truth here), over both back ends; and of stacks made by hand.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <alloca.h>
#include <pthread.h>
#include <signal.h>

#include "../../unwind/arch.h"
#include "fake_elf.h"
#include "stack_snapshot.h"

#if !defined(__clang__)
/* alloca is the point. */
#pragma GCC diagnostic ignored "-Wstack-usage="
#endif

#define NOINLINE __attribute__((noinline))
/* Forces a frame of its own: no tail call, and the call has a result. */
#define AFTER_CALL(x) __asm__ volatile("" : "+r"(x))

enum {
	NBACKENDS = 2,
};

static const enum wp_unwind_backend backends[NBACKENDS] = {
	WP_UNWIND_ROWS,
	WP_UNWIND_LIBUNWIND,
};

/* What one walk gave, and with what. */
struct walked {
	struct wp_frame frames[SNAPSHOT_FRAMES_MAX];
	uint64_t cfa_avma[SNAPSHOT_FRAMES_MAX];
	struct wp_stack stack;
};

/* The truth, and the registers to start from at the same place. */
struct shot {
	const struct snapshot_modules *modules;
	struct wp_unwinder *unwinder;
	/* Filled by take(): */
	int ntruth;
	void *truth[SNAPSHOT_FRAMES_MAX];
	struct walked full;
	/* With pc and sp known only. */
	struct walked partial;
	/* With room for five frames. */
	struct walked shallow;
	/* With memory that ends at the third frame's CFA. */
	struct walked cut;
};

/* What each test runs with; a signal handler needs it too. */
static struct shot *shot;
static int (*libgcc_backtrace)(void **, int);

static void walk(struct shot *s, const struct wp_regs *regs,
		 const struct wp_mem *mem, uint32_t cap, struct walked *ret)
{
	ret->stack = (struct wp_stack){ .frames = ret->frames,
					.cfa_avma = ret->cfa_avma,
					.cap = cap };
	wp_unwind_walk(s->unwinder, &s->modules->list, regs, mem,
		       WP_UNWIND_THOROUGH, &ret->stack);
}

/* Walk from the registers in CONTEXT, on a stack that is still there. */
static void walk_all(struct shot *s, const ucontext_t *context)
{
	struct wp_mem mem = { snapshot_read, NULL };
	struct wp_regs regs, known;
	uint64_t end_avma;

	snapshot_regs(&regs, context);
	known = regs;
	known.known &= UINT64_C(1) << WP_REG_PC | UINT64_C(1) << WP_REG_SP;
	walk(s, &regs, &mem, SNAPSHOT_FRAMES_MAX, &s->full);
	walk(s, &known, &mem, SNAPSHOT_FRAMES_MAX, &s->partial);
	walk(s, &regs, &mem, 5, &s->shallow);
	end_avma = s->full.cfa_avma[2];
	mem.ctx = &end_avma;
	walk(s, &regs, &mem, SNAPSHOT_FRAMES_MAX, &s->cut);
}

static NOINLINE void take(void)
{
	ucontext_t context;

	getcontext(&context);
	walk_all(shot, &context);
	shot->ntruth = libgcc_backtrace(shot->truth, SNAPSHOT_FRAMES_MAX);
}

/* FRAMES are the first of the truth, but for the innermost: there the truth
 * was asked for a few instructions later. */
static void assert_prefix(const struct walked *w)
{
	assert_in_range(w->stack.depth, 1, shot->ntruth);
	for (uint32_t i = 1; i < w->stack.depth; i++)
		assert_int_equal(w->frames[i].pc_avma,
				 (uintptr_t)shot->truth[i]);
}

static void assert_rising(const struct walked *w)
{
	for (uint32_t i = 1; i + 1 < w->stack.depth; i++)
		if (!(w->frames[i].flags & WP_FRAME_SIGNAL))
			assert_true(w->cfa_avma[i] > w->cfa_avma[i - 1]);
	assert_int_equal(w->cfa_avma[w->stack.depth - 1], 0);
}

/* NSIGNALS: how many trampolines there are on the stack. */
static void assert_flags(const struct walked *w, unsigned int nsignals)
{
	uint32_t expected = 0;

	for (uint32_t i = 0; i < w->stack.depth; i++) {
		uint32_t flags = w->frames[i].flags;

		assert_int_equal(flags & ~(uint32_t)WP_FRAME_SIGNAL, expected);
		expected = flags & WP_FRAME_SIGNAL ? 0 : WP_FRAME_RETURN;
		nsignals -= !!(flags & WP_FRAME_SIGNAL);
		/* No call is before a trampoline: it has a name of its own. */
		assert_int_equal(wp_frame_lookup_avma(&w->frames[i]),
				 w->frames[i].pc_avma -
					 (flags == WP_FRAME_RETURN));
		assert_int_not_equal(w->frames[i].mapping, WP_MAPPING_NONE);
	}
	assert_int_equal(nsignals, 0);
}

static void assert_truth(unsigned int nsignals)
{
	const struct walked *full = &shot->full;

	assert_prefix(full);
	assert_int_equal(full->stack.end, WP_END_ROOT);
	assert_int_equal(full->stack.depth, shot->ntruth);
	assert_rising(full);
	assert_flags(full, nsignals);

	/* Nothing is made up for want of a register. */
	assert_prefix(&shot->partial);
	if (shot->partial.stack.end == WP_END_ROOT)
		assert_int_equal(shot->partial.stack.depth, shot->ntruth);
	else
		assert_int_equal(shot->partial.stack.end, WP_END_UNKNOWN_REG);

	assert_prefix(&shot->shallow);
	assert_int_equal(shot->shallow.stack.end, WP_END_DEPTH_LIMIT);
	assert_int_equal(shot->shallow.stack.depth, 5);

	/* The fourth frame is found, its return address is past the end. */
	assert_prefix(&shot->cut);
	assert_int_equal(shot->cut.stack.end, WP_END_UNREADABLE);
	assert_int_equal(shot->cut.stack.depth, 4);
}

static NOINLINE int recurse(int n)
{
	int ret = 1;

	if (n)
		ret += recurse(n - 1);
	else
		take();
	AFTER_CALL(ret);
	return ret;
}

/* A frame that only its frame pointer finds, at any optimisation. */
static NOINLINE int sprawl(size_t n, int depth)
{
	volatile char *p = alloca(n + 1);
	int ret = 1;

	p[n] = 1;
	if (depth)
		ret += sprawl(n + 7, depth - 1);
	else
		take();
	AFTER_CALL(ret);
	return ret + p[n];
}

static void with_backend(enum wp_unwind_backend backend,
			 void (*run)(unsigned int), unsigned int arg)
{
	static struct snapshot_modules modules;
	static struct shot s;

	snapshot_modules_init(&modules);
	memset(&s, 0, sizeof(s));
	s.modules = &modules;
	shot = &s;
	assert_int_equal(wp_unwinder_new(&s.unwinder, backend), 0);
	run(arg);
	wp_unwinder_free(s.unwinder);
	snapshot_modules_clear(&modules);
}

static void for_each_backend(void (*run)(unsigned int), unsigned int arg)
{
	for (int i = 0; i < NBACKENDS; i++)
		with_backend(backends[i], run, arg);
}

static void run_recursion(unsigned int depth)
{
	recurse((int)depth);
	assert_truth(0);
	assert_in_range(shot->full.stack.depth, depth + 4, depth + 40);
}

static void recursion_is_walked_to_the_root(void **state)
{
	(void)state;
	for_each_backend(run_recursion, 3);
	for_each_backend(run_recursion, 200);
}

static void run_sprawl(unsigned int depth)
{
	sprawl(100, (int)depth);
	assert_truth(0);
}

static void frames_with_frame_pointers_are_walked(void **state)
{
	(void)state;
	for_each_backend(run_sprawl, 10);
}

static void take_in_handler(int sig)
{
	(void)sig;
	recurse(3);
}

static void run_signal(unsigned int flags)
{
	static char alternate[1 << 18];
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	stack_t old;
	struct sigaction action = { .sa_handler = take_in_handler,
				    .sa_flags = (int)flags },
			 before;

	assert_int_equal(sigaltstack(&stack, &old), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	raise(SIGUSR1);
	sigaction(SIGUSR1, &before, NULL);
	sigaltstack(&old, NULL);
	assert_truth(1);
	if (flags & SA_ONSTACK)
		assert_in_range(shot->full.cfa_avma[1], (uintptr_t)alternate,
				(uintptr_t)alternate + sizeof(alternate));
}

static void signal_handlers_are_walked_through(void **state)
{
	(void)state;
	for_each_backend(run_signal, 0);
	for_each_backend(run_signal, SA_ONSTACK);
}

static void *take_in_thread(void *arg)
{
	(void)arg;
	recurse(5);
	return NULL;
}

static void run_thread(unsigned int arg)
{
	pthread_t thread;

	(void)arg;
	assert_int_equal(pthread_create(&thread, NULL, take_in_thread, NULL),
			 0);
	pthread_join(thread, NULL);
	assert_truth(0);
}

static void threads_are_walked_to_their_root(void **state)
{
	(void)state;
	for_each_backend(run_thread, 0);
}

/* Registers are taken here, in a frame that nothing but rbp can find. */
static NOINLINE int sprawl_and_walk(size_t n)
{
	volatile char *p = alloca(n + 1);
	ucontext_t context;

	p[n] = 1;
	getcontext(&context);
	walk_all(shot, &context);
	shot->ntruth = libgcc_backtrace(shot->truth, SNAPSHOT_FRAMES_MAX);
	return p[n];
}

static void run_unknown_fp(unsigned int arg)
{
	(void)arg;
	sprawl_and_walk(50);
	assert_truth(0);
	assert_int_equal(shot->partial.stack.end, WP_END_UNKNOWN_REG);
	assert_int_equal(shot->partial.stack.depth, 1);
}

static void unknown_frame_pointer_ends_the_walk(void **state)
{
	(void)state;
	for_each_backend(run_unknown_fp, 0);
}

static NOINLINE int sprawl_to_walk(size_t n, int depth)
{
	volatile char *p = alloca(n + 1);
	int ret = 1;

	p[n] = 1;
	ret += depth ? sprawl_to_walk(n + 7, depth - 1) : sprawl_and_walk(n);
	AFTER_CALL(ret);
	return ret + p[n];
}

/* Without the files: by frame pointer, as code of a JIT compiler is. */
static void run_no_info(unsigned int depth)
{
	static struct snapshot_modules blind;

	blind = *shot->modules;
	for (size_t i = 0; i < blind.list.len; i++)
		blind.v[i].image = NULL;
	blind.list.v = blind.v;
	shot->modules = &blind;
	sprawl_to_walk(30, (int)depth);

	/* As far as there are frame pointers. */
	assert_in_range(shot->full.stack.depth, depth + 2, shot->ntruth);
	for (uint32_t i = 1; i < depth + 2; i++) {
		assert_int_equal(shot->full.frames[i].pc_avma,
				 (uintptr_t)shot->truth[i]);
		assert_int_equal(shot->full.frames[i].flags,
				 WP_FRAME_RETURN | WP_FRAME_GUESSED);
	}
	assert_int_equal(shot->partial.stack.end, WP_END_UNKNOWN_REG);
	assert_int_equal(shot->partial.stack.depth, 1);
	assert_in_range(wp_unwinder_stats(shot->unwinder)->guessed, depth + 1,
			UINT32_MAX);
}

static void code_without_info_is_walked_by_frame_pointer(void **state)
{
	(void)state;
	for_each_backend(run_no_info, 6);
}

/* As files without unwind info: by their code. */
static void run_stripped(unsigned int depth)
{
	static struct snapshot_modules bare;
	const struct walked *full = &shot->full;

	bare = *shot->modules;
	for (size_t i = 0; i < bare.nimages; i++)
		bare.images[i].eh_frame_hdr.size =
			bare.images[i].eh_frame.size =
				bare.images[i].debug_frame.size = 0;
	for (size_t i = 0; i < bare.list.len; i++)
		if (bare.v[i].image)
			bare.v[i].image = bare.images + (bare.v[i].image -
							 shot->modules->images);
	bare.list.v = bare.v;
	shot->modules = &bare;
	sprawl_to_walk(30, (int)depth);
	for (uint32_t i = 1; i < full->stack.depth; i++)
		assert_int_equal(full->frames[i].pc_avma,
				 (uintptr_t)shot->truth[i]);
	assert_int_equal(full->stack.end, WP_END_ROOT);
	assert_int_equal(full->stack.depth, shot->ntruth);
}

static void files_without_info_are_walked_by_their_code(void **state)
{
	(void)state;
	/* libunwind asks for registers first, and for unwind info then. */
	with_backend(WP_UNWIND_ROWS, run_stripped, 6);
}

static void run_cached(unsigned int arg)
{
	static struct snapshot_modules moved;
	const struct wp_unwind_stats *stats = wp_unwinder_stats(shot->unwinder);
	uint64_t misses = 0, walks = 0, frames = 0;

	(void)arg;
	moved = *shot->modules;
	moved.list.v = moved.v;
	shot->modules = &moved;
	/* Two calls from one place (volatile: not unrolled), so that the
	 * second has the pcs of the first. */
	for (volatile int i = 0; i < 2; i++) {
		misses = stats->cache_misses;
		walks = stats->walks;
		frames = stats->frames;
		recurse(20);
		assert_truth(0);
	}
	assert_int_equal(stats->cache_misses, misses);
	assert_int_equal(stats->walks, walks + 4);
	assert_int_equal(stats->frames - frames,
			 shot->full.stack.depth + shot->partial.stack.depth +
				 5 + 4);
	assert_int_equal(stats->guessed, 0);

	moved.list.generation++;
	recurse(20);
	assert_truth(0);
	if (stats->cache_misses)
		assert_in_range(stats->cache_misses, misses + 1, UINT32_MAX);
}

static void pcs_met_before_cost_no_lookup(void **state)
{
	(void)state;
	for_each_backend(run_cached, 0);
}

static void module_of_an_address_is_found(void **state)
{
	const struct wp_unwind_module v[] = {
		{ .start_avma = 0x1000, .end_avma = 0x2000, .mapping = 1 },
		{ .start_avma = 0x2000, .end_avma = 0x3000, .mapping = 2 },
		{ .start_avma = 0x5000, .end_avma = 0x6000, .mapping = 3 },
	};
	const struct wp_unwind_modules modules = { .v = v, .len = 3 },
				       none = { 0 };

	(void)state;
	assert_null(wp_unwind_find_module(&none, 0x1000));
	assert_null(wp_unwind_find_module(&modules, 0xfff));
	assert_ptr_equal(wp_unwind_find_module(&modules, 0x1000), &v[0]);
	assert_ptr_equal(wp_unwind_find_module(&modules, 0x1fff), &v[0]);
	assert_ptr_equal(wp_unwind_find_module(&modules, 0x2000), &v[1]);
	assert_null(wp_unwind_find_module(&modules, 0x3000));
	assert_null(wp_unwind_find_module(&modules, 0x4fff));
	assert_ptr_equal(wp_unwind_find_module(&modules, 0x5fff), &v[2]);
	assert_null(wp_unwind_find_module(&modules, 0x6000));
}

static void note_opened(void *ctx, size_t i)
{
	struct wp_unwind_module *v = ctx;

	v[i].is_unopened = false;
	v[i].bias = 0x77;
}

static void a_file_is_opened_once_and_not_in_a_stop(void **state)
{
	struct wp_unwind_module v[] = {
		{ .start_avma = 0x1000,
		  .end_avma = 0x2000,
		  .mapping = 1,
		  .is_unopened = true },
	};
	const struct wp_unwind_modules modules = {
		.v = v, .len = 1, .open = note_opened, .ctx = v
	};
	struct wp_unwinder *u;
	struct wp_frame frames[4];
	uint64_t cfa_avma[4];
	struct wp_stack stack = { .frames = frames,
				  .cfa_avma = cfa_avma,
				  .cap = 4 };
	struct wp_mem mem = { NULL, NULL };
	struct wp_regs regs = { .known = 0 };

	(void)state;
	wp_reg_set(&regs, WP_REG_PC, 0x1234);
	wp_reg_set(&regs, WP_REG_SP, 0x9000);
	assert_int_equal(wp_unwinder_new(&u, WP_UNWIND_ROWS), 0);
	wp_unwind_walk(u, &modules, &regs, &mem, WP_UNWIND_IN_STOP, &stack);
	assert_int_equal(stack.end, WP_END_TOO_SLOW);
	assert_int_equal(stack.depth, 1);
	assert_true(v[0].is_unopened);
	assert_int_equal(wp_unwind_find_module(&modules, 0x1234)->bias, 0x77);
	v[0].bias = 0;
	assert_int_equal(wp_unwind_find_module(&modules, 0x1234)->bias, 0);
	wp_unwinder_free(u);
}

#if defined(__x86_64__)

#define BIAS UINT64_C(0x7f0000000000)
#define STACK UINT64_C(0x7ffc00000000)

enum {
	DW_RBP = 6,
	NWORDS = 64,
};

struct fixture {
	struct fake_elf elf;
	struct wp_elf_image image;
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	uint64_t words[NWORDS];
	struct wp_mem mem;
	/* Why reads fail. */
	enum wp_mem_result fails;
	struct wp_regs regs;
	enum wp_unwind_pace pace;
	struct walked out;
};

static enum wp_mem_result read_words(void *ctx, uint64_t avma, void *buf,
				     size_t len)
{
	struct fixture *f = ctx;

	if (avma < STACK || len > sizeof(f->words) ||
	    avma - STACK > sizeof(f->words) - len)
		return f->fails;
	memcpy(buf, (uint8_t *)f->words + (avma - STACK), len);
	return WP_MEM_OK;
}

static void start(struct fixture *f)
{
	f->image = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
	assert_int_equal(fake_open(&f->elf, &f->image, FAKE_SIZE), 0);
	f->module = (struct wp_unwind_module){
		.start_avma = BIAS + FAKE_TEXT,
		.end_avma = BIAS + FAKE_HDR,
		.bias = BIAS,
		.mapping = 7,
		.image = &f->image,
	};
	f->modules = (struct wp_unwind_modules){ .v = &f->module,
						 .len = 1,
						 .generation = 1 };
	f->mem = (struct wp_mem){ read_words, f };
	f->fails = WP_MEM_UNREADABLE;
	f->regs = (struct wp_regs){ .known = 0 };
	wp_reg_set(&f->regs, WP_REG_SP, STACK);
}

static enum wp_stack_end walk_from(struct fixture *f, int backend,
				   uint64_t pc_svma)
{
	struct wp_unwinder *unwinder;

	assert_int_equal(wp_unwinder_new(&unwinder, backends[backend]), 0);
	wp_reg_set(&f->regs, WP_REG_PC, BIAS + pc_svma);
	f->out.stack = (struct wp_stack){ .frames = f->out.frames,
					  .cfa_avma = f->out.cfa_avma,
					  .cap = SNAPSHOT_FRAMES_MAX };
	wp_unwind_walk(unwinder, &f->modules, &f->regs, &f->mem, f->pace,
		       &f->out.stack);
	wp_unwinder_free(unwinder);
	return f->out.stack.end;
}

struct endless {
	uint64_t pc_avma;
	unsigned int nreads;
};

/* A stack without end, of one return address. */
static enum wp_mem_result read_endless(void *ctx, uint64_t avma, void *buf,
				       size_t len)
{
	struct endless *e = ctx;

	(void)avma;
	e->nreads++;
	if (len != sizeof(e->pc_avma))
		return WP_MEM_UNREADABLE;
	memcpy(buf, &e->pc_avma, len);
	return WP_MEM_OK;
}

/* Each frame's expression is as long as may be, and reads memory: a system call, where
 * that is in no copy. */
static void a_walk_does_not_do_whatever_the_info_says(void **state)
{
	/* DW_CFA_def_cfa_expression: 140 times (breg7 0, deref, drop, lit1, minus, dup,
	 * bra), drop, breg7 8. */
	static const char hostile[] = "\x0f\x10\x0a\x8c\x00\x77\x00\x06\x13"
				      "\x31\x1c\x12\x28\xf6\xff\x13\x77\x08";
	static struct fixture f;
	struct endless e = { 0 };
	uint64_t pc = fake_add(&f.elf, "zR", hostile, sizeof(hostile) - 1);

	(void)state;
	start(&f);
	f.mem = (struct wp_mem){ read_endless, &e };
	e.pc_avma = BIAS + pc + 5;
	assert_int_equal(walk_from(&f, 0, pc), WP_END_TOO_SLOW);
	assert_in_range(f.out.stack.depth, 100, 200);
	assert_in_range(e.nreads, 10000, 32768);
	e.nreads = 0;
	f.pace = WP_UNWIND_IN_STOP;
	/* Its rule is searched for by the first walk. */
	assert_int_equal(walk_from(&f, 0, pc), WP_END_TOO_SLOW);
	assert_in_range(e.nreads, 0, 2048);
	fake_close(&f.elf, &f.image);
}

static void every_end_has_its_reason(void **state)
{
	/* DW_CFA_undefined rip. */
	static const char root[] = "\x07\x10";
	/* DW_CFA_def_cfa rbp, 16. */
	static const char by_fp[] = "\x0c\x06\x10";
	/* DW_CFA_def_cfa_expression: DW_OP_plus on an empty stack. */
	static const char bad[] = "\x0f\x01\x22";
	/* DW_CFA_def_cfa_offset 0: the caller's sp is our own. */
	static const char still[] = "\x0e\x00";
	static struct fixture f;
	uint64_t plain, first, fp, broken, stuck;

	(void)state;
	plain = fake_add(&f.elf, "zR", "", 0);
	first = fake_add(&f.elf, "zR", root, sizeof(root) - 1);
	fp = fake_add(&f.elf, "zR", by_fp, sizeof(by_fp) - 1);
	broken = fake_add(&f.elf, "zR", bad, sizeof(bad) - 1);
	stuck = fake_add(&f.elf, "zR", still, sizeof(still) - 1);
	start(&f);
	for (int i = 0; i < NBACKENDS; i++) {
		wp_reg_set(&f.regs, DW_RBP, STACK - 8);
		/* Two frames each, the second ends the walk. */
		f.words[0] = BIAS + first + 5;
		assert_int_equal(walk_from(&f, i, plain), WP_END_ROOT);
		assert_int_equal(f.out.stack.depth, 2);
		assert_int_equal(f.out.cfa_avma[0], STACK + 8);
		assert_int_equal(f.out.cfa_avma[1], 0);
		assert_int_equal(f.out.frames[1].mapping, 7);
		assert_int_equal(f.out.frames[1].flags, WP_FRAME_RETURN);

		f.words[0] = BIAS + fp + 5;
		assert_int_equal(walk_from(&f, i, plain), WP_END_NO_PROGRESS);
		assert_int_equal(f.out.stack.depth, 2);
		f.regs.known &= ~(UINT64_C(1) << DW_RBP);
		assert_int_equal(walk_from(&f, i, plain), WP_END_UNKNOWN_REG);
		assert_int_equal(f.out.stack.depth, 2);
		wp_reg_set(&f.regs, DW_RBP, STACK + 8 * NWORDS);
		assert_int_equal(walk_from(&f, i, plain), WP_END_UNREADABLE);
		assert_int_equal(f.out.stack.depth, 2);
		f.fails = WP_MEM_BEYOND_COPY;
		assert_int_equal(walk_from(&f, i, plain), WP_END_BEYOND_COPY);
		f.fails = WP_MEM_OTHER_STACK;
		assert_int_equal(walk_from(&f, i, plain), WP_END_OTHER_STACK);
		f.fails = WP_MEM_UNREADABLE;

		wp_reg_set(&f.regs, DW_RBP, 1);
		f.words[0] = BIAS + broken + 5;
		assert_int_equal(walk_from(&f, i, plain), WP_END_BAD_INFO);
		assert_int_equal(f.out.stack.depth, 2);
		f.words[0] = BIAS + 0x1800;
		assert_int_equal(walk_from(&f, i, plain), WP_END_NO_INFO);
		assert_int_equal(f.out.stack.depth, 2);
		f.words[0] = 12345;
		assert_int_equal(walk_from(&f, i, plain), WP_END_NO_MODULE);
		assert_int_equal(f.out.stack.depth, 2);
		assert_int_equal(f.out.frames[1].mapping, WP_MAPPING_NONE);
		/* Though what lies above looks like a stack's first frame record. */
		wp_reg_set(&f.regs, DW_RBP, STACK + 8);
		f.words[1] = 0;
		f.words[2] = BIAS + first + 5;
		assert_int_equal(walk_from(&f, i, plain), WP_END_NO_MODULE);
		assert_int_equal(f.out.stack.depth, 2);
		wp_reg_set(&f.regs, DW_RBP, 1);
		f.words[0] = BIAS + stuck + 5;
		assert_int_equal(walk_from(&f, i, plain), WP_END_NO_PROGRESS);
		assert_int_equal(f.out.stack.depth, 2);

		/* A call at the very end of a module returns behind it. */
		f.module.end_avma = BIAS + first + FAKE_FUNC;
		f.words[0] = f.module.end_avma;
		assert_int_equal(walk_from(&f, i, plain), WP_END_ROOT);
		assert_int_equal(f.out.frames[1].mapping, 7);
		f.module.end_avma = BIAS + FAKE_HDR;

		/* A return address of 0 is no frame. */
		f.words[0] = 0;
		assert_int_equal(walk_from(&f, i, plain), WP_END_NO_MODULE);
		assert_int_equal(f.out.stack.depth, 1);
		wp_reg_set(&f.regs, DW_RBP, 0);
		assert_int_equal(walk_from(&f, i, plain), WP_END_ROOT);
		assert_int_equal(f.out.stack.depth, 1);
		f.regs.known &= ~(UINT64_C(1) << DW_RBP);
		assert_int_equal(walk_from(&f, i, plain), WP_END_NO_MODULE);
	}
	fake_close(&f.elf, &f.image);
}

static void what_the_rows_cannot_do_is_asked_of_libunwind(void **state)
{
	/* DW_CFA_undefined rip. */
	static const char root[] = "\x07\x10";
	/* DW_CFA_remember_state, nested deeper than the rows go. */
	uint8_t deep[20];
	static struct fixture f;
	struct wp_unwinder *unwinder;
	uint64_t nested, first;

	(void)state;
	memset(deep, 0x0a, sizeof(deep));
	nested = fake_add(&f.elf, "zR", deep, sizeof(deep));
	first = fake_add(&f.elf, "zR", root, sizeof(root) - 1);
	start(&f);
	f.words[0] = BIAS + first + 5;
	wp_reg_set(&f.regs, WP_REG_PC, BIAS + nested);
	for (int i = 0; i < NBACKENDS; i++) {
		assert_int_equal(wp_unwinder_new(&unwinder, backends[i]), 0);
		f.out.stack = (struct wp_stack){ .frames = f.out.frames,
						 .cfa_avma = f.out.cfa_avma,
						 .cap = 8 };
		wp_unwind_walk(unwinder, &f.modules, &f.regs, &f.mem,
			       WP_UNWIND_THOROUGH, &f.out.stack);
		assert_int_equal(f.out.stack.end, WP_END_ROOT);
		assert_int_equal(f.out.stack.depth, 2);
		assert_int_equal(wp_unwinder_stats(unwinder)->fallbacks,
				 backends[i] == WP_UNWIND_ROWS ? 1 : 0);
		wp_unwinder_free(unwinder);
	}
	fake_close(&f.elf, &f.image);
}

/* As Mono's compiler has it, which takes one instruction for an epilogue. */
static void where_the_info_leads_to_no_code_the_code_is_followed(void **state)
{
	/* CFA = rsp + 8 in a frame of 24 bytes: add $24, %rsp; ret. */
	static const uint8_t leaves[] = { 0x48, 0x83, 0xc4, 0x18, 0xc3 };
	static struct fixture f;
	uint64_t wrong, first;

	(void)state;
	wrong = fake_add(&f.elf, "zR", "", 0);
	first = fake_add(&f.elf, "zR", "\x07\x10", 2);
	memcpy(f.elf.bytes + wrong + 8, leaves, sizeof(leaves));
	/* A call. */
	f.elf.bytes[first + 4] = 0xe8;
	fake_u32(&f.elf, (uint32_t)first + 5, (uint32_t)(wrong - (first + 9)));
	start(&f);
	wp_reg_set(&f.regs, WP_REG_FP, 8);
	for (int i = 0; i < NBACKENDS; i++) {
		memset(f.words, 0x11, sizeof(f.words));
		f.words[3] = BIAS + first + 9;
		assert_int_equal(walk_from(&f, i, wrong + 8), WP_END_ROOT);
		assert_int_equal(f.out.stack.depth, 2);
		assert_int_equal(f.out.frames[1].pc_avma, BIAS + first + 9);
		assert_int_equal(f.out.frames[1].flags,
				 WP_FRAME_RETURN | WP_FRAME_GUESSED);
		/* Nor does the code. */
		f.words[3] = 0x1111;
		assert_int_equal(walk_from(&f, i, wrong + 8), WP_END_NO_MODULE);
		assert_int_equal(f.out.stack.depth, 2);
		assert_int_equal(f.out.cfa_avma[0], f.regs.v[WP_REG_SP] + 8);
		assert_int_equal(f.out.frames[1].flags, WP_FRAME_RETURN);
	}
	fake_close(&f.elf, &f.image);
}

#define JIT (BIAS + 0x100000)

/* push %rbp; mov %rsp,%rbp; and what a frame does: nop. */
static const uint8_t jit_code[16] = {
	0x55, 0x48, 0x89, 0xe5, 0x90, 0x90, 0x90, 0x90,
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
};

static enum wp_mem_result read_jit(void *ctx, uint64_t avma, void *buf,
				   size_t len)
{
	if (avma < JIT || len > sizeof(jit_code) ||
	    avma - JIT > sizeof(jit_code) - len)
		return read_words(ctx, avma, buf, len);
	memcpy(buf, jit_code + (avma - JIT), len);
	return WP_MEM_OK;
}

/* An old return address may lie where one is looked for. */
static void a_guess_that_leads_to_no_code_is_taken_back(void **state)
{
	static struct fixture f;
	struct wp_unwind_module both[2];
	uint64_t plain, first;

	(void)state;
	plain = fake_add(&f.elf, "zR", "", 0);
	first = fake_add(&f.elf, "zR", "\x07\x10", 2);
	/* A call. */
	f.elf.bytes[plain + 4] = 0xe8;
	start(&f);
	both[0] = f.module;
	both[1] = (struct wp_unwind_module){
		.start_avma = JIT,
		.end_avma = JIT + sizeof(jit_code),
		.bias = JIT,
		.mapping = 8,
	};
	f.modules.v = both;
	f.modules.len = 2;
	f.mem = (struct wp_mem){ read_jit, &f };
	memset(f.words, 0x11, sizeof(f.words));
	wp_reg_set(&f.regs, WP_REG_FP, STACK + 16);
	f.words[2] = STACK + 64;
	f.words[3] = BIAS + plain + 9;
	for (int i = 0; i < NBACKENDS; i++) {
		f.words[4] = BIAS + first + 5;
		assert_int_equal(walk_from(&f, i, JIT + 8 - BIAS), WP_END_ROOT);
		assert_int_equal(f.out.stack.depth, 3);
		assert_int_equal(f.out.frames[1].flags,
				 WP_FRAME_RETURN | WP_FRAME_GUESSED);
		f.words[4] = 0x1111;
		assert_int_equal(walk_from(&f, i, JIT + 8 - BIAS),
				 WP_END_NO_INFO);
		assert_int_equal(f.out.stack.depth, 1);
		assert_int_equal(f.out.frames[0].mapping, 8);
		assert_int_equal(f.out.cfa_avma[0], 0);
		/* A stack that ends so. */
		f.words[4] = 0;
		assert_int_equal(walk_from(&f, i, JIT + 8 - BIAS),
				 WP_END_NO_MODULE);
		assert_int_equal(f.out.stack.depth, 2);
	}
	fake_close(&f.elf, &f.image);
}

static void endless_stack_ends(void **state)
{
	static struct fixture f;
	uint64_t plain;

	(void)state;
	plain = fake_add(&f.elf, "zR", "", 0);
	start(&f);
	for (int i = 0; i < NBACKENDS; i++) {
		for (int n = 0; n < NWORDS; n++)
			f.words[n] = BIAS + plain + 1;
		assert_int_equal(walk_from(&f, i, plain), WP_END_UNREADABLE);
		assert_int_equal(f.out.stack.depth, NWORDS + 1);
	}
	fake_close(&f.elf, &f.image);
}

/* A signal frame that restores the registers that led to it. */
static void endless_signals_end(void **state)
{
	static struct fixture f;

	(void)state;
	memcpy(f.elf.bytes + FAKE_TEXT, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	start(&f);
	for (int i = 0; i < NBACKENDS; i++) {
		/* struct ucontext: rsp and rip. */
		f.words[5 + 15] = STACK;
		f.words[5 + 16] = BIAS + FAKE_TEXT;
		assert_int_equal(walk_from(&f, i, FAKE_TEXT),
				 WP_END_NO_PROGRESS);
		assert_int_equal(f.out.stack.depth, 1);
		assert_int_equal(f.out.frames[0].flags, WP_FRAME_SIGNAL);
		/* Two that lead to each other. */
		f.words[5 + 15] = STACK + 8;
		f.words[6 + 15] = BIAS + FAKE_TEXT;
		f.words[6 + 16] = BIAS + FAKE_TEXT;
		assert_int_equal(walk_from(&f, i, FAKE_TEXT),
				 WP_END_UNREADABLE);
	}
	fake_close(&f.elf, &f.image);
}

static void unusable_input_gives_an_empty_stack(void **state)
{
	static struct fixture f;
	uint64_t plain;

	(void)state;
	plain = fake_add(&f.elf, "zR", "", 0);
	start(&f);
	f.regs.known = 0;
	assert_int_equal(walk_from(&f, 0, plain), WP_END_EMPTY);
	assert_int_equal(f.out.stack.depth, 0);
	wp_unwinder_free(NULL);
	fake_close(&f.elf, &f.image);
}

#endif

static int find_libgcc(void **state)
{
	void *frames[4];

	(void)state;
	libgcc_backtrace = snapshot_backtrace();
	if (!libgcc_backtrace)
		return -1;
	/* Loads libgcc, which is one more module from then on. */
	return libgcc_backtrace(frames, 4) > 0 ? 0 : -1;
}

/* As paciasp signs it, which a CPU without signatures leaves out. */
static uint64_t sign(uint64_t avma)
{
#if defined(__aarch64__)
	register uint64_t lr __asm__("x30") = avma;

	__asm__ volatile("hint #25" : "+r"(lr));
	return lr;
#else
	return avma;
#endif
}

static void a_return_address_is_read_without_its_signature(void **state)
{
	uint64_t here = (uintptr_t)
		a_return_address_is_read_without_its_signature;

	(void)state;
	for (uint64_t i = 0; i < 64; i++)
		assert_int_equal(wp_arch_code_avma(sign(here + 4 * i)),
				 here + 4 * i);
	assert_int_equal(wp_arch_code_avma(here), here);
	assert_int_equal(wp_arch_code_avma(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_return_address_is_read_without_its_signature),
		cmocka_unit_test(recursion_is_walked_to_the_root),
		cmocka_unit_test(frames_with_frame_pointers_are_walked),
		cmocka_unit_test(signal_handlers_are_walked_through),
		cmocka_unit_test(threads_are_walked_to_their_root),
		cmocka_unit_test(unknown_frame_pointer_ends_the_walk),
		cmocka_unit_test(code_without_info_is_walked_by_frame_pointer),
		cmocka_unit_test(files_without_info_are_walked_by_their_code),
		cmocka_unit_test(pcs_met_before_cost_no_lookup),
		cmocka_unit_test(module_of_an_address_is_found),
		cmocka_unit_test(a_file_is_opened_once_and_not_in_a_stop),
#if defined(__x86_64__)
		cmocka_unit_test(every_end_has_its_reason),
		cmocka_unit_test(a_walk_does_not_do_whatever_the_info_says),
		cmocka_unit_test(what_the_rows_cannot_do_is_asked_of_libunwind),
		cmocka_unit_test(
			where_the_info_leads_to_no_code_the_code_is_followed),
		cmocka_unit_test(a_guess_that_leads_to_no_code_is_taken_back),
		cmocka_unit_test(endless_stack_ends),
		cmocka_unit_test(endless_signals_end),
		cmocka_unit_test(unusable_input_gives_an_empty_stack),
#endif
	};

	return cmocka_run_group_tests(tests, find_libgcc, NULL);
}
