/* SPDX-License-Identifier: Apache-2.0 */
/* unix_peer.h - the other end of a unix socket.
 *
 * Layer: proc.
 */
#ifndef WP_UNIX_PEER_H
#define WP_UNIX_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

/* The inode of the unix socket that socket INO of the process behind PROC_FD
 * (/proc/PID) is connected to (sock_diag(7)).
 *
 * Returns 0; -ENOENT when there is no such socket or it is not connected; -EXDEV when
 * the process is in another network namespace, whose tables cannot be seen; -ENOTSUP
 * when the kernel has none (CONFIG_UNIX_DIAG), or does not answer within a second;
 * -EBADMSG: its answer cannot be parsed.
 */
WP_MUST_CHECK
int wp_unix_peer_read(uint64_t *ret_peer_ino, int proc_fd, uint64_t ino);

/* Parse BUF[0..len), the answer of the kernel about socket INO, into the inode
 * of its peer.  0, -ENOENT, -ENOTSUP, -EBADMSG. */
WP_MUST_CHECK
int wp_unix_peer_parse(uint64_t *ret_peer_ino, const void *buf, size_t len,
		       uint64_t ino);

#endif
