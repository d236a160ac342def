/* SPDX-License-Identifier: Apache-2.0 */
/* kcmp.h - what two threads or processes share (kcmp(2)).
 *
 * Layer: proc.  A question takes some 1 us, and the right to trace both.
 */
#ifndef WP_KCMP_H
#define WP_KCMP_H

#include <stdbool.h>
#include <sys/types.h>

/* Do threads A and B have two tables of descriptors (unshare(2), CLONE_FILES)?  False
 * where the kernel does not tell. */
bool wp_kcmp_files_differ(pid_t a, pid_t b);

/* Do processes A and B have one memory (clone(2), CLONE_VM)?  False where the kernel does
 * not tell. */
bool wp_kcmp_memory_is_one(pid_t a, pid_t b);

#endif
