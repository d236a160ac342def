/* err.c - see wallprof/err.h. */
#include "wallprof/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

void wp_err_prefix(struct wp_err *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	va_list ap;
	int n;

	if (!err)
		return;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(err->msg))
		return;
	/* The end of a long message gives way. */
	if (snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s",
		     old) < 0)
		err->msg[n] = '\0';
}
