/* SPDX-License-Identifier: Apache-2.0 */
/* judge_goroutines.c - what two looks at a Go program's goroutines say: see judge.h.
 *
 * Go's locks do not tell who holds them.  But if no goroutine has run, and each waits
 * for what another must do, one that waits for a lock waits for ever: only a timer or
 * a signal could wake anybody, and for timers a thread waits in epoll_wait with a time
 * limit (runtime/proc.go, findRunnable); or a thread that C code made.  Most servers
 * wait for signals to end by, so these do not make a deadlock well: if one that waits
 * on a channel may get one, and so may be the lock's holder, that is said.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"

static bool has_timer(const struct wp_dump *dump,
		      const struct wp_dump_process *p)
{
	for (uint32_t i = 0; i < p->nthreads; i++) {
		const struct wp_dump_thread *t =
			&dump->threads[p->first_thread + i];

		if (t->call.timed && t->wait == WP_WAIT_POLL)
			return true;
	}
	return false;
}

/* Has T a function of Go's runtime on its stack, as each thread has that Go made or
 * that has called Go? */
static bool is_of_go(const struct wp_dump *dump, const struct wp_dump_thread *t)
{
	for (uint32_t i = 0; i < t->stack.nframes; i++) {
		const struct wp_dump_frame *f =
			&dump->frames[t->stack.first_frame + i];
		const char *name = wp_dump_str(
			dump, f->system_name ? f->system_name : f->function);

		if (!strncmp(name, "runtime.", 8))
			return true;
	}
	return false;
}

/* Is all of G's stack in Go's runtime? */
static bool is_of_runtime(const struct wp_dump *dump,
			  const struct wp_dump_goroutine *g)
{
	for (uint32_t i = 0; i < g->stack.nframes; i++)
		if (strncmp(wp_dump_str(dump,
					dump->frames[g->stack.first_frame + i]
						.system_name),
			    "runtime.", 8))
			return false;
	return g->stack.nframes;
}

/* A thread that C code made may call back into Go, and wake a goroutine. */
static bool has_waker_of_c(struct wp_judge *j, const struct wp_dump_process *p)
{
	for (uint32_t i = p->first_thread; i < p->first_thread + p->nthreads;
	     i++) {
		const struct wp_dump_thread *t = &j->dump->threads[i];

		if (t->state != WP_STATE_EXITING && !is_of_go(j->dump, t) &&
		    (wp_judge_is_active(j->dump, t) ||
		     !wp_judge_waits_inside(j, i)))
			return true;
	}
	return false;
}

/* Does G wait for a sync.Mutex or RWMutex? */
static bool wants_lock(const struct wp_dump *dump,
		       const struct wp_dump_goroutine *g)
{
	for (uint32_t i = 0; i < g->stack.nframes; i++) {
		const char *name = wp_dump_str(
			dump,
			dump->frames[g->stack.first_frame + i].system_name);

		if (strstr(name, "sync.(*Mutex).") ||
		    strstr(name, "sync.(*RWMutex)."))
			return true;
		/* What it waits in is on top; since Go 1.24 the lock's slow path has a
		 * package of its own. */
		if (strncmp(name, "runtime.", 8) && strncmp(name, "sync.", 5) &&
		    strncmp(name, "internal/sync.", 14))
			return false;
	}
	return false;
}

static const struct wp_dump_goroutine *
find_lock_waiter(const struct wp_dump *dump, const struct wp_dump_process *p)
{
	for (uint32_t i = 0; i < p->ngoroutines; i++)
		if (wants_lock(dump, &dump->goroutines[p->first_goroutine + i]))
			return &dump->goroutines[p->first_goroutine + i];
	return NULL;
}

/* Does a goroutine of P's own receive, from a channel that os/signal may send to? */
static bool may_get_signal(const struct wp_dump *dump,
			   const struct wp_dump_process *p)
{
	for (uint32_t i = 0; i < p->ngoroutines; i++) {
		const struct wp_dump_goroutine *g =
			&dump->goroutines[p->first_goroutine + i];
		const char *reason = wp_dump_str(dump, g->reason);

		if ((!strcmp(reason, "chan receive") ||
		     !strcmp(reason, "select")) &&
		    !is_of_runtime(dump, g))
			return p->goroutines_take_signals;
	}
	return false;
}

/* " at main.f x.go:12" of STACK's site, or else of its first frame. */
static void put_place(const struct wp_dump *dump,
		      const struct wp_dump_stack *stack, char *text,
		      size_t size)
{
	const struct wp_dump_frame *f;
	uint32_t i = stack->site < stack->nframes ? stack->site : 0;
	const char *file;

	text[0] = '\0';
	if (!stack->nframes)
		return;
	f = &dump->frames[stack->first_frame + i];
	file = strrchr(wp_dump_str(dump, f->file), '/');
	snprintf(text, size, " %s %s:%" PRIu32, wp_dump_str(dump, f->function),
		 file ? file + 1 : wp_dump_str(dump, f->file), f->line);
}

/* "sync.Mutex 0xc000012080, held" of what G alone waits for; "" if that is not
 * known. */
static void put_wait(const struct wp_dump *dump,
		     const struct wp_dump_goroutine *g, char *text, size_t size)
{
	const struct wp_dump_wait *wait;

	text[0] = '\0';
	if (g->nwaits != 1)
		return;
	wait = &dump->waits[g->first_wait];
	if (wait->avma)
		snprintf(text, size, "%s 0x%" PRIx64 "%s%s",
			 wp_dump_str(dump, wait->kind), wait->avma,
			 wait->text ? ", " : "", wp_dump_str(dump, wait->text));
}

/* "268 wait (chan send) at main.handle x.go:60, 84 more than 0.5 s before" */
static void put_grown(const struct wp_dump *dump,
		      const struct wp_dump_process *p, char *text, size_t size)
{
	const struct wp_dump_goroutine *g = &dump->goroutines[p->grown - 1];
	char place[160];

	put_place(dump, &g->stack, place, sizeof(place));
	snprintf(text, size,
		 "%" PRIu32 " wait (%s) at%s, %" PRIu32
		 " more than %.3g s before",
		 p->nafter, wp_dump_str(dump, g->reason), place,
		 p->nafter - p->nbefore, (double)dump->interval_ns / 1e9);
}

static void say_grown(const struct wp_dump *dump,
		      const struct wp_dump_process *p, char *why, size_t size)
{
	const struct wp_dump_goroutine *g = &dump->goroutines[p->grown - 1];
	char grown[256], created[160], wait[96];

	put_grown(dump, p, grown, sizeof(grown));
	put_place(dump, &g->created, created, sizeof(created));
	put_wait(dump, g, wait, sizeof(wait));
	snprintf(
		why, size,
		"goroutines of process %d only get more: %s, and of those none "
		"has run or ended; created by%s%s%s",
		p->pid, grown, created, *wait ? "; one waits for " : "", wait);
}

/* Does a thread of P run?  It may be the one that would otherwise wait for timers. */
static bool runs(const struct wp_dump *dump, const struct wp_dump_process *p)
{
	for (uint32_t i = 0; i < p->nthreads; i++)
		if (wp_types_state_is_ready(
			    dump->threads[p->first_thread + i].state))
			return true;
	return false;
}

/* May a timer wake G, which stands for the group that grows most?  The group's other
 * goroutines, and groups that grow less, are not asked about.  Which channels are timers' is
 * told since Go 1.23, unless they are as before (GODEBUG=asynctimerchan=1). */
static bool waits_for_timer(const struct wp_dump *dump,
			    const struct wp_dump_process *p,
			    const struct wp_dump_goroutine *g)
{
	for (uint32_t i = 0; i < g->nwaits; i++) {
		const struct wp_dump_wait *wait =
			&dump->waits[g->first_wait + i];

		if (wait->is_timers || (wait->may_be_timers &&
					(has_timer(dump, p) || runs(dump, p))))
			return true;
	}
	return false;
}

enum wp_verdict wp_judge_goroutines(struct wp_judge *j, uint32_t p, char *why,
				    size_t size)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];
	const struct wp_dump_goroutine *g;
	char place[160] = "", wait[96] = "";

	if (proc->goroutines_wait_inside && !has_timer(dump, proc) &&
	    !has_waker_of_c(j, proc)) {
		g = find_lock_waiter(dump, proc);
		if (g) {
			put_place(dump, &g->stack, place, sizeof(place));
			put_wait(dump, g, wait, sizeof(wait));
		}
		if (g || !proc->goroutines_take_signals) {
			snprintf(why, size,
				 "all %" PRIu32
				 " goroutines of process %d wait for each "
				 "other%s%s%s%s%s",
				 proc->nown_goroutines, proc->pid,
				 g ? ", one of them for a lock at" : "", place,
				 *wait ? ": " : "", wait,
				 may_get_signal(dump, proc) ?
					 "; unless a signal comes that one of "
					 "them waits for" :
					 "");
			return g ? WP_VERDICT_DEADLOCK : WP_VERDICT_NO_PROGRESS;
		}
	}
	if (!proc->grown || proc->grown_is_queue ||
	    waits_for_timer(dump, proc, &dump->goroutines[proc->grown - 1]))
		return WP_VERDICT_HEALTHY;
	say_grown(dump, proc, why, size);
	return WP_VERDICT_NO_PROGRESS;
}

/* For qsort_r(3): indices of waits by address. */
static int by_address(const void *a, const void *b, void *dump)
{
	const struct wp_dump *d = dump;
	uint64_t x = d->waits[*(const uint32_t *)a].avma;
	uint64_t y = d->waits[*(const uint32_t *)b].avma;

	return (x > y) - (x < y);
}

/* Of ORDER[0..n) by address, one of the most with the same; sets *RET_N to their
 * number. */
static uint32_t find_most(const struct wp_dump *dump, const uint32_t *order,
			  uint32_t n, uint32_t *ret_n)
{
	uint32_t most = 0, first = 0;

	*ret_n = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (dump->waits[order[i]].avma !=
		    dump->waits[order[first]].avma)
			first = i;
		if (i - first >= *ret_n) {
			*ret_n = i - first + 1;
			most = order[i];
		}
	}
	return most;
}

void wp_judge_say_queue(const struct wp_dump *dump, uint32_t p, char *text,
			size_t size)
{
	char grown[256];

	text[0] = '\0';
	if (!dump->processes[p].grown || !dump->processes[p].grown_is_queue)
		return;
	put_grown(dump, &dump->processes[p], grown, sizeof(grown));
	snprintf(text, size,
		 "; of goroutines %s, as in a queue: older ones have ended",
		 grown);
}

void wp_judge_say_lock(const struct wp_dump *dump, uint32_t p, char *text,
		       size_t size)
{
	const struct wp_dump_process *proc = &dump->processes[p];
	uint32_t *order = calloc((size_t)proc->ngoroutines + 1, sizeof(*order));
	uint32_t n = 0, most, nmost;

	text[0] = '\0';
	/* Without memory nothing is said. */
	for (uint32_t i = 0; order && i < proc->ngoroutines; i++) {
		const struct wp_dump_goroutine *g =
			&dump->goroutines[proc->first_goroutine + i];

		if (g->nwaits &&
		    wp_dump_is_lock(dump, &dump->waits[g->first_wait]))
			order[n++] = g->first_wait;
	}
	if (n > 1) {
		qsort_r(order, n, sizeof(*order), by_address, (void *)dump);
		most = find_most(dump, order, n, &nmost);
		if (nmost > 1)
			snprintf(text, size,
				 "; %" PRIu32
				 " goroutines wait for %s 0x%" PRIx64
				 ", %s, Go does not note by whom",
				 nmost,
				 wp_dump_str(dump, dump->waits[most].kind),
				 dump->waits[most].avma,
				 wp_dump_str(dump, dump->waits[most].text));
	}
	free(order);
}
