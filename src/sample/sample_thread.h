/* SPDX-License-Identifier: Apache-2.0 */
/* sample_thread.h - one sample of one thread: has it run, is it waiting?
 *
 * Layer: sample.  Private to src/sample/.
 */
#ifndef WP_SAMPLE_THREAD_H
#define WP_SAMPLE_THREAD_H

#include "thread.h"

/* Sample watched T.  RUNNING_FIRST: a thread that waits and has run is put off
 * (--stop=all). */
enum wp_sample_result wp_sample_thread(struct wp_thread *t, bool running_first);

#endif
