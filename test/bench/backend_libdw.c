/* SPDX-License-Identifier: Apache-2.0 */
/* backend_libdw.c - libdw's unwinder, as eu-stack uses it: see backend.h. */
#include <stdlib.h>

#include <elfutils/libdwfl.h>

#include "backend.h"

struct self {
	Dwfl *dwfl;
	/* The walk under way. */
	struct snap *snap;
	uint64_t *pcs;
	size_t n;
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct self *self = arg;

	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = self;
	return self->snap->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl, (void)tid;
	*thread_arg = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr avma, Dwarf_Word *ret, void *arg)
{
	struct self *self = arg;

	(void)dwfl;
	return !snap_read(self->snap, avma, ret, sizeof(*ret));
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct self *self = arg;

	return dwfl_thread_state_registers(thread, 0, WP_NREGS,
					   self->snap->regs.v);
}

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct self *self = arg;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || self->n == SNAP_FRAMES_MAX)
		return DWARF_CB_ABORT;
	self->pcs[self->n++] = pc;
	return DWARF_CB_OK;
}

static void close_self(void *arg)
{
	struct self *self = arg;

	if (self->dwfl)
		dwfl_end(self->dwfl);
	free(self);
}

static void *open_self(struct snap_set *set)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = read_memory,
		.set_initial_registers = set_registers,
	};
	struct self *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->dwfl = dwfl_begin(&callbacks);
	if (!self->dwfl ||
	    dwfl_linux_proc_report(self->dwfl, set->process.pid) ||
	    dwfl_report_end(self->dwfl, NULL, NULL) ||
	    !dwfl_attach_state(self->dwfl, NULL, set->process.pid, &threads,
			       self)) {
		close_self(self);
		return NULL;
	}
	return self;
}

static size_t walk(void *arg, struct snap *snap, uint64_t *pcs)
{
	struct self *self = arg;

	self->snap = snap;
	self->pcs = pcs;
	self->n = 0;
	/* An error ends a walk as the last frame does. */
	(void)dwfl_getthread_frames(self->dwfl, snap->tid, add_frame, self);
	return self->n;
}

const struct backend backend_libdw = {
	"libdw",
	open_self,
	walk,
	close_self,
};
