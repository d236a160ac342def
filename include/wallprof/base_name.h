/* SPDX-License-Identifier: Apache-2.0 */
/* base_name.h - the last part of a path.
 *
 * Layer: base.
 */
#ifndef WP_BASE_NAME_H
#define WP_BASE_NAME_H

#include <string.h>

/* What follows the last slash of PATH; all of PATH if nothing does. */
static inline const char *wp_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

#endif
