/* SPDX-License-Identifier: Apache-2.0 */
/* heap_census.c - see heap_census.h. */
#include "heap_census.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sampler_loop.h"
#include "stack_walk.h"
#include "target.h"
#include "wallprof/allocators.h"
#include "wallprof/base_name.h"
#include "wallprof/clock.h"
#include "wallprof/vec.h"

/* One count takes so long at the most: half a GB of heap a second. */
#define CENSUS_NS (10 * WP_NS_PER_S)
/* Before an arena that looks like none is read again. */
#define AGAIN_NS (2 * WP_NS_PER_MS)

enum {
	/* Malloc's own bytes of each chunk. */
	OVERHEAD = 8,
	/* Regions of a file that lie together. */
	REGIONS = 16,
	/* How often an arena is read again. */
	TRIES = 10,
};

struct areas {
	struct wp_census_area *v;
	size_t len, cap;
};

static int add_area(struct areas *areas, uint64_t start, uint64_t end)
{
	if (WP_VEC_ROOM(areas->v, areas->len, areas->cap, 1))
		return -ENOMEM;
	areas->v[areas->len++] = (struct wp_census_area){ start, end };
	return 0;
}

/* Memory of no file that malloc may have. */
static bool is_anonymous(const struct wp_maps *maps, const struct wp_map *m)
{
	const char *path = wp_maps_path(maps, m);

	return m->read && m->write && !m->ino &&
	       (!*path || !strcmp(path, "[heap]") ||
		!strncmp(path, "[anon", strlen("[anon")));
}

/* Add the writable regions of the program or library whose code is region I, each with
 * the zeroed memory behind it. */
static int add_data(struct areas *areas, const struct wp_maps *maps, size_t i)
{
	const struct wp_map *code = &maps->v[i];
	int rc = 0;

	for (size_t k = i + 1; !rc && k < maps->len && k < i + REGIONS; k++) {
		const struct wp_map *m = &maps->v[k];
		uint64_t end = m->end_avma;

		if (m->ino != code->ino || m->dev != code->dev || !m->write)
			continue;
		if (k + 1 < maps->len && m[1].start_avma == end &&
		    is_anonymous(maps, &m[1]))
			end = m[1].end_avma;
		rc = add_area(areas, m->start_avma, end);
	}
	return rc;
}

struct memory {
	struct wp_census_memory m;
	struct areas data, anon;
};

static size_t read_memory(void *ctx, uint64_t avma, void *buf, size_t len)
{
	ssize_t n = wp_process_read(ctx, avma, buf, len);

	return n > 0 ? (size_t)n : 0;
}

static int list_memory(struct memory *memory, const struct wp_maps *maps)
{
	struct wp_census_memory *m = &memory->m;
	int rc = 0;

	for (size_t i = 0; !rc && i < maps->len; i++) {
		const struct wp_map *map = &maps->v[i];

		if (map->exec && map->ino)
			rc = add_data(&memory->data, maps, i);
		if (!is_anonymous(maps, map))
			continue;
		if (!rc)
			rc = add_area(&memory->anon, map->start_avma,
				      map->end_avma);
		if (strcmp(wp_maps_path(maps, map), "[heap]"))
			continue;
		if (!m->brk.start_avma)
			m->brk.start_avma = map->start_avma;
		m->brk.end_avma = map->end_avma;
	}
	m->data = memory->data.v;
	m->ndata = memory->data.len;
	m->anon = memory->anon.v;
	m->nanon = memory->anon.len;
	return rc;
}

/* Read nothing more at UNTIL_NS.  0, or as wp_process_read_maps and wp_census_take. */
static int take_once(struct wp_census *ret, const struct wp_target *target,
		     uint64_t until_ns)
{
	struct memory memory = { .m = { .read = read_memory,
					.ctx = target->process,
					.page = (uint64_t)sysconf(_SC_PAGESIZE),
					.until_ns = until_ns } };
	struct wp_text text = { 0 };
	struct wp_maps maps = WP_MAPS_INIT;
	int rc = wp_process_read_maps(target->process, &text, &maps);

	if (!rc)
		rc = list_memory(&memory, &maps);
	if (!rc)
		rc = wp_census_take(ret, &memory.m);
	wp_text_clear(&text);
	wp_maps_clear(&maps);
	free(memory.data.v);
	free(memory.anon.v);
	return rc;
}

/* The same.  An arena that changes while it is read looks like none: it is read again. */
static int take(struct wp_census *ret, const struct wp_target *target)
{
	const struct timespec pause = { .tv_nsec = AGAIN_NS };
	const uint64_t until_ns = wp_clock_ns() + CENSUS_NS;
	int rc = take_once(ret, target, until_ns);

	for (int i = 0; rc == -EBADMSG && i < TRIES && wp_clock_ns() < until_ns;
	     i++) {
		nanosleep(&pause, NULL);
		rc = take_once(ret, target, until_ns);
	}
	return rc;
}

static bool is_c_library(const char *name)
{
	return !strncmp(name, "libc.", 5) || !strncmp(name, "libc-", 5);
}

/* The name of a file that has a malloc, of the C library only if there is no other, as
 * others take its place; "": none is found. */
static const char *malloc_file(struct wp_target *target)
{
	const struct wp_unwind_modules *view = &target->space.view;
	const char *name = "";

	for (size_t i = 0; i < view->len; i++) {
		const struct wp_unwind_module *module =
			&target->space.current[i];
		struct wp_allocators found = { 0 };
		bool has;

		if (*name && !is_c_library(name))
			break;
		if (module->is_unopened)
			view->open(view->ctx, i);
		if (!module->image ||
		    wp_allocators_find(&found, module->image, !i))
			continue;
		has = wp_allocators_have_malloc(&found);
		wp_allocators_clear(&found);
		if (has)
			name = wp_base_name(wp_profile_str(
				target->profile,
				target->profile->mappings[module->mapping]
					.path));
	}
	return name;
}

static int say_no_census(struct wp_target *target, int rc, struct wp_err *err)
{
	const char *file;

	if (rc == -EBADMSG)
		return wp_err_set(err, -ENOTSUP,
				  "the heap of this program's malloc is not "
				  "laid out as those of glibc 2.31 to 2.44: no "
				  "census of it");
	if (rc != -ENOENT)
		return wp_err_set(err, rc, "no census of the heap: %s",
				  strerror(-rc));
	file = malloc_file(target);
	return wp_err_set(err, -ENOTSUP,
			  "a census is of a heap of glibc's malloc, and there "
			  "is none: %s%s (leave out --heap-census to have "
			  "allocations sampled)",
			  *file ? "this program's malloc is that of " :
				  "no malloc is found",
			  file);
}

int wp_heap_census_begin(struct wp_heap_census **ret, struct wp_target *target,
			 struct wp_err *err)
{
	struct wp_heap_census *census = calloc(1, sizeof(*census));
	int rc = census ? take(&census->first, target) : -ENOMEM;

	if (rc) {
		free(census);
		return say_no_census(target, rc, err);
	}
	census->nexecs = target->space.nexecs;
	*ret = census;
	return 0;
}

/* Counts of a class at two times. */
struct pair {
	struct wp_census_count first, last;
};

/* Add COUNT of CLASS to the profile: below NAME what PART of it this is; "": it has no
 * parts. */
static int add_sample(struct wp_target *target, uint32_t thread, size_t class,
		      const char *name, const char *part,
		      const struct wp_census_count *count)
{
	struct wp_profile *profile = target->profile;
	struct wp_frame frames[2] = { wp_stack_walk_text_frame(profile, part),
				      wp_stack_walk_text_frame(profile, name) };
	struct wp_stack stack = { .frames = frames + !*part,
				  .depth = 1 + (*part != 0),
				  .end = WP_END_ROOT };
	struct wp_sample_key key = { .thread = thread };
	struct wp_profile_sample *sample;
	uint32_t at = UINT32_MAX;
	char size[24];
	int rc;

	if (!count->bytes)
		return 0;
	snprintf(size, sizeof(size), "%" PRIu64, wp_census_class_max(class));
	key.object = wp_intern_add_str(&profile->strings, size);
	key.stack = wp_profile_add_stack(profile, &stack, WP_MAPPING_NONE);
	if (frames[0].pc_avma == UINT32_MAX ||
	    frames[1].pc_avma == UINT32_MAX || key.object == UINT32_MAX ||
	    key.stack == UINT32_MAX)
		return -ENOMEM;
	rc = wp_profile_add_sample_hinted(profile, WP_PROFILE_HEAP, &key, &at,
					  count->chunks, count->bytes);
	if (rc || at >= profile->sets[WP_PROFILE_HEAP].nsamples)
		return rc;
	sample = &profile->sets[WP_PROFILE_HEAP].samples[at];
	sample->cpu_count += count->chunks;
	sample->cpu_ns += count->bytes;
	return 0;
}

/* What is in B and not in A. */
static struct wp_census_count more(const struct wp_census_count *a,
				   const struct wp_census_count *b)
{
	return (struct wp_census_count){
		b->chunks > a->chunks ? b->chunks - a->chunks : 0,
		b->bytes > a->bytes ? b->bytes - a->bytes : 0,
	};
}

static int add_class(struct wp_target *target, uint32_t thread, size_t class,
		     bool is_mapped, const struct pair *pair)
{
	bool leaks = target->loop->options.heap_leaks;
	struct wp_census_count grown = more(&pair->first, &pair->last), old;
	uint64_t least = class ? wp_census_class_max(class - 1) : 0;
	uint64_t overhead = (is_mapped ? 2 : 1) * OVERHEAD;
	char name[96];
	int rc = 0;

	/* What grew by number need not have grown by bytes, nor the reverse. */
	if (!grown.bytes)
		grown.chunks = 0;
	old = more(&grown, &pair->last);
	snprintf(name, sizeof(name), "%smalloc of %" PRIu64 " to %" PRIu64,
		 is_mapped ? "mapped for itself: " : "",
		 least > 2 * OVERHEAD ? least - overhead + 1 : 0,
		 wp_census_class_max(class) - overhead);
	if (!leaks)
		rc = add_sample(target, thread, class, name,
				"as many as at first", &old);
	return rc ? rc :
		    add_sample(target, thread, class, name,
			       leaks ? "" : "more than at first", &grown);
}

/* All are of no thread. */
static int add_all(struct wp_target *target, const struct wp_census *first,
		   const struct wp_census *last)
{
	struct wp_profile *profile = target->profile;
	const struct wp_profile_thread any = {
		.tid = target->process->pid,
		.process = target->index,
		.name = wp_intern_add_str(&profile->strings, "any"),
		.first_ns = target->start_ns,
		.last_ns = target->start_ns,
	};
	uint32_t thread = wp_profile_add_thread(profile, &any);
	int rc = any.name == UINT32_MAX || thread == UINT32_MAX ? -ENOMEM : 0;

	for (size_t i = 0; !rc && i < WP_CENSUS_CLASSES; i++) {
		const struct pair heap = { first->heap[i], last->heap[i] };
		const struct pair mapped = { first->mapped[i],
					     last->mapped[i] };

		rc = add_class(target, thread, i, false, &heap);
		if (!rc)
			rc = add_class(target, thread, i, true, &mapped);
	}
	return rc;
}

/* Bytes that the arenas have of the kernel and that were not read. */
static uint64_t unread_of(const struct wp_census *c)
{
	return c->system_bytes > c->walked_bytes ?
		       c->system_bytes - c->walked_bytes :
		       0;
}

/* Does CENSUS lack so much that it says little? */
static bool lacks_much(const struct wp_census *c)
{
	return c->is_cut || unread_of(c) > c->system_bytes / 10 ||
	       c->torn_bytes > c->system_bytes / 10;
}

/* Say what CENSUS has, and what it lacks. */
static size_t put_census(char *text, size_t size, const struct wp_census *c)
{
	uint64_t unread = unread_of(c);
	int n = snprintf(
		text, size,
		"%" PRIu64 " bytes in use in %" PRIu64 " chunks of %" PRIu32
		" arenas and %" PRIu64 " in %" PRIu64 " mapped ones, %" PRIu64
		" more kept free for threads, of %" PRIu64
		" that malloc has of the kernel",
		c->in_use.bytes, c->in_use.chunks, c->narenas,
		c->in_mapped.bytes, c->in_mapped.chunks, c->cached.bytes,
		c->system_bytes + (c->knows_mapped ? c->mapped_bytes :
						     c->in_mapped.bytes));

	if (unread)
		n += snprintf(text + n, size - (size_t)n,
			      " (%" PRIu64 " of them not read)", unread);
	if (c->is_cut)
		n += snprintf(text + n, size - (size_t)n,
			      " (not whole: it took over 10 s)");
	if (c->is_search_cut)
		n += snprintf(text + n, size - (size_t)n,
			      " (not all memory was searched for mapped ones)");
	if (c->torn_bytes)
		n += snprintf(text + n, size - (size_t)n,
			      " (%" PRIu64 " of them no chunks: changed while "
			      "they were read, or another's)",
			      c->torn_bytes);
	if (!c->knows_mapped)
		n += snprintf(text + n, size - (size_t)n,
			      " (all that look like mapped ones: malloc's "
			      "own account is not found)");
	else if (c->mapped_bytes != c->in_mapped.bytes)
		n += snprintf(text + n, size - (size_t)n,
			      " (malloc says it has mapped %" PRIu64 ")",
			      c->mapped_bytes);
	return (size_t)n;
}

/* WHY: there is no second count, LAST is the first.  The first may lack too much for a
 * comparison. */
static int describe(struct wp_target *target, const struct wp_census *first,
		    const struct wp_census *last, const char *why)
{
	struct wp_profile *profile = target->profile;
	char text[1536];
	size_t n = (size_t)snprintf(text, sizeof(text),
				    "a census of glibc's malloc, at first ");

	n += put_census(text + n, sizeof(text) - n, first);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "; then ");
	if (why)
		snprintf(text + n, sizeof(text) - n, "%s", why);
	else
		n += put_census(text + n, sizeof(text) - n, last);
	if (!why && lacks_much(first))
		snprintf(text + n, sizeof(text) - n,
			 "; what there is more than at first is not known, as "
			 "too much of that was not read");
	profile->meta.source[WP_PROFILE_HEAP] = wp_intern_add_str(
		&profile->strings, text);
	profile->meta.leaks_ns = target->loop->options.heap_leaks && !why ?
					 wp_clock_ns() - target->start_ns :
					 0;
	profile->meta.is_census = true;
	/* Each object is in it. */
	profile->meta.heap_period = 1;
	profile->counters.heap_ended = why != NULL;
	profile->counters.heap_unread = lacks_much(first) || lacks_much(last);
	return profile->meta.source[WP_PROFILE_HEAP] == UINT32_MAX ? -ENOMEM :
								     0;
}

/* Why there is no second count of TARGET, for which take() returned RC. */
static const char *say_no_second(const struct wp_target *target, int rc)
{
	if (!wp_process_is_alive(target->process))
		return "the process had ended";
	if (rc == -EBADMSG)
		return "its arenas changed whenever they were read";
	if (rc == -ENOENT)
		return "no arena of glibc's malloc had memory any more";
	return strerror(-rc);
}

int wp_heap_census_end(const struct wp_heap_census *census,
		       struct wp_target *target)
{
	struct wp_census *last = malloc(sizeof(*last));
	const char *why = NULL;
	int rc = last ? take(last, target) : -ENOMEM;

	if (rc && rc != -ENOMEM) {
		*last = census->first;
		why = say_no_second(target, rc);
		rc = 0;
	} else if (!rc && target->space.nexecs != census->nexecs) {
		*last = census->first;
		why = "the process had executed another program";
	}
	/* What was not read at first has not grown. */
	if (!rc)
		rc = add_all(target,
			     lacks_much(&census->first) ? last : &census->first,
			     last);
	if (!rc)
		rc = describe(target, &census->first, last, why);
	free(last);
	return rc;
}
