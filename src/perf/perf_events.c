/* SPDX-License-Identifier: Apache-2.0 */
/* perf_events.c - opens one event, one ring buffer: see perf_priv.h. */
#include "perf_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/vec.h"

/* PERF_FORMAT_LOST, missing in headers before Linux 6.0. */
enum { FORMAT_LOST = 1 << 4 };

bool wp_perf_kind_wanted(const struct wp_perf *perf, enum wp_perf_kind kind)
{
	const struct wp_perf_options *o = &perf->options;

	if (kind == WP_PERF_KIND_WAKES)
		return perf->waking_id;
	if (kind == WP_PERF_KIND_WAKE_STACKS)
		return perf->waking_id && o->wake_sample_every;
	if (kind == WP_PERF_KIND_SWITCHES)
		return o->switches || o->switch_sample_every;
	return o->period_ns || o->tasks || o->thread_starts || o->bpf_output;
}

enum wp_perf_scope wp_perf_kind_scope(const struct wp_perf *perf,
				      enum wp_perf_kind kind)
{
	if (kind == WP_PERF_KIND_WAKES || kind == WP_PERF_KIND_WAKE_STACKS)
		return WP_PERF_CPU;
	return kind == WP_PERF_KIND_MAIN ? perf->facts.main_scope :
					   perf->facts.switch_scope;
}

static struct perf_event_attr attr_base(const struct wp_perf *perf)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(a),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = perf->sample_type,
		.disabled = 1,
		.exclude_hv = 1,
		.exclude_callchain_user = 1,
		.exclude_kernel = perf->facts.user_only,
		.sample_id_all = 1,
		.watermark = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	if (perf->sample_type & PERF_SAMPLE_REGS_USER)
		a.sample_regs_user = wp_perf_regs_mask();
	if (perf->sample_type & PERF_SAMPLE_STACK_USER)
		a.sample_stack_user = perf->options.stack_bytes;
	return a;
}

/* Samples of one period before the next is drawn, as many as take so long, but no
 * fewer and no more than that.  The thread runs on until then, and that time is not
 * sampled; the first sample of the next comes no sooner than its period.  So to draw
 * often makes samples rare, and some moments of a rhythm in milliseconds rarer than
 * others (of four samples at 1000 Hz, by 3 points of 67); to draw seldom leaves much
 * of the time to the chance of one period (of 16 samples at 100 Hz, twice the error
 * of samples by chance in a Go program, which runs its goroutines for 10 ms each). */
#define DRAW_NS (16 * WP_NS_PER_MS)
enum { SAMPLES_LEAST = 4, SAMPLES_MOST = 16 };

static uint64_t samples_of_period(uint64_t period_ns)
{
	uint64_t n = DRAW_NS / period_ns;

	return n < SAMPLES_LEAST ? SAMPLES_LEAST :
	       n > SAMPLES_MOST	 ? SAMPLES_MOST :
				   n;
}

uint64_t wp_perf_kind_period(const struct wp_perf *perf, enum wp_perf_kind kind)
{
	if (kind == WP_PERF_KIND_WAKES ||
	    (kind == WP_PERF_KIND_MAIN &&
	     (perf->newtask_id || perf->options.bpf_output)))
		return 1;
	if (kind == WP_PERF_KIND_MAIN)
		return perf->options.period_ns;
	if (kind == WP_PERF_KIND_WAKE_STACKS)
		return perf->options.wake_sample_every;
	/* A switch happens in the kernel. */
	return perf->facts.user_only ? 0 : perf->options.switch_sample_every;
}

static void set_main(struct perf_event_attr *a, const struct wp_perf *perf)
{
	bool cpu = perf->facts.main_scope == WP_PERF_CPU;

	a->task = perf->options.tasks || !cpu;
	a->comm = a->comm_exec = perf->options.tasks && !perf->process;
	if (!a->sample_period)
		return;
	if (perf->options.bpf_output) {
		a->config = PERF_COUNT_SW_BPF_OUTPUT;
		return;
	}
	if (perf->newtask_id) {
		a->type = PERF_TYPE_TRACEPOINT;
		a->config = (uint64_t)perf->newtask_id;
		return;
	}
	a->config = cpu ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_TASK_CLOCK;
	a->exclude_idle = cpu;
}

static void set_switches(struct perf_event_attr *a, const struct wp_perf *perf)
{
	a->context_switch = perf->options.switches;
	/* In scope TASK: a record of a thread start tells that its tid is no
	 * longer that of an earlier thread. */
	a->task = perf->facts.switch_scope == WP_PERF_TASK &&
		  !wp_perf_kind_wanted(perf, WP_PERF_KIND_MAIN);
	if (!a->sample_period)
		return;
	a->config = PERF_COUNT_SW_CONTEXT_SWITCHES;
	/* Switches of the idle thread belong to no process. */
	a->exclude_idle = 1;
}

/* Who wakes is of no interest but by its tid: it may be any process. */
static void set_wakes(struct perf_event_attr *a, const struct wp_perf *perf)
{
	a->type = PERF_TYPE_TRACEPOINT;
	a->config = (uint64_t)perf->waking_id;
	a->sample_type = WP_PERF_WAKE_TYPE;
	a->sample_regs_user = 0;
	a->sample_stack_user = 0;
}

static void set_wake_stacks(struct perf_event_attr *a,
			    const struct wp_perf *perf)
{
	a->type = PERF_TYPE_TRACEPOINT;
	a->config = (uint64_t)perf->waking_id;
	a->sample_type |= PERF_SAMPLE_RAW;
}

static int open_attr(struct perf_event_attr *a, pid_t tid, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, a, tid, cpu, -1,
			      PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int wp_perf_event_open(const struct wp_perf *perf, enum wp_perf_kind kind,
		       uint64_t period, pid_t tid, int cpu)
{
	struct perf_event_attr a = attr_base(perf);

	a.sample_period = period;
	if (kind == WP_PERF_KIND_MAIN)
		set_main(&a, perf);
	else if (kind == WP_PERF_KIND_WAKES)
		set_wakes(&a, perf);
	else if (kind == WP_PERF_KIND_WAKE_STACKS)
		set_wake_stacks(&a, perf);
	else
		set_switches(&a, perf);
	if (perf->facts.counts_lost)
		a.read_format = FORMAT_LOST;
	a.inherit = tid >= 0;
	a.inherit_thread = a.inherit && perf->inherit_thread;
	return open_attr(&a, tid, cpu);
}

/* Take no samples of processes that start, which are many where a build runs. */
static void leave_out_processes(int fd)
{
	/* linux/sched.h: CLONE_THREAD.  If the kernel refuses the filter, the
	 * reader drops these samples. */
	(void)!ioctl(fd, PERF_EVENT_IOC_SET_FILTER, "clone_flags & 0x10000");
}

/* Take no samples of what an interrupt, or an idle CPU, has no part in.  If the kernel
 * refuses the filter, the reader drops them. */
static void leave_out_interrupts(int fd)
{
	(void)!ioctl(fd, PERF_EVENT_IOC_SET_FILTER, WP_PERF_BY_THREADS);
}

/* A period of CPU samples: any from 3/8 to 11/8 of the one asked for is as likely.
 * So any rhythm of up to that length is met at all of its moments alike; the eighth
 * that the mean is short is what a thread runs until periods are drawn. */
static uint64_t draw_period(struct wp_perf *perf, uint64_t period)
{
	return period * 3 / 8 + wp_random_next(&perf->random) % period;
}

uint64_t wp_perf_drawn_covers(const struct wp_perf *perf, uint64_t period)
{
	/* Half a period, of as many samples. */
	return period +
	       perf->options.period_ns /
		       (2 * samples_of_period(perf->options.period_ns));
}

static bool is_drawn(const struct wp_perf *perf, enum wp_perf_kind kind)
{
	return kind == WP_PERF_KIND_MAIN && perf->options.period_ns;
}

void wp_perf_draw_periods(struct wp_perf *perf, uint64_t period_ns)
{
	uint64_t nsamples = samples_of_period(period_ns);

	for (size_t i = 0; i < perf->nevents; i++) {
		struct wp_perf_event *e = &perf->events[i];
		uint64_t period;

		if (e->nsamples < nsamples)
			continue;
		period = draw_period(perf, period_ns);
		if (ioctl(e->fd, PERF_EVENT_IOC_PERIOD, &period))
			continue;
		e->period_before = e->period;
		e->period = period;
		e->changed_ns = wp_clock_ns();
		e->nsamples = 0;
	}
}

int wp_perf_event_add(struct wp_perf *perf, enum wp_perf_kind kind, pid_t tid,
		      const struct wp_perf_cpu *cpu)
{
	struct wp_perf_event *e;
	int rc;

	if (WP_VEC_ROOM(perf->events, perf->nevents, perf->cap_events, 1))
		return -ENOMEM;
	e = &perf->events[perf->nevents];
	*e = (struct wp_perf_event){
		.tid = tid,
		.kind = kind,
		.cpu = (uint32_t)(cpu - perf->cpus),
		.period = is_drawn(perf, kind) ?
				  draw_period(perf, perf->options.period_ns) :
				  wp_perf_kind_period(perf, kind),
	};
	e->fd = wp_perf_event_open(perf, kind, e->period, tid, cpu->cpu);
	if (e->fd < 0)
		return e->fd;
	if (kind == WP_PERF_KIND_MAIN && perf->newtask_id)
		leave_out_processes(e->fd);
	if (kind == WP_PERF_KIND_WAKE_STACKS && !perf->process)
		leave_out_interrupts(e->fd);
	if (ioctl(e->fd, PERF_EVENT_IOC_SET_OUTPUT, cpu->fd) ||
	    ioctl(e->fd, PERF_EVENT_IOC_ID, &e->id)) {
		rc = -errno;
		close(e->fd);
		return rc;
	}
	perf->facts.nevents = ++perf->nevents;
	return 0;
}

/* Records of EVENT that were lost. */
static uint64_t read_lost(const struct wp_perf_event *event)
{
	struct {
		uint64_t value, lost;
	} count;

	if (event->fd < 0 ||
	    read(event->fd, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count.lost;
}

void wp_perf_events_count_lost(struct wp_perf *perf)
{
	uint64_t sum = perf->lost_closed;

	if (!perf->facts.counts_lost)
		return;
	/* A thread's event counts for those that inherited it as well. */
	for (size_t i = 0; i < perf->nevents; i++)
		sum += read_lost(&perf->events[i]);
	if (perf->stats.lost < sum)
		perf->stats.lost = sum;
}

void wp_perf_event_end(struct wp_perf *perf, struct wp_perf_event *event)
{
	if (perf->facts.counts_lost)
		perf->lost_closed += read_lost(event);
	if (event->fd >= 0)
		close(event->fd);
	event->fd = -1;
}

void wp_perf_events_cut(struct wp_perf *perf, size_t n)
{
	while (perf->nevents > n)
		wp_perf_event_end(perf, &perf->events[--perf->nevents]);
	perf->facts.nevents = n;
}

/* Open the event that owns the ring of CPU; it is never enabled. */
static int open_owner(const struct wp_perf *perf, int cpu)
{
	struct perf_event_attr a = attr_base(perf);

	a.exclude_kernel = 1;
	a.sample_type = WP_PERF_SAMPLE_BASE;
	a.sample_regs_user = 0;
	a.sample_stack_user = 0;
	return open_attr(&a, 0, cpu);
}

static int map_ring(struct wp_perf *perf, struct wp_perf_cpu *cpu)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = mmap(NULL, page + perf->facts.ring_bytes,
			 PROT_READ | PROT_WRITE, MAP_SHARED, cpu->fd, 0);

	/* EPERM here means more memory than may be locked (kernel/events/core.c,
	 * perf_mmap). */
	if (map == MAP_FAILED)
		return errno == EPERM ? -ENOBUFS : -errno;
	cpu->map = map;
	cpu->ring = (struct wp_perf_ring){
		.page = map,
		.data = (const uint8_t *)map + page,
		.size = perf->facts.ring_bytes,
	};
	return 0;
}

static int add_cpu(struct wp_perf *perf, int nr)
{
	struct wp_perf_cpu *cpu;

	if (WP_VEC_ROOM(perf->cpus, perf->ncpus, perf->cap_cpus, 1))
		return -ENOMEM;
	cpu = &perf->cpus[perf->ncpus];
	*cpu = (struct wp_perf_cpu){ .cpu = nr, .fd = open_owner(perf, nr) };
	if (cpu->fd < 0)
		return cpu->fd;
	perf->ncpus++;
	return map_ring(perf, cpu);
}

void wp_perf_rings_close(struct wp_perf *perf)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	while (perf->ncpus) {
		struct wp_perf_cpu *cpu = &perf->cpus[--perf->ncpus];

		if (cpu->map)
			munmap(cpu->map, page + cpu->ring.size);
		close(cpu->fd);
	}
	perf->facts.nrings = 0;
}

static int open_rings(struct wp_perf *perf)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);

	for (int i = 0; i < n; i++) {
		int rc = add_cpu(perf, i);

		/* The CPU is offline. */
		if (rc == -ENODEV || rc == -ENXIO)
			continue;
		if (rc) {
			wp_perf_rings_close(perf);
			return rc;
		}
	}
	perf->facts.nrings = perf->ncpus;
	return perf->ncpus ? 0 : -ENODEV;
}

int wp_perf_rings_open(struct wp_perf *perf)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t want = perf->options.ring_bytes ? perf->options.ring_bytes :
						 WP_PERF_RING_DEFAULT;
	int rc;

	perf->facts.ring_bytes = page;
	while (perf->facts.ring_bytes < want)
		perf->facts.ring_bytes *= 2;
	rc = open_rings(perf);
	while ((rc == -ENOBUFS || rc == -ENOMEM) &&
	       perf->facts.ring_bytes > 64 * 1024) {
		perf->facts.ring_bytes /= 2;
		rc = open_rings(perf);
	}
	return rc;
}
