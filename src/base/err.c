/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - see wallprof/err.h. */
#include "wallprof/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int wp_err_set(struct wp_err *err, int code, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (err) {
		err->code = code;
		va_start(ap, fmt);
		vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
		va_end(ap);
	}
	errno = saved;
	return code;
}
