/* SPDX-License-Identifier: Apache-2.0 */
/* own_descriptor.h - paths that stand for a descriptor of wallprof's own.
 *
 * Layer: cmd.
 */
#ifndef WP_OWN_DESCRIPTOR_H
#define WP_OWN_DESCRIPTOR_H

/* The descriptor that wallprof was started with and that PATH stands for:
 * /dev/stdout, /dev/fd/7, /proc/self/fd/7 (proc(5)), the same by number, a symbolic
 * link to one of these.  It need not be open.  -1: PATH is no such path. */
int wp_own_descriptor_find(const char *path);

#endif
