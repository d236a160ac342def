/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup.c - see wallprof/cgroup.h. */
#include "wallprof/cgroup.h"

#include <stdio.h>
#include <string.h>

#include "wallprof/io.h"

enum { ID_MIN = 8, ID_LEN = 64 };

static const char hex[] = "0123456789abcdef";

ssize_t wp_cgroup_read(int proc_fd, pid_t pid, char buf[WP_CGROUP_MAX])
{
	char path[32];

	if (proc_fd >= 0)
		return wp_io_read_at(proc_fd, "cgroup", buf, WP_CGROUP_MAX);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	return wp_io_read_at(-1, path, buf, WP_CGROUP_MAX);
}

/* A line "ID:CONTROLLERS:PATH". */
struct line {
	const char *controllers, *path;
	size_t ncontrollers, npath;
};

/* Take the next line off *TEXT; false: there is none. */
static bool next_line(const char **text, struct line *ret)
{
	while (**text) {
		const char *p = *text;
		size_t n = strcspn(p, "\n"), id = strcspn(p, ":"), at;

		*text += n + (p[n] == '\n');
		if (id >= n)
			continue;
		ret->controllers = p + id + 1;
		at = strcspn(ret->controllers, ":");
		if (id + 1 + at >= n)
			continue;
		ret->ncontrollers = at;
		ret->path = ret->controllers + at + 1;
		ret->npath = n - id - at - 2;
		return true;
	}
	return false;
}

/* The id of a container in NAME[0..n), "docker-ID.scope", "ID"; NULL: none. */
static const char *find_id(const char *name, size_t n)
{
	for (size_t i = 0; i + ID_LEN <= n; i++) {
		size_t k = strspn(name + i, hex);

		if (k == ID_LEN && (!i || name[i - 1] == '-'))
			return name + i;
		i += k;
	}
	return NULL;
}

static bool ends_with(const char *name, size_t n, const char *end)
{
	size_t k = strlen(end);

	return n > k && !memcmp(name + n - k, end, k);
}

/* NAME[0..n) is one part of a path. */
static void parse_part(struct wp_cgroup *c, const char *name, size_t n)
{
	const char *id = find_id(name, n);

	if (id)
		snprintf(c->container, sizeof(c->container), "%s", id);
	else if (ends_with(name, n, ".service") || ends_with(name, n, ".scope"))
		snprintf(c->unit, sizeof(c->unit), "%.*s", (int)n, name);
}

static struct wp_cgroup parse_line(const struct line *line)
{
	struct wp_cgroup c = { .path = "" };

	snprintf(c.path, sizeof(c.path), "%.*s", (int)line->npath, line->path);
	for (const char *p = c.path; *p;) {
		size_t n = strcspn(++p, "/");

		parse_part(&c, p, n);
		p += n;
	}
	return c;
}

/* How much a path tells: a container most, then a unit, then a longer one. */
static size_t rank_of(const struct wp_cgroup *c)
{
	return 2 * sizeof(c->path) * !!*c->container +
	       sizeof(c->path) * !!*c->unit + strlen(c->path);
}

void wp_cgroup_parse(struct wp_cgroup *ret, const char *text)
{
	struct line line;

	*ret = (struct wp_cgroup){ .path = "/" };
	while (next_line(&text, &line)) {
		struct wp_cgroup c = parse_line(&line);

		if (rank_of(&c) > rank_of(ret))
			*ret = c;
	}
	if (!ret->path[1])
		ret->path[0] = '\0';
}

/* Does WANTED begin with NAME[0..n), as a whole part "/NAME"?  What follows; or WANTED. */
static const char *strip(const char *wanted, const char *name, size_t n)
{
	return n && *wanted == '/' && !strncmp(wanted + 1, name, n) &&
			       (wanted[n + 1] == '/' || !wanted[n + 1]) ?
		       wanted + n + 1 :
		       wanted;
}

/* Is LINE's path WANTED[0..n), or below it? */
static bool is_below(const struct line *line, const char *wanted)
{
	size_t n = strlen(wanted);

	while (n && wanted[n - 1] == '/')
		n--;
	return line->npath >= n && !memcmp(line->path, wanted, n) &&
	       (line->npath == n || line->path[n] == '/');
}

static bool is_at_path(const struct line *line, const char *wanted)
{
	static const char mount[] = "sys/fs/cgroup", named[] = "name=";
	const char *rest = strip(wanted, mount, sizeof(mount) - 1);
	const char *name = line->controllers;
	size_t n = line->ncontrollers;

	if (rest == wanted)
		return is_below(line, wanted);
	if (!n)
		return is_below(line, strip(rest, "unified", 7)) ||
		       is_below(line, rest);
	if (n > strlen(named) && !strncmp(name, named, strlen(named))) {
		name += strlen(named);
		n -= strlen(named);
	}
	/* A path of another controller is not one of this. */
	return strip(rest, name, n) != rest &&
	       is_below(line, strip(rest, name, n));
}

/* Does a part NAME[0..n) of a path say WANTED? */
static bool is_called(const char *name, size_t n, const char *wanted)
{
	size_t len = strlen(wanted);
	const char *id = find_id(name, n);

	if (n >= len && !memcmp(name, wanted, len) &&
	    (n == len || (n == len + 8 && ends_with(name, n, ".service"))))
		return true;
	return id && len >= ID_MIN && len <= ID_LEN &&
	       !strncmp(id, wanted, len);
}

static bool has_part(const struct line *line, const char *wanted)
{
	for (size_t i = 0; i < line->npath;) {
		const char *p = line->path + i + 1;
		size_t left = line->npath - i - 1, n = 0;

		while (n < left && p[n] != '/')
			n++;
		if (is_called(p, n, wanted))
			return true;
		i += n + 1;
	}
	return false;
}

bool wp_cgroup_is_in(const char *text, const char *wanted)
{
	struct line line;

	while (next_line(&text, &line))
		if (*wanted == '/' ? is_at_path(&line, wanted) :
				     has_part(&line, wanted))
			return true;
	return false;
}

/* cgroup_namespaces(7): it is outside. */
static bool is_outside(const struct line *line)
{
	return line->npath >= 3 && !memcmp(line->path, "/..", 3);
}

static bool has_controller(const struct line *line, const char *name)
{
	size_t n = strlen(name);

	for (size_t at = 0, len; at <= line->ncontrollers; at += len + 1) {
		len = strcspn(line->controllers + at, ",:");
		if (len == n && !memcmp(line->controllers + at, name, n))
			return true;
	}
	return false;
}

bool wp_cgroup_path(const char *text, const char *controller, char *path,
		    size_t size)
{
	struct line line;

	while (next_line(&text, &line))
		if (has_controller(&line, controller) && !is_outside(&line) &&
		    line.npath < size) {
			memcpy(path, line.path, line.npath);
			path[line.npath] = '\0';
			return *path == '/';
		}
	return false;
}

/* Has file NAME of LINE's group, HIERARCHY below ROOT, a line that begins with WORD? */
static bool has_line(const struct line *line, const char *root,
		     const char *hierarchy, const char *name, const char *word)
{
	char path[WP_CGROUP_MAX + 64], text[512];
	const char *found;
	ssize_t n;

	if (is_outside(line))
		return false;
	snprintf(path, sizeof(path), "%s%s%.*s/%s", root, hierarchy,
		 (int)line->npath, line->path, name);
	n = wp_io_read_at(-1, path, text, sizeof(text));
	found = n > 0 ? strstr(text, word) : NULL;
	return found && (found == text || found[-1] == '\n');
}

bool wp_cgroup_is_frozen(const char *text, const char *root)
{
	static const char freezer[] = "freezer";
	struct line line;
	bool is_frozen = false;

	while (!is_frozen && next_line(&text, &line)) {
		if (!line.ncontrollers)
			is_frozen = has_line(&line, root, "", "cgroup.events",
					     "frozen 1") ||
				    has_line(&line, root, "/unified",
					     "cgroup.events", "frozen 1");
		else if (line.ncontrollers == strlen(freezer) &&
			 !memcmp(line.controllers, freezer, strlen(freezer)))
			is_frozen = has_line(&line, root, "/freezer",
					     "freezer.state", "FROZEN");
	}
	return is_frozen;
}
