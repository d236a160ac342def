/* SPDX-License-Identifier: Apache-2.0 */
/* name_cache.c - see name_cache.h. */
#include "name_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "wallprof/base_name.h"
#include "wallprof/clock.h"
#include "wallprof/hash.h"
#include "wallprof/io.h"
#include "wallprof/lower_bound.h"
#include "wallprof/reader.h"
#include "wallprof/vec.h"

/* What a file of the cache begins with: names may differ from version to version, and from
 * build to build of a version that is not released. */
#define MAGIC "wallprof " WP_VERSION " names by " WP_NAMES_BY "\n"
#define TEMPORARY ".new"
enum { FILE_NAME = 2 * WP_BUILD_ID_MAX + 24 };

static uint64_t ns_of(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * WP_NS_PER_S + (uint64_t)ts->tv_nsec;
}

/* Write the path of the directory into PATH[0..PATH_MAX).  0 or -ENOENT. */
static int find_dir(char *path)
{
	const char *own = getenv("WALLPROF_CACHE");
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	if (own)
		n = snprintf(path, PATH_MAX, "%s", own);
	else if (geteuid() == 0)
		n = snprintf(path, PATH_MAX, "/var/cache/wallprof");
	else if (xdg && *xdg == '/')
		n = snprintf(path, PATH_MAX, "%s/wallprof", xdg);
	else
		n = snprintf(path, PATH_MAX, "%s/.cache/wallprof",
			     home ? home : "");
	return *path == '/' && n < PATH_MAX ? 0 : -ENOENT;
}

int wp_name_cache_open(void)
{
	char path[PATH_MAX];
	struct stat st;
	int fd, rc = find_dir(path);

	if (rc)
		return rc;
	if (mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = wp_io_fstat(fd, &st);
	if (!rc && (st.st_uid != geteuid() || st.st_mode & 077))
		rc = -EPERM;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Fill RET for the open file FD.  0; -ENOENT: others than root and oneself may write
 * it. */
static int identify(int fd, uint64_t ret[5])
{
	struct stat st;

	if (wp_io_fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    (st.st_uid != 0 && st.st_uid != geteuid()) || st.st_mode & 022)
		return -ENOENT;
	ret[0] = st.st_dev;
	ret[1] = st.st_ino;
	ret[2] = (uint64_t)st.st_size;
	ret[3] = ns_of(&st.st_mtim);
	ret[4] = ns_of(&st.st_ctim);
	return 0;
}

static int identify_debug(struct wp_name_key *key, const struct wp_namer *namer,
			  const struct wp_namer_module *m)
{
	const struct wp_debug_query query = {
		.kind = WP_DEBUG_BY_ID,
		.module = m->id,
		.id = key->build_id,
		.id_len = key->build_id_len,
	};
	char path[PATH_MAX];
	uint32_t nth = 0;
	int rc, fd = wp_debug_open(&query, m->module.path, namer->roots,
				   namer->nroots, &nth, path);

	if (fd < 0)
		return 0;
	rc = identify(fd, key->debug);
	close(fd);
	return rc;
}

int wp_name_key_init(struct wp_name_key *key, const struct wp_namer *namer,
		     const struct wp_namer_module *m)
{
	const struct wp_elf_image *image = m->module.image;

	memset(key, 0, sizeof(*key));
	if (!image || image->fd < 0 || m->is_lost || !image->build_id_len ||
	    identify(image->fd, key->file))
		return -ENOENT;
	memcpy(key->build_id, image->build_id, image->build_id_len);
	key->build_id_len = image->build_id_len;
	snprintf(key->base_name, sizeof(key->base_name), "%s",
		 wp_base_name(m->module.path));
	return identify_debug(key, namer, m);
}

bool wp_name_key_allows(const struct wp_name_key *key, int fd, const char *path)
{
	uint64_t id[5];
	struct stat st;

	if (identify(fd, id))
		return false;
	if (!*path || !memcmp(id, key->debug, sizeof(id)))
		return true;
	/* The key does not tell what a root that the target has made for itself has
	 * there. */
	return !stat(path, &st) && st.st_dev == id[0] && st.st_ino == id[1];
}

/* BUILD-ID-HASH: what has another hash is another file, or was. */
static void name_file(const struct wp_name_key *key, char name[FILE_NAME])
{
	uint64_t hash = wp_hash_lasting(0, key->file, sizeof(key->file));
	size_t n = 0;

	hash = wp_hash_lasting(hash, key->base_name, strlen(key->base_name));
	for (uint32_t i = 0; i < key->build_id_len; i++)
		n += (size_t)snprintf(name + n, FILE_NAME - n, "%02x",
				      key->build_id[i]);
	snprintf(name + n, FILE_NAME - n, "-%016" PRIx64, hash);
}

/* Read the file NAME, one's own.  TEXT is empty if it cannot be had. */
static int read_file(int dir_fd, const char *name, struct wp_text *text,
		     struct stat *st)
{
	int fd = openat(dir_fd, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = wp_io_fstat(fd, st);
	if (!rc && (!S_ISREG(st->st_mode) || st->st_uid != geteuid()))
		rc = -EPERM;
	if (!rc)
		rc = wp_text_pread(text, fd, WP_NAME_CACHE_BYTES);
	close(fd);
	return rc;
}

/* Take a message of KIND; returns its bytes, or 0. */
static size_t take_message(struct wp_reader *r, enum wp_protocol_kind kind,
			   struct wp_protocol_message *ret)
{
	ssize_t n = wp_protocol_parse(ret, r->pos, wp_reader_left(r));

	if (n <= 0 || ret->kind != kind)
		return 0;
	wp_read_skip(r, (uint64_t)n);
	return (size_t)n;
}

static int add_entry(struct wp_cached_names *names, uint64_t off, size_t at)
{
	if (WP_VEC_ROOM(names->v, names->n, names->cap, 1))
		return -ENOMEM;
	names->v[names->n++] = (struct wp_cached_name){
		off, (uint32_t)at, (uint32_t)(names->text.len - at)
	};
	return 0;
}

/* Parse R, what follows the key.  Other than 0: nothing of use. */
static int parse(struct wp_cached_names *names, struct wp_reader r)
{
	struct wp_protocol_message message;
	struct wp_protocol_buf *text = &names->text;

	if (!take_message(&r, WP_PROTOCOL_HAS, &message))
		return -EBADMSG;
	names->has = message.has.has;
	while (wp_reader_left(&r)) {
		uint64_t off = wp_read_u64(&r);
		const uint8_t *begin = r.pos;
		size_t at = text->len;
		size_t len = take_message(&r, WP_PROTOCOL_ANSWER, &message);

		if (!len || !message.answer.n ||
		    (names->n && off <= names->v[names->n - 1].off))
			return -EBADMSG;
		if (wp_protocol_add_bytes(text, begin, len) ||
		    add_entry(names, off, at))
			return -ENOMEM;
	}
	return 0;
}

/* Names without debug information: there may be some by now where no build-id leads. */
static bool is_fresh(const struct stat *st)
{
	time_t now = time(NULL);

	return st->st_mtime <= now &&
	       now - st->st_mtime < WP_NAME_CACHE_PLAIN_S;
}

void wp_cached_names_load(struct wp_cached_names *names, int dir_fd,
			  const struct wp_name_key *key, bool take_plain)
{
	const size_t magic = sizeof(MAGIC) - 1;
	struct wp_text text = WP_TEXT_INIT;
	char name[FILE_NAME];
	struct stat st;

	*names = (struct wp_cached_names){ .text = WP_PROTOCOL_INIT };
	name_file(key, name);
	if (!read_file(dir_fd, name, &text, &st) &&
	    text.len >= magic + sizeof(*key) &&
	    !memcmp(text.data, MAGIC, magic) &&
	    !memcmp(text.data + magic, key, sizeof(*key)) &&
	    !parse(names, wp_reader_of(text.data + magic + sizeof(*key),
				       text.len - magic - sizeof(*key))) &&
	    (names->has.debug_file || names->has.line_numbers ||
	     (take_plain && is_fresh(&st))))
		names->nloaded = names->n;
	else
		wp_cached_names_clear(names);
	wp_text_clear(&text);
}

void wp_cached_names_clear(struct wp_cached_names *names)
{
	free(names->text.data);
	free(names->v);
	*names = (struct wp_cached_names){ .text = WP_PROTOCOL_INIT };
}

bool wp_cached_names_find(const struct wp_cached_names *names, uint64_t off,
			  struct wp_protocol_message *ret)
{
	uint32_t i = WP_LOWER_BOUND(names->nloaded, k, names->v[k].off < off);

	return i < names->nloaded && names->v[i].off == off &&
	       wp_protocol_parse(ret, names->text.data + names->v[i].at,
				 names->v[i].len) > 0;
}

int wp_cached_names_add(struct wp_cached_names *names, uint64_t off,
			const struct wp_symbol_line *lines, uint32_t n)
{
	size_t at = names->text.len;
	int rc;

	/* Offsets into the text are of 32 bits, and no more of it is written. */
	if (at > 2 * WP_NAME_CACHE_BYTES)
		return 0;
	rc = wp_protocol_add_answer(&names->text, lines, n);
	return rc ? rc : add_entry(names, off, at);
}

void wp_cached_names_note(struct wp_cached_names *names,
			  const struct wp_symbol_has *has)
{
	struct wp_symbol_has *all = &names->has;

	/* Nothing is left to save of these. */
	if (has->debug_file && !all->debug_file && !all->line_numbers) {
		for (uint32_t i = 0; i < names->nloaded; i++)
			names->v[i].len = 0;
		all->dwarf_loss = WP_DWARF_WHOLE;
	}
	wp_symbols_add_has(all, has);
}

static int compare_offsets(const void *a, const void *b)
{
	const struct wp_cached_name *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

/* Mark names that a file has no room for, of those that were loaded first. */
static void leave_out(struct wp_cached_names *names, size_t room)
{
	for (uint32_t i = names->n; i-- > 0;) {
		size_t need = sizeof(names->v[i].off) + names->v[i].len;

		if (need > room)
			names->v[i].len = 0;
		else
			room -= need;
	}
}

static int put_names(struct wp_protocol_buf *buf,
		     const struct wp_cached_names *names)
{
	int rc = 0;

	for (uint32_t i = 0; i < names->n && !rc; i++) {
		const struct wp_cached_name *name = &names->v[i];

		/* One address may be in two mappings. */
		if (!name->len || (i && name->off == name[-1].off))
			continue;
		rc = wp_protocol_add_bytes(buf, &name->off, sizeof(name->off));
		if (!rc)
			rc = wp_protocol_add_bytes(
				buf, names->text.data + name->at, name->len);
	}
	return rc;
}

/* Is NAME one that name_file() or write_file() makes?  The user may have named a directory
 * that holds other files, too. */
static bool is_of_cache(const char *name)
{
	static const char hex[] = "0123456789abcdef";
	const size_t temporary = sizeof(TEMPORARY) - 1;
	size_t n = strspn(name, hex);

	if (!strncmp(name, TEMPORARY, temporary))
		return name[temporary] &&
		       !name[temporary +
			     strspn(name + temporary, "0123456789")];
	return n && name[n] == '-' && strspn(name + n + 1, hex) == 16 &&
	       !name[n + 17];
}

/* Make room for one more file: the one that was written first goes. */
static void trim(int dir_fd)
{
	struct timespec oldest = { 0 };
	char name[NAME_MAX + 1] = "";
	unsigned int n = 0;
	struct dirent *entry;
	struct stat st;
	DIR *dir = fdopendir(openat(dir_fd, ".", O_RDONLY | O_CLOEXEC));

	while (dir && (entry = readdir(dir))) {
		if (!is_of_cache(entry->d_name) ||
		    fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		if (!n++ || ns_of(&st.st_mtim) < ns_of(&oldest)) {
			oldest = st.st_mtim;
			snprintf(name, sizeof(name), "%s", entry->d_name);
		}
	}
	if (dir)
		closedir(dir);
	if (n >= WP_NAME_CACHE_FILES)
		unlinkat(dir_fd, name, 0);
}

/* Other wallprofs read and write, too: a file appears whole. */
static void write_file(int dir_fd, const char *name,
		       const struct wp_protocol_buf *buf)
{
	char temporary[sizeof(TEMPORARY) + 16];
	int fd;

	if (faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW))
		trim(dir_fd);
	snprintf(temporary, sizeof(temporary), TEMPORARY "%d", getpid());
	/* Of a process that had this pid. */
	unlinkat(dir_fd, temporary, 0);
	fd = openat(dir_fd, temporary,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (write(fd, buf->data, buf->len) != (ssize_t)buf->len ||
	    renameat(dir_fd, temporary, dir_fd, name))
		unlinkat(dir_fd, temporary, 0);
	close(fd);
}

void wp_cached_names_save(struct wp_cached_names *names, int dir_fd,
			  const struct wp_name_key *key)
{
	struct wp_protocol_buf buf = WP_PROTOCOL_INIT;
	char name[FILE_NAME];

	name_file(key, name);
	if (!wp_protocol_add_bytes(&buf, MAGIC, sizeof(MAGIC) - 1) &&
	    !wp_protocol_add_bytes(&buf, key, sizeof(*key)) &&
	    !wp_protocol_add_has(&buf, 0, &names->has)) {
		leave_out(names, WP_NAME_CACHE_BYTES - buf.len);
		if (names->n)
			qsort(names->v, names->n, sizeof(*names->v),
			      compare_offsets);
		if (!put_names(&buf, names))
			write_file(dir_fd, name, &buf);
	}
	free(buf.data);
}
