/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.c - see wallprof/throttle.h. */
#include "wallprof/throttle.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wallprof/cgroup.h"
#include "wallprof/io.h"
#include "wallprof/utf8.h"

enum { NAME_SHOWN = 128 };

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

void wp_throttle_begin(struct wp_throttle *t, int proc_fd, const char *root)
{
	/* Version 2, and where version 1 is mounted; one of both has the controller. */
	static const char *const hierarchies[][2] = { { "", "" },
						      { "cpu", "/cpu" } };
	char text[WP_CGROUP_MAX];
	ssize_t n = wp_cgroup_read(proc_fd, 0, text);

	t->n = 0;
	for (size_t i = 0; i < 2 && n > 0 && !t->n; i++) {
		t->name_at = (size_t)snprintf(t->dir, sizeof(t->dir), "%s%s",
					      root, hierarchies[i][1]);
		if (wp_cgroup_path(text, hierarchies[i][0], t->dir + t->name_at,
				   sizeof(t->dir) - t->name_at))
			add_levels(t);
	}
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
	/* Whoever made the cgroup chose the name. */
	wp_utf8_tame(name);
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
