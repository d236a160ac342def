/* SPDX-License-Identifier: Apache-2.0 */
/* budget.c - see wallprof/budget.h. */
#include "wallprof/budget.h"

enum { FILE_SHARE = 16 };

/* A part may take one of so many equal shares. */
static const uint64_t share[WP_NBUDGET_PARTS] = {
	[WP_BUDGET_STACKS] = 2,
	[WP_BUDGET_MAPPINGS] = 8,
	[WP_BUDGET_FILES] = 4,
};

static uint64_t max_bytes = WP_BUDGET_DEFAULT;
static uint64_t taken[WP_NBUDGET_PARTS];

void wp_budget_set(uint64_t bytes)
{
	max_bytes = bytes;
	for (int i = 0; i < WP_NBUDGET_PARTS; i++)
		taken[i] = 0;
}

bool wp_budget_take(enum wp_budget_part part, uint64_t bytes)
{
	uint64_t max = max_bytes / share[part];

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
	return max_bytes / FILE_SHARE;
}
