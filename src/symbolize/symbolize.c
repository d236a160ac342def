/* SPDX-License-Identifier: Apache-2.0 */
/* symbolize.c - see symbolize.h. */
#include "wallprof/symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cached_names.h"
#include "exe_name.h"
#include "lookups.h"
#include "debuginfod.h"
#include "name_cache.h"
#include "namer.h"
#include "unread_files.h"
#include "wallprof/base_name.h"
#include "wallprof/budget.h"
#include "wallprof/elf_image.h"
#include "wallprof/state.h"

/* Number of frames, innermost first, that decide a wait reason. */
enum { WAIT_FRAMES_MAX = 64 };

struct job {
	struct wp_profile *profile;
	/* What is named, and where its files are. */
	const struct wp_lookups *lookups;
	uint32_t group;
	/* Of what kept_bytes counts. */
	uint64_t max_bytes;
	/* The profile's mappings but the first, each with a path of its own:
	 * modules[0..nmodules), owned. */
	struct wp_namer_module *modules;
	uint32_t nmodules;
	/* Indices of the locations that have no name yet, and their addresses:
	 * x[0..naddresses), by module; owned. */
	uint32_t *order;
	struct wp_namer_address *addresses;
	uint32_t naddresses;
};

/* Open /tmp/perf-PID.map; -1 for none.  Anyone may write to /tmp: the file
 * counts only if the target's owner or root owns it, and if it is neither a
 * symbolic link nor a fifo. */
static int open_perf_map(const struct wp_symbol_source *source)
{
	char name[64];
	struct stat st;
	/* It may be a link, which leads into the target's root. */
	int dir_fd = wp_io_find_beneath(source->root_fd, "tmp"), fd;

	if (dir_fd < 0)
		return -1;
	snprintf(name, sizeof(name), "perf-%d.map", source->pid_inside);
	fd = openat(dir_fd, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	close(dir_fd);
	if (fd >= 0)
		fd = wp_io_reopen_regular(fd);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || (st.st_uid != source->uid && st.st_uid != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int add_module(struct job *job, uint32_t mapping)
{
	const struct wp_profile_mapping *m = &job->profile->mappings[mapping];
	struct wp_symbol_module module = {
		.start_avma = m->start_avma,
		.end_avma = m->end_avma,
		.off = m->off,
		.bias = m->bias,
		.is_data = m->is_data,
		.path = strdup(wp_profile_str(job->profile, m->path)),
	};

	if (!module.path)
		return -ENOMEM;
	/* The child cannot read the target's memory. */
	if (m->image && !wp_elf_image_has_changed(m->image) &&
	    (m->image->fd >= 0 ||
	     (!strcmp(module.path, "[vdso]") && wp_elf_image_whole(m->image))))
		module.image = m->image;
	job->modules[job->nmodules++] = (struct wp_namer_module){ mapping,
								  module,
								  m->is_lost };
	return 0;
}

static int add_lines(struct wp_profile *profile, uint32_t loc,
		     const struct wp_symbol_line *lines, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct wp_profile_function f = {
			.name = wp_intern_add_str(&profile->strings,
						  lines[i].function),
			.system_name = wp_intern_add_str(&profile->strings,
							 lines[i].system_name),
			.file = wp_intern_add_str(&profile->strings,
						  lines[i].file),
			.start_line = lines[i].start_line,
		};
		struct wp_profile_line line = { 0, lines[i].line };
		int rc;

		line.function = wp_profile_add_function(profile, &f);
		if (line.function == UINT32_MAX)
			return -ENOMEM;
		rc = wp_profile_add_line(profile, loc, line);
		if (rc)
			return rc;
	}
	return 0;
}

/* By module, as the namer has the files of one module open at a time. */
static int compare_locations(const void *a, const void *b, void *ctx)
{
	const struct wp_profile *profile = ctx;
	const struct wp_profile_location *x, *y;

	x = &profile->locations[*(const uint32_t *)a];
	y = &profile->locations[*(const uint32_t *)b];
	if (x->mapping != y->mapping)
		return x->mapping < y->mapping ? -1 : 1;
	return (x->avma > y->avma) - (x->avma < y->avma);
}

/* Kernel code, and what is in no mapping, goes with the first group. */
static uint32_t group_of(const struct wp_profile *profile,
			 const struct wp_lookups *lookups, uint32_t mapping)
{
	return mapping < profile->nmappings ? lookups->group_of[mapping] : 0;
}

static void list_addresses(struct job *job)
{
	const struct wp_profile *profile = job->profile;
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile->nlocations; i++)
		if (!profile->locations[i].nlines &&
		    group_of(profile, job->lookups,
			     profile->locations[i].mapping) == job->group)
			job->order[n++] = i;
	qsort_r(job->order, n, sizeof(*job->order), compare_locations,
		job->profile);
	for (uint32_t i = 0; i < n; i++) {
		const struct wp_profile_location *loc =
			&profile->locations[job->order[i]];

		job->addresses[i] = (struct wp_namer_address){ loc->mapping,
							       loc->avma };
	}
	job->naddresses = n;
}

static int prepare(struct job *job)
{
	size_t nmappings = job->profile->nmappings;
	size_t nlocations = job->profile->nlocations;
	int rc = 0;

	job->modules = calloc(nmappings + 1, sizeof(*job->modules));
	job->order = calloc(nlocations + 1, sizeof(*job->order));
	job->addresses = calloc(nlocations + 1, sizeof(*job->addresses));
	if (!job->modules || !job->order || !job->addresses)
		return -ENOMEM;
	list_addresses(job);
	/* Mapping 0 stands for none. */
	for (uint32_t i = 1; i < nmappings && !rc; i++)
		if (group_of(job->profile, job->lookups, i) == job->group)
			rc = add_module(job, i);
	return rc;
}

static void clear(struct job *job)
{
	for (uint32_t i = 0; i < job->nmodules; i++)
		free((char *)job->modules[i].module.path);
	free(job->modules);
	free(job->order);
	free(job->addresses);
}

/* What names are in PROFILE. */
static uint64_t kept_bytes(const struct wp_profile *profile)
{
	return profile->strings.text_len +
	       profile->strings.len * sizeof(*profile->strings.off) +
	       profile->nfunctions * sizeof(*profile->functions) +
	       profile->nlines * sizeof(*profile->lines);
}

/* 0, -ENOMEM, or -ENOSPC: no more names are to be kept. */
static int add_answer(void *ctx, uint32_t index,
		      const struct wp_symbol_line *lines, uint32_t n)
{
	const struct job *job = ctx;

	if (kept_bytes(job->profile) > job->max_bytes)
		return -ENOSPC;
	return add_lines(job->profile, job->order[index], lines, n);
}

static void set_has(void *ctx, uint32_t module, const struct wp_symbol_has *has)
{
	const struct job *job = ctx;
	struct wp_profile_mapping *m = &job->profile->mappings[module];

	m->has_functions = has->functions;
	m->has_filenames = has->filenames;
	m->has_line_numbers = has->line_numbers;
	m->has_inline_frames = has->inline_frames;
	if (has->dwarf_loss > m->dwarf_loss)
		m->dwarf_loss = (uint8_t)has->dwarf_loss;
}

/* "libfoo.so+0x1234": the name of an address without symbols. */
static void name_place(const struct wp_profile *profile,
		       const struct wp_profile_location *loc, char *buf,
		       size_t size)
{
	const struct wp_profile_mapping *m;
	uint64_t at = loc->avma;
	const char *path;

	/* The kernel has no mapping here. */
	if (loc->mapping == WP_MAPPING_NONE ||
	    loc->mapping >= profile->nmappings) {
		snprintf(buf, size, "0x%" PRIx64, at);
		return;
	}
	m = &profile->mappings[loc->mapping];
	path = wp_profile_str(profile, m->path);
	if (m->image)
		at -= m->bias;
	else if (m->is_lost)
		at = at - m->start_avma + m->off;
	snprintf(buf, size, "%s+0x%" PRIx64,
		 *path ? wp_base_name(path) : "[anon]", at);
}

/* Name the addresses that got no answer. */
static int name_rest(struct job *job)
{
	struct wp_profile *profile = job->profile;
	char name[PATH_MAX + 32];
	int rc = 0;

	for (uint32_t i = 0; i < job->naddresses && !rc; i++) {
		const struct wp_profile_location *loc =
			&profile->locations[job->order[i]];
		struct wp_symbol_line plain = { name, name, "", 0, 0 };

		if (loc->nlines)
			continue;
		name_place(profile, loc, name, sizeof(name));
		rc = add_lines(profile, job->order[i], &plain, 1);
		profile->counters.unnamed++;
	}
	return rc;
}

static int run_namer(const struct wp_namer *namer, bool keeps_names,
		     struct wp_namer_end *end)
{
	int rc, dir_fd = keeps_names ? wp_name_cache_open() : -1;

	if (dir_fd < 0)
		return wp_namer_run(namer, end);
	rc = wp_cached_names_run(namer, dir_fd, end);
	close(dir_fd);
	return rc;
}

/* What a program has compiled first is at the beginning of its perf map. */
static void note_perf_map(struct wp_profile *profile, int fd)
{
	uint64_t *cut = &profile->counters.perf_map_cut;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) &&
	    (uint64_t)st.st_size > WP_PERF_MAP_BYTES_MAX + *cut)
		*cut = (uint64_t)st.st_size - WP_PERF_MAP_BYTES_MAX;
}

static int name_all(struct job *job, const volatile sig_atomic_t *interrupts)
{
	const struct wp_symbol_source *source =
		job->lookups->sources[job->group];
	struct wp_profile_meta *meta = &job->profile->meta;
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct wp_debuginfod servers = { 0 };
	char root[32];
	/* The target's root comes first: it may be a container's. */
	const char *const roots[] = { source->root_fd >= 0 ? root : "", "" };
	struct wp_namer namer = {
		.modules = job->modules,
		.nmodules = job->nmodules,
		.addresses = job->addresses,
		.naddresses = job->naddresses,
		.roots = roots,
		.nroots = 2,
		.perf_map_fd = open_perf_map(source),
		.servers = meta->servers_ns && urls && *urls ? &servers : NULL,
		.interrupts = interrupts,
		.child = wp_namer_child,
		.answer = add_answer,
		.has = set_has,
		.ctx = job,
	};
	struct wp_namer_end end;
	int rc;

	note_perf_map(job->profile, namer.perf_map_fd);
	snprintf(root, sizeof(root), "/proc/self/fd/%d", source->root_fd);
	wp_debuginfod_begin(&servers, meta->servers_ns, interrupts);
	rc = run_namer(&namer, meta->keeps_names, &end);
	wp_debuginfod_end(&servers);
	meta->servers_ns = servers.why ? 0 : servers.left_ns;
	if (servers.why)
		meta->no_servers = wp_intern_add_str(&job->profile->strings,
						     servers.why);
	if (namer.perf_map_fd >= 0)
		close(namer.perf_map_fd);
	if (rc == -ENOSPC) {
		snprintf(end.why, sizeof(end.why),
			 "the names took more than --max-memory lets them");
		rc = 0;
	}
	if (!rc)
		rc = name_rest(job);
	/* Who interrupted needs no reason. */
	if (end.interrupted)
		job->profile->counters.unnamed = 0;
	else if (end.why[0] || !job->profile->meta.unnamed_why)
		job->profile->meta.unnamed_why = wp_intern_add_str(
			&job->profile->strings, end.why);
	return rc;
}

/* Fill FRAMES[0..MAX) with the named frames of STACK, innermost first, inlined
 * ones included; returns their number. */
static size_t name_frames(const struct wp_profile *profile,
			  const struct wp_profile_stack *stack,
			  struct wp_named_frame *frames, size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i < stack->nlocs; i++) {
		const struct wp_profile_location *loc =
			&profile->locations[profile->loc_pool[stack->loc_first +
							      i]];
		const char *module = "";

		if (loc->mapping == WP_MAPPING_KERNEL)
			continue;
		if (loc->mapping != WP_MAPPING_NONE)
			module = wp_base_name(wp_profile_str(
				profile, profile->mappings[loc->mapping].path));
		for (uint32_t k = 0; k < loc->nlines && n < max; k++) {
			const struct wp_profile_function *f =
				&profile->functions
					 [profile->lines[loc->line_first + k]
						  .function];

			frames[n++] = (struct wp_named_frame){
				wp_profile_str(profile, f->system_name),
				wp_profile_str(profile, f->name), module
			};
		}
	}
	return n;
}

/* futex(2) is the wait for a mutex as for a condition variable: the functions
 * in the stack tell.  That its arguments are those of a join is a guess. */
void wp_symbolize_waits(const struct wp_profile *profile,
			struct wp_sample_set *set)
{
	struct wp_named_frame frames[WAIT_FRAMES_MAX];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_sample_key *key = &set->samples[i].key;
		size_t n;

		if ((key->wait != WP_WAIT_FUTEX && key->wait != WP_WAIT_JOIN) ||
		    key->stack >= profile->nlocated)
			continue;
		n = name_frames(profile, &profile->stacks[key->stack], frames,
				WAIT_FRAMES_MAX);
		key->wait = (uint8_t)wp_state_refine_stack(key->wait, frames,
							   n);
	}
}

/* Of the mutex profile's waits without a recorded holder, drop those that
 * turned out not to be for a lock. */
static void drop_other_waits(struct wp_profile *profile)
{
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_MUTEX];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_profile_sample *s = &set->samples[i];

		if (profile->stacks[s->key.stack].end == WP_END_HOLDER &&
		    s->key.wait != WP_WAIT_LOCK)
			s->count = s->wall_ns = 0;
	}
}

static int name_group(struct wp_profile *profile,
		      const struct wp_lookups *lookups, uint32_t group,
		      uint64_t max_bytes,
		      const volatile sig_atomic_t *interrupts)
{
	struct job job = { .profile = profile,
			   .lookups = lookups,
			   .group = group,
			   .max_bytes = max_bytes };
	int rc = prepare(&job);

	if (!rc && job.naddresses)
		rc = name_all(&job, interrupts);
	clear(&job);
	return rc;
}

/* Of each group: does an address of it want a name?  Each process has a group, and most
 * have none.  NULL without memory; the caller frees. */
static bool *find_wanted(const struct wp_profile *profile,
			 const struct wp_lookups *lookups)
{
	bool *wanted = calloc((size_t)lookups->n + 1, sizeof(*wanted));

	for (uint32_t i = 0; i < profile->nlocations && wanted; i++)
		if (!profile->locations[i].nlines)
			wanted[group_of(profile, lookups,
					profile->locations[i].mapping)] = true;
	return wanted;
}

int wp_symbolize_sources(struct wp_profile *profile,
			 const struct wp_symbol_source *sources, size_t n,
			 const volatile sig_atomic_t *interrupts)
{
	struct wp_lookups lookups = { 0 };
	int rc = wp_profile_locate(profile);
	bool *wanted = NULL;
	/* There is no room for more stacks than those that the names are of. */
	uint64_t max_bytes = kept_bytes(profile) +
			     wp_budget_share(WP_BUDGET_STACKS);

	if (!rc)
		rc = wp_lookups_init(&lookups, profile, sources, n);
	if (!rc) {
		wanted = find_wanted(profile, &lookups);
		rc = wanted ? 0 : -ENOMEM;
	}
	for (uint32_t group = 0; group < lookups.n && !rc; group++)
		if (wanted[group])
			rc = name_group(profile, &lookups, group, max_bytes,
					interrupts);
	free(wanted);
	wp_lookups_clear(&lookups);
	if (!rc)
		rc = wp_unread_files_count(profile);
	for (int kind = 0; !rc && kind < WP_NPROFILE_KINDS; kind++)
		wp_symbolize_waits(profile, &profile->sets[kind]);
	drop_other_waits(profile);
	return rc;
}

int wp_symbolize(struct wp_profile *profile, const struct wp_process *process,
		 const volatile sig_atomic_t *interrupts)
{
	struct wp_symbol_source source = wp_symbol_source_of(process);
	int rc = wp_exe_name_set(profile, process);

	return rc ? rc : wp_symbolize_sources(profile, &source, 1, interrupts);
}
