/* SPDX-License-Identifier: Apache-2.0 */
/* epolls.h - what the epolls of a process watch.
 *
 * Layer: proc.
 */
#ifndef WP_EPOLLS_H
#define WP_EPOLLS_H

#include <stddef.h>
#include <stdint.h>

#include "wallprof/err.h"

/* A descriptor that an epoll watches, and the process's own word for it
 * (epoll_ctl(2), epoll_event.data). */
struct wp_epoll_watch {
	int32_t fd;
	uint64_t data;
};

struct wp_epolls {
	/* v[0..n), owned. */
	struct wp_epoll_watch *v;
	size_t n, cap;
};

#define WP_EPOLLS_INIT                                                         \
	{                                                                      \
		0                                                              \
	}

/* Add what TEXT, of an epoll's /proc/PID/fdinfo/FD, lists (proc_pid_fdinfo(5)); other
 * lines are passed over.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_epolls_parse(struct wp_epolls *epolls, const char *text);

/* Add what the epolls of the process with directory PROC_FD watch, of descriptors and
 * watches up to 65,536 each; what cannot be read is left out.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_epolls_read(struct wp_epolls *epolls, int proc_fd);

void wp_epolls_clear(struct wp_epolls *epolls);

#endif
