/* SPDX-License-Identifier: Apache-2.0 */
/* go_module.h - the version of a Go program and where its variables are.
 *
 * Layer: base.
 *
 * The linker writes both into every program, stripped or not: the version into
 * .go.buildinfo (debug/buildinfo) and runtime.buildVersion, the rest into
 * runtime.firstmoduledata (runtime/symtab.go, moduledata).
 */
#ifndef WP_GO_MODULE_H
#define WP_GO_MODULE_H

#include "wallprof/go_table.h"

enum { WP_GO_VERSION_MAX = 64 };

/* Variables: START <= svma < END. */
struct wp_go_range {
	uint64_t start_svma;
	uint64_t end_svma;
};

struct wp_go_module {
	/* "go1.22.3", without unprintable bytes; MINOR of it is 22. */
	char version[WP_GO_VERSION_MAX];
	uint32_t minor;
	/* Variables with a value, without and with pointers; the same of those
	 * that begin as 0. */
	struct wp_go_range noptrdata, data, bss, noptrbss;
	/* What the funcdata offsets of functions count from. */
	uint64_t gofunc_svma;
};

/* Read the module of TABLE's image.
 *
 * Returns 0; -ENOENT: no Go version or no moduledata is found; -ENOTSUP: built by
 * a Go before 1.18; -EBADMSG: moduledata is malformed.
 */
WP_MUST_CHECK
int wp_go_module_read(struct wp_go_module *ret,
		      const struct wp_go_table *table);

/* A call that the compiler has inlined. */
struct wp_go_inlined {
	/* The function that was called; borrowed from the image. */
	const char *name;
	/* The line that it begins in; 0: not known (Go 1.19 and earlier). */
	uint32_t start_line;
	/* An instruction of the call, in the function that it was inlined
	 * into. */
	uint64_t call_svma;
};

/* Is the code of FUNC at SVMA that of an inlined function?  The innermost one.
 */
bool wp_go_module_inlined(const struct wp_go_module *module,
			  const struct wp_go_table *table,
			  const struct wp_go_func *func, uint64_t svma,
			  struct wp_go_inlined *ret);

#endif
