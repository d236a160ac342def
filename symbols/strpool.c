/* SPDX-License-Identifier: Apache-2.0 */
/* strpool.c - see strpool.h. */
#include "strpool.h"

#include <stdlib.h>
#include <string.h>

#include "wallprof/hash.h"
#include "wallprof/utf8.h"
#include "wallprof/vec.h"

enum { CHUNK = 32768 };

struct wp_strpool_chunk {
	struct wp_strpool_chunk *next;
	size_t len;
	size_t cap;
	char text[];
};

static void copy_clean(char *to, const char *from, size_t n)
{
	uint32_t code;

	for (size_t i = 0, len; i < n; i += len ? len : 1) {
		len = wp_utf8_next(from + i, n - i, &code);
		if (len)
			memcpy(to + i, from + i, len);
		else
			to[i] = '?';
	}
	to[n] = '\0';
}

static char *room(struct wp_strpool *pool, size_t need)
{
	struct wp_strpool_chunk *chunk = pool->chunks;
	size_t cap = need > CHUNK ? need : CHUNK;

	if (!chunk || chunk->cap - chunk->len < need) {
		chunk = malloc(sizeof(*chunk) + cap);
		if (!chunk)
			return NULL;
		chunk->next = pool->chunks;
		chunk->len = 0;
		chunk->cap = cap;
		pool->chunks = chunk;
	}
	return chunk->text + chunk->len;
}

const char *wp_strpool_add(struct wp_strpool *pool, const char *s, size_t n)
{
	uint64_t hash;
	uint32_t at;
	char *text;

	n = strnlen(s, n);
	text = room(pool, n + 1);
	if (!text)
		return NULL;
	/* The copy becomes the string only if the pool does not have it yet. */
	copy_clean(text, s, n);
	hash = wp_hash_bytes(0, text, n);
	at = WP_INDEX_FIND(&pool->index, hash, i, !strcmp(pool->v[i], text));
	if (at != WP_INDEX_NONE)
		return pool->v[at];
	if (WP_VEC_ROOM(pool->v, pool->len, pool->cap, 1) ||
	    wp_index_add(&pool->index, hash, pool->len))
		return NULL;
	pool->v[pool->len++] = text;
	pool->chunks->len += n + 1;
	return text;
}

const char *wp_strpool_add_str(struct wp_strpool *pool, const char *s)
{
	return wp_strpool_add(pool, s, strlen(s));
}

void wp_strpool_clear(struct wp_strpool *pool)
{
	struct wp_strpool_chunk *chunk = pool->chunks, *next;

	for (; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(pool->v);
	wp_index_clear(&pool->index);
	*pool = (struct wp_strpool)WP_STRPOOL_INIT;
}
