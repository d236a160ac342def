/* SPDX-License-Identifier: Apache-2.0 */
/* bpf_scan.c - many threads asked at once: see bpf_scan.h.
 *
 * To read whether one thread has run, and where it waits, takes some system calls,
 * and /proc shows only pc, sp and the arguments of its call: a stack that needs
 * another register costs a stop.  A BPF scan reads all threads at once, with all
 * registers.  A thread without a record is read through /proc.
 */
#include "bpf_scan.h"

#include <string.h>

#include "sampler_loop.h"
#include "target.h"
#include "wallprof/lower_bound.h"

/* Threads from which on a scan repays the 15 ms that opening it takes within some
 * seconds at 100 Hz: a thread that has not run costs 1.1 us by a read and 0.1 by a
 * scan, a thread that has run 15 and 4. */
enum { MANY = 50 };

static size_t count_threads(const struct wp_sampler *loop)
{
	size_t n = 0;

	for (size_t i = 0; i < loop->ntargets; i++)
		n += loop->targets[i]->nthreads;
	return n;
}

static bool is_wanted(const struct wp_sampler *loop)
{
	/* Without schedstat no sample is known to hold; and to open a scan for
	 * one tick takes longer than to read the threads. */
	if (!loop->schedstat_works || loop->finishing || !loop->ntargets)
		return false;
	switch (loop->options.scan) {
	case WP_SCAN_BPF:
		return true;
	case WP_SCAN_PROC:
		return false;
	default:
		return loop->scan.wants_regs || count_threads(loop) >= MANY;
	}
}

static void open_scan(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;

	c->tried = true;
	if (wp_task_scan_open(&c->scan, count_threads(loop), &c->why))
		c->scan = NULL;
	for (size_t i = 0; i < loop->ntargets; i++)
		if (!loop->targets[i]->gone)
			wp_bpf_scan_add(loop, loop->targets[i]->process->pid);
}

void wp_bpf_scan_add(struct wp_sampler *loop, pid_t pid)
{
	/* What cannot be scanned is read one by one. */
	if (loop->scan.scan)
		(void)!wp_task_scan_add(loop->scan.scan, pid);
}

void wp_bpf_scan_drop(struct wp_sampler *loop, pid_t pid)
{
	if (loop->scan.scan && !wp_sampler_find(loop, pid))
		wp_task_scan_drop(loop->scan.scan, pid);
}

bool wp_bpf_scan_is_next(const struct wp_sampler *loop)
{
	return loop->scan.scan || (!loop->scan.tried && is_wanted(loop));
}

void wp_bpf_scan_take(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;
	int rc;

	wp_bpf_scan_forget(loop);
	if (!c->scan && wp_bpf_scan_is_next(loop))
		open_scan(loop);
	if (!c->scan)
		return;
	rc = wp_task_scan_read(c->scan, &c->v, &c->n);
	if (!rc)
		return;
	wp_bpf_scan_close(loop);
	wp_err_set(&c->why, rc, "%s", strerror(-rc));
}

static bool is_of(const struct wp_bpf_scan *c, size_t at, pid_t pid, pid_t tid)
{
	return at < c->n && c->v[at]->tid == tid && c->v[at]->pid == pid;
}

/* The first record of PID from TID on, or where it would be. */
static size_t place_of(const struct wp_bpf_scan *c, pid_t pid, pid_t tid)
{
	return WP_LOWER_BOUND(c->n, i,
			      c->v[i]->pid < pid || (c->v[i]->pid == pid &&
						     c->v[i]->tid < tid));
}

/* Callers ask for threads of one process after the other by tid, mostly in order. */
const struct wp_task_record *wp_bpf_scan_find(struct wp_sampler *loop,
					      pid_t pid, pid_t tid)
{
	struct wp_bpf_scan *c = &loop->scan;
	size_t at = c->next;

	if (!is_of(c, at, pid, tid))
		at = place_of(c, pid, tid);
	if (!is_of(c, at, pid, tid))
		return NULL;
	c->next = at + 1;
	return c->v[at];
}

const struct wp_task_record *const *wp_bpf_scan_of(struct wp_sampler *loop,
						   pid_t pid, size_t *ret_n)
{
	const struct wp_bpf_scan *c = &loop->scan;
	size_t at = place_of(c, pid, 0), n = at;

	while (n < c->n && c->v[n]->pid == pid)
		n++;
	*ret_n = n - at;
	return n > at ? &c->v[at] : NULL;
}

void wp_bpf_scan_forget(struct wp_sampler *loop)
{
	loop->scan.v = NULL;
	loop->scan.n = loop->scan.next = 0;
}

void wp_bpf_scan_close(struct wp_sampler *loop)
{
	wp_bpf_scan_forget(loop);
	wp_task_scan_close(loop->scan.scan);
	loop->scan.scan = NULL;
}
