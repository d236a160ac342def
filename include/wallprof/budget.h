/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - the memory that a target can make wallprof take.
 *
 * Layer: base.
 *
 * One budget for the whole program.  What takes of it has a part of its own that it
 * may not exceed, so that no table starves the others.
 */
#ifndef WP_BUDGET_H
#define WP_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum wp_budget_part {
	/* Distinct stacks. */
	WP_BUDGET_STACKS,
	/* What is read of ELF files, their sections that are unpacked, and indexes
	 * of them. */
	WP_BUDGET_FILES,
	/* Samples that differ in more than their weight. */
	WP_BUDGET_SAMPLES,
	/* The log of changes. */
	WP_BUDGET_TIMELINE,
	/* Executable mappings. */
	WP_BUDGET_MAPPINGS,
	/* /proc/PID/maps, as text and parsed. */
	WP_BUDGET_MAP_TEXT,
	/* Goroutines that are recorded, and buckets of Go's own profiles; the list of
	 * all. */
	WP_BUDGET_GO,
	/* Texts, beyond which no label of a goroutine is kept. */
	WP_BUDGET_LABELS,
	/* Goroutines that a dump or a verdict tells one by one, which have neither a
	 * log nor allocations. */
	WP_BUDGET_GOROUTINES,
	/* Sampled allocations whose objects may be in use. */
	WP_BUDGET_HEAP,
	WP_NBUDGET_PARTS
};

#define WP_BUDGET_DEFAULT (UINT64_C(512) << 20)

/* BYTES is what everything may take together; until then WP_BUDGET_DEFAULT. */
void wp_budget_set(uint64_t bytes);

/* Take BYTES for PART.  False if that would be over its share: nothing is taken. */
bool wp_budget_take(enum wp_budget_part part, uint64_t bytes);

/* Give back BYTES that were taken for PART. */
void wp_budget_give(enum wp_budget_part part, uint64_t bytes);

/* What PART may take in all. */
uint64_t wp_budget_share(enum wp_budget_part part);

/* The most that one file may take: a sixteenth of the budget. */
uint64_t wp_budget_per_file(void);

#endif
