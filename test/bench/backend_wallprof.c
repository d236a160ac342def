/* SPDX-License-Identifier: Apache-2.0 */
/* backend_wallprof.c - wallprof's own back ends: see backend.h. */
#include <stdlib.h>

#include "backend.h"
#include "wallprof/unwind.h"

enum { TAILS = 64 };

struct self {
	struct wp_unwinder *unwinder;
	/* What was found last, by thread. */
	bool has_tails;
	pid_t tids[TAILS];
	struct wp_tail *tails[TAILS];
	const struct wp_unwind_modules *modules;
	struct wp_frame frames[SNAP_FRAMES_MAX];
	uint64_t cfas[SNAP_FRAMES_MAX];
};

static void *open_self(struct snap_set *set, enum wp_unwind_backend backend)
{
	struct self *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->modules = &set->space.view;
	if (wp_unwinder_new(&self->unwinder, backend)) {
		free(self);
		return NULL;
	}
	return self;
}

static void *open_rows(struct snap_set *set)
{
	return open_self(set, WP_UNWIND_ROWS);
}

static void *open_sharded(struct snap_set *set)
{
	return open_self(set, WP_UNWIND_LIBUNWIND);
}

static void *open_again(struct snap_set *set)
{
	struct self *self = open_self(set, WP_UNWIND_ROWS);

	if (self)
		self->has_tails = true;
	return self;
}

/* The tail of TID, made when first asked for; NULL: none. */
static struct wp_tail *tail_of(struct self *self, pid_t tid)
{
	for (int i = 0; self->has_tails && i < TAILS; i++) {
		if (!self->tails[i] &&
		    !wp_tail_new(&self->tails[i], SNAP_FRAMES_MAX))
			self->tids[i] = tid;
		if (self->tails[i] && self->tids[i] == tid)
			return self->tails[i];
	}
	return NULL;
}

static size_t walk(void *arg, struct snap *snap, uint64_t *pcs)
{
	struct self *self = arg;
	struct wp_mem mem = { snap_read, snap };
	struct wp_stack stack = { .frames = self->frames,
				  .cfa_avma = self->cfas,
				  .cap = SNAP_FRAMES_MAX };

	struct wp_tail *tail = tail_of(self, snap->tid);

	if (tail)
		wp_unwind_walk_again(self->unwinder, self->modules, &snap->regs,
				     &mem, tail, &stack);
	else
		wp_unwind_walk(self->unwinder, self->modules, &snap->regs, &mem,
			       &stack);
	for (uint32_t i = 0; i < stack.depth; i++)
		pcs[i] = stack.frames[i].pc_avma;
	return stack.depth;
}

static void close_self(void *arg)
{
	struct self *self = arg;

	for (int i = 0; i < TAILS; i++)
		wp_tail_free(self->tails[i]);
	wp_unwinder_free(self->unwinder);
	free(self);
}

const struct backend backend_rows = {
	"rows",
	open_rows,
	walk,
	close_self,
};

const struct backend backend_sharded = {
	"libunwind-sharded",
	open_sharded,
	walk,
	close_self,
};

const struct backend backend_again = {
	"rows-again",
	open_again,
	walk,
	close_self,
};
