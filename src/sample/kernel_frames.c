/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_frames.c - see kernel_frames.h. */
#include "kernel_frames.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler_loop.h"
#include "target.h"
#include "thread.h"

enum {
	KERNEL_TEXT_MAX = 8192,
	KERNEL_NAME_MAX = 32,
};

struct frames {
	struct wp_frame v[WP_KERNEL_FRAMES_MAX];
	uint32_t n;
};

static void add_name(struct frames *frames, struct wp_target *target,
		     const char *name, size_t len)
{
	uint32_t id = wp_intern_add(&target->profile->strings, name, len);

	if (id != UINT32_MAX && frames->n < WP_KERNEL_FRAMES_MAX)
		frames->v[frames->n++] = (struct wp_frame){ id,
							    WP_MAPPING_KERNEL,
							    WP_FRAME_NAMED };
}

static void put_before(const struct frames *frames, struct wp_stack *stack)
{
	uint32_t n = frames->n;

	stack->frames -= n;
	stack->cfa_avma -= n;
	stack->depth += n;
	memcpy(stack->frames, frames->v, n * sizeof(*frames->v));
	memset(stack->cfa_avma, 0, n * sizeof(*stack->cfa_avma));
}

/* "[<0>] futex_wait+0x60/0x90 [module]", innermost first (proc(5), stack). */
void wp_kernel_frames_add_waiting(struct wp_thread *t, struct wp_stack *stack)
{
	struct frames frames = { .n = 0 };
	char text[KERNEL_TEXT_MAX];
	ssize_t len = wp_thread_files_read_once(t->target, t->tid, "stack",
						text, sizeof(text));

	if (len == -EACCES || len == -EPERM)
		t->target->profile->counters.kernel_denied++;
	if (len <= 0)
		return;
	for (char *line = text; *line;) {
		char *eol = strchrnul(line, '\n');
		char *name = memchr(line, ']', (size_t)(eol - line));

		if (name && name + 2 < eol && strcspn(name + 2, "+ \n"))
			add_name(&frames, t->target, name + 2,
				 strcspn(name + 2, "+ \n"));
		line = *eol ? eol + 1 : eol;
	}
	put_before(&frames, stack);
}

void wp_kernel_frames_add_chain(struct wp_target *target,
				const struct wp_perf_record *record,
				struct wp_stack *stack)
{
	struct frames frames = { .n = 0 };

	for (size_t i = 0; i < record->kernel_len; i++) {
		/* Return addresses but the first. */
		uint64_t avma = record->kernel_chain[i] - (i > 0);
		const char *name = wp_kallsyms_find(&target->loop->kallsyms,
						    avma);
		char number[KERNEL_NAME_MAX];

		if (!name) {
			snprintf(number, sizeof(number), "0x%llx",
				 (unsigned long long)avma);
			name = number;
		}
		add_name(&frames, target, name, strlen(name));
	}
	put_before(&frames, stack);
}
