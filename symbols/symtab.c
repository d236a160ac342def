/* SPDX-License-Identifier: Apache-2.0 */
/* symtab.c - see symtab.h. */
#include "symtab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	/* The source of the names in tab->made. */
	SOURCE_MADE = 255,
	SECTIONS_MAX = 64,
	/* Functions that may start between an address and the one around it. */
	NESTED_MAX = 16,
};

/* In wp_symtab_entry.rank. */
enum {
	RANK_NOT_WEAK = 1,
	RANK_NOT_LOCAL = 2,
	RANK_SIZED = 4,
	RANK_FUNC = 8,
	/* It is a variable: the only one of these that is no order. */
	RANK_DATA = 16,
};

/* The address ranges of a file's sections with code, or of those with variables. */
struct sections {
	struct {
		uint64_t start, end;
	} v[SECTIONS_MAX];
	uint32_t len;
};

/* Are variables of the section with header SH written when the program runs?  Those
 * of ".data.rel.ro" are not: they are virtual tables, often very many. */
static bool has_variables(Elf *elf, size_t names, const GElf_Shdr *sh)
{
	const char *name = elf_strptr(elf, names, sh->sh_name);

	return (sh->sh_flags & SHF_WRITE) && !(sh->sh_flags & SHF_TLS) &&
	       !(name && !strncmp(name, ".data.rel.ro", 12));
}

/* Find the sections with code, or with variables: DATA. */
static void find_sections(Elf *elf, bool data, struct sections *ret)
{
	Elf_Scn *scn = NULL;
	size_t names = 0;

	ret->len = 0;
	(void)elf_getshdrstrndx(elf, &names);
	while ((scn = elf_nextscn(elf, scn)) && ret->len < SECTIONS_MAX) {
		GElf_Shdr sh;
		bool wanted;

		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_ALLOC) ||
		    sh.sh_size > UINT64_MAX - sh.sh_addr)
			continue;
		wanted = data ? has_variables(elf, names, &sh) :
				(sh.sh_flags & SHF_EXECINSTR) != 0;
		if (!wanted)
			continue;
		ret->v[ret->len].start = sh.sh_addr;
		ret->v[ret->len++].end = sh.sh_addr + sh.sh_size;
	}
}

/* Bytes from SVMA to the end of that of SECTIONS which holds it, 0 if none does. */
static uint64_t bytes_left(const struct sections *sections, uint64_t svma)
{
	for (uint32_t i = 0; i < sections->len; i++)
		if (svma >= sections->v[i].start && svma < sections->v[i].end)
			return sections->v[i].end - svma;
	return 0;
}

static uint32_t clamp_size(uint64_t size)
{
	return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

static const char *source_text(const struct wp_symtab *tab, unsigned int source,
			       size_t *ret_len)
{
	if (source == SOURCE_MADE) {
		*ret_len = tab->made_len;
		return tab->made;
	}
	*ret_len = tab->sources[source].len;
	return tab->sources[source].text;
}

/* The name in its source; without a NUL if the source is cut. */
static const char *raw_name(const struct wp_symtab *tab,
			    const struct wp_symtab_entry *entry,
			    size_t *ret_len)
{
	size_t len;
	const char *text = source_text(tab, entry->source, &len);

	if (entry->name >= len) {
		*ret_len = 0;
		return "";
	}
	len -= entry->name;
	*ret_len = strnlen(text + entry->name,
			   len < WP_SYMBOL_NAME_MAX ? len : WP_SYMBOL_NAME_MAX);
	return text + entry->name;
}

static int add_entry(struct wp_symtab *tab, const struct wp_symtab_entry *entry)
{
	if (WP_VEC_ROOM(tab->v, tab->len, tab->cap, 1))
		return -ENOMEM;
	tab->v[tab->len++] = *entry;
	return 0;
}

static uint8_t rank_of(const GElf_Sym *sym, bool is_func)
{
	unsigned int bind = GELF_ST_BIND(sym->st_info);

	return (uint8_t)((is_func ? RANK_FUNC : 0) |
			 (sym->st_size ? RANK_SIZED : 0) |
			 (bind != STB_LOCAL ? RANK_NOT_LOCAL : 0) |
			 (bind != STB_WEAK ? RANK_NOT_WEAK : 0));
}

/* Add SYM, a variable of a known size in one of the sections DATA. */
static int add_variable(struct wp_symtab *tab, const GElf_Sym *sym, int source,
			const struct sections *data, uint64_t bias)
{
	uint64_t left = bytes_left(data, sym->st_value);

	if (!sym->st_size || !sym->st_name || left < sym->st_size)
		return 0;
	return add_entry(tab, &(struct wp_symtab_entry){
				      .svma = sym->st_value + bias,
				      .size = clamp_size(sym->st_size),
				      .name = sym->st_name,
				      .source = (uint8_t)source,
				      .rank = rank_of(sym, true) | RANK_DATA,
			      });
}

static int add_symbol(struct wp_symtab *tab, const GElf_Sym *sym, int source,
		      const struct sections *code, uint64_t bias)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info);
	bool is_func = type == STT_FUNC || type == STT_GNU_IFUNC;
	struct wp_symtab_entry entry = {
		.svma = sym->st_value + bias,
		.name = sym->st_name,
		.source = (uint8_t)source,
		.rank = rank_of(sym, is_func),
	};
	uint64_t left = bytes_left(code, sym->st_value);
	const char *name;
	size_t len;

	/* Code that a compiler writes as data, as Poly/ML's does, is an object. */
	if ((!is_func && type != STT_NOTYPE && type != STT_OBJECT) ||
	    sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS || !left)
		return 0;
	/* Labels that assemblers and linkers make for themselves; '$' is the
	 * mark of a mapping symbol (AArch64 ELF ABI, 5.5.1). */
	if (!is_func) {
		name = raw_name(tab, &entry, &len);
		if (!len || name[0] == '$' || name[0] == '.')
			return 0;
	} else if (!sym->st_name) {
		/* Reading all names here would load all their pages. */
		return 0;
	}
	/* A symbol without a size reaches to the section's end for now. */
	if (sym->st_size && sym->st_size < left)
		left = sym->st_size;
	entry.size = clamp_size(left);
	return add_entry(tab, &entry);
}

int wp_symtab_add_text(struct wp_symtab *tab, const char *text, size_t len)
{
	if (tab->nsources == WP_SYMTAB_SOURCES_MAX)
		return -1;
	tab->sources[tab->nsources] = (struct wp_symtab_source){ text, len };
	return (int)tab->nsources++;
}

/* Add the string table of section SYMBOLS: see wp_symtab_add_text. */
static int open_source(struct wp_symtab *tab, const struct wp_elf_file *file,
		       const GElf_Shdr *symbols)
{
	Elf_Scn *scn = elf_getscn(file->elf, symbols->sh_link);
	const struct wp_elf_image *image = file->image;
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh) || sh.sh_type != SHT_STRTAB ||
	    (sh.sh_flags & SHF_COMPRESSED) || sh.sh_offset > image->size ||
	    sh.sh_size > image->size - sh.sh_offset)
		return -1;
	return wp_symtab_add_text(tab, (const char *)image->data + sh.sh_offset,
				  (size_t)sh.sh_size);
}

static int add_section(struct wp_symtab *tab, Elf_Scn *scn, int source,
		       const struct sections *code, const struct sections *data,
		       uint64_t bias)
{
	Elf_Data *table = elf_getdata(scn, NULL);
	GElf_Sym sym;
	int rc = 0;

	if (!table)
		return 0;
	for (int i = 0; !rc && gelf_getsym(table, i, &sym); i++)
		rc = GELF_ST_TYPE(sym.st_info) == STT_OBJECT &&
				     !bytes_left(code, sym.st_value) ?
			     add_variable(tab, &sym, source, data, bias) :
			     add_symbol(tab, &sym, source, code, bias);
	return rc;
}

int wp_symtab_add(struct wp_symtab *tab, const struct wp_elf_file *file,
		  uint32_t type, uint64_t bias)
{
	struct sections code, data;
	Elf_Scn *scn = NULL;
	int rc = 0;

	find_sections(file->elf, false, &code);
	find_sections(file->elf, true, &data);
	while (!rc && (scn = elf_nextscn(file->elf, scn))) {
		GElf_Shdr sh;
		int source;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type ||
		    (sh.sh_flags & SHF_COMPRESSED))
			continue;
		source = open_source(tab, file, &sh);
		if (source >= 0)
			rc = add_section(tab, scn, source, &code, &data, bias);
	}
	return rc;
}

int wp_symtab_add_named(struct wp_symtab *tab, int source, uint64_t svma,
			uint32_t size, uint32_t name)
{
	return add_entry(tab, &(struct wp_symtab_entry){
				      .svma = svma,
				      .size = size,
				      .name = name,
				      .source = (uint8_t)source,
				      .rank = RANK_FUNC | RANK_SIZED,
			      });
}

int wp_symtab_add_made(struct wp_symtab *tab, uint64_t svma, uint32_t size,
		       const char *name)
{
	uint32_t len = (uint32_t)strlen(name) + 1;
	struct wp_symtab_entry entry = {
		.svma = svma,
		.size = size,
		.name = tab->made_len,
		.source = SOURCE_MADE,
		.rank = RANK_FUNC | RANK_SIZED,
	};

	if (WP_VEC_ROOM(tab->made, tab->made_len, tab->made_cap, len))
		return -ENOMEM;
	memcpy(tab->made + tab->made_len, name, len);
	tab->made_len += len;
	return add_entry(tab, &entry);
}

static size_t underscores(const char *name, size_t len)
{
	size_t n = 0;

	while (n < len && name[n] == '_')
		n++;
	return n;
}

/* By address, then the better name first. */
static int compare(const void *a, const void *b, void *ctx)
{
	enum { COARSE = RANK_FUNC | RANK_SIZED | RANK_NOT_LOCAL };
	const struct wp_symtab_entry *x = a, *y = b;
	const char *xname, *yname;
	size_t xlen, ylen, xn, yn;

	if (x->svma != y->svma)
		return x->svma < y->svma ? -1 : 1;
	if ((x->rank & COARSE) != (y->rank & COARSE))
		return (x->rank & COARSE) > (y->rank & COARSE) ? -1 : 1;
	xname = raw_name(ctx, x, &xlen);
	yname = raw_name(ctx, y, &ylen);
	xn = underscores(xname, xlen);
	yn = underscores(yname, ylen);
	if (xn != yn)
		return xn < yn ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	/* "__read" says as much as "__GI___read".  And the same choice whatever
	 * order the file has them in. */
	if (xlen != ylen)
		return xlen < ylen ? -1 : 1;
	return strncmp(xname, yname, xlen);
}

bool wp_symtab_is_sized(const struct wp_symtab_entry *entry)
{
	return entry->rank & RANK_SIZED;
}

bool wp_symtab_is_variable(const struct wp_symtab_entry *entry)
{
	return entry->rank & RANK_DATA;
}

/* Keep the best of each address, and no label inside a function. */
static void thin_out(struct wp_symtab *tab)
{
	uint64_t covered = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < tab->len; i++) {
		const struct wp_symtab_entry *e = &tab->v[i];
		uint64_t end = e->svma + e->size;

		if (n && tab->v[n - 1].svma == e->svma)
			continue;
		if (e->svma < covered &&
		    (!wp_symtab_is_sized(e) || !(e->rank & RANK_FUNC)))
			continue;
		if (wp_symtab_is_sized(e) && (e->rank & RANK_FUNC) &&
		    end > covered)
			covered = end;
		tab->v[n++] = *e;
	}
	tab->len = n;
}

void wp_symtab_finish(struct wp_symtab *tab)
{
	struct wp_symtab_entry *v;

	if (!tab->len)
		return;
	qsort_r(tab->v, tab->len, sizeof(*tab->v), compare, tab);
	thin_out(tab);
	for (uint32_t i = 0; i + 1 < tab->len; i++) {
		uint64_t gap = tab->v[i + 1].svma - tab->v[i].svma;

		if (!wp_symtab_is_sized(&tab->v[i]) && gap < tab->v[i].size)
			tab->v[i].size = (uint32_t)gap;
	}
	tab->nsorted = tab->len;
	v = reallocarray(tab->v, tab->len, sizeof(*v));
	if (v) {
		tab->v = v;
		tab->cap = tab->len;
	}
}

/* How many entries start at or before SVMA. */
static uint32_t upper_bound(const struct wp_symtab *tab, uint64_t svma)
{
	return WP_LOWER_BOUND(tab->nsorted, i, tab->v[i].svma <= svma);
}

const struct wp_symtab_entry *wp_symtab_find(const struct wp_symtab *tab,
					     uint64_t svma)
{
	uint32_t i = upper_bound(tab, svma);

	for (uint32_t n = 0; i > 0 && n < NESTED_MAX; n++) {
		const struct wp_symtab_entry *e = &tab->v[--i];

		if (svma - e->svma < e->size)
			return e;
	}
	return NULL;
}

const struct wp_symtab_entry *wp_symtab_at(const struct wp_symtab *tab,
					   uint64_t svma)
{
	uint32_t i = upper_bound(tab, svma);

	return i && tab->v[i - 1].svma == svma ? &tab->v[i - 1] : NULL;
}

size_t wp_symtab_name(const struct wp_symtab *tab,
		      const struct wp_symtab_entry *entry, char *buf,
		      size_t size)
{
	size_t len;
	const char *name = raw_name(tab, entry, &len);
	const char *at;

	/* Only ours have an '@' that is not a version's. */
	if (entry->source != SOURCE_MADE && len > 1) {
		at = memchr(name + 1, '@', len - 1);
		if (at)
			len = (size_t)(at - name);
	}
	if (len >= size)
		len = size - 1;
	memcpy(buf, name, len);
	buf[len] = '\0';
	return len;
}

void wp_symtab_clear(struct wp_symtab *tab)
{
	free(tab->v);
	free(tab->made);
	*tab = (struct wp_symtab)WP_SYMTAB_INIT;
}
