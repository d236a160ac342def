/* SPDX-License-Identifier: Apache-2.0 */
/* elf_image.c - see wallprof/elf_image.h. */
#include "wallprof/elf_image.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wallprof/inflate.h"
#include "wallprof/reader.h"

enum {
	BLOCK_BITS = 14,
	BLOCK = 1 << BLOCK_BITS,
	PHDRS_MAX = 1024,
	SHDRS_MAX = 65536,
	NOTES_MAX = 1 << 16,
	/* "ZLIB" and the length, big-endian (.zdebug_frame). */
	OLD_CHDR = 12,
	/* The Linux kernel's with all its drivers is 20 MiB. */
	PACKED_MAX = 64 << 20,
};

#define SIZE_MAX_BYTES (UINT64_C(8) << 30)

static long read_fd(void *src, void *buf, size_t len, uint64_t off)
{
	ssize_t n;

	do
		n = pread(((struct wp_elf_image *)src)->fd, buf, len,
			  (off_t)off);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static bool load_block(struct wp_elf_image *image, uint64_t block)
{
	uint64_t off = block << BLOCK_BITS;
	uint64_t len = image->size - off < BLOCK ? image->size - off : BLOCK;
	/* A file's image is found through the image itself, whose own address
	 * may have changed since it was opened. */
	void *src = image->fd >= 0 ? image : image->src;

	for (uint64_t have = 0; have < len;) {
		long n = image->read(src, image->data + off + have,
				     (size_t)(len - have), off + have);

		if (n <= 0)
			return false;
		have += (uint64_t)n;
	}
	image->loaded[block] = 1;
	return true;
}

/* Unpack what PACKED says, the first time it is wanted. */
static bool unpack(struct wp_elf_image *image)
{
	struct wp_elf_packed *p = &image->packed;
	const uint8_t *src;

	if (p->state == WP_ELF_PACKED) {
		src = wp_elf_image_at(image, p->src_off, p->src_size);
		p->state = WP_ELF_BROKEN;
		if (src && wp_inflate(src, (size_t)p->src_size,
				      image->data + p->off, (size_t)p->size))
			p->state = WP_ELF_UNPACKED;
	}
	return p->state == WP_ELF_UNPACKED;
}

static const uint8_t *unpacked_at(struct wp_elf_image *image, uint64_t off,
				  uint64_t len)
{
	const struct wp_elf_packed *p = &image->packed;

	if (off < p->off || off - p->off > p->size ||
	    len > p->size - (off - p->off) || !unpack(image))
		return NULL;
	return image->data + off;
}

const uint8_t *wp_elf_image_at(struct wp_elf_image *image, uint64_t off,
			       uint64_t len)
{
	if (image->data && off > image->size && image->packed.size)
		return unpacked_at(image, off, len);
	if (!image->data || off > image->size || len > image->size - off)
		return NULL;
	if (len) {
		uint64_t last = (off + len - 1) >> BLOCK_BITS;

		for (uint64_t b = off >> BLOCK_BITS; b <= last; b++)
			if (!image->loaded[b] && !load_block(image, b))
				return NULL;
	}
	return image->data + off;
}

uint64_t wp_elf_image_left(const struct wp_elf_image *image, uint64_t off)
{
	const struct wp_elf_packed *p = &image->packed;

	if (p->size && off >= p->off && off - p->off < p->size)
		return p->size - (off - p->off);
	return off < image->size ? image->size - off : 0;
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

/* The last segment with FLAGS that a mapping of the file at OFF shows. */
static const struct wp_elf_load *find_shown(const struct wp_elf_image *image,
					    uint64_t off, uint32_t flags)
{
	/* mmap works in pages, so a mapping starts before its segment when
	 * that is not aligned. */
	const uint64_t page = 4096;

	for (uint32_t i = image->nloads; i-- > 0;) {
		const struct wp_elf_load *load = &image->loads[i];
		uint64_t lead = load->off & (page - 1);

		if (load->filesz && (load->flags & flags) == flags &&
		    off >= load->off - lead && off < load->off + load->filesz)
			return load;
	}
	return NULL;
}

bool wp_elf_image_svma(const struct wp_elf_image *image, uint64_t off,
		       uint64_t *ret_svma)
{
	/* lld ends one segment and begins the next within one page of the file,
	 * and a short program's are all in one page. */
	const struct wp_elf_load *load = find_shown(image, off, PF_X);

	if (!load)
		load = find_shown(image, off, 0);
	if (!load)
		return false;
	*ret_svma = load->svma - load->off + off;
	return true;
}

/* gABI, Note Section; NT_GNU_BUILD_ID is 3. */
static void read_notes(struct wp_elf_image *image, uint64_t off, uint64_t len)
{
	struct wp_reader r;

	if (len > NOTES_MAX)
		return;
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

static int read_phdrs(struct wp_elf_image *image, const Elf64_Ehdr *ehdr,
		      struct wp_err *err)
{
	const uint8_t *bytes;

	if (ehdr->e_phentsize != sizeof(Elf64_Phdr) ||
	    ehdr->e_phnum > PHDRS_MAX)
		return wp_err_set(err, -EBADMSG, "odd ELF program headers");
	bytes = wp_elf_image_at(image, ehdr->e_phoff,
				(uint64_t)ehdr->e_phnum * sizeof(Elf64_Phdr));
	if (!bytes)
		return wp_err_set(err, -EBADMSG,
				  "ELF program headers past the file's end");
	for (unsigned int i = 0; i < ehdr->e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, bytes + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD && image->nloads < WP_ELF_LOADS_MAX)
			image->loads[image->nloads++] = (struct wp_elf_load){
				ph.p_vaddr, ph.p_offset, ph.p_filesz,
				ph.p_memsz, ph.p_flags
			};
		else if (ph.p_type == PT_GNU_EH_FRAME)
			image->eh_frame_hdr = (struct wp_elf_range){
				ph.p_vaddr, ph.p_offset, ph.p_filesz
			};
		else if (ph.p_type == PT_NOTE && !image->build_id_len)
			read_notes(image, ph.p_offset, ph.p_filesz);
	}
	return 0;
}

/* How long what the section at OFF holds is, and its compressed bytes: false if
 * it is of an unknown kind.  gABI, Section Compression; before that GNU had
 * names of its own, .z*, and a header without a type. */
static bool read_chdr(struct wp_elf_image *image, uint64_t off, uint64_t size,
		      bool is_old, struct wp_elf_packed *ret)
{
	uint64_t lead = is_old ? OLD_CHDR : sizeof(Elf64_Chdr), be;
	const uint8_t *bytes = size > lead ? wp_elf_image_at(image, off, lead) :
					     NULL;
	Elf64_Chdr ch;

	if (!bytes)
		return false;
	ret->src_off = off + lead;
	ret->src_size = size - lead;
	if (is_old) {
		memcpy(&be, bytes + 4, sizeof(be));
		ret->size = be64toh(be);
		return !memcmp(bytes, "ZLIB", 4);
	}
	memcpy(&ch, bytes, sizeof(ch));
	ret->size = ch.ch_size;
	return ch.ch_type == ELFCOMPRESS_ZLIB;
}

/* Make room behind the file for .debug_frame, which is compressed at OFF.
 * Pages are used when it is unpacked.  Moves the image's bytes. */
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
	/* Not at the end itself, which is an offset in the file. */
	packed.off = ((image->size >> BLOCK_BITS) + 1) << BLOCK_BITS;
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

/* The section headers of a file, and what they say. */
struct sections {
	struct wp_elf_image *image;
	/* Their names' own. */
	Elf64_Shdr names;
	/* .debug_frame, compressed; in the old way. */
	struct wp_elf_range packed;
	bool is_old;
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
	} else if (is_called(s, sh, ".text")) {
		s->image->text = range;
	} else if (is_called(s, sh, ".gopclntab") ||
		   is_called(s, sh, ".data.rel.ro.gopclntab")) {
		s->image->go_table = range;
	}
}

/* Sections are a luxury: a file without them still unwinds. */
static void read_shdrs(struct wp_elf_image *image, const Elf64_Ehdr *ehdr)
{
	struct sections s = { .image = image };
	const uint8_t *bytes;

	if (ehdr->e_shentsize != sizeof(Elf64_Shdr) || !ehdr->e_shnum ||
	    ehdr->e_shstrndx >= ehdr->e_shnum)
		return;
	bytes = wp_elf_image_at(image, ehdr->e_shoff,
				(uint64_t)ehdr->e_shnum * sizeof(Elf64_Shdr));
	if (!bytes)
		return;
	memcpy(&s.names, bytes + ehdr->e_shstrndx * sizeof(s.names),
	       sizeof(s.names));
	for (unsigned int i = 0; i < ehdr->e_shnum; i++) {
		Elf64_Shdr sh;

		memcpy(&sh, bytes + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type != SHT_NOBITS)
			note_section(&s, &sh);
	}
	if (s.packed.size && !image->debug_frame.size)
		reserve_packed(image, s.packed.off, s.packed.size, s.is_old);
}

static int read_headers(struct wp_elf_image *image, struct wp_err *err)
{
	const uint8_t *bytes = wp_elf_image_at(image, 0, sizeof(Elf64_Ehdr));
	Elf64_Ehdr ehdr;
	int rc;

	if (!bytes || memcmp(bytes, ELFMAG, SELFMAG))
		return wp_err_set(err, -ENOTSUP, "not an ELF file");
	memcpy(&ehdr, bytes, sizeof(ehdr));
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
#if defined(__x86_64__)
	    ehdr.e_machine != EM_X86_64)
#else
	    ehdr.e_machine != EM_AARCH64)
#endif
		return wp_err_set(err, -ENOTSUP,
				  "an ELF file of another kind of machine");
	image->type = ehdr.e_type;
	image->machine = ehdr.e_machine;
	rc = read_phdrs(image, &ehdr, err);
	if (!rc && image->fd >= 0)
		read_shdrs(image, &ehdr);
	return rc;
}

/* Reserve room for SIZE bytes; nothing is read yet. */
static int reserve(struct wp_elf_image *image, uint64_t size,
		   struct wp_err *err)
{
	if (!size)
		return wp_err_set(err, -ENOTSUP, "an empty file");
	if (size > SIZE_MAX_BYTES)
		return wp_err_set(err, -EOVERFLOW, "a file over 8 GiB");
	image->data = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image->data == MAP_FAILED) {
		image->data = NULL;
		return wp_err_set(err, -ENOMEM, "no memory for an ELF file");
	}
	image->size = image->reserved = size;
	image->loaded = calloc(1, (size_t)((size - 1) >> BLOCK_BITS) + 1);
	if (!image->loaded)
		return wp_err_set(err, -ENOMEM, "no memory for an ELF file");
	return 0;
}

int wp_elf_image_open(struct wp_elf_image *ret, int fd, struct wp_err *err)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct stat st;
	int rc;

	if (fstat(fd, &st)) {
		rc = -errno;
		return wp_err_set(err, rc, "fstat: %s", strerror(-rc));
	}
	if (!S_ISREG(st.st_mode))
		return wp_err_set(err, -ENOTSUP, "not a regular file");
	rc = reserve(&image, (uint64_t)st.st_size, err);
	if (rc)
		goto out;
	image.read = read_fd;
	image.fd = fd;
	rc = read_headers(&image, err);
	if (rc)
		goto out;
	*ret = image;
	return 0;
out:
	/* Ownership of FD passes on success only. */
	image.fd = -1;
	wp_elf_image_clear(&image);
	return rc;
}

int wp_elf_image_open_memory(struct wp_elf_image *ret, uint64_t size,
			     long (*read)(void *, void *, size_t, uint64_t),
			     void *src, struct wp_err *err)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	int rc = reserve(&image, size, err);

	if (rc)
		goto out;
	image.read = read;
	image.src = src;
	rc = read_headers(&image, err);
	if (rc)
		goto out;
	*ret = image;
	return 0;
out:
	wp_elf_image_clear(&image);
	return rc;
}

void wp_elf_image_clear(struct wp_elf_image *image)
{
	if (image->data)
		munmap(image->data, (size_t)image->reserved);
	free(image->loaded);
	if (image->fd >= 0)
		close(image->fd);
	*image = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
}
