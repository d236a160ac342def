/* SPDX-License-Identifier: Apache-2.0 */
/* wait_child.h - which child a thread waits for.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_WAIT_CHILD_H
#define WP_WAIT_CHILD_H

#include "wallprof/err.h"
#include "wallprof/profile.h"

struct wp_thread;

/* T was found in wait4(2) or waitid(2): set KEY's object to its child, "child 4711
 * (git repack -d)" or "one of 3 children, 4711 (cc1) ...".  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wait_child_describe(struct wp_thread *t, struct wp_sample_key *key);

/* T was found in the same wait again: at the 1st, 2nd, 4th, 8th ... time, describe it
 * anew in KEY, as a child that had just been forked may have executed its program, which
 * on a busy machine takes longer than a tick.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wait_child_confirm(struct wp_thread *t, struct wp_sample_key *key);

#endif
