/* SPDX-License-Identifier: Apache-2.0 */
/* packet.c - see wallprof/packet.h. */
#include "wallprof/packet.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Room for descriptors in a message (cmsg(3)). */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(WP_PACKET_FDS_MAX * sizeof(int))];
};

int wp_packet_send(int sock, const void *packet, size_t n, const int *fds,
		   size_t nfds)
{
	union control control = { 0 };
	struct iovec iov = { (void *)(uintptr_t)packet, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t sent;

	assert(nfds <= WP_PACKET_FDS_MAX);
	if (nfds) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(*fds));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(*fds));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(*fds));
	}
	sent = sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	return (size_t)sent == n ? 0 : -EMSGSIZE;
}

ssize_t wp_packet_take(int sock, void *packet, size_t size, bool wait,
		       int *ret_fds, size_t nfds)
{
	union control control;
	struct iovec iov = { packet, size };
	/* The kernel drops what has no room, so there is no padding in which one more
	 * would fit. */
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_LEN(nfds *
							 sizeof(*ret_fds)) };
	const struct cmsghdr *c;
	ssize_t n;

	assert(nfds <= WP_PACKET_FDS_MAX);
	for (size_t i = 0; i < nfds; i++)
		ret_fds[i] = -1;
	do
		n = recvmsg(sock, &msg,
			    MSG_CMSG_CLOEXEC |
				    (wait ? MSG_WAITALL : MSG_DONTWAIT));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(ret_fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return n;
}

int wp_packet_unread(int sock)
{
	int n;

	return ioctl(sock, SIOCOUTQ, &n) ? 0 : n;
}
