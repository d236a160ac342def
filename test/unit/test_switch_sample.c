/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  switch_sample.h: what a thread waits for as it leaves its CPU, by the
 * code that it is in and its registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/futex.h>
#include <sys/syscall.h>

#include "../../src/sample/perf_source.h"
#include "../../src/sample/switch_sample.h"
#include "one_target.h"

enum { TID = 7, CODE = 64 };

static struct wp_thread *t;
static struct wp_switch_sample_calls calls;
static struct wp_regs regs;
/* Code that ends with a system call. */
static uint8_t code[CODE], other_code[CODE];

static uint64_t end_of(const uint8_t *at)
{
	return (uintptr_t)at + CODE;
}

/* The code at AT makes call NR; NR < 0: a call that it does not tell. */
static void put_call(uint8_t *at, long nr)
{
	memset(at, 0, CODE);
#if defined(__x86_64__)
	memcpy(at + CODE - 2, "\x0f\x05", 2);
	if (nr >= 0) {
		at[CODE - 7] = 0xb8;
		memcpy(at + CODE - 6, &nr, 4);
	}
#else
	/* movz x8, #NR, or mov x8, x0; svc #0. */
	uint32_t insn = nr >= 0 ? 0xd2800008 | (uint32_t)nr << 5 : 0xaa0003e8;

	memcpy(at + CODE - 8, &insn, 4);
	memcpy(at + CODE - 4, "\x01\0\0\xd4", 4);
#endif
}

static void set_arg(unsigned int i, uint64_t val)
{
	wp_reg_set(&regs, wp_syscall_arg_regs[i], val);
}

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	fake_target_add_thread(&fake, TID, "waiter");
	fake_stack_init(&stack, fake_stack_root);
	options = fake_target_options();
	start_target();
	t = wp_threads_find_or_add(fake.target, TID);
	assert_non_null(t);
	memset(&calls, 0, sizeof(calls));
	memset(&regs, 0, sizeof(regs));
	for (unsigned int n = 0; n < WP_NREGS; n++)
		wp_reg_set(&regs, n, 0);
	wp_reg_set(&regs, WP_REG_PC, end_of(code));
	put_call(code, SYS_futex);
	return 0;
}

/* The wait that T begins; RETURN_AVMA as there. */
static struct wp_sample_key wait_from(uint64_t return_avma)
{
	struct wp_sample_key key = { .stack = 3, .thread = 4 };

	wp_switch_sample_wait(&calls, t, &regs, return_avma, &key);
	assert_int_equal(key.state, WP_STATE_WAITING);
	/* Descriptors are others' by the time that it is looked at. */
	assert_int_equal(key.object, 0);
	assert_int_equal(key.stack, 3);
	assert_int_equal(key.thread, 4);
	return key;
}

static const char *call_of(struct wp_sample_key key)
{
	return wp_profile_str(&fake.profile, key.syscall);
}

static long call_at(const uint8_t *at)
{
	return wp_switch_sample_call(&calls, fake.target, end_of(at));
}

static void code_is_read_once(void **state)
{
	(void)state;
	/* First, for it may share the entry of CODE: where both are is chance. */
	put_call(other_code, SYS_ppoll);
	assert_int_equal(call_at(other_code), SYS_ppoll);
	assert_int_equal(call_at(code), SYS_futex);
	/* Nobody changes it where the map stays the same. */
	put_call(code, SYS_nanosleep);
	assert_int_equal(call_at(code), SYS_futex);
}

static void with_another_map_it_is_read_again(void **state)
{
	(void)state;
	assert_int_equal(call_at(code), SYS_futex);
	put_call(code, SYS_nanosleep);
	fake.target->space.view.generation++;
	assert_int_equal(call_at(code), SYS_nanosleep);
	/* And kept. */
	put_call(code, SYS_futex);
	assert_int_equal(call_at(code), SYS_nanosleep);
}

/* What is known of a pc says nothing of another process. */
static void another_process_has_other_code(void **state)
{
	struct wp_process *process = &fake.process;

	(void)state;
	assert_int_equal(call_at(code), SYS_futex);
	put_call(code, SYS_nanosleep);
	process->pid++;
	assert_int_equal(call_at(code), SYS_nanosleep);
	process->pid--;
	put_call(code, SYS_ppoll);
	assert_int_equal(call_at(code), SYS_ppoll);
}

static void two_places_may_share_an_entry(void **state)
{
	const struct wp_switch_sample_calls none = { 0 };
	/* More places than there are entries; none is taken for another. */
	static uint8_t all[2 * WP_SWITCH_SAMPLE_CALLS][CODE];

	(void)state;
	calls = none;
	for (int pass = 0; pass < 2; pass++)
		for (long i = 0; i < 2 * WP_SWITCH_SAMPLE_CALLS; i++) {
			put_call(all[i], i);
			assert_int_equal(call_at(all[i]), i);
		}
}

static void the_wait_is_the_calls(void **state)
{
	static const struct {
		long nr;
		const char *name;
		enum wp_wait wait;
	} rows[] = {
		{ SYS_futex, "futex", WP_WAIT_FUTEX },
		{ SYS_ppoll, "ppoll", WP_WAIT_POLL },
		{ SYS_nanosleep, "nanosleep", WP_WAIT_SLEEP },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_sample_key key;

		put_call(code, rows[i].nr);
		fake.target->space.view.generation++;
		key = wait_from(0);
		assert_string_equal(call_of(key), rows[i].name);
		assert_int_equal(key.wait, rows[i].wait);
	}
}

/* Its descriptor is in a register: what is behind it refines the wait. */
static void a_descriptor_refines_the_wait(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	/* On x86-64 the lowest number there is. */
	put_call(code, SYS_read);
	set_arg(0, (uint64_t)fds[0]);
	assert_int_equal(wait_from(0).wait, WP_WAIT_PIPE);
	assert_string_equal(call_of(wait_from(0)), "read");
	close(fds[0]);
	close(fds[1]);
	/* It is closed by now. */
	assert_int_equal(wait_from(0).wait, WP_WAIT_FILE);
}

static void arguments_tell_kinds_of_futex(void **state)
{
	(void)state;
	set_arg(1, FUTEX_LOCK_PI);
	assert_int_equal(wait_from(0).wait, WP_WAIT_LOCK);
	set_arg(1, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME);
	set_arg(2, 4711);
	assert_int_equal(wait_from(0).wait, WP_WAIT_JOIN);
}

static void outside_of_a_call_it_waits_for_its_page(void **state)
{
	struct wp_sample_key key;

	(void)state;
	memset(code, 0x90, sizeof(code));
	set_arg(1, FUTEX_WAIT_PRIVATE);
	key = wait_from(0);
	assert_int_equal(key.wait, WP_WAIT_PAGE_FAULT);
	assert_string_equal(call_of(key), "");
	/* Nor does code that cannot be read tell one. */
	wp_reg_set(&regs, WP_REG_PC, 4096);
	assert_int_equal(wait_from(0).wait, WP_WAIT_PAGE_FAULT);
}

static void the_last_tick_may_tell_a_call_that_code_hides(void **state)
{
	(void)state;
	put_call(code, -1);
	t->wait.call_pc_avma = end_of(code);
	t->wait.call_nr = SYS_ppoll;
	assert_string_equal(call_of(wait_from(0)), "ppoll");
	/* It knows better than arguments. */
	set_arg(1, FUTEX_WAIT_PRIVATE);
	assert_string_equal(call_of(wait_from(0)), "ppoll");
	t->wait.call_nr = 0;
	assert_string_equal(call_of(wait_from(0)), wp_syscall_find(0)->name);
	/* It was elsewhere, or in none. */
	t->wait.call_pc_avma++;
	assert_string_equal(call_of(wait_from(0)), "futex");
	t->wait.call_pc_avma--;
	t->wait.call_nr = -1;
	assert_string_equal(call_of(wait_from(0)), "futex");
}

static void arguments_may_tell_a_call_that_code_hides(void **state)
{
	static const uint64_t futexes[] = { FUTEX_WAIT_PRIVATE,
					    FUTEX_LOCK_PI_PRIVATE,
					    FUTEX_WAIT_BITSET_PRIVATE,
					    FUTEX_WAIT_BITSET_PRIVATE |
						    FUTEX_CLOCK_REALTIME };

	(void)state;
	put_call(code, -1);
	for (size_t i = 0; i < sizeof(futexes) / sizeof(*futexes); i++) {
		set_arg(1, futexes[i]);
		assert_string_equal(call_of(wait_from(0)), "futex");
	}
	/* A small number is an argument of anything; a wake does not wait. */
	set_arg(1, FUTEX_WAIT);
	assert_string_equal(call_of(wait_from(0)), "restart_syscall");
	set_arg(1, FUTEX_WAKE_PRIVATE);
	assert_string_equal(call_of(wait_from(0)), "restart_syscall");
}

#if defined(__x86_64__)
/* i386's numbers. */
enum { I386_FUTEX = 240, I386_POLL = 168, I386_MADVISE = 219 };

/* The code at AT makes i386's call NR, by int $0x80; NR < 0: which, it does not tell. */
static void put_call_32(uint8_t *at, long nr)
{
	memset(at, 0, CODE);
	memcpy(at + CODE - 2, "\xcd\x80", 2);
	if (nr >= 0) {
		at[CODE - 7] = 0xb8;
		memcpy(at + CODE - 6, &nr, 4);
	}
}

static void calls_of_i386_have_their_own_numbers_and_registers(void **state)
{
	(void)state;
	fake.target->space.is_32bit = true;
	put_call_32(code, I386_FUTEX);
	/* ecx is its second argument; x86-64's is rsi. */
	wp_reg_set(&regs, wp_syscall_i386_arg_regs[1], FUTEX_LOCK_PI);
	assert_string_equal(call_of(wait_from(0)), "futex");
	assert_int_equal(wait_from(0).wait, WP_WAIT_LOCK);
}

/* Its number is that of x86-64's restart_syscall. */
static void a_call_of_i386_is_not_the_native_one_of_its_number(void **state)
{
	(void)state;
	fake.target->space.is_32bit = true;
	put_call_32(code, I386_MADVISE);
	put_call_32(other_code, I386_POLL);
	assert_string_equal(call_of(wait_from(end_of(other_code))), "madvise");
}

static void outside_of_a_call_of_i386_it_waits_for_its_page(void **state)
{
	(void)state;
	fake.target->space.is_32bit = true;
	put_call(code, SYS_futex);
	put_call_32(other_code, I386_POLL);
	assert_int_equal(wait_from(end_of(other_code)).wait,
			 WP_WAIT_PAGE_FAULT);
	assert_string_equal(call_of(wait_from(0)), "");
}

/* All calls have their pc in the vDSO, and who calls that tells which it is. */
static void the_caller_of_the_vdso_tells_the_call_of_i386(void **state)
{
	(void)state;
	fake.target->space.is_32bit = true;
	put_call_32(code, -1);
	put_call_32(other_code, I386_POLL);
	assert_string_equal(call_of(wait_from(end_of(other_code))), "poll");
	assert_int_equal(wait_from(end_of(other_code)).wait, WP_WAIT_POLL);
}

static void a_call_of_i386_that_nothing_tells_waits_for_something(void **state)
{
	static const uint8_t no_call[CODE];

	(void)state;
	fake.target->space.is_32bit = true;
	put_call_32(code, -1);
	/* No return address; one that no call is before; one that hides it too. */
	assert_string_equal(call_of(wait_from(0)), "restart_syscall");
	assert_string_equal(call_of(wait_from(end_of(no_call))),
			    "restart_syscall");
	assert_string_equal(call_of(wait_from(end_of(code))),
			    "restart_syscall");
	/* The call that it is. */
	put_call_32(code, 0);
	fake.target->space.view.generation++;
	assert_string_equal(call_of(wait_from(0)), "restart_syscall");
	assert_int_equal(wait_from(0).wait, WP_WAIT_SYSCALL);
}
#endif

static struct wp_perf_record record_of(const struct fake_stack *of)
{
	struct wp_perf_record record = {
		.type = WP_PERF_SAMPLE_SWITCH,
		.pid = getpid(),
		.tid = TID,
		.regs = fake_stack_regs(of),
	};

	record.stack = (const uint8_t *)(uintptr_t)record.regs.v[WP_REG_SP];
	record.stack_len = (size_t)(of->room + sizeof(of->room) - record.stack);
	return record;
}

static void a_sample_has_its_stack_and_its_thread(void **state)
{
	struct wp_perf_record record = record_of(&stack);
	struct wp_perf_source source = { .perf = NULL };
	struct wp_sample_key key = { .object = 9 };

	(void)state;
	assert_int_equal(
		wp_switch_sample_key(&calls, t, &source, &record, &key), 0);
	assert_int_equal(fake.profile.stacks[key.stack].depth, 3);
	assert_int_equal(key.thread, t->index);
	assert_int_equal(key.state, WP_STATE_WAITING);
	assert_int_equal(key.object, 0);
	/* It was left in a function, not in a call. */
	assert_int_equal(key.wait, WP_WAIT_PAGE_FAULT);
}

/* A worker of io_uring's, as its registers are handed out: as 0, or not at all. */
static void a_worker_of_the_kernel_is_in_no_page_fault(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		struct wp_perf_record record = {
			.type = WP_PERF_SAMPLE_SWITCH,
			.pid = getpid(),
			.tid = TID,
		};
		struct wp_perf_source source = { .perf = NULL };
		struct wp_sample_key key = { .object = 9 };

		for (unsigned int n = 0; known && n < WP_NREGS; n++)
			wp_reg_set(&record.regs, n, 0);
		fake_target_is_worker(&fake, TID, 'S');
		assert_int_equal(
			wp_switch_sample_key(&calls, t, &source, &record, &key),
			0);
		assert_int_equal(fake.profile.stacks[key.stack].depth, 0);
		assert_int_equal(fake.profile.stacks[key.stack].end,
				 WP_END_WORKER);
		assert_int_equal(key.thread, t->index);
		assert_int_equal(key.state, WP_STATE_WAITING);
		assert_int_equal(key.wait, WP_WAIT_NONE);
		assert_int_equal(key.syscall, 0);
	}
	/* The same registers of the program's own thread tell what they told. */
	t->guard.is_worker = false;
	wp_reg_set(&regs, WP_REG_PC, 0);
	assert_int_equal(wait_from(0).wait, WP_WAIT_PAGE_FAULT);
}

static void without_a_stack_the_call_is_told_all_the_same(void **state)
{
	struct wp_perf_record record = { .regs = regs };
	struct wp_perf_source source = { .perf = NULL };
	struct wp_sample_key key;

	(void)state;
	assert_int_equal(
		wp_switch_sample_key(&calls, t, &source, &record, &key), 0);
	assert_string_equal(call_of(key), "futex");
	assert_true(fake.profile.stacks[key.stack].depth <= 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(code_is_read_once),
		TEST(with_another_map_it_is_read_again),
		TEST(another_process_has_other_code),
		TEST(two_places_may_share_an_entry),
		TEST(the_wait_is_the_calls),
		TEST(a_descriptor_refines_the_wait),
		TEST(arguments_tell_kinds_of_futex),
		TEST(outside_of_a_call_it_waits_for_its_page),
		TEST(the_last_tick_may_tell_a_call_that_code_hides),
		TEST(arguments_may_tell_a_call_that_code_hides),
#if defined(__x86_64__)
		TEST(calls_of_i386_have_their_own_numbers_and_registers),
		TEST(a_call_of_i386_is_not_the_native_one_of_its_number),
		TEST(outside_of_a_call_of_i386_it_waits_for_its_page),
		TEST(the_caller_of_the_vdso_tells_the_call_of_i386),
		TEST(a_call_of_i386_that_nothing_tells_waits_for_something),
#endif
		TEST(a_sample_has_its_stack_and_its_thread),
		TEST(a_worker_of_the_kernel_is_in_no_page_fault),
		TEST(without_a_stack_the_call_is_told_all_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
