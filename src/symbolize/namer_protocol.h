/* SPDX-License-Identifier: Apache-2.0 */
/* namer_protocol.h - the messages of the child that names addresses.
 *
 * Layer: symbolize.
 *
 * A message is its length (32 bits, without these), its kind (8 bits) and the
 * fields of the kind: numbers little-endian, strings with a NUL.  The parser
 * trusts nothing: hostile files may have taken over the sender.
 */
#ifndef WP_NAMER_PROTOCOL_H
#define WP_NAMER_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/symbols.h"

enum {
	/* Number of levels of one address. */
	WP_PROTOCOL_LEVELS_MAX = 64,
	/* Bytes of a string, with its NUL; longer ones are cut. */
	WP_PROTOCOL_STRING_MAX = 16384,
	WP_PROTOCOL_MESSAGE_MAX = 4 << 20,
};

enum wp_protocol_kind {
	/* The names of the next address. */
	WP_PROTOCOL_ANSWER = 1,
	/* The kinds of symbols found for a module. */
	WP_PROTOCOL_HAS,
	/* A request for a debug file, answered by struct wp_protocol_reply. */
	WP_PROTOCOL_OPEN,
	/* The last message. */
	WP_PROTOCOL_END,
};

enum wp_protocol_end {
	WP_PROTOCOL_DONE,
	WP_PROTOCOL_NO_MEMORY,
	/* The sandbox could not be set up; ERROR says why. */
	WP_PROTOCOL_NO_SANDBOX,
	WP_NPROTOCOL_ENDS
};

/* A message; its strings and bytes are borrowed from the parsed data. */
struct wp_protocol_message {
	enum wp_protocol_kind kind;
	union {
		struct {
			uint32_t n;
			struct wp_symbol_line lines[WP_PROTOCOL_LEVELS_MAX];
		} answer;
		struct {
			uint32_t module;
			struct wp_symbol_has has;
		} has;
		struct {
			struct wp_debug_query query;
			uint32_t nth;
		} open;
		struct {
			enum wp_protocol_end how;
			int error;
		} end;
	};
};

/* The answer to WP_PROTOCOL_OPEN, with a descriptor (SCM_RIGHTS) if FOUND. */
struct wp_protocol_reply {
	uint32_t nth;
	uint32_t found;
};

/* Messages to send. */
struct wp_protocol_buf {
	/* data[0..len), owned. */
	uint8_t *data;
	size_t len;
	size_t cap;
};

#define WP_PROTOCOL_INIT                                                       \
	{                                                                      \
		0                                                              \
	}

/* Append DATA[0..n), part of a message or between two.  0, or -ENOMEM and nothing is
 * appended. */
WP_MUST_CHECK
int wp_protocol_add_bytes(struct wp_protocol_buf *buf, const void *data,
			  size_t n);
/* Append a message.  0, or -ENOMEM and nothing is appended. */
WP_MUST_CHECK
int wp_protocol_add_answer(struct wp_protocol_buf *buf,
			   const struct wp_symbol_line *lines, uint32_t n);
WP_MUST_CHECK
int wp_protocol_add_has(struct wp_protocol_buf *buf, uint32_t module,
			const struct wp_symbol_has *has);
WP_MUST_CHECK
int wp_protocol_add_open(struct wp_protocol_buf *buf,
			 const struct wp_debug_query *query, uint32_t nth);
WP_MUST_CHECK
int wp_protocol_add_end(struct wp_protocol_buf *buf, enum wp_protocol_end how,
			int error);

/* Parse the first message of DATA[0..len).  Returns its bytes; 0 if
 * not all of it is there; -EBADMSG if it is malformed or over a limit. */
ssize_t wp_protocol_parse(struct wp_protocol_message *ret, const void *data,
			  size_t len);

#endif
