/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dump.c - see cmd_dump.h. */
#include "cmd_dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dumped.h"
#include "output_file.h"
#include "exit_status.h"
#include "messages.h"
#include "signals.h"
#include "worker.h"
#include "wallprof/access.h"
#include "wallprof/clock.h"
#include "wallprof/graph.h"
#include "wallprof/output.h"
#include "wallprof/utf8.h"

#define SLEEP_NS (500 * WP_NS_PER_MS)

/* A dump, from its samples to its file. */
struct session {
	const struct wp_options *options;
	struct wp_dumped dumped;
	struct wp_snapshot snapshot;
	struct wp_output_file out;
};

struct wp_snapshot wp_cmd_dump_snapshot(const struct wp_options *options)
{
	return (struct wp_snapshot){
		.dump = WP_DUMP_INIT,
		.clock = WP_SCHED_CLOCK_INIT,
		.options = &options->sampler,
		.stop_peers = options->follow_processes,
		.keeps_names = options->keeps_names,
		.interrupts = &wp_interrupts,
	};
}

void wp_cmd_dump_say_losses(const struct wp_snapshot *snapshot)
{
	wp_say_unnamed(snapshot->nunnamed, snapshot->unnamed_why);
	wp_say_files_lost(snapshot->nfiles_lost, snapshot->nfiles_unopened);
	wp_say_kernel_denied(snapshot->nkernel_denied);
	wp_say_files_lineless(snapshot->nfiles_lineless,
			      snapshot->lineless_why);
	wp_say_dropped(snapshot->ndropped);
	wp_say_peers_untold(snapshot->npeers_untold, snapshot->peers_untold_rc);
	wp_say_waits_doubtful(snapshot->nwaits_doubtful, snapshot->wait_doubt,
			      snapshot->doubtful_pid);
	wp_say_edges_cut(snapshot->edges_cut);
}

static void remove_file(const void *out)
{
	wp_output_file_remove(out);
}

static int open_session(struct session *s, const struct wp_options *o,
			struct wp_err *err)
{
	int rc;

	*s = (struct session){
		.options = o,
		.snapshot = wp_cmd_dump_snapshot(o),
		.out = WP_OUTPUT_FILE_INIT,
	};
	/* A pipe that nobody reads keeps open(2) waiting. */
	wp_signals_end_at_once(remove_file, &s->out);
	rc = wp_output_file_open(&s->out, o->output, err);
	wp_worker_part(false);
	wp_limits_raise();
	return rc ? rc : wp_dumped_list(&s->dumped, o, err);
}

/* Say ERR, unless RC is 0. */
static void close_session(struct session *s, int rc, const struct wp_err *err)
{
	if (rc)
		wp_say("wallprof: %s", err->msg);
	wp_output_file_discard(&s->out);
	wp_signals_forget_files();
	wp_snapshot_clear(&s->snapshot);
	wp_dumped_clear(&s->dumped);
}

static void begin_to_write(const struct session *s)
{
	wp_worker_take_streams();
	/* What is written in its place is not left half done.  What a pipe is given
	 * ends by SIGPIPE: "| head" has nothing to say; a verdict is told by the status,
	 * too. */
	if (s->out.is_cut)
		wp_signals_put_off(2);
	else if (s->options->action == WP_ACTION_DUMP &&
		 !wp_output_file_is_kept(&s->out))
		signal(SIGPIPE, SIG_DFL);
}

/* Sample the processes and those that their waits lead to, and build the graph. */
static int make_dump(struct session *s, struct wp_err *err)
{
	struct wp_snapshot *snapshot = &s->snapshot;
	int rc;

	snapshot->dump.time_ns = wp_clock_utc_ns();
	rc = wp_dumped_sample(&s->dumped, snapshot, err);
	if (!rc)
		rc = wp_snapshot_follow(snapshot);
	if (!rc) {
		wp_snapshot_finish(snapshot);
		rc = wp_graph_build(&snapshot->dump);
	}
	if (rc == -ENOMEM)
		wp_err_set(err, rc, "no memory");
	wp_cmd_dump_say_losses(snapshot);
	return rc;
}

int wp_cmd_dump_write(const struct wp_snapshot *snapshot,
		      const struct wp_options *options, FILE *out)
{
	const struct wp_write_dump_options how = {
		.group = options->group,
		.peers = options->follow_processes,
	};

	if (options->format == WP_FORMAT_GO)
		return wp_write_dump_go(&snapshot->dump, out);
	return options->format == WP_FORMAT_JSON ?
		       wp_write_dump_json(&snapshot->dump, out) :
		       wp_write_dump_text(&snapshot->dump, &how, out);
}

static int write_dump(struct session *s, struct wp_err *err)
{
	return wp_output_file_commit(
		&s->out,
		wp_cmd_dump_write(&s->snapshot, s->options, s->out.stream),
		err);
}

/* Is STACK cut by other than the user's limit? */
static bool is_lost(const struct wp_dump_stack *stack)
{
	return wp_dump_is_cut(stack) && stack->end != WP_END_DEPTH_LIMIT;
}

/* Say it if NBAD threads, goroutines or samples (WHAT), lost or without a whole stack, are
 * over one in ten of N.  True: they are, or something was lost (NLOST) that was said
 * before. */
static bool say_losses(const char *what, uint64_t nbad, uint64_t n,
		       uint64_t nlost)
{
	if (nbad > n / 10)
		wp_say("wallprof: exit status %d: %" PRIu64 " of %" PRIu64
		       " %s were lost or have no whole stack",
		       WP_EXIT_LOSSES, nbad, n, what);
	return nbad > n / 10 || nlost;
}

/* The same of goroutines, where they are all that is written. */
static bool goroutines_have_losses(const struct wp_snapshot *snapshot)
{
	const struct wp_dump *dump = &snapshot->dump;
	const struct wp_dump_process *p = &dump->processes[0];
	uint64_t bad = p->nlost_goroutines;

	for (uint32_t i = 0; i < p->ngoroutines; i++)
		bad += is_lost(&dump->goroutines[p->first_goroutine + i].stack);
	return say_losses("goroutines", bad,
			  p->ngoroutines + p->nlost_goroutines,
			  snapshot->nunnamed + snapshot->ndropped);
}

static bool dump_has_losses(const struct wp_snapshot *snapshot)
{
	const struct wp_dump *dump = &snapshot->dump;
	uint32_t bad = 0, n = 0;

	for (uint32_t i = 0; i < dump->nprocesses; i++) {
		const struct wp_dump_process *p = &dump->processes[i];

		bad += p->is_peer ? 0 : p->nlost;
		n += p->is_peer ? 0 : p->nlost;
		if (say_losses("goroutines", p->nlost_goroutines,
			       p->ngoroutines + p->nlost_goroutines, 0))
			return true;
	}
	for (uint32_t i = 0; i < dump->nthreads; i++) {
		const struct wp_dump_thread *t = &dump->threads[i];

		if (dump->processes[t->process].is_peer)
			continue;
		n++;
		bad += is_lost(&t->stack) ||
		       (!t->stack.nframes && t->state != WP_STATE_EXITING &&
			t->stack.end != WP_END_WORKER);
	}
	return say_losses("threads", bad, n,
			  snapshot->nunnamed + snapshot->ndropped);
}

static bool profile_has_losses(const struct wp_profile *p,
			       enum wp_profile_kind kind,
			       const char *const *thread_globs)
{
	const struct wp_sample_set *set = &p->sets[kind];
	bool of_goroutines = kind == WP_PROFILE_GOROUTINE;
	uint64_t bad = 0, n = 0, chosen = 0, lost = 0;
	uint64_t told = p->counters.unnamed + wp_counters_dropped(&p->counters);

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_sample_key *key = &set->samples[i].key;
		const struct wp_profile_stack *stack = &p->stacks[key->stack];
		/* Of goroutines, many are one sample. */
		uint64_t each = of_goroutines ? set->samples[i].count : 1;

		if (!set->samples[i].count)
			continue;
		n += each;
		if (stack->end == WP_END_WORKER ||
		    stack->end == WP_END_DEPTH_LIMIT)
			continue;
		if (stack->depth ? stack->end != WP_END_ROOT :
				   key->state != WP_STATE_EXITING)
			bad += each;
	}
	if (of_goroutines)
		lost = p->counters.goroutines_lost;
	if (kind != WP_PROFILE_THREADS)
		return say_losses(of_goroutines ? "goroutines" : "samples",
				  bad + lost, n + lost, told);
	for (uint32_t i = 0; i < p->nthreads; i++)
		chosen += wp_sampler_wants(
			thread_globs, wp_profile_str(p, p->threads[i].name));
	lost = (chosen > n ? chosen - n : 0) + p->counters.samples_lost +
	       p->counters.threads_lost;
	return say_losses("threads", bad + lost, n + lost, told);
}

/* Threads, unless something else is asked for. */
static enum wp_profile_kind dumped_kind(const struct wp_options *options)
{
	static const enum wp_profile_kind of_go[] = { WP_PROFILE_GOROUTINE,
						      WP_PROFILE_HEAP,
						      WP_PROFILE_BLOCK,
						      WP_PROFILE_MUTEX };

	for (size_t i = 0; i < sizeof(of_go) / sizeof(*of_go); i++)
		if (options->kinds == 1u << of_go[i])
			return of_go[i];
	return WP_PROFILE_THREADS;
}

static int dump_profile(struct session *s, bool *ret_losses, struct wp_err *err)
{
	enum wp_profile_kind kind = dumped_kind(s->options);
	struct wp_profile profile;
	int rc = wp_snapshot_profile(&s->snapshot, s->options->pid, kind,
				     &profile, err);

	wp_say_unnamed(profile.counters.unnamed,
		       wp_profile_str(&profile, profile.meta.unnamed_why));
	wp_say_files_lost(profile.counters.files_lost,
			  profile.counters.files_unopened);
	wp_say_kernel_denied(profile.counters.kernel_denied);
	wp_say_files_lineless(
		profile.counters.files_lineless,
		wp_profile_str(&profile, profile.meta.lineless_why));
	wp_say_dropped(wp_counters_dropped(&profile.counters));
	if (profile.counters.goroutines_lost)
		wp_say("wallprof: %" PRIu64 " goroutines were not read",
		       profile.counters.goroutines_lost);
	if (!rc) {
		begin_to_write(s);
		rc = wp_write_profile(&profile, kind, s->options->format, NULL,
				      s->out.stream);
		rc = wp_output_file_commit(&s->out, rc, err);
		*ret_losses = profile_has_losses(
			&profile, kind, s->options->sampler.thread_globs);
	}
	wp_profile_clear(&profile);
	return rc;
}

static void warn_of_tracer(const struct wp_options *o)
{
	pid_t tracer = o->pid ? wp_access_tracer(o->pid) : 0;

	if (tracer && !o->quiet)
		wp_say("wallprof: process %d is traced by process %d (a "
		       "debugger or strace): its threads that run cannot be "
		       "stopped and have no stack here",
		       o->pid, tracer);
}

static int check_goroutines(const struct session *s, struct wp_err *err)
{
	const struct wp_dump *dump = &s->snapshot.dump;
	const struct wp_dump_process *p = &dump->processes[0];
	const char *why = wp_dump_str(dump, p->go_error);

	if (p->ngoroutines)
		return 0;
	return wp_err_set(err, -ENODATA, "process %d has no goroutines: %s",
			  s->options->pid,
			  *why				    ? why :
			  *wp_dump_str(dump, p->go_version) ? "none was read" :
							      "not a Go "
							      "program");
}

int wp_cmd_dump(const struct wp_options *options)
{
	bool as_profile = options->format != WP_FORMAT_TEXT &&
			  options->format != WP_FORMAT_JSON &&
			  options->format != WP_FORMAT_GO;
	struct wp_err err = WP_ERR_INIT;
	bool losses = false;
	struct session s;
	int rc = open_session(&s, options, &err);

	if (!rc)
		warn_of_tracer(options);
	if (!rc && as_profile) {
		rc = dump_profile(&s, &losses, &err);
	} else if (!rc) {
		rc = make_dump(&s, &err);
		if (!rc && options->format == WP_FORMAT_GO)
			rc = check_goroutines(&s, &err);
		begin_to_write(&s);
		if (!rc)
			rc = write_dump(&s, &err);
		losses = !rc && (options->format == WP_FORMAT_GO ?
					 goroutines_have_losses(&s.snapshot) :
					 dump_has_losses(&s.snapshot));
	}
	close_session(&s, rc, &err);
	if (rc)
		return WP_EXIT_NOTHING;
	return losses ? WP_EXIT_LOSSES : WP_EXIT_WHOLE;
}

/* In parts: a worker that sleeps for longer is taken for stuck. */
static void sleep_until(uint64_t until_ns)
{
	uint64_t now_ns;

	while ((now_ns = wp_clock_ns()) < until_ns) {
		uint64_t left_ns = until_ns - now_ns;
		struct timespec ts = { .tv_nsec = (long)(left_ns < SLEEP_NS ?
								 left_ns :
								 SLEEP_NS) };

		nanosleep(&ts, NULL);
	}
}

static int take_two_snapshots(struct session *s, struct wp_err *err)
{
	uint64_t start_ns = wp_clock_ns();
	int rc = wp_dumped_read_times(&s->dumped, err);

	if (!rc) {
		sleep_until(start_ns + s->options->look_interval_ns);
		s->snapshot.dump.interval_ns = wp_clock_ns() - start_ns;
		rc = make_dump(s, err);
	}
	if (rc)
		return rc;
	wp_dumped_mark_still(&s->dumped, &s->snapshot);
	if (wp_dumped_wants_look(&s->snapshot)) {
		sleep_until(wp_clock_ns() + s->options->look_interval_ns);
		wp_dumped_look_again(&s->snapshot);
	}
	return 0;
}

static int report_verdict(struct session *s, struct wp_err *err)
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
	int rc = wp_verdict_find(&s->snapshot.dump, &verdict, why, sizeof(why));

	if (rc)
		return wp_err_set(err, rc, "no verdict: %s",
				  rc == -ENOMEM ? "no memory" : why);
	/* Locks are known by the names of functions. */
	if (verdict == WP_VERDICT_HEALTHY &&
	    (s->snapshot.nunnamed || s->snapshot.ndropped))
		return wp_err_set(err, -ENODATA,
				  "no verdict: a lock may be among what %s",
				  s->snapshot.nunnamed ?
					  "has no name" :
					  "--max-memory left out");
	wp_utf8_tame(why);
	begin_to_write(s);
	if (!with_dump)
		wp_say("%s: %s", wp_verdict_name(verdict), why);
	else if (printf("%s: %s\n%s", wp_verdict_name(verdict), why,
			verdict == WP_VERDICT_HEALTHY ? "" : "\n") < 0 ||
		 fflush(stdout))
		return wp_err_set(err, -errno,
				  "cannot write standard output: %s",
				  strerror(errno));
	if (!with_dump || verdict != WP_VERDICT_HEALTHY)
		rc = write_dump(s, err);
	/* The verdict is told, and stands without the dump. */
	if (rc && verdict != WP_VERDICT_HEALTHY) {
		if (rc != -EPIPE || s->out.path)
			wp_say("wallprof: %s", err->msg);
		rc = 0;
	}
	return rc ? rc : statuses[verdict];
}

int wp_cmd_check(const struct wp_options *options)
{
	struct wp_err err = WP_ERR_INIT;
	struct session s;
	int rc = open_session(&s, options, &err);

	if (!rc)
		rc = take_two_snapshots(&s, &err);
	if (!rc)
		rc = report_verdict(&s, &err);
	close_session(&s, rc < 0 ? rc : 0, &err);
	return rc < 0 ? WP_EXIT_NOTHING : rc;
}
