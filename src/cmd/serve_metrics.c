/* SPDX-License-Identifier: Apache-2.0 */
/* serve_metrics.c - numbers for Prometheus, in its text format 0.0.4
 * (prometheus.io/docs/instrumenting/exposition_formats).
 */
#include <inttypes.h>

#include "served.h"

/* A label's value: a name that the process gave itself.  Other names have other values;
 * a backslash, and a byte that is no letter of ASCII, is two digits. */
static void put_value(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '"')
			fputs("\\\"", out);
		else if (*s == '\\' || (unsigned char)*s < ' ' ||
			 (unsigned char)*s > '~')
			fprintf(out, "\\\\x%02x", (unsigned char)*s);
		else
			fputc(*s, out);
	}
}

/* Labels that say what METRIC is of, but for the closing brace. */
static void put_process(FILE *out, const char *metric,
			const struct wp_served_one *one)
{
	fprintf(out, "%s{", metric);
	if (one->pid)
		fprintf(out, "pid=\"%d\",", one->pid);
	fputs("process=\"", out);
	put_value(out, one->status.name);
	fputc('"', out);
}

static void put_help(FILE *out, const char *metric, const char *type,
		     const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric,
		type);
}

/* What is told of a process, or of the processes of a name. */
struct told {
	const struct wp_served_one *one;
	const char *name;
	const uint64_t (*ns)[WP_NWAITS];
	const uint32_t *threads;
	uint64_t longest_wait_ns;
	uint32_t processes;
};

static void put_told(FILE *out, const char *metric, const struct told *t)
{
	if (t->one) {
		put_process(out, metric, t->one);
		return;
	}
	fprintf(out, "%s{process=\"", metric);
	put_value(out, t->name);
	fputc('"', out);
}

static void put_seconds(FILE *out, const struct told *t)
{
	for (int state = 0; state < WP_NSTATES; state++)
		for (int wait = 0; wait < WP_NWAITS; wait++) {
			uint64_t ns = t->ns[state][wait];

			if (!ns)
				continue;
			put_told(out, "wallprof_thread_seconds_total", t);
			fprintf(out, ",state=\"%s\",wait=\"%s\"} %.9f\n",
				wp_types_state_name((enum wp_state)state),
				wp_wait_name((enum wp_wait)wait),
				(double)ns / 1e9);
		}
}

static void put_threads(FILE *out, const struct told *t)
{
	for (int state = 0; state < WP_NSTATES; state++) {
		put_told(out, "wallprof_threads", t);
		fprintf(out, ",state=\"%s\"} %" PRIu32 "\n",
			wp_types_state_name((enum wp_state)state),
			t->threads[state]);
	}
}

static void put_longest_wait(FILE *out, const struct told *t)
{
	put_told(out, "wallprof_longest_wait_seconds", t);
	fprintf(out, "} %.9f\n", (double)t->longest_wait_ns / 1e9);
}

static void put_count(FILE *out, const struct told *t)
{
	if (t->one)
		return;
	put_told(out, "wallprof_processes_of_name", t);
	fprintf(out, "} %" PRIu32 "\n", t->processes);
}

/* PUT of each process that has a recorder, or of each name that PARTS has. */
static void put_each(const struct wp_served *s, const struct wp_part *parts,
		     FILE *out, void (*put)(FILE *out, const struct told *t))
{
	for (size_t i = 0; i < s->n && !parts; i++) {
		const struct wp_recorder_status *status = &s->v[i].status;
		const struct told t = {
			.one = &s->v[i],
			.ns = status->ns,
			.threads = status->threads,
			.longest_wait_ns = status->longest_wait_ns
		};

		if (status->is_there)
			put(out, &t);
	}
	for (size_t i = 0; i < WP_PARTS_MAX && parts; i++) {
		const struct wp_part *part = &parts[i];
		const struct told t = {
			.name = part->name,
			.ns = part->ns,
			.threads = part->threads,
			.longest_wait_ns = part->longest_wait_ns,
			.processes = part->processes
		};

		if (part->name[0])
			put(out, &t);
	}
}

static void put_states(const struct wp_served *s, FILE *out)
{
	static struct wp_part copy[WP_PARTS_MAX];
	const struct wp_part *parts = s->parts ? copy : NULL;

	/* All of it is of the same mark. */
	if (parts)
		wp_parts_read(s->parts, copy);
	put_help(out, "wallprof_thread_seconds_total", "counter",
		 "Time of threads, by state and wait reason.");
	put_each(s, parts, out, put_seconds);
	put_help(out, "wallprof_threads", "gauge",
		 "Threads, by what they did most in the last second.");
	put_each(s, parts, out, put_threads);
	put_help(
		out, "wallprof_longest_wait_seconds", "gauge",
		"How long the thread has been in its wait that has been so for "
		"longest.");
	put_each(s, parts, out, put_longest_wait);
	if (!parts)
		return;
	put_help(out, "wallprof_processes_of_name", "gauge",
		 "Processes of a name that had time in the last second.");
	put_each(s, parts, out, put_count);
}

/* One number of each process. */
struct number {
	const char *name;
	const char *type;
	const char *help;
	/* Where it is in a status, and what makes one of it. */
	size_t offset;
	double unit;
};

#define NUMBER(name, type, field, unit, help)                                  \
	{                                                                      \
		"wallprof_" name, type, help,                                  \
			offsetof(struct wp_recorder_status, field), unit       \
	}

static const struct number numbers[] = {
	NUMBER("ticks_total", "counter", ticks, 1, "Looks at all threads."),
	NUMBER("missed_ticks_total", "counter", missed_ticks, 1,
	       "Looks that came too late and were left out."),
	NUMBER("spared_ticks_total", "counter", spared_ticks, 1,
	       "Looks that were left out for --max-cpu."),
	NUMBER("processes_lost_total", "counter", processes_lost, 1,
	       "Processes that ended before they could be recorded."),
	NUMBER("processes_denied_total", "counter", processes_denied, 1,
	       "Processes that may not be recorded."),
	NUMBER("samples_lost_total", "counter", samples_lost, 1,
	       "Samples that could not be taken."),
	NUMBER("stacks_dropped_total", "counter", stacks_dropped, 1,
	       "Stacks left out for --max-memory."),
	NUMBER("mappings_dropped_total", "counter", mappings_dropped, 1,
	       "Executable mappings left out for --max-memory."),
	NUMBER("files_dropped_total", "counter", files_dropped, 1,
	       "ELF files of which parts were left out for --max-memory."),
	NUMBER("threads_shared_total", "counter", threads_shared, 1,
	       "Threads that share an entry with others of their name, past "
	       "--own-threads."),
	NUMBER("objects_dropped_total", "counter", objects_dropped, 1,
	       "Times that what a thread waited for was left out, past 20,000 "
	       "different ones."),
	NUMBER("names_dropped_total", "counter", names_dropped, 1,
	       "New names of threads and processes left out, being too many."),
	NUMBER("history_seconds", "gauge", history_ns, 1e9,
	       "How far back the recording goes."),
	NUMBER("history_bytes", "gauge", history_bytes, 1,
	       "Memory of the recording's marks."),
	NUMBER("history_dropped_total", "counter", history_dropped, 1,
	       "Marks that were dropped before their time for want of memory."),
	NUMBER("profile_bytes", "gauge", profile_bytes, 1,
	       "Memory of the stacks, threads and names that the marks refer "
	       "to."),
	NUMBER("deadlocks", "gauge", deadlocks, 1,
	       "1 while the last check found a deadlock."),
	NUMBER("no_progress", "gauge", no_progress, 1,
	       "1 while the last check found that threads wait for what "
	       "cannot come."),
	NUMBER("checks_total", "counter", checks, 1,
	       "Checks for hangs: made while threads wait for locks."),
	NUMBER("hangs_kept_total", "counter", hangs_kept, 1,
	       "Hangs of which --on-hang has kept files."),
	NUMBER("hangs_failed_total", "counter", hangs_failed, 1,
	       "Hangs of which files could not be written."),
	NUMBER("answers_total", "counter", answers, 1, "Questions answered."),
	NUMBER("refused_total", "counter", refused, 1, "Questions refused."),
	NUMBER("recorder_cpu_seconds_total", "counter", cpu_ns, 1e9,
	       "CPU time of the recorder itself."),
	NUMBER("recorder_memory_bytes", "gauge", memory, 1,
	       "Resident memory of the recorder itself."),
};

static void put_number(const struct wp_served *s, const struct number *number,
		       FILE *out)
{
	put_help(out, number->name, number->type, number->help);
	for (size_t i = 0; i < s->n; i++) {
		const char *at = (const char *)&s->v[i].status + number->offset;
		uint64_t value = *(const uint64_t *)(const void *)at;

		if (!s->v[i].status.is_there)
			continue;
		put_process(out, number->name, &s->v[i]);
		if (number->unit > 1)
			fprintf(out, "} %.9f\n", (double)value / number->unit);
		else
			fprintf(out, "} %" PRIu64 "\n", value);
	}
}

void wp_served_write_metrics(const struct wp_served *s, FILE *out)
{
	put_states(s, out);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		put_number(s, &numbers[i], out);
	put_help(out, "wallprof_up", "gauge",
		 "1 while the process lives, 0 once it has ended.");
	for (size_t i = 0; i < s->n; i++) {
		if (!s->v[i].status.is_there)
			continue;
		put_process(out, "wallprof_up", &s->v[i]);
		fprintf(out, "} %d\n", !s->v[i].status.has_ended);
	}
	put_help(out, "wallprof_processes", "gauge",
		 "Processes that are served.");
	fprintf(out, "wallprof_processes %" PRIu64 "\n",
		s->parts && s->n ? s->v[0].status.processes : s->n);
	put_help(out, "wallprof_processes_left_out_total", "counter",
		 "Times that a process found no room.");
	fprintf(out, "wallprof_processes_left_out_total %" PRIu64 "\n",
		s->nleft_out);
	put_help(out, "wallprof_recorders_failed_total", "counter",
		 "Recorders that ended with an error.");
	fprintf(out, "wallprof_recorders_failed_total %" PRIu64 "\n",
		s->nfailed - s->nmistaken);
	wp_pusher_write_metrics(s->pusher, out);
}
