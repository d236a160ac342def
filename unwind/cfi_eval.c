/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_eval.c - run the programs of a CIE and an FDE up to a pc.
 *
 * See cfi.h.  DWARF 5, 6.4.2 and 7.24 (table 7.29).
 */
#include "cfi.h"

#include <errno.h>

enum {
	/* gcc and clang nest one deep. */
	STATES_MAX = 16,
};

enum {
	CFA_ADVANCE_LOC = 0x40,
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_PRIMARY = 0xc0,

	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
	/* Elsewhere DW_CFA_GNU_window_save. */
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct eval {
	const struct wp_cfi_fde *fde;
	/* The row of this address is wanted. */
	uint64_t pc_svma;
	/* ROW begins to hold at this address. */
	uint64_t loc_svma;
	/* ROW is that of pc_svma, and complete. */
	bool is_done;
	/* The code is of 32 bits: see wp_cfi_reg. */
	bool is_32bit;
	/* 0, or the -errno of what the program does wrong. */
	int rc;
	struct wp_reader r;
	struct wp_cfi_row row;
	/* The row that the CIE's program made; NULL while that runs. */
	const struct wp_cfi_row *initial;
	unsigned int nstates;
	struct wp_cfi_row states[STATES_MAX];
};

/* Set the place of register REG; untracked registers have none. */
static void place(struct eval *e, uint64_t reg, enum wp_cfi_kind kind,
		  int64_t val)
{
	int slot = wp_cfi_slot(reg);

	if (slot < 0)
		return;
	e->row.reg[slot] = (struct wp_cfi_place){ kind, val };
	e->row.in_frame &= ~(1u << slot);
}

/* N times the data alignment; wraps, for a nonsense offset is no worse than
 * another. */
static int64_t factored(const struct eval *e, uint64_t n)
{
	return (int64_t)(n * (uint64_t)e->fde->cie.data_align);
}

static int64_t factored_uleb(struct eval *e)
{
	return factored(e, wp_read_uleb(&e->r));
}

static int64_t factored_sleb(struct eval *e)
{
	return factored(e, (uint64_t)wp_read_sleb(&e->r));
}

static void restore(struct eval *e, uint64_t reg)
{
	int slot = wp_cfi_slot(reg);

	if (!e->initial)
		e->rc = -EBADMSG;
	else if (slot >= 0)
		e->row.reg[slot] = e->initial->reg[slot];
}

/* Is the place of ROW's SLOT on the stack and below sp? */
static bool is_below_sp(const struct wp_cfi_row *row, unsigned int slot)
{
	return row->cfa_kind == WP_CFI_CFA_REG && row->cfa_reg == WP_REG_SP &&
	       row->reg[slot].kind == WP_CFI_OFFSET &&
	       (int64_t)((uint64_t)row->cfa_off +
			 (uint64_t)row->reg[slot].val) < 0;
}

/* Note in ROW, which is complete, which places are in the frame. */
static void note_frame(struct wp_cfi_row *row)
{
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		if (row->reg[i].kind == WP_CFI_OFFSET && !is_below_sp(row, i))
			row->in_frame |= 1u << i;
}

void wp_cfi_keep_popped(struct wp_cfi_row *row)
{
	/* A register whose place was never in the frame was saved in the red
	 * zone, and may hold something else. */
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		if (row->in_frame >> i & 1 && is_below_sp(row, i))
			row->reg[i] = (struct wp_cfi_place){ WP_CFI_SAME, 0 };
}

static void move_to(struct eval *e, uint64_t loc_svma)
{
	note_frame(&e->row);
	if (!e->initial || loc_svma < e->loc_svma)
		e->rc = -EBADMSG;
	else if (loc_svma > e->pc_svma)
		e->is_done = true;
	else
		e->loc_svma = loc_svma;
}

static void advance(struct eval *e, uint64_t delta)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(delta, e->fde->cie.code_align, &bytes) ||
	    bytes > UINT64_MAX - e->loc_svma)
		e->rc = -EBADMSG;
	else
		move_to(e, e->loc_svma + bytes);
}

static void set_loc(struct eval *e)
{
	uint64_t loc_svma;

	if (wp_cfi_read_pointer(e->fde->section, &e->r, e->fde->cie.fde_enc, 0,
				&loc_svma))
		move_to(e, loc_svma);
}

static void remember_state(struct eval *e)
{
	if (e->nstates == STATES_MAX)
		e->rc = -EOVERFLOW;
	else
		e->states[e->nstates++] = e->row;
}

static void restore_state(struct eval *e)
{
	if (!e->nstates)
		e->rc = -EBADMSG;
	else
		e->row = e->states[--e->nstates];
}

static void def_cfa(struct eval *e, uint64_t reg, int64_t off)
{
	e->row.cfa_kind = WP_CFI_CFA_REG;
	e->row.cfa_reg = reg;
	e->row.cfa_off = off;
}

/* DWARF 5, 6.4.2.2 wants the CFA to be a register and offset already.  libgcrypt's
 * assembly ends an expression by naming the register again; as in libgcc, the
 * offset is then the one from before the expression.
 */
static void def_cfa_offset(struct eval *e, int64_t off)
{
	if (e->row.cfa_kind == WP_CFI_CFA_UNSET)
		e->rc = -EBADMSG;
	e->row.cfa_off = off;
}

static void def_cfa_register(struct eval *e, uint64_t reg)
{
	if (e->row.cfa_kind == WP_CFI_CFA_UNSET)
		e->rc = -EBADMSG;
	e->row.cfa_kind = WP_CFI_CFA_REG;
	e->row.cfa_reg = reg;
}

/* Pass over an expression: the file offset of its length. */
static int64_t expression(struct eval *e)
{
	int64_t file_off = e->r.pos - e->fde->section->image->data;

	wp_read_skip(&e->r, wp_read_uleb(&e->r));
	return file_off;
}

static void def_cfa_expression(struct eval *e)
{
	e->row.cfa_kind = WP_CFI_CFA_EXPR;
	e->row.cfa_expr = expression(e);
}

static uint64_t read_reg(struct eval *e)
{
	return wp_cfi_reg(e->is_32bit, wp_read_uleb(&e->r));
}

static void negate_ra_state(struct eval *e)
{
#if defined(__aarch64__)
	e->row.is_ra_signed = !e->row.is_ra_signed;
#else
	e->rc = -ENOTSUP;
#endif
}

/* Run instruction OP, one of those whose operands follow it.  C does not order the
 * evaluation of arguments, so no call has two operands among its own. */
static void run_extended(struct eval *e, uint8_t op)
{
	struct wp_reader *r = &e->r;
	uint64_t reg;

	switch (op) {
	case CFA_NOP:
		return;
	case CFA_SET_LOC:
		set_loc(e);
		return;
	case CFA_ADVANCE_LOC1:
		advance(e, wp_read_u8(r));
		return;
	case CFA_ADVANCE_LOC2:
		advance(e, wp_read_u16(r));
		return;
	case CFA_ADVANCE_LOC4:
		advance(e, wp_read_u32(r));
		return;
	case CFA_MIPS_ADVANCE_LOC8:
		advance(e, wp_read_u64(r));
		return;
	case CFA_REMEMBER_STATE:
		remember_state(e);
		return;
	case CFA_RESTORE_STATE:
		restore_state(e);
		return;
	case CFA_DEF_CFA_OFFSET:
		def_cfa_offset(e, (int64_t)wp_read_uleb(r));
		return;
	case CFA_DEF_CFA_OFFSET_SF:
		def_cfa_offset(e, factored_sleb(e));
		return;
	case CFA_DEF_CFA_EXPRESSION:
		def_cfa_expression(e);
		return;
	case CFA_AARCH64_NEGATE_RA_STATE:
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		negate_ra_state(e);
		return;
	case CFA_GNU_ARGS_SIZE:
		/* Pushed arguments, of use to exception handlers only. */
		(void)wp_read_uleb(r);
		return;
	}
	/* All others begin with a register. */
	reg = read_reg(e);
	switch (op) {
	case CFA_OFFSET_EXTENDED:
		place(e, reg, WP_CFI_OFFSET, factored_uleb(e));
		return;
	case CFA_OFFSET_EXTENDED_SF:
		place(e, reg, WP_CFI_OFFSET, factored_sleb(e));
		return;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		place(e, reg, WP_CFI_OFFSET, factored(e, -wp_read_uleb(r)));
		return;
	case CFA_VAL_OFFSET:
		place(e, reg, WP_CFI_VAL_OFFSET, factored_uleb(e));
		return;
	case CFA_VAL_OFFSET_SF:
		place(e, reg, WP_CFI_VAL_OFFSET, factored_sleb(e));
		return;
	case CFA_RESTORE_EXTENDED:
		restore(e, reg);
		return;
	case CFA_UNDEFINED:
		place(e, reg, WP_CFI_UNDEFINED, 0);
		return;
	case CFA_SAME_VALUE:
		place(e, reg, WP_CFI_SAME, 0);
		return;
	case CFA_REGISTER:
		place(e, reg, WP_CFI_REGISTER, (int64_t)read_reg(e));
		return;
	case CFA_EXPRESSION:
		place(e, reg, WP_CFI_EXPR, expression(e));
		return;
	case CFA_VAL_EXPRESSION:
		place(e, reg, WP_CFI_VAL_EXPR, expression(e));
		return;
	case CFA_DEF_CFA:
		def_cfa(e, reg, (int64_t)wp_read_uleb(r));
		return;
	case CFA_DEF_CFA_SF:
		def_cfa(e, reg, factored_sleb(e));
		return;
	case CFA_DEF_CFA_REGISTER:
		def_cfa_register(e, reg);
		return;
	default:
		e->rc = -ENOTSUP;
	}
}

/* Run INSNS to their end or past PC_SVMA. */
static int run(struct eval *e, struct wp_reader insns)
{
	e->r = insns;
	while (wp_reader_left(&e->r) && !e->is_done && !e->rc) {
		uint8_t op = wp_read_u8(&e->r);
		uint8_t operand = (uint8_t)(op & ~CFA_PRIMARY);

		switch (op & CFA_PRIMARY) {
		case CFA_ADVANCE_LOC:
			advance(e, operand);
			break;
		case CFA_OFFSET:
			place(e, wp_cfi_reg(e->is_32bit, operand),
			      WP_CFI_OFFSET, factored_uleb(e));
			break;
		case CFA_RESTORE:
			restore(e, wp_cfi_reg(e->is_32bit, operand));
			break;
		default:
			run_extended(e, op);
		}
	}
	if (e->rc)
		return e->rc;
	return e->r.failed ? -EBADMSG : 0;
}

int wp_cfi_eval(const struct wp_cfi_fde *fde, uint64_t pc_svma,
		struct wp_cfi_row *ret)
{
	struct wp_cfi_row initial;
	struct eval e;
	int rc;

	e.fde = fde;
	e.pc_svma = pc_svma;
	e.loc_svma = fde->start_svma;
	e.is_done = false;
	e.is_32bit = wp_elf_image_is_32bit(fde->section->image);
	e.rc = 0;
	e.initial = NULL;
	/* No initialiser: it would clear all the states, 2 kB. */
	e.nstates = 0;
	e.row = (struct wp_cfi_row){ 0 };
	/* The psABIs' defaults: callee-saved registers keep their value, the
	 * stack pointer was the CFA. */
	e.row.reg[WP_CFI_SP_SLOT].kind = WP_CFI_VAL_OFFSET;

	if (wp_cfi_reg(e.is_32bit, fde->cie.ra_reg) != WP_CFI_RA_REG)
		return -ENOTSUP;
	rc = run(&e, fde->cie.insns);
	if (rc)
		return rc;
	initial = e.row;
	e.initial = &initial;
	/* The CIE's remember_state stack does not carry into the FDE. */
	e.nstates = 0;
	rc = run(&e, fde->insns);
	if (rc)
		return rc;
	if (e.row.cfa_kind == WP_CFI_CFA_UNSET)
		return -EBADMSG;
	*ret = e.row;
	return 0;
}
