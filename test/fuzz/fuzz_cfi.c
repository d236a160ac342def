/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cfi.c - CIEs, FDEs and their programs, to rules that are executed.  The
 * first byte: bit 0 for .debug_frame, bit 1 for a section without an end.
 *
 * Layer: unwind.
 */
#include "../../unwind/rule.h"
#include "fuzz_image.h"

enum { SVMA = 0x2000, READS_MAX = 1000 * (WP_CFI_NTRACKED + 1) + 100 };

static void execute(const struct wp_rule *rule, struct wp_elf_image *image,
		    uint64_t known)
{
	struct wp_unwind_module module = { .end_avma = UINT64_MAX,
					   .bias = 0x100000,
					   .mapping = 1,
					   .image = image };
	struct fuzz_memory memory = { 0 };
	struct wp_mem mem = { fuzz_memory_read, &memory };
	struct wp_regs regs = fuzz_regs(known), before = regs;
	struct wp_step step = { .module = &module, .regs = &regs, .mem = &mem };
	enum wp_step_result result = wp_rule_execute(rule, &step);

	FUZZ_CHECK(result <= WP_STEP_OTHER_STACK);
	FUZZ_CHECK(memory.nreads <= READS_MAX);
	if (result != WP_STEP_OK)
		FUZZ_CHECK(!memcmp(&regs, &before, sizeof(regs)));
	else
		FUZZ_CHECK(wp_reg_known(&regs, WP_REG_PC) &&
			   wp_reg_known(&regs, WP_REG_SP));
}

static void eval(const struct wp_cfi_fde *fde, uint64_t pc_svma)
{
	struct wp_elf_image *image = fde->section->image;
	struct wp_cfi_row row;
	struct wp_rule rule;

	if (wp_cfi_eval(fde, pc_svma, &row))
		return;
	FUZZ_CHECK(row.cfa_kind == WP_CFI_CFA_REG ||
		   row.cfa_kind == WP_CFI_CFA_EXPR);
	rule = wp_rule_pack(&row, fde->cie.is_signal, image);
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		(void)wp_rule_place(&rule, i);
	execute(&rule, image, UINT64_MAX);
	execute(&rule, image, 1u << WP_REG_SP | 1u << WP_REG_PC);
}

static void check_reader(const struct wp_cfi_section *s,
			 const struct wp_reader *r)
{
	FUZZ_CHECK(!r->failed && r->pos <= r->end);
	FUZZ_CHECK(r->pos >= s->image->data &&
		   r->end <= s->image->data + s->image->size);
}

static void parse(const struct wp_cfi_section *section,
		  const struct wp_cfi_entry *entry)
{
	struct wp_cfi_cie cie;
	struct wp_cfi_fde fde;

	if (entry->is_cie) {
		if (!wp_cfi_parse_cie(section, entry->off, &cie))
			check_reader(section, &cie.insns);
		return;
	}
	if (wp_cfi_parse_fde(section, entry->off, &fde))
		return;
	check_reader(section, &fde.insns);
	check_reader(section, &fde.cie.insns);
	FUZZ_CHECK(fde.start_svma <= fde.end_svma);
	eval(&fde, fde.start_svma);
	eval(&fde, fde.start_svma + (fde.end_svma - fde.start_svma) / 2);
	eval(&fde, fde.end_svma - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wp_cfi_section section = { .is_debug = size && data[0] & 1,
					  .is_exact = size && !(data[0] & 2) };
	struct wp_cfi_entry entry;
	struct wp_elf_image image;

	if (!size || !fuzz_image_make(&image, data + 1, size - 1, SVMA))
		return 0;
	section.image = &image;
	section.range = (struct wp_elf_range){ section.is_debug ? 0 : SVMA, 0,
					       size - 1 };
	for (uint64_t off = 0; !wp_cfi_next_entry(&section, off, &entry);
	     off = entry.next_off) {
		/* Forwards, and never past the section. */
		FUZZ_CHECK(entry.off >= off && entry.next_off > entry.off);
		FUZZ_CHECK(entry.next_off <= section.range.size);
		check_reader(&section, &entry.body);
		parse(&section, &entry);
	}
	/* Where a search table might point to. */
	for (uint64_t off = 0; off < size && off < 64; off++) {
		struct wp_cfi_fde fde;

		(void)!wp_cfi_parse_fde(&section, off, &fde);
	}
	fuzz_image_free(&image);
	return 0;
}
