/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  src/proc/kallsyms.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "guarded.h"
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

static void other_lines_are_passed_over(void **state)
{
	static const char *const lines[] = {
		"1000 T \n",
		"1000 T\n",
		"1000 x f\n",
		"1000 T\tf\n",
		"1000\tT f\n",
		"1000  T f\n",
		"g000 T f\n",
		"0 T f\n",
		"1000 T \t[m]\n",
		"1000 T  f\n",
		"11112222333344445 T f\n",
		"1W00 T f\n",
		"`000 T f\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct wp_kallsyms t = table_of(lines[i], strlen(lines[i]));

		assert_int_equal(t.len, 0);
		assert_null(wp_kallsyms_find(&t, UINT64_MAX));
		wp_kallsyms_clear(&t);
	}
}

static void a_name_ends_at_a_blank(void **state)
{
	static const char lines[] = "1 w f\n2 W g h\n2 t\t\n3 t k\t[m]\n";
	struct wp_kallsyms t = table_of(lines, strlen(lines));

	(void)state;
	assert_int_equal(t.len, 3);
	assert_null(wp_kallsyms_find(&t, 0));
	assert_string_equal(wp_kallsyms_find(&t, 1), "f");
	assert_string_equal(wp_kallsyms_find(&t, 2), "g");
	assert_string_equal(wp_kallsyms_find(&t, 3), "k");
	wp_kallsyms_clear(&t);
	assert_false(t.read);
}

/* Root sees addresses, and others none. */
static void the_kernel_s_own_table_is_read_once(void **state)
{
	struct wp_kallsyms t = WP_KALLSYMS_INIT;
	const char *name = wp_kallsyms_find(&t, UINT64_MAX);

	(void)state;
	assert_true(t.read);
	assert_int_equal(name != NULL, t.len > 0);
	if (t.len)
		assert_ptr_equal(name, t.text + t.v[t.len - 1].name);
	for (size_t i = 1; i < t.len; i++)
		assert_true(t.v[i - 1].avma <= t.v[i].avma);
	/* A table that was read is not read again. */
	t.len = 0;
	assert_null(wp_kallsyms_find(&t, UINT64_MAX));
	wp_kallsyms_clear(&t);
}

static void every_prefix_is_safe(void **state)
{
	(void)state;
	for (size_t n = 0; n < strlen(text); n++) {
		char *exact = guarded(text, n);
		struct wp_kallsyms t;

		t = table_of(exact, n);
		assert_true(t.len <= 4);
		wp_kallsyms_clear(&t);
		guarded_free(exact, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_found_by_address),
		cmocka_unit_test(other_lines_are_passed_over),
		cmocka_unit_test(a_name_ends_at_a_blank),
		cmocka_unit_test(the_kernel_s_own_table_is_read_once),
		cmocka_unit_test(every_prefix_is_safe),
	};

	return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
