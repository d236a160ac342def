/* SPDX-License-Identifier: Apache-2.0 */
/* messages.c - see messages.h. */
#include "messages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "wallprof/utf8.h"

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

void wp_say_no_servers(const char *why)
{
	if (*why)
		wp_say("wallprof: names that servers of debug files have may "
		       "be missing: %s",
		       why);
}

void wp_say_unnamed(uint64_t n, const char *why)
{
	if (n)
		wp_say("wallprof: %" PRIu64 " addresses have no better name "
		       "than module and offset: %s",
		       n, why);
}

void wp_say_files_lost(uint64_t n, uint64_t nunopened)
{
	if (n)
		wp_say("wallprof: no names and no unwind info of %" PRIu64
		       " mapped %s, whose file server does not answer",
		       n, n == 1 ? "file" : "files");
	if (nunopened)
		wp_say("wallprof: no names of %" PRIu64
		       " mapped %s that could not be opened (deleted or "
		       "replaced, which root may open, changed since, or past "
		       "ulimit -n)",
		       nunopened, nunopened == 1 ? "file" : "files");
}

void wp_say_files_lineless(uint64_t n, const char *why)
{
	if (n)
		wp_say("wallprof: lines or inlined functions are missing of "
		       "%" PRIu64 " mapped %s: %s%s",
		       n, n == 1 ? "file" : "files", why,
		       n == 1 ? "" : ", ...");
}

void wp_say_dropped(uint64_t n)
{
	if (n)
		wp_say("wallprof: left out, as the memory of --max-memory was "
		       "full: %" PRIu64 " of the stacks, mappings and files",
		       n);
}

void wp_say_kernel_denied(uint64_t n)
{
	if (n)
		wp_say("wallprof: no stacks of the kernel's (-k): they may be "
		       "read with CAP_SYS_ADMIN only, as root has it");
}

void wp_say_peers_untold(uint64_t n, int rc)
{
	if (n)
		wp_say("wallprof: %" PRIu64 " %s on unix sockets whose other "
		       "end cannot be told: %s",
		       n, n == 1 ? "wait" : "waits",
		       rc == -EXDEV ? "they are in another network namespace" :
				      "this kernel lacks unix_diag (modprobe "
				      "unix_diag)");
}

static void describe_doubt(char *text, size_t size, enum wp_wait_doubt doubt,
			   pid_t pid)
{
	static const char *const whys[] = {
		[WP_DOUBT_CUT] = "there was no time to look at all processes",
		[WP_DOUBT_DENIED] = "/proc hides processes (hidepid)",
		[WP_DOUBT_RING] = "the kernel may read or write for a process "
				  "that has an io_uring",
		[WP_DOUBT_OUTSIDE] = "processes outside of wallprof's PID "
				     "namespace are not seen",
		[WP_DOUBT_NAMESPACE] = "a process of another PID namespace may "
				       "have the lock",
	};

	if (doubt == WP_DOUBT_SENT)
		snprintf(text, size,
			 "descriptors are on their way to process %d "
			 "(SCM_RIGHTS)",
			 (int)pid);
	else if (doubt == WP_DOUBT_DENIED && pid)
		snprintf(text, size,
			 "the descriptors of process %d may not be read, which "
			 "root may",
			 (int)pid);
	else
		snprintf(text, size, "%s", whys[doubt]);
}

void wp_say_waits_doubtful(uint64_t n, enum wp_wait_doubt doubt, pid_t pid)
{
	char why[128];

	if (!n)
		return;
	describe_doubt(why, sizeof(why), doubt, pid);
	wp_say("wallprof: %" PRIu64 " %s may be ended by others than those "
	       "told, and %s part of no deadlock: %s",
	       n, n == 1 ? "wait" : "waits", n == 1 ? "is" : "are", why);
}

void wp_say_edges_cut(bool is_cut)
{
	if (is_cut)
		wp_say("wallprof: threads wait for more processes than the dump "
		       "has room for: of some it does not tell all, and takes "
		       "none of those threads for stuck");
}
