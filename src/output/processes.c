/* SPDX-License-Identifier: Apache-2.0 */
/* processes.c - the processes of a recording, by name: see processes.h. */
#include "processes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

void wp_processes_title(struct wp_buf *out, const struct wp_profile *profile,
			const struct wp_profile_thread *thread)
{
	const struct wp_profile_process *process = wp_profile_process_of(
		profile, thread);
	const char *name = wp_profile_str(profile, thread->name);
	const char *of = process && wp_profile_is_of_many(profile) ?
				 wp_profile_str(profile, process->name) :
				 "";

	if (*of && strcmp(of, name)) {
		wp_buf_str(out, of);
		wp_buf_str(out, ": ");
	}
	wp_buf_str(out, *name ? name : "[no name]");
}

uint64_t wp_processes_threads(const struct wp_profile_thread *thread)
{
	return (thread->part ? thread->is_counted : 1) +
	       (uint64_t)thread->nmore;
}

void wp_processes_id(struct wp_buf *out, const struct wp_profile_thread *thread)
{
	uint64_t n = wp_processes_threads(thread);

	/* The tid is that of one of them. */
	if (n > 1)
		wp_buf_printf(out, " and %" PRIu64 " more", n - 1);
	else if (thread->tid)
		wp_buf_printf(out, " (%" PRId32 ")", thread->tid);
}

/* The processes of one name. */
struct row {
	/* Its string id. */
	uint32_t name;
	/* Processes with any time, and the pid of one. */
	uint64_t n;
	int32_t pid;
	uint64_t ns[WP_NSTATES];
	uint64_t total_ns;
};

static int longest_first(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

static int by_name(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	return (a->name > b->name) - (a->name < b->name);
}

/* A row for each process, [0..nprocesses). */
static void add_up(const struct wp_report *r, struct row *rows)
{
	const struct wp_profile *p = r->profile;

	for (uint32_t i = 0; i < p->nprocesses; i++)
		rows[i] = (struct row){ .name = p->processes[i].name,
					.pid = p->processes[i].pid };
	for (uint32_t i = 0; i < r->set->nsamples; i++) {
		const struct wp_profile_sample *s = &r->set->samples[i];
		uint32_t of = p->threads[s->key.thread].process;
		uint64_t ns = wp_report_ns(r, s);

		if (of >= p->nprocesses || !wp_profile_time(p, r->kind, s))
			continue;
		/* Those that are idle count as processes. */
		rows[of].n = 1 + (uint64_t)p->processes[of].nmore;
		rows[of].ns[s->key.state % WP_NSTATES] += ns;
		rows[of].total_ns += ns;
	}
}

/* Join the rows of one name; their number. */
static uint32_t join(struct row *rows, uint32_t n)
{
	uint32_t len = 0;

	qsort(rows, n, sizeof(*rows), by_name);
	for (uint32_t i = 0; i < n; i++) {
		struct row *row = len ? &rows[len - 1] : NULL;

		if (!rows[i].n)
			continue;
		if (!row || row->name != rows[i].name) {
			rows[len++] = rows[i];
			continue;
		}
		row->n += rows[i].n;
		row->total_ns += rows[i].total_ns;
		for (int k = 0; k < WP_NSTATES; k++)
			row->ns[k] += rows[i].ns[k];
	}
	qsort(rows, len, sizeof(*rows), longest_first);
	return len;
}

/* Bytes are of no state. */
static bool has_states(const struct wp_report *r)
{
	return r->kind != WP_PROFILE_HEAP;
}

static void put_row(struct wp_report *r, const struct row *row)
{
	static const enum wp_state states[] = { WP_STATE_RUNNING,
						WP_STATE_RUNNABLE,
						WP_STATE_WAITING };
	const char *name = wp_profile_str(r->profile, row->name);
	size_t begin = r->out.len;
	char cell[WP_CELL];

	wp_report_value(r, cell, row->total_ns);
	wp_buf_printf(&r->out, "%10s", cell);
	wp_report_share(cell, row->total_ns, r->total_ns);
	wp_buf_printf(&r->out, "%9s", cell);
	for (size_t i = 0;
	     has_states(r) && i < sizeof(states) / sizeof(*states); i++) {
		wp_report_share(cell, row->ns[states[i]], row->total_ns);
		wp_buf_printf(&r->out, "%10s", cell);
	}
	wp_buf_str(&r->out, "  ");
	wp_escape_terminal(&r->name, *name ? name : "[no name]");
	if (row->n > 1)
		wp_buf_printf(&r->name, ": %" PRIu64 " processes", row->n);
	else
		wp_buf_printf(&r->name, " (pid %" PRId32 ")", row->pid);
	wp_report_end(r, r->out.len - begin);
}

void wp_report_processes(struct wp_report *r)
{
	enum { SHOWN = 20 };
	uint32_t n = r->profile->nprocesses, shown;
	struct row *rows;

	if (!wp_profile_is_of_many(r->profile))
		return;
	rows = calloc(n, sizeof(*rows));
	if (!rows) {
		wp_report_fail(r, -ENOMEM);
		return;
	}
	add_up(r, rows);
	n = join(rows, n);
	while (n && !rows[n - 1].total_ns)
		n--;
	shown = n > SHOWN && !r->options->full ? SHOWN : n;
	wp_report_title(r, "Processes");
	wp_buf_str(
		&r->out,
		has_states(r) ?
			"      time    share   running  runnable   waiting  program\n" :
			"     bytes    share  program\n");
	for (uint32_t i = 0; i < shown; i++)
		put_row(r, &rows[i]);
	if (shown < n)
		wp_buf_printf(&r->out,
			      "  ... %" PRIu32 " more programs with less%s\n",
			      n - shown, has_states(r) ? " time" : "");
	free(rows);
}
