/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_table.c - see cfi_table.h. */
#include "cfi_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/hash.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	/* DW_EH_PE_omit; _datarel | _sdata4, what every linker writes. */
	PE_OMIT = 0xff,
	PE_TABLE = 0x3b,
	TABLE_ENTRY = 8,
	/* Entries that may share a start: empty functions. */
	SAME_START_MAX = 8,
	INDEX_MAX = 4 << 20,
	/* Entries of a small index. */
	SMALL = 32,
};

/* Sections without a search table are read up to here. */
#define INDEXED_BYTES_MAX (UINT64_C(128) << 20)

/* An FDE, in half the room that two uint64_t would take. */
struct wp_cfi_index_entry {
	/* Where its function starts, from the image's first segment on. */
	uint32_t start;
	/* Where it is, from the section's start on. */
	uint32_t off;
};

static uint64_t index_base(const struct wp_elf_image *image)
{
	return image->nloads ? image->loads[0].svma : 0;
}

/* The rest of the segment from SVMA on, where .eh_frame starts and no section
 * header says where it ends. */
static struct wp_elf_range rest_of_segment(const struct wp_elf_image *image,
					   uint64_t svma)
{
	for (uint32_t i = 0; i < image->nloads; i++) {
		const struct wp_elf_load *load = &image->loads[i];
		uint64_t lead = svma - load->svma;

		if (svma >= load->svma && lead < load->filesz)
			return (struct wp_elf_range){ svma, load->off + lead,
						      load->filesz - lead };
	}
	return (struct wp_elf_range){ 0 };
}

/* LSB 5.0, 10.6.2: version, three encodings, .eh_frame's address, number of
 * table entries, table. */
static void read_hdr(struct wp_cfi_table *table, struct wp_elf_image *image)
{
	struct wp_cfi_section hdr = { image, image->eh_frame_hdr, false, true };
	/* The fields before the table: 4 bytes and two pointers. */
	uint64_t want = hdr.range.size < 20 ? hdr.range.size : 20;
	const uint8_t *start = wp_cfi_section_at(&hdr, 0, want);
	struct wp_reader r = wp_reader_of(start, (size_t)want);
	uint8_t version = wp_read_u8(&r), ptr_enc = wp_read_u8(&r);
	uint8_t count_enc = wp_read_u8(&r), table_enc = wp_read_u8(&r);
	uint64_t eh_frame_svma, count, most;

	if (r.failed || version != 1 ||
	    !wp_cfi_read_pointer(&hdr, &r, ptr_enc, hdr.range.svma,
				 &eh_frame_svma))
		return;
	if (!table->eh_frame.range.size) {
		table->eh_frame.range = rest_of_segment(image, eh_frame_svma);
		table->eh_frame.is_exact = false;
	}
	if (count_enc == PE_OMIT || table_enc != PE_TABLE ||
	    !wp_cfi_read_pointer(&hdr, &r, count_enc, hdr.range.svma, &count))
		return;
	table->hdr_svma = hdr.range.svma;
	table->table_off = hdr.range.off + (uint64_t)(r.pos - start);
	most = (hdr.range.size - (uint64_t)(r.pos - start)) / TABLE_ENTRY;
	table->table_len = count < most ? count : most;
}

void wp_cfi_table_init(struct wp_cfi_table *table, struct wp_elf_image *image)
{
	*table = (struct wp_cfi_table){
		.eh_frame = { image, image->eh_frame, false, true },
		.debug_frame = { image, image->debug_frame, true, true },
	};
	if (image->eh_frame_hdr.size)
		read_hdr(table, image);
}

void wp_cfi_table_clear(struct wp_cfi_table *table)
{
	free(table->eh_index.v);
	free(table->debug_index.v);
	*table = (struct wp_cfi_table){ 0 };
}

/* An entry of the search table. */
struct table_entry {
	uint64_t start_svma;
	uint64_t fde_svma;
};

/* Where REL, from the header on, is: an address of 32 bits wraps. */
static uint64_t svma_of(const struct wp_cfi_table *table, int32_t rel)
{
	uint64_t svma = table->hdr_svma + (uint64_t)(int64_t)rel;

	return wp_elf_image_is_32bit(table->eh_frame.image) ? (uint32_t)svma :
							      svma;
}

/* Entry I of the search table, whose addresses count from the header.  Sets
 * *RET_FAILED, and leaves it otherwise, if the file does not have it. */
static struct table_entry table_entry(const struct wp_cfi_table *table,
				      uint64_t i, bool *ret_failed)
{
	const uint8_t *bytes = wp_elf_image_at(
		table->eh_frame.image, table->table_off + i * TABLE_ENTRY,
		TABLE_ENTRY);
	int32_t rel[2] = { 0, 0 };

	if (bytes)
		memcpy(rel, bytes, sizeof(rel));
	else
		*ret_failed = true;
	return (struct table_entry){
		svma_of(table, rel[0]),
		svma_of(table, rel[1]),
	};
}

/* The number of entries of the search table that start at SVMA or before. */
static uint64_t count_in_table(const struct wp_cfi_table *table, uint64_t svma,
			       bool *ret_failed)
{
	return WP_LOWER_BOUND(table->table_len, i,
			      table_entry(table, i, ret_failed).start_svma <=
				      svma);
}

static bool covers(const struct wp_cfi_fde *fde, uint64_t svma)
{
	return svma >= fde->start_svma && svma < fde->end_svma;
}

/* Parse the FDE at OFF of SECTION: 0 if it covers SVMA, -ENOENT if not. */
static int parse_covering(const struct wp_cfi_section *section, uint64_t off,
			  uint64_t svma, struct wp_cfi_fde *ret)
{
	int rc = wp_cfi_parse_fde(section, off, ret);

	if (rc)
		return rc;
	return covers(ret, svma) ? 0 : -ENOENT;
}

static int find_in_table(struct wp_cfi_table *table, uint64_t svma,
			 struct wp_cfi_fde *ret)
{
	bool failed = false;
	uint64_t i = count_in_table(table, svma, &failed), first_start_svma = 0;

	for (unsigned int n = 0; i && n < SAME_START_MAX && !failed; n++) {
		struct table_entry entry = table_entry(table, --i, &failed);
		int rc;

		if (failed || (n && entry.start_svma != first_start_svma))
			break;
		first_start_svma = entry.start_svma;
		rc = parse_covering(&table->eh_frame,
				    entry.fde_svma - table->eh_frame.range.svma,
				    svma, ret);
		if (rc != -ENOENT)
			return rc;
	}
	return failed ? -EBADMSG : -ENOENT;
}

static int by_start(const void *va, const void *vb)
{
	const struct wp_cfi_index_entry *a = va, *b = vb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->off > b->off) - (a->off < b->off);
}

static int index_add(struct wp_cfi_index *index, size_t *cap,
		     const struct wp_cfi_section *section,
		     const struct wp_cfi_fde *fde, uint64_t off)
{
	uint64_t start = fde->start_svma - index_base(section->image);

	/* Linkers leave FDEs of dropped functions at 0 or -1 (tombstones). */
	if (!fde->start_svma || fde->start_svma >= fde->end_svma ||
	    start > UINT32_MAX || index->len == INDEX_MAX)
		return 0;
	/* An array that grows doubles, and is there twice while it is copied. */
	if (index->len == *cap &&
	    !wp_elf_image_take(section->image,
			       (index->len + SMALL) * sizeof(*index->v)))
		return -ENOSPC;
	if (WP_VEC_ROOM(index->v, index->len, *cap, 1))
		return -ENOMEM;
	index->v[index->len++] = (struct wp_cfi_index_entry){ (uint32_t)start,
							      (uint32_t)off };
	return 0;
}

/* List the FDEs of SECTION, but for those that cannot be parsed or are over a
 * limit or the budget.  An entry without a usable length ends the list.  0 or -ENOMEM. */
static int index_fill(struct wp_cfi_index *index,
		      const struct wp_cfi_section *section)
{
	struct wp_cfi_cie cie = { .off = UINT64_MAX };
	struct wp_cfi_entry entry;
	struct wp_cfi_fde fde;
	size_t cap = 0;
	int rc = 0;

	for (uint64_t off = 0; !rc; off = entry.next_off) {
		if (wp_cfi_next_entry(section, off, &entry) ||
		    entry.off >= INDEXED_BYTES_MAX)
			return 0;
		if (entry.is_cie)
			continue;
		/* FDEs of one CIE stand together, mostly. */
		if (entry.cie_off != cie.off &&
		    wp_cfi_parse_cie(section, entry.cie_off, &cie)) {
			cie.off = UINT64_MAX;
			continue;
		}
		if (!wp_cfi_parse_fde_body(section, &entry, &cie, &fde))
			rc = index_add(index, &cap, section, &fde, entry.off);
	}
	return rc == -ENOSPC ? 0 : rc;
}

static int index_make(struct wp_cfi_index *index,
		      const struct wp_cfi_section *section)
{
	int rc = index_fill(index, section);

	if (rc) {
		/* There may be memory the next time. */
		free(index->v);
		*index = (struct wp_cfi_index){ 0 };
		return rc;
	}
	index->is_made = true;
	if (index->len)
		qsort(index->v, index->len, sizeof(*index->v), by_start);
	return 0;
}

/* Find how many entries of INDEX, made if need be, start at SVMA or before. */
static int count_in_index(struct wp_cfi_index *index,
			  const struct wp_cfi_section *section, uint64_t svma,
			  bool may_index, uint64_t *ret)
{
	uint64_t want = svma - index_base(section->image);
	int rc = index->is_made ? 0 :
		 may_index	? index_make(index, section) :
				  -EAGAIN;

	if (rc)
		return rc;
	*ret = want > UINT32_MAX ?
		       0 :
		       WP_LOWER_BOUND(index->len, i, index->v[i].start <= want);
	return *ret ? 0 : -ENOENT;
}

static int find_in_index(struct wp_cfi_index *index,
			 const struct wp_cfi_section *section, uint64_t svma,
			 bool may_index, struct wp_cfi_fde *ret)
{
	uint64_t n;
	int rc = count_in_index(index, section, svma, may_index, &n);

	return rc ? rc :
		    parse_covering(section, index->v[n - 1].off, svma, ret);
}

int wp_cfi_table_find(struct wp_cfi_table *table, uint64_t svma, bool may_index,
		      struct wp_cfi_fde *ret)
{
	int rc = table->table_len ?
			 find_in_table(table, svma, ret) :
			 find_in_index(&table->eh_index, &table->eh_frame, svma,
				       may_index, ret);
	int debug_rc;

	if (!rc || rc == -EAGAIN || !table->debug_frame.range.size)
		return rc;
	debug_rc = find_in_index(&table->debug_index, &table->debug_frame, svma,
				 may_index, ret);
	return debug_rc && rc != -ENOENT ? rc : debug_rc;
}

int wp_cfi_table_find_last(struct wp_cfi_table *table, uint64_t svma,
			   bool may_index, uint64_t *ret_fde_svma)
{
	bool failed = false;
	uint64_t n;
	int rc;

	if (table->table_len) {
		n = count_in_table(table, svma, &failed);
		if (n)
			*ret_fde_svma =
				table_entry(table, n - 1, &failed).fde_svma;
		return failed ? -EBADMSG : n ? 0 : -ENOENT;
	}
	rc = count_in_index(&table->eh_index, &table->eh_frame, svma, may_index,
			    &n);
	if (!rc)
		*ret_fde_svma = table->eh_frame.range.svma +
				table->eh_index.v[n - 1].off;
	return rc;
}

struct wp_cfi_table *wp_cfi_tables_find_or_add(struct wp_cfi_tables *tables,
					       struct wp_elf_image *image)
{
	uint64_t hash = wp_hash_u64((uintptr_t)image);
	uint32_t found = WP_INDEX_FIND(&tables->by_image, hash, i,
				       tables->v[i]->eh_frame.image == image);
	struct wp_cfi_table *table;

	if (found != WP_INDEX_NONE)
		return tables->v[found];
	if (WP_VEC_ROOM(tables->v, tables->len, tables->cap, 1))
		return NULL;
	table = malloc(sizeof(*table));
	if (!table || wp_index_add(&tables->by_image, hash, tables->len)) {
		free(table);
		return NULL;
	}
	wp_cfi_table_init(table, image);
	tables->v[tables->len++] = table;
	return table;
}

void wp_cfi_tables_clear(struct wp_cfi_tables *tables)
{
	for (uint32_t i = 0; i < tables->len; i++) {
		wp_cfi_table_clear(tables->v[i]);
		free(tables->v[i]);
	}
	free(tables->v);
	wp_index_clear(&tables->by_image);
	*tables = (struct wp_cfi_tables){ 0 };
}
