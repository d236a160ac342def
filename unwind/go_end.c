/* SPDX-License-Identifier: Apache-2.0 */
/* go_end.c - see go_end.h.
 *
 * On x86-64 Go's linker describes a stack's first functions like any other: by a
 * return address below the CFA, where there is none, but perhaps a word that the
 * stack's last owner left (cmd/link, dwarf.go: "TODO: similar mark on non-LR
 * architectures").  Nor has rbp a rule.  On aarch64 the return address of most is marked
 * undefined, but not where a stack was left for the thread's own.  So the functions are
 * known by their code: runtime/asm_amd64.s, sys_linux_amd64.s and those of arm64.
 */
#include "go_end.h"

enum { CODE_MAX = 36, ANY = -1 };

/* Code around a call. */
struct root {
	/* It is at the start of its function; at the end. */
	bool is_start, is_end;
	/* Offset of the byte before the call's return address. */
	uint8_t at;
	/* Length of the code. */
	uint8_t len;
	/* enum wp_step_result. */
	uint8_t result;
	int16_t code[CODE_MAX];
};

/* clang-format off */
static const struct root roots[] = {
#if defined(__x86_64__)
	/* goexit: nop; call goexit1; nop.  Every goroutine's first function
	 * returns to the second byte, behind no call: newproc1 put it there. */
	{ true, true, 0, 7, WP_STEP_ROOT,
	  { 0x90, 0xe8, ANY, ANY, ANY, ANY, 0x90 } },
	/* clone in the child, on a stack of which nothing is used: call *r12;
	 * 1: exit(111); jmp 1b. */
	{ false, true, 2, 17, WP_STEP_ROOT,
	  { 0x41, 0xff, 0xd4, 0xbf, 0x6f, 0, 0, 0, 0xb8, 0x3c, 0, 0, 0, 0x0f,
	    0x05, 0xeb, 0xf2 } },
	/* mcall, which has left the goroutine's stack for good and starts anew
	 * on the thread's: mov 0x38(r14), rsp; push rax; mov (rdx), r12;
	 * call *r12; pop rax; jmp badmcall2. */
	{ false, false, 10, 13, WP_STEP_ROOT,
	  { 0x49, 0x8b, 0x66, 0x38, 0x50, 0x4c, 0x8b, 0x22, 0x41, 0xff, 0xd4,
	    0x58, 0xe9 } },
	/* In later versions with mov $0, rbp before the push, */
	{ false, false, 17, 20, WP_STEP_ROOT,
	  { 0x49, 0x8b, 0x66, 0x38, 0x48, 0xc7, 0xc5, 0, 0, 0, 0, 0x50, 0x4c,
	    0x8b, 0x22, 0x41, 0xff, 0xd4, 0x58, 0xe9 } },
	/* with a nop behind the call, */
	{ false, false, 10, 14, WP_STEP_ROOT,
	  { 0x49, 0x8b, 0x66, 0x38, 0x50, 0x4c, 0x8b, 0x22, 0x41, 0xff, 0xd4,
	    0x90, 0x58, 0xe9 } },
	/* and with both. */
	{ false, false, 17, 21, WP_STEP_ROOT,
	  { 0x49, 0x8b, 0x66, 0x38, 0x48, 0xc7, 0xc5, 0, 0, 0, 0, 0x50, 0x4c,
	    0x8b, 0x22, 0x41, 0xff, 0xd4, 0x90, 0x58, 0xe9 } },
	/* Go 1.27 writes that as mov $0, ebp. */
	{ false, false, 15, 19, WP_STEP_ROOT,
	  { 0x49, 0x8b, 0x66, 0x38, 0xbd, 0, 0, 0, 0, 0x50, 0x4c, 0x8b, 0x22,
	    0x41, 0xff, 0xd4, 0x90, 0x58, 0xe9 } },
	/* systemstack, which goes back: call *rdi; mov fs:-8, rax (g0);
	 * mov 0x30(rax), rbx (m); mov curg(rbx), rax; mov rax, fs:-8;
	 * mov 0x38(rax), rsp.  Above it on the thread's stack is what the
	 * thread left there when it started. */
	{ false, false, 1, 35, WP_STEP_UNKNOWN_REG,
	  { 0xff, 0xd7, 0x64, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff,
	    0x48, 0x8b, 0x58, 0x30, 0x48, 0x8b, 0x83, ANY, ANY, ANY, ANY,
	    0x64, 0x48, 0x89, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff,
	    0x48, 0x8b, 0x60, 0x38 } },
	/* morestack: mov 0x38(rbx), rsp; call newstack, which goes on with the
	 * goroutine, or another, and does not come back; call abort; ret. */
	{ false, true, 8, 15, WP_STEP_ROOT,
	  { 0x48, 0x8b, 0x63, 0x38, 0xe8, ANY, ANY, ANY, ANY, 0xe8, ANY, ANY,
	    ANY, ANY, 0xc3 } },
	/* In later versions with mov gobuf_bp(rbx), rbp before the call, */
	{ false, true, 12, 19, WP_STEP_ROOT,
	  { 0x48, 0x8b, 0x63, 0x38, 0x48, 0x8b, 0x6b, ANY, 0xe8, ANY, ANY, ANY,
	    ANY, 0xe8, ANY, ANY, ANY, ANY, 0xc3 } },
	/* and with mov $0, rbp. */
	{ false, true, 15, 22, WP_STEP_ROOT,
	  { 0x48, 0x8b, 0x63, 0x38, 0x48, 0xc7, 0xc5, 0, 0, 0, 0, 0xe8, ANY,
	    ANY, ANY, ANY, 0xe8, ANY, ANY, ANY, ANY, 0xc3 } },
	/* Or with mov $0, ebp. */
	{ false, true, 13, 20, WP_STEP_ROOT,
	  { 0x48, 0x8b, 0x63, 0x38, 0xbd, 0, 0, 0, 0, 0xe8, ANY, ANY, ANY, ANY,
	    0xe8, ANY, ANY, ANY, ANY, 0xc3 } },
#elif defined(__aarch64__)
	/* goexit: nop (mov x0, x0); bl goexit1.  It is returned to behind the nop. */
	{ true, false, 3, 8, WP_STEP_ROOT,
	  { 0xe0, 0x03, 0x00, 0xaa, ANY, ANY, ANY, ANY } },
	/* clone in the child: blr x0; again: exit(111). */
	{ false, false, 3, 16, WP_STEP_ROOT,
	  { 0x00, 0x00, 0x3f, 0xd6, 0xe0, 0x0d, 0x80, 0x52, 0xa8, 0x0b, 0x80,
	    0xd2, 0x01, 0x00, 0x00, 0xd4 } },
	/* mcall: stur xzr, [sp, -16]; sub sp, sp, 16; ldr x4, [x26]; blr x4;
	 * b badmcall2. */
	{ false, false, 15, 20, WP_STEP_ROOT,
	  { 0xff, 0x03, 0x1f, 0xf8, 0xff, 0x43, 0x00, 0xd1, 0x44, 0x03, 0x40,
	    0xf9, 0x80, 0x00, 0x3f, 0xd6, ANY, ANY, ANY, 0x14 } },
	/* systemstack: blr x3; ldr x3, [x28, 0x30] (m); ldr x28, [x3, curg];
	 * bl save_g; ldr x0, [x28, 0x38]; mov sp, x0. */
	{ false, false, 3, 24, WP_STEP_UNKNOWN_REG,
	  { 0x60, 0x00, 0x3f, 0xd6, 0x83, 0x1b, 0x40, 0xf9, 0x7c, ANY, ANY,
	    0xf9, ANY, ANY, ANY, ANY, 0x80, 0x1f, 0x40, 0xf9, 0x1f, 0x00, 0x00,
	    0x91 } },
	/* morestack: str xzr, [sp, -16]!; bl newstack; an undefined
	 * instruction. */
	{ false, false, 7, 12, WP_STEP_ROOT,
	  { 0xff, 0x0f, 0x1f, 0xf8, ANY, ANY, ANY, ANY, 0x00, 0x17, 0xa7,
	    0xbe } },
#endif
};
/* clang-format on */

static bool is_code(const struct root *root, const uint8_t *bytes)
{
	for (unsigned int i = 0; i < root->len; i++)
		if (root->code[i] != ANY && root->code[i] != bytes[i])
			return false;
	return true;
}

static bool is_at(const struct root *root, struct wp_elf_image *image,
		  uint64_t start_svma, uint64_t end_svma, uint64_t svma)
{
	uint64_t start = svma - root->at, off;
	const uint8_t *bytes;

	if (svma - start_svma < root->at || end_svma - start < root->len ||
	    (root->is_start && start != start_svma) ||
	    (root->is_end && start + root->len != end_svma) ||
	    !wp_elf_image_offset(image, start, &off))
		return false;
	bytes = wp_elf_image_at(image, off, root->len);
	return bytes && is_code(root, bytes);
}

enum wp_step_result wp_go_end(struct wp_elf_image *image, uint64_t start_svma,
			      uint64_t end_svma, uint64_t svma)
{
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (is_at(&roots[i], image, start_svma, end_svma, svma))
			return (enum wp_step_result)roots[i].result;
	return WP_STEP_OK;
}
