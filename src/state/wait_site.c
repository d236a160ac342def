/* SPDX-License-Identifier: Apache-2.0 */
/* wait_site.c - wait reasons and sites by stacks: see wallprof/state.h. */
#include <string.h>

#include "wallprof/state.h"

enum match {
	/* The whole name. */
	EXACT,
	/* The name begins so. */
	PREFIX,
};

struct row {
	const char *name;
	enum match match;
	/* Reason that it gives; NONE: waiting machinery without one. */
	enum wp_wait wait;
	/* It knows better than what it is made of: a Python lock is a
	 * semaphore below. */
	bool outer;
};

/* Names are as after normalize(): no leading underscores, no "GI_", no version
 * or compiler suffix, no '<' of Rust's <type>::method.
 */
static const struct row rows[] = {
	/* glibc and musl, locks. */
	{ "pthread_mutex_lock", PREFIX, WP_WAIT_LOCK, false },
	{ "pthread_mutex_timedlock", PREFIX, WP_WAIT_LOCK, false },
	{ "pthread_mutex_clocklock", PREFIX, WP_WAIT_LOCK, false },
	{ "pthread_mutex_cond_lock", PREFIX, WP_WAIT_LOCK, false },
	{ "pthread_rwlock_", PREFIX, WP_WAIT_LOCK, false },
	{ "pthread_once", PREFIX, WP_WAIT_LOCK, false },
	{ "pthread_spin_lock", EXACT, WP_WAIT_LOCK, false },
	{ "lll_lock_wait", PREFIX, WP_WAIT_LOCK, false },
	{ "lll_timedlock_wait", PREFIX, WP_WAIT_LOCK, false },
	{ "lll_clocklock_wait", PREFIX, WP_WAIT_LOCK, false },
	{ "mtx_lock", EXACT, WP_WAIT_LOCK, false },
	{ "mtx_timedlock", EXACT, WP_WAIT_LOCK, false },
	{ "call_once", EXACT, WP_WAIT_LOCK, false },
	{ "flockfile", EXACT, WP_WAIT_LOCK, false },
	{ "lockfile", EXACT, WP_WAIT_LOCK, false },
	{ "lock", EXACT, WP_WAIT_LOCK, false },
	{ "cxa_guard_acquire", EXACT, WP_WAIT_LOCK, false },
	/* Condition variables. */
	{ "pthread_cond_", PREFIX, WP_WAIT_CONDVAR, false },
	{ "cnd_wait", EXACT, WP_WAIT_CONDVAR, false },
	{ "cnd_timedwait", EXACT, WP_WAIT_CONDVAR, false },
	/* Semaphores. */
	{ "sem_wait", PREFIX, WP_WAIT_SEMAPHORE, false },
	{ "sem_timedwait", PREFIX, WP_WAIT_SEMAPHORE, false },
	{ "sem_clockwait", PREFIX, WP_WAIT_SEMAPHORE, false },
	{ "new_sem_wait", PREFIX, WP_WAIT_SEMAPHORE, false },
	{ "old_sem_wait", PREFIX, WP_WAIT_SEMAPHORE, false },
	/* Joins and barriers. */
	{ "pthread_join", PREFIX, WP_WAIT_JOIN, false },
	{ "pthread_timedjoin", PREFIX, WP_WAIT_JOIN, false },
	{ "pthread_clockjoin", PREFIX, WP_WAIT_JOIN, false },
	{ "pthread_tryjoin", PREFIX, WP_WAIT_JOIN, false },
	{ "thrd_join", EXACT, WP_WAIT_JOIN, false },
	{ "pthread_barrier_wait", PREFIX, WP_WAIT_BARRIER, false },
	/* C++ libraries; what they call has been seen before, unless it was
	 * inlined. */
	{ "std::mutex::lock", PREFIX, WP_WAIT_LOCK, false },
	{ "std::timed_mutex::", PREFIX, WP_WAIT_LOCK, false },
	{ "std::recursive_mutex::lock", PREFIX, WP_WAIT_LOCK, false },
	{ "std::recursive_timed_mutex::", PREFIX, WP_WAIT_LOCK, false },
	{ "std::shared_mutex::", PREFIX, WP_WAIT_LOCK, false },
	{ "std::shared_timed_mutex::", PREFIX, WP_WAIT_LOCK, false },
	{ "std::unique_lock<", PREFIX, WP_WAIT_LOCK, false },
	{ "std::lock_guard<", PREFIX, WP_WAIT_LOCK, false },
	{ "std::scoped_lock<", PREFIX, WP_WAIT_LOCK, false },
	{ "std::shared_lock<", PREFIX, WP_WAIT_LOCK, false },
	{ "std::condition_variable", PREFIX, WP_WAIT_CONDVAR, false },
	{ "std::_V2::condition_variable", PREFIX, WP_WAIT_CONDVAR, false },
	{ "std::__condvar::", PREFIX, WP_WAIT_CONDVAR, false },
	{ "std::counting_semaphore<", PREFIX, WP_WAIT_SEMAPHORE, false },
	{ "std::__atomic_semaphore", PREFIX, WP_WAIT_SEMAPHORE, false },
	{ "std::thread::join", PREFIX, WP_WAIT_JOIN, false },
	{ "std::jthread::join", PREFIX, WP_WAIT_JOIN, false },
	{ "std::barrier<", PREFIX, WP_WAIT_BARRIER, false },
	{ "std::latch::", PREFIX, WP_WAIT_BARRIER, false },
	{ "std::__1::mutex::lock", PREFIX, WP_WAIT_LOCK, false },
	{ "std::__1::condition_variable", PREFIX, WP_WAIT_CONDVAR, false },
	{ "std::__1::thread::join", PREFIX, WP_WAIT_JOIN, false },
	/* Rust. */
	{ "std::sys::sync::mutex::", PREFIX, WP_WAIT_LOCK, false },
	{ "std::sys::sync::rwlock::", PREFIX, WP_WAIT_LOCK, false },
	{ "std::sys::sync::once::", PREFIX, WP_WAIT_LOCK, false },
	{ "std::sys::sync::condvar::", PREFIX, WP_WAIT_CONDVAR, false },
	{ "std::sys::unix::locks::futex_mutex", PREFIX, WP_WAIT_LOCK, false },
	{ "std::sys::unix::locks::futex_rwlock", PREFIX, WP_WAIT_LOCK, false },
	{ "std::sys::unix::locks::futex_condvar", PREFIX, WP_WAIT_CONDVAR,
	  false },
	{ "std::sync::mutex::Mutex<", PREFIX, WP_WAIT_LOCK, false },
	{ "std::sync::poison::mutex::Mutex<", PREFIX, WP_WAIT_LOCK, false },
	{ "std::sync::poison::rwlock::RwLock<", PREFIX, WP_WAIT_LOCK, false },
	{ "std::sync::poison::condvar::Condvar", PREFIX, WP_WAIT_CONDVAR,
	  false },
	{ "std::sync::condvar::Condvar::", PREFIX, WP_WAIT_CONDVAR, false },
	{ "std::thread::JoinHandle<", PREFIX, WP_WAIT_JOIN, false },
	{ "std::thread::join_handle::", PREFIX, WP_WAIT_JOIN, false },
	{ "parking_lot::raw_mutex::", PREFIX, WP_WAIT_LOCK, false },
	{ "parking_lot::raw_rwlock::", PREFIX, WP_WAIT_LOCK, false },
	{ "parking_lot::condvar::", PREFIX, WP_WAIT_CONDVAR, false },
	/* Python, whose locks are semaphores and whose GIL is a condition
	 * variable below. */
	{ "PyThread_acquire_lock", PREFIX, WP_WAIT_LOCK, true },
	{ "PyMutex_Lock", PREFIX, WP_WAIT_LOCK, true },
	{ "PyParkingLot_Park", PREFIX, WP_WAIT_LOCK, true },
	{ "take_gil", PREFIX, WP_WAIT_LOCK, true },
	/* GLib. */
	{ "g_mutex_lock", PREFIX, WP_WAIT_LOCK, false },
	{ "g_rec_mutex_lock", PREFIX, WP_WAIT_LOCK, false },
	{ "g_rw_lock_", PREFIX, WP_WAIT_LOCK, false },
	{ "g_cond_wait", PREFIX, WP_WAIT_CONDVAR, false },
	{ "g_thread_join", PREFIX, WP_WAIT_JOIN, false },
	/* Go's runtime, which waits for goroutines. */
	{ "runtime.", PREFIX, WP_WAIT_NONE, false },
	{ "runtime/", PREFIX, WP_WAIT_NONE, false },
	{ "internal/", PREFIX, WP_WAIT_NONE, false },
	{ "sync.", PREFIX, WP_WAIT_NONE, false },
	{ "time.Sleep", EXACT, WP_WAIT_NONE, false },
	{ "syscall.", PREFIX, WP_WAIT_NONE, false },
	/* Go's library on the way to a descriptor. */
	{ "net.(", PREFIX, WP_WAIT_NONE, false },
	{ "os.(", PREFIX, WP_WAIT_NONE, false },
	{ "crypto/tls.", PREFIX, WP_WAIT_NONE, false },
	{ "bufio.", PREFIX, WP_WAIT_NONE, false },
	{ "io.", PREFIX, WP_WAIT_NONE, false },
	/* Machinery that does not say which: call wrappers of a static libc,
	 * generic waiting layers. */
	{ "futex_wait", PREFIX, WP_WAIT_NONE, false },
	{ "futex_abstimed_wait", PREFIX, WP_WAIT_NONE, false },
	{ "futex_reltimed_wait", PREFIX, WP_WAIT_NONE, false },
	{ "futex_lock_pi", PREFIX, WP_WAIT_NONE, false },
	{ "do_futex_wait", PREFIX, WP_WAIT_NONE, false },
	{ "timedwait", PREFIX, WP_WAIT_NONE, false },
	{ "wait", EXACT, WP_WAIT_NONE, false },
	{ "syscall", EXACT, WP_WAIT_NONE, false },
	{ "syscall_cancel", PREFIX, WP_WAIT_NONE, false },
	{ "syscall_cp", PREFIX, WP_WAIT_NONE, false },
	{ "libc_", PREFIX, WP_WAIT_NONE, false },
	{ "internal_syscall_cancel", PREFIX, WP_WAIT_NONE, false },
	{ "clock_nanosleep", PREFIX, WP_WAIT_NONE, false },
	{ "nanosleep", EXACT, WP_WAIT_NONE, false },
	{ "usleep", EXACT, WP_WAIT_NONE, false },
	{ "sleep", EXACT, WP_WAIT_NONE, false },
	{ "poll", EXACT, WP_WAIT_NONE, false },
	{ "ppoll", EXACT, WP_WAIT_NONE, false },
	{ "select", EXACT, WP_WAIT_NONE, false },
	{ "pselect", EXACT, WP_WAIT_NONE, false },
	{ "epoll_wait", EXACT, WP_WAIT_NONE, false },
	{ "epoll_pwait", EXACT, WP_WAIT_NONE, false },
	{ "epoll_pwait2", EXACT, WP_WAIT_NONE, false },
	{ "read", EXACT, WP_WAIT_NONE, false },
	{ "write", EXACT, WP_WAIT_NONE, false },
	{ "recv", EXACT, WP_WAIT_NONE, false },
	{ "recvfrom", EXACT, WP_WAIT_NONE, false },
	{ "recvmsg", EXACT, WP_WAIT_NONE, false },
	{ "recvmmsg", EXACT, WP_WAIT_NONE, false },
	{ "send", EXACT, WP_WAIT_NONE, false },
	{ "sendto", EXACT, WP_WAIT_NONE, false },
	{ "sendmsg", EXACT, WP_WAIT_NONE, false },
	{ "sendmmsg", EXACT, WP_WAIT_NONE, false },
	{ "accept", EXACT, WP_WAIT_NONE, false },
	{ "accept4", EXACT, WP_WAIT_NONE, false },
	{ "connect", EXACT, WP_WAIT_NONE, false },
	{ "pause", EXACT, WP_WAIT_NONE, false },
	{ "sigwait", EXACT, WP_WAIT_NONE, false },
	{ "sigwaitinfo", EXACT, WP_WAIT_NONE, false },
	{ "sigsuspend", EXACT, WP_WAIT_NONE, false },
	{ "sigtimedwait", EXACT, WP_WAIT_NONE, false },
	{ "waitpid", EXACT, WP_WAIT_NONE, false },
	{ "wait4", EXACT, WP_WAIT_NONE, false },
	{ "waitid", EXACT, WP_WAIT_NONE, false },
	{ "flock", EXACT, WP_WAIT_NONE, false },
	{ "fcntl", EXACT, WP_WAIT_NONE, false },
	{ "fcntl64", EXACT, WP_WAIT_NONE, false },
	{ "fcntl64_nocancel_adjusted", EXACT, WP_WAIT_NONE, false },
	{ "gthread_", PREFIX, WP_WAIT_NONE, false },
	{ "std::", PREFIX, WP_WAIT_NONE, false },
	{ "gnu_cxx::", PREFIX, WP_WAIT_NONE, false },
	{ "core::", PREFIX, WP_WAIT_NONE, false },
	{ "alloc::", PREFIX, WP_WAIT_NONE, false },
	{ "parking_lot", PREFIX, WP_WAIT_NONE, false },
	{ "PyThread_", PREFIX, WP_WAIT_NONE, false },
	{ "PySemaphore_", PREFIX, WP_WAIT_NONE, false },
};

/* Base names of files that are machinery throughout. */
static const char *const machinery[] = {
	"libc.so",   "libc-",	  "libpthread", "ld-linux", "ld-musl",
	"libc.musl", "libstdc++", "libc++",	"librt",    "[vdso]",
};

/* Part of NAME that is compared, of LEN bytes. */
static const char *normalize(const char *name, size_t *len)
{
	static const char *const tails[] = { ".constprop", ".part", ".isra",
					     ".cold",	   ".llvm", "@" };

	if (*name == '<')
		name++;
	while (*name == '_' && strncmp(name, "_V2", 3))
		name++;
	if (!strncmp(name, "GI_", 3))
		name += 3;
	while (*name == '_')
		name++;
	*len = strlen(name);
	for (size_t i = 0; i < sizeof(tails) / sizeof(*tails); i++) {
		const char *tail = strstr(name, tails[i]);

		if (tail && (size_t)(tail - name) < *len)
			*len = (size_t)(tail - name);
	}
	return name;
}

static const struct row *find_row(const char *function)
{
	size_t len;
	const char *name = normalize(function, &len);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = strlen(rows[i].name);

		if (len >= n && !memcmp(name, rows[i].name, n) &&
		    (rows[i].match == PREFIX || len == n))
			return &rows[i];
	}
	return NULL;
}

static bool in_machinery(const char *module)
{
	for (size_t i = 0; i < sizeof(machinery) / sizeof(*machinery); i++)
		if (!strncmp(module, machinery[i], strlen(machinery[i])))
			return true;
	return false;
}

enum wp_wait wp_state_refine_stack(enum wp_wait wait,
				   const struct wp_named_frame *frames,
				   size_t n)
{
	enum wp_wait found = WP_WAIT_NONE;

	for (size_t i = 0; i < n; i++) {
		const struct row *row = find_row(frames[i].function);

		if (row && row->outer)
			return row->wait;
		if (row && row->wait && !found)
			found = row->wait;
		/* The program's own: it may call its functions what it likes.
		 */
		if (!row && !in_machinery(frames[i].module))
			break;
	}
	return found ? found : wait;
}

/* A function of namespace std whose demangled name begins with its return type,
 * as a template's does. */
static bool is_std_template(const char *name)
{
	while (*name && *name != '(' && *name != '<') {
		if (!strncmp(name, "std::", strlen("std::")))
			return true;
		name += strcspn(name, " (<");
		name += *name == ' ';
	}
	return false;
}

bool wp_state_is_machinery(const struct wp_named_frame *frame)
{
	return find_row(frame->function) || in_machinery(frame->module) ||
	       is_std_template(frame->function);
}

size_t wp_state_wait_site(const struct wp_named_frame *frames, size_t n)
{
	if (!n)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!wp_state_is_machinery(&frames[i]))
			return i;
	return 0;
}
