/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line.
 *
 * Layer: cmd.
 */
#ifndef WP_OPTIONS_H
#define WP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/output.h"
#include "wallprof/sampler.h"

enum {
	WP_FILES_MAX = 2,
	WP_PIDS_MAX = 1000,
	/* Processes that serve records each by itself. */
	WP_SERVED_MAX = 64,
	WP_WORDS_MAX = 64,
	WP_LISTENS_MAX = 4,
	WP_CHOSEN_MAX = 16,
	WP_AVOIDED_MAX = 64,
};

/* A process, by its pid and when it started (wp_proc_stat.start_time). */
struct wp_avoided {
	pid_t pid;
	uint64_t start_time;
};

enum wp_action {
	WP_ACTION_RECORD,
	/* Dump every thread once. */
	WP_ACTION_DUMP,
	/* Take two snapshots and say whether the process hangs. */
	WP_ACTION_CHECK,
	/* Run a command, and dump it when its time is up. */
	WP_ACTION_RUN,
	/* Show the threads of a process while they run. */
	WP_ACTION_TOP,
	/* Print a saved profile; two. */
	WP_ACTION_REPORT,
	WP_ACTION_DIFF,
	/* Record in the background, and answer by HTTP. */
	WP_ACTION_SERVE,
	/* Record what is allocated and not freed; until the options are checked,
	 * from then on it is RECORD. */
	WP_ACTION_LEAKS,
	WP_NACTIONS
};

/* What is asked for beside an action, or instead of it. */
enum wp_ask {
	WP_ASK_ACTION,
	/* The options, of the action if one is named. */
	WP_ASK_HELP,
	WP_ASK_VERSION,
	/* Nothing was: there were no arguments. */
	WP_ASK_NOTHING,
};

struct wp_options {
	enum wp_action action;
	/* A command was named, by its word or its option. */
	bool action_given;
	enum wp_ask ask;
	/* pids[0], 0: NAME or COMMAND is given, or FILES. */
	pid_t pid;
	/* All processes that were named by their pids, each once. */
	pid_t pids[WP_PIDS_MAX];
	size_t npids;
	/* Of serve: those that were asked for, too, and are not among them. */
	size_t nleft_out;
	/* Those that have ended are none of them. */
	bool pids_may_end;
	/* Record processes that these start, and with TREE those that they have
	 * started, too. */
	bool children;
	bool tree;
	/* Record all processes whose name matches one of GLOBS, that are in one of
	 * CGROUPS, or all there are, and those that will be; NULL: no more; borrowed
	 * from argv. */
	const char *globs[WP_CHOSEN_MAX];
	const char *cgroups[WP_CHOSEN_MAX];
	bool all;
	/* Of a process (find_process.h); borrowed from argv; NULL: not given. */
	const char *name;
	/* NULL-ended, borrowed from argv; NULL: not given. */
	char **command;
	/* Saved profiles, [0..nfiles), borrowed from argv. */
	const char *files[WP_FILES_MAX];
	size_t nfiles;
	/* 0: until the target ends or Ctrl-C. */
	uint64_t duration_ns;
	/* Bytes that the target can make wallprof take; 0: the default. */
	size_t max_memory;
	/* NULL: the text report on standard output; "-": standard output. */
	const char *output;
	enum wp_format format;
	/* Most bytes of the timeline, which is kept with sampler.note_holders:
	 * FORMAT shows it, or --timeline. */
	size_t timeline_size;
	/* Print the text report beside writing OUTPUT. */
	bool report;
	/* Text report: prune nothing. */
	bool full;
	bool quiet;
	bool verbose;
	/* Dump: print identical stacks once; print peers. */
	bool group;
	bool follow_processes;
	/* Time between the two snapshots of a check. */
	uint64_t look_interval_ns;
	/* Time limit of the command (0: none), and time from SIGTERM to
	 * SIGKILL. */
	uint64_t timeout_ns;
	uint64_t kill_after_ns;
	/* Most time that the dump of a command may take; 0: no dump. */
	uint64_t dump_time_ns;
	/* End the command at once when it is in a deadlock. */
	bool exit_on_deadlock;
	/* Ask the servers of $DEBUGINFOD_URLS for debug files. */
	bool debuginfod;
	/* Keep the names of functions for the next time. */
	bool keeps_names;
	/* serve: processes on which a recorder got stuck, which are left alone:
	 * [0..navoided). */
	struct wp_avoided avoided[WP_AVOIDED_MAX];
	size_t navoided;
	/* serve: the processes that are named by name, [0..nserved); where to listen,
	 * [0..nlisten); the file of the token, NULL: none; borrowed from argv.  How
	 * much time to keep. */
	const char *served[WP_WORDS_MAX];
	size_t nserved;
	const char *listen[WP_LISTENS_MAX];
	size_t nlisten;
	const char *token_file;
	uint64_t keep_ns;
	/* serve: the collector, borrowed from argv, NULL: none; and the time of each
	 * profile for it. */
	const char *push;
	/* The file with "USER:PASSWORD" or a token for it, borrowed from argv, NULL:
	 * none. */
	const char *push_auth;
	/* serve: where files of hangs go, borrowed from argv, NULL: nowhere; and what
	 * is one beside the verdict of a check, each 0: nothing. */
	const char *on_hang;
	uint32_t hang_lock;
	uint64_t hang_idle_ns;
	uint64_t hang_runnable_ns;
	uint64_t push_interval_ns;
	/* Kinds of profile to write, bits 1 << enum wp_profile_kind. */
	unsigned int kinds;
	struct wp_sampler_options sampler;
};

/* Parse ARGV into *RET, which borrows from it.  0, or -EINVAL with ERR. */
WP_MUST_CHECK
int wp_options_parse(struct wp_options *ret, int argc, char **argv,
		     struct wp_err *err);

/* Print the commands and options, of ACTION only unless it is WP_NACTIONS, to OUT. */
void wp_help_print(FILE *out, enum wp_action action);
/* Print how to begin, ten lines. */
void wp_help_print_usage(FILE *out);

#endif
