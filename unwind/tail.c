/* SPDX-License-Identifier: Apache-2.0 */
/* tail.c - see tail.h. */
#include "tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cfi_arch.h"

enum {
	/* Words that a walk reads for each frame, in the mean: return address,
	 * and registers; of one step at most. */
	WORDS_PER_FRAME = 4,
	STEP_WORDS_MAX = 8,
	/* Memory is compared in pieces of so many bytes. */
	PIECE = 2048,
};

/* Registers that a state can hold. */
#define TRACKED_REGS                                                           \
	(UINT64_C(1) << WP_REG_PC | UINT64_C(1) << WP_REG_SP | tracked_mask())

/* Where a walk was before a step. */
struct state {
	/* By slot, see wp_cfi_tracked; 0 where not known. */
	uint64_t v[WP_CFI_NTRACKED];
	uint64_t known;
	/* Words read from here on; of a new frame, before it. */
	uint32_t nwords;
	/* The step is not to be repeated. */
	bool is_closed;
};

struct word {
	uint64_t avma;
	uint64_t val;
};

struct wp_tail {
	/* Frames and words that there is room for. */
	uint32_t cap, cap_words;

	/* The last walk, in arrays that its outermost frame ends, so that what
	 * is taken over stays where it is: x[cap - n..cap). */
	uint32_t n, nwords;
	/* So many, from the outermost on, are not closed. */
	uint32_t nopen;
	struct wp_frame *frames;
	uint64_t *cfa_avma;
	struct state *states;
	struct word *words;
	enum wp_stack_end end;
	/* Of the modules. */
	uint64_t generation;

	/* The walk under way.  Of the last NEXT frames one may be met yet; so
	 * many were taken over. */
	const struct wp_mem *mem;
	uint64_t now_generation;
	uint32_t next;
	uint32_t njoined;
	/* Its own frames, innermost first. */
	uint32_t nnew, nnew_words;
	struct state *new_states;
	struct word *new_words;
	/* It is more than there is room for. */
	bool is_full;
};

static uint64_t tracked_mask(void)
{
	uint64_t mask = 0;

	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		mask |= UINT64_C(1) << wp_cfi_tracked[i];
	return mask;
}

int wp_tail_new(struct wp_tail **ret, uint32_t depth)
{
	struct wp_tail *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cap = depth;
	t->cap_words = WORDS_PER_FRAME * depth + STEP_WORDS_MAX;
	t->frames = calloc(t->cap, sizeof(*t->frames));
	t->cfa_avma = calloc(t->cap, sizeof(*t->cfa_avma));
	t->states = calloc(t->cap, sizeof(*t->states));
	t->new_states = calloc(t->cap, sizeof(*t->new_states));
	t->words = calloc(t->cap_words, sizeof(*t->words));
	t->new_words = calloc(t->cap_words, sizeof(*t->new_words));
	if (!t->frames || !t->cfa_avma || !t->states || !t->new_states ||
	    !t->words || !t->new_words) {
		wp_tail_free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void wp_tail_free(struct wp_tail *tail)
{
	if (!tail)
		return;
	free(tail->frames);
	free(tail->cfa_avma);
	free(tail->states);
	free(tail->new_states);
	free(tail->words);
	free(tail->new_words);
	free(tail);
}

uint32_t wp_tail_depth(const struct wp_tail *tail)
{
	return tail->cap;
}

size_t wp_tail_size(uint32_t depth)
{
	return (size_t)depth * (sizeof(struct wp_frame) + sizeof(uint64_t) +
				2 * sizeof(struct state) +
				2 * WORDS_PER_FRAME * sizeof(struct word));
}

/* A piece of memory as it is now. */
struct piece {
	uint64_t start_avma;
	uint64_t end_avma;
	uint8_t bytes[PIECE];
};

/* Make PIECE end with the word at AVMA.  What is below SP is not the stack. */
static bool move_piece(struct piece *piece, const struct wp_mem *mem,
		       uint64_t avma, uint64_t sp_avma)
{
	uint64_t end = avma + sizeof(uint64_t);
	uint64_t start = end - sp_avma > PIECE ? end - PIECE : sp_avma;

	piece->end_avma = end;
	piece->start_avma = start;
	if (!mem->read(mem->ctx, start, piece->bytes, (size_t)(end - start)))
		return true;
	piece->start_avma = avma;
	return !mem->read(mem->ctx, avma, piece->bytes, sizeof(uint64_t));
}

/* How many words of the last walk, from its outermost frame inwards, have the
 * values that they had. */
static uint32_t count_unchanged(const struct wp_tail *t, uint64_t sp_avma)
{
	const struct word *w = t->words + t->cap_words;
	struct piece piece;
	uint32_t n = 0;

	piece.start_avma = piece.end_avma = 0;
	for (; n < t->nwords; n++) {
		uint64_t val;

		w--;
		if (w->avma < sp_avma || w->avma > UINT64_MAX - PIECE)
			break;
		if ((w->avma < piece.start_avma ||
		     w->avma + sizeof(val) > piece.end_avma) &&
		    !move_piece(&piece, t->mem, w->avma, sp_avma))
			break;
		memcpy(&val, piece.bytes + (w->avma - piece.start_avma),
		       sizeof(val));
		if (val != w->val)
			break;
	}
	return n;
}

/* Read for a step, and remember what. */
static int read_word(void *ctx, uint64_t avma, void *buf, size_t len)
{
	struct wp_tail *t = ctx;
	const size_t size = sizeof(uint64_t);
	struct state *now = &t->new_states[t->nnew - 1];
	int rc = t->mem->read(t->mem->ctx, avma, buf, len);

	if (t->is_full || !t->nnew || now->is_closed)
		return rc;
	if (rc || len % size || len > STEP_WORDS_MAX * size) {
		now->is_closed = true;
		return rc;
	}
	if (len / size > t->cap_words - t->nnew_words) {
		t->is_full = true;
		return rc;
	}
	for (size_t at = 0; at < len; at += size) {
		struct word *w = &t->new_words[t->nnew_words++];

		w->avma = avma + at;
		memcpy(&w->val, (const uint8_t *)buf + at, size);
	}
	return rc;
}

/* How many of the last frames read no more than the last NWORDS words. */
static uint32_t count_holding(const struct wp_tail *t, uint32_t nwords)
{
	uint32_t lo = 0, hi = t->nopen;

	while (lo < hi) {
		uint32_t mid = hi - (hi - lo) / 2;

		if (t->states[t->cap - mid].nwords <= nwords)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

struct wp_mem wp_tail_open(struct wp_tail *t, uint64_t generation,
			   uint64_t sp_avma, const struct wp_mem *mem)
{
	t->mem = mem;
	t->now_generation = generation;
	t->nnew = t->nnew_words = 0;
	t->next = t->njoined = 0;
	t->is_full = false;
	if (t->nopen && t->generation == generation)
		t->next = count_holding(t, count_unchanged(t, sp_avma));
	return (struct wp_mem){ read_word, t };
}

static void take_state(struct state *ret, const struct wp_regs *regs)
{
	for (unsigned int i = 0; i < WP_CFI_NTRACKED; i++)
		ret->v[i] = regs->known >> wp_cfi_tracked[i] & 1 ?
				    regs->v[wp_cfi_tracked[i]] :
				    0;
	ret->known = regs->known;
}

static bool is_at(const struct wp_tail *t, uint32_t i,
		  const struct wp_regs *regs, uint32_t flags)
{
	struct state now;

	if (t->frames[i].pc_avma != regs->v[WP_REG_PC] ||
	    (t->frames[i].flags & ~(uint32_t)WP_FRAME_SIGNAL) != flags ||
	    t->states[i].known != regs->known)
		return false;
	take_state(&now, regs);
	return !memcmp(now.v, t->states[i].v, sizeof(now.v));
}

bool wp_tail_join(struct wp_tail *t, const struct wp_regs *regs, uint32_t flags,
		  struct wp_stack *stack)
{
	uint64_t sp = regs->v[WP_REG_SP];
	uint32_t i, n;

	while (t->next && t->states[t->cap - t->next].v[WP_CFI_SP_SLOT] < sp)
		t->next--;
	i = t->cap - t->next;
	n = stack->cap - stack->depth;
	/* A walk that was cut may have to go on further this time. */
	if (!t->next || t->states[i].v[WP_CFI_SP_SLOT] != sp ||
	    !is_at(t, i, regs, flags) ||
	    (t->end == WP_END_DEPTH_LIMIT && t->next < n))
		return false;
	stack->end = t->next > n ? WP_END_DEPTH_LIMIT : t->end;
	if (n > t->next)
		n = t->next;
	memcpy(stack->frames + stack->depth, t->frames + i,
	       n * sizeof(*t->frames));
	memcpy(stack->cfa_avma + stack->depth, t->cfa_avma + i,
	       n * sizeof(*t->cfa_avma));
	stack->depth += n;
	t->njoined = t->next;
	return true;
}

void wp_tail_add(struct wp_tail *t, const struct wp_regs *regs)
{
	struct state *s;

	if (t->is_full || t->nnew == t->cap) {
		t->is_full = true;
		return;
	}
	s = &t->new_states[t->nnew++];
	take_state(s, regs);
	s->nwords = t->nnew_words;
	/* Right under a handler others may be known too. */
	s->is_closed = (regs->known & ~TRACKED_REGS) != 0;
}

void wp_tail_close(struct wp_tail *t)
{
	struct state *s;

	if (t->is_full || !t->nnew)
		return;
	s = &t->new_states[t->nnew - 1];
	s->is_closed = true;
	t->nnew_words = s->nwords;
}

uint32_t wp_tail_keep(struct wp_tail *t, const struct wp_stack *stack)
{
	uint32_t had = t->njoined, n = t->nnew, at;
	uint32_t had_words = had ? t->states[t->cap - had].nwords : 0;

	/* A copy that is too short says nothing about the rest: what was found
	 * before may serve the next walk. */
	if (stack->end == WP_END_UNREADABLE)
		return had;
	t->generation = t->now_generation;
	t->n = t->nopen = t->nwords = 0;
	if (t->is_full || n > t->cap - had ||
	    t->nnew_words > t->cap_words - had_words)
		return had;
	if (!had)
		t->end = stack->end;
	at = t->cap - had - n;
	memcpy(t->frames + at, stack->frames, n * sizeof(*t->frames));
	memcpy(t->cfa_avma + at, stack->cfa_avma, n * sizeof(*t->cfa_avma));
	memcpy(t->states + at, t->new_states, n * sizeof(*t->states));
	t->nwords = had_words + t->nnew_words;
	for (uint32_t i = at; i < at + n; i++)
		t->states[i].nwords = t->nwords - t->states[i].nwords;
	memcpy(t->words + t->cap_words - t->nwords, t->new_words,
	       t->nnew_words * sizeof(*t->words));
	t->n = had + n;
	t->nopen = had;
	while (t->nopen < t->n && !t->states[t->cap - t->nopen - 1].is_closed)
		t->nopen++;
	return had;
}
