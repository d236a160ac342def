/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_objects.c - the channel, lock or descriptor that a goroutine waits for.
 *
 * A goroutine that waits for channels has a struct sudog for each, which g.waiting
 * leads to.  One that waits at a semaphore (runtime/sema.go, semacquire1: locks,
 * sync.WaitGroup) has one as well: g.waiting leads there since Go 1.26; before, the
 * frame of semacquire1 keeps it, whose place in the stack is found once.  A sudog
 * names its goroutine, by which it is known.  Who holds a lock is written nowhere.
 */
#include <errno.h>
#include <stdlib.h>

#include "goroutine_reader.h"
#include "wallprof/vec.h"

enum {
	WORD = 8,
	/* Of a select, and of all goroutines. */
	CASES_MAX = 64,
	OBJECTS_MAX = 1 << 20,
	/* Words of a stack above the frame of semacquire1 or in it. */
	TOP_MAX = 96,
	SUDOG = 104,
	/* hchan: qcount, dataqsiz, buf, elemsize, closed, timer (Go 1.23). */
	CHANNEL = 40,
	CHANNEL_CAP = 8,
	CHANNEL_ELEM = 24,
	CHANNEL_CLOSED = 28,
	CHANNEL_TIMER = 32,
	TIMER_MINOR = 23,
	/* A time.Time, for one of which a timer's channel has room. */
	TIME = 24,
	/* sync.Cond: its locker comes before the list that waiters are in. */
	COND_LIST = 16,
	/* pollDesc: fd; rg and wg follow each other. */
	POLL_FD = 8,
	POLL_MAX = 48,
};

static int add_object(struct wp_goroutines *all, struct wp_goroutine *g,
		      const struct wp_go_object *object)
{
	if (all->nobjects >= OBJECTS_MAX)
		return 0;
	if (WP_VEC_ROOM(all->objects, all->nobjects, all->cap_objects, 1))
		return -ENOMEM;
	if (!g->nobjects)
		g->first_object = all->nobjects;
	all->objects[all->nobjects++] = *object;
	g->nobjects++;
	return 0;
}

/* Is what is at AVMA a sudog of G?  Its bytes. */
static bool read_sudog(struct wp_go_program *p, const struct wp_goroutine *g,
		       uint64_t avma, uint8_t *sudog)
{
	return wp_go_is_pointer(avma) &&
	       wp_go_memory_read_at(&p->memory, avma, sudog, SUDOG) &&
	       wp_go_u64(sudog, 0) == g->avma;
}

static bool read_channel(struct wp_go_program *p, uint64_t avma,
			 struct wp_go_object *ret)
{
	uint8_t c[CHANNEL];

	if (!wp_go_is_pointer(avma) ||
	    !wp_go_memory_read_at(&p->memory, avma, c, CHANNEL))
		return false;
	*ret = (struct wp_go_object){
		.kind = WP_GO_OBJECT_CHANNEL,
		.avma = avma,
		.len = wp_go_u64(c, 0),
		.cap = wp_go_u64(c, CHANNEL_CAP),
		.is_closed = wp_go_u32(c, CHANNEL_CLOSED),
		.is_timers = p->layout->minor >= TIMER_MINOR &&
			     wp_go_u64(c, CHANNEL_TIMER),
		/* A timer sends when there is room: who waits, waits to receive. */
		.may_be_timers = !wp_go_u64(c, 0) &&
				 wp_go_u64(c, CHANNEL_CAP) == 1 &&
				 (uint16_t)wp_go_u32(c, CHANNEL_ELEM) == TIME &&
				 !wp_go_u32(c, CHANNEL_CLOSED),
	};
	return ret->len <= ret->cap;
}

static int add_channels(struct wp_go_program *p, struct wp_goroutines *all,
			uint64_t avma, struct wp_goroutine *g)
{
	const struct wp_go_layout *l = p->layout;
	struct wp_go_object object;
	uint8_t sudog[SUDOG];
	int rc = 0;

	for (int i = 0; !rc && i < CASES_MAX && read_sudog(p, g, avma, sudog);
	     i++) {
		if (read_channel(p, wp_go_u64(sudog, l->sudog_c), &object))
			rc = add_object(all, g, &object);
		avma = wp_go_u64(sudog, l->sudog_waitlink);
	}
	return rc;
}

/* The word at AVMA, and those around it. */
static struct wp_go_object read_semaphore(struct wp_go_program *p,
					  uint64_t avma)
{
	struct wp_go_object object = { .kind = WP_GO_OBJECT_SEMAPHORE,
				       .avma = avma };

	object.has_words = wp_go_memory_read_at(
		&p->memory, avma - WP_GO_OBJECT_BEFORE, object.words,
		sizeof(object.words));
	return object;
}

/* The address of the semaphore or list that SUDOG is at; 0: it is at a channel, or
 * at none any more. */
static uint64_t place_of(const struct wp_go_layout *l, const uint8_t *sudog)
{
	uint64_t avma = wp_go_u64(sudog, l->sudog_elem);

	return wp_go_u64(sudog, l->sudog_c) || avma % 4 ||
			       !wp_go_is_pointer(avma & ~UINT64_C(7)) ?
		       0 :
		       avma;
}

/* Find the sudog in the frames that G parked in, the last place first.  Sets *RET to
 * where it waits; 0: not found. */
static void find_in_stack(struct wp_go_program *p,
			  const struct wp_goroutine_reading *r,
			  const struct wp_goroutine *g, uint64_t *ret)
{
	size_t n = r->stack.len / WORD;
	uint8_t sudog[SUDOG];

	*ret = 0;
	if (n > TOP_MAX)
		n = TOP_MAX;
	for (size_t i = 0; i <= n; i++) {
		size_t at = i ? i - 1 : p->sudog_word;
		uint64_t avma;

		if (at >= n || (i && at == p->sudog_word))
			continue;
		avma = wp_go_u64(r->stack.bytes, at * WORD);
		/* Of what is in the stack itself none is. */
		if (avma - wp_go_u64(r->before, WP_GO_G_LO) <
			    wp_go_u64(r->before, WP_GO_G_HI) -
				    wp_go_u64(r->before, WP_GO_G_LO) ||
		    wp_go_is_code(p, avma) || !read_sudog(p, g, avma, sudog))
			continue;
		*ret = place_of(p->layout, sudog);
		if (!*ret)
			continue;
		p->sudog_word = at;
		return;
	}
}

static int add_semaphore(struct wp_go_program *p, struct wp_goroutines *all,
			 uint64_t avma, bool is_cond, struct wp_goroutine *g)
{
	struct wp_go_object object;

	if (!avma)
		return 0;
	object = is_cond ? (struct wp_go_object){ .kind = WP_GO_OBJECT_COND,
						  .avma = avma - COND_LIST } :
			   read_semaphore(p, avma);
	return add_object(all, g, &object);
}

static bool is_waiting(uint32_t status)
{
	return status == WP_GO_WAITING || status == WP_GO_LEAKED;
}

/* Is G still in the wait that it was read in? */
static bool is_there(struct wp_go_program *p, const struct wp_goroutine *g)
{
	const struct wp_go_layout *l = p->layout;
	uint8_t bytes[WP_GO_G_MAX];

	return wp_go_memory_read_at(&p->memory, g->avma, bytes,
				    wp_go_g_len(l)) &&
	       is_waiting(wp_go_status(l, bytes)) &&
	       wp_go_u64(bytes, l->g_goid) == g->id &&
	       bytes[l->g_tracking_seq] == g->seq;
}

static bool waits_at_semaphore(const char *reason)
{
	return !strncmp(reason, "sync.", 5) || !strcmp(reason, "semacquire");
}

int wp_goroutine_objects_read(const struct wp_goroutine_reader *reader,
			      const struct wp_goroutine_reading *r,
			      struct wp_goroutine *g)
{
	struct wp_go_program *p = reader->program;
	const char *reason = wp_intern_str(reader->user->strings, g->reason);
	uint64_t waiting_avma = wp_go_u64(r->before, p->layout->g_waiting);
	uint8_t sudog[SUDOG];
	uint64_t avma = 0;
	int rc;

	if (!is_waiting(wp_go_status(p->layout, r->before)))
		return 0;
	if (!waits_at_semaphore(reason)) {
		rc = add_channels(p, reader->all, waiting_avma, g);
	} else {
		if (read_sudog(p, g, waiting_avma, sudog))
			avma = place_of(p->layout, sudog);
		else
			find_in_stack(p, r, g, &avma);
		rc = add_semaphore(p, reader->all, avma,
				   !strcmp(reason, "sync.Cond.Wait"), g);
	}
	if (g->nobjects && !is_there(p, g)) {
		reader->all->nobjects = g->first_object;
		g->nobjects = 0;
	}
	return rc;
}

static int by_address(const void *a, const void *b, void *goroutines)
{
	const struct wp_goroutines *all = goroutines;
	uint64_t x = all->v[*(const uint32_t *)a].avma;
	uint64_t y = all->v[*(const uint32_t *)b].avma;

	return (x > y) - (x < y);
}

/* The goroutine whose struct is at AVMA; NULL: none of ORDER. */
static struct wp_goroutine *find_at(struct wp_goroutines *all,
				    const uint32_t *order, uint64_t avma)
{
	uint32_t first = 0, end = all->len;

	while (first < end) {
		uint32_t mid = first + (end - first) / 2;

		if (all->v[order[mid]].avma < avma)
			first = mid + 1;
		else
			end = mid;
	}
	return first < all->len && all->v[order[first]].avma == avma ?
		       &all->v[order[first]] :
		       NULL;
}

/* Note who waits for POLLED, whose struct pollDesc names its descriptor. */
static int read_polled(struct wp_go_program *p,
		       const struct wp_epoll_watch *polled,
		       struct wp_goroutines *all, const uint32_t *order)
{
	const struct wp_go_layout *l = p->layout;
	uint64_t avma = (uint64_t)((int64_t)polled->data >> l->poll_right)
			<< l->poll_left;
	uint8_t bytes[POLL_MAX];
	int rc = 0;

	if (!wp_go_is_pointer(avma) ||
	    !wp_go_memory_read_at(&p->memory, avma, bytes, POLL_MAX) ||
	    wp_go_u64(bytes, POLL_FD) != (uint64_t)polled->fd)
		return 0;
	for (int writes = 0; !rc && writes < 2; writes++) {
		uint64_t g_avma = wp_go_u64(
			bytes, (size_t)(l->poll_rg + writes * WORD));
		const struct wp_go_object object = { .kind = WP_GO_OBJECT_FD,
						     .fd = polled->fd,
						     .writes = writes };
		struct wp_goroutine *g = find_at(all, order, g_avma);

		if (g && !g->nobjects && is_there(p, g))
			rc = add_object(all, g, &object);
	}
	return rc;
}

int wp_goroutine_objects_poll(struct wp_go_program *program,
			      const struct wp_epoll_watch *polled, size_t n,
			      struct wp_goroutines *goroutines)
{
	uint32_t *order = calloc((size_t)goroutines->len + 1, sizeof(*order));
	int rc = 0;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < goroutines->len; i++)
		order[i] = i;
	if (goroutines->len)
		qsort_r(order, goroutines->len, sizeof(*order), by_address,
			goroutines);
	for (size_t i = 0; !rc && i < n; i++)
		rc = read_polled(program, &polled[i], goroutines, order);
	free(order);
	return rc;
}
