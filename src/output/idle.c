/* SPDX-License-Identifier: Apache-2.0 */
/* idle.c - see wp_idle_mark of wallprof/output.h.
 *
 * A thread is idle that waited at one place all the time, for something that may
 * come any time, in a function near its first: so its work, if there is any, is
 * called from the loop around that wait.  A thread that waits deep in its stack has
 * begun some work, and one that waits for a lock wants to go on: these are slow.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "processes.h"
#include "report.h"

enum {
	/* Most functions of its own from the thread's first to the wait. */
	LOOP_DEPTH = 4,
	/* Least share, in percent, of its time at that place. */
	LEAST_SHARE = 99,
};

/* Where a thread waits most: found by a vote of its samples, weighted by time. */
struct candidate {
	struct wp_sites_id id;
	uint64_t votes;
	/* All its time, and that at ID. */
	uint64_t all_ns;
	uint64_t here_ns;
};

static bool is_idle_wait(const struct wp_profile *profile,
			 const struct wp_sample_key *key)
{
	static const uint32_t idle = 1u << WP_WAIT_CONDVAR |
				     1u << WP_WAIT_SEMAPHORE |
				     1u << WP_WAIT_POLL | 1u << WP_WAIT_SIGNAL |
				     1u << WP_WAIT_SLEEP | 1u << WP_WAIT_TIMER |
				     1u << WP_WAIT_JOIN | 1u << WP_WAIT_FUTEX;
	const char *call = wp_profile_str(profile, key->syscall);

	if (key->state != WP_STATE_WAITING)
		return false;
	/* A socket that is read is a request; one that accepts is none yet. */
	return idle >> key->wait & 1 ||
	       (key->wait == WP_WAIT_SOCKET && !strncmp(call, "accept", 6));
}

/* Frames of one stack, as they are walked from its root. */
struct depth {
	struct wp_sites_id site;
	unsigned int n;
	bool found;
};

static bool starts_threads(const struct wp_view *view)
{
	static const char *const names[] = {
		"_start",
		"__libc_start_main",
		"__libc_start_call_main",
		"main",
		"clone",
		"clone3",
		"__clone3",
		"start_thread",
		"start",
	};
	const char *name = wp_view_name(view);

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return true;
	/* std::thread's, and what runs a callable. */
	return !strncmp(name, "std::", 5);
}

static bool count_own(void *ctx, const struct wp_view *view)
{
	struct depth *d = ctx;

	/* "[truncated: ...]": how deep it is is not known. */
	if (view->text)
		return false;
	d->n += !view->inlined && !starts_threads(view);
	d->found = view->id == d->site.function;
	return !d->found;
}

/* Is KEY's wait in a loop around all that its thread does? */
static bool is_outermost(const struct wp_profile *profile,
			 const struct wp_sample_key *key)
{
	struct depth d = { .site = wp_sites_find(profile, key) };

	wp_view_walk(profile, key->stack, true, count_own, &d);
	return d.found && d.n <= LOOP_DEPTH;
}

static void vote(struct candidate *c, struct wp_sites_id id, uint64_t ns)
{
	if (wp_sites_equal(&c->id, &id)) {
		c->votes += ns;
	} else if (c->votes >= ns) {
		c->votes -= ns;
	} else {
		c->id = id;
		c->votes = ns - c->votes;
	}
}

/* What was found for a stack in call SYSCALL: many threads wait in one stack. */
struct place {
	bool known;
	bool outermost;
	uint32_t syscall;
	struct wp_sites_id id;
};

/* The place of KEY's wait, among PLACES by stack. */
static const struct place *find_place(struct place *places,
				      const struct wp_profile *profile,
				      const struct wp_sample_key *key)
{
	struct place *place = &places[key->stack];

	if (!place->known || place->syscall != key->syscall)
		*place = (struct place){
			.known = true,
			.outermost = is_outermost(profile, key),
			.syscall = key->syscall,
			.id = wp_sites_find(profile, key),
		};
	return place;
}

/* Two passes: who has the most votes, and how much that is. */
static void find_sites(const struct wp_profile *profile, struct candidate *v,
		       struct place *places)
{
	const struct wp_sample_set *set = &profile->sets[WP_PROFILE_WALL];

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < set->nsamples; i++) {
			const struct wp_profile_sample *s = &set->samples[i];
			struct candidate *c = &v[s->key.thread];
			const struct place *place;

			if (pass == 0)
				c->all_ns += s->wall_ns;
			if (!s->wall_ns || !is_idle_wait(profile, &s->key))
				continue;
			place = find_place(places, profile, &s->key);
			if (!place->outermost)
				continue;
			if (pass == 0)
				vote(c, place->id, s->wall_ns);
			else if (wp_sites_equal(&c->id, &place->id))
				c->here_ns += s->wall_ns;
		}
}

int wp_idle_mark(struct wp_profile *profile)
{
	struct candidate *v;
	struct place *places;
	bool any_busy = false;

	/* A file of something else has samples of holders and makers. */
	if (!profile->meta.has_wall || profile->meta.value_type)
		return 0;
	v = calloc((size_t)profile->nthreads + 1, sizeof(*v));
	places = calloc((size_t)profile->nstacks + 1, sizeof(*places));
	if (!v || !places) {
		free(v);
		free(places);
		return -ENOMEM;
	}
	find_sites(profile, v, places);
	free(places);
	for (uint32_t i = 0; i < profile->nthreads; i++) {
		const struct wp_profile_thread *t = &profile->threads[i];
		bool idle = t->part == WP_GOROUTINE_RUNTIME_IDLE ||
			    (!t->part && v[i].here_ns &&
			     v[i].here_ns / LEAST_SHARE >= v[i].all_ns / 100);

		profile->threads[i].idle = idle;
		any_busy |= !idle && v[i].all_ns;
	}
	/* If all wait, that is what there is to say of the process. */
	for (uint32_t i = 0; i < profile->nthreads && !any_busy; i++)
		profile->threads[i].idle = false;
	free(v);
	return 0;
}

void wp_report_idle(struct wp_report *r)
{
	const struct wp_profile *profile = r->profile;
	uint64_t all = 0, idle = 0, ns = 0, n;
	char time[WP_CELL];

	for (uint32_t i = 0; i < profile->nthreads; i++) {
		const struct wp_profile_thread *t = &profile->threads[i];

		if (!(t->kinds & 1u << r->kind))
			continue;
		n = wp_processes_threads(t);
		all += n;
		idle += wp_columns_is_idle(t, r->kind) ? n : 0;
	}
	/* If none but they waited, that is what there is to say of the waits. */
	r->shows_idle = idle == all;
	if (!idle || r->shows_idle || r->options->full)
		return;
	for (uint32_t i = 0; i < r->set->nsamples; i++)
		if (profile->threads[r->set->samples[i].key.thread].idle)
			ns += wp_profile_time(profile, r->kind,
					      &r->set->samples[i]);
	r->total_ns -= ns;
	wp_report_time(time, ns);
	if (profile->meta.is_of_goroutines) {
		wp_buf_printf(
			&r->out,
			"Idle: %" PRIu64 " of %" PRIu64 " goroutines, %s: "
			"those of Go's runtime that waited for work.\n"
			"They are left out below, of all goroutine time too; "
			"--full shows them.\n",
			idle, all, time + strspn(time, " "));
		return;
	}
	wp_buf_printf(&r->out,
		      "Idle: %" PRIu64 " of %" PRIu64 " threads, %s: each "
		      "waited in its outermost loop all the time.\n"
		      "They are left out below, of all thread time too; --full "
		      "shows them.\n",
		      idle, all, time + strspn(time, " "));
}
