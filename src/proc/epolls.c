/* SPDX-License-Identifier: Apache-2.0 */
/* epolls.c - see wallprof/epolls.h. */
#include "wallprof/epolls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/fdinfo.h"
#include "wallprof/io.h"
#include "wallprof/vec.h"

enum {
	FDINFO_MAX = 16 << 20,
	FDS_MAX = 1 << 16,
	WATCHES_MAX = 1 << 16,
};

int wp_epolls_parse(struct wp_epolls *epolls, const char *text)
{
	static const char tfd[] = "tfd:", data[] = " data:";

	for (const char *line = text, *end; line && *line; line = end) {
		const char *word;
		long fd;

		end = strchr(line, '\n');
		end = end ? end + 1 : line + strlen(line);
		if (strncmp(line, tfd, strlen(tfd)))
			continue;
		fd = strtol(line + strlen(tfd), NULL, 10);
		word = memmem(line, (size_t)(end - line), data, strlen(data));
		if (!word || fd < 0 || fd > INT32_MAX ||
		    epolls->n >= WATCHES_MAX)
			continue;
		if (WP_VEC_ROOM(epolls->v, epolls->n, epolls->cap, 1))
			return -ENOMEM;
		epolls->v[epolls->n++] = (struct wp_epoll_watch){
			(int32_t)fd, strtoull(word + strlen(data), NULL, 16)
		};
	}
	return 0;
}

static bool is_epoll(int fd_dir, const char *name)
{
	char link[64];
	ssize_t n = readlinkat(fd_dir, name, link, sizeof(link) - 1);

	if (n < 0)
		return false;
	link[n] = '\0';
	return wp_fdinfo_classify(link) == WP_FD_EPOLL;
}

int wp_epolls_read(struct wp_epolls *epolls, int proc_fd)
{
	int fd_dir = openat(proc_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd_dir < 0 ? NULL : fdopendir(fd_dir);
	struct wp_text text = WP_TEXT_INIT;
	const struct dirent *entry;
	char path[300];
	int rc = 0;

	if (!dir) {
		if (fd_dir >= 0)
			close(fd_dir);
		return 0;
	}
	/* One with many watches may have many descriptors. */
	for (int i = 0; !rc && i < FDS_MAX && epolls->n < WATCHES_MAX &&
			(entry = readdir(dir));
	     i++) {
		int got;

		if (!is_epoll(fd_dir, entry->d_name))
			continue;
		snprintf(path, sizeof(path), "fdinfo/%s", entry->d_name);
		got = wp_text_read(&text, proc_fd, path, FDINFO_MAX);
		if (!got || got == -EOVERFLOW)
			rc = wp_epolls_parse(epolls, text.data);
	}
	wp_text_clear(&text);
	closedir(dir);
	return rc;
}

void wp_epolls_clear(struct wp_epolls *epolls)
{
	free(epolls->v);
	*epolls = (struct wp_epolls)WP_EPOLLS_INIT;
}
