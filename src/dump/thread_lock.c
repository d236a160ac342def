/* SPDX-License-Identifier: Apache-2.0 */
/* thread_lock.c - see thread_lock.h. */
#include "thread_lock.h"

#include "pid_namespace.h"
#include "thread_times.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"
#include "wallprof/state.h"

/* The memory that a lock is decoded from. */
struct lock_memory {
	struct wp_snapshot_process *process;
	const struct wp_thread_view *view;
	/* Copied at the sample; NULL: only the target's memory is read. */
	const struct wp_call_memory *copy;
	/* The target's memory was read. */
	bool is_live;
	/* A thread that was not found may be there all the same. */
	bool may_be_there;
};

static enum wp_mem_result read_live(void *ctx, uint64_t avma, void *buf,
				    size_t len)
{
	const struct lock_memory *mem = ctx;

	return wp_process_read(&mem->process->process, avma, buf, len) ==
			       (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

static enum wp_mem_result read_memory(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	struct lock_memory *mem = ctx;

	if (mem->copy && wp_call_memory_read(mem->copy, avma, buf, len))
		return WP_MEM_OK;
	mem->is_live = true;
	return read_live(ctx, avma, buf, len);
}

/* See struct wp_lock_query. */
static int32_t find_thread(void *ctx, int32_t own)
{
	struct lock_memory *mem = ctx;
	struct wp_snapshot_process *process = mem->process;
	/* What is read now may name a thread that was not there at the sample. */
	uint64_t since_ns = mem->is_live ? wp_clock_ns() : 0;
	int32_t tid = wp_pid_namespace_thread(process, own, since_ns);
	struct wp_proc_stat stat;

	mem->may_be_there |= tid < 0;
	if (tid <= 0 || !wp_thread_times_stat(&stat, &process->process, tid) ||
	    stat.state_char == 'Z' || stat.state_char == 'X')
		return 0;
	return tid;
}

/* Set FRAMES to T's innermost user frames; returns how many there are. */
static uint32_t
collect_user_frames(struct wp_lock_frame frames[WP_LOCK_FRAMES_MAX],
		    const struct wp_dump *dump, const struct wp_dump_thread *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->stack.nframes && n < WP_LOCK_FRAMES_MAX;
	     i++) {
		const struct wp_dump_frame *f =
			&dump->frames[t->stack.first_frame + i];
		uint32_t name = f->system_name ? f->system_name : f->function;

		if (!f->kernel)
			frames[n++] = (struct wp_lock_frame){
				.function = wp_dump_str(dump, name),
				.module = f->module,
				.guessed = f->guessed,
			};
	}
	return n;
}

/* Decode what T waits for, from MEM.  False: memory was read that may be of a
 * later moment than T's sample. */
static bool decode_from(struct wp_lock_answer *ret, const struct wp_dump *dump,
			const struct wp_dump_thread *t, struct lock_memory *mem)
{
	const struct wp_lock_query query = {
		.mem = { read_memory, mem },
		.live = { read_live, mem },
		.is_32bit = mem->process->is_32bit,
		.find_thread = find_thread,
		.ctx = mem,
	};
	struct wp_lock_frame frames[WP_LOCK_FRAMES_MAX];
	const struct wp_lock_wait wait = {
		.syscall_nr = t->call.nr,
		.args = t->call.args,
		.wait = t->wait,
		.frames = frames,
		.nframes = collect_user_frames(frames, dump, t),
		.sp_avma = mem->copy ? mem->copy->sp_avma : 0,
	};

	wp_lock_decode(&wait, &query, ret);
	return !mem->is_live ||
	       wp_thread_times_same_wait(t, mem->view, &mem->process->process);
}

/* What is left of a LOCK whose memory may be of a later moment. */
static void forget_holder(struct wp_lock_answer *answer,
			  const struct wp_dump_thread *t)
{
	if (answer->lock.kind == WP_LOCK_NONE)
		return;
	answer->wait = t->wait;
	answer->lock = (struct wp_lock){
		.kind = WP_LOCK_FUTEX,
		.holder = WP_HOLDER_NOT_RECORDED,
		.avma = t->call.args[0],
		.type = "",
	};
}

void wp_thread_lock_decode(struct wp_dump_thread *t, const struct wp_dump *dump,
			   struct wp_snapshot_process *process,
			   const struct wp_thread_view *view)
{
	struct lock_memory mem = { process, view, view->memory, false, false };
	struct wp_lock_answer answer;
	bool is_sure = decode_from(&answer, dump, t, &mem);

	/* A holder that is gone by now may have ended since the copy. */
	if (answer.lock.holder == WP_HOLDER_GONE && view->memory) {
		mem.copy = NULL;
		is_sure = decode_from(&answer, dump, t, &mem);
	}
	/* The copy is of the instant, and T is told as its sample had it. */
	if (view->waits_again && answer.lock.kind != WP_LOCK_GIL &&
	    answer.lock.holder != WP_HOLDER_NONE)
		is_sure = false;
	if (!is_sure ||
	    (answer.lock.holder == WP_HOLDER_GONE && mem.may_be_there))
		forget_holder(&answer, t);
	/* Who waits for the GIL does until it is had, waking each few milliseconds. */
	t->moved &= answer.lock.kind != WP_LOCK_GIL || !view->waits_again;
	t->call.timed = answer.lock.kind != WP_LOCK_GIL &&
			wp_state_is_timed(t->call.nr, t->call.args);
	t->wait = answer.wait;
	t->lock = answer.lock;
}
