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

/* A range of CIEs and FDEs; offsets (_off) below are from its start. */
struct wp_cfi_section {
	/* Borrowed. */
	struct wp_elf_image *image;
	struct wp_elf_range range;
	/* .debug_frame, not .eh_frame. */
	bool is_debug;
	/* The range ends where the section does.  Else it is all the rest of a
	 * segment, and only a terminator tells. */
	bool is_exact;
};

/* What CIEs and FDEs have in common. */
struct wp_cfi_entry {
	uint64_t off;
	uint64_t next_off;
	/* Of an FDE. */
	uint64_t cie_off;
	bool is_cie;
	/* What follows the CIE id or pointer. */
	struct wp_reader body;
};

struct wp_cfi_cie {
	uint64_t off;
	uint64_t code_align;
	int64_t data_align;
	/* DWARF register of the return address. */
	uint64_t ra_reg;
	/* DW_EH_PE_* of the FDEs' addresses. */
	uint8_t fde_enc;
	/* FDEs have augmentation data ('z'). */
	bool has_aug_data;
	/* A signal trampoline ('S'). */
	bool is_signal;
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

/* Read an encoded pointer (LSB 5.0, 10.5.1) from R, whose bytes lie in
 * SECTION's image.  DATAREL_SVMA is what DW_EH_PE_datarel counts from, 0:
 * not handled.  False, with R failed, if it cannot be told.
 */
bool wp_cfi_read_pointer(const struct wp_cfi_section *section,
			 struct wp_reader *r, uint8_t enc,
			 uint64_t datarel_svma, uint64_t *ret);

/* The entry at OFF.  Returns 0; -ENODATA at the end of the entries; -EBADMSG.
 */
WP_MUST_CHECK
int wp_cfi_read_entry(const struct wp_cfi_section *section, uint64_t off,
		      struct wp_cfi_entry *ret);
/* The same, for reading all entries in turn: zero lengths that end one list
 * are passed over where another may follow. */
WP_MUST_CHECK
int wp_cfi_next_entry(const struct wp_cfi_section *section, uint64_t off,
		      struct wp_cfi_entry *ret);

/* Return 0; -EBADMSG if malformed; -ENOTSUP if of an unknown kind. */
WP_MUST_CHECK
int wp_cfi_parse_cie(const struct wp_cfi_section *section, uint64_t off,
		     struct wp_cfi_cie *ret);
WP_MUST_CHECK
int wp_cfi_parse_fde(const struct wp_cfi_section *section, uint64_t off,
		     struct wp_cfi_fde *ret);
/* The same for an entry and its CIE that are already read. */
WP_MUST_CHECK
int wp_cfi_parse_fde_body(const struct wp_cfi_section *section,
			  const struct wp_cfi_entry *entry,
			  const struct wp_cfi_cie *cie, struct wp_cfi_fde *ret);

/* Where a register of the caller is: DWARF 5, 6.4.1. */
enum wp_cfi_kind {
	/* Not mentioned, or DW_CFA_same_value. */
	WP_CFI_SAME,
	WP_CFI_UNDEFINED,
	/* In memory at CFA + val. */
	WP_CFI_OFFSET,
	/* CFA + val itself. */
	WP_CFI_VAL_OFFSET,
	/* In register val. */
	WP_CFI_REGISTER,
	/* In memory where the expression says; val is the file offset of its
	 * length. */
	WP_CFI_EXPR,
	/* What the expression says; the same. */
	WP_CFI_VAL_EXPR,
	/* In memory at register val % 64 + val / 64: what expressions are, most
	 * of them.  Not in a row, only in a rule. */
	WP_CFI_AT,
};

enum wp_cfi_cfa_kind {
	WP_CFI_CFA_UNSET,
	/* Register + offset. */
	WP_CFI_CFA_REG,
	WP_CFI_CFA_EXPR,
	/* Recognised expressions, only in a rule: the word at register +
	 * offset; a PLT stub whose push is done from byte OFFSET on. */
	WP_CFI_CFA_DEREF,
	WP_CFI_CFA_PLT,
	/* Of Go's code, not CFI's: register + offset, until it goes to another
	 * stack; the frame pointer + 2 words from then on. */
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
	/* Outlives an expression: see def_cfa_register() in cfi_eval.c. */
	int64_t cfa_off;
	/* File offset of the expression's length. */
	int64_t cfa_expr;
	/* aarch64: the return address is signed. */
	bool is_ra_signed;
	/* Slots, as bits, whose place was in the frame, not below sp, at this
	 * row or one that led to it. */
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

/* Let ROW keep the registers that an epilogue has popped.  Compilers go on
 * naming the place they came from, which is below sp by then: where a copy of
 * the stack does not reach, and a signal handler may write.
 */
void wp_cfi_keep_popped(struct wp_cfi_row *row);

/* The bytes of the expression whose length is at FILE_OFF; failed if absent. */
struct wp_reader wp_cfi_expr_at(struct wp_elf_image *image, uint64_t file_off);

/* Expressions that have a shorter name. */
enum wp_cfi_shape {
	WP_CFI_SHAPE_OTHER,
	/* REG + OFF. */
	WP_CFI_SHAPE_SUM,
	/* The word at REG + OFF. */
	WP_CFI_SHAPE_DEREF,
	/* The CFA of lazy PLT entries: OFF is the byte of the entry from which
	 * on there is a word more on the stack. */
	WP_CFI_SHAPE_PLT,
};

enum wp_cfi_shape wp_cfi_expr_shape(struct wp_reader expr, uint64_t *ret_reg,
				    int64_t *ret_off);

/* Evaluate EXPR (DWARF 5, 2.5) over STEP's registers and memory, INITIAL (may
 * be NULL) on the stack at first.  Returns WP_STEP_OK and *RET, or
 * _BAD_INFO, _UNKNOWN_REG, _UNREADABLE.
 */
enum wp_step_result wp_cfi_expr(struct wp_reader expr,
				const struct wp_step *step,
				const uint64_t *initial, uint64_t *ret);

#endif
