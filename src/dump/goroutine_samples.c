/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_samples.c - see goroutine_samples.h. */
#include "goroutine_samples.h"

#include <errno.h>
#include <stdio.h>

#include "pid_namespace.h"
#include "wallprof/goroutine_entries.h"

struct adder {
	struct wp_profile *profile;
	struct wp_snapshot_process *process;
	const struct wp_goroutines *all;
	/* Entries of the profile's threads, by the goroutines' labels. */
	struct wp_goroutine_entries entries;
};

/* The entry of the profile's threads for G's labels, made if new; UINT32_MAX
 * without memory. */
static uint32_t find_entry(struct adder *a, const struct wp_goroutine *g)
{
	struct wp_profile_label labels[WP_GOROUTINE_LABELS_MAX];
	struct wp_goroutine_entry what = { .part = WP_GOROUTINE_OWN,
					   .labels = labels };

	while (what.nlabels < g->nlabels &&
	       what.nlabels < WP_GOROUTINE_LABELS_MAX) {
		const struct wp_goroutine_label *from =
			&a->all->labels[g->first_label + what.nlabels];

		labels[what.nlabels++] = (struct wp_profile_label){
			from->key, from->value
		};
	}
	return wp_goroutine_entries_find_or_add(&a->entries, a->profile, &what);
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
	int32_t tid = own ? wp_pid_namespace_thread(a->process, own, 0) : 0;

	for (uint32_t i = 0; tid && i < set->nsamples; i++) {
		const struct wp_sample_key *key = &set->samples[i].key;

		if (a->profile->threads[key->thread].tid == tid &&
		    wp_types_state_is_ready((enum wp_state)key->state))
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
	wp_goroutine_entries_count(a->profile, key.thread);
	return wp_profile_add_sample(a->profile, WP_PROFILE_GOROUTINE, &key, 1,
				     0);
}

int wp_goroutine_samples_add(struct wp_profile *profile,
			     struct wp_snapshot_process *process,
			     const struct wp_goroutine_list *list,
			     const char *left_out)
{
	uint32_t *source = &profile->meta.source[WP_PROFILE_GOROUTINE];
	char text[sizeof(((struct wp_err *)0)->msg) + 16];
	struct adder a = { .profile = profile,
			   .process = process,
			   .all = &list->all };
	int rc = 0;

	profile->counters.goroutines_lost = list->all.nunread;
	if (*left_out) {
		snprintf(text, sizeof(text), "all but %s", left_out);
		*source = wp_intern_add_str(&profile->strings, text);
		rc = *source == UINT32_MAX ? -ENOMEM : 0;
	}
	for (uint32_t i = 0; !rc && i < list->all.len; i++)
		rc = add_goroutine(&a, &list->all.v[i],
				   list->stacks[list->all.v[i].stack].own);
	wp_goroutine_entries_clear(&a.entries);
	return rc;
}
