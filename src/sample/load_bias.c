/* SPDX-License-Identifier: Apache-2.0 */
/* load_bias.c - see load_bias.h. */
#include "load_bias.h"

/* How many segments of IMAGE, which MAP is of, are mapped where BIAS puts them. */
static uint32_t count_mapped(const struct wp_elf_image *image,
			     const struct wp_maps *maps,
			     const struct wp_map *map, uint64_t bias)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < image->nloads; i++) {
		const struct wp_elf_load *load = &image->loads[i];
		uint64_t lead = load->off & (image->page - 1);
		uint64_t avma = load->svma - lead + bias;
		const struct wp_map *at = load->filesz ?
						  wp_maps_find(maps, avma) :
						  NULL;

		n += at && at->dev == map->dev && at->ino == map->ino &&
		     avma - at->start_avma + at->off == load->off - lead;
	}
	return n;
}

/* How well LOAD fits the rights of MAP. */
static uint32_t rank_rights(const struct wp_elf_load *load,
			    const struct wp_map *map)
{
	uint32_t rights = (map->read ? PF_R : 0u) | (map->write ? PF_W : 0u) |
			  (map->exec ? PF_X : 0u);

	if ((load->flags & (PF_R | PF_W | PF_X)) == rights)
		return 2;
	return map->exec && load->flags & PF_X;
}

bool wp_load_bias_find(const struct wp_elf_image *image,
		       const struct wp_maps *maps, const struct wp_map *map,
		       uint64_t *ret_bias)
{
	enum { RANKS = 3 };
	uint32_t best = 0;
	bool is_found = false;

	for (uint32_t i = 0; i < image->nloads; i++) {
		uint64_t svma, bias;
		uint32_t rank;

		if (!wp_elf_image_shown(image, i, map->off, &svma))
			continue;
		bias = map->start_avma - svma;
		rank = count_mapped(image, maps, map, bias) * RANKS +
		       rank_rights(&image->loads[i], map);
		if (is_found && rank < best)
			continue;
		best = rank;
		*ret_bias = bias;
		is_found = true;
	}
	return is_found;
}
