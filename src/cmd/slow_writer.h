/* SPDX-License-Identifier: Apache-2.0 */
/* slow_writer.h - writes to standard error without waiting for who reads it.
 *
 * Layer: cmd.
 */
#ifndef WP_SLOW_WRITER_H
#define WP_SLOW_WRITER_H

#include <sys/types.h>

/* Start a process that writes TEXT and then the file FD from its start (-1: none)
 * to standard error.  Its exit status is 0 when it has; it gives up when nobody
 * has read for a second.  The caller reaps it.  Returns its pid, or -1. */
pid_t wp_slow_writer_start(const char *text, int fd);

#endif
