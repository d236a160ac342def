/* SPDX-License-Identifier: Apache-2.0 */
/* go_books.c - see wallprof/go_books.h. */
#include "wallprof/go_books.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "go_target.h"
#include "target.h"
#include "wallprof/clock.h"
#include "wallprof/go_buckets.h"

enum {
	/* Most frames of a bucket. */
	DEPTH_MAX = 1025,
	/* runtime.MemProfileRate unless the program sets it. */
	DEFAULT_RATE = 512 << 10,
	/* So many times as long as it took to look for a Go program, what was found
	 * holds. */
	AGAIN = 20,
};
#define LEAST_AGAIN_NS WP_NS_PER_S

struct book {
	struct wp_target *target;
	const struct wp_go_program *program;
	enum wp_profile_kind kind;
	struct wp_go_buckets buckets;
	/* HEAP: bytes per sampled object, on average; 1: values are as they were
	 * noted, as none is sampled (any more) if IS_OFF. */
	uint64_t rate;
	bool is_off;
	/* Else: of the clock that waits are counted by. */
	double ticks_per_second;
	uint32_t thread;
};

static enum wp_go_book book_of(enum wp_profile_kind kind)
{
	return kind == WP_PROFILE_HEAP	? WP_GO_BOOK_HEAP :
	       kind == WP_PROFILE_BLOCK ? WP_GO_BOOK_BLOCK :
					  WP_GO_BOOK_MUTEX;
}

static uint64_t scaled(uint64_t n, double by)
{
	double val = (double)n * by;

	/* As pprof has room for. */
	return val < (double)INT64_MAX ? (uint64_t)val : INT64_MAX;
}

/* OBJECTS of BYTES in all that were sampled stand for so many, of which each
 * was sampled with the probability 1 - exp(-size / rate). */
static void scale(const struct book *book, uint64_t objects, uint64_t bytes,
		  uint64_t *ret_objects, uint64_t *ret_bytes)
{
	double by = 1;

	if (!objects || !bytes)
		objects = bytes = 0;
	else if (book->rate > 1)
		by = 1 / (1 - exp(-((double)bytes / (double)objects) /
				  (double)book->rate));
	*ret_objects = scaled(objects, by);
	*ret_bytes = scaled(bytes, by);
}

static uint64_t not_below_0(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static struct wp_profile_sample values(const struct book *book,
				       const struct wp_go_bucket *b)
{
	struct wp_profile_sample s = { .count = 0 };
	double ns;

	if (book->kind == WP_PROFILE_HEAP) {
		scale(book, b->alloc_objects, b->alloc_bytes, &s.count,
		      &s.wall_ns);
		scale(book, not_below_0(b->alloc_objects, b->free_objects),
		      not_below_0(b->alloc_bytes, b->free_bytes), &s.cpu_count,
		      &s.cpu_ns);
		return s;
	}
	ns = (double)b->ticks / (book->ticks_per_second / 1e9);
	if (b->waits > 0 && b->waits < (double)INT64_MAX)
		s.count = (uint64_t)b->waits;
	if (ns > 0 && ns < (double)INT64_MAX)
		s.wall_ns = (uint64_t)ns;
	return s;
}

static uint32_t add_stack(const struct book *book, const struct wp_go_bucket *b)
{
	uint64_t pcs[DEPTH_MAX];
	struct wp_frame frames[DEPTH_MAX];
	struct wp_stack stack = { .frames = frames, .end = WP_END_ROOT };

	memcpy(pcs, book->buckets.pcs + b->first_pc, b->npcs * sizeof(*pcs));
	stack.depth = wp_go_program_stack(book->program, pcs, b->npcs,
					  book->kind == WP_PROFILE_HEAP);
	for (uint32_t i = 0; i < stack.depth; i++)
		frames[i] = wp_go_target_caller(book->target, pcs[i]);
	return wp_profile_add_stack(book->target->profile, &stack,
				    stack.depth ? frames[0].mapping :
						  WP_MAPPING_NONE);
}

static int add_bucket(const struct book *book, const struct wp_go_bucket *b)
{
	struct wp_profile *profile = book->target->profile;
	struct wp_sample_set *set = &profile->sets[book->kind];
	struct wp_profile_sample s = values(book, b);
	uint32_t hint = UINT32_MAX;
	char size[24];
	int rc;

	if (!s.count && !s.wall_ns)
		return 0;
	s.key.thread = book->thread;
	s.key.stack = add_stack(book, b);
	if (book->kind == WP_PROFILE_HEAP) {
		snprintf(size, sizeof(size), "%" PRIu64, b->size);
		s.key.object = wp_intern_add_str(&profile->strings, size);
	}
	if (s.key.stack == UINT32_MAX || s.key.object == UINT32_MAX)
		return -ENOMEM;
	rc = wp_profile_add_sample_hinted(profile, book->kind, &s.key, &hint,
					  s.count, s.wall_ns);
	if (!rc && hint < set->nsamples) {
		set->samples[hint].cpu_count += s.cpu_count;
		set->samples[hint].cpu_ns += s.cpu_ns;
	}
	return rc;
}

/* All samples are of the whole program. */
static int add_buckets(struct book *book)
{
	struct wp_profile *profile = book->target->profile;
	const struct wp_profile_thread all = {
		.name = wp_intern_add_str(&profile->strings, "goroutines"),
		.part = WP_GOROUTINE_OWN,
	};
	int rc = 0;

	book->thread = wp_profile_add_thread(profile, &all);
	if (all.name == UINT32_MAX || book->thread == UINT32_MAX)
		return -ENOMEM;
	for (uint32_t i = 0; !rc && i < book->buckets.len; i++)
		rc = add_bucket(book, &book->buckets.v[i]);
	return rc;
}

/* Say in the profile where its samples are from, and what is not in it. */
static int describe(struct wp_profile *profile, const struct book *book,
		    bool has_rate)
{
	const struct wp_go_buckets *buckets = &book->buckets;
	struct wp_go_target go = { .target = book->target };
	char text[1024], more[512];
	size_t n = (size_t)snprintf(
		text, sizeof(text), "Go's own, %" PRIu32 " stacks%s",
		buckets->len,
		book->kind != WP_PROFILE_HEAP ? "" :
		buckets->is_mixed	      ? ", of two garbage collections" :
						", as of the last garbage "
						"collection");

	if (book->is_off)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n,
			", of sampled objects alone: runtime.MemProfileRate "
			"is 0 or less, which ends sampling and does not tell "
			"what they stand for");
	else if (book->kind == WP_PROFILE_HEAP)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n,
			", one sample per %" PRIu64 " bytes%s", book->rate,
			has_rate ? "" : " (assumed: the rate is not found)");
	wp_go_target_say_more(&go, more, sizeof(more));
	if (*more)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "; without %s", more);
	if (buckets->nunread)
		snprintf(text + n, sizeof(text) - n,
			 "; the rest of the list was not read");
	profile->meta.source[book->kind] = wp_intern_add_str(&profile->strings,
							     text);
	profile->meta.heap_period = (int64_t)book->rate;
	return profile->meta.source[book->kind] == UINT32_MAX ? -ENOMEM : 0;
}

/* Why there is no BOOK. */
static int say_no_books(const struct book *book, struct wp_err *err)
{
	if (book->kind == WP_PROFILE_BLOCK)
		return wp_err_set(err, -ENODATA,
				  "no block profile: the program has not "
				  "called runtime.SetBlockProfileRate, or "
				  "nothing has waited since (wallprof "
				  "--profile block shows the waits of its "
				  "threads)");
	if (book->kind == WP_PROFILE_MUTEX)
		return wp_err_set(err, -ENODATA,
				  "no mutex profile: the program has not "
				  "called runtime.SetMutexProfileFraction, or "
				  "no mutex has been waited for since "
				  "(wallprof --profile mutex shows the waits "
				  "of its threads)");
	if (book->is_off)
		return wp_err_set(err, -ENODATA,
				  "no heap profile: this program was linked "
				  "without one, as nothing in it asks for "
				  "runtime.MemProfile (or it has set "
				  "runtime.MemProfileRate to 0 or less)");
	return wp_err_set(err, -ENODATA,
			  "no heap profile: no sampled object is found in the "
			  "program's memory");
}

static int read_book(struct book *book, struct wp_go_program *program,
		     struct wp_err *err)
{
	bool is_heap = book->kind == WP_PROFILE_HEAP;
	int64_t rate;
	bool has_rate = is_heap && !wp_go_heap_rate(program, &rate);
	int rc = wp_go_buckets_read(program, book_of(book->kind),
				    &book->buckets);

	book->is_off = has_rate && rate <= 0;
	if (is_heap)
		book->rate = !has_rate	  ? DEFAULT_RATE :
			     book->is_off ? 1 :
					    (uint64_t)rate;
	if (rc == -ENODATA)
		rc = say_no_books(book, err);
	if (!rc && !is_heap)
		book->ticks_per_second = wp_go_ticks_per_second();
	if (!rc)
		rc = add_buckets(book);
	if (!rc)
		rc = describe(book->target->profile, book, has_rate);
	wp_go_buckets_clear(&book->buckets);
	return rc;
}

int wp_go_books_read(struct wp_target *target, enum wp_profile_kind kind,
		     struct wp_err *err)
{
	struct wp_go_target go = { .target = target };
	struct book book = { .target = target, .kind = kind };
	int rc = wp_go_target_open(&go, err);

	/* ERR says which: it is none, or its tables are malformed. */
	if (rc == -ENOENT) {
		rc = -ENOTSUP;
		if (err)
			err->code = rc;
	}
	book.program = go.program;
	if (!rc)
		rc = read_book(&book, go.program, err);
	wp_go_target_close(&go);
	return rc;
}

bool wp_go_books_can_read(struct wp_target *target)
{
	struct wp_go_target go = { .target = target };
	uint64_t begin_ns = wp_clock_ns();

	if (begin_ns < target->go_books_ns &&
	    target->go_books_execs == target->space.nexecs)
		return target->has_go_books;
	target->has_go_books = !wp_go_target_open(&go, NULL);
	wp_go_target_close(&go);
	/* To find out takes as long as the program makes it. */
	target->go_books_ns = wp_clock_ns() + LEAST_AGAIN_NS +
			      AGAIN * (wp_clock_ns() - begin_ns);
	target->go_books_execs = target->space.nexecs;
	return target->has_go_books;
}
