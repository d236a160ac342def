/* SPDX-License-Identifier: Apache-2.0 */
/* option_check.c - see option_check.h. */
#include "option_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "choose.h"
#include "option_table.h"
#include "option_values.h"
#include "output_file.h"
#include "wallprof/clock.h"
#include "wallprof/serve.h"

/* What --all may take of one core. */
#define ALL_MAX_CPU 0.05

void wp_option_note(struct wp_option_parse *parse, int id)
{
	for (size_t i = 0; i < wp_noption_rows; i++)
		if (wp_option_rows[i].id == id)
			parse->given |= UINT64_C(1) << i;
}

bool wp_option_is_given(const struct wp_option_parse *parse, int id)
{
	for (size_t i = 0; i < wp_noption_rows; i++)
		if (wp_option_rows[i].id == id)
			return parse->given >> i & 1;
	return false;
}

/* "record, dump and top" */
static void list_commands(char *text, size_t size, unsigned int commands)
{
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < wp_ncommand_rows && len < size; i++) {
		unsigned int bit = 1u << wp_command_rows[i].action;
		const char *before = !len	     ? "" :
				     commands == bit ? " and " :
						       ", ";

		if (!(commands & bit))
			continue;
		commands &= ~bit;
		len += (size_t)snprintf(text + len, size - len, "%s%s", before,
					wp_command_rows[i].name);
	}
}

/* The commands that have an option with ID. */
static unsigned int commands_of(int id)
{
	unsigned int commands = 0;

	for (size_t i = 0; i < wp_noption_rows; i++)
		if (wp_option_rows[i].id == id)
			commands |= wp_option_rows[i].commands;
	return commands;
}

/* Does the command, ACTION, have all the options that were given? */
static int check_command(const struct wp_option_parse *p, enum wp_action action,
			 struct wp_err *err)
{
	const char *command = wp_command_of(action)->name;
	char has[96];

	for (size_t i = 0; i < wp_noption_rows; i++) {
		const struct wp_option_row *row = &wp_option_rows[i];
		unsigned int commands = commands_of(row->id);
		char letter[3] = { '-', (char)row->id, '\0' };

		if (!(p->given >> i & 1) || commands & 1u << action)
			continue;
		list_commands(has, sizeof(has), commands);
		return wp_err_set(err, -EINVAL, "%s%s is for %s, not for %s",
				  row->id < WP_OPT_THREADS ? "" : "--",
				  row->id < WP_OPT_THREADS ? letter : row->name,
				  has, command);
	}
	return 0;
}

static int check_run(const struct wp_options *o, struct wp_err *err)
{
	if (o->pid || o->name)
		return wp_err_set(
			err, -EINVAL,
			"run (--timeout) runs a command, and ends it: "
			"a process that runs is for dump and check");
	return o->command ? 0 :
			    wp_err_set(err, -EINVAL,
				       "run (--timeout) wants a command: "
				       "wallprof run 60 make test");
}

static int check_files(const struct wp_options *o, struct wp_err *err)
{
	bool diff = o->action == WP_ACTION_DIFF;

	if (o->nfiles == (diff ? 2 : 1))
		return 0;
	return wp_err_set(err, -EINVAL, "%s",
			  diff ? "diff wants BEFORE.pb.gz and AFTER.pb.gz" :
				 "report wants one FILE.pb.gz");
}

/* Does URL have something before the host? */
static bool has_password(const char *url)
{
	const char *host = strstr(url, "//") + 2;

	return host[strcspn(host, "/?#@")] == '@';
}

static int check_serve(struct wp_options *o, struct wp_err *err)
{
	bool many = o->children || wp_choose_is_asked(o);

	if (o->command || !(o->npids || o->nserved || many))
		return wp_err_set(err, -EINVAL,
				  "serve wants processes that run, each by PID "
				  "or NAME: wallprof serve redis-server");
	if (many && o->nserved)
		return wp_err_set(err, -EINVAL,
				  "\"%s\" with --children, --tree, --name, "
				  "--cgroup or --all: give a PID, or --name %s",
				  o->served[0], o->served[0]);
	if (!many && o->npids > WP_SERVED_MAX)
		return wp_err_set(err, -EINVAL,
				  "serve records %d processes at most, each by "
				  "itself: choose more by --name, --cgroup or "
				  "--all, which are recorded together",
				  WP_SERVED_MAX);
	if (o->children && !o->npids)
		return wp_err_set(
			err, -EINVAL,
			"--children wants the PID of the process that "
			"has them");
	if (!o->keep_ns)
		return wp_err_set(err, -EINVAL,
				  "--keep wants a time, such as 10m");
	if (o->push && strncmp(o->push, "http://", 7) &&
	    strncmp(o->push, "https://", 8))
		return wp_err_set(err, -EINVAL,
				  "--push wants a URL, such as "
				  "http://127.0.0.1:4040");
	if (o->push && has_password(o->push))
		return wp_err_set(
			err, -EINVAL,
			"all processes can read a password in --push: "
			"write it to a file, for --push-auth");
	if (o->push_auth && !o->push)
		return wp_err_set(err, -EINVAL, "--push-auth wants --push");
	if (!o->on_hang &&
	    (o->hang_lock || o->hang_idle_ns || o->hang_runnable_ns))
		return wp_err_set(err, -EINVAL, "--hang-when wants --on-hang");
	if (o->push_interval_ns < WP_NS_PER_S ||
	    o->push_interval_ns > WP_SERVE_SECONDS_MAX * WP_NS_PER_S)
		return wp_err_set(err, -EINVAL,
				  "--push-interval goes from 1s to 1h");
	if (o->push && o->push_interval_ns > o->keep_ns)
		return wp_err_set(
			err, -EINVAL,
			"--push sends %g s at once, of which --keep "
			"has the last %g s only: give a longer --keep "
			"or a shorter --push-interval",
			(double)o->push_interval_ns / WP_NS_PER_S,
			(double)o->keep_ns / WP_NS_PER_S);
	o->sampler.mutex = o->sampler.note_holders = true;
	o->sampler.block = o->sampler.thread_starts = true;
	return 0;
}

static int check_target(struct wp_options *o, struct wp_err *err)
{
	const char *command = wp_command_of(o->action)->name;

	if (o->action == WP_ACTION_RUN)
		return check_run(o, err);
	if (o->action == WP_ACTION_REPORT || o->action == WP_ACTION_DIFF)
		return check_files(o, err);
	if (o->action == WP_ACTION_SERVE)
		return check_serve(o, err);
	if (o->action == WP_ACTION_TOP && o->npids > 1)
		return wp_err_set(err, -EINVAL,
				  "%s looks at one process at a time, not at "
				  "%d and %d",
				  command, o->pids[0], o->pids[1]);
	if (o->action != WP_ACTION_RECORD &&
	    (o->command || !(o->pid || o->name || wp_choose_is_asked(o))))
		return wp_err_set(
			err, -EINVAL,
			"%s looks at a running process: give its PID or "
			"NAME (run starts a command)",
			command);
	if ((o->pid || o->name) && o->command)
		return wp_err_set(
			err, -EINVAL,
			"give either a process or a command, not both");
	if (!o->pid && !o->name && !o->command && !wp_choose_is_asked(o))
		return wp_err_set(
			err, -EINVAL,
			"nothing to record: give a PID, the NAME of a "
			"process, or -- and a command");
	return 0;
}

/* The format that -o or the default says. */
static int find_format(const struct wp_options *o, struct wp_err *err)
{
	if (!o->output || o->action == WP_ACTION_TOP)
		return WP_FORMAT_TEXT;
	return wp_option_format(o->output,
				o->action == WP_ACTION_RECORD ?
					WP_FORMAT_PPROF :
					WP_FORMAT_TEXT,
				err);
}

/* Can the command write FORMAT? */
static int check_written(enum wp_action action, enum wp_format format,
			 struct wp_err *err)
{
	bool plain = format == WP_FORMAT_TEXT || format == WP_FORMAT_JSON;

	if (format == WP_FORMAT_GO && action != WP_ACTION_DUMP)
		return wp_err_set(err, -EINVAL, "go is for dump");
	switch (action) {
	case WP_ACTION_RECORD:
		if (format == WP_FORMAT_JSON)
			return wp_err_set(err, -EINVAL,
					  "json is for dump, check and run");
		return 0;
	case WP_ACTION_CHECK:
	case WP_ACTION_RUN:
		if (!plain)
			return wp_err_set(err, -EINVAL,
					  "check and run write text or json");
		return 0;
	case WP_ACTION_REPORT:
		if (format == WP_FORMAT_JSON || format == WP_FORMAT_PPROF)
			return wp_err_set(err, -EINVAL,
					  "report writes html, speedscope, "
					  "firefox, svg, folded or text");
		return 0;
	case WP_ACTION_DIFF:
		if (format != WP_FORMAT_HTML && format != WP_FORMAT_TEXT)
			return wp_err_set(err, -EINVAL,
					  "diff writes html or text");
		return 0;
	default:
		return 0;
	}
}

/* The Firefox Profiler shows every value as milliseconds. */
static int check_firefox(const struct wp_options *o, struct wp_err *err)
{
	bool is_recording = o->action == WP_ACTION_RECORD;
	unsigned int kinds = is_recording ? o->kinds : 0;
	const char *why = o->action == WP_ACTION_DUMP ?
				  "a dump counts threads" :
			  kinds & 1u << WP_PROFILE_HEAP ?
				  "a heap profile is of bytes" :
			  kinds & 1u << WP_PROFILE_THREADCREATE ?
				  "threadcreate counts threads" :
				  NULL;

	if (o->format != WP_FORMAT_FIREFOX || !why)
		return 0;
	return wp_err_set(err, -EINVAL,
			  "firefox is for times, and %s: give html, "
			  "speedscope, svg, folded or pprof",
			  why);
}

static int check_format(struct wp_option_parse *p, struct wp_err *err)
{
	struct wp_options *o = &p->o;
	int rc;

	if (p->format < 0)
		p->format = find_format(o, err);
	if (p->format < 0)
		return p->format;
	o->format = (enum wp_format)p->format;
	o->sampler.note_holders |= o->action == WP_ACTION_RECORD &&
				   wp_format_shows_time(o->format);
	rc = check_written(o->action, o->format, err);
	if (!rc)
		rc = check_firefox(o, err);
	if (rc)
		return rc;
	if (o->format != WP_FORMAT_TEXT && o->kinds & (o->kinds - 1) &&
	    wp_output_file_is_stream(o->output))
		return wp_err_set(err, -EINVAL,
				  "several profiles want several "
				  "files: give -o FILE");
	if (o->format == WP_FORMAT_PPROF && isatty(STDOUT_FILENO) &&
	    wp_output_file_is_stdout(o->output))
		return wp_err_set(err, -EINVAL,
				  "a pprof file is not for a terminal: give -o "
				  "FILE.pb.gz");
	return 0;
}

/* Times between looks: each command has its own bounds and default. */
static int check_interval(struct wp_option_parse *p, struct wp_err *err)
{
	struct wp_options *o = &p->o;

	if ((o->action == WP_ACTION_TOP || o->action == WP_ACTION_SERVE) &&
	    !o->sampler.interval_ns)
		o->sampler.interval_ns = 50 * WP_NS_PER_MS;
	else if (!o->sampler.interval_ns)
		o->sampler.interval_ns = 10 * WP_NS_PER_MS;
	if (!p->interval)
		return 0;
	if (o->action == WP_ACTION_CHECK)
		return wp_option_look_interval(&o->look_interval_ns,
					       p->interval, err);
	return wp_option_interval(&o->sampler.interval_ns, p->interval, err);
}

/* What a Go program keeps itself is read once, which a dump does. */
static int check_kinds(const struct wp_option_parse *p, struct wp_err *err)
{
	const struct wp_options *o = &p->o;
	const unsigned int of_dump = 1u << WP_PROFILE_GOROUTINE;
	const unsigned int of_go = of_dump | 1u << WP_PROFILE_HEAP |
				   1u << WP_PROFILE_BLOCK |
				   1u << WP_PROFILE_MUTEX;
	bool is_dump = o->action == WP_ACTION_DUMP;

	if (!is_dump && o->kinds & of_dump)
		return wp_err_set(err, -EINVAL,
				  "the goroutine profile is one of a dump: "
				  "wallprof dump --profile goroutine");
	if (!is_dump || !wp_option_is_given(p, WP_OPT_PROFILE))
		return 0;
	if (o->kinds & ~of_go || o->kinds & (o->kinds - 1))
		return wp_err_set(err, -EINVAL,
				  "--profile of a dump is one of goroutine, "
				  "heap, block and mutex, of a Go program");
	if (o->format != WP_FORMAT_PPROF)
		return wp_err_set(err, -EINVAL,
				  "a profile of a dump is a pprof file: give "
				  "-o FILE.pb.gz");
	return 0;
}

/* What is recorded of several processes? */
static int check_many(struct wp_option_parse *p, struct wp_err *err)
{
	struct wp_options *o = &p->o;
	bool many = o->children || o->npids > 1 || wp_choose_is_asked(o);

	if (o->all && !wp_option_is_given(p, WP_OPT_MAX_CPU))
		o->sampler.max_cpu = ALL_MAX_CPU;
	if (o->action == WP_ACTION_DUMP && many &&
	    o->format != WP_FORMAT_TEXT && o->format != WP_FORMAT_JSON)
		return wp_err_set(
			err, -EINVAL,
			"a dump of several processes is text or json");
	if (o->action == WP_ACTION_SERVE)
		many = o->children || wp_choose_is_asked(o);
	/* They would take two fifths of the ring. */
	if (o->action == WP_ACTION_SERVE && o->all &&
	    !wp_option_is_given(p, WP_OPT_BLOCK_RATE))
		o->sampler.block = false;
	o->sampler.many = (o->action == WP_ACTION_RECORD ||
			   o->action == WP_ACTION_SERVE) &&
			  many;
	if (o->all && o->sampler.heap)
		return wp_err_set(err, -EINVAL,
				  "a heap profile is not of all processes: "
				  "choose those that are to be probed");
	if (o->sampler.many && o->sampler.heap_census)
		return wp_err_set(err, -EINVAL,
				  "--heap-census is of a single process");
	if (o->sampler.many && o->sampler.heap_tier == WP_HEAP_TIER_SESSION)
		return wp_err_set(
			err, -EINVAL,
			"--heap-probe session is of a single process: "
			"calls of several would return through the "
			"probes of each other");
	return 0;
}

/* Are Go programs recorded by their goroutines? */
static void choose_goroutines(struct wp_option_parse *p)
{
	struct wp_sampler_options *s = &p->o.sampler;

	s->goroutine_ids = wp_option_is_given(p, WP_OPT_GOROUTINE_IDS);
	s->goroutines = p->o.action == WP_ACTION_RECORD && s->wall &&
			!wp_option_is_given(p, WP_OPT_THREADS_OF_GO) &&
			!s->thread_globs[0] && s->stop != WP_STOP_ALL;
}

/* `leaks` is a recording of the heap. */
static void choose_leaks(struct wp_options *o)
{
	struct wp_sampler_options *s = &o->sampler;

	if (o->action != WP_ACTION_LEAKS)
		return;
	o->action = WP_ACTION_RECORD;
	o->kinds = 1u << WP_PROFILE_HEAP;
	s->wall = s->cpu = false;
	s->heap = s->heap_leaks = true;
}

int wp_option_check(struct wp_option_parse *parse, struct wp_err *err)
{
	struct wp_options *o = &parse->o;
	bool dump = o->action == WP_ACTION_DUMP ||
		    o->action == WP_ACTION_CHECK || o->action == WP_ACTION_RUN;
	enum wp_action asked = o->action;
	int rc;

	choose_leaks(o);
	rc = check_target(o, err);
	if (!rc)
		rc = check_command(parse, asked, err);
	if (rc)
		return rc;
	if (o->report && wp_output_file_is_stdout(o->output))
		return wp_err_set(err, -EINVAL,
				  "--report goes beside -o FILE; without -o it "
				  "is what is printed");
	if (dump && !wp_option_is_given(parse, WP_OPT_STOP))
		o->sampler.stop = WP_STOP_ALL;
	if (dump)
		o->sampler.cpu = o->sampler.block = o->sampler.mutex =
			o->sampler.heap = o->sampler.wake = false;
	choose_goroutines(parse);
	if (o->sampler.goroutine_ids && !o->sampler.goroutines)
		return wp_err_set(err, -EINVAL,
				  "--goroutine-ids goes with a wall profile of "
				  "goroutines: leave out -t, --threads-of-go "
				  "and --stop all");
	rc = check_interval(parse, err);
	if (!rc)
		rc = check_format(parse, err);
	if (!rc)
		rc = wp_option_check_pairs(parse, err);
	if (!rc)
		rc = check_many(parse, err);
	return rc ? rc : check_kinds(parse, err);
}
