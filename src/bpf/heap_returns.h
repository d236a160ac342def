/* SPDX-License-Identifier: Apache-2.0 */
/* heap_returns.h - the calls that a heap probe has kept the return addresses of.
 *
 * Layer: bpf.  Private to src/bpf/heap_*.c.
 */
#ifndef WP_HEAP_RETURNS_H
#define WP_HEAP_RETURNS_H

#include <stdint.h>

#include "wallprof/heap_record.h"

/* v[0..nrings * WP_HEAP_RETURNS): a ring for each CPU, which the kernel goes on writing;
 * borrowed. */
struct wp_heap_returns {
	const volatile struct wp_heap_return *v;
	uint32_t nrings;
};

/* The return address of the last call that was made with CALL->sp at CALL->time_ns or
 * before, other than CALL->pc; 0: it is not known, or too long ago. */
uint64_t wp_heap_returns_find(const struct wp_heap_returns *returns,
			      const struct wp_heap_return *call);

#endif
