/* SPDX-License-Identifier: Apache-2.0 */
/* types.c - names of the enums of wallprof/types.h. */
#include "wallprof/types.h"

const char *wp_state_name(enum wp_state state)
{
	static const char *const name[] = {
#define X(id, text) [WP_STATE_##id] = text,
		WP_STATES(X)
#undef X
	};

	return (unsigned int)state < WP_NSTATES ? name[state] : "unknown";
}

const char *wp_wait_name(enum wp_wait wait)
{
	static const char *const name[] = {
#define X(id, text) [WP_WAIT_##id] = text,
		WP_WAITS(X)
#undef X
	};

	return (unsigned int)wait < WP_NWAITS ? name[wait] : "unknown";
}

const char *wp_stack_end_text(enum wp_stack_end end)
{
	static const char *const text[] = {
#define X(id, words) [WP_END_##id] = words,
		WP_STACK_ENDS(X)
#undef X
	};

	return (unsigned int)end < WP_NSTACK_ENDS ? text[end] : "unknown";
}
