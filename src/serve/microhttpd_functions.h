/* SPDX-License-Identifier: Apache-2.0 */
/* microhttpd_functions.h - what is used of libmicrohttpd.
 *
 * Layer: serve.
 */
#ifndef WP_MICROHTTPD_FUNCTIONS_H
#define WP_MICROHTTPD_FUNCTIONS_H

#include <microhttpd.h>

#include "library.h"

#define WP_MICROHTTPD_FUNCTIONS(X)                                             \
	X(MHD_add_connection)                                                  \
	X(MHD_add_response_header)                                             \
	X(MHD_create_response_from_buffer)                                     \
	X(MHD_create_response_from_fd)                                         \
	X(MHD_destroy_response)                                                \
	X(MHD_get_connection_info)                                             \
	X(MHD_get_daemon_info)                                                 \
	X(MHD_get_timeout)                                                     \
	X(MHD_http_unescape)                                                   \
	X(MHD_lookup_connection_value)                                         \
	X(MHD_queue_response)                                                  \
	X(MHD_resume_connection)                                               \
	X(MHD_run)                                                             \
	X(MHD_start_daemon)                                                    \
	X(MHD_suspend_connection)

struct wp_microhttpd {
	WP_MICROHTTPD_FUNCTIONS(WP_LIBRARY_MEMBER)
};

#endif
