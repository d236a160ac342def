/* SPDX-License-Identifier: Apache-2.0 */
/* shared_mutex.c - see shared_mutex.h. */
#include "shared_mutex.h"

#include "pid_namespace.h"
#include "snapshot_priv.h"
#include "wallprof/clock.h"
#include "wallprof/maps.h"

#define SEARCH_NS (500 * WP_NS_PER_MS)

/* A byte of a file, or of anonymous shared memory, which has an inode as well. */
struct place {
	uint64_t dev;
	uint64_t ino;
	uint64_t off;
};

/* Replace MAPS by the memory map of PROCESS, or by none if it cannot be read. */
static void read_maps(struct wp_maps *maps,
		      const struct wp_snapshot_process *process)
{
	struct wp_text text = WP_TEXT_INIT;

	if (wp_process_read_maps(&process->process, &text, maps))
		maps->len = 0;
	wp_text_clear(&text);
}

/* What is shared at AVMA by MAPS; false: nothing is. */
static bool find_place(const struct wp_maps *maps, uint64_t avma,
		       struct place *ret)
{
	const struct wp_map *map = wp_maps_find(maps, avma);

	if (!map || !map->shared || !map->ino)
		return false;
	*ret = (struct place){ map->dev, map->ino,
			       avma - map->start_avma + map->off };
	return true;
}

static bool has_place(const struct wp_maps *maps, const struct place *place)
{
	for (size_t i = 0; i < maps->len; i++) {
		const struct wp_map *map = &maps->v[i];

		if (map->shared && map->dev == place->dev &&
		    map->ino == place->ino &&
		    place->off - map->off < map->end_avma - map->start_avma)
			return true;
	}
	return false;
}

/* The thread of process number I that has TID in its own namespace, where the process
 * has PLACE mapped; UINT32_MAX: there is none. */
static uint32_t find_owner_in(struct wp_snapshot *snapshot,
			      const uint32_t *by_tid, uint32_t i, int32_t tid,
			      const struct place *place)
{
	struct wp_snapshot_process *process = snapshot->processes[i];
	const struct wp_dump *dump = &snapshot->dump;
	struct wp_maps maps = WP_MAPS_INIT;
	uint32_t at = UINT32_MAX;
	pid_t outer_tid;

	if (!dump->processes[i].nthreads)
		return UINT32_MAX;
	outer_tid = wp_pid_namespace_thread(process, tid, 0);
	if (outer_tid > 0)
		at = wp_dump_find_tid(dump, by_tid, outer_tid);
	if (at == UINT32_MAX || dump->threads[at].process != i)
		return UINT32_MAX;
	read_maps(&maps, process);
	if (!has_place(&maps, place))
		at = UINT32_MAX;
	wp_maps_clear(&maps);
	return at;
}

/* The only thread of another process than T's that may be the owner of T's mutex;
 * UINT32_MAX: there is none, or are several. */
static uint32_t find_owner(struct wp_snapshot *snapshot, const uint32_t *by_tid,
			   const struct wp_dump_thread *t, uint64_t until_ns)
{
	struct wp_maps maps = WP_MAPS_INIT;
	uint32_t found = UINT32_MAX;
	struct place place;
	bool is_known;

	read_maps(&maps, snapshot->processes[t->process]);
	is_known = find_place(&maps, t->lock.avma, &place);
	wp_maps_clear(&maps);
	for (uint32_t i = 0; is_known && i < snapshot->dump.nprocesses; i++) {
		uint32_t at = UINT32_MAX;

		if (i != t->process)
			at = find_owner_in(snapshot, by_tid, i,
					   t->lock.shared_owner, &place);
		is_known = wp_clock_ns() <= until_ns &&
			   (at == UINT32_MAX || found == UINT32_MAX);
		if (at != UINT32_MAX)
			found = at;
	}
	return is_known ? found : UINT32_MAX;
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

	for (uint32_t i = 0; i < dump->nthreads && wp_clock_ns() <= until_ns;
	     i++) {
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
