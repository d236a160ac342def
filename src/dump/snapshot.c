/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - see wallprof/snapshot.h.
 *
 * Times and CPUs are read before the look, whose own stops would change them;
 * locks after it, when the stack has told what to read.
 */

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "call_text.h"
#include "pid_namespace.h"
#include "wallprof/access.h"
#include "wallprof/base_name.h"
#include "wallprof/snapshot.h"
#include "wallprof/symbolize.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"
#include "wallprof/state.h"
#include "wallprof/vec.h"

/* Frames among which the site of a wait is looked for. */
enum { SITE_FRAMES_MAX = 64 };
/* How long a thread that was stopped is given to go back to its wait. */
#define SETTLE_NS (20 * WP_NS_PER_MS)

/* What was read of a thread before the look. */
struct before {
	pid_t tid;
	int cpu;
	/* 0: not known. */
	uint64_t exec_start_ns;
	struct wp_schedstat schedstat;
};

/* One look while it is being made. */
struct job {
	struct wp_snapshot *looks;
	struct wp_snapshot_process *look;
	/* Index in the dump's processes. */
	uint32_t process;
	bool peer;
	struct wp_profile profile;
	struct wp_tracer tracer;
	struct wp_sampler *sampler;
	struct wp_target *target;
	/* before[0..nbefore) by tid. */
	struct before *before;
	size_t nbefore;
	/* Of each of the profile's threads: its view, and the index of its
	 * sample, UINT32_MAX for none. */
	struct wp_thread_view *views;
	uint32_t *samples;
};

static ssize_t read_thread(const struct wp_snapshot_process *look, pid_t tid,
			   const char *name, char *buf, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	return wp_io_read_at(look->process.task_fd, path, buf, size);
}

/* UINT64_MAX when it is gone. */
static uint64_t read_slices(const struct wp_snapshot_process *look, pid_t tid)
{
	struct wp_schedstat now;
	char text[256];
	ssize_t n = read_thread(look, tid, "schedstat", text, sizeof(text));

	return n > 0 && !wp_schedstat_parse(&now, text, (size_t)n) ?
		       now.slices :
		       UINT64_MAX;
}

/* Times TID has been put on a CPU, when it is back from a stop of ours. */
static uint64_t settle(const struct wp_snapshot_process *look, pid_t tid,
		       enum wp_state state)
{
	uint64_t until_ns = wp_clock_ns() + SETTLE_NS;
	struct wp_proc_syscall call;
	char text[256];

	while (state == WP_STATE_WAITING && wp_clock_ns() < until_ns) {
		ssize_t n = read_thread(look, tid, "syscall", text,
					sizeof(text));

		if (n <= 0 || wp_proc_syscall_parse(&call, text, (size_t)n) ||
		    !call.running)
			break;
		nanosleep(&(struct timespec){ 0, 200000 }, NULL);
	}
	return read_slices(look, tid);
}

static void read_before(const struct wp_snapshot_process *look, pid_t tid,
			struct before *ret)
{
	struct wp_proc_stat stat;
	char text[4096];
	ssize_t n;

	*ret = (struct before){ .tid = tid, .cpu = -1 };
	n = read_thread(look, tid, "stat", text, sizeof(text));
	if (n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n))
		ret->cpu = stat.cpu;
	n = read_thread(look, tid, "sched", text, sizeof(text));
	if (n <= 0 || wp_proc_sched_parse(&ret->exec_start_ns, text, (size_t)n))
		ret->exec_start_ns = 0;
	n = read_thread(look, tid, "schedstat", text, sizeof(text));
	/* Run since: not the wait whose beginning was read. */
	if (n <= 0 || wp_schedstat_parse(&ret->schedstat, text, (size_t)n))
		ret->exec_start_ns = 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct before *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int read_all_before(struct job *job)
{
	struct wp_tids tids = WP_TIDS_INIT;
	int rc = wp_process_list_threads(&job->look->process, &tids);

	if (!rc) {
		job->before = calloc(tids.len + 1, sizeof(*job->before));
		rc = job->before ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !rc && i < tids.len; i++)
		read_before(job->look, tids.v[i], &job->before[i]);
	if (!rc) {
		job->nbefore = tids.len;
		qsort(job->before, tids.len, sizeof(*job->before), by_tid);
	}
	wp_tids_clear(&tids);
	return rc;
}

static void count_unnamed(struct job *job)
{
	const struct wp_profile *p = &job->profile;

	if (p->counters.unnamed && !job->looks->nunnamed)
		snprintf(job->looks->unnamed_why,
			 sizeof(job->looks->unnamed_why), "%s",
			 wp_profile_str(p, p->meta.unnamed_why));
	job->looks->nunnamed += p->counters.unnamed;
}

static int take(struct job *job, struct wp_err *err)
{
	struct wp_sampler_options options = *job->looks->options;
	int rc;

	options.own_threads = 0;
	options.wall_kind = WP_PROFILE_THREADS;
	if (job->peer && !job->looks->stop_peers)
		options.stop = WP_STOP_NEVER;
	rc = wp_profile_init(&job->profile);
	if (rc)
		return wp_err_set(err, rc, "no memory");
	job->profile.meta.kind = WP_PROFILE_THREADS;
	rc = read_all_before(job);
	if (!rc)
		rc = wp_sampler_new(&job->sampler, &options, &job->tracer, err);
	if (!rc)
		rc = wp_sampler_add_target(job->sampler, &job->look->process,
					   &job->profile, &job->target, err);
	if (!rc)
		rc = wp_sampler_sample_once(job->sampler);
	if (!rc)
		rc = wp_process_recheck(&job->look->process, err);
	if (!rc)
		rc = wp_symbolize(&job->profile, &job->look->process,
				  job->looks->hurry);
	count_unnamed(job);
	if (!rc && !job->profile.sets[WP_PROFILE_THREADS].nsamples)
		rc = -ESRCH;
	if (rc == -ESRCH)
		return wp_err_set(err, rc,
				  "process %d ended before it could "
				  "be looked at",
				  job->look->process.pid);
	if (rc && !(err && err->code))
		wp_err_set(err, rc, "cannot look at process %d: %s",
			   job->look->process.pid, strerror(-rc));
	return rc;
}

static void keep_view(void *ctx, const struct wp_thread_view *view)
{
	struct job *job = ctx;

	if (view->index < job->profile.nthreads)
		job->views[view->index] = *view;
}

static int index_threads(struct job *job)
{
	const struct wp_sample_set *set =
		&job->profile.sets[WP_PROFILE_THREADS];
	uint32_t n = job->profile.nthreads;

	job->views = calloc((size_t)n + 1, sizeof(*job->views));
	job->samples = malloc(((size_t)n + 1) * sizeof(*job->samples));
	if (!job->views || !job->samples)
		return -ENOMEM;
	memset(job->samples, 0xff, ((size_t)n + 1) * sizeof(*job->samples));
	wp_sampler_each_thread(job->target, keep_view, job);
	for (uint32_t i = 0; i < set->nsamples; i++)
		if (set->samples[i].count)
			job->samples[set->samples[i].key.thread] = i;
	return 0;
}

/* The profile's string ID as one of the dump's. */
static uint32_t carry(struct job *job, uint32_t id)
{
	return wp_intern_add_str(&job->looks->dump.strings,
				 wp_profile_str(&job->profile, id));
}

static int add_frames(struct job *job, const struct wp_profile_location *loc)
{
	struct wp_dump *dump = &job->looks->dump;
	const struct wp_profile *p = &job->profile;
	const char *module = "";

	if (loc->mapping == WP_MAPPING_KERNEL)
		module = "[kernel]";
	else if (loc->mapping != WP_MAPPING_NONE)
		module = wp_base_name(
			wp_profile_str(p, p->mappings[loc->mapping].path));
	for (uint32_t i = 0; i < loc->nlines; i++) {
		const struct wp_profile_line *line =
			&p->lines[loc->line_first + i];
		const struct wp_profile_function *f =
			&p->functions[line->function];
		struct wp_dump_frame *frame = wp_dump_add_frame(dump);

		if (!frame)
			return -ENOMEM;
		frame->pc_avma = loc->avma;
		frame->function = carry(job, f->name);
		frame->system_name = carry(job, f->system_name);
		frame->file = carry(job, f->file);
		frame->module = wp_intern_add_str(&dump->strings, module);
		frame->line = line->line;
		frame->inlined = i + 1 < loc->nlines;
		frame->kernel = loc->mapping == WP_MAPPING_KERNEL;
		frame->guessed = loc->guessed;
	}
	return 0;
}

/* "[truncated: WHY]" gives WHY. */
static uint32_t carry_reason(struct job *job, uint32_t id)
{
	const char *text = wp_profile_str(&job->profile, id);
	const char *why = strstr(text, ": ");
	size_t n = why ? strlen(why + 2) : 0;

	return n ? wp_intern_add(&job->looks->dump.strings, why + 2, n - 1) : 0;
}

static int add_stack(struct job *job, uint32_t thread, uint32_t stack_index)
{
	struct wp_dump *dump = &job->looks->dump;
	const struct wp_profile *p = &job->profile;
	const struct wp_profile_stack *stack = &p->stacks[stack_index];
	struct wp_dump_thread *t = &dump->threads[thread];
	int rc = 0;

	t->first_frame = dump->nframes;
	for (uint32_t i = 0; i < stack->nlocs && !rc; i++) {
		const struct wp_profile_location *loc =
			&p->locations[p->loc_pool[stack->loc_first + i]];

		if (loc->text)
			t->truncated = carry_reason(job, loc->text);
		else
			rc = add_frames(job, loc);
	}
	t->nframes = dump->nframes - t->first_frame;
	return rc;
}

static void find_site(struct wp_dump *dump, struct wp_dump_thread *t)
{
	struct wp_named_frame named[SITE_FRAMES_MAX];
	uint32_t at[SITE_FRAMES_MAX];
	size_t n = 0, site;

	for (uint32_t i = 0; i < t->nframes && n < SITE_FRAMES_MAX; i++) {
		const struct wp_dump_frame *f =
			&dump->frames[t->first_frame + i];

		if (f->kernel)
			continue;
		at[n] = i;
		named[n++] = (struct wp_named_frame){
			wp_dump_str(dump, f->system_name),
			wp_dump_str(dump, f->function),
			wp_dump_str(dump, f->module)
		};
	}
	site = wp_state_wait_site(named, n);
	t->site = site < n ? at[site] : t->nframes;
}

/* How long it has been in the wait that the look saw. */
static void set_times(struct job *job, struct wp_dump_thread *t,
		      const struct wp_thread_view *view)
{
	struct before key = { .tid = t->tid };
	const struct before *b = bsearch(&key, job->before, job->nbefore,
					 sizeof(key), by_tid);
	const struct wp_sched_cpu *cpu;

	t->slices = UINT64_MAX;
	t->slices_after = settle(job->look, t->tid, t->state);
	if (!b)
		return;
	t->cpu = b->cpu;
	t->run_ns = b->schedstat.run_ns;
	if (b->schedstat.slices == view->slices)
		t->slices = view->slices;
	if (t->state == WP_STATE_RUNNING || t->state == WP_STATE_RUNNABLE ||
	    !b->exec_start_ns || t->slices == UINT64_MAX)
		return;
	cpu = wp_sched_clock_find(&job->looks->clock, b->cpu);
	if (cpu)
		t->waited_ns = wp_sched_wait_ns(cpu, b->exec_start_ns,
						wp_clock_ns());
}

/* A thread of the target by the number that the target gives it. */
static int32_t find_thread(void *ctx, int32_t tid)
{
	struct wp_snapshot_process *look = ctx;
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n;

	tid = wp_pid_namespace_thread(look, tid);
	if (!tid)
		return 0;
	n = read_thread(look, tid, "stat", text, sizeof(text));
	if (n <= 0 || wp_proc_stat_parse(&stat, text, (size_t)n) ||
	    stat.letter == 'Z' || stat.letter == 'X')
		return 0;
	return tid;
}

static enum wp_mem_result read_memory(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	const struct wp_snapshot_process *look = ctx;

	return wp_process_read(&look->process, avma, buf, len) == (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

/* Is it in the call that the look saw, as far as /proc tells? */
static bool still_there(const struct wp_snapshot_process *look,
			const struct wp_dump_thread *t)
{
	struct wp_proc_syscall call;
	char text[256];
	ssize_t n = read_thread(look, t->tid, "syscall", text, sizeof(text));

	return n > 0 && !wp_proc_syscall_parse(&call, text, (size_t)n) &&
	       !call.running &&
	       (call.nr == t->syscall_nr || call.nr == wp_syscall_restart) &&
	       !memcmp(call.args, t->args, 3 * sizeof(*t->args));
}

/* T's innermost user frames as FRAMES[0..n); returns n. */
static uint32_t lock_frames(struct wp_lock_frame frames[WP_LOCK_FRAMES_MAX],
			    const struct wp_dump *dump,
			    const struct wp_dump_thread *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->nframes && n < WP_LOCK_FRAMES_MAX; i++) {
		const struct wp_dump_frame *f =
			&dump->frames[t->first_frame + i];
		uint32_t name = f->system_name ? f->system_name : f->function;

		if (!f->kernel)
			frames[n++] = (struct wp_lock_frame){
				.function = wp_dump_str(dump, name),
				.module = f->module,
				.guessed = f->guessed,
			};
	}
	return n;
}

static void decode_lock(struct job *job, struct wp_dump_thread *t)
{
	const struct wp_lock_query query = {
		.mem = { read_memory, job->look },
		.find_thread = find_thread,
		.ctx = job->look,
	};
	struct wp_lock_frame frames[WP_LOCK_FRAMES_MAX];
	const struct wp_lock_wait wait = {
		.syscall_nr = t->syscall_nr,
		.args = t->args,
		.wait = t->wait,
		.frames = frames,
		.nframes = lock_frames(frames, &job->looks->dump, t),
	};
	struct wp_lock_answer answer;

	wp_lock_decode(&wait, &query, &answer);
	t->timed = answer.timed;
	t->wait = answer.wait;
	if (still_there(job->look, t))
		t->lock = answer.lock;
}

static bool is_futex(const struct wp_dump *dump, const struct wp_dump_thread *t)
{
	return t->state == WP_STATE_WAITING &&
	       !strncmp(wp_dump_str(dump, t->syscall), "futex", 5);
}

static int add_thread(struct job *job, uint32_t index)
{
	struct wp_dump *dump = &job->looks->dump;
	const struct wp_profile_thread *pt = &job->profile.threads[index];
	const struct wp_thread_view *view = &job->views[index];
	const struct wp_profile_sample *sample;
	struct wp_dump_thread *t;
	uint32_t at = dump->nthreads;
	int rc;

	if (job->samples[index] == UINT32_MAX) {
		dump->processes[job->process].nlost++;
		return 0;
	}
	sample = &job->profile.sets[WP_PROFILE_THREADS]
			  .samples[job->samples[index]];
	t = wp_dump_add_thread(dump);
	if (!t)
		return -ENOMEM;
	t->process = job->process;
	t->tid = pt->tid;
	t->name = carry(job, pt->name);
	t->state = (enum wp_state)sample->key.state;
	t->wait = (enum wp_wait)sample->key.wait;
	t->syscall = carry(job, sample->key.syscall);
	if (t->state == WP_STATE_WAITING) {
		t->syscall_nr = view->syscall_nr;
		memcpy(t->args, view->args, sizeof(t->args));
	}
	set_times(job, t, view);
	rc = add_stack(job, at, sample->key.stack);
	if (rc)
		return rc;
	t = &dump->threads[at];
	find_site(dump, t);
	if (is_futex(dump, t))
		decode_lock(job, t);
	dump->processes[job->process].nthreads++;
	return wp_call_text(&t->call, dump, job->look, t,
			    wp_profile_str(&job->profile, sample->key.object));
}

static uint32_t user_name(struct wp_dump *dump, uid_t uid)
{
	struct passwd pw, *found = NULL;
	char buf[4096], number[16];
	void *room = malloc(sizeof(buf));

	/* glibc's getpwuid_r dies of SIGSEGV where there is no memory (2.36,
	 * nss_database_check_reload_and_get). */
	free(room);
	if (room && !getpwuid_r(uid, &pw, buf, sizeof(buf), &found) && found)
		return wp_intern_add_str(&dump->strings, pw.pw_name);
	snprintf(number, sizeof(number), "%u", uid);
	return wp_intern_add_str(&dump->strings, number);
}

/* Handlers for what the process does itself (faults) and those of glibc's
 * threads (32, 33: nptl/nptl_init) do not end a wait from outside. */
static bool catches_signals(const struct wp_snapshot_process *look)
{
	static const uint64_t own = 1u << (SIGSEGV - 1) | 1u << (SIGBUS - 1) |
				    1u << (SIGILL - 1) | 1u << (SIGFPE - 1) |
				    1u << (SIGABRT - 1) | 1u << (SIGTRAP - 1) |
				    1u << (SIGSYS - 1) | UINT64_C(3) << 31;
	uint64_t caught;
	char text[8192];
	ssize_t n = wp_io_read_at(look->process.proc_fd, "status", text,
				  sizeof(text));

	return n <= 0 ||
	       wp_proc_status_parse(&caught, text, (size_t)n, "SigCgt", 16) ||
	       (caught & ~own);
}

static void describe_process(struct job *job, struct wp_dump_process *p)
{
	struct wp_dump *dump = &job->looks->dump;
	const struct wp_snapshot_process *look = job->look;
	struct wp_proc_stat stat;
	char text[4096];
	ssize_t n;

	p->pid = look->process.pid;
	p->is_peer = job->peer;
	n = wp_io_read_at(look->process.proc_fd, "stat", text, sizeof(text));
	if (n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n))
		p->ppid = stat.ppid;
	wp_process_command_line(&look->process, text, sizeof(text));
	p->command_line = wp_intern_add_str(&dump->strings, text);
	p->user = user_name(dump, look->process.uid);
	p->catches_signals = catches_signals(look);
	p->pause_ns = job->profile.counters.pause_total_ns;
	p->nstopped = (uint32_t)job->profile.counters.stopped;
	p->nlost = (uint32_t)(job->profile.counters.samples_lost +
			      job->profile.counters.threads_lost);
	p->first_thread = dump->nthreads;
}

static int fill(struct job *job)
{
	struct wp_dump *dump = &job->looks->dump;
	int rc = index_threads(job);

	describe_process(job, &dump->processes[job->process]);
	for (uint32_t i = 0; i < job->profile.nthreads && !rc; i++)
		rc = add_thread(job, i);
	return rc;
}

static int add_entry(struct wp_snapshot *looks, struct job *job, pid_t pid)
{
	struct wp_dump_process *p;

	if (WP_VEC_ROOM(looks->v, looks->dump.nprocesses, looks->cap, 1))
		return -ENOMEM;
	job->look = calloc(1, sizeof(*job->look));
	if (!job->look)
		return -ENOMEM;
	job->look->process = (struct wp_process)WP_PROCESS_INIT;
	job->process = looks->dump.nprocesses;
	p = wp_dump_add_process(&looks->dump);
	if (!p) {
		free(job->look);
		return -ENOMEM;
	}
	looks->v[job->process] = job->look;
	p->pid = pid;
	p->is_peer = job->peer;
	return 0;
}

int wp_snapshot_add(struct wp_snapshot *looks, pid_t pid, bool peer,
		    struct wp_profile *keep, struct wp_err *err)
{
	struct job job = { .looks = looks,
			   .peer = peer,
			   .tracer = WP_TRACER_INIT };
	int rc = add_entry(looks, &job, pid);

	if (rc)
		return wp_err_set(err, rc, "no memory");
	rc = wp_process_open(&job.look->process, pid, err);
	if (rc == -EPERM)
		wp_access_denied(pid, err);
	if (!rc)
		wp_pid_namespace_find(job.look);
	wp_fdinfo_init(&job.look->fdinfo, job.look->process.proc_fd);
	wp_tracer_init(&job.tracer);
	if (!rc)
		rc = take(&job, err);
	if (!rc)
		rc = fill(&job);
	if (rc && err)
		looks->dump.processes[job.process].error = wp_intern_add_str(
			&looks->dump.strings, err->msg);
	wp_sampler_free(job.sampler);
	wp_tracer_clear(&job.tracer);
	if (keep && !rc)
		*keep = job.profile;
	else
		wp_profile_clear(&job.profile);
	free(job.before);
	free(job.views);
	free(job.samples);
	return rc;
}

static bool is_waited_in(const struct wp_dump *dump, uint32_t thread)
{
	if (dump->threads[thread].lock.holder == WP_HOLDER_THREAD)
		return true;
	for (uint32_t i = 0; i < dump->nedges; i++)
		if (dump->edges[i].from == thread)
			return true;
	return false;
}

void wp_snapshot_finish(struct wp_snapshot *looks)
{
	struct wp_dump *dump = &looks->dump;

	for (uint32_t i = 0; i < dump->nthreads; i++) {
		struct wp_dump_thread *t = &dump->threads[i];

		if (t->state == WP_STATE_WAITING && is_waited_in(dump, i) &&
		    read_slices(looks->v[t->process], t->tid) !=
			    t->slices_after)
			t->open_ended = true;
	}
}

void wp_snapshot_clear(struct wp_snapshot *looks)
{
	for (uint32_t i = 0; i < looks->dump.nprocesses; i++) {
		wp_fdinfo_clear(&looks->v[i]->fdinfo);
		wp_process_clear(&looks->v[i]->process);
		free(looks->v[i]->ns_tids);
		free(looks->v[i]);
	}
	free(looks->v);
	wp_sched_clock_clear(&looks->clock);
	wp_dump_clear(&looks->dump);
	looks->v = NULL;
	looks->cap = 0;
}
