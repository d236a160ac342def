/* SPDX-License-Identifier: Apache-2.0 */
/* judge_goroutines.c - what two looks at a Go program's goroutines say: see judge.h.
 *
 * Go's locks do not tell who holds them.  But if no goroutine has run, and each waits
 * for what another must do, one that waits for a lock waits for ever: only a timer or
 * a signal could wake anybody, and for timers a thread waits in epoll_wait with a time
 * limit (runtime/proc.go, findRunnable).
 */
#include <inttypes.h>
#include <stdio.h>
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
		/* What it waits in is on top. */
		if (strncmp(name, "runtime.", 8) && strncmp(name, "sync.", 5))
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

static void say_grown(const struct wp_dump *dump,
		      const struct wp_dump_process *p, char *why, size_t size)
{
	const struct wp_dump_goroutine *g = &dump->goroutines[p->grown - 1];
	char place[160], created[160];

	put_place(dump, &g->stack, place, sizeof(place));
	put_place(dump, &g->created, created, sizeof(created));
	snprintf(why, size,
		 "goroutines of process %d only get more: %" PRIu32
		 " wait (%s) at%s, %" PRIu32
		 " more than %.3g s before, and of those none has run or "
		 "ended; created by%s",
		 p->pid, p->nafter, wp_dump_str(dump, g->reason), place,
		 p->nafter - p->nbefore, (double)dump->interval_ns / 1e9,
		 created);
}

enum wp_verdict wp_judge_goroutines(const struct wp_dump *dump, uint32_t p,
				    char *why, size_t size)
{
	const struct wp_dump_process *proc = &dump->processes[p];
	const struct wp_dump_goroutine *g;
	char place[160] = "";

	if (proc->goroutines_wait_inside && !has_timer(dump, proc)) {
		g = find_lock_waiter(dump, proc);
		if (g)
			put_place(dump, &g->stack, place, sizeof(place));
		if (g || !proc->goroutines_take_signals) {
			snprintf(why, size,
				 "all %" PRIu32
				 " goroutines of process %d wait for each "
				 "other%s%s",
				 proc->nown_goroutines, proc->pid,
				 g ? ", one of them for a lock at" : "", place);
			return g ? WP_VERDICT_DEADLOCK : WP_VERDICT_NO_PROGRESS;
		}
	}
	if (!proc->grown)
		return WP_VERDICT_HEALTHY;
	say_grown(dump, proc, why, size);
	return WP_VERDICT_NO_PROGRESS;
}
