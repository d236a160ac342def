/* SPDX-License-Identifier: Apache-2.0 */
/* scan_loader.c - see scan_loader.h. */
#include "scan_loader.h"

#include <signal.h>

static void *load(void *ctx)
{
	struct wp_scan_loader *loader = ctx;

	if (wp_task_scan_open(&loader->scan, loader->nthreads, &loader->why))
		loader->scan = NULL;
	atomic_store(&loader->is_done, true);
	return NULL;
}

int wp_scan_loader_begin(struct wp_scan_loader *loader, size_t nthreads)
{
	sigset_t all, old;
	int rc;

	*loader = (struct wp_scan_loader){ .nthreads = nthreads };
	/* A signal is for the thread that samples, and would have the verifier begin
	 * anew. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&loader->thread, NULL, load, loader);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	loader->runs = !rc;
	return -rc;
}

bool wp_scan_loader_take(struct wp_scan_loader *loader,
			 struct wp_task_scan **ret, struct wp_err *why)
{
	if (!loader->runs || !atomic_load(&loader->is_done))
		return false;
	pthread_join(loader->thread, NULL);
	loader->runs = false;
	*ret = loader->scan;
	*why = loader->why;
	return true;
}

void wp_scan_loader_close(struct wp_scan_loader *loader)
{
	if (!loader->runs)
		return;
	pthread_join(loader->thread, NULL);
	loader->runs = false;
	wp_task_scan_close(loader->scan);
}
