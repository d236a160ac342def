/* SPDX-License-Identifier: Apache-2.0 */
/* namer.h - names addresses in a child process that can do nothing else.
 *
 * Layer: symbolize.
 *
 * Most parsing of hostile files happens here, by libraries that were not
 * written for them.  So a child does it, in a sandbox (sandbox.h), and the
 * parent checks all that it says (namer_protocol.h): if it crashes, hangs or
 * lies, only names are lost.  The parent opens debug files and composes their
 * paths itself (wp_debug_open).  Messages to the user call the child "the
 * symboliser".
 */
#ifndef WP_NAMER_H
#define WP_NAMER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/symbols.h"

struct wp_debuginfod;

struct wp_namer_module {
	uint32_t id;
	struct wp_symbol_module module;
	/* Its file is not to be opened. */
	bool is_lost;
};

struct wp_namer_address {
	/* Id of the module that holds AVMA; 0: none. */
	uint32_t module;
	uint64_t avma;
};

struct wp_namer {
	/* modules[0..nmodules), sorted by id.  All pointers here are borrowed
	 * until wp_namer_run returns. */
	const struct wp_namer_module *modules;
	uint32_t nmodules;
	/* addresses[0..naddresses), grouped by module. */
	const struct wp_namer_address *addresses;
	uint32_t naddresses;
	/* As in struct wp_symbol_options. */
	const char *const *roots;
	size_t nroots;
	int perf_map_fd;
	/* Asked for debug files that are in no place here; NULL: nobody is. */
	struct wp_debuginfod *servers;
	/* The number of the user's interrupts: the second ends the naming. */
	const volatile sig_atomic_t *interrupts;
	/* The child's program: wp_namer_child, or a test's. */
	void (*child)(const struct wp_namer *namer, uint32_t first, int sock,
		      pid_t parent);
	/* Called with the names of address INDEX, in order: lines[0..n) as of
	 * wp_symbols_resolve, but not always UTF-8.  Not called for an address
	 * that got no answer.  Other than 0 ends the naming. */
	int (*answer)(void *ctx, uint32_t index,
		      const struct wp_symbol_line *lines, uint32_t n);
	/* Called before the child gets debug file FD of MODULE, which lies at PATH below
	 * one of ROOTS; "": a server gave it.  NULL: nobody is. */
	void (*opened)(void *ctx, uint32_t module, int fd, const char *path);
	/* Called after the last address of a module. */
	void (*has)(void *ctx, uint32_t module,
		    const struct wp_symbol_has *has);
	void *ctx;
};

struct wp_namer_end {
	/* Why some addresses got no answer, printable; "": all did. */
	char why[256];
	/* The user's second interrupt ended the naming. */
	bool interrupted;
};

/* Name all addresses.  When a child crashes, hangs, lies or runs out of memory,
 * the rest of the module that it was at gets no names and a new child goes on
 * with the next module, up to 4 children.  Returns 0, however many were named,
 * or what ANSWER returned, or -ENOMEM.
 */
WP_MUST_CHECK
int wp_namer_run(const struct wp_namer *namer, struct wp_namer_end *ret_end);

/* The child's program (namer_child.c): name the addresses from index FIRST on
 * and send them through SOCK.  PARENT is the pid of the process that called
 * fork(2). */
void wp_namer_child(const struct wp_namer *namer, uint32_t first, int sock,
		    pid_t parent) __attribute__((noreturn));

#endif
