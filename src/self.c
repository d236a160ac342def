/* self.c - see self.h. */
#include "self.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wallprof/tracer.h"
#include "wallprof/utf8.h"

volatile sig_atomic_t wp_interrupts;

static void on_signal(int sig)
{
	(void)sig;
	wp_interrupts++;
}

void wp_catch_signals(void)
{
	static const int wanted[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction act = { .sa_handler = on_signal };
	struct sigaction old;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		/* nohup(1) wants to be heeded. */
		if (!sigaction(wanted[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(wanted[i], &act, NULL);
	/* A reader that goes away is a failed write, to be told as one. */
	act.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &act, NULL);
	/* So is one past RLIMIT_FSIZE; its signal would end us with the part of
	 * a profile left behind. */
	sigaction(SIGXFSZ, &act, NULL);
}

void wp_raise_limits(void)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) &&
	    limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	/* A sampler that loses its CPU in a stop window holds the target up:
	 * where it may, it goes before others.  Denied is no matter. */
	if (setpriority(PRIO_PROCESS, 0, -10))
		errno = 0;
}

/* One write a line, so that lines of several programs do not mix. */
void wp_say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	/* Messages have names in them, of programs and files. */
	line[n] = '\0';
	wp_utf8_tame(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

static int drop_ptrace(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
	const uint32_t bit = CAP_TO_MASK(CAP_SYS_PTRACE);

	if (syscall(SYS_capget, &header, caps))
		return -errno;
	caps[CAP_TO_INDEX(CAP_SYS_PTRACE)].permitted &= ~bit;
	caps[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective &= ~bit;
	return syscall(SYS_capset, &header, caps) ? -errno : 0;
}

int wp_settle_rights(struct wp_err *err)
{
	int scope, rc;

	/* capabilities(7), "Capabilities and execution of programs by root";
	 * getauxval(3). */
	if (!getauxval(AT_SECURE))
		return 0;
	if (getuid() != geteuid() || getgid() != getegid())
		return wp_err_set(err, -EPERM, "will not run set-user-ID or "
				  "set-group-ID: it would show anybody's "
				  "processes to everybody; see PERMISSIONS in "
				  "wallprof(1)");
	/* Yama's scopes 1 and 2 are why users need it for their own. */
	scope = wp_diagnose_yama_scope();
	rc = scope == 1 || scope == 2 ? 0 : drop_ptrace();
	return rc ? wp_err_set(err, rc, "cannot drop CAP_SYS_PTRACE: %s",
			       strerror(-rc)) : 0;
}
