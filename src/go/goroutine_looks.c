/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_looks.c - see wallprof/goroutine_looks.h.
 *
 * runtime.allgs only grows, and a struct in it is used again and never freed: so
 * the ranges to read are found once, and grow with the list.
 */
#include "wallprof/goroutine_looks.h"

#include <errno.h>
#include <stdlib.h>

#include "goroutine_reader.h"
#include "wallprof/budget.h"
#include "wallprof/vec.h"

enum {
	WORD = 8,
	/* Structs as far apart as this are read as one; bytes of such a range, of
	 * those that are read at once, and their number. */
	GAP = 1024,
	RANGE_MAX = 1 << 16,
	BATCH = 1 << 20,
	BATCH_RANGES = 512,
};

/* A goroutine's struct. */
struct place {
	uint64_t avma;
	/* In the list of all. */
	uint32_t index;
};

/* Places that are read as one: order[first..first + n). */
struct span {
	uint32_t first;
	uint32_t n;
	uint64_t avma;
	size_t len;
};

struct wp_goroutine_looks {
	/* Borrowed. */
	struct wp_go_program *program;
	struct wp_goroutine_reader reader;
	/* The list, [0..n), owned; what is not plausible is 0. */
	uint64_t *avmas;
	uint32_t n, cap;
	/* Those by address, [0..nplaces), and in ranges; owned. */
	struct place *order;
	uint32_t nplaces, cap_places;
	struct span *spans;
	uint32_t nspans, cap_spans;
	uint8_t *bytes;
	struct wp_process_range ranges[BATCH_RANGES];
	/* What is taken of the budget. */
	uint64_t taken;
	/* NULL: nobody asks for those that have ended. */
	wp_goroutine_ended_fn tell_ended;
	/* Room for the addresses of those whose stacks are read; owned. */
	uint64_t *wanted;
	uint32_t cap_wanted;
};

int wp_goroutine_looks_new(struct wp_goroutine_looks **ret,
			   struct wp_go_program *program)
{
	struct wp_goroutine_looks *looks = calloc(1, sizeof(*looks));

	if (!looks)
		return -ENOMEM;
	looks->program = program;
	looks->bytes = malloc(BATCH);
	if (!looks->bytes ||
	    wp_goroutine_reader_init(&looks->reader, program)) {
		wp_goroutine_looks_free(looks);
		return -ENOMEM;
	}
	*ret = looks;
	return 0;
}

void wp_goroutine_looks_free(struct wp_goroutine_looks *looks)
{
	if (!looks)
		return;
	wp_budget_give(WP_BUDGET_GO, looks->taken);
	wp_goroutine_reader_clear(&looks->reader);
	free(looks->avmas);
	free(looks->order);
	free(looks->spans);
	free(looks->bytes);
	free(looks->wanted);
	free(looks);
}

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->avma > y->avma) - (x->avma < y->avma);
}

static int make_spans(struct wp_goroutine_looks *looks)
{
	size_t len = wp_go_g_len(looks->program->layout);
	struct span *span = NULL;

	looks->nspans = 0;
	for (uint32_t i = 0; i < looks->nplaces; i++) {
		uint64_t avma = looks->order[i].avma;
		uint64_t until = span ? avma - span->avma + len : 0;

		if (span && avma - span->avma <= span->len + GAP &&
		    until <= RANGE_MAX) {
			/* A list that lies can have one twice, or overlap. */
			if (until > span->len)
				span->len = until;
			span->n++;
			continue;
		}
		if (WP_VEC_ROOM(looks->spans, looks->nspans, looks->cap_spans,
				1))
			return -ENOMEM;
		span = &looks->spans[looks->nspans++];
		*span = (struct span){ i, 1, avma, len };
	}
	return 0;
}

/* Take what the list has more since it was read last. */
static int add_places(struct wp_goroutine_looks *looks, uint32_t from)
{
	if (WP_VEC_ROOM(looks->order, looks->nplaces, looks->cap_places,
			looks->n - from))
		return -ENOMEM;
	for (uint32_t i = from; i < looks->n; i++)
		if (wp_go_is_pointer(looks->avmas[i]))
			looks->order[looks->nplaces++] = (struct place){
				looks->avmas[i], i
			};
	qsort(looks->order, looks->nplaces, sizeof(*looks->order), by_address);
	return make_spans(looks);
}

/* How many of MORE goroutines the budget has room for. */
static uint32_t take_room(struct wp_goroutine_looks *looks, uint64_t more)
{
	const uint64_t each = 2 * (sizeof(*looks->avmas) +
				   sizeof(*looks->order)) +
			      sizeof(*looks->spans);

	if (looks->n + more > WP_GOROUTINES_MAX)
		more = WP_GOROUTINES_MAX - looks->n;
	while (more && !wp_budget_take(WP_BUDGET_GO, more * each))
		more /= 2;
	looks->taken += more * each;
	return (uint32_t)more;
}

int wp_goroutine_looks_update(struct wp_goroutine_looks *looks, uint32_t *ret_n,
			      uint32_t *ret_nleft)
{
	struct wp_go_memory *memory = &looks->program->memory;
	uint32_t from = looks->n, more = 0;
	uint64_t slice[2], n;
	int rc = 0;

	if (!wp_go_memory_read_at(memory, looks->program->allgs_avma, slice,
				  sizeof(slice)))
		return -ESRCH;
	n = slice[1] > from ? slice[1] : from;
	if (n > from)
		more = take_room(looks, n - from);
	if (more && WP_VEC_ROOM(looks->avmas, looks->n, looks->cap, more))
		return -ENOMEM;
	/* Old arrays stay as they are when the list grows. */
	if (more &&
	    wp_go_memory_read_at(memory, slice[0] + (uint64_t)from * WORD,
				 looks->avmas + from, (size_t)more * WORD)) {
		looks->n += more;
		rc = add_places(looks, from);
	}
	*ret_n = looks->n;
	*ret_nleft = n - looks->n > UINT32_MAX ? UINT32_MAX :
						 (uint32_t)(n - looks->n);
	return rc;
}

void wp_goroutine_looks_tell_ended(struct wp_goroutine_looks *looks,
				   wp_goroutine_ended_fn each)
{
	looks->tell_ended = each;
}

/* The struct keeps its last goroutine's id, creator and first function (runtime/proc.go,
 * gdestroy). */
static void tell_ended(const struct wp_goroutine_looks *looks,
		       const uint8_t *bytes, void *ctx)
{
	const struct wp_goroutine_more more = wp_goroutine_looks_more(looks,
								      bytes);

	looks->tell_ended(ctx, wp_go_u64(bytes, looks->program->layout->g_goid),
			  &more);
}

static void tell_one(const struct wp_goroutine_looks *looks, uint32_t index,
		     const uint8_t *bytes, wp_goroutine_look_fn each, void *ctx)
{
	const struct wp_go_layout *l = looks->program->layout;
	struct wp_goroutine_words words = { .seq = bytes[l->g_tracking_seq] };
	uint32_t status = wp_go_status(l, bytes);
	enum wp_goroutine_state state;
	bool in_syscall;

	if (status == WP_GO_DEAD && looks->tell_ended)
		tell_ended(looks, bytes, ctx);
	if (!wp_go_find_state(status, &state))
		return;
	in_syscall = status == WP_GO_SYSCALL &&
		     wp_go_u64(bytes, l->g_syscallsp);
	words.id = wp_go_u64(bytes, l->g_goid);
	words.sp_avma = wp_go_u64(bytes,
				  in_syscall ? l->g_syscallsp : WP_GO_G_SP);
	words.pc_avma = wp_go_u64(bytes,
				  in_syscall ? l->g_syscallpc : WP_GO_G_PC);
	words.status = (uint8_t)status;
	words.state = (uint8_t)state;
	each(ctx, index, &words, bytes);
}

/* Tell the goroutines of spans [from..from + n), which have been read. */
static uint32_t tell(struct wp_goroutine_looks *looks, uint32_t from,
		     uint32_t n, wp_goroutine_look_fn each, void *ctx)
{
	uint32_t nunread = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct span *span = &looks->spans[from + i];
		const struct wp_process_range *range = &looks->ranges[i];

		if (!range->is_read) {
			nunread += span->n;
			continue;
		}
		for (uint32_t k = 0; k < span->n; k++) {
			const struct place *p = &looks->order[span->first + k];

			tell_one(looks, p->index,
				 (const uint8_t *)range->buf +
					 (p->avma - span->avma),
				 each, ctx);
		}
	}
	return nunread;
}

int wp_goroutine_looks_make(struct wp_goroutine_looks *looks,
			    wp_goroutine_look_fn each, void *ctx,
			    uint32_t *ret_nunread)
{
	const struct wp_go_reader *reader = &looks->program->memory.reader;
	uint32_t from = 0, n;
	int rc = 0;

	*ret_nunread = 0;
	while (!rc && from < looks->nspans) {
		size_t len = 0;

		for (n = 0; n < BATCH_RANGES && from + n < looks->nspans; n++) {
			const struct span *span = &looks->spans[from + n];

			if (len + span->len > BATCH)
				break;
			looks->ranges[n] = (struct wp_process_range){
				.avma = span->avma,
				.buf = looks->bytes + len,
				.len = span->len,
			};
			len += span->len;
		}
		rc = reader->read(reader->ctx, looks->ranges, n);
		if (!rc)
			*ret_nunread += tell(looks, from, n, each, ctx);
		from += n;
	}
	return rc;
}

struct wp_goroutine_more
wp_goroutine_looks_more(const struct wp_goroutine_looks *looks,
			const uint8_t *bytes)
{
	const struct wp_go_layout *l = looks->program->layout;

	return (struct wp_goroutine_more){
		.m_avma = wp_go_u64(bytes, WP_GO_G_M),
		.labels_avma = wp_go_u64(bytes, l->g_labels),
		.start_avma = wp_go_u64(bytes, l->g_startpc),
		.created_avma = wp_go_u64(bytes, l->g_gopc),
		.reason = bytes[l->g_waitreason],
	};
}

int32_t wp_goroutine_looks_tid(struct wp_goroutine_looks *looks,
			       uint64_t m_avma)
{
	return wp_go_read_tid(looks->program, m_avma);
}

/* Read the struct g at AVMA: false unless that is one. */
static bool read_g(struct wp_goroutine_looks *looks, uint64_t avma,
		   uint8_t *bytes)
{
	return wp_go_is_pointer(avma) &&
	       wp_go_memory_read_at(&looks->program->memory, avma, bytes,
				    wp_go_g_len(looks->program->layout)) &&
	       wp_go_u64(bytes, WP_GO_G_SELF) == avma;
}

bool wp_goroutine_looks_at(struct wp_goroutine_looks *looks, uint64_t g_avma,
			   uint64_t *ret_id, struct wp_goroutine_more *ret,
			   bool *ret_is_threads)
{
	const struct wp_go_layout *l = looks->program->layout;
	uint8_t bytes[WP_GO_G_MAX];
	uint64_t curg_avma;

	*ret_is_threads = false;
	if (!read_g(looks, g_avma, bytes))
		return false;
	*ret_is_threads = !wp_go_u64(bytes, l->g_goid);
	if (*ret_is_threads &&
	    (!wp_go_memory_read_at(&looks->program->memory,
				   wp_go_u64(bytes, WP_GO_G_M) + l->m_curg,
				   &curg_avma, WORD) ||
	     !read_g(looks, curg_avma, bytes)))
		return false;
	*ret_id = wp_go_u64(bytes, l->g_goid);
	*ret = wp_goroutine_looks_more(looks, bytes);
	return *ret_id != 0;
}

int wp_goroutine_looks_read(struct wp_goroutine_looks *looks,
			    const struct wp_goroutine_user *user,
			    const uint32_t *indices, size_t n,
			    struct wp_goroutines *goroutines)
{
	if (WP_VEC_ROOM(looks->wanted, 0, looks->cap_wanted, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		looks->wanted[i] = looks->avmas[indices[i]];
	return wp_goroutine_reader_read(&looks->reader, user, looks->wanted,
					indices, n, goroutines);
}

/* As runtime.isSystemGoroutine (runtime/traceback.go) has it. */
bool wp_go_program_is_runtime(const struct wp_go_program *program,
			      uint64_t start_avma)
{
	const char *name = wp_go_program_function(program, start_avma);

	return name && !strncmp(name, "runtime.", 8) &&
	       strcmp(name, "runtime.main") &&
	       strcmp(name, "runtime.handleAsyncEvent") &&
	       strcmp(name, "runtime.corostart");
}

const char *wp_go_program_reason(const struct wp_go_program *program,
				 unsigned int reason)
{
	return reason < program->nreasons ? program->reasons[reason] : "";
}
