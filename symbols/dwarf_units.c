/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_units.c - which unit and which function an address is in. */
#include "dwarf_lines.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	/* Namespaces, types and functions around a function. */
	NESTED_MAX = 32,
	/* Number of ranges to go back from an address to one that holds it. */
	BACK_MAX = 16,
	/* Number of units after which the pages read are given back. */
	DROP_EVERY = 256,
	RANGES_MAX = 1 << 23,
};

void wp_dwarf_ranges_clear(struct wp_dwarf_ranges *ranges)
{
	free(ranges->v);
	*ranges = (struct wp_dwarf_ranges){ 0 };
}

static int add_range(struct wp_dwarf_ranges *ranges, uint64_t start,
		     uint64_t end, Dwarf_Off die)
{
	/* Functions that the linker threw away are left at 0. */
	if (start >= end || !start || ranges->len >= RANGES_MAX)
		return 0;
	if (WP_VEC_ROOM(ranges->v, ranges->len, ranges->cap, 1))
		return -ENOMEM;
	ranges->v[ranges->len++] = (struct wp_dwarf_range){ start, end, die };
	return 0;
}

/* Add all ranges of DIE; returns their number, or -ENOMEM. */
static int add_die(struct wp_dwarf_ranges *ranges, Dwarf_Die *die)
{
	Dwarf_Off me = dwarf_dieoffset(die);
	Dwarf_Addr base, start, end;
	ptrdiff_t off = 0;
	uint32_t before = ranges->len;

	while ((off = dwarf_ranges(die, off, &base, &start, &end)) > 0)
		if (add_range(ranges, start, end, me))
			return -ENOMEM;
	return (int)(ranges->len - before);
}

/* A range around another comes before it, so that a search that goes back from
 * the address meets the inner one first. */
static int compare_range(const void *a, const void *b)
{
	const struct wp_dwarf_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return (x->die > y->die) - (x->die < y->die);
}

static void sort_ranges(struct wp_dwarf_ranges *ranges)
{
	if (ranges->len)
		qsort(ranges->v, ranges->len, sizeof(*ranges->v),
		      compare_range);
}

static const struct wp_dwarf_range *
find_range(const struct wp_dwarf_ranges *ranges, uint64_t svma)
{
	uint32_t at = WP_LOWER_BOUND(ranges->len, i,
				     ranges->v[i].start <= svma);

	for (uint32_t n = 0; at > 0 && n < BACK_MAX; n++)
		if (svma < ranges->v[--at].end)
			return &ranges->v[at];
	return NULL;
}

/* The ranges of all units.  clang writes no .debug_aranges; and where only
 * some units have them, the others are found here. */
static int read_units(struct wp_dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint32_t n = 0;
	int rc;

	dwarf->have_units = true;
	/* No sub-DIE is asked for: libdw would open the split DWARF file, by
	 * a name that the target chose. */
	while (!(rc = dwarf_get_units(dwarf->dw, cu, &cu, NULL, NULL, &die,
				      NULL))) {
		if (add_die(&dwarf->units, &die) < 0)
			return -ENOMEM;
		if (++n % DROP_EVERY == 0)
			wp_elf_file_trim(dwarf->file);
	}
	if (rc < 0)
		wp_dwarf_lose(dwarf, WP_DWARF_UNREADABLE);
	if (dwarf->units.len >= RANGES_MAX)
		wp_dwarf_lose(dwarf, WP_DWARF_CUT);
	sort_ranges(&dwarf->units);
	return 0;
}

int wp_dwarf_find_unit(struct wp_dwarf *dwarf, uint64_t svma, Dwarf_Die *ret)
{
	const struct wp_dwarf_range *range;
	int rc;

	if (dwarf_addrdie(dwarf->dw, svma, ret))
		return 0;
	rc = dwarf->have_units ? 0 : read_units(dwarf);
	if (rc)
		return rc;
	range = find_range(&dwarf->units, svma);
	return range && dwarf_offdie(dwarf->dw, range->die, ret) ? 0 : -ENOENT;
}

/* Whether a DIE with TAG may have functions below it. */
static bool may_hold_functions(int tag, bool deep)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	/* Rust's and D's methods lie in their types. */
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
		return true;
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
		return deep;
	default:
		return false;
	}
}

/* The functions below DIE.  Walks down and up by itself: how deep a file nests
 * its DIEs is up to the file. */
static int read_functions(struct wp_dwarf *dwarf, Dwarf_Die *unit, bool deep)
{
	Dwarf_Die path[NESTED_MAX];
	unsigned int depth = 0;

	if (dwarf_child(unit, &path[0]))
		return 0;
	while (dwarf->budget) {
		Dwarf_Die *die = &path[depth];
		int tag = dwarf_tag(die);

		dwarf->budget--;
		if (tag == DW_TAG_subprogram &&
		    add_die(&dwarf->functions, die) < 0)
			return -ENOMEM;
		if (may_hold_functions(tag, deep)) {
			if (depth + 1 == NESTED_MAX) {
				wp_dwarf_lose(dwarf, WP_DWARF_CUT);
			} else if (!dwarf_child(die, &path[depth + 1])) {
				depth++;
				continue;
			}
		}
		while (dwarf_siblingof(&path[depth], &path[depth]))
			if (!depth--)
				return 0;
	}
	wp_dwarf_lose(dwarf, WP_DWARF_CUT);
	return 0;
}

static int read_unit_functions(struct wp_dwarf *dwarf, Dwarf_Die *unit,
			       bool deep)
{
	int rc;

	/* The memory is used again. */
	dwarf->functions.len = 0;
	dwarf->functions_unit = dwarf_dieoffset(unit);
	dwarf->functions_deep = deep;
	rc = read_functions(dwarf, unit, deep);
	if (dwarf->functions.len >= RANGES_MAX)
		wp_dwarf_lose(dwarf, WP_DWARF_CUT);
	sort_ranges(&dwarf->functions);
	return rc;
}

int wp_dwarf_find_function(struct wp_dwarf *dwarf, Dwarf_Die *unit,
			   uint64_t svma, Dwarf_Die *ret)
{
	const struct wp_dwarf_range *range;
	int rc = 0;

	if (dwarf->functions_unit != dwarf_dieoffset(unit)) {
		rc = read_unit_functions(dwarf, unit, false);
		/* No budget is left to look inside them. */
		dwarf->functions_deep = !dwarf->budget;
	}
	range = rc ? NULL : find_range(&dwarf->functions, svma);
	/* Functions inside functions are rare, and looking for them means
	 * reading every DIE. */
	if (!rc && !range && !dwarf->functions_deep) {
		rc = read_unit_functions(dwarf, unit, true);
		/* Cut, the list lacks functions of the unit itself: read those alone. */
		if (!rc && !dwarf->budget) {
			dwarf->budget = WP_DWARF_DIES_MAX;
			rc = read_unit_functions(dwarf, unit, false);
			dwarf->functions_deep = true;
		}
		range = rc ? NULL : find_range(&dwarf->functions, svma);
	}
	if (rc)
		return rc;
	return range && dwarf_offdie(dwarf->dw, range->die, ret) ? 0 : -ENOENT;
}
