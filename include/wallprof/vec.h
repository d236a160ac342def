/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - growing arrays.
 *
 * Layer: base.
 */
#ifndef WP_VEC_H
#define WP_VEC_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

/* A new capacity for LEN + MORE elements, at least 2 * LEN; 0 if indices of
 * INDEX_SIZE bytes cannot number so many (UINT32_MAX stays free). */
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

/* Grow array V of capacity CAP, both lvalues, so that MORE elements fit behind
 * V[0..LEN).  0, or -ENOMEM and nothing is changed. */
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

/* Give back what V takes beyond N elements, if that is more than half of its capacity
 * CAP. */
#define WP_VEC_SHRINK(v, n, cap)                                               \
	({                                                                     \
		uint64_t vec_n_ = (n) ? (n) : 1;                               \
		void *vec_p_ = vec_n_ < (cap) / 2 ?                            \
				       reallocarray((v), vec_n_,               \
						    sizeof(*(v))) :            \
				       NULL;                                   \
		if (vec_p_) {                                                  \
			(v) = vec_p_;                                          \
			(cap) = (__typeof__(cap))vec_n_;                       \
		}                                                              \
	})

#endif
