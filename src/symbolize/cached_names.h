/* SPDX-License-Identifier: Apache-2.0 */
/* cached_names.h - names addresses, those that were had before without a child.
 *
 * Layer: symbolize.
 */
#ifndef WP_CACHED_NAMES_H
#define WP_CACHED_NAMES_H

#include "namer.h"

/* As wp_namer_run, but what DIR_FD, a directory of wp_name_cache_open, has is answered
 * first, and what it may have is kept in it.  NAMER->answer is not called in order. */
WP_MUST_CHECK
int wp_cached_names_run(const struct wp_namer *namer, int dir_fd,
			struct wp_namer_end *ret_end);

#endif
