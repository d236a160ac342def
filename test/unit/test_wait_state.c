/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  wait_state.h: what a thread waits for, and the call behind
 * restart_syscall. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "../../src/sample/wait_state.h"
#include "wallprof/syscall_nr.h"

static struct wp_process own_process(void)
{
	struct wp_process process = WP_PROCESS_INIT;

	process.pid = process.reader_tid = getpid();
	return process;
}

static void a_wait_holds_until_it_ends(void **state)
{
	const struct wp_thread_facts asleep = { .state_char = 'S',
						.syscall_nr = SYS_ppoll };
	const struct wp_thread_facts for_child = { .state_char = 'S',
						   .syscall_nr = SYS_wait4 };
	const struct wp_thread_facts running = { .state_char = 'R',
						 .running = true,
						 .syscall_nr = -1 };
	const struct wp_sample_key key = { .stack = 5 }, other = { .stack = 6 };
	struct wp_wait_state wait;
	struct wp_thread_state got;

	(void)state;
	wp_wait_state_init(&wait);
	assert_false(wait.waiting);
	got = wp_wait_state_begin(&wait, &asleep);
	assert_int_equal(got.state, WP_STATE_WAITING);
	assert_int_equal(got.wait, WP_WAIT_POLL);
	assert_true(wait.waiting);
	assert_false(wait.for_child);
	wp_wait_state_set_key(&wait, &key);
	assert_int_equal(wait.key.stack, 5);
	/* What is known of it stays, but it has to be read again. */
	wp_wait_state_distrust(&wait);
	assert_false(wait.waiting);
	assert_int_equal(wait.facts.syscall_nr, SYS_ppoll);
	wp_wait_state_set_key(&wait, &other);
	assert_int_equal(wait.key.stack, 5);
	wp_wait_state_end(&wait);
	assert_true(wait.facts.running);
	assert_int_equal(wait.facts.syscall_nr, -1);
	got = wp_wait_state_begin(&wait, &running);
	assert_int_equal(got.state, WP_STATE_RUNNING);
	assert_false(wait.waiting);
	wait.child_looks = 7;
	got = wp_wait_state_begin(&wait, &for_child);
	assert_int_equal(got.wait, WP_WAIT_CHILD);
	assert_true(wait.for_child);
	assert_int_equal(wait.child_looks, 0);
}

static void the_code_of_x86_64_tells_the_call(void **state)
{
	/* mov $35, %eax; syscall */
	static const uint8_t moved[7] = { 0xb8, 35, 0, 0, 0, 0x0f, 0x05 };
	/* nop; nop; nop; xor %eax, %eax; syscall */
	static const uint8_t cleared[8] = { 0xb8, 0x90, 0x90, 0x90,
					    0x31, 0xc0, 0x0f, 0x05 };
	/* The number is from elsewhere. */
	static const uint8_t other[7] = { 0x90, 0x90, 0x90, 0x90,
					  0x90, 0x0f, 0x05 };
	static const uint8_t none[7] = { 0x90 };

	(void)state;
	assert_int_equal(wp_wait_state_call_x86_64(moved, 7), 35);
	assert_int_equal(wp_wait_state_call_x86_64(moved + 1, 6), -1);
	assert_int_equal(wp_wait_state_call_x86_64(cleared, 8), 0);
	assert_int_equal(wp_wait_state_call_x86_64(other, 7),
			 wp_syscall_restart);
	assert_int_equal(wp_wait_state_call_x86_64(none, 7), -1);
}

static long call_of(const uint32_t *code, size_t n)
{
	return wp_wait_state_call_aarch64((const uint8_t *)code, 4 * n);
}

static void the_code_of_aarch64_tells_the_call(void **state)
{
	enum {
		SVC = 0xd4000001,
		MOV_X8_73 = 0xd2800928,
		MOV_W8_93 = 0x52800ba8,
		MOV_X1_X2 = 0xaa0203e1,
		MOV_X8_X2 = 0xaa0203e8,
		MRS_X0 = 0xd53bd040,
		RET = 0xd65f03c0,
		CBZ = 0xb4000040,
	};
	/* As compilers have it: other arguments come later. */
	static const uint32_t later[] = { MOV_X8_73, MOV_X1_X2, MRS_X0, SVC };
	static const uint32_t twice[] = { MOV_X8_73, MOV_W8_93, SVC };
	static const uint32_t moved[] = { MOV_X8_73, MOV_X8_X2, SVC };
	static const uint32_t other[] = { MOV_X8_73, RET, SVC };
	static const uint32_t perhaps[] = { MOV_X8_73, CBZ, SVC };
	static const uint32_t none[] = { MOV_X8_73, SVC, MOV_X1_X2 };

	(void)state;
	assert_int_equal(call_of(later, 4), 73);
	assert_int_equal(call_of(later + 1, 3), wp_syscall_restart);
	assert_int_equal(call_of(twice, 3), 93);
	assert_int_equal(call_of(moved, 3), wp_syscall_restart);
	assert_int_equal(call_of(other, 3), wp_syscall_restart);
	assert_int_equal(call_of(perhaps, 3), wp_syscall_restart);
	assert_int_equal(call_of(none, 3), -1);
	assert_int_equal(call_of(none, 0), -1);
	/* Bytes before the first instruction are none. */
	assert_int_equal(wp_wait_state_call_aarch64((const uint8_t *)none, 3),
			 -1);
}

static void a_call_is_read_where_its_thread_is(void **state)
{
	const struct wp_process process = own_process();
	struct wp_proc_syscall call = { .nr = SYS_ppoll, .pc_avma = 8 };
	struct wp_wait_state wait;

	(void)state;
	wp_wait_state_init(&wait);
	assert_int_equal(wp_wait_state_call(&wait, &process, false, &call),
			 SYS_ppoll);
	/* No code is there. */
	call.nr = wp_syscall_restart;
	call.pc_avma = 4096;
	assert_int_equal(wp_wait_state_call(&wait, &process, false, &call),
			 wp_syscall_restart);
	assert_int_equal(wp_wait_state_call_before(&process, false, 4096), -1);
	assert_int_equal(wp_wait_state_call_before(&process, true, 4096), -1);
}

static void the_last_call_at_a_pc_tells_what_is_restarted(void **state)
{
	const struct wp_process process = own_process();
	struct wp_proc_syscall call = { .nr = SYS_futex, .pc_avma = 0x1000 };
	struct wp_wait_state wait;

	(void)state;
	wp_wait_state_init(&wait);
	wp_wait_state_call(&wait, &process, false, &call);
	call.nr = wp_syscall_restart;
	assert_int_equal(wp_wait_state_call(&wait, &process, false, &call),
			 SYS_futex);
	/* Elsewhere it may be another, be it that the pc is that of all calls. */
	call.sp_avma = 0x3000;
	assert_int_equal(wp_wait_state_call(&wait, &process, true, &call),
			 wp_syscall_restart);
	call.sp_avma = 0;
	call.pc_avma = 0x2000;
	assert_int_equal(wp_wait_state_call(&wait, &process, false, &call),
			 wp_syscall_restart);
}

static void the_code_of_i386_tells_the_call(void **state)
{
	/* clang-format off */
	static const uint8_t trap[] = { 0xb8, 0xa8, 0, 0, 0, 0xcd, 0x80 };
	static const uint8_t moved[] = { 0x89, 0xd8, 0x90, 0x90, 0x90, 0xcd, 0x80 };
	static const uint8_t vdso[] = { 0xb8, 0xf0, 0, 0, 0,
					0x65, 0xff, 0x15, 0x10, 0, 0, 0 };
	static const uint8_t other[] = { 0xb8, 0xf0, 0, 0, 0,
					 0x65, 0xff, 0x15, 0x14, 0, 0, 0 };
	/* clang-format on */

	(void)state;
	assert_int_equal(wp_wait_state_call_i386(trap, sizeof(trap)), 168);
	assert_int_equal(wp_wait_state_call_i386(trap + 1, sizeof(trap) - 1),
			 -1);
	assert_int_equal(wp_wait_state_call_i386(moved, sizeof(moved)),
			 WP_SYSCALL_RESTART_I386);
	assert_int_equal(wp_wait_state_call_i386(vdso, sizeof(vdso)), 240);
	assert_int_equal(wp_wait_state_call_i386(vdso + 1, sizeof(vdso) - 1),
			 -1);
	assert_int_equal(wp_wait_state_call_i386(other, sizeof(other)), -1);
	assert_int_equal(wp_wait_state_call_i386(vdso, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_holds_until_it_ends),
		cmocka_unit_test(the_code_of_x86_64_tells_the_call),
		cmocka_unit_test(the_code_of_aarch64_tells_the_call),
		cmocka_unit_test(a_call_is_read_where_its_thread_is),
		cmocka_unit_test(the_last_call_at_a_pc_tells_what_is_restarted),
		cmocka_unit_test(the_code_of_i386_tells_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
