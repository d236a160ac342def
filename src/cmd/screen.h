/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h - lines and keys of the terminal, by ncurses.
 *
 * Layer: cmd.
 */
#ifndef WP_SCREEN_H
#define WP_SCREEN_H

#include <stdbool.h>

#include "wallprof/err.h"

/* What wp_screen_key returns beside characters. */
enum wp_screen_key {
	WP_KEY_NONE = 0,
	WP_KEY_UP = 256,
	WP_KEY_DOWN,
	WP_KEY_PAGE_UP,
	WP_KEY_PAGE_DOWN,
	WP_KEY_HOME,
	WP_KEY_END,
	WP_KEY_ENTER,
	WP_KEY_ESCAPE,
	WP_KEY_ERASE,
};

enum wp_screen_look {
	WP_LOOK_PLAIN,
	WP_LOOK_HEADING,
	WP_LOOK_RUNNING,
	WP_LOOK_RUNNABLE,
	WP_LOOK_LOCK,
	WP_LOOK_DIM,
	WP_NLOOKS
};

/* Take the terminal that standard input and output are.  0; -ENOTTY with ERR. */
WP_MUST_CHECK
int wp_screen_open(struct wp_err *err);
/* Give it back; idempotent.  The next wp_screen_begin takes it again. */
void wp_screen_close(void);

/* For the process that answers for one that takes the terminal: note how it is now;
 * and give it back as it was noted, if whoever took it was killed and cannot. */
void wp_screen_note(void);
void wp_screen_mend(void);

/* Begin a picture of *RET_ROWS by *RET_COLUMNS. */
void wp_screen_begin(unsigned int *ret_rows, unsigned int *ret_columns);
/* Set row ROW to as much of TEXT as it has columns for, in reverse if SELECTED. */
void wp_screen_line(unsigned int row, const char *text,
		    enum wp_screen_look look, bool selected);
/* Show it. */
void wp_screen_end(void);

/* The next key that was pressed; WP_KEY_NONE: there is none. */
int wp_screen_key(void);

#endif
