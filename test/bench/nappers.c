/* SPDX-License-Identifier: Apache-2.0 */
/* nappers.c - threads that wait, but have run since anybody last looked.
 *
 * nappers N US: N threads that sleep US microseconds over and over.
 */
#include "../../fixtures/fixture.h"

static struct timespec nap;

static void *run(void *arg)
{
	for (;;)
		nanosleep(&nap, NULL);
	return arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100;
	long us = argc > 2 ? atol(argv[2]) : 7000;
	pthread_t t;

	nap = (struct timespec){ us / 1000000, us % 1000000 * 1000 };
	block_sigterm();
	for (int i = 0; i < n; i++)
		start_thread_small(&t, run, NULL);
	ready("");
	wait_sigterm();
	_exit(0);
}
