/* SPDX-License-Identifier: Apache-2.0 */
/* packet.h - messages with descriptors, between processes of our own.
 *
 * Layer: base.
 */
#ifndef WP_PACKET_H
#define WP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "wallprof/err.h"

/* Most descriptors in one message. */
enum { WP_PACKET_FDS_MAX = 2 };

/* Send PACKET[0..n) through SOCK, a socket of AF_UNIX, and with it the descriptors
 * FDS[0..nfds), which stay the caller's; do not wait for room.  0, or the -errno of
 * sendmsg(2); -EMSGSIZE: not all of it was sent. */
WP_MUST_CHECK
int wp_packet_send(int sock, const void *packet, size_t n, const int *fds,
		   size_t nfds);

/* Receive a message of up to SIZE bytes in PACKET, and in RET_FDS[0..nfds) the first
 * descriptors that it carries, which the caller then owns; -1 where it has no more.
 * With WAIT, block until there is a message, on a stream until there are SIZE bytes.
 * The number of bytes; 0: the other end is closed; or -errno, -EAGAIN: there is no
 * message. */
WP_MUST_CHECK
ssize_t wp_packet_take(int sock, void *packet, size_t size, bool wait,
		       int *ret_fds, size_t nfds);

/* Bytes of memory that packets sent by SOCK take that the other side has not read yet
 * (unix(7), SIOCOUTQ); 0: it is not known. */
int wp_packet_unread(int sock);

#endif
