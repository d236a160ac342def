/* SPDX-License-Identifier: Apache-2.0 */
/* probe_place.c - see wallprof/probe_place.h. */
#include "wallprof/probe_place.h"

#include <errno.h>
#include <string.h>

#ifdef __x86_64__
#include "insn.h"

/* Instructions among which a place is searched. */
enum { INSNS_MAX = 16 };

/* Without a prefix but REX.B, which says that they push r8 to r15, and with none of
 * those that make operands or distances 16 bits. */
static bool is_emulated(const struct wp_insn *i, const uint8_t *code)
{
	if (i->map == WP_MAP_0F)
		return (i->op & 0xf0) == 0x80 && code[0] == 0x0f;
	if (i->map != WP_MAP_ONE_BYTE)
		return false;
	if ((i->op & 0xf8) == 0x50)
		return code[0] == i->op || (code[0] == 0x41 && i->len == 2);
	if (code[0] != i->op)
		return false;
	/* nop, jcc, call, jmp. */
	return i->op == 0x90 || (i->op & 0xf0) == 0x70 || i->op == 0xe8 ||
	       i->op == 0xe9 || i->op == 0xeb;
}

/* What follows I, which is not emulated, may not be what is executed next; or I changes
 * the stack pointer, which wp_insn_writes does not say of it. */
static bool ends_search(const struct wp_insn *i)
{
	if (i->vector)
		return false;
	if (i->map == WP_MAP_0F)
		return (i->op & 0xf0) == 0x80 || i->op == 0x05 ||
		       i->op == 0x0b || i->op == 0x34 || i->op == 0x35 ||
		       (i->op & 0xf6) == 0xa0;
	if (i->map != WP_MAP_ONE_BYTE)
		return false;
	return (i->op & 0xf0) == 0x50 || (i->op & 0xf0) == 0x70 ||
	       (i->op >= 0xe8 && i->op <= 0xeb) || i->op == 0x8f ||
	       i->op == 0x9d || (i->op >= 0xc2 && i->op <= 0xc3) ||
	       (i->op >= 0xc8 && i->op <= 0xcf) ||
	       (i->op >= 0xe0 && i->op <= 0xe3) || i->op == 0xf1 ||
	       i->op == 0xf4 || i->op == 0x68 || i->op == 0x6a ||
	       i->op == 0x9c || i->op == 0xfe || i->op == 0xff;
}

int wp_probe_place(const uint8_t *code, size_t len, unsigned int args,
		   bool wants_return)
{
	static const uint8_t registers[] = { WP_RDI, WP_RSI, WP_RDX, WP_RCX };
	uint32_t keep = wants_return ? 1u << WP_RSP : 0;
	size_t at = 0;

	for (size_t i = 0; i < sizeof(registers); i++)
		if (args >> i & 1)
			keep |= 1u << registers[i];
	for (int n = 0; n < INSNS_MAX; n++) {
		struct wp_insn insn;

		if (!wp_insn_decode(&insn, code + at, len - at))
			break;
		if (is_emulated(&insn, code + at))
			return (int)at;
		if (ends_search(&insn) || wp_insn_writes(&insn) & keep)
			break;
		at += insn.len;
	}
	return -ENOENT;
}

bool wp_probe_next_jump(const uint8_t *code, size_t len, size_t *at,
			int32_t *ret_distance)
{
	struct wp_insn insn;

	while (*at < len && wp_insn_decode(&insn, code + *at, len - *at)) {
		const uint8_t *i = code + *at;

		*at += insn.len;
		if (insn.map != WP_MAP_ONE_BYTE || insn.op != 0xe9 ||
		    insn.len != 5)
			continue;
		memcpy(ret_distance, i + 1, sizeof(*ret_distance));
		return true;
	}
	return false;
}

bool wp_probe_first_call(const uint8_t *code, size_t len, size_t *ret_at,
			 int32_t *ret_distance)
{
	struct wp_insn insn;

	for (size_t at = 0;
	     at < len && wp_insn_decode(&insn, code + at, len - at);) {
		at += insn.len;
		if (insn.map != WP_MAP_ONE_BYTE)
			continue;
		if (insn.op >= 0xc2 && insn.op <= 0xc3)
			return false;
		if (insn.op != 0xe8 || insn.len != 5)
			continue;
		memcpy(ret_distance, code + at - 4, sizeof(*ret_distance));
		*ret_at = at;
		return true;
	}
	return false;
}
#else
bool wp_probe_first_call(const uint8_t *code, size_t len, size_t *ret_at,
			 int32_t *ret_distance)
{
#ifdef __aarch64__
	for (size_t at = 0; at + 4 <= len; at += 4) {
		uint32_t insn;

		memcpy(&insn, code + at, sizeof(insn));
		/* ret */
		if (insn == 0xd65f03c0)
			return false;
		/* bl: 26 bits, in instructions. */
		if (insn >> 26 != 0x25)
			continue;
		*ret_distance = (int32_t)(insn << 6) >> 4;
		*ret_at = at;
		return true;
	}
#else
	(void)code;
	(void)len;
	(void)ret_at;
	(void)ret_distance;
#endif
	return false;
}

bool wp_probe_next_jump(const uint8_t *code, size_t len, size_t *at,
			int32_t *ret_distance)
{
	(void)code;
	(void)len;
	(void)at;
	(void)ret_distance;
	return false;
}

int wp_probe_place(const uint8_t *code, size_t len, unsigned int args,
		   bool wants_return)
{
	(void)code;
	(void)len;
	(void)args;
	(void)wants_return;
	return -ENOTSUP;
}
#endif
