/* SPDX-License-Identifier: Apache-2.0 */
/* guess_insn.h - x86-64 machine instructions: how long, and what they write.
 *
 * Layer: unwind.  Private to unwind/.  Registers go by their machine numbers,
 * not by DWARF's.
 */
#ifndef WP_GUESS_INSN_H
#define WP_GUESS_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Machine numbers (Intel SDM vol. 2, table 3-1). */
enum {
	WP_RAX = 0,
	WP_RCX = 1,
	WP_RDX = 2,
	WP_RBX = 3,
	WP_RSP = 4,
	WP_RBP = 5,
	WP_RSI = 6,
	WP_RDI = 7,
	WP_R8 = 8,
	WP_R12 = 12,
	WP_R15 = 15,
	WP_NGPRS = 16,
	/* Of an operand in memory: none; the instruction's own address. */
	WP_NO_BASE = 16,
	WP_RIP_BASE = 17,

	/* No instruction is longer. */
	WP_INSN_MAX = 15,
};

/* Opcode maps (SDM vol. 2, appendix A). */
enum wp_insn_map {
	WP_MAP_ONE_BYTE,
	WP_MAP_0F,
	WP_MAP_0F38,
	WP_MAP_0F3A,
	/* EVEX only. */
	WP_MAP_5 = 5,
	WP_MAP_6,
};

struct wp_insn {
	uint8_t len;
	/* enum wp_insn_map. */
	uint8_t map;
	uint8_t op;
	/* Vector prefix: 0 none, 1 VEX, 2 EVEX; and its second register. */
	uint8_t vector;
	uint8_t vvvv;
	/* Operands of 64 bits (REX.W), of 16 (66). */
	bool wide;
	bool narrow;
	/* Any REX prefix: byte registers 4 to 7 are spl to dil. */
	bool rex;
	/* A segment base is added: the operand is not where it seems. */
	bool segment;
	bool has_modrm;
	/* ModRM, registers with REX's bits. */
	uint8_t mod;
	uint8_t reg;
	uint8_t rm;
	/* Of the operand in memory (mod != 3). */
	uint8_t base;
	bool has_index;
	int32_t disp;
	/* Sign-extended; of branches the distance. */
	int64_t imm;
};

/* Decode what is at CODE, LEFT bytes of which may be looked at.  False: no
 * instruction of user code, or one that is not known, or not all there.
 */
bool wp_insn_decode(struct wp_insn *ret, const uint8_t *code, size_t left);

/* General registers that INSN may write, a bit each; of what pushes, pops and
 * calls do to rsp nothing is said.  Rather too many than too few.
 */
uint32_t wp_insn_writes(const struct wp_insn *insn);

#endif
