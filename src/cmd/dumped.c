/* SPDX-License-Identifier: Apache-2.0 */
/* dumped.c - see dumped.h. */
#include "dumped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "wallprof/access.h"
#include "wallprof/children.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

/* A tree that is wider is cut. */
enum { TREE_MAX = 10000 };

static int add(struct wp_tids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->len; i++)
		if (pids->v[i] == pid)
			return 0;
	if (WP_VEC_ROOM(pids->v, pids->len, pids->cap, 1))
		return -ENOMEM;
	pids->v[pids->len++] = pid;
	return 0;
}

/* Add the process that ID names, which may be the tid of any of its threads. */
static int add_named(struct wp_tids *pids, pid_t id)
{
	uint64_t pid;

	/* Whoever opens one that is not there says so. */
	return add(pids,
		   wp_proc_status_read(&pid, id, "Tgid", 10) ? id : (pid_t)pid);
}

static int add_tree(struct wp_tids *pids, pid_t root)
{
	struct wp_tids tree = WP_TIDS_INIT;
	int rc = wp_children_list_all(&tree, root, TREE_MAX);

	for (size_t i = 0; i < tree.len && !rc; i++)
		rc = add(pids, tree.v[i]);
	wp_tids_clear(&tree);
	return rc == -ESRCH ? 0 : rc;
}

static int add_chosen(struct wp_tids *pids, const struct wp_options *options)
{
	struct wp_tids all = WP_TIDS_INIT;
	int rc = wp_choose_list(&all);

	for (size_t i = 0; i < all.len && !rc; i++)
		if (wp_choose(options, all.v[i]))
			rc = add(pids, all.v[i]);
	wp_tids_clear(&all);
	return rc;
}

int wp_dumped_list(struct wp_dumped *dumped, const struct wp_options *options,
		   struct wp_err *err)
{
	struct wp_tids *pids = &dumped->pids;
	char text[256];
	int rc = options->pid ? add_named(pids, options->pid) : 0;
	size_t nnamed;

	for (size_t i = 0; i < options->npids && !rc; i++)
		rc = add_named(pids, options->pids[i]);
	nnamed = pids->len;
	dumped->nnamed = options->pids_may_end ? 0 : nnamed;
	for (size_t i = 0; i < nnamed && options->tree && !rc; i++)
		rc = add_tree(pids, pids->v[i]);
	if (!rc && wp_choose_is_asked(options))
		rc = add_chosen(pids, options);
	if (rc)
		return wp_err_set(err, rc, "cannot list processes: %s",
				  strerror(-rc));
	wp_choose_describe(options, text, sizeof(text));
	return pids->len ? 0 : wp_err_set(err, -ESRCH, "there are no %s", text);
}

/* True: RC of process number I of DUMPED ends all. */
static bool is_fatal(const struct wp_dumped *dumped, size_t i, int rc)
{
	return rc == -ENOMEM || (rc && i < dumped->nnamed);
}

static int read_times(struct wp_thread_times *times,
		      struct wp_goroutine_marks *marks, pid_t pid,
		      size_t *ret_nknown, struct wp_err *err)
{
	struct wp_process process = WP_PROCESS_INIT;
	int rc = wp_process_open(&process, pid, err);

	if (rc == -EPERM)
		wp_access_denied(pid, err);
	if (!rc) {
		rc = wp_thread_times_read(times, &process);
		if (rc)
			wp_err_set(err, rc,
				   "cannot list the threads of process %d",
				   pid);
	}
	if (!rc && wp_goroutine_marks_read(marks, &process))
		rc = wp_err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < times->len; i++)
		*ret_nknown += times->v[i].slices != UINT64_MAX;
	wp_process_clear(&process);
	return rc;
}

int wp_dumped_read_times(struct wp_dumped *dumped, struct wp_err *err)
{
	size_t nknown = 0;

	dumped->times = calloc(dumped->pids.len, sizeof(*dumped->times));
	dumped->marks = calloc(dumped->pids.len, sizeof(*dumped->marks));
	if (!dumped->times || !dumped->marks)
		return wp_err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < dumped->pids.len; i++) {
		int rc = read_times(&dumped->times[i], &dumped->marks[i],
				    dumped->pids.v[i], &nknown, err);

		if (is_fatal(dumped, i, rc))
			return rc;
	}
	return nknown ? 0 :
			wp_err_set(err, -ENOTSUP,
				   "cannot tell whether threads ran: "
				   "/proc/%d/task/*/schedstat cannot be read "
				   "(a kernel without CONFIG_SCHED_INFO)",
				   dumped->pids.v[0]);
}

int wp_dumped_sample(const struct wp_dumped *dumped,
		     struct wp_snapshot *snapshot, struct wp_err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < dumped->pids.len; i++) {
		struct wp_err why = WP_ERR_INIT;
		int rc = wp_snapshot_add(snapshot, dumped->pids.v[i], false,
					 &why);

		n += !rc;
		if (rc)
			*err = why;
		if (is_fatal(dumped, i, rc))
			return rc;
		if (rc == -ESRCH)
			wp_snapshot_drop_last(snapshot);
	}
	return n ? 0 : err->code;
}

static void mark_still(struct wp_dump *dump, const struct wp_dump_process *p,
		       const struct wp_thread_times *first)
{
	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct wp_dump_thread *t = &dump->threads[p->first_thread + i];
		const struct wp_thread_time *was = wp_thread_times_find(first,
									t->tid);

		t->times.still = was && was->slices != UINT64_MAX &&
				 was->run_ns == t->times.run_ns &&
				 was->slices == t->times.slices;
	}
}

/* Peers have no first look: how long their threads have waited decides. */
static void mark_still_peer(struct wp_dump *dump,
			    const struct wp_dump_process *p)
{
	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct wp_dump_times *times =
			&dump->threads[p->first_thread + i].times;

		times->still = times->waited_ns != UINT64_MAX &&
			       times->waited_ns >= dump->interval_ns;
	}
}

/* Set what two looks at P's goroutines tell; without memory nothing. */
static void note_goroutines(const struct wp_dump *dump,
			    struct wp_dump_process *p,
			    struct wp_process *process,
			    const struct wp_goroutine_marks *before)
{
	struct wp_goroutine_marks after = WP_GOROUTINE_MARKS_INIT;
	struct wp_goroutine_change change = { 0 };
	uint32_t nunread;

	if (before->n && !wp_goroutine_marks_read(&after, process) &&
	    !wp_goroutine_marks_compare(before, &after, &change)) {
		p->nbefore = change.nbefore;
		p->nafter = change.nafter;
		p->grown_is_queue = change.is_queue;
		p->goroutines_wait_inside = change.all_wait_inside &&
					    change.nown;
		p->goroutines_take_signals = change.takes_signals;
		p->nown_goroutines = change.nown;
	}
	nunread = before->nunread > after.nunread ? before->nunread :
						    after.nunread;
	if (p->nlost_goroutines < nunread)
		p->nlost_goroutines = nunread;
	wp_goroutine_marks_clear(&after);
	for (uint32_t i = 0; change.grown_id && i < p->ngoroutines; i++)
		if (dump->goroutines[p->first_goroutine + i].id ==
		    change.grown_id)
			p->grown = p->first_goroutine + i + 1;
}

void wp_dumped_mark_still(const struct wp_dumped *dumped,
			  struct wp_snapshot *snapshot)
{
	struct wp_dump *dump = &snapshot->dump;
	size_t at = 0;

	for (uint32_t i = 0; i < dump->nprocesses; i++) {
		struct wp_dump_process *p = &dump->processes[i];

		/* Those that are no peers were added first, and in order; some
		 * have ended. */
		while (at < dumped->pids.len && !p->is_peer &&
		       dumped->pids.v[at] != p->pid)
			at++;
		if (p->is_peer || at == dumped->pids.len) {
			mark_still_peer(dump, p);
			continue;
		}
		mark_still(dump, p, &dumped->times[at]);
		note_goroutines(dump, p, &snapshot->processes[i]->process,
				&dumped->marks[at]);
	}
}

/* Is thread I of a peer, and is it not known since when the thread waits?  The kernel
 * forgets that of a thread which it moves to another CPU asleep (kernel/sched/fair.c,
 * migrate_task_rq_fair). */
static bool is_timeless(const struct wp_dump *dump, uint32_t i)
{
	const struct wp_dump_thread *t = &dump->threads[i];

	return dump->processes[t->process].is_peer &&
	       t->state == WP_STATE_WAITING &&
	       t->times.waited_ns == UINT64_MAX &&
	       t->times.slices_after != UINT64_MAX;
}

bool wp_dumped_wants_look(const struct wp_snapshot *snapshot)
{
	for (uint32_t i = 0; i < snapshot->dump.nthreads; i++)
		if (is_timeless(&snapshot->dump, i))
			return true;
	return false;
}

void wp_dumped_look_again(struct wp_snapshot *snapshot)
{
	struct wp_dump *dump = &snapshot->dump;

	for (uint32_t i = 0; i < dump->nthreads; i++)
		if (is_timeless(dump, i))
			dump->threads[i].times.still = !wp_snapshot_has_run(
				snapshot, i);
}

void wp_dumped_clear(struct wp_dumped *dumped)
{
	for (size_t i = 0; dumped->times && i < dumped->pids.len; i++)
		wp_thread_times_clear(&dumped->times[i]);
	for (size_t i = 0; dumped->marks && i < dumped->pids.len; i++)
		wp_goroutine_marks_clear(&dumped->marks[i]);
	free(dumped->times);
	free(dumped->marks);
	wp_tids_clear(&dumped->pids);
	*dumped = (struct wp_dumped){ 0 };
}
