/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - see judge.h. */
#include "judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/syscall_nr.h"

/* Of judge.end[]. */
enum {
	NOT_YET = UINT32_MAX,
	ON_THE_WAY = UINT32_MAX - 1,
};

/* Innermost frames among which a lock's own function is, inlined ones included. */
enum { LOCK_FRAMES = 6 };

bool wp_judge_is_active(const struct wp_dump *dump,
			const struct wp_dump_thread *t)
{
	bool twice = dump->interval_ns && t->process < dump->nprocesses &&
		     !dump->processes[t->process].is_peer;

	return wp_types_state_is_ready(t->state) || (twice && !t->times.still);
}

/* T waits for work, as the leader of a pool does that holds a lock and polls; the
 * pool's other threads wait for the lock. */
static bool waits_for_work(const struct wp_dump_thread *t)
{
	return t->wait == WP_WAIT_POLL || t->call.nr == SYS_accept ||
	       t->call.nr == SYS_accept4;
}

/* Set cycle[] of all nodes that lead to a cycle, from the cycles backwards. */
static void mark_cycles(struct wp_judge *j)
{
	const struct wp_dump *dump = j->dump;
	uint32_t n = 0;

	for (uint32_t c = 0; c < dump->ncycles; c++) {
		for (uint32_t i = dump->cycle_first[c];
		     i < dump->cycle_first[c + 1]; i++) {
			j->cycle[wp_dump_cycle_edge(dump, i)->from] = c + 1;
			j->queue[n++] = wp_dump_cycle_edge(dump, i)->from;
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

bool wp_judge_is_file_lock(const struct wp_dump_thread *t)
{
	return t->lock.kind == WP_LOCK_FILE || t->call.nr == SYS_flock ||
	       t->call.nr == SYS_fcntl;
}

/* T's wait for a lock may end without the holder. */
static bool gives_up(const struct wp_dump_thread *t)
{
	return t->call.timed || t->open_ended;
}

uint32_t wp_judge_find_holder(const struct wp_graph *g, uint32_t i)
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

uint32_t wp_judge_find_end(struct wp_judge *j, uint32_t i)
{
	uint32_t end = i, at = i;

	while (j->end[at] == NOT_YET) {
		uint32_t next = wp_judge_find_holder(&j->graph, at);

		j->end[at] = ON_THE_WAY;
		end = at;
		if (next == WP_NO_NODE)
			break;
		at = next;
	}
	if (j->end[at] != ON_THE_WAY)
		end = j->end[at];
	for (at = i; j->end[at] == ON_THE_WAY;
	     at = wp_judge_find_holder(&j->graph, at)) {
		j->end[at] = end;
		if (wp_judge_find_holder(&j->graph, at) == WP_NO_NODE)
			break;
	}
	return end;
}

/* T waits for a lock whose holder is not known, and may be of another process. */
static bool may_be_held_outside(const struct wp_dump *dump,
				const struct wp_dump_thread *t)
{
	return wp_graph_is_shared(dump, t) &&
	       t->lock.holder != WP_HOLDER_THREAD &&
	       t->lock.holder != WP_HOLDER_GONE;
}

/* A file lock with a holder outside the dump may be released at any time. */
static bool file_lock_is_hung(const struct wp_judge *j, uint32_t i)
{
	const struct wp_graph *g = &j->graph;
	const struct wp_dump *dump = j->dump;
	bool any = false;

	for (uint32_t k = g->out_first[i]; k < g->out_first[i + 1]; k++) {
		uint32_t to = g->target[g->out[k]], p;

		if (to == g->outside)
			return false;
		p = to < dump->nthreads ? dump->threads[to].process :
					  to - dump->nthreads;
		if (p >= dump->nprocesses || !g->sampled[p] ||
		    j->goes_on[dump->nthreads + p])
			return false;
		any = true;
	}
	return any;
}

static bool is_unrecorded(const struct wp_dump_thread *t)
{
	return t->state == WP_STATE_WAITING && t->wait == WP_WAIT_LOCK &&
	       t->lock.kind != WP_LOCK_FILE && t->lock.kind != WP_LOCK_PYTHON &&
	       t->lock.holder == WP_HOLDER_NOT_RECORDED;
}

/* A lock of the C library's own, as malloc has, records no holder; and nobody waits for
 * work with it held (glibc, sysdeps/nptl/lowlevellock.h). */
static bool is_of_libc(const struct wp_dump *dump,
		       const struct wp_dump_thread *t)
{
	for (uint32_t i = 0; i < t->stack.nframes && i < LOCK_FRAMES; i++) {
		const struct wp_dump_frame *f =
			&dump->frames[t->stack.first_frame + i];

		if (!f->kernel && strstr(wp_dump_str(dump, f->function),
					 "lll_lock_wait_private"))
			return true;
	}
	return false;
}

static bool may_be_leaders(const struct wp_dump *dump,
			   const struct wp_dump_thread *t)
{
	return is_unrecorded(t) && !is_of_libc(dump, t);
}

static void find_leaders(struct wp_judge *j)
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
				 waits_for_work(t);
			if (!may_be_leaders(dump, t))
				continue;
			same &= !avma || avma == t->lock.avma;
			avma = t->lock.avma;
		}
		j->leader[p] = works && same;
	}
}

/* T runs or waits for work, or something else that is not known may end its wait.  A
 * peer is looked at once: its thread is still if it is known to have waited since before
 * the first look at the others, and else may have run between the looks. */
static bool thread_goes_on(const struct wp_dump *dump,
			   const struct wp_dump_thread *t)
{
	bool is_peer = dump->interval_ns && t->process < dump->nprocesses &&
		       dump->processes[t->process].is_peer;

	return wp_judge_is_active(dump, t) || waits_for_work(t) ||
	       t->open_ended ||
	       (is_peer && t->state == WP_STATE_WAITING && !t->times.still);
}

static void set_goes_on(struct wp_judge *j, uint32_t node, uint32_t *n)
{
	if (!j->goes_on[node]) {
		j->goes_on[node] = true;
		j->queue[(*n)++] = node;
	}
}

/* Set goes_on[], from those that go on by themselves backwards: a thread that waits for
 * a child at work goes on. */
static void find_going_on(struct wp_judge *j)
{
	const struct wp_graph *g = &j->graph;
	const struct wp_dump *dump = j->dump;
	uint32_t n = 0;

	set_goes_on(j, g->outside, &n);
	for (uint32_t p = 0; p < dump->nprocesses; p++)
		if (dump->processes[p].nlost || dump->processes[p].nunchosen)
			set_goes_on(j, dump->nthreads + p, &n);
	for (uint32_t i = 0; i < dump->nthreads; i++)
		if (thread_goes_on(dump, &dump->threads[i]))
			set_goes_on(j, i, &n);
	for (uint32_t done = 0; done < n; done++) {
		uint32_t node = j->queue[done];

		for (uint32_t k = g->in_first[node]; k < g->in_first[node + 1];
		     k++)
			set_goes_on(j, dump->edges[g->in[k]].from, &n);
		if (node < dump->nthreads &&
		    dump->threads[node].process < dump->nprocesses)
			set_goes_on(
				j, dump->nthreads + dump->threads[node].process,
				&n);
	}
}

/* Thread I, at the end of a chain of holders, will not go on, and no known thread will
 * release the lock that it waits for. */
static bool end_is_hung(const struct wp_judge *j, uint32_t i)
{
	const struct wp_graph *g = &j->graph;
	const struct wp_dump_thread *t = &j->dump->threads[i];

	if (j->goes_on[i])
		return false;
	if (t->wait != WP_WAIT_LOCK || wp_judge_find_holder(g, i) != WP_NO_NODE)
		return true;
	/* Whatever thread there is may release a lock of Python's. */
	if (gives_up(t) || t->lock.kind == WP_LOCK_PYTHON)
		return false;
	if (wp_judge_is_file_lock(t))
		return file_lock_is_hung(j, i);
	/* A holder that is not in the dump started after the sampling. */
	return t->lock.holder != WP_HOLDER_THREAD &&
	       !may_be_held_outside(j->dump, t);
}

bool wp_judge_lock_is_hung(struct wp_judge *j, uint32_t i)
{
	const struct wp_dump_thread *t = &j->dump->threads[i], *end;
	uint32_t at;

	if (t->state != WP_STATE_WAITING || t->wait != WP_WAIT_LOCK)
		return false;
	at = wp_judge_find_end(j, i);
	end = &j->dump->threads[at];
	if (may_be_leaders(j->dump, end) && j->leader[end->process])
		return false;
	return end_is_hung(j, at);
}

/* The lock that I waits for is not shared with another process, which might
 * release it. */
static bool lock_is_inside(struct wp_judge *j, uint32_t i)
{
	const struct wp_dump_thread *t = &j->dump->threads[i];
	uint32_t end = wp_judge_find_end(j, i);

	if (t->lock.kind == WP_LOCK_PYTHON)
		return wp_graph_waits_for_own(j->dump, t);
	if (wp_judge_is_file_lock(t) || may_be_held_outside(j->dump, t) ||
	    j->dump->threads[end].process != t->process)
		return false;
	return end != i || t->lock.holder != WP_HOLDER_THREAD ||
	       wp_judge_find_holder(&j->graph, i) != WP_NO_NODE;
}

bool wp_judge_waits_inside(struct wp_judge *j, uint32_t i)
{
	const struct wp_dump *dump = j->dump;
	const struct wp_dump_thread *t = &dump->threads[i];

	if (t->state != WP_STATE_WAITING || t->call.timed || t->open_ended)
		return false;
	switch (t->wait) {
	case WP_WAIT_LOCK:
		return lock_is_inside(j, i);
	case WP_WAIT_JOIN:
		/* Else it may be anything that has a join's arguments. */
		return t->lock.kind == WP_LOCK_JOIN;
	default:
		return wp_graph_waits_for_own(dump, t);
	}
}

void wp_judge_close(struct wp_judge *j)
{
	wp_graph_close(&j->graph);
	free(j->cycle);
	free(j->queue);
	free(j->end);
	free(j->leader);
	free(j->goes_on);
}

int wp_judge_open(struct wp_judge *j, const struct wp_dump *dump)
{
	size_t nnodes;
	int rc;

	*j = (struct wp_judge){ .dump = dump };
	rc = wp_graph_open(&j->graph, dump);
	if (rc)
		return rc;
	nnodes = (size_t)j->graph.outside + 1;
	j->cycle = calloc(nnodes, sizeof(*j->cycle));
	j->queue = calloc(nnodes, sizeof(*j->queue));
	j->end = calloc(nnodes, sizeof(*j->end));
	j->leader = calloc((size_t)dump->nprocesses + 1, sizeof(*j->leader));
	j->goes_on = calloc(nnodes, sizeof(*j->goes_on));
	if (!j->cycle || !j->queue || !j->end || !j->leader || !j->goes_on) {
		wp_judge_close(j);
		return -ENOMEM;
	}
	memset(j->end, 0xff, nnodes * sizeof(*j->end));
	mark_cycles(j);
	find_leaders(j);
	find_going_on(j);
	return 0;
}
