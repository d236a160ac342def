/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: profile.  What goes, what stays, and that it is still the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "wallprof/block_weight.h"
#include "wallprof/budget.h"
#include "wallprof/history.h"
#include "wallprof/profile_processes.h"
#include "profile_maker.h"

enum { S = 1000000000, TEXT = 65536 };

static struct wp_profile profile;
static struct wp_history history;

/* Everything that can be said of the wall samples with time, in words. */
static void describe(const struct wp_profile *p, char *text)
{
	const struct wp_sample_set *set = &p->sets[WP_PROFILE_WALL];
	size_t len = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		const struct wp_profile_stack *stack = &p->stacks[s->key.stack];

		if (!s->wall_ns)
			continue;
		len += (size_t)snprintf(
			text + len, TEXT - len, "%s %s %s %d %llu:",
			wp_profile_str(p, p->threads[s->key.thread].name),
			wp_profile_str(p, s->key.object),
			wp_profile_str(p, s->key.syscall), s->key.state,
			(unsigned long long)s->wall_ns);
		for (uint32_t k = 0; k < stack->depth; k++) {
			const struct wp_frame *f = wp_profile_frame(p, stack,
								    k);
			bool kernel = f->flags & WP_FRAME_NAMED;

			len += (size_t)snprintf(
				text + len, TEXT - len, " %s+%llx",
				kernel ? wp_profile_str(p,
							(uint32_t)f->pc_avma) :
					 wp_profile_str(
						 p,
						 p->mappings[f->mapping].path),
				kernel ? 0 : (unsigned long long)f->pc_avma);
		}
		len += (size_t)snprintf(
			text + len, TEXT - len, " end %s\n",
			wp_profile_str(p,
				       p->mappings[stack->end_mapping].path));
	}
	assert_true(len < TEXT - 1);
}

/* Second AT of a target all of whose seconds are different. */
static void make_second(uint64_t at)
{
	char name[32];
	uint32_t thread, map, stack;
	struct wp_frame frames[3];

	snprintf(name, sizeof(name), "thread-%llu", (unsigned long long)at);
	thread = mk_thread(&profile, (int32_t)at + 1, name);
	profile.threads[thread].first_ns = (at - 1) * S;
	profile.threads[thread].last_ns = at * S;
	profile.threads[thread].cpu_ns = at;
	snprintf(name, sizeof(name), "/lib/%llu.so", (unsigned long long)at);
	map = mk_mapping(&profile, at << 20, name, "");
	snprintf(name, sizeof(name), "kernel_%llu", (unsigned long long)at);
	frames[0] = (struct wp_frame){ mk_str(&profile, name),
				       WP_MAPPING_KERNEL, WP_FRAME_NAMED };
	frames[1] = (struct wp_frame){ (at << 20) + 7, map, 0 };
	frames[2] = (struct wp_frame){ at, WP_MAPPING_NONE, WP_FRAME_RETURN };
	stack = wp_profile_add_stack(
		&profile,
		&(struct wp_stack){
			.frames = frames, .depth = 3, .end = WP_END_NO_INFO },
		map);
	snprintf(name, sizeof(name), "fd %llu", (unsigned long long)at);
	mk_sample(&profile, thread, stack, WP_STATE_WAITING, WP_WAIT_SYSCALL,
		  name, 1, S);
	profile.counters.ticks++;
	assert_non_null(wp_history_add(&history, &profile, at * S));
}

static void begin(uint64_t keep_s)
{
	assert_int_equal(wp_profile_init(&profile), 0);
	mk_str(&profile, "membarrier");
	wp_timeline_start(&profile.timeline, 1 << 20);
	wp_history_init(&history, keep_s * S, 1 << 20, 0);
}

static void end(void)
{
	wp_history_clear(&history);
	wp_profile_clear(&profile);
}

static void forget(void)
{
	struct wp_renumber r;

	assert_int_equal(wp_history_forget_timeline(
				 &profile, wp_history_begin_ns(&history)),
			 0);
	assert_int_equal(wp_renumber_begin(&r, &profile), 0);
	wp_history_renumber(&history, &profile, &r);
	assert_int_equal(wp_renumber_apply(&r, &profile), 0);
	wp_history_renumber(&history, &profile, &r);
	wp_renumber_clear(&r);
}

/* What is said of the time from FROM to TO, in seconds, and of its timeline. */
static void view(uint64_t from, uint64_t to, char *text)
{
	uint64_t from_ns = from * S, to_ns = to * S;

	assert_int_equal(wp_history_view(&history, &profile, &from_ns, &to_ns),
			 0);
	describe(&profile, text);
	snprintf(text + strlen(text), TEXT - strlen(text), "intervals %u\n",
		 profile.timeline.n);
	for (uint32_t i = 0; i < profile.timeline.n; i++) {
		const struct wp_timeline_interval *one = &profile.timeline.v[i];

		snprintf(text + strlen(text), TEXT - strlen(text), "%s %llu\n",
			 wp_profile_str(&profile,
					profile.threads[one->thread].name),
			 (unsigned long long)one->ns);
	}
}

static void what_the_ring_holds_is_told_as_before(void **state)
{
	static char before[TEXT], after[TEXT];

	(void)state;
	for (int forgets = 0; forgets < 2; forgets++) {
		begin(10);
		for (uint64_t at = 1; at <= 40; at++) {
			make_second(at);
			if (forgets && at % 7 == 0)
				forget();
		}
		view(33, 38, forgets ? after : before);
		if (forgets)
			assert_true(profile.nthreads < 25 &&
				    profile.nstacks < 25 &&
				    profile.nmappings < 25 &&
				    profile.strings.len < 150);
		else
			assert_int_equal(profile.nthreads, 40);
		end();
	}
	assert_string_equal(before, after);
	assert_non_null(strstr(before,
			       "thread-35 fd 35 membarrier 2 "
			       "1000000000: kernel_35+0 "
			       "/lib/35.so+2300007 +23 end /lib/35.so"));
	assert_non_null(strstr(before, "intervals 5\n"));
}

static void what_comes_later_finds_what_was_kept(void **state)
{
	uint32_t stack, nstacks, thread = 0;

	(void)state;
	begin(10);
	for (uint64_t at = 1; at <= 40; at++)
		make_second(at);
	forget();
	nstacks = profile.nstacks;
	assert_true(nstacks < 15);
	for (uint32_t i = 0; i < profile.nstacks; i++) {
		struct wp_profile_stack *s = &profile.stacks[i];
		struct wp_frame frames[8];

		assert_in_range(s->depth, 0, 8);
		for (uint32_t k = 0; k < s->depth; k++)
			frames[k] = *wp_profile_frame(&profile, s, k);
		stack = wp_profile_add_stack(
			&profile,
			&(struct wp_stack){ .frames = frames,
					    .depth = s->depth,
					    .end = s->end },
			s->end_mapping);
		assert_int_equal(stack, i);
	}
	for (uint32_t i = 0; i < profile.sets[WP_PROFILE_WALL].nsamples; i++) {
		struct wp_sample_key key =
			profile.sets[WP_PROFILE_WALL].samples[i].key;
		uint32_t hint = UINT32_MAX;

		assert_int_equal(
			wp_profile_add_sample_hinted(&profile, WP_PROFILE_WALL,
						     &key, &hint, 0, 1),
			0);
		assert_int_equal(hint, i);
		thread = key.thread;
	}
	assert_int_equal(profile.nstacks, nstacks);
	assert_int_equal(thread, profile.nthreads - 1);
	end();
}

static void what_is_dropped_is_given_back(void **state)
{
	(void)state;
	wp_budget_set(1 << 20);
	begin(10);
	for (uint64_t at = 1; at <= 20000; at++) {
		make_second(at);
		if (at % 500 == 0)
			forget();
	}
	assert_int_equal(profile.counters.stacks_dropped, 0);
	assert_true(profile.nframes < 100);
	end();
	begin(10);
	for (uint64_t at = 1; at <= 20000; at++)
		make_second(at);
	assert_true(profile.counters.stacks_dropped > 1000);
	end();
	wp_budget_set(WP_BUDGET_DEFAULT);
}

/* Ten waits of a class, of which two stacks were sampled: one goes, and its half of
 * them with it. */
static void a_stack_takes_its_share_of_all_waits_along(void **state)
{
	const struct wp_stack none = { .end = WP_END_ROOT },
			      other = { .end = WP_END_EMPTY };
	struct wp_sample_key keys[3] = { 0 };
	struct wp_renumber r;
	uint32_t thread;

	(void)state;
	begin(10);
	thread = mk_thread(&profile, 1, "main");
	for (int i = 0; i < 3; i++)
		keys[i] = (struct wp_sample_key){
			.thread = thread,
			.stack = i == 0 ? WP_BLOCK_ALL :
					  wp_profile_add_stack(
						  &profile,
						  i == 1 ? &none : &other, 0),
			.state = WP_STATE_WAITING,
			.object = wp_block_weight_object(
				i ? mk_str(&profile, i == 1 ? "a" : "b") : 0,
				9),
		};
	for (int i = 0; i < 3; i++)
		assert_int_equal(wp_profile_add_sample(
					 &profile, WP_PROFILE_BLOCK, &keys[i],
					 i ? 2 : 10, i ? 200 : 1000),
				 0);
	assert_int_equal(wp_renumber_begin(&r, &profile), 0);
	for (uint32_t i = 0; i < 3; i += 2) {
		uint32_t index = i;

		wp_renumber_ref(&r, WP_REF_SAMPLE + WP_PROFILE_BLOCK, &index);
	}
	assert_int_equal(wp_renumber_apply(&r, &profile), 0);
	wp_renumber_clear(&r);
	assert_int_equal(profile.sets[WP_PROFILE_BLOCK].nsamples, 2);
	assert_int_equal(profile.sets[WP_PROFILE_BLOCK].samples[0].count, 5);
	assert_int_equal(profile.sets[WP_PROFILE_BLOCK].samples[0].wall_ns,
			 500);
	keys[2] = profile.sets[WP_PROFILE_BLOCK].samples[1].key;
	assert_int_equal(keys[2].object & 0xff, 9);
	assert_string_equal(wp_profile_str(&profile, keys[2].object >> 8), "b");
	assert_int_equal(profile.stacks[keys[2].stack].end, WP_END_EMPTY);
	end();
}

/* Of three threads the first goes: the third is the second now. */
static void a_wake_keeps_who_was_woken(void **state)
{
	struct wp_sample_key key = { .stack = UINT32_MAX };
	struct wp_renumber r;
	uint32_t sample = 0;

	(void)state;
	begin(10);
	mk_thread(&profile, 1, "gone");
	key.thread = mk_thread(&profile, 2, "maker");
	key.object = mk_thread(&profile, 3, "worker");
	assert_int_equal(
		wp_profile_add_sample(&profile, WP_PROFILE_WAKE, &key, 1, 10),
		0);
	assert_int_equal(wp_renumber_begin(&r, &profile), 0);
	wp_renumber_ref(&r, WP_REF_SAMPLE + WP_PROFILE_WAKE, &sample);
	assert_int_equal(wp_renumber_apply(&r, &profile), 0);
	wp_renumber_clear(&r);
	key = profile.sets[WP_PROFILE_WAKE].samples[0].key;
	assert_int_equal(profile.nthreads, 2);
	assert_int_equal(profile.threads[key.thread].tid, 2);
	assert_int_equal(profile.threads[key.object].tid, 3);
	end();
}

static void threads_get_entries_of_their_own_again(void **state)
{
	const struct wp_profile_thread some = { .tid = 7 };
	uint32_t shared, index;
	struct wp_renumber r;

	(void)state;
	begin(10);
	mk_thread(&profile, 1, "own");
	shared = wp_profile_share_thread(&profile, &some, "pool");
	wp_profile_share_thread(&profile, &some, "other");
	assert_int_equal(profile.nshared, 2);
	assert_int_equal(wp_renumber_begin(&r, &profile), 0);
	wp_renumber_ref(&r, WP_REF_THREAD, &shared);
	assert_int_equal(wp_renumber_apply(&r, &profile), 0);
	wp_renumber_ref(&r, WP_REF_THREAD, &shared);
	wp_renumber_clear(&r);
	assert_int_equal(profile.nthreads, 1);
	assert_int_equal(profile.nshared, 1);
	index = mk_thread(&profile, 9, "new");
	assert_false(profile.threads[index].is_shared);
	assert_int_equal(wp_profile_share_thread(&profile, &some, "pool"),
			 shared);
	end();
}

/* Ten processes, of which 3 and the shared one have a thread that stays. */
static void processes_go_with_their_threads(void **state)
{
	struct wp_profile_thread thread = { .process = 3 };
	uint32_t own, shared, index = 3;
	struct wp_renumber r;
	char name[24];

	(void)state;
	begin(10);
	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "process-%d", i);
		wp_profile_share_process(&profile, i + 1, name, 10);
	}
	assert_int_equal(wp_profile_share_process(&profile, 11, "pool", 10),
			 10);
	assert_int_equal(wp_profile_share_process(&profile, 12, "pool", 10),
			 10);
	own = wp_profile_add_thread(&profile, &thread);
	thread.process = 10;
	shared = wp_profile_add_thread(&profile, &thread);
	assert_int_equal(wp_renumber_begin(&r, &profile), 0);
	wp_renumber_ref(&r, WP_REF_THREAD, &own);
	wp_renumber_ref(&r, WP_REF_THREAD, &shared);
	assert_int_equal(wp_renumber_apply(&r, &profile), 0);
	wp_renumber_ref(&r, WP_REF_PROCESS, &index);
	assert_int_equal(index, 0);
	assert_false(wp_renumber_stays(&r, WP_REF_PROCESS, 4));
	wp_renumber_clear(&r);
	assert_int_equal(profile.nprocesses, 2);
	assert_int_equal(profile.processes[0].pid, 4);
	assert_string_equal(wp_profile_str(&profile, profile.processes[0].name),
			    "process-3");
	assert_int_equal(profile.threads[0].process, 0);
	assert_int_equal(profile.threads[1].process, 1);
	/* There is room for own entries again; what is shared is found still. */
	assert_int_equal(wp_profile_share_process(&profile, 13, "pool", 10), 2);
	assert_false(profile.processes[2].is_shared);
	assert_int_equal(wp_profile_share_process(&profile, 14, "pool", 3), 1);
	assert_int_equal(profile.processes[1].nmore, 2);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_ring_holds_is_told_as_before),
		cmocka_unit_test(what_comes_later_finds_what_was_kept),
		cmocka_unit_test(what_is_dropped_is_given_back),
		cmocka_unit_test(a_stack_takes_its_share_of_all_waits_along),
		cmocka_unit_test(a_wake_keeps_who_was_woken),
		cmocka_unit_test(threads_get_entries_of_their_own_again),
		cmocka_unit_test(processes_go_with_their_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
