/* SPDX-License-Identifier: Apache-2.0 */
/* address_space.h - the target's address space: maps, modules, ELF images.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_ADDRESS_SPACE_H
#define WP_ADDRESS_SPACE_H

#include "modules.h"
#include "wallprof/maps.h"
#include "wallprof/file_servers.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/renumber.h"
#include "wallprof/unwind.h"

struct wp_address_space {
	/* Borrowed. */
	const struct wp_process *process;
	struct wp_modules *modules;
	/* Index of the profile's processes. */
	uint32_t index;

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
	/* Times that it was found to have executed another program. */
	uint32_t nexecs;
	/* The process runs a 32-bit program, as of the last reload: an exec may
	 * change that. */
	bool is_32bit;
	/* Where functions return to whose return is probed ("[uprobes]"), as of the
	 * last reload; 0: nowhere. */
	uint64_t uprobes_avma;
	/* The probes of its allocators; borrowed, NULL: there are none. */
	const struct wp_heap_probe *probe;
	/* When the last reload ended, and the CPU time that it took. */
	uint64_t reloaded_ns;
	uint64_t reload_cost_ns;

	/* The module list of the unwinder: what is mapped now, sorted, and the last
	 * tick in which the kernel said that each still is; owned. */
	struct wp_unwind_module *current;
	size_t ncurrent, cap_current;
	uint64_t *checked;
	size_t nchecked, cap_checked;
	struct wp_unwind_modules view;
};

#define WP_ADDRESS_SPACE_INIT                                                  \
	{                                                                      \
		.maps_fd = -1                                                  \
	}

/* Read the map of PROCESS, the profile's process INDEX, for the first time; its
 * executable mappings are added to MODULES.  Both are borrowed.  0 or as
 * wp_process_read_maps. */
WP_MUST_CHECK
int wp_address_space_open(struct wp_address_space *space,
			  const struct wp_process *process,
			  struct wp_modules *modules, uint32_t index);
void wp_address_space_close(struct wp_address_space *space);

/* See wp_sampler_renumber. */
void wp_address_space_renumber(struct wp_address_space *space,
			       struct wp_renumber *renumber);

/* Read the map again.  Unless FORCE, only if so much time has passed since the
 * last reload that reloads take at most a twentieth of it.  Returns 1 if the map
 * was read, 0 if not, or -errno. */
int wp_address_space_reload(struct wp_address_space *space, bool force);

/* Is there no code at PC now?  False where the kernel cannot be asked. */
bool wp_address_space_lacks(const struct wp_address_space *space,
			    uint64_t pc_avma);

/* Is there code at PC now, and no mapping in the map?  False where the kernel
 * cannot be asked. */
bool wp_address_space_misses(const struct wp_address_space *space,
			     uint64_t pc_avma);

/* Are the mappings of STACK's frames still what the map says?  The kernel is asked
 * once a TICK for each.  False: reload, and walk again. */
bool wp_address_space_check(struct wp_address_space *space,
			    const struct wp_stack *stack, uint64_t tick);

/* End of the stack region that holds SP, as the kernel says where the map has none; 0 when
 * no region does. */
uint64_t wp_address_space_stack_end(const struct wp_address_space *space,
				    uint64_t sp_avma);

#endif
