/* SPDX-License-Identifier: Apache-2.0 */
/* links_file_lock.c - waits for file locks: see links.h.
 *
 * A process's own lock (F_SETLK) has a holder in /proc/locks.  A lock of an open
 * file (flock(2), F_OFD_SETLK) can be released by whoever has that file open:
 * /proc/locks tells at most who took it, who may have ended or closed it.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "links.h"
#include "wallprof/clock.h"
#include "wallprof/syscall_nr.h"

enum { LOCKS_FILE_MAX = 16 << 20 };
/* From its begin on, a round searches that file for so long: any number of threads may
 * wait, each with a line there. */
#define LOCKS_NS (1 * WP_NS_PER_S)

/* What i386 programs lock by (fs/fcntl.c): F_SETLKW by the first. */
struct flock_32 {
	int16_t type;
	int16_t whence;
	int32_t start;
	int32_t len;
	int32_t pid;
};

struct flock64_32 {
	int16_t type;
	int16_t whence;
	int64_t start;
	int64_t len;
	int32_t pid;
} __attribute__((packed, aligned(4)));

_Static_assert(sizeof(struct flock64_32) == 24, "layout");

int wp_links_add_lock_holder(struct wp_links *links, uint32_t thread,
			     pid_t holder, const char *type)
{
	const struct wp_dump_thread *t = wp_links_thread(links, thread);
	char what[WP_FD_TEXT_MAX + 32];
	struct wp_fd_desc desc;

	if (wp_fdinfo_describe(&wp_links_process(links, thread)->fdinfo, t->tid,
			       (int)t->call.args[0], wp_clock_ns(), &desc))
		desc.text[0] = '\0';
	snprintf(what, sizeof(what), "%s lock on %s", type, desc.text);
	return wp_links_add_edge(links, WP_EDGE_FILE_LOCK, thread, holder,
				 what);
}

int wp_links_add_lock_taker(struct wp_links *links, uint32_t thread,
			    pid_t taker)
{
	struct wp_dump_thread *t = wp_links_thread(links, thread);

	if (taker > 0 && !kill(taker, 0))
		return wp_links_add_lock_holder(links, thread, taker, "FLOCK");
	t->open_ended = true;
	t->lock = (struct wp_lock){
		.kind = WP_LOCK_FILE,
		.holder = WP_HOLDER_NOT_RECORDED,
	};
	return 0;
}

/* Read what CALL, a fcntl(2) of PROCESS, asks for. */
static bool read_flock(struct flock *ret,
		       const struct wp_snapshot_process *process,
		       const struct wp_dump_call *call)
{
	const struct wp_process *memory = &process->process;
	const uint64_t avma = call->args[2];
	struct flock64_32 wide = { 0 };
	struct flock_32 narrow = { 0 };

	if (!process->is_32bit)
		return wp_process_read(memory, avma, ret, sizeof(*ret)) ==
		       sizeof(*ret);
	if (call->args[1] != F_SETLKW) {
		if (wp_process_read(memory, avma, &wide, sizeof(wide)) !=
		    sizeof(wide))
			return false;
		*ret = (struct flock){ wide.type, wide.whence, wide.start,
				       wide.len, wide.pid };
		return true;
	}
	if (wp_process_read(memory, avma, &narrow, sizeof(narrow)) !=
	    sizeof(narrow))
		return false;
	*ret = (struct flock){ narrow.type, narrow.whence, narrow.start,
			       narrow.len, narrow.pid };
	return true;
}

/* Make LOCK, which CALL asks for, one from the file's start; false if that cannot be. */
static bool count_from_start(struct flock *lock,
			     const struct wp_snapshot_process *process,
			     const struct wp_dump_call *call)
{
	char name[32], text[256];
	unsigned long long pos;
	ssize_t n;

	if (lock->l_whence == SEEK_SET)
		return true;
	/* As of lockf(3); proc(5): the offset is in the first line. */
	snprintf(name, sizeof(name), "fdinfo/%d", (int)call->args[0]);
	n = wp_io_read_at(process->process.proc_fd, name, text,
			  sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return lock->l_whence == SEEK_CUR &&
	       sscanf(text, "pos: %llu", &pos) == 1 &&
	       !__builtin_add_overflow(lock->l_start, pos, &lock->l_start);
}

/* The lock that CALL asks for; false when it is unreadable, from the file's end, or goes
 * backwards. */
static bool read_wanted_lock(const struct wp_snapshot_process *process,
			     const struct wp_dump_call *call,
			     struct wp_file_want *want)
{
	struct flock lock = { 0 };
	int64_t last;

	*want = (struct wp_file_want){ WP_FILE_WANT_FLOCK,
				       (call->args[1] & ~(uint64_t)LOCK_NB) ==
					       LOCK_EX,
				       0, UINT64_MAX };
	if (call->nr == SYS_flock)
		return true;
	if (!read_flock(&lock, process, call) ||
	    !count_from_start(&lock, process, call) || lock.l_start < 0 ||
	    lock.l_len < 0 ||
	    (lock.l_type != F_WRLCK && lock.l_type != F_RDLCK))
		return false;
	want->kind = call->args[1] == F_OFD_SETLKW ? WP_FILE_WANT_OFD :
						     WP_FILE_WANT_POSIX;
	want->write = lock.l_type == F_WRLCK;
	want->first = (uint64_t)lock.l_start;
	if (lock.l_len &&
	    !__builtin_add_overflow(lock.l_start, lock.l_len - 1, &last))
		want->last = (uint64_t)last;
	return true;
}

/* THREAD waits for a lock that an open file has; fdinfo tells which have it. */
static int add_open_file_wait(struct wp_links *links, uint32_t thread,
			      pid_t taker)
{
	const struct wp_dump_call *call = &wp_links_thread(links, thread)->call;
	const struct wp_snapshot_process *process = wp_links_process(links,
								     thread);
	const struct wp_links_wait wait = {
		.thread = thread,
		.kind = WP_EDGE_FILE_LOCK,
		.fd = (int)call->args[0],
		.taker = taker,
	};
	struct wp_file_want want;
	char link[PATH_MAX];
	struct stat st;

	if (!wp_links_read_fd(process, wait.fd, link, sizeof(link), &st) ||
	    !read_wanted_lock(process, call, &want))
		return wp_links_add_lock_taker(links, thread, taker);
	return wp_links_add_wait(links, &wait, link, &st, &want);
}

/* The lock that CALL waits for by /proc/locks; false if it is not there, as when
 * its taker has ended and wallprof is in a PID namespace. */
static bool find_held_lock(struct wp_links *links,
			   const struct wp_snapshot_process *process,
			   const struct wp_dump_call *call,
			   struct wp_file_lock *lock)
{
	struct wp_file_waiter waiter = { .pid = process->process.pid,
					 .is_flock = call->nr == SYS_flock };
	struct wp_file_want want;
	char name[32];
	struct stat st;

	if (!links->locks.len && wp_text_read(&links->locks, AT_FDCWD,
					      "/proc/locks", LOCKS_FILE_MAX))
		return false;
	snprintf(name, sizeof(name), "fd/%d", (int)call->args[0]);
	if (wp_io_stat_open(process->process.proc_fd, name, &st))
		return false;
	waiter.dev = st.st_dev;
	waiter.ino = st.st_ino;
	if (read_wanted_lock(process, call, &want))
		waiter.want = &want;
	return !wp_file_lock_find(lock, links->locks.data, links->locks.len,
				  &waiter);
}

int wp_links_add_file_lock(struct wp_links *links, uint32_t thread)
{
	const struct wp_dump_call *call = &wp_links_thread(links, thread)->call;
	bool is_flock = call->nr == SYS_flock;
	struct wp_file_lock lock = { .holder = 0 };

	/* /proc/locks does not say who waits for such a lock either
	 * (fs/locks.c, lock_get_status). */
	if (!is_flock && call->args[1] == F_OFD_SETLKW)
		return add_open_file_wait(links, thread, 0);
	if (wp_clock_ns() - links->round_ns >= LOCKS_NS)
		return wp_links_add_lock_taker(links, thread, 0);
	if (!find_held_lock(links, wp_links_process(links, thread), call,
			    &lock))
		return is_flock ? add_open_file_wait(links, thread, 0) : 0;
	if (is_flock || lock.holder <= 0)
		return add_open_file_wait(links, thread, lock.holder);
	return wp_links_add_lock_holder(links, thread, lock.holder, lock.type);
}

bool wp_links_is_same_file(const struct wp_links *links,
			   const struct wp_links_wait *wait,
			   const struct wp_fd_holder *holder)
{
	pid_t own = wp_links_process(links, wait->thread)->process.pid;

	return (holder->pid == own && holder->fd == wait->fd) ||
	       !syscall(SYS_kcmp, own, holder->pid, KCMP_FILE, wait->fd,
			holder->fd);
}
