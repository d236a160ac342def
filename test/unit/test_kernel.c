/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: base.  wallprof/kernel.h, on the kernel that runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <sys/utsname.h>

#include "wallprof/kernel.h"

static void a_kernel_is_before_later_ones_alone(void **state)
{
	unsigned int major, minor;
	struct utsname name;

	(void)state;
	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%u.%u", &major, &minor), 2);
	assert_false(wp_kernel_is_before(0, 0));
	assert_false(wp_kernel_is_before(major - 1, minor + 1));
	assert_false(wp_kernel_is_before(major, minor));
	assert_true(wp_kernel_is_before(major, minor + 1));
	assert_true(wp_kernel_is_before(major + 1, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_is_before_later_ones_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
