/* SPDX-License-Identifier: Apache-2.0 */
/* stack_snapshot.h - what tests of the unwinder take from their own process: the
 * registers at a point, the modules, memory, and another unwinder's stack.
 */
#ifndef WP_TEST_STACK_SNAPSHOT_H
#define WP_TEST_STACK_SNAPSHOT_H

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "wallprof/unwind.h"

enum {
	SNAPSHOT_MODULES_MAX = 128,
	SNAPSHOT_FRAMES_MAX = 512,
};

struct snapshot_modules {
	struct wp_unwind_modules list;
	struct wp_unwind_module v[SNAPSHOT_MODULES_MAX];
	struct wp_elf_image images[SNAPSHOT_MODULES_MAX];
	size_t nimages;
};

static inline struct wp_elf_image *
snapshot_open_image(struct snapshot_modules *m, const char *path)
{
	struct wp_elf_image *image = &m->images[m->nimages];
	int fd = open(*path ? path : "/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (wp_elf_image_open(image, fd, NULL)) {
		close(fd);
		return NULL;
	}
	m->nimages++;
	return image;
}

static inline int snapshot_add_module(struct dl_phdr_info *info, size_t size,
				      void *ctx)
{
	struct snapshot_modules *m = ctx;
	struct wp_elf_image *image = snapshot_open_image(m, info->dlpi_name);

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) ||
		    m->list.len == SNAPSHOT_MODULES_MAX)
			continue;
		m->v[m->list.len] = (struct wp_unwind_module){
			.start_avma = info->dlpi_addr + ph->p_vaddr,
			.end_avma = info->dlpi_addr + ph->p_vaddr + ph->p_memsz,
			.bias = info->dlpi_addr,
			.mapping = (uint32_t)m->list.len + 1,
			.image = image,
		};
		m->list.len++;
	}
	return 0;
}

static inline int snapshot_compare_modules(const void *a, const void *b)
{
	const struct wp_unwind_module *x = a, *y = b;

	return (x->start_avma > y->start_avma) -
	       (x->start_avma < y->start_avma);
}

/* The modules that are loaded now. */
static inline void snapshot_modules_init(struct snapshot_modules *m)
{
	memset(m, 0, sizeof(*m));
	dl_iterate_phdr(snapshot_add_module, m);
	qsort(m->v, m->list.len, sizeof(m->v[0]), snapshot_compare_modules);
	m->list.v = m->v;
	m->list.generation = 1;
}

static inline void snapshot_modules_clear(struct snapshot_modules *m)
{
	for (size_t i = 0; i < m->nimages; i++)
		wp_elf_image_clear(&m->images[i]);
}

/* A struct wp_mem's read over this process; CTX may point to the address of
 * the first byte that is not there. */
static inline enum wp_mem_result snapshot_read(void *ctx, uint64_t avma,
					       void *buf, size_t len)
{
	const uint64_t *end = ctx;
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)avma, len };

	if (end && avma + len > *end)
		return WP_MEM_UNREADABLE;
	/* By the kernel, which minds neither bad addresses nor what a
	 * sanitizer has put on the stack. */
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
			       (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

/* The registers that CONTEXT holds. */
static inline void snapshot_regs(struct wp_regs *ret, const ucontext_t *context)
{
	ret->known = 0;
#if defined(__x86_64__)
	static const struct {
		int dwarf;
		int greg;
	} map[] = {
		{ 3, REG_RBX },	 { 6, REG_RBP },  { 7, REG_RSP },
		{ 12, REG_R12 }, { 13, REG_R13 }, { 14, REG_R14 },
		{ 15, REG_R15 }, { 16, REG_RIP },
	};

	for (size_t i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		wp_reg_set(ret, (unsigned int)map[i].dwarf,
			   (uint64_t)context->uc_mcontext.gregs[map[i].greg]);
#else
	for (unsigned int i = 19; i < 31; i++)
		wp_reg_set(ret, i, context->uc_mcontext.regs[i]);
	wp_reg_set(ret, WP_REG_SP, context->uc_mcontext.sp);
	wp_reg_set(ret, WP_REG_PC, context->uc_mcontext.pc);
#endif
}

/* glibc's backtrace(3), which asks libgcc; libunwind has one of that name. */
static inline int (*snapshot_backtrace(void))(void **, int)
{
	int (*ret)(void **, int) = NULL;
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	void *sym = libc ? dlsym(libc, "backtrace") : NULL;

	memcpy(&ret, &sym, sizeof(ret));
	return ret;
}

#endif
