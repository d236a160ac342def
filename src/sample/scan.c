/* scan.c - which of many threads have run: see sampler_priv.h.
 *
 * A thread that slept at its last look and has not run since is as it was.  To
 * ask each one costs a system call; where there are many, a BPF scan answers
 * for all.  What it does not answer is asked as before, so that no sample is
 * better or worse for it.
 */
#include <stdio.h>
#include <string.h>

#include "sampler_priv.h"

/* From so many threads on a scan repays the 15 ms that it takes to make ready
 * within a second at 100 Hz: a read is 1.1 us a thread, a scan 0.1 us. */
enum { MANY = 200 };

static bool is_wanted(const struct wp_sampler *s)
{
	/* Scheduler times are not known, or this look is all there is. */
	if (!s->schedstat_works || s->finishing)
		return false;
	switch (s->options.scan) {
	case WP_SCAN_BPF:
		return true;
	case WP_SCAN_PROC:
		return false;
	default:
		/* The first tick reads every thread anyway. */
		return s->tick > 1 && s->nthreads >= MANY;
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
	struct wp_scan_state *c = &s->scan;
	struct wp_err err = WP_ERR_INIT;

	c->tried = true;
	if (wp_task_scan_open(&c->scan, s->process->pid, s->nthreads, &err)) {
		c->scan = NULL;
		say_why(s, err.msg);
	}
}

void wp_scan_take(struct wp_sampler *s)
{
	struct wp_scan_state *c = &s->scan;
	int rc;

	wp_scan_forget(s);
	if (!c->scan && !c->tried && is_wanted(s))
		open_scan(s);
	if (!c->scan)
		return;
	rc = wp_task_scan_read(c->scan, &c->v, &c->n);
	if (!rc) {
		s->profile->counters.scans++;
		return;
	}
	wp_scan_close(s);
	say_why(s, strerror(-rc));
}

/* Threads are asked for by their numbers, mostly in order. */
static const struct wp_task_record *find(struct wp_scan_state *c, pid_t tid)
{
	size_t low = 0, high = c->n;

	if (c->next < c->n && c->v[c->next].tid == tid)
		return &c->v[c->next++];
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->v[mid].tid < tid)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == c->n || c->v[low].tid != tid)
		return NULL;
	c->next = low + 1;
	return &c->v[low];
}

bool wp_scan_holds(struct wp_sampler *s, const struct wp_thread *t)
{
	const struct wp_task_record *r = find(&s->scan, t->tid);

	return r && r->slices == t->base.slices && r->run_ns == t->base.run_ns;
}

void wp_scan_forget(struct wp_sampler *s)
{
	s->scan.v = NULL;
	s->scan.n = s->scan.next = 0;
}

void wp_scan_close(struct wp_sampler *s)
{
	wp_scan_forget(s);
	wp_task_scan_close(s->scan.scan);
	s->scan.scan = NULL;
}
