/* SPDX-License-Identifier: Apache-2.0 */
/* plt.c - names for the slots of procedure linkage tables.
 *
 * No symbol says which function a slot calls.  Its jump goes through a word of
 * the GOT, and the relocation of that word names the function.  Reading the
 * jump works for all layouts (lazy, bound at start, with landing pads).
 */
#include "symtab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/vec.h"

enum { SLOT = 16 };

/* A word of the GOT and what it will point to. */
struct got {
	uint64_t svma;
	/* Of the function itself when it has no symbol (IRELATIVE). */
	uint64_t target;
	/* Index in the dynamic symbols, 0 for none. */
	uint32_t symbol;
};

struct gots {
	struct got *v;
	uint32_t len;
	uint32_t cap;
	/* The dynamic symbols and their section header. */
	Elf_Data *symbols;
	GElf_Shdr symbols_sh;
};

static bool is_got_type(unsigned int machine, uint32_t type)
{
	if (machine == EM_X86_64)
		return type == R_X86_64_JUMP_SLOT ||
		       type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE;
	return machine == EM_AARCH64 &&
	       (type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
		type == R_AARCH64_IRELATIVE);
}

static int add_relocs(struct gots *gots, unsigned int machine, Elf_Scn *scn)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Rela rela;

	for (int i = 0; data && gelf_getrela(data, i, &rela); i++) {
		uint32_t type = (uint32_t)GELF_R_TYPE(rela.r_info);

		if (!is_got_type(machine, type))
			continue;
		if (WP_VEC_ROOM(gots->v, gots->len, gots->cap, 1))
			return -ENOMEM;
		gots->v[gots->len++] = (struct got){
			rela.r_offset, (uint64_t)rela.r_addend,
			(uint32_t)GELF_R_SYM(rela.r_info)
		};
	}
	return 0;
}

static int compare_got(const void *a, const void *b)
{
	const struct got *x = a, *y = b;

	return (x->svma > y->svma) - (x->svma < y->svma);
}

static const struct got *find_got(const struct gots *gots, uint64_t svma)
{
	struct got key = { .svma = svma };

	return gots->len ? bsearch(&key, gots->v, gots->len, sizeof(key),
				   compare_got) :
			   NULL;
}

static int read_relocs(struct gots *gots, Elf *elf, unsigned int machine)
{
	Elf_Scn *scn = NULL;
	int rc = 0;

	while (!rc && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh))
			continue;
		if (sh.sh_type == SHT_DYNSYM) {
			gots->symbols = elf_getdata(scn, NULL);
			gots->symbols_sh = sh;
		} else if (sh.sh_type == SHT_RELA &&
			   (sh.sh_flags & SHF_ALLOC)) {
			rc = add_relocs(gots, machine, scn);
		}
	}
	if (gots->len)
		qsort(gots->v, gots->len, sizeof(*gots->v), compare_got);
	return rc;
}

static uint32_t word(const uint8_t *p)
{
	uint32_t val;

	memcpy(&val, p, sizeof(val));
	return val;
}

/* The GOT word that the slot of LEN bytes at P, svma SVMA, jumps through, 0 if
 * it does not.  "jmp *rel32(%rip)" is ff 25; before it may stand endbr64 and
 * the bnd prefix. */
static uint64_t got_of_x86(const uint8_t *p, size_t len, uint64_t svma)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t i = len >= 8 && !memcmp(p, endbr, sizeof(endbr)) ?
			   sizeof(endbr) :
			   0;

	if (i < len && p[i] == 0xf2)
		i++;
	if (len < i + 6 || p[i] != 0xff || p[i + 1] != 0x25)
		return 0;
	return svma + i + 6 + (uint64_t)(int32_t)word(p + i + 2);
}

/* "adrp x16, page; ldr x17, [x16, #off]", maybe behind "bti c". */
static uint64_t got_of_arm(const uint8_t *p, size_t len, uint64_t svma)
{
	size_t i = len >= 4 && word(p) == 0xd503245f ? 4 : 0;
	uint32_t adrp, ldr;
	uint64_t page;

	if (len < i + 8)
		return 0;
	adrp = word(p + i);
	ldr = word(p + i + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 ||
	    (ldr & 0xffc003ff) != 0xf9400211)
		return 0;
	page = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
	if (page >> 20)
		page |= ~UINT64_C(0) << 21;
	return ((svma + i) & ~UINT64_C(0xfff)) + (page << 12) +
	       ((ldr >> 10 & 0xfff) << 3);
}

/* The name of a slot that jumps through GOT. */
static bool name_slot(const struct wp_symtab *tab, const struct gots *gots,
		      Elf *elf, const struct got *got, char *buf, size_t size)
{
	const struct wp_symtab_entry *entry;
	const char *name = NULL;
	GElf_Sym sym;
	size_t len;

	if (!got->symbol) {
		entry = wp_symtab_at(tab, got->target);
		if (!entry)
			return false;
		len = wp_symtab_name(tab, entry, buf, size - sizeof("@plt"));
		memcpy(buf + len, "@plt", sizeof("@plt"));
		return true;
	}
	if (gots->symbols && got->symbol <= INT32_MAX &&
	    gelf_getsym(gots->symbols, (int)got->symbol, &sym))
		name = elf_strptr(elf, gots->symbols_sh.sh_link, sym.st_name);
	if (!name || !*name)
		return false;
	return (size_t)snprintf(buf, size, "%s@plt", name) < size;
}

static int name_slots(struct wp_symtab *tab, const struct gots *gots, Elf *elf,
		      Elf_Scn *scn, const GElf_Shdr *sh, unsigned int machine)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	bool is_x86 = machine == EM_X86_64;
	/* AArch64's slots are of several sizes, x86's of one per section. */
	size_t len = is_x86 && sh->sh_entsize == 8 ? 8 : SLOT;
	size_t step = is_x86 ? len : 4;
	char name[4096];

	if (!data || !data->d_buf)
		return 0;
	for (size_t at = 0; at < data->d_size; at += step) {
		size_t left = data->d_size - at < len ? data->d_size - at : len;
		const uint8_t *p = (const uint8_t *)data->d_buf + at;
		uint64_t svma = sh->sh_addr + at;
		uint64_t slot = is_x86 ? got_of_x86(p, left, svma) :
					 got_of_arm(p, left, svma);
		const struct got *got = slot ? find_got(gots, slot) : NULL;
		int rc;

		if (!got || !name_slot(tab, gots, elf, got, name, sizeof(name)))
			continue;
		rc = wp_symtab_add_made(tab, svma, (uint32_t)left, name);
		if (rc)
			return rc;
	}
	return 0;
}

int wp_symtab_add_plt(struct wp_symtab *tab, Elf *elf)
{
	struct gots gots = { 0 };
	Elf_Scn *scn = NULL;
	GElf_Ehdr eh;
	size_t names;
	int rc;

	if (!gelf_getehdr(elf, &eh) || elf_getshdrstrndx(elf, &names))
		return 0;
	rc = read_relocs(&gots, elf, eh.e_machine);
	while (!rc && gots.len && (scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;
		const char *name;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS ||
		    !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		name = elf_strptr(elf, names, sh.sh_name);
		/* lld has stubs of indirect functions in a section of their own. */
		if (name &&
		    (!strncmp(name, ".plt", 4) || !strcmp(name, ".iplt")))
			rc = name_slots(tab, &gots, elf, scn, &sh,
					eh.e_machine);
	}
	free(gots.v);
	return rc;
}
