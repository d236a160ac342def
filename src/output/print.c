/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - the text of a dump: what can never end, then every thread. */
#include "print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wallprof/base_name.h"

enum {
	/* Bytes that are gathered before a write. */
	ENOUGH = 1 << 16,
};

void wp_print_gap(struct wp_print *t)
{
	if (t->begun)
		wp_buf_char(&t->buf, '\n');
	t->begun = true;
	if (t->buf.len > ENOUGH)
		wp_buf_write(&t->buf, t->out);
}

void wp_print_place(struct wp_print *t, const struct wp_dump_frame *frame,
		    bool always, const char *before_module)
{
	const char *name = wp_dump_str(t->dump, frame->function);
	const char *file = wp_dump_str(t->dump, frame->file);
	const char *module = wp_dump_str(t->dump, frame->module);

	if (*name)
		wp_escape_terminal(&t->buf, name);
	else
		wp_buf_printf(&t->buf, "0x%" PRIx64, frame->pc_avma);
	if (*file) {
		wp_buf_char(&t->buf, ' ');
		wp_escape_terminal(&t->buf, wp_base_name(file));
		if (frame->line)
			wp_buf_printf(&t->buf, ":%" PRIu32, frame->line);
	}
	/* "libfoo.so+0x12" has the module in it; the kernel's are marked. */
	if (*module && !frame->kernel && (always || !*file) &&
	    strncmp(name, module, strlen(module)) != 0) {
		wp_buf_str(&t->buf, before_module);
		wp_escape_terminal(&t->buf, module);
	}
}

void wp_print_site(struct wp_print *t, const char *before,
		   const struct wp_dump_stack *stack)
{
	if (stack->site >= stack->nframes)
		return;
	wp_buf_printf(&t->buf, "%sat ", before);
	wp_print_place(t, &t->dump->frames[stack->first_frame + stack->site],
		       false, " ");
}

void wp_print_frames(struct wp_print *t, const struct wp_dump_stack *stack,
		     const char *why_none)
{
	char cut[WP_DUMP_CUT_MAX];

	for (uint32_t i = 0; i < stack->nframes; i++) {
		const struct wp_dump_frame *frame =
			&t->dump->frames[stack->first_frame + i];

		wp_buf_printf(&t->buf, "  #%-2" PRIu32 " ", i);
		wp_print_place(t, frame, true, "  ");
		if (frame->inlined)
			wp_buf_str(&t->buf, " [inlined]");
		if (frame->kernel)
			wp_buf_str(&t->buf, " [kernel]");
		if (frame->guessed)
			wp_buf_str(&t->buf, " [guessed]");
		wp_buf_char(&t->buf, '\n');
	}
	wp_dump_cut_text(t->dump, stack, cut);
	/* A worker of the kernel's may have the kernel's frames. */
	if (stack->nframes && !*cut && stack->end != WP_END_WORKER)
		return;
	wp_buf_printf(&t->buf, "  [%s: ",
		      stack->nframes && *cut ? "truncated" : "no stack");
	wp_escape_terminal(&t->buf, *cut ? cut : why_none);
	wp_buf_str(&t->buf, "]\n");
}

void wp_print_thread_frames(struct wp_print *t,
			    const struct wp_dump_thread *thread)
{
	wp_print_frames(
		t, &thread->stack,
		thread->state == WP_STATE_EXITING ?
			"the thread is ending" :
			wp_stack_end_text(thread->stack.end == WP_END_WORKER ?
						  WP_END_WORKER :
						  WP_END_EMPTY));
}

static void put_state(struct wp_print *t, const struct wp_dump_thread *thread)
{
	struct wp_print_same alone = WP_PRINT_SAME_INIT;

	wp_print_same_add(&alone, thread);
	wp_print_state(t, thread, &alone);
}

void wp_print_whole(struct wp_print *t, const struct wp_dump_thread *thread)
{
	const char *call = wp_dump_str(t->dump, thread->call.text);
	char name[WP_PRINT_CALL_MAX];

	wp_print_gap(t);
	wp_print_thread(t, thread);
	wp_buf_char(&t->buf, ' ');
	put_state(t, thread);
	if (thread->times.cpu >= 0)
		wp_buf_printf(&t->buf, " cpu %" PRId32, thread->times.cpu);
	wp_print_site(t, ", ", &thread->stack);
	wp_buf_char(&t->buf, '\n');
	if (!*call)
		call = wp_print_call_name(&thread->call, name);
	if (*call) {
		wp_buf_str(&t->buf, "  in ");
		wp_escape_terminal(&t->buf, call);
		wp_buf_char(&t->buf, '\n');
	}
	wp_print_thread_frames(t, thread);
}

/* Write what EDGE's thread wants: "mutex 0x10 <queue+8>". */
static void put_wanted(struct wp_print *t, const struct wp_edge *edge)
{
	wp_escape_terminal(&t->buf, wp_dump_str(t->dump, edge->what));
	if (edge->kind == WP_EDGE_LOCK)
		wp_print_variable(t, &t->dump->threads[edge->from]);
}

/* Write what EDGE says: "wants mutex 0x10 held by thread 7 "b"". */
static void put_edge(struct wp_print *t, const struct wp_edge *edge)
{
	const char *what = wp_dump_str(t->dump, edge->what);

	switch (edge->kind) {
	case WP_EDGE_LOCK:
	case WP_EDGE_FILE_LOCK:
		wp_buf_str(&t->buf, "wants ");
		put_wanted(t, edge);
		wp_buf_str(&t->buf, " held by ");
		wp_print_target(t, edge);
		break;
	case WP_EDGE_JOIN:
		wp_buf_str(&t->buf, "waits for the end of ");
		wp_print_target(t, edge);
		break;
	default:
		wp_buf_str(&t->buf, "waits for ");
		wp_print_target(t, edge);
		wp_buf_str(&t->buf, " (");
		wp_escape_terminal(&t->buf, what);
		wp_buf_char(&t->buf, ')');
	}
}

/* Edge number I of CYCLE. */
static const struct wp_edge *cycle_edge(const struct wp_dump *dump,
					uint32_t cycle, uint32_t i)
{
	return wp_dump_cycle_edge(dump, dump->cycle_first[cycle] + i);
}

static uint32_t cycle_len(const struct wp_dump *dump, uint32_t cycle)
{
	return dump->cycle_first[cycle + 1] - dump->cycle_first[cycle];
}

/* Threads of more than one process wait in CYCLE. */
static bool is_across(const struct wp_dump *dump, uint32_t cycle)
{
	const struct wp_dump_thread *first =
		&dump->threads[cycle_edge(dump, cycle, 0)->from];

	for (uint32_t i = 1; i < cycle_len(dump, cycle); i++)
		if (dump->threads[cycle_edge(dump, cycle, i)->from].process !=
		    first->process)
			return true;
	return false;
}

static void put_cycle_line(struct wp_print *t, const struct wp_edge *edge,
			   const struct wp_edge *before, bool across)
{
	const struct wp_dump_thread *from = &t->dump->threads[edge->from];

	wp_buf_str(&t->buf, "  ");
	wp_print_thread(t, from);
	if (across)
		wp_buf_printf(&t->buf, " of process %" PRId32,
			      t->dump->processes[from->process].pid);
	wp_buf_char(&t->buf, ' ');
	/* This thread has the lock that the one before wants. */
	if (before->kind == WP_EDGE_LOCK || before->kind == WP_EDGE_FILE_LOCK) {
		wp_buf_str(&t->buf, "holds ");
		put_wanted(t, before);
		wp_buf_str(&t->buf, ", ");
	}
	put_edge(t, edge);
	wp_print_site(t, ", ", &from->stack);
	wp_buf_char(&t->buf, '\n');
}

static void put_cycle(struct wp_print *t, uint32_t cycle)
{
	const struct wp_dump *dump = t->dump;
	uint32_t n = cycle_len(dump, cycle);
	const struct wp_edge *before;
	bool across;

	if (!n)
		return;
	across = is_across(dump, cycle);
	before = cycle_edge(dump, cycle, n - 1);
	wp_print_gap(t);
	wp_buf_str(&t->buf, "DEADLOCK: ");
	if (n == 1) {
		wp_print_thread(t, &dump->threads[before->from]);
		wp_buf_printf(&t->buf, " waits for %s\n",
			      before->to == before->from ? "itself" :
							   "its own process");
	} else {
		wp_buf_printf(&t->buf,
			      "%" PRIu32 " threads%s wait for each other\n", n,
			      across ? " of several processes" : "");
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct wp_edge *edge = cycle_edge(dump, cycle, i);

		put_cycle_line(t, edge, before, across);
		before = edge;
	}
}

static void put_roots(struct wp_print *t)
{
	const struct wp_dump *dump = t->dump;

	if (dump->nroots)
		wp_print_gap(t);
	for (uint32_t i = 0; i < dump->nroots; i++) {
		const struct wp_dump_thread *thread =
			&dump->threads[dump->roots[i]];

		wp_buf_printf(&t->buf,
			      "ROOT: %" PRIu32
			      " thread%s wait%s, directly or through others,"
			      " for ",
			      thread->waiters, wp_print_plural(thread->waiters),
			      thread->waiters == 1 ? "s" : "");
		wp_print_tid(t, thread->tid,
			     dump->nprocesses > 1 ? UINT32_MAX :
						    thread->process);
		wp_buf_char(&t->buf, ' ');
		put_state(t, thread);
		wp_print_site(t, ", ", &thread->stack);
		wp_buf_char(&t->buf, '\n');
	}
}

static void put_date(struct wp_print *t)
{
	time_t seconds = (time_t)(t->dump->time_ns / 1000000000);
	char text[64];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), ", %Y-%m-%d %H:%M:%S UTC", &tm))
		wp_buf_str(&t->buf, text);
}

static void put_process_error(struct wp_print *t,
			      const struct wp_dump_process *process)
{
	wp_buf_printf(&t->buf, "process %" PRId32 ": could not be looked at: ",
		      process->pid);
	wp_escape_terminal(&t->buf, wp_dump_str(t->dump, process->error));
	wp_buf_char(&t->buf, '\n');
}

static void put_header(struct wp_print *t,
		       const struct wp_dump_process *process)
{
	const char *user = wp_dump_str(t->dump, process->user);

	wp_buf_printf(&t->buf, "process %" PRId32 " ", process->pid);
	wp_print_quoted(t, process->command_line);
	if (*user) {
		wp_buf_str(&t->buf, ", user ");
		wp_escape_terminal(&t->buf, user);
	}
	put_date(t);
	wp_buf_printf(&t->buf, "\n%" PRIu32 " thread%s, ", process->nthreads,
		      wp_print_plural(process->nthreads));
	if (process->nstopped) {
		wp_buf_printf(&t->buf, "%" PRIu32 " stopped for ",
			      process->nstopped);
		wp_print_time(&t->buf, process->pause_ns);
	} else {
		wp_buf_str(&t->buf, "none stopped");
	}
	if (process->nlost)
		wp_buf_printf(&t->buf,
			      ", %" PRIu32 " more came and went unread",
			      process->nlost);
	if (process->nunchosen)
		wp_buf_printf(&t->buf, ", %" PRIu32 " not chosen by -t",
			      process->nunchosen);
	if (process->hold != WP_HOLD_NONE)
		wp_buf_str(&t->buf, process->hold == WP_HOLD_FROZEN ?
					    ", frozen by a cgroup" :
					    ", dumps core");
	if (t->dump->interval_ns) {
		wp_buf_str(&t->buf, ", looked at twice, ");
		wp_print_time(&t->buf, t->dump->interval_ns);
		wp_buf_str(&t->buf, " apart");
	}
	wp_buf_char(&t->buf, '\n');
}

/* Set ORDER to the indices of PROCESS's threads, its main thread first. */
static void order_threads(const struct wp_dump *dump,
			  const struct wp_dump_process *process,
			  uint32_t *order)
{
	uint32_t first = process->first_thread, n = 0;

	for (uint32_t i = 0; i < process->nthreads; i++)
		if (dump->threads[first + i].tid == process->pid)
			order[n++] = first + i;
	for (uint32_t i = 0; i < process->nthreads; i++)
		if (dump->threads[first + i].tid != process->pid)
			order[n++] = first + i;
}

static int put_process(struct wp_print *t,
		       const struct wp_dump_process *process, bool group)
{
	uint32_t *order;
	int rc = 0;

	wp_print_gap(t);
	if (*wp_dump_str(t->dump, process->error))
		put_process_error(t, process);
	else
		put_header(t, process);
	if (!process->nthreads)
		return 0;
	wp_print_goroutine_count(t, process);
	rc = wp_print_goroutine_locks(t, process);
	if (rc)
		return rc;
	order = calloc(process->nthreads, sizeof(*order));
	if (!order)
		return -ENOMEM;
	order_threads(t->dump, process, order);
	if (group)
		rc = wp_print_groups(t, order, process->nthreads);
	for (uint32_t i = 0; i < process->nthreads && !group; i++)
		wp_print_whole(t, &t->dump->threads[order[i]]);
	free(order);
	return rc ? rc : wp_print_goroutines(t, process, group);
}

static void put_peer_line(struct wp_print *t,
			  const struct wp_dump_process *process)
{
	if (*wp_dump_str(t->dump, process->error)) {
		put_process_error(t, process);
		return;
	}
	wp_print_process(t, process->pid);
	wp_buf_str(&t->buf, " was looked at because a wait led there;"
			    " --follow-processes prints it\n");
}

static int put_processes(struct wp_print *t,
			 const struct wp_write_dump_options *options)
{
	const struct wp_dump *dump = t->dump;
	bool lines = false;
	int rc = 0;

	for (uint32_t i = 0; i < dump->nprocesses && !rc; i++)
		if (!dump->processes[i].is_peer || options->peers)
			rc = put_process(t, &dump->processes[i],
					 options->group);
	for (uint32_t i = 0; i < dump->nprocesses && !options->peers; i++) {
		if (!dump->processes[i].is_peer)
			continue;
		if (!lines)
			wp_print_gap(t);
		lines = true;
		put_peer_line(t, &dump->processes[i]);
	}
	return rc;
}

static int compare_edges(const void *a, const void *b, void *ctx)
{
	const struct wp_dump *dump = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	uint32_t x = dump->edges[i].from, y = dump->edges[j].from;

	if (x == y)
		return (i > j) - (i < j);
	return (x > y) - (x < y);
}

/* The indices of all edges by the thread that they start from; NULL: no memory. */
static uint32_t *sort_edges(const struct wp_dump *dump)
{
	uint32_t *v = calloc((size_t)dump->nedges + 1, sizeof(*v));

	if (!v)
		return NULL;
	for (uint32_t i = 0; i < dump->nedges; i++)
		v[i] = i;
	qsort_r(v, dump->nedges, sizeof(*v), compare_edges, (void *)dump);
	return v;
}

static int put_all(struct wp_print *t,
		   const struct wp_write_dump_options *options)
{
	const struct wp_dump *dump = t->dump;

	t->by_tid = wp_dump_sort_tids(dump);
	t->by_from = sort_edges(dump);
	if (!t->by_tid || !t->by_from)
		return -ENOMEM;
	for (uint32_t i = 0; i < dump->ncycles; i++)
		put_cycle(t, i);
	put_roots(t);
	if (wp_print_waiters(t))
		return -ENOMEM;
	return put_processes(t, options);
}

int wp_write_dump_text(const struct wp_dump *dump,
		       const struct wp_write_dump_options *options, FILE *out)
{
	struct wp_print t = { .dump = dump, .out = out };
	int rc = put_all(&t, options);

	if (!rc)
		rc = t.part.rc;
	if (!rc)
		rc = wp_buf_finish(&t.buf, out);
	wp_buf_clear(&t.buf);
	wp_buf_clear(&t.part);
	free(t.by_tid);
	free(t.by_from);
	return rc;
}
