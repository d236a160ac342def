/* SPDX-License-Identifier: Apache-2.0 */
/* go_row.c - see go_row.h. */
#include "go_row.h"

#include <errno.h>
#include <string.h>

#include "go_end.h"
#include "wallprof/go_table.h"

enum {
/* The byte between functions (cmd/link, amd64/obj.go and arm64/obj.go): int3. */
#if defined(__x86_64__)
	PADDING = 0xcc,
#else
	PADDING = 0,
#endif
	ALIGNMENT = 64,
	WORD = 8,
};

static bool is_padding(struct wp_elf_image *image, uint64_t svma)
{
	uint64_t off;
	const uint8_t *byte = wp_elf_image_offset(image, svma, &off) ?
				      wp_elf_image_at(image, off, 1) :
				      NULL;

	return !byte || *byte == PADDING;
}

/* The end of FUNC's code, without the padding before the next function. */
static uint64_t code_end(struct wp_elf_image *image,
			 const struct wp_go_func *func)
{
	uint64_t end_svma = func->end_svma;

	while (func->end_svma - end_svma < ALIGNMENT &&
	       end_svma > func->start_svma && is_padding(image, end_svma - 1))
		end_svma--;
	return end_svma;
}

static enum wp_step_result result_of(int rc)
{
	return rc == -EBADMSG ? WP_STEP_BAD_INFO : WP_STEP_NO_INFO;
}

/* Is FUNC one that a signal handler of Go's calls in the name of what it came upon
 * (runtime/signal_unix.go, sighandler, preparePanic and doSigPreempt)?  Go's own
 * traceback takes the caller's pc as it is then (runtime/traceback.go, next). */
static bool is_injected(const struct wp_go_table *table,
			const struct wp_go_func *func)
{
	static const char *const names[] = { "runtime.asyncPreempt",
					     "runtime.sigpanic",
					     "runtime.debugCallV2" };
	const char *name = wp_go_table_text(table, func->name_off);

	for (size_t i = 0; name && i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Is FUNC what C calls back Go by (runtime/asm_amd64.s)?  It goes to the goroutine's
 * stack and makes a frame as large as its own there, above which it puts the pc that
 * the goroutine has left for C, as it is; on aarch64 in the place of the return
 * address. */
static bool is_callback(const struct wp_go_table *table,
			const struct wp_go_func *func)
{
	const char *name = wp_go_table_text(table, func->name_off);

	return name && !strcmp(name, "runtime.cgocallback");
}

#if defined(__x86_64__)

/* A frame of any size begins with the caller's frame pointer. */
static void set_saved(struct wp_cfi_row *row, uint32_t size)
{
	row->cfa_off = (int64_t)size + WORD;
	row->reg[WP_CFI_RA_SLOT] = (struct wp_cfi_place){ WP_CFI_OFFSET,
							  -WORD };
	row->reg[WP_CFI_FP_SLOT] = size ? (struct wp_cfi_place){ WP_CFI_OFFSET,
								 -2 * WORD } :
					  (struct wp_cfi_place){ WP_CFI_SAME,
								 0 };
}

/* cgocallback saves no frame pointer there. */
static void set_callback(struct wp_cfi_row *row)
{
	row->reg[WP_CFI_FP_SLOT].kind = WP_CFI_UNDEFINED;
}

static void set_injected(struct wp_cfi_row *row)
{
	(void)row;
}

static bool is_root(const struct wp_go_func *func, uint32_t size)
{
	return func->sets_sp && func->is_first && !size;
}

#else

/* The return address is at the stack pointer, the caller's frame pointer below it
 * (cmd/internal/obj/arm64, preprocess).  A function without a frame has both in
 * registers. */
static void set_saved(struct wp_cfi_row *row, uint32_t size)
{
	const struct wp_cfi_place same = { WP_CFI_SAME, 0 };

	row->cfa_off = size;
	row->reg[WP_CFI_RA_SLOT] = same;
	row->reg[WP_CFI_FP_SLOT] = same;
	if (!size)
		return;
	row->reg[WP_CFI_RA_SLOT] = (struct wp_cfi_place){ WP_CFI_OFFSET,
							  -(int64_t)size };
	row->reg[WP_CFI_FP_SLOT] = (struct wp_cfi_place){
		WP_CFI_OFFSET, -(int64_t)size - WORD
	};
}

static void set_callback(struct wp_cfi_row *row)
{
	(void)row;
}

/* The signal handler has pushed the link register of what it came upon, and room to
 * align the stack (runtime/signal_arm64.go, preparePanic and pushCall). */
static void set_injected(struct wp_cfi_row *row)
{
	row->cfa_off += 2 * WORD;
	row->reg[WP_CFI_RA_SLOT].val -= 2 * WORD;
	row->reg[WP_CFI_FP_SLOT].val -= 2 * WORD;
}

/* One that has called and has no frame. */
static bool is_root(const struct wp_go_func *func, uint32_t size)
{
	return func->is_first && !size;
}

#endif

static struct wp_cfi_row make_row(const struct wp_go_func *func, uint32_t size)
{
	struct wp_cfi_row row = {
		.cfa_kind = func->sets_sp ? WP_CFI_CFA_SWITCH : WP_CFI_CFA_REG,
		.cfa_reg = WP_REG_SP,
	};

	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		row.reg[i].kind = WP_CFI_UNDEFINED;
	row.reg[WP_CFI_SP_SLOT].kind = WP_CFI_VAL_OFFSET;
	set_saved(&row, size);
	return row;
}

enum wp_step_result wp_go_row(struct wp_elf_image *image, uint64_t svma,
			      struct wp_cfi_row *ret)
{
	struct wp_go_table table;
	struct wp_go_func func;
	enum wp_step_result end;
	uint64_t end_svma;
	uint32_t size;
	int rc;

	rc = wp_go_table_open(&table, image);
	if (!rc)
		rc = wp_go_table_find(&table, svma, &func);
	if (!rc)
		rc = wp_go_table_frame(&table, &func, svma, &size);
	if (rc)
		return result_of(rc);
	end_svma = code_end(image, &func);
	/* A return address behind the code is that of a signal handler, to a
	 * trampoline that the next function is. */
	if (svma >= end_svma)
		return WP_STEP_NO_INFO;
	end = wp_go_end(image, func.start_svma, end_svma, svma);
	if (end == WP_STEP_ROOT || (end != WP_STEP_OK && !func.sets_sp))
		return end;
	if (is_root(&func, size))
		return WP_STEP_ROOT;
	if (is_callback(&table, &func)) {
		func.sets_sp = false;
		*ret = make_row(&func, size);
		set_callback(ret);
		ret->is_injected = true;
		return WP_STEP_OK;
	}
	*ret = make_row(&func, size);
	ret->is_injected = is_injected(&table, &func);
	if (ret->is_injected)
		set_injected(ret);
	return WP_STEP_OK;
}
