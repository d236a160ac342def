/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.c - see wallprof/throttle.h. */
#include "wallprof/throttle.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>

#include "wallprof/io.h"

enum { CGROUP_MAX = 64 << 10, NAME_SHOWN = 128 };

/* Does LIST, "cpu,cpuacct" up to a ':', have "cpu"? */
static bool has_cpu(const char *list)
{
	for (const char *p = list; *p && *p != ':'; p++)
		if ((p == list || p[-1] == ',') && !strncmp(p, "cpu", 3) &&
		    (p[3] == ',' || p[3] == ':'))
			return true;
	return false;
}

int wp_throttle_path(const char *text, bool is_v2, char *ret, size_t size)
{
	for (const char *line = text; *line;) {
		const char *list = strchr(line, ':');
		const char *path = list ? strchr(list + 1, ':') : NULL;
		size_t len = strcspn(line, "\n");

		if (path && path < line + len &&
		    (is_v2 ? list[1] == ':' && !strncmp(line, "0:", 2) :
			     has_cpu(list + 1))) {
			len -= (size_t)(path + 1 - line);
			if (len >= size)
				return -ENAMETOOLONG;
			memcpy(ret, path + 1, len);
			ret[len] = '\0';
			return *ret == '/' ? 0 : -ENOENT;
		}
		line += len + (line[len] == '\n');
	}
	return -ENOENT;
}

/* The number in line "NAME N" of TEXT. */
static bool find_number(const char *text, const char *name, uint64_t *ret)
{
	size_t n = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, n) && line[n] == ' ')
			return sscanf(line + n, "%" SCNu64, ret) == 1;
	}
	return false;
}

int wp_throttle_parse(struct wp_throttle_count *ret, const char *text)
{
	struct wp_throttle_count count;

	if (!find_number(text, "nr_periods", &count.periods) ||
	    !find_number(text, "nr_throttled", &count.throttled))
		return -ENOENT;
	*ret = count;
	return 0;
}

/* Where cgroups of version 2, or the controller "cpu" of version 1, are mounted. */
static bool find_mount(bool is_v2, char *ret, size_t size)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	bool found = false;
	struct mntent m;
	char line[4096];

	if (!mounts)
		return false;
	while (!found && getmntent_r(mounts, &m, line, sizeof(line)))
		found = (is_v2 ? !strcmp(m.mnt_type, "cgroup2") :
				 !strcmp(m.mnt_type, "cgroup") &&
					 hasmntopt(&m, "cpu")) &&
			(size_t)snprintf(ret, size, "%s", m.mnt_dir) < size;
	endmntent(mounts);
	return found;
}

/* The beginning of file NAME of the cgroup whose directory is DIR[0..len). */
static bool read_in(const char *dir, size_t len, const char *name, char *text,
		    size_t size)
{
	char path[WP_THROTTLE_DIR_MAX + 32];

	snprintf(path, sizeof(path), "%.*s/%s", (int)len, dir, name);
	return wp_io_read_at(AT_FDCWD, path, text, size) > 0;
}

static int count_in(const char *dir, size_t len, struct wp_throttle_count *ret)
{
	char text[1024];

	return read_in(dir, len, "cpu.stat", text, sizeof(text)) ?
		       wp_throttle_parse(ret, text) :
		       -ENOENT;
}

static void add_levels(struct wp_throttle *t)
{
	size_t len = strlen(t->dir);

	/* The outermost has no limit. */
	while (t->n < WP_THROTTLE_LEVELS && len > t->name_at + 1) {
		struct wp_throttle_level *level = &t->v[t->n];

		level->len = len;
		t->n += !count_in(t->dir, len, &level->before);
		while (t->dir[--len] != '/')
			;
	}
}

void wp_throttle_begin(struct wp_throttle *t, int proc_fd)
{
	struct wp_text text = WP_TEXT_INIT;
	bool has_text = !wp_text_read(&text, proc_fd, "cgroup", CGROUP_MAX);

	t->n = 0;
	/* One of both has the controller. */
	for (int is_v2 = 0; is_v2 < 2 && has_text && !t->n; is_v2++) {
		if (!find_mount(is_v2, t->dir, sizeof(t->dir)))
			continue;
		t->name_at = strlen(t->dir);
		if (!wp_throttle_path(text.data, is_v2, t->dir + t->name_at,
				      sizeof(t->dir) - t->name_at))
			add_levels(t);
	}
	wp_text_clear(&text);
}

/* The limit of the cgroup in DIR[0..len), in microseconds of each period. */
static bool read_limit(const char *dir, size_t len, uint64_t *ret_us,
		       uint64_t *ret_of_us)
{
	char text[64];

	if (read_in(dir, len, "cpu.max", text, sizeof(text)))
		return sscanf(text, "%" SCNu64 "%" SCNu64, ret_us, ret_of_us) ==
		       2;
	return read_in(dir, len, "cpu.cfs_quota_us", text, sizeof(text)) &&
	       sscanf(text, "%" SCNu64, ret_us) == 1 &&
	       read_in(dir, len, "cpu.cfs_period_us", text, sizeof(text)) &&
	       sscanf(text, "%" SCNu64, ret_of_us) == 1;
}

/* The cgroup of T in DIR[0..len) has lacked CPU time as MORE says. */
static void say(const struct wp_throttle *t, size_t len,
		const struct wp_throttle_count *more, char *text, size_t size)
{
	uint64_t us, of_us;
	char name[NAME_SHOWN], limit[64] = "";

	snprintf(name, sizeof(name), "%.*s", (int)(len - t->name_at),
		 t->dir + t->name_at);
	/* Whoever made the cgroup chose it. */
	for (char *c = name; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	if (read_limit(t->dir, len, &us, &of_us))
		snprintf(limit, sizeof(limit), " (%g ms of each %g ms)",
			 (double)us / 1e3, (double)of_us / 1e3);
	snprintf(text, size,
		 "%" PRIu64 " of %" PRIu64
		 " periods of cgroup %s without CPU time left%s",
		 more->throttled, more->periods, name, limit);
}

bool wp_throttle_tell(const struct wp_throttle *t, char *text, size_t size)
{
	struct wp_throttle_count most = { 0 }, now;
	size_t len = 0;

	for (unsigned int i = 0; i < t->n; i++) {
		const struct wp_throttle_count *before = &t->v[i].before;

		if (count_in(t->dir, t->v[i].len, &now) ||
		    now.throttled < before->throttled ||
		    now.throttled - before->throttled <= most.throttled)
			continue;
		most.throttled = now.throttled - before->throttled;
		most.periods = now.periods - before->periods;
		len = t->v[i].len;
	}
	if (len)
		say(t, len, &most, text, size);
	return len;
}
