/* SPDX-License-Identifier: Apache-2.0 */
/* unix_peer.c - see wallprof/unix_peer.h. */
#include "wallprof/unix_peer.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "wallprof/procfs.h"

/* The kernel answers at once; this bounds the wait for a lost answer. */
static const struct timeval answer_timeout = { .tv_sec = 1 };

/* Attributes of one struct unix_diag_msg (sock_diag(7)). */
static int parse_attributes(uint64_t *ret, const char *p, size_t len)
{
	while (len >= sizeof(struct rtattr)) {
		struct rtattr attr;
		size_t step;
		uint32_t peer;

		memcpy(&attr, p, sizeof(attr));
		if (attr.rta_len < sizeof(attr) || attr.rta_len > len)
			return -EBADMSG;
		if (attr.rta_type == UNIX_DIAG_PEER) {
			if (attr.rta_len < sizeof(attr) + sizeof(peer))
				return -EBADMSG;
			memcpy(&peer, p + sizeof(attr), sizeof(peer));
			if (!peer)
				return -ENOENT;
			*ret = peer;
			return 0;
		}
		step = RTA_ALIGN((size_t)attr.rta_len);
		if (step >= len)
			break;
		p += step;
		len -= step;
	}
	return -ENOENT;
}

int wp_unix_peer_parse(uint64_t *ret_peer_ino, const void *buf, size_t len,
		       uint64_t ino)
{
	const size_t head = NLMSG_ALIGN(sizeof(struct nlmsghdr));
	const char *p = buf;
	struct unix_diag_msg msg;
	struct nlmsghdr h;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, p, sizeof(h));
	if (h.nlmsg_len < head || h.nlmsg_len > len)
		return -EBADMSG;
	if (h.nlmsg_type == NLMSG_ERROR) {
		int error;

		if (h.nlmsg_len < head + sizeof(error))
			return -EBADMSG;
		memcpy(&error, p + head, sizeof(error));
		return error == -ENOENT ? -ENOENT : -ENOTSUP;
	}
	if (h.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    h.nlmsg_len < head + sizeof(msg))
		return -EBADMSG;
	memcpy(&msg, p + head, sizeof(msg));
	if (msg.udiag_family != AF_UNIX || msg.udiag_ino != ino)
		return -EBADMSG;
	return parse_attributes(ret_peer_ino,
				p + head + NLMSG_ALIGN(sizeof(msg)),
				h.nlmsg_len - head - NLMSG_ALIGN(sizeof(msg)));
}

static ssize_t query_kernel(int sock, uint64_t ino, void *buf, size_t size)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	const struct {
		struct nlmsghdr h;
		struct unix_diag_req req;
	} question = {
		.h = {
			.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.req = {
			.sdiag_family = AF_UNIX,
			.udiag_states = UINT32_MAX,
			.udiag_ino = (uint32_t)ino,
			.udiag_show = UDIAG_SHOW_PEER,
			/* Any socket of that inode. */
			.udiag_cookie = { UINT32_MAX, UINT32_MAX },
		},
	};
	ssize_t n;

	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &answer_timeout,
		       sizeof(answer_timeout)) ||
	    sendto(sock, &question, sizeof(question), 0,
		   (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -ENOTSUP;
	do
		n = recv(sock, buf, size, 0);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -ENOTSUP : n;
}

static int ask(uint64_t *ret_peer_ino, uint64_t ino)
{
	char buf[4096];
	ssize_t n;
	int sock;

	sock = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (sock < 0)
		return -ENOTSUP;
	n = query_kernel(sock, ino, buf, sizeof(buf));
	close(sock);
	if (n < 0)
		return (int)n;
	return wp_unix_peer_parse(ret_peer_ino, buf, (size_t)n, ino);
}

/* Does the kernel tell the other end of a socket that has one?  Without the module it
 * answers as of a socket that there is not (net/core/sock_diag.c). */
static bool kernel_tells(void)
{
	struct stat st;
	uint64_t peer;
	bool tells;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return true;
	tells = fstat(pair[0], &st) || ask(&peer, st.st_ino) != -ENOENT;
	close(pair[0]);
	close(pair[1]);
	return tells;
}

int wp_unix_peer_read(uint64_t *ret_peer_ino, int proc_fd, uint64_t ino)
{
	int rc;

	/* Inodes of sockets have 32 bits here (struct unix_diag_req). */
	if (!ino || ino > UINT32_MAX)
		return -ENOENT;
	if (!wp_proc_shares_namespace(proc_fd, "net"))
		return -EXDEV;
	rc = ask(ret_peer_ino, ino);
	return rc != -ENOENT || kernel_tells() ? rc : -ENOTSUP;
}
