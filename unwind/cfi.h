/* SPDX-License-Identifier: Apache-2.0 */
/* cfi.h - call frame information, from bytes to one row.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * Formats: LSB 5.0, 10.6 (.eh_frame, .eh_frame_hdr) and DWARF 5, 6.4
 * (.debug_frame).  The bytes are hostile: every length is checked, every loop
 * is bounded by bytes consumed.  Nothing here allocates.
 */
#ifndef WP_CFI_H
#define WP_CFI_H

#include "cfi_arch.h"
#include "step.h"
#include "wallprof/elf_image.h"
#include "wallprof/reader.h"

/* A range of CIEs and FDEs.  Their offsets (_off) are from its start. */
struct wp_cfi_section {
	/* Borrowed. */
	struct wp_elf_image *image;
	struct wp_elf_range range;
	/* The section is .debug_frame, not .eh_frame. */
	bool is_debug;
	/* The range ends where the section does.  If not, it goes on to the end
	 * of the segment, and a terminator tells where the section ends. */
	bool is_exact;
};

/* A CIE or an FDE. */
struct wp_cfi_entry {
	/* Of the entry, of the next one, and of an FDE's CIE. */
	uint64_t off;
	uint64_t next_off;
	uint64_t cie_off;
	bool is_cie;
	/* The bytes behind the CIE id or CIE pointer. */
	struct wp_reader body;
};

struct wp_cfi_cie {
	uint64_t off;
	/* Factors of advances and of offsets. */
	uint64_t code_align;
	int64_t data_align;
	/* DWARF number of the return address column, as in the file. */
	uint64_t ra_reg;
	/* DW_EH_PE_* of the FDEs' addresses. */
	uint8_t fde_enc;
	/* FDEs have augmentation data ('z'). */
	bool has_aug_data;
	/* The code is a signal trampoline ('S'). */
	bool is_signal;
	/* The initial instructions. */
	struct wp_reader insns;
};

struct wp_cfi_fde {
	/* Borrowed. */
	const struct wp_cfi_section *section;
	/* Code covered: START <= pc < END. */
	uint64_t start_svma;
	uint64_t end_svma;
	struct wp_reader insns;
	struct wp_cfi_cie cie;
};

/* The bytes [OFF, OFF + LEN) of SECTION, or NULL. */
const uint8_t *wp_cfi_section_at(const struct wp_cfi_section *section,
				 uint64_t off, uint64_t len);

/* Read a pointer of encoding ENC (LSB 5.0, 10.5.1) from R, whose bytes lie in
 * SECTION's image.  DATAREL_SVMA: the base of DW_EH_PE_datarel; 0: there is none.
 * False, and R failed, if the bytes are not there or ENC is not handled.
 */
bool wp_cfi_read_pointer(const struct wp_cfi_section *section,
			 struct wp_reader *r, uint8_t enc,
			 uint64_t datarel_svma, uint64_t *ret);

/* Read the entry at OFF.  Returns 0; -ENODATA at the end of the entries; -EBADMSG
 * if it is malformed.
 */
WP_MUST_CHECK
int wp_cfi_read_entry(const struct wp_cfi_section *section, uint64_t off,
		      struct wp_cfi_entry *ret);
/* The same, for reading all entries in turn: a zero length, which ends a list of
 * entries, is passed over if another list may follow. */
WP_MUST_CHECK
int wp_cfi_next_entry(const struct wp_cfi_section *section, uint64_t off,
		      struct wp_cfi_entry *ret);

/* Parse the CIE, or the FDE and its CIE, at OFF.  Returns 0; -EBADMSG if it is
 * malformed; -ENOTSUP if it is of a kind that is not handled. */
WP_MUST_CHECK
int wp_cfi_parse_cie(const struct wp_cfi_section *section, uint64_t off,
		     struct wp_cfi_cie *ret);
WP_MUST_CHECK
int wp_cfi_parse_fde(const struct wp_cfi_section *section, uint64_t off,
		     struct wp_cfi_fde *ret);
/* The same of an FDE whose entry and CIE were read before. */
WP_MUST_CHECK
int wp_cfi_parse_fde_body(const struct wp_cfi_section *section,
			  const struct wp_cfi_entry *entry,
			  const struct wp_cfi_cie *cie, struct wp_cfi_fde *ret);

/* Where a register of the caller is: DWARF 5, 6.4.1. */
enum wp_cfi_kind {
	/* In the register itself: not mentioned, or DW_CFA_same_value. */
	WP_CFI_SAME,
	WP_CFI_UNDEFINED,
	/* In memory at CFA + val. */
	WP_CFI_OFFSET,
	/* It is CFA + val. */
	WP_CFI_VAL_OFFSET,
	/* In register val. */
	WP_CFI_REGISTER,
	/* In memory at the value of the expression whose length is at file
	 * offset val. */
	WP_CFI_EXPR,
	/* It is the value of that expression. */
	WP_CFI_VAL_EXPR,
	/* In memory at register val % 64 + val / 64, as most expressions say.
	 * In rules alone, not in rows. */
	WP_CFI_AT,
};

enum wp_cfi_cfa_kind {
	WP_CFI_CFA_UNSET,
	/* Register + offset. */
	WP_CFI_CFA_REG,
	WP_CFI_CFA_EXPR,
	/* Expressions that were recognised, in rules alone: the word at register
	 * + offset; of a PLT stub that has pushed a word from its byte OFFSET
	 * on. */
	WP_CFI_CFA_DEREF,
	WP_CFI_CFA_PLT,
	/* Of Go's code, not of CFI: the code may be on another stack (see
	 * go_switch.h); register + offset until it goes there. */
	WP_CFI_CFA_SWITCH,
};

struct wp_cfi_place {
	enum wp_cfi_kind kind;
	int64_t val;
};

/* The rules that hold at one pc. */
struct wp_cfi_row {
	enum wp_cfi_cfa_kind cfa_kind;
	uint64_t cfa_reg;
	/* Stays while the CFA is an expression: see def_cfa_register() in
	 * cfi_eval.c. */
	int64_t cfa_off;
	/* File offset of the CFA's expression's length. */
	int64_t cfa_expr;
	/* aarch64: the return address is signed. */
	bool is_ra_signed;
	/* A signal handler called the code in its caller's name: the caller's pc
	 * is where it was, not behind a call. */
	bool is_injected;
	/* Slots, a bit each, whose place was in the frame, not below sp, in this
	 * row or in one before it in the same FDE. */
	uint32_t in_frame;
	/* By slot of cfi_arch.h. */
	struct wp_cfi_place reg[WP_CFI_NTRACKED];
};

/* The row that holds at PC_SVMA, which is in FDE.
 *
 * Returns 0; -EBADMSG if the program is malformed; -ENOTSUP if it uses what is
 * not handled; -EOVERFLOW if it nests too deep.
 */
WP_MUST_CHECK
int wp_cfi_eval(const struct wp_cfi_fde *fde, uint64_t pc_svma,
		struct wp_cfi_row *ret);

/* Let ROW keep the registers that an epilogue has popped.  Compilers go on naming
 * the place that they came from.  It is below sp by then, where a stack copy does
 * not reach and a signal handler may write.
 */
void wp_cfi_keep_popped(struct wp_cfi_row *row);

/* The bytes of the expression whose length is at FILE_OFF; a failed reader if
 * IMAGE does not have them. */
struct wp_reader wp_cfi_expr_at(struct wp_elf_image *image, uint64_t file_off);

/* What an expression computes, where that has a shorter name. */
enum wp_cfi_shape {
	WP_CFI_SHAPE_OTHER,
	/* REG + OFF. */
	WP_CFI_SHAPE_SUM,
	/* The word at REG + OFF. */
	WP_CFI_SHAPE_DEREF,
	/* The CFA of a lazy PLT entry, from whose byte OFF on there is a word more
	 * on the stack. */
	WP_CFI_SHAPE_PLT,
};

/* The shape of EXPR, which is in IMAGE, with *RET_REG (in struct wp_regs) and
 * *RET_OFF. */
enum wp_cfi_shape wp_cfi_expr_shape(struct wp_reader expr,
				    const struct wp_elf_image *image,
				    uint64_t *ret_reg, int64_t *ret_off);

/* Evaluate EXPR (DWARF 5, 2.5) over STEP's registers and memory.  *INITIAL is on
 * its stack at first, if INITIAL is not NULL.  Returns WP_STEP_OK and *RET, or
 * _BAD_INFO, _UNKNOWN_REG, or as wp_step_read.
 */
enum wp_step_result wp_cfi_expr(struct wp_reader expr,
				const struct wp_step *step,
				const uint64_t *initial, uint64_t *ret);

#endif
