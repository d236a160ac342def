/* SPDX-License-Identifier: Apache-2.0 */
/* go_target_maker.h - the made Go program of go_maker.h as what a fake target runs: its
 * memory is the test's, where the program has it.  Included after one_target.h.
 */
#ifndef WP_TEST_GO_TARGET_MAKER_H
#define WP_TEST_GO_TARGET_MAKER_H

#include <sys/mman.h>

#include "go_maker.h"

/* Where its two functions are in the target. */
enum {
	MADE_MAIN = MADE_TEXT + MADE_BIAS,
	MADE_GOEXIT = MADE_MAIN + MADE_FUNC,
};

static struct made_go made;
static struct wp_unwind_module made_target_module;

/* The memory of the made program becomes what MADE says. */
static void made_target_update(void)
{
	memcpy((void *)(uintptr_t)made_avma(0), made.memory, MADE_MEMORY);
}

/* The fake target, which has begun, runs the made program and nothing else. */
static void made_target_show(void)
{
	struct wp_unwind_modules *view = &fake.target->space.view;
	void *at = (void *)(uintptr_t)made_avma(0);

	assert_ptr_equal(mmap(at, MADE_MEMORY, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
			      -1, 0),
			 at);
	made_target_update();
	made_target_module = (struct wp_unwind_module){
		.start_avma = MADE_BIAS + 0x400000,
		.end_avma = MADE_BIAS + 0x600000,
		.bias = MADE_BIAS,
		.mapping = view->v[0].mapping,
		.image = &made.image,
	};
	view->v = &made_target_module;
	view->len = 1;
	view->generation++;
	/* The kernel knows of no such map: it is not asked. */
	fake.target->space.can_query = false;
	fake.target->space.reloaded_ns = fake_now_ns;
	fake.target->space.reload_cost_ns = 1000 * WP_NS_PER_S;
}

/* The second function becomes runtime.goexit, as unwinders know it: nop; call; nop.  All
 * goroutines stand in it. */
__attribute__((unused)) static void made_goexit(void)
{
	static const uint8_t code[] = { 0x90, 0xe8, 0, 0, 0, 0, 0x90 };
	/* Its stack pointer: the frame has 0 bytes in all seven. */
	static const uint8_t pcsp[] = { 2, sizeof(code), 0 };
	enum { OFF = 0xa00, PCSP = 16 };

	memcpy(made.file + MADE_NAMES, "main.main\0runtime.goexit", 25);
	made_put(made.file, MADE_FUNCS + 16, MADE_FUNC + sizeof(code), 4);
	made_put(made.file, MADE_FUNCS + 28 + 44 + PCSP, 1, 4);
	memcpy(made.file + MADE_PCTAB + 1, pcsp, sizeof(pcsp));
	memcpy(made.file + OFF + MADE_FUNC, code, sizeof(code));
	made.image.loads[1] = made.image.loads[0];
	made.image.loads[0] = (struct wp_elf_load){ MADE_TEXT, OFF, 0x200,
						    0x200, 5 };
	made.image.nloads = 2;
	for (size_t i = 0; i < MADE_GOROUTINES; i++)
		made_put(made_g(&made, i, 64), 0, MADE_GOEXIT, 8);
}

/* Another program loads what Go made.  Its modules: the program, the library. */
__attribute__((unused)) static struct wp_unwind_module *made_library(void)
{
	static struct wp_unwind_module modules[2];
	static struct wp_elf_image other;

	modules[0] = modules[1] = made_target_module;
	modules[0].start_avma = MADE_BIAS + 0x300000;
	modules[0].end_avma = MADE_BIAS + 0x310000;
	modules[0].image = &other;
	fake.target->space.view.v = modules;
	fake.target->space.view.len = 2;
	return modules;
}

static int made_target_end(void **state)
{
	munmap((void *)(uintptr_t)made_avma(0), MADE_MEMORY);
	return teardown(state);
}

#endif
