/* SPDX-License-Identifier: Apache-2.0 */
/* options.c - see options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "option_check.h"
#include "option_table.h"
#include "option_values.h"
#include "wallprof/clock.h"
#include "wallprof/enum_name.h"

enum {
	HEAP_RATE = 512 << 10,
	TIMELINE_MIB = 64,
	OWN_THREADS = 30000,
	MAX_DEPTH = 65536,
	/* At most so many rows have the table. */
	ROWS_MAX = 63,
};

static const char *const format_names[] = { WP_FORMATS(WP_ENUM_TEXT) };
static const char *const stop_names[] = { WP_STOP_MODES(WP_ENUM_TEXT) };

static const char *const scan_names[] = {
	[WP_SCAN_AUTO] = "auto",
	[WP_SCAN_BPF] = "bpf",
	[WP_SCAN_PROC] = "proc",
	[WP_SCAN_SWITCHES] = "switches",
};

/* WORD, an option or a command, asks for ACTION. */
static int set_action(struct wp_option_parse *p, enum wp_action action,
		      const char *word, struct wp_err *err)
{
	if (p->action_word && p->o.action != action)
		return wp_err_set(err, -EINVAL, "%s and %s: give one of them",
				  p->action_word, word);
	p->o.action = action;
	p->o.action_given = true;
	p->action_word = word;
	return 0;
}

static int parse_hang_option(struct wp_option_parse *p, int c, const char *arg,
			     struct wp_err *err)
{
	static const char *const on_deadlock[] = { "exit", "wait" };
	struct wp_options *o = &p->o;
	int rc;

	switch (c) {
	case WP_OPT_THREADS:
		if (arg && strcmp(arg, "dump"))
			return wp_err_set(err, -EINVAL,
					  "--threads knows "
					  "\"dump\", not \"%s\"",
					  arg);
		return set_action(p, WP_ACTION_DUMP, "--threads", err);
	case WP_OPT_CHECK:
		return set_action(p, WP_ACTION_CHECK, "--check", err);
	case WP_OPT_TIMEOUT:
		if (o->action == WP_ACTION_RUN && p->first_word)
			return wp_err_set(err, -EINVAL,
					  "the time is given twice: as `run "
					  "TIME`, and by --timeout %s",
					  arg);
		rc = set_action(p, WP_ACTION_RUN, "--timeout", err);
		return rc ? rc :
			    wp_option_duration(&o->timeout_ns, "--timeout", arg,
					       err);
	case WP_OPT_KILL_AFTER:
		return wp_option_duration(&o->kill_after_ns, "--kill-after",
					  arg, err);
	case WP_OPT_DUMP_TIME:
		return wp_option_duration(&o->dump_time_ns, "--dump-time", arg,
					  err);
	case WP_OPT_ON_DEADLOCK:
		rc = wp_option_word("--on-deadlock", arg, on_deadlock, 2, err);
		o->exit_on_deadlock = rc == 0;
		return rc < 0 ? rc : 0;
	case WP_OPT_GROUP:
		o->group = true;
		return 0;
	case WP_OPT_FOLLOW:
		o->follow_processes = true;
		return 0;
	default:
		return wp_option_serve(o, c, arg, err);
	}
}

/* Put WORD behind those in LIST[0..MAX). */
static int add_word(const char **list, size_t max, const char *option,
		    const char *word, struct wp_err *err)
{
	if (!*word)
		return wp_err_set(err, -EINVAL, "%s wants a word", option);
	for (size_t i = 0; i < max; i++) {
		if (list[i])
			continue;
		list[i] = word;
		return 0;
	}
	return wp_err_set(err, -EINVAL, "%s is given more than %zu times",
			  option, max);
}

/* Of -r and -i, which both tell the interval, the last counts. */
static int parse_sampler_option(struct wp_option_parse *p, int c,
				const char *arg, struct wp_err *err)
{
	static const char *const unwinders[] = { "rows", "libunwind" };
	struct wp_sampler_options *s = &p->o.sampler;
	int rc;

	switch (c) {
	case 'r':
	case 'F':
		p->interval = NULL;
		return wp_option_rate(&s->interval_ns, arg, err);
	case 'i':
		p->interval = arg;
		return 0;
	case 't':
		return add_word(s->thread_globs, WP_THREAD_GLOBS_MAX, "-t", arg,
				err);
	case 'k':
		s->kernel = true;
		return 0;
	case WP_OPT_STOP:
		rc = wp_option_word("--stop", arg, stop_names, WP_NSTOP_MODES,
				    err);
		s->stop = (enum wp_stop_mode)(rc < 0 ? 0 : rc);
		return rc < 0 ? rc : 0;
	case WP_OPT_SCAN:
		rc = wp_option_word("--scan", arg, scan_names, WP_NSCAN_MODES,
				    err);
		s->scan = (enum wp_scan_mode)(rc < 0 ? 0 : rc);
		return rc < 0 ? rc : 0;
	case WP_OPT_HEAP_RATE:
	case WP_OPT_MAX_OVERHEAD:
	case WP_OPT_HEAP_ANYWAY:
	case WP_OPT_HEAP_LARGE:
	case WP_OPT_HEAP_PROBE:
		return wp_option_heap(s, c, arg, err);
	case WP_OPT_HEAP_CENSUS:
		s->heap_census = true;
		return 0;
	case WP_OPT_MAX_STOPPED:
		return wp_option_share(&s->max_stopped, "--max-stopped", arg,
				       err);
	case WP_OPT_MAX_CPU:
		return wp_option_share(&s->max_cpu, "--max-cpu", arg, err);
	case WP_OPT_MAX_MEMORY:
		return wp_option_size(&p->o.max_memory, "--max-memory", arg,
				      err);
	case WP_OPT_MAX_DEPTH:
		return wp_option_number(&s->max_depth, "--max-depth", arg,
					MAX_DEPTH, err);
	case WP_OPT_OWN_THREADS:
		return wp_option_number(&s->own_threads, "--own-threads", arg,
					INT32_MAX, err);
	case WP_OPT_UNWINDER:
		rc = wp_option_word("--unwinder", arg, unwinders, 2, err);
		s->backend = rc == 1 ? WP_UNWIND_LIBUNWIND : WP_UNWIND_ROWS;
		return rc < 0 ? rc : 0;
	default:
		return parse_hang_option(p, c, arg, err);
	}
}

static int parse_pid(struct wp_options *o, const char *arg, struct wp_err *err)
{
	if (o->action == WP_ACTION_SERVE)
		return wp_option_serve(o, 'p', arg, err);
	if (o->name)
		return wp_err_set(err, -EINVAL,
				  "\"%s\" and -p %s: one process at a "
				  "time (a command goes after --)",
				  o->name, arg);
	return wp_option_pids(o, "-p", arg, err);
}

/* Which processes besides. */
static int parse_which(struct wp_option_parse *p, int c, const char *arg,
		       struct wp_err *err)
{
	struct wp_options *o = &p->o;

	switch (c) {
	case WP_OPT_CHILDREN:
		o->children = true;
		return 0;
	case WP_OPT_TREE:
		if (o->name)
			return wp_err_set(err, -EINVAL,
					  "\"%s\" and --tree %s: give the PID "
					  "of the first, too",
					  o->name, arg);
		o->children = o->tree = true;
		return wp_option_pids(o, "--tree", arg, err);
	case WP_OPT_NAME:
		return add_word(o->globs, WP_CHOSEN_MAX, "--name", arg, err);
	case WP_OPT_CGROUP:
		return add_word(o->cgroups, WP_CHOSEN_MAX, "--cgroup", arg,
				err);
	case WP_OPT_ALL:
		o->all = true;
		return 0;
	default:
		return parse_sampler_option(p, c, arg, err);
	}
}

static int parse_option(struct wp_option_parse *p, int c, const char *arg,
			struct wp_err *err)
{
	struct wp_options *o = &p->o;

	switch (c) {
	case 'p':
		return parse_pid(o, arg, err);
	case 'd':
		return wp_option_duration(&o->duration_ns, "-d", arg, err);
	case 'o':
		o->output = arg;
		return 0;
	case 'f':
		p->format = wp_option_word("-f", arg, format_names, WP_NFORMATS,
					   err);
		return p->format < 0 ? p->format : 0;
	case 'q':
		o->quiet = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case WP_OPT_TIMELINE:
		o->sampler.note_holders = true;
		return 0;
	case WP_OPT_THREADS_OF_GO:
	case WP_OPT_GOROUTINE_IDS:
		/* wp_option_check asks whether they were given. */
		return 0;
	case WP_OPT_TIMELINE_SIZE:
		return wp_option_size(&o->timeline_size, "--timeline-size", arg,
				      err);
	case WP_OPT_REPORT:
		o->report = true;
		return 0;
	case WP_OPT_DEBUGINFOD:
		return wp_option_yes_no(&o->debuginfod, "--debuginfod", arg,
					err);
	case WP_OPT_NO_CACHE:
		o->keeps_names = false;
		return 0;
	case WP_OPT_FULL:
		o->full = true;
		return 0;
	case WP_OPT_PROFILE:
		return wp_option_profiles(o, arg, err);
	case WP_OPT_BLOCK_RATE:
		return wp_option_block_rate(&o->sampler.block_rate, arg, err);
	case 'h':
		o->ask = WP_ASK_HELP;
		return 0;
	case 'V':
		o->ask = WP_ASK_VERSION;
		return 0;
	default:
		return parse_which(p, c, arg, err);
	}
}

/* All from argv[at] on, for a command that is to be typed anew. */
static void join(char *text, size_t size, char **argv)
{
	size_t len = 0;

	text[0] = '\0';
	for (; *argv && len < size; argv++)
		len += (size_t)snprintf(text + len, size - len, " %s", *argv);
}

/* What to do instead of naming two processes by two words. */
static const char *instead(const struct wp_options *o)
{
	if (o->action == WP_ACTION_TOP)
		return "";
	return o->action == WP_ACTION_RECORD ?
		       ", or several by -p A,B (a command goes after --)" :
		       ", or several by -p A,B";
}

/* A second word where one names what to look at. */
static int too_many_words(const struct wp_option_parse *p, int at, char **argv,
			  struct wp_err *err)
{
	const char *first = argv[p->first_word], *second = argv[at];
	const struct wp_command_row *near = wp_command_near(first);
	char command[160];

	if (p->o.pid && p->first_word == at)
		return wp_err_set(err, -EINVAL,
				  "-p %d and \"%s\": one process at a time%s",
				  p->o.pid, second, instead(&p->o));
	if (near && !p->action_word)
		return wp_err_set(err, -EINVAL,
				  "no command \"%s\": did you mean %s?", first,
				  near->name);
	join(command, sizeof(command), argv + p->first_word);
	if (p->o.pid || p->o.action != WP_ACTION_RECORD)
		return wp_err_set(err, -EINVAL,
				  "\"%s\" and \"%s\": one process at a time%s",
				  first, second, instead(&p->o));
	return wp_err_set(err, -EINVAL,
			  "a command goes after --, to start and record it: "
			  "wallprof --%s",
			  command);
}

/* argv[at] names what to look at. */
static int take_target(struct wp_option_parse *p, int at, char **argv,
		       struct wp_err *err)
{
	const char *word = argv[at];

	if (!p->first_word)
		p->first_word = at;
	if (p->o.action == WP_ACTION_SERVE)
		return wp_option_serve(&p->o, 'p', word, err);
	if (p->o.pid || p->o.name)
		return too_many_words(p, at, argv, err);
	if (word[strspn(word, "0123456789,")])
		p->o.name = word;
	else
		return wp_option_pids(&p->o, "-p", word, err);
	return *word ? 0 :
		       wp_err_set(err, -EINVAL, "an empty word names nothing");
}

static int take_file(struct wp_options *o, const char *word, struct wp_err *err)
{
	if (o->nfiles == WP_FILES_MAX)
		return wp_err_set(err, -EINVAL, "\"%s\": too many files", word);
	o->files[o->nfiles++] = word;
	return 0;
}

/* argv[at] is no option.  Returns how many words were taken. */
static int take_word(struct wp_option_parse *p, int argc, int at, char **argv,
		     struct wp_err *err)
{
	const struct wp_command_row *command = wp_command_find(argv[at]);
	struct wp_options *o = &p->o;
	bool is_first = !p->first_word && !o->nfiles;
	int rc;

	if (is_first && !strcmp(argv[at], "help") && !p->action_word) {
		o->ask = WP_ASK_HELP;
		return 1;
	}
	if (is_first && command &&
	    (!p->action_word || p->action_word[0] == '-')) {
		rc = set_action(p, command->action, command->name, err);
		return rc ? rc : 1;
	}
	switch (o->action) {
	case WP_ACTION_RUN:
		if (is_first && !wp_option_is_given(p, WP_OPT_TIMEOUT) &&
		    !wp_option_duration(&o->timeout_ns, "", argv[at], NULL)) {
			p->first_word = at;
			return 1;
		}
		o->command = argv + at;
		return argc - at;
	case WP_ACTION_REPORT:
	case WP_ACTION_DIFF:
		rc = take_file(o, argv[at], err);
		break;
	default:
		rc = take_target(p, at, argv, err);
		break;
	}
	return rc ? rc : 1;
}

/* All behind --. */
static int take_rest(struct wp_option_parse *p, int argc, int at, char **argv,
		     struct wp_err *err)
{
	int rc = 0;

	if (p->o.action != WP_ACTION_REPORT && p->o.action != WP_ACTION_DIFF) {
		if (at < argc)
			p->o.command = argv + at;
		return 0;
	}
	for (; !rc && at < argc; at++)
		rc = take_file(&p->o, argv[at], err);
	return rc;
}

/* The table as getopt_long(3) wants it. */
static void list_options(struct option *list)
{
	for (size_t i = 0; i < wp_noption_rows && i < ROWS_MAX; i++) {
		const struct wp_option_row *row = &wp_option_rows[i];

		list[i] = (struct option){ row->name,
					   !row->value ? no_argument :
					   *row->value == '[' ?
							 optional_argument :
							 required_argument,
					   NULL, row->id };
	}
}

static int parse_all(struct wp_option_parse *p, int argc, char **argv,
		     struct wp_err *err)
{
	struct option list[ROWS_MAX + 1] = { 0 };

	list_options(list);
	opterr = 0;
	for (;;) {
		int at = optind ? optind : 1, rc;
		/* '+': the command's own options are not ours. */
		int c = getopt_long(argc, argv, "+:p:d:o:r:F:i:f:t:kqvhV", list,
				    NULL);

		if (c == -1 && (optind > at || optind >= argc))
			return take_rest(p, argc, optind, argv, err);
		if (c == -1) {
			rc = take_word(p, argc, optind, argv, err);
			optind += rc > 0 ? rc : 0;
		} else if (c == ':' || c == '?') {
			return wp_option_bad(argv, at, c, p->o.action, err);
		} else {
			wp_option_note(p, c == 'F' ? 'r' : c);
			rc = parse_option(p, c, optarg, err);
		}
		if (rc < 0)
			return rc;
	}
}

int wp_options_parse(struct wp_options *ret, int argc, char **argv,
		     struct wp_err *err)
{
	struct wp_option_parse p = {
		.o = { .kinds = 1u << WP_PROFILE_WALL,
		       /* Root may look at whatever others run. */
		       .debuginfod = geteuid() != 0,
		       .keeps_names = true,
		       .sampler = { .wall = true,
				    .cpu = true,
				    .max_stopped = 0.01,
				    .heap_rate = HEAP_RATE,
				    .max_overhead = 0.05,
				    .max_depth = 512,
				    .own_threads = OWN_THREADS },
		       .timeline_size = (size_t)TIMELINE_MIB << 20,
		       .look_interval_ns = 2 * WP_NS_PER_S,
		       .kill_after_ns = 5 * WP_NS_PER_S,
		       .dump_time_ns = 10 * WP_NS_PER_S,
		       .keep_ns = 600 * WP_NS_PER_S,
		       .push_interval_ns = 15 * WP_NS_PER_S },
		.format = -1,
	};
	int rc = parse_all(&p, argc, argv, err);

	if (argc <= 1)
		p.o.ask = WP_ASK_NOTHING;
	if (!rc && p.o.ask == WP_ASK_ACTION)
		rc = wp_option_check(&p, err);
	if (rc)
		return rc;
	*ret = p.o;
	return 0;
}
