/* SPDX-License-Identifier: Apache-2.0 */
/* file_map.c - see file_map.h. */
#include "file_map.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SIZE_MAX_BYTES (INT64_C(8) << 30)

/* What the handler may put right.  A signal handler gets no context, hence
 * these statics. */
static struct wp_file_map *volatile live;
static struct sigaction old_action;

static bool holds(const struct wp_file_map *map, uintptr_t addr)
{
	uintptr_t start = (uintptr_t)map->data;

	/* The last page is whole in memory. */
	return addr >= start && addr - start < ((map->size + 4095) & ~4095UL);
}

/* mmap(2), "SIGBUS": a page of the mapping past the end of the file. */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	int saved = errno;

	(void)context;
	for (const struct wp_file_map *map = live; map; map = map->next) {
		void *page = (void *)(addr & ~4095UL);

		if (!holds(map, addr))
			continue;
		if (mmap(page, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			 0) == MAP_FAILED)
			break;
		errno = saved;
		return;
	}
	/* Not ours: happens again on return, to whoever was there before. */
	sigaction(sig, &old_action, NULL);
	errno = saved;
}

static void list_add(struct wp_file_map *map)
{
	struct sigaction action = {
		.sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	if (!live)
		sigaction(SIGBUS, &action, &old_action);
	map->next = live;
	live = map;
}

static void list_remove(struct wp_file_map *map)
{
	struct wp_file_map *before = live;

	if (before == map) {
		live = map->next;
	} else {
		while (before->next != map)
			before = before->next;
		before->next = map->next;
	}
	if (!live)
		sigaction(SIGBUS, &old_action, NULL);
}

int wp_file_stat(int fd, struct stat *ret)
{
	return (int)syscall(SYS_fstat, fd, ret);
}

int wp_file_map_open(struct wp_file_map *ret, int fd)
{
	struct stat st;
	void *data;

	if (wp_file_stat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return -ENOTSUP;
	if (st.st_size > SIZE_MAX_BYTES)
		return -EOVERFLOW;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	ret->data = data;
	ret->size = (size_t)st.st_size;
	ret->mapped = true;
	list_add(ret);
	return 0;
}

void wp_file_map_adopt(struct wp_file_map *ret, void *data, size_t size)
{
	*ret = (struct wp_file_map){ .data = data, .size = size };
}

void wp_file_map_drop(struct wp_file_map *map, uint64_t keep, uint64_t keep_len)
{
	uint64_t from = keep & ~UINT64_C(4095), to;

	if (!map->mapped)
		return;
	if (from >= map->size || keep_len > map->size - keep) {
		madvise(map->data, map->size, MADV_DONTNEED);
		return;
	}
	to = (keep + keep_len + 4095) & ~UINT64_C(4095);
	madvise(map->data, (size_t)from, MADV_DONTNEED);
	if (to < map->size)
		madvise(map->data + to, (size_t)(map->size - to),
			MADV_DONTNEED);
}

void wp_file_map_clear(struct wp_file_map *map)
{
	if (map->mapped) {
		list_remove(map);
		munmap(map->data, map->size);
	} else {
		free(map->data);
	}
	*map = (struct wp_file_map)WP_FILE_MAP_INIT;
}
