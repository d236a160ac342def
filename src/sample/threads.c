/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - which threads there are: see sampler_priv.h. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampler_priv.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"

enum {
	FIRST_COPY_WAITING = 4096,
	FIRST_COPY_RUNNING = 16384,
	/* TASK_COMM_LEN is 16; the kernel has 64 for workqueues. */
	COMM_MAX = 80,
};

/* Each name is read again at looks 1, 2, 4, 8, ... and every so many more. */
enum { NAME_EVERY = 512 };

/* Descriptors for ELF files, the map and one-time reads. */
enum { SPARE_FDS = 256 };

/* What wp_thread's fds may be besides descriptors.  An open file holds a page
 * of the kernel's: one that is read once only is not kept, but for schedstat,
 * which tells this thread from a later one with its number. */
enum {
	NOT_READ = -1,
	READ_ONCE = -2,
	NOT_KEPT = -3,
};

static const char *const file_name[] = {
	[WP_THREAD_SCHEDSTAT] = "schedstat",
	[WP_THREAD_SYSCALL] = "syscall",
	[WP_THREAD_STAT] = "stat",
};

ssize_t wp_thread_read_once(struct wp_target *target, pid_t tid,
			    const char *name, char *buf, size_t size)
{
	char path[48];

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	return wp_io_read_at(target->process->task_fd, path, buf, size);
}

/* A descriptor to keep, unless that would leave none for other things. */
static int open_file(struct wp_target *target, pid_t tid, const char *name)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	fd = openat(target->process->task_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && (rlim_t)fd + SPARE_FDS > target->loop->fd_limit) {
		close(fd);
		return NOT_KEPT;
	}
	return fd < 0 ? NOT_KEPT : fd;
}

ssize_t wp_thread_read(struct wp_target *target, struct wp_thread *t,
		       enum wp_thread_file file, char *buf, size_t size)
{
	int *fd = &t->fds[file];

	if (*fd == READ_ONCE ||
	    (*fd == NOT_READ && file == WP_THREAD_SCHEDSTAT))
		*fd = open_file(target, t->tid, file_name[file]);
	if (*fd >= 0)
		return wp_io_pread(*fd, buf, size);
	if (*fd == NOT_READ)
		*fd = READ_ONCE;
	return wp_thread_read_once(target, t->tid, file_name[file], buf, size);
}

int wp_thread_schedstat(struct wp_target *target, struct wp_thread *t,
			struct wp_schedstat *ret)
{
	char text[96];
	ssize_t n = wp_thread_read(target, t, WP_THREAD_SCHEDSTAT, text,
				   sizeof(text));

	if (n < 0)
		return (int)n;
	return wp_schedstat_parse(ret, text, (size_t)n);
}

/* False, and "", for one that is over already. */
static bool read_comm(struct wp_target *target, pid_t tid, char name[COMM_MAX])
{
	ssize_t n = wp_thread_read_once(target, tid, "comm", name, COMM_MAX);

	name[n > 0 ? n - (name[n - 1] == '\n') : 0] = '\0';
	return n > 0;
}

/* An entry of its own; one for its name when those are enough. */
static uint32_t enter(struct wp_target *target, struct wp_thread *t,
		      const char *name)
{
	const struct wp_profile_thread p = {
		.tid = t->tid,
		.first_ns = t->first_ns,
		.last_ns = t->last_ns,
	};
	uint32_t most = target->loop->options.own_threads;

	if (!most ||
	    target->profile->nthreads - target->profile->nshared < most)
		return wp_profile_add_thread(target->profile, &p);
	t->shared = true;
	target->profile->counters.threads_shared++;
	return wp_profile_share_thread(target->profile, &p, name);
}

/* T goes on in the entry of its new name. */
static void move(struct wp_target *target, struct wp_thread *t,
		 const char *name)
{
	const struct wp_profile_thread p = {
		.tid = t->tid,
		.first_ns = t->last_ns,
		.last_ns = t->last_ns,
	};
	struct wp_profile_thread *old = &target->profile->threads[t->index];
	uint32_t index;

	if (!strcmp(wp_profile_str(target->profile, old->name), name))
		return;
	index = wp_profile_share_thread(target->profile, &p, name);
	if (index == UINT32_MAX)
		return;
	/* No sample has the name that it began with, or it shares with those of
	 * any name. */
	old = &target->profile->threads[t->index];
	if (old->nmore && (t->looks <= 1 || index == t->index))
		old->nmore--;
	if (index == t->index)
		return;
	t->index = index;
	t->first_run_ns += t->cpu_ns;
	t->cpu_ns = 0;
}

static void take_name(struct wp_target *target, struct wp_thread *t,
		      const char *name)
{
	bool watched;
	uint32_t id;

	if (t->shared) {
		move(target, t, name);
	} else {
		id = wp_intern_add_str(&target->profile->strings, name);
		if (id != UINT32_MAX)
			target->profile->threads[t->index].name = id;
	}
	watched = !target->loop->options.thread_glob ||
		  !fnmatch(target->loop->options.thread_glob, name, 0);
	if (watched == t->watched)
		return;
	t->watched = watched;
	if (watched) {
		target->nwatched++;
		/* Renamed into the glob: watched from now on. */
		if (t->looks)
			t->last_ns = target->loop->tick_ns;
	} else {
		target->nwatched--;
		t->asleep = false;
	}
}

static struct wp_thread *new_thread(struct wp_target *target, pid_t tid)
{
	struct wp_thread *t = calloc(1, sizeof(*t));
	char name[COMM_MAX];
	bool named;

	if (!t)
		return NULL;
	t->target = target;
	t->tid = tid;
	t->number = ++target->nnumbers;
	/* It began some time after the last tick: that interval is its first
	 * sample's. */
	t->first_ns = t->last_ns = target->last_tick_ns;
	t->copy_len_waiting = FIRST_COPY_WAITING;
	t->copy_len_running = FIRST_COPY_RUNNING;
	t->wait_nr = -1;
	t->last_running_stack = UINT32_MAX;
	named = read_comm(target, tid, name);
	t->index = enter(target, t, name);
	if (t->index == UINT32_MAX) {
		free(t);
		return NULL;
	}
	for (int i = 0; i < WP_NTHREAD_FILES; i++)
		t->fds[i] = NOT_READ;
	if (named)
		take_name(target, t, name);
	/* One that is over already cannot tell its name. */
	if (!named && !target->loop->options.thread_glob) {
		t->watched = true;
		target->nwatched++;
	}
	if (t->watched)
		target->profile->counters.threads_seen++;
	return t;
}

static void free_thread(struct wp_target *target, struct wp_thread *t)
{
	struct wp_tracee *tracee;

	if (t->asked) {
		tracee = wp_tracer_find(target->loop->tracer, (uintptr_t)t);
		if (tracee)
			wp_tracer_release(target->loop->tracer, tracee);
	}
	if (t->watched) {
		target->nwatched--;
		if (!t->looks &&
		    (target->looks_at_all || target->cpu_events.perf))
			target->profile->counters.threads_lost++;
	}
	for (int i = 0; i < WP_NTHREAD_FILES; i++)
		if (t->fds[i] >= 0)
			close(t->fds[i]);
	if (t->sites)
		wp_site_cache_clear(t->sites);
	free(t->sites);
	free(t);
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* Room for WANT threads in every array that has one entry a thread. */
static int reserve(struct wp_target *target, size_t want)
{
	struct wp_deferred *deferred;
	struct wp_thread **v;

	if (want > target->cap_askers) {
		v = reallocarray(target->askers, 2 * want, sizeof(*v));
		if (!v)
			return -ENOMEM;
		target->askers = v;
		target->cap_askers = 2 * want;
	}
	if (want > target->cap_deferred) {
		deferred = reallocarray(target->deferred, 2 * want,
					sizeof(*deferred));
		if (!deferred)
			return -ENOMEM;
		target->deferred = deferred;
		target->cap_deferred = 2 * want;
	}
	return 0;
}

/* A thread that still answers: another with its number would not, through
 * descriptors that were opened on the first.
 */
static bool is_same(struct wp_target *target, struct wp_thread *t)
{
	struct wp_schedstat now;

	return t->fds[WP_THREAD_SCHEDSTAT] < 0 ||
	       !wp_thread_schedstat(target, t, &now);
}

/* Merge the sorted table with the sorted list of tids. */
static int merge(struct wp_target *target)
{
	size_t i = 0, n = 0, cap = target->nthreads + target->tids.len + 1;
	struct wp_thread **v = reallocarray(NULL, cap, sizeof(*v));
	int rc = v ? reserve(target, cap) : -ENOMEM;

	for (size_t k = 0; !rc && k < target->tids.len; k++) {
		pid_t tid = target->tids.v[k];
		struct wp_thread *t = NULL;

		for (; i < target->nthreads && target->threads[i]->tid < tid;
		     i++) {
			rc = wp_record_owed(target, target->threads[i]);
			free_thread(target, target->threads[i]);
		}
		if (i < target->nthreads && target->threads[i]->tid == tid) {
			t = target->threads[i++];
			if (!is_same(target, t)) {
				rc = wp_record_owed(target, t);
				free_thread(target, t);
				t = NULL;
			}
		}
		if (!t)
			t = new_thread(target, tid);
		if (t)
			v[n++] = t;
		else
			rc = -ENOMEM;
	}
	for (; i < target->nthreads; i++) {
		(void)!wp_record_owed(target, target->threads[i]);
		free_thread(target, target->threads[i]);
	}
	free(target->threads);
	target->threads = v;
	target->nthreads = v ? n : 0;
	return rc;
}

int wp_threads_update(struct wp_target *target)
{
	long count = wp_process_count_threads(target->process);
	int rc;

	if (count < 0)
		return (int)count;
	/* Equal numbers, and every known one answers: the same threads.  Those
	 * that do not are dropped as they are met, which makes the numbers
	 * differ. */
	if ((size_t)count == target->nthreads)
		return count ? 0 : -ESRCH;
	rc = wp_process_list_threads(target->process, &target->tids);
	if (rc)
		return rc;
	qsort(target->tids.v, target->tids.len, sizeof(*target->tids.v),
	      compare_tids);
	rc = merge(target);
	return rc ? rc : (target->nthreads ? 0 : -ESRCH);
}

/* Where TID is, or belongs. */
static size_t place_of(const struct wp_target *target, pid_t tid)
{
	return WP_LOWER_BOUND(target->nthreads, i,
			      target->threads[i]->tid < tid);
}

struct wp_thread *wp_threads_find(struct wp_target *target, pid_t tid)
{
	size_t i = place_of(target, tid);

	return i < target->nthreads && target->threads[i]->tid == tid ?
		       target->threads[i] :
		       NULL;
}

struct wp_thread *wp_threads_get(struct wp_target *target, pid_t tid)
{
	struct wp_thread *t = wp_threads_find(target, tid), **v;
	size_t i = place_of(target, tid);

	if (t)
		return t;
	if (reserve(target, target->nthreads + 1))
		return NULL;
	v = reallocarray(target->threads, target->nthreads + 1, sizeof(*v));
	if (!v)
		return NULL;
	target->threads = v;
	t = new_thread(target, tid);
	if (!t)
		return NULL;
	memmove(&v[i + 1], &v[i], (target->nthreads - i) * sizeof(*v));
	v[i] = t;
	target->nthreads++;
	return t;
}

void wp_threads_drop(struct wp_target *target, size_t i)
{
	(void)!wp_record_owed(target, target->threads[i]);
	free_thread(target, target->threads[i]);
	target->nthreads--;
	memmove(&target->threads[i], &target->threads[i + 1],
		(target->nthreads - i) * sizeof(*target->threads));
}

void wp_threads_name(struct wp_target *target, struct wp_thread *t,
		     const struct wp_task_record *record)
{
	char name[COMM_MAX];

	t->looks++;
	if (t->looks & (t->looks - 1) && t->looks % NAME_EVERY)
		return;
	if (record)
		take_name(target, t, record->comm);
	else if (read_comm(target, t->tid, name))
		take_name(target, t, name);
}

void wp_threads_clear(struct wp_target *target)
{
	for (size_t i = 0; i < target->nthreads; i++)
		free_thread(target, target->threads[i]);
	free(target->threads);
	free(target->askers);
	free(target->deferred);
	wp_tids_clear(&target->tids);
	target->threads = NULL;
	target->nthreads = 0;
}
