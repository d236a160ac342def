/* SPDX-License-Identifier: Apache-2.0 */
/* serve_page.c - the page of the processes that are served, and the index of their
 * profiles.
 */
#include <inttypes.h>
#include <string.h>

#include "served.h"

static const char head[] =
	"<!doctype html>\n<html lang=en><meta charset=utf-8>"
	"<meta name=viewport content=\"width=device-width\">"
	"<title>%s</title>\n<style>"
	"body{font:14px/1.5 system-ui,sans-serif;margin:2em;color-scheme:light "
	"dark}table{border-collapse:collapse}td,th{padding:.2em "
	".8em;text-align:left;border-bottom:1px solid #8886}"
	"td.n{text-align:right}code{font-size:1em}</style>\n<h1>%s</h1>\n";

static void put_byte(FILE *out, char c)
{
	fputc((unsigned char)c < ' ' || (unsigned char)c > '~' ? '?' : c, out);
}

/* A name that the process gave itself, as text. */
static void put_tame(FILE *out, const char *s)
{
	for (; *s; s++)
		put_byte(out, *s);
}

/* The same in HTML. */
static void put_name(FILE *out, const char *s)
{
	for (; *s; s++)
		if (strchr("<>&\"'", *s))
			fprintf(out, "&#%d;", *s);
		else
			put_byte(out, *s);
}

/* A name in an address, as RFC 3986 has it. */
static void put_escaped(FILE *out, const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";

	for (; *s; s++)
		fprintf(out, strchr(plain, *s) ? "%c" : "%%%02X",
			(unsigned char)*s);
}

/* A row: of process PID, or if that is 0 of the processes called NAME. */
struct row {
	pid_t pid;
	const char *name;
	uint32_t processes;
	const uint32_t *threads;
	uint64_t longest_wait_ns, history_ns;
	bool has_ended;
};

static void put_link(FILE *out, const struct row *row,
		     enum wp_serve_endpoint endpoint, const char *arguments,
		     const char *text)
{
	fprintf(out, "<a href=\"%s?", wp_serve_path(endpoint));
	if (row->pid)
		fprintf(out, "pid=%d", row->pid);
	else
		fputs("name=", out);
	if (!row->pid)
		put_escaped(out, row->name);
	fprintf(out, "%s\">%s</a> ", arguments, text);
}

static void put_row(FILE *out, const struct row *row)
{
	if (row->pid)
		fprintf(out, "<tr><td class=n>%d<td>", row->pid);
	else
		fprintf(out, "<tr><td class=n>%" PRIu32 " processes<td>",
			row->processes);
	put_name(out, row->name);
	if (row->has_ended)
		fputs(" (ended)", out);
	for (int state = 0; state < WP_NSTATES; state++)
		fprintf(out, "<td class=n>%" PRIu32, row->threads[state]);
	fprintf(out, "<td class=n>%.0f s<td class=n>%.0f s<td>",
		(double)row->longest_wait_ns / 1e9,
		(double)row->history_ns / 1e9);
	put_link(out, row, WP_SERVE_TIMELINE, "&amp;ago=60", "last minute");
	put_link(out, row, WP_SERVE_TIMELINE, "&amp;ago=300", "last 5 minutes");
	put_link(out, row, WP_SERVE_GOROUTINE, "&amp;debug=2", "dump");
	put_link(out, row, WP_SERVE_CHECK, "", "check");
	fputc('\n', out);
}

static void put_processes(const struct wp_served *s, FILE *out)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct wp_recorder_status *status = &s->v[i].status;
		const struct row row = {
			.pid = s->v[i].pid,
			.name = status->name,
			.threads = status->threads,
			.longest_wait_ns = status->longest_wait_ns,
			.history_ns = status->history_ns,
			.has_ended = status->has_ended
		};

		put_row(out, &row);
	}
}

static void put_parts(const struct wp_served *s, FILE *out)
{
	static struct wp_part parts[WP_PARTS_MAX];

	wp_parts_read(s->parts, parts);
	for (size_t i = 0; i < WP_PARTS_MAX; i++) {
		const struct wp_part *part = &parts[i];
		const struct row row = {
			.name = part->name,
			.processes = part->processes,
			.threads = part->threads,
			.longest_wait_ns = part->longest_wait_ns,
			.history_ns = s->n ? s->v[0].status.history_ns : 0
		};

		if (part->name[0])
			put_row(out, &row);
	}
}

void wp_served_write_page(const struct wp_served *s, FILE *out)
{
	fprintf(out, head, "wallprof", "wallprof");
	fputs("<table><tr><th>PID<th>process", out);
	for (int state = 0; state < WP_NSTATES; state++)
		fprintf(out, "<th>%s",
			wp_types_state_name((enum wp_state)state));
	fputs("<th>longest wait<th>recorded<th>\n", out);
	if (s->parts)
		put_parts(s, out);
	else
		put_processes(s, out);
	fprintf(out,
		"</table>\n<p>Threads by what they did most in the last "
		"second. <a href=\"%s\">Profiles</a>, <a "
		"href=\"%s\">metrics</a>.\n",
		wp_serve_path(WP_SERVE_INDEX), wp_serve_path(WP_SERVE_METRICS));
}

/* What each profile is. */
static const struct {
	enum wp_serve_endpoint endpoint;
	const char *arguments;
	const char *text;
} profiles[] = {
	{ WP_SERVE_PROFILE, "?seconds=30", "CPU time" },
	{ WP_SERVE_WALL, "?seconds=30",
	  "wall time of every thread, running and waiting, beside CPU time" },
	{ WP_SERVE_FGPROF, "?seconds=30", "wall time alone" },
	{ WP_SERVE_BLOCK, "", "waits, by the stack that waited" },
	{ WP_SERVE_DELTA_BLOCK, "", "the same, since this was asked last" },
	{ WP_SERVE_MUTEX, "",
	  "waits for locks, by the stack that held the lock" },
	{ WP_SERVE_DELTA_MUTEX, "", "the same, since this was asked last" },
	{ WP_SERVE_THREADCREATE, "",
	  "threads, by the stack that created them" },
	{ WP_SERVE_GOROUTINE, "?debug=2",
	  "every thread once, with what it waits for and who holds that" },
	{ WP_SERVE_CMDLINE, "", "the command line" },
	{ WP_SERVE_HEAP, "", "of a Go program: objects in use" },
	{ WP_SERVE_ALLOCS, "", "of a Go program: objects ever allocated" },
};

static void write_plain_index(const struct wp_served *s, FILE *out)
{
	fputs("/debug/pprof/\n\nTypes of profiles available:\n", out);
	for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
		fprintf(out, "%s%s\t%s\n", wp_serve_path(profiles[i].endpoint),
			profiles[i].arguments, profiles[i].text);
	fputs("\nProcesses:\n", out);
	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].pid)
			fprintf(out, "pid=%d\t", s->v[i].pid);
		put_tame(out, s->v[i].status.name);
		fputs(s->v[i].status.has_ended ? " (ended)\n" : "\n", out);
	}
}

void wp_served_write_index(const struct wp_served *s, bool plain, FILE *out)
{
	if (plain) {
		write_plain_index(s, out);
		return;
	}
	fprintf(out, head, "/debug/pprof/", "/debug/pprof/");
	fputs("<table>\n", out);
	for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
		fprintf(out, "<tr><td><a href=\"%s%s\">%s</a><td>%s\n",
			wp_serve_path(profiles[i].endpoint),
			profiles[i].arguments,
			wp_serve_name(profiles[i].endpoint), profiles[i].text);
	fputs("</table>\n", out);
	if (s->n > 1 || s->parts)
		fputs("<p>Choose a process by <code>pid=</code> or "
		      "<code>name=</code>; <a href=\"/\">these</a> are "
		      "served.\n",
		      out);
	fputs("<p><code>seconds=60&amp;ago=300</code>: a minute of five "
	      "minutes ago.\n",
	      out);
}
