/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  children.h, fd_holders.h and access.h in a /proc that the test
 * made: what kernels without some of it, and what lies, would show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "mounted.h"
#include "wallprof/access.h"
#include "wallprof/children.h"
#include "wallprof/clock.h"
#include "wallprof/fd_holders.h"
#include "wallprof/kallsyms.h"
#include "wallprof/process.h"

#define FOREVER UINT64_MAX
#define SCOPE "yama/ptrace_scope"
enum { NOBODY = 65534, MANY = 100 };

static struct wp_tids pids = WP_TIDS_INIT;
static struct wp_fd_holders holders = WP_FD_HOLDERS_INIT;

static int teardown(void **state)
{
	wp_tids_clear(&pids);
	wp_fd_holders_clear(&holders);
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	return mounted_end(state);
}

static int by_pid(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* PIDS are WANT, which ends with 0, in any order. */
static void assert_pids(const pid_t *want)
{
	size_t n = 0;

	while (want[n])
		n++;
	assert_int_equal(pids.len, n);
	if (n)
		qsort(pids.v, n, sizeof(*pids.v), by_pid);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pids.v[i], want[i]);
}

#define PIDS(...) ((const pid_t[]){ __VA_ARGS__, 0 })

/* Process NAME is a child of PPID. */
static void put_stat(const char *name, int ppid)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "%s/stat", name);
	snprintf(text, sizeof(text),
		 "7 (x) S %d 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 "
		 "0 0 0 0 0 0 0 0 0 0 17 0 0 0 0\n",
		 ppid);
	mounted_put(path, text);
}

static void children_are_those_of_all_threads(void **state)
{
	(void)state;
	mounted_begin("/proc");
	mounted_put("77/task/1/children", "12 ");
	mounted_put("77/task/9/children", "13 2147483647 ");
	/* This one has gone. */
	mounted_put("77/task/5/stat", "");
	/* No threads. */
	mounted_put("77/task/:1/children", "14 ");
	mounted_put("77/task/01/children", "15 ");
	mounted_put("77/task/x/children", "16 ");
	/* It is not asked: the children are known. */
	put_stat("20", 77);
	assert_int_equal(wp_children_list(&pids, 77), 0);
	assert_pids(PIDS(12, 13, INT32_MAX));
	assert_int_equal(wp_children_list(&pids, 78), -ESRCH);
	assert_pids(PIDS(0));
}

/* Without CONFIG_PROC_CHILDREN, and where the text is none. */
static void children_are_known_by_their_parent(void **state)
{
	(void)state;
	mounted_begin("/proc");
	mounted_put("77/task/1/stat", "");
	put_stat("1", 77);
	put_stat("9", 77);
	put_stat("20", 7);
	put_stat("21", 777);
	mounted_put("22/stat", "");
	mounted_put("23/stat", "7 (x) S 77");
	mounted_put("24/status", "");
	put_stat(":3", 77);
	put_stat("03", 77);
	put_stat("x", 77);
	assert_int_equal(wp_children_list(&pids, 77), 0);
	assert_pids(PIDS(1, 9));
	mounted_put("77/task/1/children", "30 31 x");
	assert_int_equal(wp_children_list(&pids, 77), 0);
	assert_pids(PIDS(1, 9));
	mounted_put("77/task/1/children", "");
	assert_int_equal(wp_children_list(&pids, 77), 0);
	assert_pids(PIDS(0));
}

static void descendants_are_listed_once(void **state)
{
	(void)state;
	mounted_begin("/proc");
	mounted_put("77/task/77/children", "80 81 ");
	/* Its number was given to another process, a child of its child. */
	mounted_put("80/task/80/children", "82 81 83 82 ");
	mounted_put("81/task/81/children", "80 84 ");
	mounted_put("82/task/82/children", "77 ");
	mounted_put("84/task/84/children", "");
	/* 83 has ended. */
	assert_int_equal(wp_children_list_all(&pids, 77, MANY), 0);
	assert_pids(PIDS(77, 80, 81, 82, 83, 84));
	for (size_t max = 0; max <= 6; max++) {
		assert_int_equal(wp_children_list_all(&pids, 77, max), 0);
		assert_int_equal(pids.len, max);
	}
	assert_int_equal(wp_children_list_all(&pids, 83, MANY), -ESRCH);
	/* Who has as many as may be listed is the last that is asked. */
	assert_int_equal(wp_children_list_all(&pids, 77, 2), 0);
	assert_pids(PIDS(80, 81));
}

static void many_children_of_one_process_are_listed_soon(void **state)
{
	enum { CHILDREN = 200000, FIRST = 1000000 };
	char *text = malloc(CHILDREN * 8 + 1);
	uint64_t began_ns;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < CHILDREN; i++)
		snprintf(&text[i * 8], 9, "%d ", FIRST + i);
	mounted_begin("/proc");
	mounted_put("77/task/77/children", "80 ");
	mounted_put("80/task/80/children", text);
	free(text);
	began_ns = wp_clock_cpu_ns();
	assert_int_equal(wp_children_list_all(&pids, 77, CHILDREN + 1), 0);
	assert_true(wp_clock_cpu_ns() - began_ns < 2 * WP_NS_PER_S);
	assert_int_equal(pids.len, CHILDREN + 1);
	assert_int_equal(pids.v[CHILDREN], FIRST + CHILDREN - 1);
}

static int find(const struct wp_fd_object *objects, size_t n, size_t max)
{
	return wp_fd_holders_find(&holders, objects, n, max, FOREVER);
}

/* Descriptor NAME of process "12/fd/3" is TARGET's, with FLAGS. */
static void put_fd(const char *pid, const char *fd, const char *target,
		   const char *flags)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/fd/%s", pid, fd);
	mounted_link(path, target);
	snprintf(path, sizeof(path), "%s/fdinfo/%s", pid, fd);
	if (flags)
		mounted_put(path, flags);
}

static bool has(pid_t pid, int fd, uint32_t object)
{
	size_t n = 0;

	for (size_t i = 0; i < holders.len; i++)
		n += holders.v[i].pid == pid && holders.v[i].fd == fd &&
		     holders.v[i].object == object;
	assert_true(n <= 1);
	return n;
}

static void descriptors_have_numbers_as_their_names(void **state)
{
	static const struct wp_fd_object objects[] = {
		{ .link = "pipe:[5]" },
		{ .link = "socket:[6]" },
	};

	(void)state;
	mounted_begin("/proc");
	put_fd("1", "0", "pipe:[5]", "flags:\t0\n");
	put_fd("9", "9", "pipe:[5]", "flags:\t01\n");
	put_fd("9", "8", "socket:[6]", NULL);
	put_fd("9", "7", "pipe:[55]", "flags:\t0\n");
	put_fd("9", "6", "pipe:[", "flags:\t0\n");
	/* They were closed meanwhile. */
	put_fd("12", "3", "pipe:[5]", NULL);
	put_fd("12", "4", "pipe:[5]", "");
	put_fd("12", ":4", "pipe:[5]", "flags:\t0\n");
	put_fd("12", "x", "pipe:[5]", "flags:\t0\n");
	mounted_put("12/fd/5", "a file");
	put_fd(":1", "3", "pipe:[5]", "flags:\t0\n");
	put_fd("03", "3", "pipe:[5]", "flags:\t0\n");
	mounted_put("13/fd", "no directory");
	mounted_put("14", "no process");
	mounted_put("15/x", "a process that has ended");
	assert_int_equal(find(objects, 2, MANY), 0);
	assert_int_equal(holders.len, 3);
	assert_true(has(1, 0, 0) && has(9, 9, 0) && has(9, 8, 1));
	assert_false(holders.cut);
	assert_int_equal(holders.ndenied, 0);
	assert_int_equal(find(objects, 2, 3), 0);
	assert_int_equal(holders.len, 3);
	assert_true(holders.cut);
	assert_int_equal(find(objects, 2, 2), 0);
	assert_int_equal(holders.len, 2);
	assert_true(holders.cut);
	assert_int_equal(wp_fd_holders_find(&holders, objects, 2, MANY, 0), 0);
	assert_int_equal(holders.len, 0);
	assert_true(holders.cut);
	assert_int_equal(find(objects, 0, MANY), 0);
	assert_false(holders.cut);
}

/* Two files of the same path, as in two mount namespaces. */
static void a_path_is_not_enough(void **state)
{
	struct wp_fd_object objects[3] = { { .link = "/proc/file" },
					   { .link = "/proc/file" },
					   { .link = "/proc/file" } };
	struct stat st;

	(void)state;
	mounted_begin("/proc");
	mounted_put("file", "");
	put_fd("12", "3", "/proc/file", "flags:\t02\n");
	put_fd("13", "3", "/proc/gone", "flags:\t02\n");
	assert_int_equal(stat("/proc/file", &st), 0);
	for (int i = 0; i < 3; i++) {
		objects[i].dev = st.st_dev + (i == 1);
		objects[i].ino = st.st_ino + (i == 2);
	}
	assert_int_equal(find(objects, 3, MANY), 0);
	assert_int_equal(holders.len, 1);
	assert_true(has(12, 3, 0));
	objects[0].link = "/proc/gone";
	objects[1].dev = objects[2].dev = 1;
	assert_int_equal(find(objects, 3, MANY), 0);
	assert_int_equal(holders.len, 0);
}

static void a_lock_of_a_descriptor_blocks_who_wants_it(void **state)
{
	const struct wp_file_want want = { WP_FILE_WANT_OFD, true, 0, 9 },
				  other = { WP_FILE_WANT_OFD, true, 10, 19 };
	struct wp_fd_object object = { .link = "memfd:x" };
	static const char text[] =
		"flags:\t02\n"
		"lock:\t1: OFDLCK ADVISORY  WRITE -1 fd:01:131 0 9\n";

	(void)state;
	mounted_begin("/proc");
	put_fd("12", "3", "memfd:x", text);
	assert_int_equal(find(&object, 1, MANY), 0);
	assert_int_equal(holders.len, 1);
	assert_true(holders.v[0].reads && holders.v[0].writes);
	assert_false(holders.v[0].blocks);
	object.want = &want;
	assert_int_equal(find(&object, 1, MANY), 0);
	assert_true(holders.v[0].blocks);
	object.want = &other;
	assert_int_equal(find(&object, 1, MANY), 0);
	assert_false(holders.v[0].blocks);
}

static void directories_that_may_not_be_read_are_counted(void **state)
{
	static const struct wp_fd_object object = { .link = "pipe:[5]" };

	(void)state;
	mounted_begin("/proc");
	/* Else some are hidden. */
	mounted_put("1/comm", "init\n");
	put_fd("12", "3", "pipe:[5]", "flags:\t02\n");
	put_fd("13", "3", "pipe:[5]", "flags:\t02\n");
	put_fd("14", "3", "pipe:[5]", "flags:\t02\n");
	mounted_put("15/fd", "no directory");
	assert_int_equal(chmod("/proc/13/fd", 0700), 0);
	assert_int_equal(chmod("/proc/14/fd", 0700), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	assert_int_equal(find(&object, 1, MANY), 0);
	assert_int_equal(holders.len, 1);
	assert_int_equal(holders.ndenied, 2);
	assert_true(has(12, 3, 0));
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(chmod("/proc", 0700), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	assert_int_equal(find(&object, 1, MANY), -ENOTSUP);
	assert_int_equal(holders.len, 0);
	assert_int_equal(holders.ndenied, 0);
}

static void a_scope_is_one_digit(void **state)
{
	static const struct {
		const char *text;
		int scope;
	} rows[] = {
		{ "0\n", 0 }, { "1", 1 },   { "1\n", 1 },
		{ "2\n", 2 }, { "3\n", 3 }, { "4\n", 0 },
		{ "/\n", 0 }, { "x\n", 0 }, { "\n", 0 },
	};

	(void)state;
	mounted_begin("/proc/sys/kernel");
	assert_int_equal(wp_access_yama_scope(), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		mounted_put(SCOPE, rows[i].text);
		assert_int_equal(wp_access_yama_scope(), rows[i].scope);
	}
}

static bool drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capset, &header, none);
}

static bool filter_nothing(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &allow };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool stay(void)
{
	return true;
}

static bool become_nobody(void)
{
	return !setresuid(NOBODY, NOBODY, NOBODY);
}

/* Why a child, once PREPARED, may not look at process ASKED, has WANT; 0: at one of
 * its own user. */
static void assert_reason_of(pid_t asked, bool (*prepare)(void),
			     const char *want)
{
	char *text = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct wp_err err = WP_ERR_INIT;

		if (!prepare() ||
		    wp_access_denied(asked ? asked : getpid(), &err) !=
			    -EPERM ||
		    err.code != -EPERM)
			_exit(1);
		snprintf(text, 4096, "%s", err.msg);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	if (!strstr(text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, text);
	munmap(text, 4096);
}

static void assert_reason(bool (*prepare)(void), const char *want)
{
	assert_reason_of(getpid(), prepare, want);
}

static void a_scope_is_a_reason(void **state)
{
	(void)state;
	mounted_begin("/proc/sys/kernel");
	mounted_put(SCOPE, "0\n");
	assert_reason(drop_capabilities, "no CAP_SYS_PTRACE");
	assert_reason(filter_nothing, "a seccomp filter on wallprof");
	assert_reason(become_nobody, "or give it CAP_SYS_PTRACE");
	assert_reason(stay, "in a user namespace");
	mounted_put(SCOPE, "1\n");
	/* Root that lacks it is not helped by being root. */
	assert_reason(drop_capabilities, "this root has no CAP_SYS_PTRACE");
	assert_reason_of(0, become_nobody,
			 "is 1: only its parents and root may look");
	assert_reason(stay, "in a user namespace");
	mounted_put(SCOPE, "2\n");
	assert_reason(drop_capabilities, "this root has no CAP_SYS_PTRACE");
	assert_reason_of(0, become_nobody, "is 2: only root may look");
	assert_reason(become_nobody, "belongs to root (uid 0)");
	mounted_put(SCOPE, "3\n");
	assert_reason(drop_capabilities, "is 3: nobody");
	assert_reason(stay, "is 3: nobody");
}

/* Opening process 7777777, which no kernel has, fails with RC and says WANT. */
static void assert_not_opened(int rc, const char *want)
{
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_err err = WP_ERR_INIT;

	assert_int_equal(wp_process_open(&process, 7777777, &err), rc);
	assert_int_equal(err.code, rc);
	if (!strstr(err.msg, want))
		fail_msg("\"%s\" is not in \"%s\"", want, err.msg);
	assert_int_equal(process.proc_fd, -1);
}

static void what_is_missing_is_said(void **state)
{
	(void)state;
	mounted_begin("/proc");
	assert_not_opened(-ENOTSUP, "/proc is not mounted");
	mounted_put("self/x", "");
	assert_not_opened(-ESRCH, "no process with pid 7777777");
	mounted_put("7777777", "");
	assert_not_opened(-ENOTDIR, "open /proc/7777777: Not a directory");
	assert_int_equal(unlink("/proc/7777777"), 0);
	mounted_put("7777777/x", "");
	assert_not_opened(-ESRCH, "no process with pid 7777777");
	mounted_put("7777777/status", "Tgid:\tx\n");
	assert_not_opened(-ESRCH, "no process with pid 7777777");
	mounted_put("7777777/status", "Tgid:\t7777778\n");
	assert_not_opened(-ESRCH, "no process with pid 7777778");
	mounted_put("7777777/status", "Tgid:\t7777777\n");
	assert_not_opened(-ESRCH, "open /proc/7777777/task: No such file");
	mounted_put("7777777/task/7777777/x", "");
	assert_not_opened(-ESRCH, "process 7777777 has gone");
	mounted_put("7777777/stat", "7777777 (x) S 1");
	assert_not_opened(-ESRCH, "process 7777777 has gone");
	put_stat("7777777", 1);
	/* An auxiliary vector of 32-bit words, which begins with x32's AT_SYSINFO_EHDR. */
	mounted_put_bytes("7777777/auxv", "\41\0\0\0\1\1\1\1\1", 9);
	assert_not_opened(-ENOTSUP, "32-bit");
}

static void functions_of_the_kernel_are_told(void **state)
{
	struct wp_kallsyms table = WP_KALLSYMS_INIT;

	(void)state;
	mounted_begin("/proc");
	mounted_put("kallsyms", "1000 T first\n2000 t second\n");
	assert_string_equal(wp_kallsyms_find(&table, 0x1fff), "first");
	assert_string_equal(wp_kallsyms_find(&table, 0x2000), "second");
	wp_kallsyms_clear(&table);
}

#define TEST(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(children_are_those_of_all_threads),
		TEST(children_are_known_by_their_parent),
		TEST(descendants_are_listed_once),
		TEST(many_children_of_one_process_are_listed_soon),
		TEST(descriptors_have_numbers_as_their_names),
		TEST(a_path_is_not_enough),
		TEST(a_lock_of_a_descriptor_blocks_who_wants_it),
		TEST(directories_that_may_not_be_read_are_counted),
		TEST(what_is_missing_is_said),
		TEST(functions_of_the_kernel_are_told),
		TEST(a_scope_is_one_digit),
		TEST(a_scope_is_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
