/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_top.h - threads on the terminal while they are recorded.
 *
 * Layer: cmd.  cmd_record.h's loop records; this shows it.
 */
#ifndef WP_CMD_TOP_H
#define WP_CMD_TOP_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "wallprof/process.h"
#include "wallprof/profile.h"

struct wp_cmd_top;
struct wp_sampler;

/* Take the terminal, which standard input and output have to be, to show PROFILE of
 * PROCESS, both borrowed.  0; -ENOTTY, -ENOMEM with ERR. */
WP_MUST_CHECK
int wp_cmd_top_open(struct wp_cmd_top **ret, const struct wp_options *options,
		    struct wp_profile *profile,
		    const struct wp_process *process, struct wp_err *err);

/* Between two ticks of SAMPLER: heed keys, and draw anew when it is time.  *RET_QUIT:
 * the user wants to end.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_cmd_top_step(struct wp_cmd_top *top, struct wp_sampler *sampler,
		    uint64_t now_ns, bool *ret_quit);

/* Give the terminal back, until the next step. */
void wp_cmd_top_pause(struct wp_cmd_top *top);
/* Give it back for good; accepts NULL. */
void wp_cmd_top_close(struct wp_cmd_top *top);

#endif
