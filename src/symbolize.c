/* symbolize.c - see symbolize.h. */
#include "symbolize.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wallprof/procfs.h"
#include "wallprof/state.h"
#include "wallprof/symbols.h"

/* Deepest frame that is looked at for what a thread waits for. */
enum { WAIT_FRAMES_MAX = 64 };

struct job {
	struct wp_profile *profile;
	struct wp_symbols *symbols;
	const volatile sig_atomic_t *hurry;
};

/* The target's own number for itself. */
static int own_pid(const struct wp_process *process)
{
	int32_t pids[WP_PID_LEVELS];
	char path[32], text[8192];
	ssize_t len;
	int n;

	/* proc_fd may be that of another thread. */
	snprintf(path, sizeof(path), "%d/status", process->pid);
	len = wp_io_read_at(process->task_fd, path, text, sizeof(text));
	n = len > 0 ? wp_proc_nspid_parse(pids, text, (size_t)len) : 0;

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
		.path = wp_profile_str(job->profile, m->path),
		.fd = image ? image->fd : -1,
	};

	if (image && image->fd < 0 && !strcmp(module.path, "[vdso]")) {
		module.elf = wp_elf_image_at(image, 0, image->size);
		module.elf_len = module.elf ? (size_t)image->size : 0;
	}
	return wp_symbols_add(job->symbols, mapping, &module);
}

static int add_lines(struct wp_profile *profile, uint32_t loc,
		     const struct wp_symbol_line *lines, int n)
{
	for (int i = 0; i < n; i++) {
		struct wp_profile_function f = {
			.name = wp_intern_add_str(&profile->strings,
						  lines[i].function),
			.system_name = wp_intern_add_str(
				&profile->strings, lines[i].system_name),
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

static int resolve(struct job *job, const uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct wp_profile_location *loc =
			&job->profile->locations[order[i]];
		struct wp_symbol_line plain;
		const struct wp_symbol_line *lines;
		char name[32];
		int rc;

		if (*job->hurry > 1) {
			snprintf(name, sizeof(name), "0x%llx",
				 (unsigned long long)loc->avma);
			plain = (struct wp_symbol_line){ name, name, "", 0, 0 };
			lines = &plain;
			rc = 1;
		} else {
			rc = wp_symbols_resolve(job->symbols, loc->mapping,
						loc->avma, &lines);
		}
		if (rc > 0)
			rc = add_lines(job->profile, order[i], lines, rc);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int resolve_all(struct job *job)
{
	struct wp_profile *profile = job->profile;
	uint32_t *order = reallocarray(NULL, profile->nlocations + 1,
				       sizeof(*order));
	uint32_t n = 0;
	int rc;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->nlocations; i++)
		if (!profile->locations[i].text)
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), compare_locations, profile);
	rc = resolve(job, order, n);
	free(order);
	for (uint32_t id = 1; id < profile->nmappings; id++) {
		struct wp_symbol_has has = wp_symbols_has(job->symbols, id);
		struct wp_profile_mapping *m = &profile->mappings[id];

		m->has_functions = has.functions;
		m->has_filenames = has.filenames;
		m->has_line_numbers = has.line_numbers;
		m->has_inline_frames = has.inline_frames;
	}
	return rc;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The named frames of STACK, innermost first, inlined ones too. */
static size_t name_frames(const struct wp_profile *profile,
			  const struct wp_profile_stack *stack,
			  struct wp_named_frame *frames, size_t max)
{
	size_t n = 0;

	for (uint32_t i = 0; i < stack->nlocs; i++) {
		const struct wp_profile_location *loc = &profile->locations[
			profile->loc_pool[stack->loc_first + i]];
		const char *module = "";

		if (loc->mapping == WP_MAPPING_KERNEL)
			continue;
		if (loc->mapping != WP_MAPPING_NONE)
			module = base_name(wp_profile_str(
				profile, profile->mappings[loc->mapping].path));
		for (uint32_t k = 0; k < loc->nlines && n < max; k++) {
			const struct wp_profile_function *f =
				&profile->functions[profile->lines[
					loc->line_first + k].function];

			frames[n++] = (struct wp_named_frame){
				wp_profile_str(profile, f->system_name),
				wp_profile_str(profile, f->name), module };
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

int wp_symbolize(struct wp_profile *profile, struct wp_sampler *sampler,
		 const struct wp_process *process,
		 const volatile sig_atomic_t *hurry)
{
	struct job job = { .profile = profile, .hurry = hurry };
	struct wp_symbol_options options = { .nroots = 2 };
	const char *roots[2];
	char root[32];
	int rc = wp_profile_locate(profile);

	if (rc)
		return rc;
	snprintf(root, sizeof(root), "/proc/self/fd/%d", process->root_fd);
	/* The target's own files first: a container's, if it is in one. */
	roots[0] = process->root_fd >= 0 ? root : "";
	roots[1] = "";
	options.roots = roots;
	options.perf_map_fd = open_perf_map(process);
	rc = wp_symbols_new(&job.symbols, &options);
	if (!rc)
		rc = wp_sampler_each_module(sampler, add_module, &job);
	if (!rc)
		rc = resolve_all(&job);
	wp_symbols_free(job.symbols);
	if (options.perf_map_fd >= 0)
		close(options.perf_map_fd);
	for (int kind = 0; kind < WP_NPROFILE_KINDS && !rc; kind++)
		refine_waits(profile, &profile->sets[kind]);
	return rc;
}
