/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  wp_sampler_renumber of sampler.h: what a sampler keeps of a profile
 * stays, and is found under its new index. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../src/sample/block_records.h"
#include "fake_perf.h"
#include "one_target.h"

enum { TID = 7, OTHER = 8 };

static int fds[2];
static char object[32];

/* An entry of each kind that nothing refers to: those behind it are renumbered. */
static void add_unused(void)
{
	const struct wp_profile_process process = { .pid = 1 };
	const struct wp_profile_thread thread = {
		.tid = 1, .process = fake.profile.nprocesses
	};
	struct wp_frame frame = { .pc_avma = fake.profile.nstacks + 1 };
	const struct wp_stack unused = { .frames = &frame, .depth = 1 };
	char text[24];

	snprintf(text, sizeof(text), "unused %u", fake.profile.strings.len);
	assert_int_not_equal(wp_intern_add_str(&fake.profile.strings, text),
			     UINT32_MAX);
	assert_int_not_equal(wp_profile_add_process(&fake.profile, &process),
			     UINT32_MAX);
	assert_int_not_equal(wp_profile_add_thread(&fake.profile, &thread),
			     UINT32_MAX);
	assert_int_not_equal(wp_profile_add_stack(&fake.profile, &unused, 0),
			     UINT32_MAX);
}

/* A stack that says N. */
static uint32_t stack_of(uint64_t n)
{
	struct wp_frame frame = { .pc_avma = n };
	const struct wp_stack one = { .frames = &frame, .depth = 1 };

	return wp_profile_add_stack(&fake.profile, &one, 0);
}

static uint32_t string(const char *text)
{
	return wp_intern_add_str(&fake.profile.strings, text);
}

static void assert_stack(uint32_t index, uint64_t n)
{
	assert_true(index < fake.profile.nstacks);
	assert_int_equal(
		wp_profile_frame(&fake.profile, &fake.profile.stacks[index], 0)
			->pc_avma,
		n);
}

static void assert_string(uint32_t id, const char *text)
{
	assert_true(id < fake.profile.strings.len);
	assert_string_equal(wp_profile_str(&fake.profile, id), text);
}

static int setup(void **state)
{
	struct wp_regs regs;

	(void)state;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "waiter");
	fake_target_add_thread(&fake, OTHER, "other");
	fake_stack_init(&stack, fake_stack_root);
	regs = fake_stack_regs(&stack);
	assert_int_equal(pipe(fds), 0);
	snprintf(object, sizeof(object), "fd %d pipe:[", fds[0]);
	fake_target_waits(&fake, TID, SYS_read, (uint64_t)fds[0], &regs);
	fake_target_waits(&fake, OTHER, SYS_nanosleep, 0, &regs);
	options = fake_target_options();
	return 0;
}

static int end(void **state)
{
	close(fds[0]);
	close(fds[1]);
	return teardown(state);
}

/* Begin, and look at the threads twice. */
static struct wp_thread *start(void)
{
	const struct wp_profile_process process = { .pid = 1 };

	assert_int_not_equal(wp_profile_add_process(&fake.profile, &process),
			     UINT32_MAX);
	start_target();
	add_unused();
	tick();
	tick();
	return wp_threads_find(fake.target, TID);
}

/* KEEPS_SAMPLES: all samples stay, not only those that the sampler refers to. */
static void renumber_and(bool keeps_samples)
{
	uint32_t nobjects = fake.target->common->nobjects;
	struct wp_renumber r;

	assert_int_equal(wp_renumber_begin(&r, &fake.profile), 0);
	for (int kind = 0; keeps_samples && kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < fake.profile.sets[kind].nsamples; i++)
			wp_renumber_ref(&r, WP_REF_SAMPLE + kind, &i);
	assert_int_equal(wp_sampler_renumber(fake.sampler, &fake.profile, &r),
			 0);
	/* Nothing has gone yet. */
	assert_int_equal(fake.target->common->nobjects, nobjects);
	assert_int_equal(wp_renumber_apply(&r, &fake.profile), 0);
	assert_int_equal(wp_sampler_renumber(fake.sampler, &fake.profile, &r),
			 0);
	wp_renumber_clear(&r);
}

static void renumber(void)
{
	renumber_and(false);
}

static void a_wait_that_holds_goes_on_in_its_sample(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_WALL];
	struct wp_thread *t = start();
	const struct wp_profile_sample *sample;

	(void)state;
	assert_int_equal(set->nsamples, 2);
	renumber();
	tick();
	assert_int_equal(set->nsamples, 2);
	sample = &set->samples[t->wait.sample];
	assert_int_equal(t->wait.look_sample, t->wait.sample);
	assert_int_equal(sample->key.thread, t->index);
	assert_int_equal(sample->wall_ns, 3 * TICK);
	assert_int_equal(fake.profile.threads[t->index].tid, TID);
	assert_memory_equal(wp_profile_str(&fake.profile, sample->key.object),
			    object, strlen(object));
	assert_string(sample->key.syscall, "read");
	assert_int_equal(fake.profile.stacks[sample->key.stack].depth, 3);
	assert_int_equal(fake_target_wall_ns(&fake, OTHER, WP_STATE_WAITING),
			 3 * TICK);
}

static void nothing_else_stays(void **state)
{
	uint32_t nstrings, nstacks, nthreads, nprocesses;

	(void)state;
	start();
	renumber();
	nstrings = fake.profile.strings.len;
	nstacks = fake.profile.nstacks;
	nthreads = fake.profile.nthreads;
	nprocesses = fake.profile.nprocesses;
	assert_int_equal(nthreads, 2);
	assert_int_equal(nprocesses, 1);
	for (int i = 0; i < 3; i++)
		add_unused();
	renumber();
	assert_int_equal(fake.profile.strings.len, nstrings);
	assert_int_equal(fake.profile.nstacks, nstacks);
	assert_int_equal(fake.profile.nthreads, nthreads);
	assert_int_equal(fake.profile.nprocesses, nprocesses);
}

/* What it has of its wait at first is no entry's index. */
static void who_never_waited_keeps_nothing_of_the_first_thread(void **state)
{
	const pid_t tids[] = { TID, OTHER };

	(void)state;
	add_unused();
	assert_int_equal(fake.profile.threads[0].tid, 1);
	start();
	for (int i = 0; i < 2; i++)
		wp_wait_state_init(
			&wp_threads_find(fake.target, tids[i])->wait);
	renumber();
	assert_int_equal(fake.profile.nthreads, 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_not_equal(fake.profile.threads[i].tid, 1);
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		assert_int_equal(fake.profile.sets[kind].nsamples, 0);
	assert_int_equal(fake.profile.nframes, 0);
}

static void the_process_is_found_again(void **state)
{
	(void)state;
	start();
	renumber();
	assert_int_equal(fake.target->index, 0);
	assert_int_equal(fake.target->space.index, 0);
	assert_int_equal(fake.profile.processes[0].pid, getpid());
}

/* A sample's key has room for few: they keep the first ids. */
static void all_names_of_calls_stay_in_front(void **state)
{
	uint32_t last;

	(void)state;
	start();
	last = fake.target->common->ncalls - 1;
	assert_true(last > 300);
	renumber();
	assert_string(1, wp_syscall_find(0)->name);
	for (uint32_t id = 1; id <= last; id++)
		assert_int_equal(
			wp_intern_add_str(&fake.profile.strings,
					  wp_profile_str(&fake.profile, id)),
			id);
	assert_true(string("nanosleep") <= last);
	assert_true(string("futex") <= last);
}

static void the_last_running_stack_is_found_again(void **state)
{
	struct wp_thread *t = start();

	(void)state;
	add_unused();
	t->last_running_stack = stack_of(4711);
	wp_threads_find(fake.target, OTHER)->last_running_stack = UINT32_MAX;
	renumber();
	assert_stack(t->last_running_stack, 4711);
	assert_int_equal(
		wp_threads_find(fake.target, OTHER)->last_running_stack,
		UINT32_MAX);
}

static void a_partial_stack_stays_while_its_stop_may_come(void **state)
{
	struct wp_thread *t = start(), *other;

	(void)state;
	other = wp_threads_find(fake.target, OTHER);
	add_unused();
	t->stop.partial_stack = stack_of(4711);
	t->stop.listed = true;
	other->stop.partial_stack = stack_of(4712);
	other->stop.pending = true;
	renumber();
	assert_stack(t->stop.partial_stack, 4711);
	assert_stack(other->stop.partial_stack, 4712);
	t->stop.listed = other->stop.pending = false;
	renumber();
	/* They were kept by nothing else. */
	for (uint32_t i = 0; i < fake.profile.nframes; i++)
		assert_false(fake.profile.frames[i].pc_avma == 4711 ||
			     fake.profile.frames[i].pc_avma == 4712);
}

static void what_a_switch_told_is_found_again(void **state)
{
	struct wp_thread *t = start();
	struct wp_thread_waits *waits = &t->waits;

	(void)state;
	add_unused();
	waits->waker = string("main (4711)");
	waits->every = 1;
	waits->key = (struct wp_sample_key){ .stack = stack_of(1),
					     .thread = t->index };
	waits->wake_ns = 1;
	waits->wake = (struct wp_sample_key){ .stack = stack_of(2),
					      .thread = t->index,
					      .object = t->index };
	renumber();
	assert_string(waits->waker, "main (4711)");
	assert_stack(waits->key.stack, 1);
	assert_int_equal(waits->key.thread, t->index);
	assert_stack(waits->wake.stack, 2);
	assert_int_equal(waits->wake.thread, t->index);
	assert_int_equal(waits->wake.object, t->index);
	waits->every = 0;
	waits->wake_ns = 0;
	renumber();
	for (uint32_t i = 0; i < fake.profile.nframes; i++)
		assert_true(fake.profile.frames[i].pc_avma > 2);
}

static void a_thread_that_ended_is_found_again(void **state)
{
	struct wp_thread *t = start();

	(void)state;
	add_unused();
	t->last_running_stack = stack_of(4711);
	assert_int_equal(wp_threads_end(fake.target, 0), 0);
	assert_ptr_equal(fake.target->ended[0], t);
	renumber();
	assert_stack(t->last_running_stack, 4711);
	assert_int_equal(fake.profile.threads[t->index].tid, TID);
}

static void a_wait_that_is_queued_is_found_again(void **state)
{
	const struct wp_thread_facts facts = { .state_char = 'S',
					       .syscall_nr = SYS_nanosleep };
	struct wp_thread *t = start();

	(void)state;
	add_unused();
	assert_int_equal(wp_wait_queue_add(t, &facts, stack_of(4711), 0), 0);
	renumber();
	assert_stack(fake.target->wait_queue.v[0].key.stack, 4711);
	assert_int_equal(fake.target->wait_queue.v[0].key.thread, t->index);
	fake.target->wait_queue.n = 0;
}

static void waits_of_a_window_are_found_again(void **state)
{
	struct wp_block_wait wait = { .delay_ns = 1, .span_ns = 1 };
	struct wp_block_waits *waits;
	struct wp_thread *t;

	(void)state;
	options.block = true;
	options.block_rate.every = 1;
	t = start();
	waits = fake.target->common->block_waits;
	assert_non_null(waits);
	add_unused();
	wait.key = (struct wp_sample_key){ .stack = stack_of(4711),
					   .thread = t->index,
					   .object = string("main (4711)") };
	wp_block_records_keep(waits, &wait);
	wait.key.object = t->index;
	wait.is_wake = true;
	wp_block_records_keep(waits, &wait);
	assert_int_equal(waits->nwaits, 2);
	waits->wakers.names[5].tid = 1;
	waits->wakers.names[5].name = string("curl");
	renumber();
	assert_stack(waits->waits[0].key.stack, 4711);
	assert_string(waits->waits[0].key.object, "main (4711)");
	assert_int_equal(waits->waits[1].key.object, t->index);
	assert_int_equal(waits->wakers.names[5].tid, 0);
	waits->nwaits = 0;
}

/* Three samples of KIND, of which one has OBJECT and the others NONE. */
static void add_samples(enum wp_profile_kind kind, uint32_t object_of_one,
			uint32_t none)
{
	for (uint32_t i = 0; i < 3; i++) {
		const struct wp_sample_key key = {
			.thread = fake.target->threads[0]->index,
			.stack = i,
			.object = i == 1 ? object_of_one : none
		};

		assert_int_equal(
			wp_profile_add_sample(&fake.profile, kind, &key, 1, 1),
			0);
	}
}

/* Objects that have gone make room for others; what was never counted makes none. */
static void objects_that_stay_are_counted_again(void **state)
{
	uint32_t *n;

	(void)state;
	start();
	n = &fake.target->common->nobjects;
	*n = fake.target->common->nnames = 20000;
	renumber();
	/* The pipe; a nanosleep has none. */
	assert_int_equal(*n, 1);
	/* Names that have gone make room as well. */
	assert_int_equal(fake.target->common->nnames, 0);
	*n = 0;
	renumber();
	assert_int_equal(*n, 0);
	*n = 20000;
	add_samples(WP_PROFILE_WALL, string("0x10"), 0);
	/* Who was woken is no text. */
	add_samples(WP_PROFILE_WAKE, fake.target->threads[0]->index, 0);
	/* With the number of a class, which is no object. */
	add_samples(WP_PROFILE_BLOCK, string("main (1)") << 8 | 1, 1);
	renumber_and(true);
	assert_int_equal(*n, 3);
}

/* The profile's mapping of what is at P, with its file opened. */
static uint32_t open_code(const struct wp_process *self,
			  const struct wp_maps *maps, const void *p)
{
	struct wp_modules *modules = &fake.target->common->modules;
	const struct wp_module_place place = {
		self, fake.target->index, maps, wp_maps_find(maps, (uintptr_t)p)
	};
	uint32_t id;

	assert_non_null(place.map);
	assert_int_equal(wp_modules_add(modules, &place, &id), 0);
	wp_modules_open(modules, id, &place);
	assert_non_null(modules->v[id].image);
	return id;
}

/* As long as a stack that stays has a frame in it, with what names the frame. */
static void a_file_that_no_mapping_is_of_is_closed(void **state)
{
	struct wp_process self = WP_PROCESS_INIT;
	struct wp_text text = { 0 };
	struct wp_maps maps = WP_MAPS_INIT;
	struct wp_frame frame = { .pc_avma = 1 };
	const struct wp_stack one = { .frames = &frame, .depth = 1 };
	const struct wp_unwinder *unwinder;
	struct wp_thread *t;
	int fd = open("/bin/sh", O_RDONLY | O_CLOEXEC);
	void *p;

	(void)state;
	assert_int_equal(wp_process_open(&self, getpid(), NULL), 0);
	t = start();
	/* The target, which is this process, is not seen to have mapped it. */
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED);
	close(fd);
	assert_int_equal(wp_process_read_maps(&self, &text, &maps), 0);
	frame.mapping = open_code(&self, &maps, p);
	fd = fake.profile.mappings[frame.mapping].image->fd;
	t->last_running_stack = wp_profile_add_stack(&fake.profile, &one, 0);
	assert_int_equal(wp_sampler_count_idle_files(fake.sampler), 1);
	unwinder = fake.sampler->unwinder;
	renumber();
	assert_true(fcntl(fd, F_GETFD) >= 0);
	assert_ptr_equal(fake.sampler->unwinder, unwinder);
	t->last_running_stack = UINT32_MAX;
	renumber();
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	/* It knows the file by its address, where another may be now. */
	assert_ptr_not_equal(fake.sampler->unwinder, unwinder);
	assert_int_equal(wp_sampler_count_idle_files(fake.sampler), 0);
	munmap(p, 4096);
	wp_maps_clear(&maps);
	wp_text_clear(&text);
	wp_process_clear(&self);
}

/* Each target has a profile of its own: those of others are left alone. */
static void targets_of_another_profile_are_left_alone(void **state)
{
	struct wp_err err = WP_ERR_INIT;
	struct fake_target second;
	struct wp_thread *t;
	uint32_t index, before;

	(void)state;
	fake_target_open(&second);
	fake_target_add_thread(&second, 9, "second");
	start();
	assert_int_equal(wp_sampler_add_target(fake.sampler, &second.process,
					       &second.profile, &second.target,
					       &err),
			 0);
	t = wp_threads_find_or_add(second.target, 9);
	assert_non_null(t);
	/* An index that is one of an unused thread in the first profile. */
	before = t->index = 0;
	index = second.target->index;
	renumber();
	assert_int_equal(t->index, before);
	assert_int_equal(second.target->index, index);
	fake_target_close(&second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wait_that_holds_goes_on_in_its_sample),
		TEST(nothing_else_stays),
		TEST(who_never_waited_keeps_nothing_of_the_first_thread),
		TEST(the_process_is_found_again),
		TEST(all_names_of_calls_stay_in_front),
		TEST(the_last_running_stack_is_found_again),
		TEST(a_partial_stack_stays_while_its_stop_may_come),
		TEST(what_a_switch_told_is_found_again),
		TEST(a_thread_that_ended_is_found_again),
		TEST(a_wait_that_is_queued_is_found_again),
		TEST(waits_of_a_window_are_found_again),
		TEST(objects_that_stay_are_counted_again),
		TEST(a_file_that_no_mapping_is_of_is_closed),
		TEST(targets_of_another_profile_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
