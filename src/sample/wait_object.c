/* SPDX-License-Identifier: Apache-2.0 */
/* wait_object.c - see wait_object.h. */
#include "wait_object.h"

#include <errno.h>
#include <stdio.h>

#include "sampler_loop.h"
#include "target.h"
#include "wallprof/syscall_nr.h"

/* A target that waits on something new each time must not fill our memory. */
enum { OBJECTS_MAX = 20000 };

uint32_t wp_wait_object_intern(struct wp_target *target, const char *text)
{
	struct wp_profile *profile = target->profile;
	uint32_t id = wp_intern_find(&profile->strings, text);

	if (id != UINT32_MAX)
		return id;
	if (target->common->nobjects >= OBJECTS_MAX) {
		profile->counters.objects_dropped++;
		return 0;
	}
	target->common->nobjects++;
	return wp_intern_add_str(&profile->strings, text);
}

enum { TEXT_MAX = 600 };

/* Refine KEY's wait by its object, and describe that in TEXT: "" when there is nothing
 * to say. */
static void refine(struct wp_target *target, pid_t tid,
		   struct wp_sample_key *key,
		   const struct wp_thread_facts *facts, char text[TEXT_MAX])
{
	const struct wp_syscall_info *info = wp_syscall_find(facts->syscall_nr);
	struct wp_fd_desc desc;

	text[0] = '\0';
	if (info && info->fd_arg >= 0) {
		int fd = (int)facts->args[info->fd_arg];

		if (fd >= 0 &&
		    !wp_fdinfo_describe(&target->fdinfo, tid, fd,
					target->loop->tick_ns, &desc)) {
			key->wait = (uint8_t)wp_state_refine_fd(
				key->wait, facts->syscall_nr, desc.kind);
			snprintf(text, TEXT_MAX, "fd %d %s", fd, desc.text);
		}
	} else if (key->wait == WP_WAIT_FUTEX) {
		/* Of the other calls args[1] is a count, or a value. */
		if (facts->syscall_nr == SYS_futex)
			key->wait = (uint8_t)wp_state_refine_futex(facts->args);
		snprintf(text, TEXT_MAX, "0x%llx",
			 (unsigned long long)facts->args[0]);
	}
}

/* String id of system call NR's name.  A number that no call has is the target's to
 * choose: a supervisor holds it in any (seccomp_unotify(2)). */
static uint32_t name_of_call(struct wp_target *target, long nr)
{
	char buf[32];
	const char *name = wp_syscall_name(nr, buf, sizeof(buf));

	return wp_syscall_find(nr) ?
		       wp_intern_add_str(&target->profile->strings, name) :
		       wp_wait_object_intern(target, name);
}

static void set_call(struct wp_target *target, struct wp_sample_key *key,
		     long nr)
{
	uint32_t name = nr < 0 ? 0 : name_of_call(target, nr);

	key->syscall = name <= UINT16_MAX ? (uint16_t)name : 0;
}

int wp_wait_object_describe(struct wp_target *target, pid_t tid,
			    struct wp_sample_key *key,
			    const struct wp_thread_facts *facts)
{
	char text[TEXT_MAX];
	uint32_t object;

	refine(target, tid, key, facts, text);
	object = wp_wait_object_intern(target, text);
	if (object == UINT32_MAX)
		return -ENOMEM;
	key->object = object;
	set_call(target, key, facts->syscall_nr);
	return 0;
}

void wp_wait_object_refine(struct wp_target *target, pid_t tid,
			   struct wp_sample_key *key,
			   const struct wp_thread_facts *facts)
{
	char text[TEXT_MAX];

	refine(target, tid, key, facts, text);
	set_call(target, key, facts->syscall_nr);
}
