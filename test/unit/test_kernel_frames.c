/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  kernel_frames.h: the kernel's frames stand before a thread's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "one_target.h"

enum { TID = 7, OWN = 2, ROOM = WP_KERNEL_FRAMES_MAX + OWN };

static struct wp_thread *t;
static struct wp_frame frames[ROOM];
static uint64_t cfas[ROOM];
static struct wp_stack walked;

static int setup(void **state)
{
	(void)state;
	fake_target_open(&fake);
	options = fake_target_options();
	fake_target_add_thread(&fake, TID, "seven");
	start_target();
	assert_int_equal(wp_threads_update(fake.target), 0);
	t = fake.target->threads[0];
	return 0;
}

/* A stack of two frames, with room before it. */
static void start(void)
{
	memset(frames, 0xff, sizeof(frames));
	memset(cfas, 0xff, sizeof(cfas));
	walked = (struct wp_stack){ .frames = frames + WP_KERNEL_FRAMES_MAX,
				    .cfa_avma = cfas + WP_KERNEL_FRAMES_MAX,
				    .depth = OWN,
				    .cap = OWN };
	for (unsigned int n = 0; n < OWN; n++)
		walked.frames[n] = (struct wp_frame){ .pc_avma = n + 1 };
}

/* The kernel's frames are NAMES, up to a NULL, and then come the two. */
static void assert_names(const char *const *names)
{
	uint32_t n;

	for (n = 0; names[n]; n++) {
		assert_true(n < walked.depth);
		assert_int_equal(walked.frames[n].flags, WP_FRAME_NAMED);
		assert_int_equal(walked.frames[n].mapping, WP_MAPPING_KERNEL);
		assert_string_equal(
			wp_profile_str(&fake.profile,
				       (uint32_t)walked.frames[n].pc_avma),
			names[n]);
		assert_int_equal(walked.cfa_avma[n], 0);
	}
	assert_int_equal(walked.depth, n + OWN);
	assert_ptr_equal(walked.frames + n, frames + WP_KERNEL_FRAMES_MAX);
	assert_ptr_equal(walked.cfa_avma + n, cfas + WP_KERNEL_FRAMES_MAX);
	for (unsigned int i = 0; i < OWN; i++)
		assert_int_equal(walked.frames[n + i].pc_avma, i + 1);
}

static void add_waiting(const char *text)
{
	start();
	fake_target_write(&fake, TID, "stack", text);
	wp_kernel_frames_add_waiting(t, &walked);
}

static void a_waiting_threads_are_in_its_stack_file(void **state)
{
	static const struct {
		const char *text;
		const char *names[4];
	} rows[] = {
		{ "[<0>] futex_wait+0x60/0x90\n[<0>] do_syscall_64+0x5/0x9\n",
		  { "futex_wait", "do_syscall_64" } },
		/* Of a module; the last line without its end. */
		{ "[<0>] nfs_wait+0x1/0x2 [nfs]\n[<0>] x+0x1/0x2",
		  { "nfs_wait", "x" } },
		/* Without a distance. */
		{ "[<0>] name\n", { "name" } },
		{ "[<0>] name [mod]\n[<0>] other\n", { "name", "other" } },
		/* No name; no bracket; an empty line; cut off. */
		{ "[<0>] \n[<0>] +0x1/0x2\n[<0>]  x\n", { NULL } },
		{ "futex_wait+0x60/0x90\n\n[<0>] x\n", { "x" } },
		{ "[<0>]", { NULL } },
		{ "[<0>] ", { NULL } },
		{ "[<0>]\n[<0>] x\n", { "x" } },
		{ "[<0>] y", { "y" } },
		{ "\n", { NULL } },
		{ "", { NULL } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		add_waiting(rows[i].text);
		assert_names(rows[i].names);
	}
	/* It may not be read. */
	start();
	fake_target_end_thread(&fake, TID);
	wp_kernel_frames_add_waiting(t, &walked);
	assert_names((const char *const[]){ NULL });
}

static void there_is_room_for_so_many(void **state)
{
	char text[(WP_KERNEL_FRAMES_MAX + 2) * 20];
	size_t at = 0;

	(void)state;
	for (unsigned int n = 0; n < WP_KERNEL_FRAMES_MAX + 1; n++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "[<0>] f%u+0x1/0x2\n", n);
	add_waiting(text);
	assert_int_equal(walked.depth, WP_KERNEL_FRAMES_MAX + OWN);
	assert_ptr_equal(walked.frames, frames);
	assert_string_equal(
		wp_profile_str(&fake.profile, (uint32_t)frames[0].pc_avma),
		"f0");
}

/* Addresses but the first return to their function, which may be its last byte. */
static void a_cpu_samples_are_named_by_address(void **state)
{
	static const char symbols[] = "ffffffff81000000 T first\n"
				      "ffffffff81000100 T second\n"
				      "ffffffff81000200 T third\n";
	const uint64_t chain[] = { UINT64_C(0xffffffff81000100),
				   UINT64_C(0xffffffff81000200), 0x1001 };
	struct wp_perf_record record = { .kernel_chain = chain,
					 .kernel_len = 3 };

	(void)state;
	start();
	/* In place of the machine's own. */
	fake.sampler->kallsyms.read = true;
	assert_int_equal(wp_kallsyms_parse(&fake.sampler->kallsyms, symbols,
					   sizeof(symbols) - 1),
			 0);
	wp_kernel_frames_add_chain(fake.target, &record, &walked);
	assert_names(
		(const char *const[]){ "second", "second", "0x1000", NULL });
	start();
	record.kernel_len = 0;
	wp_kernel_frames_add_chain(fake.target, &record, &walked);
	assert_names((const char *const[]){ NULL });
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_waiting_threads_are_in_its_stack_file),
		TEST(there_is_room_for_so_many),
		TEST(a_cpu_samples_are_named_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
