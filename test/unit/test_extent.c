/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbols.  ../../symbols/extent.h, of this program's own code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <link.h>

#include "../../symbols/extent.h"

/* Code as assemblers without .size and .cfi leave it: a function, then one without
 * a symbol that makes a system call; and one that makes a call itself. */
#if defined(__x86_64__)
__asm__(".text\n"
	".balign 16\n"
	"test_extent_plain: mov $1, %eax\n ret\n .balign 16\n"
	"test_extent_hidden: mov $39, %eax\n syscall\n"
	"test_extent_hidden_after: ret\n .balign 16\n"
	"test_extent_caller: mov $39, %eax\n syscall\n"
	"test_extent_caller_after: ret\n");
#else
__asm__(".text\n"
	"test_extent_plain: mov x0, #1\n ret\n"
	"test_extent_hidden: mov x8, #172\n svc #0\n"
	"test_extent_hidden_after: ret\n"
	"test_extent_caller: mov x8, #172\n svc #0\n"
	"test_extent_caller_after: ret\n");
#endif
/* Without it aarch64's linker gives all of them one slot of the GOT. */
#define HERE __attribute__((visibility("hidden")))
extern const char test_extent_plain[] HERE, test_extent_hidden[] HERE,
	test_extent_hidden_after[] HERE, test_extent_caller[] HERE,
	test_extent_caller_after[] HERE;

static struct wp_elf_image image;
static uint64_t bias;

static int find_bias(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	*(uint64_t *)ctx = info->dlpi_addr;
	/* The first is the program. */
	return 1;
}

static int open_self(void **state)
{
	(void)state;
	dl_iterate_phdr(find_bias, &bias);
	return wp_elf_image_open(
		&image, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), NULL);
}

static int close_self(void **state)
{
	(void)state;
	wp_elf_image_clear(&image);
	return 0;
}

static uint64_t svma(const void *p)
{
	return (uint64_t)(uintptr_t)p - bias;
}

static void an_address_leads_to_the_start_of_its_function(void **state)
{
	uint64_t start = 0,
		 here = svma(
			 (const void *)(uintptr_t)
				 an_address_leads_to_the_start_of_its_function);

	(void)state;
	for (uint64_t i = 0; i < 16; i++) {
		start = 0;
		assert_true(wp_extent_start(&image, here + i, &start));
		assert_int_equal(start, here);
	}
	assert_true(wp_extent_start(&image, here - 1, &start) ? start < here :
								true);
}

static void code_without_unwind_info_has_no_start(void **state)
{
	uint64_t start = 7;

	(void)state;
	assert_false(wp_extent_start(&image, svma(test_extent_plain), &start));
	assert_false(wp_extent_start(&image, UINT64_MAX, &start));
	assert_false(wp_extent_start(&image, 0, &start));
	assert_int_equal(start, 7);
}

static void a_function_of_unknown_size_ends_before_another(void **state)
{
	uint64_t before = svma(test_extent_caller_after), function = 0;

	(void)state;
	assert_true(wp_extent_reaches(&image, svma(test_extent_plain),
				      svma(test_extent_plain)));
	assert_true(wp_extent_reaches(&image, svma(test_extent_plain),
				      svma(test_extent_hidden)));
	/* The next function that unwind info knows. */
	for (uint64_t i = 0; i < 4096 && !function; i++)
		if (wp_extent_start(&image, before + i, &function))
			assert_false(
				wp_extent_reaches(&image, before, before + i));
	assert_true(function > before);
}

static void nor_does_it_reach_past_a_call_behind_its_return(void **state)
{
	(void)state;
	assert_false(wp_extent_reaches(&image, svma(test_extent_plain),
				       svma(test_extent_hidden_after)));
	assert_false(wp_extent_reaches(&image, svma(test_extent_plain),
				       svma(test_extent_hidden_after) - 1));
	/* vfork of musl makes one itself. */
	assert_true(wp_extent_reaches(&image, svma(test_extent_caller),
				      svma(test_extent_caller_after)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_leads_to_the_start_of_its_function),
		cmocka_unit_test(code_without_unwind_info_has_no_start),
		cmocka_unit_test(
			a_function_of_unknown_size_ends_before_another),
		cmocka_unit_test(
			nor_does_it_reach_past_a_call_behind_its_return),
	};

	return cmocka_run_group_tests_name("extent", tests, open_self,
					   close_self);
}
