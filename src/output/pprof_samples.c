/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_samples.c - see pprof_read.h: samples, and their labels. */
#include <stdlib.h>
#include <string.h>

#include "pprof_fields.h"
#include "pprof_read.h"
#include "wallprof/goroutine_entries.h"
#include "wallprof/vec.h"

enum {
	/* Most samples that differ, and frames of stacks that differ: few bytes of a
	 * file may be a sample, one a frame, and cost more of memory. */
	SAMPLES_MAX = 1 << 22,
	FRAMES_MAX = 1 << 26,
};

/* What the labels of a sample tell; string ids. */
struct labels {
	uint32_t thread;
	int64_t tid;
	int64_t pid;
	uint32_t process;
	uint32_t state;
	uint32_t wait;
	uint32_t object;
	uint32_t runtime;
	uint64_t goroutine;
	/* As of wp_profile_sample. */
	uint64_t looks;
	uint64_t exact_ns;
};

static bool is_one_of(const char *key, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(key, names[i]))
			return true;
	return false;
}

/* Ours, perf_to_profile's, and what others call them. */
static void read_label(struct wp_pprof *p, struct wp_reader r,
		       struct labels *labels)
{
	static const char *const names[] = { "thread", "thread_comm",
					     "thread_name", "comm" };
	static const char *const tids[] = { "tid", "thread_id" };
	uint32_t key = 0, str = 0;
	struct wp_pprof_field f;
	int64_t num = 0;
	const char *name;

	while (!p->rc && wp_pprof_next(&r, &f)) {
		if (f.number == LABEL_KEY)
			key = wp_pprof_str(p, f.value);
		else if (f.number == LABEL_STR)
			str = wp_pprof_str(p, f.value);
		else if (f.number == LABEL_NUM)
			num = (int64_t)f.value;
	}
	if (r.failed)
		wp_pprof_bad(p, "a label is cut short");
	name = wp_pprof_text(p, key);
	if (is_one_of(name, names, sizeof(names) / sizeof(*names)))
		labels->thread = str;
	else if (is_one_of(name, tids, sizeof(tids) / sizeof(*tids)))
		labels->tid = str ? strtol(wp_pprof_told(p, str), NULL, 10) :
				    num;
	else if (!strcmp(name, "pid"))
		labels->pid = str ? strtol(wp_pprof_told(p, str), NULL, 10) :
				    num;
	else if (!strcmp(name, "process"))
		labels->process = str;
	else if (!strcmp(name, "runtime"))
		labels->runtime = str;
	else if (!strcmp(name, "goroutine") && num > 0)
		labels->goroutine = (uint64_t)num;
	else if (!strcmp(name, "state"))
		labels->state = str;
	else if (!strcmp(name, "wait"))
		labels->wait = str;
	else if (!strcmp(name, "object") || !strcmp(name, "woken by") ||
		 !strcmp(name, "woken"))
		labels->object = str;
	else if (!strcmp(name, "looks") && num > 0)
		labels->looks = (uint64_t)num;
	else if (!strcmp(name, "exact") && num > 0)
		labels->exact_ns = (uint64_t)num;
}

/* UINT32_MAX: the labels tell none. */
static uint32_t process_of(struct wp_pprof *p, const struct labels *labels)
{
	const struct wp_profile_process process = { .pid = (int32_t)labels->pid,
						    .name = labels->process };
	uint32_t i;

	if (!labels->process)
		return UINT32_MAX;
	i = wp_pairs_add(&p->processes, process.name, (uint32_t)process.pid);
	if (i != UINT32_MAX && i == p->profile->nprocesses &&
	    wp_profile_add_process(p->profile, &process) == UINT32_MAX)
		i = UINT32_MAX;
	if (i == UINT32_MAX)
		wp_pprof_no_memory(p);
	return i;
}

/* T is of goroutines, as LABELS say. */
static void set_goroutine(struct wp_pprof *p, const struct labels *labels,
			  struct wp_profile_thread *t)
{
	const char *runtime = wp_pprof_text(p, labels->runtime);

	p->profile->meta.is_of_goroutines = true;
	t->part = !strcmp(runtime, "idle")	? WP_GOROUTINE_RUNTIME_IDLE :
		  !strcmp(runtime, "working")	? WP_GOROUTINE_RUNTIME :
		  !strcmp(runtime, "scheduler") ? WP_GOROUTINE_SCHEDULER :
						  WP_GOROUTINE_OWN;
	t->name = wp_intern_add_str(&p->profile->strings,
				    wp_goroutine_part_name(t->part));
	t->goroutine = labels->goroutine;
	t->tid = (int32_t)(labels->goroutine & INT32_MAX);
	t->is_counted = true;
	if (t->name == UINT32_MAX)
		wp_pprof_no_memory(p);
}

static uint32_t thread_of(struct wp_pprof *p, const struct labels *labels)
{
	struct wp_profile_thread t = { .tid = (int32_t)labels->tid,
				       .name = labels->thread };
	uint32_t i;

	/* Ours of threads tell their names. */
	if (!labels->thread && labels->state && !p->profile->meta.value_type)
		set_goroutine(p, labels, &t);
	t.process = process_of(p, labels);
	/* All threads of a name together have no tid, and goroutines of several
	 * processes the same ids. */
	i = wp_pairs_add(&p->threads, (uint64_t)(t.process + 1) << 32 | t.name,
			 (uint32_t)t.tid);
	if (i != UINT32_MAX && i == p->profile->nthreads &&
	    wp_profile_add_thread(p->profile, &t) == UINT32_MAX)
		i = UINT32_MAX;
	if (i == UINT32_MAX)
		wp_pprof_no_memory(p);
	return i;
}

static void set_state(struct wp_pprof *p, const struct labels *labels,
		      struct wp_sample_key *key)
{
	static const char call[] = "syscall:";
	const char *state = wp_pprof_text(p, labels->state);
	const char *wait = wp_pprof_text(p, labels->wait);
	uint32_t name;

	key->state = (uint8_t)p->state;
	for (int i = 0; i < WP_NSTATES; i++) {
		if (strcmp(state, wp_types_state_name((enum wp_state)i)))
			continue;
		key->state = (uint8_t)i;
		p->profile->meta.stateless = false;
	}
	if (key->state != WP_STATE_WAITING)
		return;
	for (int i = 1; i < WP_NWAITS; i++)
		if (!strcmp(wait, wp_wait_name((enum wp_wait)i)))
			key->wait = (uint8_t)i;
	if (*wait && key->wait == WP_WAIT_NONE &&
	    strncmp(wait, call, strlen(call))) {
		key->wait = WP_WAIT_GO;
		key->syscall = labels->wait <= UINT16_MAX ?
				       (uint16_t)labels->wait :
				       0;
	}
	if (strncmp(wait, call, strlen(call)))
		return;
	key->wait = WP_WAIT_SYSCALL;
	wp_pprof_told(p, labels->wait);
	if (p->rc)
		return;
	name = wp_pprof_tail(p, labels->wait, strlen(call));
	/* A name that came too late to have a small id. */
	key->syscall = name <= UINT16_MAX ? (uint16_t)name : 0;
}

/* Count a frame at LOC: the locations of a stack may have many inlined functions
 * each, so that a small file would unfold to stacks without end. */
static void count_unfolded(struct wp_pprof *p,
			   const struct wp_profile_location *loc)
{
	enum { LEAST = 1 << 20, PER_BYTE = 16, PER_PACKED_BYTE = 256 };

	p->nunfolded += loc->nlines ? loc->nlines : 1;
	if (p->nunfolded > LEAST + PER_BYTE * wp_reader_left(&p->all) ||
	    p->nunfolded > LEAST + PER_PACKED_BYTE * p->nbytes)
		wp_pprof_bad(p, "its stacks have more functions than a file of "
				"its size can tell of");
}

/* The stack of FIELD's locations, after N others of the sample.  Frames keep their
 * location's index until all stacks are known. */
static uint32_t read_locations(struct wp_pprof *p, struct wp_pprof_field *field,
			       uint32_t n)
{
	uint64_t id;

	while (!p->rc && wp_pprof_number(field, &id)) {
		uint32_t i = wp_pairs_add(&p->locations, id, 0);

		if (i == UINT32_MAX ||
		    WP_VEC_ROOM(p->frames, n, p->cap_frames, 1))
			wp_pprof_no_memory(p);
		else if (!p->locations.v[i].total)
			wp_pprof_bad(p, "a sample of a location that is not "
					"there");
		if (p->rc)
			break;
		p->frames[n++] = (struct wp_frame){
			.pc_avma = p->locations.v[i].mark
		};
		count_unfolded(p,
			       &p->profile->locations[p->locations.v[i].mark]);
	}
	if (field->bytes.failed)
		wp_pprof_bad(p, "a sample is cut short");
	return n;
}

static void add_sample(struct wp_pprof *p, const struct wp_sample_key *key,
		       const uint64_t *values, unsigned int n,
		       const struct labels *labels)
{
	struct wp_profile_sample sum = { 0 };
	uint64_t *const into[WP_PPROF_NCOLUMNS] = {
		[WP_PPROF_COUNT] = &sum.count,
		[WP_PPROF_WALL] = &sum.wall_ns,
		[WP_PPROF_CPU_COUNT] = &sum.cpu_count,
		[WP_PPROF_CPU] = &sum.cpu_ns,
	};
	struct wp_profile_sample *sample;
	uint32_t hint = UINT32_MAX;

	for (unsigned int i = 0; i < n && i < p->ntypes; i++) {
		const struct wp_pprof_type *type = &p->types[i];

		if (type->column == WP_PPROF_NONE)
			continue;
		if ((int64_t)values[i] < 0)
			wp_pprof_bad(p, "it is a difference of two profiles: "
					"give both to wallprof diff");
		else if (values[i] >
			 (INT64_MAX - p->sums[type->column]) / type->scale)
			wp_pprof_bad(p, "its values are over 2^63 (times, over "
					"2^63 nanoseconds)");
		else
			*into[type->column] = values[i] * type->scale;
		p->sums[type->column] += *into[type->column];
	}
	if (p->rc)
		return;
	if (wp_profile_add_sample_hinted(p->profile, p->kind, key, &hint,
					 sum.count, sum.wall_ns) ||
	    (p->kind == WP_PROFILE_WALL &&
	     wp_profile_add_cpu(p->profile, key, sum.cpu_count, sum.cpu_ns)) ||
	    WP_VEC_ROOM(p->samples, p->nsamples, p->cap_samples, 1))
		wp_pprof_no_memory(p);
	if (p->profile->sets[p->kind].nsamples > SAMPLES_MAX)
		wp_pprof_bad(p, "over 4,194,304 samples that differ");
	if (p->rc)
		return;
	p->samples[p->nsamples++] = hint;
	sample = &p->profile->sets[p->kind].samples[hint];
	sample->looks += labels->looks;
	sample->exact_ns += labels->exact_ns;
}

/* The index of a location that says that there is no stack; made if new. */
static uint32_t no_stack(struct wp_pprof *p)
{
	struct wp_profile *profile = p->profile;
	uint32_t name = wp_intern_add_str(&profile->strings, "[no stack]");
	const struct wp_profile_function fn = { .name = name };
	struct wp_profile_line line = { 0 };

	if (p->has_no_stack)
		return p->no_stack;
	line.function = wp_profile_add_function(profile, &fn);
	p->no_stack = profile->nlocations;
	if (name == UINT32_MAX || line.function == UINT32_MAX ||
	    WP_VEC_ROOM(profile->locations, profile->nlocations,
			profile->cap_locations, 1)) {
		wp_pprof_no_memory(p);
		return 0;
	}
	profile->locations[profile->nlocations++] =
		(struct wp_profile_location){ .text = name };
	if (wp_profile_add_line(profile, p->no_stack, line))
		wp_pprof_no_memory(p);
	p->has_no_stack = true;
	return p->no_stack;
}

static void read_sample(struct wp_pprof *p, struct wp_reader r)
{
	struct wp_stack stack = { .end = WP_END_ROOT };
	uint64_t values[WP_PPROF_TYPES_MAX], value;
	struct labels labels = { 0 };
	struct wp_sample_key key = { 0 };
	struct wp_pprof_field f;
	unsigned int n = 0;

	while (!p->rc && wp_pprof_next(&r, &f)) {
		if (f.number == SAMPLE_LOCATION_ID)
			stack.depth = read_locations(p, &f, stack.depth);
		else if (f.number == SAMPLE_VALUE)
			while (n < WP_PPROF_TYPES_MAX &&
			       wp_pprof_number(&f, &value))
				values[n++] = value;
		else if (f.number == SAMPLE_LABEL && f.is_bytes)
			read_label(p, f.bytes, &labels);
	}
	if (r.failed)
		wp_pprof_bad(p, "a sample is cut short");
	else if (!p->rc && n != p->ntypes)
		wp_pprof_bad(p, "a sample has not one value of each type");
	if (!p->rc && !stack.depth) {
		if (WP_VEC_ROOM(p->frames, 0, p->cap_frames, 1))
			wp_pprof_no_memory(p);
		else
			p->frames[stack.depth++] = (struct wp_frame){
				.pc_avma = no_stack(p)
			};
	}
	if (p->rc)
		return;
	stack.frames = p->frames;
	key.stack = wp_profile_add_stack(p->profile, &stack, WP_MAPPING_NONE);
	key.thread = thread_of(p, &labels);
	key.object = labels.object;
	set_state(p, &labels, &key);
	if (key.stack == UINT32_MAX)
		wp_pprof_no_memory(p);
	if (p->profile->nframe_ids > FRAMES_MAX)
		wp_pprof_bad(p, "over 67,108,864 frames of stacks that differ");
	if (!p->rc)
		add_sample(p, &key, values, n, &labels);
}

/* Frames are locations' indices: make the lists of locations of them. */
static void locate(struct wp_pprof *p)
{
	struct wp_profile *profile = p->profile;

	if (WP_VEC_ROOM(profile->loc_pool, profile->nloc_pool,
			profile->cap_loc_pool, profile->nframe_ids)) {
		wp_pprof_no_memory(p);
		return;
	}
	for (uint64_t i = 0; i < profile->nframe_ids; i++)
		profile->loc_pool[i] = (uint32_t)profile
					       ->frames[profile->frame_ids[i]]
					       .pc_avma;
	profile->nloc_pool = profile->nframe_ids;
	for (uint32_t i = 0; i < profile->nstacks; i++) {
		profile->stacks[i].loc_first = profile->stacks[i].first;
		profile->stacks[i].nlocs = profile->stacks[i].depth;
	}
}

void wp_pprof_read_samples(struct wp_pprof *p)
{
	struct wp_reader r = p->all;
	struct wp_pprof_field f;

	while (!p->rc && wp_pprof_next(&r, &f))
		if (f.number == PROFILE_SAMPLE && f.is_bytes)
			read_sample(p, f.bytes);
	if (!p->rc)
		locate(p);
}
