/* SPDX-License-Identifier: Apache-2.0 */
/* help.c - see options.h: the text of --help. */
#include <string.h>

#include "option_table.h"

enum {
	/* Columns before the text of an option, and of a command. */
	OPTION_COLUMNS = 25,
	COMMAND_COLUMNS = 9,
};

/* Print TEXT, its further lines below its first, which is in column COLUMNS. */
static void print_lines(FILE *out, const char *text, int columns)
{
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");

		if (line != text)
			fprintf(out, "%*s", columns, "");
		fprintf(out, "%.*s\n", (int)n, line);
		line += n + (line[n] == '\n');
	}
}

static void print_option(FILE *out, const struct wp_option_row *row)
{
	int n = row->id < WP_OPT_THREADS ?
			fprintf(out, "  -%c, --%s", row->id, row->name) :
			fprintf(out, "      --%s", row->name);

	if (row->value)
		n += fprintf(out, "%s%s", *row->value == '[' ? "" : " ",
			     row->value);
	if (n < OPTION_COLUMNS)
		fprintf(out, "%*s", OPTION_COLUMNS - n, "");
	else
		fprintf(out, "\n%*s", OPTION_COLUMNS, "");
	print_lines(out, row->help, OPTION_COLUMNS);
}

static void print_section(FILE *out, enum wp_option_section section,
			  unsigned int commands)
{
	bool any = false;

	for (size_t i = 0; i < wp_noption_rows; i++) {
		const struct wp_option_row *row = &wp_option_rows[i];

		if (row->section != section || !(row->commands & commands))
			continue;
		if (!any)
			fprintf(out, "\n%s\n", wp_option_section_name(section));
		any = true;
		print_option(out, row);
	}
}

static void print_sections(FILE *out, unsigned int commands)
{
	for (int i = 0; i < WP_NSECTIONS; i++)
		print_section(out, (enum wp_option_section)i, commands);
}

/* The statuses that COMMANDS can end with. */
static void print_statuses(FILE *out, unsigned int commands)
{
	static const struct {
		unsigned int commands;
		const char *text;
	} rows[] = {
		{ 1u << WP_ACTION_RECORD | 1u << WP_ACTION_LEAKS,
		  "record, leaks: 0 recorded; 1 recorded, but over 10 % of the wall time, or of the\n"
		  "CPU time, have no whole stack, or over half of the ticks were missed; 2 nothing\n"
		  "recorded.\n" },
		{ 1u << WP_ACTION_DUMP,
		  "dump: 0 dumped; 1 over a tenth of the threads have no whole stack; 2 not.\n" },
		{ 1u << WP_ACTION_CHECK,
		  "check: 0 healthy or idle, 3 deadlock, 4 no progress, 2 not known.\n" },
		{ 1u << WP_ACTION_RUN,
		  "run: COMMAND's own, 128 + N when signal N ended it, 124 when its time was up,\n"
		  "137 when it took SIGKILL to end it then; 125 wallprof failed, 126 COMMAND could\n"
		  "not be run, 127 it was not found.\n" },
		{ 1u << WP_ACTION_SERVE,
		  "serve: 0 ended by a signal; 2 it could not serve, or nothing is left to.\n" },
		{ 1u << WP_ACTION_TOP | 1u << WP_ACTION_REPORT |
			  1u << WP_ACTION_DIFF,
		  "top, report, diff: 0; 2 there was nothing to show.\n" },
	};

	fputs("\nExit status (64: wrong usage)\n", out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].commands & commands)
			fputs(rows[i].text, out);
}

static void print_all(FILE *out)
{
	fputs("wallprof - what is this process doing, and what is it waiting for?\n"
	      "\n"
	      "usage: wallprof [COMMAND] [OPTION...] PID | NAME | -- COMMAND ARG...\n"
	      "\n"
	      "Samples every thread of a process by wall clock, running or waiting, and\n"
	      "shows where its time goes.  Ctrl-C ends a recording early; it is written.\n"
	      "\n"
	      "Commands (wallprof COMMAND --help: their options)\n",
	      out);
	for (size_t i = 0; i < wp_ncommand_rows; i++)
		fprintf(out, "  %-*s%s\n", COMMAND_COLUMNS - 2,
			wp_command_rows[i].name, wp_command_rows[i].help);
	print_sections(out, UINT32_MAX);
	print_statuses(out, UINT32_MAX);
}

void wp_help_print(FILE *out, enum wp_action action)
{
	const struct wp_command_row *row = wp_command_of(action);
	const char *line;

	if (!row) {
		print_all(out);
		return;
	}
	fprintf(out, "wallprof %s - %s\n\nusage: wallprof %s %s\n", row->name,
		row->help, row->name, row->operands);
	for (line = row->examples; *line; line += strcspn(line, "\n") + 1)
		fprintf(out, "  %.*s\n", (int)strcspn(line, "\n"), line);
	print_sections(out, 1u << action);
	print_statuses(out, 1u << action);
}

void wp_help_print_usage(FILE *out)
{
	fputs("usage: wallprof [COMMAND] [OPTION...] PID | NAME | -- COMMAND ARG...\n"
	      "  wallprof 4711                   record until Ctrl-C, print where time goes\n"
	      "  wallprof redis-server -d 30 -o out.html   30 s of it, as a page to look at\n"
	      "  wallprof -o out.html -- make    start a command and record it\n"
	      "  wallprof dump 4711              every thread: its stack, what it waits for\n"
	      "  wallprof check 4711             hung, or merely idle?\n"
	      "  wallprof top 4711               threads live on the terminal\n"
	      "  wallprof run 60 make test       like timeout(1); a hang leaves a dump\n"
	      "  wallprof report out.pb.gz       look at a saved profile; diff: at two\n"
	      "wallprof --help tells all; wallprof COMMAND --help tells about one\n",
	      out);
}
