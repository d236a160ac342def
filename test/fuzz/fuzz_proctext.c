/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_proctext.c - the small texts of /proc: stat, status, schedstat, syscall,
 * sched, children, fdinfo, timers.  Every parser gets every text.
 *
 * Layer: proc.
 */
#include "fuzz.h"
#include "wallprof/children.h"
#include "wallprof/fd_holders.h"
#include "wallprof/procfs.h"
#include "wallprof/sched.h"

/* A result is touched on success only. */
#define CHECK_UNTOUCHED(rc, val, before)                                       \
	FUZZ_CHECK(!(rc) || !memcmp(&(val), &(before), sizeof(val)))

static void parse_stat(const char *text, size_t len)
{
	struct wp_proc_stat stat, before;
	int rc;

	memset(&stat, 0x5a, sizeof(stat));
	memcpy(&before, &stat, sizeof(stat));
	rc = wp_proc_stat_parse(&stat, text, len);
	CHECK_UNTOUCHED(rc, stat, before);
	FUZZ_CHECK(rc || memchr(text, ')', len));
}

static void parse_counters(const char *text, size_t len)
{
	struct wp_schedstat stat, stat_before;
	uint64_t ns = 42, before = ns;
	int rc;

	memset(&stat, 0x5a, sizeof(stat));
	memcpy(&stat_before, &stat, sizeof(stat));
	rc = wp_schedstat_parse(&stat, text, len);
	CHECK_UNTOUCHED(rc, stat, stat_before);
	rc = wp_proc_sched_parse(&ns, text, len);
	CHECK_UNTOUCHED(rc, ns, before);
	FUZZ_CHECK(rc || ns);
}

static void parse_syscall(const char *text, size_t len)
{
	struct wp_proc_syscall call, before;
	int rc;

	memset(&call, 0x5a, sizeof(call));
	memcpy(&before, &call, sizeof(call));
	rc = wp_proc_syscall_parse(&call, text, len);
	CHECK_UNTOUCHED(rc, call, before);
}

static void parse_status(const char *text, size_t len)
{
	static const struct {
		const char *name;
		int base;
	} fields[] = { { "TracerPid", 10 },
		       { "Seccomp", 10 },
		       { "Tgid", 10 },
		       { "SigCgt", 16 } };

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		uint64_t val = 42, before = val;
		int rc = wp_proc_status_parse(&val, text, len, fields[i].name,
					      fields[i].base);

		CHECK_UNTOUCHED(rc, val, before);
	}
}

static void parse_namespaces(const char *text, size_t len)
{
	int32_t pids[WP_PID_LEVELS];
	int n = wp_proc_nspid_parse(pids, text, len);

	FUZZ_CHECK(n < 0 || (n >= 1 && n <= WP_PID_LEVELS));
	for (int i = 0; i < n; i++)
		FUZZ_CHECK(pids[i] >= 0);
}

static void parse_timers(const char *text, size_t len)
{
	FUZZ_CHECK(!wp_proc_timers_parse(text, len) ||
		   memmem(text, len, "notify: signal/", 15));
}

static void parse_lists(const char *text, size_t len)
{
	struct wp_tids pids = WP_TIDS_INIT;
	bool reads, writes;

	if (!wp_children_parse(&pids, text, len))
		for (size_t i = 0; i < pids.len; i++)
			FUZZ_CHECK(pids.v[i] > 0);
	FUZZ_CHECK(pids.len <= len);
	wp_tids_clear(&pids);
	(void)!wp_fd_holders_parse_flags(&reads, &writes, text, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;

	parse_stat(text, size);
	parse_counters(text, size);
	parse_syscall(text, size);
	parse_status(text, size);
	parse_namespaces(text, size);
	parse_timers(text, size);
	parse_lists(text, size);
	return 0;
}
