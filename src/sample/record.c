/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - what was seen becomes a sample: see sampler_priv.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler_priv.h"

/* A target that waits on something new each time must not make us grow. */
enum { OBJECTS_MAX = 20000 };

uint32_t wp_record_stack(struct wp_target *target)
{
	uint32_t end_mapping =
		target->loop->stack.depth ?
			target->loop->stack
				.frames[target->loop->stack.depth - 1]
				.mapping :
			WP_MAPPING_NONE;

	return wp_profile_add_stack(target->profile, &target->loop->stack,
				    end_mapping);
}

uint32_t wp_record_no_stack(struct wp_target *target)
{
	struct wp_stack none = { .end = WP_END_EMPTY };

	return wp_profile_add_stack(target->profile, &none, WP_MAPPING_NONE);
}

static void count_end(struct wp_target *target, uint32_t stack)
{
	unsigned int end = target->profile->stacks[stack].end;

	target->profile->counters.ends[end]++;
	if (end == WP_END_EMPTY)
		target->profile->counters.no_stack++;
}

static int add_sample(struct wp_target *target, struct wp_thread *t,
		      const struct wp_sample_key *key, uint64_t count,
		      uint64_t wall_ns)
{
	struct wp_profile_thread *p = &target->profile->threads[t->index];

	if (p->last_ns < t->last_ns)
		p->last_ns = t->last_ns;
	/* WALL, or THREADS in a look. */
	return wp_profile_add_sample(target->profile,
				     target->loop->options.wall_kind, key,
				     count, wall_ns);
}

int wp_record_unchanged(struct wp_target *target, struct wp_thread *t,
			uint64_t wall_ns)
{
	int rc = wp_block_look(target, t, &t->key, true, wall_ns);
	unsigned int end = t->key.state == WP_STATE_EXITING ?
				   WP_END_ROOT :
				   target->profile->stacks[t->key.stack].end;

	wp_mutex_look(target, t, true, wall_ns);
	target->profile->counters.unchanged++;
	target->profile->counters.unchanged_ends[end]++;
	return rc ? rc : add_sample(target, t, &t->key, 1, wall_ns);
}

int wp_record_waiting(struct wp_target *target, struct wp_thread *t,
		      const struct wp_thread_facts *facts, uint32_t stack,
		      uint64_t wall_ns)
{
	struct wp_thread_state state = wp_state_classify(facts);

	if (stack == UINT32_MAX || target->ndeferred == target->cap_deferred)
		return -ENOMEM;
	count_end(target, stack);
	wp_mutex_look(target, t, false, wall_ns);
	t->facts = *facts;
	target->deferred[target->ndeferred++] = (struct wp_deferred){
		.thread = t,
		.key = { .stack = stack,
			 .thread = t->index,
			 .state = (uint8_t)state.state,
			 .wait = (uint8_t)state.wait },
		.wall_ns = wall_ns,
		.facts = *facts,
	};
	t->asleep = state.state != WP_STATE_RUNNING;
	return 0;
}

/* Add what T is owed in STATE to a sample with STACK. */
static int pay(struct wp_target *target, struct wp_thread *t, uint32_t stack,
	       enum wp_state state, uint64_t count)
{
	struct wp_sample_key key = { .stack = stack,
				     .thread = t->index,
				     .state = (uint8_t)state };
	uint64_t *owed = state == WP_STATE_RUNNING ? &t->owed_running_ns :
						     &t->owed_runnable_ns;
	uint64_t ns = *owed;

	int rc = wp_mutex_pay(target, t, &key);

	*owed = 0;
	return !rc && (ns || count) ? add_sample(target, t, &key, count, ns) :
				      rc;
}

static int pay_cpu(struct wp_target *target, struct wp_thread *t,
		   uint32_t stack)
{
	struct wp_sample_key key = { .stack = stack,
				     .thread = t->index,
				     .state = WP_STATE_RUNNING };
	uint64_t count = t->owed_cpu_count, ns = t->owed_cpu_ns;

	t->owed_cpu_count = t->owed_cpu_ns = 0;
	target->profile->counters.cpu_samples += count;
	return count ? wp_profile_add_cpu(target->profile, &key, count, ns) : 0;
}

static void take_ask(struct wp_thread *t)
{
	t->owed_running_ns += t->ask.running_ns;
	t->owed_runnable_ns += t->ask.runnable_ns;
	t->ask.running_ns = t->ask.runnable_ns = 0;
}

int wp_record_running(struct wp_target *target, struct wp_thread *t,
		      uint32_t stack, enum wp_state state)
{
	uint64_t count = t->owed_count + 1;
	int rc;

	if (stack == UINT32_MAX)
		return -ENOMEM;
	count_end(target, stack);
	take_ask(t);
	t->last_running_stack = stack;
	t->owed_count = 0;
	t->asleep = false;
	rc = pay_cpu(target, t, stack);
	return rc ? rc : pay(target, t, stack, state, count);
}

/* Pay everything, with STACK. */
static int pay_all(struct wp_target *target, struct wp_thread *t,
		   uint32_t stack, uint64_t count)
{
	bool ran = t->owed_running_ns >= t->owed_runnable_ns;
	int rc;

	if (stack == UINT32_MAX)
		return -ENOMEM;
	t->owed_count = 0;
	rc = pay(target, t, stack, WP_STATE_RUNNING, ran ? count : 0);
	return rc ? rc :
		    pay(target, t, stack, WP_STATE_RUNNABLE, ran ? 0 : count);
}

int wp_record_cpu(struct wp_target *target, struct wp_thread *t, uint32_t stack)
{
	/* Without ticks that look, CPU samples are all there is. */
	uint64_t count = target->wants_running ? t->owed_count :
						 t->owed_cpu_count;
	int rc = stack == UINT32_MAX ? -ENOMEM : pay_cpu(target, t, stack);

	if (rc)
		return rc;
	t->last_running_stack = stack;
	for (uint64_t i = 0; i < count; i++)
		count_end(target, stack);
	target->profile->counters.sampled += count;
	return t->owed_count ? pay_all(target, t, stack, t->owed_count) : 0;
}

int wp_record_unseen(struct wp_target *target, struct wp_thread *t)
{
	uint32_t stack = wp_record_no_stack(target);

	if (stack == UINT32_MAX)
		return -ENOMEM;
	count_end(target, stack);
	take_ask(t);
	t->asleep = false;
	return pay_all(target, t, stack, t->owed_count + 1);
}

enum { SILENT_PERIODS = 20 };

int wp_record_owed(struct wp_target *target, struct wp_thread *t)
{
	uint32_t stack = t->last_running_stack;
	int rc;

	t->owed_runnable_ns += t->undecided_ns;
	t->undecided_ns = 0;
	if (!t->owed_running_ns && !t->owed_runnable_ns && !t->owed_cpu_count)
		return 0;
	/* A thread that ran for so long without a CPU sample has lost its event,
	 * as an exec of a set-user-id program ends it: where it ran since is not
	 * known. */
	if (t->owed_count > SILENT_PERIODS &&
	    t->owed_running_ns >
		    SILENT_PERIODS * target->loop->options.interval_ns)
		stack = UINT32_MAX;
	if (stack == UINT32_MAX)
		stack = wp_record_no_stack(target);
	rc = pay_all(target, t, stack, t->owed_count);
	return rc ? rc : pay_cpu(target, t, stack);
}

/* String id of what is waited on: "" when there is nothing to say. */
static uint32_t object_of(struct wp_target *target, struct wp_sample_key *key,
			  const struct wp_thread_facts *facts)
{
	const struct wp_syscall_info *info = wp_syscall_find(facts->syscall_nr);
	struct wp_fd_desc desc;
	char text[600] = "";
	uint32_t len = target->profile->strings.len, id;

	if (info && info->fd_arg >= 0) {
		int fd = (int)facts->args[info->fd_arg];

		if (fd >= 0 &&
		    !wp_fdinfo_describe(&target->fdinfo, fd,
					target->loop->tick_ns, &desc)) {
			key->wait = (uint8_t)wp_state_refine_fd(key->wait,
								desc.kind);
			snprintf(text, sizeof(text), "fd %d %s", fd, desc.text);
		}
	} else if (key->wait == WP_WAIT_FUTEX) {
		key->wait = (uint8_t)wp_state_refine_futex(facts->args);
		snprintf(text, sizeof(text), "0x%llx",
			 (unsigned long long)facts->args[0]);
	}
	if (target->nobjects >= OBJECTS_MAX)
		return 0;
	id = wp_intern_add_str(&target->profile->strings, text);
	if (target->profile->strings.len != len)
		target->nobjects++;
	return id;
}

void wp_record_describe(struct wp_target *target, struct wp_sample_key *key,
			const struct wp_thread_facts *facts)
{
	char buf[32];
	uint32_t name;

	key->object = object_of(target, key, facts);
	if (facts->syscall_nr < 0)
		return;
	name = wp_intern_add_str(
		&target->profile->strings,
		wp_syscall_name(facts->syscall_nr, buf, sizeof(buf)));
	key->syscall = name <= UINT16_MAX ? (uint16_t)name : 0;
}

static int make_sample(struct wp_target *target, struct wp_deferred *d)
{
	struct wp_thread *t = d->thread;
	int rc;

	if (d->key.state == WP_STATE_WAITING)
		wp_record_describe(target, &d->key, &d->facts);
	if (d->key.object == UINT32_MAX)
		return -ENOMEM;
	if (t->asleep)
		t->key = d->key;
	rc = wp_block_look(target, t, &d->key, false, d->wall_ns);
	if (!rc)
		rc = wp_mutex_pay(target, t, &d->key);
	return rc ? rc : add_sample(target, t, &d->key, 1, d->wall_ns);
}

int wp_record_deferred(struct wp_target *target)
{
	int rc = 0;

	for (size_t i = 0; i < target->ndeferred && !rc; i++)
		rc = make_sample(target, &target->deferred[i]);
	target->ndeferred = 0;
	return rc;
}
