/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_walk.c - a whole walk: registers, stack and ELF file are the target's.
 *
 * The input begins with a struct header; then come the stack's bytes and then
 * the file's.  The stack lies at STACK, the module at MODULE.
 *
 * Layer: unwind.
 */
#include "fuzz_image.h"
#include "wallprof/unwind.h"

/* Of i386 programs, and of others. */
static const uint64_t stack_avmas[] = { UINT64_C(0x7ffc00000000), 0xffd00000 };
static const uint64_t module_avmas[] = { UINT64_C(0x550000000000), 0x56000000 };
#define STACK stack_avmas[is_32bit]
#define MODULE module_avmas[is_32bit]

/* The process is of 32 bits. */
static bool is_32bit;

enum {
	DEPTH_MAX = 24,
	/* What libunwind may read in one step: libunwind.c, READS_MAX; and a
	 * few words for guesses. */
	READS_MAX = (1 << 16) + 1000,
};

struct header {
	/* Bit 0: libunwind for every step.  Bit 1: an i386 program. */
	uint8_t flags;
	/* Added to the module's address in the module list, in pages. */
	uint8_t first_page;
	/* How many bytes of stack follow. */
	uint16_t stack_len;
	/* Bit N: DWARF register N is known. */
	uint32_t known;
	/* From the start of the module, and of the stack. */
	uint16_t pc;
	uint16_t sp;
	uint16_t fp;
	uint16_t other;
};

struct target {
	const uint8_t *stack;
	size_t stack_len;
	const uint8_t *file;
	size_t file_len;
	uint64_t nreads;
};

static enum wp_mem_result read_target(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	struct target *t = ctx;
	const uint8_t *from = t->stack;
	uint64_t off = avma - STACK, room = t->stack_len;

	t->nreads++;
	if (avma < STACK) {
		from = t->file;
		off = avma - MODULE;
		room = t->file_len;
	}
	if (off > room || len > room - off)
		return WP_MEM_UNREADABLE;
	memcpy(buf, from + off, len);
	return WP_MEM_OK;
}

static struct wp_regs regs_of(const struct header *h)
{
	struct wp_regs regs = { .known = 0 };

	for (unsigned int i = 0; i < WP_NREGS; i++)
		if (h->known >> i % 32 & 1)
			wp_reg_set(&regs, i, STACK + h->other + 8 * i);
	wp_reg_set(&regs, WP_REG_PC, MODULE + h->pc);
	wp_reg_set(&regs, WP_REG_SP, STACK + h->sp);
	if (wp_reg_known(&regs, WP_REG_FP))
		regs.v[WP_REG_FP] = STACK + h->fp;
	return regs;
}

struct walked {
	struct wp_frame frames[DEPTH_MAX];
	uint64_t cfa_avma[DEPTH_MAX];
	struct wp_stack stack;
};

static void walk(struct wp_unwinder *u, const struct wp_unwind_modules *modules,
		 const struct wp_regs *regs, struct target *t, struct walked *w)
{
	struct wp_mem mem = { read_target, t };

	memset(w, 0, sizeof(*w));
	w->stack.frames = w->frames;
	w->stack.cfa_avma = w->cfa_avma;
	w->stack.cap = DEPTH_MAX;
	t->nreads = 0;
	wp_unwind_walk(u, modules, regs, &mem, WP_UNWIND_THOROUGH, &w->stack);
	FUZZ_CHECK(w->stack.depth >= 1 && w->stack.depth <= DEPTH_MAX);
	FUZZ_CHECK(w->stack.end < WP_NSTACK_ENDS);
	FUZZ_CHECK(wp_stack_end_text(w->stack.end));
	FUZZ_CHECK(t->nreads <= (uint64_t)w->stack.depth * READS_MAX);
	FUZZ_CHECK(w->frames[0].pc_avma == regs->v[WP_REG_PC]);
	for (uint32_t i = 0; i < w->stack.depth; i++)
		FUZZ_CHECK(w->frames[i].mapping <= 1);
}

/* Cold and with what the first walk left in the caches: the same. */
static void walk_twice(const struct header *h, struct target *t,
		       const struct wp_unwind_modules *modules)
{
	struct wp_regs regs = regs_of(h);
	struct walked cold, warm;
	struct wp_unwinder *u;

	if (wp_unwinder_new(&u, h->flags & 1 ? WP_UNWIND_LIBUNWIND :
					       WP_UNWIND_ROWS))
		return;
	walk(u, modules, &regs, t, &cold);
	walk(u, modules, &regs, t, &warm);
	/* Of malformed rules libunwind makes one thing when it reads them and
	 * another when it finds them in its cache. */
	if (!(h->flags & 1) && !wp_unwinder_stats(u)->fallbacks) {
		FUZZ_CHECK(cold.stack.depth == warm.stack.depth);
		FUZZ_CHECK(cold.stack.end == warm.stack.end);
		FUZZ_CHECK(
			!memcmp(cold.frames, warm.frames, sizeof(cold.frames)));
		FUZZ_CHECK(!memcmp(cold.cfa_avma, warm.cfa_avma,
				   sizeof(cold.cfa_avma)));
	}
	wp_unwinder_free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_unwind_module module = { .mapping = 1 };
	struct wp_unwind_modules modules = { .v = &module,
					     .len = 1,
					     .generation = 1 };
	struct target t;
	struct header h;
	int fd;

	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	is_32bit = modules.is_32bit = h.flags & 2;
	module.bias = MODULE;
	data += sizeof(h);
	size -= sizeof(h);
	t.stack = data;
	t.stack_len = h.stack_len < size ? h.stack_len : size;
	t.file = data + t.stack_len;
	t.file_len = size - t.stack_len;
	module.start_avma = MODULE + h.first_page * 0x1000;
	module.end_avma = module.start_avma + ((t.file_len + 4095) & ~4095ul);
	fd = fuzz_memfd(t.file, t.file_len);
	if (!wp_elf_image_open(&image, fd, NULL))
		module.image = &image;
	else
		close(fd);
	walk_twice(&h, &t, &modules);
	wp_elf_image_clear(&image);
	return 0;
}
