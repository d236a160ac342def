/* SPDX-License-Identifier: Apache-2.0 */
/* go_books.h - the heap, block and mutex profiles that a Go program keeps
 * itself.
 *
 * Layer: sample.
 */
#ifndef WP_GO_BOOKS_H
#define WP_GO_BOOKS_H

#include "wallprof/sampler.h"

/* Read what the Go program of TARGET has noted for KIND (HEAP, BLOCK or MUTEX)
 * into that set of TARGET's profile, scaled to what it stands for, as
 * runtime/pprof does; nothing is stopped, and no thread need have been sampled.
 *
 * Returns 0; -ENOTSUP, -EAGAIN: not a Go program, or of a version that is not
 * known; -ENODATA: it keeps no such books; -ENOMEM, -EPERM, -ESRCH. ERR
 * says why.
 */
WP_MUST_CHECK
int wp_go_books_read(struct wp_target *target, enum wp_profile_kind kind,
		     struct wp_err *err);

/* Does TARGET run a Go program, of a version that is known?  What was found holds for a
 * second, or for 20 times as long as it took, until it executes another program. */
bool wp_go_books_can_read(struct wp_target *target);

#endif
