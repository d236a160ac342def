/* SPDX-License-Identifier: Apache-2.0 */
/* probe_place.h - where in a function a uprobe is cheap.
 *
 * Layer: unwind.
 *
 * A uprobe replaces an instruction.  The kernel emulates some of them (0.8 us per hit
 * was measured); all others it executes out of line, one step at a time (10 to 16 us).
 * x86-64: arch/x86/kernel/uprobes.c, push_setup_xol_ops and branch_setup_xol_ops.
 */
#ifndef WP_PROBE_PLACE_H
#define WP_PROBE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The offset in CODE[0..LEN), a function's first bytes, of the first instruction that
 * the kernel emulates and that every call reaches with the arguments in ARGS (bit N:
 * the Nth integer argument of the System V ABI) still in their registers; if
 * WANTS_RETURN, with the stack pointer as at the function's entry, where the kernel
 * takes the return address from.
 *
 * -ENOENT: there is none among the first instructions; -ENOTSUP: this machine is not
 * x86-64. */
int wp_probe_place(const uint8_t *code, size_t len, unsigned int args,
		   bool wants_return);

/* Find the first jump (x86-64's "jmp" with a distance of 32 bits) in CODE[*AT..LEN), a
 * function's instructions from its beginning on: true, *AT behind it and the distance from
 * there.  False: there is none in what can be decoded. */
bool wp_probe_next_jump(const uint8_t *code, size_t len, size_t *at,
			int32_t *ret_distance);

/* Find the first call with a distance in CODE[0..LEN), a function's instructions from its
 * beginning on, before any return: true, *RET_AT where the distance counts from.  False:
 * there is none in what can be decoded. */
bool wp_probe_first_call(const uint8_t *code, size_t len, size_t *ret_at,
			 int32_t *ret_distance);

#endif
