/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbols.  symbols/demangle.h, symbols/strpool.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../symbols/demangle.h"
#include "../../symbols/strpool.h"

static void names_are_as_a_person_wrote_them(void **state)
{
	static const struct {
		const char *symbol, *want;
	} names[] = {
		{ "main", "main" },
		{ "_start", "_start" },
		{ "", "" },
		{ "_Z", "_Z" },
		{ "_ZN", "_ZN" },
		{ "_Zfoo", "_Zfoo" },
		/* Parameters and return types are not part of a name. */
		{ "_Z4workid", "work" },
		{ "_ZNK4shop4CartIiE4bestEv", "shop::Cart<int>::best" },
		{ "_Z3maxIiET_S0_S0_", "max<int>" },
		{ "_ZN4shop5ThingD1Ev", "shop::Thing::~Thing" },
		{ "_ZN1AC4Ev", "A::A" },
		{ "_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
		  "std::vector<int, std::allocator<int> >::push_back" },
		/* Rust: the old scheme has a hash at its end. */
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_ZN51_$LT$std..io..Error$u20$as$u20$core..fmt..Debug$GT$"
		  "3fmt17h0123456789abcdefE",
		  "<std::io::Error as core::fmt::Debug>::fmt" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		/* A crate without a name. */
		{ "_RNvC03foo", "::foo" },
		{ "_RNvMNtCs1234_7mycrate3barNtB2_3Baz3foo",
		  "<mycrate::bar::Baz>::foo" },
		/* Clones. */
		{ "f.cold", "f" },
		{ "f.part.0", "f" },
		{ "f.isra.12.cold", "f" },
		{ "f.constprop.0.isra.0", "f" },
		{ "f.llvm.1234567890", "f" },
		{ "_Z4workid.constprop.0", "work" },
		{ "_Z4workid.cold", "work" },
		{ ".cold", ".cold" },
		{ "f.part", "f.part" },
		{ "f.part.x", "f.part.x" },
		{ "f.0", "f.0" },
		{ "main.run.func1", "main.run.func1" },
		{ "net/http.(*Server).Serve", "net/http.(*Server).Serve" },
		/* Slots of the PLT. */
		{ "puts@plt", "puts@plt" },
		{ "_Z4workid@plt", "work@plt" },
		{ "@plt", "@plt" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char buf[256];

		wp_demangle(names[i].symbol, buf, sizeof(buf));
		assert_string_equal(buf, names[i].want);
	}
}

static void what_does_not_fit_stays_mangled(void **state)
{
	static const char symbol[] = "_ZN4shop4CartIiE3addERKi";
	char buf[40];

	(void)state;
	for (size_t size = 1; size <= sizeof(buf); size++) {
		char *exact = malloc(size), want[sizeof(buf)];

		wp_demangle(symbol, exact, size);
		snprintf(want, size, "%s", symbol);
		if (size > strlen(symbol))
			strcpy(want, "shop::Cart<int>::add");
		assert_string_equal(exact, want);
		free(exact);
	}
}

/* Each argument list names the one before twice: 2^40 characters. */
static void a_name_that_doubles_ends(void **state)
{
	static char symbol[4096], buf[16384];
	size_t n = (size_t)snprintf(symbol, sizeof(symbol), "_ZN1BI1AIiiE");

	(void)state;
	for (unsigned int i = 0; i < 40; i++) {
		static const char digits[] =
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
		/* S_ is B, S0_ the template A, S1_ its first instance. */
		unsigned int last = i + 1;
		char ref[8];

		if (last < 36)
			snprintf(ref, sizeof(ref), "S%c_", digits[last]);
		else
			snprintf(ref, sizeof(ref), "S1%c_", digits[last - 36]);
		n += (size_t)snprintf(symbol + n, sizeof(symbol) - n,
				      "S0_I%s%sE", ref, ref);
	}
	strcpy(symbol + n, "E1fEv");
	wp_demangle(symbol, buf, sizeof(buf));
	assert_string_equal(buf, symbol);
	/* The pattern is right: a short one is expanded. */
	wp_demangle("_ZN1BI1AIiiES0_IS1_S1_EE1fEv", buf, sizeof(buf));
	assert_string_equal(buf,
			    "B<A<int, int>, A<A<int, int>, A<int, int> > >::f");
}

static void a_long_name_is_left_alone(void **state)
{
	enum { LEN = 100000 };
	char *symbol = malloc(LEN + 1);
	char buf[64];

	(void)state;
	memset(symbol, 'N', LEN);
	memcpy(symbol, "_Z", 2);
	symbol[LEN] = '\0';
	wp_demangle(symbol, buf, sizeof(buf));
	assert_int_equal(strlen(buf), sizeof(buf) - 1);
	assert_memory_equal(buf, symbol, sizeof(buf) - 1);
	free(symbol);
}

static void equal_strings_are_the_same_pointer(void **state)
{
	struct wp_strpool pool = WP_STRPOOL_INIT;
	const char *first = wp_strpool_add_str(&pool, "first");
	const char *v[5000];
	char text[16];

	(void)state;
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "name%u", i);
		v[i] = wp_strpool_add_str(&pool, text);
	}
	assert_ptr_equal(wp_strpool_add_str(&pool, "first"), first);
	assert_string_equal(first, "first");
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "name%u", i);
		assert_string_equal(v[i], text);
		assert_ptr_equal(wp_strpool_add_str(&pool, text), v[i]);
	}
	assert_ptr_equal(wp_strpool_add(&pool, "first!", 5), first);
	wp_strpool_clear(&pool);
}

static void strings_are_utf8(void **state)
{
	static const struct {
		const char *bytes, *want;
	} strings[] = {
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "\xe2\x82\xac", "\xe2\x82\xac" },
		{ "\xf0\x9f\xa6\x80", "\xf0\x9f\xa6\x80" },
		{ "caf\xe9", "caf?" },
		{ "\xc3", "?" },
		{ "\xc3z", "?z" },
		/* Overlong, a surrogate, beyond U+10FFFF. */
		{ "\xc0\xaf", "??" },
		{ "\xe0\x80\xaf", "???" },
		{ "\xed\xa0\x80", "???" },
		{ "\xf4\x90\x80\x80", "????" },
		{ "\xf0\x9f\xa6", "???" },
	};
	struct wp_strpool pool = WP_STRPOOL_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++) {
		size_t n = strlen(strings[i].bytes);
		char *exact = malloc(n);

		memcpy(exact, strings[i].bytes, n);
		assert_string_equal(wp_strpool_add(&pool, exact, n),
				    strings[i].want);
		free(exact);
	}
	wp_strpool_clear(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_as_a_person_wrote_them),
		cmocka_unit_test(what_does_not_fit_stays_mangled),
		cmocka_unit_test(a_name_that_doubles_ends),
		cmocka_unit_test(a_long_name_is_left_alone),
		cmocka_unit_test(equal_strings_are_the_same_pointer),
		cmocka_unit_test(strings_are_utf8),
	};

	return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}
