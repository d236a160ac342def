/* SPDX-License-Identifier: Apache-2.0 */
/* backend_wallprof.c - wallprof's own back ends: see backend.h. */
#include <stdlib.h>

#include "backend.h"
#include "wallprof/unwind.h"

struct self {
	struct wp_unwinder *unwinder;
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

static size_t walk(void *arg, struct snap *snap, uint64_t *pcs)
{
	struct self *self = arg;
	struct wp_mem mem = { snap_read, snap };
	struct wp_stack stack = { .frames = self->frames,
				  .cfa_avma = self->cfas,
				  .cap = SNAP_FRAMES_MAX };

	wp_unwind_walk(self->unwinder, self->modules, &snap->regs, &mem,
		       WP_UNWIND_THOROUGH, &stack);
	for (uint32_t i = 0; i < stack.depth; i++)
		pcs[i] = stack.frames[i].pc_avma;
	return stack.depth;
}

static void close_self(void *arg)
{
	struct self *self = arg;

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
