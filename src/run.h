/* run.h - a recording from start to file.
 *
 * Layer: main.
 */
#ifndef WP_RUN_H
#define WP_RUN_H

#include "options.h"

/* Exit statuses, as eu-stack has them. */
enum {
	WP_EXIT_WHOLE = 0,
	WP_EXIT_LOSSES = 1,
	WP_EXIT_NOTHING = 2,
	WP_EXIT_USAGE = 64,
};

/* Record as OPTIONS say and write the result; returns the exit status. */
int wp_run_record(const struct wp_options *options);

#endif
