/* SPDX-License-Identifier: Apache-2.0 */
/* heap_probe_none.c - wallprof/heap_probe.h where BPF was left out of the build. */
#ifndef WP_HAVE_BPF
#include <errno.h>

#include "wallprof/heap_probe.h"

int wp_heap_probe_open(struct wp_heap_probe **ret, pid_t pid, uint64_t rate,
		       enum wp_heap_tier tier, struct wp_err *err)
{
	(void)ret;
	(void)pid;
	(void)rate;
	(void)tier;
	return wp_err_set(err, -ENOTSUP,
			  "built without BPF (clang and libbpf), which a heap "
			  "profile wants");
}

enum wp_heap_tier wp_heap_probe_tier(const struct wp_heap_probe *probe)
{
	(void)probe;
	return WP_HEAP_TIER_AUTO;
}

bool wp_heap_probe_can(const struct wp_heap_probe *probe,
		       enum wp_heap_call call)
{
	(void)probe;
	(void)call;
	return false;
}

uint64_t wp_heap_probe_cost_ns(const struct wp_heap_probe *probe)
{
	(void)probe;
	return 0;
}

int wp_heap_probe_set_output(struct wp_heap_probe *probe, int cpu, int fd)
{
	(void)probe;
	(void)cpu;
	(void)fd;
	return -ENOTSUP;
}

int wp_heap_probe_attach(struct wp_heap_probe *probe, const char *path,
			 const struct wp_heap_site *sites, size_t n,
			 struct wp_err *err)
{
	(void)probe;
	(void)path;
	(void)sites;
	(void)n;
	(void)err;
	return -ENOTSUP;
}

uint64_t wp_heap_probe_find_return(const struct wp_heap_probe *probe,
				   const struct wp_heap_return *call)
{
	(void)probe;
	(void)call;
	return 0;
}

int wp_heap_probe_arm(struct wp_heap_probe *probe)
{
	(void)probe;
	return -ENOTSUP;
}

void wp_heap_probe_spare_children(struct wp_heap_probe *probe)
{
	(void)probe;
}

void wp_heap_probe_detach(struct wp_heap_probe *probe, bool wholly)
{
	(void)probe;
	(void)wholly;
}

struct wp_heap_counts wp_heap_probe_counts(const struct wp_heap_probe *probe)
{
	(void)probe;
	return (struct wp_heap_counts){ 0 };
}

void wp_heap_probe_each_mapped(struct wp_heap_probe *probe,
			       void (*each)(void *ctx,
					    const struct wp_heap_mapped *range),
			       void *ctx)
{
	(void)probe;
	(void)each;
	(void)ctx;
}

int wp_heap_probe_each_live(struct wp_heap_probe *probe,
			    void (*each)(void *ctx, uint64_t id), void *ctx)
{
	(void)probe;
	(void)each;
	(void)ctx;
	return -ENOTSUP;
}

void wp_heap_probe_close(struct wp_heap_probe *probe)
{
	(void)probe;
}
#else
/* A source has something in it (ISO C, 6.9). */
typedef int wp_heap_probe_is_there;
#endif
