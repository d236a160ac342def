/* SPDX-License-Identifier: Apache-2.0 */
/* syscall_table.c - what each system call waits for: see wallprof/state.h. */
#include <stdio.h>

#include "wallprof/state.h"

#if defined(__x86_64__)
#include "syscalls_x86_64.h"
const long wp_syscall_restart = 219;
/* rdi, rsi, rdx, r10, r8, r9 */
const uint8_t wp_syscall_arg_regs[WP_SYSCALL_ARGS] = { 5, 4, 1, 10, 8, 9 };
#elif defined(__aarch64__)
#include "syscalls_aarch64.h"
const long wp_syscall_restart = 128;
const uint8_t wp_syscall_arg_regs[WP_SYSCALL_ARGS] = { 0, 1, 2, 3, 4, 5 };
#endif

static const struct wp_syscall_info table[] = {
#define X(nr, name, wait, fd, eintr, restart)                                  \
	[nr] = { #name, WP_WAIT_##wait, fd, eintr, restart },
	WP_SYSCALLS(X)
#undef X
};

const struct wp_syscall_info *wp_syscall_find(long nr)
{
	if (nr < 0 || (size_t)nr >= sizeof(table) / sizeof(*table) ||
	    !table[nr].name)
		return NULL;
	return &table[nr];
}

const char *wp_syscall_name(long nr, char *buf, size_t len)
{
	const struct wp_syscall_info *info = wp_syscall_find(nr);

	if (info)
		return info->name;
	snprintf(buf, len, "syscall_%ld", nr);
	return buf;
}
