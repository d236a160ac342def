/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - the running kernel's version, for what cannot be asked of it otherwise.
 *
 * Layer: base.
 */
#ifndef WP_KERNEL_H
#define WP_KERNEL_H

#include <stdbool.h>

/* Is this Linux older than MAJOR.MINOR?  By its release (uname(2)); false where that does
 * not begin with two numbers.  The release is read once. */
bool wp_kernel_is_before(unsigned int major, unsigned int minor);

#endif
