/* SPDX-License-Identifier: Apache-2.0 */
/* go_row.h - Go's frames, by .gopclntab.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * Go's linker makes .debug_frame of the same table, less what it says of other
 * stacks; and stripped programs have no .debug_frame.
 */
#ifndef WP_GO_ROW_H
#define WP_GO_ROW_H

#include "cfi.h"

/* The row that holds at SVMA of IMAGE.  Go's functions keep no registers for who
 * calls them but the frame pointer, and that of those that go to another stack
 * (time.Now does, and asmcgocall) leads back.
 *
 * WP_STEP_OK: *RET is the row.
 * WP_STEP_ROOT, _UNKNOWN_REG: as wp_go_end.
 * WP_STEP_NO_INFO: it is not code of Go's, or the table does not say.
 * WP_STEP_BAD_INFO: the table is malformed. */
enum wp_step_result wp_go_row(struct wp_elf_image *image, uint64_t svma,
			      struct wp_cfi_row *ret);

#endif
