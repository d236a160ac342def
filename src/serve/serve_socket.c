/* SPDX-License-Identifier: Apache-2.0 */
/* serve_socket.c - sockets that listen, and packets with descriptors. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "wallprof/serve.h"

enum { BACKLOG = 64 };

/* Is it a socket that nobody listens on any more? */
static bool is_left_behind(const struct sockaddr_un *address)
{
	struct stat st;
	int fd, rc;

	if (lstat(address->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	rc = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ?
		     -errno :
		     0;
	close(fd);
	return rc == -ECONNREFUSED;
}

static const char *remedy(int rc)
{
	return rc == -EADDRINUSE ? ": a program listens there; give another "
				   "place by --listen" :
				   "";
}

static int listen_unix(struct wp_serve_socket *ret, const char *path,
		       struct wp_err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct sockaddr *any = (const struct sockaddr *)&address;
	struct stat st;
	mode_t mask;
	int rc;

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return wp_err_set(err, -EINVAL,
				  "--listen unix:PATH wants a path of at most "
				  "%zu bytes",
				  sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path) + 1);
	ret->is_unix = true;
	ret->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			 0);
	if (ret->fd < 0)
		return wp_err_set(err, -errno, "socket: %s", strerror(errno));
	mask = umask(0177);
	rc = bind(ret->fd, any, sizeof(address)) ? -errno : 0;
	if (rc == -EADDRINUSE && is_left_behind(&address)) {
		unlink(path);
		rc = bind(ret->fd, any, sizeof(address)) ? -errno : 0;
	}
	umask(mask);
	if (!rc && listen(ret->fd, BACKLOG))
		rc = -errno;
	if (rc == -EADDRINUSE && !lstat(path, &st) && !S_ISSOCK(st.st_mode))
		return wp_err_set(err, rc,
				  "cannot listen on %s: it is there, and is no "
				  "socket",
				  path);
	return rc ? wp_err_set(err, rc, "cannot listen on %s: %s%s", path,
			       strerror(-rc), remedy(rc)) :
		    0;
}

static bool is_own(const struct sockaddr *address)
{
	static const unsigned char mapped[] = { 0, 0, 0, 0,    0,    0,	 0,
						0, 0, 0, 0xff, 0xff, 127 };
	const struct sockaddr_in6 *in6 = (const void *)address;

	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)
				     ->sin_addr.s_addr) >>
			       24 ==
		       127;
	return address->sa_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
		!memcmp(&in6->sin6_addr, mapped, sizeof(mapped)));
}

static int listen_at(struct wp_serve_socket *ret, const struct addrinfo *at)
{
	static const int one = 1;

	ret->fd = socket(at->ai_family,
			 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (ret->fd < 0)
		return -errno;
	setsockopt(ret->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(ret->fd, at->ai_addr, at->ai_addrlen) ||
	    listen(ret->fd, BACKLOG))
		return -errno;
	return 0;
}

static int listen_tcp(struct wp_serve_socket *ret, const char *text,
		      bool remote, struct wp_err *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(text, ':'), *host = text;
	size_t n = colon ? (size_t)(colon - text) : 0;
	struct addrinfo *list;
	int rc;

	if (n > 1 && text[0] == '[' && text[n - 1] == ']') {
		host++;
		n -= 2;
	}
	if (!n || !colon[1] || n >= sizeof(ret->host))
		return wp_err_set(err, -EINVAL,
				  "--listen wants unix:PATH or HOST:PORT, not "
				  "\"%s\"",
				  text);
	memcpy(ret->host, host, n);
	ret->host[n] = '\0';
	rc = getaddrinfo(ret->host, colon + 1, &hints, &list);
	if (rc)
		return wp_err_set(err, -EINVAL, "--listen %s: %s", text,
				  gai_strerror(rc));
	if (!remote && !is_own(list->ai_addr))
		rc = wp_err_set(err, -EPERM,
				"--listen %s: not an address of this machine "
				"alone (127.0.0.1), which wants --token-file, "
				"too",
				text);
	else if ((rc = listen_at(ret, list)))
		wp_err_set(err, rc, "cannot listen on %s: %s%s", text,
			   strerror(-rc), remedy(rc));
	freeaddrinfo(list);
	return rc;
}

int wp_serve_listen(struct wp_serve_socket *ret, const char *text, bool remote,
		    struct wp_err *err)
{
	int rc;

	*ret = (struct wp_serve_socket){ .fd = -1 };
	rc = !strncmp(text, "unix:", 5) ? listen_unix(ret, text + 5, err) :
					  listen_tcp(ret, text, remote, err);
	if (rc && ret->fd >= 0)
		close(ret->fd);
	return rc;
}

bool wp_serve_may_connect(const struct wp_serve_socket *socket, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return !socket->is_unix ||
	       (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) &&
		(!peer.uid || peer.uid == geteuid()));
}

void wp_serve_turn_away(int fd, const char *status)
{
	static const char end[] = "\r\nConnection: close\r\n"
				  "Content-Length: 0\r\n\r\n";

	/* Whoever does not take it is gone or too slow. */
	(void)!send(fd, status, strlen(status),
		    MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE);
	(void)!send(fd, end, sizeof(end) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}
