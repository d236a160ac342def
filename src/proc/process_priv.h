/* SPDX-License-Identifier: Apache-2.0 */
/* process_priv.h - what the files of process.h share. */
#ifndef WP_PROCESS_PRIV_H
#define WP_PROCESS_PRIV_H

#include "wallprof/process.h"

/* Translate ERROR, an errno of /proc, to the errors of process.h. */
int wp_process_error(int error);

/* The tid of a thread that has not exited, 0 if none.  Through a thread that
 * has, the leader included, neither memory nor files nor root can be seen. */
pid_t wp_process_find_living(const struct wp_process *process);

#endif
