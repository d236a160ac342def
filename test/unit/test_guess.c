/* SPDX-License-Identifier: Apache-2.0 */
/* test_guess.c - steps without unwind info, over code and a stack that are
 * arrays.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <ucontext.h>

#include "../../unwind/prover.h"
#include "fake_elf.h"

#if defined(__x86_64__)

enum {
	DW_RBX = 3,
	DW_RBP = 6,
	DW_R12 = 12,
	/* Where the fixture has a call, and what it calls. */
	CALL = 0x100,
	CODE_SIZE = 0x400,
};

#define CODE UINT64_C(0x400000)
#define STACK UINT64_C(0x7ffc00000000)

struct fixture {
	uint8_t code[CODE_SIZE];
	uint64_t stack[128];
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_mem mem;
	struct wp_regs regs;
	struct wp_step step;
};

static enum wp_mem_result read_range(const void *from, uint64_t start_avma,
				     size_t size, uint64_t avma, void *buf,
				     size_t len)
{
	if (avma < start_avma || len > size || avma - start_avma > size - len)
		return WP_MEM_UNREADABLE;
	memcpy(buf, (const uint8_t *)from + (avma - start_avma), len);
	return WP_MEM_OK;
}

static enum wp_mem_result read_mem(void *ctx, uint64_t avma, void *buf,
				   size_t len)
{
	const struct fixture *f = ctx;

	if (!read_range(f->code, CODE, sizeof(f->code), avma, buf, len))
		return WP_MEM_OK;
	return read_range(f->stack, STACK, sizeof(f->stack), avma, buf, len);
}

/* A thread at PC with sp at the stack's first word; code of int3. */
static void start(struct fixture *f, uint64_t pc_avma)
{
	memset(f, 0, sizeof(*f));
	memset(f->code, 0xcc, sizeof(f->code));
	f->module = (struct wp_unwind_module){
		.start_avma = CODE,
		.end_avma = CODE + CODE_SIZE,
		.bias = CODE,
		.mapping = 1,
	};
	f->modules = (struct wp_unwind_modules){ .v = &f->module,
						 .len = 1,
						 .generation = 1 };
	f->mem = (struct wp_mem){ read_mem, f };
	wp_reg_set(&f->regs, WP_REG_PC, pc_avma);
	wp_reg_set(&f->regs, WP_REG_SP, STACK);
	f->step = (struct wp_step){ .module = &f->module,
				    .regs = &f->regs,
				    .mem = &f->mem };
}

/* Put LEN bytes of a call at CALL; returns the address behind it. */
static uint64_t put_call(struct fixture *f, const void *insn, size_t len)
{
	memcpy(f->code + CALL, insn, len);
	return CODE + CALL + len;
}

static uint64_t put_direct_call(struct fixture *f)
{
	return put_call(f, "\xe8\x11\x22\x33\x44", 5);
}

static enum wp_step_result guess(struct fixture *f)
{
	return wp_step_guess(NULL, &f->step, &f->modules);
}

static bool is_new(struct fixture *f)
{
	return wp_step_is_new_thread(&f->step, &f->modules);
}

/* The frame pointer is at word 10 of the stack, its record says RETURN. */
static void put_frame(struct fixture *f, uint64_t return_avma)
{
	wp_reg_set(&f->regs, DW_RBP, STACK + 80);
	f->stack[10] = STACK + 400;
	f->stack[11] = return_avma;
}

static void frame_pointer_is_followed(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, CODE + 0x200);
	put_frame(&f, put_direct_call(&f));
	wp_reg_set(&f.regs, DW_RBX, 1);
	f.step.is_return = true;
	assert_int_equal(guess(&f), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], CODE + CALL + 5);
	assert_int_equal(f.regs.v[WP_REG_SP], STACK + 96);
	assert_int_equal(f.step.cfa_avma, STACK + 96);
	assert_int_equal(f.regs.v[DW_RBP], STACK + 400);
	/* The frame may have saved it anywhere. */
	assert_false(wp_reg_known(&f.regs, DW_RBX));
	assert_false(f.step.is_signal);
}

/* glibc's __start_context, which makecontext makes the return address of a context's
 * first function, is the first. */
static void a_context_begins_in_its_start(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x89, 0xdc, /* mov %rbx,%rsp */
		0x48, 0x8b, 0x3c, 0x24, /* mov (%rsp),%rdi */
		0x48, 0x85, 0xff, /* test %rdi,%rdi */
		0x74, 0x08, /* je */
	};
	struct fixture f;

	(void)state;
	start(&f, CODE + CALL);
	memcpy(f.code + CALL, code, sizeof(code));
	f.step.is_return = true;
	assert_int_equal(guess(&f), WP_STEP_ROOT);
	/* A thread that runs there has a stack of its own. */
	f.step.is_return = false;
	assert_int_not_equal(guess(&f), WP_STEP_ROOT);
	f.step.is_return = true;
	f.code[CALL] = 0x49;
	assert_int_not_equal(guess(&f), WP_STEP_ROOT);
}

static void every_form_of_call_is_known(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} calls[] = {
		{ "\xe8\x00\x00\x00\x00", 5 },
		/* *%rax; *%r11 */
		{ "\xff\xd0", 2 },
		{ "\x41\xff\xd3", 3 },
		/* *(%rax); *0x8(%rbx); *0x12345678(%rbx) */
		{ "\xff\x10", 2 },
		{ "\xff\x53\x08", 3 },
		{ "\xff\x93\x78\x56\x34\x12", 6 },
		/* *0x0(%rip); *0x1234(,%rax,8) */
		{ "\xff\x15\x00\x00\x00\x00", 6 },
		{ "\xff\x14\xc5\x34\x12\x00\x00", 7 },
		/* *(%rax,%rbx,8); *0x8(%rsp); *0x12345678(%rsp) */
		{ "\xff\x14\xd8", 3 },
		{ "\xff\x54\x24\x08", 4 },
		{ "\xff\x94\x24\x78\x56\x34\x12", 7 },
		/* *(%r12); *0x8(%r13); notrack *%rax */
		{ "\x41\xff\x14\x24", 4 },
		{ "\x41\xff\x55\x08", 4 },
		{ "\x3e\xff\xd0", 3 },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		start(&f, CODE + 0x200);
		put_frame(&f, put_call(&f, calls[i].bytes, calls[i].len));
		assert_int_equal(guess(&f), WP_STEP_OK);
	}
}

static void what_is_no_call_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} others[] = {
		/* jmp; jmp *%rax; push (%rax); inc %eax; mov %rsp,%rbp */
		{ "\xe9\x00\x00\x00\x00", 5 },
		{ "\xff\xe0", 2 },
		{ "\xff\x30", 2 },
		{ "\xff\xc0", 2 },
		{ "\x48\x89\xe5", 3 },
		/* A call that has one byte more than is before the address. */
		{ "\xff\x53", 2 },
		{ "\xff\x14", 2 },
		{ "\xe8\x00\x00\x00", 4 },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		start(&f, CODE + 0x200);
		put_frame(&f, put_call(&f, others[i].bytes, others[i].len));
		assert_int_equal(guess(&f), WP_STEP_NO_INFO);
	}
}

static void return_address_must_be_in_a_module(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, CODE + 0x200);
	put_direct_call(&f);
	/* Right behind the call, and yet nowhere. */
	f.module.start_avma = CODE + CALL + 5;
	put_frame(&f, CODE + CALL + 5);
	assert_int_equal(guess(&f), WP_STEP_NO_INFO);
	/* The module's last instruction is the call. */
	f.module.start_avma = CODE;
	f.module.end_avma = CODE + CALL + 5;
	assert_int_equal(guess(&f), WP_STEP_OK);
	/* Its first bytes end what looks like a call. */
	start(&f, CODE + 0x200);
	put_direct_call(&f);
	f.module.start_avma = CODE + CALL + 1;
	put_frame(&f, CODE + CALL + 5);
	assert_int_equal(guess(&f), WP_STEP_NO_INFO);
}

static void odd_frame_pointers_are_refused(void **state)
{
	static const uint64_t odd[] = {
		0,
		STACK - 8,
		STACK + 4,
		UINT64_MAX - 7,
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		start(&f, CODE + 0x200);
		put_frame(&f, put_direct_call(&f));
		wp_reg_set(&f.regs, DW_RBP, odd[i]);
		assert_int_equal(guess(&f), WP_STEP_NO_INFO);
	}
	start(&f, CODE + 0x200);
	assert_int_equal(guess(&f), WP_STEP_UNKNOWN_REG);
	wp_reg_set(&f.regs, DW_RBP, STACK + sizeof(f.stack) - 8);
	assert_int_equal(guess(&f), WP_STEP_UNREADABLE);
}

static void cleared_frame_record_is_the_root(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, CODE + 0x200);
	put_frame(&f, 0);
	f.stack[10] = 0;
	assert_int_equal(guess(&f), WP_STEP_ROOT);
	f.stack[10] = STACK + 400;
	assert_int_equal(guess(&f), WP_STEP_NO_INFO);
}

static void code_in_no_module_has_a_frame_pointer_at_most(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, UINT64_C(0x10000));
	put_frame(&f, put_direct_call(&f));
	f.step.module = NULL;
	assert_int_equal(guess(&f), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], CODE + CALL + 5);
}

static void system_call_stub_returns_to_its_caller(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, CODE + 0x202);
	memcpy(f.code + 0x200, "\x0f\x05\xc3", 3);
	f.stack[0] = put_direct_call(&f);
	wp_reg_set(&f.regs, DW_R12, 7);
	wp_reg_set(&f.regs, 0, 8);
	assert_int_equal(guess(&f), WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_PC], f.stack[0]);
	assert_int_equal(f.step.cfa_avma, STACK + 8);
	assert_int_equal(f.regs.v[DW_R12], 7);
	assert_false(wp_reg_known(&f.regs, 0));

	/* No return address on top: the frame pointer says where it is. */
	start(&f, CODE + 0x202);
	memcpy(f.code + 0x200, "\x0f\x05\xc3", 3);
	put_frame(&f, put_direct_call(&f));
	f.stack[0] = 12345;
	assert_int_equal(guess(&f), WP_STEP_OK);
	assert_int_equal(f.step.cfa_avma, STACK + 96);

	/* Without the code that is all there is to go by, where no frame can have
	 * been left out. */
	start(&f, CODE + 0x200);
	put_frame(&f, put_direct_call(&f));
	f.stack[4] = f.stack[11];
	f.step.is_return = true;
	assert_int_equal(guess(&f), WP_STEP_NO_INFO);

	/* A return address is no place where a thread stopped. */
	start(&f, CODE + 0x202);
	memcpy(f.code + 0x200, "\x0f\x05\xc3", 3);
	f.stack[0] = put_direct_call(&f);
	f.step.is_return = true;
	assert_int_equal(guess(&f), WP_STEP_UNKNOWN_REG);
}

/* clone in glibc 2.36: mov $0x38,%eax; syscall; test %rax,%rax; jl; je; ret;
 * and clone3 with another number. */
static void a_thread_just_made_is_at_its_root(void **state)
{
	static const char *const number[] = { "\x38\0", "\xb3\x01", "\x39\0" };
	struct fixture f;

	(void)state;
	for (int i = 0; i < 3; i++)
		for (uint64_t rax = 0; rax < 2; rax++) {
			bool want = i < 2 && !rax;

			start(&f, CODE + 0x207);
			memcpy(f.code + 0x200,
			       "\xb8\0\0\0\0\x0f\x05\x48\x85\xc0", 10);
			memcpy(f.code + 0x201, number[i], 2);
			wp_reg_set(&f.regs, 0, rax);
			assert_int_equal(is_new(&f), want);
			f.step.is_return = true;
			assert_false(is_new(&f));
			/* Not known: a return address is the caller's. */
			start(&f, CODE + 0x207);
			memcpy(f.code + 0x200, "\xb8\0\0\0\0\x0f\x05", 7);
			memcpy(f.code + 0x201, number[i], 2);
			assert_int_equal(is_new(&f), i < 2);
			f.stack[0] = put_direct_call(&f);
			assert_false(is_new(&f));
		}
	/* Nothing before it. */
	start(&f, CODE);
	wp_reg_set(&f.regs, 0, 0);
	assert_false(is_new(&f));
}

/* fork is a clone without a new stack, of i386 in ecx; that of clone3 is in memory. */
static void a_forked_child_is_on_a_copy_of_its_parents_stack(void **state)
{
	enum { DW_RCX = 2, DW_RSI = 4 };
	static const struct {
		const char *code;
		int stack_reg;
		bool is_32bit, is_clone3;
	} calls[] = {
		{ "\xb8\x38\0\0\0\x0f\x05", DW_RSI, false, false },
		{ "\xb8\xb3\1\0\0\x0f\x05", DW_RSI, false, true },
		{ "\xb8\x78\0\0\0\xcd\x80", DW_RCX, true, false },
		{ "\xb8\xb3\1\0\0\xcd\x80", DW_RCX, true, true },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		for (int known = 0; known < 2; known++)
			for (uint64_t stack = 0; stack < 2; stack++) {
				start(&f, CODE + 0x207);
				f.step.is_32bit = calls[i].is_32bit;
				memcpy(f.code + 0x200, calls[i].code, 7);
				wp_reg_set(&f.regs, calls[i].stack_reg, stack);
				if (known)
					wp_reg_set(&f.regs, 0, 0);
				assert_int_equal(is_new(&f),
						 stack || calls[i].is_clone3);
			}
}

/* Behind the comparison with 0 of glibc, musl and Go, and behind the jump to where errors
 * go: a CPU may be met at each of these instructions. */
static void a_thread_just_made_may_have_tested_it(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		bool want;
	} tests[] = {
		{ "\x48\x85\xc0", 3, true },
		{ "\x85\xc0", 2, true },
		{ "\x48\x83\xf8\0", 4, true },
		{ "\x83\xf8\0", 3, true },
		{ "\x48\x85\xc0\x7c\x13", 5, true },
		{ "\x48\x83\xf8\0\x0f\x8c\1\2\3\4", 10, true },
		/* je: the new thread is not there. */
		{ "\x48\x85\xc0\x74\x13", 5, false },
		{ "\x48\x83\xf8\1", 4, false },
		{ "\x48", 1, false },
		{ "\x7c\x13", 2, false },
		{ "\x48\x85\xc0\x7c", 4, false },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		for (uint64_t rax = 0; rax < 2; rax++) {
			start(&f, CODE + 0x207 + tests[i].len);
			memcpy(f.code + 0x200, "\xb8\x38\0\0\0\x0f\x05", 7);
			memcpy(f.code + 0x207, tests[i].code, tests[i].len);
			wp_reg_set(&f.regs, 0, rax);
			assert_int_equal(is_new(&f), tests[i].want && !rax);
		}
}

static void plt_stub_returns_to_its_caller(void **state)
{
	static const struct {
		const char *stub;
		size_t len;
		/* From its start to the pc; what is pushed by then. */
		size_t at;
		size_t pushed;
	} stubs[] = {
		/* jmp *0x1234(%rip); push $5; jmp PLT0 */
		{ "\xff\x25\x34\x12\0\0\x68\5\0\0\0\xe9\0\0\0\0", 16, 0, 0 },
		{ "\xff\x25\x34\x12\0\0\x68\5\0\0\0\xe9\0\0\0\0", 16, 6, 0 },
		{ "\xff\x25\x34\x12\0\0\x68\5\0\0\0\xe9\0\0\0\0", 16, 11, 1 },
		/* endbr64; bnd jmp *0x1234(%rip) */
		{ "\xf3\x0f\x1e\xfa\xf2\xff\x25\x34\x12\0\0", 11, 0, 0 },
		{ "\xf3\x0f\x1e\xfa\xf2\xff\x25\x34\x12\0\0", 11, 4, 0 },
		/* endbr64; jmp *0x1234(%rip) */
		{ "\xf3\x0f\x1e\xfa\xff\x25\x34\x12\0\0", 10, 0, 0 },
		/* endbr64; push $5; bnd jmp PLT0 */
		{ "\xf3\x0f\x1e\xfa\x68\5\0\0\0\xf2\xe9\0\0\0\0", 15, 0, 0 },
		{ "\xf3\x0f\x1e\xfa\x68\5\0\0\0\xf2\xe9\0\0\0\0", 15, 9, 1 },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(stubs) / sizeof(stubs[0]); i++) {
		start(&f, CODE + 0x200 + stubs[i].at);
		memcpy(f.code + 0x200, stubs[i].stub, stubs[i].len);
		f.stack[0] = 5;
		f.stack[stubs[i].pushed] = put_direct_call(&f);
		assert_int_equal(guess(&f), WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_PC], CODE + CALL + 5);
		assert_int_equal(f.step.cfa_avma,
				 STACK + 8 * (stubs[i].pushed + 1));
	}
}

/* A struct ucontext where the kernel puts it: at sp in the trampoline. */
static void put_sigframe(struct fixture *f)
{
	static const int gregs[] = {
		/* By DWARF number: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp. */
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
		REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
		REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
	};
	ucontext_t uc;

	memset(&uc, 0, sizeof(uc));
	for (int i = 0; i < WP_NREGS; i++)
		uc.uc_mcontext.gregs[gregs[i]] = 1000 + i;
	memcpy(f->stack, &uc,
	       sizeof(uc) < sizeof(f->stack) ? sizeof(uc) : sizeof(f->stack));
}

static void signal_trampoline_gives_all_registers(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		size_t at;
	} trampolines[] = {
		/* mov $15,%rax; syscall */
		{ "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9, 0 },
		{ "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9, 7 },
		/* mov $15,%eax; syscall */
		{ "\xb8\x0f\0\0\0\x0f\x05", 7, 0 },
		{ "\xb8\x0f\0\0\0\x0f\x05", 7, 5 },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		start(&f, CODE + 0x200 + trampolines[i].at);
		memcpy(f.code + 0x200, trampolines[i].code, trampolines[i].len);
		put_sigframe(&f);
		f.step.is_return = true;
		assert_int_equal(guess(&f), WP_STEP_OK);
		assert_true(f.step.is_signal);
		assert_int_equal(f.regs.known, (1u << WP_NREGS) - 1);
		for (unsigned int n = 0; n < WP_NREGS; n++)
			assert_int_equal(f.regs.v[n], 1000 + n);
	}
	/* Another system call. */
	start(&f, CODE + 0x200);
	memcpy(f.code + 0x200, "\x48\xc7\xc0\x0e\0\0\0\x0f\x05", 9);
	assert_int_equal(guess(&f), WP_STEP_UNKNOWN_REG);
	/* The frame is cut off. */
	start(&f, CODE + 0x200);
	memcpy(f.code + 0x200, trampolines[0].code, 9);
	wp_reg_set(&f.regs, WP_REG_SP, STACK + sizeof(f.stack) - 100);
	assert_int_equal(guess(&f), WP_STEP_UNREADABLE);
	assert_false(f.step.is_signal);
}

static void code_is_read_from_the_image(void **state)
{
	static struct fake_elf elf;
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct fixture f;

	(void)state;
	memcpy(elf.bytes + FAKE_TEXT, "\xe8\0\0\0\0", 5);
	assert_int_equal(fake_open(&elf, &image, FAKE_SIZE), 0);
	/* Mapped where the memory of the fixture has nothing. */
	start(&f, UINT64_C(0x500000) + FAKE_TEXT + 0x20);
	f.module = (struct wp_unwind_module){
		.start_avma = UINT64_C(0x500000) + FAKE_TEXT,
		.end_avma = UINT64_C(0x500000) + FAKE_HDR,
		.bias = UINT64_C(0x500000),
		.image = &image,
	};
	put_frame(&f, UINT64_C(0x500000) + FAKE_TEXT + 5);
	assert_int_equal(guess(&f), WP_STEP_OK);
	put_frame(&f, UINT64_C(0x500000) + FAKE_TEXT + 6);
	start(&f, UINT64_C(0x500000) + FAKE_TEXT + 0x20);
	put_frame(&f, UINT64_C(0x500000) + FAKE_TEXT + 5);
	/* Without it there is nothing to read. */
	f.module.start_avma = UINT64_C(0x500000) + FAKE_TEXT;
	f.module.end_avma = UINT64_C(0x500000) + FAKE_HDR;
	assert_int_equal(guess(&f), WP_STEP_NO_INFO);
	fake_close(&elf, &image);
}

/* A call by pointer: call *%rax. */
#define BY_POINTER "\xff\xd0", 2

/* A thread at OFF of CODE, in a file without unwind info; its frame has WORDS up
 * to the return address, which is behind CALL; rbp, rbx and r12 are 0xf, 0xb and
 * 0x12 in the caller. */
static void start_in_file(struct fixture *f, struct fake_elf *elf,
			  struct wp_elf_image *image, const void *call,
			  size_t call_len, const uint8_t *code, size_t len,
			  size_t off, const uint64_t *words, size_t nwords,
			  bool by_fp)
{
	memcpy(elf->bytes + FAKE_TEXT, call, call_len);
	memcpy(elf->bytes + FAKE_TEXT + FAKE_FUNC, code, len);
	assert_int_equal(fake_open(elf, image, FAKE_SIZE), 0);
	start(f, CODE + FAKE_TEXT + FAKE_FUNC + off);
	f->module.start_avma = CODE + FAKE_TEXT;
	f->module.end_avma = CODE + FAKE_HDR;
	f->module.image = image;
	for (size_t n = 0; n < 64; n++)
		f->stack[n] = 0xbad;
	wp_reg_set(&f->regs, WP_REG_SP, STACK + 64 * 8);
	wp_reg_set(&f->regs, DW_RBP, by_fp ? STACK + 64 * 8 : 0xf);
	wp_reg_set(&f->regs, DW_RBX, 0xb);
	wp_reg_set(&f->regs, DW_R12, 0x12);
	memcpy(f->stack + 64, words, nwords * sizeof(*words));
	f->stack[64 + nwords] = CODE + FAKE_TEXT + call_len;
}

/* Guess the caller of the code at OFF of CODE: as start_in_file. */
static void assert_caller(const void *call, size_t call_len,
			  const uint8_t *code, size_t len, size_t off,
			  const uint64_t *words, size_t nwords, bool by_fp,
			  enum wp_step_result want)
{
	static struct fake_elf elf;
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_unwind_stats stats = { 0 };
	struct wp_prover *prover = wp_prover_new(&stats);
	struct fixture f;

	assert_non_null(prover);
	start_in_file(&f, &elf, &image, call, call_len, code, len, off, words,
		      nwords, by_fp);
	assert_int_equal(wp_step_guess(prover, &f.step, &f.modules), want);
	if (want == WP_STEP_OK) {
		assert_int_equal(f.regs.v[WP_REG_PC],
				 CODE + FAKE_TEXT + call_len);
		assert_int_equal(f.regs.v[WP_REG_SP],
				 STACK + (65 + nwords) * 8);
		assert_true(!wp_reg_known(&f.regs, DW_RBP) ||
			    f.regs.v[DW_RBP] == 0xf);
		assert_true(!wp_reg_known(&f.regs, DW_RBX) ||
			    f.regs.v[DW_RBX] == 0xb);
		assert_true(!wp_reg_known(&f.regs, DW_R12) ||
			    f.regs.v[DW_R12] == 0x12);
	}
	wp_prover_free(prover);
	fake_close(&elf, &image);
}

/* In the prologue, before registers are saved, the slots that the epilogue gets
 * them from hold anything: as in vDSO's clock_gettime, which is called by
 * pointer. */
static void what_is_saved_later_is_not_saved_yet(void **state)
{
	/* push %rbp; mov %rsp,%rbp; push %r12; push %rbx; and $-16,%rsp;
	 * lea -0x10(%rbp),%rsp; pop %rbx; pop %r12; pop %rbp; ret */
	static const uint8_t by_push[] = { 0x55, 0x48, 0x89, 0xe5, 0x41,
					   0x54, 0x53, 0x48, 0x83, 0xe4,
					   0xf0, 0x48, 0x8d, 0x65, 0xf0,
					   0x5b, 0x41, 0x5c, 0x5d, 0xc3 };
	/* push %rbp; mov %rsp,%rbp; mov %rbx,-0x10(%rbp);
	 * mov -0x10(%rbp),%rbx; leave; ret */
	static const uint8_t by_move[] = { 0x55, 0x48, 0x89, 0xe5, 0x48,
					   0x89, 0x5d, 0xf0, 0x48, 0x8b,
					   0x5d, 0xf0, 0xc9, 0xc3 };
	static const uint64_t words[] = { 0xf };

	(void)state;
	assert_caller(BY_POINTER, by_push, sizeof(by_push), 4, words, 1, true,
		      WP_STEP_OK);
	assert_caller(BY_POINTER, by_move, sizeof(by_move), 4, words, 1, true,
		      WP_STEP_OK);
}

/* What a function ends with a jump to saves registers where that had its own,
 * in another order: as redis's sdssplitargs does with zmalloc. */
static void what_was_written_over_is_not_what_was_there(void **state)
{
	/* push %rbx; push %rbp; mov %edi,%ebx; mov %edi,%ebp; nop; pop %rbp;
	 * pop %rbx; jmp 1f; 1: push %rbp; push %rbx; pop %rbx; pop %rbp; ret */
	static const uint8_t by_sp[] = { 0x53, 0x55, 0x89, 0xfb, 0x89, 0xfd,
					 0x90, 0x5d, 0x5b, 0xeb, 0x00, 0x55,
					 0x53, 0x5b, 0x5d, 0xc3 };
	static const uint64_t words[] = { 0xf, 0xb };

	(void)state;
	assert_caller(BY_POINTER, by_sp, sizeof(by_sp), 6, words, 2, false,
		      WP_STEP_OK);
}

/* As v8's builtins do, which JavaScript's functions call and are called by. */
static void who_was_jumped_to_by_pointer_was_called(void **state)
{
	/* push %rbp; mov %rsp,%rbp; nop; pop %rbp; ret; what is called is at 7:
	 * jmp *%rax, or with a word on the stack, push %rbx; jmp *%rax. */
	static const uint8_t bare[] = { 0x55, 0x48, 0x89, 0xe5, 0x90,
					0x5d, 0xc3, 0xff, 0xe0 };
	static const uint8_t pushed[] = { 0x55, 0x48, 0x89, 0xe5, 0x90,
					  0x5d, 0xc3, 0x53, 0xff, 0xe0 };
	static const uint64_t words[] = { 0xf, 0xb };
	const uint8_t call[] = { 0xe8, (FAKE_FUNC + 7 - 5) & 0xff,
				 (FAKE_FUNC + 7 - 5) >> 8, 0, 0 };

	(void)state;
	assert_caller(call, sizeof(call), bare, sizeof(bare), 4, words, 1, true,
		      WP_STEP_OK);
	assert_caller(call, sizeof(call), pushed, sizeof(pushed), 4, words, 2,
		      true, WP_STEP_NO_INFO);
}

/* A system call in a file's code may have words on the stack, which look like anything. */
static void
code_of_a_file_says_what_a_system_call_has_on_the_stack(void **state)
{
	/* push %rbx; syscall; pop %rbx; ret */
	static const uint8_t code[] = { 0x53, 0x0f, 0x05, 0x5b, 0xc3 };
	static const uint64_t words[] = { CODE + FAKE_TEXT + 2 };
	static struct fake_elf elf;
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_unwind_stats stats = { 0 };
	struct wp_prover *prover = wp_prover_new(&stats);
	struct fixture f;

	(void)state;
	assert_non_null(prover);
	start_in_file(&f, &elf, &image, BY_POINTER, code, sizeof(code), 3,
		      words, 1, false);
	assert_int_equal(wp_step_guess(prover, &f.step, &f.modules),
			 WP_STEP_OK);
	assert_int_equal(f.regs.v[WP_REG_SP], STACK + 66 * 8);
	wp_prover_free(prover);
	fake_close(&elf, &image);
}

/* How a walk from F's registers ends that has room for one frame: by the depth
 * limit, if the step to the second is made. */
static enum wp_stack_end walk_at(struct wp_unwinder *unwinder,
				 struct fixture *f, enum wp_unwind_pace pace)
{
	struct wp_frame frame;
	uint64_t cfa_avma;
	struct wp_stack stack = { .frames = &frame,
				  .cfa_avma = &cfa_avma,
				  .cap = 1 };

	wp_unwind_walk(unwinder, &f->modules, &f->regs, &f->mem, pace, &stack);
	return stack.end;
}

/* As ld.so's _start in glibc 2.36. */
static void the_first_code_of_a_program_has_no_caller(void **state)
{
	/* mov %rsp,%rdi; call; mov %rax,%r12; jmp *%r12; nop */
	static const uint8_t code[] = { 0x48, 0x89, 0xe7, 0xe8, 0,
					0,    0,    0,	  0x49, 0x89,
					0xc4, 0x41, 0xff, 0xe4, 0x90 };
	static const struct {
		size_t off;
		bool is_return, is_root;
	} rows[] = { { 0, false, true },   { 3, false, true },
		     { 8, true, true },	   { 11, false, true },
		     { 14, false, false }, { 4, false, false } };
	static const uint64_t words[] = { 0xf };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
		static struct fake_elf elf;
		struct wp_elf_image image = WP_ELF_IMAGE_INIT;
		struct wp_unwind_stats stats = { 0 };
		struct wp_prover *prover = wp_prover_new(&stats);
		struct fixture f;
		bool has_entry = i % 2;

		assert_non_null(prover);
		start_in_file(&f, &elf, &image, BY_POINTER, code, sizeof(code),
			      rows[i / 2].off, words, 1, false);
		image.entry_svma = has_entry ? FAKE_TEXT + FAKE_FUNC : 0;
		f.step.is_return = rows[i / 2].is_return;
		assert_int_equal(wp_step_guess(prover, &f.step, &f.modules) ==
					 WP_STEP_ROOT,
				 has_entry && rows[i / 2].is_root);
		wp_prover_free(prover);
		fake_close(&elf, &image);
	}
}

/* As Free Pascal's, which stores arguments and its stack in variables first. */
static void the_first_code_of_a_program_may_be_long(void **state)
{
	static const struct {
		size_t nops;
		uint8_t behind;
		bool is_return, is_root;
	} rows[] = { { 67, 0xf4, true, true },	{ 67, 0xc3, true, true },
		     { 67, 0x90, true, false }, { 67, 0xc3, false, false },
		     { 123, 0xf4, true, true }, { 124, 0xf4, true, false },
		     { 59, 0x90, false, true } };
	static const uint64_t words[] = { 0xf };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		static struct fake_elf elf;
		struct wp_elf_image image = WP_ELF_IMAGE_INIT;
		struct wp_unwind_stats stats = { 0 };
		struct wp_prover *prover = wp_prover_new(&stats);
		size_t off = rows[i].nops + 5;
		uint8_t code[130];
		struct fixture f;

		assert_non_null(prover);
		memset(code, 0x90, sizeof(code));
		memcpy(code + rows[i].nops, "\xe8\0\0\0", 5);
		code[off] = rows[i].behind;
		start_in_file(&f, &elf, &image, BY_POINTER, code, sizeof(code),
			      off, words, 1, false);
		image.entry_svma = FAKE_TEXT + FAKE_FUNC;
		f.step.is_return = rows[i].is_return;
		assert_int_equal(wp_step_guess(prover, &f.step, &f.modules) ==
					 WP_STEP_ROOT,
				 rows[i].is_root);
		wp_prover_free(prover);
		fake_close(&elf, &image);
	}
}

/* A proof takes up to a millisecond.  What is proven is at hand for later. */
static void nothing_is_proven_while_the_thread_is_stopped(void **state)
{
	/* push %rbp; mov %rsp,%rbp; nop; pop %rbp; ret */
	static const uint8_t code[] = {
		0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xc3
	};
	static const uint64_t words[] = { 0xf };
	static struct fake_elf elf;
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	const struct wp_unwind_stats *stats;
	struct wp_unwinder *unwinder;
	struct fixture f;

	(void)state;
	assert_int_equal(wp_unwinder_new(&unwinder, WP_UNWIND_ROWS), 0);
	stats = wp_unwinder_stats(unwinder);
	start_in_file(&f, &elf, &image, BY_POINTER, code, sizeof(code), 4,
		      words, 1, true);
	assert_int_equal(walk_at(unwinder, &f, WP_UNWIND_IN_STOP),
			 WP_END_TOO_SLOW);
	assert_int_equal(stats->proofs, 0);
	assert_int_equal(walk_at(unwinder, &f, WP_UNWIND_THOROUGH),
			 WP_END_DEPTH_LIMIT);
	assert_int_equal(stats->proofs, 1);
	assert_int_equal(walk_at(unwinder, &f, WP_UNWIND_IN_STOP),
			 WP_END_DEPTH_LIMIT);
	assert_int_equal(stats->proofs, 1);
	/* Of other modules nothing is known, of the first ones it still is. */
	f.modules.generation++;
	assert_int_equal(walk_at(unwinder, &f, WP_UNWIND_IN_STOP),
			 WP_END_TOO_SLOW);
	f.modules.generation--;
	assert_int_equal(walk_at(unwinder, &f, WP_UNWIND_IN_STOP),
			 WP_END_DEPTH_LIMIT);
	wp_unwinder_free(unwinder);
	fake_close(&elf, &image);
}

/* A search is made where the walk has the work for a whole one left; it takes what it has
 * followed. */
static void a_proof_is_work(void **state)
{
	/* push %rbp; mov %rsp,%rbp; nop; pop %rbp; ret */
	static const uint8_t code[] = {
		0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xc3
	};
	static const uint64_t words[] = { 0xf };
	static struct fake_elf elf;
	enum { WHOLE = 48000 / 16 };

	(void)state;
	for (uint32_t had = WHOLE - 1; had <= WHOLE; had++) {
		struct wp_elf_image image = WP_ELF_IMAGE_INIT;
		struct wp_unwind_stats stats = { 0 };
		struct wp_prover *prover = wp_prover_new(&stats);
		uint32_t work = had;
		struct fixture f;

		assert_non_null(prover);
		start_in_file(&f, &elf, &image, BY_POINTER, code, sizeof(code),
			      4, words, 1, true);
		f.step.work = &work;
		assert_int_equal(wp_step_guess(prover, &f.step, &f.modules),
				 had < WHOLE ? WP_STEP_TOO_SLOW : WP_STEP_OK);
		assert_int_equal(stats.proofs, had == WHOLE);
		assert_in_range(work, had - (had == WHOLE ? 20 : 0),
				had - (had == WHOLE));
		wp_prover_free(prover);
		fake_close(&elf, &image);
	}
}

/* Code of no file from 0x200 on, at which F is then. */
static void put_code(struct fixture *f, const void *code, size_t len)
{
	memcpy(f->code + 0x200, code, len);
}

static enum wp_step_result guess_by_code(struct fixture *f)
{
	struct wp_unwind_stats stats = { 0 };
	struct wp_prover *prover = wp_prover_new(&stats);
	enum wp_step_result result;

	assert_non_null(prover);
	result = wp_step_guess(prover, &f->step, &f->modules);
	wp_prover_free(prover);
	return result;
}

/* Memory of F that notes whether its frame pointer's record was read. */
struct noted {
	struct fixture *f;
	bool was_read;
};

static enum wp_mem_result read_noted(void *ctx, uint64_t avma, void *buf,
				     size_t len)
{
	struct noted *noted = ctx;

	noted->was_read |= avma == noted->f->regs.v[DW_RBP];
	return read_mem(noted->f, avma, buf, len);
}

/* Code of no file is read for each frame: that is left for later, and where its
 * registers point to is read, which may be another stack. */
static void
code_of_no_file_is_not_followed_while_the_thread_is_stopped(void **state)
{
	struct fixture f;
	struct noted noted = { &f, false };
	struct wp_unwinder *unwinder;

	(void)state;
	start(&f, CODE + 0x200);
	/* leave; ret */
	put_code(&f, "\xc9\xc3", 2);
	put_frame(&f, put_direct_call(&f));
	f.mem = (struct wp_mem){ read_noted, &noted };
	assert_int_equal(wp_unwinder_new(&unwinder, WP_UNWIND_ROWS), 0);
	assert_int_equal(walk_at(unwinder, &f, WP_UNWIND_THOROUGH),
			 WP_END_DEPTH_LIMIT);
	noted.was_read = false;
	assert_int_equal(walk_at(unwinder, &f, WP_UNWIND_IN_STOP),
			 WP_END_TOO_SLOW);
	assert_true(noted.was_read);
	wp_unwinder_free(unwinder);
}

/* A frame that is left out by its callee's frame pointer has its return address
 * below that. */
static void a_frame_pointer_that_may_leave_out_frames(void **state)
{
	static const struct {
		const char *code;
		size_t len;
		enum wp_step_result want;
	} cases[] = {
		/* nop; int3: nothing is known.  nop; leave; ret.  mov %rbp,%rsp;
		 * pop %rbp; ret $8.  mov -8(%rbp),%rax; int3. */
		{ "\x90\xcc", 2, WP_STEP_NO_INFO },
		{ "\x90\xc9\xc3", 3, WP_STEP_OK },
		{ "\x48\x89\xec\x5d\xc2\x08\0", 7, WP_STEP_OK },
		{ "\x48\x8b\x45\xf8\xcc", 5, WP_STEP_OK },
		/* mov 8(%rbp),%rax; int3: rbp points to anything.
		 * mov -0x58(%rbp),%rax; int3: below the frame. */
		{ "\x48\x8b\x45\x08\xcc", 5, WP_STEP_NO_INFO },
		{ "\x48\x8b\x45\xa8\xcc", 5, WP_STEP_NO_INFO },
		/* add $0x50,%rsp; pop %rbp; ret: as rbp says, and not. */
		{ "\x48\x83\xc4\x50\x5d\xc3", 6, WP_STEP_OK },
		{ "\x48\x83\xc4\x48\x5d\xc3", 6, WP_STEP_NO_INFO },
		/* cmovb %rbx,%rsp; sub $16,%rsp; mov %rbp,(%rsp); mov %rsp,%rbp;
		 * call *-3(%rax); mov -8(%rbp),%rax; int3: the frame that is
		 * made is that of who is called, also with mov $1,%eax; call
		 * *%rax.  nop for the call: its own. */
		{ "\x48\x0f\x42\xe3\x48\x83\xec\x10\x48\x89\x2c\x24\x48\x8b"
		  "\xec\xb8\1\0\0\0\xff\xd0\x48\x8b\x45\xf8\xcc",
		  27, WP_STEP_OK },
		{ "\x48\x0f\x42\xe3\x48\x83\xec\x10\x48\x89\x2c\x24\x48\x8b"
		  "\xec\xff\x50\xfd\x48\x8b\x45\xf8\xcc",
		  23, WP_STEP_OK },
		{ "\x48\x0f\x42\xe3\x48\x83\xec\x10\x48\x89\x2c\x24\x48\x8b"
		  "\xec\x90\x90\x90\x48\x8b\x45\xf8\xcc",
		  23, WP_STEP_NO_INFO },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int has_other = 0; has_other < 2; has_other++) {
			start(&f, CODE + 0x200);
			put_frame(&f, put_direct_call(&f));
			put_code(&f, cases[i].code, cases[i].len);
			f.step.is_return = true;
			if (has_other)
				f.stack[4] = f.stack[11];
			assert_int_equal(guess_by_code(&f),
					 has_other ? cases[i].want :
						     WP_STEP_OK);
		}
}

/* add $1,%edi; vmovsd %xmm0,-8(%rbp); int3: a loop of V8's optimizing compiler that is
 * left by calls which do not return.  Its frame has the return address of a call made
 * before; and once more with -88(%rbp), which is below sp. */
static void code_of_no_file_that_uses_its_frame(void **state)
{
	struct fixture f;

	(void)state;
	for (int is_below = 0; is_below < 2; is_below++) {
		start(&f, CODE + 0x200);
		put_frame(&f, put_direct_call(&f));
		put_code(&f, "\x83\xc7\x01\xc5\xfb\x11\x45\xf8\xcc", 9);
		if (is_below)
			f.code[0x207] = 0xa8;
		f.stack[4] = f.stack[11];
		assert_int_equal(guess_by_code(&f),
				 is_below ? WP_STEP_NO_INFO : WP_STEP_OK);
	}
}

/* A thread that has just come to a function has its caller's frame pointer. */
static void a_function_that_has_no_frame_yet(void **state)
{
	/* push %rbp; mov %rsp,%rbp; jmp *%rax. */
	static const char code[] = "\x55\x48\x89\xe5\xff\xe0";
	struct fixture f;

	(void)state;
	for (unsigned int at = 0; at < 2; at++) {
		start(&f, CODE + 0x200 + at);
		put_frame(&f, put_direct_call(&f));
		put_code(&f, code, 6);
		f.stack[0] = STACK + 80;
		f.stack[at] = CODE + CALL + 5;
		assert_int_equal(guess_by_code(&f), WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_SP], STACK + 8 + 8 * at);
		assert_int_equal(f.regs.v[DW_RBP], STACK + 80);
	}
	/* What is on the stack is not what was pushed. */
	start(&f, CODE + 0x201);
	put_frame(&f, put_direct_call(&f));
	put_code(&f, code, 6);
	f.stack[0] = STACK + 88;
	f.stack[1] = CODE + CALL + 5;
	assert_int_equal(guess_by_code(&f), WP_STEP_NO_INFO);
}

/* As in V8's code: what is before a function ends in a call that does not return,
 * and seems to lead into it with a frame; as data between them does that is taken
 * for code. */
static void a_function_before_has_no_say(void **state)
{
	/* push %rbp; mov %rsp,%rbp; and $-16,%rsp; jne 1f; jg 2f; leave; ret;
	 * 1: call.  The function: nop; push %rbp; mov %rsp,%rbp; call;
	 * mov %rbp,%rsp; pop %rbp; 2: nop; ret. */
	static const uint8_t code[] = {
		0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xf0, 0x75,
		0x04, 0x7f, 0x15, 0xc9, 0xc3, 0xe8, 0,	  0,	0,
		0,    0x90, 0x55, 0x48, 0x89, 0xe5, 0xe8, 0,	0,
		0,    0,    0x48, 0x89, 0xec, 0x5d, 0x90, 0xc3,
	};
	static const uint8_t without_frame[] = { 19, 33 };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(without_frame); i++) {
		start(&f, CODE + 0x200 + without_frame[i]);
		put_frame(&f, put_direct_call(&f));
		put_code(&f, code, sizeof(code));
		f.stack[0] = CODE + CALL + 5;
		assert_int_equal(guess_by_code(&f), WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_SP], STACK + 8);
		assert_int_equal(f.regs.v[DW_RBP], STACK + 80);
	}
}

/* HotSpot's interpreter jumps to methods, which return to where it takes sp up
 * again; the caller's sp is below the frame. */
static void an_interpreter_is_returned_to(void **state)
{
	static const struct {
		const char *code;
		size_t len;
	} entries[] = {
		/* mov -0x10(%rbp),%rsp; movq $0,-0x10(%rbp).
		 * mov -0x10(%rbp),%rcx; lea 0(%rbp,%rcx,8),%rsp. */
		{ "\x48\x8b\x65\xf0\x48\xc7\x45\xf0\0\0\0\0", 12 },
		{ "\x48\x8b\x4d\xf0\x48\x8d\x64\xcd\0", 9 },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		start(&f, CODE + 0x100);
		put_code(&f, entries[i].code, entries[i].len);
		put_frame(&f, CODE + 0x200);
		assert_int_equal(guess_by_code(&f), WP_STEP_OK);
		start(&f, CODE + 0x200);
		put_code(&f, entries[i].code, entries[i].len);
		put_frame(&f, put_direct_call(&f));
		f.stack[4] = f.stack[11];
		f.stack[9] = STACK + 8 * 14;
		f.step.is_return = true;
		assert_int_equal(guess_by_code(&f), WP_STEP_OK);
		assert_int_equal(f.regs.v[WP_REG_SP], STACK + 8 * 14);
	}
	start(&f, CODE + 0x100);
	put_code(&f, "\x48\x8b\x65\x10", 4);
	put_frame(&f, CODE + 0x200);
	assert_int_equal(guess_by_code(&f), WP_STEP_NO_INFO);
}

/* Erlang's processes have stacks of their own, which end in a return to where no
 * call was. */
static void a_stack_of_the_programs_own(void **state)
{
	/* leave; ret. */
	static const char code[] = "\xc9\xc3";
	struct fixture f;

	(void)state;
	start(&f, CODE + 0x200);
	put_frame(&f, CODE + 0x180);
	assert_int_equal(guess_by_code(&f), WP_STEP_NO_INFO);
	f.stack[10] = 0;
	f.step.is_return = true;
	assert_int_equal(guess_by_code(&f), WP_STEP_ROOT);
	f.stack[11] = 1234;
	assert_int_equal(guess_by_code(&f), WP_STEP_NO_INFO);
	for (int is_known = 0; is_known < 2; is_known++) {
		start(&f, CODE + 0x200);
		put_frame(&f, put_direct_call(&f));
		wp_reg_set(&f.regs, WP_REG_SP, STACK + 800);
		if (is_known)
			put_code(&f, code, 2);
		f.step.is_return = true;
		assert_int_equal(guess_by_code(&f),
				 is_known ? WP_STEP_OK : WP_STEP_NO_INFO);
		assert_int_equal(f.step.is_switch, is_known);
	}
	/* Frames there go downwards. */
	start(&f, CODE + 0x200);
	put_frame(&f, put_direct_call(&f));
	put_code(&f, code, 2);
	wp_reg_set(&f.regs, WP_REG_SP, STACK + 800);
	f.stack[10] = STACK + 72;
	assert_int_equal(guess_by_code(&f), WP_STEP_NO_INFO);
}

/* Erlang's code calls C on another stack, and takes its own up again from where a
 * kept register leads to. */
static void a_frame_pointer_that_is_read_back_from_its_home(void **state)
{
	/* mov 0x58(%r13),%rsp; mov 0x60(%r13),%rbp; leave; ret. */
	static const char code[] = "\x49\x8b\x65\x58\x49\x8b\x6d\x60\xc9\xc3";
	enum { DW_R13 = 13, HOME = 87 };
	struct fixture f;

	(void)state;
	for (int is_home = 0; is_home < 2; is_home++) {
		start(&f, CODE + 0x200);
		put_frame(&f, put_direct_call(&f));
		put_code(&f, code, 10);
		wp_reg_set(&f.regs, WP_REG_SP, STACK + 800);
		wp_reg_set(&f.regs, DW_R13, STACK + 8 * HOME - 0x60);
		f.stack[HOME] = STACK + (is_home ? 80 : 96);
		f.step.is_return = true;
		assert_int_equal(guess_by_code(&f),
				 is_home ? WP_STEP_OK : WP_STEP_NO_INFO);
		assert_int_equal(f.step.is_switch, is_home);
	}
	/* It is in memory that cannot be read now: another look may. */
	start(&f, CODE + 0x200);
	put_frame(&f, put_direct_call(&f));
	put_code(&f, code, 10);
	wp_reg_set(&f.regs, DW_R13, 8);
	f.step.is_return = true;
	assert_int_equal(guess_by_code(&f), WP_STEP_UNREADABLE);
}

static void code_that_has_cleared_the_frame_pointer_is_the_first(void **state)
{
	/* sub %rbp,%rbp; call *%rax. */
	static const char code[] = "\x48\x29\xed\xff\xd0";
	struct fixture f;

	(void)state;
	for (int is_cleared = 0; is_cleared < 2; is_cleared++) {
		start(&f, CODE + 0x205);
		if (is_cleared)
			put_code(&f, code, 5);
		wp_reg_set(&f.regs, DW_RBP, 0);
		f.step.is_return = true;
		assert_int_equal(guess_by_code(&f),
				 is_cleared ? WP_STEP_ROOT : WP_STEP_NO_INFO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_frame_pointer_that_is_read_back_from_its_home),
		cmocka_unit_test(
			code_that_has_cleared_the_frame_pointer_is_the_first),
		cmocka_unit_test(frame_pointer_is_followed),
		cmocka_unit_test(a_frame_pointer_that_may_leave_out_frames),
		cmocka_unit_test(code_of_no_file_that_uses_its_frame),
		cmocka_unit_test(a_function_that_has_no_frame_yet),
		cmocka_unit_test(a_function_before_has_no_say),
		cmocka_unit_test(an_interpreter_is_returned_to),
		cmocka_unit_test(a_stack_of_the_programs_own),
		cmocka_unit_test(a_context_begins_in_its_start),
		cmocka_unit_test(every_form_of_call_is_known),
		cmocka_unit_test(what_is_no_call_is_refused),
		cmocka_unit_test(return_address_must_be_in_a_module),
		cmocka_unit_test(odd_frame_pointers_are_refused),
		cmocka_unit_test(cleared_frame_record_is_the_root),
		cmocka_unit_test(code_in_no_module_has_a_frame_pointer_at_most),
		cmocka_unit_test(system_call_stub_returns_to_its_caller),
		cmocka_unit_test(a_thread_just_made_is_at_its_root),
		cmocka_unit_test(
			a_forked_child_is_on_a_copy_of_its_parents_stack),
		cmocka_unit_test(a_thread_just_made_may_have_tested_it),
		cmocka_unit_test(plt_stub_returns_to_its_caller),
		cmocka_unit_test(signal_trampoline_gives_all_registers),
		cmocka_unit_test(code_is_read_from_the_image),
		cmocka_unit_test(what_is_saved_later_is_not_saved_yet),
		cmocka_unit_test(what_was_written_over_is_not_what_was_there),
		cmocka_unit_test(who_was_jumped_to_by_pointer_was_called),
		cmocka_unit_test(
			code_of_a_file_says_what_a_system_call_has_on_the_stack),
		cmocka_unit_test(the_first_code_of_a_program_has_no_caller),
		cmocka_unit_test(the_first_code_of_a_program_may_be_long),
		cmocka_unit_test(nothing_is_proven_while_the_thread_is_stopped),
		cmocka_unit_test(a_proof_is_work),
		cmocka_unit_test(
			code_of_no_file_is_not_followed_while_the_thread_is_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* The patterns above are of x86-64. */
int main(void)
{
	return 0;
}

#endif
