/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - the back end that evaluates CFI itself.
 *
 * A step finds a rule and executes it.  Rules belong to (image, svma), both of
 * which outlive changes of the module list: the cache never goes stale.
 */
#include <errno.h>
#include <stdlib.h>

#include "eh_frame_hdr.h"
#include "go_root.h"
#include "go_row.h"
#include "rule.h"
#include "step.h"
#include "wallprof/hash.h"

enum {
	/* Pcs at which threads are found: thousands in the largest programs.
	 * More than fit just miss. */
	SET_BITS = 12,
	/* Places that one pc may have: with a quarter of the cache full, one in
	 * five pcs has another in its only place. */
	WAYS = 4,
	NENTRIES = WAYS << SET_BITS,
	CACHE_LINE = 64,
	TABLES_MIN = 64,
};

struct entry {
	/* NULL: empty. */
	const struct wp_elf_image *image;
	uint64_t svma;
	struct wp_rule rule;
};

#if defined(__x86_64__)
_Static_assert(sizeof(struct entry) == CACHE_LINE,
	       "looking at an entry costs one miss");
#endif

struct rows {
	/* NENTRIES of them, in ENTRIES_MEMORY, on cache lines' borders. */
	struct entry *entries;
	void *entries_memory;
	/* Which of a full set goes next. */
	unsigned int victim;
	/* Open addressing by image: NULL or owned; 2 ** TABLES_BITS slots, at
	 * most half of them used. */
	struct wp_cfi_table **tables;
	unsigned int tables_cap;
	unsigned int ntables;
	/* Borrowed. */
	struct wp_unwind_stats *stats;
};

static void *rows_open(struct wp_unwind_stats *stats)
{
	struct rows *rows = calloc(1, sizeof(*rows));
	uintptr_t start;

	if (!rows)
		return NULL;
	rows->stats = stats;
	rows->tables = calloc(TABLES_MIN, sizeof(*rows->tables));
	rows->tables_cap = TABLES_MIN;
	/* calloc leaves pages alone until they are used; aligned_alloc and
	 * memset would not. */
	rows->entries_memory = calloc(1, NENTRIES * sizeof(struct entry) +
						 CACHE_LINE);
	if (!rows->tables || !rows->entries_memory) {
		free(rows->tables);
		free(rows->entries_memory);
		free(rows);
		return NULL;
	}
	start = (uintptr_t)rows->entries_memory;
	rows->entries = (struct entry *)((char *)rows->entries_memory +
					 (-start & (CACHE_LINE - 1)));
	return rows;
}

static void rows_close(void *self)
{
	struct rows *rows = self;

	for (unsigned int i = 0; i < rows->tables_cap; i++) {
		if (!rows->tables[i])
			continue;
		wp_cfi_table_clear(rows->tables[i]);
		free(rows->tables[i]);
	}
	free(rows->tables);
	free(rows->entries_memory);
	free(rows);
}

static void rows_set_modules(void *self,
			     const struct wp_unwind_modules *modules)
{
	(void)self;
	(void)modules;
}

/* Where the table of IMAGE is, or would be. */
static struct wp_cfi_table **table_slot(struct wp_cfi_table **tables,
					unsigned int cap,
					const struct wp_elf_image *image)
{
	uint64_t i = wp_hash_u64((uintptr_t)image);

	while (tables[i & (cap - 1)] &&
	       tables[i & (cap - 1)]->eh_frame.image != image)
		i++;
	return &tables[i & (cap - 1)];
}

static int grow_tables(struct rows *rows)
{
	unsigned int cap = 2 * rows->tables_cap;
	struct wp_cfi_table **tables = calloc(cap, sizeof(*tables));

	if (!tables)
		return -ENOMEM;
	for (unsigned int i = 0; i < rows->tables_cap; i++) {
		struct wp_cfi_table *table = rows->tables[i];

		if (table)
			*table_slot(tables, cap, table->eh_frame.image) = table;
	}
	free(rows->tables);
	rows->tables = tables;
	rows->tables_cap = cap;
	return 0;
}

/* The table of IMAGE, made when first asked for; NULL: no memory. */
static struct wp_cfi_table *find_table(struct rows *rows,
				       struct wp_elf_image *image)
{
	struct wp_cfi_table **slot = table_slot(rows->tables, rows->tables_cap,
						image);
	struct wp_cfi_table *table = *slot;

	if (table)
		return table;
	if (2 * (rows->ntables + 1) > rows->tables_cap) {
		if (grow_tables(rows))
			return NULL;
		slot = table_slot(rows->tables, rows->tables_cap, image);
	}
	table = malloc(sizeof(*table));
	if (!table)
		return NULL;
	wp_cfi_table_init(table, image);
	*slot = table;
	rows->ntables++;
	return table;
}

/* Is SVMA where a stack of Go's ends, in a program from before Go 1.18?  Its own
 * linker writes .debug_frame, and no .eh_frame. */
static enum wp_step_result go_end_of(const struct wp_cfi_fde *fde,
				     uint64_t svma)
{
	return fde->section->is_debug ?
		       wp_go_end(fde->section->image, fde->start_svma,
				 fde->end_svma, svma) :
		       WP_STEP_OK;
}

/* The rule for the code at SVMA of IMAGE, if that is Go's and says so. */
static bool find_go_rule(struct wp_elf_image *image, uint64_t svma,
			 struct wp_rule *ret)
{
	struct wp_cfi_row row;
	enum wp_step_result result = wp_go_row(image, svma, &row);

	*ret = result == WP_STEP_OK ? wp_rule_pack(&row, false, image) :
				      wp_rule_of_result(result);
	return result != WP_STEP_NO_INFO && result != WP_STEP_BAD_INFO;
}

/* The rule for the code at SVMA of IMAGE. */
static int make_rule(struct rows *rows, struct wp_elf_image *image,
		     uint64_t svma, struct wp_rule *ret)
{
	struct wp_cfi_table *table = find_table(rows, image);
	enum wp_step_result end;
	struct wp_cfi_row row;
	struct wp_cfi_fde fde;
	int rc;

	rc = table ? wp_cfi_table_find(table, svma, &fde) : -ENOMEM;
	if (rc == -ENOMEM)
		return rc;
	if ((rc == -ENOENT || (!rc && fde.section->is_debug)) &&
	    find_go_rule(image, svma, ret))
		return 0;
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

	return &rows->entries[(hash >> (64 - SET_BITS)) * WAYS];
}

static struct entry *choose_victim(struct rows *rows, struct entry *set)
{
	for (unsigned int i = 0; i < WAYS; i++)
		if (!set[i].image)
			return &set[i];
	return &set[rows->victim++ % WAYS];
}

static const struct wp_rule *
find_rule(struct rows *rows, struct wp_elf_image *image, uint64_t svma)
{
	struct entry *set = set_of(rows, image, svma);
	struct entry *entry;

	for (unsigned int i = 0; i < WAYS; i++) {
		if (set[i].svma == svma && set[i].image == image) {
			rows->stats->cache_hits++;
			return &set[i].rule;
		}
	}
	rows->stats->cache_misses++;
	entry = choose_victim(rows, set);
	entry->image = NULL;
	if (make_rule(rows, image, svma, &entry->rule))
		return NULL;
	entry->image = image;
	entry->svma = svma;
	return &entry->rule;
}

static enum wp_step_result rows_step(void *self, struct wp_step *step)
{
	uint64_t svma = step->regs->v[WP_REG_PC] - step->is_return -
			step->module->bias;
	const struct wp_rule *rule = find_rule(self, step->module->image, svma);

	/* Without memory there may be info and it cannot be had. */
	return rule ? wp_rule_execute(rule, step) : WP_STEP_BAD_INFO;
}

const struct wp_step_ops wp_step_rows = {
	.name = "rows",
	.open = rows_open,
	.close = rows_close,
	.set_modules = rows_set_modules,
	.step = rows_step,
};
