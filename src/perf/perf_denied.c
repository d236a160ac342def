/* SPDX-License-Identifier: Apache-2.0 */
/* perf_denied.c - why there are no perf events, and what to do about it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "perf_priv.h"
#include "wallprof/access.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"

/* include/uapi/linux/capability.h */
enum { CAP_SYS_ADMIN_BIT = 21, CAP_PERFMON_BIT = 38 };

static uint64_t read_own_status(const char *name, int base)
{
	uint64_t val;

	return wp_proc_status_read(&val, 0, name, base) ? 0 : val;
}

/* False: the kernel was built without perf events. */
static bool read_paranoid(long *ret)
{
	char text[16];
	ssize_t n = wp_io_read_at(AT_FDCWD,
				  "/proc/sys/kernel/perf_event_paranoid", text,
				  sizeof(text));

	if (n <= 0)
		return false;
	*ret = strtol(text, NULL, 10);
	return true;
}

/* wallprof is in the initial user namespace: capabilities in another one do not
 * count for perf events (include/linux/capability.h, perfmon_capable). */
static bool is_first_user_namespace(void)
{
	char text[64], *p = text;
	unsigned long inside, outside, n;

	if (wp_io_read_at(AT_FDCWD, "/proc/self/uid_map", text, sizeof(text)) <=
	    0)
		return true;
	inside = strtoul(p, &p, 10);
	outside = strtoul(p, &p, 10);
	n = strtoul(p, &p, 10);
	return inside == 0 && outside == 0 && n == UINT32_MAX;
}

/* Kernels of distributions have values above mainline's 2. */
enum { MAINLINE_PARANOID_MAX = 2 };

int wp_perf_explain_paranoid(uint64_t caps, long paranoid, long limit,
			     struct wp_err *err)
{
	if (caps >> CAP_SYS_ADMIN_BIT & 1 || paranoid <= limit)
		return 0;
	if (paranoid > MAINLINE_PARANOID_MAX)
		return wp_err_set(
			err, -EPERM,
			"kernel.perf_event_paranoid is %ld%s; run wallprof as "
			"root (sudo), or set it to %ld with sysctl",
			paranoid,
			caps >> CAP_PERFMON_BIT & 1 ?
				", with which this kernel wants CAP_SYS_ADMIN "
				"(Debian's does): CAP_PERFMON is not enough" :
				"",
			limit);
	if (caps >> CAP_PERFMON_BIT & 1)
		return 0;
	return wp_err_set(err, -EPERM,
			  "kernel.perf_event_paranoid is %ld; run "
			  "wallprof as root (sudo), give it "
			  "CAP_PERFMON (setcap cap_perfmon+ep), or set "
			  "it to %ld with sysctl",
			  paranoid, limit);
}

static int explain_denied(const struct wp_perf *perf, struct wp_err *err)
{
	uint64_t caps = is_first_user_namespace() ?
				read_own_status("CapEff", 16) :
				0;
	bool capable = caps >> CAP_PERFMON_BIT & 1 ||
		       caps >> CAP_SYS_ADMIN_BIT & 1;
	long paranoid, limit = perf->options.scope == WP_PERF_CPU ? 0 : 2;
	int rc;

	if (perf->permitted && perf->process)
		return wp_access_denied(perf->process->pid, err);
	if (!read_paranoid(&paranoid))
		return wp_err_set(err, -ENOTSUP,
				  "this kernel has no perf events");
	rc = wp_perf_explain_paranoid(caps, paranoid, limit, err);
	if (rc)
		return rc;
	if (read_own_status("Seccomp", 10) == 2)
		return wp_err_set(
			err, -EPERM,
			"a seccomp filter on wallprof forbids "
			"perf_event_open (a container's default "
			"profile?): %s, or run wallprof outside of "
			"it",
			capable ? "allow that call" :
				  "start the container with --cap-add PERFMON");
	if (!perf->process)
		return wp_err_set(err, -EPERM,
				  "perf events of all processes are not "
				  "permitted");
	return wp_access_denied(perf->process->pid, err);
}

static int explain_files(const struct wp_perf *perf, struct wp_err *err)
{
	struct rlimit limit = { 0 };

	getrlimit(RLIMIT_NOFILE, &limit);
	if (!perf->nthreads)
		return wp_err_set(err, -EMFILE,
				  "too few descriptors for perf events: %zu "
				  "CPUs, and the limit is %llu; raise it "
				  "(ulimit -n)",
				  perf->ncpus,
				  (unsigned long long)limit.rlim_cur);
	return wp_err_set(err, -EMFILE,
			  "too few descriptors for perf events: %zu CPUs for "
			  "each thread, of which there are more than %zu, and "
			  "the limit is %llu; raise it (ulimit -n), or give "
			  "wallprof CAP_PERFMON, with which one per CPU will "
			  "do",
			  perf->ncpus, perf->nthreads,
			  (unsigned long long)limit.rlim_cur);
}

int wp_perf_explain(const struct wp_perf *perf, int rc, struct wp_err *err)
{
	switch (rc) {
	case -EACCES:
	case -EPERM:
		return explain_denied(perf, err);
	case -EMFILE:
	case -ENFILE:
		return explain_files(perf, err);
	case -ENOBUFS:
		return wp_err_set(err, -EPERM,
				  "no more memory may be locked for perf "
				  "events; end other profilers, raise "
				  "kernel.perf_event_mlock_kb with sysctl, or "
				  "run wallprof as root (sudo)");
	case -ESRCH:
		return wp_err_set(err, -ESRCH, "process %d has gone",
				  perf->process->pid);
	case -ENOMEM:
		return wp_err_set(err, -ENOMEM, "out of memory");
	}
	return wp_err_set(err, -ENOTSUP, "no perf events of this kind here: %s",
			  strerror(-rc));
}
