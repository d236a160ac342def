/* SPDX-License-Identifier: Apache-2.0 */
/* messages.h - lines on standard error.
 *
 * Layer: cmd.
 */
#ifndef WP_MESSAGES_H
#define WP_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "wallprof/err.h"
#include "wallprof/snapshot.h"

/* Write one line to standard error with one write(2); '?' stands for bytes
 * that are not printable.  Lines over 1 KiB are cut. */
void wp_say(const char *fmt, ...) WP_PRINTF(1, 2);

/* Say that not all servers of debug files were asked, and WHY; nothing if that is
 * "". */
void wp_say_no_servers(const char *why);

/* Say that N addresses have no function name, and why; nothing if N is 0. */
void wp_say_unnamed(uint64_t n, const char *why);

/* Say that N mapped files are of servers that do not answer, and that NUNOPENED could
 * not be opened; nothing for 0. */
void wp_say_files_lost(uint64_t n, uint64_t nunopened);

/* Say that N mapped files have no lines, and WHY of the first; nothing for 0. */
void wp_say_files_lineless(uint64_t n, const char *why);

/* Say that N stacks, mappings or files had no room; nothing for 0. */
void wp_say_dropped(uint64_t n);

/* Say that N stacks of the kernel's may not be read; nothing for 0. */
void wp_say_kernel_denied(uint64_t n);

/* Say that of N waits on unix sockets the other end is not told, as RC of
 * wp_unix_peer_read says; nothing for 0. */
void wp_say_peers_untold(uint64_t n, int rc);

/* Say that N waits may be ended by others than those that are told, for the reason DOUBT, by
 * process PID where that is not 0; nothing for 0. */
void wp_say_waits_doubtful(uint64_t n, enum wp_wait_doubt doubt, pid_t pid);

/* Say that threads wait for more processes than a dump has room for, if they do. */
void wp_say_edges_cut(bool is_cut);

#endif
