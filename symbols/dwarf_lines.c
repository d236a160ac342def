/* SPDX-License-Identifier: Apache-2.0 */
/* dwarf_lines.c - see dwarf_lines.h.
 *
 * libdw parses; what is walked, how far, and what is kept is decided here:
 * libdw keeps every line table that it decoded until it is closed, so it is
 * closed and opened again when there are too many.
 */
#include "dwarf_lines.h"

#include <dwarf.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/reader.h"
#include "wallprof/symbols.h"
#include "wallprof/vec.h"

enum {
	/* Blocks and inlined functions around one address. */
	DEPTH_MAX = 512,
	/* Lines that libdw may hold, of about 50 bytes each. */
	LINES_MAX = 50000,
	/* The line program of one unit: a line may take one byte. */
	LINE_PROGRAM_MAX = 16 << 20,
};

void wp_dwarf_open(struct wp_dwarf *dwarf, struct wp_elf_file *file,
		   struct wp_elf_file *alt)
{
	*dwarf = (struct wp_dwarf)WP_DWARF_INIT;
	dwarf->file = file;
	dwarf->alt = alt;
}

/* Free all that libdw holds. */
static void forget(struct wp_dwarf *dwarf)
{
	if (dwarf->dw)
		dwarf_end(dwarf->dw);
	if (dwarf->alt_dw)
		dwarf_end(dwarf->alt_dw);
	dwarf->dw = dwarf->alt_dw = NULL;
	dwarf->functions_unit = 0;
	dwarf->functions.len = 0;
	dwarf->nseen = 0;
	dwarf->nlines = 0;
}

void wp_dwarf_close(struct wp_dwarf *dwarf)
{
	forget(dwarf);
	/* Unpacked sections belong to the ELF handle. */
	if (dwarf->file)
		wp_elf_file_close(dwarf->file);
	if (dwarf->alt)
		wp_elf_file_close(dwarf->alt);
	wp_unpacked_close(&dwarf->unpacked);
	wp_unpacked_close(&dwarf->alt_unpacked);
	wp_dwarf_ranges_clear(&dwarf->units);
	wp_dwarf_ranges_clear(&dwarf->functions);
	free(dwarf->seen);
	*dwarf = (struct wp_dwarf)WP_DWARF_INIT;
}

/* The size of the section SCN, called NAME with the header SH, once libdw has unpacked
 * it; 0: it is not compressed. */
static uint64_t unpacked_size(Elf_Scn *scn, const GElf_Shdr *sh,
			      const char *name)
{
	static const char magic[] = "ZLIB";
	const Elf_Data *data;
	uint64_t be;
	GElf_Chdr ch;

	if (sh->sh_type == SHT_NOBITS)
		return 0;
	if (sh->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(scn, &ch) ? ch.ch_size : 0;
	/* GNU's form before SHF_COMPRESSED: the magic and the size, big-endian. */
	data = name && !strncmp(name, ".zdebug_", strlen(".zdebug_")) ?
		       elf_rawdata(scn, NULL) :
		       NULL;
	if (!data || !data->d_buf ||
	    data->d_size < sizeof(magic) - 1 + sizeof(be) ||
	    memcmp(data->d_buf, magic, sizeof(magic) - 1))
		return 0;
	memcpy(&be, (const char *)data->d_buf + sizeof(magic) - 1, sizeof(be));
	return be64toh(be);
}

/* Whether the compressed sections of FILE unpack to at most WP_DWARF_BYTES_MAX. */
static bool is_bounded(const struct wp_elf_file *file)
{
	uint64_t left = WP_DWARF_BYTES_MAX;
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return true;
	while ((scn = elf_nextscn(file->elf, scn))) {
		GElf_Shdr sh;
		uint64_t size;

		if (!gelf_getshdr(scn, &sh))
			continue;
		size = unpacked_size(scn, &sh,
				     elf_strptr(file->elf, names, sh.sh_name));
		if (size > left)
			return false;
		left -= size;
	}
	return true;
}

/* Hide sections about variables, and indexes by name, from libdw, which would unpack
 * them: of Go programs they are half of all.  The mapping is private, so the change is,
 * too. */
static void hide_unused(struct wp_elf_file *file)
{
	static const char *const unused[] = {
		".debug_loc",	       ".debug_loclists",
		".debug_frame",	       ".debug_macro",
		".debug_macinfo",      ".debug_names",
		".debug_pubnames",     ".debug_pubtypes",
		".debug_gnu_pubnames", ".debug_gnu_pubtypes",
		".zdebug_loc",	       ".zdebug_frame",
		".zdebug_pubnames",    ".zdebug_pubtypes",
	};

	for (size_t i = 0; i < sizeof(unused) / sizeof(*unused); i++) {
		GElf_Shdr sh;
		Elf_Scn *scn = wp_elf_file_section(file, unused[i], &sh);

		if (!scn)
			continue;
		sh.sh_type = SHT_NOBITS;
		gelf_update_shdr(scn, &sh);
	}
}

/* NULL if it cannot be read, for which DWARF tells why. */
static Dwarf *begin(struct wp_dwarf *dwarf, struct wp_elf_file *file,
		    struct wp_unpacked *unpacked)
{
	if (wp_elf_file_open(file))
		return NULL;
	hide_unused(file);
	if (!is_bounded(file)) {
		wp_dwarf_lose(dwarf, WP_DWARF_TOO_LARGE);
		return NULL;
	}
	/* Libelf does it where this does not. */
	if (!unpacked->elf)
		(void)!wp_unpacked_open(unpacked, file, WP_DWARF_BYTES_MAX);
	return dwarf_begin_elf(unpacked->elf ? unpacked->elf : file->elf,
			       DWARF_C_READ, NULL);
}

/* .debug_line of DWARF, or NULL. */
static Elf_Data *find_line_data(const struct wp_dwarf *dwarf)
{
	const struct wp_elf_file sections = {
		.elf = dwarf->unpacked.elf ? dwarf->unpacked.elf :
					     dwarf->file->elf,
	};
	GElf_Shdr sh;
	Elf_Scn *scn = wp_elf_file_section(&sections, ".debug_line", &sh);

	if (!scn)
		scn = wp_elf_file_section(&sections, ".zdebug_line", &sh);
	return scn ? elf_getdata(scn, NULL) : NULL;
}

static bool start(struct wp_dwarf *dwarf)
{
	Dwarf_CU *cu;

	dwarf->dw = begin(dwarf, dwarf->file, &dwarf->unpacked);
	/* Without sections that it could not unpack libdw finds no unit. */
	if (!dwarf->dw ||
	    dwarf_get_units(dwarf->dw, NULL, &cu, NULL, NULL, NULL, NULL))
		return false;
	if (dwarf->alt) {
		dwarf->alt_dw = begin(dwarf, dwarf->alt, &dwarf->alt_unpacked);
		if (!dwarf->alt_dw)
			return false;
		dwarf_setalt(dwarf->dw, dwarf->alt_dw);
	}
	dwarf->line_data = find_line_data(dwarf);
	/* The compressed bytes. */
	wp_elf_file_trim(dwarf->file);
	return true;
}

static bool be_ready(struct wp_dwarf *dwarf)
{
	if (!dwarf->file)
		return false;
	if (!dwarf->dw && !start(dwarf)) {
		enum wp_dwarf_loss loss = dwarf->loss;

		/* Do not try again. */
		wp_dwarf_close(dwarf);
		dwarf->loss = WP_DWARF_UNREADABLE;
		wp_dwarf_lose(dwarf, loss);
		return false;
	}
	return true;
}

static bool is_seen(const struct wp_dwarf *dwarf, Dwarf_Off unit)
{
	for (uint32_t i = dwarf->nseen; i-- > 0;)
		if (dwarf->seen[i] == unit)
			return true;
	return false;
}

/* The unit of SVMA, with room for its lines. */
static int get_unit(struct wp_dwarf *dwarf, uint64_t svma, Dwarf_Die *ret)
{
	int rc = wp_dwarf_find_unit(dwarf, svma, ret);

	if (rc || dwarf->nlines <= LINES_MAX ||
	    is_seen(dwarf, dwarf_dieoffset(ret)))
		return rc;
	forget(dwarf);
	return be_ready(dwarf) ? wp_dwarf_find_unit(dwarf, svma, ret) : -ENOENT;
}

/* Whether UNIT's line program is at most LINE_PROGRAM_MAX (DWARF 5, 6.2.4). */
static bool line_program_ok(struct wp_dwarf *dwarf, Dwarf_Die *unit)
{
	const Elf_Data *data = dwarf->line_data;
	Dwarf_Attribute attr;
	struct wp_reader r;
	Dwarf_Word off;
	uint64_t len;

	if (!data || !data->d_buf ||
	    !dwarf_attr(unit, DW_AT_stmt_list, &attr) ||
	    dwarf_formudata(&attr, &off) || off > data->d_size)
		return false;
	r = wp_reader_of((const uint8_t *)data->d_buf + off,
			 data->d_size - off);
	len = wp_read_u32(&r);
	if (len == UINT32_MAX)
		len = wp_read_u64(&r);
	if (!r.failed && len > LINE_PROGRAM_MAX)
		wp_dwarf_lose(dwarf, WP_DWARF_CUT);
	return !r.failed && len <= LINE_PROGRAM_MAX;
}

/* Let libdw read UNIT's lines, and count them. */
static int read_lines(struct wp_dwarf *dwarf, Dwarf_Die *unit)
{
	Dwarf_Off off = dwarf_dieoffset(unit);
	Dwarf_Lines *lines;
	size_t n;

	if (is_seen(dwarf, off))
		return 0;
	if (!line_program_ok(dwarf, unit))
		return -ENOENT;
	if (dwarf_getsrclines(unit, &lines, &n)) {
		wp_dwarf_lose(dwarf, WP_DWARF_UNREADABLE);
		return -ENOENT;
	}
	if (WP_VEC_ROOM(dwarf->seen, dwarf->nseen, dwarf->seen_cap, 1))
		return -ENOMEM;
	dwarf->seen[dwarf->nseen++] = off;
	dwarf->nlines += n;
	return 0;
}

static const char *string_attr(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, name, &attr) ?
		       dwarf_formstring(&attr) :
		       NULL;
}

static uint32_t number_attr(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word val;

	if (!dwarf_attr_integrate(die, name, &attr) ||
	    dwarf_formudata(&attr, &val) || val > INT32_MAX)
		return 0;
	return (uint32_t)val;
}

static void name_level(struct wp_dwarf_level *level, Dwarf_Die *die)
{
	level->linkage = string_attr(die, DW_AT_linkage_name);
	if (!level->linkage)
		level->linkage = string_attr(die, DW_AT_MIPS_linkage_name);
	level->name = dwarf_diename(die);
	level->start_line = number_attr(die, DW_AT_decl_line);
}

/* The innermost block or inlined function directly below *DIE that holds SVMA
 * becomes *DIE. */
static bool descend(struct wp_dwarf *dwarf, Dwarf_Die *die, uint64_t svma)
{
	Dwarf_Die child;

	if (dwarf_child(die, &child))
		return false;
	do {
		int tag = dwarf_tag(&child);

		if (!dwarf->budget) {
			wp_dwarf_lose(dwarf, WP_DWARF_CUT);
			return false;
		}
		dwarf->budget--;
		if ((tag == DW_TAG_inlined_subroutine ||
		     tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
		     tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt) &&
		    dwarf_haspc(&child, svma) > 0) {
			*die = child;
			return true;
		}
	} while (!dwarf_siblingof(&child, &child));
	return false;
}

/* Where the inlined function DIE was called becomes LEVEL's place. */
static void set_call_site(struct wp_dwarf_level *level, Dwarf_Die *die,
			  Dwarf_Files *files)
{
	uint32_t file = number_attr(die, DW_AT_call_file);

	level->file = files ? dwarf_filesrc(files, file, NULL, NULL) : NULL;
	level->line = number_attr(die, DW_AT_call_line);
}

/* Fill RET with the inlined functions of FUNCTION at SVMA, outermost first.  False:
 * there are more inside the last. */
static bool read_levels(struct wp_dwarf *dwarf, Dwarf_Die *function,
			Dwarf_Files *files, uint64_t svma,
			struct wp_dwarf_lines *ret)
{
	Dwarf_Die die = *function;

	ret->n = 1;
	name_level(&ret->levels[0], function);
	for (unsigned int depth = 0; descend(dwarf, &die, svma); depth++) {
		bool is_inlined = dwarf_tag(&die) == DW_TAG_inlined_subroutine;

		if (is_inlined)
			set_call_site(&ret->levels[ret->n - 1], &die, files);
		if (depth == DEPTH_MAX ||
		    (is_inlined && ret->n == WP_DWARF_LEVELS_MAX)) {
			wp_dwarf_lose(dwarf, WP_DWARF_CUT);
			return false;
		}
		if (is_inlined)
			name_level(&ret->levels[ret->n++], &die);
	}
	/* Without a budget nobody looked for more. */
	return dwarf->budget != 0;
}

static void reverse(struct wp_dwarf_lines *lines)
{
	for (uint32_t i = 0, k = lines->n - 1; i < k; i++, k--) {
		struct wp_dwarf_level level = lines->levels[i];

		lines->levels[i] = lines->levels[k];
		lines->levels[k] = level;
	}
}

static void read_starts(Dwarf_Die *function, struct wp_dwarf_lines *ret)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t off = 0;

	while (ret->nstarts < WP_DWARF_STARTS_MAX &&
	       (off = dwarf_ranges(function, off, &base, &start, &end)) > 0)
		ret->starts[ret->nstarts++] = start;
}

/* File and line of SVMA itself; false if the line table does not have it. */
static bool read_place(Dwarf_Die *unit, uint64_t svma,
		       struct wp_dwarf_level *level)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, svma);
	int number;

	if (!line)
		return false;
	level->file = dwarf_linesrc(line, NULL, NULL);
	if (!dwarf_lineno(line, &number) && number > 0)
		level->line = (uint32_t)number;
	return level->file;
}

static int lookup(struct wp_dwarf *dwarf, uint64_t svma,
		  struct wp_dwarf_lines *ret)
{
	Dwarf_Files *files = NULL;
	Dwarf_Die unit, function;
	bool has_lines, has_place, is_whole = true;
	const char *dir;
	int rc;

	rc = get_unit(dwarf, svma, &unit);
	if (rc)
		return rc;
	if (dwarf_hasattr(&unit, DW_AT_dwo_name) ||
	    dwarf_hasattr(&unit, DW_AT_GNU_dwo_name))
		wp_dwarf_lose(dwarf, WP_DWARF_SPLIT);
	rc = read_lines(dwarf, &unit);
	if (rc == -ENOMEM)
		return rc;
	has_lines = !rc;
	if (has_lines && dwarf_getsrcfiles(&unit, &files, NULL))
		files = NULL;
	rc = wp_dwarf_find_function(dwarf, &unit, svma, &function);
	if (rc == -ENOMEM)
		return rc;
	ret->n = 1;
	ret->has_function = !rc;
	if (!rc) {
		is_whole = read_levels(dwarf, &function, files, svma, ret);
		read_starts(&function, ret);
		reverse(ret);
	}
	has_place = has_lines && is_whole &&
		    read_place(&unit, svma, &ret->levels[0]);
	dir = string_attr(&unit, DW_AT_comp_dir);
	for (uint32_t i = 0; i < ret->n; i++)
		ret->levels[i].dir = dir;
	return has_place || ret->has_function ? 0 : -ENOENT;
}

int wp_dwarf_lookup(struct wp_dwarf *dwarf, uint64_t svma,
		    struct wp_dwarf_lines *ret)
{
	*ret = (struct wp_dwarf_lines){ 0 };
	if (!be_ready(dwarf))
		return -ENOENT;
	dwarf->budget = WP_DWARF_DIES_MAX;
	return lookup(dwarf, svma, ret);
}
