/* SPDX-License-Identifier: Apache-2.0 */
/* test_tail.c - walks that take over what the last one found come to what a
 * walk from nothing comes to, whatever has changed.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_elf.h"
#include "wallprof/unwind.h"

#if defined(__x86_64__)

enum {
	DW_RBX = 3,
	DW_RBP = 6,
	WORDS = 8192,
	FRAMES_MAX = 600,
	ROUNDS = 20000,
};

#define BIAS UINT64_C(0x500000)
#define STACK UINT64_C(0x7ffc00000000)

/* Functions of the image, by what they have on the stack. */
enum func {
	/* Two words. */
	SMALL,
	/* Four words, rbx in the third. */
	SAVES,
	/* rbp points to its own frame's second word from the top. */
	BY_FP,
	/* It has no caller. */
	FIRST,
	NFUNCS,
};

/* Words of its frame, return address included. */
static const unsigned int frame_words[NFUNCS] = { 2, 4, 6, 3 };

struct fixture {
	struct fake_elf elf;
	struct wp_elf_image image;
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_unwinder *unwinder;
	struct wp_tail *tail;
	struct wp_mem mem;
	struct wp_regs regs;
	uint64_t stack[WORDS];
	/* Bytes from here on cannot be read. */
	uint64_t end_avma;
	/* The functions on the stack, innermost first. */
	enum func chain[FRAMES_MAX];
	unsigned int depth;
	uint64_t random;
};

struct walked {
	struct wp_frame frames[FRAMES_MAX];
	uint64_t cfa_avma[FRAMES_MAX];
	struct wp_stack stack;
};

static struct fixture fix;
static struct walked again, fresh;

static unsigned int draw(unsigned int n)
{
	fix.random = fix.random * UINT64_C(6364136223846793005) + 1;
	return (unsigned int)(fix.random >> 33) % n;
}

static int read_stack(void *ctx, uint64_t avma, void *buf, size_t len)
{
	const struct fixture *f = ctx;

	if (avma < STACK || avma >= f->end_avma || len > f->end_avma - avma)
		return -EFAULT;
	memcpy(buf, (const uint8_t *)f->stack + (avma - STACK), len);
	return 0;
}

static uint64_t code_of(enum func func)
{
	return BIAS + FAKE_TEXT + func * FAKE_FUNC + 0x10;
}

static uint64_t *word_at(uint64_t avma)
{
	return &fix.stack[(avma - STACK) / 8];
}

/* Put the frames of the chain there, the outermost at the top. */
static void lay_out(struct fixture *f)
{
	uint64_t at = STACK + sizeof(f->stack) - 800, fp = 0;
	uint64_t return_avma = 0, rbx = 0;

	for (unsigned int i = f->depth; i-- > 0;) {
		enum func func = f->chain[i];

		*word_at(at - 8) = return_avma;
		if (func == SAVES) {
			*word_at(at - 16) = rbx;
			rbx = f->depth - i;
		}
		if (func == BY_FP) {
			*word_at(at - 16) = fp;
			fp = at - 16;
		}
		at -= 8 * (uint64_t)frame_words[func];
		return_avma = code_of(func);
	}
	f->regs = (struct wp_regs){ .known = 0 };
	wp_reg_set(&f->regs, WP_REG_PC, return_avma);
	wp_reg_set(&f->regs, WP_REG_SP, at);
	wp_reg_set(&f->regs, DW_RBP, fp);
	wp_reg_set(&f->regs, DW_RBX, rbx);
	f->end_avma = STACK + sizeof(f->stack);
}

/* Another chain from frame KEEP, counted from the outermost, inwards. */
static void make_chain(struct fixture *f, unsigned int keep, unsigned int depth)
{
	enum func kept[FRAMES_MAX];

	if (keep > f->depth)
		keep = f->depth;
	if (keep > depth)
		keep = depth;
	memcpy(kept, f->chain + f->depth - keep, keep * sizeof(*kept));
	memcpy(f->chain + depth - keep, kept, keep * sizeof(*kept));
	for (unsigned int i = 0; i < depth - keep; i++)
		f->chain[i] = (enum func)draw(FIRST);
	f->depth = depth;
	f->chain[depth - 1] = FIRST;
	lay_out(f);
}

static int setup(void **state)
{
	struct fixture *f = &fix;

	(void)state;
	memset(f, 0, sizeof(*f));
	f->image = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
	/* DW_CFA_def_cfa_offset 16; 32, rbx at CFA - 16; DW_CFA_def_cfa rbp,
	 * 16, rbp at CFA - 16; 24, the return address is undefined. */
	fake_add(&f->elf, "zR", "\x0e\x10", 2);
	fake_add(&f->elf, "zR", "\x0e\x20\x83\x02", 4);
	fake_add(&f->elf, "zR", "\x0c\x06\x10\x86\x02", 5);
	fake_add(&f->elf, "zR", "\x0e\x18\x07\x10", 4);
	assert_int_equal(fake_open(&f->elf, &f->image, FAKE_SIZE), 0);
	f->module = (struct wp_unwind_module){
		.start_avma = BIAS + FAKE_TEXT,
		.end_avma = BIAS + FAKE_HDR,
		.bias = BIAS,
		.mapping = 1,
		.image = &f->image,
	};
	f->modules = (struct wp_unwind_modules){ &f->module, 1, 1 };
	f->mem = (struct wp_mem){ read_stack, f };
	assert_int_equal(wp_unwinder_new(&f->unwinder, WP_UNWIND_ROWS), 0);
	assert_int_equal(wp_tail_new(&f->tail, FRAMES_MAX), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_tail_free(fix.tail);
	wp_unwinder_free(fix.unwinder);
	fake_close(&fix.elf, &fix.image);
	return 0;
}

static struct wp_stack *prepare(struct walked *w, uint32_t cap)
{
	memset(w, 0xee, sizeof(*w));
	w->stack = (struct wp_stack){ .frames = w->frames,
				      .cfa_avma = w->cfa_avma,
				      .cap = cap };
	return &w->stack;
}

/* Walk both ways: the same.  Returns how many frames were taken over. */
static uint32_t check(struct fixture *f, uint32_t cap)
{
	uint64_t before = wp_unwinder_stats(f->unwinder)->reused;

	wp_unwind_walk(f->unwinder, &f->modules, &f->regs, &f->mem,
		       prepare(&fresh, cap));
	wp_unwind_walk_again(f->unwinder, &f->modules, &f->regs, &f->mem,
			     f->tail, prepare(&again, cap));
	assert_int_equal(again.stack.depth, fresh.stack.depth);
	assert_int_equal(again.stack.end, fresh.stack.end);
	assert_memory_equal(again.frames, fresh.frames,
			    fresh.stack.depth * sizeof(*fresh.frames));
	assert_memory_equal(again.cfa_avma, fresh.cfa_avma,
			    fresh.stack.depth * sizeof(*fresh.cfa_avma));
	return (uint32_t)(wp_unwinder_stats(f->unwinder)->reused - before);
}

static void what_is_unchanged_is_taken_over(void **state)
{
	(void)state;
	make_chain(&fix, 0, 100);
	assert_int_equal(check(&fix, FRAMES_MAX), 0);
	assert_int_equal(fresh.stack.depth, 100);
	assert_int_equal(fresh.stack.end, WP_END_ROOT);
	assert_int_equal(check(&fix, FRAMES_MAX), 100);
	/* Some returned, others were called. */
	make_chain(&fix, 60, 90);
	assert_in_range(check(&fix, FRAMES_MAX), 60, 65);
	make_chain(&fix, 90, 300);
	assert_in_range(check(&fix, FRAMES_MAX), 89, 90);
	assert_int_equal(fresh.stack.depth, 300);
}

/* Each word of the stack in turn has another value for one walk. */
static void a_change_of_any_word_is_seen(void **state)
{
	uint64_t sp_avma;
	size_t seen = 0;

	(void)state;
	make_chain(&fix, 0, 80);
	sp_avma = fix.regs.v[WP_REG_SP];
	check(&fix, FRAMES_MAX);
	for (uint64_t at = sp_avma; at < STACK + sizeof(fix.stack); at += 8) {
		struct walked whole = again;
		uint64_t was = *word_at(at);

		*word_at(at) = was == code_of(SMALL) ? code_of(SAVES) :
						       code_of(SMALL);
		check(&fix, FRAMES_MAX);
		seen += again.stack.depth != whole.stack.depth ||
			memcmp(again.frames, whole.frames,
			       again.stack.depth * sizeof(*again.frames)) != 0;
		*word_at(at) = was;
		check(&fix, FRAMES_MAX);
	}
	/* Every return address but the last, which nobody reads. */
	assert_true(seen >= 79);
}

static void another_register_is_seen(void **state)
{
	unsigned int fps = 0;

	(void)state;
	make_chain(&fix, 0, 50);
	check(&fix, FRAMES_MAX);
	for (unsigned int i = 0; i < fix.depth; i++)
		fps += fix.chain[i] == BY_FP;
	assert_true(fps > 0);
	wp_reg_set(&fix.regs, DW_RBP, fix.regs.v[DW_RBP] + 16);
	check(&fix, FRAMES_MAX);
	fix.regs.known &= ~(UINT64_C(1) << DW_RBP);
	check(&fix, FRAMES_MAX);
	assert_int_equal(fresh.stack.end, WP_END_UNKNOWN_REG);
	/* Where it is restored from the stack the rest is the same. */
	lay_out(&fix);
	check(&fix, FRAMES_MAX);
	wp_reg_set(&fix.regs, DW_RBX, 0xbb);
	assert_true(check(&fix, FRAMES_MAX) > 0);
}

static void other_modules_take_nothing_over(void **state)
{
	(void)state;
	make_chain(&fix, 0, 50);
	check(&fix, FRAMES_MAX);
	fix.modules.generation = 2;
	fix.module.mapping = 2;
	assert_int_equal(check(&fix, FRAMES_MAX), 0);
	assert_int_equal(again.frames[49].mapping, 2);
	fix.modules.generation = 1;
	fix.module.mapping = 1;
	assert_int_equal(check(&fix, FRAMES_MAX), 0);
}

/* A cut walk must go on further when there is room, and be cut when not. */
static void the_depth_limit_is_kept(void **state)
{
	(void)state;
	make_chain(&fix, 0, 200);
	check(&fix, 100);
	assert_int_equal(fresh.stack.end, WP_END_DEPTH_LIMIT);
	assert_int_equal(check(&fix, 100), 100);
	check(&fix, 150);
	assert_int_equal(again.stack.depth, 150);
	check(&fix, 90);
	make_chain(&fix, 195, 195);
	check(&fix, 90);
	check(&fix, FRAMES_MAX);
	check(&fix, 10);
	assert_int_equal(again.stack.depth, 10);
	check(&fix, FRAMES_MAX);
	assert_int_equal(again.stack.end, WP_END_ROOT);
}

static void memory_that_goes_and_comes_is_seen(void **state)
{
	(void)state;
	make_chain(&fix, 0, 100);
	check(&fix, FRAMES_MAX);
	fix.end_avma = fresh.cfa_avma[50];
	check(&fix, FRAMES_MAX);
	assert_int_equal(again.stack.end, WP_END_UNREADABLE);
	check(&fix, FRAMES_MAX);
	fix.end_avma = STACK + sizeof(fix.stack);
	/* What was found before the cut ones is good for it still. */
	assert_int_equal(check(&fix, FRAMES_MAX), 100);
	assert_int_equal(again.stack.end, WP_END_ROOT);
}

static void a_walk_without_room_is_made_all_the_same(void **state)
{
	(void)state;
	wp_tail_free(fix.tail);
	fix.tail = NULL;
	assert_int_equal(wp_tail_new(&fix.tail, 20), 0);
	make_chain(&fix, 0, 100);
	for (int i = 0; i < 3; i++)
		assert_int_equal(check(&fix, FRAMES_MAX), 0);
	make_chain(&fix, 15, 20);
	check(&fix, FRAMES_MAX);
	assert_int_equal(check(&fix, FRAMES_MAX), 20);
	make_chain(&fix, 20, 21);
	check(&fix, FRAMES_MAX);
	check(&fix, FRAMES_MAX);
}

/* Make one of the changes that there are. */
static void change(struct fixture *f)
{
	uint64_t sp = f->regs.v[WP_REG_SP];
	unsigned int words = (unsigned int)((STACK + sizeof(f->stack) - sp) /
					    8);

	switch (draw(8)) {
	case 0:
	case 1:
	case 2:
		make_chain(f, draw(f->depth + 1), 1 + draw(300));
		break;
	case 3:
		f->stack[WORDS - 1 - draw(words)] = code_of(draw(NFUNCS));
		break;
	case 4:
		f->stack[WORDS - 1 - draw(words)] = sp +
						    8 * (uint64_t)draw(words);
		break;
	case 5:
		f->regs.v[draw(2) ? DW_RBP : WP_REG_SP] += 8 *
							   (uint64_t)draw(4);
		break;
	case 6:
		f->end_avma = STACK + sizeof(f->stack) -
			      (draw(2) ? 0 : 8 * (uint64_t)draw(words));
		break;
	default:
		break;
	}
}

static void whatever_changes_the_walk_is_as_from_nothing(void **state)
{
	uint64_t taken = 0, walked = 0;

	(void)state;
	make_chain(&fix, 0, 100);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		change(&fix);
		taken += check(&fix, draw(4) ? FRAMES_MAX : 1 + draw(200));
		walked += fresh.stack.depth;
	}
	/* It was put to use, too. */
	assert_true(taken > walked / 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_is_unchanged_is_taken_over),
		TEST(a_change_of_any_word_is_seen),
		TEST(another_register_is_seen),
		TEST(other_modules_take_nothing_over),
		TEST(the_depth_limit_is_kept),
		TEST(memory_that_goes_and_comes_is_seen),
		TEST(a_walk_without_room_is_made_all_the_same),
		TEST(whatever_changes_the_walk_is_as_from_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* The frames above are of x86-64. */
int main(void)
{
	return 0;
}

#endif
