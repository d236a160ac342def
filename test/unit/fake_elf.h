/* SPDX-License-Identifier: Apache-2.0 */
/* fake_elf.h - an ELF image with frame info, made byte by byte for tests of
 * the unwinder: functions of 0x100 bytes from FAKE_TEXT on, each with its own
 * CIE and FDE, sorted search table in front.
 */
#ifndef WP_TEST_FAKE_ELF_H
#define WP_TEST_FAKE_ELF_H

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/elf_image.h"

enum {
	/* Offsets in the file and svmas at once. */
	FAKE_TEXT = 0x1000,
	FAKE_FUNC = 0x100,
	FAKE_HDR = 0x2000,
	FAKE_EH = 0x2400,
	/* A segment that may be written. */
	FAKE_DATA = 0x2f00,
	FAKE_SIZE = 0x3000,
};

struct fake_elf {
	uint8_t bytes[FAKE_SIZE];
	/* Bytes of .eh_frame, functions so far. */
	uint32_t eh_len;
	uint32_t nfuncs;
	/* Without .eh_frame_hdr; sections tell of .eh_frame instead. */
	bool no_hdr;
	/* What an image of it reads: exactly as long as was asked for. */
	uint8_t *file;
	uint64_t size;
};

static inline void fake_u32(struct fake_elf *f, uint32_t at, uint32_t val)
{
	memcpy(f->bytes + at, &val, sizeof(val));
}

/* One entry of .eh_frame: the id and BODY, padded to 8 with DW_CFA_nop. */
static inline uint32_t fake_entry(struct fake_elf *f, uint32_t id,
				  const uint8_t *body, uint32_t len)
{
	uint32_t at = FAKE_EH + f->eh_len, total = (4 + len + 7) & ~7u;

	total += 4;
	fake_u32(f, at, total - 4 + (8 - total % 8) % 8);
	total += (8 - total % 8) % 8;
	fake_u32(f, at + 4, id);
	memcpy(f->bytes + at + 8, body, len);
	f->eh_len += total;
	return at;
}

/* Add a function whose FDE holds INSNS, behind the usual start: the CFA is
 * rsp + 8 and the return address lies at CFA - 8.  AUG is "zR", or "zPR" with
 * the address of the personality routine at FAKE_DATA.  Returns its svma. */
static inline uint64_t fake_add(struct fake_elf *f, const char *aug,
				const void *insns, uint32_t len)
{
	/* Alignments 1 and -8, return address in column 16. */
	static const uint8_t head[] = { 1, 0x78, 16 };
	/* DW_CFA_def_cfa rsp, 8; DW_CFA_offset 16, 1. */
	static const uint8_t tail[] = { 0x0c, 7, 8, 0x90, 1 };
	uint8_t cie[32] = { 1 }, fde[256] = { 0 };
	uint32_t start = FAKE_TEXT + f->nfuncs * FAKE_FUNC, cie_at, at;
	uint32_t n = 1 + (uint32_t)strlen(aug) + 1, data_at;
	int32_t rel;

	memcpy(cie + 1, aug, strlen(aug) + 1);
	memcpy(cie + n, head, sizeof(head));
	n += (uint32_t)sizeof(head);
	data_at = n++;
	if (strchr(aug, 'P')) {
		/* Indirect pcrel sdata4. */
		cie[n++] = 0x9b;
		rel = (int32_t)(FAKE_DATA - (FAKE_EH + f->eh_len + 8 + n));
		memcpy(cie + n, &rel, 4);
		n += 4;
	}
	/* pcrel sdata4. */
	cie[n++] = 0x1b;
	cie[data_at] = (uint8_t)(n - data_at - 1);
	memcpy(cie + n, tail, sizeof(tail));
	cie_at = fake_entry(f, 0, cie, n + (uint32_t)sizeof(tail));
	at = FAKE_EH + f->eh_len;
	rel = (int32_t)(start - (at + 8));
	memcpy(fde, &rel, 4);
	fde[4] = FAKE_FUNC & 0xff;
	fde[5] = FAKE_FUNC >> 8;
	/* fde[8]: no augmentation data. */
	memcpy(fde + 9, insns, len);
	fake_entry(f, at + 4 - cie_at, fde, 9 + len);
	fake_u32(f, FAKE_HDR + 12 + 8 * f->nfuncs, start - FAKE_HDR);
	fake_u32(f, FAKE_HDR + 16 + 8 * f->nfuncs, at - FAKE_HDR);
	f->nfuncs++;
	return start;
}

static inline void fake_headers(struct fake_elf *f)
{
	Elf64_Ehdr eh = {
		.e_type = ET_DYN,
#if defined(__aarch64__)
		.e_machine = EM_AARCH64,
#else
		.e_machine = EM_X86_64,
#endif
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = f->no_hdr ? 2 : 3,
	};
	Elf64_Phdr ph[3] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_filesz = FAKE_DATA,
		  .p_memsz = FAKE_DATA },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_vaddr = FAKE_DATA,
		  .p_offset = FAKE_DATA,
		  .p_filesz = FAKE_SIZE - FAKE_DATA,
		  .p_memsz = FAKE_SIZE - FAKE_DATA },
		{ .p_type = PT_GNU_EH_FRAME,
		  .p_flags = PF_R,
		  .p_vaddr = FAKE_HDR,
		  .p_offset = FAKE_HDR,
		  .p_filesz = 12 + 8 * f->nfuncs },
	};

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(f->bytes, &eh, sizeof(eh));
	memcpy(f->bytes + sizeof(eh), ph, sizeof(ph));
	/* Version 1; pcrel sdata4, udata4, datarel sdata4. */
	memcpy(f->bytes + FAKE_HDR, "\x01\x1b\x03\x3b", 4);
	fake_u32(f, FAKE_HDR + 4, FAKE_EH - (FAKE_HDR + 4));
	fake_u32(f, FAKE_HDR + 8, f->nfuncs);
}

static inline long fake_read(void *src, void *buf, size_t len, uint64_t off)
{
	const struct fake_elf *f = src;

	if (off >= f->size || len > f->size - off)
		return -EIO;
	memcpy(buf, f->file + off, len);
	return (long)len;
}

/* Open the first SIZE bytes of F as IMAGE; F must outlive it.  Returns what
 * wp_elf_image_open_memory does. */
static inline int fake_open(struct fake_elf *f, struct wp_elf_image *image,
			    uint64_t size)
{
	int rc;

	fake_headers(f);
	f->size = size;
	/* On the heap, where a sanitizer watches the end. */
	f->file = malloc(size ? size : 1);
	memcpy(f->file, f->bytes, size);
	rc = wp_elf_image_open_memory(image, size, fake_read, f, NULL);
	if (rc) {
		free(f->file);
		f->file = NULL;
	} else if (f->no_hdr) {
		image->eh_frame = (struct wp_elf_range){ FAKE_EH, FAKE_EH,
							 f->eh_len };
	}
	return rc;
}

static inline void fake_close(struct fake_elf *f, struct wp_elf_image *image)
{
	wp_elf_image_clear(image);
	free(f->file);
	f->file = NULL;
}

#endif
