/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  wait_sample.h, wait_queue.h, wait_object.h, kernel_frames.h: a
 * thread that waits is read where it stands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "../../src/sample/record.h"
#include "../../src/sample/wait_object.h"
#include "../../src/sample/wait_sample.h"
#include "../../src/sample/stack_walk.h"
#include "one_target.h"

enum { TID = 7 };

static struct wp_thread *t;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "waiter");
	fake_stack_init(&stack, fake_stack_root);
	options = fake_target_options();
	return 0;
}

static void start(void)
{
	start_target();
	fake.target->tick = 1;
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	fake_now_ns += TICK;
	fake.sampler->tick_ns = fake_now_ns;
}

/* TID waits in NR with first argument ARG. */
static struct wp_wait_place place_in(long nr, uint64_t arg)
{
	const struct wp_regs regs = fake_stack_regs(&stack);
	struct wp_wait_place place = {
		.before = { 1000, 0, 1 },
		.call = { .nr = nr,
			  .args = { arg },
			  .sp_avma = regs.v[WP_REG_SP],
			  .pc_avma = regs.v[WP_REG_PC] },
	};

	fake_target_waits(&fake, TID, nr, arg, &regs);
	return place;
}

static enum wp_sample_result sample(long nr, uint64_t arg)
{
	struct wp_wait_place place = place_in(nr, arg);

	return wp_wait_sample_proc(t, &place);
}

static void record_queue(void)
{
	struct wp_wait_queue *queue = &fake.target->wait_queue;

	for (size_t i = 0; i < queue->n; i++)
		assert_int_equal(wp_record_wait(&queue->v[i]), 0);
	queue->n = 0;
}

/* The only sample there is. */
static const struct wp_sample_key *recorded(void)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];

	record_queue();
	assert_int_equal(set->nsamples, 1);
	return &set->samples[0].key;
}

static const char *object(void)
{
	return wp_profile_str(&fake.profile, recorded()->object);
}

static void a_wait_has_its_call_stack_and_time(void **state)
{
	const struct wp_sample_key *key;

	(void)state;
	start();
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	assert_int_equal(fake.target->wait_queue.n, 1);
	key = recorded();
	assert_int_equal(key->state, WP_STATE_WAITING);
	assert_int_equal(key->wait, WP_WAIT_SLEEP);
	assert_string_equal(wp_profile_str(&fake.profile, key->syscall),
			    "nanosleep");
	assert_int_equal(fake.profile.stacks[key->stack].depth, 3);
	assert_int_equal(fake_target_wall_ns(&fake, TID, WP_STATE_WAITING),
			 TICK);
	assert_true(t->wait.waiting);
	assert_int_equal(t->wait.key.syscall, key->syscall);
}

/* Its registers hold the call of the thread that made it, and no stack. */
static void a_worker_of_the_kernel_waits_in_no_call(void **state)
{
	struct wp_wait_place place;

	(void)state;
	options.kernel = true;
	start();
	fake_target_write(&fake, TID, "stack",
			  "[<0>] pipe_wait_readable+0x11e/0x140\n");
	place = place_in(SYS_io_uring_enter, 3);
	place.call.sp_avma = 0;
	fake_target_is_worker(&fake, TID, 'S');
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_DONE);
	assert_int_equal(recorded()->state, WP_STATE_WAITING);
	assert_int_equal(recorded()->wait, WP_WAIT_NONE);
	assert_string_equal(object(), "");
	assert_int_equal(recorded()->syscall, 0);
	assert_int_equal(fake.profile.stacks[recorded()->stack].end,
			 WP_END_WORKER);
	assert_int_equal(fake.profile.stacks[recorded()->stack].depth, 1);
	assert_int_equal(fake.profile.counters.no_stack, 0);
}

/* wallprof waited for a CPU: a thread that ran there was met where it stopped. */
static void a_wait_that_the_look_waited_for_divides_no_time(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];

	(void)state;
	start();
	/* The CPU of the fake's stat, and another. */
	fake.sampler->own_cpu.awaited = 0;
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	record_queue();
	assert_int_equal(set->samples[0].wall_ns, TICK);
	assert_int_equal(set->samples[0].looks, 0);
	assert_int_equal(set->samples[0].weight_ns, 0);
	fake.sampler->own_cpu.awaited = 1;
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	record_queue();
	assert_int_equal(set->samples[0].looks, 1);
}

static void a_thread_that_ran_meanwhile_has_moved(void **state)
{
	struct wp_wait_place place;

	(void)state;
	start();
	place = place_in(SYS_nanosleep, 0);
	place.before.slices = 0;
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_MOVED);
	fake_target_stat(&fake, TID, 'R');
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_MOVED);
	assert_int_equal(fake.target->wait_queue.n, 0);
	assert_int_equal(t->time.accounted_ns, fake_now_ns - TICK);
}

/* A stop that came when it was wanted no more is wallprof's; others are the target's. */
static void a_late_stop_is_not_the_targets(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&stack);
	struct wp_task_record record = { .state_char = 'S' };
	struct wp_wait_place place;

	(void)state;
	start();
	place = place_in(-1, 0);
	fake_target_stat(&fake, TID, 't');
	fake_stop.late_tid = TID;
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_MOVED);
	assert_int_equal(fake.target->wait_queue.n, 0);
	fake_stop.late_tid = 0;
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_DONE);
	assert_int_equal(recorded()->state, WP_STATE_STOPPED);
	/* A record does not tell whose it is. */
	memcpy(record.regs, regs.v, sizeof(record.regs));
	assert_true(wp_wait_sample_place(t, &record, &place));
	record.state_char = 't';
	assert_false(wp_wait_sample_place(t, &record, &place));
}

static void a_thread_without_a_state_cannot_be_read(void **state)
{
	struct wp_wait_place place;

	(void)state;
	start();
	place = place_in(SYS_nanosleep, 0);
	fake_target_write(&fake, TID, "stat", "nonsense");
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_FAILED);
	fake_target_end_thread(&fake, TID);
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_GONE);
}

static void a_zombie_has_no_stack(void **state)
{
	struct wp_wait_place place;

	(void)state;
	start();
	place = place_in(-1, 0);
	fake_target_stat(&fake, TID, 'Z');
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_DONE);
	assert_int_equal(recorded()->state, WP_STATE_EXITING);
	assert_int_equal(fake.profile.counters.no_stack, 1);
	/* And needs none. */
	assert_int_equal(wp_record_unchanged(t, 1, t->target->loop->tick_ns,
					     t->target->loop->region_end_ns),
			 0);
	wp_profile_add_up(&fake.profile);
	assert_int_equal(fake.profile.sums[WP_PROFILE_WALL].measures[0].all,
			 fake.profile.sums[WP_PROFILE_WALL]
				 .measures[0]
				 .ends[WP_END_ROOT]);
}

static void memory_that_cannot_be_read_leaves_one_frame(void **state)
{
	struct wp_wait_place place;

	(void)state;
	start();
	place = place_in(SYS_nanosleep, 0);
	place.call.sp_avma = 4096;
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.stacks[recorded()->stack].depth, 1);
	/* By a record it is not believed without memory. */
	for (unsigned int n = 0; n < WP_NREGS; n++)
		wp_reg_set(&place.regs, n, place.regs.v[n]);
	place.state_char = 'S';
	assert_int_equal(wp_wait_sample(t, &place), WP_SAMPLE_MOVED);
}

static void a_stack_that_lacks_a_register_wants_a_stop(void **state)
{
	(void)state;
	fake_stack_init(&stack, fake_stack_needs_fp);
	start();
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_WANTS_STOP);
	assert_true(fake.sampler->scan.wants_regs);
	assert_true(t->stop.for_registers);
	assert_int_equal(t->stop.sp_avma, fake_stack_regs(&stack).v[WP_REG_SP]);
	assert_int_equal(wp_time_ledger_pay_wait(&t->time), TICK);
	assert_false(t->wait.waiting);
}

static void a_known_wait_site_makes_the_stop_needless(void **state)
{
	struct wp_regs regs;
	struct wp_stack_walk walk;

	(void)state;
	fake_stack_init(&stack, fake_stack_needs_fp);
	start();
	t->sites = calloc(1, sizeof(*t->sites));
	assert_non_null(t->sites);
	regs = fake_stack_regs(&stack);
	wp_stack_copy_take(&fake.sampler->copy, &fake.target->space,
			   regs.v[WP_REG_SP], 4096);
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	assert_true(walk.stack.depth >= 3);
	assert_int_equal(wp_site_cache_add(t->sites, regs.v[WP_REG_SP],
					   fake.target->space.view.generation,
					   &walk.stack),
			 0);
#if defined(__x86_64__)
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.counters.cached_site, 1);
	assert_int_equal(fake.profile.stacks[recorded()->stack].depth,
			 walk.stack.depth);
#else
	/* Where return addresses are is not known there: no site is believed. */
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_WANTS_STOP);
	assert_int_equal(fake.profile.counters.cached_site, 0);
#endif
}

static void a_filter_forbids_a_stop_in_most_calls(void **state)
{
	(void)state;
	fake_stack_init(&stack, fake_stack_needs_fp);
	fake_stop.has_filter = true;
	start();
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	assert_int_equal(sample(SYS_wait4, 0), WP_SAMPLE_DONE);
	assert_int_equal(fake.profile.counters.partial, 2);
	assert_int_equal(sample(SYS_rt_sigsuspend, 0), WP_SAMPLE_WANTS_STOP);
	/* The stack is there as far as it is known, and says why it ends. */
	assert_int_equal(fake.profile.stacks[0].end, WP_END_UNKNOWN_REG);
}

static void what_is_behind_the_descriptor_decides_on_a_stop(void **state)
{
	int pipe_fds[2], pair[2];

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fake_stack_init(&stack, fake_stack_needs_fp);
	start();
	assert_int_equal(sample(SYS_read, (uint64_t)pair[0]), WP_SAMPLE_DONE);
	assert_int_equal(sample(SYS_read, (uint64_t)pipe_fds[0]),
			 WP_SAMPLE_WANTS_STOP);
	for (int i = 0; i < 2; i++) {
		close(pipe_fds[i]);
		close(pair[i]);
	}
}

static void what_the_next_scan_has_is_asked_for_again(void **state)
{
	(void)state;
	options.stop = WP_STOP_NEVER;
	fake_stack_init(&stack, fake_stack_needs_fp);
	start();
	fake.sampler->options.scan = WP_SCAN_BPF;
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	assert_false(t->wait.waiting);
	fake.sampler->options.scan = WP_SCAN_PROC;
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	assert_true(t->wait.waiting);
}

/* A second stop would make the thread run. */
static void who_is_stopped_waits_for_the_next_scan(void **state)
{
	struct wp_wait_place place;

	(void)state;
	fake_stack_init(&stack, fake_stack_needs_fp);
	start();
	place = place_in(-1, 0);
	fake_target_stat(&fake, TID, 'T');
	fake.sampler->options.scan = WP_SCAN_BPF;
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_DONE);
	assert_false(t->wait.waiting);
	/* There is no next scan. */
	fake.sampler->options.scan = WP_SCAN_PROC;
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_WANTS_STOP);
	wp_stop_requests_take(&fake.target->stop_requests, 0);
	fake.sampler->options.scan = WP_SCAN_BPF;
	fake.sampler->finishing = true;
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_WANTS_STOP);
}

static void a_record_tells_the_place(void **state)
{
	struct wp_task_record record = { .run_ns = 4,
					 .wait_ns = 5,
					 .slices = 6,
					 .state_char = 'D',
					 .nr = SYS_pread64 };
	struct wp_wait_place place;

	(void)state;
	start();
	for (unsigned int n = 0; n < WP_NREGS; n++)
		record.regs[n] = 100 + n;
	assert_true(wp_wait_sample_place(t, &record, &place));
	assert_int_equal(place.before.slices, 6);
	assert_int_equal(place.state_char, 'D');
	assert_int_equal(place.call.nr, SYS_pread64);
	assert_int_equal(place.call.pc_avma, 100 + WP_REG_PC);
	assert_int_equal(place.call.sp_avma, 100 + WP_REG_SP);
	assert_int_equal(place.call.args[3], 100 + wp_syscall_arg_regs[3]);
	assert_true(wp_reg_known(&place.regs, WP_REG_FP));
	/* Not in a call: its registers are no arguments. */
	record.nr = -1;
	assert_true(wp_wait_sample_place(t, &record, &place));
	assert_int_equal(place.call.nr, -1);
	assert_int_equal(place.call.args[3], 0);
	/* Code of another width than the program's. */
	fake.target->space.is_32bit = true;
	assert_false(wp_wait_sample_place(t, &record, &place));
	record.is_32bit = true;
	record.nr = 3;
	record.regs[WP_REG_SP] |= UINT64_C(1) << 40;
	assert_true(wp_wait_sample_place(t, &record, &place));
	assert_int_equal(place.call.nr, 3);
#if defined(__x86_64__)
	/* ebx, ecx, edx, esi, edi, ebp. */
	assert_int_equal(place.call.args[0], 103);
	assert_int_equal(place.call.args[3], 104);
	assert_int_equal(place.call.args[5], 106);
	assert_int_equal(place.regs.v[WP_REG_ESI], 104);
	assert_int_equal(place.call.sp_avma, 100 + WP_REG_SP);
#endif
	fake.target->space.is_32bit = false;
	assert_false(wp_wait_sample_place(t, &record, &place));
	record.is_32bit = false;
	record.state_char = 0;
	assert_false(wp_wait_sample_place(t, &record, &place));
}

/* The sample of T at PLACE: its innermost function alone. */
static void assert_without_memory(enum wp_sample_result result,
				  const struct wp_wait_place *place,
				  enum wp_wait wait)
{
	const struct wp_profile_stack *s;

	assert_int_equal(result, WP_SAMPLE_DONE);
	s = &fake.profile.stacks[recorded()->stack];
	assert_int_equal(recorded()->wait, wait);
	assert_int_equal(s->end, WP_END_MAP_LOCKED);
	assert_int_equal(s->depth, 1);
	assert_int_equal(wp_profile_frame(&fake.profile, s, 0)->pc_avma,
			 place->call.pc_avma);
	assert_int_equal(fake.profile.counters.partial, 1);
}

/* Who reads its stack would wait for the lock until the thread is gone. */
static void who_waits_for_the_memory_map_is_read_without_it(void **state)
{
	struct wp_wait_place place;

	(void)state;
	start();
	place = place_in(SYS_munmap, 4096);
	fake_target_schedstat(&fake, TID, 2000, 0, 2);
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_MOVED);
	fake_target_schedstat(&fake, TID, 1000, 0, 1);
	assert_without_memory(wp_wait_sample_proc(t, &place), &place,
			      WP_WAIT_MMAP_LOCK);
}

/* A record is of one moment. */
static void what_a_record_says_of_that_holds_when_it_has_moved(void **state)
{
	const struct wp_regs regs = fake_stack_regs(&stack);
	struct wp_task_record record = {
		.run_ns = 1000, .slices = 1, .state_char = 'D', .nr = SYS_munmap
	};
	struct wp_wait_place place;

	(void)state;
	start();
	(void)place_in(SYS_munmap, 4096);
	fake_target_schedstat(&fake, TID, 2000, 0, 2);
	memcpy(record.regs, regs.v, sizeof(record.regs));
	record.time_ns = fake_now_ns;
	assert_true(wp_wait_sample_place(t, &record, &place));
	assert_without_memory(wp_wait_sample(t, &place), &place,
			      WP_WAIT_MMAP_LOCK);
}

static void so_is_who_waits_for_it_in_a_page_fault(void **state)
{
	struct wp_wait_place place;

	(void)state;
	start();
	place = place_in(-1, 0);
	fake_target_write(&fake, TID, "wchan", "lock_mm_and_find_vma");
	assert_without_memory(wp_wait_sample_proc(t, &place), &place,
			      WP_WAIT_MMAP_LOCK);
}

static void who_waits_for_a_page_has_its_whole_stack(void **state)
{
	struct wp_wait_place place;

	(void)state;
	start();
	place = place_in(-1, 0);
	fake_target_write(&fake, TID, "wchan", "folio_wait_bit_common");
	assert_int_equal(wp_wait_sample_proc(t, &place), WP_SAMPLE_DONE);
	assert_int_equal(recorded()->wait, WP_WAIT_PAGE_FAULT);
	assert_int_equal(fake.profile.stacks[recorded()->stack].depth, 3);
}

static void a_descriptor_is_named(void **state)
{
	int fds[2];
	char want[64];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	start();
	assert_int_equal(sample(SYS_read, (uint64_t)fds[0]), WP_SAMPLE_DONE);
	snprintf(want, sizeof(want), "fd %d pipe:[", fds[0]);
	assert_memory_equal(object(), want, strlen(want));
	assert_int_equal(recorded()->wait, WP_WAIT_PIPE);
	close(fds[0]);
	close(fds[1]);
}

static void a_futex_is_named_by_its_address(void **state)
{
	(void)state;
	start();
	assert_int_equal(sample(SYS_futex, 0x1234), WP_SAMPLE_DONE);
	assert_string_equal(object(), "0x1234");
	assert_int_equal(recorded()->wait, WP_WAIT_FUTEX);
}

static void objects_are_bounded(void **state)
{
	struct wp_sample_key key = { .wait = WP_WAIT_FUTEX };
	struct wp_thread_facts facts = { .syscall_nr = SYS_futex };

	(void)state;
	start();
	for (facts.args[0] = 1; facts.args[0] <= 20000; facts.args[0]++) {
		assert_int_equal(
			wp_wait_object_describe(fake.target, 0, &key, &facts),
			0);
		assert_true(key.object > 0);
	}
	assert_int_equal(wp_wait_object_describe(fake.target, 0, &key, &facts),
			 0);
	assert_int_equal(key.object, 0);
}

static void the_kernels_frames_come_first(void **state)
{
	const struct wp_profile *p = &fake.profile;
	const struct wp_profile_stack *s;

	(void)state;
	options.kernel = true;
	fake_target_write(&fake, TID, "stack",
			  "[<0>] hrtimer_nanosleep+0x60/0x90 [mod]\n"
			  "nonsense\n[<0>] \n[<0>] __x64_sys_nanosleep");
	start();
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	s = &p->stacks[recorded()->stack];
	assert_int_equal(s->depth, 5);
	assert_int_equal(wp_profile_frame(p, s, 0)->mapping, WP_MAPPING_KERNEL);
	assert_string_equal(
		wp_profile_str(p, (uint32_t)wp_profile_frame(p, s, 0)->pc_avma),
		"hrtimer_nanosleep");
	assert_string_equal(
		wp_profile_str(p, (uint32_t)wp_profile_frame(p, s, 1)->pc_avma),
		"__x64_sys_nanosleep");
	assert_int_equal(wp_profile_frame(p, s, 2)->pc_avma,
			 fake_stack_regs(&stack).v[WP_REG_PC]);
}

static void a_chain_of_kernel_addresses_comes_first_too(void **state)
{
	static const uint64_t chain[70] = { 0x1000, 0x2001 };
	struct wp_perf_record record = { .kernel_chain = chain,
					 .kernel_len = 2 };
	struct wp_stack_walk walk;
	struct wp_regs regs;
	const char *name;

	(void)state;
	start();
	regs = fake_stack_regs(&stack);
	wp_stack_copy_take(&fake.sampler->copy, &fake.target->space,
			   regs.v[WP_REG_SP], 4096);
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	wp_kernel_frames_add_chain(fake.target, &record, &walk.stack);
	assert_int_equal(walk.stack.depth, 5);
	name = wp_profile_str(&fake.profile,
			      (uint32_t)walk.stack.frames[1].pc_avma);
	/* No function of the kernel is there, and it is a return address. */
	assert_string_equal(name, "0x2000");
	assert_int_equal(walk.stack.frames[1].flags, WP_FRAME_NAMED);
	assert_int_equal(walk.stack.cfa_avma[0], 0);
	/* No more than there is room for. */
	record.kernel_len = 70;
	walk = wp_stack_walk(fake.target, &regs, WP_UNWIND_THOROUGH);
	wp_kernel_frames_add_chain(fake.target, &record, &walk.stack);
	assert_int_equal(walk.stack.depth, WP_KERNEL_FRAMES_MAX + 3);
}

static void a_full_queue_is_no_memory(void **state)
{
	const struct wp_thread_facts facts = { .state_char = 'S' };

	(void)state;
	start();
	while (fake.target->wait_queue.n < fake.target->wait_queue.cap)
		assert_int_equal(wp_wait_queue_add(t, &facts, 0, 1), 0);
	assert_int_equal(wp_wait_queue_add(t, &facts, 0, 1), -ENOMEM);
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_NO_MEMORY);
	fake.target->wait_queue.n = 0;
	assert_int_equal(wp_wait_queue_add(t, &facts, UINT32_MAX, 1), -ENOMEM);
}

/* The waiter's look, after a sample while its wait began at MS milliseconds. */
static const struct wp_thread_look *look(const char *ms)
{
	char text[64];

	snprintf(text, sizeof(text), "se.exec_start   :   %s\n", ms);
	fake_target_write(&fake, TID, "sched", text);
	assert_int_equal(sample(SYS_nanosleep, 0), WP_SAMPLE_DONE);
	return &t->look;
}

static void a_look_has_when_the_wait_began(void **state)
{
	(void)state;
	options.call_memory = true;
	start();
	assert_int_equal(look("5.000007")->exec_start_ns, 5000007);
	assert_int_equal(t->look.times.slices, 1);
	assert_int_equal(t->look.cpu, 0);
	/* It has not run: the file is not read again. */
	assert_int_equal(look("6.000000")->exec_start_ns, 5000007);
	/* At a put off sample it had not run either. */
	t->look.times.slices = 0;
	wp_wait_sample_look(t, &(struct wp_schedstat){ 1000, 0, 1 });
	assert_int_equal(t->look.exec_start_ns, 6000000);
	assert_int_equal(look("7.000000")->exec_start_ns, 6000000);
}

static void a_look_is_not_made_where_nobody_asks(void **state)
{
	(void)state;
	start();
	assert_int_equal(look("5.000007")->exec_start_ns, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wait_has_its_call_stack_and_time),
		TEST(a_worker_of_the_kernel_waits_in_no_call),
		TEST(a_wait_that_the_look_waited_for_divides_no_time),
		TEST(a_thread_that_ran_meanwhile_has_moved),
		TEST(a_late_stop_is_not_the_targets),
		TEST(a_thread_without_a_state_cannot_be_read),
		TEST(a_zombie_has_no_stack),
		TEST(memory_that_cannot_be_read_leaves_one_frame),
		TEST(a_stack_that_lacks_a_register_wants_a_stop),
		TEST(a_known_wait_site_makes_the_stop_needless),
		TEST(a_filter_forbids_a_stop_in_most_calls),
		TEST(what_is_behind_the_descriptor_decides_on_a_stop),
		TEST(what_the_next_scan_has_is_asked_for_again),
		TEST(who_is_stopped_waits_for_the_next_scan),
		TEST(a_record_tells_the_place),
		TEST(who_waits_for_the_memory_map_is_read_without_it),
		TEST(what_a_record_says_of_that_holds_when_it_has_moved),
		TEST(so_is_who_waits_for_it_in_a_page_fault),
		TEST(who_waits_for_a_page_has_its_whole_stack),
		TEST(a_descriptor_is_named),
		TEST(a_futex_is_named_by_its_address),
		TEST(objects_are_bounded),
		TEST(the_kernels_frames_come_first),
		TEST(a_chain_of_kernel_addresses_comes_first_too),
		TEST(a_full_queue_is_no_memory),
		TEST(a_look_has_when_the_wait_began),
		TEST(a_look_is_not_made_where_nobody_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
