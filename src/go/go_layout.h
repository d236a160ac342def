/* SPDX-License-Identifier: Apache-2.0 */
/* go_layout.h - where the fields of Go's runtime structures are, by version.
 *
 * Layer: go.  Private to src/go/.
 *
 * Offsets in bytes, as the DWARF of programs built by each version has them
 * (runtime/runtime2.go: g, m, gobuf).  They are equal on amd64 and arm64.
 */
#ifndef WP_GO_LAYOUT_H
#define WP_GO_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Equal in all versions: g.stack.lo and .hi, g.m, g.sched.sp, .pc and .g. */
enum {
	WP_GO_G_LO = 0,
	WP_GO_G_HI = 8,
	WP_GO_G_M = 48,
	WP_GO_G_SP = 56,
	WP_GO_G_PC = 64,
	WP_GO_G_SELF = 72,
	/* Longest that is read of a g. */
	WP_GO_G_MAX = 512,
};

struct wp_go_layout {
	/* Go 1.MINOR. */
	uint16_t minor;
	/* Of struct g. */
	uint16_t g_bp;
	uint16_t g_syscallsp;
	uint16_t g_syscallpc;
	uint16_t g_status;
	uint16_t g_goid;
	uint16_t g_waitsince;
	uint16_t g_waitreason;
	uint16_t g_tracking_seq;
	uint16_t g_lockedm;
	uint16_t g_parent;
	uint16_t g_gopc;
	uint16_t g_startpc;
	uint16_t g_labels;
	/* Of struct m. */
	uint16_t m_procid;
	uint16_t m_curg;
	/* Labels are a list of pairs; else a map. */
	bool has_label_list;
	/* g.waiting: the first struct sudog; of struct sudog. */
	uint16_t g_waiting;
	uint16_t sudog_elem;
	uint16_t sudog_waitlink;
	uint16_t sudog_c;
	/* Of struct pollDesc; what is shifted out of, and into, an epoll's data to
	 * get its address. */
	uint16_t poll_rg;
	uint8_t poll_right;
	uint8_t poll_left;
};

/* The layout of Go 1.MINOR, the newest one for a version that is newer than the
 * table; NULL: too old. */
const struct wp_go_layout *wp_go_layout_find(uint32_t minor);

#endif
