/* SPDX-License-Identifier: Apache-2.0 */
/* wakers.c - see wakers.h. */
#include "wakers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "threads.h"
#include "wait_object.h"
#include "wallprof/vec.h"

enum {
	/* Tids of threads that start until the next filter. */
	NEXT_TIDS = 256,
	/* Least time between two filters: each costs system calls for each CPU. */
	FILTER_NS = 100000000,
	/* The name of a thread of another process is read again so often: it may have
	 * executed a program, or have ended and another have its tid. */
	READ_NS = 1000000000,
};

/* The number of ranges in RANGES[0..n) when the two with the least between them are
 * one. */
static size_t merge_nearest(struct wp_tid_range *ranges, size_t n)
{
	size_t at = 1;

	for (size_t i = 2; i < n; i++)
		if (ranges[i].first - ranges[i - 1].last <
		    ranges[at].first - ranges[at - 1].last)
			at = i;
	ranges[at - 1].last = ranges[at].last;
	memmove(&ranges[at], &ranges[at + 1], (n - at - 1) * sizeof(*ranges));
	return n - 1;
}

size_t wp_wakers_ranges(struct wp_tid_range ranges[WP_PERF_RANGES_MAX],
			const pid_t *tids, size_t n)
{
	struct wp_tid_range v[WP_PERF_RANGES_MAX + 1] = { { 0 } };
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		if (len && tids[i] - v[len - 1].last <= 1) {
			v[len - 1].last = tids[i];
			continue;
		}
		v[len++] = (struct wp_tid_range){ tids[i], tids[i] };
		if (len > WP_PERF_RANGES_MAX)
			len = merge_nearest(v, len);
	}
	memcpy(ranges, v, len * sizeof(*v));
	return len;
}

/* List TARGET's threads, also before the first tick. */
static int list_tids(struct wp_target *target)
{
	struct wp_tids *tids = &target->tids;

	if (!target->nthreads) {
		int rc = wp_process_list_threads(target->process, tids);

		if (!rc)
			wp_tids_sort(tids);
		return rc;
	}
	if (WP_VEC_ROOM(tids->v, 0, tids->cap, target->nthreads))
		return -ENOMEM;
	for (size_t i = 0; i < target->nthreads; i++)
		tids->v[i] = target->threads[i]->tid;
	tids->len = target->nthreads;
	return 0;
}

void wp_wakers_filter(struct wp_wakers *wakers, struct wp_target *target,
		      struct wp_perf *perf)
{
	struct wp_tid_range ranges[WP_PERF_RANGES_MAX];
	uint64_t now = target->loop->tick_ns;
	size_t n;

	if (!perf ||
	    (wakers->perf == perf && (wakers->nserials == target->nserials ||
				      now - wakers->filtered_ns < FILTER_NS)))
		return;
	if (list_tids(target) || !target->tids.len)
		return;
	n = wp_wakers_ranges(ranges, target->tids.v, target->tids.len);
	wakers->perf = perf;
	wakers->nserials = target->nthreads ? target->nserials :
					      target->tids.len;
	wakers->filtered_ns = now;
	wp_perf_filter_wakes(perf, ranges, n, NEXT_TIDS);
}

/* The stack of one frame, TEXT. */
static uint32_t text_stack(struct wp_target *target, const char *text)
{
	struct wp_frame frame = wp_stack_walk_text_frame(target->profile, text);
	const struct wp_stack stack = { .frames = &frame,
					.depth = 1,
					.end = WP_END_ROOT };

	return frame.pc_avma == UINT32_MAX ?
		       UINT32_MAX :
		       wp_profile_add_stack(target->profile, &stack,
					    WP_MAPPING_NONE);
}

/* Is thread TID one of the kernel? */
static bool is_kernel_thread(pid_t tid)
{
	struct wp_proc_stat stat;

	return !wp_proc_stat_read(&stat, tid) && stat.kernel_thread;
}

/* Read the name of thread TID into COMM; false: it has ended. */
static bool read_comm(pid_t tid, char comm[32])
{
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	n = wp_io_read_at(AT_FDCWD, path, comm, 32);
	if (n > 0 && comm[n - 1] == '\n')
		comm[n - 1] = '\0';
	return n > 0;
}

/* The stack that stands for thread TID of another process, called COMM. */
static uint32_t foreign_stack(struct wp_target *target, pid_t tid,
			      const char *comm)
{
	const char *kind = is_kernel_thread(tid) ? "kernel thread" :
						   "another process";
	char text[64];

	snprintf(text, sizeof(text), "[%s: %s]", kind, comm);
	/* They may take ever new names: beyond too many, none is told. */
	if (!wp_wait_object_intern(target, text))
		snprintf(text, sizeof(text), "[%s]", kind);
	return text_stack(target, text);
}

/* The index of names[] of thread TID of another process. */
static size_t find_foreign(struct wp_wakers *wakers, struct wp_target *target,
			   pid_t tid)
{
	size_t i = (size_t)tid % WP_WAKERS_NAMES;
	bool is_known = wakers->names[i].tid == tid;
	uint64_t now = target->loop->tick_ns;
	char comm[32], text[64];

	if (is_known && now - wakers->names[i].read_ns < READ_NS)
		return i;
	wakers->names[i].read_ns = now;
	if (!read_comm(tid, comm)) {
		/* Known by the name that it had. */
		if (is_known)
			return i;
		snprintf(comm, sizeof(comm), "ended");
	}
	if (is_known && !strcmp(comm, wakers->names[i].comm))
		return i;
	wakers->names[i].tid = tid;
	memcpy(wakers->names[i].comm, comm, sizeof(comm));
	snprintf(text, sizeof(text), "%s (%d)", comm, tid);
	wakers->names[i].name = wp_wait_object_intern(target, text);
	wakers->names[i].stack = 0;
	if (target->loop->options.wake)
		wakers->names[i].stack = foreign_stack(target, tid, comm);
	return i;
}

static uint32_t own_name(struct wp_target *target, const struct wp_thread *t)
{
	const struct wp_profile *profile = target->profile;
	char text[64];

	snprintf(text, sizeof(text), "%s (%d)",
		 wp_profile_str(profile, profile->threads[t->index].name),
		 t->tid);
	return wp_wait_object_intern(target, text);
}

uint32_t wp_wakers_name(struct wp_wakers *wakers, struct wp_target *target,
			const struct wp_perf_record *record)
{
	const struct wp_thread *t;
	uint32_t name;
	char text[96];

	if (record->hard_interrupt || !record->waker_tid)
		return wp_wait_object_intern(target, "interrupt");
	t = wp_threads_find(target, record->waker_tid);
	name = t ? own_name(target, t) :
		   wakers->names[find_foreign(wakers, target,
					      record->waker_tid)]
			       .name;
	if (!record->soft_interrupt || name == UINT32_MAX)
		return name;
	/* A packet that it sent itself over the loopback device, or any other. */
	snprintf(text, sizeof(text), "interrupt on %s",
		 wp_profile_str(target->profile, name));
	return wp_wait_object_intern(target, text);
}

uint32_t wp_wakers_stack(struct wp_wakers *wakers, struct wp_target *target,
			 const struct wp_perf_record *record)
{
	if (!record)
		return text_stack(target, "[waker not recorded]");
	if (record->soft_interrupt && !record->hard_interrupt)
		return text_stack(target, WP_WAKERS_SOFT);
	if (record->hard_interrupt || !record->waker_tid)
		return text_stack(target, "[interrupt]");
	return wakers->names[find_foreign(wakers, target, record->waker_tid)]
		.stack;
}
