/* SPDX-License-Identifier: Apache-2.0 */
/* wakers.c - see wakers.h. */
#include "wakers.h"

#include <fcntl.h>
#include <stdio.h>

#include "target.h"
#include "threads.h"
#include "wait_object.h"

/* Tids of threads that start until the next filter. */
enum { NEXT_TIDS = 256 };

/* The least and the greatest tid of TARGET's threads, also before the first tick. */
static void find_range(struct wp_target *target, pid_t *ret_first,
		       pid_t *ret_last)
{
	pid_t first = target->process->pid, last = first;

	if (target->nthreads) {
		first = target->threads[0]->tid;
		last = target->threads[target->nthreads - 1]->tid;
	} else if (!wp_process_list_threads(target->process, &target->tids)) {
		for (size_t i = 0; i < target->tids.len; i++) {
			pid_t tid = target->tids.v[i];

			first = tid < first ? tid : first;
			last = tid > last ? tid : last;
		}
	}
	*ret_first = first;
	*ret_last = last;
}

void wp_wakers_filter(struct wp_wakers *wakers, struct wp_target *target,
		      struct wp_perf *perf)
{
	pid_t first, last;

	if (!perf)
		return;
	find_range(target, &first, &last);
	/* Each change costs a system call for each CPU. */
	if (wakers->perf == perf && wakers->first == first &&
	    wakers->last >= last && wakers->last <= last + NEXT_TIDS)
		return;
	wakers->perf = perf;
	wakers->first = first;
	wakers->last = last + NEXT_TIDS;
	wp_perf_filter_wakes(perf, wakers->first, wakers->last);
}

/* The name of thread TID of another process. */
static uint32_t foreign_name(struct wp_wakers *wakers, struct wp_target *target,
			     pid_t tid)
{
	size_t i = (size_t)tid % WP_WAKERS_NAMES;
	char path[32], comm[32] = "", text[64];
	ssize_t n;

	if (wakers->names[i].tid == tid)
		return wakers->names[i].name;
	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	n = wp_io_read_at(AT_FDCWD, path, comm, sizeof(comm));
	if (n > 0 && comm[n - 1] == '\n')
		comm[n - 1] = '\0';
	snprintf(text, sizeof(text), "%s (%d)", n > 0 ? comm : "ended", tid);
	wakers->names[i].name = wp_wait_object_intern(target, text);
	wakers->names[i].tid = tid;
	return wakers->names[i].name;
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
		   foreign_name(wakers, target, record->waker_tid);
	if (!record->soft_interrupt || name == UINT32_MAX)
		return name;
	/* A packet that it sent itself over the loopback device, or any other. */
	snprintf(text, sizeof(text), "interrupt on %s",
		 wp_profile_str(target->profile, name));
	return wp_wait_object_intern(target, text);
}
