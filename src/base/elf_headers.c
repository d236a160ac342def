/* SPDX-License-Identifier: Apache-2.0 */
/* elf_headers.c - the headers of an ELF file: see wallprof/elf_image.h. */
#include "elf_headers.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "wallprof/go_table.h"
#include "wallprof/inflate.h"
#include "wallprof/reader.h"

enum {
	PHDRS_MAX = 1024,
	/* Bytes of all notes of a file that are looked at. */
	NOTES_MAX = 1 << 16,
	/* "ZLIB" and the length, big-endian (.zdebug_frame). */
	OLD_CHDR = 12,
	/* The Linux kernel's with all its drivers is 20 MiB. */
	PACKED_MAX = 64 << 20,
	/* Alignment of what is unpacked behind the file: a multiple of a page.
	 */
	ALIGN = 1 << 16,
};

/* Look for the build-id in the notes at OFF, if *LEFT bytes, from which they are taken,
 * hold them (gABI, Note Section; NT_GNU_BUILD_ID is 3). */
static void read_notes(struct wp_elf_image *image, uint64_t off, uint64_t len,
		       uint64_t *left)
{
	struct wp_reader r;

	if (image->build_id_len || len > *left)
		return;
	*left -= len;
	r = wp_reader_of(wp_elf_image_at(image, off, len), (size_t)len);
	while (wp_reader_left(&r) >= 12) {
		uint32_t namesz = wp_read_u32(&r);
		uint32_t descsz = wp_read_u32(&r);
		uint32_t type = wp_read_u32(&r);
		const uint8_t *name = r.pos, *desc;

		wp_read_skip(&r, ((uint64_t)namesz + 3) & ~UINT64_C(3));
		desc = r.pos;
		wp_read_skip(&r, ((uint64_t)descsz + 3) & ~UINT64_C(3));
		if (r.failed)
			return;
		if (type == NT_GNU_BUILD_ID && namesz == 4 &&
		    !memcmp(name, "GNU", 4) && descsz <= WP_BUILD_ID_MAX) {
			memcpy(image->build_id, desc, descsz);
			image->build_id_len = descsz;
			return;
		}
	}
}

/* What a 32-bit file has in other places and sizes, as a 64-bit one has it. */
static Elf64_Ehdr widen_ehdr(const uint8_t *bytes)
{
	Elf64_Ehdr to;
	Elf32_Ehdr from;

	memcpy(&from, bytes, sizeof(from));
	to = (Elf64_Ehdr){
		.e_type = from.e_type,
		.e_machine = from.e_machine,
		.e_entry = from.e_entry,
		.e_phoff = from.e_phoff,
		.e_shoff = from.e_shoff,
		.e_phentsize = from.e_phentsize,
		.e_phnum = from.e_phnum,
		.e_shentsize = from.e_shentsize,
		.e_shnum = from.e_shnum,
		.e_shstrndx = from.e_shstrndx,
	};
	memcpy(to.e_ident, from.e_ident, sizeof(to.e_ident));
	return to;
}

static Elf64_Phdr phdr_of(const uint8_t *bytes, bool is_32bit)
{
	Elf64_Phdr to;
	Elf32_Phdr from;

	if (!is_32bit) {
		memcpy(&to, bytes, sizeof(to));
		return to;
	}
	memcpy(&from, bytes, sizeof(from));
	return (Elf64_Phdr){ from.p_type,  from.p_flags, from.p_offset,
			     from.p_vaddr, from.p_paddr, from.p_filesz,
			     from.p_memsz, from.p_align };
}

static Elf64_Shdr shdr_of(const uint8_t *bytes, bool is_32bit)
{
	Elf64_Shdr to;
	Elf32_Shdr from;

	if (!is_32bit) {
		memcpy(&to, bytes, sizeof(to));
		return to;
	}
	memcpy(&from, bytes, sizeof(from));
	return (Elf64_Shdr){ from.sh_name,   from.sh_type,   from.sh_flags,
			     from.sh_addr,   from.sh_offset, from.sh_size,
			     from.sh_link,   from.sh_info,   from.sh_addralign,
			     from.sh_entsize };
}

static int read_phdrs(struct wp_elf_image *image, const Elf64_Ehdr *ehdr,
		      uint64_t *notes_left, struct wp_err *err)
{
	const bool is_32bit = wp_elf_image_is_32bit(image);
	const size_t size = is_32bit ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
	const uint8_t *bytes;

	if ((ehdr->e_phnum && ehdr->e_phentsize != size) ||
	    ehdr->e_phnum > PHDRS_MAX)
		return wp_err_set(err, -EBADMSG, "odd ELF program headers");
	bytes = wp_elf_image_at(image, ehdr->e_phoff, ehdr->e_phnum * size);
	if (!bytes)
		return wp_err_set(err, -EBADMSG,
				  "ELF program headers past the file's end");
	for (unsigned int i = 0; i < ehdr->e_phnum; i++) {
		const Elf64_Phdr ph = phdr_of(bytes + i * size, is_32bit);

		if (ph.p_type == PT_LOAD && image->nloads < WP_ELF_LOADS_MAX)
			image->loads[image->nloads++] = (struct wp_elf_load){
				ph.p_vaddr, ph.p_offset, ph.p_filesz,
				ph.p_memsz, ph.p_flags
			};
		else if (ph.p_type == PT_GNU_EH_FRAME)
			image->eh_frame_hdr = (struct wp_elf_range){
				ph.p_vaddr, ph.p_offset, ph.p_filesz
			};
		else if (ph.p_type == PT_NOTE)
			read_notes(image, ph.p_offset, ph.p_filesz, notes_left);
	}
	return 0;
}

/* Parse the header of the compressed section at OFF: where its compressed bytes
 * are and their unpacked size.  False if it is not compressed by zlib.  gABI,
 * Section Compression; IS_OLD: GNU's form before that, sections named .z* with
 * a header without a type. */
static bool read_chdr(struct wp_elf_image *image, uint64_t off, uint64_t size,
		      bool is_old, struct wp_elf_packed *ret)
{
	const bool is_32bit = wp_elf_image_is_32bit(image);
	uint64_t lead = is_old	 ? OLD_CHDR :
			is_32bit ? sizeof(Elf32_Chdr) :
				   sizeof(Elf64_Chdr);
	const uint8_t *bytes = size > lead ? wp_elf_image_at(image, off, lead) :
					     NULL;
	Elf32_Chdr ch32;
	Elf64_Chdr ch;
	uint64_t be;

	if (!bytes)
		return false;
	ret->src_off = off + lead;
	ret->src_size = size - lead;
	if (is_old) {
		memcpy(&be, bytes + 4, sizeof(be));
		ret->size = be64toh(be);
		return !memcmp(bytes, "ZLIB", 4);
	}
	if (is_32bit) {
		memcpy(&ch32, bytes, sizeof(ch32));
		ch = (Elf64_Chdr){ .ch_type = ch32.ch_type,
				   .ch_size = ch32.ch_size };
	} else {
		memcpy(&ch, bytes, sizeof(ch));
	}
	ret->size = ch.ch_size;
	return ch.ch_type == ELFCOMPRESS_ZLIB;
}

/* Reserve address space behind the file for .debug_frame, which is compressed
 * at OFF; memory is used only when it is unpacked.  Moves image->data. */
static void reserve_packed(struct wp_elf_image *image, uint64_t off,
			   uint64_t size, bool is_old)
{
	struct wp_elf_packed packed = { 0 };
	void *moved;

	if (!read_chdr(image, off, size, is_old, &packed) || !packed.size ||
	    packed.size > PACKED_MAX ||
	    packed.size / WP_INFLATE_RATIO_MAX > packed.src_size ||
	    packed.src_size > wp_elf_image_left(image, packed.src_off))
		return;
	/* Not at SIZE itself, which is a valid offset of the file. */
	packed.off = (image->size & ~(uint64_t)(ALIGN - 1)) + ALIGN;
	moved = mremap(image->data, (size_t)image->reserved,
		       (size_t)(packed.off + packed.size), MREMAP_MAYMOVE);
	if (moved == MAP_FAILED)
		return;
	image->data = moved;
	image->reserved = packed.off + packed.size;
	image->packed = packed;
	image->debug_frame = (struct wp_elf_range){ 0, packed.off,
						    packed.size };
}

/* A scan over the section headers. */
struct sections {
	struct wp_elf_image *image;
	/* As read_notes has it; borrowed. */
	uint64_t *notes_left;
	/* The header of the section that holds the names of sections. */
	Elf64_Shdr names;
	/* Compressed .debug_frame, SIZE 0: none; IS_OLD: as .zdebug_frame. */
	struct wp_elf_range packed;
	bool is_old;
	/* By table of symbols: number of the section of its names. */
	uint32_t names_of[WP_ELF_SYMBOL_TABLES];
};

static bool is_called(const struct sections *s, const Elf64_Shdr *sh,
		      const char *name)
{
	size_t len = strlen(name) + 1;
	const uint8_t *bytes;

	if (sh->sh_name >= s->names.sh_size)
		return false;
	bytes = wp_elf_image_at(s->image, s->names.sh_offset + sh->sh_name,
				len);
	return bytes && !memcmp(bytes, name, len);
}

static void note_section(struct sections *s, const Elf64_Shdr *sh)
{
	const struct wp_elf_range range = { sh->sh_addr, sh->sh_offset,
					    sh->sh_size };

	if (is_called(s, sh, ".eh_frame")) {
		s->image->eh_frame = range;
	} else if (is_called(s, sh, ".eh_frame_hdr")) {
		if (!s->image->eh_frame_hdr.size)
			s->image->eh_frame_hdr = range;
	} else if (is_called(s, sh, ".zdebug_frame")) {
		s->packed = range;
		s->is_old = true;
	} else if (is_called(s, sh, ".debug_frame")) {
		if (sh->sh_flags & SHF_COMPRESSED)
			s->packed = range;
		else
			s->image->debug_frame = range;
	} else if (sh->sh_type == SHT_NOTE) {
		read_notes(s->image, sh->sh_offset, sh->sh_size, s->notes_left);
	} else if (wp_elf_image_is_32bit(s->image)) {
		/* What follows is asked of 64-bit programs alone. */
		return;
	} else if (sh->sh_type == SHT_DYNSYM || sh->sh_type == SHT_SYMTAB) {
		int table = sh->sh_type == SHT_SYMTAB;

		s->image->symbols[table].entries = range;
		s->names_of[table] = sh->sh_link;
	} else if (is_called(s, sh, ".rela.dyn")) {
		s->image->rela = range;
	} else if (is_called(s, sh, ".rela.plt")) {
		s->image->plt_rela = range;
	} else if (is_called(s, sh, ".go.module")) {
		s->image->go_module = range;
	} else if (is_called(s, sh, ".go.buildinfo")) {
		s->image->go_buildinfo = range;
	} else if (is_called(s, sh, ".noptrdata")) {
		s->image->go_data[0] = range;
	} else if (is_called(s, sh, ".data")) {
		s->image->go_data[1] = range;
	} else if (is_called(s, sh, ".data.rel.ro")) {
		s->image->go_data[2] = range;
	} else if (is_called(s, sh, ".gopclntab") ||
		   is_called(s, sh, ".data.rel.ro.gopclntab")) {
		s->image->go_table = range;
	}
}

/* Find the names of the symbols among the section headers BYTES of EHDR. */
static void find_symbol_names(struct sections *s, const uint8_t *bytes,
			      const Elf64_Ehdr *ehdr)
{
	for (int i = 0; i < WP_ELF_SYMBOL_TABLES; i++) {
		struct wp_elf_symbols *table = &s->image->symbols[i];
		Elf64_Shdr sh;

		if (!table->entries.size || s->names_of[i] >= ehdr->e_shnum)
			continue;
		sh = shdr_of(bytes + (size_t)s->names_of[i] * ehdr->e_shentsize,
			     wp_elf_image_is_32bit(s->image));
		if (sh.sh_type == SHT_STRTAB)
			table->names = (struct wp_elf_range){ sh.sh_addr,
							      sh.sh_offset,
							      sh.sh_size };
	}
}

/* Malformed section headers are no error: a file without them still unwinds. */
static void read_shdrs(struct wp_elf_image *image, const Elf64_Ehdr *ehdr,
		       uint64_t *notes_left)
{
	const bool is_32bit = wp_elf_image_is_32bit(image);
	const size_t size = is_32bit ? sizeof(Elf32_Shdr) : sizeof(Elf64_Shdr);
	struct sections s = { .image = image, .notes_left = notes_left };
	const uint8_t *bytes;

	if (ehdr->e_shentsize != size || !ehdr->e_shnum ||
	    ehdr->e_shstrndx >= ehdr->e_shnum)
		return;
	bytes = wp_elf_image_at(image, ehdr->e_shoff, ehdr->e_shnum * size);
	if (!bytes)
		return;
	s.names = shdr_of(bytes + ehdr->e_shstrndx * size, is_32bit);
	for (unsigned int i = 0; i < ehdr->e_shnum; i++) {
		const Elf64_Shdr sh = shdr_of(bytes + i * size, is_32bit);

		if (sh.sh_type != SHT_NOBITS)
			note_section(&s, &sh);
	}
	find_symbol_names(&s, bytes, ehdr);
	wp_go_table_search(image);
	/* Borrowed bytes have nothing behind them. */
	if (s.packed.size && !image->debug_frame.size && image->reserved)
		reserve_packed(image, s.packed.off, s.packed.size, s.is_old);
}

/* Does this machine run files of EHDR's kind? */
static bool is_of_machine(const Elf64_Ehdr *ehdr)
{
	const uint8_t class = ehdr->e_ident[EI_CLASS];

	if (ehdr->e_ident[EI_DATA] != ELFDATA2LSB)
		return false;
#if defined(__x86_64__)
	if (class == ELFCLASS32)
		return ehdr->e_machine == EM_386;
	return class == ELFCLASS64 && ehdr->e_machine == EM_X86_64;
#else
	return class == ELFCLASS64 && ehdr->e_machine == EM_AARCH64;
#endif
}

int wp_elf_headers_read(struct wp_elf_image *image, bool has_sections,
			struct wp_err *err)
{
	/* The shorter of the two. */
	const uint8_t *bytes = wp_elf_image_at(image, 0, sizeof(Elf32_Ehdr));
	uint64_t notes_left = NOTES_MAX;
	Elf64_Ehdr ehdr;
	int rc;

	if (!bytes || memcmp(bytes, ELFMAG, SELFMAG))
		return wp_err_set(err, -ENOTSUP, "not an ELF file");
	if (bytes[EI_CLASS] == ELFCLASS32) {
		ehdr = widen_ehdr(bytes);
	} else {
		bytes = wp_elf_image_at(image, 0, sizeof(ehdr));
		if (!bytes)
			return wp_err_set(err, -ENOTSUP, "not an ELF file");
		memcpy(&ehdr, bytes, sizeof(ehdr));
	}
	if (!is_of_machine(&ehdr))
		return wp_err_set(err, -ENOTSUP,
				  "an ELF file of another kind of machine");
	image->type = ehdr.e_type;
	image->machine = ehdr.e_machine;
	image->page = (uint64_t)sysconf(_SC_PAGESIZE);
	image->entry_svma = ehdr.e_entry;
	rc = read_phdrs(image, &ehdr, &notes_left, err);
	if (!rc && has_sections)
		read_shdrs(image, &ehdr, &notes_left);
	return rc;
}

bool wp_elf_image_offset(const struct wp_elf_image *image, uint64_t svma,
			 uint64_t *ret_off)
{
	for (uint32_t i = 0; i < image->nloads; i++) {
		const struct wp_elf_load *load = &image->loads[i];

		if (svma >= load->svma && svma - load->svma < load->filesz) {
			*ret_off = svma - load->svma + load->off;
			return true;
		}
	}
	return false;
}

bool wp_elf_image_shown(const struct wp_elf_image *image, uint32_t i,
			uint64_t off, uint64_t *ret_svma)
{
	const struct wp_elf_load *load = &image->loads[i];
	/* mmap works in pages, so a mapping starts before its segment when that
	 * is not aligned. */
	uint64_t lead = load->off & (image->page - 1);

	if (!load->filesz || off < load->off - lead ||
	    off >= load->off + load->filesz)
		return false;
	*ret_svma = load->svma - load->off + off;
	return true;
}
