/* SPDX-License-Identifier: Apache-2.0 */
/* go_row.h - Go's frames, by .gopclntab.
 *
 * Layer: unwind.  Private to unwind/.
 *
 * Go's linker makes .debug_frame from the same table, but leaves out which
 * functions go to another stack; and stripped programs have no .debug_frame.
 */
#ifndef WP_GO_ROW_H
#define WP_GO_ROW_H

#include "cfi.h"

/* Find the row that holds at SVMA of IMAGE.  Go's functions keep no register of
 * their caller's but the frame pointer, which leads back from another stack
 * (time.Now and asmcgocall go to one).
 *
 * WP_STEP_OK: *RET is the row.
 * WP_STEP_ROOT: as wp_go_end.
 * WP_STEP_NO_INFO: the code is not Go's, or the table has no row for it.
 * WP_STEP_BAD_INFO: the table is malformed. */
enum wp_step_result wp_go_row(struct wp_elf_image *image, uint64_t svma,
			      struct wp_cfi_row *ret);

#endif
