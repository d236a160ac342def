/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: state.  src/state/wait_site.c, over stacks as real programs have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wallprof/state.h"

enum { DEEPEST = 12 };

struct stack {
	/* "function|module", innermost first. */
	const char *frames[DEEPEST];
	enum wp_wait wait;
	size_t site;
};

#define C "|libc.so.6"
#define CXX "|libstdc++.so.6.0.30"
#define APP "|app"

/* clang-format off */
static const struct stack stacks[] = {
	/* glibc 2.36 with its debug symbols, then without. */
	{ { "futex_wait" C, "__GI___lll_lock_wait" C,
	    "lll_mutex_lock_optimized" C, "___pthread_mutex_lock" C,
	    "take_order" APP, "main" APP }, WP_WAIT_LOCK, 4 },
	{ { "libc.so.6+0x85545" C, "pthread_mutex_lock" C, "take_order" APP },
	  WP_WAIT_LOCK, 2 },
	{ { "__futex_abstimed_wait_common64" C,
	    "__futex_abstimed_wait_common" C,
	    "__GI___futex_abstimed_wait_cancelable64" C,
	    "__pthread_cond_wait_common" C, "___pthread_cond_wait" C,
	    "serve" APP }, WP_WAIT_CONDVAR, 5 },
	{ { "libc.so.6+0x85545" C, "pthread_cond_timedwait" C, "serve" APP },
	  WP_WAIT_CONDVAR, 2 },
	/* Woken from the condition, it waits for its mutex. */
	{ { "futex_wait" C, "__GI___lll_lock_wait" C,
	    "__pthread_mutex_cond_lock" C, "__pthread_cond_wait_common" C,
	    "___pthread_cond_wait" C, "serve" APP }, WP_WAIT_LOCK, 5 },
	{ { "do_futex_wait.constprop.0" C, "__new_sem_wait_slow64" C,
	    "serve" APP }, WP_WAIT_SEMAPHORE, 2 },
	{ { "__pthread_clockjoin_ex" C, "main" APP }, WP_WAIT_JOIN, 1 },
	{ { "futex_wait_simple" C, "___pthread_barrier_wait" C, "phase" APP },
	  WP_WAIT_BARRIER, 2 },
	{ { "futex_wait" C, "__pthread_rwlock_rdlock_full64" C,
	    "___pthread_rwlock_rdlock" C, "look" APP }, WP_WAIT_LOCK, 3 },
	{ { "__lll_lock_wait_private" C, "arena_get2" C, "malloc" C,
	    "grow" APP }, WP_WAIT_LOCK, 3 },
	/* Go: what waits in a call, and what the runtime does by itself. */
	{ { "runtime/internal/syscall.Syscall6" APP, "syscall.RawSyscall6" APP,
	    "syscall.read" APP, "internal/poll.(*FD).Read" APP,
	    "os.(*File).Read" APP, "main.serve" APP }, WP_WAIT_FUTEX, 5 },
	{ { "runtime.gopark" APP, "internal/poll.(*FD).Read" APP,
	    "net.(*conn).Read" APP, "bufio.(*Scanner).Scan" APP,
	    "main.serve" APP }, WP_WAIT_FUTEX, 4 },
	{ { "runtime.futex.abi0" APP, "runtime.notesleep" APP,
	    "runtime.mcall" APP }, WP_WAIT_FUTEX, 0 },
	/* C++: wrappers of the library, and inlined ones of the program. */
	{ { "__lll_lock_wait" C, "pthread_mutex_lock" C,
	    "__gthread_mutex_lock" APP, "std::mutex::lock" APP,
	    "std::lock_guard<std::mutex>::lock_guard" APP,
	    "shop::Door::open" APP }, WP_WAIT_LOCK, 5 },
	{ { "__futex_abstimed_wait_common" C, "pthread_cond_wait" C,
	    "std::condition_variable::wait" CXX,
	    "std::condition_variable::wait<shop::Door::pass()::{lambda()#1}>"
	    APP, "shop::Door::pass" APP }, WP_WAIT_CONDVAR, 4 },
	/* A template's demangled name begins with its return type; a template of
	 * std may be an argument of the program's own. */
	{ { "__futex_abstimed_wait_common" C, "pthread_cond_wait" C,
	    "void std::condition_variable::wait<f>(g)" APP,
	    "Queue<std::string>::pop(int)" APP }, WP_WAIT_CONDVAR, 3 },
	{ { "clock_nanosleep" C, "nanosleep" C,
	    "std::this_thread::sleep_for<long, std::ratio<1l, 1l> >" APP,
	    "idle" APP }, WP_WAIT_FUTEX, 3 },
	/* musl, dynamic and static. */
	{ { "__syscall_cp_c|ld-musl-x86_64.so.1", "__timedwait_cp|libc.so",
	    "pthread_cond_timedwait|libc.so", "serve" APP }, WP_WAIT_CONDVAR,
	  3 },
	{ { "__syscall_cp_c" APP, "__timedwait" APP,
	    "pthread_mutex_timedlock" APP, "serve" APP }, WP_WAIT_LOCK, 3 },
	/* Python: a lock is a semaphore below. */
	{ { "do_futex_wait" C, "sem_clockwait" C,
	    "PyThread_acquire_lock_timed|python3.11",
	    "_PyEval_EvalFrameDefault|python3.11" }, WP_WAIT_LOCK, 3 },
	/* Since 3.13. */
	{ { "do_futex_wait" C, "sem_wait" C, "_PySemaphore_Wait|python3.14",
	    "_PyParkingLot_Park|python3.14", "_PyMutex_LockTimed|python3.14",
	    "_PyEval_EvalFrameDefault|python3.14" }, WP_WAIT_LOCK, 5 },
	{ { "pthread_cond_timedwait" C, "take_gil|python3.11",
	    "PyEval_RestoreThread|python3.11" }, WP_WAIT_LOCK, 2 },
	/* Rust: no libc function in between. */
	{ { "syscall" C,
	    "std::sys::sync::mutex::futex::Mutex::lock_contended" APP,
	    "bank::transfer" APP }, WP_WAIT_LOCK, 2 },
	/* The same of rustc 1.95, whose names are mangled another way. */
	{ { "syscall" C, "std::sys::pal::unix::futex::futex_wait" APP,
	    "<std::sys::sync::mutex::futex::Mutex>::lock_contended" APP,
	    "<std::sys::sync::mutex::futex::Mutex>::lock" APP,
	    "std::sync::poison::mutex::Mutex<T>::lock" APP,
	    "bank::transfer" APP }, WP_WAIT_LOCK, 5 },
	/* A thread's own function, below what calls it. */
	{ { "clock_nanosleep" C, "std::thread::functions::sleep" APP,
	    "bank::nap" APP,
	    "<alloc::boxed::Box<dyn FnOnce>>::call_once" APP },
	  WP_WAIT_FUTEX, 2 },
	{ { "clock_nanosleep" C, "std::thread::functions::sleep" APP,
	    "<alloc::boxed::Box<dyn FnOnce>>::call_once" APP,
	    "<std::sys::thread::unix::Thread>::new::thread_start" APP },
	  WP_WAIT_FUTEX, 0 },
	{ { "syscall" C, "<std::sys::sync::condvar::futex::Condvar>::wait" APP,
	    "<bank::Desk>::serve" APP }, WP_WAIT_CONDVAR, 2 },
	{ { "pthread_join" C, "<std::sys::thread::unix::Thread>::join" APP,
	    "std::thread::join_handle::JoinHandle<T>::join" APP,
	    "bank::main" APP }, WP_WAIT_JOIN, 3 },
	/* Names of the program's own that begin as a library's do. */
	{ { "recvmsg" C, "recv_message" APP, "main" APP }, WP_WAIT_FUTEX, 1 },
	{ { "syscall" C, "futex_queue_pop" APP, "main" APP }, WP_WAIT_FUTEX,
	  1 },
	/* Nothing is known: the program's own futex. */
	{ { "syscall" C, "my_futex_lock" APP, "main" APP }, WP_WAIT_FUTEX, 1 },
	/* A program's function with a library's name under its own frame does
	 * not decide. */
	{ { "syscall" C, "my_futex_lock" APP, "pthread_cond_wait" APP },
	  WP_WAIT_FUTEX, 1 },
	{ { "libc.so.6+0x1" C, "libc.so.6+0x2" C }, WP_WAIT_FUTEX, 0 },
	{ { NULL }, WP_WAIT_FUTEX, 0 },
};
/* clang-format on */

static size_t read_stack(const struct stack *s, struct wp_named_frame *frames,
			 char text[DEEPEST][128])
{
	size_t n = 0;

	for (; n < DEEPEST && s->frames[n]; n++) {
		size_t len = 0;

		while (s->frames[n][len] && s->frames[n][len] != '|')
			len++;
		assert_true(len < 128);
		for (size_t i = 0; i < len; i++)
			text[n][i] = s->frames[n][i];
		text[n][len] = '\0';
		frames[n] = (struct wp_named_frame){ text[n], text[n],
						     s->frames[n] + len + 1 };
	}
	return n;
}

static void stacks_tell_reason_and_site(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++) {
		struct wp_named_frame frames[DEEPEST];
		char text[DEEPEST][128];
		size_t n = read_stack(&stacks[i], frames, text);
		enum wp_wait wait = wp_state_refine_stack(WP_WAIT_FUTEX, frames,
							  n);
		size_t site = wp_state_wait_site(frames, n);

		if (wait != stacks[i].wait || site != stacks[i].site)
			fail_msg("stack %zu (%s): %s, site %zu", i,
				 n ? text[0] : "", wp_wait_name(wait), site);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_tell_reason_and_site),
	};

	return cmocka_run_group_tests_name("wait_site", tests, NULL, NULL);
}
