/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_expr.c - DWARF expressions, as far as CFI may have them.
 *
 * See cfi.h.  DWARF 5, 2.5 and 7.7.1.  Operations that need a debugger's context
 * (frame base, TLS, other objects, location pieces) are not allowed in CFI: 6.4.2.
 */
#include "cfi.h"

enum {
	STACK_MAX = 64,
	/* Branches can go back. */
	STEPS_MAX = 1000,
};

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_ABS = 0x19,
	OP_AND = 0x1a,
	OP_DIV = 0x1b,
	OP_MINUS = 0x1c,
	OP_MOD = 0x1d,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_REG0 = 0x50,
	OP_REG31 = 0x6f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_REGX = 0x90,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
};

struct machine {
	const struct wp_step *step;
	struct wp_reader r;
	const uint8_t *start;
	/* The first failure, which ends the evaluation. */
	enum wp_step_result result;
	unsigned int depth;
	uint64_t stack[STACK_MAX];
};

static void fail(struct machine *m, enum wp_step_result result)
{
	if (m->result == WP_STEP_OK)
		m->result = result;
}

static void push(struct machine *m, uint64_t val)
{
	if (m->depth == STACK_MAX)
		fail(m, WP_STEP_BAD_INFO);
	else
		m->stack[m->depth++] = wp_step_narrow(m->step, val);
}

static uint64_t pop(struct machine *m)
{
	if (!m->depth) {
		fail(m, WP_STEP_BAD_INFO);
		return 0;
	}
	return m->stack[--m->depth];
}

/* The entry N below the top. */
static uint64_t peek(struct machine *m, unsigned int n)
{
	if (n >= m->depth) {
		fail(m, WP_STEP_BAD_INFO);
		return 0;
	}
	return m->stack[m->depth - 1 - n];
}

static void push_reg(struct machine *m, uint64_t reg, int64_t off)
{
	const struct wp_regs *regs = m->step->regs;

	reg = wp_cfi_reg(m->step->is_32bit, reg);
	if (reg >= WP_NREGS)
		fail(m, WP_STEP_BAD_INFO);
	else if (!wp_reg_known(regs, (unsigned int)reg))
		fail(m, WP_STEP_UNKNOWN_REG);
	else
		push(m, regs->v[reg] + (uint64_t)off);
}

/* VAL, which is as wide as an address (DWARF 5, 2.5.1), with its sign. */
static int64_t as_signed(const struct machine *m, uint64_t val)
{
	return m->step->is_32bit ? (int32_t)val : (int64_t)val;
}

static void deref(struct machine *m, uint8_t size)
{
	uint64_t val = 0, avma = pop(m);
	enum wp_step_result result;

	if (size != 1 && size != 2 && size != 4 && size != 8)
		fail(m, WP_STEP_BAD_INFO);
	if (m->result == WP_STEP_OK &&
	    !wp_step_work(m->step, WP_STEP_READ_WORK))
		fail(m, WP_STEP_TOO_SLOW);
	if (m->result != WP_STEP_OK)
		return;
	result = wp_step_read(m->step, avma, &val, size);
	if (result == WP_STEP_OK)
		push(m, val);
	else
		fail(m, result);
}

static void branch(struct machine *m, int16_t delta)
{
	int64_t to = m->r.pos - m->start + delta;

	if (m->r.failed || to < 0 || to > m->r.end - m->start)
		fail(m, WP_STEP_BAD_INFO);
	else
		m->r.pos = m->start + to;
}

static void rot(struct machine *m)
{
	uint64_t a = pop(m), b = pop(m), c = pop(m);

	push(m, a);
	push(m, c);
	push(m, b);
}

static uint64_t divide(struct machine *m, int64_t a, int64_t b)
{
	if (!b) {
		fail(m, WP_STEP_BAD_INFO);
		return 0;
	}
	/* The smallest number by -1 would trap. */
	return b == -1 ? -(uint64_t)a : (uint64_t)(a / b);
}

static uint64_t modulo(struct machine *m, uint64_t a, uint64_t b)
{
	if (!b) {
		fail(m, WP_STEP_BAD_INFO);
		return 0;
	}
	return a % b;
}

static uint64_t shra(int64_t a, uint64_t n)
{
	return (uint64_t)(a >> (n > 63 ? 63 : n));
}

static void binary(struct machine *m, uint8_t op)
{
	uint64_t b = pop(m), a = pop(m);
	int64_t sb = as_signed(m, b), sa = as_signed(m, a);

	switch (op) {
	case OP_AND:
		return push(m, a & b);
	case OP_DIV:
		return push(m, divide(m, sa, sb));
	case OP_MINUS:
		return push(m, a - b);
	case OP_MOD:
		return push(m, modulo(m, a, b));
	case OP_MUL:
		return push(m, a * b);
	case OP_OR:
		return push(m, a | b);
	case OP_PLUS:
		return push(m, a + b);
	case OP_SHL:
		return push(m, b > 63 ? 0 : a << b);
	case OP_SHR:
		return push(m, b > 63 ? 0 : a >> b);
	case OP_SHRA:
		return push(m, shra(sa, b));
	case OP_XOR:
		return push(m, a ^ b);
	case OP_EQ:
		return push(m, sa == sb);
	case OP_GE:
		return push(m, sa >= sb);
	case OP_GT:
		return push(m, sa > sb);
	case OP_LE:
		return push(m, sa <= sb);
	case OP_LT:
		return push(m, sa < sb);
	case OP_NE:
		return push(m, sa != sb);
	}
}

/* True if OP was one of those that push a constant. */
static bool run_const(struct machine *m, uint8_t op)
{
	struct wp_reader *r = &m->r;
	uint64_t a;

	switch (op) {
	case OP_ADDR:
		a = m->step->is_32bit ? wp_read_u32(r) : wp_read_u64(r);
		push(m, a + m->step->module->bias);
		return true;
	case OP_CONST1U:
		push(m, wp_read_u8(r));
		return true;
	case OP_CONST1S:
		push(m, (uint64_t)(int8_t)wp_read_u8(r));
		return true;
	case OP_CONST2U:
		push(m, wp_read_u16(r));
		return true;
	case OP_CONST2S:
		push(m, (uint64_t)(int16_t)wp_read_u16(r));
		return true;
	case OP_CONST4U:
		push(m, wp_read_u32(r));
		return true;
	case OP_CONST4S:
		push(m, (uint64_t)(int32_t)wp_read_u32(r));
		return true;
	case OP_CONST8U:
	case OP_CONST8S:
		push(m, wp_read_u64(r));
		return true;
	case OP_CONSTU:
		push(m, wp_read_uleb(r));
		return true;
	case OP_CONSTS:
		push(m, (uint64_t)wp_read_sleb(r));
		return true;
	default:
		return false;
	}
}

static void run_op(struct machine *m, uint8_t op)
{
	struct wp_reader *r = &m->r;
	uint64_t a;

	if (run_const(m, op))
		return;
	switch (op) {
	case OP_LIT0 ... OP_LIT31:
		return push(m, op - OP_LIT0);
	case OP_REG0 ... OP_REG31:
		/* As a place it could not be used: the value is meant, as in
		 * libgcc. */
		return push_reg(m, op - OP_REG0, 0);
	case OP_BREG0 ... OP_BREG31:
		return push_reg(m, op - OP_BREG0, wp_read_sleb(r));
	case OP_REGX:
		return push_reg(m, wp_read_uleb(r), 0);
	case OP_BREGX:
		a = wp_read_uleb(r);
		return push_reg(m, a, wp_read_sleb(r));
	case OP_DEREF:
		return deref(m, wp_step_word_size(m->step));
	case OP_DEREF_SIZE:
		return deref(m, wp_read_u8(r));
	case OP_DUP:
		return push(m, peek(m, 0));
	case OP_DROP:
		(void)pop(m);
		return;
	case OP_OVER:
		return push(m, peek(m, 1));
	case OP_PICK:
		return push(m, peek(m, wp_read_u8(r)));
	case OP_SWAP:
		a = pop(m);
		/* The one below moves to the top. */
		if (!m->depth)
			return fail(m, WP_STEP_BAD_INFO);
		push(m, peek(m, 0));
		m->stack[m->depth - 2] = a;
		return;
	case OP_ROT:
		return rot(m);
	case OP_ABS:
		a = pop(m);
		return push(m, as_signed(m, a) < 0 ? -a : a);
	case OP_NEG:
		return push(m, -pop(m));
	case OP_NOT:
		return push(m, ~pop(m));
	case OP_PLUS_UCONST:
		a = pop(m);
		return push(m, a + wp_read_uleb(r));
	case OP_AND:
	case OP_DIV ... OP_MUL:
	case OP_OR:
	case OP_PLUS:
	case OP_SHL ... OP_XOR:
	case OP_EQ ... OP_NE:
		return binary(m, op);
	case OP_SKIP:
		return branch(m, (int16_t)wp_read_u16(r));
	case OP_BRA:
		a = wp_read_u16(r);
		if (pop(m))
			branch(m, (int16_t)a);
		return;
	case OP_NOP:
		return;
	default:
		fail(m, WP_STEP_BAD_INFO);
	}
}

enum wp_step_result wp_cfi_expr(struct wp_reader expr,
				const struct wp_step *step,
				const uint64_t *initial, uint64_t *ret)
{
	struct machine m;

	m.step = step;
	m.r = expr;
	m.start = expr.pos;
	m.result = WP_STEP_OK;
	m.depth = 0;
	if (initial)
		push(&m, *initial);
	for (unsigned int n = 0; wp_reader_left(&m.r); n++) {
		if (n == STEPS_MAX)
			return WP_STEP_BAD_INFO;
		if (!wp_step_work(step, 1))
			return WP_STEP_TOO_SLOW;
		run_op(&m, wp_read_u8(&m.r));
		if (m.r.failed)
			return WP_STEP_BAD_INFO;
		if (m.result != WP_STEP_OK)
			return m.result;
	}
	if (m.r.failed || !m.depth)
		return WP_STEP_BAD_INFO;
	*ret = pop(&m);
	return WP_STEP_OK;
}

struct wp_reader wp_cfi_expr_at(struct wp_elf_image *image, uint64_t file_off)
{
	/* A LEB128 number is at most 10 bytes, fewer may be there. */
	uint64_t left = wp_elf_image_left(image, file_off);
	uint64_t most = left < 10 ? left : 10;
	const uint8_t *start = wp_elf_image_at(image, file_off, most);
	struct wp_reader r = wp_reader_of(start, (size_t)most);
	uint64_t len = wp_read_uleb(&r), size;

	if (r.failed)
		return wp_reader_of(NULL, 0);
	size = (uint64_t)(r.pos - start);
	return wp_reader_of(wp_elf_image_at(image, file_off + size, len),
			    (size_t)len);
}

#if defined(__x86_64__)
/* What ld writes for .plt: binutils, bfd/elfxx-x86.h, "DW_CFA_def_cfa_
 * expression".  A stub is 16 bytes; from the push on there is one word more:
 * rsp + 8 + ((rip & 15) >= N) * 8.
 */
static bool is_plt(struct wp_reader expr, int64_t *ret_off)
{
	static const uint8_t want[] = {
		OP_BREG0 + 7,
		8,
		OP_BREG0 + 16,
		0,
		OP_LIT0 + 15,
		OP_AND,
		/* N goes here. */
		0,
		OP_GE,
		OP_LIT0 + 3,
		OP_SHL,
		OP_PLUS,
	};
	const uint8_t *bytes = expr.pos;

	if (wp_reader_left(&expr) != sizeof(want) || bytes[6] < OP_LIT0 ||
	    bytes[6] > OP_LIT0 + 15)
		return false;
	for (size_t i = 0; i < sizeof(want); i++)
		if (i != 6 && bytes[i] != want[i])
			return false;
	*ret_off = bytes[6] - OP_LIT0;
	return true;
}
#else
static bool is_plt(struct wp_reader expr, int64_t *ret_off)
{
	(void)expr;
	(void)ret_off;
	return false;
}
#endif

enum wp_cfi_shape wp_cfi_expr_shape(struct wp_reader expr,
				    const struct wp_elf_image *image,
				    uint64_t *ret_reg, int64_t *ret_off)
{
	struct wp_reader r = expr;
	uint8_t op = wp_read_u8(&r);

	if (is_plt(expr, ret_off))
		return WP_CFI_SHAPE_PLT;
	if (op < OP_BREG0 || op > OP_BREG31)
		return WP_CFI_SHAPE_OTHER;
	*ret_reg = wp_cfi_reg(wp_elf_image_is_32bit(image), op - OP_BREG0);
	*ret_off = wp_read_sleb(&r);
	if (r.failed)
		return WP_CFI_SHAPE_OTHER;
	if (!wp_reader_left(&r))
		return WP_CFI_SHAPE_SUM;
	if (wp_read_u8(&r) == OP_DEREF && !wp_reader_left(&r))
		return WP_CFI_SHAPE_DEREF;
	return WP_CFI_SHAPE_OTHER;
}
