/* SPDX-License-Identifier: Apache-2.0 */
/* choose.h - which processes --name, --cgroup and --all mean.
 *
 * Layer: cmd.
 */
#ifndef WP_CHOOSE_H
#define WP_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "options.h"
#include "wallprof/process.h"

/* Is there such an option? */
bool wp_choose_is_asked(const struct wp_options *options);

/* Replace PIDS by all processes there are, sorted.  0, -ENOMEM, or the error of opening
 * /proc; PIDS has none then. */
WP_MUST_CHECK
int wp_choose_list(struct wp_tids *pids);

/* Is PID one that they mean?  No kernel thread, no zombie, not wallprof itself and what
 * it has started. */
bool wp_choose(const struct wp_options *options, pid_t pid);

/* Is PID left alone, as a recorder got stuck on it? */
bool wp_choose_avoids(const struct wp_options *options, pid_t pid);

/* Put what they mean into TEXT, as "processes named worker*". */
void wp_choose_describe(const struct wp_options *options, char *text,
			size_t size);

#endif
