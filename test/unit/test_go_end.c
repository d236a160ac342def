/* SPDX-License-Identifier: Apache-2.0 */
/* The outermost frames of Go programs.  Layer: unwind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "../../unwind/cfi_table.h"
#include "../../unwind/go_end.h"
#include "cfi_bytes.h"

#if defined(__x86_64__)
enum { TEXT = 0x401000, ROOM = 64, STACK = 0x70000 };

/* Code as objdump -d shows it in a program of go 1.19, the fourth and fifth as
 * its assembler makes them of later sources, those with \xbd in a
 * program of go 1.27, the last three in programs of go 1.23 and 1.26; AT is the last byte of the call.
 * What is_whole is must be all of its function, what is_end is its end. */
static const struct root {
	const char *code;
	uint8_t len;
	uint8_t at;
	bool is_whole;
	bool is_end;
	/* Bytes that may be any: displacements. */
	uint8_t any[9];
	enum wp_step_result result;
} roots[] = {
	{ "\x90\xe8\x1a\x25\0\0\x90",
	  7,
	  0,
	  true,
	  true,
	  { 2, 3, 4, 5 },
	  WP_STEP_ROOT },
	{ "\x41\xff\xd4\xbf\x6f\0\0\0\xb8\x3c\0\0\0\x0f\x05\xeb\xf2",
	  17,
	  2,
	  false,
	  true,
	  { 0 },
	  WP_STEP_ROOT },
	{ "\x49\x8b\x66\x38\x50\x4c\x8b\x22\x41\xff\xd4\x58\xe9",
	  13,
	  10,
	  false,
	  false,
	  { 0 },
	  WP_STEP_ROOT },
	{ "\x49\x8b\x66\x38\x48\xc7\xc5\0\0\0\0\x50\x4c\x8b\x22\x41\xff\xd4"
	  "\x58\xe9",
	  20,
	  17,
	  false,
	  false,
	  { 0 },
	  WP_STEP_ROOT },
	{ "\x49\x8b\x66\x38\x48\xc7\xc5\0\0\0\0\x50\x4c\x8b\x22\x41\xff\xd4"
	  "\x90\x58\xe9",
	  21,
	  17,
	  false,
	  false,
	  { 0 },
	  WP_STEP_ROOT },
	{ "\x49\x8b\x66\x38\xbd\0\0\0\0\x50\x4c\x8b\x22\x41\xff\xd4\x90\x58"
	  "\xe9",
	  19,
	  15,
	  false,
	  false,
	  { 0 },
	  WP_STEP_ROOT },
	{ "\x48\x8b\x63\x38\xbd\0\0\0\0\xe8\xe5\x3b\0\0\xe8\xe0\x17\0\0\xc3",
	  20,
	  13,
	  false,
	  true,
	  { 10, 11, 12, 13, 15, 16, 17, 18 },
	  WP_STEP_ROOT },
	{ "\xff\xd7\x64\x48\x8b\x04\x25\xf8\xff\xff\xff\x48\x8b\x58\x30\x48"
	  "\x8b\x83\xc0\0\0\0\x64\x48\x89\x04\x25\xf8\xff\xff\xff\x48\x8b"
	  "\x60\x38",
	  35,
	  1,
	  false,
	  false,
	  { 18, 19, 20, 21 },
	  WP_STEP_UNKNOWN_REG },
	{ "\x48\x8b\x63\x38\xe8\x75\x45\0\0\xe8\x10\x1e\0\0\xc3",
	  15,
	  8,
	  false,
	  true,
	  { 5, 6, 7, 8, 10, 11, 12, 13 },
	  WP_STEP_ROOT },
	{ "\x48\x8b\x63\x38\x48\x8b\x6b\x68\xe8\x46\x44\0\0\xe8\xa1\x1b\0\0"
	  "\xc3",
	  19,
	  12,
	  false,
	  true,
	  { 7, 9, 10, 11, 12, 14, 15, 16, 17 },
	  WP_STEP_ROOT },
	{ "\x48\x8b\x63\x38\x48\xc7\xc5\0\0\0\0\xe8\x63\x3d\0\0\xe8\xde\x17"
	  "\0\0\xc3",
	  22,
	  15,
	  false,
	  true,
	  { 12, 13, 14, 15, 17, 18, 19, 20 },
	  WP_STEP_ROOT },
	{ "\x49\x8b\x66\x38\x50\x4c\x8b\x22\x41\xff\xd4\x90\x58\xe9",
	  14,
	  10,
	  false,
	  false,
	  { 0 },
	  WP_STEP_ROOT },
};

#define NROOTS (sizeof(roots) / sizeof(roots[0]))

/* A function of SIZE bytes at TEXT whose code is CODE[0..LEN) from AT on; after
 * ROOM bytes .debug_frame as Go's linker writes it: CFA = rsp + 8, the return
 * address at CFA - 8. */
static struct wp_elf_image make_image(const void *code, size_t len, size_t at,
				      size_t size)
{
	struct bytes b = { .len = ROOM };
	struct wp_elf_image image;

	memcpy(b.v + at, code, len);
	begin_entry(&b);
	put(&b, UINT32_MAX, 4);
	put_bytes(&b, LIT("\x03\0\x01\x7c\x10\x0c\x07\x08\x05\x10\x02\0"));
	end_entry(&b);
	begin_entry(&b);
	put(&b, 0, 4);
	put(&b, TEXT, 8);
	put(&b, size, 8);
	put_bytes(&b, LIT("\x13\x7e"));
	end_entry(&b);
	image = image_of(b.v, b.len, TEXT);
	image.debug_frame = (struct wp_elf_range){ 0, ROOM, b.len - ROOM };
	return image;
}

/* The one place in the image where a walk ends, with RESULT; 0 if none. */
static uint64_t find_root(struct wp_elf_image *image,
			  enum wp_step_result result)
{
	struct wp_cfi_table table;
	struct wp_cfi_fde fde;
	uint64_t found = 0;

	wp_cfi_table_init(&table, image);
	for (uint64_t svma = TEXT; svma < TEXT + ROOM; svma++) {
		enum wp_step_result end;

		if (wp_cfi_table_find(&table, svma, true, &fde))
			continue;
		end = wp_go_end(image, fde.start_svma, fde.end_svma, svma);
		if (end == WP_STEP_OK)
			continue;
		assert_int_equal(end, result);
		assert_int_equal(found, 0);
		found = svma;
	}
	wp_cfi_table_clear(&table);
	return found;
}

/* Of CODE in place of R's: see make_image(). */
static uint64_t root_of(const struct root *r, const void *code, size_t at,
			size_t size)
{
	struct wp_elf_image image = make_image(code, r->len, at, size);
	uint64_t found = find_root(&image, r->result);

	image_free(&image);
	return found;
}

static void the_call_of_an_outermost_frame(void **state)
{
	(void)state;
	for (size_t i = 0; i < NROOTS; i++) {
		const struct root *r = &roots[i];

		assert_int_equal(root_of(r, r->code, 0, r->len), TEXT + r->at);
		/* More code behind it, or before it. */
		assert_int_equal(root_of(r, r->code, 0, r->len + 1u),
				 r->is_end ? 0 : TEXT + r->at);
		assert_int_equal(root_of(r, r->code, 9, 9u + r->len),
				 r->is_whole ? 0 : TEXT + 9 + r->at);
	}
}

static void each_byte_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < NROOTS; i++) {
		const struct root *r = &roots[i];

		for (unsigned int n = 0; n < r->len; n++) {
			bool is_any = n &&
				      memchr(r->any, (int)n, sizeof(r->any));
			char code[ROOM];

			memcpy(code, r->code, r->len);
			code[n] ^= 1;
			assert_int_equal(root_of(r, code, 0, r->len),
					 is_any ? TEXT + r->at : 0);
			/* A function that ends earlier. */
			assert_int_equal(root_of(r, r->code, 0, n), 0);
		}
	}
}

/* Code that the file does not have. */
static void without_bytes(void **state)
{
	struct wp_elf_image image = make_image(roots[0].code, roots[0].len, 0,
					       roots[0].len);

	(void)state;
	image.loads[0].filesz = 0;
	assert_int_equal(find_root(&image, WP_STEP_ROOT), 0);
	image.loads[0].filesz = image.size;
	image.loads[0].off = image.size - 3;
	assert_int_equal(find_root(&image, WP_STEP_ROOT), 0);
	image_free(&image);
}

static enum wp_mem_result read_stack(void *ctx, uint64_t avma, void *buf,
				     size_t len)
{
	(void)ctx;
	if (avma < STACK || len > 256)
		return WP_MEM_UNREADABLE;
	/* Everywhere a return address. */
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)((uint64_t)(TEXT + 32) >>
						(avma + i) % 8 * 8);
	return WP_MEM_OK;
}

/* What the last owner of the stack left above is no caller. */
static void a_step_ends_there(void **state)
{
	struct wp_elf_image image = make_image(roots[0].code, roots[0].len, 0,
					       roots[0].len);
	struct wp_unwind_module module = { .start_avma = TEXT,
					   .end_avma = TEXT + ROOM,
					   .image = &image };
	struct wp_unwind_stats stats = { 0 };
	struct wp_mem mem = { read_stack, NULL };
	struct wp_regs regs = { 0 };
	struct wp_step step = {
		.module = &module, .regs = &regs, .mem = &mem, .is_return = true
	};
	void *rows = wp_step_rows.open(&stats);

	(void)state;
	assert_non_null(rows);
	wp_reg_set(&regs, WP_REG_SP, STACK);
	wp_reg_set(&regs, WP_REG_PC, TEXT + 1);
	assert_int_equal(wp_step_rows.step(rows, &step), WP_STEP_ROOT);
	/* The call of goexit1 is a call like any other. */
	wp_reg_set(&regs, WP_REG_PC, TEXT + 6);
	assert_int_equal(wp_step_rows.step(rows, &step), WP_STEP_OK);
	assert_int_equal(regs.v[WP_REG_PC], TEXT + 32);
	wp_step_rows.close(rows);
	image_free(&image);
}

/* runtime.sigreturn: .debug_frame says that its caller's pc is in the word at sp,
 * which is the kernel's signal frame there. */
static void a_signal_trampoline_is_no_function(void **state)
{
	/* mov $15,%rax; syscall; int $3. */
	static const char code[] = "\x48\xc7\xc0\x0f\0\0\0\x0f\x05\xcd\x03";
	struct wp_elf_image image = make_image(code, sizeof(code) - 1, 0,
					       sizeof(code) - 1);
	struct wp_unwind_module module = { .start_avma = TEXT,
					   .end_avma = TEXT + ROOM,
					   .image = &image };
	struct wp_unwind_modules modules = { .v = &module,
					     .len = 1,
					     .generation = 1 };
	struct wp_mem mem = { read_stack, NULL };
	struct wp_regs regs = { 0 };
	struct wp_unwinder *unwinder;
	struct wp_frame frames[2];
	uint64_t cfa_avma[2];
	struct wp_stack stack = { .frames = frames,
				  .cfa_avma = cfa_avma,
				  .cap = 2 };

	(void)state;
	assert_int_equal(wp_unwinder_new(&unwinder, WP_UNWIND_ROWS), 0);
	wp_reg_set(&regs, WP_REG_SP, STACK);
	for (uint64_t at = 0; at <= 7; at += 7) {
		wp_reg_set(&regs, WP_REG_PC, TEXT + at);
		wp_unwind_walk(unwinder, &modules, &regs, &mem,
			       WP_UNWIND_THOROUGH, &stack);
		assert_int_equal(stack.frames[0].flags, WP_FRAME_SIGNAL);
		assert_int_equal(stack.depth, 2);
		assert_int_equal(stack.frames[1].pc_avma, TEXT + 32);
	}
	wp_unwinder_free(unwinder);
	image_free(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_call_of_an_outermost_frame),
		cmocka_unit_test(each_byte_counts),
		cmocka_unit_test(without_bytes),
		cmocka_unit_test(a_step_ends_there),
		cmocka_unit_test(a_signal_trampoline_is_no_function),
	};

	return cmocka_run_group_tests_name("go_end", tests, NULL, NULL);
}
#else
int main(void)
{
	/* The bytes above are x86-64's. */
	return 0;
}
#endif
