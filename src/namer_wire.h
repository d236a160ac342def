/* namer_wire.h - what the process that names addresses says, in bytes.
 *
 * Layer: main.
 *
 * A message is its length (32 bits, without these), its kind (8 bits) and what
 * belongs to the kind: numbers little-endian, strings with a NUL.  The reader
 * trusts nothing: the writer has read hostile files.
 */
#ifndef WP_NAMER_WIRE_H
#define WP_NAMER_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wallprof/err.h"
#include "wallprof/symbols.h"

enum {
	/* Levels of one address. */
	WP_WIRE_LEVELS_MAX = 64,
	/* Bytes of a string, with its NUL; longer ones are cut. */
	WP_WIRE_STRING_MAX = 16384,
	WP_WIRE_MESSAGE_MAX = 4 << 20,
};

enum wp_wire_kind {
	/* Names of the next address. */
	WP_WIRE_ANSWER = 1,
	/* What a module turned out to have. */
	WP_WIRE_HAS,
	/* A debug file is wanted; struct wp_wire_reply comes back. */
	WP_WIRE_OPEN,
	/* Nothing comes after this. */
	WP_WIRE_END,
};

enum wp_wire_end {
	WP_WIRE_DONE,
	WP_WIRE_NO_MEMORY,
	/* The sandbox could not be set up: there is an errno. */
	WP_WIRE_NO_SANDBOX,
	WP_NWIRE_ENDS
};

/* One message.  Strings and bytes lie in what was parsed. */
struct wp_wire_message {
	enum wp_wire_kind kind;
	union {
		struct {
			uint32_t n;
			struct wp_symbol_line lines[WP_WIRE_LEVELS_MAX];
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
			enum wp_wire_end how;
			int error;
		} end;
	};
};

/* What goes back, with the descriptor if FOUND. */
struct wp_wire_reply {
	uint32_t nth;
	uint32_t found;
};

/* Bytes to be sent. */
struct wp_wire {
	/* data[0..len), owned. */
	uint8_t *data;
	size_t len;
	size_t cap;
};

#define WP_WIRE_INIT { 0 }

/* Add a message.  0, or -ENOMEM: then nothing was added. */
WP_MUST_CHECK
int wp_wire_add_answer(struct wp_wire *wire, const struct wp_symbol_line *lines,
		       uint32_t n);
WP_MUST_CHECK
int wp_wire_add_has(struct wp_wire *wire, uint32_t module,
		    const struct wp_symbol_has *has);
WP_MUST_CHECK
int wp_wire_add_open(struct wp_wire *wire, const struct wp_debug_query *query,
		     uint32_t nth);
WP_MUST_CHECK
int wp_wire_add_end(struct wp_wire *wire, enum wp_wire_end how, int error);
void wp_wire_clear(struct wp_wire *wire);

/* Parse the message that DATA[0..len) begins with.  Returns its bytes; 0 if
 * not all of it is there; -EBADMSG if it is malformed or over a limit. */
ssize_t wp_wire_parse(struct wp_wire_message *ret, const void *data,
		      size_t len);

#endif
