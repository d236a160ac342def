/* SPDX-License-Identifier: Apache-2.0 */
/* gaps.c - a busy thread that sees its own pauses.
 *
 * It reads the clock without end; two readings over 10 us apart are a gap: a
 * stop, or the kernel had other work for its CPU.  SIGUSR1 prints the gaps
 * since the last one as a line "GAPS {json}".
 */
#include "../../fixtures/fixture.h"
#include "../../src/sample/pause.h"

enum { LEAST_NS = 10000 };

/* The thread fills one, main prints the other. */
static struct wp_pauses pauses[2];
static unsigned int filled;

static void *run(void *arg)
{
	uint64_t last = now_ns();

	(void)arg;
	for (;;) {
		uint64_t now = now_ns();
		unsigned int i = __atomic_load_n(&filled, __ATOMIC_ACQUIRE);

		if (now - last >= LEAST_NS)
			wp_pauses_add(&pauses[i], now - last);
		last = now;
	}
	return NULL;
}

static void print(void)
{
	const struct timespec settle = { 0, 1000000 };
	unsigned int i = filled;
	struct wp_pauses *p = &pauses[i];

	wp_pauses_init(&pauses[!i], now_ns(), 0);
	__atomic_store_n(&filled, !i, __ATOMIC_RELEASE);
	/* The thread may be about to add to the old one. */
	nanosleep(&settle, NULL);
	printf("GAPS {\"n\": %llu, \"p50_us\": %.2f, \"p99_us\": %.2f, "
	       "\"total_us\": %.1f}\n",
	       (unsigned long long)p->n,
	       (double)wp_pauses_quantile(p, 0.5) / 1e3,
	       (double)wp_pauses_quantile(p, 0.99) / 1e3,
	       (double)p->total_ns / 1e3);
	fflush(stdout);
}

int main(void)
{
	sigset_t set;
	pthread_t t;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	wp_pauses_init(&pauses[0], now_ns(), 0);
	pthread_create(&t, NULL, run, NULL);
	ready("");
	while (!sigwait(&set, &sig) && sig != SIGTERM)
		print();
	_exit(0);
}
