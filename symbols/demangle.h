/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.h - demangles C++ and Rust names.
 *
 * Layer: symbols.
 */
#ifndef WP_DEMANGLE_H
#define WP_DEMANGLE_H

#include <stddef.h>

/* Put the name to show for SYMBOL into BUF[0..size): C++ and Rust names
 * demangled with scopes and template arguments, without parameters, return
 * type and Rust's hash; without the suffix of a compiler's clone (".cold",
 * ".part.0"); "@plt" stays.  SYMBOL itself if it is not mangled, or if the name
 * would be longer than BUF.
 */
void wp_demangle(const char *symbol, char *buf, size_t size);

#endif
