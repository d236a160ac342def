/* SPDX-License-Identifier: Apache-2.0 */
/* graph_waits.c - who could end a wait that names nobody: see graph_priv.h. */
#include "graph_priv.h"

#include <linux/futex.h>

#include "wallprof/syscall_nr.h"

bool wp_graph_is_shared(const struct wp_dump *dump,
			const struct wp_dump_thread *t)
{
	/* Which words of the later calls are private is not known. */
	if (t->call.nr == SYS_futex_waitv || t->call.nr == SYS_futex_wait)
		return true;
	return t->call.nr == SYS_futex &&
	       (!(t->call.args[1] & FUTEX_PRIVATE_FLAG) ||
		(t->process < dump->nprocesses &&
		 dump->processes[t->process].shares_memory));
}

bool wp_graph_waits_for_own(const struct wp_dump *dump,
			    const struct wp_dump_thread *t)
{
	if (wp_graph_is_shared(dump, t))
		return false;
	switch (t->wait) {
	case WP_WAIT_LOCK:
		return t->lock.kind == WP_LOCK_PYTHON &&
		       !dump->processes[t->process].catches_more;
	case WP_WAIT_CONDVAR:
	case WP_WAIT_BARRIER:
		return true;
	case WP_WAIT_SEMAPHORE:
	case WP_WAIT_FUTEX:
		/* A signal handler may call sem_post, or wake a futex; any
		 * process that has the key may end a semop(2). */
		return !dump->processes[t->process].catches_signals &&
		       t->call.nr == SYS_futex;
	default:
		return false;
	}
}
