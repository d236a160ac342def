/* SPDX-License-Identifier: Apache-2.0 */
/* task_scan_priv.h - what a scan of tasks is made of.
 *
 * Layer: bpf.  Private to src/bpf/task_*.c.
 */
#ifndef WP_TASK_SCAN_PRIV_H
#define WP_TASK_SCAN_PRIV_H

#include <stdbool.h>

#include "wallprof/task_scan.h"

struct bpf_link;
struct bpf_object;

/* Threads that were put on a CPU. */
struct wp_task_moves {
	/* The program that reads them; owned. */
	struct bpf_link *reader;
	/* Is the program attached that notes them at each context switch? By
	 * SWITCHES_FD then, owned. */
	bool is_noting;
	int switches_fd;
	/* The map's memory. */
	struct wp_task_moved *shared;
	/* Those of the last reading in order; owned. */
	const struct wp_task_record **sorted;
	/* All threads were read since the noting began, and each that was put on a CPU
	 * since then is noted, but those that are asked for: they were ready to run, as
	 * they may still be. */
	bool is_synced;
};

struct wp_task_scan {
	/* Owned: the program and its maps. */
	struct bpf_object *object;
	int processes_fd;
	/* NULL until there is a process; the one it was made for. */
	struct bpf_link *link;
	pid_t linked;
	/* The program walks all processes. */
	bool is_many;
	/* The first map's memory: records[0..nrecords), MAPPED bytes. */
	const struct wp_task_record *records;
	size_t nrecords;
	size_t mapped;
	/* Those of the last scan in order, [0..nsorted); room for all; owned. */
	const struct wp_task_record **sorted;
	size_t nsorted;
	/* How many threads it found. */
	size_t nfound;
	struct wp_task_moves moved;
};

/* By pid, then by tid: of pointers to records. */
int wp_task_scan_compare(const void *a, const void *b);

/* Put a link that runs program NAME, of thread PID, in place of *RET.  0 or -errno. */
WP_MUST_CHECK
int wp_task_scan_attach(struct wp_task_scan *scan, const char *name, pid_t pid,
			struct bpf_link **ret);

/* Run the program of LINK: how many threads it found.  0 or -errno. */
WP_MUST_CHECK
int wp_task_scan_run(const struct bpf_link *link, uint32_t *ret_n);

/* Size map MAP for N entries, before it is made.  0 or -errno. */
WP_MUST_CHECK
int wp_task_scan_set_room(struct wp_task_scan *scan, const char *map, size_t n);

/* Size the maps before they are made; map them. */
WP_MUST_CHECK
int wp_task_moved_set_room(struct wp_task_scan *scan);
WP_MUST_CHECK
int wp_task_moved_open(struct wp_task_scan *scan, struct wp_err *err);
void wp_task_moved_close(struct wp_task_scan *scan);

/* All threads have been read. */
void wp_task_moved_sync(struct wp_task_scan *scan);

#endif
