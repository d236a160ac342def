/* SPDX-License-Identifier: Apache-2.0 */
/* call_words.h - the text of a call while it is made.
 *
 * Layer: dump.
 */
#ifndef WP_CALL_WORDS_H
#define WP_CALL_WORDS_H

#include "call_text.h"

/* Descriptors of a poll or epoll that are described one by one. */
enum { WP_CALL_NAMED_MAX = 3 };

/* The text so far; what does not fit is left out. */
struct wp_call_words {
	char text[1024];
	size_t len;
	struct wp_snapshot_process *process;
	const struct wp_dump_call *call;
	const struct wp_call_found *found;
};

/* Append as printf(3) does. */
WP_PRINTF(2, 3)
void wp_call_say(struct wp_call_words *w, const char *fmt, ...);
/* Append "fd FD" and what it refers to. */
void wp_call_say_fd(struct wp_call_words *w, int fd);
/* Append the descriptor of epoll_wait(2) and what that watches. */
void wp_call_epoll(struct wp_call_words *w);

#endif
