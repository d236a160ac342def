/* SPDX-License-Identifier: Apache-2.0 */
/* address_space.h - the target's address space: maps, modules, ELF images.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_ADDRESS_SPACE_H
#define WP_ADDRESS_SPACE_H

#include "image_cache.h"
#include "wallprof/index.h"
#include "wallprof/maps.h"
#include "wallprof/file_servers.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/unwind.h"

/* An executable mapping of the profile. */
struct wp_address_space_module {
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	uint64_t dev;
	uint64_t ino;
	uint64_t bias;
	/* NULL: not an ELF file, not readable, of a server that does not answer, or
	 * not opened so far, as no pc has been met in it; borrowed from the cache. */
	struct wp_elf_image *image;
	bool is_opened;
	/* The last tick in which the kernel said that it is still mapped. */
	uint64_t checked_tick;
};

struct wp_address_space {
	/* Borrowed. */
	const struct wp_process *process;
	struct wp_profile *profile;
	struct wp_image_cache *images;

	/* /proc/PID/maps at the last reload, parsed and as text. */
	struct wp_maps maps;
	struct wp_text text;
	/* Of the process's mounts, as of the last new file. */
	struct wp_file_servers servers;
	/* An open /proc/PID/maps: pins the address space that the process had
	 * then; -1: none. */
	int maps_fd;
	/* The kernel has PROCMAP_QUERY (Linux 6.11): it says what is mapped at
	 * one address. */
	bool can_query;
	/* The process runs a 32-bit program, as of the last reload: an exec may
	 * change that. */
	bool is_32bit;
	/* When the last reload ended, and the CPU time that it took. */
	uint64_t reloaded_ns;
	uint64_t reload_cost_ns;

	/* modules[0..nmodules) by the profile's mapping id; owned. */
	struct wp_address_space_module *modules;
	size_t nmodules, cap_modules;
	/* Finds modules by a hash of their range and file. */
	struct wp_index index;
	/* The module list of the unwinder: what is mapped now, sorted; owned. */
	struct wp_unwind_module *current;
	size_t ncurrent, cap_current;
	struct wp_unwind_modules view;
};

#define WP_ADDRESS_SPACE_INIT                                                  \
	{                                                                      \
		.maps_fd = -1                                                  \
	}

/* Read the map of PROCESS for the first time; its executable mappings are added to
 * PROFILE.  IMAGES is shared by all address spaces that one unwinder serves.  All
 * three are borrowed.  0 or as wp_process_read_maps. */
WP_MUST_CHECK
int wp_address_space_open(struct wp_address_space *space,
			  const struct wp_process *process,
			  struct wp_profile *profile,
			  struct wp_image_cache *images);
void wp_address_space_close(struct wp_address_space *space);

/* Read the map again.  Unless FORCE, only if so much time has passed since the
 * last reload that reloads take at most a twentieth of it.  Returns 1 if the map
 * was read, 0 if not, or -errno. */
int wp_address_space_reload(struct wp_address_space *space, bool force);

/* Is there code at PC now, and no mapping in the map?  False where the kernel
 * cannot be asked. */
bool wp_address_space_misses(const struct wp_address_space *space,
			     uint64_t pc_avma);

/* Are the mappings of STACK's frames still what the map says?  The kernel is asked
 * once a TICK for each.  False: reload, and walk again. */
bool wp_address_space_check(struct wp_address_space *space,
			    const struct wp_stack *stack, uint64_t tick);

/* End of the stack region that holds SP; 0 when no region does. */
uint64_t wp_address_space_stack_end(const struct wp_address_space *space,
				    uint64_t sp_avma);

#endif
