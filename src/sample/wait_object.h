/* SPDX-License-Identifier: Apache-2.0 */
/* wait_object.h - say what a thread waits on: its descriptor or futex.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_WAIT_OBJECT_H
#define WP_WAIT_OBJECT_H

#include <sys/types.h>

#include "wallprof/profile.h"
#include "wallprof/state.h"

struct wp_target;

/* Set the object and the system call of KEY, and refine its wait, for thread
 * TID of TARGET with FACTS.  Past 20,000 different objects, of which each call that has no
 * name is one, a new one becomes "" and is counted.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_wait_object_describe(struct wp_target *target, pid_t tid,
			    struct wp_sample_key *key,
			    const struct wp_thread_facts *facts);

/* The same, but for the object. */
void wp_wait_object_refine(struct wp_target *target, pid_t tid,
			   struct wp_sample_key *key,
			   const struct wp_thread_facts *facts);

/* The string id of an object's description; 0: it is new and there are too many
 * already; UINT32_MAX without memory. */
uint32_t wp_wait_object_intern(struct wp_target *target, const char *text);

#endif
