/* SPDX-License-Identifier: Apache-2.0 */
/* option_table.h - the commands and options of wallprof, which the parser, --help,
 * the completions and the man page's lists are made of.
 *
 * Layer: cmd.
 */
#ifndef WP_OPTION_TABLE_H
#define WP_OPTION_TABLE_H

#include <stddef.h>

#include "options.h"

/* What an option is known by in the table: its letter, or one of these. */
enum wp_option_id {
	WP_OPT_THREADS = 256,
	WP_OPT_CHECK,
	WP_OPT_TIMEOUT,
	WP_OPT_KILL_AFTER,
	WP_OPT_DUMP_TIME,
	WP_OPT_ON_DEADLOCK,
	WP_OPT_GROUP,
	WP_OPT_FOLLOW,
	WP_OPT_PROFILE,
	WP_OPT_BLOCK_RATE,
	WP_OPT_HEAP_RATE,
	WP_OPT_MAX_OVERHEAD,
	WP_OPT_HEAP_ANYWAY,
	WP_OPT_HEAP_LARGE,
	WP_OPT_HEAP_CENSUS,
	WP_OPT_HEAP_PROBE,
	WP_OPT_TIMELINE,
	WP_OPT_TIMELINE_SIZE,
	WP_OPT_REPORT,
	WP_OPT_FULL,
	WP_OPT_STOP,
	WP_OPT_SCAN,
	WP_OPT_MAX_STOPPED,
	WP_OPT_MAX_CPU,
	WP_OPT_MAX_MEMORY,
	WP_OPT_MAX_DEPTH,
	WP_OPT_DEBUGINFOD,
	WP_OPT_NO_CACHE,
	WP_OPT_OWN_THREADS,
	WP_OPT_UNWINDER,
	WP_OPT_CHILDREN,
	WP_OPT_TREE,
	WP_OPT_NAME,
	WP_OPT_CGROUP,
	WP_OPT_ALL,
	WP_OPT_LISTEN,
	WP_OPT_TOKEN_FILE,
	WP_OPT_KEEP,
	WP_OPT_PUSH,
	WP_OPT_PUSH_AUTH,
	WP_OPT_PUSH_INTERVAL,
	WP_OPT_THREADS_OF_GO,
	WP_OPT_GOROUTINE_IDS,
	WP_OPT_ON_HANG,
	WP_OPT_HANG_WHEN,
};

#define WP_OPTION_SECTIONS(X)                                                  \
	X(WHAT, "What to look at")                                             \
	X(OUTPUT, "What to write")                                             \
	X(HANG, "When a process hangs")                                        \
	X(SERVE, "How to serve")                                               \
	X(HOW, "How to sample")                                                \
	X(OTHER, "Other")

enum wp_option_section {
#define X(name, text) WP_SECTION_##name,
	WP_OPTION_SECTIONS(X)
#undef X
		WP_NSECTIONS
};

/* One option; a letter or name may stand in two rows for two commands. */
struct wp_option_row {
	/* A letter, or an enum wp_option_id without one. */
	int id;
	const char *name;
	/* What it takes, as "TIME"; "[=X]" may be left out; NULL: nothing. */
	const char *value;
	/* The commands that have it, bits 1 << enum wp_action. */
	unsigned int commands;
	enum wp_option_section section;
	/* The values there are, parted by blanks; NULL: any. */
	const char *words;
	/* For --help: what it does, lines parted by newlines. */
	const char *help;
	/* What the man page says instead; `x` is literal, an empty line begins a
	 * paragraph.  NULL: HELP. */
	const char *more;
};

struct wp_command_row {
	const char *name;
	enum wp_action action;
	/* What follows the word, for the usage line. */
	const char *operands;
	const char *help;
	/* Lines "wallprof ...", each with its newline. */
	const char *examples;
};

/* [0..wp_noption_rows), [0..wp_ncommand_rows). */
extern const struct wp_option_row wp_option_rows[];
extern const size_t wp_noption_rows;
extern const struct wp_command_row wp_command_rows[];
extern const size_t wp_ncommand_rows;

/* Heading of SECTION. */
const char *wp_option_section_name(enum wp_option_section section);

/* The command called WORD, or of ACTION; NULL: none. */
const struct wp_command_row *wp_command_find(const char *word);
const struct wp_command_row *wp_command_of(enum wp_action action);

/* The command whose name is nearest to WORD, if it is near. */
const struct wp_command_row *wp_command_near(const char *word);
/* The option of ACTION whose name is nearest to NAME[0..n), else of any command. */
const struct wp_option_row *wp_option_near(const char *name, size_t n,
					   enum wp_action action);

#endif
