/* SPDX-License-Identifier: Apache-2.0 */
/* exe_name.c - see exe_name.h. */
#include "exe_name.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wallprof/base_name.h"

/* Find PATH below ROOT_FD, by the rules of RESOLVE, on one mount: to enter another may
 * mount it, or wait for its server. */
static int find_on_mount(int root_fd, const char *path, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | resolve,
	};

	return (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
}

/* What file does LINK of the process's root lead to?  Where its directory is of another
 * mount than the root, an absolute link is not followed.  False: it cannot be had. */
static bool stat_link(const struct wp_process *process, const char *link,
		      struct stat *ret)
{
	const char *name = wp_base_name(link);
	int fd = find_on_mount(process->root_fd, link, RESOLVE_IN_ROOT);
	char dir[PATH_MAX];
	bool is_there;

	if (fd < 0 && errno == EXDEV) {
		int dir_fd;

		snprintf(dir, sizeof(dir), "%.*s", (int)(name - link), link);
		dir_fd = wp_io_find_beneath(process->root_fd, dir);
		fd = find_on_mount(dir_fd, name, RESOLVE_BENEATH);
		if (dir_fd >= 0)
			close(dir_fd);
	}
	is_there = fd >= 0 && !fstat(fd, ret);
	if (fd >= 0)
		close(fd);
	return is_there;
}

/* The path of a link beside EXE with the process's name, if it leads to EXE. */
static bool find_link(char link[PATH_MAX], const struct wp_process *process,
		      const char *exe)
{
	int dir_len = (int)(wp_base_name(exe) - exe);
	struct stat own, other;
	char name[64];
	ssize_t n = wp_io_read_at(process->proc_fd, "comm", name, sizeof(name));

	if (n <= 1 || *exe != '/' || process->root_fd < 0)
		return false;
	name[n - 1] = '\0';
	if (!strcmp(name, wp_base_name(exe)) || strchr(name, '/') ||
	    snprintf(link, PATH_MAX, "%.*s%s", dir_len, exe, name) >= PATH_MAX)
		return false;
	return !fstatat(process->proc_fd, "exe", &own, 0) &&
	       stat_link(process, link, &other) && own.st_dev == other.st_dev &&
	       own.st_ino == other.st_ino;
}

static bool is_lost(const struct wp_profile *profile, const char *path)
{
	for (uint32_t i = 1; i < profile->nmappings; i++)
		if (profile->mappings[i].is_lost &&
		    !strcmp(wp_profile_str(profile, profile->mappings[i].path),
			    path))
			return true;
	return false;
}

int wp_exe_name_set(struct wp_profile *profile,
		    const struct wp_process *process)
{
	char exe[PATH_MAX], link[PATH_MAX];
	uint32_t id;

	wp_process_exe(process, exe, sizeof(exe));
	if (is_lost(profile, exe) || !find_link(link, process, exe))
		return 0;
	id = wp_intern_add_str(&profile->strings, link);
	for (uint32_t i = 1; i < profile->nmappings && id != UINT32_MAX; i++)
		if (!strcmp(wp_profile_str(profile, profile->mappings[i].path),
			    exe))
			profile->mappings[i].path = id;
	if (id != UINT32_MAX &&
	    !strcmp(wp_profile_str(profile, profile->meta.exe), exe))
		profile->meta.exe = id;
	return id == UINT32_MAX ? -ENOMEM : 0;
}
