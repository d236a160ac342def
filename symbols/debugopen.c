/* SPDX-License-Identifier: Apache-2.0 */
/* debugopen.c - see wp_debug_open of wallprof/symbols.h: where debug files lie.
 *
 * Names come from files of the target and are opened with our rights, so a
 * file is looked at with O_PATH first (a fifo would block, a device may act on
 * being opened), and symbolic links do not lead out of a root.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/io.h"
#include "wallprof/symbols.h"

enum { ID_MAX = 64 };

static const char debug_root[] = "/usr/lib/debug/";

/* The child that asks gets descriptors of ELF files only. */
static bool is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, "\177ELF", sizeof(magic));
}

/* Open the regular file PATH below ROOT for reading, or -1. */
static int open_regular(const char *root, const char *path)
{
	int dir = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (dir < 0)
		return -1;
	fd = wp_io_find_beneath(dir, path);
	close(dir);
	if (fd >= 0)
		fd = wp_io_reopen_regular(fd);
	if (fd >= 0 && !is_elf(fd)) {
		close(fd);
		fd = -1;
	}
	return fd < 0 ? -1 : fd;
}

/* "/usr/lib/debug/.build-id/ab/cdef.debug". */
static bool id_path(const uint8_t *id, uint32_t len, char buf[PATH_MAX])
{
	int n = snprintf(buf, PATH_MAX, "%s.build-id/", debug_root);

	if (len < 3 || len > ID_MAX)
		return false;
	for (uint32_t i = 0; i < len; i++)
		n += snprintf(buf + n, (size_t)(PATH_MAX - n),
			      i == 0 ? "%02x/" : "%02x", id[i]);
	snprintf(buf + n, (size_t)(PATH_MAX - n), ".debug");
	return true;
}

/* Put PREFIX, the directory of PATH, MIDDLE and NAME together in BUF. */
static bool join(char buf[PATH_MAX], const char *prefix, const char *path,
		 const char *middle, const char *name)
{
	const char *slash = strrchr(path, '/');
	int n;

	if (*path != '/')
		return false;
	n = snprintf(buf, PATH_MAX, "%s%.*s/%s%s", prefix, (int)(slash - path),
		     path, middle, name);
	return n > 0 && n < PATH_MAX;
}

/* GDB manual, "Separate Debug Files". */
static const char *const link_places[][2] = {
	{ "", "" },
	{ "", ".debug/" },
	{ "/usr/lib/debug", "" },
};

enum { NLINK_PLACES = sizeof(link_places) / sizeof(*link_places) };

static bool link_path(const char *name, const char *path, uint32_t place,
		      char buf[PATH_MAX])
{
	if (!*name || strchr(name, '/') || !strcmp(name, "..") ||
	    !strcmp(name, "."))
		return false;
	return join(buf, link_places[place][0], path, link_places[place][1],
		    name) &&
	       strcmp(buf, path);
}

/* Remove "//", "." and ".." from absolute PATH, in place, without reading
 * directories. */
static void normalize(char *path)
{
	char *to = path;

	for (char *from = path, *end; *from; from = end) {
		size_t n;

		from += strspn(from, "/");
		end = from + strcspn(from, "/");
		n = (size_t)(end - from);
		if (!n || (n == 1 && *from == '.'))
			continue;
		if (n == 2 && !memcmp(from, "..", 2)) {
			while (to > path && *--to != '/')
				;
			continue;
		}
		*to++ = '/';
		memmove(to, from, n);
		to += n;
	}
	*to = '\0';
}

/* The path of a .gnu_debugaltlink: allowed only in the directory of PATH and
 * below /usr/lib/debug. */
static bool alt_path(const char *name, const char *path, char buf[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t dir;
	int n;

	if (*path != '/' || !*name)
		return false;
	dir = (size_t)(slash - path);
	n = *name == '/' ?
		    snprintf(buf, PATH_MAX, "%s", name) :
		    snprintf(buf, PATH_MAX, "%.*s/%s", (int)dir, path, name);
	if (n < 0 || n >= PATH_MAX)
		return false;
	normalize(buf);
	if (!strncmp(buf, debug_root, sizeof(debug_root) - 1))
		return true;
	return !strncmp(buf, path, dir) && buf[dir] == '/' && buf[dir + 1] &&
	       !strchr(buf + dir + 1, '/');
}

static bool place_path(const struct wp_debug_query *query, const char *path,
		       uint32_t place, char buf[PATH_MAX])
{
	switch (query->kind) {
	case WP_DEBUG_BY_ID:
		return !place && id_path(query->id, query->id_len, buf);
	case WP_DEBUG_BY_LINK:
		return link_path(query->name, path, place, buf);
	case WP_DEBUG_BY_ALT_NAME:
		return !place && alt_path(query->name, path, buf);
	default:
		return false;
	}
}

int wp_debug_open(const struct wp_debug_query *query, const char *path,
		  const char *const *roots, size_t nroots, uint32_t *nth,
		  char *ret_path)
{
	while (nroots && *nth / nroots < NLINK_PLACES) {
		uint32_t n = (*nth)++;
		int fd = -1;

		if (place_path(query, path, (uint32_t)(n / nroots), ret_path))
			fd = open_regular(roots[n % nroots], ret_path);
		if (fd >= 0)
			return fd;
	}
	return -ENOENT;
}
