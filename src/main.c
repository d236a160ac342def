/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - parse, run, exit. */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd_dump.h"
#include "cmd/cmd_record.h"
#include "cmd/cmd_report.h"
#include "cmd/cmd_timeout.h"
#include "cmd/exit_status.h"
#include "cmd/inherited.h"
#include "cmd/messages.h"
#include "cmd/options.h"
#include "cmd/privileges.h"
#include "cmd/supervisor.h"
#include "wallprof/budget.h"

int main(int argc, char **argv)
{
	struct wp_options options;
	struct wp_err err = WP_ERR_INIT;

	wp_inherited_mend();
	if (wp_privileges_drop(&err)) {
		wp_say("wallprof: %s", err.msg);
		return WP_EXIT_NOTHING;
	}
	if (argc > 1 && !strcmp(argv[1], "report"))
		return wp_cmd_report(argc - 1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "diff"))
		return wp_cmd_diff(argc - 1, argv + 1);
	if (wp_options_parse(&options, argc, argv, &err)) {
		fprintf(stderr, "wallprof: %s (wallprof --help tells more)\n",
			err.msg);
		return WP_EXIT_USAGE;
	}
	if (options.max_memory)
		wp_budget_set(options.max_memory);
	switch (options.action) {
	case WP_ACTION_HELP:
		fputs(wp_options_help, stdout);
		break;
	case WP_ACTION_VERSION:
		puts("wallprof " WP_VERSION);
		break;
	case WP_ACTION_RECORD:
		return wp_supervise(wp_cmd_record, &options);
	case WP_ACTION_THREADS:
		return wp_supervise(wp_cmd_dump, &options);
	case WP_ACTION_CHECK:
		return wp_supervise(wp_cmd_check, &options);
	case WP_ACTION_TIMEOUT:
		return wp_cmd_timeout(&options);
	}
	return fflush(stdout) ? WP_EXIT_NOTHING : WP_EXIT_WHOLE;
}
