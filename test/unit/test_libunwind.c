/* SPDX-License-Identifier: Apache-2.0 */
/* test_libunwind.c - one step by libunwind, of functions whose frame info is
 * written here by hand.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../../unwind/step.h"
#include "fake_elf.h"

enum {
	DW_RBX = 3,
	DW_RBP = 6,
	DW_R12 = 12,
};

#define BIAS UINT64_C(0x7f0000000000)
#define STACK UINT64_C(0x7ffc00000000)
#define CALLER UINT64_C(0x7f1234567890)

struct fixture {
	struct fake_elf elf;
	struct wp_elf_image image;
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_unwind_stats stats;
	void *self;
	uint64_t stack[64];
	uint64_t nread;
	struct wp_mem mem;
	struct wp_regs regs;
	struct wp_step step;
};

static enum wp_mem_result read_stack(void *ctx, uint64_t avma, void *buf,
				     size_t len)
{
	struct fixture *f = ctx;

	f->nread++;
	if (avma < STACK || len > sizeof(f->stack) ||
	    avma - STACK > sizeof(f->stack) - len)
		return WP_MEM_UNREADABLE;
	memcpy(buf, (uint8_t *)f->stack + (avma - STACK), len);
	return WP_MEM_OK;
}

static void start_size(struct fixture *f, uint64_t size)
{
	f->image = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
	assert_int_equal(fake_open(&f->elf, &f->image, size), 0);
	f->module = (struct wp_unwind_module){
		.start_avma = BIAS + FAKE_TEXT,
		.end_avma = BIAS + FAKE_HDR,
		.bias = BIAS,
		.mapping = 1,
		.image = &f->image,
	};
	f->modules = (struct wp_unwind_modules){ .v = &f->module,
						 .len = 1,
						 .generation = 1 };
	f->self = wp_step_libunwind.open(&f->stats);
	assert_non_null(f->self);
	f->mem = (struct wp_mem){ read_stack, f };
	for (size_t i = 0; i < 64; i++)
		f->stack[i] = CALLER + i;
}

static void start(struct fixture *f)
{
	start_size(f, FAKE_SIZE);
}

static void stop(struct fixture *f)
{
	wp_step_libunwind.close(f->self);
	fake_close(&f->elf, &f->image);
}

/* A step from PC_SVMA with sp at STACK and no other register known. */
static void place(struct fixture *f, uint64_t pc_svma)
{
	f->regs = (struct wp_regs){ .known = 0 };
	wp_reg_set(&f->regs, WP_REG_PC, BIAS + pc_svma);
	wp_reg_set(&f->regs, WP_REG_SP, STACK);
	f->step = (struct wp_step){ .module = &f->module,
				    .regs = &f->regs,
				    .mem = &f->mem };
}

static enum wp_step_result step(struct fixture *f)
{
	return wp_step_libunwind.step(f->self, &f->step);
}

static void steps_to_the_caller(void **state)
{
	/* DW_CFA_advance_loc 4; DW_CFA_def_cfa_offset 24; DW_CFA_offset rbx,
	 * 2; DW_CFA_offset r12, 3. */
	static const char insns[] = "\x44\x0e\x18\x83\x02\x8c\x03";
	static struct fixture f;
	uint64_t start_svma;

	(void)state;
	start_svma = fake_add(&f.elf, "zR", insns, sizeof(insns) - 1);
	start(&f);

	place(&f, start_svma + 3);
	wp_reg_set(&f.regs, DW_RBP, 77);
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 8);
	assert_int_equal(f.regs.v[WP_REG_SP], STACK + 8);
	assert_int_equal(f.regs.v[WP_REG_PC], CALLER);
	assert_int_equal(f.regs.v[DW_RBP], 77);
	/* rbx had no value and was saved nowhere. */
	assert_false(wp_reg_known(&f.regs, DW_RBX));
	assert_false(f.step.is_signal);

	place(&f, start_svma + 4);
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], CALLER + 2);
	assert_true(wp_reg_known(&f.regs, DW_RBX));
	assert_int_equal(f.regs.v[DW_RBX], CALLER + 1);
	assert_int_equal(f.regs.v[DW_R12], CALLER);
	assert_false(wp_reg_known(&f.regs, DW_RBP));
	stop(&f);
}

static void return_address_is_looked_up_before_itself(void **state)
{
	/* DW_CFA_advance_loc 4; DW_CFA_def_cfa_offset 24. */
	static const char insns[] = "\x44\x0e\x18";
	static struct fixture f;
	uint64_t start_svma;

	(void)state;
	start_svma = fake_add(&f.elf, "zR", insns, sizeof(insns) - 1);
	start(&f);
	place(&f, start_svma + 4);
	f.step.is_return = true;
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 8);
	/* Past the end, where a call to a noreturn function returns. */
	place(&f, start_svma + FAKE_FUNC);
	f.step.is_return = true;
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 24);
	stop(&f);
}

static void caller_saved_registers_are_dropped(void **state)
{
	static struct fixture f;
	uint64_t start_svma;

	(void)state;
	start_svma = fake_add(&f.elf, "zR", "", 0);
	start(&f);
	place(&f, start_svma);
	for (unsigned int i = 0; i < 16; i++)
		if (i != WP_REG_SP)
			wp_reg_set(&f.regs, i, i);
	assert_int_equal(step(&f), WP_STEP_OK);
	/* rbx, rbp, rsp, r12 to r15, rip. */
	assert_int_equal(f.regs.known, 0x1f0c8);
	stop(&f);
}

static void unknown_register_is_told(void **state)
{
	/* DW_CFA_def_cfa rbp, 16. */
	static const char by_fp[] = "\x0c\x06\x10";
	/* DW_CFA_def_cfa_expression: DW_OP_breg12 8. */
	static const char by_expr[] = "\x0f\x02\x7c\x08";
	static struct fixture f;
	uint64_t fp_svma, expr_svma;
	struct wp_regs before;

	(void)state;
	fp_svma = fake_add(&f.elf, "zR", by_fp, sizeof(by_fp) - 1);
	expr_svma = fake_add(&f.elf, "zR", by_expr, sizeof(by_expr) - 1);
	start(&f);
	/* The rule is in the cache from the second time on. */
	for (int i = 0; i < 3; i++) {
		place(&f, fp_svma);
		before = f.regs;
		assert_int_equal(step(&f), WP_STEP_UNKNOWN_REG);
		assert_memory_equal(&f.regs, &before, sizeof(before));
		place(&f, expr_svma);
		assert_int_equal(step(&f), WP_STEP_UNKNOWN_REG);
	}
	place(&f, fp_svma);
	wp_reg_set(&f.regs, DW_RBP, STACK + 16);
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 32);
	place(&f, expr_svma);
	wp_reg_set(&f.regs, DW_R12, STACK + 16);
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 24);
	stop(&f);
}

static void undefined_return_address_is_the_root(void **state)
{
	/* DW_CFA_undefined rip. */
	static const char no_ra[] = "\x07\x10";
	/* DW_CFA_undefined rbp, which libunwind takes for the end as well. */
	static const char no_fp[] = "\x07\x06";
	static struct fixture f;
	uint64_t ra_svma, fp_svma;

	(void)state;
	ra_svma = fake_add(&f.elf, "zR", no_ra, sizeof(no_ra) - 1);
	fp_svma = fake_add(&f.elf, "zR", no_fp, sizeof(no_fp) - 1);
	start(&f);
	place(&f, ra_svma);
	assert_int_equal(step(&f), WP_STEP_ROOT);
	place(&f, ra_svma);
	wp_reg_set(&f.regs, DW_RBP, 0);
	assert_int_equal(step(&f), WP_STEP_ROOT);
	place(&f, fp_svma);
	wp_reg_set(&f.regs, DW_RBP, 0);
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], CALLER);
	assert_false(wp_reg_known(&f.regs, DW_RBP));
	stop(&f);
}

static void nothing_is_guessed_without_info(void **state)
{
	static struct fixture f;
	struct wp_regs before;

	(void)state;
	fake_add(&f.elf, "zR", "", 0);
	start(&f);
	/* Behind the last function, with all that libunwind would go by: a
	 * frame pointer, code of a PLT entry and of a signal trampoline. */
	memcpy(f.elf.file + 0x1800, "\xff\x25\0\0\0\0\x68\0\0\0\0\xe9", 12);
	memcpy(f.elf.file + 0x1900, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9);
	for (uint64_t svma = 0x1700; svma <= 0x1900; svma += 0x100) {
		place(&f, svma);
		wp_reg_set(&f.regs, DW_RBP, STACK + 16);
		before = f.regs;
		assert_int_equal(step(&f), WP_STEP_NO_INFO);
		assert_memory_equal(&f.regs, &before, sizeof(before));
	}
	assert_int_equal(f.nread, 0);
	stop(&f);
}

/* libunwind reads that pointer, and the target's data is not at hand. */
static void personality_routine_is_not_needed(void **state)
{
	static struct fixture f;
	uint64_t start_svma;

	(void)state;
	start_svma = fake_add(&f.elf, "zPR", "", 0);
	start(&f);
	place(&f, start_svma);
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 8);
	/* The return address, once as libunwind's and once as ours. */
	assert_in_range(f.nread, 1, 2);
	stop(&f);
}

/* What the target may have written since is not read from the file. */
static void data_is_read_from_memory(void **state)
{
	/* DW_CFA_def_cfa_expression: DW_OP_addr, DW_OP_deref. */
	uint8_t insns[] = { 0x0f, 10, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, 0x06 };
	static struct fixture f;
	uint64_t data_avma = BIAS + FAKE_DATA, stale_cfa_avma = STACK + 16;
	uint64_t start_svma;

	(void)state;
	memcpy(insns + 3, &data_avma, 8);
	memcpy(f.elf.bytes + FAKE_DATA, &stale_cfa_avma, 8);
	start_svma = fake_add(&f.elf, "zR", insns, sizeof(insns));
	start(&f);
	place(&f, start_svma);
	assert_int_equal(step(&f), WP_STEP_UNREADABLE);
	assert_int_equal(f.nread, 1);
	stop(&f);
}

static void unreadable_stack_is_told(void **state)
{
	static struct fixture f;
	uint64_t start_svma;

	(void)state;
	start_svma = fake_add(&f.elf, "zR", "", 0);
	start(&f);
	place(&f, start_svma);
	wp_reg_set(&f.regs, WP_REG_SP, STACK + sizeof(f.stack));
	assert_int_equal(step(&f), WP_STEP_UNREADABLE);
	stop(&f);
}

static void malformed_info_is_told(void **state)
{
	/* DW_CFA_restore_state with nothing remembered. */
	static const char unbalanced[] = "\x0b";
	/* DW_CFA_def_cfa_expression: DW_OP_skip -3, for ever. */
	static const char endless[] = "\x0f\x03\x2f\xfd\xff";
	/* DW_CFA_def_cfa_expression: DW_OP_plus on an empty stack. */
	static const char empty[] = "\x0f\x01\x22";
	static struct fixture f;
	uint64_t svma[3];

	(void)state;
	svma[0] = fake_add(&f.elf, "zR", unbalanced, sizeof(unbalanced) - 1);
	svma[1] = fake_add(&f.elf, "zR", endless, sizeof(endless) - 1);
	svma[2] = fake_add(&f.elf, "zR", empty, sizeof(empty) - 1);
	start(&f);
	for (int i = 0; i < 3; i++) {
		place(&f, svma[i]);
		assert_int_equal(step(&f), WP_STEP_BAD_INFO);
	}
	stop(&f);
}

static void image_without_search_table_is_indexed(void **state)
{
	/* DW_CFA_def_cfa_offset 24. */
	static const char insns[] = "\x0e\x18";
	static struct fixture f;
	uint64_t first_svma, second_svma;

	(void)state;
	f.elf.no_hdr = true;
	first_svma = fake_add(&f.elf, "zR", "", 0);
	second_svma = fake_add(&f.elf, "zR", insns, sizeof(insns) - 1);
	start(&f);
	assert_int_equal(f.image.eh_frame_hdr.size, 0);
	place(&f, first_svma + 5);
	f.step.in_stop = true;
	assert_int_equal(step(&f), WP_STEP_TOO_SLOW);
	f.step.in_stop = false;
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 8);
	place(&f, second_svma + 5);
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 24);
	place(&f, second_svma + FAKE_FUNC);
	assert_int_equal(step(&f), WP_STEP_NO_INFO);
	stop(&f);
}

static void cache_is_counted_and_obeys_generations(void **state)
{
	static struct fixture f;
	uint64_t start_svma;

	(void)state;
	start_svma = fake_add(&f.elf, "zR", "", 0);
	start(&f);
	for (int i = 0; i < 3; i++) {
		place(&f, start_svma);
		assert_int_equal(step(&f), WP_STEP_OK);
	}
	assert_int_equal(f.stats.cache_misses, 1);
	assert_int_equal(f.stats.cache_hits, 2);
	/* Another file has come to the same addresses. */
	f.modules.generation++;
	wp_step_libunwind.flush(f.self);
	f.image.loaded[FAKE_EH >> WP_ELF_BLOCK_BITS] = 0;
	/* The CIE's DW_CFA_def_cfa rsp, 8 becomes rsp, 24. */
	for (uint32_t i = FAKE_EH; i < FAKE_EH + f.elf.eh_len; i++)
		if (!memcmp(f.elf.file + i, "\x0c\x07\x08", 3))
			f.elf.file[i + 2] = 24;
	place(&f, start_svma);
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 24);
	assert_int_equal(f.stats.cache_misses, 2);
	stop(&f);
}

static void many_pcs_stay_in_the_cache(void **state)
{
	static struct fixture f;

	(void)state;
	while (f.elf.nfuncs < 15)
		fake_add(&f.elf, "zR", "", 0);
	start(&f);
	for (int round = 0; round < 2; round++) {
		f.stats = (struct wp_unwind_stats){ .walks = 0 };
		for (uint64_t pc = 0; pc < 15 * FAKE_FUNC; pc++) {
			place(&f, FAKE_TEXT + pc);
			assert_int_equal(step(&f), WP_STEP_OK);
		}
	}
	/* 3,840 of them, 30 times libunwind's own limit. */
	assert_int_equal(f.stats.cache_misses, 0);
	stop(&f);
}

static void every_prefix_is_safe(void **state)
{
	static const char insns[] = "\x44\x0e\x18\x83\x02\x8c\x03";
	static struct fixture f;
	static struct fake_elf whole;
	unsigned int nok = 0;

	(void)state;
	fake_add(&whole, "zR", insns, sizeof(insns) - 1);
	for (uint64_t size = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
	     size <= FAKE_SIZE; size += size < FAKE_HDR ? 512 : 1) {
		f.elf = whole;
		start_size(&f, size);
		place(&f, FAKE_TEXT + 4);
		nok += step(&f) == WP_STEP_OK;
		stop(&f);
	}
	/* With the entry all there, whatever follows. */
	assert_in_range(nok, 1, FAKE_SIZE - FAKE_EH);
}

/* Of a pc not met before libunwind reads the file byte by byte. */
static void reading_the_file_is_work(void **state)
{
	static struct fixture f;
	uint32_t work = 0;
	uint64_t pc;

	(void)state;
	pc = fake_add(&f.elf, "zR", "\x0e\x18", 2);
	start_size(&f, FAKE_SIZE);
	place(&f, pc + 4);
	f.step.work = &work;
	assert_int_equal(step(&f), WP_STEP_TOO_SLOW);
	work = 100;
	assert_int_equal(step(&f), WP_STEP_OK);
	assert_in_range(work, 1, 98);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_to_the_caller),
		cmocka_unit_test(return_address_is_looked_up_before_itself),
		cmocka_unit_test(caller_saved_registers_are_dropped),
		cmocka_unit_test(unknown_register_is_told),
		cmocka_unit_test(undefined_return_address_is_the_root),
		cmocka_unit_test(nothing_is_guessed_without_info),
		cmocka_unit_test(personality_routine_is_not_needed),
		cmocka_unit_test(data_is_read_from_memory),
		cmocka_unit_test(unreadable_stack_is_told),
		cmocka_unit_test(malformed_info_is_told),
		cmocka_unit_test(image_without_search_table_is_indexed),
		cmocka_unit_test(cache_is_counted_and_obeys_generations),
		cmocka_unit_test(many_pcs_stay_in_the_cache),
		cmocka_unit_test(reading_the_file_is_work),
		cmocka_unit_test(every_prefix_is_safe),
	};

	/* What is written here is x86-64's; test_walk has libunwind's steps on real
	 * stacks of any machine. */
	if (WP_REG_PC != 16)
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
