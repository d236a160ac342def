/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h - which lock a futex belongs to, and who holds it.
 *
 * Layer: lock.
 */
#ifndef WP_LOCK_H
#define WP_LOCK_H

#include "wallprof/types.h"

/* Kind of a lock: name, text. */
#define WP_LOCK_KINDS(X)                                                          \
	X(NONE, "")                                                               \
	X(MUTEX, "mutex")                                                         \
	X(RWLOCK_READ, "rwlock")                                                  \
	X(RWLOCK_WRITE, "rwlock")                                                 \
	X(JOIN, "thread")                                                         \
	X(CONDVAR, "condvar")                                                     \
	X(FILE, "file lock")                                                      \
	/* A semaphore: any thread may release it, as Event, Queue and         \
	 * Condition do for one that waits. */  \
	X(PYTHON, "Python lock")                                                  \
	/* Held by who runs Python's code, and waited for until it is had,      \
	 * though by calls that have a timeout. */ \
	X(GIL, "Python GIL")                                                      \
	X(FUTEX, "futex")

enum wp_lock_kind {
#define X(name, text) WP_LOCK_##name,
	WP_LOCK_KINDS(X)
#undef X
		WP_NLOCK_KINDS
};

/* What is known of a lock's holder: name, text (as in JSON). */
#define WP_HOLDERS(X)                                                            \
	/* The wait is not for a holder (a condvar, a semaphore). */             \
	X(NONE, "none")                                                          \
	/* The lock records no owner, or the record fails a check. */            \
	X(NOT_RECORDED, "not recorded")                                          \
	/* OWNER_TID lives, and the lock word agrees with it. */                 \
	X(THREAD, "thread")                                                      \
	/* OWNER_TID (0: unknown) is no thread of the process: it ended with   \
	 * the lock held, or fork(2) copied the lock and not the thread. */ \
	X(GONE, "gone")                                                          \
	/* READERS threads, whose tids a rwlock does not record. */              \
	X(READERS, "readers")

enum wp_holder {
#define X(name, text) WP_HOLDER_##name,
	WP_HOLDERS(X)
#undef X
		WP_NHOLDERS
};

struct wp_lock {
	enum wp_lock_kind kind;
	enum wp_holder holder;
	/* Address of the lock object, not of the futex word inside it. */
	uint64_t avma;
	/* In wallprof's PID namespace; with HOLDER_GONE, as recorded. */
	int32_t owner_tid;
	/* Of a mutex that processes share, whose owner is no thread of this one: the
	 * owner's tid as recorded, in a PID namespace of its own; 0: none. */
	int32_t shared_owner;
	uint32_t readers;
	/* "robust", "PI", "recursive", "error-checking", "adaptive", "".  A
	 * string constant. */
	const char *type;
};

const char *wp_lock_kind_name(enum wp_lock_kind kind);
const char *wp_lock_holder_name(enum wp_holder holder);

/* Frames that the decoder reads; those beyond decide nothing. */
enum { WP_LOCK_FRAMES_MAX = 12 };

/* A user frame of a waiting thread. */
struct wp_lock_frame {
	/* As in the file, not demangled; "": not known. */
	const char *function;
	/* Any number that tells one file from another. */
	uint32_t module;
	/* Found without unwind info. */
	bool guessed;
};

/* A thread that waits in a system call. */
struct wp_lock_wait {
	long syscall_nr;
	/* args[0..6) of the call; borrowed. */
	const uint64_t *args;
	/* As far as the stack tells. */
	enum wp_wait wait;
	/* frames[0..nframes), innermost first, without the kernel's; borrowed.
	 * NFRAMES 0: only memory can tell. */
	const struct wp_lock_frame *frames;
	uint32_t nframes;
	/* The thread's stack pointer; 0: not known. */
	uint64_t sp_avma;
};

/* What the decoder asks about the target. */
struct wp_lock_query {
	/* The target's live memory: hostile, and it may change between two
	 * reads. */
	struct wp_mem mem;
	/* The tid in wallprof's PID namespace of the process's live thread that
	 * has TID in the target's own PID namespace; 0: there is none. */
	int32_t (*find_thread)(void *ctx, int32_t tid);
	void *ctx;
	/* The target is an i386 program, whose locks are of glibc or its own. */
	bool is_32bit;
	/* As MEM, which may be a copy: for what stays as it is as long as a thread
	 * lives.  READ NULL: Python's GIL is not told. */
	struct wp_mem live;
};

struct wp_lock_answer {
	/* KIND is WP_LOCK_NONE where the call waits for no futex. */
	struct wp_lock lock;
	/* WP_WAIT_LOCK, WP_WAIT_JOIN or WP_WAIT_CONDVAR where LOCK tells so, else
	 * the wait as it was given. */
	enum wp_wait wait;
};

/* Decode what WAIT, a wait in futex(2) or futex_waitv(2), waits for.  Where a
 * check fails the answer is WP_LOCK_FUTEX without a holder, never a guess. */
void wp_lock_decode(const struct wp_lock_wait *wait,
		    const struct wp_lock_query *query,
		    struct wp_lock_answer *ret_answer);

#endif
