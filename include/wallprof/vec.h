/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - room in the growing arrays.
 *
 * Layer: base.
 */
#ifndef WP_VEC_H
#define WP_VEC_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* The capacity that holds LEN + MORE: twice what is there, 0 when an index of
 * INDEX_SIZE bytes could not name every element and UINT32_MAX is kept free. */
static inline uint64_t wp_vec_cap(uint64_t len, uint64_t more,
				  size_t index_size)
{
	uint64_t max = index_size < 8 ? UINT32_MAX - 1 : UINT64_MAX / 64;
	uint64_t cap = len < 16 ? 32 : 2 * len;

	if (len > max || more > max - len)
		return 0;
	if (cap < len + more)
		cap = len + more;
	return cap < max ? cap : max;
}

/* Make room for MORE elements after V[0..LEN); V and CAP are lvalues.
 * 0 or -ENOMEM. */
#define WP_VEC_ROOM(v, len, cap, more)                                         \
	({                                                                     \
		int vec_rc_ = 0;                                               \
		if ((cap) < (uint64_t)(len) + (more)) {                        \
			uint64_t vec_cap_ = wp_vec_cap((len), (more),          \
						       sizeof(cap));           \
			void *vec_p_ = vec_cap_ ? reallocarray((v), vec_cap_,  \
							       sizeof(*(v))) : \
						  NULL;                        \
			if (vec_p_) {                                          \
				(v) = vec_p_;                                  \
				(cap) = (__typeof__(cap))vec_cap_;             \
			} else {                                               \
				vec_rc_ = -ENOMEM;                             \
			}                                                      \
		}                                                              \
		vec_rc_;                                                       \
	})

#endif
