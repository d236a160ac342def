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

#ifdef WP_HAVE_BPF
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "wallprof/clock.h"

enum {
	/* linux/bpf.h, enum bpf_attach_type: BPF_TRACE_UPROBE_MULTI and
	 * BPF_TRACE_UPROBE_SESSION, missing in older headers. */
	ATTACH_MULTI = 48,
	ATTACH_SESSION = 57,
	/* BPF_F_UPROBE_MULTI_RETURN. */
	MULTI_RETURN = 1,
	LINKS_MAX = 64,
	SITES_MAX = 64,
	/* Calls whose cost is measured, and how often. */
	TRIALS = 500,
	TRIAL_ROUNDS = 5,
};

/* The part of union bpf_attr that BPF_LINK_CREATE of uprobe_multi reads. */
struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, unused;
};

/* The compiled program: the Makefile gives its directory. */
__asm__(".section .rodata\n"
	".balign 8\n"
	"wp_heap_probe_object:\n"
	".incbin \"heap_probe.o\"\n"
	"wp_heap_probe_object_end:\n"
	".previous\n");
extern const char wp_heap_probe_object[] __attribute__((visibility("hidden")));
extern const char wp_heap_probe_object_end[]
	__attribute__((visibility("hidden")));

struct each_mapped;

struct wp_heap_probe {
	pid_t pid;
	enum wp_heap_tier tier;
	/* Owned: the programs and their maps. */
	struct bpf_object *object;
	/* Descriptors, borrowed. */
	int live, counts, armed, output;
	/* Owned. */
	int links[LINKS_MAX];
	size_t nlinks;
	struct ring_buffer *mapped;
	/* Of the call of wp_heap_probe_each_mapped that is made now. */
	const struct each_mapped *each_mapped;
};

static int no_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static int program_fd(const struct wp_heap_probe *probe, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(probe->object,
								 name);

	return p ? bpf_program__fd(p) : -1;
}

/* Choose the programs of TIER, and what they are for. */
static void choose_programs(struct bpf_object *object, enum wp_heap_tier tier)
{
	bool session = tier == WP_HEAP_TIER_SESSION;
	struct bpf_program *p;

	bpf_object__for_each_program(p, object)
	{
		bool is_session = !strcmp(bpf_program__name(p), "wp_session");

		bpf_program__set_autoload(p, is_session == session);
		bpf_program__set_expected_attach_type(
			p, (enum bpf_attach_type)(is_session ? ATTACH_SESSION :
							       ATTACH_MULTI));
	}
}

static int load_tier(struct wp_heap_probe *probe, enum wp_heap_tier tier)
{
	struct bpf_object_open_opts options;
	libbpf_print_fn_t old = libbpf_set_print(no_print);
	int rc;

	/* libbpf wants the padding at the end of its options zero too. */
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.object_name = "wallprof";
	probe->object = bpf_object__open_mem(
		wp_heap_probe_object,
		(size_t)(wp_heap_probe_object_end - wp_heap_probe_object),
		&options);
	rc = probe->object ? 0 : -errno;
	if (!rc) {
		choose_programs(probe->object, tier);
		rc = bpf_object__load(probe->object);
	}
	libbpf_set_print(old);
	if (!rc) {
		probe->tier = tier;
		return 0;
	}
	bpf_object__close(probe->object);
	probe->object = NULL;
	return rc;
}

static int fill_thresholds(const struct wp_heap_probe *probe, uint64_t rate)
{
	int fd = bpf_object__find_map_fd_by_name(probe->object, "thresholds");

	for (uint32_t i = 0; i < WP_HEAP_CLASSES; i++) {
		uint32_t threshold = wp_heap_threshold(i, rate);

		if (bpf_map_update_elem(fd, &i, &threshold, 0))
			return -errno;
	}
	return 0;
}

static bool is_old_kernel(void)
{
	struct utsname name;
	unsigned int major, minor;

	return !uname(&name) &&
	       sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major < 6 || (major == 6 && minor < 6));
}

static int explain(int rc, struct wp_err *err)
{
	if (rc == -EPERM || rc == -EACCES)
		return wp_err_set(err, -EPERM,
				  "a heap profile wants BPF, which is not "
				  "permitted (run wallprof as root, or give it "
				  "CAP_BPF, CAP_PERFMON and "
				  "CAP_CHECKPOINT_RESTORE)");
	if (rc == -ENOMEM)
		return wp_err_set(err, rc, "no memory");
	return wp_err_set(
		err, -ENOTSUP,
		is_old_kernel() ?
			"a heap profile wants Linux 6.6 (BPF on many "
			"uprobes): %s" :
			"the kernel does not take the BPF program of a "
			"heap profile: %s",
		strerror(-rc));
}

int wp_heap_probe_open(struct wp_heap_probe **ret, pid_t pid, uint64_t rate,
		       enum wp_heap_tier tier, struct wp_err *err)
{
	struct wp_heap_probe *probe = calloc(1, sizeof(*probe));
	int rc;

	if (!probe)
		return wp_err_set(err, -ENOMEM, "no memory");
	probe->pid = pid;
	rc = tier == WP_HEAP_TIER_MULTI ?
		     -ENOTSUP :
		     load_tier(probe, WP_HEAP_TIER_SESSION);
	if (rc && rc != -EPERM && tier != WP_HEAP_TIER_SESSION)
		rc = load_tier(probe, WP_HEAP_TIER_MULTI);
	if (!rc)
		rc = fill_thresholds(probe, rate);
	if (rc) {
		wp_heap_probe_close(probe);
		return explain(rc, err);
	}
	probe->live = bpf_object__find_map_fd_by_name(probe->object, "live");
	probe->counts = bpf_object__find_map_fd_by_name(probe->object,
							"counts");
	probe->armed = bpf_object__find_map_fd_by_name(probe->object, "armed");
	probe->output = bpf_object__find_map_fd_by_name(probe->object,
							"output");
	*ret = probe;
	return 0;
}

enum wp_heap_tier wp_heap_probe_tier(const struct wp_heap_probe *probe)
{
	return probe->tier;
}

int wp_heap_probe_set_output(struct wp_heap_probe *probe, int cpu, int fd)
{
	return bpf_map_update_elem(probe->output, &cpu, &fd, 0) ? -errno : 0;
}

/* Probe the N sites at OFFSETS by PROGRAM: the link's descriptor or -errno. */
static int link_sites(pid_t pid, const char *program_path, int program,
		      const uint64_t *offsets, const uint64_t *cookies,
		      size_t n, uint32_t type, uint32_t flags)
{
	struct multi_attr attr = {
		.prog_fd = (uint32_t)program,
		.attach_type = type,
		.path = (uintptr_t)program_path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.cnt = (uint32_t)n,
		.multi_flags = flags,
		.pid = (uint32_t)pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}

static int add_link(struct wp_heap_probe *probe, pid_t pid, const char *path,
		    const struct wp_heap_site *sites, size_t n,
		    const char *program, bool returns)
{
	uint64_t offsets[SITES_MAX], cookies[SITES_MAX];
	size_t nsites = 0;
	int fd;

	for (size_t i = 0; i < n && nsites < SITES_MAX; i++) {
		if (returns && (sites[i].call == WP_HEAP_FREE ||
				sites[i].call == WP_HEAP_MUNMAP ||
				sites[i].call == WP_HEAP_MPROTECT))
			continue;
		offsets[nsites] = sites[i].off;
		cookies[nsites++] = sites[i].call;
	}
	if (!nsites)
		return 0;
	if (probe->nlinks == LINKS_MAX)
		return -EMFILE;
	fd = link_sites(pid, path, program_fd(probe, program), offsets, cookies,
			nsites,
			probe->tier == WP_HEAP_TIER_SESSION ? ATTACH_SESSION :
							      ATTACH_MULTI,
			returns ? MULTI_RETURN : 0);
	if (fd < 0)
		return fd;
	probe->links[probe->nlinks++] = fd;
	return 0;
}

/* As wp_heap_probe_attach, in process PID. */
static int attach(struct wp_heap_probe *probe, pid_t pid, const char *path,
		  const struct wp_heap_site *sites, size_t n)
{
	int rc;

	if (probe->tier == WP_HEAP_TIER_SESSION)
		return add_link(probe, pid, path, sites, n, "wp_session",
				false);
	rc = add_link(probe, pid, path, sites, n, "wp_leave", true);
	return rc ? rc :
		    add_link(probe, pid, path, sites, n, "wp_enter", false);
}

int wp_heap_probe_attach(struct wp_heap_probe *probe, const char *path,
			 const struct wp_heap_site *sites, size_t n,
			 struct wp_err *err)
{
	int rc = attach(probe, probe->pid, path, sites, n);

	/* A kernel without such links knows neither their type nor its error. */
	if (rc == -EPERM || rc == -EACCES || (rc == -EINVAL && is_old_kernel()))
		return explain(rc, err);
	return rc ? wp_err_set(err, rc, "cannot probe the allocator: %s",
			       strerror(-rc)) :
		    0;
}

/* What the probe of a trial stands on: it begins with a push, which the kernel
 * emulates, as most probed functions do. */
#if defined(__x86_64__)
__asm__(".text\n"
	".type wp_heap_trial, @function\n"
	"wp_heap_trial:\n"
	"	push %rbx\n"
	"	pop %rbx\n"
	"	ret\n"
	".size wp_heap_trial, . - wp_heap_trial\n");
void wp_heap_trial(void) __attribute__((visibility("hidden")));
#else
static __attribute__((noinline)) void wp_heap_trial(void)
{
	__asm__ volatile("");
}
#endif

/* CPU time of TRIALS calls: the least of some rounds. */
static uint64_t time_trials(void)
{
	uint64_t least = UINT64_MAX;

	for (int round = 0; round < TRIAL_ROUNDS; round++) {
		uint64_t begin = wp_clock_cpu_ns(), ns;

		for (int i = 0; i < TRIALS; i++)
			wp_heap_trial();
		ns = wp_clock_cpu_ns() - begin;
		if (ns < least)
			least = ns;
	}
	return least;
}

/* The offset of AVMA in the file of this program; false: not found. */
static bool own_offset(uint64_t avma, uint64_t *ret_off)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;

	while (maps && !found && getline(&line, &cap, maps) > 0) {
		unsigned long begin, end, off;

		found = sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &off) ==
				3 &&
			avma >= begin && avma < end;
		*ret_off = found ? avma - begin + off : 0;
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

uint64_t wp_heap_probe_cost_ns(struct wp_heap_probe *probe)
{
	struct wp_heap_site site = { .call = WP_HEAP_TRIAL };
	size_t nlinks = probe->nlinks;
	uint64_t bare, probed;

	if (!own_offset((uintptr_t)wp_heap_trial, &site.off))
		return 0;
	bare = time_trials();
	if (attach(probe, getpid(), "/proc/self/exe", &site, 1))
		return 0;
	probed = time_trials();
	while (probe->nlinks > nlinks)
		close(probe->links[--probe->nlinks]);
	return probed > bare ? (probed - bare) / TRIALS : 0;
}

int wp_heap_probe_arm(struct wp_heap_probe *probe)
{
	uint32_t zero = 0, one = 1;

	return bpf_map_update_elem(probe->armed, &zero, &one, 0) ? -errno : 0;
}

void wp_heap_probe_detach(struct wp_heap_probe *probe)
{
	while (probe->nlinks)
		close(probe->links[--probe->nlinks]);
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
			sum.samples += v[i].samples;
			sum.unsent += v[i].unsent;
			sum.unfollowed += v[i].unfollowed;
		}
	free(v);
	return sum;
}

/* What wp_heap_probe_each_mapped was given. */
struct each_mapped {
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
	const struct each_mapped given = { each, ctx };

	if (!probe->mapped)
		probe->mapped = ring_buffer__new(
			bpf_object__find_map_fd_by_name(probe->object,
							"mapped"),
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
	wp_heap_probe_detach(probe);
	ring_buffer__free(probe->mapped);
	bpf_object__close(probe->object);
	free(probe);
}
#endif
