/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_elfimage.c - the headers of an ELF file, read through a descriptor; and
 * of one that is cut short after it was opened.
 *
 * Layer: base.
 */
#include <string.h>

#include "fuzz.h"
#include "wallprof/elf_image.h"

static void check_range(struct wp_elf_image *image, uint64_t off, uint64_t len)
{
	const uint8_t *p = wp_elf_image_at(image, off, len);

	FUZZ_CHECK(!p == (off > image->size || len > image->size - off));
	FUZZ_CHECK(!p || p == image->data + off);
}

/* Compressed, it may turn out not to be there: then no byte of it is. */
static void check_debug_frame(struct wp_elf_image *image)
{
	const struct wp_elf_range *r = &image->debug_frame;
	const uint8_t *p;

	if (!image->packed.size) {
		check_range(image, r->off, r->size);
		return;
	}
	FUZZ_CHECK(r->off > image->size && r->size == image->packed.size);
	p = wp_elf_image_at(image, r->off, r->size);
	FUZZ_CHECK(!p || p == image->data + r->off);
	FUZZ_CHECK(!wp_elf_image_at(image, r->off + r->size - 1, 1) == !p);
	FUZZ_CHECK(!wp_elf_image_at(image, r->off, r->size + 1));
	FUZZ_CHECK(!wp_elf_image_at(image, r->off - 1, 1) ==
		   (r->off - 1 >= image->size));
}

static void check_addresses(struct wp_elf_image *image)
{
	for (uint32_t i = 0; i < image->nloads; i++) {
		const struct wp_elf_load *load = &image->loads[i];
		uint64_t off, svma;

		check_range(image, load->off, load->filesz);
		if (wp_elf_image_offset(image, load->svma, &off))
			(void)wp_elf_image_left(image, off);
		FUZZ_CHECK(!wp_elf_image_shown(image, i, load->off, &svma) ||
			   svma == load->svma);
		(void)wp_elf_image_offset(image, load->svma - 1, &off);
		(void)wp_elf_image_offset(image, load->svma + load->filesz,
					  &off);
	}
}

static void see_function(void *ctx, const char *name, uint64_t svma,
			 uint64_t size)
{
	(void)ctx;
	(void)svma;
	(void)size;
	FUZZ_CHECK(strlen(name) < WP_ELF_NAME_MAX);
}

static void check_symbols(struct wp_elf_image *image)
{
	uint64_t left = 1 << 20;

	for (int i = 0; i < WP_ELF_SYMBOL_TABLES; i++)
		(void)wp_elf_image_each_function(image, &image->symbols[i],
						 see_function, NULL);
	(void)wp_elf_image_linked_name(image, image->plt_rela.svma, &left);
	(void)wp_elf_image_linked_name(image, 0, &left);
}

static void check_image(struct wp_elf_image *image, const uint8_t *data,
			size_t size)
{
	FUZZ_CHECK(image->size == size);
	FUZZ_CHECK(image->nloads <= WP_ELF_LOADS_MAX);
	FUZZ_CHECK(image->build_id_len <= WP_BUILD_ID_MAX);
	check_addresses(image);
	check_symbols(image);
	check_range(image, image->eh_frame_hdr.off, image->eh_frame_hdr.size);
	check_range(image, image->eh_frame.off, image->eh_frame.size);
	check_debug_frame(image);
	check_range(image, size, 0);
	check_range(image, size, 1);
	check_range(image, size + 1, 0);
	check_range(image, UINT64_MAX, 1);
	check_range(image, 1, UINT64_MAX);
	check_range(image, 0, size);
	FUZZ_CHECK(!memcmp(image->data, data, size));
}

static void read_whole(const uint8_t *data, size_t size)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	int fd = fuzz_memfd(data, size);

	if (wp_elf_image_open(&image, fd, NULL)) {
		close(fd);
		return;
	}
	check_image(&image, data, size);
	wp_elf_image_clear(&image);
	wp_elf_image_clear(&image);
}

static void read_cut(const uint8_t *data, size_t size)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	int fd = fuzz_memfd(data, size);
	const uint8_t *p;

	if (wp_elf_image_open(&image, fd, NULL)) {
		close(fd);
		return;
	}
	if (!ftruncate(fd, (off_t)(size / 2))) {
		/* What was not read in time cannot be had. */
		p = wp_elf_image_at(&image, 0, size);
		FUZZ_CHECK(!p || !memcmp(p, data, size));
		p = wp_elf_image_at(&image, size - 1, 1);
		FUZZ_CHECK(!p || *p == data[size - 1]);
	}
	wp_elf_image_clear(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_whole(data, size);
	read_cut(data, size);
	return 0;
}
