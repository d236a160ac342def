/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_goroutines.c - the memory of a Go program, which lies and changes.
 *
 * The input is a list of writes into the file and the memory of a program made by
 * hand: 3 bytes of where, 1 of how (whether at once or before a later read), 8 of
 * what.
 *
 * Layer: go.
 */
#include "../unit/go_maker.h"
#include "fuzz.h"
#include "wallprof/budget.h"
#include "wallprof/go_buckets.h"
#include "wallprof/goroutine_looks.h"

enum { WRITE = 12, READS_MAX = 100000 };

enum { LOOKED_MAX = 64, INDEX_MAX = 1 << 20 };

/* What is looked at, and what of it is read. */
struct looked {
	struct wp_go_program *program;
	struct wp_goroutine_looks *looks;
	uint32_t n, nseen;
	uint32_t wanted[LOOKED_MAX];
	uint32_t nwanted;
};

struct fuzzed {
	struct made_go made;
	/* Writes that are still to come. */
	const uint8_t *at;
	const uint8_t *end;
	unsigned int nwalks;
};

static void make_write(struct fuzzed *f)
{
	uint32_t where = (uint32_t)f->at[0] | (uint32_t)f->at[1] << 8 |
			 (uint32_t)f->at[2] << 16;
	size_t size = 1u << (f->at[3] >> 1 & 3);

	where %= MADE_FILE + MADE_MEMORY - 8;
	if (where < MADE_FILE - 8)
		memcpy(f->made.file + where, f->at + 4, size);
	else if (where >= MADE_FILE)
		memcpy(f->made.memory + (where - MADE_FILE), f->at + 4, size);
	f->at += WRITE;
}

static bool is_left(const struct fuzzed *f)
{
	return f->end - f->at >= WRITE;
}

static void write_one(struct made_go *made)
{
	struct fuzzed *f = (struct fuzzed *)made;

	FUZZ_CHECK(made->nreads < READS_MAX);
	if (is_left(f))
		make_write(f);
}

static bool walk(void *ctx, struct wp_goroutine *g,
		 const struct wp_goroutine_stack *stack, bool last)
{
	struct fuzzed *f = ctx;
	uint8_t sum = 0;

	(void)last;
	for (size_t i = 0; stack && i < stack->len; i++)
		sum ^= stack->bytes[i];
	g->stack = sum;
	return f->nwalks++ % 3;
}

static void read_books(struct wp_go_program *program)
{
	int64_t rate;

	for (int book = WP_GO_BOOK_HEAP; book < WP_NGO_BOOKS; book++) {
		struct wp_go_buckets all = WP_GO_BUCKETS_INIT;
		int rc = wp_go_buckets_read(program, (enum wp_go_book)book,
					    &all);

		for (uint32_t i = 0; !rc && i < all.len; i++) {
			const struct wp_go_bucket *b = &all.v[i];

			FUZZ_CHECK(b->first_pc + b->npcs <= all.npcs);
			FUZZ_CHECK(wp_go_program_stack(
					   program, all.pcs + b->first_pc,
					   b->npcs, true) <= b->npcs);
		}
		wp_go_buckets_clear(&all);
	}
	if (!wp_go_heap_rate(program, &rate))
		FUZZ_CHECK(wp_go_program_version(program));
}

static void see(void *ctx, uint32_t index,
		const struct wp_goroutine_words *words, const uint8_t *bytes)
{
	struct looked *l = ctx;
	struct wp_goroutine_more more = wp_goroutine_looks_more(l->looks,
								bytes);
	bool is_threads;
	uint64_t id;

	FUZZ_CHECK(index < l->n);
	FUZZ_CHECK(words->state < WP_NGOROUTINE_STATES);
	(void)wp_go_program_reason(l->program, more.reason);
	(void)wp_go_program_is_runtime(l->program, more.start_avma);
	if (l->nwanted < LOOKED_MAX)
		l->wanted[l->nwanted++] = index;
	if (l->nseen++ >= LOOKED_MAX)
		return;
	(void)wp_goroutine_looks_tid(l->looks, more.m_avma);
	if (wp_goroutine_looks_at(l->looks, more.m_avma, &id, &more,
				  &is_threads))
		FUZZ_CHECK(id);
}

/* With what epolls are said to watch. */
static void read_objects(struct wp_go_program *program,
			 struct wp_goroutines *all)
{
	struct wp_epoll_watch polled[LOOKED_MAX];

	for (int i = 0; i < LOOKED_MAX; i++)
		polled[i] = (struct wp_epoll_watch){
			i / 8, made_avma(MADE_POLL + (uint64_t)i / 2 * 8)
				       << (16 * (i % 2))
		};
	if (wp_goroutine_objects_poll(program, polled, LOOKED_MAX, all))
		return;
	for (uint32_t i = 0; i < all->len; i++)
		FUZZ_CHECK(!all->v[i].nobjects ||
			   all->v[i].first_object + all->v[i].nobjects <=
				   all->nobjects);
	for (uint32_t i = 0; i < all->nobjects; i++)
		FUZZ_CHECK(all->objects[i].len <= all->objects[i].cap);
}

static void look_twice(struct wp_go_program *program,
		       const struct wp_goroutine_user *user,
		       struct wp_goroutines *all)
{
	struct looked l = { .program = program };
	uint32_t n, nleft, nunread;

	if (wp_goroutine_looks_new(&l.looks, program))
		return;
	for (int look = 0; look < 2; look++) {
		uint32_t before = l.n;

		l.nwanted = l.nseen = 0;
		if (wp_goroutine_looks_update(l.looks, &n, &nleft))
			break;
		FUZZ_CHECK(n >= before);
		l.n = n;
		if (wp_goroutine_looks_make(l.looks, see, &l, &nunread) ||
		    wp_goroutine_looks_read(l.looks, user, l.wanted, l.nwanted,
					    all))
			break;
		for (uint32_t i = 0; i < all->len; i++)
			FUZZ_CHECK(all->v[i].index <= INDEX_MAX);
	}
	wp_goroutine_looks_free(l.looks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzzed *f = malloc(sizeof(*f));
	struct wp_intern strings = WP_INTERN_INIT;
	struct wp_goroutines all = WP_GOROUTINES_INIT;
	const struct wp_goroutine_user user = {
		.walk = walk,
		.ctx = f,
		.strings = &strings,
		.reads_objects = true,
	};
	struct wp_go_program *program;

	if (!f)
		return 0;
	wp_budget_set(4 << 20);
	made_go_init(&f->made);
	f->at = data;
	f->end = data + size;
	f->nwalks = 0;
	while (is_left(f) && f->at[3] & 1)
		make_write(f);
	f->made.before = write_one;
	if (!made_open(&f->made, &program, NULL)) {
		if (!wp_goroutines_read(program, &user, &all))
			for (uint32_t i = 0; i < all.len; i++)
				FUZZ_CHECK(all.v[i].first_label +
						   all.v[i].nlabels <=
					   all.nlabels);
		read_objects(program, &all);
		look_twice(program, &user, &all);
		read_books(program);
		wp_go_program_free(program);
	}
	wp_goroutines_clear(&all);
	wp_intern_clear(&strings);
	free(f);
	return 0;
}
