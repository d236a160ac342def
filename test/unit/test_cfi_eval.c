/* SPDX-License-Identifier: Apache-2.0 */
/* From the programs of a CIE and an FDE to a row.  Layer: unwind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "cfi_bytes.h"

#if defined(__x86_64__)
/* The CIE of gcc: CFA = rsp + 8, return address at CFA - 8. */
#define GCC_CIE "\x0c\x07\x08\x90\x01"
enum { RBX = 0, RBP = 1, RSP = 2, R12 = 3, R13 = 4, R14 = 5, R15 = 6, RA = 7 };

struct program {
	struct wp_elf_image image;
	struct wp_cfi_section section;
	struct wp_cfi_fde fde;
};

/* A function at [0x1000, 0x1100). */
static void assemble(struct program *p, const void *cie_insns, size_t cie_len,
		     const void *insns, size_t len)
{
	struct bytes b = { .len = 0 };
	size_t cie = put_cie(&b, cie_insns, cie_len);
	size_t fde = put_fde(&b, cie, 0x1000, 0x100, insns, len);

	p->image = image_of(b.v, b.len, 0x8000);
	p->section = section_of(&p->image, false);
	assert_int_equal(wp_cfi_parse_fde(&p->section, fde, &p->fde), 0);
}

static int eval(const void *cie_insns, size_t cie_len, const void *insns,
		size_t len, uint64_t pc_svma, struct wp_cfi_row *ret)
{
	struct program p;
	int rc;

	assemble(&p, cie_insns, cie_len, insns, len);
	rc = wp_cfi_eval(&p.fde, pc_svma, ret);
	image_free(&p.image);
	return rc;
}

static void assert_place(const struct wp_cfi_row *row, unsigned int slot,
			 enum wp_cfi_kind kind, int64_t val)
{
	assert_int_equal(row->reg[slot].kind, kind);
	assert_int_equal(row->reg[slot].val, val);
}

static void assert_cfa(const struct wp_cfi_row *row, uint64_t reg, int64_t off)
{
	assert_int_equal(row->cfa_kind, WP_CFI_CFA_REG);
	assert_int_equal(row->cfa_reg, reg);
	assert_int_equal(row->cfa_off, off);
}

static void nothing_said_means_the_defaults(void **state)
{
	struct wp_cfi_row row;

	(void)state;
	assert_int_equal(eval(LIT(GCC_CIE), LIT(""), 0x1000, &row), 0);
	assert_cfa(&row, 7, 8);
	assert_place(&row, RBX, WP_CFI_SAME, 0);
	assert_place(&row, R15, WP_CFI_SAME, 0);
	/* The stack pointer was the CFA. */
	assert_place(&row, RSP, WP_CFI_VAL_OFFSET, 0);
	assert_place(&row, RA, WP_CFI_OFFSET, -8);
}

/* One opcode each, run at the function's start after gcc's CIE. */
static void every_register_opcode(void **state)
{
	static const struct {
		const char *insns;
		size_t len;
		unsigned int slot;
		enum wp_cfi_kind kind;
		int64_t val;
	} cases[] = {
		/* offset r3, 2 */
		{ LIT("\x83\x02"), RBX, WP_CFI_OFFSET, -16 },
		{ LIT("\x83\x80\x01"), RBX, WP_CFI_OFFSET, -1024 },
		/* offset_extended r12, 3 */
		{ LIT("\x05\x0c\x03"), R12, WP_CFI_OFFSET, -24 },
		/* offset_extended_sf r13, -3 */
		{ LIT("\x11\x0d\x7d"), R13, WP_CFI_OFFSET, 24 },
		/* GNU_negative_offset_extended r13, 3 */
		{ LIT("\x2f\x0d\x03"), R13, WP_CFI_OFFSET, 24 },
		/* val_offset r14, 4; val_offset_sf r14, -4 */
		{ LIT("\x14\x0e\x04"), R14, WP_CFI_VAL_OFFSET, -32 },
		{ LIT("\x15\x0e\x7c"), R14, WP_CFI_VAL_OFFSET, 32 },
		/* undefined r6; of the return address */
		{ LIT("\x07\x06"), RBP, WP_CFI_UNDEFINED, 0 },
		{ LIT("\x07\x10"), RA, WP_CFI_UNDEFINED, 0 },
		/* same_value of the stack pointer */
		{ LIT("\x08\x07"), RSP, WP_CFI_SAME, 0 },
		/* register r15, r9; return address in rdi (glibc's vfork) */
		{ LIT("\x09\x0f\x09"), R15, WP_CFI_REGISTER, 9 },
		{ LIT("\x09\x10\x05"), RA, WP_CFI_REGISTER, 5 },
		/* offset r3, 2; restore r3: what the CIE left */
		{ LIT("\x83\x02\xc3"), RBX, WP_CFI_SAME, 0 },
		{ LIT("\x90\x05\xd0"), RA, WP_CFI_OFFSET, -8 },
		/* offset r3, 2; restore_extended r3 */
		{ LIT("\x83\x02\x06\x03"), RBX, WP_CFI_SAME, 0 },
		/* Registers whose rules are not kept: rax, xmm0, none at all */
		{ LIT("\x80\x02\x91\x03\x05\xff\xff\x03\x04"), RBX, WP_CFI_SAME,
		  0 },
		{ LIT("\xc0\x06\xff\xff\x03\x09\x00\x01"), RBX, WP_CFI_SAME,
		  0 },
		/* nop; GNU_args_size 300: no effect on what follows */
		{ LIT("\x00\x2e\xac\x02\x83\x02"), RBX, WP_CFI_OFFSET, -16 },
		/* remember, offset, restore: as before */
		{ LIT("\x0a\x83\x02\x0b"), RBX, WP_CFI_SAME, 0 },
		{ LIT("\x83\x02\x0a\x83\x05\x0a\x83\x06\x0b\x0b"), RBX,
		  WP_CFI_OFFSET, -16 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wp_cfi_row row;
		int rc = eval(LIT(GCC_CIE), cases[i].insns, cases[i].len,
			      0x1000, &row);

		if (rc || row.reg[cases[i].slot].kind != cases[i].kind)
			print_error("case %zu, rc %d\n", i, rc);
		assert_int_equal(rc, 0);
		assert_place(&row, cases[i].slot, cases[i].kind, cases[i].val);
		assert_cfa(&row, 7, 8);
	}
}

static void every_cfa_opcode(void **state)
{
	static const struct {
		const char *insns;
		size_t len;
		uint64_t reg;
		int64_t off;
	} cases[] = {
		/* def_cfa r6, 16; def_cfa_sf r6, -2 */
		{ LIT("\x0c\x06\x10"), 6, 16 },
		{ LIT("\x12\x06\x7e"), 6, 16 },
		/* def_cfa_register r6; of a register with a long number */
		{ LIT("\x0d\x06"), 6, 8 },
		{ LIT("\x0d\x80\x01"), 128, 8 },
		/* def_cfa_offset 200; def_cfa_offset_sf -3 */
		{ LIT("\x0e\xc8\x01"), 7, 200 },
		{ LIT("\x13\x7d"), 7, 24 },
		/* remember; def_cfa r6, 16; restore: the CFA comes back too */
		{ LIT("\x0a\x0c\x06\x10\x0b"), 7, 8 },
		/* An expression, left again by def_cfa_register (libgcrypt):
		 * the offset from before it holds. */
		{ LIT("\x0e\x38\x0f\x03\x77\x08\x06\x0d\x07"), 7, 56 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wp_cfi_row row;

		assert_int_equal(eval(LIT(GCC_CIE), cases[i].insns,
				      cases[i].len, 0x1000, &row),
				 0);
		assert_cfa(&row, cases[i].reg, cases[i].off);
		assert_place(&row, RA, WP_CFI_OFFSET, -8);
	}
}

static void expressions_are_where_they_say(void **state)
{
	/* def_cfa_expression {breg7 8, deref}; expression r6 {breg6 0};
	 * val_expression r3 {lit5}. */
	static const char insns[] = "\x0f\x03\x77\x08\x06"
				    "\x10\x06\x02\x76\x00"
				    "\x16\x03\x01\x35";
	struct wp_cfi_row row;
	struct wp_reader expr;
	struct program p;

	(void)state;
	assemble(&p, LIT(GCC_CIE), LIT(insns));
	assert_int_equal(wp_cfi_eval(&p.fde, 0x1000, &row), 0);
	assert_int_equal(row.cfa_kind, WP_CFI_CFA_EXPR);
	expr = wp_cfi_expr_at(&p.image, (uint64_t)row.cfa_expr);
	assert_int_equal(wp_reader_left(&expr), 3);
	assert_memory_equal(expr.pos, "\x77\x08\x06", 3);
	assert_int_equal(row.reg[RBP].kind, WP_CFI_EXPR);
	expr = wp_cfi_expr_at(&p.image, (uint64_t)row.reg[RBP].val);
	assert_int_equal(wp_reader_left(&expr), 2);
	assert_memory_equal(expr.pos, "\x76\x00", 2);
	assert_int_equal(row.reg[RBX].kind, WP_CFI_VAL_EXPR);
	expr = wp_cfi_expr_at(&p.image, (uint64_t)row.reg[RBX].val);
	assert_int_equal(wp_reader_left(&expr), 1);
	assert_memory_equal(expr.pos, "\x35", 1);
	image_free(&p.image);
}

/* Each way to move on by 0x10, then def_cfa_offset 16: the row before it ends
 * at 0x1010. */
static void every_advance(void **state)
{
	static const struct {
		const char *insns;
		size_t len;
	} cases[] = {
		{ LIT("\x50\x0e\x10") },
		{ LIT("\x02\x10\x0e\x10") },
		{ LIT("\x03\x10\x00\x0e\x10") },
		{ LIT("\x04\x10\x00\x00\x00\x0e\x10") },
		{ LIT("\x1d\x10\0\0\0\0\0\0\0\x0e\x10") },
		/* set_loc, with the FDE's encoding */
		{ LIT("\x01\x10\x10\0\0\0\0\0\0\x0e\x10") },
		/* In steps */
		{ LIT("\x48\x40\x02\x08\x0e\x10") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const struct {
			uint64_t pc;
			int64_t off;
		} want[] = { { 0x1000, 8 },
			     { 0x100f, 8 },
			     { 0x1010, 16 },
			     { 0x1011, 16 },
			     { 0x10ff, 16 } };

		for (size_t j = 0; j < sizeof(want) / sizeof(want[0]); j++) {
			struct wp_cfi_row row;

			assert_int_equal(eval(LIT(GCC_CIE), cases[i].insns,
					      cases[i].len, want[j].pc, &row),
					 0);
			assert_cfa(&row, 7, want[j].off);
		}
	}
}

/* At PC_SVMA, with what was popped kept. */
static void eval_kept(const void *insns, size_t len, uint64_t pc_svma,
		      struct wp_cfi_row *ret)
{
	assert_int_equal(eval(LIT(GCC_CIE), insns, len, pc_svma, ret), 0);
	wp_cfi_keep_popped(ret);
}

static void who_has_been_popped_is_kept(void **state)
{
	/* A byte each: push rbp; push rbx; pop rbx; pop rbp; ret; and a second
	 * way out, from where both are pushed. */
	static const char pushes[] = "\x41\x0e\x10\x86\x02\x41\x0e\x18\x83\x03"
				     "\x41\x0a\x0e\x10\x41\x0e\x08\x41\x0b"
				     "\x41\x0e\x10\x41\x0e\x08";
	/* push rbp; mov rbp, rsp; push rbx; leave, at +3; ret. */
	static const char leaves[] = "\x41\x0e\x10\x86\x02\x41\x0d\x06"
				     "\x41\x83\x03\x41\x0c\x07\x08";
	struct wp_cfi_row row;

	(void)state;
	for (uint64_t pc = 0x1002; pc <= 0x1007; pc++) {
		bool rbx = pc == 0x1002 || pc == 0x1005;
		bool rbp = rbx || pc == 0x1003 || pc == 0x1006;

		eval_kept(LIT(pushes), pc, &row);
		assert_place(&row, RBX, rbx ? WP_CFI_OFFSET : WP_CFI_SAME,
			     rbx ? -24 : 0);
		assert_place(&row, RBP, rbp ? WP_CFI_OFFSET : WP_CFI_SAME,
			     rbp ? -16 : 0);
		assert_place(&row, RA, WP_CFI_OFFSET, -8);
	}
	eval_kept(LIT(leaves), 0x1003, &row);
	assert_place(&row, RBX, WP_CFI_OFFSET, -24);
	eval_kept(LIT(leaves), 0x1004, &row);
	assert_cfa(&row, 7, 8);
	assert_place(&row, RBX, WP_CFI_SAME, 0);
	assert_place(&row, RBP, WP_CFI_SAME, 0);
}

static void the_red_zone_holds_what_was_not_popped(void **state)
{
	/* mov [rsp - 8], rbx, and rbx is used; then one that was popped is
	 * stored there. */
	static const char stored[] = "\x41\x83\x02";
	static const char again[] = "\x41\x0e\x10\x83\x02\x41\x0e\x08"
				    "\x41\x83\x02";
	struct wp_cfi_row row;

	(void)state;
	eval_kept(LIT(stored), 0x1001, &row);
	assert_place(&row, RBX, WP_CFI_OFFSET, -16);
	eval_kept(LIT(again), 0x1002, &row);
	assert_place(&row, RBX, WP_CFI_SAME, 0);
	eval_kept(LIT(again), 0x1003, &row);
	assert_place(&row, RBX, WP_CFI_OFFSET, -16);
}

/* An aarch64-like CIE: code factor 4, data factor -4. */
static void alignment_factors_scale(void **state)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_section section;
	struct wp_cfi_fde fde;
	struct wp_cfi_row row;
	size_t cie, off;

	(void)state;
	cie = begin_entry(&b);
	put(&b, 0, 4);
	put_bytes(&b, "\x01zR\0\x04\x7c\x10\x01\x04" GCC_CIE, 9 + 5);
	end_entry(&b);
	/* advance_loc 2; offset r3, 2; advance_loc1 1; offset r3, 3 */
	off = put_fde(&b, cie, 0x1000, 0x100,
		      LIT("\x42\x83\x02\x02\x01\x83\x03"));
	image = image_of(b.v, b.len, 0x8000);
	section = section_of(&image, false);
	assert_int_equal(wp_cfi_parse_fde(&section, off, &fde), 0);
	assert_int_equal(wp_cfi_eval(&fde, 0x1007, &row), 0);
	assert_place(&row, RBX, WP_CFI_SAME, 0);
	assert_place(&row, RA, WP_CFI_OFFSET, -4);
	assert_int_equal(wp_cfi_eval(&fde, 0x1008, &row), 0);
	assert_place(&row, RBX, WP_CFI_OFFSET, -8);
	assert_int_equal(wp_cfi_eval(&fde, 0x100c, &row), 0);
	assert_place(&row, RBX, WP_CFI_OFFSET, -12);
	image_free(&image);
}

static void nonsense_is_refused(void **state)
{
	static const struct {
		const char *insns;
		size_t len;
		int want;
	} cases[] = {
		/* restore_state with nothing remembered */
		{ LIT("\x0b"), -EBADMSG },
		/* remember_state 17 times */
		{ LIT("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"
		      "\x0a\x0a\x0a\x0a"),
		  -EOVERFLOW },
		/* Unknown: 0x17, user 0x3f; GNU_window_save is SPARC's */
		{ LIT("\x17\x00"), -ENOTSUP },
		{ LIT("\x3f\x00"), -ENOTSUP },
		{ LIT("\x2d"), -ENOTSUP },
		/* Operands that are not there */
		{ LIT("\x0c\x07"), -EBADMSG },
		{ LIT("\x83"), -EBADMSG },
		{ LIT("\x04\x01\x00"), -EBADMSG },
		{ LIT("\x0f\x7f\x77"), -EBADMSG },
		{ LIT("\x10\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		  -EBADMSG },
		/* set_loc backwards; advance past the last address */
		{ LIT("\x01\x00\x08\0\0\0\0\0\0"), -EBADMSG },
		{ LIT("\x1d\xff\xff\xff\xff\xff\xff\xff\xff"), -EBADMSG },
		/* A LEB128 number of 11 bytes */
		{ LIT("\x0e\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
		  -EBADMSG },
	};
	struct wp_cfi_row row;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = eval(LIT(GCC_CIE), cases[i].insns, cases[i].len,
			      0x1080, &row);

		if (rc != cases[i].want)
			print_error("case %zu\n", i);
		assert_int_equal(rc, cases[i].want);
	}
	/* In a CIE: restore, moving on; no CFA at all; half of one. */
	assert_int_equal(eval(LIT(GCC_CIE "\xc3"), LIT(""), 0x1000, &row),
			 -EBADMSG);
	assert_int_equal(eval(LIT(GCC_CIE "\x41"), LIT(""), 0x1000, &row),
			 -EBADMSG);
	assert_int_equal(eval(LIT("\x90\x01"), LIT(""), 0x1000, &row),
			 -EBADMSG);
	assert_int_equal(eval(LIT("\x0e\x08"), LIT(""), 0x1000, &row),
			 -EBADMSG);
	assert_int_equal(eval(LIT("\x0d\x07"), LIT(""), 0x1000, &row),
			 -EBADMSG);
	/* A state that the CIE remembered is none of the FDE's. */
	assert_int_equal(eval(LIT(GCC_CIE "\x0a"), LIT("\x0b"), 0x1000, &row),
			 -EBADMSG);
}

static void what_comes_after_the_pc_does_not_matter(void **state)
{
	struct wp_cfi_row row;

	(void)state;
	/* advance_loc 1; an unknown opcode */
	assert_int_equal(eval(LIT(GCC_CIE), LIT("\x41\x17"), 0x1000, &row), 0);
	assert_int_equal(eval(LIT(GCC_CIE), LIT("\x41\x17"), 0x1001, &row),
			 -ENOTSUP);
}

static void sixteen_states_nest(void **state)
{
	char insns[32];
	struct wp_cfi_row row;

	(void)state;
	memset(insns, 0x0a, 16);
	memset(insns + 16, 0x0b, 16);
	assert_int_equal(eval(LIT(GCC_CIE), insns, sizeof(insns), 0x1000, &row),
			 0);
	assert_cfa(&row, 7, 8);
}

static void another_return_column_is_refused(void **state)
{
	struct bytes b = { .len = 0 };
	struct wp_elf_image image;
	struct wp_cfi_section section;
	struct wp_cfi_fde fde;
	struct wp_cfi_row row;
	size_t cie, off;

	(void)state;
	cie = begin_entry(&b);
	put(&b, 0, 4);
	put_bytes(&b, "\x01zR\0\x01\x78\x03\x01\x04" GCC_CIE, 9 + 5);
	end_entry(&b);
	off = put_fde(&b, cie, 0x1000, 0x100, LIT(""));
	image = image_of(b.v, b.len, 0x8000);
	section = section_of(&image, false);
	assert_int_equal(wp_cfi_parse_fde(&section, off, &fde), 0);
	assert_int_equal(wp_cfi_eval(&fde, 0x1000, &row), -ENOTSUP);
	image_free(&image);
}

/* gcc's function with a realigned stack, at 0x1070 of small_eh_frame: the rows
 * that readelf --debug-dump=frames-interp shows. */
static void a_real_function(void **state)
{
	static const struct {
		uint64_t pc;
		enum wp_cfi_cfa_kind cfa;
		uint64_t reg;
		int64_t off;
		enum wp_cfi_kind rbx, rbp;
	} want[] = {
		{ 0x1070, WP_CFI_CFA_REG, 7, 8, WP_CFI_SAME, WP_CFI_SAME },
		{ 0x1075, WP_CFI_CFA_REG, 10, 0, WP_CFI_SAME, WP_CFI_SAME },
		{ 0x108c, WP_CFI_CFA_REG, 10, 0, WP_CFI_SAME, WP_CFI_EXPR },
		{ 0x108e, WP_CFI_CFA_EXPR, 0, 0, WP_CFI_SAME, WP_CFI_EXPR },
		{ 0x1093, WP_CFI_CFA_EXPR, 0, 0, WP_CFI_EXPR, WP_CFI_EXPR },
		{ 0x10b7, WP_CFI_CFA_EXPR, 0, 0, WP_CFI_EXPR, WP_CFI_EXPR },
		{ 0x10b8, WP_CFI_CFA_REG, 10, 0, WP_CFI_EXPR, WP_CFI_EXPR },
		{ 0x10bd, WP_CFI_CFA_REG, 7, 8, WP_CFI_EXPR, WP_CFI_EXPR },
	};
	struct wp_elf_image image = small_image(sizeof(small_hdr) +
						sizeof(small_eh_frame));
	struct wp_cfi_section section = { &image, image.eh_frame, false, true };
	struct wp_cfi_fde fde;

	(void)state;
	assert_int_equal(wp_cfi_parse_fde(&section, 0x58, &fde), 0);
	assert_int_equal(fde.start_svma, 0x1070);
	assert_int_equal(fde.end_svma, 0x10be);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct wp_cfi_row row;

		assert_int_equal(wp_cfi_eval(&fde, want[i].pc, &row), 0);
		assert_int_equal(row.cfa_kind, want[i].cfa);
		if (want[i].cfa == WP_CFI_CFA_REG)
			assert_cfa(&row, want[i].reg, want[i].off);
		assert_int_equal(row.reg[RBX].kind, want[i].rbx);
		assert_int_equal(row.reg[RBP].kind, want[i].rbp);
		assert_place(&row, RA, WP_CFI_OFFSET, -8);
	}
	image_free(&image);
}

/* All opcodes in one program, cut at every byte. */
static void every_prefix_is_safe(void **state)
{
	static const char insns[] =
		"\x41\x83\x02\xc3\x00\x02\x01\x03\x01\x00\x04\x01\x00\x00\x00"
		"\x05\x0c\x03\x06\x0c\x07\x06\x08\x07\x09\x0f\x09\x0a\x0b"
		"\x0c\x06\x10\x0d\x07\x0e\x08\x0f\x03\x77\x08\x06\x10\x06\x02"
		"\x76\x00\x11\x0d\x7d\x12\x06\x7e\x13\x7d\x14\x0e\x04\x15\x0e"
		"\x7c\x16\x03\x01\x35\x2e\x10\x2f\x0d\x03";
	struct wp_cfi_row row;

	(void)state;
	assert_int_equal(eval(LIT(GCC_CIE), LIT(insns), 0x1080, &row), 0);
	for (size_t n = 0; n < sizeof(insns); n++) {
		(void)!eval(LIT(GCC_CIE), insns, n, 0x1080, &row);
		(void)!eval(insns, n, LIT(""), 0x1080, &row);
	}
}

static void every_flipped_byte_is_safe(void **state)
{
	static const uint64_t fdes[] = { 0x18, 0x38, 0x58, 0x88 };
	static const uint8_t flips[] = { 0x01, 0x40, 0x80, 0xff };
	size_t len = sizeof(small_eh_frame);
	unsigned int good = 0;

	(void)state;
	for (size_t n = 0; n < len * sizeof(flips); n++) {
		struct wp_elf_image image = image_of(small_eh_frame, len,
						     0x2030);
		struct wp_cfi_section section = section_of(&image, false);
		struct wp_cfi_fde fde;
		struct wp_cfi_row row;

		image.data[n / sizeof(flips)] ^= flips[n % sizeof(flips)];
		for (size_t i = 0; i < sizeof(fdes) / sizeof(fdes[0]); i++)
			if (!wp_cfi_parse_fde(&section, fdes[i], &fde))
				good += !wp_cfi_eval(&fde, fde.end_svma - 1,
						     &row);
		image_free(&image);
	}
	/* Most flips leave the other functions whole. */
	assert_true(good > len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_said_means_the_defaults),
		cmocka_unit_test(every_register_opcode),
		cmocka_unit_test(every_cfa_opcode),
		cmocka_unit_test(expressions_are_where_they_say),
		cmocka_unit_test(every_advance),
		cmocka_unit_test(who_has_been_popped_is_kept),
		cmocka_unit_test(the_red_zone_holds_what_was_not_popped),
		cmocka_unit_test(alignment_factors_scale),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(what_comes_after_the_pc_does_not_matter),
		cmocka_unit_test(sixteen_states_nest),
		cmocka_unit_test(another_return_column_is_refused),
		cmocka_unit_test(a_real_function),
		cmocka_unit_test(every_prefix_is_safe),
		cmocka_unit_test(every_flipped_byte_is_safe),
	};
	return cmocka_run_group_tests_name("cfi_eval", tests, NULL, NULL);
}
#else
int main(void)
{
	/* The bytes above are x86-64's. */
	return 0;
}
#endif
