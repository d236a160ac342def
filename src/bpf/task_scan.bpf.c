/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* task_scan.bpf.c - runs in the kernel: see wallprof/task_scan.h.
 *
 * A task iterator over one process runs the program once; the program walks the
 * threads of that process, or those of all, itself and writes a record of each that is
 * asked for, unless the last record still holds.  An iterator over the threads would
 * find each by its tid, which takes ten times as long (with 10,000 threads: 470 ns
 * instead of 40 ns per thread).
 */
#include <linux/types.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "task_kernel.h"
#include "wallprof/task_record.h"

/* The kernel lets only programs under a licence compatible with the GPL read
 * its structures (kernel/bpf/verifier.c, check_ptr_to_btf_access). */
char wp_license[] SEC("license") = "Dual MIT/GPL";

/* Its size is set before it is made. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wp_task_record);
} wp_records SEC(".maps");

/* Keys: the processes asked for, by their numbers in the reader's namespace, and
 * WP_TASK_SCAN_MANY if they are to be found among all. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u8);
} wp_processes SEC(".maps");

/* Bits by pid in the first PID namespace: the processes asked for that the last walk
 * met, and the threads that are in the list of a CPU.  Sizes are set before they are
 * made. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} wp_wanted SEC(".maps"), wp_listed SEC(".maps");

/* By CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wp_task_list);
} wp_lists SEC(".maps");

/* What the reader asks for beside, and what was found. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wp_task_moved);
} wp_moved SEC(".maps");

/* The reader is in a PID namespace below the first.  This is set before the program is
 * loaded: the verifier leaves out the branches that cannot be taken. */
const volatile _Bool wp_is_nested = 1;

/* A PID namespace, LEVEL below the first. */
struct place {
	unsigned int level;
	void *ns;
};

/* Read what PID is in the namespace LEVEL below the first that it is in. */
static void read_upid(const struct pid *pid, unsigned int level, int *nr,
		      void **ns)
{
	const char *upid = (const char *)pid +
			   bpf_core_field_offset(pid->numbers) +
			   level * bpf_core_type_size(struct upid);

	bpf_probe_read_kernel(nr, sizeof(*nr),
			      upid + bpf_core_field_offset(struct upid, nr));
	bpf_probe_read_kernel(ns, sizeof(*ns),
			      upid + bpf_core_field_offset(struct upid, ns));
}

/* TASK's number at PLACE; 0 when it has none there, or is gone.
 *
 * Not inlined, as see_thread() is not: the verifier compares states with all that is on
 * the stack, and what a function leaves there is gone once the function has returned.
 * For a nested reader the verifier takes 31 ms over wp_scan_tasks(), and 228 ms with both
 * inlined. */
static __noinline int number_of(struct task_struct *task,
				const struct place *place)
{
	int outer = task->pid, nr = 0;
	void *ns = 0;
	struct pid *pid;

	/* One load for both numbers would have pointers of two kinds, which
	 * the kernel refuses. */
	barrier_var(outer);
	if (!wp_is_nested)
		return outer;
	pid = task->thread_pid;
	if (pid && pid->level >= place->level)
		read_upid(pid, place->level, &nr, &ns);
	return ns == place->ns ? nr : 0;
}

/* include/linux/sched.h. */
enum {
	TASK_INTERRUPTIBLE = 1,
	TASK_UNINTERRUPTIBLE = 2,
	TASK_STOPPED = 4,
	TASK_TRACED = 8,
	TASK_REPORT = 0x7f,
	/* PF_POSTCOREDUMP, since Linux 5.16, and PF_DUMPCORE. */
	PF_DUMPS = 0x8 | 0x200,
};

/* As fs/proc/array.c has it, of threads that wait or are stopped only. */
static char letter_of(const struct task_struct *task, int is_32bit)
{
	unsigned int state = task->__state & TASK_REPORT;

	if (task->on_cpu || task->exit_state ||
	    is_foreign(&task->thread_info, is_32bit))
		return 0;
	return state == TASK_INTERRUPTIBLE   ? 'S' :
	       state == TASK_UNINTERRUPTIBLE ? 'D' :
	       state == TASK_STOPPED	     ? 'T' :
	       state == TASK_TRACED	     ? 't' :
					       0;
}

static void take(struct wp_task_record *record, struct task_struct *task,
		 int pid, int tid)
{
	__u64 run_ns = task->se.sum_exec_runtime;
	__u64 slices = task->sched_info.pcount, now_ns;
	struct pt_regs *regs;

	record->wait_ns = task->sched_info.run_delay;
	if (!record->is_ready && record->state_char && record->tid == tid &&
	    record->slices == slices && record->run_ns == run_ns)
		return;
	record->pid = pid;
	record->tid = tid;
	record->run_ns = run_ns;
	record->slices = slices;
	record->start_ns = task->start_boottime;
	record->outer_tid = task->pid;
	record->dumps_core = !!(task->flags & PF_DUMPS);
	barrier();
	now_ns = bpf_ktime_get_ns();
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	record->is_32bit = is_32bit(regs);
	record->state_char = letter_of(task, record->is_32bit);
	barrier();
	if (record->state_char)
		take_regs(record, regs);
	/* It orders memory: what follows is read after the state. */
	__sync_lock_test_and_set(&record->time_ns, now_ns);
	record->is_ready = !record->state_char || task->on_rq ||
			   task->se.sum_exec_runtime != run_ns ||
			   task->sched_info.pcount != slices;
	bpf_core_read(record->comm, sizeof(record->comm), &task->comm);
}

/* Processes that end leave a bit behind. */
static void set_wanted(__u32 tgid, __u32 wanted)
{
	__u64 bit = 1ull << (tgid % 64);
	__u32 at = tgid / 64, zero = 0;
	__u64 *bits = bpf_map_lookup_elem(&wp_wanted, &at);
	struct wp_task_moved *moved = bpf_map_lookup_elem(&wp_moved, &zero);

	if (!bits && wanted && moved)
		moved->is_beyond = 1;
	if (!bits || !(*bits & bit) == !wanted)
		return;
	if (wanted)
		__sync_fetch_and_or(bits, bit);
	else
		__sync_fetch_and_and(bits, ~bit);
}

/* How far wp_scan_tasks() is. */
struct walk {
	/* Threads found, those without room too. */
	__u32 n;
	/* The process whose threads come now; 0: it is not asked for. */
	__u32 pid;
};

/* TASK is the next thread of WALK. */
static __noinline void see_thread(struct walk *walk, struct task_struct *task,
				  const struct place *place)
{
	struct wp_task_record *record;
	__u32 n = walk->n, pid;
	int tid;

	/* Each process begins with its first thread. */
	if (task->pid == task->tgid) {
		pid = number_of(task, place);
		if (!bpf_map_lookup_elem(&wp_processes, &pid))
			pid = 0;
		walk->pid = pid;
		set_wanted(task->tgid, pid);
	}
	if (!walk->pid || task->exit_state)
		return;
	tid = number_of(task, place);
	if (!tid)
		return;
	record = bpf_map_lookup_elem(&wp_records, &n);
	if (record)
		take(record, task, walk->pid, tid);
	walk->n = n + 1;
}

SEC("iter/task")
int wp_scan_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *first = ctx->task, *task;
	/* The reader: it runs this. */
	struct task_struct *reader = bpf_get_current_task_btf();
	struct place place = { .level = reader->thread_pid->level };
	int own;
	struct bpf_iter_task it;
	struct walk walk = {};
	__u32 many = WP_TASK_SCAN_MANY;

	if (!first)
		return 0;
	read_upid(reader->thread_pid, place.level, &own, &place.ns);
	bpf_iter_task_new(&it, first,
			  bpf_map_lookup_elem(&wp_processes, &many) ?
				  ALL_THREADS :
				  PROC_THREADS);
	while ((task = bpf_iter_task_next(&it)))
		see_thread(&walk, task, &place);
	bpf_iter_task_destroy(&it);
	bpf_seq_write(ctx->meta->seq, &walk.n, sizeof(walk.n));
	return 0;
}

/* Put thread PID in LIST, unless it is in one already.
 *
 * Both the atomic operations here and that of take_moved() order memory: a thread that
 * is found listed is read after that, so the reader sees what it did before.  The kernel
 * counts the switch to a thread a little later, but until it has left its CPU again it is
 * ready to run, and so read again. */
static void list_thread(struct wp_task_list *list, __u32 pid)
{
	__u64 bit = 1ull << (pid % 64);
	__u32 at = pid / 64, head = list->head;
	__u64 *bits = bpf_map_lookup_elem(&wp_listed, &at);

	if (!bits) {
		list->lost++;
		return;
	}
	if (__sync_fetch_and_or(bits, bit) & bit)
		return;
	if (head - list->tail >= WP_TASK_LIST) {
		__sync_fetch_and_and(bits, ~bit);
		list->lost++;
		return;
	}
	list->pids[head % WP_TASK_LIST] = pid;
	/* The reader sees it with its entry. */
	__sync_lock_test_and_set(&list->head, head + 1);
}

/* Of those for which there is no bit, all if one is.  Threads can be over pid_max where
 * it was lowered, or is that of a PID namespace (Linux 6.14). */
static int is_wanted(__u32 tgid)
{
	__u32 at = tgid / 64, zero = 0;
	const __u64 *bits = bpf_map_lookup_elem(&wp_wanted, &at);
	const struct wp_task_moved *moved;

	if (bits)
		return *bits >> (tgid % 64) & 1;
	moved = bpf_map_lookup_elem(&wp_moved, &zero);
	return moved && moved->is_beyond;
}

/* Each context switch, on every CPU: list the thread that is put on the CPU, and the one
 * that leaves it, if they are of a process asked for.  TP_PROTO of
 * include/trace/events/sched.h: (bool preempt, struct task_struct *prev, struct
 * task_struct *next, ...).
 *
 * There are kernels that run no program at switches away from the threads of process 1:
 * who comes after one of them is known by its own switch away, and until then by what the
 * reader finds on the CPU. */
SEC("tp_btf/sched_switch")
int wp_note_switch(__u64 *ctx)
{
	const struct task_struct *prev = (struct task_struct *)ctx[1];
	const struct task_struct *next = (struct task_struct *)ctx[2];
	__u32 cpu = bpf_get_smp_processor_id();
	struct wp_task_list *list = bpf_map_lookup_elem(&wp_lists, &cpu);

	if (!list)
		return 0;
	list->switches++;
	if (!list->rq && bpf_core_field_exists(next->se.cfs_rq))
		list->rq = (__u64)next->se.cfs_rq->rq;
	if (is_wanted(prev->tgid))
		list_thread(list, prev->pid);
	if (is_wanted(next->tgid))
		list_thread(list, next->pid);
	return 0;
}

/* What pid is in the reader's namespace, and of which process. */
static int read_moved(struct wp_task_moved *moved, __u32 pid,
		      const struct place *place)
{
	struct task_struct *task = bpf_task_from_pid((int)pid), *first;
	__u32 n = moved->n;
	int tid = 0, tgid = 0;

	if (!task)
		return 0;
	if (!task->exit_state)
		tid = number_of(task, place);
	if (tid && (first = bpf_task_from_pid(task->tgid))) {
		tgid = number_of(first, place);
		bpf_task_release(first);
	}
	if (tgid && n < WP_TASK_MOVED) {
		moved->records[n].is_ready = 1;
		take(&moved->records[n], task, tgid, tid);
		moved->n = n + 1;
	}
	bpf_task_release(task);
	return tgid && n < WP_TASK_MOVED;
}

/* Thread PID is in a list no longer: read it. */
static void take_moved(struct wp_task_moved *moved, __u32 pid,
		       const struct place *place)
{
	__u64 bit = 1ull << (pid % 64);
	__u32 at = pid / 64;
	__u64 *bits = bpf_map_lookup_elem(&wp_listed, &at);

	/* It orders memory only since what it returns is used (arm64). */
	if (bits && !(__sync_fetch_and_and(bits, ~bit) & bit))
		moved->unknown++;
	moved->unknown += !read_moved(moved, pid, place);
}

/* Read the thread that is on the CPU of RQ. */
static void take_current(struct wp_task_moved *moved, const struct rq *rq,
			 const struct place *place)
{
	const struct task_struct *task = BPF_CORE_READ(rq, curr);

	if (is_wanted(BPF_CORE_READ(task, tgid)))
		moved->unknown += !read_moved(moved, BPF_CORE_READ(task, pid),
					      place);
}

static void take_list(struct wp_task_moved *moved, struct wp_task_list *list,
		      const struct place *place)
{
	__u32 head = __sync_fetch_and_add(&list->head, 0), lost;
	struct bpf_iter_num it;

	if (list->rq)
		take_current(moved, (const struct rq *)list->rq, place);
	moved->switches += list->switches;
	lost = list->lost;
	moved->unknown += lost != list->lost_known;
	list->lost_known = lost;
	bpf_iter_num_new(&it, 0, WP_TASK_LIST);
	while (list->tail != head && bpf_iter_num_next(&it)) {
		take_moved(moved, list->pids[list->tail % WP_TASK_LIST], place);
		list->tail++;
	}
	bpf_iter_num_destroy(&it);
}

SEC("iter/task")
int wp_scan_moved(struct bpf_iter__task *ctx)
{
	struct task_struct *reader = bpf_get_current_task_btf();
	struct place place = { .level = reader->thread_pid->level };
	struct bpf_iter_num it;
	struct wp_task_moved *moved;
	__u32 zero = 0, asked;
	int own, *i;

	if (!ctx->task)
		return 0;
	moved = bpf_map_lookup_elem(&wp_moved, &zero);
	if (!moved)
		return 0;
	read_upid(reader->thread_pid, place.level, &own, &place.ns);
	moved->n = moved->unknown = 0;
	moved->switches = 0;
	asked = moved->nasked;
	bpf_iter_num_new(&it, 0, WP_TASK_MOVED);
	while ((i = bpf_iter_num_next(&it)) && (__u32)*i < asked)
		if (*i >= 0 && *i < WP_TASK_MOVED)
			moved->unknown += !read_moved(moved, moved->asked[*i],
						      &place);
	bpf_iter_num_destroy(&it);
	bpf_iter_num_new(&it, 0, moved->ncpus);
	while ((i = bpf_iter_num_next(&it))) {
		__u32 cpu = *i;
		struct wp_task_list *list = bpf_map_lookup_elem(&wp_lists,
								&cpu);

		if (list)
			take_list(moved, list, &place);
	}
	bpf_iter_num_destroy(&it);
	bpf_seq_write(ctx->meta->seq, &moved->n, sizeof(moved->n));
	return 0;
}
