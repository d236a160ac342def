/* SPDX-License-Identifier: Apache-2.0 */
/* types.c - names of the enums of wallprof/types.h. */
#include "wallprof/types.h"

#include "wallprof/enum_name.h"

const char *wp_types_state_name(enum wp_state state)
{
	return WP_ENUM_NAME(WP_STATES, state);
}

const char *wp_wait_name(enum wp_wait wait)
{
	return WP_ENUM_NAME(WP_WAITS, wait);
}

const char *wp_stack_end_text(enum wp_stack_end end)
{
	return WP_ENUM_NAME(WP_STACK_ENDS, end);
}
