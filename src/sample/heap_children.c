/* SPDX-License-Identifier: Apache-2.0 */
/* heap_children.c - see heap_children.h. */
#include "heap_children.h"

#include <fcntl.h>
#include <stdio.h>

#include "wallprof/clock.h"
#include "wallprof/heap_probe.h"
#include "wallprof/io.h"
#include "wallprof/perf.h"
#include "wallprof/procfs.h"

/* Probes are removed from children for this part of the time at most: it takes 15 to 80 ms,
 * most of which is waited for. */
enum { SPARE_EVERY = 10 };

static struct wp_heap_child *find(struct wp_heap_children *children, pid_t pid)
{
	for (uint32_t i = 0; i < children->n; i++)
		if (children->v[i].pid == pid)
			return &children->v[i];
	return NULL;
}

static void begin(struct wp_heap_children *children,
		  const struct wp_perf_record *record)
{
	children->is_due = true;
	if (record->time_ns < children->next_ns &&
	    children->n < WP_HEAP_CHILDREN_MAX)
		children->v[children->n++] = (struct wp_heap_child){
			.pid = record->pid, .read_ns = record->time_ns
		};
}

void wp_heap_children_note(struct wp_heap_children *children, pid_t pid,
			   const struct wp_perf_record *record)
{
	struct wp_heap_child *child = find(children, record->pid);

	if (record->type == WP_PERF_FORK && record->parent_pid == pid &&
	    record->pid != pid)
		begin(children, record);
	/* There may have been one. */
	children->is_due |= record->type == WP_PERF_LOST;
	if (!child || record->tid != record->pid ||
	    (record->type != WP_PERF_EXIT &&
	     (record->type != WP_PERF_NAME || !record->by_exec)))
		return;
	/* What it has run since then is not known, but not more than this. */
	if (record->type == WP_PERF_EXIT && record->time_ns > child->read_ns)
		children->spent_ns += record->time_ns - child->read_ns;
	*child = children->v[--children->n];
}

static void read_times(struct wp_heap_children *children)
{
	for (uint32_t i = 0; i < children->n; i++) {
		struct wp_heap_child *child = &children->v[i];
		struct wp_schedstat times;
		char path[40], text[96];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/schedstat", child->pid);
		n = wp_io_read_at(AT_FDCWD, path, text, sizeof(text));
		if (n < 0 || wp_schedstat_parse(&times, text, (size_t)n) ||
		    times.run_ns < child->run_ns)
			continue;
		children->spent_ns += times.run_ns - child->run_ns;
		child->run_ns = times.run_ns;
		child->read_ns = wp_clock_ns();
	}
}

void wp_heap_children_spare(struct wp_heap_children *children,
			    struct wp_heap_probe *probe, uint64_t now)
{
	read_times(children);
	if (!children->is_due || now < children->next_ns)
		return;
	wp_heap_probe_spare_children(probe);
	read_times(children);
	children->n = 0;
	children->is_due = false;
	children->next_ns = now + SPARE_EVERY * (wp_clock_ns() - now);
}
