/* SPDX-License-Identifier: Apache-2.0 */
/* Probes on functions of this program.  Layer: bpf.  The truth is how often they are
 * called here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/heap_probe.h"

/* Size classes of the middle of each: the probability is that of Poisson's process. */
static void thresholds_are_probabilities(void **state)
{
	static const uint64_t rates[] = { 1, 512, 65536, 512 << 10, 1 << 30 };

	(void)state;
	for (size_t r = 0; r < sizeof(rates) / sizeof(*rates); r++) {
		uint32_t before = 0;

		for (uint32_t i = 0; i < WP_HEAP_CLASSES; i++) {
			uint32_t t = wp_heap_threshold(i, rates[r]);
			double size = i < WP_HEAP_FINE ?
					      i * 8.0 + 4 :
					      ldexp(1.5,
						    17 + (int)i - WP_HEAP_FINE);
			double p = 1 - exp(-size / (double)rates[r]);

			assert_true(t >= before && t > 0);
			assert_true(fabs(t / 0x1p32 - p) < 1e-6 + p * 1e-3);
			before = t;
		}
	}
}

static void kernels_that_end_who_has_a_filter_are_known(void **state)
{
	(void)state;
	for (const char *const *r =
		     (const char *[]){ "6.11.0-29-generic", "6.12",
				       "6.12.13-amd64", "6.13.2", NULL };
	     *r; r++)
		assert_true(wp_heap_probe_ends_filtered(*r));
	for (const char *const *r =
		     (const char *[]){ "5.10.0", "6.1.112", "6.10.14",
				       "6.12.117", "6.14.0-15-generic",
				       "6.18.44", "7.12.1", "none", NULL };
	     *r; r++)
		assert_false(wp_heap_probe_ends_filtered(*r));
}

static void kernels_that_end_who_has_a_shadow_stack_are_known(void **state)
{
	(void)state;
	for (const char *const *r =
		     (const char *[]){ "6.6", "6.6.15-amd64",
				       "6.8.0-45-generic", "6.10.14", NULL };
	     *r; r++)
		assert_true(wp_heap_probe_ends_shadowed(*r));
	for (const char *const *r =
		     (const char *[]){ "5.10.0", "6.5.0-41-generic", "6.1.112",
				       "6.11.0-29-generic", "6.18.44", "7.8.1",
				       "none", NULL };
	     *r; r++)
		assert_false(wp_heap_probe_ends_shadowed(*r));
}

#ifdef __x86_64__
/* Functions with the arguments of malloc and free: push %rbx; pop %rbx; what the first
 * returns is the second argument. */
__asm__(".text\n"
	".type probed_malloc, @function\n"
	"probed_malloc: push %rbx; pop %rbx; mov %rsi, %rax; ret\n"
	".type probed_free, @function\n"
	"probed_free: push %rbx; pop %rbx; ret\n"
	".type probed_new, @function\n"
	"probed_new: push %rbx; pop %rbx; mov (%rsp), %rax; ret\n");
void *probed_malloc(size_t size, void *ret);
void probed_free(void *p);
/* Its own return address. */
void *probed_new(size_t size);

static uint64_t offset_of(void (*function)(void))
{
	unsigned long avma = (unsigned long)(uintptr_t)function, begin, end,
		      off;
	char line[512];
	uint64_t ret = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &off) == 3 &&
		    avma >= begin && avma < end)
			ret = avma - begin + off;
	fclose(maps);
	assert_true(ret > 0);
	return ret;
}

struct objects {
	uint64_t ids[4096];
	size_t n;
};

static void note(void *ctx, uint64_t id)
{
	struct objects *live = ctx;

	assert_true(live->n < sizeof(live->ids) / sizeof(*live->ids));
	live->ids[live->n++] = id;
}

static size_t count_live(struct wp_heap_probe *probe)
{
	static struct objects live;

	live.n = 0;
	assert_int_equal(wp_heap_probe_each_live(probe, note, &live), 0);
	for (size_t i = 0; i < live.n; i++)
		for (size_t k = 0; k < i; k++)
			assert_true(live.ids[i] != live.ids[k]);
	return live.n;
}

static void calls_are_counted_and_objects_followed(void **state)
{
	enum wp_heap_tier tier = *(enum wp_heap_tier *)*state;
	const struct wp_heap_site sites[] = {
		{ offset_of((void (*)(void))probed_malloc), WP_HEAP_MALLOC },
		{ offset_of((void (*)(void))probed_free), WP_HEAP_FREE },
	};
	struct wp_err err = WP_ERR_INIT;
	struct wp_heap_probe *probe;
	struct wp_heap_counts counts;
	int rc = wp_heap_probe_open(&probe, getpid(), 1, tier, &err);

	if (rc) {
		print_message("no BPF: %s\n", err.msg);
		skip();
	}
	assert_int_equal(
		wp_heap_probe_attach(probe, "/proc/self/exe", sites, 2, &err),
		0);
	/* Not armed: counted only. */
	for (uintptr_t i = 1; i <= 100; i++)
		(void)probed_malloc(1000, (void *)(i * 16));
	counts = wp_heap_probe_counts(probe);
	assert_int_equal(counts.calls, 100);
	assert_int_equal(counts.samples, 0);
	assert_int_equal(count_live(probe), 0);
	/* At one byte each, every object is sampled. */
	assert_int_equal(wp_heap_probe_arm(probe), 0);
	for (uintptr_t i = 1; i <= 3000; i++)
		(void)probed_malloc(1000, (void *)(i * 16));
	for (uintptr_t i = 1; i <= 3000; i += 3)
		probed_free((void *)(i * 16));
	/* NULL is freed to no effect; an allocation that fails makes nothing. */
	probed_free(NULL);
	(void)probed_malloc(1000, NULL);
	counts = wp_heap_probe_counts(probe);
	assert_int_equal(counts.calls, 3101);
	assert_int_equal(counts.frees, 1001);
	assert_int_equal(counts.samples, 3001);
	/* No perf event takes them here: those, and the one that failed. */
	assert_int_equal(counts.unsent, 3002);
	assert_int_equal(counts.unfollowed, 0);
	assert_int_equal(count_live(probe), 2000);
	wp_heap_probe_detach(probe, false);
	probed_free((void *)32);
	counts = wp_heap_probe_counts(probe);
	assert_int_equal(counts.frees, 1001);
	assert_int_equal(count_live(probe), 2000);
	wp_heap_probe_detach(probe, true);
	wp_heap_probe_close(probe);
}

/* A child has a copy of the breakpoint, until the parent has removed it or, of a perf event,
 * the kernel at the first call. */
static void what_a_child_inherits_goes(void **state)
{
	enum wp_heap_tier tier = *(enum wp_heap_tier *)*state;
	const struct wp_heap_site sites[] = {
		{ offset_of((void (*)(void))probed_malloc), WP_HEAP_MALLOC },
	};
	const void *code = (const void *)(uintptr_t)probed_malloc;
	struct wp_err err = WP_ERR_INIT;
	struct wp_heap_probe *probe;
	uint8_t before[8], byte = 0;
	int ends[2], status;
	bool had, has;
	pid_t pid;

	memcpy(before, code, sizeof(before));
	if (wp_heap_probe_open(&probe, getpid(), 1, tier, NULL))
		skip();
	assert_int_equal(
		wp_heap_probe_attach(probe, "/proc/self/exe", sites, 1, &err),
		0);
	assert_int_equal(wp_heap_probe_arm(probe), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid = fork();
	if (!pid) {
		had = memcmp(code, before, sizeof(before)) != 0;
		if (write(ends[1], &byte, 1) != 1 ||
		    read(ends[1], &byte, 1) != 1)
			_exit(4);
		if (wp_heap_probe_tier(probe) == WP_HEAP_TIER_PERF)
			(void)probed_malloc(1000, NULL);
		has = memcmp(code, before, sizeof(before)) != 0;
		_exit(had + 2 * has);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	wp_heap_probe_spare_children(probe);
	assert_int_equal(write(ends[0], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(ends[0]);
	close(ends[1]);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
	/* The parent's stands. */
	assert_int_equal(wp_heap_probe_counts(probe).calls, 0);
	(void)probed_malloc(1000, (void *)16);
	assert_int_equal(wp_heap_probe_counts(probe).calls, 1);
	assert_int_equal(count_live(probe), 1);
	wp_heap_probe_close(probe);
}

/* The unwinder of an exception finds the caller. */
static void what_may_throw_returns_unprobed(void **state)
{
	enum wp_heap_tier tier = *(enum wp_heap_tier *)*state;
	const struct wp_heap_site sites[] = {
		{ offset_of((void (*)(void))probed_new), WP_HEAP_NEW },
	};
	struct wp_err err = WP_ERR_INIT;
	struct wp_heap_probe *probe;
	struct wp_heap_counts counts;

	if (wp_heap_probe_open(&probe, getpid(), 1, tier, NULL))
		skip();
	assert_int_equal(
		wp_heap_probe_attach(probe, "/proc/self/exe", sites, 1, &err),
		0);
	assert_int_equal(wp_heap_probe_arm(probe), 0);
	for (int i = 0; i < 100; i++) {
		uintptr_t ret = (uintptr_t)probed_new(1000);

		assert_in_range((uintptr_t)what_may_throw_returns_unprobed,
				ret - 4096, ret);
	}
	counts = wp_heap_probe_counts(probe);
	assert_int_equal(counts.calls, 100);
	assert_int_equal(counts.samples, 100);
	assert_int_equal(count_live(probe), 0);
	wp_heap_probe_close(probe);
}

static void count(void *ctx, uint64_t id)
{
	(void)id;
	++*(size_t *)ctx;
}

/* So many sampled objects are followed at once; those beyond are counted. */
static void the_table_of_objects_has_an_end(void **state)
{
	enum { ROOM = 262144, MORE = 1000 };
	const struct wp_heap_site sites[] = {
		{ offset_of((void (*)(void))probed_malloc), WP_HEAP_MALLOC },
		{ offset_of((void (*)(void))probed_free), WP_HEAP_FREE },
	};
	struct wp_err err = WP_ERR_INIT;
	struct wp_heap_probe *probe;
	size_t live = 0;

	(void)state;
	if (wp_heap_probe_open(&probe, getpid(), 1, WP_HEAP_TIER_AUTO, NULL))
		skip();
	assert_int_equal(
		wp_heap_probe_attach(probe, "/proc/self/exe", sites, 2, &err),
		0);
	assert_int_equal(wp_heap_probe_arm(probe), 0);
	for (uintptr_t i = 1; i <= ROOM + MORE; i++)
		(void)probed_malloc(1000, (void *)(i * 16));
	assert_int_equal(wp_heap_probe_counts(probe).unfollowed, MORE);
	assert_int_equal(wp_heap_probe_each_live(probe, count, &live), 0);
	assert_int_equal(live, ROOM);
	/* One that was not followed, and room for another. */
	probed_free((void *)(uintptr_t)((ROOM + MORE) * 16));
	probed_free((void *)16);
	(void)probed_malloc(1000, (void *)8);
	assert_int_equal(wp_heap_probe_counts(probe).unfollowed, MORE);
	wp_heap_probe_close(probe);
}

static void a_probe_costs_some_time(void **state)
{
	struct wp_heap_probe *probe;
	uint64_t cost_ns;

	(void)state;
	if (wp_heap_probe_open(&probe, getpid(), 1, WP_HEAP_TIER_AUTO, NULL))
		skip();
	cost_ns = wp_heap_probe_cost_ns(probe);
	/* A trap takes longer than a call, on any machine. */
	assert_in_range(cost_ns, 50, 1000000);
	wp_heap_probe_close(probe);
}

static timer_t timer;
static uint64_t signals_end_ns;

static void on_signal(int sig)
{
	const struct itimerspec none = { .it_value.tv_nsec = 0 };

	(void)sig;
	if (wp_clock_ns() > signals_end_ns)
		timer_settime(timer, 0, &none, NULL);
}

/* The kernel gives up to check a program when a signal arrives. */
static void a_load_that_signals_interrupt_is_made_again(void **state)
{
	const struct itimerspec often = { .it_interval.tv_nsec = 100000,
					  .it_value.tv_nsec = 100000 };
	const struct sigaction action = { .sa_handler = on_signal,
					  .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGUSR1 };
	struct wp_heap_probe *probe;
	struct wp_err err = WP_ERR_INIT;
	int rc = wp_heap_probe_open(&probe, getpid(), 1, WP_HEAP_TIER_AUTO,
				    NULL);

	(void)state;
	if (rc)
		skip();
	wp_heap_probe_close(probe);
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	signals_end_ns = wp_clock_ns() + 200 * WP_NS_PER_MS;
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	rc = wp_heap_probe_open(&probe, getpid(), 1, WP_HEAP_TIER_AUTO, &err);
	timer_delete(timer);
	if (rc)
		fail_msg("%s", err.msg);
	wp_heap_probe_close(probe);
}

static void what_cannot_be_probed_is_an_error(void **state)
{
	const struct wp_heap_site site = { 0, WP_HEAP_MALLOC };
	struct wp_err err = WP_ERR_INIT;
	struct wp_heap_probe *probe;

	(void)state;
	if (wp_heap_probe_open(&probe, getpid(), 1, WP_HEAP_TIER_AUTO, NULL))
		skip();
	assert_int_equal(
		wp_heap_probe_attach(probe, "/nonexistent", &site, 1, &err),
		-ENOENT);
	assert_true(wp_heap_probe_attach(probe, "/dev/null", &site, 1, &err) <
		    0);
	wp_heap_probe_close(probe);
}
#endif

int main(void)
{
#ifdef __x86_64__
	static enum wp_heap_tier first = WP_HEAP_TIER_AUTO,
				 multi = WP_HEAP_TIER_MULTI,
				 perf = WP_HEAP_TIER_PERF;
#endif
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thresholds_are_probabilities),
		cmocka_unit_test(kernels_that_end_who_has_a_filter_are_known),
		cmocka_unit_test(
			kernels_that_end_who_has_a_shadow_stack_are_known),
#ifdef __x86_64__
		cmocka_unit_test_prestate(
			calls_are_counted_and_objects_followed, &first),
		cmocka_unit_test_prestate(
			calls_are_counted_and_objects_followed, &multi),
		cmocka_unit_test_prestate(
			calls_are_counted_and_objects_followed, &perf),
		cmocka_unit_test_prestate(what_may_throw_returns_unprobed,
					  &first),
		cmocka_unit_test_prestate(what_may_throw_returns_unprobed,
					  &multi),
		cmocka_unit_test_prestate(what_may_throw_returns_unprobed,
					  &perf),
		cmocka_unit_test_prestate(what_a_child_inherits_goes, &first),
		cmocka_unit_test_prestate(what_a_child_inherits_goes, &multi),
		cmocka_unit_test_prestate(what_a_child_inherits_goes, &perf),
		cmocka_unit_test(the_table_of_objects_has_an_end),
		cmocka_unit_test(a_probe_costs_some_time),
		cmocka_unit_test(a_load_that_signals_interrupt_is_made_again),
		cmocka_unit_test(what_cannot_be_probed_is_an_error),
#endif
	};

	return cmocka_run_group_tests_name("heap_probe", tests, NULL, NULL);
}
