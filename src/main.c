/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - parse, run, exit. */
#include <stdio.h>

#include "cmd/cmd_dump.h"
#include "cmd/cmd_record.h"
#include "cmd/cmd_report.h"
#include "cmd/cmd_serve.h"
#include "cmd/cmd_timeout.h"
#include "cmd/exit_status.h"
#include "cmd/find_process.h"
#include "cmd/inherited.h"
#include "cmd/messages.h"
#include "cmd/options.h"
#include "cmd/privileges.h"
#include "cmd/signals.h"
#include "cmd/supervisor.h"
#include "wallprof/budget.h"
#include "wallprof/hash.h"
#include "wallprof/push.h"
#include "wallprof/serve.h"

/* Look at a process that runs, or a command, in the worker: to find a process by its
 * name is to read its memory, too. */
static int look(const struct wp_options *given)
{
	struct wp_options options = *given;
	struct wp_err err = WP_ERR_INIT;

	if (options.name && wp_find_process(&options.pid, options.name, &err)) {
		wp_say("wallprof: %s", err.msg);
		return WP_EXIT_NOTHING;
	}
	switch (options.action) {
	case WP_ACTION_DUMP:
		return wp_cmd_dump(&options);
	case WP_ACTION_CHECK:
		return wp_cmd_check(&options);
	default:
		return wp_cmd_record(&options);
	}
}

static int run(const struct wp_options *options)
{
	/* A command that is to be ended in time is run in any case. */
	if (options->action != WP_ACTION_RUN && !wp_limits_suffice())
		return WP_EXIT_NOTHING;
	switch (options->action) {
	case WP_ACTION_RUN:
		return wp_cmd_timeout(options);
	case WP_ACTION_REPORT:
		return wp_cmd_report(options);
	case WP_ACTION_DIFF:
		return wp_cmd_diff(options);
	case WP_ACTION_SERVE:
		return wp_cmd_serve(options);
	default:
		return wp_supervise(look, options);
	}
}

static int answer(const struct wp_options *options)
{
	if (options->ask == WP_ASK_NOTHING) {
		wp_help_print_usage(stderr);
		return WP_EXIT_USAGE;
	}
	if (options->ask == WP_ASK_HELP)
		wp_help_print(stdout, options->action_given ? options->action :
							      WP_NACTIONS);
	else
		printf("wallprof " WP_VERSION "%s\n",
		       !wp_serve_is_there() ?
			       " (without serve: no libmicrohttpd)" :
		       !wp_push_is_there() ?
			       " (without serve --push: no libcurl)" :
			       "");
	return fflush(stdout) ? WP_EXIT_NOTHING : WP_EXIT_WHOLE;
}

int main(int argc, char **argv)
{
	struct wp_options options;
	struct wp_err err = WP_ERR_INIT;

	wp_inherited_mend();
	wp_hash_draw_key();
	if (wp_privileges_drop(&err)) {
		wp_say("wallprof: %s", err.msg);
		return WP_EXIT_NOTHING;
	}
	if (wp_options_parse(&options, argc, argv, &err)) {
		wp_say("wallprof: %s (wallprof --help tells more)", err.msg);
		return WP_EXIT_USAGE;
	}
	if (options.ask != WP_ASK_ACTION)
		return answer(&options);
	if (options.max_memory)
		wp_budget_set(options.max_memory);
	return run(&options);
}
