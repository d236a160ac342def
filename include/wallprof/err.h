/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - error values and messages.
 *
 * Layer: base.
 *
 * An operation that can fail returns 0 or a negative errno from a small set:
 * -ESRCH target or thread gone, -EFAULT address unreadable, -EPERM not
 * allowed, -EBADMSG input malformed, -ENOTSUP valid but not handled,
 * -EOVERFLOW over one of our limits, -ENOMEM, -EALREADY traced by another.
 * Where a person will want to know why, the last parameter is a struct wp_err.
 */
#ifndef WP_ERR_H
#define WP_ERR_H

#define WP_MUST_CHECK __attribute__((warn_unused_result))
#define WP_PRINTF(f, a) __attribute__((format(printf, f, a)))

struct wp_err {
	/* Negative errno, 0 while nothing failed. */
	int code;
	/* A finished sentence without a full stop or newline; what is wrong
	 * first, then what to do. */
	char msg[512];
};

#define WP_ERR_INIT                                                            \
	{                                                                      \
		0, ""                                                          \
	}

/* Set ERR (may be NULL) to CODE and the formatted message.  Returns CODE, so
 * that `return wp_err_set(...)` reads well.  errno is preserved.
 */
int wp_err_set(struct wp_err *err, int code, const char *fmt, ...)
	WP_PRINTF(3, 4);

#endif
