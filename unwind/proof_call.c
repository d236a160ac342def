/* SPDX-License-Identifier: Apache-2.0 */
/* proof_call.c - see proof_call.h. */
#include "arch.h"

#if defined(__x86_64__)

#include <string.h>

#include "insn.h"
#include "proof_call.h"

enum {
	/* Bytes from an entry point to behind its last call; at most, of what is
	 * known.  Further on, only where the code ends behind that call. */
	ENTRY_CODE = 64,
	ENTRY_CODE_MAX = 128,

	OP_RET = 0xc3,
	OP_HLT = 0xf4,
	OP_JMP = 0xe9,
	OP_JMP_SHORT = 0xeb,
	OP_GROUP_5 = 0xff,
	GROUP_5_JMP = 4,
};

/* What a call through the word at SLOT_AVMA calls: nothing that is known, where the
 * word is not read. */
static void find_slot_call(struct wp_proof *p, uint64_t slot_avma,
			   struct wp_proof_call *ret)
{
	uint64_t target;

	if (!wp_flow_slot(p->flow, slot_avma, &target))
		return;
	if (wp_unwind_find_module(p->modules, target))
		ret->target_avma = target;
	else
		ret->by_pointer = true;
}

struct wp_proof_call wp_proof_find_call(struct wp_proof *p,
					uint64_t return_avma)
{
	const struct wp_unwind_module *m = return_avma ?
						   wp_unwind_find_module(
							   p->modules,
							   return_avma - 1) :
						   NULL;
	struct wp_proof_call call = { 0 };
	uint8_t code[6];
	uint64_t target;
	int32_t disp;

	if (!m)
		return call;
	/* The kernel calls signal handlers and has them return there. */
	if (wp_arch_is_sigreturn(m, p->step->mem, return_avma)) {
		call.by_pointer = true;
		return call;
	}
	if (!wp_arch_follows_call(m, p->step->mem, return_avma) ||
	    wp_code_read(m, p->step->mem, return_avma - 6, code, 6))
		return call;
	memcpy(&disp, code + 2, sizeof(disp));
	target = return_avma + (uint64_t)(int64_t)disp;
	if (code[1] == 0xe8 && wp_unwind_find_module(p->modules, target))
		call.target_avma = target;
	/* *disp(%rip), a slot of the GOT. */
	else if (code[0] == 0xff && code[1] == 0x15)
		find_slot_call(p, target, &call);
	else
		call.by_pointer = wp_arch_calls_by_pointer(m, p->step->mem,
							   return_avma);
	return call;
}

bool wp_proof_ends_thread(struct wp_proof *p, uint64_t return_avma)
{
	/* mov %eax,%edi or mov %rax,%rdi; then xor %eax,%eax; mov $60,%al;
	 * syscall (musl's clone), or mov $60,%eax; syscall (glibc's). */
	static const uint8_t by_byte[] = { 0x31, 0xc0, 0xb0, 60, 0x0f, 0x05 };
	static const uint8_t at_once[] = { 0xb8, 60, 0, 0, 0, 0x0f, 0x05 };
	uint8_t code[10], *c = code;

	if (wp_flow_code(p->flow, return_avma, code, sizeof(code)) !=
	    sizeof(code))
		return false;
	c += c[0] == 0x48;
	if (c[0] == 0x89 && c[1] == 0xc7)
		c += 2;
	return !memcmp(c, by_byte, sizeof(by_byte)) ||
	       !memcmp(c, at_once, sizeof(at_once));
}

/* Does INSN, of a program's first instructions, lead elsewhere for good? */
static bool leads_away(const struct wp_insn *insn)
{
	if (insn->map != WP_MAP_ONE_BYTE)
		return false;
	return insn->op == OP_RET || insn->op == OP_JMP ||
	       insn->op == OP_JMP_SHORT ||
	       (insn->op == OP_GROUP_5 && insn->reg == GROUP_5_JMP);
}

/* Does the code end at PC_AVMA, behind a call that never returns? */
static bool is_behind_last_call(struct wp_proof *p, uint64_t pc_avma)
{
	uint8_t op;

	return p->step->is_return && wp_flow_code(p->flow, pc_avma, &op, 1) &&
	       (op == OP_HLT || op == OP_RET);
}

/* Is PC_AVMA in the first code of its program or loader, which has no caller (psABI
 * 3.4.1) and often no unwind info? */
static bool is_entry_code(struct wp_proof *p, uint64_t pc_avma)
{
	const struct wp_unwind_module *m = p->step->module;
	uint64_t entry_avma = m->bias + m->image->entry_svma;
	uint64_t len = pc_avma - entry_avma, at = 0;
	uint8_t code[ENTRY_CODE_MAX];
	struct wp_insn insn;

	if (!m->image->entry_svma || len > sizeof(code) ||
	    (len > ENTRY_CODE && !is_behind_last_call(p, pc_avma)) ||
	    wp_flow_code(p->flow, entry_avma, code, len) != len)
		return false;
	while (at < len && wp_insn_decode(&insn, code + at, len - at) &&
	       !leads_away(&insn))
		at += insn.len;
	return at == len;
}

bool wp_proof_clears_fp(struct wp_proof *p)
{
	/* sub or xor of rbp and rbp. */
	static const char *const clears[] = { "\x29\xed", "\x2b\xed",
					      "\x31\xed", "\x33\xed" };
	uint8_t code[24];

	if (wp_flow_code(p->flow, p->pc_avma - sizeof(code), code,
			 sizeof(code)) != sizeof(code))
		return false;
	for (size_t i = 0; i < sizeof(clears) / sizeof(*clears); i++)
		if (memmem(code, sizeof(code), clears[i], 2))
			return true;
	return false;
}

bool wp_proof_is_first_frame(struct wp_proof *p)
{
	return (p->step->is_return && wp_proof_ends_thread(p, p->pc_avma)) ||
	       is_entry_code(p, p->pc_avma);
}

#endif
