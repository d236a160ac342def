/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dump.c - see cmd_dump.h. */
#include "cmd_dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output_file.h"
#include "exit_status.h"
#include "messages.h"
#include "signals.h"
#include "wallprof/access.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"
#include "wallprof/tracer.h"
#include "wallprof/utf8.h"

/* The dump of one process, from look to file. */
struct session {
	const struct wp_options *options;
	struct wp_snapshot looks;
	struct wp_output_file out;
	/* The look as a profile, where the format is one of those. */
	struct wp_profile profile;
	bool has_profile;
};

static int start(struct session *s, const struct wp_options *o,
		 struct wp_err *err)
{
	*s = (struct session){
		.options = o,
		.looks = { .dump = WP_DUMP_INIT,
			   .clock = WP_SCHED_CLOCK_INIT,
			   .options = &o->sampler,
			   .stop_peers = o->follow_processes,
			   .hurry = &wp_interrupts },
		.out = WP_OUTPUT_FILE_INIT,
	};
	wp_signals_catch();
	wp_limits_raise();
	return wp_output_file_open(&s->out, o->output, err);
}

static void end(struct session *s)
{
	wp_output_file_discard(&s->out);
	if (s->has_profile)
		wp_profile_clear(&s->profile);
	wp_snapshot_clear(&s->looks);
}

/* The look itself, and all that follows from it. */
static int look(struct session *s, struct wp_err *err)
{
	const struct wp_options *o = s->options;
	bool as_profile = o->format == WP_FORMAT_PPROF ||
			  o->format == WP_FORMAT_FOLDED;
	int rc;

	s->looks.dump.time_ns = wp_clock_utc_ns();
	rc = wp_snapshot_add(&s->looks, o->pid, false,
			     as_profile ? &s->profile : NULL, err);
	s->has_profile = as_profile && !rc;
	if (!rc && !as_profile)
		rc = wp_snapshot_follow(&s->looks);
	if (!rc) {
		wp_snapshot_finish(&s->looks);
		rc = wp_graph_build(&s->looks.dump);
	}
	if (rc == -ENOMEM)
		wp_err_set(err, rc, "no memory");
	wp_say_unnamed(s->looks.nunnamed, s->looks.unnamed_why);
	return rc;
}

int wp_cmd_dump_write(const struct wp_snapshot *looks,
		      const struct wp_options *options, FILE *out)
{
	const struct wp_dump_options how = {
		.group = options->group,
		.peers = options->follow_processes,
	};

	return options->format == WP_FORMAT_JSON ?
		       wp_dump_write_json(&looks->dump, out) :
		       wp_dump_write_text(&looks->dump, &how, out);
}

static int write_out(struct session *s, struct wp_err *err)
{
	int rc;

	switch (s->options->format) {
	case WP_FORMAT_PPROF:
		rc = wp_write_pprof(&s->profile, WP_PROFILE_THREADS,
				    s->out.stream);
		break;
	case WP_FORMAT_FOLDED:
		rc = wp_write_folded(&s->profile, WP_PROFILE_THREADS,
				     s->out.stream);
		break;
	default:
		rc = wp_cmd_dump_write(&s->looks, s->options, s->out.stream);
	}
	return wp_output_file_commit(&s->out, rc, err);
}

/* Over one thread in ten without a whole stack, or functions without a name. */
static bool has_losses(const struct wp_snapshot *looks)
{
	const struct wp_dump *dump = &looks->dump;
	const struct wp_dump_process *p = &dump->processes[0];
	uint32_t bad = p->nlost;

	for (uint32_t i = 0; i < p->nthreads; i++) {
		const struct wp_dump_thread *t =
			&dump->threads[p->first_thread + i];

		bad += t->truncated ||
		       (!t->nframes && t->state != WP_STATE_EXITING);
	}
	return bad * 10 > p->nthreads + p->nlost || looks->nunnamed;
}

static void warn_of_tracer(const struct wp_options *o)
{
	pid_t tracer = wp_access_tracer(o->pid);

	if (tracer && !o->quiet)
		wp_say("wallprof: process %d is traced by process %d (a "
		       "debugger or strace): its threads that run cannot be "
		       "stopped and have no stack here",
		       o->pid, tracer);
}

int wp_cmd_dump(const struct wp_options *options)
{
	struct wp_err err = WP_ERR_INIT;
	int status = WP_EXIT_NOTHING;
	struct session s;
	int rc = start(&s, options, &err);

	if (!rc) {
		warn_of_tracer(options);
		rc = look(&s, &err);
	}
	if (!rc)
		rc = write_out(&s, &err);
	if (rc)
		wp_say("wallprof: %s", err.msg);
	else
		status = has_losses(&s.looks) ? WP_EXIT_LOSSES : WP_EXIT_WHOLE;
	end(&s);
	return status;
}

/* What the first look of a check keeps of a thread. */
struct first_look {
	pid_t tid;
	struct wp_schedstat schedstat;
};

static int by_tid(const void *a, const void *b)
{
	const struct first_look *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int look_first(struct first_look **ret, size_t *ret_n, pid_t pid,
		      struct wp_err *err)
{
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_tids tids = WP_TIDS_INIT;
	struct first_look *v = NULL;
	char path[64], text[256];
	size_t n = 0;
	int rc = wp_process_open(&process, pid, err);

	if (rc == -EPERM)
		wp_access_denied(pid, err);
	if (!rc) {
		rc = wp_process_list_threads(&process, &tids);
		v = calloc(tids.len + 1, sizeof(*v));
		if (!rc && !v)
			rc = -ENOMEM;
		if (rc)
			wp_err_set(err, rc,
				   "cannot list the threads of "
				   "process %d",
				   pid);
	}
	for (size_t i = 0; i < tids.len && !rc; i++) {
		ssize_t len;

		snprintf(path, sizeof(path), "%d/schedstat", tids.v[i]);
		len = wp_io_read_at(process.task_fd, path, text, sizeof(text));
		v[n].tid = tids.v[i];
		if (len > 0 &&
		    !wp_schedstat_parse(&v[n].schedstat, text, (size_t)len))
			n++;
	}
	if (!rc && !n)
		rc = wp_err_set(err, -ENOTSUP,
				"cannot tell whether threads "
				"ran: /proc/%d/task/*/schedstat cannot be read "
				"(a kernel without CONFIG_SCHED_INFO)",
				pid);
	if (!rc)
		qsort(v, n, sizeof(*v), by_tid);
	wp_tids_clear(&tids);
	wp_process_clear(&process);
	*ret = v;
	*ret_n = n;
	return rc;
}

/* The processes that waits led to were not there at the first look: how long
 * their threads have waited tells as much. */
static void mark_still_peers(struct wp_dump *dump)
{
	for (uint32_t i = dump->processes[0].nthreads; i < dump->nthreads; i++)
		dump->threads[i].still = dump->threads[i].waited_ns !=
						 UINT64_MAX &&
					 dump->threads[i].waited_ns >=
						 dump->interval_ns;
}

static void mark_still(struct wp_dump *dump, const struct first_look *v,
		       size_t n)
{
	const struct wp_dump_process *p = &dump->processes[0];

	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct wp_dump_thread *t = &dump->threads[p->first_thread + i];
		struct first_look key = { .tid = t->tid };
		const struct first_look *was = bsearch(&key, v, n, sizeof(key),
						       by_tid);

		t->still = was && was->schedstat.run_ns == t->run_ns &&
			   was->schedstat.slices == t->slices;
	}
}

static int look_twice(struct session *s, struct wp_err *err)
{
	uint64_t start_ns = wp_clock_ns(), now_ns;
	uint64_t until_ns = start_ns + s->options->look_interval_ns;
	struct first_look *v = NULL;
	size_t n;
	int rc = look_first(&v, &n, s->options->pid, err);

	while (!rc && (now_ns = wp_clock_ns()) < until_ns) {
		struct timespec ts = {
			.tv_sec = (time_t)((until_ns - now_ns) / WP_NS_PER_S),
			.tv_nsec = (long)((until_ns - now_ns) % WP_NS_PER_S)
		};

		if (nanosleep(&ts, NULL) && wp_interrupts)
			rc = wp_err_set(err, -EINTR,
					"interrupted between the "
					"looks");
	}
	if (!rc) {
		s->looks.dump.interval_ns = wp_clock_ns() - start_ns;
		rc = look(s, err);
	}
	if (!rc) {
		mark_still(&s->looks.dump, v, n);
		mark_still_peers(&s->looks.dump);
	}
	free(v);
	return rc;
}

static int tell(struct session *s, struct wp_err *err)
{
	static const int statuses[] = {
		[WP_VERDICT_HEALTHY] = WP_EXIT_WHOLE,
		[WP_VERDICT_DEADLOCK] = WP_EXIT_DEADLOCK,
		[WP_VERDICT_NO_PROGRESS] = WP_EXIT_NO_PROGRESS,
	};
	bool with_dump = !s->options->output &&
			 s->options->format == WP_FORMAT_TEXT;
	enum wp_verdict verdict;
	char why[512];
	int rc = wp_graph_judge(&s->looks.dump, &verdict, why, sizeof(why));

	if (rc)
		return wp_err_set(err, rc, "no verdict: %s",
				  rc == -ENOMEM ? "no memory" : why);
	/* Locks are known by the names of functions. */
	if (verdict == WP_VERDICT_HEALTHY && s->looks.nunnamed)
		return wp_err_set(err, -ENODATA,
				  "no verdict: a lock may be "
				  "among what has no name");
	wp_utf8_tame(why);
	if (with_dump) {
		printf("%s: %s\n", wp_verdict_name(verdict), why);
		if (verdict != WP_VERDICT_HEALTHY) {
			putchar('\n');
			rc = write_out(s, err);
		} else if (fflush(stdout)) {
			rc = wp_err_set(err, -errno,
					"cannot write standard "
					"output: %s",
					strerror(errno));
		}
	} else {
		wp_say("%s: %s", wp_verdict_name(verdict), why);
		rc = write_out(s, err);
	}
	return rc ? rc : statuses[verdict];
}

int wp_cmd_check(const struct wp_options *options)
{
	struct wp_err err = WP_ERR_INIT;
	struct session s;
	int rc = start(&s, options, &err);

	if (!rc)
		rc = look_twice(&s, &err);
	if (!rc)
		rc = tell(&s, &err);
	if (rc < 0)
		wp_say("wallprof: %s", err.msg);
	end(&s);
	return rc < 0 ? WP_EXIT_NOTHING : rc;
}
