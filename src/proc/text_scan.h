/* SPDX-License-Identifier: Apache-2.0 */
/* text_scan.h - a cursor over a text of the kernel.
 *
 * Layer: proc.  Private to src/proc/.
 */
#ifndef WP_TEXT_SCAN_H
#define WP_TEXT_SCAN_H

#include <stdbool.h>
#include <stdint.h>

/* The bytes still to parse, [p, end). */
struct wp_text_scan {
	const char *p;
	const char *end;
	/* The text was malformed; stays set. */
	bool bad;
};

/* Parse the digits at the cursor, in BASE 8, 10 or 16 (lower case).  Sets BAD
 * if there is none or the number exceeds 64 bits. */
uint64_t wp_text_scan_number(struct wp_text_scan *c, unsigned int base);

/* Move the cursor past blanks and tabs. */
void wp_text_scan_blanks(struct wp_text_scan *c);

/* Move the cursor past blanks and past a minus sign: is there one? */
bool wp_text_scan_minus(struct wp_text_scan *c);

/* Move the cursor past BYTE; sets BAD if another byte is there. */
void wp_text_scan_expect(struct wp_text_scan *c, char byte);

#endif
