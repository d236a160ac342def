/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_bench - what a frame costs each unwinder, on the same snapshots.
 *
 * unwind_bench [-n TAKES] [-r ROUNDS] [-v] PID...
 *
 * One JSON object a line: "snapshots" per process, "warm" (ns per frame, the
 * median, least and most of the rounds, all snapshots of the process in turn),
 * "cold" (us from nothing to the first stack), "diff" (stacks that are not as
 * the rows walked them).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "wallprof/clock.h"

enum {
	ROUNDS_MAX = 64,
	COLD_ROUNDS = 5,
	SHOWN_MAX = 3,
};

/* A round lasts at least so long. */
#define ROUND_NS (2 * WP_NS_PER_MS)

/* The first is what others are compared with. */
static const struct backend *const backends[] = {
	&backend_rows,	   &backend_libunwind, &backend_sharded,
	&backend_uncached, &backend_libdw,
};

enum { NBACKENDS = sizeof(backends) / sizeof(*backends) };

struct bench {
	pid_t pid;
	unsigned int takes;
	unsigned int rounds;
	bool verbose;
	struct snap_set set;
	/* NULL: could not be opened. */
	void *selves[NBACKENDS];
};

static uint64_t pcs[SNAP_FRAMES_MAX], other_pcs[SNAP_FRAMES_MAX];

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void look(void *ctx, struct snap *snap)
{
	struct bench *b = ctx;

	for (int i = 0; i < NBACKENDS; i++)
		if (b->selves[i])
			backends[i]->walk(b->selves[i], snap, pcs);
}

static void print_stack(const char *name, const uint64_t *v, size_t n)
{
	fprintf(stderr, "  %-18s", name);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, " %" PRIx64, v[i]);
	fputc('\n', stderr);
}

/* How the stacks of back end I differ: equal, one goes on where the other
 * ends, or otherwise. */
static void compare(struct bench *b, int i)
{
	size_t equal = 0, shorter = 0, longer = 0, different = 0;

	for (size_t s = 0; s < b->set.len; s++) {
		struct snap *snap = &b->set.v[s];
		size_t n = backends[0]->walk(b->selves[0], snap, pcs);
		size_t m = backends[i]->walk(b->selves[i], snap, other_pcs);
		size_t least = n < m ? n : m;

		if (memcmp(pcs, other_pcs, least * sizeof(*pcs)) != 0)
			different++;
		else if (n == m)
			equal++;
		else if (m < n)
			shorter++;
		else
			longer++;
		if (b->verbose && n + m != 2 * least && s < SHOWN_MAX) {
			print_stack(backends[0]->name, pcs, n);
			print_stack(backends[i]->name, other_pcs, m);
		}
	}
	printf("{\"kind\": \"diff\", \"pid\": %d, \"backend\": \"%s\", "
	       "\"equal\": %zu, \"shorter\": %zu, \"longer\": %zu, "
	       "\"different\": %zu}\n",
	       (int)b->pid, backends[i]->name, equal, shorter, longer,
	       different);
}

/* Nanoseconds per frame of all snapshots, over and over for a while. */
static double time_round(struct bench *b, int i, size_t *ret_frames)
{
	uint64_t start = wp_clock_ns(), now;
	size_t frames = 0;

	do {
		for (size_t s = 0; s < b->set.len; s++)
			frames += backends[i]->walk(b->selves[i], &b->set.v[s],
						    pcs);
		now = wp_clock_ns();
	} while (now - start < ROUND_NS);
	*ret_frames = frames;
	return (double)(now - start) / (double)(frames ? frames : 1);
}

/* Back ends take turns, so that what else the machine does hits all. */
static void time_warm(struct bench *b)
{
	static double ns[NBACKENDS][ROUNDS_MAX];
	size_t frames;

	for (unsigned int r = 0; r < b->rounds; r++)
		for (int i = 0; i < NBACKENDS; i++)
			if (b->selves[i])
				ns[i][r] = time_round(b, i, &frames);
	for (int i = 0; i < NBACKENDS; i++) {
		if (!b->selves[i])
			continue;
		qsort(ns[i], b->rounds, sizeof(**ns), by_value);
		printf("{\"kind\": \"warm\", \"pid\": %d, \"backend\": \"%s\", "
		       "\"ns\": %.2f, \"min\": %.2f, \"max\": %.2f}\n",
		       (int)b->pid, backends[i]->name, ns[i][b->rounds / 2],
		       ns[i][0], ns[i][b->rounds - 1]);
	}
}

/* From nothing: find the process's files, open them, walk one stack. */
static double time_first(struct bench *b, int i)
{
	struct snap snap = b->set.v[0];
	uint64_t start = wp_clock_ns(), end = start;
	struct snap_set set;
	void *self;

	if (snap_set_open(&set, b->pid, NULL))
		return -1;
	self = backends[i]->open(&set);
	if (self) {
		snap.set = &set;
		backends[i]->walk(self, &snap, pcs);
		end = wp_clock_ns();
		backends[i]->close(self);
	}
	snap_set_close(&set);
	return (double)(end - start) / 1e3;
}

static void time_cold(struct bench *b)
{
	double us[COLD_ROUNDS];

	for (int i = 0; i < NBACKENDS; i++) {
		for (int r = 0; r < COLD_ROUNDS; r++)
			us[r] = time_first(b, i);
		qsort(us, COLD_ROUNDS, sizeof(*us), by_value);
		printf("{\"kind\": \"cold\", \"pid\": %d, \"backend\": \"%s\", "
		       "\"us\": %.1f, \"min\": %.1f, \"max\": %.1f}\n",
		       (int)b->pid, backends[i]->name, us[COLD_ROUNDS / 2],
		       us[0], us[COLD_ROUNDS - 1]);
	}
}

static void print_snapshots(struct bench *b)
{
	size_t frames = 0;
	char exe[512];

	for (size_t s = 0; s < b->set.len; s++)
		frames += backends[0]->walk(b->selves[0], &b->set.v[s], pcs);
	wp_process_exe(&b->set.process, exe, sizeof(exe));
	printf("{\"kind\": \"snapshots\", \"pid\": %d, \"exe\": \"%s\", "
	       "\"snapshots\": %zu, \"frames\": %zu}\n",
	       (int)b->pid, exe, b->set.len, frames);
}

static int run(struct bench *b, struct wp_err *err)
{
	int rc = snap_set_open(&b->set, b->pid, err);

	if (rc)
		return rc;
	for (int i = 0; i < NBACKENDS; i++)
		b->selves[i] = backends[i]->open(&b->set);
	if (b->selves[0])
		rc = snap_set_take(&b->set, b->takes, look, b);
	if (!rc && b->selves[0] && b->set.len) {
		print_snapshots(b);
		for (int i = 1; i < NBACKENDS; i++)
			if (b->selves[i])
				compare(b, i);
		time_warm(b);
		time_cold(b);
	} else if (!rc) {
		rc = wp_err_set(err, -ESRCH, "pid %d: no snapshot",
				(int)b->pid);
	}
	for (int i = 0; i < NBACKENDS; i++)
		if (b->selves[i])
			backends[i]->close(b->selves[i]);
	snap_set_close(&b->set);
	return rc;
}

static unsigned int number(const char *text, unsigned long max)
{
	unsigned long n = strtoul(text, NULL, 10);

	return (unsigned int)(n < 1 ? 1 : n > max ? max : n);
}

int main(int argc, char **argv)
{
	struct bench b = { .takes = 10, .rounds = 9 };
	int opt, status = 0;

	while ((opt = getopt(argc, argv, "n:r:v")) != -1) {
		if (opt == 'n')
			b.takes = number(optarg, 1000);
		else if (opt == 'r')
			b.rounds = number(optarg, ROUNDS_MAX);
		else if (opt == 'v')
			b.verbose = true;
		else
			return 64;
	}
	for (int i = optind; i < argc; i++) {
		struct wp_err err = WP_ERR_INIT;

		b.pid = (pid_t)strtol(argv[i], NULL, 10);
		if (run(&b, &err)) {
			fprintf(stderr, "unwind_bench: %s\n", err.msg);
			status = 1;
		}
		fflush(stdout);
	}
	return status;
}
