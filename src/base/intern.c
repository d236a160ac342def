/* SPDX-License-Identifier: Apache-2.0 */
/* intern.c - see wallprof/intern.h. */
#include "wallprof/intern.h"

#include <stdlib.h>
#include <string.h>

#include "wallprof/hash.h"

enum {
	FIRST_SLOTS = 256,
	TEXT_MAX = 1 << 30,
};

static int grow_text(struct wp_intern *in, size_t need)
{
	size_t cap = in->text_cap ? in->text_cap : 4096;
	char *text;

	if (need > TEXT_MAX)
		return -1;
	while (cap < need)
		cap *= 2;
	if (cap == in->text_cap)
		return 0;
	text = realloc(in->text, cap);
	if (!text)
		return -1;
	in->text = text;
	in->text_cap = cap;
	return 0;
}

static int grow_ids(struct wp_intern *in)
{
	uint32_t cap = in->cap ? 2 * in->cap : 64;
	uint32_t *off;

	if (in->len < in->cap)
		return 0;
	off = reallocarray(in->off, cap, sizeof(*off));
	if (!off)
		return -1;
	in->off = off;
	in->cap = cap;
	return 0;
}

/* The slot of S, or the free one where it belongs. */
static uint32_t *find_slot(const struct wp_intern *in, uint32_t *slot,
			   uint32_t nslots, const char *s, size_t n)
{
	uint32_t i = (uint32_t)wp_hash_bytes(0, s, n) & (nslots - 1);

	for (;; i = (i + 1) & (nslots - 1)) {
		const char *have;

		if (!slot[i])
			return &slot[i];
		have = in->text + in->off[slot[i] - 1];
		if (!strncmp(have, s, n) && !have[n])
			return &slot[i];
	}
}

static int grow_slots(struct wp_intern *in)
{
	uint32_t nslots = in->nslots ? 2 * in->nslots : FIRST_SLOTS;
	uint32_t *slot;

	if (in->len < in->nslots / 2)
		return 0;
	slot = calloc(nslots, sizeof(*slot));
	if (!slot)
		return -1;
	for (uint32_t id = 0; id < in->len; id++) {
		const char *s = in->text + in->off[id];

		*find_slot(in, slot, nslots, s, strlen(s)) = id + 1;
	}
	free(in->slot);
	in->slot = slot;
	in->nslots = nslots;
	return 0;
}

static uint32_t add(struct wp_intern *in, const char *s, size_t n)
{
	uint32_t *slot;

	if (grow_slots(in))
		return UINT32_MAX;
	slot = find_slot(in, in->slot, in->nslots, s, n);
	if (*slot)
		return *slot - 1;
	if (grow_ids(in) || grow_text(in, in->text_len + n + 1))
		return UINT32_MAX;
	in->off[in->len] = (uint32_t)in->text_len;
	memcpy(in->text + in->text_len, s, n);
	in->text[in->text_len + n] = '\0';
	in->text_len += n + 1;
	*slot = ++in->len;
	return in->len - 1;
}

uint32_t wp_intern_add(struct wp_intern *in, const char *s, size_t n)
{
	if (!in->len && add(in, "", 0) == UINT32_MAX)
		return UINT32_MAX;
	return add(in, s, strnlen(s, n));
}

uint32_t wp_intern_add_str(struct wp_intern *in, const char *s)
{
	return wp_intern_add(in, s, strlen(s));
}

const char *wp_intern_str(const struct wp_intern *in, uint32_t id)
{
	return id < in->len ? in->text + in->off[id] : "";
}

void wp_intern_clear(struct wp_intern *in)
{
	free(in->text);
	free(in->off);
	free(in->slot);
	*in = (struct wp_intern)WP_INTERN_INIT;
}
