/* SPDX-License-Identifier: Apache-2.0 */
/* heap_sums.c - see heap_sums.h. */
#include "heap_sums.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heap_state.h"
#include "sampler_loop.h"
#include "target.h"

static void add_counts(struct wp_heap_counts *to,
		       const struct wp_heap_counts *from)
{
	to->calls += from->calls;
	to->frees += from->frees;
	to->maps += from->maps;
	to->samples += from->samples;
	to->unsent += from->unsent;
	to->unfollowed += from->unfollowed;
	to->unknown += from->unknown;
}

/* Note why TARGET's allocations are not all in the profile. */
static void add_ended(struct wp_heap_sums *sums, const struct wp_target *target)
{
	const struct wp_profile *profile = target->profile;

	if (sums->nended++)
		return;
	snprintf(
		sums->who, sizeof(sums->who), "%s (%d)",
		wp_profile_str(profile, profile->processes[target->index].name),
		target->process->pid);
	sums->why = target->heap_samples->why;
}

static void add_names(char to[256], const char *names)
{
	size_t n = strlen(to);

	if (names[0] && !strstr(to, names))
		snprintf(to + n, 256 - n, "%s%s", n ? ", " : "", names);
}

void wp_heap_sums_add(struct wp_target *target)
{
	const struct wp_heap_samples *h = target->heap_samples;
	struct wp_heap_sums *sums = &target->common->heap;
	struct wp_heap_counts counts;

	sums->nprocesses++;
	if (h->why.code && !target->forgotten)
		add_ended(sums, target);
	if (!h->probe)
		return;
	sums->nprobed++;
	counts = wp_heap_probe_counts(h->probe);
	add_counts(&sums->counts, &counts);
	sums->tier = wp_heap_probe_tier(h->probe);
	sums->lacks_mprotect |= !wp_heap_probe_can(h->probe, WP_HEAP_MPROTECT);
	sums->ninner += h->ninner;
	sums->nthrowing += h->nthrowing;
	sums->ndropped += h->objects.ndropped + h->maps.ndropped;
	if (!target->loop->options.heap_large &&
	    !target->loop->options.heap_anyway)
		sums->nslow += h->sites.nslow;
	sums->noverwritten += h->noverwritten;
	sums->nplaces += h->noverwritten ? h->sites.nplaces : 0;
	add_names(sums->files, h->sites.files);
	if (h->nthrowing)
		add_names(sums->throwing, h->sites.throwing);
}

static void fill_counters(struct wp_counters *c,
			  const struct wp_heap_sums *sums, uint64_t lost)
{
	c->heap_samples = sums->counts.samples;
	c->heap_lost = lost + sums->counts.unfollowed;
	c->heap_overwritten = sums->noverwritten;
	c->heap_throwing = sums->nthrowing;
	c->heap_ended = sums->nended != 0;
}

/* What is not in the profile. */
static void put_lacks(char *text, size_t size, const struct wp_heap_sums *sums)
{
	int n = 0;

	if (sums->lacks_mprotect)
		n += snprintf(text + n, size - (size_t)n,
			      "; memory that mprotect makes usable is not in "
			      "it (these probes want Linux 5.17 for that and "
			      "for mremap)");
	if (sums->counts.unfollowed)
		n += snprintf(text + n, size - (size_t)n,
			      "; %llu objects are not known to be in use, for "
			      "want of room",
			      (unsigned long long)sums->counts.unfollowed);
	if (sums->counts.unknown)
		n += snprintf(text + n, size - (size_t)n,
			      "; %llu calls of mprotect are not in it, as the "
			      "memory map was locked then",
			      (unsigned long long)sums->counts.unknown);
	if (sums->nslow)
		n += snprintf(text + n, size - (size_t)n,
			      "; calls of %zu functions are not in it, each "
			      "probe on which would take 10 us and more "
			      "(--heap-anyway)",
			      sums->nslow);
	if (sums->nthrowing)
		n += snprintf(
			text + n, size - (size_t)n,
			"; %" PRIu64
			" of them are of operator new of %s, which are counted "
			"whether it gives memory or throws, and are not known "
			"to be in use (it would end the program to throw past "
			"a probe on its return)",
			sums->nthrowing,
			sums->throwing[0] ? sums->throwing : "the program");
	if (sums->noverwritten)
		n += snprintf(
			text + n, size - (size_t)n,
			"; the process has written over %zu of %zu probes: "
			"what it allocated there since is not known",
			sums->noverwritten, sums->nplaces);
	if (sums->nended && sums->nprocesses == 1)
		snprintf(text + n, size - (size_t)n,
			 "; ended before the recording: %s", sums->why.msg);
	else if (sums->nended)
		snprintf(text + n, size - (size_t)n,
			 "; of %" PRIu32 " of %" PRIu32
			 " processes it is not whole, as of %s: %s",
			 sums->nended, sums->nprocesses, sums->who,
			 sums->why.msg);
}

static int put_source(struct wp_common *common, const struct wp_sampler *loop,
		      uint64_t lost)
{
	static const char *const tiers[WP_HEAP_NTIERS] = {
		[WP_HEAP_TIER_SESSION] = "uprobe sessions",
		[WP_HEAP_TIER_MULTI] = "uprobes, two for each call",
		[WP_HEAP_TIER_PERF] = "uprobes of perf events",
	};
	const struct wp_heap_sums *sums = &common->heap;
	char text[sizeof(sums->why.msg) + sizeof(sums->files) +
		  sizeof(sums->throwing) + 1792];
	char processes[32] = "";
	uint32_t *source = &common->profile->meta.source[WP_PROFILE_HEAP];
	int n;

	if (sums->nprocesses > 1)
		snprintf(processes, sizeof(processes),
			 " of %" PRIu32 " processes", sums->nprobed);
	n = snprintf(
		text, sizeof(text),
		"%llu calls that allocate, %llu that free and %llu of mmap and "
		"its kin, in %s%s; one sample "
		"per %llu bytes, %llu in all, %llu of them lost; probes (%s) "
		"took at most %.1f %% of the threads' time",
		(unsigned long long)sums->counts.calls,
		(unsigned long long)sums->counts.frees,
		(unsigned long long)sums->counts.maps,
		sums->files[0] ? sums->files : "no file", processes,
		(unsigned long long)loop->options.heap_rate,
		(unsigned long long)(sums->counts.samples - sums->ninner),
		(unsigned long long)lost,
		sums->nprobed ? tiers[sums->tier] : "none", sums->cost * 100);
	put_lacks(text + n, sizeof(text) - (size_t)n, sums);
	*source = wp_intern_add_str(&common->profile->strings, text);
	return *source == UINT32_MAX ? -ENOMEM : 0;
}

int wp_heap_sums_describe(struct wp_common *common,
			  const struct wp_sampler *loop)
{
	const struct wp_heap_sums *sums = &common->heap;
	uint64_t lost = sums->counts.unsent + sums->ndropped + sums->nbeyond;
	struct wp_profile *profile = common->profile;
	struct wp_sample_set *set = &profile->sets[WP_PROFILE_HEAP];
	uint64_t in_use = 0;

	if (!sums->nprocesses)
		return 0;
	for (uint32_t i = 0; i < set->nsamples; i++)
		in_use += set->samples[i].cpu_ns;
	/* If nothing is in use, it is a profile of what was allocated. */
	profile->meta.is_of_allocations = !in_use && !loop->options.heap_leaks;
	for (uint32_t i = 0; i < set->nsamples; i++) {
		if (!profile->meta.is_of_allocations)
			set->samples[i].weight_ns = set->samples[i].looks;
		set->samples[i].looks = 0;
	}
	profile->meta.heap_period = (int64_t)loop->options.heap_rate;
	fill_counters(&profile->counters, sums, lost);
	return put_source(common, loop, lost);
}
