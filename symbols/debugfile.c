/* SPDX-License-Identifier: Apache-2.0 */
/* debugfile.c - see debugfile.h. */
#include "debugfile.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { CRC_MAX_BYTES = 1 << 30 };

uint32_t wp_debug_crc32(uint32_t crc, const uint8_t *data, size_t len)
{
	/* Polynomial 0xedb88320 reflected (GDB manual, "Separate Debug
	 * Files"), four bits at a time. */
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
		0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
		0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
	};

	crc = ~crc;
	for (size_t i = 0; i < len; i++) {
		crc ^= data[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

/* What a candidate must have. */
struct want {
	const uint8_t *id;
	uint32_t id_len;
	/* The checksum to compare where a build-id is missing; NULL: none. */
	const uint32_t *crc;
};

static bool is_wanted(const struct wp_elf_file *found, const struct want *want)
{
	const struct wp_elf_image *image = found->image;

	if (want->id_len && image->build_id_len)
		return want->id_len == image->build_id_len &&
		       !memcmp(want->id, image->build_id, want->id_len);
	return want->crc && image->size <= CRC_MAX_BYTES &&
	       wp_debug_crc32(0, image->data, image->size) == *want->crc;
}

/* Open the file FD, whose ownership passes, in RET if it is what WANT says. */
static bool try_one(struct wp_elf_file *ret, int fd, const struct want *want)
{
	if (wp_elf_image_open(ret->image, fd, NULL)) {
		close(fd);
		return false;
	}
	if (!wp_elf_file_open(ret) && is_wanted(ret, want))
		return true;
	wp_elf_file_close(ret);
	wp_elf_image_clear(ret->image);
	return false;
}

/* Open the first candidate for QUERY that is what WANT says. */
static int find(struct wp_elf_file *ret, char ret_path[PATH_MAX],
		const struct wp_debug_search *search,
		struct wp_debug_query *query, const struct want *want)
{
	uint32_t nth = 0;
	bool found = false;

	query->module = search->module;
	query->of_debug = search->of_debug;
	ret_path[0] = '\0';
	while (!found) {
		int fd = search->open ?
				 search->open(search->ctx, query, &nth) :
				 wp_debug_open(query, search->path,
					       search->roots, search->nroots,
					       &nth, ret_path);

		if (fd < 0)
			return -ENOENT;
		found = try_one(ret, fd, want);
	}
	return 0;
}

int wp_debugfile_find(struct wp_elf_file *ret, char ret_path[PATH_MAX],
		      const struct wp_debug_search *search)
{
	const struct wp_elf_file *file = search->file;
	struct wp_debug_query by_id = { .kind = WP_DEBUG_BY_ID,
					.id = file->image->build_id,
					.id_len = file->image->build_id_len };
	struct wp_debug_query by_link = { .kind = WP_DEBUG_BY_LINK };
	struct want want = { .id = by_id.id, .id_len = by_id.id_len };
	GElf_Word crc;

	if (by_id.id_len && !find(ret, ret_path, search, &by_id, &want))
		return 0;
	by_link.name = dwelf_elf_gnu_debuglink(file->elf, &crc);
	if (!by_link.name)
		return -ENOENT;
	want.crc = &crc;
	return find(ret, ret_path, search, &by_link, &want);
}

bool wp_debugfile_wants_alt(const struct wp_elf_file *file)
{
	GElf_Shdr sh;

	return wp_elf_file_section(file, ".gnu_debugaltlink", &sh);
}

int wp_debugfile_find_alt(struct wp_elf_file *ret,
			  const struct wp_debug_search *search)
{
	GElf_Shdr sh;
	Elf_Scn *scn = wp_elf_file_section(search->file, ".gnu_debugaltlink",
					   &sh);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	struct wp_debug_query by_id = { .kind = WP_DEBUG_BY_ID };
	struct wp_debug_query by_name = { .kind = WP_DEBUG_BY_ALT_NAME };
	struct want want = { 0 };
	char path[PATH_MAX];
	size_t len;

	by_name.name = data ? data->d_buf : NULL;
	if (!by_name.name)
		return -ENOENT;
	/* A name, a NUL, a build-id (dwz(1), "-m"). */
	len = strnlen(by_name.name, data->d_size);
	if (len + 1 >= data->d_size || !len || len >= PATH_MAX)
		return -ENOENT;
	want.id = (const uint8_t *)by_name.name + len + 1;
	if (data->d_size - len - 1 > WP_BUILD_ID_MAX)
		return -ENOENT;
	want.id_len = (uint32_t)(data->d_size - len - 1);
	by_id.id = want.id;
	by_id.id_len = want.id_len;
	if (!find(ret, path, search, &by_id, &want))
		return 0;
	return find(ret, path, search, &by_name, &want);
}
