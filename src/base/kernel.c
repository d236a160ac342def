/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - see wallprof/kernel.h. */
#include "wallprof/kernel.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/utsname.h>

static uint64_t version_of(unsigned int major, unsigned int minor)
{
	return (uint64_t)major << 32 | minor;
}

static uint64_t read_version(void)
{
	unsigned int major, minor;
	struct utsname name;

	if (uname(&name) || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		return UINT64_MAX;
	return version_of(major, minor);
}

bool wp_kernel_is_before(unsigned int major, unsigned int minor)
{
	static uint64_t version;

	if (!version)
		version = read_version();
	return version < version_of(major, minor);
}
