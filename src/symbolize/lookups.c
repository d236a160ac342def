/* SPDX-License-Identifier: Apache-2.0 */
/* lookups.c - see lookups.h. */
#include "lookups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "wallprof/base_name.h"
#include "wallprof/process.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

/* The pid of PROCESS in its own PID namespace. */
static int pid_inside(const struct wp_process *process)
{
	int32_t pids[WP_PID_LEVELS];
	char path[32];
	int n;

	/* PROC_FD may be a non-leader thread's directory. */
	snprintf(path, sizeof(path), "%d/status", process->pid);
	n = wp_proc_nspid_read(pids, process->task_fd, path);
	return n > 0 ? pids[n - 1] : process->pid;
}

struct wp_symbol_source wp_symbol_source_of(const struct wp_process *process)
{
	return (struct wp_symbol_source){
		.root_fd = process->root_fd,
		.uid = process->uid,
		.pid_inside = pid_inside(process),
	};
}

bool wp_symbol_source_is_like(const struct wp_symbol_source *a,
			      const struct wp_symbol_source *b)
{
	struct stat x, y;

	if (a->root_fd == b->root_fd)
		return true;
	return a->root_fd >= 0 && b->root_fd >= 0 && !fstat(a->root_fd, &x) &&
	       !fstat(b->root_fd, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

static uint32_t add_group(struct wp_lookups *lookups,
			  const struct wp_symbol_source *source)
{
	if (WP_VEC_ROOM(lookups->sources, lookups->n, lookups->cap, 1))
		return UINT32_MAX;
	lookups->sources[lookups->n] = source;
	return lookups->n++;
}

/* The group of the files of SOURCE. */
static uint32_t find_files(struct wp_lookups *lookups,
			   const struct wp_symbol_source *source,
			   const uint32_t *files, uint32_t nfiles)
{
	for (uint32_t i = 0; i < nfiles; i++)
		if (wp_symbol_source_is_like(lookups->sources[files[i]],
					     source))
			return files[i];
	return UINT32_MAX;
}

struct groups {
	/* Of each source: the group of its files, and of its own code; UINT32_MAX:
	 * none so far. */
	uint32_t *of_files;
	uint32_t *of_code;
	/* Groups of files, [0..nfiles). */
	uint32_t *files;
	uint32_t nfiles;
};

static uint32_t group_of(struct wp_lookups *lookups, struct groups *g,
			 const struct wp_symbol_source *sources, size_t i,
			 bool has_file)
{
	uint32_t *of = has_file ? &g->of_files[i] : &g->of_code[i];

	if (*of != UINT32_MAX)
		return *of;
	if (has_file)
		*of = find_files(lookups, &sources[i], g->files, g->nfiles);
	if (*of == UINT32_MAX) {
		*of = add_group(lookups, &sources[i]);
		if (has_file && *of != UINT32_MAX)
			g->files[g->nfiles++] = *of;
	}
	return *of;
}

static bool is_file(const char *path)
{
	return *path == '/' && !wp_path_is_made(path);
}

static int set_groups(struct wp_lookups *lookups,
		      const struct wp_profile *profile, struct groups *g,
		      const struct wp_symbol_source *sources, size_t n)
{
	/* The kernel's code goes with the first. */
	if (group_of(lookups, g, sources, 0, true) == UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 1; i < profile->nmappings; i++) {
		const struct wp_profile_mapping *m = &profile->mappings[i];
		size_t at = m->process < n ? m->process : 0;
		bool has_file = n == 1 || m->image ||
				is_file(wp_profile_str(profile, m->path));

		lookups->group_of[i] = group_of(lookups, g, sources, at,
						has_file);
		if (lookups->group_of[i] == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

int wp_lookups_init(struct wp_lookups *lookups,
		    const struct wp_profile *profile,
		    const struct wp_symbol_source *sources, size_t n)
{
	struct groups g = {
		.of_files = calloc(n, sizeof(*g.of_files)),
		.of_code = calloc(n, sizeof(*g.of_code)),
		.files = calloc(n, sizeof(*g.files)),
	};
	int rc = -ENOMEM;

	*lookups = (struct wp_lookups){
		.group_of = calloc((size_t)profile->nmappings + 1,
				   sizeof(*lookups->group_of)),
	};
	if (g.of_files && g.of_code && g.files && lookups->group_of) {
		for (size_t i = 0; i < n; i++)
			g.of_files[i] = g.of_code[i] = UINT32_MAX;
		rc = set_groups(lookups, profile, &g, sources, n);
	}
	free(g.of_files);
	free(g.of_code);
	free(g.files);
	return rc;
}

void wp_lookups_clear(struct wp_lookups *lookups)
{
	free(lookups->sources);
	free(lookups->group_of);
	*lookups = (struct wp_lookups){ 0 };
}
