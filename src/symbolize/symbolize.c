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

#include "namer.h"
#include "wallprof/base_name.h"
#include "wallprof/procfs.h"
#include "wallprof/state.h"

/* Deepest frame that is looked at for what a thread waits for. */
enum { WAIT_FRAMES_MAX = 64 };

struct job {
	struct wp_profile *profile;
	/* Of each of the profile's mappings but the first: what the namer is
	 * told, with a path of its own, and the image, NULL for none. */
	struct wp_namer_module *modules;
	struct wp_elf_image **images;
	uint32_t nmodules;
	/* Locations with an address, order[0..naddresses), by module. */
	uint32_t *order;
	struct wp_namer_address *addresses;
	uint32_t naddresses;
};

/* The target's own number for itself. */
static int own_pid(const struct wp_process *process)
{
	int32_t pids[WP_PID_LEVELS];
	char path[32];
	int n;

	/* proc_fd may be that of another thread. */
	snprintf(path, sizeof(path), "%d/status", process->pid);
	n = wp_proc_nspid_read(pids, process->task_fd, path);
	return n > 0 ? pids[n - 1] : process->pid;
}

/* /tmp is everybody's: a map counts only if the target's owner or root wrote
 * it.  Never through a symbolic link, never a fifo.
 */
static int open_perf_map(const struct wp_process *process)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "tmp/perf-%d.map", own_pid(process));
	fd = openat(process->root_fd, path,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (st.st_uid != process->uid && st.st_uid != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int add_module(void *ctx, uint32_t mapping, struct wp_elf_image *image)
{
	struct job *job = ctx;
	const struct wp_profile_mapping *m = &job->profile->mappings[mapping];
	struct wp_symbol_module module = {
		.start_avma = m->start_avma,
		.end_avma = m->end_avma,
		.off = m->off,
		.path = strdup(wp_profile_str(job->profile, m->path)),
		.fd = image ? image->fd : -1,
	};

	if (!module.path)
		return -ENOMEM;
	if (image && image->fd < 0 && !strcmp(module.path, "[vdso]")) {
		module.elf = wp_elf_image_at(image, 0, image->size);
		module.elf_len = module.elf ? (size_t)image->size : 0;
	}
	job->images[job->nmodules] = image;
	job->modules[job->nmodules++] = (struct wp_namer_module){ mapping,
								  module };
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

/* Locations with an address, by module: so each file is read once. */
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

static void list_addresses(struct job *job)
{
	const struct wp_profile *profile = job->profile;
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile->nlocations; i++)
		if (!profile->locations[i].text)
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

static int prepare(struct job *job, struct wp_sampler *sampler)
{
	size_t nmappings = job->profile->nmappings;
	size_t nlocations = job->profile->nlocations;

	job->modules = calloc(nmappings + 1, sizeof(*job->modules));
	job->images = calloc(nmappings + 1, sizeof(*job->images));
	job->order = calloc(nlocations + 1, sizeof(*job->order));
	job->addresses = calloc(nlocations + 1, sizeof(*job->addresses));
	if (!job->modules || !job->images || !job->order || !job->addresses)
		return -ENOMEM;
	list_addresses(job);
	return wp_sampler_each_module(sampler, add_module, job);
}

static void clear(struct job *job)
{
	for (uint32_t i = 0; i < job->nmodules; i++)
		free((char *)job->modules[i].module.path);
	free(job->modules);
	free(job->images);
	free(job->order);
	free(job->addresses);
}

static int take_answer(void *ctx, uint32_t index,
		       const struct wp_symbol_line *lines, uint32_t n)
{
	const struct job *job = ctx;

	return add_lines(job->profile, job->order[index], lines, n);
}

static void take_has(void *ctx, uint32_t module,
		     const struct wp_symbol_has *has)
{
	const struct job *job = ctx;
	struct wp_profile_mapping *m = &job->profile->mappings[module];

	m->has_functions = has->functions;
	m->has_filenames = has->filenames;
	m->has_line_numbers = has->line_numbers;
	m->has_inline_frames = has->inline_frames;
}

/* "libfoo.so+0x1234": what can be said without reading the file. */
static void name_place(const struct job *job,
		       const struct wp_profile_location *loc, char *buf,
		       size_t size)
{
	const struct wp_symbol_module *m = NULL;
	uint64_t at = loc->avma;

	/* Mapping 0 has none. */
	if (loc->mapping - 1 < job->nmodules)
		m = &job->modules[loc->mapping - 1].module;
	if (m && job->images[loc->mapping - 1]) {
		at = at - m->start_avma + m->off;
		if (!wp_elf_image_svma(job->images[loc->mapping - 1], at, &at))
			at = loc->avma - m->start_avma + m->off;
	}
	snprintf(buf, size, "%s%s0x%" PRIx64,
		 !m	  ? "" :
		 *m->path ? wp_base_name(m->path) :
			    "[anon]",
		 m ? "+" : "", at);
}

/* Addresses that got no answer. */
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
		name_place(job, loc, name, sizeof(name));
		rc = add_lines(profile, job->order[i], &plain, 1);
		profile->counters.unnamed++;
	}
	return rc;
}

static int name_all(struct job *job, const struct wp_process *process,
		    const volatile sig_atomic_t *hurry)
{
	char root[32];
	/* The target's own files first: a container's, if it is in one. */
	const char *const roots[] = { process->root_fd >= 0 ? root : "", "" };
	struct wp_namer namer = {
		.modules = job->modules,
		.nmodules = job->nmodules,
		.addresses = job->addresses,
		.naddresses = job->naddresses,
		.roots = roots,
		.nroots = 2,
		.perf_map_fd = open_perf_map(process),
		.hurry = hurry,
		.child = wp_namer_child,
		.answer = take_answer,
		.has = take_has,
		.ctx = job,
	};
	struct wp_namer_end end;
	int rc;

	snprintf(root, sizeof(root), "/proc/self/fd/%d", process->root_fd);
	rc = wp_namer_run(&namer, &end);
	if (namer.perf_map_fd >= 0)
		close(namer.perf_map_fd);
	if (!rc)
		rc = name_rest(job);
	/* Who asked for it to end knows. */
	if (end.hurried)
		job->profile->counters.unnamed = 0;
	else
		job->profile->meta.unnamed_why = wp_intern_add_str(
			&job->profile->strings, end.why);
	return rc;
}

/* The named frames of STACK, innermost first, inlined ones too. */
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

/* /proc cannot tell a mutex from a condition variable; the stack can. */
static void refine_waits(struct wp_profile *profile, struct wp_sample_set *set)
{
	struct wp_named_frame frames[WAIT_FRAMES_MAX];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_sample_key *key = &set->samples[i].key;
		size_t n;

		if (key->wait != WP_WAIT_FUTEX)
			continue;
		n = name_frames(profile, &profile->stacks[key->stack], frames,
				WAIT_FRAMES_MAX);
		key->wait = (uint8_t)wp_state_refine_stack(WP_WAIT_FUTEX,
							   frames, n);
	}
}

/* Of the waits whose holder is not recorded those that are for no lock: their
 * futex could not tell. */
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

int wp_symbolize(struct wp_profile *profile, struct wp_sampler *sampler,
		 const struct wp_process *process,
		 const volatile sig_atomic_t *hurry)
{
	struct job job = { .profile = profile };
	int rc = wp_profile_locate(profile);

	if (!rc)
		rc = prepare(&job, sampler);
	if (!rc)
		rc = name_all(&job, process, hurry);
	clear(&job);
	for (int kind = 0; !rc && kind < WP_NPROFILE_KINDS; kind++)
		refine_waits(profile, &profile->sets[kind]);
	drop_other_waits(profile);
	return rc;
}
