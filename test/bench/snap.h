/* SPDX-License-Identifier: Apache-2.0 */
/* snap.h - snapshots of the threads of a live process, for unwinders to walk.
 *
 * A snapshot is the registers and the stack of a thread at one instant, and
 * whatever else walks of it read while the thread stood still; code and unwind
 * info come from the files.
 */
#ifndef WP_BENCH_SNAP_H
#define WP_BENCH_SNAP_H

#include "../../src/sample/address_space.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"
#include "wallprof/types.h"

enum {
	SNAP_PIECES_MAX = 32,
	SNAP_STACK_MAX = 1 << 20,
	SNAP_FRAMES_MAX = 512,
};

struct snap_set;

/* The target's memory [AVMA, AVMA + LEN). */
struct snap_piece {
	uint64_t avma;
	size_t len;
	/* Owned. */
	uint8_t *bytes;
};

struct snap {
	/* Borrowed. */
	struct snap_set *set;
	pid_t tid;
	struct wp_regs regs;
	/* pieces[0] is the stack. */
	struct snap_piece pieces[SNAP_PIECES_MAX];
	size_t npieces;
	/* The thread stands still: what is missing is fetched. */
	bool live;
};

/* Part of a file that the target cannot have written. */
struct snap_segment {
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	struct wp_elf_image *image;
};

/* A process and what was taken of it. */
struct snap_set {
	struct wp_process process;
	struct wp_profile profile;
	struct wp_address_space space;
	/* Of SPACE. */
	struct wp_modules modules;
	struct wp_image_cache images;
	/* segments[0..nsegments), sorted by address, owned; NULL: nothing but
	 * stacks and code was read so far. */
	struct snap_segment *segments;
	size_t nsegments;
	/* v[0..len), owned. */
	struct snap *v;
	size_t len;
};

/* 0 or a negative errno, with ERR filled. */
WP_MUST_CHECK
int snap_set_open(struct snap_set *ret, pid_t pid, struct wp_err *err);
void snap_set_close(struct snap_set *set);

/* Stop each thread ROUNDS times, some ms apart, and add a snapshot unless it is
 * the same as the thread's last.  LOOK is called while the thread stands still;
 * what it reads stays readable.  0, -ENOMEM or -ESRCH.
 */
WP_MUST_CHECK
int snap_set_take(struct snap_set *set, unsigned int rounds,
		  void (*look)(void *ctx, struct snap *snap), void *ctx);

/* As snap_set_take, but nothing is kept: LOOK is shown a snapshot at each stop
 * and after each of the next STEPS instructions, so that prologues, epilogues
 * and stubs are met, which a thread is rarely in when it is stopped.
 */
WP_MUST_CHECK
int snap_set_show(struct snap_set *set, unsigned int rounds, unsigned int steps,
		  void (*look)(void *ctx, struct snap *snap), void *ctx);

/* Read LEN bytes at AVMA as the target had them: 0 or -EFAULT.  As a struct
 * wp_mem's read, with a snapshot as its context. */
enum wp_mem_result snap_read(void *snap, uint64_t avma, void *buf, size_t len);

#endif
