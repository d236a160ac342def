/* SPDX-License-Identifier: Apache-2.0 */
/* few_allocations.h - allocations that fail, and how many were not freed.
 *
 * Included by tests only, so it has code.  All of the program's allocations go
 * this way, but for sanitizers: they have functions of their own in these
 * places, and CAN_FAIL is not defined.
 */
#ifndef WP_FEW_ALLOCATIONS_H
#define WP_FEW_ALLOCATIONS_H

#include <stdbool.h>
#include <stdlib.h>

#ifndef __SANITIZE_ADDRESS__
#define CAN_FAIL 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

/* Calls that still succeed; negative: all do. */
static long allocations_left = -1;
static long live;

static bool is_out(void)
{
	if (allocations_left > 0)
		allocations_left--;
	else if (!allocations_left)
		return true;
	return false;
}

static void *counted(void *p, bool is_new)
{
	live += p && is_new;
	return p;
}

void *malloc(size_t size)
{
	return is_out() ? NULL : counted(__libc_malloc(size), true);
}

void *calloc(size_t n, size_t size)
{
	return is_out() ? NULL : counted(__libc_calloc(n, size), true);
}

void *realloc(void *p, size_t size)
{
	return is_out() ? NULL : counted(__libc_realloc(p, size), !p);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	return realloc(p, n * size);
}

void free(void *p)
{
	live -= p != NULL;
	__libc_free(p);
}
#endif

#endif
