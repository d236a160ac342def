/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.h - names as a person wrote them.
 *
 * Layer: symbols.
 */
#ifndef WP_DEMANGLE_H
#define WP_DEMANGLE_H

#include <stddef.h>

/* Put into BUF[0..size) what a profile shows for SYMBOL: C++ and Rust names
 * demangled with scopes and template arguments, without parameters, return
 * type and Rust's hash; no suffix of a compiler's clone (".cold", ".part.0");
 * "@plt" is kept.  A name that is not mangled is itself, and so is one that
 * would be longer than BUF.
 */
void wp_demangle(const char *symbol, char *buf, size_t size);

#endif
