/* SPDX-License-Identifier: Apache-2.0 */
/* unpacked.c - see unpacked.h. */
#include "unpacked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "wallprof/inflate.h"

enum {
	/* The first section header, of none, and that of their names. */
	OTHERS = 2,
	SECTIONS_MAX = 64,
	ALIGN = 16,
	HUGE = 2 << 20,
};

struct layout {
	/* sections[0..n), as they are in the file, and their headers as they
	 * will be. */
	Elf_Scn *from[SECTIONS_MAX];
	Elf64_Shdr headers[SECTIONS_MAX + OTHERS];
	size_t n;
	/* Where the next goes. */
	uint64_t end;
	bool is_packed;
};

static bool is_debug(const struct wp_elf_file *file, size_t names,
		     const GElf_Shdr *sh)
{
	static const char prefix[] = ".debug_";
	const char *name = elf_strptr(file->elf, names, sh->sh_name);

	return name && sh->sh_type != SHT_NOBITS &&
	       !strncmp(name, prefix, sizeof(prefix) - 1);
}

/* Give SCN a place of SIZE bytes.  False: there is none. */
static bool place(struct layout *layout, Elf_Scn *scn, const GElf_Shdr *sh,
		  uint64_t size, uint64_t max_bytes)
{
	Elf64_Shdr *to = &layout->headers[layout->n + 1];

	if (layout->n == SECTIONS_MAX || size > max_bytes ||
	    layout->end > max_bytes - size)
		return false;
	*to = *sh;
	to->sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	to->sh_offset = layout->end;
	to->sh_size = size;
	to->sh_addralign = 1;
	layout->from[layout->n++] = scn;
	layout->end = (layout->end + size + ALIGN - 1) / ALIGN * ALIGN;
	return true;
}

static bool lay_out(struct layout *layout, const struct wp_elf_file *file,
		    size_t names, uint64_t max_bytes)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(file->elf, scn))) {
		GElf_Chdr ch;
		GElf_Shdr sh;
		uint64_t size;

		if (!gelf_getshdr(scn, &sh) || !is_debug(file, names, &sh))
			continue;
		size = sh.sh_size;
		if (sh.sh_flags & SHF_COMPRESSED) {
			if (!gelf_getchdr(scn, &ch) ||
			    ch.ch_type != ELFCOMPRESS_ZLIB)
				return false;
			size = ch.ch_size;
			layout->is_packed = true;
		}
		if (!place(layout, scn, &sh, size, max_bytes))
			return false;
	}
	scn = elf_getscn(file->elf, names);
	return layout->is_packed && scn &&
	       gelf_getshdr(scn, &layout->headers[layout->n + 1]) &&
	       place(layout, scn, &layout->headers[layout->n + 1],
		     layout->headers[layout->n + 1].sh_size, max_bytes);
}

/* Ask for pages of 2 MiB where BYTES[0..size), which is all written, holds one whole:
 * one fault instead of 512, and nothing is cleared that is not used. */
static void use_huge_pages(uint8_t *bytes, size_t size)
{
	size_t before = -(uintptr_t)bytes % HUGE;

	if (size >= before + HUGE)
		(void)madvise(bytes + before, (size - before) / HUGE * HUGE,
			      MADV_HUGEPAGE);
}

/* Fill BYTES, where HEADER says, with SCN. */
static bool fill(uint8_t *bytes, const Elf64_Shdr *header, Elf_Scn *scn)
{
	const Elf_Data *data = elf_rawdata(scn, NULL);
	uint8_t *to = bytes + header->sh_offset;
	GElf_Shdr sh;

	if (!data || !data->d_buf || !gelf_getshdr(scn, &sh))
		return !header->sh_size;
	if (!(sh.sh_flags & SHF_COMPRESSED)) {
		if (data->d_size < header->sh_size)
			return false;
		memcpy(to, data->d_buf, header->sh_size);
		return true;
	}
	return data->d_size >= sizeof(Elf64_Chdr) &&
	       wp_inflate((const uint8_t *)data->d_buf + sizeof(Elf64_Chdr),
			  data->d_size - sizeof(Elf64_Chdr), to,
			  header->sh_size);
}

static bool write_all(uint8_t *bytes, struct layout *layout,
		      const struct wp_elf_file *file)
{
	Elf64_Ehdr eh;

	if (!gelf_getehdr(file->elf, &eh))
		return false;
	for (size_t i = 0; i < layout->n; i++)
		if (!fill(bytes, &layout->headers[i + 1], layout->from[i]))
			return false;
	eh.e_phoff = eh.e_phnum = 0;
	eh.e_shoff = layout->end;
	eh.e_shnum = (Elf64_Half)(layout->n + 1);
	eh.e_shstrndx = (Elf64_Half)layout->n;
	memcpy(bytes, &eh, sizeof(eh));
	memcpy(bytes + eh.e_shoff, layout->headers,
	       eh.e_shnum * sizeof(*layout->headers));
	return true;
}

int wp_unpacked_open(struct wp_unpacked *ret, const struct wp_elf_file *file,
		     uint64_t max_bytes)
{
	struct layout layout = { .end = sizeof(Elf64_Ehdr) };
	const char *ident = elf_getident(file->elf, NULL);
	size_t names, size;

	*ret = (struct wp_unpacked){ NULL, NULL };
	if (!ident || ident[EI_CLASS] != ELFCLASS64 ||
	    elf_getshdrstrndx(file->elf, &names) ||
	    !lay_out(&layout, file, names, max_bytes))
		return -ENOTSUP;
	size = (size_t)layout.end + (layout.n + 1) * sizeof(*layout.headers);
	ret->bytes = malloc(size);
	if (!ret->bytes)
		return -ENOMEM;
	use_huge_pages(ret->bytes, size);
	if (write_all(ret->bytes, &layout, file))
		ret->elf = elf_memory((char *)ret->bytes, size);
	if (ret->elf)
		return 0;
	wp_unpacked_close(ret);
	return -ENOTSUP;
}

void wp_unpacked_close(struct wp_unpacked *unpacked)
{
	if (unpacked->elf)
		elf_end(unpacked->elf);
	free(unpacked->bytes);
	*unpacked = (struct wp_unpacked){ NULL, NULL };
}
