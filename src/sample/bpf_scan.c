/* SPDX-License-Identifier: Apache-2.0 */
/* bpf_scan.c - many threads asked at once: see sampler_priv.h.
 *
 * A thread that slept at its last look and has not run since is as it was; one
 * that has run and waits again has its registers in the kernel.  To ask each
 * one costs some system calls, and those give no more registers than pc, sp and
 * the call's arguments: a stack that wants more costs a stop.  A BPF scan answers
 * for all threads at once, with all registers.  What it does not answer is asked
 * as before.
 */
#include <stdio.h>
#include <string.h>

#include "wallprof/lower_bound.h"

#include "sampler_priv.h"

/* From so many threads on a scan repays the 15 ms that it takes to make ready
 * within some seconds at 100 Hz: a thread that waits costs 1.1 us by a read,
 * 0.1 by a scan; one that has run 15 and 4. */
enum { MANY = 50 };

static bool is_wanted(const struct wp_sampler *s)
{
	const struct wp_bpf_scan_state *c = &s->scan;

	/* Scheduler times are not known, or this look is all there is. */
	if (!s->schedstat_works || s->finishing)
		return false;
	switch (s->options.scan) {
	case WP_SCAN_BPF:
		return true;
	case WP_SCAN_PROC:
		return false;
	default:
		return s->nthreads >= MANY || c->wants_regs;
	}
}

static void say_why(struct wp_sampler *s, const char *why)
{
	uint32_t id = wp_intern_add_str(&s->profile->strings, why);

	if (id != UINT32_MAX)
		s->profile->meta.no_scan = id;
}

static void open_scan(struct wp_sampler *s)
{
	struct wp_bpf_scan_state *c = &s->scan;
	struct wp_err err = WP_ERR_INIT;

	c->tried = true;
	if (wp_task_scan_open(&c->scan, s->process->pid, s->nthreads, &err)) {
		c->scan = NULL;
		say_why(s, err.msg);
	}
}

bool wp_bpf_scan_is_next(const struct wp_sampler *s)
{
	return s->scan.scan || (!s->scan.tried && is_wanted(s));
}

void wp_bpf_scan_take(struct wp_sampler *s)
{
	struct wp_bpf_scan_state *c = &s->scan;
	int rc;

	wp_bpf_scan_forget(s);
	if (!c->scan && wp_bpf_scan_is_next(s))
		open_scan(s);
	if (!c->scan)
		return;
	rc = wp_task_scan_read(c->scan, &c->v, &c->n);
	if (!rc)
		return;
	wp_bpf_scan_close(s);
	say_why(s, strerror(-rc));
}

/* Threads are asked for by their numbers, mostly in order. */
const struct wp_task_record *wp_bpf_scan_find(struct wp_sampler *s, pid_t tid)
{
	struct wp_bpf_scan_state *c = &s->scan;
	size_t at;

	if (c->next < c->n && c->v[c->next].tid == tid)
		return &c->v[c->next++];
	at = WP_LOWER_BOUND(c->n, i, c->v[i].tid < tid);
	if (at == c->n || c->v[at].tid != tid)
		return NULL;
	c->next = at + 1;
	return &c->v[at];
}

void wp_bpf_scan_forget(struct wp_sampler *s)
{
	s->scan.v = NULL;
	s->scan.n = s->scan.next = 0;
}

void wp_bpf_scan_close(struct wp_sampler *s)
{
	wp_bpf_scan_forget(s);
	wp_task_scan_close(s->scan.scan);
	s->scan.scan = NULL;
}
