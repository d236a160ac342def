/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - shared libraries that are loaded where they are used.
 *
 * Layer: serve.
 *
 * With what they need themselves, libcurl and libmicrohttpd cost every start of
 * wallprof 7 ms of CPU as dependencies of the program.
 */
#ifndef WP_LIBRARY_H
#define WP_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* A pointer to FUNCTION, of the type that the library's header gives it. */
#define WP_LIBRARY_MEMBER(function) __typeof__(function) *function;
#define WP_LIBRARY_NAME(function) #function,

/* wp_library_load() of the FUNCTIONS of a list that applies its argument to each. */
#define WP_LIBRARY_LOAD(soname, functions, ret)                                \
	wp_library_load(soname,                                                \
			(const char *const[]){ functions(WP_LIBRARY_NAME) },   \
			sizeof(*(ret)) / sizeof(void *), ret)

/* Load the library SONAME for good, and store the addresses of its functions NAMES in
 * RET, a struct of N pointers in that order.  False if the library or a function is
 * missing; loading twice is fine. */
bool wp_library_load(const char *soname, const char *const *names, size_t n,
		     void *ret);

#endif
