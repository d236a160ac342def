/* SPDX-License-Identifier: Apache-2.0 */
/* cached_names.c - see cached_names.h. */
#include "cached_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "name_cache.h"
#include "namer_session.h"

/* Addresses that a child is asked for. */
struct questions {
	/* Of each its index in the namer: index[0..n), v[0..n); owned. */
	uint32_t *index;
	struct wp_namer_address *v;
	uint32_t n;
};

struct run {
	const struct wp_namer *namer;
	int dir_fd;
	/* Of files whose names are kept; of all others. */
	struct questions kept, rest;
	/* The files of KEPT: modules[0..nmodules), owned. */
	struct wp_namer_module *modules;
	uint32_t nmodules;
	/* What is known of the module at hand; NULL before the first.  Its names are
	 * kept if KEEPS. */
	const struct wp_namer_module *module;
	bool keeps;
	/* Children were given a debug file that others may have made: nothing that
	 * they say is kept from then on. */
	bool is_tainted;
	struct wp_name_key key;
	struct wp_cached_names names;
};

static int init_questions(struct questions *q, uint32_t n)
{
	q->index = calloc((size_t)n + 1, sizeof(*q->index));
	q->v = calloc((size_t)n + 1, sizeof(*q->v));
	return q->index && q->v ? 0 : -ENOMEM;
}

static void ask(struct questions *q, const struct wp_namer *namer, uint32_t i)
{
	q->index[q->n] = i;
	q->v[q->n++] = namer->addresses[i];
}

/* Variables that begin as 0 are behind the file's data, where the file may have code:
 * theirs are no offsets of a file. */
static uint64_t offset_of(const struct wp_namer_module *m, uint64_t avma)
{
	return (avma - m->module.start_avma + m->module.off) |
	       (uint64_t)m->module.is_data << 63;
}

/* Load what is kept of M: of one module at a time, for each may have a mebibyte. */
static void begin_module(struct run *run, const struct wp_namer_module *m)
{
	wp_cached_names_clear(&run->names);
	run->module = m;
	run->keeps = m && !run->is_tainted &&
		     !wp_name_key_init(&run->key, run->namer, m);
	/* Servers may have debug files that were not here. */
	if (run->keeps)
		wp_cached_names_load(&run->names, run->dir_fd, &run->key,
				     !run->namer->servers);
}

/* Answer addresses [FROM, TO), of the module at hand, or list those that are not
 * kept. */
static int answer_kept(struct run *run, uint32_t from, uint32_t to)
{
	const struct wp_namer *namer = run->namer;
	const struct wp_namer_module *m = run->module;
	uint32_t nasked = run->kept.n;
	int rc = 0;

	for (uint32_t i = from; i < to && !rc; i++) {
		struct wp_protocol_message message;

		if (wp_cached_names_find(&run->names,
					 offset_of(m, namer->addresses[i].avma),
					 &message))
			rc = namer->answer(namer->ctx, i, message.answer.lines,
					   message.answer.n);
		else
			ask(&run->kept, namer, i);
	}
	if (run->names.nloaded)
		namer->has(namer->ctx, m->id, &run->names.has);
	if (run->kept.n > nasked)
		run->modules[run->nmodules++] = *m;
	return rc;
}

static int answer_module(struct run *run, uint32_t from, uint32_t to)
{
	const struct wp_namer *namer = run->namer;

	begin_module(run, wp_namer_find(namer, namer->addresses[from].module));
	if (run->keeps)
		return answer_kept(run, from, to);
	for (uint32_t i = from; i < to; i++)
		ask(&run->rest, namer, i);
	return 0;
}

static int answer_all(struct run *run)
{
	const struct wp_namer_address *v = run->namer->addresses;
	uint32_t from = 0;
	int rc = 0;

	for (uint32_t to = 1; to <= run->namer->naddresses && !rc; to++)
		if (to == run->namer->naddresses ||
		    v[to].module != v[from].module) {
			rc = answer_module(run, from, to);
			from = to;
		}
	return rc;
}

static void see_opened(void *ctx, uint32_t module, int fd, const char *path)
{
	struct run *run = ctx;

	if (!run->module || run->module->id != module)
		begin_module(run, wp_namer_find(run->namer, module));
	if (!run->keeps || !wp_name_key_allows(&run->key, fd, path)) {
		run->is_tainted = true;
		run->keeps = false;
	}
}

static int take_kept(void *ctx, uint32_t index,
		     const struct wp_symbol_line *lines, uint32_t n)
{
	struct run *run = ctx;
	const struct wp_namer_address *address = &run->kept.v[index];
	int rc = 0;

	if (!run->module || run->module->id != address->module)
		begin_module(run, wp_namer_find(run->namer, address->module));
	if (run->keeps && n)
		rc = wp_cached_names_add(&run->names,
					 offset_of(run->module, address->avma),
					 lines, n);
	return rc ? rc :
		    run->namer->answer(run->namer->ctx, run->kept.index[index],
				       lines, n);
}

/* All of MODULE's addresses have their answer. */
static void has_kept(void *ctx, uint32_t module,
		     const struct wp_symbol_has *has)
{
	struct run *run = ctx;

	if (!run->module || run->module->id != module)
		return;
	wp_cached_names_note(&run->names, has);
	run->namer->has(run->namer->ctx, module, &run->names.has);
	/* If the file has changed since the question, it is not. */
	if (run->keeps && run->names.n > run->names.nloaded)
		wp_cached_names_save(&run->names, run->dir_fd, &run->key);
	run->module = NULL;
}

static int take_rest(void *ctx, uint32_t index,
		     const struct wp_symbol_line *lines, uint32_t n)
{
	struct run *run = ctx;

	return run->namer->answer(run->namer->ctx, run->rest.index[index],
				  lines, n);
}

static void has_rest(void *ctx, uint32_t module,
		     const struct wp_symbol_has *has)
{
	struct run *run = ctx;

	run->namer->has(run->namer->ctx, module, has);
}

/* By a child that reads no module which others may have written. */
static int name_kept(struct run *run, struct wp_namer_end *end)
{
	struct wp_namer namer = *run->namer;

	namer.modules = run->modules;
	namer.nmodules = run->nmodules;
	namer.addresses = run->kept.v;
	namer.naddresses = run->kept.n;
	namer.perf_map_fd = -1;
	namer.opened = see_opened;
	namer.answer = take_kept;
	namer.has = has_kept;
	namer.ctx = run;
	run->module = NULL;
	return run->kept.n ? wp_namer_run(&namer, end) : 0;
}

static int name_rest(struct run *run, struct wp_namer_end *end)
{
	struct wp_namer namer = *run->namer;
	struct wp_namer_end own = { "", false };
	int rc;

	namer.addresses = run->rest.v;
	namer.naddresses = run->rest.n;
	namer.answer = take_rest;
	namer.has = has_rest;
	namer.ctx = run;
	rc = run->rest.n && !end->interrupted ? wp_namer_run(&namer, &own) : 0;
	end->interrupted |= own.interrupted;
	if (!end->why[0])
		memcpy(end->why, own.why, sizeof(end->why));
	return rc;
}

int wp_cached_names_run(const struct wp_namer *namer, int dir_fd,
			struct wp_namer_end *ret_end)
{
	struct run run = { .namer = namer, .dir_fd = dir_fd };
	int rc;

	*ret_end = (struct wp_namer_end){ "", false };
	run.modules = calloc((size_t)namer->nmodules + 1, sizeof(*run.modules));
	rc = run.modules ? init_questions(&run.kept, namer->naddresses) :
			   -ENOMEM;
	if (!rc)
		rc = init_questions(&run.rest, namer->naddresses);
	if (!rc)
		rc = answer_all(&run);
	if (!rc)
		rc = name_kept(&run, ret_end);
	if (!rc)
		rc = name_rest(&run, ret_end);
	wp_cached_names_clear(&run.names);
	free(run.modules);
	free(run.kept.index);
	free(run.kept.v);
	free(run.rest.index);
	free(run.rest.v);
	return rc;
}
