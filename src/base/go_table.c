/* SPDX-License-Identifier: Apache-2.0 */
/* go_table.c - see wallprof/go_table.h. */
#include "wallprof/go_table.h"

#include <errno.h>
#include <string.h>

#include "wallprof/lower_bound.h"
#include "wallprof/reader.h"

enum {
	/* Go 1.18; from Go 1.20 on. */
	MAGIC_118 = -16,
	MAGIC_120 = -15,
	POINTER = 8,
	HEADER = 8 + 8 * POINTER,
	/* Where the header has what functions' addresses are offsets from. */
	HEADER_TEXT = 8 + 2 * POINTER,
	/* An entry of the list of functions: its address, and the offset of its
	 * struct _func. */
	ENTRY = 8,
	/* struct _func; from Go 1.20 on it has a line more.  Behind it are the
	 * offsets of its tables by pc and of its other data, of which two are
	 * about inlined functions (internal/abi/symtab.go). */
	FUNC = 40,
	LINE_120 = 4,
	PCDATA_INLINED = 2,
	FUNCDATA_TREE = 3,
	/* A function of Go has 3 tables and a dozen data. */
	PCDATA_MAX = 64,
	TEXT_MAX = 4096,
	/* Words of moduledata: the address of the table; where its first
	 * function begins and its last one ends; what functions' addresses are
	 * offsets from. */
	MODULE_TABLE = 0,
	MODULE_LOW = 20,
	MODULE_HIGH = 21,
	MODULE_TEXT = 22,
	/* Bits of a function's flags. */
	TOP_FRAME = 1,
	SP_WRITE = 2,
	/* Bytes to read of a table by pc at a time. */
	READ_MAX = 4096,
	/* A pair of differences, 5 bytes each at most. */
	PAIR_MAX = 10,
	/* No function's table by pc is longer, and none of frame sizes: the size
	 * changes only where the code moves sp. */
	PAIRS_BYTES_MAX = 1 << 20,
	FRAMES_BYTES_MAX = 1 << 16,
};

/* The bytes [OFF, OFF + LEN) of the section. */
static struct wp_reader read_at(const struct wp_go_table *table, uint64_t off,
				uint64_t len)
{
	const struct wp_elf_range *range = &table->image->go_table;
	const uint8_t *bytes = NULL;

	if (off <= range->size && len <= range->size - off)
		bytes = wp_elf_image_at(table->image, range->off + off, len);
	return wp_reader_of(bytes, (size_t)len);
}

/* Read the start of function I, or with I = nfuncs the end of the last one. */
static int read_entry(const struct wp_go_table *table, uint64_t i,
		      uint64_t *ret_svma)
{
	struct wp_reader r = read_at(table, table->funcs_off + i * ENTRY, 4);
	uint32_t off = wp_read_u32(&r);

	*ret_svma = table->text_svma + off;
	return r.failed ? -EBADMSG : 0;
}

/* The address in word N of the image's moduledata. */
static int read_module(const struct wp_go_table *table, unsigned int n,
		       uint64_t *ret_svma)
{
	const struct wp_elf_range *module = &table->image->go_module;
	const uint64_t off = (uint64_t)n * POINTER;

	return off < module->size && wp_elf_image_word(
					     table->image, module->off + off,
					     module->svma + off, ret_svma) ?
		       0 :
		       -ENOTSUP;
}

/* Set text_svma where the header has none: see wp_go_table_open. */
static int set_text(struct wp_go_table *table)
{
	uint64_t table_svma, low_svma, high_svma, text_svma, svma;

	if (table->text_svma)
		return 0;
	if (read_module(table, MODULE_TABLE, &table_svma) ||
	    read_module(table, MODULE_LOW, &low_svma) ||
	    read_module(table, MODULE_HIGH, &high_svma) ||
	    read_module(table, MODULE_TEXT, &text_svma) ||
	    table_svma != table->image->go_table.svma)
		return -ENOTSUP;
	table->text_svma = text_svma;
	if (read_entry(table, 0, &svma))
		return -EBADMSG;
	if (svma != low_svma)
		return -ENOTSUP;
	if (read_entry(table, table->nfuncs, &svma))
		return -EBADMSG;
	return svma == high_svma ? 0 : -ENOTSUP;
}

int wp_go_table_open(struct wp_go_table *ret, struct wp_elf_image *image)
{
	struct wp_go_table table = { .image = image };
	const uint64_t size = image->go_table.size;
	struct wp_reader r = read_at(&table, 0, HEADER);
	int32_t magic = (int32_t)wp_read_u32(&r);
	uint64_t nfuncs;
	uint8_t pointer;

	wp_read_skip(&r, 2);
	table.quantum = wp_read_u8(&r);
	pointer = wp_read_u8(&r);
	nfuncs = wp_read_u64(&r);
	/* How many files there are. */
	wp_read_skip(&r, POINTER);
	table.text_svma = wp_read_u64(&r);
	table.names_off = wp_read_u64(&r);
	table.units_off = wp_read_u64(&r);
	table.files_off = wp_read_u64(&r);
	table.pctab_off = wp_read_u64(&r);
	table.funcs_off = wp_read_u64(&r);
	if (!size)
		return -ENOENT;
	if (r.failed)
		return -EBADMSG;
	if ((magic != MAGIC_118 && magic != MAGIC_120) || pointer != POINTER)
		return -ENOTSUP;
	if (!table.quantum || table.names_off >= size ||
	    table.pctab_off >= size || table.funcs_off >= size ||
	    nfuncs > (size - table.funcs_off) / (ENTRY + FUNC))
		return -EBADMSG;
	table.nfuncs = (uint32_t)nfuncs;
	table.has_lines = magic == MAGIC_120;
	/* In a library the dynamic linker may be who puts it there. */
	if (!table.text_svma)
		(void)wp_elf_image_word(
			image, image->go_table.off + HEADER_TEXT,
			image->go_table.svma + HEADER_TEXT, &table.text_svma);
	*ret = table;
	return set_text(ret);
}

/* The offset in the section that a function has as OFF in the tables by pc. */
static uint64_t pc_table(const struct wp_go_table *table, uint32_t off)
{
	return off ? table->pctab_off + off : 0;
}

/* Read what follows struct _func, at OFF: about inlined functions. */
static void read_tree(const struct wp_go_table *table, uint64_t off,
		      uint32_t npcdata, uint32_t nfuncdata,
		      struct wp_go_func *ret)
{
	struct wp_reader r;

	ret->inlined_off = 0;
	ret->tree_off = WP_GO_NO_TREE;
	if (npcdata <= PCDATA_INLINED || npcdata > PCDATA_MAX ||
	    nfuncdata <= FUNCDATA_TREE)
		return;
	r = read_at(table, off + PCDATA_INLINED * 4, 4);
	ret->inlined_off = pc_table(table, wp_read_u32(&r));
	r = read_at(table, off + (npcdata + FUNCDATA_TREE) * UINT64_C(4), 4);
	ret->tree_off = wp_read_u32(&r);
	if (r.failed)
		ret->tree_off = WP_GO_NO_TREE;
}

int wp_go_table_func(const struct wp_go_table *table, uint32_t i,
		     struct wp_go_func *ret)
{
	const uint32_t size = FUNC + (table->has_lines ? LINE_120 : 0);
	struct wp_reader r = read_at(
		table, table->funcs_off + (uint64_t)i * ENTRY + 4, 4);
	uint32_t func_off = wp_read_u32(&r), name, npcdata;
	uint8_t flags, nfuncdata;

	if (i >= table->nfuncs || r.failed ||
	    read_entry(table, i, &ret->start_svma) ||
	    read_entry(table, (uint64_t)i + 1, &ret->end_svma))
		return -EBADMSG;
	r = read_at(table, table->funcs_off + func_off, size);
	/* Its address, once more. */
	wp_read_skip(&r, 4);
	name = wp_read_u32(&r);
	/* Arguments; where deferred calls return to. */
	wp_read_skip(&r, 8);
	ret->frames_off = pc_table(table, wp_read_u32(&r));
	ret->files_off = pc_table(table, wp_read_u32(&r));
	ret->lines_off = pc_table(table, wp_read_u32(&r));
	npcdata = wp_read_u32(&r);
	ret->first_file = wp_read_u32(&r);
	ret->start_line = table->has_lines ? wp_read_u32(&r) : 0;
	/* Which function of the runtime it is. */
	wp_read_skip(&r, 1);
	flags = wp_read_u8(&r);
	wp_read_skip(&r, 1);
	nfuncdata = wp_read_u8(&r);
	if (r.failed || ret->end_svma <= ret->start_svma)
		return -EBADMSG;
	read_tree(table, table->funcs_off + func_off + size, npcdata, nfuncdata,
		  ret);
	ret->name_off = table->names_off + name;
	ret->sets_sp = flags & SP_WRITE;
	ret->is_first = flags & TOP_FRAME;
	return 0;
}

int wp_go_table_find(const struct wp_go_table *table, uint64_t svma,
		     struct wp_go_func *ret)
{
	uint64_t start_svma;
	int rc = 0;
	uint32_t n = WP_LOWER_BOUND(
		table->nfuncs, i,
		!rc && !(rc = read_entry(table, (uint32_t)i, &start_svma)) &&
			start_svma <= svma);

	if (rc || !n)
		return rc ? rc : -ENOENT;
	rc = wp_go_table_func(table, n - 1, ret);
	if (rc)
		return rc;
	return svma >= ret->start_svma && svma < ret->end_svma ? 0 : -ENOENT;
}

/* Up to READ_MAX bytes at OFF. */
static struct wp_reader read_most(const struct wp_go_table *table, uint64_t off)
{
	const uint64_t size = table->image->go_table.size;
	uint64_t left = off < size ? size - off : 0;

	return read_at(table, off, left < READ_MAX ? left : READ_MAX);
}

/* As wp_go_table_value, in the first BYTES_MAX bytes.  A table by pc is pairs: what the
 * value grows by (zigzag), and how far that holds.  It begins with -1 at the function's
 * start; growth by 0 in any pair but the first ends it. */
static int find_value(const struct wp_go_table *table,
		      const struct wp_go_func *func, uint64_t off,
		      uint64_t svma, uint64_t bytes_max, int32_t *ret)
{
	uint64_t start_off = off, end_svma = func->start_svma;
	int64_t value = -1;
	struct wp_reader r;

	if (!off)
		return -ENOENT;
	r = read_most(table, off);
	do {
		const uint8_t *pair = r.pos;
		uint64_t grows = wp_read_uleb(&r);

		if (!grows && end_svma != func->start_svma)
			return -ENOENT;
		value += (int32_t)((uint32_t)(grows >> 1) ^
				   -(uint32_t)(grows & 1));
		end_svma += wp_read_uleb(&r) * table->quantum;
		off += (uint64_t)(r.pos - pair);
		if (r.failed || value > INT32_MAX || value < INT32_MIN ||
		    off - start_off > bytes_max)
			return -EBADMSG;
		if (wp_reader_left(&r) < PAIR_MAX)
			r = read_most(table, off);
	} while (end_svma <= svma);
	*ret = (int32_t)value;
	return 0;
}

int wp_go_table_value(const struct wp_go_table *table,
		      const struct wp_go_func *func, uint64_t off,
		      uint64_t svma, int32_t *ret)
{
	return find_value(table, func, off, svma, PAIRS_BYTES_MAX, ret);
}

int wp_go_table_frame(const struct wp_go_table *table,
		      const struct wp_go_func *func, uint64_t svma,
		      uint32_t *ret_size)
{
	int32_t value;
	int rc = find_value(table, func, func->frames_off, svma,
			    FRAMES_BYTES_MAX, &value);

	if (rc || value < 0)
		return rc ? rc : -ENOENT;
	*ret_size = (uint32_t)value;
	return 0;
}

const char *wp_go_table_text(const struct wp_go_table *table, uint64_t off)
{
	const uint64_t size = table->image->go_table.size;
	uint64_t left = off < size ? size - off : 0;
	struct wp_reader r = read_at(table, off,
				     left < TEXT_MAX ? left : TEXT_MAX);

	return wp_read_cstr(&r);
}

const char *wp_go_table_file(const struct wp_go_table *table,
			     const struct wp_go_func *func, uint32_t number)
{
	uint64_t index = (uint64_t)func->first_file + number;
	struct wp_reader r = read_at(table, table->units_off + index * 4, 4);
	uint32_t off = wp_read_u32(&r);

	return r.failed || off == UINT32_MAX ?
		       NULL :
		       wp_go_table_text(table, table->files_off + off);
}
