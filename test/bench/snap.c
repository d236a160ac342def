/* SPDX-License-Identifier: Apache-2.0 */
/* snap.c - see snap.h. */
#include "snap.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"
#include "wallprof/tracer.h"

enum {
	THREADS_MAX = 32,
	PAGE = 4096,
	RED_ZONE = 128,
};

static int by_address(const void *a, const void *b)
{
	const struct snap_segment *x = a, *y = b;

	return (x->start_avma > y->start_avma) -
	       (x->start_avma < y->start_avma);
}

static size_t add_segments(struct snap_segment *v, size_t n,
			   const struct wp_unwind_module *module)
{
	const struct wp_elf_image *image = module->image;

	for (uint32_t i = 0; image && i < image->nloads; i++) {
		const struct wp_elf_load *load = &image->loads[i];

		if (load->flags & PF_W)
			continue;
		v[n++] = (struct snap_segment){ module->bias + load->svma,
						module->bias + load->svma +
							load->filesz,
						load->off, module->image };
	}
	return n;
}

/* Open all files, and list what of them is mapped. */
static int list_segments(struct snap_set *set)
{
	const struct wp_unwind_modules *modules = &set->space.view;

	set->segments = calloc(modules->len * WP_ELF_LOADS_MAX + 1,
			       sizeof(*set->segments));
	if (!set->segments)
		return -ENOMEM;
	/* A file is opened when an address in it is looked up. */
	for (size_t i = 0; i < modules->len; i++)
		set->nsegments = add_segments(
			set->segments, set->nsegments,
			wp_unwind_find_module(modules,
					      modules->v[i].start_avma));
	qsort(set->segments, set->nsegments, sizeof(*set->segments),
	      by_address);
	return 0;
}

static int open_space(struct snap_set *set)
{
	wp_modules_init(&set->modules, &set->profile, &set->images);
	return wp_address_space_open(&set->space, &set->process, &set->modules,
				     0);
}

int snap_set_open(struct snap_set *ret, pid_t pid, struct wp_err *err)
{
	int rc;

	*ret = (struct snap_set){ .process = WP_PROCESS_INIT,
				  .space = WP_ADDRESS_SPACE_INIT };
	rc = wp_process_open(&ret->process, pid, err);
	if (rc)
		return rc;
	rc = wp_profile_init(&ret->profile);
	if (!rc)
		rc = open_space(ret);
	if (!rc)
		return 0;
	snap_set_close(ret);
	return wp_err_set(err, rc, "pid %d: %s", (int)pid, strerror(-rc));
}

static void clear(struct snap *snap)
{
	for (size_t i = 0; i < snap->npieces; i++)
		free(snap->pieces[i].bytes);
	snap->npieces = 0;
}

void snap_set_close(struct snap_set *set)
{
	for (size_t i = 0; i < set->len; i++)
		clear(&set->v[i]);
	free(set->v);
	free(set->segments);
	wp_address_space_close(&set->space);
	wp_modules_clear(&set->modules);
	wp_image_cache_clear(&set->images);
	wp_profile_clear(&set->profile);
	wp_process_clear(&set->process);
}

/* Read code of MODULE, whose file alone is opened. */
static enum wp_mem_result read_code(const struct wp_unwind_module *module,
				    uint64_t avma, void *buf, size_t len)
{
	const uint8_t *bytes = NULL;
	uint64_t off;

	if (module->image &&
	    wp_elf_image_offset(module->image, avma - module->bias, &off))
		bytes = wp_elf_image_at(module->image, off, len);
	if (!bytes)
		return WP_MEM_UNREADABLE;
	memcpy(buf, bytes, len);
	return WP_MEM_OK;
}

static enum wp_mem_result read_file(struct snap_set *set, uint64_t avma,
				    void *buf, size_t len)
{
	const struct wp_unwind_module *module = wp_unwind_find_module(
		&set->space.view, avma);
	const struct snap_segment *s;
	const uint8_t *bytes;
	size_t lo = 0, hi;

	if (module && !read_code(module, avma, buf, len))
		return WP_MEM_OK;
	if (!set->segments && list_segments(set))
		return WP_MEM_UNREADABLE;
	hi = set->nsegments;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (avma >= set->segments[mid].end_avma)
			lo = mid + 1;
		else
			hi = mid;
	}
	s = &set->segments[lo];
	if (lo == set->nsegments || avma < s->start_avma ||
	    len > s->end_avma - avma)
		return WP_MEM_UNREADABLE;
	bytes = wp_elf_image_at(s->image, s->off + (avma - s->start_avma), len);
	if (!bytes)
		return WP_MEM_UNREADABLE;
	memcpy(buf, bytes, len);
	return WP_MEM_OK;
}

/* Fetch LEN bytes at AVMA of the live target as one more piece. */
static const struct snap_piece *add_piece(struct snap *snap, uint64_t avma,
					  size_t len)
{
	struct snap_piece *piece = &snap->pieces[snap->npieces];
	uint8_t *bytes;
	ssize_t n;

	if (snap->npieces == SNAP_PIECES_MAX)
		return NULL;
	bytes = malloc(len);
	if (!bytes)
		return NULL;
	n = wp_process_read(&snap->set->process, avma, bytes, len);
	if (n <= 0) {
		free(bytes);
		return NULL;
	}
	*piece = (struct snap_piece){ avma, (size_t)n, bytes };
	snap->npieces++;
	return piece;
}

static enum wp_mem_result read_piece(const struct snap_piece *piece,
				     uint64_t avma, void *buf, size_t len)
{
	uint64_t at = avma - piece->avma;

	if (avma < piece->avma || at >= piece->len || len > piece->len - at)
		return WP_MEM_UNREADABLE;
	memcpy(buf, piece->bytes + at, len);
	return WP_MEM_OK;
}

enum wp_mem_result snap_read(void *ctx, uint64_t avma, void *buf, size_t len)
{
	struct snap *snap = ctx;
	const struct snap_piece *piece;

	for (size_t i = 0; i < snap->npieces; i++)
		if (!read_piece(&snap->pieces[i], avma, buf, len))
			return WP_MEM_OK;
	if (!read_file(snap->set, avma, buf, len))
		return WP_MEM_OK;
	if (!snap->live)
		return WP_MEM_UNREADABLE;
	piece = add_piece(snap, avma & -(uint64_t)PAGE, (size_t)2 * PAGE);
	return piece ? read_piece(piece, avma, buf, len) : WP_MEM_UNREADABLE;
}

static void copy_stack(struct snap *snap)
{
	uint64_t sp = snap->regs.v[WP_REG_SP];
	uint64_t end = wp_address_space_stack_end(&snap->set->space, sp);
	uint64_t len = end > sp ? end - sp : PAGE;

	if (len > SNAP_STACK_MAX)
		len = SNAP_STACK_MAX;
	if (!add_piece(snap, sp - RED_ZONE, (size_t)len + RED_ZONE))
		add_piece(snap, sp, (size_t)len);
}

static bool is_same(const struct snap *a, const struct snap *b)
{
	return a->tid == b->tid &&
	       !memcmp(&a->regs, &b->regs, sizeof(a->regs)) && a->npieces &&
	       b->npieces && a->pieces[0].len == b->pieces[0].len &&
	       !memcmp(a->pieces[0].bytes, b->pieces[0].bytes,
		       a->pieces[0].len);
}

static bool is_new(const struct snap_set *set, const struct snap *snap)
{
	for (size_t i = set->len; i-- > 0;)
		if (set->v[i].tid == snap->tid)
			return !is_same(&set->v[i], snap);
	return true;
}

static int add(struct snap_set *set, struct snap *snap)
{
	struct snap *more;

	if (!snap->npieces || !is_new(set, snap)) {
		clear(snap);
		return 0;
	}
	more = reallocarray(set->v, set->len + 1, sizeof(*set->v));
	if (!more) {
		clear(snap);
		return -ENOMEM;
	}
	set->v = more;
	set->v[set->len++] = *snap;
	return 0;
}

/* How snapshots are taken. */
struct plan {
	struct snap_set *set;
	struct wp_tracer tracer;
	void (*look)(void *ctx, struct snap *snap);
	void *ctx;
	/* Instructions to look at after the first of a stop. */
	unsigned int steps;
	/* Snapshots stay in the set. */
	bool keeps;
};

/* Show the thread as it is, and add it to the set if it is to be kept. */
static int look_once(struct plan *plan, struct wp_tracee *tracee)
{
	struct snap snap = { .set = plan->set,
			     .tid = tracee->tid,
			     .live = true };
	struct wp_stop_facts facts;

	if (wp_tracer_read_regs(tracee, &snap.regs, &facts))
		return -ESRCH;
	copy_stack(&snap);
	if (snap.npieces)
		plan->look(plan->ctx, &snap);
	snap.live = false;
	if (plan->keeps)
		return add(plan->set, &snap);
	clear(&snap);
	return 0;
}

/* The next stop of TID: 1, with *RET_STATUS, 0 after 20 ms without one, or -1
 * if it is gone.  SIGCHLD is blocked (wp_tracer_init). */
static int wait_stop(pid_t tid, int *ret_status)
{
	const struct timespec most = { 0, 20 * (long)WP_NS_PER_MS };
	sigset_t set;
	pid_t rc;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	/* An earlier stop may have left its signal behind: twice. */
	for (int i = 0; i < 3; i++) {
		rc = waitpid(tid, ret_status, __WALL | WNOHANG);
		if (rc)
			return rc > 0 && WIFSTOPPED(*ret_status) ? 1 : -1;
		if (sigtimedwait(&set, NULL, &most) < 0)
			break;
	}
	rc = waitpid(tid, ret_status, __WALL | WNOHANG);
	return rc > 0 && WIFSTOPPED(*ret_status) ? 1 : rc ? -1 : 0;
}

static bool has_pending_trap(pid_t tid)
{
	char path[32], text[4096];
	uint64_t pending;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	n = wp_io_read_at(AT_FDCWD, path, text, sizeof(text));
	return n > 0 &&
	       !wp_proc_status_parse(&pending, text, (size_t)n, "SigPnd", 16) &&
	       pending >> (SIGTRAP - 1) & 1;
}

/* Stop TID, which sleeps in the system call that was to be stepped over.  The
 * way out of the call sends the step's SIGTRAP, which comes after our stop and
 * would kill the thread once it is let go. */
static void stop_stepping(pid_t tid)
{
	int status, rc;

	ptrace(PTRACE_INTERRUPT, tid, 0, 0);
	while (!(rc = wait_stop(tid, &status)))
		;
	if (rc < 0 || !has_pending_trap(tid))
		return;
	ptrace(PTRACE_CONT, tid, 0, 0);
	while (!wait_stop(tid, &status))
		;
}

/* One instruction on: false, with the thread stopped or gone, if that was not
 * it. */
static bool step_once(struct wp_tracee *tracee)
{
	int status, rc;

	tracee->repaired = false;
	if (ptrace(PTRACE_SINGLESTEP, tracee->tid, 0,
		   (void *)(intptr_t)tracee->signal))
		return false;
	tracee->signal = 0;
	rc = wait_stop(tracee->tid, &status);
	if (!rc)
		stop_stepping(tracee->tid);
	if (rc <= 0 || status >> 16)
		return false;
	if (WSTOPSIG(status) != SIGTRAP)
		tracee->signal = WSTOPSIG(status);
	return true;
}

static int take(struct plan *plan, pid_t tid)
{
	struct wp_tracer *tracer = &plan->tracer;
	struct wp_tracee *tracee;
	int rc = wp_tracer_interrupt(tracer, tid, (uint64_t)tid);

	if (rc)
		return rc == -ENOMEM ? rc : 0;
	tracee = wp_tracer_wait(tracer, wp_clock_ns() + 200 * WP_NS_PER_MS);
	if (!tracee) {
		tracee = wp_tracer_find(tracer, (uint64_t)tid);
		if (tracee)
			wp_tracer_release(tracer, tracee);
		return 0;
	}
	rc = look_once(plan, tracee);
	for (unsigned int i = 0; !rc && i < plan->steps; i++) {
		if (!step_once(tracee))
			break;
		rc = look_once(plan, tracee);
	}
	wp_tracer_release(tracer, tracee);
	return rc == -ESRCH ? 0 : rc;
}

static int take_rounds(struct plan *plan, unsigned int rounds)
{
	/* No divisor of a target's own period. */
	const struct timespec gap = { 0, 3700000 };
	struct wp_tids tids = WP_TIDS_INIT;
	int rc = wp_process_list_threads(&plan->set->process, &tids);

	wp_tracer_init(&plan->tracer);
	for (unsigned int i = 0; !rc && i < rounds; i++) {
		for (size_t j = 0; !rc && j < tids.len && j < THREADS_MAX; j++)
			rc = take(plan, tids.v[j]);
		nanosleep(&gap, NULL);
	}
	wp_tracer_clear(&plan->tracer);
	wp_tids_clear(&tids);
	return rc;
}

int snap_set_take(struct snap_set *set, unsigned int rounds,
		  void (*look)(void *ctx, struct snap *snap), void *ctx)
{
	struct plan plan = {
		.set = set, .look = look, .ctx = ctx, .keeps = true
	};

	return take_rounds(&plan, rounds);
}

int snap_set_show(struct snap_set *set, unsigned int rounds, unsigned int steps,
		  void (*look)(void *ctx, struct snap *snap), void *ctx)
{
	struct plan plan = {
		.set = set, .look = look, .ctx = ctx, .steps = steps
	};

	return take_rounds(&plan, rounds);
}
