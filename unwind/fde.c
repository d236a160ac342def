/* SPDX-License-Identifier: Apache-2.0 */
/* fde.c - see fde.h.  LSB Core, 10.6 (Exception Frames). */
#include "fde.h"

#include <stdlib.h>
#include <string.h>

#include "cfi.h"
#include "wallprof/reader.h"

enum {
	/* DW_EH_PE: the format in the low nibble, above it what the value is
	 * relative to. */
	PE_FORMAT = 0x0f,
	PE_UDATA4 = 0x03,
	PE_SDATA4 = 0x0b,
	PE_DATAREL = 0x30,
	HDR_VERSION = 1,
	/* Four bytes, then two words of four, before the table. */
	HDR_TABLE = 12,
	HDR_ENTRY = 8,
};

struct fde {
	uint64_t start_svma;
	uint64_t fde_svma;
};

/* The FDEs of one image, by start. */
struct fde_index {
	/* Borrowed: the key. */
	const struct wp_elf_image *image;
	struct fde *v;
	size_t len;
	size_t cap;
};

struct wp_fde_cache {
	struct fde_index *v;
	size_t len;
	size_t cap;
};

struct wp_fde_cache *wp_fde_cache_new(void)
{
	return calloc(1, sizeof(struct wp_fde_cache));
}

void wp_fde_cache_free(struct wp_fde_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->len; i++)
		free(cache->v[i].v);
	free(cache->v);
	free(cache);
}

/* Room for one more in V of CAP elements of SIZE bytes: the array, moved
 * perhaps, or NULL. */
static void *grow(void *v, size_t len, size_t *cap, size_t size)
{
	size_t want = *cap ? *cap * 2 : 16;
	void *bigger;

	if (len < *cap)
		return v;
	bigger = reallocarray(v, want, size);
	if (bigger)
		*cap = want;
	return bigger;
}

/* The search table of .eh_frame_hdr, as entries and the file offset of the
 * first: false if there is none that linkers are known to write. */
static bool find_table(struct wp_elf_image *image, uint64_t *ret_off,
		       uint64_t *ret_len)
{
	const struct wp_elf_range *hdr = &image->eh_frame_hdr;
	struct wp_reader r;
	uint8_t version, eh_frame_enc, count_enc, table_enc;

	if (hdr->size < HDR_TABLE)
		return false;
	r = wp_reader_of(wp_elf_image_at(image, hdr->off, HDR_TABLE),
			 HDR_TABLE);
	version = wp_read_u8(&r);
	eh_frame_enc = wp_read_u8(&r);
	count_enc = wp_read_u8(&r);
	table_enc = wp_read_u8(&r);
	wp_read_u32(&r);
	*ret_len = wp_read_u32(&r);
	*ret_off = hdr->off + HDR_TABLE;
	return !r.failed && version == HDR_VERSION &&
	       (eh_frame_enc & PE_FORMAT) == PE_SDATA4 &&
	       count_enc == PE_UDATA4 &&
	       table_enc == (PE_DATAREL | PE_SDATA4) &&
	       *ret_len <= (hdr->size - HDR_TABLE) / HDR_ENTRY;
}

/* Entry I of the table at TABLE_OFF: where a function starts and its FDE. */
static bool read_table(struct wp_elf_image *image, uint64_t table_off,
		       uint64_t i, struct fde *ret)
{
	const uint8_t *bytes = wp_elf_image_at(image, table_off + i * HDR_ENTRY,
					       HDR_ENTRY);
	uint64_t base_svma = image->eh_frame_hdr.svma;
	int32_t rel[2];

	if (!bytes)
		return false;
	memcpy(rel, bytes, sizeof(rel));
	ret->start_svma = base_svma + (uint64_t)(int64_t)rel[0];
	ret->fde_svma = base_svma + (uint64_t)(int64_t)rel[1];
	return true;
}

static bool search_table(struct wp_elf_image *image, uint64_t table_off,
			 uint64_t len, uint64_t svma, uint64_t *ret_fde_svma)
{
	uint64_t lo = 0, hi = len;
	bool found = false;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;
		struct fde fde;

		if (!read_table(image, table_off, mid, &fde))
			return false;
		if (fde.start_svma > svma) {
			hi = mid;
			continue;
		}
		*ret_fde_svma = fde.fde_svma;
		found = true;
		lo = mid + 1;
	}
	return found;
}

static bool add_fde(struct fde_index *index, uint64_t start_svma,
		    uint64_t fde_svma)
{
	struct fde *v = grow(index->v, index->len, &index->cap, sizeof(*v));

	if (!v)
		return false;
	index->v = v;
	v[index->len++] = (struct fde){ start_svma, fde_svma };
	return true;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	return (x->start_svma > y->start_svma) -
	       (x->start_svma < y->start_svma);
}

static void index_image(struct fde_index *index, struct wp_elf_image *image)
{
	struct wp_cfi_section section = { .image = image,
					  .range = image->eh_frame,
					  .is_exact = true };
	struct wp_cfi_entry entry;

	for (uint64_t off = 0; !wp_cfi_read_entry(&section, off, &entry);
	     off = entry.next_off) {
		struct wp_cfi_fde fde;

		if (entry.is_cie || wp_cfi_parse_fde(&section, off, &fde))
			continue;
		if (!add_fde(index, fde.start_svma, section.range.svma + off))
			break;
	}
	if (index->len)
		qsort(index->v, index->len, sizeof(*index->v), compare_fdes);
}

/* The index of IMAGE, made now if need be; NULL without memory. */
static const struct fde_index *find_index(struct wp_fde_cache *cache,
					  struct wp_elf_image *image)
{
	struct fde_index *v;

	for (size_t i = 0; i < cache->len; i++)
		if (cache->v[i].image == image)
			return &cache->v[i];
	v = grow(cache->v, cache->len, &cache->cap, sizeof(*v));
	if (!v)
		return NULL;
	cache->v = v;
	v += cache->len++;
	*v = (struct fde_index){ .image = image };
	index_image(v, image);
	return v;
}

static bool search_index(const struct fde_index *index, uint64_t svma,
			 uint64_t *ret_fde_svma)
{
	size_t lo = 0, hi = index->len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (index->v[mid].start_svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return false;
	*ret_fde_svma = index->v[lo - 1].fde_svma;
	return true;
}

bool wp_fde_find(struct wp_fde_cache *cache, struct wp_elf_image *image,
		 uint64_t svma, uint64_t *ret_fde_svma)
{
	const struct fde_index *index;
	uint64_t table_off, len;

	if (find_table(image, &table_off, &len))
		return search_table(image, table_off, len, svma, ret_fde_svma);
	if (!image->eh_frame.size)
		return false;
	index = find_index(cache, image);
	return index && search_index(index, svma, ret_fde_svma);
}
