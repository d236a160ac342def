/* SPDX-License-Identifier: Apache-2.0 */
/* heap_probe.h - samples of allocations, by probes on a process's allocator functions.
 *
 * Layer: bpf.
 *
 * A BPF program (heap_probe.bpf.c) runs at each call of an allocator function and
 * samples it with a probability of 1 - exp(-size / rate): the law of one sample every
 * RATE bytes on average, at random.  Samples come as records of perf events
 * (wp_perf_options.bpf_output) with the caller's registers and stack, and data as
 * heap_record.h says.
 *
 * Needs CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE (or root) in
 * the initial user namespace, and Linux 5.10 (older ones were not tried).  From Linux
 * 6.13 on only a sampled call takes the trap of its return (uprobe sessions); before
 * Linux 6.6, which has links of many uprobes, a perf event makes each probe, and
 * CAP_SYS_ADMIN is needed.  The kernel removes the probes when their descriptors are
 * closed, however wallprof ends.
 */
#ifndef WP_HEAP_PROBE_H
#define WP_HEAP_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/heap_record.h"

/* How probes are made. */
enum wp_heap_tier {
	/* The best that the kernel has. */
	WP_HEAP_TIER_AUTO,
	WP_HEAP_TIER_SESSION,
	WP_HEAP_TIER_MULTI,
	WP_HEAP_TIER_PERF,
	WP_HEAP_NTIERS
};

/* Where a probe stands: at OFF of a file, on a function that does CALL. */
struct wp_heap_site {
	uint64_t off;
	enum wp_heap_call call;
};

struct wp_heap_probe;

/* The threshold of wp_heap_record for objects of size class CLASS, sampled every RATE
 * bytes. */
uint32_t wp_heap_threshold(uint32_t class, uint64_t rate);

/* Do probes end a process that has a seccomp filter, on the kernel RELEASE (uname(2))?
 * On x86-64 Linux 6.11 to 6.13 make a system call, uretprobe, where a probed function
 * returns, and filters know none; Linux 6.14 lets it pass, as later ones of 6.12 and
 * 6.13 do ("seccomp: passthrough uretprobe systemcall without filtering"). */
bool wp_heap_probe_ends_filtered(const char *release);

/* Do they end a process that has a shadow stack (CET of x86-64)?  The return address that
 * a probe replaces is on that one as well, which Linux leaves as it is before 6.11
 * (arch/x86/kernel/uprobes.c, arch_uretprobe_hijack_return_addr: "x86/shstk: Make return
 * uprobe work with shadow stack"); processes have shadow stacks since 6.6. */
bool wp_heap_probe_ends_shadowed(const char *release);

/* Load the program for process PID, with one sample every RATE bytes, and take TIER, or
 * the first whose probe on wallprof itself is hit.  Nothing of the process is probed so
 * far.  Of a process whose first thread has ended PID is that of another, and TIER is
 * WP_HEAP_TIER_PERF: its probes are gone when thread PID ends, others' when the process
 * does.
 *
 * 0 and *RET, which the caller closes; -EPERM: not permitted; -ENOTSUP: BPF was left
 * out of the build, or the kernel is too old; -EAGAIN: signals interrupted it for 5 s;
 * -ENOMEM.  ERR says why. */
WP_MUST_CHECK
int wp_heap_probe_open(struct wp_heap_probe **ret, pid_t pid, uint64_t rate,
		       enum wp_heap_tier tier, struct wp_err *err);

/* The tier that was chosen. */
enum wp_heap_tier wp_heap_probe_tier(const struct wp_heap_probe *probe);

/* Are calls of that kind seen?  mprotect's are not by perf events before Linux 5.17. */
bool wp_heap_probe_can(const struct wp_heap_probe *probe,
		       enum wp_heap_call call);

/* CPU time that a call with a probe takes longer, in ns, measured on wallprof itself;
 * 0: it could not be measured. */
uint64_t wp_heap_probe_cost_ns(const struct wp_heap_probe *probe);

/* Records of CPU go to the perf event FD.  0 or -errno. */
WP_MUST_CHECK
int wp_heap_probe_set_output(struct wp_heap_probe *probe, int cpu, int fd);

/* The most sites of a file that are probed. */
enum { WP_HEAP_SITES_MAX = 64 };

/* Probe SITES[0..N), N at most WP_HEAP_SITES_MAX, of the file at PATH, in the process
 * only.  0; -EMFILE: too many files; the errors of open. */
WP_MUST_CHECK
int wp_heap_probe_attach(struct wp_heap_probe *probe, const char *path,
			 const struct wp_heap_site *sites, size_t n,
			 struct wp_err *err);

/* Sample from now on; before that calls are counted only.  0 or -errno. */
WP_MUST_CHECK
int wp_heap_probe_arm(struct wp_heap_probe *probe);

/* Remove the probes from processes that the process has forked: they have copies of its
 * memory, and the kernel's breakpoints are in that.  The program does not run there, but
 * each call takes the time, and its return.  A child loses those by perf events by itself,
 * at the first call.  Takes some ms. */
void wp_heap_probe_spare_children(struct wp_heap_probe *probe);

/* Count and sample no longer; what was counted stays.  Remove the probes: WHOLLY; or of
 * those by perf events, each of which the kernel takes 20 to 150 ms to remove, one at
 * each call. */
void wp_heap_probe_detach(struct wp_heap_probe *probe, bool wholly);

/* Sums over all CPUs, but for RETURNS, which is 0. */
struct wp_heap_counts wp_heap_probe_counts(const struct wp_heap_probe *probe);

/* The return address of the last call of a probed function that was made with CALL->sp
 * before CALL->time_ns.  In its place on the stack there is CALL->pc, as the kernel has
 * it where a probe sees the return (kernel/events/uprobes.c, prepare_uretprobe).  0:
 * not known: in a session; on aarch64; too long ago, after WP_HEAP_RETURNS calls on a
 * CPU.  Of a function that only another tool probes it is that of a call of before. */
uint64_t wp_heap_probe_find_return(const struct wp_heap_probe *probe,
				   const struct wp_heap_return *call);

/* Call EACH with what was mapped and unmapped since the last call, in no order. */
void wp_heap_probe_each_mapped(struct wp_heap_probe *probe,
			       void (*each)(void *ctx,
					    const struct wp_heap_mapped *range),
			       void *ctx);

/* Call EACH with the id of each sampled object that lives.  0 or -errno. */
WP_MUST_CHECK
int wp_heap_probe_each_live(struct wp_heap_probe *probe,
			    void (*each)(void *ctx, uint64_t id), void *ctx);

/* Accepts NULL. */
void wp_heap_probe_close(struct wp_heap_probe *probe);

#endif
