/* SPDX-License-Identifier: Apache-2.0 */
/* category.c - see category.h. */
#include "category.h"

static const struct {
	const char *firefox;
	const char *css;
} colours[WP_NCATEGORIES] = {
	[WP_STATE_RUNNING] = { "green", "#8fd9a3" },
	[WP_STATE_RUNNABLE] = { "yellow", "#fbcf6b" },
	[WP_NSTATES + WP_WAIT_LOCK] = { "red", "#ee8f8c" },
	[WP_NSTATES + WP_WAIT_FUTEX] = { "red", "#e59aab" },
	[WP_NSTATES + WP_WAIT_CONDVAR] = { "magenta", "#d8a3c4" },
	[WP_NSTATES + WP_WAIT_SEMAPHORE] = { "orange", "#ecab8b" },
	[WP_NSTATES + WP_WAIT_JOIN] = { "purple", "#cba8d4" },
	[WP_NSTATES + WP_WAIT_BARRIER] = { "purple", "#d49fd8" },
	[WP_NSTATES + WP_WAIT_SLEEP] = { "blue", "#adb6cf" },
	[WP_NSTATES + WP_WAIT_POLL] = { "lightblue", "#9dc0dd" },
	[WP_NSTATES + WP_WAIT_SOCKET] = { "lightblue", "#98d2da" },
	[WP_NSTATES + WP_WAIT_PIPE] = { "lightblue", "#a3d6cf" },
	[WP_NSTATES + WP_WAIT_FILE] = { "brown", "#b9a4de" },
	[WP_NSTATES + WP_WAIT_DISK] = { "brown", "#c596e0" },
	[WP_NSTATES + WP_WAIT_MMAP_LOCK] = { "red", "#e58f9b" },
	[WP_NSTATES + WP_WAIT_PAGE_FAULT] = { "orange", "#efae84" },
	[WP_NSTATES + WP_WAIT_FROZEN] = { "grey", "#a9c3d6" },
	[WP_NSTATES + WP_WAIT_CORE_DUMP] = { "grey", "#c2b59b" },
};

void wp_category_name(struct wp_buf *buf, unsigned int category)
{
	if (category < WP_NSTATES) {
		wp_buf_str(buf, wp_types_state_name((enum wp_state)category));
		return;
	}
	wp_buf_str(buf, "waiting");
	if (category == WP_NSTATES + WP_WAIT_NONE)
		return;
	wp_buf_str(buf, ": ");
	wp_buf_str(buf, wp_wait_name((enum wp_wait)(category - WP_NSTATES)));
}

const char *wp_category_firefox(unsigned int category)
{
	const char *colour = colours[category].firefox;

	return colour ? colour : category < WP_NSTATES ? "grey" : "blue";
}

const char *wp_category_css(unsigned int category)
{
	const char *colour = colours[category].css;

	return colour ? colour : category < WP_NSTATES ? "#c8ccd1" : "#b3b1d6";
}
