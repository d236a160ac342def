/* SPDX-License-Identifier: Apache-2.0 */
/* serve_writer.c - see serve_writer.h. */
#include "serve_writer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "signals.h"
#include "wallprof/clock.h"
#include "wallprof/packet.h"
#include "wallprof/tracer.h"

/* CPU and wall time of an answer. */
enum {
	WRITER_S = 120,
	/* Past that, until it no longer holds a thread. */
	GRACE_S = 5,
};
#define ANSWER_MAX ((uint64_t)256 << 20)

/* Its time is over, or its recorder has ended: end as soon as no thread is held, and
 * soon in any case. */
static void on_end(int sig)
{
	(void)sig;
	signal(SIGALRM, SIG_DFL);
	alarm(GRACE_S);
	raise(WP_SIGNAL_AT_ONCE);
}

/* A target that it looks at may be hostile. */
static void write_answer(struct wp_recording *r,
			 const struct wp_recording_job *job, int file,
			 int result)
{
	struct rlimit size = { ANSWER_MAX, ANSWER_MAX };
	/* It may record first. */
	const uint32_t seconds = WRITER_S + job->ask.seconds;
	struct rlimit cpu = { seconds, seconds + GRACE_S };
	struct wp_serve_answer a = { 0 };

	prctl(PR_SET_NAME, WP_WRITER_COMM);
	/* What the recorder holds is not held here. */
	wp_tracer_nheld = 0;
	/* What is too large is an error of write(2). */
	wp_signals_end_at_once(NULL, NULL);
	signal(SIGALRM, on_end);
	signal(SIGXCPU, on_end);
	prctl(PR_SET_PDEATHSIG, SIGALRM);
	alarm(seconds);
	setrlimit(RLIMIT_FSIZE, &size);
	setrlimit(RLIMIT_CPU, &cpu);
	wp_priority_lower();
	wp_recording_answer(r, job, file, &a);
	(void)!wp_packet_send(result, &a, sizeof(a), NULL, 0);
	_exit(0);
}

int wp_writer_start(struct wp_writer *w, struct wp_recording *r,
		    const struct wp_recording_job *job)
{
	int socks[2] = { -1, -1 };
	pid_t pid = -1;

	w->result = -1;
	w->file = memfd_create("answer", MFD_CLOEXEC);
	if (w->file >= 0 &&
	    !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks)) {
		fflush(stderr);
		pid = fork();
	}
	if (!pid)
		write_answer(r, job, w->file, socks[1]);
	if (socks[1] >= 0)
		close(socks[1]);
	w->result = socks[0];
	w->pid = pid;
	w->until_ns = wp_clock_ns() +
		      (WRITER_S + job->ask.seconds + 2 * GRACE_S) * WP_NS_PER_S;
	if (pid < 0)
		wp_writer_clear(w);
	return pid < 0 ? -EAGAIN : 0;
}

/* Somebody may have stopped it while it holds a thread. */
static void go_on(const struct wp_writer *w)
{
	siginfo_t info = { 0 };

	if (!waitid(P_PID, (id_t)w->pid, &info, WSTOPPED | WNOHANG) &&
	    info.si_pid)
		kill(w->pid, SIGCONT);
}

static void send_signal(const struct wp_writer *w, int sig)
{
	siginfo_t info;

	/* One that has been reaped has a number that may be another's. */
	if (!waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT))
		kill(w->pid, sig);
}

int wp_writer_take(struct wp_writer *w, struct wp_serve_answer *ret)
{
	int fd;
	ssize_t n = wp_packet_take(w->result, ret, sizeof(*ret), false, &fd, 1);

	if (n == -EAGAIN) {
		go_on(w);
		/* A signal that it handles does not end a wait for memory of a
		 * target. */
		if (wp_clock_ns() > w->until_ns)
			send_signal(w, SIGKILL);
		return -EAGAIN;
	}
	if (fd >= 0)
		close(fd);
	if (n != sizeof(*ret))
		*ret = (struct wp_serve_answer){
			.status = 500,
			.text = "the answer took too long, or failed"
		};
	ret->text[sizeof(ret->text) - 1] = '\0';
	return 0;
}

void wp_writer_stop(const struct wp_writer *w)
{
	send_signal(w, SIGTERM);
}

void wp_writer_clear(struct wp_writer *w)
{
	if (w->file >= 0)
		close(w->file);
	if (w->result >= 0)
		close(w->result);
	w->file = w->result = -1;
}
