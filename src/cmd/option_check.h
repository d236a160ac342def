/* SPDX-License-Identifier: Apache-2.0 */
/* option_check.h - does a command line make sense as a whole?
 *
 * Layer: cmd.
 */
#ifndef WP_OPTION_CHECK_H
#define WP_OPTION_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

/* A command line, word by word. */
struct wp_option_parse {
	struct wp_options o;
	/* What O.action was named by; NULL: not named. */
	const char *action_word;
	/* -f, an enum wp_format; -1: to be found. */
	int format;
	/* -i; NULL: not given. */
	const char *interval;
	/* The options that were given, bits 1 << index in wp_option_rows. */
	uint64_t given;
	/* The first word that is no option, an index of argv; 0: none. */
	int first_word;
};

/* Note that option ID was given, as any command that has it. */
void wp_option_note(struct wp_option_parse *parse, int id);
bool wp_option_is_given(const struct wp_option_parse *parse, int id);

/* Check what is in PARSE and fill in what depends on the whole.  0, or -EINVAL with
 * ERR. */
WP_MUST_CHECK
int wp_option_check(struct wp_option_parse *parse, struct wp_err *err);

/* option_pairs.c: check that what goes only with another option, or with a format, is
 * given with it.  0, or -EINVAL with ERR. */
WP_MUST_CHECK
int wp_option_check_pairs(const struct wp_option_parse *parse,
			  struct wp_err *err);

#endif
