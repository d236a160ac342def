/* SPDX-License-Identifier: Apache-2.0 */
/* elf_image.c - see wallprof/elf_image.h. */
#include "wallprof/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_headers.h"
#include "wallprof/budget.h"
#include "wallprof/inflate.h"
#include "wallprof/io.h"
#include "wallprof/lower_bound.h"
#include "wallprof/pages.h"

enum {
	BLOCK = 1 << WP_ELF_BLOCK_BITS,
	/* Blocks that are read at once where a file is read from front to back. */
	AHEAD = 4,
};

#define SIZE_MAX_BYTES (UINT64_C(8) << 30)

bool wp_elf_image_take(struct wp_elf_image *image, uint64_t bytes)
{
	uint64_t max = wp_budget_per_file();

	if (image->taken > max || bytes > max - image->taken ||
	    !wp_budget_take(WP_BUDGET_FILES, bytes)) {
		image->lacks_memory = true;
		return false;
	}
	image->taken += bytes;
	return true;
}

static void give(struct wp_elf_image *image, uint64_t bytes)
{
	wp_budget_give(WP_BUDGET_FILES, bytes);
	image->taken -= bytes;
}

/* Read blocks [FIRST, END), none of which was. */
static bool load_blocks(struct wp_elf_image *image, uint64_t first,
			uint64_t end)
{
	uint64_t off = first * BLOCK, takes = (end - first) * BLOCK;
	uint64_t left_in_file = image->size - off;
	uint64_t len = left_in_file < takes ? left_in_file : takes;

	if (!wp_elf_image_take(image, takes))
		return false;
	for (uint64_t have = 0; have < len;) {
		uint8_t *to = image->data + off + have;
		size_t left = (size_t)(len - have);
		long n = image->fd < 0 ?
				 image->read(image->src, to, left, off + have) :
				 wp_io_pread_at(image->fd, to, left,
						off + have);

		if (n <= 0) {
			give(image, takes);
			return false;
		}
		have += (uint64_t)n;
	}
	memset(image->loaded + first, 1, (size_t)(end - first));
	return true;
}

/* Have blocks [FIRST, END) read, and with them, where the one before was, what
 * reading on will ask for next. */
static bool have_blocks(struct wp_elf_image *image, uint64_t first,
			uint64_t end)
{
	const uint64_t nblocks = ((image->size - 1) >> WP_ELF_BLOCK_BITS) + 1;

	while (first < end) {
		uint64_t next = first + 1, most = end;

		if (image->loaded[first]) {
			first++;
			continue;
		}
		if (first && image->loaded[first - 1] && most < first + AHEAD)
			most = first + AHEAD < nblocks ? first + AHEAD :
							 nblocks;
		while (next < most && !image->loaded[next])
			next++;
		if (!load_blocks(image, first, next))
			return false;
		first = next;
	}
	return true;
}

/* Unpack SRC, the bytes of P, behind IMAGE if the budget has room.  What is no
 * good takes none. */
static bool unpack_within(struct wp_elf_image *image,
			  const struct wp_elf_packed *p, const uint8_t *src)
{
	/* The first page may hold the end of the file. */
	uint64_t from = (p->off + image->page - 1) & ~(image->page - 1);

	if (!wp_elf_image_take(image, p->size))
		return false;
	if (wp_inflate(src, (size_t)p->src_size, image->data + p->off,
		       (size_t)p->size))
		return true;
	if (image->reserved && from < p->off + p->size)
		madvise(image->data + from, (size_t)(p->off + p->size - from),
			MADV_DONTNEED);
	give(image, p->size);
	return false;
}

/* Unpack image->packed, the first time. */
static bool unpack(struct wp_elf_image *image)
{
	struct wp_elf_packed *p = &image->packed;
	const uint8_t *src;

	if (p->state == WP_ELF_PACKED) {
		src = wp_elf_image_at(image, p->src_off, p->src_size);
		p->state = src && unpack_within(image, p, src) ?
				   WP_ELF_UNPACKED :
				   WP_ELF_BROKEN;
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
	if (len && image->loaded &&
	    !have_blocks(image, off >> WP_ELF_BLOCK_BITS,
			 ((off + len - 1) >> WP_ELF_BLOCK_BITS) + 1))
		return NULL;
	return image->data + off;
}

bool wp_elf_image_copy(struct wp_elf_image *image, uint64_t off, uint64_t len,
		       void *buf)
{
	const uint8_t *bytes;

	if (image->fd >= 0 && off < image->size && len <= image->size - off)
		return wp_io_pread_at(image->fd, buf, (size_t)len, off) ==
		       (ssize_t)len;
	bytes = wp_elf_image_at(image, off, len);
	if (bytes)
		memcpy(buf, bytes, len);
	return bytes;
}

uint64_t wp_elf_image_left(const struct wp_elf_image *image, uint64_t off)
{
	const struct wp_elf_packed *p = &image->packed;

	if (p->size && off >= p->off && off - p->off < p->size)
		return p->size - (off - p->off);
	return off < image->size ? image->size - off : 0;
}

/* Reserve address space for SIZE bytes; nothing is read yet. */
static int reserve(struct wp_elf_image *image, uint64_t size,
		   struct wp_err *err)
{
	if (!size)
		return wp_err_set(err, -ENOTSUP, "an empty file");
	if (size > SIZE_MAX_BYTES)
		return wp_err_set(err, -EOVERFLOW, "a file over 8 GiB");
	image->data = wp_pages_new((size_t)size);
	if (!image->data)
		return wp_err_set(err, -ENOMEM, "no memory for an ELF file");
	image->size = image->reserved = size;
	image->loaded = calloc(1,
			       (size_t)((size - 1) >> WP_ELF_BLOCK_BITS) + 1);
	if (!image->loaded)
		return wp_err_set(err, -ENOMEM, "no memory for an ELF file");
	return 0;
}

int wp_elf_image_open(struct wp_elf_image *ret, int fd, struct wp_err *err)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct stat st;
	int rc;

	if (wp_io_fstat(fd, &st)) {
		rc = -errno;
		return wp_err_set(err, rc, "fstat: %s", strerror(-rc));
	}
	if (!S_ISREG(st.st_mode))
		return wp_err_set(err, -ENOTSUP, "not a regular file");
	rc = reserve(&image, (uint64_t)st.st_size, err);
	if (rc)
		goto out;
	image.fd = fd;
	image.dev = st.st_dev;
	image.ino = st.st_ino;
	image.written = st.st_mtim;
	rc = wp_elf_headers_read(&image, true, err);
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

bool wp_elf_image_is_of(const struct wp_elf_image *image, int fd)
{
	struct stat st;

	return wp_io_stat_open(fd, "", &st) ||
	       (st.st_dev == image->dev && st.st_ino == image->ino &&
		(uint64_t)st.st_size == image->size &&
		st.st_mtim.tv_sec == image->written.tv_sec &&
		st.st_mtim.tv_nsec == image->written.tv_nsec);
}

bool wp_elf_image_has_changed(const struct wp_elf_image *image)
{
	struct wp_elf_image now;
	struct wp_err err = WP_ERR_INIT;
	bool is_same;
	int fd;

	if (image->fd < 0 || wp_elf_image_is_of(image, image->fd))
		return false;
	fd = fcntl(image->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return true;
	if (wp_elf_image_open(&now, fd, &err)) {
		close(fd);
		return true;
	}
	is_same = now.size == image->size && image->build_id_len &&
		  now.build_id_len == image->build_id_len &&
		  !memcmp(now.build_id, image->build_id, image->build_id_len);
	wp_elf_image_clear(&now);
	return !is_same;
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
	rc = wp_elf_headers_read(&image, false, err);
	if (rc)
		goto out;
	*ret = image;
	return 0;
out:
	wp_elf_image_clear(&image);
	return rc;
}

int wp_elf_image_open_bytes(struct wp_elf_image *ret, void *data, uint64_t size,
			    struct wp_err *err)
{
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	int rc;

	image.data = data;
	image.size = size;
	rc = wp_elf_headers_read(&image, true, err);
	if (!rc)
		*ret = image;
	return rc;
}

uint8_t *wp_elf_image_whole(struct wp_elf_image *image)
{
	if (image->fd < 0)
		return wp_elf_image_at(image, 0, image->size) ? image->data :
								NULL;
	/* The mapping replaces the blocks that were read. */
	if (mmap(image->data, (size_t)image->size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, image->fd,
		 0) == MAP_FAILED)
		return NULL;
	image->is_mapped = true;
	free(image->loaded);
	image->loaded = NULL;
	close(image->fd);
	image->fd = -1;
	return image->data;
}

void wp_elf_image_drop(struct wp_elf_image *image, uint64_t keep,
		       uint64_t keep_len)
{
	const uint64_t page = image->page;
	uint64_t from = keep & ~(page - 1), to;

	if (!image->is_mapped)
		return;
	if (from >= image->size || keep_len > image->size - keep)
		from = to = image->size;
	else
		to = (keep + keep_len + page - 1) & ~(page - 1);
	madvise(image->data, (size_t)from, MADV_DONTNEED);
	if (to < image->size)
		madvise(image->data + to, (size_t)(image->size - to),
			MADV_DONTNEED);
}

struct wp_elf_relative wp_elf_image_relative(struct wp_elf_image *image,
					     uint64_t i)
{
	const struct wp_elf_relative none = { UINT64_MAX, 0 };
	const uint8_t *bytes = wp_elf_image_at(
		image, image->rela.off + i * sizeof(Elf64_Rela),
		sizeof(Elf64_Rela));
	Elf64_Rela rela;

	if (!bytes)
		return none;
	memcpy(&rela, bytes, sizeof(rela));
	if (rela.r_info != R_X86_64_RELATIVE &&
	    rela.r_info != R_AARCH64_RELATIVE)
		return none;
	return (struct wp_elf_relative){ rela.r_offset,
					 (uint64_t)rela.r_addend };
}

bool wp_elf_image_word(struct wp_elf_image *image, uint64_t off, uint64_t svma,
		       uint64_t *ret_svma)
{
	const uint64_t len = image->rela.size / sizeof(Elf64_Rela);
	const uint8_t *word = wp_elf_image_at(image, off, sizeof(*ret_svma));
	struct wp_elf_relative relative;
	uint64_t i, val;

	if (!word)
		return false;
	memcpy(&val, word, sizeof(val));
	if (!val) {
		i = WP_LOWER_BOUND(len, k,
				   wp_elf_image_relative(image, k).place_svma <
					   svma);
		relative = wp_elf_image_relative(image, i);
		if (i == len || relative.place_svma != svma)
			return false;
		val = relative.target_svma;
	}
	*ret_svma = val;
	return true;
}

void wp_elf_image_clear(struct wp_elf_image *image)
{
	/* Borrowed bytes have RESERVED 0. */
	if (image->reserved)
		munmap(image->data, (size_t)image->reserved);
	free(image->loaded);
	give(image, image->taken);
	if (image->fd >= 0)
		close(image->fd);
	*image = (struct wp_elf_image)WP_ELF_IMAGE_INIT;
}
