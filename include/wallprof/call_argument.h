/* SPDX-License-Identifier: Apache-2.0 */
/* call_argument.h - reads the first argument of the last system call of a
 * stopped thread (aarch64).
 *
 * Layer: bpf.
 *
 * The call's result has taken its place in x0.  The kernel keeps it in a field
 * that no register set of ptrace(2) has (orig_x0), and a BPF program reads
 * that.
 */
#ifndef WP_CALL_ARGUMENT_H
#define WP_CALL_ARGUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"

struct bpf_object;

/* All zero: not opened yet. */
struct wp_call_argument {
	/* Owned; NULL: not opened yet, or it cannot be. */
	struct bpf_object *object;
	bool tried;
};

/* What thread TID, which is stopped, gave its last system call as first
 * argument. Loads the program if that has not been tried: 10 to 20 ms.
 *
 * 0; -ENOTSUP: the program cannot be loaded (see wallprof/task_scan.h, but that
 * Linux 6.1 will do), or this is no aarch64; -ESRCH: TID has ended; another
 * -errno. */
WP_MUST_CHECK
int wp_call_argument_read(struct wp_call_argument *of, pid_t tid,
			  uint64_t *ret);

/* Idempotent. */
void wp_call_argument_close(struct wp_call_argument *of);

#endif
