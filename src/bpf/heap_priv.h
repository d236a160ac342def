/* SPDX-License-Identifier: Apache-2.0 */
/* heap_priv.h - what a heap probe is made of.
 *
 * Layer: bpf.  Private to src/bpf/heap_*.c.
 */
#ifndef WP_HEAP_PRIV_H
#define WP_HEAP_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "heap_returns.h"
#include "wallprof/heap_probe.h"

struct bpf_object;

/* A file with probes by links, and where. */
struct wp_heap_file {
	/* Of its own: where it was mapped there may be another by now. */
	int fd;
	uint32_t n;
	uint64_t offsets[WP_HEAP_SITES_MAX];
};

/* The programs of one tier, and what runs them. */
struct wp_heap_links {
	enum wp_heap_tier tier;
	/* The programs and their maps; owned. */
	struct bpf_object *object;
	/* fds[0..n): links, or perf events; owned. */
	int fds[1024];
	size_t n;
	/* files[0..nfiles); owned. */
	struct wp_heap_file *files;
	size_t nfiles, cap_files;
};

struct wp_heap_probe {
	pid_t pid;
	struct wp_heap_links links;
	/* Descriptors of maps, borrowed. */
	int live, counts, mode, output;
	struct ring_buffer *mapped;
	/* Mapped; owned. */
	struct wp_heap_returns returns;
	/* CPU time that a probe takes. */
	uint64_t cost_ns;
	/* Of the call of wp_heap_probe_each_mapped that is made now. */
	const struct wp_heap_each_mapped *each_mapped;
};

const char *wp_heap_tier_name(enum wp_heap_tier tier);

/* Load the programs of TIER.  0, which wp_heap_links_close undoes, or -errno: -EPERM:
 * not permitted. */
WP_MUST_CHECK
int wp_heap_links_load(struct wp_heap_links *links, enum wp_heap_tier tier);

/* How many rings of WP_HEAP_RETURNS calls LINKS keep: one for each CPU.  0: none, on aarch64,
 * and where LINKS are of a session: few of our calls return through a probe there. */
uint32_t wp_heap_links_count_rings(const struct wp_heap_links *links);

/* Is there a program for calls of that kind? */
bool wp_heap_links_can(const struct wp_heap_links *links,
		       enum wp_heap_call call);

/* Have the programs run at SITES[0..n) of the file at PATH, in process PID, but those
 * without a program.  0 or -errno: -EMFILE: no room. */
WP_MUST_CHECK
int wp_heap_links_add(struct wp_heap_links *links, pid_t pid, const char *path,
		      const struct wp_heap_site *sites, size_t n);

/* Remove probes from the processes that process PID has forked since they were made: they
 * have copies of its memory, in which the kernel has put them. */
void wp_heap_links_spare_children(struct wp_heap_links *links, pid_t pid);

/* Remove the probes: WHOLLY, or one alone of those that take long (wallprof/
 * heap_probe.h). */
void wp_heap_links_remove(struct wp_heap_links *links, bool wholly);

/* Remove all. */
void wp_heap_links_close(struct wp_heap_links *links);

/* Put a probe on a function of wallprof, and fill in what it costs.  0; -ENODATA: it is
 * not hit; -errno of wp_heap_links_add. */
WP_MUST_CHECK
int wp_heap_trial_run(struct wp_heap_probe *probe);

#endif
