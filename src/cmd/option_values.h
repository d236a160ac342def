/* SPDX-License-Identifier: Apache-2.0 */
/* option_values.h - from the text of an option's value to the value.
 *
 * Layer: cmd.  Each returns 0, or -EINVAL with ERR saying what OPTION wants.
 */
#ifndef WP_OPTION_VALUES_H
#define WP_OPTION_VALUES_H

#include <stdint.h>
#include <sys/types.h>

#include "options.h"
#include "wallprof/block_weight.h"
#include "wallprof/err.h"
#include "wallprof/output.h"

/* OPTION's process ids, parted by commas, which are added to those of O. */
WP_MUST_CHECK
int wp_option_pids(struct wp_options *o, const char *option, const char *text,
		   struct wp_err *err);
/* A number from 1 to MAX. */
WP_MUST_CHECK
int wp_option_number(uint32_t *ret, const char *option, const char *text,
		     long max, struct wp_err *err);
/* Bytes: "4096", "64M". */
WP_MUST_CHECK
int wp_option_size(size_t *ret, const char *option, const char *text,
		   struct wp_err *err);
/* "30", "30s", "5m". */
WP_MUST_CHECK
int wp_option_duration(uint64_t *ret_ns, const char *option, const char *text,
		       struct wp_err *err);
/* -r: samples per second, from 1 to 1000, as the time between two. */
WP_MUST_CHECK
int wp_option_rate(uint64_t *ret_ns, const char *text, struct wp_err *err);
/* -i of a recording: a time with its unit, from 1ms to 1s. */
WP_MUST_CHECK
int wp_option_interval(uint64_t *ret_ns, const char *text, struct wp_err *err);
/* -i of --check: from 50ms to 1h. */
WP_MUST_CHECK
int wp_option_look_interval(uint64_t *ret_ns, const char *text,
			    struct wp_err *err);
/* "yes" or "no". */
WP_MUST_CHECK
int wp_option_yes_no(bool *ret, const char *option, const char *text,
		     struct wp_err *err);
/* Percent, "1" or "1%", as a share from 0 to 1. */
WP_MUST_CHECK
int wp_option_share(double *ret, const char *option, const char *text,
		    struct wp_err *err);
/* --profile: "wall,cpu", any of them, in any order. */
WP_MUST_CHECK
int wp_option_profiles(struct wp_options *o, const char *text,
		       struct wp_err *err);
/* C, one of the options of heap profiles. */
WP_MUST_CHECK
int wp_option_heap(struct wp_sampler_options *s, int c, const char *arg,
		   struct wp_err *err);
/* --block-rate: "1/100", or a time. */
WP_MUST_CHECK
int wp_option_block_rate(struct wp_block_rate *ret, const char *text,
			 struct wp_err *err);
/* One of NAMES[0..n): returns its index. */
WP_MUST_CHECK
int wp_option_word(const char *option, const char *text,
		   const char *const *names, int n, struct wp_err *err);
/* The enum wp_format that FILE's ending names; DEF for a stream. */
WP_MUST_CHECK
int wp_option_format(const char *file, enum wp_format def, struct wp_err *err);

/* Option C of serve, or -p or a word that names a process, 'p'. */
WP_MUST_CHECK
int wp_option_serve(struct wp_options *o, int c, const char *arg,
		    struct wp_err *err);

/* What getopt(3) found wrong at argv[at], C being what it returned, in words; an option of
 * ACTION is proposed. */
WP_MUST_CHECK
int wp_option_bad(char **argv, int at, int c, enum wp_action action,
		  struct wp_err *err);

#endif
