/* SPDX-License-Identifier: Apache-2.0 */
/* bpf_scan.c - many threads asked at once: see bpf_scan.h.
 *
 * To read whether one thread has run, and where it waits, takes some system calls,
 * and /proc shows only pc, sp and the arguments of its call: a stack that needs
 * another register costs a stop.  A BPF scan reads all threads at once, with all
 * registers.  A thread without a record is read through /proc.
 */
#include "bpf_scan.h"

#include <errno.h>
#include <string.h>

#include "sampler_loop.h"
#include "target.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"

/* Threads from which on a scan repays the 100 ms that opening it takes within some
 * seconds at 100 Hz: a thread that has not run costs 1.1 us by a read and 0.1 by a
 * scan, a thread that has run 15 and 4. */
enum { MANY = 50 };

/* What a note at a context switch takes, on the switching thread's account; notes must
 * spare so many times as much. */
enum { NOTE_NS = 60, WORTH = 8 };
/* Where to read all threads takes less, it is not worth the program. */
#define LEAST_NS (20 * WP_NS_PER_US)
/* Notes are judged so often, and tried again after so long. */
#define JUDGED_NS (100 * WP_NS_PER_MS)
#define FIRST_PAUSE_NS (10 * WP_NS_PER_S)
#define LAST_PAUSE_NS (600 * WP_NS_PER_S)
/* All threads are read so often, whatever notes say. */
#define ALL_NS WP_NS_PER_S

static size_t count_threads(const struct wp_sampler *loop)
{
	size_t n = 0;

	for (size_t i = 0; i < loop->ntargets; i++)
		n += loop->targets[i]->nthreads;
	return n;
}

/* Is a scan of NTHREADS wanted? */
static bool is_wanted(const struct wp_sampler *loop, size_t nthreads)
{
	/* Without schedstat no sample is known to hold; and to open a scan for
	 * one tick takes longer than to read the threads. */
	if (!loop->schedstat_works || loop->finishing ||
	    (!loop->ntargets && !nthreads))
		return false;
	switch (loop->options.scan) {
	case WP_SCAN_BPF:
	case WP_SCAN_SWITCHES:
		return true;
	case WP_SCAN_PROC:
		return false;
	default:
		return loop->scan.wants_regs || nthreads >= MANY;
	}
}

/* Read threads by SCAN from now on; NULL: there is none. */
static void use_scan(struct wp_sampler *loop, struct wp_task_scan *scan)
{
	loop->scan.scan = scan;
	for (size_t i = 0; i < loop->ntargets; i++)
		if (!loop->targets[i]->gone)
			wp_bpf_scan_add(loop, loop->targets[i]->process->pid);
}

/* Open a scan of NTHREADS.  No thread is sampled meanwhile. */
static void open_scan(struct wp_sampler *loop, size_t nthreads)
{
	struct wp_task_scan *scan = NULL;

	loop->scan.tried = true;
	if (wp_task_scan_open(&scan, nthreads, &loop->scan.why))
		scan = NULL;
	use_scan(loop, scan);
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
	return loop->scan.scan || loop->scan.loader.runs ||
	       (!loop->scan.tried && is_wanted(loop, count_threads(loop)));
}

void wp_bpf_scan_prepare(struct wp_sampler *loop, size_t nthreads)
{
	uint64_t begin_ns = wp_clock_cpu_ns();

	if (!loop->scan.tried && is_wanted(loop, nthreads))
		open_scan(loop, nthreads);
	loop->prepare_cpu_ns += wp_clock_cpu_ns() - begin_ns;
}

/* Read threads by the scan that was opened beside the ticks, if it is there. */
static void take_loaded(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;
	struct wp_task_scan *scan;
	struct wp_err why;

	if (!wp_scan_loader_take(&c->loader, &scan, &why) || (!scan && c->scan))
		return;
	c->why = why;
	wp_task_scan_close(c->scan);
	/* They ended with that, and those of the next count from 0. */
	c->notes.on = false;
	c->notes.switches = 0;
	use_scan(loop, scan);
}

/* Have a scan opened beside the ticks once one is wanted. */
static void open_wanted(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;
	size_t nthreads;

	if (c->tried)
		return;
	nthreads = count_threads(loop);
	if (!is_wanted(loop, nthreads))
		return;
	c->tried = true;
	if (wp_scan_loader_begin(&c->loader, nthreads))
		open_scan(loop, nthreads);
}

/* If the scan lacks room have one with more opened beside the ticks, once for so many
 * threads.  Until then those without room are read one by one. */
static void open_wider(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;
	size_t n = wp_task_scan_lacks_room(c->scan);

	c->wants_all |= n > 0;
	if (n <= c->nwidened || c->loader.runs || loop->finishing)
		return;
	c->nwidened = n;
	(void)!wp_scan_loader_begin(&c->loader, n);
}

static void stop_notes(struct wp_bpf_scan *c)
{
	struct wp_switch_notes *notes = &c->notes;

	notes->on = false;
	notes->pause_ns = notes->pause_ns ? 2 * notes->pause_ns :
					    FIRST_PAUSE_NS;
	if (notes->pause_ns > LAST_PAUSE_NS)
		notes->pause_ns = LAST_PAUSE_NS;
	notes->retry_ns = notes->since_ns + notes->pause_ns;
	(void)!wp_task_scan_note_switches(c->scan, false);
}

/* Do notes pay?  SWITCHES: of the machine, so far. */
static void judge_notes(struct wp_sampler *loop, uint64_t switches)
{
	struct wp_switch_notes *notes = &loop->scan.notes;
	uint64_t cost_ns = (switches - notes->switches) * NOTE_NS;
	uint64_t spared_ns = notes->nspared * notes->all_ns;

	if (loop->tick_ns - notes->since_ns < JUDGED_NS)
		return;
	notes->since_ns = loop->tick_ns;
	notes->switches = switches;
	notes->nspared = 0;
	if (loop->options.scan == WP_SCAN_AUTO && cost_ns * WORTH > spared_ns)
		stop_notes(&loop->scan);
}

static void begin_notes(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;
	struct wp_switch_notes *notes = &c->notes;

	if (notes->on || loop->options.scan == WP_SCAN_BPF ||
	    loop->options.stop == WP_STOP_ALL ||
	    loop->tick_ns < notes->retry_ns ||
	    (loop->options.scan == WP_SCAN_AUTO && notes->all_ns < LEAST_NS))
		return;
	notes->on = !wp_task_scan_note_switches(c->scan, true);
	notes->since_ns = loop->tick_ns;
	notes->nspared = 0;
	/* The scan that is wanted for the notes to begin. */
	notes->next_all_ns = 0;
	if (!notes->on)
		stop_notes(c);
}

/* Read the threads that have moved.  False: all are to be read. */
static bool read_moved(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;
	struct wp_switch_notes *notes = &c->notes;
	uint64_t switches = notes->switches;
	int rc;

	if (!notes->on || loop->finishing)
		return false;
	rc = wp_task_scan_read_moved(c->scan, &c->v, &c->n, &switches);
	if (rc && rc != -EAGAIN)
		return false;
	c->is_of_moved = !rc && !c->wants_all &&
			 loop->tick_ns < notes->next_all_ns;
	notes->nspared += c->is_of_moved;
	judge_notes(loop, switches);
	return c->is_of_moved;
}

/* Read all threads. */
static int read_all(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;
	uint64_t begin_ns = wp_clock_ns(), ns;
	int rc = wp_task_scan_read(c->scan, &c->v, &c->n);

	ns = wp_clock_ns() - begin_ns;
	if (!c->notes.all_ns || ns < c->notes.all_ns)
		c->notes.all_ns = ns;
	c->notes.next_all_ns = loop->tick_ns + ALL_NS;
	c->wants_all = false;
	return rc;
}

void wp_bpf_scan_take(struct wp_sampler *loop)
{
	struct wp_bpf_scan *c = &loop->scan;
	int rc;

	wp_bpf_scan_forget(loop);
	take_loaded(loop);
	open_wanted(loop);
	if (!c->scan || read_moved(loop))
		return;
	rc = read_all(loop);
	if (!rc) {
		begin_notes(loop);
		open_wider(loop);
		return;
	}
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

void wp_bpf_scan_want(struct wp_sampler *loop, pid_t pid, pid_t tid)
{
	/* One that had a record and has moved since then is noted. */
	if (!wp_bpf_scan_find(loop, pid, tid))
		loop->scan.wants_all = true;
}

void wp_bpf_scan_forget(struct wp_sampler *loop)
{
	wp_copies_ahead_forget(&loop->ahead);
	loop->scan.v = NULL;
	loop->scan.is_of_moved = false;
	loop->scan.n = loop->scan.next = 0;
}

void wp_bpf_scan_close(struct wp_sampler *loop)
{
	wp_bpf_scan_forget(loop);
	wp_scan_loader_close(&loop->scan.loader);
	wp_task_scan_close(loop->scan.scan);
	loop->scan.scan = NULL;
}
