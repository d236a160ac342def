/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - is a process hung: see wp_graph_judge of wallprof/dump.h. */
#include "graph.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* How many things a sentence lists. */
	LISTED = 3,
	/* Of judge.end[]. */
	NOT_YET = UINT32_MAX,
	ON_THE_WAY = UINT32_MAX - 1,
};

/* Of one process, worst last.  What could not be read may not be passed over
 * for a process that is well. */
enum finding { WELL, UNREAD, NO_PROGRESS, DEADLOCK };

/* The sentence; what does not fit is cut. */
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
	/* Names are the target's own. */
	for (char *p = w->buf + w->len; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	if (n > 0)
		w->len = strlen(w->buf + w->len) + w->len;
}

struct judge {
	const struct wp_dump *dump;
	struct wp_graph graph;
	/* cycle[N]: the cycle that node N is in or leads to, plus 1. */
	uint32_t *cycle;
	uint32_t *queue;
	/* end[T]: the thread at the end of the chain of holders from T. */
	uint32_t *end;
	/* leader[P]: a thread of process P waits for work, and all who want a
	 * lock without a recorded holder want the same one: its leader may
	 * have it. */
	bool *leader;
};

static void say_thread(struct words *w, const struct wp_dump *dump, uint32_t i)
{
	const struct wp_dump_thread *t = &dump->threads[i];

	say(w, "thread %d", t->tid);
	if (t->name)
		say(w, " \"%s\"", wp_dump_str(dump, t->name));
}

/* It runs, or ran between two looks.  Peers are known by the second look only,
 * and nothing is known of what they did before. */
static bool is_active(const struct wp_dump *dump,
		      const struct wp_dump_thread *t)
{
	bool twice = dump->interval_ns && t->process < dump->nprocesses &&
		     !dump->processes[t->process].is_peer;

	return t->state == WP_STATE_RUNNING || t->state == WP_STATE_RUNNABLE ||
	       (twice && !t->still);
}

/* It waits for work in the way of a pool: its leader polls, and followers wait
 * for the lock that the leader holds. */
static bool waits_for_work(const struct wp_dump *dump,
			   const struct wp_dump_thread *t)
{
	const char *call = wp_dump_str(dump, t->syscall);

	return t->wait == WP_WAIT_POLL || !strcmp(call, "accept") ||
	       !strcmp(call, "accept4");
}

static const struct wp_edge *cycle_edge(const struct wp_dump *dump, uint32_t i)
{
	return &dump->edges[dump->cycle_edges[i]];
}

/* Mark all that lead to cycles, from the cycles backwards. */
static void mark_cycles(struct judge *j)
{
	const struct wp_dump *dump = j->dump;
	uint32_t n = 0;

	for (uint32_t c = 0; c < dump->ncycles; c++) {
		for (uint32_t i = dump->cycle_first[c];
		     i < dump->cycle_first[c + 1]; i++) {
			j->cycle[cycle_edge(dump, i)->from] = c + 1;
			j->queue[n++] = cycle_edge(dump, i)->from;
		}
	}
	for (uint32_t done = 0; done < n; done++) {
		uint32_t node = j->queue[done], pos = 0, prev;

		while ((prev = wp_graph_prev(&j->graph, node, &pos, true)) !=
		       WP_NO_NODE) {
			if (j->cycle[prev])
				continue;
			j->cycle[prev] = j->cycle[node];
			j->queue[n++] = prev;
		}
	}
}

/* By flock(2) or fcntl(2), of which the decoder of locks knows nothing. */
static bool is_file_lock(const struct wp_dump *dump,
			 const struct wp_dump_thread *t)
{
	const char *call = wp_dump_str(dump, t->syscall);

	return t->lock.kind == WP_LOCK_FILE || !strcmp(call, "flock") ||
	       !strcmp(call, "fcntl");
}

/* A wait for a lock that may be over without its holder. */
static bool gives_up(const struct wp_dump_thread *t)
{
	return t->timed || t->open_ended;
}

/* The thread that holds the lock that thread I waits for; WP_NO_NODE: none
 * that is known, or it need not be asked. */
static uint32_t holder_of(const struct wp_graph *g, uint32_t i)
{
	const struct wp_dump_thread *t = &g->dump->threads[i];

	if (t->wait != WP_WAIT_LOCK || gives_up(t))
		return WP_NO_NODE;
	for (uint32_t k = g->out_first[i]; k < g->out_first[i + 1]; k++) {
		uint32_t e = g->out[k];

		if (g->dump->edges[e].kind == WP_EDGE_LOCK &&
		    g->target[e] < g->dump->nthreads)
			return g->target[e];
	}
	return WP_NO_NODE;
}

/* Where the chain of holders from thread I ends; in a ring, at any of it.
 * Each step is made once, whatever the number of calls. */
static uint32_t find_end(struct judge *j, uint32_t i)
{
	uint32_t end = i, at = i;

	while (j->end[at] == NOT_YET) {
		uint32_t next = holder_of(&j->graph, at);

		j->end[at] = ON_THE_WAY;
		end = at;
		if (next == WP_NO_NODE)
			break;
		at = next;
	}
	if (j->end[at] != ON_THE_WAY)
		end = j->end[at];
	for (at = i; j->end[at] == ON_THE_WAY; at = holder_of(&j->graph, at)) {
		j->end[at] = end;
		if (holder_of(&j->graph, at) == WP_NO_NODE)
			break;
	}
	return end;
}

/* A process that holds a file lock: does none of its threads move or wait for
 * work? */
static bool holder_is_asleep(const struct wp_dump *dump, uint32_t p)
{
	const struct wp_dump_process *proc = &dump->processes[p];

	for (uint32_t i = 0; i < proc->nthreads; i++) {
		const struct wp_dump_thread *t =
			&dump->threads[proc->first_thread + i];

		if (is_active(dump, t) || waits_for_work(dump, t))
			return false;
	}
	return true;
}

/* A file lock whose holders were not looked at may be released any time. */
static bool file_lock_is_hung(const struct wp_graph *g, uint32_t i)
{
	const struct wp_dump *dump = g->dump;
	bool any = false;

	for (uint32_t k = g->out_first[i]; k < g->out_first[i + 1]; k++) {
		uint32_t to = g->target[g->out[k]], p;

		if (to == g->outside)
			return false;
		p = to < dump->nthreads ? dump->threads[to].process :
					  to - dump->nthreads;
		if (p >= dump->nprocesses || !g->looked[p] ||
		    !holder_is_asleep(dump, p))
			return false;
		any = true;
	}
	return any;
}

static bool is_unrecorded(const struct wp_dump_thread *t)
{
	return t->state == WP_STATE_WAITING && t->wait == WP_WAIT_LOCK &&
	       t->lock.kind != WP_LOCK_FILE &&
	       t->lock.holder == WP_HOLDER_NOT_RECORDED;
}

static void find_leaders(struct judge *j)
{
	const struct wp_dump *dump = j->dump;

	for (uint32_t p = 0; p < dump->nprocesses; p++) {
		const struct wp_dump_process *proc = &dump->processes[p];
		bool works = false, same = true;
		uint64_t avma = 0;

		for (uint32_t i = 0; i < proc->nthreads; i++) {
			uint32_t at = proc->first_thread + i;
			const struct wp_dump_thread *t;

			if (at >= dump->nthreads)
				break;
			t = &dump->threads[at];
			works |= t->state == WP_STATE_WAITING &&
				 waits_for_work(dump, t);
			if (!is_unrecorded(t))
				continue;
			same &= !avma || avma == t->lock.avma;
			avma = t->lock.avma;
		}
		j->leader[p] = works && same;
	}
}

/* Thread I is at the end of a chain of holders: will it never go on, or not
 * for what comes from outside in the way of a pool? */
static bool end_is_hung(const struct wp_graph *g, uint32_t i)
{
	const struct wp_dump_thread *t = &g->dump->threads[i];

	if (is_active(g->dump, t) || waits_for_work(g->dump, t))
		return false;
	if (t->wait != WP_WAIT_LOCK || holder_of(g, i) != WP_NO_NODE)
		return true;
	if (gives_up(t))
		return false;
	if (is_file_lock(g->dump, t))
		return file_lock_is_hung(g, i);
	/* A holder that is named and not in the dump came after the look. */
	return t->lock.holder != WP_HOLDER_THREAD;
}

static bool lock_is_hung(struct judge *j, uint32_t i)
{
	const struct wp_dump_thread *t = &j->dump->threads[i], *end;
	uint32_t at;

	if (t->state != WP_STATE_WAITING || t->wait != WP_WAIT_LOCK)
		return false;
	at = find_end(j, i);
	end = &j->dump->threads[at];
	if (is_unrecorded(end) && j->leader[end->process])
		return false;
	return end_is_hung(&j->graph, at);
}

/* A lock shared with another process may be released by that. */
static bool lock_is_inside(struct judge *j, uint32_t i)
{
	const struct wp_dump_thread *t = &j->dump->threads[i];
	uint32_t end = find_end(j, i);

	if (is_file_lock(j->dump, t) ||
	    j->dump->threads[end].process != t->process)
		return false;
	return end != i || t->lock.holder != WP_HOLDER_THREAD ||
	       holder_of(&j->graph, i) != WP_NO_NODE;
}

/* Another thread of the same process must end it. */
static bool waits_inside(struct judge *j, uint32_t i)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_thread *t = &dump->threads[i];

	if (t->state != WP_STATE_WAITING || t->timed || t->open_ended)
		return false;
	switch (t->wait) {
	case WP_WAIT_LOCK:
		return lock_is_inside(j, i);
	case WP_WAIT_JOIN:
	case WP_WAIT_CONDVAR:
	case WP_WAIT_BARRIER:
		return true;
	case WP_WAIT_SEMAPHORE:
		/* sem_post may be called by a handler; semop(2) waits for
		 * whoever has the key. */
		return !dump->processes[t->process].catches_signals &&
		       strncmp(wp_dump_str(dump, t->syscall), "sem", 3) != 0;
	default:
		return false;
	}
}

/* "2 condvar, 1 join", without those that have ended. */
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
		    wp_state_name((enum wp_state)s));
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
		uint32_t p = dump->threads[cycle_edge(dump, i)->from].process;
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
		    wp_dump_str(dump, cycle_edge(dump, i)->what));
	say(w, n - first > LISTED ? ", ...)" : ")");
}

static void say_cycle(struct words *w, const struct wp_dump *dump, uint32_t c)
{
	uint32_t n = dump->cycle_first[c + 1] - dump->cycle_first[c];
	const struct wp_edge *e = cycle_edge(dump, dump->cycle_first[c]);

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

/* Cycles with a thread of process P; *RET_CYCLE is the first of them. */
static uint32_t count_cycles(const struct judge *j, uint32_t p,
			     uint32_t *ret_cycle)
{
	const struct wp_dump *dump = j->dump;
	uint32_t n = 0;

	for (uint32_t c = 0; c < dump->ncycles; c++) {
		uint32_t i = dump->cycle_first[c];

		while (i < dump->cycle_first[c + 1] &&
		       dump->threads[cycle_edge(dump, i)->from].process != p)
			i++;
		if (i < dump->cycle_first[c + 1] && !n++)
			*ret_cycle = c;
	}
	return n;
}

static bool is_deadlocked(const struct judge *j, uint32_t p, struct words *w)
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

/* Why process P need not be asked about progress. */
static bool has_moved(const struct judge *j, uint32_t p, struct words *w)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];

	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (!is_active(dump, &dump->threads[i]))
			continue;
		say_thread(w, dump, i);
		if (!dump->threads[i].still)
			say(w, " ran between the looks");
		else
			say(w, " is %s", wp_state_name(dump->threads[i].state));
		return true;
	}
	if (proc->nlost)
		say(w, "%u thread%s came and went between the looks",
		    proc->nlost, proc->nlost > 1 ? "s" : "");
	return proc->nlost != 0;
}

/* " held by thread 43 "x", which is in sleep". */
static void say_end(struct judge *j, struct words *w, uint32_t i)
{
	const struct wp_dump *dump = j->dump;
	uint32_t end = find_end(j, i);
	const struct wp_dump_thread *t = &dump->threads[end];

	if (end != i) {
		say(w, ", held %sby ",
		    holder_of(&j->graph, i) == end ? "" : "in the end ");
		say_thread(w, dump, end);
		if (t->state != WP_STATE_WAITING)
			say(w, ", which is %s", wp_state_name(t->state));
		else
			say(w, ", which waits (%s)", wp_wait_name(t->wait));
	}
	if (t->state != WP_STATE_WAITING || t->wait != WP_WAIT_LOCK ||
	    holder_of(&j->graph, end) != WP_NO_NODE)
		return;
	if (t->lock.holder == WP_HOLDER_GONE)
		say(w, ", whose holder is gone");
	else if (t->lock.holder == WP_HOLDER_READERS)
		say(w, ", held by %u reader%s", t->lock.readers,
		    t->lock.readers == 1 ? "" : "s");
	else if (!is_file_lock(dump, t))
		say(w, ", whose holder is not recorded");
}

/* "mutex 0x55aa", "POSIX lock on /x, held by process 43". */
static void say_lock(const struct judge *j, struct words *w, uint32_t i)
{
	const struct wp_dump_thread *t = &j->dump->threads[i];
	const struct wp_graph *g = &j->graph;

	if (is_file_lock(j->dump, t) && g->out_first[i] < g->out_first[i + 1]) {
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

/* A lock that no thread is going to release. */
static bool has_hung_lock(struct judge *j, uint32_t p, struct words *w)
{
	const struct wp_dump_process *proc = &j->dump->processes[p];

	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (!lock_is_hung(j, i))
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

/* A wait for a thread or a process that is stuck itself. */
static bool waits_for_stuck(const struct judge *j, uint32_t p, struct words *w)
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

/* No thread is left that could end any of the waits: a lost wakeup. */
static bool all_wait_inside(struct judge *j, uint32_t p, struct words *w)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];
	uint32_t n = 0;

	for (uint32_t i = proc->first_thread;
	     i < proc->first_thread + proc->nthreads; i++) {
		if (dump->threads[i].state == WP_STATE_EXITING)
			continue;
		if (!waits_inside(j, i))
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

static enum finding judge_process(struct judge *j, uint32_t p, struct words *w)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_process *proc = &dump->processes[p];

	if (!j->graph.looked[p]) {
		say(w, "nothing could be read of process %d%s%s", proc->pid,
		    proc->error ? ": " : "", wp_dump_str(dump, proc->error));
		return UNREAD;
	}
	if (is_deadlocked(j, p, w))
		return DEADLOCK;
	if (dump->interval_ns) {
		if (has_moved(j, p, w))
			return WELL;
		if (has_hung_lock(j, p, w) || waits_for_stuck(j, p, w) ||
		    all_wait_inside(j, p, w))
			return NO_PROGRESS;
	}
	say(w, "%u thread%s, %s: ", proc->nthreads,
	    proc->nthreads == 1 ? "" : "s",
	    dump->interval_ns ? "all idle between the looks" :
				"no cycle of waits in one look");
	say_waits(w, dump, proc);
	return WELL;
}

static void judge_close(struct judge *j)
{
	wp_graph_close(&j->graph);
	free(j->cycle);
	free(j->queue);
	free(j->end);
	free(j->leader);
}

static int judge_open(struct judge *j, const struct wp_dump *dump)
{
	size_t nnodes;
	int rc;

	*j = (struct judge){ .dump = dump };
	rc = wp_graph_open(&j->graph, dump);
	if (rc)
		return rc;
	nnodes = (size_t)j->graph.outside + 1;
	j->cycle = calloc(nnodes, sizeof(*j->cycle));
	j->queue = calloc(nnodes, sizeof(*j->queue));
	j->end = calloc(nnodes, sizeof(*j->end));
	j->leader = calloc((size_t)dump->nprocesses + 1, sizeof(*j->leader));
	if (!j->cycle || !j->queue || !j->end || !j->leader) {
		judge_close(j);
		return -ENOMEM;
	}
	memset(j->end, 0xff, nnodes * sizeof(*j->end));
	mark_cycles(j);
	find_leaders(j);
	return 0;
}

/* The worst finding of the processes asked for, in the words of the first that
 * has it. */
static enum finding judge_all(struct judge *j, struct words *w)
{
	enum finding worst = UNREAD;
	bool any = false;

	for (uint32_t p = 0; p < j->dump->nprocesses; p++) {
		/* No longer than what wallprof says in one line. */
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

int wp_graph_judge(const struct wp_dump *dump, enum wp_verdict *ret, char *why,
		   size_t size)
{
	static const enum wp_verdict verdict[] = {
		[WELL] = WP_VERDICT_HEALTHY,
		[NO_PROGRESS] = WP_VERDICT_NO_PROGRESS,
		[DEADLOCK] = WP_VERDICT_DEADLOCK,
	};
	struct words w = { why, size, 0 };
	enum finding finding;
	struct judge j;
	int rc;

	if (size)
		why[0] = '\0';
	rc = judge_open(&j, dump);
	if (rc)
		return rc;
	finding = judge_all(&j, &w);
	judge_close(&j);
	if (finding == UNREAD)
		return -ESRCH;
	*ret = verdict[finding];
	return 0;
}
