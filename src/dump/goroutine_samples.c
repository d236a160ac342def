/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_samples.c - see goroutine_samples.h. */
#include "goroutine_samples.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pid_namespace.h"
#include "wallprof/hash.h"
#include "wallprof/vec.h"

/* Bytes of all labels in the name of the entry that stands for them. */
enum { NAME_MAX_BYTES = 256 };

struct adder {
	struct wp_profile *profile;
	struct wp_snapshot_process *process;
	const struct wp_goroutines *all;
	/* Entries of the profile's threads before the goroutines'. */
	uint32_t nthreads;
	/* Finds the goroutines' by their labels. */
	struct wp_index entries;
};

/* "kind=parked, n=3", or "goroutines" without labels. */
static uint32_t name_labels(struct wp_profile *profile,
			    const struct wp_profile_label *labels, uint32_t n)
{
	char name[NAME_MAX_BYTES] = "goroutines";
	size_t at = 0;

	for (uint32_t i = 0; i < n && at < sizeof(name); i++)
		at += (size_t)snprintf(
			name + at, sizeof(name) - at, "%s%s=%s", i ? ", " : "",
			wp_profile_str(profile, labels[i].key),
			wp_profile_str(profile, labels[i].value));
	return wp_intern_add_str(&profile->strings, name);
}

static bool has_labels(const struct adder *a, uint32_t entry,
		       const struct wp_profile_label *labels, uint32_t n)
{
	const struct wp_profile_thread *t = &a->profile->threads[entry];

	return t->nlabels == n &&
	       (!n || !memcmp(a->profile->labels + t->first_label, labels,
			      n * sizeof(*labels)));
}

static uint32_t add_entry(struct adder *a, uint64_t hash,
			  const struct wp_profile_label *labels, uint32_t n)
{
	struct wp_profile *p = a->profile;
	struct wp_profile_thread t = {
		.is_goroutines = true,
		.name = name_labels(p, labels, n),
		.first_label = p->nlabels,
		.nlabels = n,
	};
	uint32_t entry;

	if (t.name == UINT32_MAX ||
	    WP_VEC_ROOM(p->labels, p->nlabels, p->cap_labels, n))
		return UINT32_MAX;
	if (n)
		memcpy(p->labels + p->nlabels, labels, n * sizeof(*labels));
	p->nlabels += n;
	entry = wp_profile_add_thread(p, &t);
	if (entry == UINT32_MAX ||
	    wp_index_add(&a->entries, hash, entry - a->nthreads))
		return UINT32_MAX;
	return entry;
}

/* The entry of the profile's threads for G's labels, made if new; UINT32_MAX
 * without memory. */
static uint32_t find_entry(struct adder *a, const struct wp_goroutine *g)
{
	struct wp_profile_label labels[64];
	uint32_t n = g->nlabels < 64 ? g->nlabels : 64, at;
	uint64_t hash;

	for (uint32_t i = 0; i < n; i++)
		labels[i] = (struct wp_profile_label){
			a->all->labels[g->first_label + i].key,
			a->all->labels[g->first_label + i].value
		};
	hash = wp_hash_bytes(n, labels, n * sizeof(*labels));
	at = WP_INDEX_FIND(&a->entries, hash, i,
			   has_labels(a, a->nthreads + i, labels, n));
	return at != WP_INDEX_NONE ? a->nthreads + at :
				     add_entry(a, hash, labels, n);
}

static enum wp_state state_of(const struct wp_goroutine *g)
{
	switch (g->state) {
	case WP_GOROUTINE_RUNNING:
		return WP_STATE_RUNNING;
	case WP_GOROUTINE_RUNNABLE:
	case WP_GOROUTINE_PREEMPTED:
		return WP_STATE_RUNNABLE;
	default:
		return WP_STATE_WAITING;
	}
}

/* The stack of the thread with tid OWN in the target's PID namespace, if it ran
 * when it was sampled; else STACK. */
static uint32_t running_stack(const struct adder *a, int32_t own,
			      uint32_t stack)
{
	const struct wp_sample_set *set = &a->profile->sets[WP_PROFILE_THREADS];
	int32_t tid = own ? wp_pid_namespace_thread(a->process, own) : 0;

	for (uint32_t i = 0; tid && i < set->nsamples; i++) {
		const struct wp_sample_key *key = &set->samples[i].key;

		if (a->profile->threads[key->thread].tid == tid &&
		    (key->state == WP_STATE_RUNNING ||
		     key->state == WP_STATE_RUNNABLE))
			return key->stack;
	}
	return stack;
}

static int add_goroutine(struct adder *a, const struct wp_goroutine *g,
			 uint32_t stack)
{
	struct wp_sample_key key = {
		.stack = stack,
		.thread = find_entry(a, g),
		.state = (uint8_t)state_of(g),
		.object = g->reason,
	};

	if (g->state == WP_GOROUTINE_RUNNING)
		key.stack = running_stack(a, g->tid, stack);
	if (g->state == WP_GOROUTINE_SYSCALL)
		key.object = wp_intern_add_str(
			&a->profile->strings,
			wp_go_program_state_name(g->state));
	if (key.thread == UINT32_MAX || key.object == UINT32_MAX)
		return -ENOMEM;
	return wp_profile_add_sample(a->profile, WP_PROFILE_GOROUTINE, &key, 1,
				     0);
}

int wp_goroutine_samples_add(struct wp_profile *profile,
			     struct wp_snapshot_process *process,
			     const struct wp_goroutine_list *list)
{
	struct adder a = { .profile = profile,
			   .process = process,
			   .all = &list->all,
			   .nthreads = profile->nthreads };
	int rc = 0;

	for (uint32_t i = 0; !rc && i < list->all.len; i++)
		rc = add_goroutine(&a, &list->all.v[i],
				   list->stacks[list->all.v[i].stack].own);
	wp_index_clear(&a.entries);
	return rc;
}
