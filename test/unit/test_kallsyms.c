/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  src/proc/kallsyms.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "wallprof/kallsyms.h"

static const char text[] = "ffffffff81000000 T _text\n"
			   "ffffffff81002000 t do_futex\n"
			   "ffffffff81001000 W schedule\n"
			   "ffffffff81001800 D jiffies\n"
			   "ffffffffc0000000 t kvm_run\t[kvm]\n"
			   "0000000000000000 T hidden\n"
			   "nonsense\n"
			   "ffffffff81009000 T cut";

static struct wp_kallsyms table_of(const char *s, size_t n)
{
	struct wp_kallsyms table = { .read = true };

	assert_int_equal(wp_kallsyms_parse(&table, s, n), 0);
	return table;
}

static void functions_are_found_by_address(void **state)
{
	struct wp_kallsyms t = table_of(text, strlen(text));

	(void)state;
	assert_int_equal(t.len, 4);
	assert_null(wp_kallsyms_find(&t, 0xffffffff80ffffff));
	assert_string_equal(wp_kallsyms_find(&t, 0xffffffff81000000), "_text");
	assert_string_equal(wp_kallsyms_find(&t, 0xffffffff81001fff),
			    "schedule");
	assert_string_equal(wp_kallsyms_find(&t, 0xffffffff81002001),
			    "do_futex");
	assert_string_equal(wp_kallsyms_find(&t, UINT64_MAX), "kvm_run");
	wp_kallsyms_clear(&t);
}

static void every_prefix_is_safe(void **state)
{
	(void)state;
	for (size_t n = 0; n < strlen(text); n++) {
		char *exact = test_malloc(n + 1);
		struct wp_kallsyms t;

		memcpy(exact, text, n);
		t = table_of(exact, n);
		assert_true(t.len <= 4);
		wp_kallsyms_clear(&t);
		test_free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_address),
		cmocka_unit_test(every_prefix_is_safe),
	};

	return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
