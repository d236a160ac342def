/* SPDX-License-Identifier: Apache-2.0 */
/* proof_start.c - see proof_start.h. */
#include "proof_start.h"

#include <string.h>

enum { ALIGNMENT = 16 };

bool wp_proof_sets_fp(const uint8_t *code)
{
	return !memcmp(code, "\x55\x48\x89\xe5", 4) ||
	       !memcmp(code, "\x55\x48\x8b\xec", 4);
}

bool wp_proof_makes_frame(const uint8_t *code)
{
	return code[0] == 0x53 || code[0] == 0x55 ||
	       (code[0] == 0x41 && code[1] >= 0x54 && code[1] <= 0x57) ||
	       !memcmp(code, "\x48\x83\xec", 3) ||
	       !memcmp(code, "\x48\x81\xec", 3);
}

bool wp_proof_may_start(const uint8_t *code, size_t at, uint64_t avma)
{
	const uint8_t *before = code + at - WP_START_BEFORE;
	/* ret; jmp; call of what does not return; ud2. */
	bool ends = before[4] == 0xc3 || before[3] == 0xeb ||
		    before[0] == 0xe9 || before[0] == 0xe8 ||
		    (before[3] == 0x0f && before[4] == 0x0b);

	if (wp_proof_sets_fp(code + at))
		return true;
	if (avma % ALIGNMENT)
		return before[4] == 0xc3 ||
		       (ends && wp_proof_makes_frame(code + at));
	/* nop, int3, hlt, a long nop's displacement. */
	return ends || memchr("\x90\xcc\xf4\x00", before[4], 4);
}
