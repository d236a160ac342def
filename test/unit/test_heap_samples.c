/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: sample.  The heap profile of a target with a fake /proc and clock, with
 * probes and perf records that the test makes: it is compared with the allocations that
 * these stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "../../src/sample/heap_samples.h"
#include "../../src/sample/heap_sites.h"
#include "../../src/sample/heap_state.h"
#include "../../src/sample/heap_trap.h"
#include "few_allocations.h"
#include "fake_perf.h"
#include "one_target.h"
#include "wallprof/heap_probe.h"

enum { MAKER = 7, PROBE_COST_NS = 1000 };

/* Elsewhere than on x86-64 no function of the C library that this test is linked with
 * begins with what the kernel is known to emulate. */
#if defined(__x86_64__)
enum { NONE_IS_CHEAP = false };
#else
enum { NONE_IS_CHEAP = true };
#endif

/* The probes that the library would make. */
static struct wp_heap_probe {
	int open_rc, attach_rc, arm_rc;
	size_t nattached, noutputs, nspared;
	bool armed, detached, ended, ends_filtered, ends_shadowed;
	/* What it is, and what was asked for. */
	enum wp_heap_tier tier, asked_for;
	enum wp_heap_call lacks;
	struct wp_heap_counts counts;
	uint64_t live[64];
	size_t nlive;
	/* How many there are. */
	size_t nopened;
} probe, second;

bool wp_heap_probe_ends_filtered(const char *release)
{
	assert_true(release[0] > '0' && release[0] <= '9');
	return probe.ends_filtered;
}

bool wp_heap_probe_ends_shadowed(const char *release)
{
	assert_true(release[0] > '0' && release[0] <= '9');
	return probe.ends_shadowed;
}

uint64_t wp_heap_probe_find_return(const struct wp_heap_probe *of,
				   const struct wp_heap_return *call)
{
	(void)of;
	(void)call;
	return 0;
}

int wp_heap_probe_open(struct wp_heap_probe **ret, pid_t pid, uint64_t rate,
		       enum wp_heap_tier tier, struct wp_err *err)
{
	(void)pid;
	(void)rate;
	probe.asked_for = tier;
	if (probe.open_rc)
		return wp_err_set(err, probe.open_rc, "refused by the test");
	*ret = probe.nopened++ ? &second : &probe;
	return 0;
}

enum wp_heap_tier wp_heap_probe_tier(const struct wp_heap_probe *p)
{
	return p->tier;
}

bool wp_heap_probe_can(const struct wp_heap_probe *p, enum wp_heap_call call)
{
	return !p->lacks || call != p->lacks;
}

uint64_t wp_heap_probe_cost_ns(const struct wp_heap_probe *p)
{
	(void)p;
	return PROBE_COST_NS;
}

int wp_heap_probe_set_output(struct wp_heap_probe *p, int cpu, int fd)
{
	(void)cpu;
	(void)fd;
	p->noutputs++;
	return 0;
}

int wp_heap_probe_attach(struct wp_heap_probe *p, const char *path,
			 const struct wp_heap_site *sites, size_t n,
			 struct wp_err *err)
{
	(void)path;
	(void)sites;
	p->nattached += n;
	return p->attach_rc ? wp_err_set(err, p->attach_rc, "no probe") : 0;
}

int wp_heap_probe_arm(struct wp_heap_probe *p)
{
	p->armed = !p->arm_rc;
	return p->arm_rc;
}

/* It takes 1 ms. */
void wp_heap_probe_spare_children(struct wp_heap_probe *p)
{
	p->nspared++;
	fake_now_ns += WP_NS_PER_MS;
}

void wp_heap_probe_detach(struct wp_heap_probe *p, bool wholly)
{
	p->detached = true;
	p->ended |= wholly;
}

struct wp_heap_counts wp_heap_probe_counts(const struct wp_heap_probe *p)
{
	return p->counts;
}

void wp_heap_probe_each_mapped(struct wp_heap_probe *p,
			       void (*each)(void *ctx,
					    const struct wp_heap_mapped *range),
			       void *ctx)
{
	(void)p;
	(void)each;
	(void)ctx;
}

int wp_heap_probe_each_live(struct wp_heap_probe *p,
			    void (*each)(void *ctx, uint64_t id), void *ctx)
{
	for (size_t i = 0; i < p->nlive; i++)
		each(ctx, p->live[i]);
	return 0;
}

void wp_heap_probe_close(struct wp_heap_probe *p)
{
	(void)p;
}

/* Who allocates. */
static pid_t maker;

static int setup(void **state)
{
	(void)state;
	memset(&probe, 0, sizeof(probe));
	memset(&second, 0, sizeof(second));
	maker = MAKER;
	probe.tier = WP_HEAP_TIER_SESSION;
	fake_perf_reset();
	fake_target_open(&fake);
	fake_stack_init(&stack, fake_stack_root);
	fake_target_add_thread(&fake, MAKER, "maker");
	options = fake_target_options();
	options.wall = false;
	options.heap = true;
	options.heap_rate = 1 << 16;
	options.max_overhead = 0.05;
	options.heap_anyway = NONE_IS_CHEAP;
	return 0;
}

/* The thread allocates SIZE bytes, sampled with probability THRESHOLD / 2^32. */
static void allocate(uint64_t id, uint64_t size, uint32_t threshold,
		     enum wp_heap_call call)
{
	static struct wp_heap_record data[FAKE_RECORDS];
	static size_t n;
	struct wp_perf_record record = {
		.type = WP_PERF_SAMPLE_OUTPUT,
		.time_ns = fake_now_ns,
		.pid = getpid(),
		.tid = maker,
		.regs = fake_stack_regs(&stack),
		.raw = (const uint8_t *)&data[n % FAKE_RECORDS],
		.raw_len = sizeof(*data),
	};
	uint64_t sp = record.regs.v[WP_REG_SP];

	data[n++ % FAKE_RECORDS] = (struct wp_heap_record){
		.id = id, .size = size, .threshold = threshold, .call = call
	};
	record.stack = (const uint8_t *)(uintptr_t)sp;
	record.stack_len = (size_t)((uintptr_t)stack.room + sizeof(stack.room) -
				    sp);
	fake_perf_put(fake_perf_last(), &record);
	probe.counts.calls++;
	probe.counts.samples++;
}

static const struct wp_profile_sums *finish(void)
{
	fake_now_ns += TICK;
	assert_int_equal(wp_sampler_finish(fake.sampler), 0);
	assert_true(probe.ended);
	wp_profile_add_up(&fake.profile);
	return &fake.profile.sums[WP_PROFILE_HEAP];
}

static const char *source(void)
{
	return wp_profile_str(&fake.profile,
			      fake.profile.meta.source[WP_PROFILE_HEAP]);
}

static void a_sample_stands_for_many(void **state)
{
	const struct wp_profile_sums *sums;

	(void)state;
	start_target();
	/* The C library that this test is linked with. */
	assert_true(probe.nattached >= 6 && probe.armed && probe.noutputs == 1);
	tick();
	/* One of four of 1000 bytes each, of which one is freed. */
	for (uint64_t id = 1; id <= 8; id++)
		allocate(id, 1000, 1u << 30, WP_HEAP_MALLOC);
	probe.live[probe.nlive++] = 3;
	probe.live[probe.nlive++] = 5;
	/* Of one whose record is lost nothing is known. */
	probe.live[probe.nlive++] = 99;
	tick();
	sums = finish();
	assert_int_equal(sums->count, 32);
	assert_int_equal(sums->wall_ns, 32000);
	assert_int_equal(sums->cpu_count, 8);
	assert_int_equal(sums->cpu_ns, 8000);
	assert_int_equal(sums->threads, 1);
	assert_int_equal(fake.profile.meta.heap_period, 1 << 16);
	/* Of the two in use each has 4000^2 * 3 / 4 of 65536 bytes. */
	assert_int_equal(fake.profile.sets[WP_PROFILE_HEAP].samples->weight_ns,
			 2 * 183);
	assert_int_equal(fake.profile.sets[WP_PROFILE_HEAP].samples->looks, 0);
	assert_non_null(strstr(source(), "uprobe sessions"));
	assert_int_equal(fake.profile.counters.heap_ended, 0);
}

/* A weight that is no whole number is rounded at random: right on average, and bytes
 * to one. */
static void weights_are_right_on_average(void **state)
{
	const struct wp_profile_sums *sums;

	(void)state;
	start_target();
	for (int round = 0; round < 10; round++) {
		tick();
		for (uint64_t i = 0; i < 100; i++)
			allocate((uint64_t)round * 100 + i + 1, 10, 3u << 30,
				 WP_HEAP_CALLOC);
	}
	tick();
	sums = finish();
	/* 1000 / 0.75; its standard deviation is 15. */
	assert_in_range(sums->count, 1333 - 75, 1333 + 75);
	assert_int_equal(sums->wall_ns, 13000);
	assert_int_equal(sums->cpu_ns, 0);
}

static void what_fails_is_taken_back(void **state)
{
	const struct wp_profile_sums *sums;

	(void)state;
	start_target();
	tick();
	allocate(1, 500, 1u << 31, WP_HEAP_MALLOC);
	allocate(2, 1ull << 40, UINT32_MAX, WP_HEAP_MALLOC);
	fake_now_ns += WP_NS_PER_MS;
	allocate(2, 0, 0, WP_HEAP_FAILED);
	/* Of what is not known. */
	allocate(77, 0, 0, WP_HEAP_FAILED);
	sums = finish();
	assert_int_equal(sums->count, 2);
	assert_int_equal(sums->wall_ns, 1000);
	/* Nothing is in use: 1000^2 / 2 of 65536 bytes. */
	assert_int_equal(fake.profile.sets[WP_PROFILE_HEAP].samples->weight_ns,
			 7);
}

/* Sums of a profile are int64, of all its samples together. */
static void no_more_is_counted_than_readers_can_add_up(void **state)
{
	const struct wp_profile_sums *sums;

	(void)state;
	start_target();
	tick();
	for (uint64_t id = 1; id <= 40; id++)
		allocate(id, 1ull << 47, 1u << 20, WP_HEAP_MALLOC);
	/* The first failed: there is room for one more. */
	allocate(1, 0, 0, WP_HEAP_FAILED);
	allocate(41, 1ull << 47, 1u << 20, WP_HEAP_MALLOC);
	allocate(42, 1ull << 47, 1u << 20, WP_HEAP_MALLOC);
	sums = finish();
	assert_int_equal(sums->wall_ns, 7ull << 59);
	assert_int_equal(fake.profile.counters.heap_lost, 42 - 8);
}

/* Maps of so much at a time are wanted; what malloc is asked for does not matter. */
static void less_than_is_wanted_is_left_out(void **state)
{
	const struct wp_profile_sums *sums;

	(void)state;
	options.heap_large = true;
	options.heap_least = 5000;
	start_target();
	tick();
	allocate(1, 4999, 1u << 31, WP_HEAP_MMAP);
	allocate(2, 5000, 1u << 31, WP_HEAP_MMAP);
	allocate(3, 4999, 1u << 31, WP_HEAP_MPROTECT);
	sums = finish();
	assert_int_equal(sums->wall_ns, 10000);
	assert_non_null(strstr(source(), " 1 in all"));
}

/* New threads allocate, one after the other: what they do is in the profile, or there was no
 * memory to read it. */
#ifdef CAN_FAIL
static void without_memory_there_is_an_error(void **state)
{
	uint64_t id = 1, got = 0;
	long n = 0;
	int rc;

	(void)state;
	start_target();
	tick();
	allocate(id++, 1000, 1u << 31, WP_HEAP_MALLOC);
	assert_int_equal(wp_heap_records_read(fake.target, UINT64_MAX), 0);
	do {
		maker++;
		allocate(id++, 1000, 1u << 31, WP_HEAP_MALLOC);
		allocations_left = n++;
		rc = wp_heap_records_read(fake.target, UINT64_MAX);
		allocations_left = -1;
		assert_true(!rc || rc == -ENOMEM);
	} while (rc && n < 1000);
	assert_int_equal(rc, 0);
	assert_true(n > 1);
	wp_profile_add_up(&fake.profile);
	got = fake.profile.sums[WP_PROFILE_HEAP].wall_ns;
	/* One that failed late may be in it. */
	assert_in_range(got, 2 * 2000, (uint64_t)(n + 1) * 2000);
}
#endif

/* The thread is in malloc, which has been called where the stack was left, and maps SIZE
 * bytes. */
#if defined(CAN_FAIL) && defined(__x86_64__)
static void map_for_malloc(uint64_t id, uint64_t size)
{
	struct wp_perf_record *record;
	uint64_t sp, pc;

	allocate(id, size, 1u << 31, WP_HEAP_MMAP);
	record = &fake_perf_last()->records[fake_perf_last()->n - 1];
	sp = record->regs.v[WP_REG_SP] - sizeof(pc);
	pc = record->regs.v[WP_REG_PC];
	memcpy((void *)(uintptr_t)sp, &pc, sizeof(pc));
	wp_reg_set(&record->regs, WP_REG_SP, sp);
	wp_reg_set(&record->regs, WP_REG_PC, (uintptr_t)&malloc);
	record->stack = (const uint8_t *)(uintptr_t)sp;
	record->stack_len += sizeof(pc);
}

static uint32_t depth_of(const struct wp_profile_sample *s)
{
	return fake.profile.stacks[s->key.stack].depth;
}

/* It is counted in malloc's calls, but where mappings alone are wanted. */
static void what_malloc_maps_is_its_callers(void **state)
{
	const struct wp_sample_set *set = &fake.profile.sets[WP_PROFILE_HEAP];

	for (int large = 0; large < 2; large++) {
		options.heap_large = large;
		start_target();
		tick();
		allocate(1, 4096, 1u << 31, WP_HEAP_MMAP);
		map_for_malloc(2, 4096);
		assert_int_equal(finish()->wall_ns, large ? 16384 : 8192);
		/* malloc's frame is none of either. */
		for (uint32_t i = 1; i < set->nsamples; i++)
			assert_int_equal(depth_of(&set->samples[i]),
					 depth_of(&set->samples[0]));
		teardown(state);
		setup(state);
	}
}
#endif

static void a_record_that_is_cut_is_none(void **state)
{
	struct wp_perf_record record = {
		.type = WP_PERF_SAMPLE_OUTPUT,
		.pid = getpid(),
		.tid = MAKER,
		.raw = (const uint8_t *)"x",
		.raw_len = 1,
	};

	(void)state;
	start_target();
	tick();
	record.time_ns = fake_now_ns;
	fake_perf_put(fake_perf_last(), &record);
	assert_int_equal(finish()->count, 0);
}

static void after_an_exec_nothing_of_before_is_in_use(void **state)
{
	struct wp_perf_record record = {
		.type = WP_PERF_NAME,
		.pid = getpid() + 1,
		.tid = MAKER,
		.name = "other",
		.by_exec = true,
	};
	const struct wp_profile_sums *sums;

	(void)state;
	start_target();
	tick();
	allocate(1, 100, 1u << 31, WP_HEAP_MALLOC);
	record.time_ns = fake_now_ns;
	/* Of another process; a new name; an exec. */
	fake_perf_put(fake_perf_last(), &record);
	record.pid = getpid();
	record.by_exec = false;
	fake_perf_put(fake_perf_last(), &record);
	allocate(2, 100, 1u << 31, WP_HEAP_MALLOC);
	record.by_exec = true;
	fake_perf_put(fake_perf_last(), &record);
	allocate(3, 1000, 1u << 31, WP_HEAP_MALLOC);
	for (uint64_t id = 1; id <= 3; id++)
		probe.live[probe.nlive++] = id;
	sums = finish();
	assert_int_equal(sums->wall_ns, 2400);
	assert_int_equal(sums->cpu_ns, 2000);
}

static void samples_of_freed_objects_are_forgotten(void **state)
{
	const struct wp_profile_sums *sums;
	uint64_t id = 0;

	(void)state;
	start_target();
	/* By a clock that stands still to read the map costs nothing, and before Linux
	 * 6.11, which can be asked about it, it would be read for each sample. */
	fake.target->space.reload_cost_ns = 3600 * WP_NS_PER_S;
	/* More than are kept before those are sought that are freed. */
	for (int round = 0; round < 700; round++) {
		tick();
		for (int i = 0; i < 200; i++)
			allocate(++id, 100, 1u << 31, WP_HEAP_MALLOC);
		probe.nlive = 0;
		probe.live[probe.nlive++] = 1;
		probe.live[probe.nlive++] = id;
	}
	tick();
	sums = finish();
	assert_int_equal(sums->wall_ns, id * 200);
	assert_int_equal(sums->cpu_ns, 400);
}

/* A command that is held until now executes its program. */
static void start_command(void)
{
	fake.held = true;
	start_target();
	assert_int_equal(wp_sampler_begin(fake.target, NULL), 0);
}

static void a_command_is_counted_first(void **state)
{
	(void)state;
	if (NONE_IS_CHEAP)
		skip();
	start_command();
	assert_false(probe.armed);
	tick();
	assert_false(probe.armed);
	probe.counts.calls = 10;
	/* 20 ms have passed. */
	tick();
	assert_true(probe.armed);
	/* 500,000 calls in a second are half of it. */
	for (int i = 0; i < 110; i++) {
		probe.counts.calls += 5000;
		tick();
	}
	assert_true(probe.detached);
	(void)finish();
	assert_non_null(strstr(source(), "ended before the recording"));
	assert_int_equal(fake.profile.counters.heap_ended, 1);
}

/* Of 120 ticks and more the probes stand for some 100: an object of tick 55 is younger than
 * half of that, though older than half of the recording. */
static void leaks_are_older_than_half_of_the_time_of_the_probes(void **state)
{
	const struct wp_profile_sums *sums;

	(void)state;
	if (NONE_IS_CHEAP)
		skip();
	options.heap_leaks = true;
	start_target();
	for (uint64_t i = 1; i <= 100; i++) {
		tick();
		if (i == 10 || i == 55)
			allocate(i, 1000, 1u << 31, WP_HEAP_MALLOC);
	}
	probe.live[probe.nlive++] = 10;
	probe.live[probe.nlive++] = 55;
	probe.counts.calls += 10000000;
	for (int i = 0; i < 100; i++)
		tick();
	assert_true(probe.detached);
	sums = finish();
	assert_int_equal(sums->cpu_ns, 2000);
	assert_in_range(fake.profile.meta.watched_ns, 99 * TICK, 103 * TICK);
	assert_in_range(fake.profile.meta.leaks_ns, 49 * TICK, 52 * TICK);
}

static void probes_that_cost_too_much_are_not_armed(void **state)
{
	(void)state;
	if (NONE_IS_CHEAP)
		skip();
	start_command();
	probe.counts.calls = 100000;
	for (int i = 0; i < 5; i++)
		tick();
	assert_false(probe.armed);
	assert_true(probe.detached);
	(void)finish();
	assert_non_null(strstr(source(), "--heap-anyway"));
}

/* Another process of the same recording begins. */
static void add_second(struct wp_process *process)
{
	struct wp_err err = WP_ERR_INIT;
	struct wp_target *target;

	*process = fake.process;
	process->pid++;
	assert_int_equal(wp_sampler_add_target(fake.sampler, process,
					       &fake.profile, &target, &err),
			 0);
}

/* Rings are the kernel's memory: those of all processes have a bound together. */
static void rings_are_the_smaller_the_more_processes_there_are(void **state)
{
	const uint64_t cpus = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
	struct wp_process process[2];

	(void)state;
	options.many = true;
	start_target();
	for (size_t i = 0; i < 2; i++) {
		add_second(&process[i]);
		fake.process.pid++;
	}
	fake.process.pid -= 2;
	assert_true(fake_perf_last()->options.ring_bytes > 0);
	assert_true(fake_perf_last()->options.ring_bytes * cpus <=
		    (64 << 20) / 3);
}

/* To open probes takes no more than a second and a tenth of the time, of those that are
 * recorded already. */
static void what_begins_too_fast_is_left_out(void **state)
{
	struct wp_process process;

	for (uint64_t over = 0; over < 2; over++) {
		options.many = true;
		start_target();
		for (int i = 0; i < 10; i++)
			tick();
		fake.target->common->heap.open_ns =
			WP_NS_PER_S +
			(fake_now_ns - fake.sampler->start_ns) / 10 + over;
		add_second(&process);
		assert_int_equal(probe.nopened, 2 - over);
		(void)finish();
		assert_int_equal(strstr(source(), "began faster than") != NULL,
				 over);
		teardown(state);
		setup(state);
	}
}

/* Each alone takes less than the 5 % that both may take: calls of mmap cost 15 us each,
 * whatever malloc this test has. */
static void the_dearest_of_several_is_left_out(void **state)
{
	struct wp_process process;

	(void)state;
	/* --heap-anyway leaves none out. */
	if (NONE_IS_CHEAP)
		skip();
	options.many = true;
	start_target();
	add_second(&process);
	for (int i = 0; i < 50; i++) {
		probe.counts.maps += 27;
		second.counts.maps += 20;
		tick();
	}
	assert_true(probe.armed && second.armed);
	for (int i = 0; i < 200; i++) {
		probe.counts.maps += 27;
		second.counts.maps += 20;
		tick();
	}
	assert_true(probe.detached && !second.detached);
	(void)finish();
	assert_true(second.ended);
	assert_non_null(strstr(source(), "of 2 processes; one sample"));
	assert_non_null(strstr(source(), "of 1 of 2 processes it is not "
					 "whole"));
	assert_non_null(strstr(source(), "would take 7 %"));
	assert_int_equal(fake.profile.counters.heap_ended, 1);
}

/* Thread TID has LINE in its status. */
static void put_status(pid_t tid, const char *line)
{
	char text[128];

	snprintf(text, sizeof(text), "NSpid:\t%d\n%s\n", tid, line);
	fake_target_write(&fake, tid, "status", text);
}

static void put_filter(void)
{
	put_status(MAKER, "Seccomp:\t2");
}

static void what_cannot_be_probed_is_no_error_of_several(void **state)
{
	struct wp_process process;

	(void)state;
#if !defined(__x86_64__)
	/* The call that ends it is that kernel's on x86-64 alone. */
	skip();
#endif
	options.many = true;
	start_target();
	probe.ends_filtered = true;
	put_filter();
	add_second(&process);
	assert_int_equal(second.nattached, 0);
	(void)finish();
	assert_non_null(strstr(source(), "of 1 processes; one sample"));
	assert_non_null(strstr(source(), "has a seccomp filter"));
}

static void sums_are_of_all_processes(void **state)
{
	struct wp_process process;

	(void)state;
	options.many = true;
	start_target();
	add_second(&process);
	probe.counts = (struct wp_heap_counts){ .calls = 10,
						.frees = 20,
						.maps = 3,
						.samples = 7,
						.unsent = 1,
						.unfollowed = 4 };
	second.counts = (struct wp_heap_counts){ .calls = 100,
						 .frees = 200,
						 .maps = 30,
						 .samples = 70,
						 .unsent = 10,
						 .unfollowed = 40 };
	(void)finish();
	assert_non_null(strstr(source(), "110 calls that allocate, 220 that "
					 "free and 33 of mmap"));
	assert_non_null(strstr(source(), "77 in all, 11 of them lost"));
	assert_non_null(strstr(source(), "44 objects are not known"));
	assert_int_equal(fake.profile.counters.heap_samples, 77);
	assert_int_equal(fake.profile.counters.heap_lost, 55);
}

static void probes_that_end_with_a_thread_are_said(void **state)
{
	(void)state;
	options.heap_anyway = true;
	probe.tier = WP_HEAP_TIER_PERF;
	fake_target_add_thread(&fake, getpid(), "first");
	start_command();
	for (int i = 0; i < 110; i++)
		tick();
	assert_true(probe.armed && !probe.detached);
	fake_target_stat(&fake, getpid(), 'Z');
	for (int i = 0; i < 110; i++)
		tick();
	assert_true(probe.detached);
	(void)finish();
	assert_non_null(strstr(source(), "of perf events has ended"));
	assert_int_equal(fake.profile.counters.heap_ended, 1);
}

static void whatever_they_cost(void **state)
{
	(void)state;
	options.heap_anyway = true;
	start_command();
	probe.counts.calls = 100000;
	for (int i = 0; i < 5; i++)
		tick();
	assert_true(probe.armed && !probe.detached);
	(void)finish();
	assert_int_equal(fake.profile.counters.heap_ended, 0);
}

static void what_is_lost_is_counted(void **state)
{
	(void)state;
	start_target();
	tick();
	allocate(1, 500, 1u << 31, WP_HEAP_MALLOC);
	probe.counts.samples = 10;
	probe.counts.unsent = 9;
	probe.counts.unfollowed = 4;
	probe.lacks = WP_HEAP_MPROTECT;
	(void)finish();
	assert_int_equal(fake.profile.counters.heap_samples, 10);
	assert_int_equal(fake.profile.counters.heap_lost, 13);
	assert_non_null(strstr(source(), "9 of them lost"));
	assert_non_null(strstr(source(), "4 objects are not known"));
	assert_non_null(strstr(source(), "mprotect makes usable is not in"));
}

/* The process's map is TEXT, or its own again: NULL. */
static void set_maps(const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/maps", fake.dir);
	unlink(path);
	if (text)
		fake_target_write(&fake, 0, "maps", text);
	else
		assert_int_equal(symlink("/proc/self/maps", path), 0);
}

static void start_without_libraries(void)
{
	set_maps("10000-20000 rw-p 00000000 00:00 0 \n");
	start_command();
	assert_int_equal(probe.nattached, 0);
}

static void a_library_that_is_mapped_later_is_probed_soon(void **state)
{
	(void)state;
	start_without_libraries();
	for (int i = 0; i < 5; i++)
		tick();
	assert_int_equal(probe.nattached, 0);
	set_maps(NULL);
	tick();
	tick();
	assert_true(probe.nattached > 0);
}

/* A program that has begun maps its allocator in its first second. */
static void who_has_no_allocator_yet_is_looked_at_often(void **state)
{
	(void)state;
	start_without_libraries();
	assert_true(wp_heap_samples_hurry(fake.target));
	fake_now_ns += WP_NS_PER_S - 1 - (fake_now_ns - fake.target->start_ns);
	assert_true(wp_heap_samples_hurry(fake.target));
	fake_now_ns++;
	assert_false(wp_heap_samples_hurry(fake.target));
	(void)finish();
	assert_non_null(strstr(source(), "no malloc is found"));
}

static void who_is_probed_is_in_no_hurry(void **state)
{
	(void)state;
	start_target();
	assert_false(wp_heap_samples_hurry(fake.target));
}

static void a_program_that_maps_nothing_is_said(void **state)
{
	(void)state;
	options.heap_large = true;
	start_without_libraries();
	(void)finish();
	assert_non_null(strstr(source(), "no mmap is found"));
}

static void a_library_that_goes_before_it_is_probed_is_said(void **state)
{
	(void)state;
	probe.attach_rc = -ENOENT;
	start_target();
	assert_false(probe.armed);
	(void)finish();
	assert_non_null(strstr(source(), "or unmaps its allocator"));
}

/* See what is mapped, and search that. */
static void map_and_search(const char *text)
{
	struct wp_heap_samples *h = fake.target->heap_samples;

	set_maps(text);
	assert_int_equal(wp_address_space_reload(&fake.target->space, true), 1);
	assert_int_equal(
		wp_heap_sites_search(&h->sites, fake.target, h->probe, NULL),
		0);
}

/* Another library may have their addresses; their files' probes stay. */
static void functions_that_are_no_longer_mapped_are_forgotten(void **state)
{
	const struct wp_heap_sites *sites;
	size_t n, nplaces, nattached;

	(void)state;
	start_target();
	sites = &fake.target->heap_samples->sites;
	n = sites->len;
	nplaces = sites->nplaces;
	nattached = probe.nattached;
	assert_true(n > 0 && nplaces > 0);
	for (int i = 0; i < 3; i++) {
		map_and_search("10000-20000 rw-p 00000000 00:00 0 \n");
		assert_int_equal(sites->len, 0);
		assert_int_equal(sites->nplaces, 0);
		map_and_search(NULL);
		assert_int_equal(sites->len, n);
		assert_int_equal(sites->nplaces, nplaces);
		assert_int_equal(probe.nattached, nattached);
	}
}

/* A sample's stack meets it before the next look does.  Samples try once. */
static void a_library_that_a_sample_finds_is_probed_or_said(void **state)
{
	for (int fails_once = 0; fails_once < 2; fails_once++) {
		size_t nattached;

		start_without_libraries();
		set_maps(NULL);
		assert_int_equal(
			wp_address_space_reload(&fake.target->space, true), 1);
		probe.attach_rc = -EMFILE;
		allocate(1, 500, 1u << 31, WP_HEAP_MALLOC);
		assert_int_equal(wp_heap_records_read(fake.target, UINT64_MAX),
				 0);
		nattached = probe.nattached;
		assert_true(nattached > 0);
		allocate(2, 500, 1u << 31, WP_HEAP_MALLOC);
		assert_int_equal(wp_heap_records_read(fake.target, UINT64_MAX),
				 0);
		assert_int_equal(probe.nattached, nattached);
		if (fails_once)
			probe.attach_rc = 0;
		for (int i = 0; i < 5; i++)
			tick();
		assert_int_equal(probe.armed, fails_once);
		(void)finish();
		assert_int_equal(fake.profile.counters.heap_ended, !fails_once);
		if (!fails_once)
			assert_non_null(strstr(source(), "no probe"));
		teardown(state);
		setup(state);
	}
}

static void samples_that_cannot_begin_are_an_error(void **state)
{
	(void)state;
	probe.arm_rc = -EINVAL;
	assert_int_equal(fake_target_start(&fake, &options), -EINVAL);
}

/* A thousand calls in each 100 us. */
static void call_often(void)
{
	fake_now_ns += 100 * WP_NS_PER_US;
	probe.counts.calls += 1000;
}

static void a_process_that_calls_too_often_is_refused(void **state)
{
	(void)state;
	if (NONE_IS_CHEAP)
		skip();
	fake_before_clock = call_often;
	assert_int_equal(fake_target_start(&fake, &options), -EDQUOT);
	fake_before_clock = NULL;
	assert_false(probe.armed);
}

static void what_cannot_be_is_an_error(void **state)
{
	(void)state;
	probe.open_rc = -EPERM;
	assert_int_equal(fake_target_start(&fake, &options), -EPERM);
}

#if !defined(__x86_64__)
static void where_no_probe_is_cheap_none_is_armed(void **state)
{
	(void)state;
	options.heap_anyway = false;
	assert_int_equal(fake_target_start(&fake, &options), -ENOTSUP);
	assert_false(probe.armed);
}
#endif

static void probes_that_are_refused_are_an_error(void **state)
{
	(void)state;
	probe.attach_rc = -EINVAL;
	assert_int_equal(fake_target_start(&fake, &options), -EINVAL);
}

static void a_kernel_that_ends_who_has_a_filter_is_not_used(void **state)
{
	(void)state;
#if !defined(__x86_64__)
	/* The call that ends it is that kernel's on x86-64 alone. */
	skip();
#endif
	probe.ends_filtered = true;
	put_filter();
	assert_int_equal(fake_target_start(&fake, &options), -ENOTSUP);
	assert_int_equal(probe.nattached, 0);
}

static void a_filter_of_another_thread_is_seen(void **state)
{
	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	probe.ends_filtered = true;
	fake_target_add_thread(&fake, 8, "other");
	put_status(8, "Seccomp:\t2");
	assert_int_equal(fake_target_start(&fake, &options), -ENOTSUP);
	assert_int_equal(probe.nattached, 0);
}

/* It is looked for once a second. */
static void a_filter_that_comes_later_ends_the_probes(void **state)
{
	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	probe.ends_filtered = true;
	start_target();
	for (int i = 0; i < 150; i++)
		tick();
	assert_false(probe.detached);
	put_filter();
	for (int i = 0; i < 110; i++)
		tick();
	assert_true(probe.ended);
	(void)finish();
	assert_non_null(strstr(source(), "has a seccomp filter"));
	assert_int_equal(fake.profile.counters.heap_ended, 1);
}

static void a_filter_is_no_hindrance_elsewhere(void **state)
{
	(void)state;
	put_filter();
	start_target();
	assert_true(probe.nattached > 0);
}

static void who_has_no_filter_is_probed_anywhere(void **state)
{
	(void)state;
	probe.ends_filtered = true;
	start_target();
	assert_true(probe.nattached > 0);
}

/* A line of a thread's status: does a kernel that ends who is under seccomp end that
 * thread, or one that ends who has a shadow stack? */
static const struct {
	const char *line;
	bool by_filter, by_shadow;
} hazards[] = {
	{ "Seccomp:\t0", false, false },
	/* read, write, exit and sigreturn alone. */
	{ "Seccomp:\t1", true, false },
	{ "Seccomp:\t2", true, false },
	{ "x86_Thread_features:\tshstk ", false, true },
	{ "x86_Thread_features:\twrss shstk ", false, true },
	{ "x86_Thread_features:\t", false, false },
	{ "x86_Thread_features_locked:\tshstk wrss ", false, false },
	{ "x86_Thread_features:\tshstk2 ", false, false },
};

static void assert_ends(const char *line, pid_t tid, bool by_filter, bool ends)
{
	probe.ends_filtered = by_filter;
	probe.ends_shadowed = !by_filter;
	fake_target_add_thread(&fake, 8, "other");
	put_status(tid, line);
	assert_int_equal(fake_target_start(&fake, &options),
			 ends ? -ENOTSUP : 0);
	assert_int_equal(probe.nattached == 0, ends);
}

/* What ends it is each thread's own. */
static void who_would_end_is_not_probed(void **state)
{
#if !defined(__x86_64__)
	skip();
#endif
	for (size_t i = 0; i < sizeof(hazards) / sizeof(*hazards); i++)
		for (pid_t tid = MAKER; tid <= 8; tid++)
			for (int by_filter = 0; by_filter < 2; by_filter++) {
				assert_ends(hazards[i].line, tid, by_filter,
					    by_filter ? hazards[i].by_filter :
							hazards[i].by_shadow);
				teardown(state);
				setup(state);
			}
}

/* It is looked for once a second, as a filter is. */
static void a_shadow_stack_that_comes_later_ends_the_probes(void **state)
{
	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	probe.ends_shadowed = true;
	start_target();
	put_status(MAKER, "x86_Thread_features:\tshstk ");
	for (int i = 0; i < 110; i++)
		tick();
	assert_true(probe.ended);
	(void)finish();
	assert_non_null(strstr(source(), "has a shadow stack"));
	assert_non_null(strstr(source(), "--heap-census"));
	assert_int_equal(fake.profile.counters.heap_ended, 1);
}

/* A child has its parent's probes, and may come under seccomp unseen: those by perf
 * events are gone by then. */
static void where_a_filter_ends_a_child_its_probes_are_perf_events(void **state)
{
	(void)state;
#if !defined(__x86_64__)
	skip();
#endif
	for (int many = 0; many < 2; many++)
		for (int ends = 0; ends < 2; ends++) {
			options.many = many;
			probe.ends_filtered = ends;
			start_target();
			assert_int_equal(probe.asked_for,
					 ends ? WP_HEAP_TIER_PERF :
					 many ? WP_HEAP_TIER_MULTI :
						WP_HEAP_TIER_AUTO);
			teardown(state);
			setup(state);
		}
	/* What is asked for is taken. */
	options.heap_tier = WP_HEAP_TIER_MULTI;
	probe.ends_filtered = true;
	start_target();
	assert_int_equal(probe.asked_for, WP_HEAP_TIER_MULTI);
}

/* Thread TID of process PID begins, by PARENT; or ends. */
static void put_task(enum wp_perf_type type, pid_t parent, pid_t pid, pid_t tid)
{
	const struct wp_perf_record record = { .type = type,
					       .time_ns = fake_now_ns,
					       .pid = pid,
					       .tid = tid,
					       .parent_pid = parent,
					       .parent_tid = parent };

	fake_perf_put(fake_perf_last(), &record);
}

static void fork_as(pid_t pid)
{
	put_task(WP_PERF_FORK, getpid(), pid, pid);
}

/* A forked child has its parent's breakpoints. */
static void children_are_rid_of_probes(void **state)
{
	struct wp_perf_record lost = { .type = WP_PERF_LOST, .lost = 1 };

	(void)state;
	options.heap_anyway = true;
	start_target();
	/* A thread, and another's child. */
	put_task(WP_PERF_FORK, getpid(), getpid(), 4711);
	put_task(WP_PERF_FORK, 1, 4712, 4712);
	tick();
	tick();
	assert_int_equal(probe.nspared, 0);
	fork_as(4713);
	fork_as(4714);
	tick();
	assert_int_equal(probe.nspared, 1);
	/* However many there are, one part in 10 of the time is spent. */
	for (int i = 0; i < 100; i++) {
		fork_as(5000 + i);
		tick();
	}
	assert_in_range(probe.nspared, 40, 1 + 1100 / 10);
	/* The last of them too; then none is left. */
	for (int i = 0; i < 20; i++)
		tick();
	probe.nspared = 0;
	for (int i = 0; i < 20; i++)
		tick();
	assert_int_equal(probe.nspared, 0);
	/* What was lost may have been one. */
	lost.time_ns = fake_now_ns;
	fake_perf_put(fake_perf_last(), &lost);
	tick();
	assert_int_equal(probe.nspared, 1);
}

/* Those that wait for it cost as much as they have run, which of such as have ended is not
 * known: they lived for so long. */
static void what_children_run_with_probes_is_counted(void **state)
{
	const struct wp_heap_children *c;
	struct wp_perf_record exec = { .type = WP_PERF_NAME, .by_exec = true };

	(void)state;
	start_target();
	c = &fake.target->heap_samples->children;
	fork_as(4713);
	fake_now_ns += 8 * WP_NS_PER_MS;
	put_task(WP_PERF_EXIT, getpid(), 4713, 4713);
	tick();
	assert_int_equal(probe.nspared, 1);
	/* It was rid of them as soon as could be. */
	assert_int_equal(c->spent_ns, 0);
	fork_as(4714);
	fork_as(4715);
	fake_now_ns += 2 * WP_NS_PER_MS;
	exec.pid = exec.tid = 4715;
	exec.time_ns = fake_now_ns;
	fake_perf_put(fake_perf_last(), &exec);
	/* A thread of it is not all of it. */
	put_task(WP_PERF_EXIT, getpid(), 4714, 4716);
	fake_now_ns += 3 * WP_NS_PER_MS;
	put_task(WP_PERF_EXIT, getpid(), 4714, 4714);
	fake_now_ns += 3 * WP_NS_PER_MS;
	assert_int_equal(wp_heap_samples_tick(fake.target), 0);
	assert_int_equal(c->spent_ns, 5 * WP_NS_PER_MS);
	assert_int_equal(c->n, 0);
}

/* A child of this process that has computed for 100 ms, and has left its CPU, at which the
 * kernel counts that. */
static pid_t start_busy(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		while (clock() < CLOCKS_PER_SEC / 10)
			;
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void children_that_pay_too_much_end_the_probes(void **state)
{
	(void)state;
	if (NONE_IS_CHEAP)
		skip();
	for (int many = 0; many < 2; many++) {
		pid_t pid = start_busy();

		options.many = many;
		start_target();
		fork_as(4713);
		tick();
		fork_as(pid);
		for (int i = 0; i < 110; i++)
			tick();
		assert_true(fake.target->heap_samples->children.spent_ns >=
			    100 * WP_NS_PER_MS);
		/* Of several processes each has its own. */
		assert_int_equal(probe.detached, !many);
		(void)finish();
		if (!many)
			assert_non_null(strstr(source(), "forked children"));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		teardown(state);
		setup(state);
	}
}

/* The kernel takes them out of a child itself. */
static void with_perf_events_children_are_left_alone(void **state)
{
	(void)state;
	probe.tier = WP_HEAP_TIER_PERF;
	start_target();
	fork_as(4713);
	tick();
	fork_as(4714);
	tick();
	assert_int_equal(probe.nspared, 0);
}

static void frames_of_allocators_are_left_out(void **state)
{
	struct wp_heap_range ranges[] = {
		{ 0x1000, 0x1100, true, WP_HEAP_MALLOC, 1 },
		{ 0x2000, 0x2100, false, WP_HEAP_MALLOC, 1 },
	};
	const struct wp_heap_sites sites = { .v = ranges, .len = 2 };
	const struct {
		uint64_t pcs[4];
		uint32_t depth, left;
		bool counts;
	} cases[] = {
		/* main calls malloc, by operator new. */
		{ { 0x1010, 0x5000 }, 2, 1, true },
		{ { 0x1010, 0x2010, 0x5000 }, 3, 1, true },
		/* A probed one calls malloc. */
		{ { 0x1010, 0x1090, 0x5000 }, 3, 3, false },
		{ { 0x1010, 0x2010, 0x1090, 0x5000 }, 4, 4, false },
		/* The first and last bytes of a function; a return address is
		 * looked up one below. */
		{ { 0x1000, 0x1100, 0x5000 }, 3, 3, false },
		{ { 0x10ff, 0x1101, 0x5000 }, 3, 2, true },
		/* Nothing but them: it says by what the stack is cut. */
		{ { 0x1010, 0x2010 }, 2, 2, true },
		{ { 0 }, 0, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wp_frame frames[4] = { 0 };
		uint64_t cfas[4] = { 0 };
		struct wp_stack s = { .frames = frames,
				      .cfa_avma = cfas,
				      .depth = cases[i].depth };

		for (uint32_t k = 0; k < s.depth; k++) {
			frames[k].pc_avma = cases[i].pcs[k];
			frames[k].flags = k ? WP_FRAME_RETURN : 0;
		}
		assert_int_equal(wp_heap_sites_strip(&sites, &s),
				 cases[i].counts);
		assert_int_equal(s.depth, cases[i].left);
	}
}

/* Memory is mapped by the C library (mapping 1), for an allocator or the program (2). */
static void mappings_of_allocators_are_told_from_others(void **state)
{
	enum {
		MMAP = 0x1000,
		MALLOC = 0x2000,
		THREAD = 0x3000,
		OTHER = 0x9000
	};
	struct wp_heap_range ranges[] = {
		{ MMAP, MMAP + 16, true, WP_HEAP_MMAP, 1 },
		{ MALLOC, MALLOC + 16, true, WP_HEAP_MALLOC, 1 },
		{ THREAD, THREAD + 16, false, WP_HEAP_THREAD, 1 },
	};
	struct wp_heap_mapping searched[] = { { false, false },
					      { true, true },
					      { false, true } };
	const struct wp_heap_sites sites = {
		.v = ranges, .len = 3, .searched = searched, .nsearched = 3
	};
	const struct {
		struct wp_frame frames[4];
		uint32_t depth, inner;
	} cases[] = {
		/* The program; what the library calls it from is no allocator. */
		{ { { MMAP, 1, 0 }, { OTHER, 2, 0 }, { OTHER, 1, 0 } }, 3, 0 },
		/* malloc, whose inner functions have no names. */
		{ { { MMAP, 1, 0 },
		    { OTHER, 1, 0 },
		    { MALLOC, 1, 0 },
		    { OTHER, 2, 0 } },
		  4,
		  3 },
		/* malloc has jumped there. */
		{ { { MMAP, 1, 0 }, { OTHER, 1, 0 }, { OTHER, 2, 0 } }, 3, 2 },
		/* malloc is the program's. */
		{ { { MMAP, 1, 0 },
		    { OTHER, 2, 0 },
		    { MALLOC, 2, 0 },
		    { OTHER, 2, 0 } },
		  4,
		  3 },
		/* A thread's stack is the program's. */
		{ { { MMAP, 1, 0 },
		    { OTHER, 1, 0 },
		    { THREAD, 1, 0 },
		    { OTHER, 2, 0 } },
		  4,
		  0 },
		{ { { 0 } }, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wp_frame frames[4];
		struct wp_stack s = { .frames = frames,
				      .depth = cases[i].depth };

		memcpy(frames, cases[i].frames, sizeof(frames));
		assert_int_equal(wp_heap_sites_inner(&sites, &s),
				 cases[i].inner);
	}
}

static struct wp_heap_sites *sites_of_target(void)
{
	return &fake.target->heap_samples->sites;
}

/* Libraries have allocators, here the C library alone. */
static void the_library_of_malloc_is_an_allocators(void **state)
{
	size_t n = 0;

	(void)state;
	start_target();
	for (size_t i = 0; i < sites_of_target()->nsearched; i++)
		n += sites_of_target()->searched[i].is_allocator;
	assert_true(n > 0);
	assert_non_null(strstr(sites_of_target()->files, "libc"));
}

#if defined(__x86_64__)
/* A probe is there as long as its byte, or a call that the kernel has made of it, is. */
static void what_the_program_wrote_over_is_counted(void **state)
{
	const uint8_t *call = (const uint8_t *)(uintptr_t)&setup;
	struct wp_heap_sites *sites;
	uint8_t byte = 0;

	(void)state;
	start_target();
	sites = sites_of_target();
	assert_true(sites->nplaces > 2);
	assert_int_equal(wp_heap_sites_count_overwritten(sites, fake.target),
			 0);
	sites->places[0].code[0] ^= 1;
	assert_int_equal(wp_heap_sites_count_overwritten(sites, fake.target),
			 1);
	while (*call != 0xe8)
		call++;
	sites->places[1].avma = (uintptr_t)call;
	sites->places[1].code[0] = 0x90;
	assert_int_equal(wp_heap_sites_count_overwritten(sites, fake.target),
			 1);
	/* No code is there any more. */
	sites->places[2].avma = (uintptr_t)&byte;
	sites->places[2].code[0] = 1;
	assert_int_equal(wp_heap_sites_count_overwritten(sites, fake.target),
			 1);
}
#endif

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#if defined(__x86_64__)
/* Registers by DWARF's numbers. */
enum { RBP = 6, R12 = 12, PLACE = 0x4000, TOP = 0x2000 };

static enum wp_mem_result read_top(void *ctx, uint64_t avma, void *buf,
				   size_t len)
{
	if (avma != TOP || len != sizeof(uint64_t))
		return WP_MEM_UNREADABLE;
	memcpy(buf, ctx, len);
	return WP_MEM_OK;
}

/* Where a thread is that was seen at PC, with WORD on its stack and 1 in rbp and r12. */
static uint64_t left_trap(uint8_t own, uint64_t pc, uint64_t word)
{
	enum { PUSH_R12 = 0x54 };
	struct wp_heap_place place = { .avma = PLACE,
				       .own = { own, PUSH_R12 } };
	const struct wp_heap_sites sites = { .places = &place, .nplaces = 1 };
	const struct wp_mem mem = { read_top, &word };
	struct wp_regs regs = { 0 };

	wp_reg_set(&regs, WP_REG_PC, pc);
	wp_reg_set(&regs, WP_REG_SP, TOP);
	wp_reg_set(&regs, RBP, 1);
	wp_reg_set(&regs, R12, 1);
	wp_heap_trap_leave(&sites, &mem, &regs);
	return regs.v[WP_REG_PC];
}

/* The trap is behind its one byte; before the kernel goes on behind a push it has made
 * that. */
static void a_thread_in_the_trap_of_a_probe_is_at_the_probe(void **state)
{
	enum { JMP = 0xe9, PUSH_RBP = 0x55, REX_B = 0x41 };

	(void)state;
	for (uint64_t off = 0; off < 2; off++) {
		assert_int_equal(left_trap(JMP, PLACE + off, 1), PLACE);
		assert_int_equal(left_trap(PUSH_RBP, PLACE + off, 2), PLACE);
		assert_int_equal(left_trap(PUSH_RBP, PLACE + off, 1),
				 PLACE + 1);
		assert_int_equal(left_trap(REX_B, PLACE + off, 2), PLACE);
		assert_int_equal(left_trap(REX_B, PLACE + off, 1), PLACE + 2);
	}
	assert_int_equal(left_trap(JMP, PLACE + 2, 1), PLACE + 2);
	assert_int_equal(left_trap(JMP, PLACE - 1, 1), PLACE - 1);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
		cmocka_unit_test(
			a_thread_in_the_trap_of_a_probe_is_at_the_probe),
#endif
		TEST(a_sample_stands_for_many),
		TEST(weights_are_right_on_average),
		TEST(what_fails_is_taken_back),
		TEST(less_than_is_wanted_is_left_out),
		TEST(no_more_is_counted_than_readers_can_add_up),
#ifdef CAN_FAIL
		TEST(without_memory_there_is_an_error),
#endif
#if defined(CAN_FAIL) && defined(__x86_64__)
		TEST(what_malloc_maps_is_its_callers),
#endif
		TEST(a_record_that_is_cut_is_none),
		TEST(after_an_exec_nothing_of_before_is_in_use),
		TEST(samples_of_freed_objects_are_forgotten),
		TEST(a_command_is_counted_first),
		TEST(leaks_are_older_than_half_of_the_time_of_the_probes),
		TEST(probes_that_cost_too_much_are_not_armed),
		TEST(rings_are_the_smaller_the_more_processes_there_are),
		TEST(what_begins_too_fast_is_left_out),
		TEST(the_dearest_of_several_is_left_out),
		TEST(what_cannot_be_probed_is_no_error_of_several),
		TEST(sums_are_of_all_processes),
		TEST(probes_that_end_with_a_thread_are_said),
		TEST(whatever_they_cost),
		TEST(what_is_lost_is_counted),
		TEST(a_library_that_is_mapped_later_is_probed_soon),
		TEST(who_has_no_allocator_yet_is_looked_at_often),
		TEST(who_is_probed_is_in_no_hurry),
		TEST(a_program_that_maps_nothing_is_said),
		TEST(a_library_that_goes_before_it_is_probed_is_said),
		TEST(functions_that_are_no_longer_mapped_are_forgotten),
		TEST(a_library_that_a_sample_finds_is_probed_or_said),
		TEST(samples_that_cannot_begin_are_an_error),
		TEST(a_process_that_calls_too_often_is_refused),
		TEST(what_cannot_be_is_an_error),
#if !defined(__x86_64__)
		TEST(where_no_probe_is_cheap_none_is_armed),
#endif
		TEST(probes_that_are_refused_are_an_error),
		TEST(a_kernel_that_ends_who_has_a_filter_is_not_used),
		TEST(a_filter_of_another_thread_is_seen),
		TEST(a_filter_that_comes_later_ends_the_probes),
		TEST(a_filter_is_no_hindrance_elsewhere),
		TEST(who_has_no_filter_is_probed_anywhere),
		TEST(who_would_end_is_not_probed),
		TEST(children_are_rid_of_probes),
		TEST(what_children_run_with_probes_is_counted),
		TEST(children_that_pay_too_much_end_the_probes),
		TEST(with_perf_events_children_are_left_alone),
		TEST(a_shadow_stack_that_comes_later_ends_the_probes),
		TEST(where_a_filter_ends_a_child_its_probes_are_perf_events),
		cmocka_unit_test(frames_of_allocators_are_left_out),
		cmocka_unit_test(mappings_of_allocators_are_told_from_others),
		TEST(the_library_of_malloc_is_an_allocators),
#if defined(__x86_64__)
		TEST(what_the_program_wrote_over_is_counted),
#endif
	};

	return cmocka_run_group_tests_name("heap_samples", tests, NULL, NULL);
}
