/* debugfile.c - see debugfile.h.
 *
 * Names come from files of the target and are opened with our rights, so a
 * file is looked at with O_PATH first (a fifo would block, a device may act on
 * being opened), and symbolic links do not lead out of a root.
 */
#include "debugfile.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CRC_MAX_BYTES = 1 << 30 };

static int open_beneath(const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int dir = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	long fd;

	if (dir < 0)
		return -1;
	fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	/* Linux before 5.6, or a container's filter. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(dir, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
	close(dir);
	return (int)fd;
}

/* Open the regular file PATH below ROOT for reading, or -1. */
static int open_regular(const char *root, const char *path, struct stat *ret_st)
{
	int fd = open_beneath(root, path), ret = -1;
	char self[64];

	if (fd < 0)
		return -1;
	if (!fstat(fd, ret_st) && S_ISREG(ret_st->st_mode)) {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
		ret = open(self, O_RDONLY | O_CLOEXEC);
	}
	close(fd);
	return ret;
}

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

/* What a candidate must be. */
struct want {
	const uint8_t *id;
	uint32_t id_len;
	/* NULL or the checksum that will do without a build-id. */
	const uint32_t *crc;
};

static bool is_wanted(const struct wp_elf_file *found, const struct want *want)
{
	if (want->id_len && found->id_len)
		return want->id_len == found->id_len &&
		       !memcmp(want->id, found->id, want->id_len);
	return want->crc && found->map.size <= CRC_MAX_BYTES &&
	       wp_debug_crc32(0, found->map.data, found->map.size) ==
		       *want->crc;
}

static bool try_one(struct wp_elf_file *ret, const char *root, const char *path,
		    const struct want *want)
{
	struct stat st;
	int fd = open_regular(root, path, &st);
	bool ok;

	if (fd < 0)
		return false;
	ok = !wp_file_map_open(&ret->map, fd) && !wp_elf_file_open(ret) &&
	     is_wanted(ret, want);
	close(fd);
	if (!ok)
		wp_elf_file_clear(ret);
	return ok;
}

static bool try_roots(struct wp_elf_file *ret, const char *path,
		      const struct wp_debug_search *search,
		      const struct want *want)
{
	for (size_t i = 0; i < search->nroots; i++)
		if (try_one(ret, search->roots[i], path, want))
			return true;
	return false;
}

/* "/usr/lib/debug/.build-id/ab/cdef.debug". */
static bool id_path(const uint8_t *id, uint32_t len, char buf[PATH_MAX])
{
	int n = snprintf(buf, PATH_MAX, "/usr/lib/debug/.build-id/");

	if (len < 3)
		return false;
	for (uint32_t i = 0; i < len; i++)
		n += snprintf(buf + n, (size_t)(PATH_MAX - n),
			      i == 0 ? "%02x/" : "%02x", id[i]);
	snprintf(buf + n, (size_t)(PATH_MAX - n), ".debug");
	return true;
}

/* PREFIX, the directory of PATH, MIDDLE and NAME. */
static bool join(char buf[PATH_MAX], const char *prefix, const char *path,
		 const char *middle, const char *name)
{
	const char *slash = strrchr(path, '/');
	int n;

	if (*path != '/')
		return false;
	n = snprintf(buf, PATH_MAX, "%s%.*s/%s%s", prefix, (int)(slash - path),
		     path, middle, name);
	return n > 0 && n < PATH_MAX;
}

static int find_by_link(struct wp_elf_file *ret, char ret_path[PATH_MAX],
			const struct wp_debug_search *search,
			const struct want *want, const char *name)
{
	/* GDB manual, "Separate Debug Files". */
	static const char *const places[][2] = {
		{ "", "" }, { "", ".debug/" }, { "/usr/lib/debug", "" },
	};

	if (!*name || strchr(name, '/') || !strcmp(name, "..") ||
	    !strcmp(name, "."))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (!join(ret_path, places[i][0], search->path, places[i][1],
			  name) || !strcmp(ret_path, search->path))
			continue;
		if (try_roots(ret, ret_path, search, want))
			return 0;
	}
	return -ENOENT;
}

int wp_debugfile_find(struct wp_elf_file *ret, char ret_path[PATH_MAX],
		      const struct wp_debug_search *search)
{
	const struct wp_elf_file *file = search->file;
	struct want want = { .id = file->id, .id_len = file->id_len };
	const char *link;
	GElf_Word crc;

	if (id_path(file->id, file->id_len, ret_path) &&
	    try_roots(ret, ret_path, search, &want))
		return 0;
	link = dwelf_elf_gnu_debuglink(file->elf, &crc);
	if (!link)
		return -ENOENT;
	want.crc = &crc;
	return find_by_link(ret, ret_path, search, &want, link);
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
	const char *name = data ? data->d_buf : NULL;
	char path[PATH_MAX];
	struct want want;
	size_t len;

	if (!name)
		return -ENOENT;
	/* A name, a NUL, a build-id (dwz(1), "-m"). */
	len = strnlen(name, data->d_size);
	if (len + 1 >= data->d_size || !len || len >= PATH_MAX)
		return -ENOENT;
	want = (struct want){ (const uint8_t *)name + len + 1,
			      (uint32_t)(data->d_size - len - 1), NULL };
	if (want.id_len > WP_ELF_FILE_ID_MAX)
		return -ENOENT;
	if (id_path(want.id, want.id_len, path) &&
	    try_roots(ret, path, search, &want))
		return 0;
	if (*name == '/')
		memcpy(path, name, len + 1);
	else if (!join(path, "", search->path, "", name))
		return -ENOENT;
	return try_roots(ret, path, search, &want) ? 0 : -ENOENT;
}
