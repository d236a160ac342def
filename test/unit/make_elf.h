/* SPDX-License-Identifier: Apache-2.0 */
/* make_elf.h - ELF files made section by section, for tests of symbols. */
#ifndef WP_TEST_MAKE_ELF_H
#define WP_TEST_MAKE_ELF_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define MAKE_ELF_MACHINE EM_X86_64
#else
#define MAKE_ELF_MACHINE EM_AARCH64
#endif

enum { MAKE_ELF_SECTIONS = 16 };

struct make_section {
	const char *name;
	uint32_t type;
	uint64_t flags;
	uint64_t addr;
	const void *data;
	size_t size;
	/* Index of the section that this one refers to; the first is 1. */
	uint32_t link;
	uint64_t entsize;
};

static inline size_t make_align(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* A file of SECTIONS[0..n) with one executable PT_LOAD that puts the whole file
 * at address 0.  Exactly *RET_SIZE bytes from malloc. */
static inline uint8_t *make_elf(const struct make_section *sections, size_t n,
				size_t *ret_size)
{
	Elf64_Shdr sh[MAKE_ELF_SECTIONS] = { 0 };
	Elf64_Ehdr eh = {
		.e_type = ET_DYN,
		.e_machine = MAKE_ELF_MACHINE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (uint16_t)(n + 2),
		.e_shstrndx = (uint16_t)(n + 1),
	};
	Elf64_Phdr ph = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X };
	char names[512] = "";
	size_t at = make_align(sizeof(eh) + sizeof(ph)), names_len = 1;
	uint8_t *bytes;

	for (size_t i = 0; i < n; i++) {
		sh[i + 1] = (Elf64_Shdr){
			.sh_name = (uint32_t)names_len,
			.sh_type = sections[i].type,
			.sh_flags = sections[i].flags,
			.sh_addr = sections[i].addr,
			.sh_offset = at,
			.sh_size = sections[i].size,
			.sh_link = sections[i].link,
			.sh_entsize = sections[i].entsize,
			.sh_addralign = 8,
		};
		names_len += strlen(strcpy(names + names_len,
					   sections[i].name)) +
			     1;
		if (sections[i].type != SHT_NOBITS)
			at = make_align(at + sections[i].size);
	}
	sh[n + 1] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
				  .sh_offset = at,
				  .sh_size = names_len,
				  .sh_addralign = 1 };
	eh.e_shoff = make_align(at + names_len);
	*ret_size = eh.e_shoff + (n + 2) * sizeof(*sh);
	ph.p_filesz = ph.p_memsz = *ret_size;
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	bytes = calloc(1, *ret_size);
	memcpy(bytes, &eh, sizeof(eh));
	memcpy(bytes + sizeof(eh), &ph, sizeof(ph));
	for (size_t i = 0; i < n; i++)
		if (sections[i].type != SHT_NOBITS)
			memcpy(bytes + sh[i + 1].sh_offset, sections[i].data,
			       sections[i].size);
	memcpy(bytes + at, names, names_len);
	memcpy(bytes + eh.e_shoff, sh, (n + 2) * sizeof(*sh));
	return bytes;
}

/* A symbol table under construction. */
struct make_symbols {
	Elf64_Sym v[64];
	char names[2048];
	size_t len;
	size_t names_len;
};

/* BIND and TYPE are STB_ and STT_; SECTION is the index of its section. */
static inline void make_symbol(struct make_symbols *s, const char *name,
			       int bind, int type, uint16_t section,
			       uint64_t addr, uint64_t size)
{
	if (!s->len) {
		s->len = 1;
		s->names_len = 1;
	}
	s->v[s->len++] = (Elf64_Sym){
		.st_name = (uint32_t)s->names_len,
		.st_info = (unsigned char)ELF64_ST_INFO(bind, type),
		.st_shndx = section,
		.st_value = addr,
		.st_size = size,
	};
	s->names_len += strlen(strcpy(s->names + s->names_len, name)) + 1;
}

#endif
