/* SPDX-License-Identifier: Apache-2.0 */
/* go_layout.c - see go_layout.h. */
#include "go_layout.h"

#include <stddef.h>

/* clang-format off */
static const struct wp_go_layout layouts[] = {
	/*     bp sysp  pc stat goid since why seq lockm par gopc start lab proc curg list wait el li  c  rg >>  << */
	{ 18, 104, 112, 120, 144, 152, 168, 176, 189, 232,   0, 296, 312, 360, 72, 192, false, 328, 24, 64, 80, 24,  0, 0 },
	{ 19, 104, 112, 120, 144, 152, 168, 176, 189, 232,   0, 296, 312, 360, 72, 192, false, 328, 24, 64, 80, 24,  0, 0 },
	{ 20, 104, 112, 120, 144, 152, 168, 176, 189, 232,   0, 296, 312, 360, 72, 192, false, 328, 24, 64, 80, 24,  0, 0 },
	{ 21, 104, 112, 120, 144, 152, 168, 176, 188, 208, 272, 280, 296, 344, 72, 192, false, 312, 24, 64, 80, 32, 19, 3 },
	{ 22, 104, 112, 120, 144, 152, 168, 176, 191, 208, 272, 280, 296, 344, 72, 192, false, 312, 24, 64, 80, 32, 19, 3 },
	{ 23, 104, 112, 120, 152, 160, 176, 184, 199, 216, 280, 288, 304, 352, 72, 192, false, 320, 24, 64, 80, 32, 19, 3 },
	{ 24, 104, 112, 120, 152, 160, 176, 184, 199, 216, 280, 288, 304, 352, 72, 192, true, 320, 24, 64, 80, 32, 19, 3 },
	{ 25,  96, 104, 112, 144, 152, 168, 176, 191, 208, 272, 280, 296, 344, 64, 184, true, 312, 24, 64, 80, 32, 24, 9 },
	{ 26,  96, 104, 112, 144, 152, 168, 176, 191, 208, 280, 288, 304, 352, 64, 184, true, 320, 32, 72, 96, 32, 24, 9 },
	{ 27,  96, 104, 112, 144, 152, 168, 176, 191, 208, 280, 288, 304, 352, 64, 184, true, 320, 32, 72, 96, 32, 24, 9 },
};
/* clang-format on */

const struct wp_go_layout *wp_go_layout_find(uint32_t minor)
{
	const size_t n = sizeof(layouts) / sizeof(layouts[0]);

	if (minor < layouts[0].minor)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return &layouts[n - 1];
}
