/* run.h - a recording from start to file.
 *
 * Layer: main.
 */
#ifndef WP_RUN_H
#define WP_RUN_H

#include "options.h"

/* Record as OPTIONS say and write the result; returns the exit status. */
int wp_run_record(const struct wp_options *options);

#endif
