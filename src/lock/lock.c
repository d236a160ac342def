/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - see wallprof/lock.h. */
#include "lock_priv.h"
#include "wallprof/enum_name.h"

#include <string.h>
#include <sys/syscall.h>

const char *wp_lock_kind_name(enum wp_lock_kind kind)
{
	return WP_ENUM_NAME(WP_LOCK_KINDS, kind);
}

const char *wp_lock_holder_name(enum wp_holder holder)
{
	return WP_ENUM_NAME(WP_HOLDERS, holder);
}

bool wp_lock_read_at(void *buf, size_t len, const struct wp_lock_call *call,
		     uint64_t avma)
{
	const struct wp_mem *mem = &call->query->mem;

	return avma <= UINT64_MAX - len && !mem->read(mem->ctx, avma, buf, len);
}

bool wp_lock_read(void *buf, size_t len, const struct wp_lock_call *call,
		  uint64_t off)
{
	return off <= call->uaddr_avma &&
	       wp_lock_read_at(buf, len, call, call->uaddr_avma - off);
}

int32_t wp_lock_find_thread(const struct wp_lock_call *call, uint32_t tid)
{
	if (!wp_lock_is_tid(tid))
		return 0;
	return call->query->find_thread(call->query->ctx, (int32_t)tid);
}

struct wp_lock wp_lock_of_join(const struct wp_lock_call *call, int32_t tid)
{
	return (struct wp_lock){
		.kind = WP_LOCK_JOIN,
		.holder = WP_HOLDER_THREAD,
		.owner_tid = tid,
		.avma = call->uaddr_avma,
		.type = "",
	};
}

static bool begins(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* What a frame of function NAME tells.  A function without a name may be any of
 * the library's. */
static enum wp_lock_caller classify(const char *name)
{
	static const struct {
		const char *prefix;
		enum wp_lock_caller frame;
	} rows[] = {
		{ "pthread_mutex_lock", WP_LOCK_CALLER_MUTEX },
		{ "pthread_mutex_timedlock", WP_LOCK_CALLER_MUTEX },
		{ "pthread_mutex_clocklock", WP_LOCK_CALLER_MUTEX },
		{ "pthread_mutex_cond_lock", WP_LOCK_CALLER_MUTEX },
		{ "pthread_cond_wait", WP_LOCK_CALLER_COND },
		{ "pthread_cond_timedwait", WP_LOCK_CALLER_COND },
		{ "pthread_cond_clockwait", WP_LOCK_CALLER_COND },
		{ "pthread_rwlock_rdlock", WP_LOCK_CALLER_RDLOCK },
		{ "pthread_rwlock_timedrdlock", WP_LOCK_CALLER_RDLOCK },
		{ "pthread_rwlock_clockrdlock", WP_LOCK_CALLER_RDLOCK },
		{ "pthread_rwlock_wrlock", WP_LOCK_CALLER_WRLOCK },
		{ "pthread_rwlock_timedwrlock", WP_LOCK_CALLER_WRLOCK },
		{ "pthread_rwlock_clockwrlock", WP_LOCK_CALLER_WRLOCK },
		{ "pthread_join", WP_LOCK_CALLER_JOIN },
		{ "pthread_timedjoin", WP_LOCK_CALLER_JOIN },
		{ "pthread_clockjoin", WP_LOCK_CALLER_JOIN },
		{ "thrd_join", WP_LOCK_CALLER_JOIN },
		{ "pthread_", WP_LOCK_CALLER_OTHER },
		/* The libraries' own ways to call futex(2).  They do not use
		 * syscall(). */
		{ "futex", WP_LOCK_CALLER_UNKNOWN },
		{ "lll_", WP_LOCK_CALLER_UNKNOWN },
		{ "libc_", WP_LOCK_CALLER_UNKNOWN },
		{ "internal_syscall_cancel", WP_LOCK_CALLER_UNKNOWN },
		{ "syscall_c", WP_LOCK_CALLER_UNKNOWN },
		{ "timedwait", WP_LOCK_CALLER_UNKNOWN },
		{ "cp_", WP_LOCK_CALLER_UNKNOWN },
		{ "sccp", WP_LOCK_CALLER_UNKNOWN },
	};

	if (!*name || strstr(name, "+0x"))
		return WP_LOCK_CALLER_UNKNOWN;
	while (*name == '_')
		name++;
	if (begins(name, "GI_"))
		name += strlen("GI_");
	while (*name == '_')
		name++;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (begins(name, rows[i].prefix))
			return rows[i].frame;
	return WP_LOCK_CALLER_OTHER;
}

/* The function of the innermost frame that tells what is waited for.  Any name
 * that is not of the waiting machinery ends the search, be it malloc or a
 * signal trampoline, below which nothing waits.  Names count in the file of the
 * innermost frame only; a guessed frame does not count. */
static enum wp_lock_caller find_caller(const struct wp_lock_wait *wait)
{
	/* i386's calls are made in the vDSO, which all have in common. */
	const uint32_t first = wait->nframes > 1 &&
			       !strcmp(wait->frames[0].function,
				       "__kernel_vsyscall");

	for (uint32_t i = first; i < wait->nframes && i < WP_LOCK_FRAMES_MAX;
	     i++) {
		const struct wp_lock_frame *f = &wait->frames[i];
		enum wp_lock_caller found;

		if (f->module != wait->frames[first].module || f->guessed)
			break;
		found = classify(f->function);
		if (found)
			return found;
	}
	return WP_LOCK_CALLER_UNKNOWN;
}

/* A lock of Python's (Python/thread_pthread.h; Python/lock.c since 3.13): the first
 * frame outside of the C library, or one in it that is linked into the program. */
static bool is_python_lock(const struct wp_lock_wait *wait)
{
	for (uint32_t i = 0; i < wait->nframes && i < WP_LOCK_FRAMES_MAX; i++) {
		const struct wp_lock_frame *f = &wait->frames[i];
		const char *name = f->function + strspn(f->function, "_");

		if (begins(name, "PyThread_acquire_lock") ||
		    begins(name, "PyMutex_Lock") ||
		    begins(name, "PyParkingLot_Park") ||
		    begins(name, "PySemaphore_"))
			return true;
		if (f->module != wait->frames[0].module ||
		    begins(name, "restore_rt"))
			break;
	}
	return false;
}

/* A PI lock of any library: the kernel's rule is that the word has the owner. */
static bool decode_pi(struct wp_lock *ret, const struct wp_lock_call *call)
{
	uint32_t word;
	int32_t tid;

	if (!wp_lock_is_pi(call) || !wp_lock_read(&word, sizeof(word), call, 0))
		return false;
	tid = wp_lock_find_thread(call, word & FUTEX_TID_MASK);
	*ret = (struct wp_lock){
		.kind = WP_LOCK_MUTEX,
		.holder = tid ? WP_HOLDER_THREAD : WP_HOLDER_NOT_RECORDED,
		.owner_tid = tid,
		.avma = call->uaddr_avma,
		.type = "PI",
	};
	return true;
}

/* A join whose futex does not tell the joined thread. */
static bool decode_join(struct wp_lock *ret, const struct wp_lock_call *call)
{
	if (call->caller != WP_LOCK_CALLER_JOIN)
		return false;
	*ret = (struct wp_lock){
		.kind = WP_LOCK_JOIN,
		.holder = WP_HOLDER_NOT_RECORDED,
		.avma = call->uaddr_avma,
		.type = "",
	};
	return true;
}

/* The least word that is taken for a tid where only the word says so.  Below are the
 * states of other locks (Rust's Mutex: 2, parking_lot: 1) and counters, and in a PID
 * namespace threads with such numbers, of which one would be held to wait for itself. */
enum { LEAST_GUESSED_TID = 1000 };

/* A lock of the program's own, which waits by futex(2) itself: the word that it
 * sleeps on has the tid of a thread of the process.  One that the kernel clears when the
 * thread ends (CLONE_CHILD_CLEARTID) is waited for by who joins the thread: it has no
 * flags, and is woken as one that is not private. */
static bool decode_own(struct wp_lock *ret, const struct wp_lock_call *call)
{
	uint32_t word;
	int32_t tid;

	if (call->caller != WP_LOCK_CALLER_OTHER || !wp_lock_is_wait(call) ||
	    !wp_lock_read(&word, sizeof(word), call, 0) || word != call->val)
		return false;
	word &= FUTEX_TID_MASK;
	tid = word < LEAST_GUESSED_TID ? 0 : wp_lock_find_thread(call, word);
	if (!tid)
		return false;
	if (!call->is_private && call->cmd == FUTEX_WAIT && word == call->val) {
		*ret = wp_lock_of_join(call, tid);
		return true;
	}
	*ret = (struct wp_lock){
		.kind = WP_LOCK_FUTEX,
		.holder = WP_HOLDER_THREAD,
		.owner_tid = tid,
		.avma = call->uaddr_avma,
		.type = "",
	};
	return true;
}

/* Is a function of Python's that takes the GIL, or calls one without a name that does,
 * among FRAMES? */
static bool may_take_gil(const struct wp_lock_wait *wait)
{
	for (uint32_t i = 0; i < wait->nframes && i < WP_LOCK_FRAMES_MAX; i++) {
		const char *name = wait->frames[i].function;

		name += strspn(name, "_");
		if (begins(name, "take_gil") || begins(name, "PyEval_") ||
		    begins(name, "PyGILState_"))
			return true;
	}
	return false;
}

/* No thread holds what is waited for. */
static bool has_no_holder(enum wp_wait wait)
{
	return wait == WP_WAIT_CONDVAR || wait == WP_WAIT_SEMAPHORE ||
	       wait == WP_WAIT_BARRIER;
}

static bool decode(struct wp_lock *ret, const struct wp_lock_call *call)
{
	bool may_be_musl = !call->query->is_32bit;

	/* The kinds with the strictest checks first. */
	return wp_lock_decode_glibc_join(ret, call) ||
	       (may_be_musl && wp_lock_decode_musl_join(ret, call)) ||
	       wp_lock_decode_glibc_mutex(ret, call) ||
	       wp_lock_decode_glibc_rwlock(ret, call) ||
	       (may_be_musl && (wp_lock_decode_musl_mutex(ret, call) ||
				wp_lock_decode_musl_rwlock(ret, call))) ||
	       decode_pi(ret, call) || decode_join(ret, call) ||
	       decode_own(ret, call);
}

static void decode_futex(struct wp_lock_answer *answer,
			 const struct wp_lock_wait *wait,
			 const struct wp_lock_query *query)
{
	uint32_t op = (uint32_t)wait->args[1];
	struct wp_lock_call call = {
		.query = query,
		.uaddr_avma = wait->args[0],
		.cmd = op & FUTEX_CMD_MASK,
		.is_private = op & FUTEX_PRIVATE_FLAG,
		.val = (uint32_t)wait->args[2],
		.caller = find_caller(wait),
		.sp_avma = wait->sp_avma,
	};

	/* futex(2) rejects an unaligned word, so these are not its arguments.
	 * Where the stack shows a condvar without its function, memory alone
	 * could only give a false holder. */
	if (call.caller == WP_LOCK_CALLER_COND &&
	    wp_lock_decode_glibc_condvar(&answer->lock, &call)) {
		/* Python's GIL is a lock, and made of condvars. */
		if (may_take_gil(wait) &&
		    wp_lock_decode_gil(&answer->lock, &call, answer->lock.avma))
			answer->wait = WP_WAIT_LOCK;
		else if (wait->wait != WP_WAIT_LOCK)
			answer->wait = WP_WAIT_CONDVAR;
		return;
	}
	if (call.uaddr_avma % sizeof(uint32_t) ||
	    ((call.caller == WP_LOCK_CALLER_UNKNOWN ||
	      call.caller == WP_LOCK_CALLER_OTHER) &&
	     has_no_holder(wait->wait)) ||
	    !decode(&answer->lock, &call))
		return;
	answer->wait = answer->lock.kind == WP_LOCK_JOIN ? WP_WAIT_JOIN :
							   WP_WAIT_LOCK;
}

void wp_lock_decode(const struct wp_lock_wait *wait,
		    const struct wp_lock_query *query,
		    struct wp_lock_answer *ret_answer)
{
	bool is_futex = wait->syscall_nr == SYS_futex;
	bool is_waitv = wait->syscall_nr == SYS_futex_waitv;

	*ret_answer = (struct wp_lock_answer){ .lock.type = "",
					       .wait = wait->wait };
	if (!is_futex && !is_waitv)
		return;
	ret_answer->lock.kind = WP_LOCK_FUTEX;
	ret_answer->lock.holder = has_no_holder(wait->wait) ?
					  WP_HOLDER_NONE :
					  WP_HOLDER_NOT_RECORDED;
	ret_answer->lock.avma = wait->args[0];
	/* futex_waitv has several words, and neither C library waits so. */
	if (wait->wait == WP_WAIT_LOCK && is_python_lock(wait))
		ret_answer->lock.kind = WP_LOCK_PYTHON;
	else if (is_futex)
		decode_futex(ret_answer, wait, query);
}
