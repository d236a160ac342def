/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h - the open-addressing tables of a profile: slot[] holds index + 1. */
#ifndef WP_SLOTS_H
#define WP_SLOTS_H

#include "wallprof/profile.h"

/* Make *SLOT, of *NSLOTS, large enough for LEN + 1 elements at half load.
 * HASH gives the hash of element INDEX of the array in OWNER that the table is
 * about.
 * Returns 0, or -ENOMEM and the table is as it was. */
WP_MUST_CHECK
int wp_slots_room(const void *owner, uint32_t **slot, uint32_t *nslots,
		  uint32_t len,
		  uint64_t (*hash)(const void *owner, uint32_t index));

#endif
