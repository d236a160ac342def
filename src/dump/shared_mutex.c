/* SPDX-License-Identifier: Apache-2.0 */
/* shared_mutex.c - see shared_mutex.h. */
#include "shared_mutex.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pid_namespace.h"
#include "snapshot_priv.h"
#include "wallprof/clock.h"
#include "wallprof/maps.h"
#include "wallprof/procfs.h"

#define SEARCH_NS (500 * WP_NS_PER_MS)

enum {
	/* "pid:[4026531836]". */
	NS_TEXT = 32,
	/* Most bytes of another process's memory map that are read. */
	MAPS_MAX = 4 << 20,
};

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

/* Set TEXT to where the link PATH of DIRFD leads; false: it cannot be read. */
static bool read_link(int dirfd, const char *path, char text[NS_TEXT])
{
	ssize_t n = readlinkat(dirfd, path, text, NS_TEXT - 1);

	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* What else an owner may be: a thread with the number TID in another PID namespace than
 * NS, of a process that has PLACE mapped. */
struct foreigner {
	char ns[NS_TEXT];
	int32_t tid;
	struct place place;
	/* When there is no more time to find out. */
	uint64_t until_ns;
};

/* Has process NAME of PROC_FD, in another namespace, a thread with that number?  In the
 * namespace of /proc its directory says so.  True, too, if that is not known in time. */
static bool has_thread(const struct foreigner *f, int proc_fd, const char *name)
{
	char path[NAME_MAX + 32];
	int32_t tids[WP_PID_LEVELS];
	struct dirent *entry;
	bool found = false;
	int fd, n;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/status", name);
	if (wp_proc_nspid_read(tids, proc_fd, path) == 1) {
		snprintf(path, sizeof(path), "%s/task/%d", name, (int)f->tid);
		return !faccessat(proc_fd, path, F_OK, 0);
	}
	snprintf(path, sizeof(path), "%s/task", name);
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir && fd >= 0)
		close(fd);
	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/status", entry->d_name);
		n = wp_proc_nspid_read(tids, fd, path);
		found = (n > 0 && tids[n - 1] == f->tid) ||
			wp_clock_ns() > f->until_ns;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Is process NAME of PROC_FD one of those?  None whose namespace or memory map may not be
 * read counts. */
static bool is_foreign(const struct foreigner *f, int proc_fd, const char *name)
{
	struct wp_text text = WP_TEXT_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	char path[NAME_MAX + 8], ns[NS_TEXT];
	bool found;
	int rc;

	snprintf(path, sizeof(path), "%s/ns/pid", name);
	if (!read_link(proc_fd, path, ns) || !strcmp(ns, f->ns) ||
	    !has_thread(f, proc_fd, name))
		return false;
	snprintf(path, sizeof(path), "%s/maps", name);
	rc = wp_text_read(&text, proc_fd, path, MAPS_MAX);
	if (!rc)
		rc = wp_maps_parse(&maps, text.data, text.len);
	found = rc ? rc == -EOVERFLOW : has_place(&maps, &f->place);
	wp_maps_clear(&maps);
	wp_text_clear(&text);
	return found;
}

/* Is there one, or was there no time to find out? */
static enum wp_wait_doubt find_foreign(const struct foreigner *f)
{
	enum wp_wait_doubt doubt = WP_DOUBT_NONE;
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && !doubt && (entry = readdir(dir)))
		if (wp_clock_ns() > f->until_ns)
			doubt = WP_DOUBT_CUT;
		else if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
			 is_foreign(f, dirfd(dir), entry->d_name))
			doubt = WP_DOUBT_NAMESPACE;
	if (dir)
		closedir(dir);
	return doubt;
}

/* Why the owner of the lock that T waits for may be a thread of another PID namespace. */
static enum wp_wait_doubt doubt_owner(const struct wp_snapshot *snapshot,
				      const struct wp_dump_thread *t,
				      uint64_t until_ns)
{
	struct wp_maps maps = WP_MAPS_INIT;
	struct foreigner f = { .until_ns = until_ns };
	int32_t tids[WP_PID_LEVELS];
	bool is_shared, has_name;
	char path[32];
	int n;

	if (wp_clock_ns() > until_ns)
		return WP_DOUBT_CUT;
	read_maps(&maps, snapshot->processes[t->process]);
	is_shared = find_place(&maps, t->lock.avma, &f.place);
	has_name = is_shared && !wp_maps_find(&maps, t->lock.avma)->deleted;
	wp_maps_clear(&maps);
	if (!is_shared)
		return WP_DOUBT_NONE;
	/* The /proc of a container does not tell of those outside. */
	if (has_name && wp_proc_is_in_first_pid_namespace() == 0)
		return WP_DOUBT_OUTSIDE;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)t->lock.owner_tid);
	n = wp_proc_nspid_read(tids, AT_FDCWD, path);
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)t->lock.owner_tid);
	/* It has ended, or its namespace may not be read. */
	if (n <= 0 || !read_link(AT_FDCWD, path, f.ns))
		return WP_DOUBT_NONE;
	f.tid = tids[n - 1];
	return find_foreign(&f);
}

static bool has_shared_owner(const struct wp_dump_thread *t)
{
	return t->state == WP_STATE_WAITING && t->call.nr == SYS_futex &&
	       !(t->call.args[1] & FUTEX_PRIVATE_FLAG) &&
	       t->lock.kind != WP_LOCK_JOIN &&
	       t->lock.holder == WP_HOLDER_THREAD;
}

/* An owner is recorded by the tid that it has in its own PID namespace, which may be that
 * of a thread that waits here. */
static void forget_foreign_owners(struct wp_snapshot *snapshot)
{
	struct wp_dump *dump = &snapshot->dump;
	uint64_t until_ns = wp_clock_ns() + SEARCH_NS;
	enum wp_wait_doubt doubt = WP_DOUBT_NONE;
	const struct wp_dump_thread *last = NULL;

	for (uint32_t i = 0; i < dump->nthreads; i++) {
		struct wp_dump_thread *t = &dump->threads[i];

		if (!has_shared_owner(t))
			continue;
		/* Many threads may wait for one. */
		if (!last || last->process != t->process ||
		    last->lock.avma != t->lock.avma)
			doubt = doubt_owner(snapshot, t, until_ns);
		last = t;
		if (!doubt)
			continue;
		t->lock.holder = WP_HOLDER_NOT_RECORDED;
		t->lock.owner_tid = 0;
		snapshot->nwaits_doubtful++;
		snapshot->wait_doubt = doubt;
		snapshot->doubtful_pid = 0;
	}
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
	forget_foreign_owners(snapshot);
}
