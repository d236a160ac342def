/* go_row.h - Go's frames where there is no CFI: by .gopclntab.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * Stripped programs have no .debug_frame; what is a row of that is here made of
 * the table that Go's own unwinder goes by.
 */
#ifndef WP_GO_ROW_H
#define WP_GO_ROW_H

#include "cfi.h"

/* The row that holds at SVMA of IMAGE, which no FDE covers.  Go's functions
 * keep no registers for who calls them.
 *
 * WP_STEP_OK: *RET is the row.
 * WP_STEP_ROOT, _UNKNOWN_REG: as wp_go_end.
 * WP_STEP_NO_INFO: it is not code of Go's, or the table does not say.
 * WP_STEP_BAD_INFO: the table is malformed. */
enum wp_step_result wp_go_row(struct wp_elf_image *image, uint64_t svma,
			      struct wp_cfi_row *ret);

#endif
