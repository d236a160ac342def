/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/cgroup.h: which group a process is in, by lines as systemd,
 * docker, podman and kubernetes make them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wallprof/cgroup.h"

#define ID "4dad762efc6ec44cb87a02075c8b8050d5e9c8b1a7f6e5d4c3b2a19080706050"

static const char unit[] = "0::/system.slice/nginx.service\n";
static const char docker[] = "0::/system.slice/docker-" ID ".scope\n";
static const char v1[] = "9:name=systemd:/docker/" ID "\n"
			 "4:cpu,cpuacct:/docker/" ID "\n"
			 "3:memory:/jobs/a\n"
			 "0::/\n";
static const char pod[] = "0::/kubepods.slice/kubepods-burstable.slice/"
			  "kubepods-burstable-pod0af1.slice/cri-containerd-" ID
			  ".scope\n";
static const char nested[] = "0::/user.slice/user-1000.slice/user@1000.service/"
			     "app.slice/app-vte.scope\n";

static void assert_told(const char *text, const char *path,
			const char *container, const char *name)
{
	struct wp_cgroup c;

	wp_cgroup_parse(&c, text);
	assert_string_equal(c.path, path);
	assert_string_equal(c.container, container);
	assert_string_equal(c.unit, name);
}

static void units_and_containers_are_told(void **state)
{
	(void)state;
	assert_told(unit, "/system.slice/nginx.service", "", "nginx.service");
	assert_told(docker, "/system.slice/docker-" ID ".scope", "4dad762efc6e",
		    "");
	assert_told(v1, "/docker/" ID, "4dad762efc6e", "");
	assert_told(nested,
		    "/user.slice/user-1000.slice/user@1000.service/app.slice/"
		    "app-vte.scope",
		    "", "app-vte.scope");
	assert_told("0::/\n", "", "", "");
	assert_told("", "", "", "");
	assert_told("0:\nx\n:\n::\n", "", "", "");
	assert_told("4:memory:/a/much/longer/path\n1:x:/b/a.service\n"
		    "0::/c/d\n",
		    "/b/a.service", "", "a.service");
	/* 63 and 65 digits are no id. */
	assert_told("0::/docker/0" ID "\n", "/docker/0" ID, "", "");
	assert_told("0::/x-f.service/y", "/x-f.service/y", "", "x-f.service");
}

static void a_path_stands_for_all_below_it(void **state)
{
	static const char *const in[] = {
		"/system.slice/nginx.service",
		"/system.slice/nginx.service/",
		"/system.slice",
		"/",
		"/sys/fs/cgroup/system.slice/nginx.service",
		"/sys/fs/cgroup/unified/system.slice",
	};
	static const char *const out[] = {
		"/system.slice/nginx",
		"/system",
		"/system.slice/nginx.service/x",
		"/sys/fs/cgroup/memory/system.slice",
		"/sys/fs",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(in) / sizeof(*in); i++)
		assert_true(wp_cgroup_is_in(unit, in[i]));
	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++)
		assert_false(wp_cgroup_is_in(unit, out[i]));
	assert_true(wp_cgroup_is_in(v1, "/sys/fs/cgroup/memory/jobs"));
	assert_true(wp_cgroup_is_in(v1, "/sys/fs/cgroup/systemd/docker"));
	assert_true(wp_cgroup_is_in(v1, "/sys/fs/cgroup/cpu,cpuacct/docker"));
	assert_true(wp_cgroup_is_in(v1, "/jobs/a"));
	/* Its first part is as long as a mount point. */
	assert_true(wp_cgroup_is_in("0::/machine.slice/a.service\n",
				    "/machine.slice/a.service"));
	assert_false(wp_cgroup_is_in(v1, "/sys/fs/cgroup/systemd/jobs"));
	assert_false(wp_cgroup_is_in(v1, "/sys/fs/cgroup/mem/jobs"));
}

static void a_name_is_a_unit_or_a_containers_id(void **state)
{
	(void)state;
	assert_true(wp_cgroup_is_in(unit, "nginx.service"));
	assert_true(wp_cgroup_is_in(unit, "nginx"));
	assert_true(wp_cgroup_is_in(unit, "system.slice"));
	assert_false(wp_cgroup_is_in(unit, "ngin"));
	assert_false(wp_cgroup_is_in(unit, "nginx.servic"));
	assert_true(wp_cgroup_is_in(docker, "4dad762e"));
	assert_true(wp_cgroup_is_in(docker, ID));
	assert_true(wp_cgroup_is_in(v1, "4dad762efc6e"));
	assert_true(wp_cgroup_is_in(pod, "4dad762efc6e"));
	assert_false(wp_cgroup_is_in(pod, "4dad762"));
	assert_false(wp_cgroup_is_in(pod, ID "0"));
	assert_false(wp_cgroup_is_in(pod, "5dad762efc6e"));
	assert_true(wp_cgroup_is_in(v1, "a"));
	/* A path ends with its line. */
	assert_false(wp_cgroup_is_in(v1, "0::"));
}

static void own_groups_are_read(void **state)
{
	char text[WP_CGROUP_MAX];

	(void)state;
	if (access("/proc/self/cgroup", R_OK))
		skip();
	assert_true(wp_cgroup_read(-1, getpid(), text) > 0);
	assert_true(wp_cgroup_is_in(text, "/"));
	assert_true(wp_cgroup_read(-1, 999999999, text) < 0);
}

static char root[] = "/tmp/wallprof_cgroup_XXXXXX";

/* Write TEXT to file NAME below the root, or remove it and its directories. */
static void put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *p = strchr(path + sizeof(root), '/'); p && text;
	     p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
	if (!text)
		unlink(path);
	for (char *p = strrchr(path, '/'); !text && p > path + sizeof(root);
	     p = strrchr(path, '/')) {
		*p = '\0';
		rmdir(path);
	}
	if (!text)
		return;
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void each_controller_has_a_path(void **state)
{
	static const char text[] = "9:name=systemd:/\n"
				   "8:cpuset:/set\n"
				   "7:cpuacct,cpu:/one/two\n"
				   "6:memory:/../m\n"
				   "0::/new:er/part\n";
	char path[16];

	(void)state;
	assert_true(wp_cgroup_path(text, "cpu", path, sizeof(path)));
	assert_string_equal(path, "/one/two");
	assert_true(wp_cgroup_path(text, "cpuacct", path, sizeof(path)));
	assert_string_equal(path, "/one/two");
	assert_true(wp_cgroup_path(text, "", path, sizeof(path)));
	assert_string_equal(path, "/new:er/part");
	assert_false(wp_cgroup_path(text, "", path, strlen("/new:er/part")));
	assert_false(wp_cgroup_path(text, "memory", path, sizeof(path)));
	assert_false(wp_cgroup_path(text, "pids", path, sizeof(path)));
	/* Cut short, anywhere, it has a path or none. */
	for (size_t len = 0; len < sizeof(text); len++) {
		char part[sizeof(text)] = "";

		memcpy(part, text, len);
		if (wp_cgroup_path(part, "", path, sizeof(path)))
			assert_int_equal(*path, '/');
	}
}

static void a_frozen_group_is_told_in_either_version(void **state)
{
	static const struct {
		const char *text, *name, *words;
		bool is_frozen;
	} rows[] = {
		{ "0::/a/b\n", "/a/b/cgroup.events", "populated 1\nfrozen 1\n",
		  true },
		{ "0::/a/b\n", "/a/b/cgroup.events", "populated 1\nfrozen 0\n",
		  false },
		{ "7:freezer:/a\n0::/b\n", "/freezer/a/freezer.state",
		  "FROZEN\n", true },
		{ "7:freezer:/a\n0::/b\n", "/freezer/a/freezer.state",
		  "THAWED\n", false },
		{ "7:freezer:/a\n0::/b\n", "/unified/b/cgroup.events",
		  "populated 1\nfrozen 1\n", true },
		{ "7:memory:/a\n", "/freezer/a/freezer.state", "FROZEN\n",
		  false },
		{ "0::/a\n", "/a/b/cgroup.events", "frozen 1\n", false },
		/* Out of its own namespace. */
		{ "0::/../a\n", "/a/cgroup.events", "frozen 1\n", false },
	};

	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		put(rows[i].name, rows[i].words);
		assert_int_equal(wp_cgroup_is_frozen(rows[i].text, root),
				 rows[i].is_frozen);
		put(rows[i].name, NULL);
		assert_false(wp_cgroup_is_frozen(rows[i].text, root));
	}
	assert_int_equal(rmdir(root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(units_and_containers_are_told),
		cmocka_unit_test(a_path_stands_for_all_below_it),
		cmocka_unit_test(a_name_is_a_unit_or_a_containers_id),
		cmocka_unit_test(own_groups_are_read),
		cmocka_unit_test(each_controller_has_a_path),
		cmocka_unit_test(a_frozen_group_is_told_in_either_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
