/* SPDX-License-Identifier: Apache-2.0 */
/* recorded.c - see recorded.h. */
#include "recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "wallprof/vec.h"

/* A descriptor for SOURCE's root directory that outlives its process; -1: none. */
static int keep_root(struct wp_recorded *recorded,
		     const struct wp_symbol_source *source)
{
	int fd;

	for (size_t i = 0; i < recorded->nroots; i++) {
		const struct wp_symbol_source kept = {
			.root_fd = recorded->roots[i]
		};

		if (wp_symbol_source_is_like(&kept, source))
			return recorded->roots[i];
	}
	if (source->root_fd < 0 ||
	    WP_VEC_ROOM(recorded->roots, recorded->nroots, recorded->cap_roots,
			1))
		return -1;
	fd = fcntl(source->root_fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		recorded->roots[recorded->nroots++] = fd;
	return fd;
}

int wp_recorded_note(struct wp_recorded *recorded,
		     const struct wp_process *process)
{
	struct wp_symbol_source source = wp_symbol_source_of(process);

	/* Further processes share entries of the profile, and what had ended before it
	 * could be recorded has left one. */
	while (recorded->nsources < recorded->profile->nprocesses) {
		if (WP_VEC_ROOM(recorded->sources, recorded->nsources,
				recorded->cap_sources, 1))
			return -ENOMEM;
		source.root_fd = keep_root(recorded, &source);
		recorded->sources[recorded->nsources++] = source;
	}
	return 0;
}

/* Close root directories of which no source is left. */
static void drop_roots(struct wp_recorded *recorded)
{
	size_t n = 0;

	for (size_t i = 0; i < recorded->nroots; i++) {
		int fd = recorded->roots[i];
		bool used = false;

		for (size_t k = 0; k < recorded->nsources && !used; k++)
			used = recorded->sources[k].root_fd == fd;
		if (used)
			recorded->roots[n++] = fd;
		else
			close(fd);
	}
	recorded->nroots = n;
}

void wp_recorded_renumber(struct wp_recorded *recorded,
			  const struct wp_renumber *renumber)
{
	size_t n = 0;

	for (uint32_t i = 0; i < recorded->nsources; i++)
		if (wp_renumber_stays(renumber, WP_REF_PROCESS, i))
			recorded->sources[n++] = recorded->sources[i];
	recorded->nsources = n;
	drop_roots(recorded);
}

int wp_recorded_add(struct wp_recorded *recorded, pid_t pid, uint64_t since_ns,
		    struct wp_err *err)
{
	struct wp_process *process = malloc(sizeof(*process));
	struct wp_target *target;
	int rc = -ENOMEM;

	if (!process || WP_VEC_ROOM(recorded->v, recorded->n, recorded->cap, 1))
		goto out;
	*process = (struct wp_process)WP_PROCESS_INIT;
	rc = wp_process_open(process, pid, err);
	if (rc)
		goto out;
	if (wp_recorded_find(recorded, process->pid)) {
		wp_process_clear(process);
		free(process);
		return 0;
	}
	rc = since_ns ? wp_sampler_add_born_target(recorded->sampler, process,
						   recorded->profile, since_ns,
						   err) :
			wp_sampler_add_target(recorded->sampler, process,
					      recorded->profile, &target, err);
	if (rc) {
		wp_process_clear(process);
		goto out;
	}
	recorded->v[recorded->n++] = process;
	return wp_recorded_note(recorded, process);
out:
	free(process);
	return rc == -ENOMEM ? wp_err_set(err, rc, "no memory") : rc;
}

const struct wp_process *wp_recorded_find(const struct wp_recorded *recorded,
					  pid_t pid)
{
	const struct wp_process *first = recorded->first;

	for (size_t i = recorded->n; i-- > 0;)
		if (recorded->v[i]->pid == pid)
			return recorded->v[i];
	return first && first->pid == pid && wp_process_is_alive(first) ?
		       first :
		       NULL;
}

void wp_recorded_recheck(const struct wp_recorded *recorded, struct wp_err *err)
{
	if (recorded->first && wp_process_recheck(recorded->first, err))
		wp_sampler_forget(recorded->sampler, recorded->first);
	for (size_t i = 0; i < recorded->n; i++)
		if (wp_process_recheck(recorded->v[i], err))
			wp_sampler_forget(recorded->sampler, recorded->v[i]);
}

static void let_go(void *ctx, struct wp_process *process)
{
	struct wp_recorded *recorded = ctx;
	size_t n = 0;

	for (size_t i = 0; i < recorded->n; i++)
		if (recorded->v[i] != process)
			recorded->v[n++] = recorded->v[i];
	/* Another owns it otherwise. */
	if (n == recorded->n)
		return;
	recorded->n = n;
	if (recorded->ended)
		recorded->ended(recorded->ctx, process->pid);
	wp_process_clear(process);
	free(process);
}

int wp_recorded_retire(struct wp_recorded *recorded)
{
	return wp_sampler_retire(recorded->sampler, let_go, recorded);
}

void wp_recorded_clear(struct wp_recorded *recorded)
{
	for (size_t i = 0; i < recorded->n; i++) {
		wp_process_clear(recorded->v[i]);
		free(recorded->v[i]);
	}
	for (size_t i = 0; i < recorded->nroots; i++)
		close(recorded->roots[i]);
	free(recorded->v);
	free(recorded->sources);
	free(recorded->roots);
	*recorded = (struct wp_recorded){ 0 };
}
