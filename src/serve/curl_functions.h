/* SPDX-License-Identifier: Apache-2.0 */
/* curl_functions.h - what is used of libcurl.
 *
 * Layer: serve.
 */
#ifndef WP_CURL_FUNCTIONS_H
#define WP_CURL_FUNCTIONS_H

/* Those checks call the functions by their own names. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "library.h"

#define WP_CURL_FUNCTIONS(X)                                                   \
	X(curl_easy_cleanup)                                                   \
	X(curl_easy_escape)                                                    \
	X(curl_easy_getinfo)                                                   \
	X(curl_easy_init)                                                      \
	X(curl_easy_setopt)                                                    \
	X(curl_easy_strerror)                                                  \
	X(curl_free)                                                           \
	X(curl_global_init)                                                    \
	X(curl_mime_addpart)                                                   \
	X(curl_mime_data_cb)                                                   \
	X(curl_mime_filename)                                                  \
	X(curl_mime_free)                                                      \
	X(curl_mime_init)                                                      \
	X(curl_mime_name)                                                      \
	X(curl_mime_type)                                                      \
	X(curl_multi_add_handle)                                               \
	X(curl_multi_info_read)                                                \
	X(curl_multi_init)                                                     \
	X(curl_multi_perform)                                                  \
	X(curl_multi_poll)                                                     \
	X(curl_multi_remove_handle)

struct wp_curl {
	WP_CURL_FUNCTIONS(WP_LIBRARY_MEMBER)
};

#endif
