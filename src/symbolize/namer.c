/* SPDX-License-Identifier: Apache-2.0 */
/* namer.c - see namer.h: starts and ends children. */
#include "namer.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "namer_session.h"
#include "wallprof/base_name.h"
#include "wallprof/clock.h"

/* Number of children; each but the first follows one that failed. */
enum { CHILDREN_MAX = 4 };

/* A child that has ended by itself keeps its own status. */
static void reap(struct wp_namer_session *s)
{
	kill(s->pid, SIGKILL);
	while (waitpid(s->pid, &s->status, 0) < 0)
		if (errno != EINTR) {
			s->status = -1;
			return;
		}
}

static int run_child(struct wp_namer_session *s)
{
	pid_t parent = getpid();
	int socks[2], rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks))
		return -errno;
	s->pid = fork();
	if (s->pid == 0)
		s->namer->child(s->namer, s->next, socks[1], parent);
	rc = s->pid < 0 ? -errno : 0;
	close(socks[1]);
	s->sock = socks[0];
	s->how = WP_NAMER_RUNNING;
	s->len = 0;
	s->debug_module = 0;
	s->nquiet = 0;
	if (!rc) {
		wp_namer_session_run(s);
		reap(s);
	}
	close(s->sock);
	return rc;
}

static void describe(const struct wp_namer_session *s, char *buf, size_t size)
{
	switch (s->how) {
	case WP_NAMER_NO_MEMORY:
		snprintf(buf, size, "had no memory left");
		break;
	case WP_NAMER_NO_SANDBOX:
		snprintf(buf, size, "could not give up its rights (%s)",
			 strerror(s->error));
		break;
	case WP_NAMER_SILENT:
		snprintf(buf, size, "gave no answer for %d s",
			 WP_NAMER_QUIET_MAX_S);
		break;
	case WP_NAMER_TOO_LONG:
		snprintf(buf, size, "took over %d s", WP_NAMER_TOTAL_MAX_S);
		break;
	case WP_NAMER_NONSENSE:
		snprintf(buf, size, "made no sense");
		break;
	case WP_NAMER_INTERRUPTED:
		snprintf(buf, size, "was interrupted");
		break;
	default:
		if (s->status != -1 && WIFSIGNALED(s->status))
			snprintf(buf, size, "was killed by signal %d (%s)",
				 WTERMSIG(s->status),
				 strsignal(WTERMSIG(s->status)));
		else
			snprintf(buf, size, "ended too early");
	}
}

/* Add the file's name, which the target chose, made printable. */
static void put_module(const struct wp_namer_session *s, char *buf, size_t size)
{
	const struct wp_namer_module *m = wp_namer_find(
		s->namer, s->namer->addresses[s->next].module);
	int n;

	if (!m || s->how == WP_NAMER_INTERRUPTED)
		return;
	n = snprintf(buf, size, " at %.100s", wp_base_name(m->module.path));
	for (int i = 0; i < n && (size_t)i + 1 < size && buf[i]; i++)
		if (!isascii(buf[i]) || !isprint(buf[i]))
			buf[i] = '?';
}

static void explain(const struct wp_namer_session *s, struct wp_namer_end *end)
{
	char *why = end->why;
	size_t size = sizeof(end->why), n;

	end->interrupted |= s->how == WP_NAMER_INTERRUPTED;
	/* The first reason is kept: later ones may follow from it. */
	if (s->next >= s->namer->naddresses || *why)
		return;
	n = (size_t)snprintf(why, size, "the symboliser ");
	describe(s, why + n, size - n);
	n = strlen(why);
	put_module(s, why + n, size - n);
}

/* Skip the rest of the module at which the child failed. */
static void skip_module(struct wp_namer_session *s)
{
	const struct wp_namer *namer = s->namer;
	uint32_t module;

	if (s->next >= namer->naddresses)
		return;
	module = namer->addresses[s->next].module;
	while (s->next < namer->naddresses &&
	       namer->addresses[s->next].module == module)
		s->next++;
}

/* Whether another child may succeed, from the next module on. */
static bool may_go_on(const struct wp_namer_session *s)
{
	return !s->rc && s->next < s->namer->naddresses &&
	       s->how != WP_NAMER_NO_SANDBOX &&
	       s->how != WP_NAMER_INTERRUPTED && s->how != WP_NAMER_TOO_LONG;
}

int wp_namer_run(const struct wp_namer *namer, struct wp_namer_end *ret_end)
{
	struct wp_namer_session *s = calloc(1, sizeof(*s));
	int rc;

	*ret_end = (struct wp_namer_end){ "", false };
	if (!s)
		return -ENOMEM;
	s->namer = namer;
	s->end_ns = wp_clock_ns() + WP_NAMER_TOTAL_MAX_S * WP_NS_PER_S;
	for (int i = 0; i < CHILDREN_MAX && may_go_on(s); i++) {
		rc = run_child(s);
		if (rc) {
			snprintf(ret_end->why, sizeof(ret_end->why),
				 "no process could be started for the "
				 "symboliser (%s)",
				 strerror(-rc));
			break;
		}
		explain(s, ret_end);
		skip_module(s);
	}
	rc = s->rc;
	free(s->buf);
	free(s);
	return rc;
}
