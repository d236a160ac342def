/* SPDX-License-Identifier: Apache-2.0 */
/* errors.h - standard errors of the times of a table's rows.
 *
 * A thread's time in a state is known; samples divide it.  Of P ns that N samples
 * divide, a row that has S ns of them has them as tosses of a coin: the variance is
 * P^2 q (1 - q) / (N + 4) with q = (N S / P + 2) / (N + 4), which also holds for few
 * samples and for shares of all or nothing (Agresti and Coull, "Approximate is
 * better than exact", 1998).  Waits are divided by the looks that found the thread
 * changed, but what is known exactly is not; the time ready to run by CPU samples,
 * or where there are none by looks.
 *
 * Of a heap profile the sum is sampled too.  Of S bytes with the variance V a share
 * r = S / all has, all being S and the rest S', V': all^2 times the variance of r is
 * (1 - r)^2 V + r^2 V', where each V is enlarged by 2 (V / S)^2, as if by two samples
 * more: so few as there may be are not taken for sure.
 */
#ifndef WP_ERRORS_H
#define WP_ERRORS_H

#include "wallprof/profile.h"

/* What is divided apart. */
enum wp_errors_part { WP_ERRORS_WAITS, WP_ERRORS_READY, WP_ERRORS_NPARTS };

struct wp_errors {
	const struct wp_profile *profile;
	enum wp_profile_kind kind;
	/* The indices of all samples of KIND, those of a thread together; owned. */
	uint32_t *order;
	/* By thread and part: what is divided, and by how many; owned. */
	struct wp_errors_pool {
		double ns;
		double looks;
	} * pools;
	/* By row; owned.  NS is what the thread that was added last has. */
	struct wp_errors_row {
		uint32_t thread;
		double ns[WP_ERRORS_NPARTS];
		double variance;
	} * rows;
	uint32_t nrows, cap_rows;
	/* It is known how many samples divided the time. */
	bool known;
	/* HEAP: bytes of all rows, and their variance. */
	double all, all_variance;
};

/* Of PROFILE's samples of KIND.  0 or -ENOMEM; the caller clears ERRORS in both
 * cases. */
WP_MUST_CHECK
int wp_errors_init(struct wp_errors *errors, const struct wp_profile *profile,
		   enum wp_profile_kind kind);
/* The Ith sample of all, those of each thread together. */
const struct wp_profile_sample *wp_errors_sample(const struct wp_errors *errors,
						 uint32_t i);
/* S is in row ROW, once.  Samples come in the order of wp_errors_sample.  0 or
 * -ENOMEM. */
WP_MUST_CHECK
int wp_errors_add(struct wp_errors *errors, uint32_t row,
		  const struct wp_profile_sample *s);
/* The standard error of ROW's time in ns, once all is added; of its bytes as a part of
 * all. */
double wp_errors_of(const struct wp_errors *errors, uint32_t row);
void wp_errors_clear(struct wp_errors *errors);

#endif
