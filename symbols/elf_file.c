/* SPDX-License-Identifier: Apache-2.0 */
/* elf_file.c - see elf_file.h. */
#include "elf_file.h"

#include <errno.h>
#include <string.h>

int wp_elf_file_open(struct wp_elf_file *file)
{
	uint8_t *bytes;

	if (file->elf)
		return 0;
	bytes = wp_elf_image_whole(file->image);
	elf_version(EV_CURRENT);
	file->elf = bytes ? elf_memory((char *)bytes, file->image->size) : NULL;
	if (file->elf && elf_kind(file->elf) == ELF_K_ELF)
		return 0;
	wp_elf_file_close(file);
	return -ENOTSUP;
}

void wp_elf_file_close(struct wp_elf_file *file)
{
	if (file->elf)
		elf_end(file->elf);
	file->elf = NULL;
	if (file->image)
		wp_elf_image_drop(file->image, 0, 0);
}

void wp_elf_file_trim(struct wp_elf_file *file)
{
	GElf_Ehdr eh;
	size_t n;

	if (!gelf_getehdr(file->elf, &eh) || elf_getshdrnum(file->elf, &n))
		return;
	/* libelf notes in the section headers, in place, which sections it
	 * unpacked. */
	wp_elf_image_drop(file->image, eh.e_shoff, n * eh.e_shentsize);
}

Elf_Scn *wp_elf_file_section(const struct wp_elf_file *file, const char *name,
			     GElf_Shdr *ret)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (!file->elf || elf_getshdrstrndx(file->elf, &names))
		return NULL;
	while ((scn = elf_nextscn(file->elf, scn))) {
		const char *have;

		if (!gelf_getshdr(scn, ret))
			continue;
		have = elf_strptr(file->elf, names, ret->sh_name);
		if (have && !strcmp(have, name))
			return scn;
	}
	return NULL;
}

bool wp_elf_file_has_symtab(const struct wp_elf_file *file)
{
	GElf_Shdr sh;

	return wp_elf_file_section(file, ".symtab", &sh) &&
	       sh.sh_type == SHT_SYMTAB && sh.sh_entsize &&
	       sh.sh_size > sh.sh_entsize;
}

bool wp_elf_file_has_dwarf(const struct wp_elf_file *file)
{
	GElf_Shdr sh;

	return (wp_elf_file_section(file, ".debug_info", &sh) ||
		wp_elf_file_section(file, ".zdebug_info", &sh)) &&
	       sh.sh_type != SHT_NOBITS && sh.sh_size;
}
