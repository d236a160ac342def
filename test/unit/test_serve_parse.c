/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: serve.  What URLs, hosts and tokens mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "wallprof/serve.h"

/* "seconds=5&debug=1", as it was decoded. */
static const char *get(void *ctx, const char *key)
{
	static char values[8][256];
	static unsigned int turn;
	char *value = values[turn++ % 8];
	size_t n = strlen(key);

	for (const char *p = ctx; p && *p;
	     p = strchr(p, '&') ? strchr(p, '&') + 1 : NULL)
		if (!strncmp(p, key, n) && p[n] == '=') {
			snprintf(value, sizeof(values[0]), "%.*s",
				 (int)strcspn(p + n + 1, "&"), p + n + 1);
			return value;
		}
	return NULL;
}

static struct wp_serve_ask ask;
static char text[WP_SERVE_TEXT_SIZE];

static bool is_head;

static unsigned int parse(const char *path, const char *arguments)
{
	const struct wp_serve_query query = { path, get,
					      (void *)(uintptr_t)arguments,
					      is_head };

	memset(&ask, 0xee, sizeof(ask));
	return wp_serve_parse(&ask, &query, text);
}

/* What HEAD of these would take, nobody got. */
static void head_takes_no_difference(void **state)
{
	(void)state;
	is_head = true;
	assert_int_equal(parse("/debug/pprof/block", ""), 0);
	assert_int_equal(parse("/debug/pprof/delta_block", ""), 405);
	assert_int_equal(parse("/debug/pprof/delta_mutex", "seconds=5"), 405);
	is_head = false;
	assert_int_equal(parse("/debug/pprof/delta_mutex", ""), 0);
}

static void defaults_are_those_of_go(void **state)
{
	(void)state;
	assert_int_equal(parse("/debug/pprof/profile", ""), 0);
	assert_int_equal(ask.endpoint, WP_SERVE_PROFILE);
	assert_int_equal(ask.seconds, 30);
	assert_int_equal(parse("/debug/fgprof", "seconds=5"), 0);
	assert_int_equal(ask.seconds, 5);
	assert_int_equal(parse("/debug/pprof/block", ""), 0);
	assert_int_equal(ask.seconds, 0);
	assert_int_equal(parse("/debug/pprof/block", "debug=1"), 0);
	assert_int_equal(ask.debug, 1);
	assert_int_equal(parse("/debug/pprof", ""), 0);
	assert_int_equal(ask.endpoint, WP_SERVE_INDEX);
	assert_int_equal(parse("/timeline.html", ""), 0);
	assert_int_equal(ask.ago, 60);
	assert_int_equal(ask.seconds, 60);
	/* From then on, but no longer than any other time. */
	assert_int_equal(parse("/timeline.html", "ago=7200"), 0);
	assert_int_equal(ask.ago, 7200);
	assert_int_equal(ask.seconds, WP_SERVE_SECONDS_MAX);
	assert_int_equal(
		parse("/debug/pprof/wall", "seconds=60&ago=300&pid=7&name=x"),
		0);
	assert_int_equal(ask.ago, 300);
	assert_int_equal(ask.pid, 7);
	assert_string_equal(ask.name, "x");
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *path, *arguments;
		unsigned int status;
		const char *says;
	} cases[] = {
		{ "/debug/pprof/block", "seconds=1&debug=1", 400,
		  "incompatible" },
		{ "/debug/pprof/profile", "seconds=0", 400, "positive" },
		{ "/debug/pprof/profile", "seconds=-1", 400, "positive" },
		{ "/debug/pprof/profile", "seconds=1e3", 400, "positive" },
		{ "/debug/pprof/profile", "seconds=99999", 400, "at most" },
		{ "/debug/pprof/profile", "seconds=99999999999999999999", 400,
		  "at most" },
		{ "/debug/pprof/goroutine", "seconds=5", 400, "not supported" },
		{ "/debug/pprof/goroutine", "debug=3", 400, "debug" },
		{ "/debug/pprof/block", "ago=5", 400, "ago" },
		{ "/debug/pprof/wall", "ago=x", 400, "ago" },
		{ "/metrics", "pid=0", 400, "pid" },
		{ "/metrics", "pid=../1", 400, "pid" },
		{ "/debug/pprof/nothing", "", 404, "Unknown profile" },
		{ "/debug/pprof/../../etc/passwd", "", 404, "Unknown" },
		{ "//", "", 404, "not found" },
		{ "push/", "", 404, "not found" },
		{ "cancel/", "", 404, "not found" },
		{ "", "", 404, "not found" },
		{ "/metrics/", "", 404, "not found" },
	};
	char name[200] = "name=";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parse(cases[i].path, cases[i].arguments),
				 cases[i].status);
		assert_non_null(strstr(text, cases[i].says));
	}
	memset(name + 5, 'a', 100);
	assert_int_equal(parse("/metrics", name), 400);
}

static void a_name_that_may_point_here_is_no_host(void **state)
{
	static const char *const ours[] = { "localhost",   "LocalHost:6060",
					    "127.0.0.1:1", "[::1]:6060",
					    "box",	   "box:80" };
	static const char *const others[] = {
		"evil.example",	   "localhost.evil", "127.0.0.1.evil:80", "",
		"localhost:6060x", "[::1",	     "localhost:",	  ":80",
		"0x7f.1"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		assert_true(wp_serve_host_is_ours(ours[i], "box"));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(wp_serve_host_is_ours(others[i], "box"));
	assert_false(wp_serve_host_is_ours(NULL, "box"));
}

static void only_the_whole_token_is_right(void **state)
{
	static const char token[] = "0123456789abcdef";

	(void)state;
	assert_true(wp_serve_token_is_right("Bearer 0123456789abcdef", token));
	assert_true(wp_serve_token_is_right("bearer 0123456789abcdef", token));
	assert_false(wp_serve_token_is_right("Bearer 0123456789abcdeF", token));
	assert_false(wp_serve_token_is_right("Bearer 0123456789abcde", token));
	assert_false(
		wp_serve_token_is_right("Bearer 0123456789abcdef ", token));
	assert_false(wp_serve_token_is_right("Basic 0123456789abcdef", token));
	assert_false(wp_serve_token_is_right("", token));
	assert_false(wp_serve_token_is_right(NULL, token));
	assert_false(wp_serve_token_is_right("Bearer ", ""));
}

static void pages_of_others_may_only_link_here(void **state)
{
	(void)state;
	assert_true(wp_serve_site_is_ours(NULL, NULL, NULL));
	assert_true(wp_serve_site_is_ours("none", "navigate", "document"));
	assert_true(wp_serve_site_is_ours("same-origin", "cors", "empty"));
	assert_true(
		wp_serve_site_is_ours("cross-site", "navigate", "document"));
	assert_false(wp_serve_site_is_ours("cross-site", "navigate", "iframe"));
	assert_false(wp_serve_site_is_ours("cross-site", "no-cors", "image"));
	assert_false(wp_serve_site_is_ours("same-site", "no-cors", "document"));
	assert_false(wp_serve_site_is_ours("cross-site", NULL, NULL));
	assert_false(wp_serve_site_is_ours("", "", ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_takes_no_difference),
		cmocka_unit_test(defaults_are_those_of_go),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(a_name_that_may_point_here_is_no_host),
		cmocka_unit_test(only_the_whole_token_is_right),
		cmocka_unit_test(pages_of_others_may_only_link_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
