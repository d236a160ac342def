/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: perf.  What a refusal by kernel.perf_event_paranoid is said to be, on kernels
 * that refuse more than this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/capability.h>
#include <string.h>

#include "../../src/perf/perf_priv.h"

enum { TASK_LIMIT = 2, CPU_LIMIT = 0 };
#define BIT(cap) (UINT64_C(1) << (cap))
#define PERFMON BIT(CAP_PERFMON)
#define ADMIN BIT(CAP_SYS_ADMIN)

struct refusal {
	uint64_t caps;
	long paranoid, limit;
	/* What the message has and has not; NULL: paranoid is not why. */
	const char *has, *has_not;
};

static const struct refusal refusals[] = {
	{ 0, -1, TASK_LIMIT, NULL, NULL },
	{ 0, 2, TASK_LIMIT, NULL, NULL },
	{ 0, 1, CPU_LIMIT, "is 1; ", NULL },
	{ 0, 1, CPU_LIMIT, "setcap cap_perfmon+ep", "Debian" },
	{ 0, 2, CPU_LIMIT, "set it to 0 with sysctl", NULL },
	{ PERFMON, 2, CPU_LIMIT, NULL, NULL },
	/* There a capability of the file would not help. */
	{ 0, 3, TASK_LIMIT, "as root (sudo), or set it to 2", "CAP_PERFMON" },
	{ 0, 4, CPU_LIMIT, "set it to 0", "setcap" },
	{ PERFMON, 3, TASK_LIMIT, "CAP_PERFMON is not enough", "setcap" },
	{ PERFMON, 4, TASK_LIMIT, "wants CAP_SYS_ADMIN", "setcap" },
	{ ADMIN, 3, TASK_LIMIT, NULL, NULL },
	{ PERFMON | ADMIN, 4, CPU_LIMIT, NULL, NULL },
};

static void the_message_has_what_helps_there(void **state)
{
	const size_t n = sizeof(refusals) / sizeof(*refusals);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		const struct refusal *r = &refusals[i];
		struct wp_err err = WP_ERR_INIT;

		assert_int_equal(wp_perf_explain_paranoid(r->caps, r->paranoid,
							  r->limit, &err),
				 r->has ? -EPERM : 0);
		assert_int_equal(err.code, r->has ? -EPERM : 0);
		if (r->has)
			assert_non_null(strstr(err.msg, r->has));
		if (r->has_not)
			assert_null(strstr(err.msg, r->has_not));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_message_has_what_helps_there),
	};

	return cmocka_run_group_tests_name("perf_denied", tests, NULL, NULL);
}
