/* SPDX-License-Identifier: Apache-2.0 */
/* enum_name.h - the names of an enum whose rows are a list X(ID, TEXT).
 *
 * Layer: base.
 */
#ifndef WP_ENUM_NAME_H
#define WP_ENUM_NAME_H

#include <stddef.h>

#define WP_ENUM_TEXT(id, text) text,

/* The TEXT of row VAL of LIST; "unknown" for a VAL that has none. */
#define WP_ENUM_NAME(list, val)                                                \
	({                                                                     \
		static const char *const enum_text_[] = { list(                \
			WP_ENUM_TEXT) };                                       \
		size_t enum_val_ = (size_t)(val);                              \
		enum_val_ < sizeof(enum_text_) / sizeof(*enum_text_) ?         \
			enum_text_[enum_val_] :                                \
			"unknown";                                             \
	})

#endif
