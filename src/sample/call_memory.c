/* SPDX-License-Identifier: Apache-2.0 */
/* call_memory.c - see wallprof/call_memory.h. */
#include "wallprof/call_memory.h"

#include <poll.h>
#include <string.h>

#include "wallprof/clock.h"
#include "wallprof/syscall_nr.h"

/* The smallest: a larger one begins at a multiple of it, too. */
enum { PAGE = 4096 };

static void add(struct wp_call_memory *m, const struct wp_process *process,
		uint64_t avma, uint64_t len)
{
	uint32_t off = 0;
	ssize_t n;

	if (m->nparts)
		off = m->parts[m->nparts - 1].off + m->parts[m->nparts - 1].len;
	if (!avma || !len || m->nparts == WP_CALL_MEMORY_PARTS ||
	    len > sizeof(m->bytes) - off || avma > UINT64_MAX - len)
		return;
	n = wp_process_read(process, avma, m->bytes + off, (size_t)len);
	if (n <= 0)
		return;
	m->parts[m->nparts].avma = avma;
	m->parts[m->nparts].off = off;
	m->parts[m->nparts++].len = (uint32_t)n;
}

/* The futex word at AVMA and what is around it; the page before may be
 * unmapped. */
static void add_futex(struct wp_call_memory *m,
		      const struct wp_process *process, uint64_t avma)
{
	uint64_t before = avma < WP_CALL_MEMORY_BEFORE ? avma :
							 WP_CALL_MEMORY_BEFORE;

	add(m, process, avma - before, before + WP_CALL_MEMORY_AFTER);
	if (m->nparts || avma % PAGE >= before)
		return;
	add(m, process, avma - avma % PAGE, avma % PAGE + WP_CALL_MEMORY_AFTER);
}

/* The time at AVMA: two words, the second less than 2^32.  IS_NARROW: of 32 bits each. */
static void add_time(struct wp_call_memory *m, const struct wp_process *process,
		     uint64_t avma, bool is_narrow)
{
	uint32_t from = m->nparts, narrow[2];
	int64_t wide[2];

	add(m, process, avma, is_narrow ? sizeof(narrow) : sizeof(wide));
	if (!is_narrow || m->nparts == from ||
	    m->parts[from].len != sizeof(narrow) ||
	    sizeof(wide) > sizeof(m->bytes) - m->parts[from].off)
		return;
	memcpy(narrow, m->bytes + m->parts[from].off, sizeof(narrow));
	wide[0] = (int32_t)narrow[0];
	wide[1] = (int32_t)narrow[1];
	memcpy(m->bytes + m->parts[from].off, wide, sizeof(wide));
	m->parts[from].len = sizeof(wide);
}

static uint64_t at_most(uint64_t n, uint64_t most)
{
	return n < most ? n : most;
}

void wp_call_memory_take(struct wp_call_memory *memory,
			 const struct wp_process *process,
			 const struct wp_thread_facts *facts, uint64_t sp_avma)
{
	const uint64_t *args = facts->args;
	const bool is_narrow = facts->has_narrow_time;

	memory->nparts = 0;
	memory->sp_avma = sp_avma;
	memory->time_ns = wp_clock_ns();
	switch (facts->syscall_nr) {
	case SYS_futex:
		add_futex(memory, process, args[0]);
		add(memory, process, sp_avma, WP_CALL_MEMORY_STACK);
		break;
	case SYS_poll:
	case SYS_ppoll:
		add(memory, process, args[0],
		    at_most(args[1], WP_CALL_MEMORY_POLLED) *
			    sizeof(struct pollfd));
		if (facts->syscall_nr == SYS_ppoll)
			add_time(memory, process, args[2], is_narrow);
		break;
	case SYS_select:
	case SYS_pselect6:
		/* Whole words of 64 bits, as the kernel reads them. */
		add(memory, process, args[1],
		    at_most((args[0] + 63) / 64 * 8, WP_CALL_MEMORY_SET));
		add_time(memory, process, args[4], is_narrow);
		break;
	case SYS_epoll_pwait2:
		add_time(memory, process, args[3], is_narrow);
		break;
	case SYS_nanosleep:
		add_time(memory, process, args[0], is_narrow);
		break;
	case SYS_clock_nanosleep:
		add_time(memory, process, args[2], is_narrow);
		break;
	}
}

bool wp_call_memory_make_native(const struct wp_process *process, long *nr,
				uint64_t *args)
{
	uint32_t block[WP_SYSCALL_ARGS] = { 0 };
	/* Its last words may be past the end of a stack. */
	bool has_block = wp_syscall_is_i386_socketcall(*nr) &&
			 wp_process_read(process, args[1], block,
					 sizeof(block)) > 0;
	struct wp_native_call call;

	wp_syscall_of_i386(&call, *nr, args, has_block ? block : NULL);
	*nr = call.nr;
	memcpy(args, call.args, sizeof(call.args));
	return call.has_narrow_time;
}

bool wp_call_memory_read(const struct wp_call_memory *memory, uint64_t avma,
			 void *buf, size_t len)
{
	for (uint32_t i = 0; i < memory->nparts; i++) {
		uint64_t off = avma - memory->parts[i].avma;

		if (avma < memory->parts[i].avma ||
		    off > memory->parts[i].len ||
		    len > memory->parts[i].len - off)
			continue;
		memcpy(buf, memory->bytes + memory->parts[i].off + off, len);
		return true;
	}
	return false;
}
