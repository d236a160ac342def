/* SPDX-License-Identifier: Apache-2.0 */
/* elf_file.c - see elf_file.h. */
#include "elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <string.h>

static void read_loads(struct wp_elf_file *file)
{
	size_t n;

	file->nloads = 0;
	if (elf_getphdrnum(file->elf, &n))
		return;
	for (size_t i = 0; i < n && file->nloads < WP_ELF_FILE_LOADS_MAX; i++) {
		GElf_Phdr *ph = &file->loads[file->nloads];

		if (gelf_getphdr(file->elf, (int)i, ph) &&
		    ph->p_type == PT_LOAD)
			file->nloads++;
	}
}

static void read_id(struct wp_elf_file *file)
{
	const void *id;
	ssize_t n = dwelf_elf_gnu_build_id(file->elf, &id);

	file->id_len = 0;
	if (n <= 0 || n > WP_ELF_FILE_ID_MAX)
		return;
	memcpy(file->id, id, (size_t)n);
	file->id_len = (uint32_t)n;
}

int wp_elf_file_open(struct wp_elf_file *file)
{
	if (file->elf)
		return 0;
	elf_version(EV_CURRENT);
	file->elf = elf_memory((char *)file->map.data, file->map.size);
	if (!file->elf)
		return -ENOTSUP;
	if (elf_kind(file->elf) != ELF_K_ELF) {
		wp_elf_file_close(file);
		return -ENOTSUP;
	}
	read_loads(file);
	read_id(file);
	return 0;
}

void wp_elf_file_close(struct wp_elf_file *file)
{
	if (file->elf)
		elf_end(file->elf);
	file->elf = NULL;
	wp_file_map_drop(&file->map, 0, 0);
}

void wp_elf_file_trim(struct wp_elf_file *file)
{
	GElf_Ehdr eh;
	size_t n;

	if (!gelf_getehdr(file->elf, &eh) || elf_getshdrnum(file->elf, &n))
		return;
	/* libelf notes in the section headers, in place, which sections it
	 * unpacked. */
	wp_file_map_drop(&file->map, eh.e_shoff, n * eh.e_shentsize);
}

void wp_elf_file_clear(struct wp_elf_file *file)
{
	wp_elf_file_close(file);
	wp_file_map_clear(&file->map);
	*file = (struct wp_elf_file)WP_ELF_FILE_INIT;
}

bool wp_elf_file_svma(const struct wp_elf_file *file, uint64_t off,
		      uint64_t *ret)
{
	for (uint32_t i = 0; i < file->nloads; i++) {
		const GElf_Phdr *ph = &file->loads[i];
		/* mmap works in pages, so a mapping starts before a segment
		 * that does not start on one. */
		uint64_t lead = ph->p_offset & 4095;

		if (off >= ph->p_offset - lead &&
		    (off < ph->p_offset || off - ph->p_offset < ph->p_filesz)) {
			*ret = ph->p_vaddr - ph->p_offset + off;
			return true;
		}
	}
	return false;
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
