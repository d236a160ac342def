/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - see parts.h. */
#include "parts.h"

#include <stdio.h>
#include <string.h>

#include "wallprof/vec.h"

/* As a part: not found so far. */
#define UNKNOWN UINT8_MAX

_Static_assert(WP_PARTS_MAX < UNKNOWN, "a part's index has eight bits");

/* Marks are a second apart, and one is copied in microseconds: a second try is seldom. */
enum { TRIES = 8 };

static const char other_processes[] = "[other processes]";

void wp_parts_raise(uint64_t told[WP_NSTATES][WP_NWAITS],
		    int64_t sums[WP_NSTATES][WP_NWAITS])
{
	for (int state = 0; state < WP_NSTATES; state++)
		for (int wait = 0; wait < WP_NWAITS; wait++)
			if (sums[state][wait] > (int64_t)told[state][wait])
				told[state][wait] = (uint64_t)sums[state][wait];
}

void wp_parts_init(struct wp_parts *p, struct wp_parts_told *told)
{
	p->told = told;
	wp_parts_read(told, p->v);
	for (size_t i = 0; i < WP_PARTS_MAX; i++)
		for (int state = 0; state < WP_NSTATES; state++)
			for (int wait = 0; wait < WP_NWAITS; wait++)
				p->sums[i][state][wait] =
					(int64_t)p->v[i].ns[state][wait];
}

int wp_parts_begin(struct wp_parts *p, const struct wp_profile *profile,
		   uint64_t now_ns, uint64_t keep_ns)
{
	size_t n = profile->nprocesses;

	if (WP_VEC_ROOM(p->of, 0, p->cap_of, n) ||
	    WP_VEC_ROOM(p->counted, 0, p->cap_counted, n))
		return -ENOMEM;
	p->n = n;
	if (n) {
		memset(p->of, UNKNOWN, n);
		memset(p->counted, 0, n * sizeof(*p->counted));
	}
	for (size_t i = 0; i < WP_PARTS_MAX; i++) {
		struct wp_part *part = &p->v[i];

		if (part->name[0] && part->seen_ns + keep_ns < now_ns) {
			*part = (struct wp_part){ 0 };
			memset(p->sums[i], 0, sizeof(p->sums[i]));
		}
		part->processes = 0;
		part->longest_wait_ns = 0;
		memset(part->threads, 0, sizeof(part->threads));
	}
	return 0;
}

/* The part of processes called NAME; the last one is that of all others. */
static uint8_t find(struct wp_parts *p, const char *name)
{
	size_t room = WP_PARTS_MAX - 1;

	for (size_t i = 0; i < WP_PARTS_MAX - 1; i++) {
		if (!strcmp(p->v[i].name, name))
			return (uint8_t)i;
		if (!p->v[i].name[0] && room == WP_PARTS_MAX - 1)
			room = i;
	}
	snprintf(p->v[room].name, sizeof(p->v[room].name), "%s",
		 room == WP_PARTS_MAX - 1 ? other_processes : name);
	return (uint8_t)room;
}

/* Of a process without a name; and names as long as a comm fit. */
static struct wp_part *
part_of(struct wp_parts *p, const struct wp_profile *profile, uint32_t process)
{
	const char *name;

	if (process >= p->n)
		return NULL;
	if (p->of[process] == UNKNOWN) {
		name = wp_profile_str(profile,
				      profile->processes[process].name);
		p->of[process] = find(p, *name ? name : "?");
	}
	return &p->v[p->of[process]];
}

void wp_parts_add(struct wp_parts *p, const struct wp_profile *profile,
		  const struct wp_sample_key *key, int64_t ns, uint64_t now_ns)
{
	struct wp_part *part = part_of(p, profile,
				       profile->threads[key->thread].process);

	if (!part)
		return;
	p->sums[part - p->v][key->state][key->wait] += ns;
	part->seen_ns = now_ns;
}

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void wp_parts_count(struct wp_parts *p, const struct wp_profile *profile,
		    uint32_t thread, uint32_t n, enum wp_state state,
		    uint64_t wait_ns)
{
	const struct wp_profile_thread *t = &profile->threads[thread];
	struct wp_part *part = part_of(p, profile, t->process);
	uint32_t most, before;

	if (!part)
		return;
	part->threads[state] += n;
	if (wait_ns > part->longest_wait_ns)
		part->longest_wait_ns = wait_ns;
	most = 1 + profile->processes[t->process].nmore;
	before = p->counted[t->process];
	p->counted[t->process] = before + n;
	part->processes += min(before + n, most) - min(before, most);
}

void wp_parts_end(struct wp_parts *p)
{
	uint32_t n = p->told->n + 1;

	for (size_t i = 0; i < WP_PARTS_MAX; i++)
		wp_parts_raise(p->v[i].ns, p->sums[i]);
	/* Who reads what is written over now is to see that N is another. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(p->told->v[n % 2], p->v, sizeof(p->v));
	__atomic_store_n(&p->told->n, n, __ATOMIC_RELEASE);
}

void wp_parts_read(const struct wp_parts_told *told, struct wp_part *v)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t n = __atomic_load_n(&told->n, __ATOMIC_ACQUIRE);

		memcpy(v, told->v[n % 2], sizeof(told->v[0]));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&told->n, __ATOMIC_RELAXED) == n)
			break;
	}
	/* Also of two marks a name ends. */
	for (size_t i = 0; i < WP_PARTS_MAX; i++)
		v[i].name[sizeof(v[i].name) - 1] = '\0';
}
