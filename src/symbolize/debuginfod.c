/* SPDX-License-Identifier: Apache-2.0 */
/* debuginfod.c - see debuginfod.h. */
#include "debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/elf_image.h"
#include "wallprof/packet.h"

enum { SLICE_MS = 100 };
/* Bytes of one file, where the user has set no limit: more is mapped by nobody
 * here. */
#define FILE_MAX "1073741824"

/* What the child answers, with a descriptor if FOUND. */
struct answer {
	bool is_loaded;
	bool found;
};

/* Those functions of libdebuginfod that are needed (elfutils/debuginfod.h). */
struct library {
	void *(*begin)(void);
	int (*find)(void *client, const unsigned char *id, int len,
		    char **ret_path);
};

static bool load(struct library *ret)
{
	void *handle = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	void *begin = handle ? dlsym(handle, "debuginfod_begin") : NULL;
	void *find = handle ? dlsym(handle, "debuginfod_find_debuginfo") : NULL;

	memcpy(&ret->begin, &begin, sizeof(begin));
	memcpy(&ret->find, &find, sizeof(find));
	return begin && find;
}

/* The child's program: answer questions until the parent hangs up. */
static __attribute__((noreturn)) void serve(int sock, pid_t parent)
{
	uint8_t id[WP_BUILD_ID_MAX];
	struct library library = { 0 };
	void *client = NULL;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	setenv("DEBUGINFOD_MAXSIZE", FILE_MAX, 0);
	if (load(&library))
		client = library.begin();
	while ((n = recv(sock, id, sizeof(id), 0)) > 0 ||
	       (n < 0 && errno == EINTR)) {
		struct answer answer = { .is_loaded = client };
		int fd = -1;

		if (n < 0)
			continue;
		if (client)
			fd = library.find(client, id, (int)n, NULL);
		answer.found = fd >= 0;
		if (wp_packet_send(sock, &answer, sizeof(answer), &fd, fd >= 0))
			break;
		if (fd >= 0)
			close(fd);
	}
	_exit(0);
}

static int start(struct wp_debuginfod *d)
{
	pid_t parent = getpid();
	int socks[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return -errno;
	d->pid = fork();
	if (d->pid == 0) {
		close(socks[0]);
		serve(socks[1], parent);
	}
	close(socks[1]);
	d->sock = socks[0];
	if (d->pid > 0)
		return 0;
	d->pid = 0;
	close(d->sock);
	return -EAGAIN;
}

/* Wait for the answer; false if it does not come. */
static bool wait_for_answer(struct wp_debuginfod *d)
{
	struct pollfd pfd = { d->sock, POLLIN, 0 };
	uint64_t start_ns = wp_clock_ns(), took_ns;

	for (;;) {
		int n = poll(&pfd, 1, SLICE_MS);

		took_ns = wp_clock_ns() - start_ns;
		if (n > 0)
			break;
		if (*d->interrupts > 1) {
			d->why = "the user did not wait for the servers of "
				 "DEBUGINFOD_URLS";
			return false;
		}
		if (took_ns > d->left_ns) {
			d->why = "the servers of DEBUGINFOD_URLS took too "
				 "long";
			return false;
		}
	}
	d->left_ns -= took_ns < d->left_ns ? took_ns : d->left_ns;
	return true;
}

void wp_debuginfod_begin(struct wp_debuginfod *ret, uint64_t left_ns,
			 const volatile sig_atomic_t *interrupts)
{
	*ret = (struct wp_debuginfod){
		.interrupts = interrupts,
		.left_ns = left_ns,
	};
}

int wp_debuginfod_find(struct wp_debuginfod *d, const uint8_t *id, uint32_t len)
{
	struct answer answer = { 0 };
	int fd = -1;

	if (d->why || !len || len > WP_BUILD_ID_MAX)
		return -ENOENT;
	if (!d->pid && start(d)) {
		d->why = "libdebuginfod got no process";
		return -ENOENT;
	}
	if (send(d->sock, id, len, MSG_NOSIGNAL) != (ssize_t)len)
		d->why = "libdebuginfod has crashed";
	else if (wait_for_answer(d) &&
		 wp_packet_take(d->sock, &answer, sizeof(answer), true, &fd,
				1) != sizeof(answer))
		d->why = "libdebuginfod has crashed";
	else if (!d->why && !answer.is_loaded)
		d->why = "there is no libdebuginfod.so.1 (Debian's package "
			 "libdebuginfod1)";
	if (d->why)
		wp_debuginfod_end(d);
	return fd >= 0 ? fd : -ENOENT;
}

void wp_debuginfod_end(struct wp_debuginfod *d)
{
	if (!d->pid)
		return;
	close(d->sock);
	kill(d->pid, SIGKILL);
	while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
		;
	d->pid = 0;
}
