/* SPDX-License-Identifier: Apache-2.0 */
/* instant.h - which threads of a tick can be said to be of one moment.
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_INSTANT_H
#define WP_INSTANT_H

struct wp_target;

/* Copy the lock words that TARGET's threads wait for anew, then set AT_INSTANT of
 * those that have not moved since their sample: threads that wait, and threads
 * that have been interrupted, which run no code of their own. */
void wp_instant_take(struct wp_target *target);

#endif
