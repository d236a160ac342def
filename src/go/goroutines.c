/* SPDX-License-Identifier: Apache-2.0 */
/* goroutines.c - read all goroutines of a program that runs on.
 *
 * A piece of the list at a time: the structs, the stacks of those that do not
 * run, the structs again.  A goroutine that has run in between has another
 * trackingSeq (runtime/proc.go, casgstatus: counted each time that it leaves the
 * state running), so its stack is none and is read again.  Without that counter
 * one stack in 200 was a mixture of two at 4 million wakes per second.
 */
#include <errno.h>
#include <stdlib.h>

#include "goroutine_reader.h"
#include "wallprof/budget.h"
#include "wallprof/vec.h"

enum {
	WORD = 8,
	/* Goroutines of one piece. */
	PIECE = 512,
	/* Distances up to which ranges are read as one. */
	G_GAP = 1024,
	STACK_GAP = 2048,
	/* Bytes of a stack that are read; of one whose walk needs more, and of
	 * all of these. */
	STACK_MAX = 32 << 10,
	DEEP_MAX = 8 << 20,
	ALL_DEEP_MAX = 256 << 20,
	TRIES = 4,
};

void wp_goroutines_clear(struct wp_goroutines *goroutines)
{
	free(goroutines->v);
	free(goroutines->labels);
	free(goroutines->objects);
	wp_budget_give(WP_BUDGET_GOROUTINES, goroutines->taken);
	*goroutines = (struct wp_goroutines)WP_GOROUTINES_INIT;
}

bool wp_go_find_state(uint32_t status, enum wp_goroutine_state *ret)
{
	switch (status) {
	case WP_GO_RUNNABLE:
		*ret = WP_GOROUTINE_RUNNABLE;
		return true;
	case WP_GO_RUNNING:
		*ret = WP_GOROUTINE_RUNNING;
		return true;
	case WP_GO_SYSCALL:
		*ret = WP_GOROUTINE_SYSCALL;
		return true;
	case WP_GO_WAITING:
	case WP_GO_COPYSTACK:
		*ret = WP_GOROUTINE_WAITING;
		return true;
	case WP_GO_PREEMPTED:
		*ret = WP_GOROUTINE_PREEMPTED;
		return true;
	case WP_GO_LEAKED:
		*ret = WP_GOROUTINE_LEAKED;
		return true;
	default:
		return false;
	}
}

/* Set the stack that is to be read of R, whose struct is BEFORE. */
static void find_stack(const struct wp_go_layout *l,
		       struct wp_goroutine_reading *r, uint64_t max)
{
	uint32_t status = wp_go_status(l, r->before);
	uint64_t lo = wp_go_u64(r->before, WP_GO_G_LO);
	uint64_t hi = wp_go_u64(r->before, WP_GO_G_HI);
	bool in_syscall = status == WP_GO_SYSCALL &&
			  wp_go_u64(r->before, l->g_syscallsp);

	r->stack = (struct wp_goroutine_stack){ .bytes = NULL };
	if (status == WP_GO_RUNNING || status == WP_GO_COPYSTACK)
		return;
	r->stack.pc_avma = wp_go_u64(r->before,
				     in_syscall ? l->g_syscallpc : WP_GO_G_PC);
	r->stack.sp_avma = wp_go_u64(r->before,
				     in_syscall ? l->g_syscallsp : WP_GO_G_SP);
	if (!in_syscall)
		r->stack.fp_avma = wp_go_u64(r->before, l->g_bp);
	if (r->stack.sp_avma < lo || r->stack.sp_avma >= hi) {
		r->stack.sp_avma = 0;
		return;
	}
	r->stack.len = hi - r->stack.sp_avma;
	r->stack.is_whole = r->stack.len <= max;
	if (!r->stack.is_whole)
		r->stack.len = max;
}

/* Read the structs of v[0..n) into BEFORE or AFTER; one that cannot be read is
 * done. */
static int read_structs(struct wp_goroutine_reader *reader, size_t n,
			bool after)
{
	const struct wp_go_layout *l = reader->program->layout;
	size_t len = after ? (size_t)l->g_tracking_seq + 1 : wp_go_g_len(l);
	size_t nranges = 0;
	int rc;

	for (size_t i = 0; i < n; i++) {
		struct wp_goroutine_reading *r = &reader->v[i];

		if (r->is_done || (after && !r->stack.sp_avma))
			continue;
		reader->of_range[nranges] = (uint32_t)i;
		reader->ranges[nranges++] = (struct wp_process_range){
			.avma = r->avma,
			.buf = after ? r->after : r->before,
			.len = len,
		};
	}
	rc = wp_go_memory_read(&reader->program->memory, reader->ranges,
			       nranges, G_GAP);
	for (size_t i = 0; !rc && i < nranges; i++)
		if (!reader->ranges[i].is_read) {
			reader->v[reader->of_range[i]].is_done = true;
			reader->all->nunread++;
		}
	return rc;
}

static int make_room(struct wp_goroutine_reader *reader, size_t len)
{
	if (len <= reader->stacks_cap)
		return 0;
	free(reader->stacks);
	reader->stacks_cap = 0;
	reader->stacks = malloc(len);
	if (!reader->stacks)
		return -ENOMEM;
	reader->stacks_cap = len;
	return 0;
}

static int read_stacks(struct wp_goroutine_reader *reader, size_t n)
{
	size_t nranges = 0, total = 0;
	int rc;

	for (size_t i = 0; i < n; i++)
		total += reader->v[i].stack.len;
	rc = make_room(reader, total);
	total = 0;
	for (size_t i = 0; !rc && i < n; i++) {
		struct wp_goroutine_stack *stack = &reader->v[i].stack;

		if (reader->v[i].is_done || !stack->sp_avma)
			continue;
		stack->bytes = reader->stacks + total;
		reader->of_range[nranges] = (uint32_t)i;
		reader->ranges[nranges++] = (struct wp_process_range){
			.avma = stack->sp_avma,
			.buf = reader->stacks + total,
			.len = stack->len,
		};
		total += stack->len;
	}
	if (!rc)
		rc = wp_go_memory_read(&reader->program->memory, reader->ranges,
				       nranges, STACK_GAP);
	for (size_t i = 0; !rc && i < nranges; i++)
		if (!reader->ranges[i].is_read)
			reader->v[reader->of_range[i]].stack.sp_avma = 0;
	return rc;
}

/* Has R stood still from BEFORE to AFTER? */
static bool is_same(const struct wp_go_layout *l,
		    const struct wp_goroutine_reading *r)
{
	static const uint16_t always[] = { WP_GO_G_LO, WP_GO_G_HI, WP_GO_G_SP,
					   WP_GO_G_PC };
	const uint16_t others[] = { l->g_goid, l->g_syscallsp };

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (wp_go_u64(r->before, always[i]) !=
		    wp_go_u64(r->after, always[i]))
			return false;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (wp_go_u64(r->before, others[i]) !=
		    wp_go_u64(r->after, others[i]))
			return false;
	return wp_go_status(l, r->before) == wp_go_status(l, r->after) &&
	       r->before[l->g_tracking_seq] == r->after[l->g_tracking_seq];
}

int32_t wp_go_read_tid(struct wp_go_program *program, uint64_t m_avma)
{
	uint64_t tid;

	if (!m_avma ||
	    !wp_go_memory_read_at(&program->memory,
				  m_avma + program->layout->m_procid, &tid,
				  WORD) ||
	    tid > INT32_MAX)
		return 0;
	return (int32_t)tid;
}

static int set_labels(struct wp_goroutine_reader *reader, const uint8_t *bytes,
		      struct wp_goroutine *g)
{
	uint64_t avma = wp_go_u64(bytes, reader->program->layout->g_labels);
	int rc = 0;

	if (!avma)
		return 0;
	if (avma != reader->labels_avma)
		rc = wp_goroutine_labels_read(
			reader->program, avma, reader->user->strings,
			reader->all, &reader->first_label, &reader->nlabels);
	reader->labels_avma = rc ? 0 : avma;
	g->first_label = reader->first_label;
	g->nlabels = reader->nlabels;
	return rc;
}

/* What a struct says of a goroutine, but for its labels and thread. */
static int describe(struct wp_goroutine_reader *reader, const uint8_t *bytes,
		    struct wp_goroutine *ret)
{
	const struct wp_go_program *p = reader->program;
	const struct wp_go_layout *l = p->layout;
	uint8_t reason = bytes[l->g_waitreason];
	struct wp_goroutine g = {
		.id = wp_go_u64(bytes, l->g_goid),
		.parent_id = l->g_parent ? wp_go_u64(bytes, l->g_parent) : 0,
		.created_avma = wp_go_u64(bytes, l->g_gopc),
		.start_avma = wp_go_u64(bytes, l->g_startpc),
		.labels_avma = wp_go_u64(bytes, l->g_labels),
		.seq = bytes[l->g_tracking_seq],
	};

	wp_go_find_state(wp_go_status(l, bytes), &g.state);
	if (g.state == WP_GOROUTINE_WAITING || g.state == WP_GOROUTINE_LEAKED) {
		g.since_ns = wp_go_u64(bytes, l->g_waitsince);
		if (reason < p->nreasons)
			g.reason = wp_intern_add_str(reader->user->strings,
						     p->reasons[reason]);
	}
	*ret = g;
	return g.reason == UINT32_MAX ? -ENOMEM : 0;
}

/* Take of the budget for what there is, and as much for what is made of it.  Most that
 * wait do so for one object, which may be told later. */
static bool take_room(const struct wp_goroutine_reader *reader)
{
	struct wp_goroutines *all = reader->all;
	uint64_t nobjects = reader->user->reads_objects &&
					    all->nobjects < all->len ?
				    all->len :
				    all->nobjects;
	uint64_t need = 2 * (all->len * sizeof(*all->v) +
			     all->nlabels * sizeof(*all->labels) +
			     nobjects * sizeof(*all->objects));

	if (need <= all->taken)
		return true;
	if (!wp_budget_take(WP_BUDGET_GOROUTINES, need - all->taken))
		return false;
	all->taken = need;
	return true;
}

/* Add G, unless there is no room within --max-memory. */
static int add(struct wp_goroutine_reader *reader, const struct wp_goroutine *g)
{
	struct wp_goroutines *all = reader->all;

	if (WP_VEC_ROOM(all->v, all->len, all->cap, 1))
		return -ENOMEM;
	all->v[all->len++] = *g;
	reader->is_full = !take_room(reader);
	if (reader->is_full) {
		all->len--;
		all->nobjects -= g->nobjects;
		all->nunread++;
	}
	return 0;
}

/* Give R to the user.  LAST: it is not read again, whatever its stack is. */
static int give(struct wp_goroutine_reader *reader,
		struct wp_goroutine_reading *r, bool last)
{
	const struct wp_go_layout *l = reader->program->layout;
	bool is_running = wp_go_status(l, r->before) == WP_GO_RUNNING;
	bool is_still = r->stack.sp_avma && is_same(l, r);
	struct wp_goroutine g;
	int rc;

	if (!is_still && !is_running && !last)
		return 0;
	rc = describe(reader, r->before, &g);
	if (rc)
		return rc;
	g.index = r->index;
	g.avma = r->avma;
	r->is_deep = false;
	if (!reader->user->walk(reader->user->ctx, &g,
				is_still ? &r->stack : NULL, last) &&
	    !last) {
		r->is_deep = is_still && !r->stack.is_whole;
		return 0;
	}
	g.tid = wp_go_read_tid(reader->program,
			       wp_go_u64(r->before, WP_GO_G_M));
	g.locked_tid = wp_go_read_tid(reader->program,
				      wp_go_u64(r->before, l->g_lockedm));
	rc = reader->user->skips_labels ? 0 : set_labels(reader, r->before, &g);
	if (!rc && reader->user->reads_objects && is_still)
		rc = wp_goroutine_objects_read(reader, r, &g);
	if (!rc)
		rc = add(reader, &g);
	reader->all->nmoved += !rc && !is_still && !is_running;
	r->is_done = true;
	return rc;
}

/* Read v[0..n) once. */
static int read_once(struct wp_goroutine_reader *reader, size_t n,
		     uint64_t stack_max, bool last)
{
	const struct wp_go_layout *l = reader->program->layout;
	enum wp_goroutine_state state;
	int rc = read_structs(reader, n, false);

	for (size_t i = 0; !rc && i < n; i++) {
		struct wp_goroutine_reading *r = &reader->v[i];

		r->stack.sp_avma = r->stack.len = 0;
		if (!r->is_done &&
		    !wp_go_find_state(wp_go_status(l, r->before), &state))
			r->is_done = true;
		if (!r->is_done)
			find_stack(l, r, stack_max);
	}
	if (!rc)
		rc = read_stacks(reader, n);
	if (!rc)
		rc = read_structs(reader, n, true);
	for (size_t i = 0; !rc && i < n; i++)
		if (!reader->v[i].is_done)
			rc = give(reader, &reader->v[i], last);
	return rc;
}

/* Read what of v[0..n) is not done again, each by itself. */
static int read_again(struct wp_goroutine_reader *reader, size_t n)
{
	struct wp_goroutine_reading first = reader->v[0];
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		struct wp_goroutine_reading r = i ? reader->v[i] : first;

		reader->v[0] = r;
		for (int k = 1; !rc && k < TRIES && !reader->v[0].is_done;
		     k++) {
			uint64_t max = STACK_MAX;

			if (reader->v[0].is_deep &&
			    reader->deep_left >= DEEP_MAX) {
				max = DEEP_MAX;
				reader->deep_left -= DEEP_MAX;
			}
			rc = read_once(reader, 1, max, k + 1 == TRIES);
		}
	}
	return rc;
}

/* Read at most PIECE goroutines. */
static int read_piece(struct wp_goroutine_reader *reader, const uint64_t *avmas,
		      const uint32_t *indices, size_t first, size_t n)
{
	int rc;

	for (size_t i = 0; i < n; i++) {
		uint64_t avma = avmas[first + i];

		reader->v[i].avma = avma;
		reader->v[i].index = indices ? indices[first + i] :
					       (uint32_t)(first + i);
		reader->v[i].is_done = !avma || avma % WORD;
		reader->v[i].is_deep = false;
	}
	rc = read_once(reader, n, STACK_MAX, false);
	return rc ? rc : read_again(reader, n);
}

int wp_goroutine_reader_init(struct wp_goroutine_reader *reader,
			     struct wp_go_program *program)
{
	*reader = (struct wp_goroutine_reader){
		.program = program,
		.v = malloc(PIECE * sizeof(*reader->v)),
		.ranges = calloc(PIECE, sizeof(*reader->ranges)),
		.of_range = calloc(PIECE, sizeof(*reader->of_range)),
	};
	return reader->v && reader->ranges && reader->of_range ? 0 : -ENOMEM;
}

void wp_goroutine_reader_clear(struct wp_goroutine_reader *reader)
{
	free(reader->v);
	free(reader->ranges);
	free(reader->of_range);
	free(reader->stacks);
	*reader = (struct wp_goroutine_reader){ .program = NULL };
}

int wp_goroutine_reader_read(struct wp_goroutine_reader *reader,
			     const struct wp_goroutine_user *user,
			     const uint64_t *avmas, const uint32_t *indices,
			     size_t n, struct wp_goroutines *goroutines)
{
	int rc = 0;

	reader->user = user;
	reader->all = goroutines;
	reader->deep_left = ALL_DEEP_MAX;
	reader->labels_avma = 0;
	reader->is_full = false;
	for (size_t at = 0; !rc && at < n; at += PIECE) {
		if (reader->is_full) {
			goroutines->nunread += n - at;
			break;
		}
		rc = read_piece(reader, avmas, indices, at,
				n - at < PIECE ? n - at : PIECE);
	}
	return rc;
}

/* Set AVMAS[0..*ret_n), which the caller frees, to the addresses of all
 * goroutines' structs, and *RET_TAKEN to what they take of the budget. */
static int read_list(struct wp_go_program *program,
		     struct wp_goroutines *goroutines, uint64_t **ret_avmas,
		     size_t *ret_n, uint64_t *ret_taken)
{
	uint64_t slice[2], n, *avmas;

	*ret_avmas = NULL;
	*ret_n = 0;
	*ret_taken = 0;
	if (!wp_go_memory_read_at(&program->memory, program->allgs_avma, slice,
				  sizeof(slice)))
		return -ESRCH;
	n = slice[1] < WP_GOROUTINES_MAX ? slice[1] : WP_GOROUTINES_MAX;
	while (n && !wp_budget_take(WP_BUDGET_GO, n * WORD))
		n /= 2;
	goroutines->nunread += slice[1] - n;
	*ret_taken = n * WORD;
	avmas = malloc((size_t)n * WORD + 1);
	if (!avmas)
		return -ENOMEM;
	/* Old arrays stay as they are when the list grows. */
	if (!wp_go_memory_read_at(&program->memory, slice[0], avmas,
				  (size_t)n * WORD)) {
		goroutines->nunread += n;
		n = 0;
	}
	*ret_avmas = avmas;
	*ret_n = (size_t)n;
	return 0;
}

int wp_goroutines_read(struct wp_go_program *program,
		       const struct wp_goroutine_user *user,
		       struct wp_goroutines *goroutines)
{
	struct wp_goroutine_reader reader;
	uint64_t *avmas = NULL;
	uint64_t taken = 0;
	size_t n = 0;
	int rc = wp_goroutine_reader_init(&reader, program);

	if (!rc)
		rc = read_list(program, goroutines, &avmas, &n, &taken);
	if (!rc)
		rc = wp_goroutine_reader_read(&reader, user, avmas, NULL, n,
					      goroutines);
	free(avmas);
	wp_budget_give(WP_BUDGET_GO, taken);
	wp_goroutine_reader_clear(&reader);
	return rc;
}
