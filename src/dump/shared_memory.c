/* SPDX-License-Identifier: Apache-2.0 */
/* shared_memory.c - processes with one memory: see shared_memory.h. */
#include "shared_memory.h"

#include <dirent.h>
#include <stdlib.h>

#include "wallprof/clock.h"
#include "wallprof/kcmp.h"

/* The processes of the machine are asked for so long; past that any may share. */
#define SEARCH_NS (500 * WP_NS_PER_MS)

/* Do threads of P wait, and none else do anything, so that who could wake them is asked? */
static bool may_be_judged(const struct wp_dump *dump,
			  const struct wp_dump_process *p)
{
	bool all_wait = p->nthreads != 0;

	for (uint32_t i = 0; i < p->nthreads; i++) {
		const struct wp_dump_thread *t =
			&dump->threads[p->first_thread + i];

		if (t->lock.holder == WP_HOLDER_GONE)
			return true;
		all_wait &= t->state == WP_STATE_WAITING ||
			    t->state == WP_STATE_EXITING;
	}
	return all_wait;
}

static bool is_shared(pid_t pid, uint64_t until_ns)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");
	bool found = !dir;

	while (!found && (entry = readdir(dir))) {
		pid_t other = (pid_t)strtol(entry->d_name, NULL, 10);

		found = wp_clock_ns() > until_ns ||
			(other > 0 && other != pid &&
			 wp_kcmp_memory_is_one(pid, other));
	}
	if (dir)
		closedir(dir);
	return found;
}

/* A holder that is no thread of P may be one of another process. */
static void forget_lost_holders(struct wp_dump *dump,
				const struct wp_dump_process *p)
{
	for (uint32_t i = 0; i < p->nthreads; i++) {
		struct wp_lock *lock = &dump->threads[p->first_thread + i].lock;

		if (lock->holder != WP_HOLDER_GONE)
			continue;
		lock->holder = WP_HOLDER_NOT_RECORDED;
		lock->owner_tid = 0;
	}
}

void wp_shared_memory_find(struct wp_snapshot *snapshot)
{
	struct wp_dump *dump = &snapshot->dump;
	uint64_t until_ns = wp_clock_ns() + SEARCH_NS;

	for (uint32_t i = 0; i < dump->nprocesses; i++) {
		struct wp_dump_process *p = &dump->processes[i];

		if (!may_be_judged(dump, p) ||
		    !is_shared(snapshot->processes[i]->process.reader_tid,
			       until_ns))
			continue;
		p->shares_memory = true;
		forget_lost_holders(dump, p);
	}
}
