/* SPDX-License-Identifier: Apache-2.0 */
/* inherited.h - what wallprof is started with.
 *
 * Layer: cmd.
 */
#ifndef WP_INHERITED_H
#define WP_INHERITED_H

/* First thing in main(): make descriptors 0 to 2 exist, closed at exec and
 * failing every read and write with EBADF as a closed one does, so that no file
 * opened later is standard error; and set SIGCHLD to its default, without which
 * there is no waitpid(2). */
void wp_inherited_mend(void);

#endif
