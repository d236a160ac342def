/* SPDX-License-Identifier: Apache-2.0 */
/* send_fd.h - a message with a descriptor, between a process and its child.
 *
 * Layer: symbolize.
 */
#ifndef WP_SEND_FD_H
#define WP_SEND_FD_H

#include <stddef.h>

#include "wallprof/err.h"

/* Send DATA[0..len) through SOCK, and with it descriptor FD unless that is -1;
 * does not wait for room.  Returns 0 or the negative errno of sendmsg(2). */
WP_MUST_CHECK
int wp_send_fd(int sock, const void *data, size_t len, int fd);

/* Receive a message of LEN bytes in DATA, and in *RET_FD the descriptor that it
 * carries, which the caller closes, or -1.  Returns 0; -EBADMSG if it is shorter
 * or the other side has hung up. */
WP_MUST_CHECK
int wp_receive_fd(int sock, void *data, size_t len, int *ret_fd);

#endif
