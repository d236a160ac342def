/* SPDX-License-Identifier: Apache-2.0 */
/* perf_filter.c - whose wakes are recorded: see wallprof/perf.h. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "perf_priv.h"

/* Room for WP_PERF_RANGES_MAX ranges of a field. */
enum { TEXT_MAX = 1024 };

/* Write to TEXT "FIELD is in one of RANGES[0..n)", as the kernel puts it. */
static void put_ranges(char text[TEXT_MAX], const char *field,
		       const struct wp_tid_range *ranges, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, TEXT_MAX - len,
					"%s(%s >= %d && %s <= %d)",
					i ? " || " : "(", field,
					ranges[i].first, field, ranges[i].last);
	snprintf(text + len, TEXT_MAX - len, ")");
}

/* Open an event in the place of that at I, with FILTER, unless the kernel refuses. */
static void replace(struct wp_perf *perf, size_t i, const char *filter)
{
	struct wp_perf_event before = perf->events[i], *event;

	if (wp_perf_event_add(perf, before.kind, before.tid,
			      &perf->cpus[before.cpu]))
		return;
	event = &perf->events[perf->nevents - 1];
	event->is_filtered = !ioctl(event->fd, PERF_EVENT_IOC_SET_FILTER,
				    filter);
	if (perf->is_enabled)
		ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0);
	wp_perf_event_end(perf, &perf->events[i]);
}

/* Forget the events that others were opened in place of before. */
static void forget_ended(struct wp_perf *perf)
{
	size_t n = 0;

	for (size_t i = 0; i < perf->nevents; i++)
		if (perf->events[i].fd >= 0)
			perf->events[n++] = perf->events[i];
	perf->facts.nevents = perf->nevents = n;
}

static void set_filter(struct wp_perf *perf, enum wp_perf_kind kind,
		       const char *filter)
{
	size_t n = perf->nevents;

	for (size_t i = 0; i < n; i++) {
		struct wp_perf_event *e = &perf->events[i];

		if (e->kind != kind)
			continue;
		if (e->is_filtered)
			replace(perf, i, filter);
		else
			e->is_filtered = !ioctl(
				e->fd, PERF_EVENT_IOC_SET_FILTER, filter);
	}
}

void wp_perf_filter_wakes(struct wp_perf *perf,
			  const struct wp_tid_range *ranges, size_t n,
			  pid_t next)
{
	struct wp_tid_range woken[WP_PERF_RANGES_MAX];
	char filter[TEXT_MAX], own[TEXT_MAX], text[2 * TEXT_MAX + 64];

	memcpy(woken, ranges, n * sizeof(*ranges));
	woken[n - 1].last += next;
	put_ranges(filter, "pid", woken, n);
	put_ranges(own, "common_pid", ranges, n);
	snprintf(text, sizeof(text), "%s && %s && %s", own, filter,
		 WP_PERF_BY_THREADS);
	forget_ended(perf);
	set_filter(perf, WP_PERF_KIND_WAKES, filter);
	set_filter(perf, WP_PERF_KIND_WAKE_STACKS, text);
}
