/* SPDX-License-Identifier: Apache-2.0 */
/* text_scan.c - see text_scan.h. */
#include "text_scan.h"

static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned int)(c - 'a') + 10;
	return 99;
}

void wp_text_scan_blanks(struct wp_text_scan *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
		c->p++;
}

bool wp_text_scan_minus(struct wp_text_scan *c)
{
	wp_text_scan_blanks(c);
	if (c->p == c->end || *c->p != '-')
		return false;
	c->p++;
	return true;
}

void wp_text_scan_expect(struct wp_text_scan *c, char byte)
{
	if (c->p == c->end || *c->p != byte)
		c->bad = true;
	else
		c->p++;
}

uint64_t wp_text_scan_number(struct wp_text_scan *c, unsigned int base)
{
	const char *start = c->p;
	uint64_t val = 0;

	for (; c->p < c->end && digit(*c->p) < base; c->p++) {
		if (val > (UINT64_MAX - digit(*c->p)) / base)
			c->bad = true;
		val = val * base + digit(*c->p);
	}
	if (c->p == start)
		c->bad = true;
	return val;
}
