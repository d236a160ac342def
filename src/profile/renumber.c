/* SPDX-License-Identifier: Apache-2.0 */
/* renumber.c - see wallprof/renumber.h. */
#include "wallprof/renumber.h"

#include <stdlib.h>
#include <string.h>

#include "budget_bytes.h"
#include "sample_find.h"
#include "stack_table.h"
#include "wallprof/budget.h"
#include "wallprof/vec.h"

/* Mappings are renumbered once so many in a hundred have gone: it costs what was
 * found out of the others. */
enum { MAPPINGS_GONE = 25 };

uint64_t wp_renumber_size(const struct wp_profile *p)
{
	uint64_t size = p->strings.text_len +
			p->strings.len * sizeof(*p->strings.off) +
			p->nframes * sizeof(*p->frames) +
			p->nframe_ids * sizeof(*p->frame_ids) +
			p->nstacks * sizeof(*p->stacks) +
			p->nthreads * sizeof(*p->threads) +
			p->nprocesses * sizeof(*p->processes) +
			p->nmappings * sizeof(*p->mappings);

	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		size += p->sets[kind].nsamples * sizeof(*p->sets[kind].samples);
	return size;
}

int wp_renumber_begin(struct wp_renumber *r, const struct wp_profile *p)
{
	*r = (struct wp_renumber){
		.n = { [WP_REF_STRING] = p->strings.len,
		       [WP_REF_MAPPING] = p->nmappings,
		       [WP_REF_THREAD] = p->nthreads,
		       [WP_REF_PROCESS] = p->nprocesses,
		       [WP_REF_STACK] = p->nstacks,
		       [WP_REF_FRAME] = p->nframes },
	};
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		r->n[WP_REF_SAMPLE + kind] = p->sets[kind].nsamples;
	r->is_idle = calloc((size_t)p->nmappings + 1, sizeof(*r->is_idle));
	for (int ref = 0; ref < WP_NREFS; ref++) {
		r->to[ref] = calloc((size_t)r->n[ref] + 1, sizeof(**r->to));
		if (r->to[ref] && r->is_idle)
			continue;
		wp_renumber_clear(r);
		return -ENOMEM;
	}
	/* "" and "no mapping". */
	r->to[WP_REF_STRING][0] = r->to[WP_REF_MAPPING][0] = 1;
	return 0;
}

void wp_renumber_clear(struct wp_renumber *r)
{
	for (int ref = 0; ref < WP_NREFS; ref++)
		free(r->to[ref]);
	free(r->is_idle);
	*r = (struct wp_renumber){ 0 };
}

void wp_renumber_ref(struct wp_renumber *r, enum wp_ref ref, uint32_t *index)
{
	if (*index >= r->n[ref])
		return;
	/* What has gone is 0, less 1 UINT32_MAX. */
	if (r->is_numbered)
		*index = r->to[ref][*index] - 1;
	else
		r->to[ref][*index] = 1;
}

bool wp_renumber_stays(const struct wp_renumber *r, enum wp_ref ref,
		       uint32_t index)
{
	return index < r->n[ref] && r->to[ref][index];
}

void wp_renumber_key(struct wp_renumber *r, enum wp_profile_kind kind,
		     struct wp_sample_key *key)
{
	uint32_t syscall = key->syscall, object = key->object;
	uint32_t class = object & 0xff;

	wp_renumber_ref(r, WP_REF_STACK, &key->stack);
	wp_renumber_ref(r, WP_REF_THREAD, &key->thread);
	wp_renumber_ref(r, WP_REF_STRING, &syscall);
	key->syscall = (uint16_t)syscall;
	/* While recording it is that of wp_block_weight_object, or of
	 * wallprof/wake_weight.h. */
	if (kind == WP_PROFILE_BLOCK)
		object >>= 8;
	wp_renumber_ref(r,
			kind == WP_PROFILE_WAKE ? WP_REF_THREAD : WP_REF_STRING,
			&object);
	key->object = kind == WP_PROFILE_BLOCK ? object << 8 | class : object;
}

static void refs_of_meta(struct wp_renumber *r, struct wp_profile_meta *meta)
{
	uint32_t *const ids[] = {
		&meta->command_line, &meta->exe,	&meta->stop_mode,
		&meta->cpu_source,   &meta->no_scan,	&meta->throttled,
		&meta->target_end,   &meta->value_type, &meta->value_unit,
		&meta->unnamed_why,  &meta->no_servers, &meta->lineless_why,
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++)
		wp_renumber_ref(r, WP_REF_STRING, ids[i]);
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		wp_renumber_ref(r, WP_REF_STRING, &meta->source[kind]);
}

static void refs_of_stack(struct wp_renumber *r, struct wp_profile *p,
			  struct wp_profile_stack *stack)
{
	for (uint32_t i = 0; i < stack->depth; i++)
		wp_renumber_ref(r, WP_REF_FRAME,
				&p->frame_ids[stack->first + i]);
	wp_renumber_ref(r, WP_REF_MAPPING, &stack->end_mapping);
}

static void refs_of_frame(struct wp_renumber *r, struct wp_frame *frame)
{
	uint32_t name = (uint32_t)frame->pc_avma;

	wp_renumber_ref(r, WP_REF_MAPPING, &frame->mapping);
	if (!(frame->flags & WP_FRAME_NAMED))
		return;
	wp_renumber_ref(r, WP_REF_STRING, &name);
	frame->pc_avma = name;
}

static void refs_of_mapping(struct wp_renumber *r, struct wp_profile_mapping *m)
{
	wp_renumber_ref(r, WP_REF_STRING, &m->path);
	wp_renumber_ref(r, WP_REF_STRING, &m->build_id);
	wp_renumber_ref(r, WP_REF_PROCESS, &m->process);
}

static void refs_of_thread(struct wp_renumber *r, struct wp_profile_thread *t)
{
	wp_renumber_ref(r, WP_REF_STRING, &t->name);
	wp_renumber_ref(r, WP_REF_PROCESS, &t->process);
}

static void refs_of_process(struct wp_renumber *r, struct wp_profile_process *p)
{
	wp_renumber_ref(r, WP_REF_STRING, &p->name);
	wp_renumber_ref(r, WP_REF_STRING, &p->cgroup);
	wp_renumber_ref(r, WP_REF_STRING, &p->container);
	wp_renumber_ref(r, WP_REF_STRING, &p->unit);
}

/* Of all that is not dropped. */
static void refs_of_rest(struct wp_renumber *r, struct wp_profile *p)
{
	for (uint32_t i = 0; i < p->nlabels; i++) {
		wp_renumber_ref(r, WP_REF_STRING, &p->labels[i].key);
		wp_renumber_ref(r, WP_REF_STRING, &p->labels[i].value);
	}
	for (uint32_t i = 0; i < p->ncomments; i++)
		wp_renumber_ref(r, WP_REF_STRING, &p->comments[i]);
	refs_of_meta(r, &p->meta);
}

static void refs_of_timeline(struct wp_renumber *r, struct wp_timeline *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t holder = t->v[i].holder - 1;

		wp_renumber_ref(r, WP_REF_THREAD, &t->v[i].thread);
		wp_renumber_ref(r, WP_REF_SAMPLE + WP_PROFILE_WALL,
				&t->v[i].sample);
		wp_renumber_ref(r, WP_REF_THREAD, &holder);
		t->v[i].holder = holder + 1;
	}
}

/* The sample that holds all waits of SAMPLE's class; UINT32_MAX: it is in none. */
static uint32_t find_all(const struct wp_sample_set *set,
			 const struct wp_sample_key *sample)
{
	const struct wp_sample_key key = { .stack = UINT32_MAX,
					   .thread = sample->thread,
					   .state = sample->state,
					   .object = sample->object & 0xff };

	if (!key.object || sample->stack == key.stack)
		return UINT32_MAX;
	return wp_sample_find(set, &key);
}

static uint64_t part_of(uint64_t value, uint64_t part, uint64_t all)
{
	return all ? (uint64_t)((__uint128_t)value * part / all) : 0;
}

/* Of the stacks of a class of waits: count and time, and those of them that go. */
struct share {
	uint64_t count, ns;
	uint64_t count_gone, ns_gone;
};

/* The stacks of a class share out what all waits of the class took: what was the
 * share of those that go is to go with them.  SHARES: room for one of each sample. */
static void lose_shares(const struct wp_renumber *r, struct wp_sample_set *set,
			struct share *shares)
{
	const uint32_t *to = r->to[WP_REF_SAMPLE + WP_PROFILE_BLOCK];

	for (uint32_t i = 0; i < set->nsamples; i++) {
		const struct wp_profile_sample *s = &set->samples[i];
		uint32_t all = find_all(set, &s->key);

		if (all == UINT32_MAX)
			continue;
		shares[all].count += s->count;
		shares[all].ns += s->wall_ns;
		shares[all].count_gone += to[i] ? 0 : s->count;
		shares[all].ns_gone += to[i] ? 0 : s->wall_ns;
	}
	for (uint32_t i = 0; i < set->nsamples; i++) {
		struct wp_profile_sample *s = &set->samples[i];

		s->count -= part_of(s->count, shares[i].count_gone,
				    shares[i].count);
		s->wall_ns -= part_of(s->wall_ns, shares[i].ns_gone,
				      shares[i].ns);
	}
}

/* Mark all that what stays refers to. */
static void mark_rest(struct wp_renumber *r, struct wp_profile *p)
{
	uint32_t *mappings = r->to[WP_REF_MAPPING], ngone = 0;

	refs_of_timeline(r, &p->timeline);
	for (unsigned int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		for (uint32_t i = 0; i < p->sets[kind].nsamples; i++)
			if (r->to[WP_REF_SAMPLE + kind][i])
				wp_renumber_key(r, kind,
						&p->sets[kind].samples[i].key);
	for (uint32_t i = 0; i < p->nstacks; i++)
		if (r->to[WP_REF_STACK][i])
			refs_of_stack(r, p, &p->stacks[i]);
	for (uint32_t i = 0; i < p->nframes; i++)
		if (r->to[WP_REF_FRAME][i])
			refs_of_frame(r, &p->frames[i]);
	for (uint32_t i = 0; i < p->nmappings; i++)
		ngone += !mappings[i];
	for (uint32_t i = 0; i < p->nmappings; i++) {
		r->is_idle[i] = !mappings[i];
		mappings[i] |= ngone * 100 < p->nmappings * MAPPINGS_GONE;
		/* The first stands for none. */
		if (i && mappings[i])
			refs_of_mapping(r, &p->mappings[i]);
	}
	for (uint32_t i = 0; i < p->nthreads; i++)
		if (r->to[WP_REF_THREAD][i])
			refs_of_thread(r, &p->threads[i]);
	for (uint32_t i = 0; i < p->nprocesses; i++)
		if (r->to[WP_REF_PROCESS][i])
			refs_of_process(r, &p->processes[i]);
	refs_of_rest(r, p);
}

/* Number what stays; n[REF] is still how much there was. */
static void number(struct wp_renumber *r)
{
	for (int ref = 0; ref < WP_NREFS; ref++) {
		uint32_t next = 0;

		for (uint32_t i = 0; i < r->n[ref]; i++)
			if (r->to[ref][i])
				r->to[ref][i] = ++next;
	}
	r->is_numbered = true;
}

/* Move the elements of V that stay down: how many there are. */
static uint32_t move(const struct wp_renumber *r, enum wp_ref ref, void *v,
		     size_t size)
{
	char *bytes = v;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n[ref]; i++)
		if (r->to[ref][i])
			memmove(bytes + size * n++, bytes + size * i, size);
	return n;
}

static void move_frames(struct wp_renumber *r, struct wp_profile *p,
			struct wp_index index)
{
	uint32_t n = move(r, WP_REF_FRAME, p->frames, sizeof(*p->frames));

	wp_budget_give(WP_BUDGET_STACKS,
		       (uint64_t)(p->nframes - n) * WP_FRAME_BYTES);
	p->nframes = n;
	wp_index_clear(&p->frame_index);
	p->frame_index = index;
	for (uint32_t i = 0; i < n; i++) {
		refs_of_frame(r, &p->frames[i]);
		/* There is room. */
		(void)!wp_index_add(&p->frame_index,
				    wp_stack_table_hash_frame(0, &p->frames[i]),
				    i);
	}
	WP_VEC_SHRINK(p->frames, p->nframes, p->cap_frames);
}

static uint64_t hash_of(const struct wp_profile *p,
			const struct wp_profile_stack *s)
{
	uint64_t hash = wp_stack_table_hash_end(s->end, s->end_mapping);

	for (uint32_t i = 0; i < s->depth; i++)
		hash = wp_stack_table_hash_frame(hash,
						 wp_profile_frame(p, s, i));
	return hash;
}

static void move_stacks(struct wp_renumber *r, struct wp_profile *p,
			struct wp_index index)
{
	uint64_t nframe_ids = 0;

	for (uint32_t i = 0; i < p->nstacks; i++) {
		struct wp_profile_stack *s = &p->stacks[i];

		if (!r->to[WP_REF_STACK][i]) {
			if (s->depth)
				wp_budget_give(WP_BUDGET_STACKS,
					       wp_stack_bytes(s->depth));
			continue;
		}
		if (s->depth)
			memmove(p->frame_ids + nframe_ids,
				p->frame_ids + s->first,
				s->depth * sizeof(*p->frame_ids));
		s->first = nframe_ids;
		nframe_ids += s->depth;
	}
	p->nframe_ids = nframe_ids;
	p->nstacks = move(r, WP_REF_STACK, p->stacks, sizeof(*p->stacks));
	wp_index_clear(&p->stack_index);
	p->stack_index = index;
	for (uint32_t i = 0; i < p->nstacks; i++) {
		struct wp_profile_stack *s = &p->stacks[i];

		refs_of_stack(r, p, s);
		/* There is room. */
		(void)!wp_index_add(&p->stack_index, hash_of(p, s), i);
	}
	WP_VEC_SHRINK(p->frame_ids, p->nframe_ids, p->cap_frame_ids);
	WP_VEC_SHRINK(p->stacks, p->nstacks, p->cap_stacks);
}

static void move_samples(struct wp_renumber *r, enum wp_profile_kind kind,
			 struct wp_sample_set *set, struct wp_index index)
{
	uint32_t n = move(r, WP_REF_SAMPLE + kind, set->samples,
			  sizeof(*set->samples));

	if (set->npaid > n) {
		wp_budget_give(WP_BUDGET_SAMPLES,
			       (uint64_t)(set->npaid - n) * WP_SAMPLE_BYTES);
		set->npaid = n;
	}
	set->nsamples = n;
	wp_index_clear(&set->index);
	set->index = index;
	for (uint32_t i = 0; i < n; i++) {
		struct wp_sample_key *key = &set->samples[i].key;

		wp_renumber_key(r, kind, key);
		/* There is room. */
		(void)!wp_index_add(&set->index, wp_sample_hash(key), i);
	}
	WP_VEC_SHRINK(set->samples, n, set->cap_samples);
}

static void move_threads(struct wp_renumber *r, struct wp_profile *p)
{
	const uint32_t *to = r->to[WP_REF_THREAD];
	struct wp_timeline *t = &p->timeline;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->nthreads; i++)
		if (to[i])
			t->threads[n++] = t->threads[i];
	t->nthreads = n;
	n = 0;
	for (uint32_t i = 0; i < p->nshared; i++)
		if (to[p->shared[i]])
			p->shared[n++] = to[p->shared[i]] - 1;
	p->nshared = n;
	p->nthreads = move(r, WP_REF_THREAD, p->threads, sizeof(*p->threads));
	for (uint32_t i = 0; i < p->nthreads; i++)
		refs_of_thread(r, &p->threads[i]);
	WP_VEC_SHRINK(p->threads, p->nthreads, p->cap_threads);
}

static void move_processes(struct wp_renumber *r, struct wp_profile *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->nshared_processes; i++) {
		uint32_t index = p->shared_processes[i];

		wp_renumber_ref(r, WP_REF_PROCESS, &index);
		if (index != UINT32_MAX)
			p->shared_processes[n++] = index;
	}
	p->nshared_processes = n;
	p->nprocesses = move(r, WP_REF_PROCESS, p->processes,
			     sizeof(*p->processes));
	for (uint32_t i = 0; i < p->nprocesses; i++)
		refs_of_process(r, &p->processes[i]);
	WP_VEC_SHRINK(p->processes, p->nprocesses, p->cap_processes);
}

/* With INDEX for stacks, frames and each kind of samples, nothing can fail. */
static void move_all(struct wp_renumber *r, struct wp_profile *p,
		     const struct wp_index *index)
{
	move_frames(r, p, index[WP_REF_FRAME - WP_REF_STACK]);
	move_stacks(r, p, index[0]);
	for (unsigned int kind = 0; kind < WP_NPROFILE_KINDS; kind++)
		move_samples(r, kind, &p->sets[kind],
			     index[WP_REF_SAMPLE - WP_REF_STACK + kind]);
	refs_of_timeline(r, &p->timeline);
	move_threads(r, p);
	move_processes(r, p);
	p->nmappings = move(r, WP_REF_MAPPING, p->mappings,
			    sizeof(*p->mappings));
	for (uint32_t i = 1; i < p->nmappings; i++)
		refs_of_mapping(r, &p->mappings[i]);
	refs_of_rest(r, p);
}

static uint32_t count_staying(const struct wp_renumber *r, enum wp_ref ref)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->n[ref]; i++)
		n += r->to[ref][i] != 0;
	return n;
}

int wp_renumber_apply(struct wp_renumber *r, struct wp_profile *p)
{
	struct wp_index index[WP_NREFS - WP_REF_STACK] = { WP_INDEX_INIT };
	struct wp_sample_set *block = &p->sets[WP_PROFILE_BLOCK];
	struct share *shares = calloc((size_t)block->nsamples + 1,
				      sizeof(*shares));
	int rc = shares ? 0 : -ENOMEM;

	mark_rest(r, p);
	for (int ref = WP_REF_STACK; ref < WP_NREFS && !rc; ref++)
		rc = wp_index_reserve(&index[ref - WP_REF_STACK],
				      count_staying(r, ref));
	if (!rc)
		rc = wp_intern_keep(&p->strings, r->to[WP_REF_STRING]);
	if (!rc) {
		lose_shares(r, block, shares);
		number(r);
		move_all(r, p, index);
	}
	for (size_t i = 0; i < sizeof(index) / sizeof(*index) && rc; i++)
		wp_index_clear(&index[i]);
	free(shares);
	return rc;
}
