/* SPDX-License-Identifier: Apache-2.0 */
/* judge.h - can a wait of a dump end? */
#ifndef WP_JUDGE_H
#define WP_JUDGE_H

#include "graph_priv.h"
#include "wallprof/graph.h"

struct wp_judge {
	/* Borrowed; its graph is built. */
	const struct wp_dump *dump;
	struct wp_graph graph;
	/* cycle[N]: the cycle that node N is in or leads to, plus 1; 0: none.
	 * Owned, as are all here. */
	uint32_t *cycle;
	/* Room for as many nodes as there are. */
	uint32_t *queue;
	/* end[T]: the thread at the end of the chain of holders from T. */
	uint32_t *end;
	/* leader[P]: a thread of process P waits for work, and all its threads
	 * that want a lock without a recorded holder want the same one, which
	 * that thread may have. */
	bool *leader;
	/* goes_on[N]: thread N goes on, or another for which it waits does, as far
	 * as is known; a process does if one of its threads does. */
	bool *goes_on;
};

/* 0, or -ENOMEM: then there is nothing to close. */
WP_MUST_CHECK
int wp_judge_open(struct wp_judge *judge, const struct wp_dump *dump);
void wp_judge_close(struct wp_judge *judge);

/* T runs, or ran between the two snapshots.  What peers did before the second snapshot
 * is not known. */
bool wp_judge_is_active(const struct wp_dump *dump,
			const struct wp_dump_thread *t);
/* T waits in flock(2) or fcntl(2), whose locks are not in memory. */
bool wp_judge_is_file_lock(const struct wp_dump_thread *t);
/* The thread that holds the lock that thread I waits for; WP_NO_NODE: none is
 * known, or I's wait ends without it. */
uint32_t wp_judge_find_holder(const struct wp_graph *graph, uint32_t i);
/* The thread at the end of the chain of holders from thread I; in a ring any
 * thread of it.  Each step of a chain is made once, whatever the number of
 * calls. */
uint32_t wp_judge_find_end(struct wp_judge *judge, uint32_t i);
/* Thread I waits for a lock that no thread is going to release. */
bool wp_judge_lock_is_hung(struct wp_judge *judge, uint32_t i);
/* What two looks at the goroutines of process P say of it, and in WHY[0..size) the
 * reason unless that is healthy. */
enum wp_verdict wp_judge_goroutines(struct wp_judge *judge, uint32_t p,
				    char *why, size_t size);
/* Set TEXT[0..size) to which lock most goroutines of process P wait for, if several wait
 * for one; else to "". */
void wp_judge_say_lock(const struct wp_dump *dump, uint32_t p, char *text,
		       size_t size);
/* Set TEXT[0..size) to which group of goroutines of process P has got more, if it may be
 * a queue; else to "". */
void wp_judge_say_queue(const struct wp_dump *dump, uint32_t p, char *text,
			size_t size);
/* Only another thread of the same process can end thread I's wait. */
bool wp_judge_waits_inside(struct wp_judge *judge, uint32_t i);

#endif
