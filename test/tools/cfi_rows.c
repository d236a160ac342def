/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_rows - what the unwinder makes of an ELF file's CFI.
 *
 * cfi_rows FILE            for every svma (hexadecimal) on standard input the
 *                          rule that holds there, in readelf's notation
 * cfi_rows --go FILE       the same by .gopclntab
 * cfi_rows --bench FILE    what finding and executing rules costs
 *
 * The way to a rule is the product's: table, FDE, row, packed rule; but what was
 * popped is not kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../unwind/cfi_table.h"
#include "../../unwind/go_row.h"
#include "../../unwind/rule.h"
#include "wallprof/hash.h"

#if defined(__x86_64__)
static const char *const names_32[WP_NREGS] = {
	[0] = "eax",	      [1] = "edx",	    [2] = "ecx",
	[3] = "ebx",	      [WP_REG_FP] = "ebp",  [WP_REG_SP] = "esp",
	[WP_REG_ESI] = "esi", [WP_REG_EDI] = "edi", [WP_REG_PC] = "ra",
};
static const char *const names_64[WP_NREGS] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra",
};
#else
static const char *const names_32[WP_NREGS] = { NULL };
static const char *const names_64[WP_NREGS] = {
	"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",	 "x7",	"x8",
	"x9",  "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
	"x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26",
	"x27", "x28", "x29", "x30", "sp",  "pc",
};
#endif

static const char *const *names = names_64;

/* As rows.c does it. */
static struct wp_rule find(struct wp_cfi_table *table,
			   struct wp_elf_image *image, uint64_t svma)
{
	struct wp_cfi_fde fde;
	struct wp_cfi_row row;
	int rc = wp_cfi_table_find(table, svma, true, &fde);

	if (rc == -ENOENT)
		return wp_rule_of_result(WP_STEP_NO_INFO);
	if (!rc)
		rc = wp_cfi_eval(&fde, svma, &row);
	if (rc)
		return wp_rule_of_result(WP_STEP_BAD_INFO);
	return wp_rule_pack(&row, fde.cie.is_signal, image);
}

static struct wp_rule find_go(struct wp_cfi_table *table,
			      struct wp_elf_image *image, uint64_t svma)
{
	struct wp_cfi_row row;
	enum wp_step_result result = wp_go_row(image, svma, &row);

	(void)table;
	return result == WP_STEP_OK ? wp_rule_pack(&row, false, image) :
				      wp_rule_of_result(result);
}

static void print_place(unsigned int slot, struct wp_cfi_place place)
{
	printf(" %s=", names[wp_cfi_tracked[slot]]);
	switch (place.kind) {
	case WP_CFI_SAME:
		printf("s");
		return;
	case WP_CFI_UNDEFINED:
		printf("u");
		return;
	case WP_CFI_OFFSET:
		printf("c%+" PRId64, place.val);
		return;
	case WP_CFI_VAL_OFFSET:
		printf("v%+" PRId64, place.val);
		return;
	case WP_CFI_REGISTER:
		printf("%s", names[place.val]);
		return;
	case WP_CFI_VAL_EXPR:
		printf("vexp");
		return;
	case WP_CFI_EXPR:
	case WP_CFI_AT:
		printf("exp");
		return;
	}
}

static void print_rule(uint64_t svma, const struct wp_rule *rule)
{
	printf("%" PRIx64, svma);
	if (rule->result == WP_STEP_NO_INFO)
		printf(" none");
	else if (rule->result == WP_STEP_ROOT && !rule->kinds)
		printf(" root");
	else if (rule->result == WP_STEP_UNKNOWN_REG)
		printf(" elsewhere");
	else if (rule->result == WP_STEP_BAD_INFO)
		printf(" bad");
	else if (rule->cfa_kind == WP_CFI_CFA_REG ||
		 rule->cfa_kind == WP_CFI_CFA_SWITCH)
		printf(" %s%+" PRId32, names[rule->cfa_reg], rule->cfa_off);
	else
		printf(" exp");
	if (rule->kinds)
		for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
			if (names[wp_cfi_tracked[i]])
				print_place(i, wp_rule_place(rule, i));
	putchar('\n');
}

static void print_rules(struct wp_cfi_table *table, struct wp_elf_image *image,
			struct wp_rule (*by)(struct wp_cfi_table *,
					     struct wp_elf_image *, uint64_t))
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		uint64_t svma = strtoull(line, NULL, 16);
		struct wp_rule rule = by(table, image, svma);

		print_rule(svma, &rule);
	}
}

enum { PCS = 4096, ROUNDS = 7, STACK = 1 << 16, FEW = 64 };

#define STACK_AVMA UINT64_C(0x7ffe00000000)

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static enum wp_mem_result read_stack(void *ctx, uint64_t avma, void *buf,
				     size_t len)
{
	uint64_t at = avma - STACK_AVMA;

	if (at > STACK || len > STACK - at)
		return WP_MEM_UNREADABLE;
	memcpy(buf, (const char *)ctx + at, len);
	return WP_MEM_OK;
}

struct bench {
	struct wp_unwind_module module;
	struct wp_mem mem;
	struct wp_regs regs;
	uint64_t pcs[PCS];
	size_t npcs;
};

/* Addresses with a rule that can be executed, spread over the code. */
static void choose_pcs(struct bench *bench, struct wp_cfi_table *table,
		       struct wp_elf_image *image)
{
	uint64_t seed = 1;

	for (unsigned int n = 0; n < 64 * PCS && bench->npcs < PCS; n++) {
		const struct wp_elf_load *load =
			&image->loads[n % image->nloads];
		struct wp_rule rule;
		uint64_t svma;

		seed = wp_hash_u64(seed + 1);
		if (!(load->flags & 1) || !load->filesz)
			continue;
		svma = load->svma + seed % load->filesz;
		rule = find(table, image, svma);
		if (rule.flags & WP_RULE_BLOCK)
			bench->pcs[bench->npcs++] = svma;
	}
}

static void set_up_step(const struct bench *bench, uint64_t svma,
			struct wp_regs *regs, struct wp_step *step)
{
	*regs = bench->regs;
	wp_reg_set(regs, WP_REG_PC, svma);
	*step = (struct wp_step){ &bench->module, regs, &bench->mem,
				  .is_return = false };
}

/* ns per step of the back end over the first N pcs, the fastest of several
 * rounds: what is left is the machine's noise. */
static double time_steps(const struct bench *bench, void *rows, size_t n,
			 size_t *ret_ok)
{
	struct wp_regs regs;
	struct wp_step step;
	uint64_t start = now_ns();
	size_t ok = 0;

	for (size_t i = 0; i < n; i++) {
		set_up_step(bench, bench->pcs[i], &regs, &step);
		ok += wp_step_rows.step(rows, &step) == WP_STEP_OK;
	}
	*ret_ok = ok;
	return (double)(now_ns() - start) / (double)n;
}

static double time_execute(const struct bench *bench, struct wp_rule *rules,
			   size_t n)
{
	struct wp_regs regs;
	struct wp_step step;
	uint64_t start = now_ns();

	for (size_t i = 0; i < n; i++) {
		set_up_step(bench, bench->pcs[i], &regs, &step);
		(void)wp_rule_execute(&rules[i], &step);
	}
	return (double)(now_ns() - start) / (double)n;
}

static double time_find(const struct bench *bench, struct wp_cfi_table *table,
			struct wp_elf_image *image, struct wp_rule *rules)
{
	uint64_t start = now_ns();

	for (size_t i = 0; i < bench->npcs; i++)
		rules[i] = find(table, image, bench->pcs[i]);
	return (double)(now_ns() - start) / (double)bench->npcs;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return v[n / 2];
}

static int run_bench(struct wp_cfi_table *table, struct wp_elf_image *image)
{
	static char stack[STACK];
	static struct bench bench;
	static struct wp_rule rules[PCS];
	double find_ns[ROUNDS], execute_ns[ROUNDS], warm_ns[ROUNDS];
	double few_ns[ROUNDS], first_ns, cold_ns;
	struct wp_unwind_stats stats = { 0 };
	void *rows = wp_step_rows.open(&stats);
	size_t ok;

	if (!rows)
		return 1;
	bench.module = (struct wp_unwind_module){ .end_avma = UINT64_MAX,
						  .image = image };
	bench.mem = (struct wp_mem){ read_stack, stack };
	for (unsigned int i = 0; i < WP_NREGS; i++)
		wp_reg_set(&bench.regs, i, STACK_AVMA + STACK / 2);
	choose_pcs(&bench, table, image);
	if (!bench.npcs)
		return 1;
	first_ns = time_steps(&bench, rows, 1, &ok);
	cold_ns = time_steps(&bench, rows, bench.npcs, &ok);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		find_ns[i] = time_find(&bench, table, image, rules);
		execute_ns[i] = time_execute(&bench, rules, bench.npcs);
		warm_ns[i] = time_steps(&bench, rows, bench.npcs, &ok);
		few_ns[i] = time_steps(&bench, rows, FEW, &ok);
	}
	printf("pcs %zu, steps of the last round done %zu, hits %" PRIu64
	       ", misses %" PRIu64 ", rule %zu bytes\n",
	       bench.npcs, ok, stats.cache_hits, stats.cache_misses,
	       sizeof(struct wp_rule));
	printf("ns per: first step %.0f, cold step %.0f, find without cache "
	       "%.0f, execute %.1f, warm step %.1f, warm step of 64 pcs %.1f\n",
	       first_ns, cold_ns, median(find_ns, ROUNDS),
	       median(execute_ns, ROUNDS), median(warm_ns, ROUNDS),
	       median(few_ns, ROUNDS));
	wp_step_rows.close(rows);
	return 0;
}

int main(int argc, char **argv)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_err err = WP_ERR_INIT;
	bool is_bench = argc == 3 && !strcmp(argv[1], "--bench");
	bool is_go = argc == 3 && !strcmp(argv[1], "--go");
	struct wp_cfi_table table;
	int fd, rc = 0;

	if (argc != 2 && !is_bench && !is_go) {
		fprintf(stderr, "usage: cfi_rows [--bench | --go] FILE\n");
		return 64;
	}
	fd = open(argv[argc - 1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || wp_elf_image_open(&image, fd, &err)) {
		fprintf(stderr, "cfi_rows: %s: %s\n", argv[argc - 1],
			fd < 0 ? strerror(errno) : err.msg);
		return 2;
	}
	wp_cfi_table_init(&table, &image);
	if (wp_elf_image_is_32bit(&image))
		names = names_32;
	if (is_bench)
		rc = run_bench(&table, &image);
	else
		print_rules(&table, &image, is_go ? find_go : find);
	wp_cfi_table_clear(&table);
	wp_elf_image_clear(&image);
	return rc;
}
