/* SPDX-License-Identifier: Apache-2.0 */
/* served_stuck.c - recorders that do not come back from the kernel: see served.h. */
#include "served.h"

#include <signal.h>

#include "messages.h"
#include "wallprof/clock.h"
#include "wallprof/procfs.h"

#define LOOK_NS WP_NS_PER_S

/* Looks that a recorder may sleep through: what it has recorded is lost with it. */
enum { STUCK_LOOKS = 30 };

/* Leave PID alone, if that is known. */
static void avoid(struct wp_served *s, pid_t pid)
{
	struct wp_proc_stat stat;

	if (!pid || wp_proc_stat_read(&stat, pid))
		return;
	s->avoided[s->navoided++ % WP_AVOIDED_MAX] = (struct wp_avoided){
		pid, stat.start_time
	};
	wp_say("wallprof: process %d is recorded no more", pid);
}

static void end_stuck(struct wp_served *s, const struct wp_served_one *one)
{
	char text[WP_STUCK_TEXT];

	wp_stuck_describe(one->recorder, text);
	wp_say("wallprof: what was recorded is lost: %s", text);
	if (!one->pid)
		avoid(s, wp_stuck_find_target(one->recorder));
	kill(one->recorder, SIGKILL);
}

void wp_served_look(struct wp_served *s)
{
	uint64_t now = wp_clock_ns();

	/* It may be its messages that nobody reads. */
	if (!wp_stuck_is_heard())
		return;
	for (size_t i = 0; i < s->n; i++) {
		struct wp_served_one *one = &s->v[i];

		if (one->recorder <= 0 || now < one->next_look_ns)
			continue;
		one->next_look_ns = now + LOOK_NS;
		wp_stuck_look(&one->stuck, one->recorder);
		if (one->stuck.nstill < STUCK_LOOKS ||
		    wp_stuck_is_in_kernels_work(&one->stuck, one->recorder))
			continue;
		end_stuck(s, one);
		one->stuck.nstill = 0;
	}
}
