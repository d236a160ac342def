/* SPDX-License-Identifier: Apache-2.0 */
/* follow.c - see follow.h. */
#include "follow.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "choose.h"
#include "wallprof/access.h"
#include "wallprof/children.h"
#include "wallprof/clock.h"
#include "wallprof/lower_bound.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

/* A tree that is wider is cut, and says so. */
enum { TREE_MAX = 100000 };

/* A process that another moves into a group has no record: all are looked at so
 * often. */
#define CHOOSE_NS WP_NS_PER_S

/* Where records are lost all the time, the processes of which they would have told are
 * looked for so often. */
#define LOST_NS (100 * WP_NS_PER_MS)

/* Starts are told by a clock of 10 ms. */
#define START_NS (10 * WP_NS_PER_MS)
/* A process that is no older has done hardly anything under its name before. */
#define YOUNG_NS (100 * WP_NS_PER_MS)

static size_t place_of(const struct wp_tids *pids, pid_t pid)
{
	return WP_LOWER_BOUND(pids->len, i, pids->v[i] < pid);
}

static bool has(const struct wp_tids *pids, pid_t pid)
{
	size_t i = place_of(pids, pid);

	return i < pids->len && pids->v[i] == pid;
}

static int insert(struct wp_tids *pids, pid_t pid)
{
	size_t i = place_of(pids, pid);

	if (has(pids, pid))
		return 0;
	if (WP_VEC_ROOM(pids->v, pids->len, pids->cap, 1))
		return -ENOMEM;
	memmove(&pids->v[i + 1], &pids->v[i],
		(pids->len - i) * sizeof(*pids->v));
	pids->v[i] = pid;
	pids->len++;
	return 0;
}

static void drop(struct wp_tids *pids, pid_t pid)
{
	size_t i = place_of(pids, pid);

	if (!has(pids, pid))
		return;
	pids->len--;
	memmove(&pids->v[i], &pids->v[i + 1],
		(pids->len - i) * sizeof(*pids->v));
}

/* Record PID, which is to be; what cannot be is counted. */
static void add(struct wp_follow *follow, pid_t pid, uint64_t since_ns)
{
	struct wp_counters *c = &follow->recorded->profile->counters;
	struct wp_err err = WP_ERR_INIT;
	int rc = insert(&follow->parents, pid);

	if (!rc)
		rc = wp_recorded_add(follow->recorded, pid, since_ns, &err);
	if (!rc)
		return;
	if (rc == -ENOMEM) {
		follow->no_memory = true;
	} else if (rc == -ESRCH) {
		c->processes_lost++;
	} else {
		c->processes_denied++;
		if (!follow->why.code && rc == -EPERM)
			wp_access_denied(pid, &err);
		if (!follow->why.code)
			follow->why = err;
	}
}

/* Is PID, which PARENT (0: not known) has started, to be recorded and is not yet? */
static bool is_wanted(const struct wp_follow *follow, pid_t pid, pid_t parent)
{
	const struct wp_options *o = follow->options;

	if (has(&follow->parents, pid))
		return false;
	return (o->children && has(&follow->parents, parent) &&
		!wp_choose_avoids(o, pid)) ||
	       (wp_choose_is_asked(o) && wp_choose(o, pid));
}

/* Is the process of RECORD, one of a new name, wanted by that?  It is looked at once between
 * two ticks, however often it changes its name, and no other thread's name is its own. */
static bool is_wanted_by_name(struct wp_follow *follow,
			      const struct wp_perf_record *record)
{
	pid_t pid = record->pid;

	if (pid != record->tid || !wp_choose_is_asked(follow->options) ||
	    has(&follow->renamed, pid))
		return false;
	/* Without memory it is looked at each time. */
	(void)!insert(&follow->renamed, pid);
	return is_wanted(follow, pid, 0);
}

/* TICKS after boot, by wp_clock_ns. */
static uint64_t ns_of_ticks(uint64_t ticks)
{
	uint64_t ns = ticks * (WP_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	int64_t ahead_ns, start_ns;
	struct timespec boot;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	ahead_ns = (int64_t)boot.tv_sec * (int64_t)WP_NS_PER_S + boot.tv_nsec -
		   (int64_t)wp_clock_ns();
	start_ns = (int64_t)ns - ahead_ns;
	return start_ns > 0 ? (uint64_t)start_ns : 0;
}

/* From when on all that the process of RECORD, which is wanted by its new name, does is
 * recorded: from then, if it has hardly run before.  0: what it has done is not told
 * from what it did under another name, which may be hours. */
static uint64_t since_name(const struct wp_perf_record *record)
{
	struct wp_proc_stat stat;

	return !wp_proc_stat_read(&stat, record->pid) &&
			       ns_of_ticks(stat.start_time) + YOUNG_NS >=
				       record->time_ns ?
		       record->time_ns :
		       0;
}

/* The process of a record has started, or has executed a program: if it is to be
 * recorded it is from then on. */
static void tell(void *ctx, const struct wp_perf_record *record)
{
	struct wp_follow *follow = ctx;

	if (record->type == WP_PERF_FORK &&
	    is_wanted(follow, record->pid, record->parent_pid))
		add(follow, record->pid, record->time_ns);
	else if (record->type == WP_PERF_NAME &&
		 is_wanted_by_name(follow, record))
		add(follow, record->pid, since_name(record));
	else if (record->type == WP_PERF_FORK && follow->options->all &&
		 record->parent_pid != getpid() && kill(record->pid, 0) &&
		 errno == ESRCH)
		follow->recorded->profile->counters.processes_lost++;
	/* One that is recorded is let go of when its last thread has ended. */
	if (record->type == WP_PERF_EXIT &&
	    !wp_recorded_find(follow->recorded, record->pid))
		drop(&follow->parents, record->pid);
}

static void let_go(void *ctx, pid_t pid)
{
	struct wp_follow *follow = ctx;

	drop(&follow->parents, pid);
}

void wp_follow_init(struct wp_follow *follow, const struct wp_options *options,
		    struct wp_recorded *recorded,
		    struct wp_task_watch *ret_watch)
{
	*follow = (struct wp_follow){ .options = options,
				      .recorded = recorded };
	recorded->ended = let_go;
	recorded->ctx = follow;
	if (options->children || wp_choose_is_asked(options))
		*ret_watch = (struct wp_task_watch){ tell, follow };
}

static int add_tree(struct wp_follow *follow, pid_t pid)
{
	struct wp_tids pids = WP_TIDS_INIT;
	int rc = wp_children_list_all(&pids, pid, TREE_MAX);

	for (size_t i = 0; i < pids.len && !rc; i++)
		if (!wp_choose_avoids(follow->options, pids.v[i]))
			add(follow, pids.v[i], 0);
	wp_tids_clear(&pids);
	return rc == -ESRCH ? 0 : rc;
}

/* A process that was asked for by its pid must be there when the first recorder begins. */
static int add_named(struct wp_follow *follow, pid_t pid, struct wp_err *err)
{
	int rc = wp_choose_avoids(follow->options, pid) ?
			 0 :
			 wp_recorded_add(follow->recorded, pid, 0, err);

	if (rc == -ESRCH && follow->options->pids_may_end) {
		*err = (struct wp_err)WP_ERR_INIT;
		return 0;
	}
	return rc ? rc : insert(&follow->parents, pid);
}

/* Record all processes that are wanted and were not there, or not wanted, before. */
static int add_chosen(struct wp_follow *follow)
{
	struct wp_tids pids = WP_TIDS_INIT;
	int rc = wp_choose_list(&pids);

	for (size_t i = 0; i < pids.len && !rc; i++)
		if (is_wanted(follow, pids.v[i], 0))
			add(follow, pids.v[i], 0);
	follow->chosen_ns = wp_clock_ns();
	wp_tids_clear(&pids);
	return rc == -ENOMEM ? rc : 0;
}

static size_t count_threads(const struct wp_tids *pids,
			    const struct wp_options *chosen_by)
{
	struct wp_proc_stat stat;
	size_t n = 0;

	for (size_t i = 0; i < pids->len; i++)
		if ((!chosen_by || wp_choose(chosen_by, pids->v[i])) &&
		    !wp_proc_stat_read(&stat, pids->v[i]))
			n += (size_t)stat.nthreads;
	return n;
}

size_t wp_follow_count_threads(const struct wp_options *options, pid_t pid)
{
	struct wp_tids pids = WP_TIDS_INIT;
	struct wp_proc_stat stat;
	size_t n = 0;

	/* Without memory nothing is recorded anyway. */
	if (wp_choose_is_asked(options) && !wp_choose_list(&pids))
		n += count_threads(&pids, options);
	if (pid && options->children &&
	    !wp_children_list_all(&pids, pid, TREE_MAX))
		n += count_threads(&pids, NULL);
	if (pid && !wp_proc_stat_read(&stat, pid))
		n += (size_t)stat.nthreads;
	wp_tids_clear(&pids);
	return n;
}

int wp_follow_first(const struct wp_options *options,
		    struct wp_process *process, struct wp_err *err)
{
	struct wp_tids pids = WP_TIDS_INIT;
	char text[256];
	int rc = wp_choose_list(&pids), opened = -ENOENT;

	for (size_t i = 0; i < pids.len && !rc && opened; i++)
		if (wp_choose(options, pids.v[i]))
			opened = wp_process_open(process, pids.v[i], err);
	wp_tids_clear(&pids);
	wp_choose_describe(options, text, sizeof(text));
	if (!rc && opened == -ENOENT)
		return wp_err_set(err, opened, "there are no %s", text);
	return rc ? wp_err_set(err, rc, "cannot list processes: %s",
			       strerror(-rc)) :
		    opened;
}

void wp_follow_describe(const struct wp_follow *follow)
{
	struct wp_profile *profile = follow->recorded->profile;
	char text[256];
	uint32_t id;

	wp_choose_describe(follow->options, text, sizeof(text));
	id = wp_intern_add_str(&profile->strings, text);
	if (id != UINT32_MAX)
		profile->meta.command_line = id;
	profile->meta.pid = 0;
}

int wp_follow_begin(struct wp_follow *follow, pid_t pid, struct wp_err *err)
{
	const struct wp_options *o = follow->options;
	int rc = pid ? insert(&follow->parents, pid) : 0;

	follow->begin_ns = wp_clock_ns();
	for (size_t i = pid ? 1 : 0; i < o->npids && !rc; i++)
		rc = add_named(follow, o->pids[i], err);
	for (size_t i = 0; i < o->npids && o->tree && !rc; i++)
		rc = add_tree(follow, o->pids[i]);
	if (!rc && wp_choose_is_asked(o))
		rc = add_chosen(follow);
	if (rc == -ENOMEM)
		return wp_err_set(err, rc, "no memory");
	return rc;
}

static void meet(struct wp_follow *follow, pid_t pid)
{
	struct wp_proc_stat stat;
	uint64_t start_ns;

	if (wp_proc_stat_read(&stat, pid))
		return;
	start_ns = ns_of_ticks(stat.start_time);
	/* By START_NS. */
	if (start_ns < follow->listed_ns)
		start_ns = follow->listed_ns;
	if (is_wanted(follow, pid, stat.ppid))
		add(follow, pid, start_ns);
}

/* NOW are all that there are: another may have the number of one that is not among them,
 * and is no parent's child by that.  What is recorded is let go of elsewhere. */
static void drop_ended(struct wp_follow *follow, const struct wp_tids *now)
{
	struct wp_tids *parents = &follow->parents;
	size_t n = 0;

	for (size_t i = 0; i < parents->len; i++)
		if (has(now, parents->v[i]) ||
		    wp_recorded_find(follow->recorded, parents->v[i]))
			parents->v[n++] = parents->v[i];
	parents->len = n;
}

/* Record new processes, in the order of pids: parents before their children. */
static int meet_new(struct wp_follow *follow, uint64_t now_ns)
{
	struct wp_tids now = WP_TIDS_INIT;
	int rc = wp_choose_list(&now);

	/* The next list may be had. */
	if (rc && rc != -ENOMEM)
		return 0;
	if (!rc)
		drop_ended(follow, &now);
	for (size_t i = 0; i < now.len && follow->listed_ns && !rc; i++)
		if (!has(&follow->known, now.v[i]))
			meet(follow, now.v[i]);
	wp_tids_clear(&follow->known);
	follow->known = now;
	follow->listed_ns = now_ns;
	return rc;
}

/* PID may be a child of what is recorded that no record has told of.  One that was there
 * before is none; nor one that has ended, whose records may have been read. */
static void meet_untold(struct wp_follow *follow, pid_t pid)
{
	struct wp_proc_stat stat;
	uint64_t start_ns;

	if (has(&follow->parents, pid) || wp_proc_stat_read(&stat, pid) ||
	    stat.state_char == 'Z' || stat.state_char == 'X')
		return;
	start_ns = ns_of_ticks(stat.start_time);
	if (start_ns + START_NS < follow->begin_ns ||
	    !is_wanted(follow, pid, stat.ppid))
		return;
	add(follow, pid,
	    start_ns > follow->begin_ns ? start_ns : follow->begin_ns);
}

/* If the kernel has lost records, find the children of which they would have told. */
static int meet_lost(struct wp_follow *follow, uint64_t now_ns)
{
	uint64_t lost = wp_sampler_lost_tasks(follow->recorded->sampler);
	struct wp_tids now = WP_TIDS_INIT;
	int rc;

	if (lost == follow->lost || now_ns < follow->lost_ns + LOST_NS)
		return 0;
	follow->lost = lost;
	follow->lost_ns = now_ns;
	rc = wp_choose_list(&now);
	if (!rc)
		drop_ended(follow, &now);
	for (size_t i = 0; i < now.len && !rc; i++)
		meet_untold(follow, now.v[i]);
	wp_tids_clear(&now);
	return rc == -ENOMEM ? rc : 0;
}

int wp_follow_step(struct wp_follow *follow)
{
	bool chooses = wp_choose_is_asked(follow->options);
	uint64_t now_ns = wp_clock_ns();
	int rc = 0;

	follow->renamed.len = 0;
	if ((follow->options->children || chooses) &&
	    !wp_sampler_sees_tasks(follow->recorded->sampler))
		rc = meet_new(follow, now_ns);
	else if (follow->options->children)
		rc = meet_lost(follow, now_ns);
	if (!rc && chooses && now_ns - follow->chosen_ns >= CHOOSE_NS)
		rc = add_chosen(follow);
	if (!rc)
		rc = wp_recorded_retire(follow->recorded);
	return rc || !follow->no_memory ? rc : -ENOMEM;
}

void wp_follow_clear(struct wp_follow *follow)
{
	wp_tids_clear(&follow->parents);
	wp_tids_clear(&follow->known);
	wp_tids_clear(&follow->renamed);
}
