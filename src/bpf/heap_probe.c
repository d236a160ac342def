/* SPDX-License-Identifier: Apache-2.0 */
/* heap_probe.c - see wallprof/heap_probe.h. */
#include "wallprof/heap_probe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

uint32_t wp_heap_threshold(uint32_t class, uint64_t rate)
{
	double size = class < WP_HEAP_FINE ?
			      8.0 * class + 4 :
			      1.5 * WP_HEAP_FINE_MAX *
				      ldexp(1, (int)(class - WP_HEAP_FINE));
	double scaled = -expm1(-size / (double)(rate ? rate : 1)) *
			4294967296.0;

	if (scaled >= UINT32_MAX)
		return UINT32_MAX;
	return scaled < 1 ? 1 : (uint32_t)scaled;
}

bool wp_heap_probe_ends_filtered(const char *release)
{
	/* Mended by then. */
	enum { OF_6_12 = 20, OF_6_13 = 8 };
	unsigned int major, minor, patch = 0;

	if (sscanf(release, "%u.%u.%u", &major, &minor, &patch) < 2 ||
	    major != 6)
		return false;
	return minor == 11 || (minor == 12 && patch < OF_6_12) ||
	       (minor == 13 && patch < OF_6_13);
}

bool wp_heap_probe_ends_shadowed(const char *release)
{
	/* With shadow stacks for users; with probes that know them. */
	enum { FIRST_OF_6 = 6, MENDED_OF_6 = 11 };
	unsigned int major, minor;

	return sscanf(release, "%u.%u", &major, &minor) == 2 && major == 6 &&
	       minor >= FIRST_OF_6 && minor < MENDED_OF_6;
}

#ifdef WP_HAVE_BPF
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "heap_priv.h"
#include "wallprof/kernel.h"

static int map_of(const struct wp_heap_probe *probe, const char *name)
{
	return bpf_object__find_map_fd_by_name(probe->links.object, name);
}

static int fill_thresholds(const struct wp_heap_probe *probe, uint64_t rate)
{
	int fd = map_of(probe, "thresholds");

	for (uint32_t i = 0; i < WP_HEAP_CLASSES; i++) {
		uint32_t threshold = wp_heap_threshold(i, rate);

		if (bpf_map_update_elem(fd, &i, &threshold, 0))
			return -errno;
	}
	return 0;
}

/* Before Linux 6.6 there are perf events only, and before 5.11 what BPF keeps is locked
 * memory. */
static int refused(enum wp_heap_tier tier, struct wp_err *err)
{
	bool by_perf = tier == WP_HEAP_TIER_PERF || wp_kernel_is_before(6, 6);

	return wp_err_set(err, -EPERM,
			  "a heap profile wants BPF, which is not permitted "
			  "(run wallprof as root, or give it %s)",
			  !by_perf ? "CAP_BPF, CAP_PERFMON and "
				     "CAP_CHECKPOINT_RESTORE" :
			  wp_kernel_is_before(5, 11) ?
				     "CAP_SYS_ADMIN and CAP_SYS_RESOURCE" :
				     "CAP_SYS_ADMIN");
}

/* Load TIER's programs, and see one run.  Linux 5.13 to 6.0 has links of the PERF tier
 * alone.  Before it refuses another tier's program it warns of the program's map, which
 * grows, and some systems panic at a warning (kernel/bpf/verifier.c,
 * check_map_prog_compatibility). */
static int open_tier(struct wp_heap_probe *probe, enum wp_heap_tier tier)
{
	int rc = tier != WP_HEAP_TIER_PERF && wp_kernel_is_before(6, 1) ?
			 -ENOTSUP :
			 wp_heap_links_load(&probe->links, tier);

	if (rc)
		return rc;
	probe->live = map_of(probe, "live");
	probe->counts = map_of(probe, "counts");
	probe->mode = map_of(probe, "mode");
	probe->output = map_of(probe, "output");
	rc = wp_heap_trial_run(probe);
	if (rc)
		wp_heap_links_close(&probe->links);
	/* Where that takes long the probe stays: nobody calls it. */
	else if (tier != WP_HEAP_TIER_PERF)
		wp_heap_links_remove(&probe->links, true);
	return rc;
}

/* Open the first tier that works; WANTED: only that one. */
static int open_first(struct wp_heap_probe *probe, enum wp_heap_tier wanted,
		      struct wp_err *err)
{
	char why[3 * 64] = "";
	enum wp_heap_tier tier = wanted ? wanted : WP_HEAP_TIER_AUTO + 1;
	int rc = -ENOTSUP;
	size_t n = 0;

	for (; rc && tier < WP_HEAP_NTIERS; tier++) {
		rc = open_tier(probe, tier);
		if (rc == -EPERM || rc == -EACCES)
			return refused(tier, err);
		if (rc == -ENOMEM)
			return wp_err_set(err, rc, "no memory");
		if (rc == -EAGAIN)
			return wp_err_set(
				err, rc,
				"signals interrupt the kernel whenever "
				"it looks at the BPF program");
		if (rc)
			n += (size_t)snprintf(
				why + n, sizeof(why) - n, "%s%s: %.40s",
				n ? ", " : "", wp_heap_tier_name(tier),
				rc == -ENODATA ?
					"a probe on wallprof is not hit" :
					strerror(-rc));
		if (wanted)
			break;
	}
	return rc ? wp_err_set(
			    err, -ENOTSUP,
			    "the kernel makes no probes for a heap profile%s "
			    "(%s)",
			    /* BPF's ring buffers are new in 5.8; nothing before
			     * 5.10 was tried. */
			    wp_kernel_is_before(5, 10) ?
				    ", which wants Linux 5.10" :
				    "",
			    why) :
		    0;
}

static size_t returns_bytes(uint32_t nrings)
{
	return (size_t)nrings * WP_HEAP_RETURNS * sizeof(struct wp_heap_return);
}

/* Without them stacks end where an allocator is called. */
static void map_returns(struct wp_heap_probe *probe)
{
	uint32_t nrings = wp_heap_links_count_rings(&probe->links);
	void *v;

	if (!nrings)
		return;
	v = mmap(NULL, returns_bytes(nrings), PROT_READ, MAP_SHARED,
		 map_of(probe, "returns"), 0);
	if (v != MAP_FAILED)
		probe->returns = (struct wp_heap_returns){ v, nrings };
}

int wp_heap_probe_open(struct wp_heap_probe **ret, pid_t pid, uint64_t rate,
		       enum wp_heap_tier tier, struct wp_err *err)
{
	struct wp_heap_probe *probe = calloc(1, sizeof(*probe));
	int rc;

	if (!probe)
		return wp_err_set(err, -ENOMEM, "no memory");
	probe->pid = pid;
	rc = open_first(probe, tier, err);
	if (!rc) {
		rc = fill_thresholds(probe, rate);
		if (rc)
			wp_err_set(err, rc, "cannot tell BPF the rate: %s",
				   strerror(-rc));
	}
	if (rc) {
		wp_heap_probe_close(probe);
		return rc;
	}
	map_returns(probe);
	*ret = probe;
	return 0;
}

uint64_t wp_heap_probe_find_return(const struct wp_heap_probe *probe,
				   const struct wp_heap_return *call)
{
	return wp_heap_returns_find(&probe->returns, call);
}

enum wp_heap_tier wp_heap_probe_tier(const struct wp_heap_probe *probe)
{
	return probe->links.tier;
}

int wp_heap_probe_set_output(struct wp_heap_probe *probe, int cpu, int fd)
{
	return bpf_map_update_elem(probe->output, &cpu, &fd, 0) ? -errno : 0;
}

int wp_heap_probe_attach(struct wp_heap_probe *probe, const char *path,
			 const struct wp_heap_site *sites, size_t n,
			 struct wp_err *err)
{
	int rc = wp_heap_links_add(&probe->links, probe->pid, path, sites, n);

	if (rc == -EPERM || rc == -EACCES)
		return refused(probe->links.tier, err);
	return rc ? wp_err_set(err, rc, "cannot probe the allocator: %s",
			       strerror(-rc)) :
		    0;
}

bool wp_heap_probe_can(const struct wp_heap_probe *probe,
		       enum wp_heap_call call)
{
	return wp_heap_links_can(&probe->links, call);
}

uint64_t wp_heap_probe_cost_ns(const struct wp_heap_probe *probe)
{
	return probe->cost_ns;
}

static int set_mode(const struct wp_heap_probe *probe, uint32_t mode)
{
	uint32_t zero = 0;

	return bpf_map_update_elem(probe->mode, &zero, &mode, 0) ? -errno : 0;
}

int wp_heap_probe_arm(struct wp_heap_probe *probe)
{
	return set_mode(probe, WP_HEAP_SAMPLE);
}

void wp_heap_probe_spare_children(struct wp_heap_probe *probe)
{
	wp_heap_links_spare_children(&probe->links, probe->pid);
}

void wp_heap_probe_detach(struct wp_heap_probe *probe, bool wholly)
{
	if (!probe->links.n)
		return;
	(void)!set_mode(probe, WP_HEAP_IGNORE);
	wp_heap_links_remove(&probe->links, wholly);
}

struct wp_heap_counts wp_heap_probe_counts(const struct wp_heap_probe *probe)
{
	struct wp_heap_counts sum = { 0 };
	int ncpus = libbpf_num_possible_cpus();
	struct wp_heap_counts *v = ncpus > 0 ?
					   calloc((size_t)ncpus, sizeof(*v)) :
					   NULL;
	uint32_t zero = 0;

	if (v && !bpf_map_lookup_elem(probe->counts, &zero, v))
		for (int i = 0; i < ncpus; i++) {
			sum.calls += v[i].calls;
			sum.frees += v[i].frees;
			sum.maps += v[i].maps;
			sum.trials += v[i].trials;
			sum.samples += v[i].samples;
			sum.unsent += v[i].unsent;
			sum.unfollowed += v[i].unfollowed;
			sum.unknown += v[i].unknown;
		}
	free(v);
	return sum;
}

/* What wp_heap_probe_each_mapped was given. */
struct wp_heap_each_mapped {
	void (*each)(void *ctx, const struct wp_heap_mapped *range);
	void *ctx;
};

static int take_mapped(void *ctx, void *data, size_t size)
{
	const struct wp_heap_probe *probe = ctx;

	if (size >= sizeof(struct wp_heap_mapped))
		probe->each_mapped->each(probe->each_mapped->ctx, data);
	return 0;
}

void wp_heap_probe_each_mapped(struct wp_heap_probe *probe,
			       void (*each)(void *ctx,
					    const struct wp_heap_mapped *range),
			       void *ctx)
{
	const struct wp_heap_each_mapped given = { each, ctx };

	if (!probe->mapped)
		probe->mapped = ring_buffer__new(map_of(probe, "mapped"),
						 take_mapped, probe, NULL);
	probe->each_mapped = &given;
	if (probe->mapped)
		ring_buffer__consume(probe->mapped);
	probe->each_mapped = NULL;
}

int wp_heap_probe_each_live(struct wp_heap_probe *probe,
			    void (*each)(void *ctx, uint64_t id), void *ctx)
{
	enum { BATCH = 4096 };
	uint64_t *keys = calloc(2 * BATCH, sizeof(*keys)), *ids = keys + BATCH;
	uint32_t at = 0, n;
	bool first = true, more = keys != NULL;
	int rc = keys ? 0 : -ENOMEM;

	while (more) {
		n = BATCH;
		more = !bpf_map_lookup_batch(probe->live, first ? NULL : &at,
					     &at, keys, ids, &n, NULL);
		if (!more && errno != ENOENT)
			rc = -errno;
		for (uint32_t i = 0; !rc && i < n; i++)
			each(ctx, ids[i]);
		first = false;
		more = more && !rc;
	}
	free(keys);
	return rc;
}

void wp_heap_probe_close(struct wp_heap_probe *probe)
{
	if (!probe)
		return;
	ring_buffer__free(probe->mapped);
	if (probe->returns.v)
		munmap((void *)(uintptr_t)probe->returns.v,
		       returns_bytes(probe->returns.nrings));
	wp_heap_links_close(&probe->links);
	free(probe);
}
#endif
