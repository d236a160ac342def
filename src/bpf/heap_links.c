/* SPDX-License-Identifier: Apache-2.0 */
/* heap_links.c - three ways to have a BPF program run at calls of functions: see
 * heap_priv.h.
 *
 * A session and a multi link have many sites, whose kinds of call are their cookies.
 * Perf events, which older kernels have, are of one site each, and have no cookie: there
 * is a program for each kind.
 */
#ifdef WP_HAVE_BPF
#include "heap_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/vec.h"

enum {
	/* linux/bpf.h, enum bpf_attach_type: BPF_TRACE_UPROBE_MULTI and
	 * BPF_TRACE_UPROBE_SESSION, missing in older headers. */
	ATTACH_MULTI = 48,
	ATTACH_SESSION = 57,
	/* BPF_F_UPROBE_MULTI_RETURN. */
	MULTI_RETURN = 1,
};
/* The kernel gives up to check a program when a signal arrives: it is given again after
 * AGAIN_NS, until AGAIN_MAX_NS. */
#define AGAIN_NS (10 * WP_NS_PER_MS)
#define AGAIN_MAX_NS (5 * WP_NS_PER_S)

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

/* Programs of heap_probe.bpf.c for perf events, by kind of call. */
static const char *const perf_programs[WP_HEAP_NCALLS] = {
	[WP_HEAP_MALLOC] = "wp_malloc",
	[WP_HEAP_CALLOC] = "wp_calloc",
	[WP_HEAP_REALLOC] = "wp_realloc",
	[WP_HEAP_REGROW] = "wp_realloc",
	[WP_HEAP_NEW] = "wp_new",
	[WP_HEAP_NEW_N] = "wp_new_n",
	[WP_HEAP_NEW_REALLOC] = "wp_new_realloc",
	[WP_HEAP_MEMALIGN] = "wp_memalign",
	[WP_HEAP_POSIX_MEMALIGN] = "wp_posix_memalign",
	[WP_HEAP_FREE] = "wp_free",
	[WP_HEAP_MMAP] = "wp_mmap",
	[WP_HEAP_MREMAP] = "wp_mremap",
	[WP_HEAP_MPROTECT] = "wp_mprotect",
	[WP_HEAP_SBRK] = "wp_sbrk",
	[WP_HEAP_MUNMAP] = "wp_munmap",
	[WP_HEAP_TRIAL] = "wp_trial",
};

const char *wp_heap_tier_name(enum wp_heap_tier tier)
{
	static const char *const names[WP_HEAP_NTIERS] = {
		[WP_HEAP_TIER_AUTO] = "auto",
		[WP_HEAP_TIER_SESSION] = "session",
		[WP_HEAP_TIER_MULTI] = "multi",
		[WP_HEAP_TIER_PERF] = "perf",
	};

	return names[tier];
}

/* Choose the programs of TIER, and what they are for; WITH_AREAS: also those for
 * mprotect and mremap, which kernels before Linux 5.17 refuse. */
static void choose_programs(struct bpf_object *object, enum wp_heap_tier tier,
			    bool with_areas)
{
	enum {
		BY_SESSION = 1 << WP_HEAP_TIER_SESSION,
		BY_MULTI = 1 << WP_HEAP_TIER_MULTI,
		BY_PERF = 1 << WP_HEAP_TIER_PERF
	};
	static const struct {
		const char *section;
		unsigned int tiers;
		uint32_t type;
	} sections[] = {
		{ "kprobe/session", BY_SESSION, ATTACH_SESSION },
		{ "kprobe/multi", BY_SESSION | BY_MULTI, ATTACH_MULTI },
		{ "kprobe/perf", BY_PERF, 0 },
		{ "kprobe/areas", BY_PERF, 0 },
	};
	struct bpf_program *p;

	bpf_object__for_each_program(p, object)
	{
		const char *section = bpf_program__section_name(p);
		bool is_wanted = with_areas || strcmp(section, "kprobe/areas");

		for (size_t i = 0; i < sizeof(sections) / sizeof(*sections);
		     i++) {
			if (strcmp(section, sections[i].section))
				continue;
			is_wanted &= sections[i].tiers >> tier & 1;
			bpf_program__set_expected_attach_type(
				p, (enum bpf_attach_type)sections[i].type);
		}
		bpf_program__set_autoload(p, is_wanted);
	}
}

uint32_t wp_heap_links_count_rings(const struct wp_heap_links *links)
{
	int ncpus = libbpf_num_possible_cpus();

	return WP_HEAP_NOTES_RETURNS && links->tier != WP_HEAP_TIER_SESSION &&
			       ncpus > 0 ?
		       (uint32_t)ncpus :
		       0;
}

static int load_once(struct wp_heap_links *links, bool with_areas)
{
	struct bpf_object_open_opts options;
	uint32_t nrings = wp_heap_links_count_rings(links);
	int rc;

	/* libbpf wants the padding at the end of its options zero too. */
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.object_name = "wallprof";
	links->object = bpf_object__open_mem(
		wp_heap_probe_object,
		(size_t)(wp_heap_probe_object_end - wp_heap_probe_object),
		&options);
	if (!links->object)
		return -errno;
	choose_programs(links->object, links->tier, with_areas);
	/* Before Linux 6.1 programs that may run anywhere want maps whose elements
	 * are made beforehand. */
	if (links->tier == WP_HEAP_TIER_PERF)
		bpf_map__set_map_flags(
			bpf_object__find_map_by_name(links->object, "live"), 0);
	if (nrings)
		bpf_map__set_max_entries(
			bpf_object__find_map_by_name(links->object, "returns"),
			nrings * WP_HEAP_RETURNS);
	rc = bpf_object__load(links->object);
	if (rc) {
		bpf_object__close(links->object);
		links->object = NULL;
	}
	return rc;
}

int wp_heap_links_load(struct wp_heap_links *links, enum wp_heap_tier tier)
{
	const struct timespec wait = { .tv_nsec = AGAIN_NS };
	uint64_t end_ns = wp_clock_ns() + AGAIN_MAX_NS;
	bool with_areas = true;
	int rc;

	libbpf_set_print(NULL);
	links->tier = tier;
	for (;;) {
		rc = load_once(links, with_areas);
		if (rc == -EAGAIN && wp_clock_ns() < end_ns)
			nanosleep(&wait, NULL);
		else if (rc && rc != -EAGAIN && rc != -EPERM && rc != -ENOMEM &&
			 with_areas && tier == WP_HEAP_TIER_PERF)
			with_areas = false;
		else
			break;
	}
	/* What is not permitted is EPERM; this is what is wrong with a program. */
	return rc == -EACCES ? -EINVAL : rc;
}

static int program_fd(const struct wp_heap_links *links, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(links->object,
								 name);

	return p ? bpf_program__fd(p) : -1;
}

bool wp_heap_links_can(const struct wp_heap_links *links,
		       enum wp_heap_call call)
{
	return links->tier != WP_HEAP_TIER_PERF ||
	       (perf_programs[call] &&
		program_fd(links, perf_programs[call]) >= 0);
}

static bool has_room(const struct wp_heap_links *links)
{
	return links->n < sizeof(links->fds) / sizeof(*links->fds);
}

/* Remember the N sites of the file at PATH.  0 or -errno. */
static int add_file(struct wp_heap_links *links, const char *path,
		    const struct wp_heap_site *sites, size_t n)
{
	struct wp_heap_file *f;

	if (WP_VEC_ROOM(links->files, links->nfiles, links->cap_files, 1))
		return -ENOMEM;
	f = &links->files[links->nfiles];
	f->fd = open(path, O_PATH | O_CLOEXEC);
	if (f->fd < 0)
		return -errno;
	links->nfiles++;
	for (f->n = 0; f->n < n && f->n < WP_HEAP_SITES_MAX; f->n++)
		f->offsets[f->n] = sites[f->n].off;
	return 0;
}

/* The kernel looks at all processes that have a file when a probe on it is removed, any
 * one, and takes the breakpoint out of those that no other is for (kernel/events/
 * uprobes.c, register_for_each_vma). */
void wp_heap_links_spare_children(struct wp_heap_links *links, pid_t pid)
{
	for (size_t i = 0; i < links->nfiles; i++) {
		char path[40];
		struct multi_attr attr = {
			.prog_fd = (uint32_t)program_fd(links, "wp_nothing"),
			.attach_type = ATTACH_MULTI,
			.path = (uintptr_t)path,
			.offsets = (uintptr_t)links->files[i].offsets,
			.cnt = links->files[i].n,
			.pid = (uint32_t)pid,
		};
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%d",
			 links->files[i].fd);
		fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr,
				  sizeof(attr));
		if (fd >= 0)
			close(fd);
	}
}

/* A link: PROGRAM at functions whose return is wanted, at those where it is not, or at
 * both. */
struct link_kind {
	const char *program;
	uint32_t type, flags;
	bool at_returning, at_others;
};

/* Link the N sites as KIND says. */
static int add_multi(struct wp_heap_links *links, pid_t pid, const char *path,
		     const struct wp_heap_site *sites, size_t n,
		     const struct link_kind *kind)
{
	uint64_t offsets[WP_HEAP_SITES_MAX], cookies[WP_HEAP_SITES_MAX];
	struct multi_attr attr = {
		.prog_fd = (uint32_t)program_fd(links, kind->program),
		.attach_type = kind->type,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.multi_flags = kind->flags,
		.pid = (uint32_t)pid,
	};
	int fd;

	for (size_t i = 0; i < n && attr.cnt < WP_HEAP_SITES_MAX; i++) {
		if (wp_heap_call_returns_memory(sites[i].call) ?
			    !kind->at_returning :
			    !kind->at_others)
			continue;
		offsets[attr.cnt] = sites[i].off;
		cookies[attr.cnt++] =
			sites[i].call == WP_HEAP_REGROW &&
					links->tier != WP_HEAP_TIER_SESSION ?
				WP_HEAP_REALLOC :
				sites[i].call;
	}
	if (!attr.cnt)
		return 0;
	if (!has_room(links))
		return -EMFILE;
	fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (fd < 0)
		return -errno;
	links->fds[links->n++] = fd;
	return 0;
}

/* The number behind PREFIX in the file NAME of the uprobe events, or -errno. */
static int read_number(const char *name, const char *prefix)
{
	char path[80], text[32];
	size_t n = strlen(prefix);
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/uprobe/%s",
		 name);
	len = wp_io_read_at(AT_FDCWD, path, text, sizeof(text));
	if (len < 0)
		return (int)len;
	return strncmp(text, prefix, n) ? -EBADMSG :
					  (int)strtol(text + n, NULL, 10);
}

/* Probe SITE, or RETURNS of the function there, by the program PROGRAM. */
static int add_event(struct wp_heap_links *links, pid_t pid, const char *path,
		     const struct wp_heap_site *site, int program, bool returns)
{
	int type = read_number("type", ""),
	    bit = read_number("format/retprobe", "config:"), fd, rc = 0;
	struct perf_event_attr attr = {
		.type = (uint32_t)type,
		.size = sizeof(attr),
		.config = returns ? 1ull << (bit & 63) : 0,
		.uprobe_path = (uintptr_t)path,
		.probe_offset = site->off,
	};

	if (type < 0 || bit < 0)
		return type < 0 ? type : bit;
	if (!has_room(links))
		return -EMFILE;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1,
			  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* It is the program of the probe, whichever of the process's threads has
	 * come there, as long as PID lives: by that the kernel knows its memory
	 * (kernel/trace/trace_uprobe.c, __uprobe_perf_filter). */
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program))
		rc = -errno;
	links->fds[links->n++] = fd;
	return rc;
}

static bool is_realloc(const struct wp_heap_site *site)
{
	return site->call == WP_HEAP_REALLOC || site->call == WP_HEAP_REGROW;
}

static int add_events(struct wp_heap_links *links, pid_t pid, const char *path,
		      const struct wp_heap_site *sites, size_t n)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		if (!wp_heap_links_can(links, sites[i].call))
			continue;
		if (wp_heap_call_returns_memory(sites[i].call))
			rc = add_event(
				links, pid, path, &sites[i],
				program_fd(links, is_realloc(&sites[i]) ?
							  "wp_leave_realloc" :
							  "wp_leave"),
				true);
		if (!rc)
			rc = add_event(
				links, pid, path, &sites[i],
				program_fd(links, perf_programs[sites[i].call]),
				false);
	}
	return rc;
}

int wp_heap_links_add(struct wp_heap_links *links, pid_t pid, const char *path,
		      const struct wp_heap_site *sites, size_t n)
{
	/* A session probes the return of calls of processes that it is not for, if others
	 * probe these (kernel/trace/bpf_trace.c, uprobe_prog_run: 0, which asks for it).
	 * So operator new, which may throw, is in none. */
	static const struct link_kind kinds[WP_HEAP_NTIERS][2] = {
		[WP_HEAP_TIER_SESSION] = { { "wp_session", ATTACH_SESSION, 0,
					     true, false },
					   { "wp_enter", ATTACH_MULTI, 0, false,
					     true } },
		[WP_HEAP_TIER_MULTI] = { { "wp_return", ATTACH_MULTI,
					   MULTI_RETURN, true, false },
					 { "wp_enter", ATTACH_MULTI, 0, true,
					   true } },
	};
	size_t nlinks = links->n;
	int rc;

	if (links->tier == WP_HEAP_TIER_PERF)
		return add_events(links, pid, path, sites, n);
	rc = add_file(links, path, sites, n);
	if (rc)
		return rc;
	for (size_t i = 0; i < 2 && !rc; i++)
		rc = add_multi(links, pid, path, sites, n,
			       &kinds[links->tier][i]);
	if (!rc)
		return 0;
	while (links->n > nlinks)
		close(links->fds[--links->n]);
	close(links->files[--links->nfiles].fd);
	return rc;
}

void wp_heap_links_remove(struct wp_heap_links *links, bool wholly)
{
	while (links->n) {
		close(links->fds[--links->n]);
		if (!wholly && links->tier == WP_HEAP_TIER_PERF)
			return;
	}
	while (links->nfiles)
		close(links->files[--links->nfiles].fd);
}

void wp_heap_links_close(struct wp_heap_links *links)
{
	wp_heap_links_remove(links, true);
	free(links->files);
	links->files = NULL;
	links->cap_files = 0;
	bpf_object__close(links->object);
	links->object = NULL;
}
#else
/* A source has something in it (ISO C, 6.9). */
typedef int wp_heap_links_are_there;
#endif
