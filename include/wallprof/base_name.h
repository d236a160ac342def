/* SPDX-License-Identifier: Apache-2.0 */
/* base_name.h - the last part of a path, and paths that name no file.
 *
 * Layer: base.
 */
#ifndef WP_BASE_NAME_H
#define WP_BASE_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What follows the last slash of PATH; all of PATH if nothing does. */
static inline const char *wp_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Is PATH, of /proc/PID/maps, of memory that a program puts code into, not of a file that
 * it loads?  memfd_create(2); shared anonymous memory, of huge pages too, and shmget(2)
 * (mm/shmem.c, fs/hugetlbfs/inode.c, ipc/shm.c). */
static inline bool wp_path_is_made(const char *path)
{
	static const char *const prefixes[] = { "/memfd:",	  "//anon",
						"/dev/zero",	  "[anon",
						"/anon_hugepage", "/SYSV" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(path, prefixes[i], strlen(prefixes[i])))
			return true;
	return !*path;
}

#endif
