/* SPDX-License-Identifier: Apache-2.0 */
/* go_rate.c - the rates that Go's own profiles count by. */
#include <elf.h>
#include <errno.h>
#include <time.h>

#include "go_program_priv.h"
#include "wallprof/clock.h"

enum {
	WORD = 8,
	CODE_MAX = 4096,
	/* mov disp32(%rip),%reg and cmp $1,%reg, of 64 bits; the second is at
	 * most so far behind the first. */
	LOAD = 7,
	COMPARE = 4,
	NEAR = 48,
};

/* The rate is compared with 1, whatever the version, by the function that
 * counts an object. */
static const char user[] = "runtime.profilealloc";

static bool find_function(const struct wp_go_table *table, const char *name,
			  struct wp_go_func *ret)
{
	for (uint32_t i = 0; i < table->nfuncs; i++) {
		const char *text;

		if (wp_go_table_func(table, i, ret))
			continue;
		text = wp_go_table_text(table, ret->name_off);
		if (text && !strcmp(text, name))
			return true;
	}
	return false;
}

/* The register that the load at CODE sets; -1: it is none. */
static int loaded(const uint8_t *code)
{
	if ((code[0] != 0x48 && code[0] != 0x4c) || code[1] != 0x8b ||
	    (code[2] & 0xc7) != 0x05)
		return -1;
	return (code[2] >> 3 & 7) + (code[0] == 0x4c ? 8 : 0);
}

/* The register that CODE compares with 1; -1: it does not. */
static int compared(const uint8_t *code)
{
	if ((code[0] != 0x48 && code[0] != 0x49) || code[1] != 0x83 ||
	    (code[2] & 0xf8) != 0xf8 || code[3] != 1)
		return -1;
	return (code[2] & 7) + (code[0] == 0x49 ? 8 : 0);
}

static bool is_variable(const struct wp_go_module *m, uint64_t svma)
{
	const struct wp_go_range *const ranges[] = { &m->noptrdata, &m->data,
						     &m->bss, &m->noptrbss };

	for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
		if (svma >= ranges[i]->start_svma &&
		    svma + WORD <= ranges[i]->end_svma)
			return true;
	return false;
}

/* The variable loaded last before a comparison of it with 1 in the code of LEN
 * bytes at SVMA; 0: none. */
static uint64_t find_rate(const struct wp_go_module *module,
			  const uint8_t *code, size_t len, uint64_t svma)
{
	for (size_t i = LOAD; i + COMPARE <= len; i++) {
		int reg = compared(code + i);

		if (reg < 0)
			continue;
		for (size_t k = i - LOAD + 1; k-- > 0 && i - k < NEAR;) {
			int32_t disp;
			uint64_t var;

			if (loaded(code + k) != reg)
				continue;
			memcpy(&disp, code + k + 3, sizeof(disp));
			var = svma + k + LOAD + (uint64_t)(int64_t)disp;
			if (is_variable(module, var))
				return var;
		}
	}
	return 0;
}

int wp_go_heap_rate(struct wp_go_program *program, int64_t *ret)
{
	struct wp_elf_image *image = program->table.image;
	struct wp_go_func func;
	const uint8_t *code;
	uint64_t off, len, svma = 0;

	if (!find_function(&program->table, user, &func) ||
	    !wp_elf_image_offset(image, func.start_svma, &off))
		return -ENOENT;
	len = func.end_svma - func.start_svma;
	if (len > CODE_MAX)
		len = CODE_MAX;
	code = wp_elf_image_at(image, off, len);
	/* Other machines' code is not read. */
	if (code && image->machine == EM_X86_64)
		svma = find_rate(&program->module, code, len, func.start_svma);
	if (!svma || !wp_go_memory_read_at(&program->memory,
					   svma + program->bias, ret, WORD))
		return -ENOENT;
	return 0;
}

#ifdef __x86_64__
static uint64_t read_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* The time and the ticks of one moment: of some readings the ticks of which the
 * time is known best. */
static void read_both(uint64_t *ret_ns, uint64_t *ret_ticks)
{
	uint64_t best_ns = UINT64_MAX;

	for (int i = 0; i < 16; i++) {
		uint64_t before_ns = wp_clock_ns(), ticks = read_ticks();
		uint64_t took_ns = wp_clock_ns() - before_ns;

		if (took_ns >= best_ns)
			continue;
		best_ns = took_ns;
		*ret_ns = before_ns + took_ns / 2;
		*ret_ticks = ticks;
	}
}

double wp_go_ticks_per_second(void)
{
	struct timespec pause = { .tv_nsec = 20 * WP_NS_PER_MS };
	uint64_t ns[2] = { 0 }, ticks[2] = { 0 };

	read_both(&ns[0], &ticks[0]);
	nanosleep(&pause, NULL);
	read_both(&ns[1], &ticks[1]);
	return (double)(ticks[1] - ticks[0]) * WP_NS_PER_S /
	       (double)(ns[1] - ns[0]);
}
#else
/* runtime/os_linux_arm64.go, cputicks: they are nanoseconds. */
double wp_go_ticks_per_second(void)
{
	return WP_NS_PER_S;
}
#endif
