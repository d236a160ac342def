/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory.c - see wallprof/process.h: memory, its map, and mapped files.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "process_priv.h"
#include "wallprof/budget.h"

/* Ranges of one process_vm_readv(2); the kernel takes IOV_MAX (1,024). */
enum { RANGES_MAX = 256 };

/* Read N ranges: bytes read up to the first that is unreadable, or -errno. */
static ssize_t read_vectors(const struct wp_process *process,
			    const struct iovec *local,
			    const struct iovec *remote, unsigned long n)
{
	ssize_t got = process_vm_readv(process->reader_tid, local, n, remote, n,
				       0);
	pid_t tid;

	/* READER_TID may have exited while other threads live. */
	if (got < 0 && errno == ESRCH) {
		tid = wp_process_find_living(process);
		if (!tid)
			return -ESRCH;
		got = process_vm_readv(tid, local, n, remote, n, 0);
	}
	if (got >= 0)
		return got;
	return errno == EFAULT ? 0 : -errno;
}

ssize_t wp_process_read(const struct wp_process *process, uint64_t avma,
			void *buf, size_t len)
{
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)avma, len };

	return read_vectors(process, &local, &remote, 1);
}

/* Read the first of v[0..n): the number that are read or, at last, cannot be;
 * or -errno. */
static ssize_t read_some(const struct wp_process *process,
			 struct wp_process_range *v, size_t n)
{
	struct iovec local[RANGES_MAX], remote[RANGES_MAX];
	size_t len = n < RANGES_MAX ? n : RANGES_MAX, i = 0;
	ssize_t got;

	if (!len)
		return 0;
	for (size_t k = 0; k < len; k++) {
		local[k] = (struct iovec){ v[k].buf, v[k].len };
		remote[k] = (struct iovec){ (void *)(uintptr_t)v[k].avma,
					    v[k].len };
	}
	got = read_vectors(process, local, remote, len);
	if (got < 0)
		return got;
	for (; i < len && (size_t)got >= v[i].len; i++) {
		got -= (ssize_t)v[i].len;
		v[i].is_read = true;
	}
	if (i < len)
		v[i++].is_read = false;
	return (ssize_t)i;
}

int wp_process_read_ranges(const struct wp_process *process,
			   struct wp_process_range *v, size_t n)
{
	for (size_t i = 0; i < n;) {
		ssize_t done = read_some(process, v + i, n - i);

		if (done < 0)
			return (int)done;
		i += (size_t)done;
	}
	return 0;
}

int wp_process_open_maps(const struct wp_process *process)
{
	int fd = openat(process->proc_fd, "maps", O_RDONLY | O_CLOEXEC);
	char path[32], byte[2];
	pid_t tid;

	if (fd >= 0 && wp_io_pread(fd, byte, sizeof(byte)) > 0)
		return fd;
	tid = wp_process_find_living(process);
	if (!tid)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(path, sizeof(path), "%d/maps", tid);
	return openat(process->task_fd, path, O_RDONLY | O_CLOEXEC);
}

int wp_process_read_maps(const struct wp_process *process, struct wp_text *text,
			 struct wp_maps *maps)
{
	/* It is there as text and parsed. */
	uint64_t max = wp_budget_share(WP_BUDGET_MAP_TEXT) / 2;
	int rc = wp_text_read(text, process->proc_fd, "maps", max);
	const char *last;
	char path[32];
	pid_t tid;

	if ((rc == -ESRCH || rc == -ENOENT || (!rc && !text->len)) &&
	    (tid = wp_process_find_living(process))) {
		snprintf(path, sizeof(path), "%d/maps", tid);
		rc = wp_text_read(text, process->task_fd, path, max);
	}
	maps->is_cut = rc == -EOVERFLOW;
	if (rc && !maps->is_cut)
		return wp_process_error(-rc);
	/* It has ended, though what it had mapped may still be asked for. */
	if (!text->len)
		return -ESRCH;
	last = maps->is_cut ? memrchr(text->data, '\n', text->len) : NULL;
	return wp_maps_parse(maps, text->data,
			     last ? (size_t)(last - text->data) : text->len);
}

/* Find PROCESS's program, though it may be deleted, if MAP is of it, with O_PATH: a
 * descriptor or -errno. */
static int find_program(const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map)
{
	int fd = openat(process->proc_fd, "exe", O_PATH | O_CLOEXEC);
	char path[PATH_MAX];
	struct stat st;

	if (fd < 0)
		return -errno;
	wp_process_exe(process, path, sizeof(path));
	/* The device may differ between the map and stat(2). */
	if (!wp_io_stat_open(fd, "", &st) && st.st_ino == map->ino &&
	    !strcmp(path, wp_maps_path(maps, map)))
		return fd;
	close(fd);
	return -ENOENT;
}

/* Find the file behind MAP by its path, with O_PATH: a descriptor or -errno. */
static int find_by_path(const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map)
{
	const char *path = wp_maps_path(maps, map);
	struct stat st;
	int fd;

	if (path[0] != '/' || process->root_fd < 0 || map->deleted)
		return -ENOENT;
	fd = wp_io_find_beneath(process->root_fd, path);
	if (fd < 0)
		return fd;
	/* The device may differ between the map and stat(2) on overlay file
	 * systems, so it is the inode that must agree. */
	if (wp_io_stat_open(fd, "", &st) || st.st_ino != map->ino) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* Is FD of MAP's file, not of one that has taken its place in memory since the map was
 * read?  File systems whose inodes differ between the map and stat(2) tell by the path. */
static bool is_file_of(int fd, const struct wp_maps *maps,
		       const struct wp_map *map)
{
	const char *path = wp_maps_path(maps, map);
	char self[32], link[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (!wp_io_stat_open(fd, "", &st) && st.st_ino == map->ino)
		return true;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, link, sizeof(link));
	if (n < 0)
		return false;
	n = (ssize_t)wp_maps_path_len(link, (size_t)n);
	return strlen(path) == (size_t)n && !memcmp(path, link, (size_t)n);
}

/* Find the file behind MAP by its addresses, with O_PATH: a descriptor or -errno. */
static int find_by_address(const struct wp_process *process,
			   const struct wp_maps *maps, const struct wp_map *map)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "map_files/%lx-%lx",
		 (unsigned long)map->start_avma, (unsigned long)map->end_avma);
	fd = openat(process->proc_fd, name, O_PATH | O_CLOEXEC);
	if (fd < 0 || is_file_of(fd, maps, map))
		return fd;
	close(fd);
	return -ENOENT;
}

int wp_process_open_map(const struct wp_process *process,
			const struct wp_maps *maps, const struct wp_map *map)
{
	int fd;

	if (!map->ino)
		return -ENOENT;
	fd = find_by_address(process, maps, map);
	if (fd < 0)
		fd = find_program(process, maps, map);
	if (fd < 0)
		fd = find_by_path(process, maps, map);
	return fd < 0 ? fd : wp_io_reopen_regular(fd);
}

/* include/uapi/linux/fs.h of Linux 6.11; not in older headers. */
struct procmap_query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start;
	uint64_t vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major;
	uint32_t dev_minor;
	uint32_t vma_name_size;
	uint32_t build_id_size;
	uint64_t vma_name_addr;
	uint64_t build_id_addr;
};

/* Find only executable regions. */
enum { QUERY_EXECUTABLE = 0x04 };

#define PROCMAP_QUERY_IOCTL _IOWR('f', 17, struct procmap_query)

int wp_process_check_map(int maps_fd, uint64_t avma, uint64_t start_avma,
			 uint64_t off, uint64_t ino)
{
	struct procmap_query q = { .size = sizeof(q), .query_addr = avma };

	if (ioctl(maps_fd, PROCMAP_QUERY_IOCTL, &q))
		return errno == ENOTTY || errno == EINVAL ? -ENOTSUP : 0;
	return q.vma_start == start_avma && q.vma_offset == off &&
	       q.inode == ino;
}

uint64_t wp_process_region_end(int maps_fd, uint64_t avma)
{
	struct procmap_query q = { .size = sizeof(q), .query_addr = avma };

	return ioctl(maps_fd, PROCMAP_QUERY_IOCTL, &q) ? 0 : q.vma_end;
}

int wp_process_check_code(int maps_fd, uint64_t avma)
{
	struct procmap_query q = { .size = sizeof(q),
				   .query_addr = avma,
				   .query_flags = QUERY_EXECUTABLE };

	if (!ioctl(maps_fd, PROCMAP_QUERY_IOCTL, &q))
		return 1;
	if (errno == ENOTTY || errno == EINVAL)
		return -ENOTSUP;
	return errno != ENOENT;
}
