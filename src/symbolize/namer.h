/* SPDX-License-Identifier: Apache-2.0 */
/* namer.h - name addresses in a process that can do nothing else.
 *
 * Layer: symbolize.
 *
 * Files of others are parsed for the longest time here, and by libraries that
 * were not written for liars.  So a child does it, in a sandbox (sandbox.h),
 * and the parent believes nothing that it says (namer_protocol.h): it may crash,
 * hang or lie, and what is lost is names.  Debug files are opened by the
 * parent, which composes their paths itself (wp_debug_open).
 */
#ifndef WP_NAMER_H
#define WP_NAMER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/symbols.h"

struct wp_namer_module {
	uint32_t id;
	struct wp_symbol_module module;
};

struct wp_namer_address {
	/* Id of its module; 0: in none. */
	uint32_t module;
	uint64_t avma;
};

struct wp_namer {
	/* modules[0..nmodules), sorted by id; borrowed as all here, so they do
	 * not move while names are looked for. */
	const struct wp_namer_module *modules;
	uint32_t nmodules;
	/* addresses[0..naddresses), grouped by module. */
	const struct wp_namer_address *addresses;
	uint32_t naddresses;
	/* As in struct wp_symbol_options. */
	const char *const *roots;
	size_t nroots;
	int perf_map_fd;
	/* Over 1: it is to end. */
	const volatile sig_atomic_t *interrupts;
	/* What the child does: wp_namer_child, or a liar in a test. */
	void (*child)(const struct wp_namer *namer, uint32_t first, int sock,
		      pid_t parent);
	/* The names of address INDEX, called in order; lines[0..n) as
	 * wp_symbols_resolve gives them, but not always UTF-8.  Not called for
	 * an address that got no answer.  Anything but 0 ends all. */
	int (*answer)(void *ctx, uint32_t index,
		      const struct wp_symbol_line *lines, uint32_t n);
	/* What a module that was done has. */
	void (*has)(void *ctx, uint32_t module,
		    const struct wp_symbol_has *has);
	void *ctx;
};

struct wp_namer_end {
	/* Why not all addresses got an answer, printable; "" if all did. */
	char why[256];
	/* That was asked for, by INTERRUPTS. */
	bool interrupted;
};

/* Name all addresses.  A child that crashes, hangs, lies or runs out of memory
 * costs the rest of the module that it was at; some times over, then all.
 * Returns 0, however many were named, or what ANSWER returned, or -ENOMEM.
 */
WP_MUST_CHECK
int wp_namer_run(const struct wp_namer *namer, struct wp_namer_end *ret_end);

/* Of namer_child.c: the child's part, from address FIRST on, speaking through
 * SOCK.  PARENT is the process that called fork(2). */
void wp_namer_child(const struct wp_namer *namer, uint32_t first, int sock,
		    pid_t parent) __attribute__((noreturn));

#endif
