/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - see wallprof/budget.h. */
#include "wallprof/budget.h"

/* Of so many parts of the budget a file may take one. */
enum { PARTS = 16 };

static const uint64_t share[WP_NBUDGET_PARTS] = {
	[WP_BUDGET_STACKS] = 5,	  [WP_BUDGET_FILES] = 4,
	[WP_BUDGET_SAMPLES] = 2,  [WP_BUDGET_TIMELINE] = 2,
	[WP_BUDGET_MAPPINGS] = 1, [WP_BUDGET_MAP_TEXT] = 1,
	[WP_BUDGET_GO] = 1,	  [WP_BUDGET_LABELS] = 1,
	[WP_BUDGET_HEAP] = 1,	  [WP_BUDGET_GOROUTINES] = 4,
};

static uint64_t max_bytes = WP_BUDGET_DEFAULT;
static uint64_t taken[WP_NBUDGET_PARTS];

void wp_budget_set(uint64_t bytes)
{
	max_bytes = bytes;
	for (int i = 0; i < WP_NBUDGET_PARTS; i++)
		taken[i] = 0;
}

uint64_t wp_budget_share(enum wp_budget_part part)
{
	return max_bytes / PARTS * share[part];
}

bool wp_budget_take(enum wp_budget_part part, uint64_t bytes)
{
	uint64_t max = wp_budget_share(part);

	if (taken[part] > max || bytes > max - taken[part])
		return false;
	taken[part] += bytes;
	return true;
}

void wp_budget_give(enum wp_budget_part part, uint64_t bytes)
{
	taken[part] -= bytes;
}

uint64_t wp_budget_per_file(void)
{
	return max_bytes / PARTS;
}
