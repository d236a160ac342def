/* SPDX-License-Identifier: Apache-2.0 */
/* pusher.c - see pusher.h. */
#include "pusher.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exit_status.h"
#include "messages.h"
#include "served.h"
#include "wallprof/clock.h"
#include "wallprof/packet.h"

/* It is started again, but not more often than so. */
#define RESTART_NS (5 * WP_NS_PER_S)

static void become_pusher(const struct wp_pusher *p, int sock, pid_t parent)
{
	sigset_t none;
	int rc;

	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	rc = wp_push_run(p->options->push, p->auth, sock, parent);
	if (rc)
		wp_say("wallprof: --push: %s", strerror(-rc));
	_exit(rc ? WP_EXIT_NOTHING : WP_EXIT_WHOLE);
}

int wp_pusher_start(struct wp_pusher *p, struct wp_err *err)
{
	pid_t parent = getpid();
	int socks[2];

	if (!p->options->push)
		return 0;
	if (!wp_push_is_there())
		return wp_err_set(
			err, -ENOTSUP,
			"--push needs libcurl, which is not here or "
			"was not when this wallprof was built: install "
			"libcurl4, or libcurl4-openssl-dev and build "
			"again");
	p->started_ns = wp_clock_ns();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks))
		return wp_err_set(err, -errno, "socketpair: %s",
				  strerror(errno));
	p->pid = fork();
	if (!p->pid)
		become_pusher(p, socks[1], parent);
	close(socks[1]);
	p->sock = socks[0];
	if (p->pid > 0)
		return 0;
	p->pid = 0;
	wp_pusher_end(p);
	return wp_err_set(err, -EAGAIN, "fork: %s", strerror(errno));
}

/* The time since ONE was asked last, which joins what it was asked for then. */
static void ask(struct wp_pusher *p, struct wp_served_one *one, uint64_t now_ns)
{
	struct wp_serve_ask what = { .id = WP_PUSHER_ID | p->nasked++,
				     .endpoint = WP_SERVE_PUSH };
	const uint64_t most_ns = p->options->keep_ns +
				 p->options->push_interval_ns;

	if (one->sock < 0 || !one->status.is_there || one->push_id ||
	    one->push_is_over)
		return;
	if (!one->push_to_ns)
		one->push_to_ns = wp_clock_before(now_ns,
						  p->options->push_interval_ns);
	what.from_ns = one->push_to_ns;
	/* What has failed for longer is not there any more. */
	if (now_ns - what.from_ns > most_ns)
		what.from_ns = now_ns - most_ns;
	what.to_ns = now_ns;
	if (wp_packet_send(one->sock, &what, sizeof(what), NULL, 0))
		return;
	one->push_id = what.id;
	one->push_from_ns = what.from_ns;
	one->push_to_ns = what.to_ns;
	one->push_is_over = one->status.has_ended || p->is_ending;
}

void wp_pusher_step(struct wp_pusher *p, struct wp_served *served)
{
	uint64_t now = wp_clock_ns();

	if (!p->options->push)
		return;
	if (!p->pid && now - p->started_ns > RESTART_NS)
		(void)!wp_pusher_start(p, NULL);
	if (!p->due_ns)
		p->due_ns = now + p->options->push_interval_ns;
	if (now < p->due_ns)
		return;
	while (p->due_ns <= now)
		p->due_ns += p->options->push_interval_ns;
	for (size_t i = 0; i < served->n; i++)
		ask(p, &served->v[i], now);
}

static int64_t utc_s(uint64_t ns)
{
	return (wp_clock_utc_ns() - (int64_t)(wp_clock_ns() - ns)) /
	       (int64_t)WP_NS_PER_S;
}

void wp_pusher_pass(struct wp_pusher *p, struct wp_served_one *one,
		    const struct wp_serve_answer *a, int file)
{
	struct wp_push_item item = { .pid = one->pid };

	if (a->id != one->push_id)
		return;
	one->push_id = 0;
	/* Nothing was recorded then. */
	if (a->status == 404)
		return;
	memcpy(item.name, one->status.name, sizeof(item.name));
	item.from_s = utc_s(one->push_from_ns);
	item.until_s = utc_s(one->push_to_ns);
	if (a->status == 200 && file >= 0 && p->sock >= 0 &&
	    !wp_packet_send(p->sock, &item, sizeof(item), &file, 1)) {
		p->npassed++;
		return;
	}
	p->failed++;
	/* Its time comes with that of the next. */
	one->push_to_ns = one->push_from_ns;
	one->push_is_over = false;
}

bool wp_pusher_lacks(const struct wp_pusher *p, const struct wp_served_one *one)
{
	return p->options->push && one->status.is_there &&
	       (one->push_id || !one->push_is_over);
}

bool wp_pusher_finish(struct wp_pusher *p, struct wp_served *served)
{
	bool any = false;

	p->is_ending = true;
	for (size_t i = 0; p->pid && i < served->n; i++) {
		struct wp_served_one *one = &served->v[i];

		ask(p, one, wp_clock_ns());
		any |= one->sock >= 0 && wp_pusher_lacks(p, one);
	}
	return any;
}

void wp_pusher_lose(struct wp_pusher *p, const struct wp_served_one *one)
{
	if (!wp_pusher_lacks(p, one))
		return;
	p->failed++;
	p->nlost += p->is_ending;
}

static void say_why(struct wp_pusher *p)
{
	char *why = p->stats.why;

	why[sizeof(p->stats.why) - 1] = '\0';
	/* It comes from who talks to the network. */
	for (char *c = why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	if (*why && !p->is_said[p->stats.is_kept])
		wp_say("wallprof: the collector does not take profiles: %s; %s",
		       why,
		       p->stats.is_kept ?
			       "they are kept, up to 64 MiB, and sent later" :
			       "they are dropped, wallprof_push_rejected_total "
			       "counts them");
	if (*why) {
		p->is_said[p->stats.is_kept] = true;
		return;
	}
	if (p->is_said[false] || p->is_said[true])
		wp_say("wallprof: the collector takes profiles again");
	p->is_said[false] = p->is_said[true] = false;
}

void wp_pusher_take(struct wp_pusher *p)
{
	struct wp_push_stats stats = { 0 };
	ssize_t n;
	int file;

	while ((n = wp_packet_take(p->sock, &stats, sizeof(stats), false, &file,
				   1)) > 0) {
		if (file >= 0)
			close(file);
		if (n == sizeof(stats))
			p->stats = stats;
	}
	if (n != -EAGAIN)
		wp_pusher_end(p);
	say_why(p);
}

/* Those that the process has, as far as it has told. */
static uint64_t count_left(const struct wp_pusher *p)
{
	const struct wp_push_stats *s = &p->stats;
	uint64_t done = s->sent + s->rejected + s->dropped;

	return done < p->npassed ? p->npassed - done : 0;
}

void wp_pusher_reap(struct wp_pusher *p, int status)
{
	struct wp_push_stats *b = &p->before;

	if (p->sock >= 0)
		wp_pusher_take(p);
	if (WIFSIGNALED(status))
		wp_say("wallprof: what pushes was ended by signal %d: started "
		       "again",
		       WTERMSIG(status));
	p->pid = 0;
	wp_pusher_end(p);
	b->sent += p->stats.sent;
	b->sent_bytes += p->stats.sent_bytes;
	b->retries += p->stats.retries;
	b->rejected += p->stats.rejected;
	b->dropped += p->stats.dropped + count_left(p);
	p->nleft += count_left(p);
	p->npassed = 0;
	p->stats = (struct wp_push_stats){ 0 };
}

void wp_pusher_leave(struct wp_pusher *p)
{
	wp_pusher_end(p);
	explicit_bzero(p->auth, sizeof(p->auth));
}

void wp_pusher_shut(struct wp_pusher *p)
{
	p->nleft = 0;
	if (p->sock >= 0)
		shutdown(p->sock, SHUT_WR);
}

void wp_pusher_say_unsent(const struct wp_pusher *p)
{
	uint64_t nleft = p->nleft + count_left(p);

	if (p->nlost || nleft)
		wp_say("wallprof: profiles that were not sent: %" PRIu64
		       ", of which the collector did not take %" PRIu64
		       " in time, and recorders did not make %" PRIu64,
		       p->nlost + nleft, nleft, p->nlost);
}

void wp_pusher_end(struct wp_pusher *p)
{
	if (p->sock >= 0)
		close(p->sock);
	p->sock = -1;
}

static void put(FILE *out, const char *name, const char *type, const char *help,
		uint64_t value)
{
	fprintf(out, "# HELP wallprof_push_%s %s\n# TYPE wallprof_push_%s %s\n",
		name, help, name, type);
	fprintf(out, "wallprof_push_%s %" PRIu64 "\n", name, value);
}

void wp_pusher_write_metrics(const struct wp_pusher *p, FILE *out)
{
	const struct wp_push_stats *s = &p->stats, *b = &p->before;

	if (!p->options->push)
		return;
	put(out, "sent_total", "counter", "Profiles that the collector took.",
	    s->sent + b->sent);
	put(out, "sent_bytes_total", "counter", "Their bytes.",
	    s->sent_bytes + b->sent_bytes);
	put(out, "retries_total", "counter",
	    "Times that it did not take one, which is sent again.",
	    s->retries + b->retries);
	put(out, "rejected_total", "counter",
	    "Profiles that it refused for good.", s->rejected + b->rejected);
	put(out, "dropped_total", "counter",
	    "Profiles dropped as the queue was full, the oldest first.",
	    s->dropped + b->dropped);
	put(out, "failed_total", "counter",
	    "Profiles that could not be made or passed on, or not any more.",
	    p->failed);
	put(out, "queue_length", "gauge", "Profiles that wait.", s->queued);
	put(out, "queue_bytes", "gauge", "Their bytes.", s->queued_bytes);
}
