/* SPDX-License-Identifier: Apache-2.0 */
/* arch_x86_64.c - see arch.h. */
#include "arch.h"

#if defined(__x86_64__)

#include <string.h>

enum {
	/* The longest indirect call without REX: ff /2, SIB, disp32. */
	CALL_MAX = 7,
	SYSCALL_LEN = 2,
	/* The call of clone, and the longest test of what it returned. */
	CLONE_LEN = 7,
	TEST_MAX = 10,
	MOV_EAX = 0xb8,
	/* DWARF numbers of rcx and rsi. */
	DW_RCX = 2,
	DW_RSI = 4,
};

uint64_t wp_arch_code_avma(uint64_t avma)
{
	return avma;
}

/* The length of the instruction at P if it is a call `ff /2`, else 0
 * (Intel SDM vol. 2, tables 2-2 and 2-3). */
static size_t indirect_call_len(const uint8_t *p)
{
	unsigned int mod = p[1] >> 6, rm = p[1] & 7;
	size_t len = 2;

	if (p[0] != 0xff || (p[1] >> 3 & 7) != 2)
		return 0;
	if (mod == 3)
		return len;
	if (rm == 4) {
		len++;
		if (mod == 0 && (p[2] & 7) == 5)
			len += 4;
	}
	if (mod == 0 && rm == 5)
		len += 4;
	return len + (mod == 1 ? 1 : 0) + (mod == 2 ? 4 : 0);
}

/* Read up to SIZE bytes of code before AVMA to the end of CODE[0..size): how many. */
static size_t read_before(const struct wp_unwind_module *module,
			  const struct wp_mem *mem, uint64_t avma,
			  uint8_t *code, size_t size)
{
	uint64_t room = avma - module->start_avma;
	size_t len = room < size ? (size_t)room : size;

	return wp_code_read(module, mem, avma - len, code + size - len, len) ?
		       0 :
		       len;
}

/* The same of a call, CODE being 0 where nothing was read. */
static size_t read_call_before(const struct wp_unwind_module *module,
			       const struct wp_mem *mem, uint64_t avma,
			       uint8_t code[CALL_MAX + 1])
{
	memset(code, 0, CALL_MAX + 1);
	return read_before(module, mem, avma, code, CALL_MAX);
}

static bool ends_in_indirect_call(const uint8_t code[CALL_MAX + 1], size_t len)
{
	for (size_t n = 2; n <= len; n++)
		if (indirect_call_len(code + CALL_MAX - n) == n)
			return true;
	return false;
}

bool wp_arch_follows_call(const struct wp_unwind_module *module,
			  const struct wp_mem *mem, uint64_t avma)
{
	uint8_t code[CALL_MAX + 1];
	size_t len = read_call_before(module, mem, avma, code);

	return (len >= 5 && code[CALL_MAX - 5] == 0xe8) ||
	       ends_in_indirect_call(code, len);
}

bool wp_arch_calls_by_pointer(const struct wp_unwind_module *module,
			      const struct wp_mem *mem, uint64_t avma)
{
	uint8_t code[CALL_MAX + 1];

	return ends_in_indirect_call(code,
				     read_call_before(module, mem, avma, code));
}

static bool code_is(const struct wp_unwind_module *module,
		    const struct wp_mem *mem, uint64_t avma, const void *bytes,
		    size_t len)
{
	uint8_t code[16];

	return len <= sizeof(code) &&
	       !wp_code_read(module, mem, avma, code, len) &&
	       !memcmp(code, bytes, len);
}

bool wp_arch_resumes_frame(const struct wp_unwind_module *module,
			   const struct wp_mem *mem, uint64_t avma)
{
	/* mov -n(%rbp),%rsp; and, in later versions, mov -n(%rbp),%rcx;
	 * lea 0(%rbp,%rcx,8),%rsp. */
	static const uint8_t at_once[] = { 0x48, 0x8b, 0x65 };
	static const uint8_t scaled[] = { 0x48, 0x8d, 0x64, 0xcd, 0x00 };
	static const uint8_t load[] = { 0x48, 0x8b, 0x4d };
	uint8_t code[9];

	if (wp_code_read(module, mem, avma, code, sizeof(code)) ||
	    code[3] < 0x80)
		return false;
	return !memcmp(code, at_once, sizeof(at_once)) ||
	       (!memcmp(code, load, sizeof(load)) &&
		!memcmp(code + 4, scaled, sizeof(scaled)));
}

/* Does CODE[0..len) compare eax or rax with 0, and leave to where errors go? */
static bool is_test_of_result(const uint8_t *code, size_t len)
{
	/* test or cmp $0; with REX.W in front or without. */
	static const uint8_t test[] = { 0x85, 0xc0 }, cmp[] = { 0x83, 0xf8, 0 };

	if (len && *code == 0x48)
		code++, len--;
	if (len >= sizeof(test) && !memcmp(code, test, sizeof(test)))
		code += sizeof(test), len -= sizeof(test);
	else if (len >= sizeof(cmp) && !memcmp(code, cmp, sizeof(cmp)))
		code += sizeof(cmp), len -= sizeof(cmp);
	else
		return false;
	/* jl */
	return !len || (len == 2 && code[0] == 0x7c) ||
	       (len == 6 && code[0] == 0x0f && code[1] == 0x8c);
}

/* Was clone told to leave the new thread on a copy of the caller's stack? */
static bool is_given_no_stack(const struct wp_step *step)
{
	const unsigned int reg = step->is_32bit ? DW_RCX : DW_RSI;

	return wp_reg_known(step->regs, reg) && !step->regs->v[reg];
}

bool wp_arch_is_behind_clone(const struct wp_step *step)
{
	/* mov $56,%eax or $435; syscall.  i386: $120 or $435; int $0x80. */
	static const uint8_t clones[2][2][CLONE_LEN] = {
		{ { MOV_EAX, 56, 0, 0, 0, 0x0f, 0x05 },
		  { MOV_EAX, 0xb3, 1, 0, 0, 0x0f, 0x05 } },
		{ { MOV_EAX, 120, 0, 0, 0, 0xcd, 0x80 },
		  { MOV_EAX, 0xb3, 1, 0, 0, 0xcd, 0x80 } },
	};
	const uint8_t(*own)[CLONE_LEN] = clones[step->is_32bit];
	uint8_t code[CLONE_LEN + TEST_MAX];
	size_t len;

	if (step->is_return || !step->module)
		return false;
	len = read_before(step->module, step->mem, step->regs->v[WP_REG_PC],
			  code, sizeof(code));
	for (size_t n = 0; n <= TEST_MAX && CLONE_LEN + n <= len; n++) {
		const uint8_t *clone = code + sizeof(code) - n - CLONE_LEN;

		/* Each walk comes here: hardly any code has the first byte. */
		if (*clone != MOV_EAX ||
		    (n && !is_test_of_result(clone + CLONE_LEN, n)))
			continue;
		if (!memcmp(clone, own[0], CLONE_LEN))
			return !is_given_no_stack(step);
		if (!memcmp(clone, own[1], CLONE_LEN))
			return true;
	}
	return false;
}

bool wp_arch_is_context_start(const struct wp_step *step)
{
	/* mov %rbx,%rsp; mov (%rsp),%rdi; test %rdi,%rdi; je. */
	static const uint8_t start[] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c,
					 0x24, 0x48, 0x85, 0xff, 0x74 };

	return step->is_return && step->module &&
	       code_is(step->module, step->mem, step->regs->v[WP_REG_PC], start,
		       sizeof(start));
}

bool wp_arch_is_sigreturn(const struct wp_unwind_module *module,
			  const struct wp_mem *mem, uint64_t pc_avma)
{
	/* __NR_rt_sigreturn is 15.  glibc and musl: mov $15,%rax; syscall. */
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 15,  0,
					0,    0,    0x0f, 0x05 };
	/* mov $15,%eax; syscall. */
	static const uint8_t narrow[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };
	uint8_t first;

	/* The first byte tells it from most code. */
	if (wp_code_read(module, mem, pc_avma, &first, 1))
		return false;
	if (first == wide[0])
		return code_is(module, mem, pc_avma, wide, sizeof(wide));
	if (first == narrow[0])
		return code_is(module, mem, pc_avma, narrow, sizeof(narrow));
	/* Stopped between the two instructions. */
	if (first == 0x0f &&
	    (code_is(module, mem, pc_avma - (sizeof(wide) - SYSCALL_LEN), wide,
		     sizeof(wide)) ||
	     code_is(module, mem, pc_avma - (sizeof(narrow) - SYSCALL_LEN),
		     narrow, sizeof(narrow))))
		return true;
	/* In the system call, as a CPU sample in the kernel has it. */
	return code_is(module, mem, pc_avma - sizeof(wide), wide,
		       sizeof(wide)) ||
	       code_is(module, mem, pc_avma - sizeof(narrow), narrow,
		       sizeof(narrow));
}

/* DWARF number of each register in struct sigcontext_64, in its order
 * (arch/x86/include/uapi/asm/sigcontext.h). */
/* clang-format off */
static const uint8_t sigcontext_regs[] = {
	/* r8 to r15 */
	8, 9, 10, 11, 12, 13, 14, 15,
	/* di, si, bp, bx, dx, ax, cx, sp, ip */
	5, 4, 6, 3, 1, 0, 2, 7, 16,
};
/* clang-format on */

enum {
	/* struct ucontext: uc_flags, uc_link, uc_stack (three words). */
	UC_SIGCONTEXT = 8 + 8 + 24,
	SIGCONTEXT_NREGS = sizeof(sigcontext_regs),
};

enum wp_step_result wp_arch_step_sigreturn(struct wp_step *step)
{
	/* The handler's return popped the frame's first word (pretcode), so
	 * sp is at the ucontext (struct rt_sigframe, asm/sigframe.h). */
	uint64_t uc_avma = step->regs->v[WP_REG_SP];
	uint64_t saved[SIGCONTEXT_NREGS];
	enum wp_step_result result;

	result = wp_step_read(step, uc_avma + UC_SIGCONTEXT, saved,
			      sizeof(saved));
	if (result != WP_STEP_OK)
		return result;
	for (unsigned int i = 0; i < SIGCONTEXT_NREGS; i++)
		wp_reg_set(step->regs, sigcontext_regs[i], saved[i]);
	step->cfa_avma = step->regs->v[WP_REG_SP];
	step->is_signal = true;
	return WP_STEP_OK;
}

static bool is_past_syscall(const struct wp_step *step, uint64_t pc_avma)
{
	/* syscall; i386: int $0x80. */
	return code_is(step->module, step->mem, pc_avma - SYSCALL_LEN,
		       step->is_32bit ? "\xcd\x80" : "\x0f\x05", SYSCALL_LEN);
}

/* PLT stubs (psABI 5.2 and its IBT variant): [endbr64] [bnd] jmp *slot(%rip), of i386
 * *slot or *slot(%ebx); push $index; [bnd] jmp PLT0.  True if PC_AVMA is at one of the three, with
 * how many bytes the stub has pushed there. */
static bool is_plt(const struct wp_step *step, uint64_t pc_avma,
		   uint64_t *ret_pushed)
{
	uint8_t code[12];
	const uint8_t *p = code;

	if (wp_code_read(step->module, step->mem, pc_avma, code, sizeof(code)))
		return false;
	*ret_pushed = 0;
	if (!memcmp(p, step->is_32bit ? "\xf3\x0f\x1e\xfb" : "\xf3\x0f\x1e\xfa",
		    4))
		p += 4;
	if (p[0] == 0x68)
		return p[5] == 0xe9 || (p[5] == 0xf2 && p[6] == 0xe9);
	p += p[0] == 0xf2;
	if (p[0] == 0xff && (p[1] == 0x25 || (step->is_32bit && p[1] == 0xa3)))
		return true;
	if (p[0] != 0xe9)
		return false;
	*ret_pushed = wp_step_word_size(step);
	return code_is(step->module, step->mem, pc_avma - 5, "\x68", 1);
}

static bool read_return(const struct wp_step *step, uint64_t pushed,
			uint64_t *ret_return_avma, uint64_t *ret_sp_avma)
{
	uint64_t slot_avma = step->regs->v[WP_REG_SP] + pushed;

	if (wp_step_word(step, slot_avma, ret_return_avma) != WP_STEP_OK)
		return false;
	*ret_sp_avma = slot_avma + wp_step_word_size(step);
	return true;
}

bool wp_arch_find_plt_return(const struct wp_step *step,
			     uint64_t *ret_return_avma, uint64_t *ret_sp_avma)
{
	uint64_t pushed;

	return is_plt(step, step->regs->v[WP_REG_PC], &pushed) &&
	       read_return(step, pushed, ret_return_avma, ret_sp_avma);
}

bool wp_arch_find_stub_return(const struct wp_step *step,
			      uint64_t *ret_return_avma, uint64_t *ret_sp_avma)
{
	if (is_past_syscall(step, step->regs->v[WP_REG_PC]))
		return read_return(step, 0, ret_return_avma, ret_sp_avma);
	return wp_arch_find_plt_return(step, ret_return_avma, ret_sp_avma);
}

#endif
