/* SPDX-License-Identifier: Apache-2.0 */
/* stack_copy.h - the copy of a thread's stack that a walk reads.
 *
 * Layer: sample.  Private to src/sample/.
 *
 * One system call copies the stack from sp upwards; the walk reads the copy.
 * More of the stack, or another stack, is read from the target if the thread is
 * known to stand still (LIVE); otherwise it is missing.  But a sample's copy, which the
 * kernel keeps below 64 KiB, is read on in the target that goes on (MAY_FOLLOW): the
 * frames above its end are as they were unless the thread has left it: stack_join.h.
 * What was read of another stack is kept, with what lies above it, for a second walk
 * when the thread goes on.
 * Code and other parts of mapped files are read from the target in any case.
 */
#ifndef WP_STACK_COPY_H
#define WP_STACK_COPY_H

#include "address_space.h"
#include "wallprof/types.h"

enum {
	/* Bytes below sp that leaf functions may use (x86-64 psABI 3.2.2). */
	WP_RED_ZONE = 128,
	WP_COPY_MAX = 8 << 20,
	/* What most threads that wait need; it ends with its page. */
	WP_STACK_COPY_SHORT = 4096,
	/* Most bytes of a copy of a thread that goes on: it is made at each sample. */
	WP_FOLLOW_MAX = 1 << 20,
	/* Least bytes at a sample's end that tell whether the frames there are the
	 * same; and most to the next word that a walk reads: what is farther off may be
	 * of another stack, as a goroutine's is above the runtime's own. */
	WP_FOLLOW_SAME = 1024,
	WP_FOLLOW_STEP = 16 << 10,
	/* Most bytes of a piece of another stack, and most pieces. */
	WP_PIECE_MAX = 256 << 10,
	WP_PIECES_MAX = 8,
};

/* The target's memory [start_avma, start_avma + len). */
struct wp_stack_piece {
	uint64_t start_avma;
	size_t len;
};

struct wp_stack_copy {
	/* Whose stack was copied last; borrowed. */
	const struct wp_address_space *space;
	/* Bytes of a page of the kernel's. */
	uint64_t page;
	/* Reserved memory, owned: WP_COPY_MAX bytes; WP_PIECE_MAX bytes for each
	 * piece. */
	uint8_t *buf;
	uint8_t *piece_buf;
	/* buf[0..len) is the target's memory at START_AVMA. */
	uint64_t start_avma;
	size_t len;
	/* End of the region that holds START_AVMA; 0: no region does. */
	uint64_t region_end_avma;
	/* Pieces of other stacks: pieces[0..npieces), and how long a new one is
	 * at most. */
	struct wp_stack_piece pieces[WP_PIECES_MAX];
	unsigned int npieces;
	size_t piece_len;
	/* The kernel made it, from sp on: the red zone is missing. */
	bool is_sample;
	/* When it was copied: return addresses that a probe has replaced are asked for as of
	 * then, but for the one at KEPT_AVMA (0: none).  0: they are left as they are. */
	uint64_t time_ns;
	uint64_t kept_avma;
	/* How often one was asked for: a stack may be full of them. */
	unsigned int nasked;
	/* The thread stands still: missing parts may be read from the target. */
	bool live;
	/* It goes on, and the kernel copied as much of its stack as it can, SAMPLE_LEN
	 * bytes. */
	bool may_follow;
	size_t sample_len;
	/* The end of the sample, which has to be as it was, begins here; set once LEN is
	 * more than SAMPLE_LEN. */
	size_t end_at;
	/* The walk has read up to here, from START_AVMA. */
	size_t read_len;
	/* Set by reads of the walk: the stack goes on past the copy; the thread has
	 * left the frames at the end of the sample's since, or may have; memory of
	 * another stack was read or missing. */
	bool beyond;
	bool has_left;
	bool elsewhere;
	/* What was missing of another stack, if a walk ended for that. */
	uint64_t missing_avma;
};

/* 0 or -ENOMEM. */
WP_MUST_CHECK
int wp_stack_copy_init(struct wp_stack_copy *copy);
void wp_stack_copy_clear(struct wp_stack_copy *copy);

/* Is COPY's [FROM, END), from START_AVMA, what the target has there now? */
bool wp_stack_copy_is_same(const struct wp_stack_copy *copy, size_t from,
			   size_t end);

/* Copy from SP in SPACE (less the red zone) up to LEN bytes or WP_COPY_MAX, not
 * past the end of the stack's region; LEN of WP_STACK_COPY_SHORT: as much as
 * wp_stack_copy_short says.  Where what is below SP cannot be read it begins at SP.
 * Bytes copied, 0 when nothing could be read, or -errno. */
ssize_t wp_stack_copy_take(struct wp_stack_copy *copy,
			   const struct wp_address_space *space,
			   uint64_t sp_avma, size_t len);

/* How much of a short copy from START_AVMA on is made, where a page has PAGE bytes. */
size_t wp_stack_copy_short(uint64_t start_avma, uint64_t page);

/* Let COPY be DATA[0..LEN), what wp_stack_copy_take would copy from SP less the red
 * zone on as a short copy. */
void wp_stack_copy_use(struct wp_stack_copy *copy,
		       const struct wp_address_space *space, uint64_t sp_avma,
		       const uint8_t *data, size_t len);

/* Let COPY be DATA[0..len), which the kernel copied from SP in SPACE. */
void wp_stack_copy_set(struct wp_stack_copy *copy,
		       const struct wp_address_space *space, uint64_t sp_avma,
		       const void *data, size_t len);

/* The thread stands still: keep what another of its stacks has from AVMA on, as if a
 * walk had read it, if there is room for one more piece. */
void wp_stack_copy_keep(struct wp_stack_copy *copy, uint64_t avma);

/* Bytes that COPY has, and that wp_stack_copy_save writes. */
size_t wp_stack_copy_size(const struct wp_stack_copy *copy);
/* Put them at TO; let COPY be SAVED again, whose bytes are at FROM. */
void wp_stack_copy_save(const struct wp_stack_copy *copy, uint8_t *to);
void wp_stack_copy_restore(struct wp_stack_copy *copy,
			   const struct wp_stack_copy *saved,
			   const uint8_t *from);

/* A reader of COPY, which is borrowed. */
struct wp_mem wp_stack_copy_mem(struct wp_stack_copy *copy);

#endif
