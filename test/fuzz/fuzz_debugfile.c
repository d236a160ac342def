/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_debugfile.c - build-id, .gnu_debuglink and .gnu_debugaltlink of an ELF
 * file, and the search for what they name in a directory that holds the input
 * itself as "/d/x.debug" and "/d/x".  Beside that directory lies a file that
 * must never be found: it has a byte more.
 *
 * Layer: symbols.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "../../symbols/debugfile.h"
#include "fuzz_elf.h"

static bool write_file(int dir, const char *name, const uint8_t *data,
		       size_t size)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			0600);
	bool ok = fd >= 0 && write(fd, data, size) == (ssize_t)size;

	if (fd >= 0)
		close(fd);
	return ok;
}

static void remove_root(int top)
{
	unlinkat(top, "root/d/x.debug", 0);
	unlinkat(top, "root/d/x", 0);
	unlinkat(top, "root/d", AT_REMOVEDIR);
	unlinkat(top, "root", AT_REMOVEDIR);
	unlinkat(top, "x.debug", 0);
}

/* What is found has what was asked for, and lies below the root. */
static void check_found(const struct wp_elf_file *found,
			const struct fuzz_elf *e)
{
	FUZZ_CHECK(found->elf);
	FUZZ_CHECK(found->image->size == e->image.size);
	FUZZ_CHECK(!memcmp(found->image->data, e->image.data, e->image.size));
}

static void search_root(const struct fuzz_elf *e, const char *root)
{
	struct wp_debug_search search = {
		.roots = &root, .nroots = 1, .file = &e->file, .path = "/d/x"
	};
	struct wp_elf_image image = WP_ELF_IMAGE_INIT;
	struct wp_elf_file found = { .image = &image };
	char path[PATH_MAX];

	if (!wp_debugfile_find(&found, path, &search)) {
		FUZZ_CHECK(*path == '/');
		check_found(&found, e);
		wp_elf_file_close(&found);
		wp_elf_image_clear(&image);
	}
	if (!wp_debugfile_find_alt(&found, &search)) {
		FUZZ_CHECK(wp_debugfile_wants_alt(&e->file));
		check_found(&found, e);
		wp_elf_file_close(&found);
		wp_elf_image_clear(&image);
	}
}

static void search(const struct fuzz_elf *e, const uint8_t *data, size_t size)
{
	char name[] = "/tmp/wallprof-fuzz-XXXXXX", root[64];
	int top;

	if (!mkdtemp(name))
		return;
	top = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(root, sizeof(root), "%s/root", name);
	if (top >= 0 && !mkdirat(top, "root", 0700) &&
	    !mkdirat(top, "root/d", 0700) &&
	    write_file(top, "root/d/x.debug", data, size) &&
	    write_file(top, "root/d/x", data, size) &&
	    write_file(top, "x.debug", data, size) &&
	    write_file(top, "x.debug", (const uint8_t *)"", 1))
		search_root(e, root);
	if (top >= 0) {
		remove_root(top);
		close(top);
	}
	rmdir(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_elf e;

	if (!fuzz_elf_open(&e, data, size))
		return 0;
	search(&e, data, size);
	fuzz_elf_close(&e);
	return 0;
}
