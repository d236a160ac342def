/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: ptrace.  src/ptrace/signal_frame.h: frames of aarch64 that were made here,
 * on any machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../src/ptrace/signal_frame.h"

enum { NREGS = 31, LEN = 4688, MOST = 5 * 4096 };

static const struct wp_signal_frame ended = {
	.sp_avma = 0x7ffff000,
	.pc_avma = 0x40001234,
	.result = (uint64_t)-EINTR,
};

/* Writes what the kernel does of FRAME, from AT on. */
static void put(uint64_t *at, const struct wp_signal_frame *frame)
{
	for (int i = 0; i < NREGS; i++)
		at[i] = 0x100 + (uint64_t)i;
	at[0] = frame->result;
	at[NREGS] = frame->sp_avma;
	at[NREGS + 1] = frame->pc_avma;
}

static void a_frame_is_found_anywhere(void **state)
{
	uint64_t words[100];

	(void)state;
	for (size_t at = 0; at + NREGS + 2 <= 100; at++) {
		memset(words, 0, sizeof(words));
		put(words + at, &ended);
		assert_true(wp_signal_frame_find(&ended, words, sizeof(words)));
		/* The last word is part of it. */
		assert_false(wp_signal_frame_find(&ended, words,
						  8 * (at + NREGS + 2) - 1));
	}
}

static void another_frame_is_none(void **state)
{
	uint64_t words[NREGS + 2];
	struct wp_signal_frame other;

	(void)state;
	put(words, &ended);
	other = ended;
	other.sp_avma -= 16;
	assert_false(wp_signal_frame_find(&other, words, sizeof(words)));
	other = ended;
	other.pc_avma += 4;
	assert_false(wp_signal_frame_find(&other, words, sizeof(words)));
	other = ended;
	other.result = 0;
	assert_false(wp_signal_frame_find(&other, words, sizeof(words)));
	assert_false(wp_signal_frame_find(&ended, words, 0));
}

static void the_stack_below_is_read_as_far_as_there_is_one(void **state)
{
	/* One page of a machine with large ones. */
	enum { SIZE = 65536 };
	char *top = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	struct wp_signal_frame frame = ended;

	(void)state;
	assert_true(top != MAP_FAILED);
	top += 2 * SIZE;
	frame.sp_avma = (uintptr_t)top;
	/* There is nothing. */
	assert_false(wp_signal_frame_is_below(getpid(), &frame));
	assert_int_equal(mprotect(top - SIZE, SIZE, PROT_READ | PROT_WRITE), 0);
	assert_false(wp_signal_frame_is_below(getpid(), &frame));
	put((uint64_t *)(top - LEN), &frame);
	assert_true(wp_signal_frame_is_below(getpid(), &frame));
	/* As much further down as a frame with SVE. */
	memset(top - LEN, 0, LEN);
	put((uint64_t *)(top - 3 * LEN), &frame);
	assert_true(wp_signal_frame_is_below(getpid(), &frame));
	assert_false(wp_signal_frame_is_below(-1, &frame));
	/* Right below sp; and as far down as is looked, not a word more. */
	memset(top - SIZE, 0, SIZE);
	put((uint64_t *)(top - 8 * (NREGS + 2)), &frame);
	assert_true(wp_signal_frame_is_below(getpid(), &frame));
	memset(top - SIZE, 0, SIZE);
	put((uint64_t *)(top - MOST), &frame);
	assert_true(wp_signal_frame_is_below(getpid(), &frame));
	memset(top - SIZE, 0, SIZE);
	put((uint64_t *)(top - MOST - 8), &frame);
	assert_false(wp_signal_frame_is_below(getpid(), &frame));
	munmap(top - 2 * SIZE, 2 * SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_is_found_anywhere),
		cmocka_unit_test(another_frame_is_none),
		cmocka_unit_test(
			the_stack_below_is_read_as_far_as_there_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
