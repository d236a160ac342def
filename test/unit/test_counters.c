/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: output.  The counters of a recording as lines: none is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "../../src/output/buf.h"
#include "profile_maker.h"
#include "wallprof/output.h"

static struct wp_profile p;
/* The lines, each with a newline. */
static struct wp_buf lines;

static int setup(void **state)
{
	(void)state;
	return wp_profile_init(&p);
}

static int teardown(void **state)
{
	(void)state;
	wp_profile_clear(&p);
	wp_buf_clear(&lines);
	lines = (struct wp_buf)WP_BUF_INIT;
	return 0;
}

static void take(void *ctx, const char *line)
{
	(void)ctx;
	wp_buf_printf(&lines, "%s\n", line);
}

static void make_lines(void)
{
	wp_profile_add_up(&p);
	wp_counters_lines(&p, WP_PROFILE_WALL, take, NULL);
	wp_buf_char(&lines, '\0');
	assert_int_equal(lines.rc, 0);
}

/* Whether TEXT is in a line called NAME. */
static bool is_in_line(const char *name, const char *text)
{
	size_t len = strlen(name);
	const char *line = lines.data;

	for (; *line; line = strchr(line, '\n') + 1) {
		const char *found = strstr(line, text);

		if (!strncmp(line, name, len) && found &&
		    found < strchr(line, '\n'))
			return true;
	}
	return false;
}

static void all_losses_are_told(void **state)
{
	char why[300];

	(void)state;
	memset(why, 'x', sizeof(why));
	strcpy(why + sizeof(why) - sizeof("its end"), "its end");
	p.counters.samples_lost = p.counters.processes_lost =
		p.counters.processes_denied = p.counters.threads_lost =
			p.counters.kernel_denied = p.counters.inconsistent =
				p.counters.files_unopened =
					p.counters.files_lineless =
						p.counters.unnamed = 123456;
	p.meta.unnamed_why = mk_str(&p, why);
	p.meta.lineless_why = mk_str(&p, "no lines");
	p.meta.no_servers = mk_str(&p, "no server");
	make_lines();
	assert_true(is_in_line("lost: ", "123456 samples could not be taken"));
	assert_true(is_in_line("lost: ", "(no lines)"));
	assert_true(is_in_line("lost: ", "xits end"));
	assert_true(is_in_line("lost: ", "debug files: no server"));
}

static void all_ends_of_stacks_are_told(void **state)
{
	static const uint64_t pcs[] = { 0x10, 0 };

	(void)state;
	for (unsigned int i = 0; i < WP_NSTACK_ENDS; i++)
		mk_sample(&p, mk_thread(&p, (int32_t)i + 1, "t"),
			  mk_stack(&p, pcs, (enum wp_stack_end)i, 0),
			  WP_STATE_WAITING, WP_WAIT_LOCK, "", 1, 1000);
	make_lines();
	for (unsigned int i = 0; i < WP_NSTACK_ENDS; i++) {
		const char *text = wp_stack_end_text((enum wp_stack_end)i);

		/* A worker of the kernel's has no stack to lack. */
		if (i != WP_END_ROOT && i != WP_END_WORKER)
			assert_true(is_in_line("stacks: ", text));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_losses_are_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(all_ends_of_stacks_are_told,
						setup, teardown),
	};

	return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
