/* SPDX-License-Identifier: Apache-2.0 */
/* heap_trap.c - see heap_trap.h. */
#include "heap_trap.h"

#if defined(__x86_64__)
/* How long is the instruction at PLACE if it is a push that the kernel has made for a
 * thread with REGS?  Then the register is on the stack, where a return address was
 * before.  0: it has not. */
static unsigned int pushed_len(const struct wp_heap_place *place,
			       const struct wp_mem *mem,
			       const struct wp_regs *regs)
{
	/* DWARF's numbers, in the order of the code; r8 to r15 have a prefix. */
	static const uint8_t dwarf[] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	enum { REX_B = 0x41, R8 = 8 };
	unsigned int len = place->own[0] == REX_B ? 2 : 1;
	uint8_t op = place->own[len - 1];
	unsigned int n = len == 2 ? R8 + (op & 7) : dwarf[op & 7];
	uint64_t word;

	return (op & 0xf8) == 0x50 && wp_reg_known(regs, n) &&
			       mem->read(mem->ctx, regs->v[WP_REG_SP], &word,
					 sizeof(word)) == WP_MEM_OK &&
			       word == regs->v[n] ?
		       len :
		       0;
}

void wp_heap_trap_leave(const struct wp_heap_sites *sites,
			const struct wp_mem *mem, struct wp_regs *regs)
{
	uint64_t pc_avma = regs->v[WP_REG_PC];

	if (!wp_reg_known(regs, WP_REG_PC))
		return;
	/* The trap is of one byte. */
	for (size_t i = 0; i < sites->nplaces; i++) {
		const struct wp_heap_place *place = &sites->places[i];

		if (pc_avma - place->avma > 1)
			continue;
		wp_reg_set(regs, WP_REG_PC,
			   place->avma + pushed_len(place, mem, regs));
		return;
	}
}
#else
void wp_heap_trap_leave(const struct wp_heap_sites *sites,
			const struct wp_mem *mem, struct wp_regs *regs)
{
	(void)sites;
	(void)mem;
	(void)regs;
}
#endif
