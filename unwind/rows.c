/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - the back end that evaluates CFI itself.
 *
 * A step finds the rule for the pc and executes it.  Rules are cached by image
 * and svma, which changes of the module list leave as they are.
 */
#include <errno.h>
#include <stdlib.h>

#include "arch.h"
#include "cfi_table.h"
#include "go_end.h"
#include "go_row.h"
#include "rule.h"
#include "step.h"
#include "wallprof/pages.h"

enum {
	/* Threads are found at thousands of pcs, in the largest programs, and at a
	 * dozen at first: to touch a page for each would take longer than to make
	 * the rule. */
	SET_BITS_FIRST = 6,
	SET_BITS_MAX = 12,
	GROW_BITS = 2,
	/* Places that one pc may have.  With one place, and a quarter of the
	 * cache full, one pc in five would find it taken. */
	WAYS = 4,
	CACHE_LINE = 64,
	/* Bytes of a CFI program that are run for one step of an expression. */
	BYTES_PER_WORK = 16,
};

struct entry {
	/* NULL: empty. */
	const struct wp_elf_image *image;
	uint64_t svma;
	struct wp_rule rule;
};

#define MASK_OF(bits) ((UINT64_C(1) << (bits)) - 1)

#if defined(__x86_64__)
_Static_assert(sizeof(struct entry) == CACHE_LINE,
	       "reading an entry costs one cache miss");
#endif

struct rows {
	/* entries[0..WAYS * (mask + 1)), owned, and how many are in use. */
	struct entry *entries;
	/* The bits of a hash that say which set. */
	uint64_t mask;
	unsigned int nused;
	/* Counts entries that were replaced. */
	unsigned int victim;
	struct wp_cfi_tables tables;
	/* Borrowed. */
	struct wp_unwind_stats *stats;
};

static size_t size_of(uint64_t mask)
{
	return WAYS * (mask + 1) * sizeof(struct entry);
}

static void *rows_open(struct wp_unwind_stats *stats)
{
	struct rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return NULL;
	rows->stats = stats;
	rows->mask = MASK_OF(SET_BITS_FIRST);
	rows->entries = wp_pages_new(size_of(rows->mask));
	if (rows->entries)
		return rows;
	free(rows);
	return NULL;
}

static void rows_close(void *self)
{
	struct rows *rows = self;

	wp_cfi_tables_clear(&rows->tables);
	wp_pages_free(rows->entries, size_of(rows->mask));
	free(rows);
}

/* What wp_go_end says of SVMA in FDE.  Go's linker writes .debug_frame and no
 * .eh_frame; programs from before Go 1.18 have no table that wp_go_row reads.
 */
static enum wp_step_result go_end_of(const struct wp_cfi_fde *fde,
				     uint64_t svma)
{
	return fde->section->is_debug &&
			       !wp_elf_image_is_32bit(fde->section->image) ?
		       wp_go_end(fde->section->image, fde->start_svma,
				 fde->end_svma, svma) :
		       WP_STEP_OK;
}

/* True, and the rule for the code at SVMA of IMAGE, if Go's own table has one.
 */
static bool find_go_rule(struct wp_elf_image *image, uint64_t svma,
			 struct wp_rule *ret)
{
	struct wp_cfi_row row;
	enum wp_step_result result = wp_go_row(image, svma, &row);

	*ret = result == WP_STEP_OK ? wp_rule_pack(&row, false, image) :
				      wp_rule_of_result(result);
	return result != WP_STEP_NO_INFO && result != WP_STEP_BAD_INFO;
}

/* Is the code at SVMA a signal trampoline? */
static bool is_trampoline(struct wp_elf_image *image, uint64_t svma)
{
	const struct wp_unwind_module at_its_svma = { .image = image };

	return wp_arch_is_sigreturn(&at_its_svma, NULL, svma);
}

/* May STEP's walk run the programs of FDE? */
static bool may_run(const struct wp_step *step, const struct wp_cfi_fde *fde)
{
	size_t len = wp_reader_left(&fde->insns) +
		     wp_reader_left(&fde->cie.insns);

	return wp_step_work(step, (uint32_t)(len / BYTES_PER_WORK));
}

/* The rule for the code at SVMA, where STEP is.  Returns 0; -EAGAIN if the file must
 * be indexed first and the thread is stopped, or the walk has used up its work;
 * -ENOMEM. */
static int make_rule(struct rows *rows, const struct wp_step *step,
		     uint64_t svma, struct wp_rule *ret)
{
	struct wp_elf_image *image = step->module->image;
	struct wp_cfi_table *table = wp_cfi_tables_find_or_add(&rows->tables,
							       image);
	enum wp_step_result end;
	struct wp_cfi_row row;
	struct wp_cfi_fde fde;
	int rc;

	rc = table ? wp_cfi_table_find(table, svma, !step->in_stop, &fde) :
		     -ENOMEM;
	if (rc == -ENOMEM || rc == -EAGAIN)
		return rc;
	if (rc == -ENOENT || (!rc && fde.section->is_debug)) {
		/* Go describes its trampoline like any other function. */
		if (is_trampoline(image, svma))
			rc = -ENOENT;
		else if (find_go_rule(image, svma, ret))
			return 0;
	}
	if (!rc && !may_run(step, &fde))
		return -EAGAIN;
	if (!rc)
		rc = wp_cfi_eval(&fde, svma, &row);
	if (rc) {
		*ret = wp_rule_of_result(rc == -ENOENT ? WP_STEP_NO_INFO :
							 WP_STEP_BAD_INFO);
		return 0;
	}
	end = go_end_of(&fde, svma);
	wp_cfi_keep_popped(&row);
	*ret = end == WP_STEP_OK ?
		       wp_rule_pack(&row, fde.cie.is_signal, image) :
		       wp_rule_of_result(end);
	return 0;
}

/* The places that a pc may have, entries[0..WAYS). */
static struct entry *set_of(struct rows *rows, const struct wp_elf_image *image,
			    uint64_t svma)
{
	/* Fibonacci hashing: one multiplication, the top bits are the best. */
	uint64_t hash = (svma ^ (uintptr_t)image << 8) *
			UINT64_C(0x9e3779b97f4a7c15);

	return &rows->entries[(hash >> (64 - SET_BITS_MAX) & rows->mask) *
			      WAYS];
}

static struct entry *choose_victim(struct rows *rows, struct entry *set)
{
	for (unsigned int i = 0; i < WAYS; i++)
		if (!set[i].image)
			return &set[i];
	return &set[rows->victim++ % WAYS];
}

static const struct wp_rule *find_rule(const struct entry *set,
				       const struct wp_elf_image *image,
				       uint64_t svma)
{
	for (unsigned int i = 0; i < WAYS; i++)
		if (set[i].svma == svma && set[i].image == image)
			return &set[i].rule;
	return NULL;
}

/* Give the cache more room, if a quarter of it is in use and there is memory.
 */
static void grow(struct rows *rows)
{
	const uint64_t old_mask = rows->mask;
	const uint64_t mask = old_mask << GROW_BITS | MASK_OF(GROW_BITS);
	struct entry *old = rows->entries, *entries;

	if (old_mask == MASK_OF(SET_BITS_MAX) || rows->nused <= old_mask)
		return;
	entries = wp_pages_new(size_of(mask));
	if (!entries)
		return;
	rows->entries = entries;
	rows->mask = mask;
	for (size_t i = 0; i < WAYS * (old_mask + 1); i++)
		if (old[i].image)
			*choose_victim(rows, set_of(rows, old[i].image,
						    old[i].svma)) = old[i];
	wp_pages_free(old, size_of(old_mask));
}

/* Make the rule for the code at SVMA, where STEP is, and keep it; errors as of
 * make_rule.
 */
static int add_rule(struct rows *rows, const struct wp_step *step,
		    uint64_t svma, const struct wp_rule **ret)
{
	const struct wp_elf_image *image = step->module->image;
	struct entry *entry;
	int rc;

	/* A stop is not to wait for it. */
	if (!step->in_stop)
		grow(rows);
	entry = choose_victim(rows, set_of(rows, image, svma));
	rows->nused -= entry->image != NULL;
	entry->image = NULL;
	rc = make_rule(rows, step, svma, &entry->rule);
	if (rc)
		return rc;
	entry->image = image;
	entry->svma = svma;
	rows->nused++;
	*ret = &entry->rule;
	return 0;
}

static enum wp_step_result rows_step(void *self, struct wp_step *step)
{
	struct rows *rows = self;
	struct wp_elf_image *image = step->module->image;
	uint64_t svma = step->regs->v[WP_REG_PC] - step->is_return -
			step->module->bias;
	const struct wp_rule *rule = find_rule(set_of(rows, image, svma), image,
					       svma);
	int rc;

	if (rule) {
		rows->stats->cache_hits++;
		return wp_rule_execute(rule, step);
	}
	rows->stats->cache_misses++;
	rc = add_rule(rows, step, svma, &rule);
	if (!rc)
		return wp_rule_execute(rule, step);
	/* -ENOMEM: there may be unwind info. */
	return rc == -EAGAIN ? WP_STEP_TOO_SLOW : WP_STEP_BAD_INFO;
}

const struct wp_step_ops wp_step_rows = {
	.open = rows_open,
	.close = rows_close,
	.step = rows_step,
};
