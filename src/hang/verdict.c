/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c - see wp_verdict_find of wallprof/graph.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "wallprof/enum_name.h"

/* Most items that a sentence lists. */
enum { LISTED = 3 };

/* What is found of one process, worst last.  UNREAD is worse than WELL, so that
 * an unread process is not hidden by a healthy one. */
enum finding { WELL, UNREAD, NO_PROGRESS, DEADLOCK };

/* A sentence, cut at SIZE. */
struct words {
	char *buf;
	size_t size;
	size_t len;
};

WP_PRINTF(2, 3)
static void say(struct words *w, const char *fmt, ...)
{
	va_list args;
	int n;

	if (w->len + 1 >= w->size)
		return;
	va_start(args, fmt);
	n = vsnprintf(w->buf + w->len, w->size - w->len, fmt, args);
	va_end(args);
	/* Names may hold any bytes. */
	for (char *p = w->buf + w->len; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	if (n > 0)
		w->len = strlen(w->buf + w->len) + w->len;
}

static void say_thread(struct words *w, const struct wp_dump *dump, uint32_t i)
{
	const struct wp_dump_thread *t = &dump->threads[i];

	say(w, "thread %d", t->tid);
	if (t->name)
		say(w, " \"%s\"", wp_dump_str(dump, t->name));
}

/* "2 condvar, 1 join". */
static void say_waits(struct words *w, const struct wp_dump *dump,
		      const struct wp_dump_process *proc)
{
	uint32_t waits[WP_NWAITS] = { 0 }, states[WP_NSTATES] = { 0 };
	const char *sep = "";

	for (uint32_t i = 0; i < proc->nthreads; i++) {
		const struct wp_dump_thread *t =
			&dump->threads[proc->first_thread + i];

		if (t->state == WP_STATE_WAITING && t->wait != WP_WAIT_NONE &&
		    (unsigned int)t->wait < WP_NWAITS)
			waits[t->wait]++;
		else if ((unsigned int)t->state < WP_NSTATES)
			states[t->state]++;
	}
	for (int s = 0; s < WP_NSTATES; s++) {
		if (!states[s])
			continue;
		say(w, "%s%u %s", sep, states[s],
		    wp_types_state_name((enum wp_state)s));
		sep = ", ";
	}
	for (int s = 0; s < WP_NWAITS; s++) {
		if (!waits[s])
			continue;
		say(w, "%s%u %s", sep, waits[s], wp_wait_name((enum wp_wait)s));
		sep = ", ";
	}
}

/* "threads of process 42" or "threads of processes 42, 43 and others". */
static void say_whose(struct words *w, const struct wp_dump *dump, uint32_t c)
{
	int32_t pids[LISTED] = { 0 };
	uint32_t n = 0;

	for (uint32_t i = dump->cycle_first[c];
	     i < dump->cycle_first[c + 1] && n <= LISTED; i++) {
		uint32_t p = dump->threads[wp_dump_cycle_edge(dump, i)->from]
				     .process;
		int32_t pid = p < dump->nprocesses ? dump->processes[p].pid : 0;
		uint32_t k = 0;

		while (k < n && pids[k] != pid)
			k++;
		if (k == n && n < LISTED)
			pids[n] = pid;
		n += k == n;
	}
	say(w, "threads of process%s ", n > 1 ? "es" : "");
	for (uint32_t k = 0; k < n && k < LISTED; k++)
		say(w, "%s%d", k ? ", " : "", pids[k]);
	if (n > LISTED)
		say(w, " and others");
}

/* "(mutex 0x1, mutex 0x2, ...)". */
static void say_what(struct words *w, const struct wp_dump *dump, uint32_t c)
{
	uint32_t first = dump->cycle_first[c], n = dump->cycle_first[c + 1];

	say(w, " (");
	for (uint32_t i = first; i < n && i < first + LISTED; i++)
		say(w, "%s%s", i > first ? ", " : "",
		    wp_dump_str(dump, wp_dump_cycle_edge(dump, i)->what));
	say(w, n - first > LISTED ? ", ...)" : ")");
}

static void say_cycle(struct words *w, const struct wp_dump *dump, uint32_t c)
{
	uint32_t n = dump->cycle_first[c + 1] - dump->cycle_first[c];
	const struct wp_edge *e = wp_dump_cycle_edge(dump,
						     dump->cycle_first[c]);

	if (n == 1) {
		say_thread(w, dump, e->from);
		say(w, " waits for %s",
		    e->to == UINT32_MAX ? "its own process" : "itself");
	} else {
		say(w, "%u ", n);
		say_whose(w, dump, c);
		say(w, " wait for each other");
	}
	say_what(w, dump, c);
}

/* The number of cycles with a thread of process P; *RET_CYCLE is the first. */
static uint32_t count_cycles(const struct wp_judge *j, uint32_t p,
			     uint32_t *ret_cycle)
{
	const struct wp_dump *dump = j->dump;
	uint32_t n = 0;

	for (uint32_t c = 0; c < dump->ncycles; c++) {
		uint32_t i = dump->cycle_first[c];

		while (i < dump->cycle_first[c + 1] &&
		       dump->threads[wp_dump_cycle_edge(dump, i)->from]
				       .process != p)
			i++;
		if (i < dump->cycle_first[c + 1] && !n++)
			*ret_cycle = c;
	}
	return n;
}

static bool is_deadlocked(const struct wp_judge *j, uint32_t p, struct words *w)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];
	uint32_t c = 0, n = count_cycles(j, p, &c);

	if (n) {
		say_cycle(w, dump, c);
		if (n > 1)
			say(w, ", and %u more such cycle%s", n - 1,
			    n > 2 ? "s" : "");
		return true;
	}
	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (!dump->threads[i].stuck || !j->cycle[i])
			continue;
		say_thread(w, dump, i);
		say(w, " waits for a cycle: ");
		say_cycle(w, dump, j->cycle[i] - 1);
		return true;
	}
	return false;
}

/* Process P has made progress: a thread runs, ran, or came and went. */
static bool has_moved(const struct wp_judge *j, uint32_t p, struct words *w)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];

	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (!wp_judge_is_active(dump, &dump->threads[i]))
			continue;
		say_thread(w, dump, i);
		if (!dump->threads[i].times.still)
			say(w, " ran between the looks");
		else
			say(w, " is %s",
			    wp_types_state_name(dump->threads[i].state));
		return true;
	}
	if (proc->nlost)
		say(w, "%u thread%s came and went between the looks",
		    proc->nlost, proc->nlost > 1 ? "s" : "");
	return proc->nlost != 0;
}

/* " held by thread 43 "x", which is in sleep". */
static void say_end(struct wp_judge *j, struct words *w, uint32_t i)
{
	const struct wp_dump *dump = j->dump;
	uint32_t end = wp_judge_find_end(j, i);
	const struct wp_dump_thread *t = &dump->threads[end];

	if (end != i) {
		say(w, ", held %sby ",
		    wp_judge_find_holder(&j->graph, i) == end ? "" :
								"in the end ");
		say_thread(w, dump, end);
		if (t->state != WP_STATE_WAITING)
			say(w, ", which is %s", wp_types_state_name(t->state));
		else
			say(w, ", which waits (%s)", wp_wait_name(t->wait));
	}
	if (t->state != WP_STATE_WAITING || t->wait != WP_WAIT_LOCK ||
	    wp_judge_find_holder(&j->graph, end) != WP_NO_NODE)
		return;
	if (t->lock.holder == WP_HOLDER_GONE)
		say(w, ", whose holder is gone");
	else if (t->lock.holder == WP_HOLDER_READERS)
		say(w, ", held by %u reader%s", t->lock.readers,
		    t->lock.readers == 1 ? "" : "s");
	else if (!wp_judge_is_file_lock(t))
		say(w, ", whose holder is not recorded");
}

/* "mutex 0x55aa", "POSIX lock on /x, held by process 43". */
static void say_lock(const struct wp_judge *j, struct words *w, uint32_t i)
{
	const struct wp_dump_thread *t = &j->dump->threads[i];
	const struct wp_graph *g = &j->graph;

	if (wp_judge_is_file_lock(t) && g->out_first[i] < g->out_first[i + 1]) {
		const struct wp_edge *e =
			&j->dump->edges[g->out[g->out_first[i]]];

		say(w, "%s, held by process %d", wp_dump_str(j->dump, e->what),
		    e->to_pid);
	} else if (t->lock.kind == WP_LOCK_NONE) {
		say(w, "a lock");
	} else {
		say(w, "%s 0x%llx", wp_lock_kind_name(t->lock.kind),
		    (unsigned long long)t->lock.avma);
	}
}

/* A thread of P waits for a lock that no thread is going to release. */
static bool has_hung_lock(struct wp_judge *j, uint32_t p, struct words *w)
{
	const struct wp_dump_process *proc = &j->dump->processes[p];

	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (!wp_judge_lock_is_hung(j, i))
			continue;
		say(w, "no thread ran between the looks, and ");
		say_thread(w, j->dump, i);
		say(w, " waits for ");
		say_lock(j, w, i);
		say_end(j, w, i);
		return true;
	}
	return false;
}

/* A thread of P waits for a thread or process that is stuck. */
static bool waits_for_stuck(const struct wp_judge *j, uint32_t p,
			    struct words *w)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];

	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		const struct wp_graph *g = &j->graph;
		const struct wp_edge *e;

		if (!dump->threads[i].stuck ||
		    g->out_first[i] == g->out_first[i + 1])
			continue;
		e = &dump->edges[g->out[g->out_first[i]]];
		say(w, "no thread ran between the looks, and ");
		say_thread(w, dump, i);
		say(w, " waits for %s (%s), which cannot go on",
		    e->to == UINT32_MAX ? "a process" : "a thread",
		    wp_dump_str(dump, e->what));
		return true;
	}
	return false;
}

/* Only P's own threads could end their waits, and all of them wait: a wakeup is
 * lost. */
static bool all_wait_inside(struct wp_judge *j, uint32_t p, struct words *w)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];
	uint32_t n = 0;

	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (dump->threads[i].state == WP_STATE_EXITING)
			continue;
		if (!wp_judge_waits_inside(j, i))
			return false;
		n++;
	}
	if (!n)
		return false;
	say(w, "no thread ran between the looks, and none is left to end any"
	       " wait: ");
	say_waits(w, dump, proc);
	return true;
}

/* All of P's threads are stopped: nothing that it waits for would let it go on. */
static bool all_are_stopped(const struct wp_dump *dump, uint32_t p,
			    struct words *w)
{
	const struct wp_dump_process *proc = &dump->processes[p];
	uint32_t n = 0;

	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (dump->threads[i].state == WP_STATE_EXITING)
			continue;
		if (dump->threads[i].state != WP_STATE_STOPPED)
			return false;
		n++;
	}
	if (n)
		say(w,
		    "process %d is stopped, by a signal, which SIGCONT ends,"
		    " or by a debugger: %u thread%s",
		    proc->pid, n, n == 1 ? "" : "s");
	return n != 0;
}

/* Whatever P's threads wait for would not let them go on. */
static bool is_held(const struct wp_dump_process *proc, struct words *w)
{
	if (proc->hold == WP_HOLD_NONE)
		return false;
	say(w, "process %d %s: %u thread%s", proc->pid,
	    proc->hold == WP_HOLD_FROZEN ? "is frozen by a cgroup" :
					   "dumps core, and that stands still",
	    proc->nthreads, proc->nthreads == 1 ? "" : "s");
	return true;
}

/* What no verdict is: a lock, as its holder may go on; goroutines that were left out. */
static void say_goroutines(const struct wp_dump *dump, uint32_t p,
			   struct words *w)
{
	char text[320];

	wp_judge_say_queue(dump, p, text, sizeof(text));
	say(w, "%s", text);
	wp_judge_say_lock(dump, p, text, sizeof(text));
	say(w, "%s", text);
	if (dump->processes[p].nlost_goroutines)
		say(w,
		    "; %" PRIu64
		    " goroutines were not read, and so none is judged",
		    dump->processes[p].nlost_goroutines);
}

static enum finding judge_process(struct wp_judge *j, uint32_t p,
				  struct words *w)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];
	enum wp_verdict verdict;

	if (!j->graph.sampled[p]) {
		say(w, "nothing could be read of process %d%s%s", proc->pid,
		    proc->error ? ": " : "", wp_dump_str(dump, proc->error));
		return UNREAD;
	}
	if (is_deadlocked(j, p, w))
		return DEADLOCK;
	/* No thread waits for a timer while it is stopped. */
	if (dump->interval_ns && proc->ngoroutines &&
	    !has_moved(j, p, &(struct words){ 0 }) &&
	    (is_held(proc, w) || all_are_stopped(dump, p, w)))
		return NO_PROGRESS;
	verdict = wp_judge_goroutines(j, p, w->buf, w->size);
	if (verdict != WP_VERDICT_HEALTHY)
		return verdict == WP_VERDICT_DEADLOCK ? DEADLOCK : NO_PROGRESS;
	if (dump->interval_ns) {
		if (has_moved(j, p, w)) {
			say_goroutines(dump, p, w);
			return WELL;
		}
		if (is_held(proc, w) || has_hung_lock(j, p, w) ||
		    waits_for_stuck(j, p, w) || all_wait_inside(j, p, w) ||
		    all_are_stopped(dump, p, w))
			return NO_PROGRESS;
	}
	say(w, "%u thread%s, %s: ", proc->nthreads,
	    proc->nthreads == 1 ? "" : "s",
	    dump->interval_ns ? "all idle between the looks" :
				"no cycle of waits in one look");
	say_waits(w, dump, proc);
	say_goroutines(dump, p, w);
	return WELL;
}

/* The worst finding of the processes that are no peers, and the sentence of the
 * first that has it. */
static enum finding judge_all(struct wp_judge *j, struct words *w)
{
	enum finding worst = UNREAD;
	bool any = false;

	for (uint32_t p = 0; p < j->dump->nprocesses; p++) {
		/* As much as a line of wp_say takes. */
		char text[512] = "";
		struct words own = { text, sizeof(text), 0 };
		enum finding finding;

		if (j->dump->processes[p].is_peer)
			continue;
		finding = judge_process(j, p, &own);
		if (any && finding <= worst)
			continue;
		any = true;
		worst = finding;
		w->len = 0;
		say(w, "%s", text);
	}
	if (!any)
		say(w, "nothing could be read");
	return worst;
}

int wp_verdict_find(const struct wp_dump *dump, enum wp_verdict *ret_verdict,
		    char *why, size_t size)
{
	static const enum wp_verdict verdict[] = {
		[WELL] = WP_VERDICT_HEALTHY,
		[NO_PROGRESS] = WP_VERDICT_NO_PROGRESS,
		[DEADLOCK] = WP_VERDICT_DEADLOCK,
	};
	struct words w = { why, size, 0 };
	enum finding finding;
	struct wp_judge j;
	int rc;

	if (size)
		why[0] = '\0';
	rc = wp_judge_open(&j, dump);
	if (rc)
		return rc;
	finding = judge_all(&j, &w);
	wp_judge_close(&j);
	if (finding == UNREAD)
		return -ESRCH;
	*ret_verdict = verdict[finding];
	return 0;
}

const char *wp_verdict_name(enum wp_verdict verdict)
{
	return WP_ENUM_NAME(WP_VERDICTS, verdict);
}
