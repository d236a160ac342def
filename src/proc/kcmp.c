/* SPDX-License-Identifier: Apache-2.0 */
/* kcmp.c - see wallprof/kcmp.h. */
#include "wallprof/kcmp.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0: one and the same; negative: not known. */
static long compare(pid_t a, pid_t b, int type)
{
	return syscall(SYS_kcmp, a, b, type, 0, 0);
}

bool wp_kcmp_files_differ(pid_t a, pid_t b)
{
	return compare(a, b, KCMP_FILES) > 0;
}

bool wp_kcmp_memory_is_one(pid_t a, pid_t b)
{
	return compare(a, b, KCMP_VM) == 0;
}
