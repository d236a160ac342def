/* SPDX-License-Identifier: Apache-2.0 */
/* insn.h - decode x86-64 instructions: their length, and what they write.
 *
 * Layer: unwind.  Private to unwind/.  Registers have their machine numbers,
 * not DWARF's.
 */
#ifndef WP_INSN_H
#define WP_INSN_H

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
	/* Instead of the base register of an operand in memory: there is none;
	 * rip, which is the next instruction's address. */
	WP_NO_BASE = 16,
	WP_RIP_BASE = 17,

	/* The longest instruction (SDM vol. 2, 2.3.11). */
	WP_INSN_MAX = 15,
};

/* Opcode maps (SDM vol. 2, appendix A). */
enum wp_insn_map {
	WP_MAP_ONE_BYTE,
	WP_MAP_0F,
	WP_MAP_0F38,
	WP_MAP_0F3A,
	/* With EVEX only. */
	WP_MAP_5 = 5,
	WP_MAP_6,
};

struct wp_insn {
	uint8_t len;
	/* enum wp_insn_map. */
	uint8_t map;
	uint8_t op;
	/* Vector prefix: 0 none, 1 VEX, 2 EVEX; and the register in it. */
	uint8_t vector;
	uint8_t vvvv;
	/* Operands have 64 bits (REX.W); 16 bits (66). */
	bool wide;
	bool narrow;
	/* Prefix F3, or what stands for it in a vector prefix. */
	bool rep;
	/* There is a REX prefix: byte registers 4 to 7 are spl to dil. */
	bool rex;
	/* fs or gs is added to the address of the operand in memory. */
	bool segment;
	bool has_modrm;
	/* ModRM's fields, registers with REX's bits.  Without ModRM, RM is the
	 * register in the opcode's low bits. */
	uint8_t mod;
	uint8_t reg;
	uint8_t rm;
	/* The operand in memory (mod != 3) is at BASE + DISP, and an index. */
	uint8_t base;
	bool has_index;
	int32_t disp;
	/* The immediate operand, sign-extended; a branch's distance. */
	int64_t imm;
};

/* Decode the instruction at CODE[0..LEFT).  False if it is none of user code, is
 * not known, or goes on past LEFT.
 */
bool wp_insn_decode(struct wp_insn *ret, const uint8_t *code, size_t left);

/* General registers that INSN may write, a bit each: too many rather than too
 * few, but for rsp where INSN is a push, a pop or a call.
 */
uint32_t wp_insn_writes(const struct wp_insn *insn);

#endif
