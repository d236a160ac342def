/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - see wallprof/snapshot.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "goroutine_samples.h"
#include "pid_namespace.h"
#include "shared_memory.h"
#include "shared_mutex.h"
#include "snapshot_priv.h"
#include "thread_times.h"
#include "wallprof/access.h"
#include "wallprof/go_books.h"
#include "wallprof/procfs.h"
#include "wallprof/symbolize.h"
#include "wallprof/vec.h"

/* Holders, one of the other, that are followed: more are most likely a ring, and a
 * thread in one goes on no more than those behind it. */
enum { HOLDERS_MAX = 64 };

static int open_process(struct wp_snapshot_process *of, pid_t pid,
			struct wp_err *err)
{
	int rc = wp_process_open(&of->process, pid, err);

	if (rc == -EPERM)
		wp_access_denied(pid, err);
	of->is_32bit = !rc && wp_process_is_32bit(&of->process);
	return rc;
}

/* What a sample of a process is for. */
enum purpose {
	DUMP,
	/* A profile of its threads; of its goroutines. */
	THREADS,
	GOROUTINES,
};

/* Goroutines that cannot be found are missing in a dump, which says why. */
static int read_goroutines(struct wp_snapshot_sample *sample,
			   struct wp_snapshot_process *process,
			   enum purpose purpose, struct wp_err *err)
{
	int rc = wp_goroutine_stacks_read(sample->target, &sample->goroutines,
					  &sample->go_err);

	if (purpose == DUMP)
		return rc == -ENOTSUP || rc == -EAGAIN ? 0 : rc;
	if (!rc && !*sample->goroutines.version)
		rc = wp_err_set(&sample->go_err, -ENOTSUP, "not a Go program");
	if (!rc && !sample->goroutines.all.len)
		rc = wp_err_set(&sample->go_err, -ENODATA, "none was read");
	if (rc)
		return wp_err_set(err, rc, "process %d has no goroutines: %s",
				  process->process.pid, sample->go_err.msg);
	wp_pid_namespace_find(process);
	return wp_goroutine_samples_add(&sample->profile, process,
					&sample->goroutines,
					sample->go_err.msg);
}

/* Sample the threads of PROCESS, and hold none then. */
static int sample_threads(struct wp_snapshot_sample *sample,
			  struct wp_process *process,
			  const struct wp_sampler_options *options,
			  struct wp_err *err)
{
	int rc;

	wp_tracer_init(&sample->tracer);
	rc = wp_sampler_new(&sample->sampler, options, &sample->tracer, err);
	if (!rc)
		rc = wp_sampler_add_target(sample->sampler, process,
					   &sample->profile, &sample->target,
					   err);
	return rc ? rc : wp_sampler_sample_once(sample->sampler);
}

/* Sample the threads of OF; SAMPLE's profile is there, and empty. */
static int take_sample(struct wp_snapshot_sample *sample,
		       struct wp_snapshot *snapshot,
		       struct wp_snapshot_process *of, enum purpose purpose,
		       bool stops, struct wp_err *err)
{
	struct wp_sampler_options options = *snapshot->options;
	struct wp_process *process = &of->process;
	struct wp_profile *profile = &sample->profile;
	int rc;

	options.wall = true;
	options.wall_kind = WP_PROFILE_THREADS;
	options.own_threads = 0;
	/* Each thread is stopped once; how long is told. */
	options.max_stopped = 0;
	options.call_memory = true;
	options.interrupts = snapshot->interrupts;
	if (!stops)
		options.stop = WP_STOP_NEVER;
	rc = sample_threads(sample, process, &options, err);
	if (!rc && purpose == DUMP)
		rc = wp_snapshot_note_threads(sample, of, &snapshot->clock);
	if (!rc && (purpose == GOROUTINES ||
		    (purpose == DUMP && stops && !options.thread_globs[0])))
		rc = read_goroutines(sample, of, purpose, err);
	if (!rc && purpose == DUMP)
		rc = wp_snapshot_want_variables(sample);
	if (!rc)
		rc = wp_process_recheck(process, err);
	profile->meta.keeps_names = snapshot->keeps_names;
	if (!rc)
		rc = wp_symbolize(profile, process, snapshot->interrupts);
	if (!rc && !profile->sets[WP_PROFILE_THREADS].nsamples &&
	    options.thread_globs[0] && wp_process_is_alive(process)) {
		char names[256];

		wp_profile_list_names(profile, names, sizeof(names));
		return wp_err_set(err, -ENODATA,
				  "no thread of process %d has a name that "
				  "-t \"%s\"%s chooses; there are: %s",
				  process->pid, options.thread_globs[0],
				  options.thread_globs[1] ? "..." : "", names);
	}
	if (!rc && !profile->sets[WP_PROFILE_THREADS].nsamples)
		rc = -ESRCH;
	if (rc == -ESRCH)
		return wp_err_set(err, rc,
				  "process %d ended before it could be "
				  "looked at",
				  process->pid);
	if (rc && !(err && err->code))
		wp_err_set(err, rc, "cannot look at process %d: %s",
			   process->pid, strerror(-rc));
	return rc;
}

/* All but the profile. */
static void clear_sample(struct wp_snapshot_sample *sample)
{
	wp_sampler_free(sample->sampler);
	wp_tracer_clear(&sample->tracer);
	wp_goroutine_stacks_clear(&sample->goroutines);
	free(sample->notes);
}

/* Read the profile of KIND that the Go program OF keeps itself. */
static int take_books(struct wp_snapshot_sample *sample,
		      struct wp_snapshot *snapshot,
		      struct wp_snapshot_process *of, enum wp_profile_kind kind,
		      struct wp_err *err)
{
	struct wp_process *process = &of->process;
	int rc;

	wp_tracer_init(&sample->tracer);
	rc = wp_sampler_new(&sample->sampler, snapshot->options,
			    &sample->tracer, err);
	if (!rc)
		rc = wp_sampler_add_target(sample->sampler, process,
					   &sample->profile, &sample->target,
					   err);
	if (!rc)
		rc = wp_go_books_read(sample->target, kind, &sample->go_err);
	if (sample->go_err.code)
		return wp_err_set(err, rc, "process %d: %s", process->pid,
				  sample->go_err.msg);
	if (!rc)
		rc = wp_process_recheck(process, err);
	sample->profile.meta.keeps_names = snapshot->keeps_names;
	if (!rc)
		rc = wp_symbolize(&sample->profile, process,
				  snapshot->interrupts);
	if (rc && !(err && err->code))
		wp_err_set(err, rc, "cannot read process %d: %s", process->pid,
			   strerror(-rc));
	return rc;
}

int wp_snapshot_profile(struct wp_snapshot *snapshot, pid_t pid,
			enum wp_profile_kind kind, struct wp_profile *profile,
			struct wp_err *err)
{
	struct wp_snapshot_sample sample = { .tracer = WP_TRACER_INIT };
	struct wp_snapshot_process of = { .process = WP_PROCESS_INIT };
	bool samples = kind == WP_PROFILE_THREADS ||
		       kind == WP_PROFILE_GOROUTINE;
	int rc = wp_profile_init(&sample.profile);

	if (rc)
		wp_err_set(err, rc, "no memory");
	else
		rc = open_process(&of, pid, err);
	if (!rc)
		wp_sampler_describe(&sample.profile, &of.process,
				    samples ? snapshot->options->stop :
					      WP_STOP_NEVER);
	if (!rc && samples)
		rc = take_sample(&sample, snapshot, &of,
				 kind == WP_PROFILE_GOROUTINE ? GOROUTINES :
								THREADS,
				 true, err);
	else if (!rc)
		rc = take_books(&sample, snapshot, &of, kind, err);
	clear_sample(&sample);
	wp_process_clear(&of.process);
	wp_pid_namespace_clear(&of);
	*profile = sample.profile;
	return rc;
}

/* Add MORE to *N; WHY[0..size) is MORE_WHY, if these are the first. */
static void add_why(uint64_t *n, char *why, size_t size, uint64_t more,
		    const char *more_why)
{
	if (more && !*n)
		snprintf(why, size, "%s", more_why);
	*n += more;
}

static void add_losses(struct wp_snapshot *snapshot, const struct wp_profile *p)
{
	const struct wp_dump *dump = &snapshot->dump;

	add_why(&snapshot->nfiles_lineless, snapshot->lineless_why,
		sizeof(snapshot->lineless_why), p->counters.files_lineless,
		wp_dump_str(dump, p->meta.lineless_why));
	add_why(&snapshot->nunnamed, snapshot->unnamed_why,
		sizeof(snapshot->unnamed_why), p->counters.unnamed,
		wp_dump_str(dump, p->meta.unnamed_why));
	snapshot->nkernel_denied += p->counters.kernel_denied;
	snapshot->ndropped += wp_counters_dropped(&p->counters);
	snapshot->nfiles_lost += p->counters.files_lost;
	snapshot->nfiles_unopened += p->counters.files_unopened;
}

static void swap_strings(struct wp_intern *a, struct wp_intern *b)
{
	struct wp_intern t = *a;

	*a = *b;
	*b = t;
}

/* Sample the process that entry INDEX is for.  The profile adds its strings to
 * the dump's, so that an id means the same in both. */
static int add_sample(struct wp_snapshot *snapshot, uint32_t index,
		      struct wp_err *err)
{
	struct wp_snapshot_sample sample = { .tracer = WP_TRACER_INIT };
	struct wp_process *process = &snapshot->processes[index]->process;
	struct wp_dump *dump = &snapshot->dump;
	int rc = wp_profile_init(&sample.profile);

	if (rc)
		return wp_err_set(err, rc, "no memory");
	swap_strings(&dump->strings, &sample.profile.strings);
	rc = take_sample(
		&sample, snapshot, snapshot->processes[index], DUMP,
		!dump->processes[index].is_peer || snapshot->stop_peers, err);
	swap_strings(&dump->strings, &sample.profile.strings);
	add_losses(snapshot, &sample.profile);
	if (!rc) {
		wp_snapshot_describe_process(dump, &dump->processes[index],
					     process, &sample.profile.counters);
		wp_snapshot_open_go(&sample);
		rc = wp_snapshot_add_threads(snapshot, index, &sample);
	}
	if (!rc)
		rc = wp_snapshot_add_goroutines(snapshot, index, &sample);
	clear_sample(&sample);
	wp_profile_clear(&sample.profile);
	return rc;
}

static struct wp_snapshot_process *add_entry(struct wp_snapshot *snapshot,
					     pid_t pid, bool peer)
{
	struct wp_snapshot_process *process;
	struct wp_dump_process *p;

	if (WP_VEC_ROOM(snapshot->processes, snapshot->dump.nprocesses,
			snapshot->cap, 1))
		return NULL;
	process = calloc(1, sizeof(*process));
	p = process ? wp_dump_add_process(&snapshot->dump) : NULL;
	if (!p) {
		free(process);
		return NULL;
	}
	process->process = (struct wp_process)WP_PROCESS_INIT;
	snapshot->processes[snapshot->dump.nprocesses - 1] = process;
	p->pid = pid;
	p->is_peer = peer;
	return process;
}

int wp_snapshot_add(struct wp_snapshot *snapshot, pid_t pid, bool peer,
		    struct wp_err *err)
{
	struct wp_dump *dump = &snapshot->dump;
	uint32_t index = dump->nprocesses;
	struct wp_snapshot_process *process = add_entry(snapshot, pid, peer);
	int rc;

	if (!process)
		return wp_err_set(err, -ENOMEM, "no memory");
	rc = open_process(process, pid, err);
	wp_fdinfo_init(&process->fdinfo, process->process.proc_fd);
	if (!rc) {
		wp_pid_namespace_find(process);
		rc = add_sample(snapshot, index, err);
	}
	if (rc && err)
		dump->processes[index].error = wp_intern_add_str(&dump->strings,
								 err->msg);
	return rc;
}

/* For each thread, is it known for whom it waits?  NULL: no memory. */
static bool *find_waited_in(const struct wp_dump *dump)
{
	bool *v = calloc((size_t)dump->nthreads + 1, sizeof(*v));

	for (uint32_t i = 0; v && i < dump->nthreads; i++)
		v[i] = dump->threads[i].lock.holder == WP_HOLDER_THREAD;
	for (uint32_t i = 0; v && i < dump->nedges; i++)
		v[dump->edges[i].from] = true;
	return v;
}

/* T was found at the instant of its process to wait for another thread of that: what
 * wakes it before that lets it go, as a signal does, lets it wait again.  A lock of the
 * program's own may be given up then. */
static bool waits_for_holder(const struct wp_dump_thread *t)
{
	return t->state == WP_STATE_WAITING && !t->moved && !t->call.timed &&
	       t->lock.holder == WP_HOLDER_THREAD &&
	       t->lock.kind != WP_LOCK_FUTEX;
}

/* A thread that was woken and has not had a CPU yet has the same timeslices. */
bool wp_snapshot_has_run(const struct wp_snapshot *snapshot, uint32_t thread)
{
	const struct wp_dump_thread *t = &snapshot->dump.threads[thread];
	const struct wp_process *process =
		&snapshot->processes[t->process]->process;
	struct wp_proc_stat stat;

	return (wp_thread_times_stat(&stat, process, t->tid) &&
		stat.state_char == 'R') ||
	       wp_thread_times_slices(process, t->tid) != t->times.slices_after;
}

/* May THREAD, which has run since its sample, have got what it waited for?  If it
 * waits for its holder, only if the last of those that wait so has run, too; a ring
 * of them has no last one. */
static bool may_have_gone_on(const struct wp_snapshot *snapshot,
			     const uint32_t *by_tid, uint32_t thread)
{
	const struct wp_dump_thread *v = snapshot->dump.threads;
	uint32_t at = thread;

	for (uint32_t n = 0; waits_for_holder(&v[at]); n++) {
		if (n == HOLDERS_MAX)
			return false;
		at = wp_dump_find_tid(&snapshot->dump, by_tid,
				      v[at].lock.owner_tid);
		if (at == UINT32_MAX)
			return true;
	}
	return v[at].state != WP_STATE_WAITING ||
	       wp_snapshot_has_run(snapshot, at);
}

void wp_snapshot_finish(struct wp_snapshot *snapshot)
{
	struct wp_dump *dump = &snapshot->dump;
	uint32_t *by_tid = wp_dump_sort_tids(dump);
	bool *is_waited_in;

	if (by_tid)
		wp_shared_mutex_find(snapshot, by_tid);
	is_waited_in = find_waited_in(dump);
	/* Without memory all that have run count. */
	for (uint32_t i = 0; i < dump->nthreads; i++) {
		struct wp_dump_thread *t = &dump->threads[i];

		if (t->state == WP_STATE_WAITING &&
		    (!is_waited_in || is_waited_in[i]) &&
		    wp_snapshot_has_run(snapshot, i) &&
		    (!by_tid || may_have_gone_on(snapshot, by_tid, i)))
			t->open_ended = true;
	}
	free(is_waited_in);
	free(by_tid);
	wp_shared_memory_find(snapshot);
}

static void free_entry(struct wp_snapshot_process *process)
{
	wp_fdinfo_clear(&process->fdinfo);
	wp_process_clear(&process->process);
	wp_pid_namespace_clear(process);
	free(process);
}

void wp_snapshot_drop_last(struct wp_snapshot *snapshot)
{
	struct wp_dump *dump = &snapshot->dump;

	if (!dump->nprocesses || dump->processes[dump->nprocesses - 1].nthreads)
		return;
	free_entry(snapshot->processes[--dump->nprocesses]);
}

void wp_snapshot_clear(struct wp_snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->dump.nprocesses; i++)
		free_entry(snapshot->processes[i]);
	free(snapshot->processes);
	wp_sched_clock_clear(&snapshot->clock);
	wp_dump_clear(&snapshot->dump);
	snapshot->processes = NULL;
	snapshot->cap = 0;
}
