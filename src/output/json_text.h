/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.h - strings of JSON, for writers of large arrays. */
#ifndef WP_JSON_TEXT_H
#define WP_JSON_TEXT_H

#include "buf.h"

/* Add S, from a target, to BUF as a string of JSON with its quotes: valid UTF-8
 * without control characters (see wp_escape_file), and without '<', so that the text
 * may stand in a script element of HTML. */
void wp_json_text(struct wp_buf *buf, const char *s);

#endif
