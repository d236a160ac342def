/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls.c - print the table of system calls, a line each: number, name, wait
 * reason, argument that is the descriptor, what a restart does, argument that is the
 * time limit. */
#include <stdio.h>

#include "wallprof/state.h"

int main(void)
{
	for (long nr = 0; nr < WP_SYSCALLS_MAX; nr++) {
		const struct wp_syscall_info *info = wp_syscall_find(nr);

		if (info)
			printf("%ld %s %s %d %d %d\n", nr, info->name,
			       wp_wait_name(info->wait), info->fd_arg,
			       info->restart, info->limit_arg);
	}
	return 0;
}
