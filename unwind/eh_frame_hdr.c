/* SPDX-License-Identifier: Apache-2.0 */
/* eh_frame_hdr.c - see eh_frame_hdr.h. */
#include "eh_frame_hdr.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* DW_EH_PE_omit; _datarel | _sdata4, what every linker writes. */
	PE_OMIT = 0xff,
	PE_TABLE = 0x3b,
	TABLE_ENTRY = 8,
	/* Entries that may share a start: empty functions. */
	SAME_START_MAX = 8,
	INDEX_MAX = 4 << 20,
};

/* Sections without a table are read whole, up to this. */
#define INDEXED_BYTES_MAX (UINT64_C(128) << 20)

/* Half of what two uint64_t would take. */
struct wp_cfi_index_entry {
	/* From the image's first segment on. */
	uint32_t start;
	/* From the section's start on. */
	uint32_t off;
};

static uint64_t index_base(const struct wp_elf_image *image)
{
	return image->nloads ? image->loads[0].svma : 0;
}

/* Where no section header says where .eh_frame ends: from SVMA on all the rest
 * of its segment. */
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

/* Entry I of the search table: both addresses count from the header. */
static bool read_table(const struct wp_cfi_table *table, uint64_t i,
		       uint64_t *ret_start_svma, uint64_t *ret_fde_svma)
{
	const uint8_t *bytes = wp_elf_image_at(
		table->eh_frame.image, table->table_off + i * TABLE_ENTRY,
		TABLE_ENTRY);
	int32_t start, fde;

	if (!bytes)
		return false;
	memcpy(&start, bytes, 4);
	memcpy(&fde, bytes + 4, 4);
	*ret_start_svma = table->hdr_svma + (uint64_t)(int64_t)start;
	*ret_fde_svma = table->hdr_svma + (uint64_t)(int64_t)fde;
	return true;
}

static bool covers(const struct wp_cfi_fde *fde, uint64_t svma)
{
	return svma >= fde->start_svma && svma < fde->end_svma;
}

/* Parse the FDE at FDE_SVMA: 0 if it covers SVMA, -ENOENT if not. */
static int try_fde(const struct wp_cfi_section *section, uint64_t fde_svma,
		   uint64_t svma, struct wp_cfi_fde *ret)
{
	int rc = wp_cfi_parse_fde(section, fde_svma - section->range.svma, ret);

	if (rc)
		return rc;
	return covers(ret, svma) ? 0 : -ENOENT;
}

static int find_in_table(struct wp_cfi_table *table, uint64_t svma,
			 struct wp_cfi_fde *ret)
{
	uint64_t lo = 0, hi = table->table_len;
	uint64_t start_svma, fde_svma, first_start_svma = 0;

	/* The number of entries that start at SVMA or below. */
	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (!read_table(table, mid, &start_svma, &fde_svma))
			return -EBADMSG;
		if (start_svma <= svma)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (unsigned int n = 0; lo && n < SAME_START_MAX; n++) {
		int rc;

		if (!read_table(table, --lo, &start_svma, &fde_svma))
			return -EBADMSG;
		if (n && start_svma != first_start_svma)
			break;
		first_start_svma = start_svma;
		rc = try_fde(&table->eh_frame, fde_svma, svma, ret);
		if (rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
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
	if (index->len == *cap) {
		size_t more = *cap ? 2 * *cap : 256;
		void *v = realloc(index->v, more * sizeof(*index->v));

		if (!v)
			return -ENOMEM;
		index->v = v;
		*cap = more;
	}
	index->v[index->len++] = (struct wp_cfi_index_entry){ (uint32_t)start,
							      (uint32_t)off };
	return 0;
}

/* List the FDEs of SECTION.  What cannot be parsed, or is over a limit, is left
 * out; what cannot be passed over ends the list.  0 or -ENOMEM. */
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
	return rc;
}

static int index_make(struct wp_cfi_index *index,
		      const struct wp_cfi_section *section)
{
	int rc = index_fill(index, section);

	if (rc) {
		/* Memory may be there the next time. */
		free(index->v);
		*index = (struct wp_cfi_index){ 0 };
		return rc;
	}
	index->is_made = true;
	if (index->len)
		qsort(index->v, index->len, sizeof(*index->v), by_start);
	return 0;
}

static int find_in_index(struct wp_cfi_index *index,
			 const struct wp_cfi_section *section, uint64_t svma,
			 struct wp_cfi_fde *ret)
{
	uint64_t want = svma - index_base(section->image);
	size_t lo = 0, hi;
	int rc;

	rc = index->is_made ? 0 : index_make(index, section);
	if (rc)
		return rc;
	hi = index->len;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (index->v[mid].start <= want)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || want > UINT32_MAX)
		return -ENOENT;
	rc = wp_cfi_parse_fde(section, index->v[lo - 1].off, ret);
	if (rc)
		return rc;
	return covers(ret, svma) ? 0 : -ENOENT;
}

static int find_in_eh_frame(struct wp_cfi_table *table, uint64_t svma,
			    struct wp_cfi_fde *ret)
{
	if (table->table_len)
		return find_in_table(table, svma, ret);
	return find_in_index(&table->eh_index, &table->eh_frame, svma, ret);
}

int wp_cfi_table_find(struct wp_cfi_table *table, uint64_t svma,
		      struct wp_cfi_fde *ret)
{
	int rc, debug_rc;

	rc = find_in_eh_frame(table, svma, ret);
	if (!rc || !table->debug_frame.range.size)
		return rc;
	debug_rc = find_in_index(&table->debug_index, &table->debug_frame, svma,
				 ret);
	return debug_rc && rc != -ENOENT ? rc : debug_rc;
}
