/* SPDX-License-Identifier: Apache-2.0 */
/* text_scan.h - numbers in the kernel's texts.
 *
 * Layer: proc.  Private to src/proc/.
 */
#ifndef WP_TEXT_SCAN_H
#define WP_TEXT_SCAN_H

#include <stdbool.h>
#include <stdint.h>

/* Where parsing stands: the bytes [p, end). */
struct wp_text_scan {
	const char *p;
	const char *end;
	/* Something was not as it should be; set for good. */
	bool bad;
};

/* The digits of BASE (10 or 16, lower case) at the cursor as a number.  None,
 * or more than 64 bits hold, is bad: the kernel prints neither. */
uint64_t wp_text_scan_number(struct wp_text_scan *c, unsigned int base);

#endif
