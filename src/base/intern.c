/* SPDX-License-Identifier: Apache-2.0 */
/* intern.c - see wallprof/intern.h. */
#include "wallprof/intern.h"

#include <stdlib.h>
#include <string.h>

#include "wallprof/hash.h"
#include "wallprof/vec.h"

enum { TEXT_MAX = 1 << 30 };

static uint32_t find(const struct wp_intern *in, uint64_t hash, const char *s,
		     size_t n)
{
	return WP_INDEX_FIND(&in->index, hash, i,
			     !strncmp(in->text + in->off[i], s, n) &&
				     !in->text[in->off[i] + n]);
}

static uint32_t add(struct wp_intern *in, const char *s, size_t n)
{
	uint64_t hash = wp_hash_bytes(0, s, n);
	uint32_t id = find(in, hash, s, n);

	if (id != WP_INDEX_NONE)
		return id;
	if (n >= TEXT_MAX - in->text_len ||
	    WP_VEC_ROOM(in->off, in->len, in->cap, 1) ||
	    WP_VEC_ROOM(in->text, in->text_len, in->text_cap, n + 1) ||
	    wp_index_add(&in->index, hash, in->len))
		return UINT32_MAX;
	in->off[in->len] = (uint32_t)in->text_len;
	memcpy(in->text + in->text_len, s, n);
	in->text[in->text_len + n] = '\0';
	in->text_len += n + 1;
	return in->len++;
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

uint32_t wp_intern_find(const struct wp_intern *in, const char *s)
{
	size_t n = strlen(s);
	uint32_t id = find(in, wp_hash_bytes(0, s, n), s, n);

	return id == WP_INDEX_NONE ? UINT32_MAX : id;
}

const char *wp_intern_str(const struct wp_intern *in, uint32_t id)
{
	return id < in->len ? in->text + in->off[id] : "";
}

int wp_intern_keep(struct wp_intern *in, const uint32_t *to)
{
	struct wp_index index = WP_INDEX_INIT;
	uint32_t n = 0;
	size_t len = 0;
	int rc;

	for (uint32_t i = 0; i < in->len; i++)
		n += to[i] != 0;
	rc = wp_index_reserve(&index, n);
	n = 0;
	for (uint32_t i = 0; i < in->len && !rc; i++) {
		const char *s = in->text + in->off[i];
		size_t size = strlen(s) + 1;

		if (!to[i])
			continue;
		memmove(in->text + len, s, size);
		in->off[n] = (uint32_t)len;
		rc = wp_index_add(&index, wp_hash_bytes(0, s, size - 1), n++);
		len += size;
	}
	if (rc)
		return rc;
	wp_index_clear(&in->index);
	in->index = index;
	in->len = n;
	in->text_len = len;
	WP_VEC_SHRINK(in->off, n, in->cap);
	WP_VEC_SHRINK(in->text, len, in->text_cap);
	return 0;
}

void wp_intern_clear(struct wp_intern *in)
{
	free(in->text);
	free(in->off);
	wp_index_clear(&in->index);
	*in = (struct wp_intern)WP_INTERN_INIT;
}
