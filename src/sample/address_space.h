/* SPDX-License-Identifier: Apache-2.0 */
/* address_space.h - the target's address space: maps, modules, ELF images.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_ADDRESS_SPACE_H
#define WP_ADDRESS_SPACE_H

#include "wallprof/maps.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/unwind.h"

/* An ELF file, once per (device, inode), for as long as the recording. */
struct wp_address_space_image {
	uint64_t dev;
	uint64_t ino;
	/* Owned, at an address that stays. */
	struct wp_elf_image *image;
	/* Regions of an image that is read from memory; owned. */
	struct wp_address_space_memory *memory;
};

/* What an executable mapping of the profile is, by its id. */
struct wp_address_space_module {
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	uint64_t dev;
	uint64_t ino;
	uint64_t bias;
	/* NULL: not an ELF file, or not readable. */
	struct wp_elf_image *image;
	/* Of all that tells it from others. */
	uint64_t hash;
	/* Tick in which it was last seen to be still mapped. */
	uint64_t checked_tick;
};

struct wp_address_space {
	/* Borrowed. */
	const struct wp_process *process;
	struct wp_profile *profile;
	/* Counts the generations that all address spaces of a sampler have had:
	 * the next is one more. */
	uint64_t *generations;

	/* As of the last reload. */
	struct wp_maps maps;
	struct wp_text text;
	/* /proc/PID/maps, pins the address space it was opened in; -1. */
	int maps_fd;
	/* The kernel answers questions about one address (Linux 6.11). */
	bool can_query;
	/* An exec in the recording may lead to a program of the other kind. */
	bool is_32bit;
	uint64_t reloaded_ns;
	uint64_t reload_cost_ns;

	/* images[0..nimages), owned. */
	struct wp_address_space_image *images;
	size_t nimages, cap_images;
	/* modules[0..nmodules): index is the profile's mapping id; owned. */
	struct wp_address_space_module *modules;
	size_t nmodules, cap_modules;
	/* Open-addressing table of their ids, 0 where there is none; owned. */
	uint32_t *slot;
	size_t nslots;
	/* What the unwinder sees: the mappings of now, sorted; owned. */
	struct wp_unwind_module *current;
	size_t ncurrent, cap_current;
	struct wp_unwind_modules view;
};

#define WP_ADDRESS_SPACE_INIT                                                  \
	{                                                                      \
		.maps_fd = -1                                                  \
	}

/* Read the map for the first time.  GENERATIONS is shared by all address spaces
 * that one unwinder serves, and borrowed.  0 or as wp_process_read_maps. */
WP_MUST_CHECK
int wp_address_space_open(struct wp_address_space *space,
			  const struct wp_process *process,
			  struct wp_profile *profile, uint64_t *generations);
void wp_address_space_close(struct wp_address_space *space);

/* Read the map anew.  With FORCE false only if the last time is long enough
 * past that reading costs no more than a twentieth of all time.  Returns 1 if
 * it was read, 0 if not, or -errno.
 */
int wp_address_space_reload(struct wp_address_space *space, bool force);

/* Is there code at PC that the map does not have?  Without an answer of the
 * kernel: no. */
bool wp_address_space_misses(const struct wp_address_space *space,
			     uint64_t pc_avma);

/* Are the mappings of STACK's frames still the ones it was walked with?  Each
 * is asked for once a TICK.  False: reload and walk again. */
bool wp_address_space_check(struct wp_address_space *space,
			    const struct wp_stack *stack, uint64_t tick);

/* End of the stack region that holds SP; 0 when no region does. */
uint64_t wp_address_space_stack_end(const struct wp_address_space *space,
				    uint64_t sp_avma);

#endif
