/* SPDX-License-Identifier: Apache-2.0 */
/* shared_mutex.c - see shared_mutex.h. */
#include "shared_mutex.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pid_namespace.h"
#include "snapshot_priv.h"
#include "wallprof/clock.h"

enum { MAPS_FILE_MAX = 16 << 20 };
#define SEARCH_NS (500 * WP_NS_PER_MS)

/* A byte of a file, or of anonymous shared memory, which has an inode as well. */
struct place {
	unsigned int major, minor;
	uint64_t ino;
	uint64_t off;
};

/* A line of /proc/PID/maps. */
struct line {
	uint64_t start_avma, end_avma;
	struct place first;
};

/* Parse the line at TEXT; false: it is of no shared mapping. */
static bool parse_line(struct line *ret, const char *text)
{
	char perms[5];

	return sscanf(text,
		      "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64,
		      &ret->start_avma, &ret->end_avma, perms, &ret->first.off,
		      &ret->first.major, &ret->first.minor,
		      &ret->first.ino) == 7 &&
	       perms[3] == 's' && ret->first.ino;
}

/* Is what is at AVMA by LINE, if that is not 0, or else *PLACE there?  Sets *PLACE in the
 * first case. */
static bool has_place(const struct line *line, uint64_t avma,
		      struct place *place)
{
	uint64_t len = line->end_avma - line->start_avma;

	if (!avma)
		return line->first.ino == place->ino &&
		       line->first.major == place->major &&
		       line->first.minor == place->minor &&
		       place->off - line->first.off < len;
	if (avma - line->start_avma >= len)
		return false;
	*place = line->first;
	place->off += avma - line->start_avma;
	return true;
}

/* The same of any line of PROCESS. */
static bool find_place(const struct wp_snapshot_process *process, uint64_t avma,
		       struct place *place)
{
	struct wp_text text = WP_TEXT_INIT;
	bool found = false;
	struct line line;

	if (!wp_text_read(&text, process->process.proc_fd, "maps",
			  MAPS_FILE_MAX))
		for (const char *p = text.data; p && *p && !found;
		     p = (p = strchr(p, '\n')) ? p + 1 : NULL)
			found = parse_line(&line, p) &&
				has_place(&line, avma, place);
	wp_text_clear(&text);
	return found;
}

/* The only thread of another process than T's that may be the owner of T's mutex;
 * UINT32_MAX: there is none, or are several. */
static uint32_t find_owner(struct wp_snapshot *snapshot, const uint32_t *by_tid,
			   const struct wp_dump_thread *t, uint64_t until_ns)
{
	const struct wp_dump *dump = &snapshot->dump;
	uint32_t found = UINT32_MAX;
	struct place place;

	if (!find_place(snapshot->processes[t->process], t->lock.avma, &place))
		return UINT32_MAX;
	for (uint32_t i = 0; i < dump->nprocesses; i++) {
		struct wp_snapshot_process *process = snapshot->processes[i];
		pid_t tid;
		uint32_t at;

		if (wp_clock_ns() > until_ns)
			return UINT32_MAX;
		if (i == t->process || !dump->processes[i].nthreads)
			continue;
		tid = wp_pid_namespace_thread(process, t->lock.shared_owner, 0);
		at = tid > 0 ? wp_dump_find_tid(dump, by_tid, tid) : UINT32_MAX;
		if (at == UINT32_MAX || dump->threads[at].process != i ||
		    !find_place(process, 0, &place))
			continue;
		if (found != UINT32_MAX)
			return UINT32_MAX;
		found = at;
	}
	return found;
}

/* Has the owner of T's mutex it still?  bits/struct_mutex.h: lock, count, owner. */
static bool is_still_held(const struct wp_snapshot *snapshot,
			  const struct wp_dump_thread *t)
{
	uint32_t words[3];

	return wp_process_read(&snapshot->processes[t->process]->process,
			       t->lock.avma, words,
			       sizeof(words)) == sizeof(words) &&
	       words[0] && words[2] == (uint32_t)t->lock.shared_owner;
}

void wp_shared_mutex_find(struct wp_snapshot *snapshot, const uint32_t *by_tid)
{
	struct wp_dump *dump = &snapshot->dump;
	uint64_t until_ns = wp_clock_ns() + SEARCH_NS;

	for (uint32_t i = 0; i < dump->nthreads; i++) {
		struct wp_dump_thread *t = &dump->threads[i];
		uint32_t owner;

		if (t->state != WP_STATE_WAITING || !t->lock.shared_owner)
			continue;
		owner = find_owner(snapshot, by_tid, t, until_ns);
		/* In this order: it waits until after the mutex was read. */
		if (owner == UINT32_MAX || !is_still_held(snapshot, t) ||
		    wp_snapshot_has_run(snapshot, i))
			continue;
		t->lock.holder = WP_HOLDER_THREAD;
		t->lock.owner_tid = dump->threads[owner].tid;
	}
}
