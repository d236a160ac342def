/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: unwind.  Stacks of i386 programs: 32-bit files, registers and words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "../../unwind/vdso_i386.h"

#if defined(__x86_64__)
enum {
	NOTE = 0x100,
	HDR = 0x200,
	EH = 0x300,
	/* Functions of 0x100 bytes. */
	TEXT = 0x800,
	FUNC = 0x100,
	FILE_SIZE = 0x1000,
	MODULE = 0x56000000,
	STACK = 0xffd00000,
	NWORDS = 64,
};

#define LIT(s) s, sizeof(s) - 1

struct file {
	uint8_t bytes[FILE_SIZE];
	uint32_t eh_len;
	uint32_t nfuncs;
};

static void put_u32(struct file *f, uint32_t at, uint32_t val)
{
	memcpy(f->bytes + at, &val, sizeof(val));
}

/* An entry of .eh_frame: its length, ID and BODY, padded by DW_CFA_nop. */
static uint32_t put_entry(struct file *f, uint32_t id, const void *body,
			  uint32_t len)
{
	uint32_t at = EH + f->eh_len, padded = (4 + len + 3) & ~3u;

	put_u32(f, at, padded);
	put_u32(f, at + 4, id);
	memcpy(f->bytes + at + 8, body, len);
	f->eh_len += 4 + padded;
	return at;
}

/* Add a function with augmentation AUG ("zR", "zRS") and INSNS: at its start the CFA is
 * esp + 4, and eip at CFA - 4.  Returns where it begins. */
static uint32_t add(struct file *f, const char *aug, const void *insns,
		    uint32_t len)
{
	/* Alignments 1 and -4, return address in column 8; pcrel sdata4;
	 * def_cfa esp, 4; offset eip, 1. */
	static const uint8_t rest[] = {
		1, 0x7c, 8, 1, 0x1b, 0x0c, 4, 4, 0x88, 1
	};
	uint8_t cie[32] = { 1 }, fde[128] = { 0 };
	uint32_t n = (uint32_t)strlen(aug) + 1, cie_at, at;
	uint32_t start = TEXT + FUNC * f->nfuncs;

	memcpy(cie + 1, aug, n);
	memcpy(cie + 1 + n, rest, sizeof(rest));
	cie_at = put_entry(f, 0, cie, 1 + n + (uint32_t)sizeof(rest));
	at = EH + f->eh_len;
	n = start - (at + 8);
	memcpy(fde, &n, 4);
	n = FUNC;
	memcpy(fde + 4, &n, 4);
	memcpy(fde + 9, insns, len);
	put_entry(f, at + 4 - cie_at, fde, 9 + len);
	put_u32(f, HDR + 12 + 8 * f->nfuncs, start - HDR);
	put_u32(f, HDR + 16 + 8 * f->nfuncs, at - HDR);
	f->nfuncs++;
	return start;
}

static void put_headers(struct file *f)
{
	Elf32_Ehdr eh = {
		.e_type = ET_DYN,
		.e_machine = EM_386,
		.e_phoff = sizeof(Elf32_Ehdr),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_phnum = 3,
	};
	const Elf32_Phdr ph[3] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_filesz = FILE_SIZE,
		  .p_memsz = FILE_SIZE },
		{ .p_type = PT_GNU_EH_FRAME,
		  .p_vaddr = HDR,
		  .p_offset = HDR,
		  .p_filesz = 12 + 8 * f->nfuncs },
		{ .p_type = PT_NOTE, .p_offset = NOTE, .p_filesz = 20 },
	};

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS32;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(f->bytes, &eh, sizeof(eh));
	memcpy(f->bytes + sizeof(eh), ph, sizeof(ph));
	memcpy(f->bytes + NOTE, "\4\0\0\0\4\0\0\0\3\0\0\0GNU\0\1\2\3\4", 20);
	memcpy(f->bytes + HDR, "\x01\x1b\x03\x3b", 4);
	put_u32(f, HDR + 4, (uint32_t)(EH - (HDR + 4)));
	put_u32(f, HDR + 8, f->nfuncs);
}

/* A process: the file at MODULE, words at STACK. */
struct process {
	struct file file;
	uint32_t words[NWORDS];
	struct wp_elf_image image;
	struct wp_unwind_module module;
	struct wp_unwind_modules modules;
	struct wp_regs regs;
	struct wp_frame frames[8];
	uint64_t cfa_avma[8];
	struct wp_stack stack;
};

static struct process p;

static enum wp_mem_result read_process(void *ctx, uint64_t avma, void *buf,
				       size_t len)
{
	uint64_t at = avma - STACK;

	(void)ctx;
	if (at > sizeof(p.words) || len > sizeof(p.words) - at)
		return WP_MEM_UNREADABLE;
	memcpy(buf, (const char *)p.words + at, len);
	return WP_MEM_OK;
}

static long read_file(void *src, void *buf, size_t len, uint64_t off)
{
	(void)src;
	memcpy(buf, p.file.bytes + off, len);
	return (long)len;
}

static void set(unsigned int reg, uint64_t val)
{
	wp_reg_set(&p.regs, reg, val);
}

static int setup(void **state)
{
	(void)state;
	memset(&p, 0, sizeof(p));
	set(WP_REG_SP, STACK);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	wp_elf_image_clear(&p.image);
	return 0;
}

/* FROM_MEMORY: as the vDSO's. */
static void open_image(bool from_memory)
{
	put_headers(&p.file);
	if (from_memory)
		assert_int_equal(wp_elf_image_open_memory(&p.image, FILE_SIZE,
							  read_file, NULL,
							  NULL),
				 0);
	else
		assert_int_equal(wp_elf_image_open_bytes(&p.image, p.file.bytes,
							 FILE_SIZE, NULL),
				 0);
	p.module = (struct wp_unwind_module){ MODULE,	MODULE + FILE_SIZE,
					      MODULE,	1,
					      &p.image, false };
	p.modules = (struct wp_unwind_modules){
		.v = &p.module, .len = 1, .generation = 1, .is_32bit = true
	};
}

static void walk(void)
{
	const struct wp_mem mem = { read_process, NULL };
	struct wp_unwinder *u;

	assert_int_equal(wp_unwinder_new(&u, WP_UNWIND_ROWS), 0);
	p.stack = (struct wp_stack){ .frames = p.frames,
				     .cfa_avma = p.cfa_avma,
				     .cap = 8 };
	wp_unwind_walk(u, &p.modules, &p.regs, &mem, WP_UNWIND_THOROUGH,
		       &p.stack);
	wp_unwinder_free(u);
}

static void assert_frame(uint32_t i, uint32_t svma, uint32_t flags)
{
	assert_true(i < p.stack.depth);
	assert_int_equal(p.frames[i].pc_avma, MODULE + svma);
	assert_int_equal(p.frames[i].flags, flags);
}

static void registers_come_back_from_words_of_4_bytes(void **state)
{
	/* CFA = esp + 20; ebp, edi, esi, ebx are below the return address. */
	uint32_t saves = add(&p.file, "zR",
			     LIT("\x0e\x14\x85\2\x87\3\x86\4\x83\5"));
	/* CFA = ebx + 4, esi + 4, edi + 4. */
	uint32_t by_ebx = add(&p.file, "zR", LIT("\x0d\3"));
	uint32_t by_esi = add(&p.file, "zR", LIT("\x0d\6"));
	uint32_t by_edi = add(&p.file, "zR", LIT("\x0d\7"));
	/* As main has it: the word at ebp - 4. */
	uint32_t by_word = add(&p.file, "zR", LIT("\x0f\3\x75\x7c\6"));
	/* The return address is undefined. */
	uint32_t first = add(&p.file, "zR", LIT("\7\x08"));

	(void)state;
	open_image(false);
	p.words[0] = STACK + 4 * 8; /* ebx */
	p.words[1] = STACK + 4 * 10; /* esi */
	p.words[2] = STACK + 4 * 12; /* edi */
	p.words[3] = STACK + 4 * 21; /* ebp */
	p.words[4] = MODULE + by_ebx + 9;
	p.words[8] = MODULE + by_esi + 9;
	p.words[10] = MODULE + by_edi + 9;
	p.words[12] = MODULE + by_word + 9;
	p.words[20] = STACK + 4 * 31;
	p.words[30] = MODULE + first + 9;
	set(WP_REG_PC, MODULE + saves + 1);
	walk();
	assert_int_equal(p.stack.end, WP_END_ROOT);
	assert_int_equal(p.stack.depth, 6);
	assert_frame(0, saves + 1, 0);
	assert_frame(1, by_ebx + 9, WP_FRAME_RETURN);
	assert_frame(2, by_esi + 9, WP_FRAME_RETURN);
	assert_frame(3, by_edi + 9, WP_FRAME_RETURN);
	assert_frame(4, by_word + 9, WP_FRAME_RETURN);
	assert_frame(5, first + 9, WP_FRAME_RETURN);
	assert_int_equal(p.cfa_avma[0], STACK + 20);
	assert_int_equal(p.cfa_avma[4], STACK + 4 * 31);
}

static void the_frame_of_a_signal_tells_all_registers(void **state)
{
	/* As arch/x86/entry/vdso/vdso32/sigreturn.S: the CFA is the word at esp + 8,
	 * eip at esp + 12, ebx at esp + 16; all of them expressions. */
	uint32_t handler = add(&p.file, "zRS",
			       LIT("\x0f\3\x74\x08\6\x10\x08\2\x74\x0c"
				   "\x10\3\2\x74\x10"));
	uint32_t by_ebx = add(&p.file, "zR", LIT("\x0d\3"));
	uint32_t first = add(&p.file, "zR", LIT("\7\x08"));

	(void)state;
	open_image(false);
	p.words[2] = STACK + 4 * 20;
	p.words[3] = MODULE + by_ebx;
	p.words[4] = STACK + 4 * 30;
	p.words[30] = MODULE + first + 9;
	set(WP_REG_PC, MODULE + handler + 4);
	walk();
	assert_int_equal(p.stack.end, WP_END_ROOT);
	assert_frame(0, handler + 4, WP_FRAME_SIGNAL);
	/* Its pc is exact, its first instruction. */
	assert_frame(1, by_ebx, 0);
	assert_frame(2, first + 9, WP_FRAME_RETURN);
}

static void addresses_wrap_at_4_gib(void **state)
{
	/* CFA = eax + 0x20000000. */
	uint32_t wraps = add(&p.file, "zR", LIT("\x0c\0\x80\x80\x80\x80\2"));
	/* A PLT stub: esp + 4 + ((eip & 15) >= 11) * 4. */
	uint32_t plt = add(
		&p.file, "zR",
		LIT("\x0f\x0b\x74\4\x78\0\x3f\x1a\x3b\x2a\x32\x24\x22"));
	uint32_t first = add(&p.file, "zR", LIT("\7\x08"));

	(void)state;
	open_image(false);
	set(0, (uint32_t)(STACK + 16 - 0x20000000));
	p.words[3] = MODULE + plt + 11;
	p.words[5] = MODULE + first + 9;
	set(WP_REG_PC, MODULE + wraps);
	walk();
	assert_int_equal(p.cfa_avma[0], STACK + 16);
	/* The return address is looked up one before: 10 of 16 bytes. */
	assert_int_equal(p.frames[1].pc_avma, MODULE + plt + 11);
	set(0, 0xf0000000);
	walk();
	assert_int_equal(p.stack.end, WP_END_UNREADABLE);
}

static void a_file_of_another_width_than_the_process_tells_nothing(void **state)
{
	uint32_t plain = add(&p.file, "zR", LIT(""));

	(void)state;
	open_image(false);
	p.words[0] = MODULE + plain + 9;
	set(WP_REG_PC, MODULE + plain);
	set(WP_REG_FP, 0);
	p.modules.is_32bit = false;
	walk();
	assert_int_equal(p.stack.depth, 1);
	assert_int_equal(p.stack.end, WP_END_NO_INFO);
}

/* The code of the kernel's: a call for its own address, add, push %ebp; mov %esp, %ebp;
 * push %edi; nop; leave; ret. */
static const char vdso_code[] = "\xe8\x3b\0\0\0\x05\1\2\3\4\x55\x89\xe5\x57"
				"\x90\xc9\xc3";
/* mov (%esp), %eax; ret. */
static const char own_address[] = "\x8b\x04\x24\xc3";

static void functions_of_the_vdso_have_no_info(void **state)
{
	static const struct {
		/* From the function's start; where the return address is, in words
		 * from esp; of the other function it is the address behind the call. */
		uint32_t at, slot;
	} rows[] = {
		{ 0, 0 },  { 5, 0 },  { 10, 0 }, { 11, 1 }, { 13, 3 },
		{ 14, 3 }, { 15, 3 }, { 16, 0 }, { 64, 0 },
	};
	uint32_t first, caller, code;

	(void)state;
	first = add(&p.file, "zR", LIT("\7\x08"));
	caller = first + 0x20;
	code = first + FUNC;
	memcpy(p.file.bytes + caller - 5, "\xe8\0\0\0\0", 5);
	memcpy(p.file.bytes + code, vdso_code, sizeof(vdso_code) - 1);
	memcpy(p.file.bytes + code + 64, own_address, sizeof(own_address) - 1);
	open_image(true);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		memset(p.words, 0, sizeof(p.words));
		p.words[2] = STACK + 4 * 40;
		p.words[rows[i].slot] = MODULE + caller;
		set(WP_REG_FP, STACK + 4 * 2);
		set(WP_REG_PC, MODULE + code + rows[i].at);
		walk();
		assert_int_equal(p.stack.depth, 2);
		assert_int_equal(p.frames[1].pc_avma, MODULE + caller);
		assert_int_equal(p.stack.end, WP_END_ROOT);
		assert_int_equal(p.cfa_avma[0], STACK + 4 * (rows[i].slot + 1));
	}
	/* No call is before where it would return to. */
	p.words[0] = MODULE + caller + 1;
	walk();
	assert_int_equal(p.stack.depth, 1);
	/* Nor is a prologue before the pc. */
	memset(p.file.bytes + code, 0x90, 32);
	teardown(NULL);
	open_image(true);
	set(WP_REG_PC, MODULE + code + 14);
	set(WP_REG_FP, 0);
	walk();
	assert_int_equal(p.stack.depth, 1);
}

/* The step from AT of the second function, whose frame record is at words 4 and 5, where
 * words before it may be return addresses, too. */
static enum wp_step_result step_in_vdso(uint32_t at, uint32_t caller)
{
	static const struct wp_mem mem = { read_process, NULL };
	struct wp_step step = { .module = &p.module,
				.regs = &p.regs,
				.mem = &mem,
				.is_32bit = true };

	memset(p.words, 0, sizeof(p.words));
	for (int n = 0; n < 6; n++)
		p.words[n] = MODULE + caller;
	p.words[4] = STACK + 4 * 40;
	p.regs.known = 0;
	set(WP_REG_SP, STACK);
	set(WP_REG_FP, STACK + 4 * 4);
	set(WP_REG_PC, MODULE + TEXT + FUNC + at);
	return wp_vdso_i386_step(&step, &p.modules);
}

/* Its code says where the return address is, whatever else is on the stack. */
static void code_of_the_vdso_says_what_is_on_the_stack(void **state)
{
	/* call; add $NUMBER, %ebx; push %ebp; mov %esp, %ebp; nop; mov %eax, %ecx;
	 * pop %ebp; ret. */
	static const char code[] = "\xe8\x3b\0\0\0\x81\xc3\1\2\3\4\x55\x89\xe5"
				   "\x90\x8b\xc8\x5d\xc3";
	static const struct {
		uint32_t at, slot;
	} rows[] = { { 0, 0 },	{ 5, 0 },  { 11, 0 }, { 12, 1 },
		     { 14, 5 }, { 15, 5 }, { 17, 5 }, { 18, 0 } };
	uint32_t caller = add(&p.file, "zR", LIT("\7\x08")) + 0x20;

	(void)state;
	memcpy(p.file.bytes + caller - 5, "\xe8\0\0\0\0", 5);
	memcpy(p.file.bytes + TEXT + FUNC, code, sizeof(code) - 1);
	open_image(true);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(step_in_vdso(rows[i].at, caller), WP_STEP_OK);
		assert_int_equal(p.regs.v[WP_REG_PC], MODULE + caller);
		assert_int_equal(p.regs.v[WP_REG_SP],
				 STACK + 4 * (rows[i].slot + 1));
	}
	/* That is no return address; and it cannot be read. */
	assert_int_equal(step_in_vdso(0, caller + 1), WP_STEP_NO_INFO);
	set(WP_REG_SP, STACK + sizeof(p.words));
	set(WP_REG_PC, MODULE + TEXT + FUNC);
	assert_int_equal(
		wp_vdso_i386_step(
			&(struct wp_step){
				.module = &p.module,
				.regs = &p.regs,
				.mem = &(struct wp_mem){ read_process, NULL },
				.is_32bit = true },
			&p.modules),
		WP_STEP_UNREADABLE);
	/* Behind the last function is no code; and before them no prologue. */
	assert_int_equal(step_in_vdso(FILE_SIZE - TEXT - FUNC - 4, caller),
			 WP_STEP_NO_INFO);
	teardown(NULL);
	memset(p.file.bytes + TEXT + FUNC, 0x90, sizeof(code));
	open_image(true);
	assert_int_equal(step_in_vdso(14, caller), WP_STEP_NO_INFO);
}

/* Code at a function without info, and who called it. */
static uint32_t add_caller(uint32_t *ret_code, const char *code, size_t len)
{
	uint32_t caller = add(&p.file, "zR", LIT("\7\x08")) + 0x20;

	*ret_code = TEXT + FUNC * p.file.nfuncs;
	memcpy(p.file.bytes + caller - 5, "\xe8\0\0\0\0", 5);
	memcpy(p.file.bytes + *ret_code, code, len);
	return caller;
}

static void a_return_and_what_finds_its_own_address_need_no_info(void **state)
{
	/* mov (%esp), %ebx; ret. */
	uint32_t code, caller = add_caller(&code, LIT("\x8b\x1c\x24\xc3"));

	(void)state;
	open_image(false);
	for (uint32_t at = 0; at <= 3; at += 3) {
		p.words[0] = MODULE + caller;
		set(WP_REG_PC, MODULE + code + at);
		walk();
		assert_int_equal(p.stack.depth, 2);
		assert_frame(1, caller, WP_FRAME_RETURN | WP_FRAME_GUESSED);
		assert_int_equal(p.stack.end, WP_END_ROOT);
		/* No call is before where it would return to. */
		p.words[0] = MODULE + caller + 1;
		walk();
		assert_int_equal(p.stack.depth, 1);
	}
	/* mov 4(%esp), %ebx is another. */
	p.file.bytes[code + 1] = 0x5c;
	p.words[0] = MODULE + caller;
	set(WP_REG_PC, MODULE + code);
	walk();
	assert_int_equal(p.stack.depth, 1);
}

/* Unwind info that does not count what was pushed: the word that it takes for a return
 * address is none of code. */
static void pushed_words_that_info_does_not_count_are_passed(void **state)
{
	uint32_t leaf, code, caller;

	(void)state;
	leaf = add(&p.file, "zR", LIT(""));
	caller = add_caller(&code, LIT("\x8b\x1c\x24\xc3"));
	/* call of what finds its address, of the leaf. */
	put_u32(&p.file, leaf + 0x40 - 4, code - (leaf + 0x40));
	p.file.bytes[leaf + 0x40 - 5] = 0xe8;
	open_image(false);
	set(WP_REG_FP, STACK + 16);
	for (uint32_t pushed = 1; pushed <= 4; pushed++) {
		memset(p.words, 0x11, sizeof(p.words));
		p.words[pushed] = MODULE + caller;
		set(WP_REG_PC, MODULE + leaf + 9);
		walk();
		if (pushed == 4) {
			assert_int_equal(p.stack.end, WP_END_NO_MODULE);
			assert_int_equal(p.frames[1].pc_avma, 0x11111111);
			break;
		}
		assert_int_equal(p.stack.depth, 2);
		assert_frame(1, caller, WP_FRAME_RETURN | WP_FRAME_GUESSED);
		assert_int_equal(p.stack.end, WP_END_ROOT);
		assert_int_equal(p.cfa_avma[0], STACK + 4 * (pushed + 1));
		/* Of one that made a call only what that was tells it. */
		memmove(p.words + 1, p.words, sizeof(p.words) / 2);
		p.words[0] = MODULE + leaf + 0x40;
		set(WP_REG_PC, MODULE + code);
		walk();
		assert_int_equal(p.stack.depth, 3);
		assert_frame(2, caller, WP_FRAME_RETURN | WP_FRAME_GUESSED);
	}
}

/* As in glibc's memcpy: the info counts fewer words than there are, none. */
static void info_by_which_nothing_was_called_is_passed(void **state)
{
	/* CFA = esp; behind that, restore_state of none that was remembered. */
	uint32_t leaf = add(&p.file, "zR", LIT("\x0e\0\x42\x0b"));
	uint32_t code, caller = add_caller(&code, LIT(""));

	(void)state;
	open_image(false);
	p.words[0] = MODULE + caller + 2;
	p.words[1] = 0x11111111;
	p.words[2] = MODULE + caller;
	for (uint32_t at = 1; at < 3; at++) {
		set(WP_REG_SP, STACK + 4);
		set(WP_REG_PC, MODULE + leaf + at);
		walk();
		assert_int_equal(p.stack.depth, 2);
		assert_frame(1, caller, WP_FRAME_RETURN | WP_FRAME_GUESSED);
		assert_int_equal(p.stack.end, WP_END_ROOT);
	}
}

/* Whom a handler returns to is behind no call. */
static void info_that_leads_to_code_is_followed(void **state)
{
	uint32_t leaf = add(&p.file, "zR", LIT("")), code;
	uint32_t caller = add_caller(&code, LIT(""));

	(void)state;
	open_image(false);
	p.words[0] = MODULE + caller + 9;
	p.words[1] = MODULE + caller;
	set(WP_REG_PC, MODULE + leaf + 9);
	walk();
	assert_frame(1, caller + 9, WP_FRAME_RETURN);
}

static int open_changed(size_t at, uint8_t byte)
{
	uint8_t was = p.file.bytes[at];
	int rc;

	p.file.bytes[at] = byte;
	rc = wp_elf_image_open_bytes(&p.image, p.file.bytes, FILE_SIZE, NULL);
	p.file.bytes[at] = was;
	return rc;
}

static void headers_are_those_of_32_bits(void **state)
{
	(void)state;
	add(&p.file, "zR", LIT(""));
	open_image(false);
	assert_true(wp_elf_image_is_32bit(&p.image));
	assert_int_equal(p.image.type, ET_DYN);
	assert_int_equal(p.image.nloads, 1);
	assert_int_equal(p.image.loads[0].filesz, FILE_SIZE);
	assert_int_equal(p.image.loads[0].flags, PF_R | PF_X);
	assert_int_equal(p.image.eh_frame_hdr.svma, HDR);
	assert_int_equal(p.image.build_id_len, 4);
	assert_memory_equal(p.image.build_id, "\1\2\3\4", 4);
	assert_int_equal(open_changed(EI_CLASS, ELFCLASS64), -ENOTSUP);
	assert_int_equal(open_changed(EI_DATA, ELFDATA2MSB), -ENOTSUP);
	assert_int_equal(
		open_changed(offsetof(Elf32_Ehdr, e_machine), EM_X86_64),
		-ENOTSUP);
	assert_int_equal(open_changed(offsetof(Elf32_Ehdr, e_phentsize),
				      sizeof(Elf64_Phdr)),
			 -EBADMSG);
	assert_int_equal(open_changed(offsetof(Elf32_Ehdr, e_phoff) + 3, 0x80),
			 -EBADMSG);
	assert_int_equal(wp_elf_image_open_bytes(&p.image, p.file.bytes,
						 sizeof(Elf32_Ehdr) - 1, NULL),
			 -ENOTSUP);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(registers_come_back_from_words_of_4_bytes),
		TEST(the_frame_of_a_signal_tells_all_registers),
		TEST(addresses_wrap_at_4_gib),
		TEST(a_file_of_another_width_than_the_process_tells_nothing),
		TEST(functions_of_the_vdso_have_no_info),
		TEST(code_of_the_vdso_says_what_is_on_the_stack),
		TEST(a_return_and_what_finds_its_own_address_need_no_info),
		TEST(pushed_words_that_info_does_not_count_are_passed),
		TEST(info_by_which_nothing_was_called_is_passed),
		TEST(info_that_leads_to_code_is_followed),
		TEST(headers_are_those_of_32_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
/* Programs of i386 run on x86-64 alone. */
int main(void)
{
	return 0;
}
#endif
