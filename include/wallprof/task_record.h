/* task_record.h - what one scan says of one thread.
 *
 * Layer: trace.  Written by a BPF program and read here, so it has nothing but
 * what both can include.
 */
#ifndef WP_TASK_RECORD_H
#define WP_TASK_RECORD_H

#include <linux/types.h>

struct wp_task_record {
	/* As the PID namespace of the reader has it. */
	__s32 tid;
	__u32 unused;
	/* The three numbers of /proc/TID/schedstat (fs/proc/base.c,
	 * proc_pid_schedstat): ns on a CPU, ns runnable but waiting for one,
	 * times put on one. */
	__u64 run_ns;
	__u64 wait_ns;
	__u64 slices;
};

#endif
