/* scan.h - numbers in the kernel's texts.
 *
 * Layer: proc.  Private to src/proc/.
 */
#ifndef WP_SCAN_H
#define WP_SCAN_H

#include <stdbool.h>
#include <stdint.h>

/* Where parsing stands: the bytes [p, end). */
struct wp_scan {
	const char *p;
	const char *end;
	/* Something was not as it should be; set for good. */
	bool bad;
};

/* The digits of BASE (10 or 16, lower case) at the cursor as a number.  None,
 * or more than 64 bits hold, is bad: the kernel prints neither. */
uint64_t wp_scan_number(struct wp_scan *c, unsigned int base);

#endif
