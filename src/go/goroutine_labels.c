/* SPDX-License-Identifier: Apache-2.0 */
/* goroutine_labels.c - profiler labels, which are never changed once set.
 *
 * g.labels points to a map[string]string up to Go 1.23 (runtime/map.go, hmap and
 * bmap; internal/abi/map.go), to a slice of pairs since (runtime/pprof/label.go,
 * LabelSet).
 */
#include <errno.h>
#include <stdlib.h>

#include "go_program_priv.h"
#include "wallprof/budget.h"
#include "wallprof/vec.h"

enum {
	WORD = 8,
	/* Labels of one goroutine that are read; all that goroutines have; bytes of
	 * a key or value that are kept; what a string takes beside its text. */
	LABELS_MAX = 64,
	ALL_LABELS_MAX = 1 << 22,
	TEXT_MAX = 256,
	STRING_BYTES = 24,
	/* A pair of strings. */
	PAIR = 4 * WORD,
	/* hmap: where the logarithm of the number of buckets and the buckets
	 * are. */
	MAP_B = 9,
	MAP_BUCKETS = 16,
	MAP = 24,
	MAP_B_MAX = 4,
	/* bmap: a byte per entry, which tells whether it is used; keys, values;
	 * the next. */
	ENTRIES = 8,
	USED_MIN = 5,
	KEYS = 8,
	VALUES = KEYS + ENTRIES * 16,
	OVERFLOW = VALUES + ENTRIES * 16,
	BUCKET = OVERFLOW + WORD,
	CHAIN_MAX = 16,
};

struct labels {
	struct wp_go_program *program;
	struct wp_intern *strings;
	struct wp_goroutines *all;
	/* Those of the goroutine: read, and kept of them. */
	uint32_t nread;
	uint32_t n;
};

/* A program may give its goroutines new labels all the time. */
static bool has_room(const struct wp_intern *strings)
{
	return strings->text_len + strings->len * (uint64_t)STRING_BYTES <
	       wp_budget_share(WP_BUDGET_LABELS);
}

static uint32_t intern(struct wp_intern *strings, const char *text)
{
	uint32_t id;

	if (has_room(strings))
		return wp_intern_add_str(strings, text);
	id = wp_intern_find(strings, text);
	return id == UINT32_MAX ?
		       wp_intern_add_str(strings, "[dropped: memory]") :
		       id;
}

/* The id of the string whose pointer and length are at HEADER; UINT32_MAX
 * without memory.  Unreadable, it is "". */
static uint32_t read_text(struct labels *labels, const uint8_t *header)
{
	char text[TEXT_MAX + 1];
	uint64_t len = wp_go_u64(header, WORD);

	if (len > TEXT_MAX)
		len = TEXT_MAX;
	if (!wp_go_memory_read_at(&labels->program->memory,
				  wp_go_u64(header, 0), text, len))
		len = 0;
	text[len] = '\0';
	return intern(labels->strings, text);
}

static int add_pair(struct labels *labels, const uint8_t *key,
		    const uint8_t *value)
{
	struct wp_goroutines *all = labels->all;
	struct wp_goroutine_label label;

	if (labels->nread == LABELS_MAX || all->nlabels >= ALL_LABELS_MAX)
		return 0;
	labels->nread++;
	label.key = read_text(labels, key);
	label.value = read_text(labels, value);
	if (label.key == UINT32_MAX || label.value == UINT32_MAX ||
	    WP_VEC_ROOM(all->labels, all->nlabels, all->cap_labels, 1))
		return -ENOMEM;
	if (!label.key)
		return 0;
	all->labels[all->nlabels++] = label;
	labels->n++;
	return 0;
}

static int read_list(struct labels *labels, uint64_t avma)
{
	struct wp_go_memory *memory = &labels->program->memory;
	uint64_t slice[2];
	uint8_t pair[PAIR];
	int rc = 0;

	if (!wp_go_memory_read_at(memory, avma, slice, sizeof(slice)))
		return 0;
	for (uint64_t i = 0; !rc && i < slice[1] && i < LABELS_MAX; i++) {
		if (!wp_go_memory_read_at(memory, slice[0] + i * PAIR, pair,
					  PAIR))
			break;
		rc = add_pair(labels, pair, pair + 2 * WORD);
	}
	return rc;
}

static int read_bucket(struct labels *labels, uint64_t avma)
{
	uint8_t bucket[BUCKET];
	int rc = 0;

	for (int chain = 0; !rc && avma && chain < CHAIN_MAX; chain++) {
		if (!wp_go_memory_read_at(&labels->program->memory, avma,
					  bucket, BUCKET))
			break;
		for (size_t i = 0; !rc && i < ENTRIES; i++)
			if (bucket[i] >= USED_MIN)
				rc = add_pair(labels, bucket + KEYS + i * 16,
					      bucket + VALUES + i * 16);
		avma = wp_go_u64(bucket, OVERFLOW);
	}
	return rc;
}

static int read_map(struct labels *labels, uint64_t avma)
{
	struct wp_go_memory *memory = &labels->program->memory;
	uint64_t map_avma, buckets_avma;
	uint8_t map[MAP];
	int rc = 0;

	if (!wp_go_memory_read_at(memory, avma, &map_avma, WORD) || !map_avma ||
	    !wp_go_memory_read_at(memory, map_avma, map, MAP) ||
	    map[MAP_B] > MAP_B_MAX)
		return 0;
	buckets_avma = wp_go_u64(map, MAP_BUCKETS);
	for (uint64_t i = 0; !rc && buckets_avma && i < 1u << map[MAP_B]; i++)
		rc = read_bucket(labels, buckets_avma + i * BUCKET);
	return rc;
}

/* Maps have no order. */
static int compare_labels(const void *a, const void *b, void *ctx)
{
	const struct wp_intern *strings = ctx;
	const struct wp_goroutine_label *x = a, *y = b;
	int order = strcmp(wp_intern_str(strings, x->key),
			   wp_intern_str(strings, y->key));

	return order ? order : (x->value > y->value) - (x->value < y->value);
}

int wp_goroutine_labels_read(struct wp_go_program *program,
			     uint64_t labels_avma, struct wp_intern *strings,
			     struct wp_goroutines *goroutines,
			     uint32_t *ret_first, uint32_t *ret_n)
{
	struct labels labels = {
		.program = program,
		.strings = strings,
		.all = goroutines,
	};
	uint32_t first = goroutines->nlabels;
	int rc = program->layout->has_label_list ?
			 read_list(&labels, labels_avma) :
			 read_map(&labels, labels_avma);

	if (rc)
		return rc;
	if (labels.n)
		qsort_r(goroutines->labels + first, labels.n,
			sizeof(*goroutines->labels), compare_labels, strings);
	*ret_first = first;
	*ret_n = labels.n;
	return 0;
}
