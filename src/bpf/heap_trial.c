/* SPDX-License-Identifier: Apache-2.0 */
/* heap_trial.c - a probe on wallprof itself: is it hit, and what does it cost?  See
 * heap_priv.h. */
#ifdef WP_HAVE_BPF
#include "heap_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wallprof/clock.h"

enum {
	/* Calls whose cost is measured, and how often. */
	TRIALS = 500,
	TRIAL_ROUNDS = 5,
};
/* A probe that is not hit within that time works not at all. */
#define HIT_NS (100 * WP_NS_PER_MS)

/* What the probe stands on: it begins with a push, which the kernel emulates, as most
 * probed functions do. */
#if defined(__x86_64__)
__asm__(".text\n"
	".type wp_heap_trial, @function\n"
	"wp_heap_trial:\n"
	"	push %rbx\n"
	"	pop %rbx\n"
	"	ret\n"
	".size wp_heap_trial, . - wp_heap_trial\n");
void wp_heap_trial(void) __attribute__((visibility("hidden")));
#else
static __attribute__((noinline)) void wp_heap_trial(void)
{
	__asm__ volatile("");
}
#endif

/* CPU time of TRIALS calls: the least of some rounds. */
static uint64_t time_trials(void)
{
	uint64_t least = UINT64_MAX;

	for (int round = 0; round < TRIAL_ROUNDS; round++) {
		uint64_t begin = wp_clock_cpu_ns(), ns;

		for (int i = 0; i < TRIALS; i++)
			wp_heap_trial();
		ns = wp_clock_cpu_ns() - begin;
		if (ns < least)
			least = ns;
	}
	return least;
}

/* The offset of AVMA in the file of this program; false: not found. */
static bool own_offset(uint64_t avma, uint64_t *ret_off)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t cap = 0;
	bool found = false;

	while (maps && !found && getline(&line, &cap, maps) > 0) {
		unsigned long begin, end, off;

		found = sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &off) ==
				3 &&
			avma >= begin && avma < end;
		*ret_off = found ? avma - begin + off : 0;
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

static bool is_hit(const struct wp_heap_probe *probe)
{
	uint64_t end_ns = wp_clock_ns() + HIT_NS;

	do {
		wp_heap_trial();
		if (wp_heap_probe_counts(probe).trials)
			return true;
	} while (wp_clock_ns() < end_ns);
	return false;
}

int wp_heap_trial_run(struct wp_heap_probe *probe)
{
	struct wp_heap_site site = { .call = WP_HEAP_TRIAL };
	uint64_t bare, probed;
	int rc;

	if (!own_offset((uintptr_t)wp_heap_trial, &site.off))
		return -ENOENT;
	bare = time_trials();
	rc = wp_heap_links_add(&probe->links, getpid(), "/proc/self/exe", &site,
			       1);
	if (rc)
		return rc;
	if (!is_hit(probe))
		return -ENODATA;
	probed = time_trials();
	probe->cost_ns = probed > bare ? (probed - bare) / TRIALS : 0;
	return 0;
}
#else
/* A source has something in it (ISO C, 6.9). */
typedef int wp_heap_trial_is_there;
#endif
