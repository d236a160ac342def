/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbolize.  src/name_cache.h, src/cached_names.h: what is asked of a child, and
 * what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../src/symbolize/cached_names.h"
#include "../../src/symbolize/name_cache.h"
#include "wallprof/packet.h"

enum { NMODULES = 3, START = 0x10000, OFF = 0x400, MANY = 4000 };

/* Two ELF files and memory without one. */
static struct wp_elf_image images[2];
static struct wp_namer_module modules[NMODULES];
static struct wp_namer_address addresses[MANY];
static uint32_t naddresses;
static char *root, cache[PATH_MAX];
static const char *roots[1];
static volatile sig_atomic_t interrupts;

/* Of all children: how many there were, and how many addresses they were asked for. */
static struct asked {
	unsigned int children, addresses;
	/* A child of files that are kept had others' as well. */
	bool mixed;
} * asked;
/* What the child says, and whether it ends before it has named all. */
static struct wp_symbol_has said;
static const char *prefix;
static bool fails;
/* A debug file that it asks for first: a .gnu_debuglink; NULL: none. */
static const char *link_name;

/* What the parent got: a name is PREFIX and the address. */
static char *names[MANY];
static struct wp_symbol_has got[NMODULES + 1];

static int take_answer(void *ctx, uint32_t index,
		       const struct wp_symbol_line *lines, uint32_t n)
{
	(void)ctx;
	assert_true(index < naddresses && !names[index]);
	assert_int_equal(n, 2);
	assert_string_equal(lines[0].function, "inlined");
	assert_string_equal(lines[1].file, "/src/f.c");
	assert_int_equal(lines[1].line, 7);
	assert_int_equal(lines[1].start_line, 5);
	names[index] = strdup(lines[1].function);
	return 0;
}

static void take_has(void *ctx, uint32_t module,
		     const struct wp_symbol_has *has)
{
	(void)ctx;
	got[module] = *has;
}

static bool is_trusted(const struct wp_namer *namer, uint32_t module)
{
	struct stat st;

	for (uint32_t i = 0; i < namer->nmodules; i++)
		if (namer->modules[i].id == module)
			return namer->modules[i].module.image &&
			       !fstat(namer->modules[i].module.image->fd,
				      &st) &&
			       !(st.st_mode & 022);
	return false;
}

static void ask_for_link(int sock, uint32_t module)
{
	const struct wp_debug_query query = { .kind = WP_DEBUG_BY_LINK,
					      .module = module,
					      .name = link_name };
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;
	struct wp_protocol_reply reply;
	int fd = -1;

	if (wp_protocol_add_open(&wire, &query, 0) ||
	    send(sock, wire.data, wire.len, MSG_NOSIGNAL) !=
		    (ssize_t)wire.len ||
	    wp_packet_take(sock, &reply, sizeof(reply), true, &fd, 1) !=
		    sizeof(reply) ||
	    !reply.found)
		_exit(1);
}

/* Names all, or all but the last. */
static void child(const struct wp_namer *namer, uint32_t first, int sock,
		  pid_t parent)
{
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;
	const struct wp_namer_address *v = namer->addresses;
	unsigned int ntrusted = 0;

	(void)parent;
	asked->children++;
	if (link_name)
		ask_for_link(sock, v[first].module);
	for (uint32_t i = first; i < namer->naddresses; i++) {
		char name[160];
		struct wp_symbol_line lines[] = {
			{ "inlined", "inlined", "/src/f.h", 3, 2 },
			{ name, name, "/src/f.c", 7, 5 },
		};

		ntrusted += is_trusted(namer, v[i].module);
		if (fails && i + 1 == namer->naddresses)
			break;
		snprintf(name, sizeof(name), "%s %llx", prefix,
			 (unsigned long long)v[i].avma);
		asked->addresses++;
		if (wp_protocol_add_answer(&wire, lines, 2) ||
		    ((i + 1 == namer->naddresses ||
		      v[i].module != v[i + 1].module) &&
		     wp_protocol_add_has(&wire, v[i].module, &said)))
			_exit(1);
	}
	/* What it says is kept: it reads nobody's map of generated code. */
	asked->mixed |= namer->perf_map_fd < 0 &&
			ntrusted != namer->naddresses - first;
	if (!fails && wp_protocol_add_end(&wire, WP_PROTOCOL_DONE, 0))
		_exit(1);
	for (size_t at = 0; at < wire.len;) {
		ssize_t n = send(sock, wire.data + at, wire.len - at,
				 MSG_NOSIGNAL);

		if (n < 0)
			_exit(1);
		at += (size_t)n;
	}
	_exit(0);
}

/* Name all addresses; *ASKED is of this run. */
static void run(struct wp_debuginfod *servers)
{
	struct wp_namer namer = {
		.modules = modules,
		.nmodules = NMODULES,
		.addresses = addresses,
		.naddresses = naddresses,
		.roots = roots,
		.nroots = 1,
		.perf_map_fd = 0,
		.servers = servers,
		.interrupts = &interrupts,
		.child = child,
		.answer = take_answer,
		.has = take_has,
	};
	struct wp_namer_end end;
	int fd = wp_name_cache_open();

	assert_true(fd >= 0);
	for (uint32_t i = 0; i < MANY; i++) {
		free(names[i]);
		names[i] = NULL;
	}
	memset(got, 0, sizeof(got));
	memset(asked, 0, sizeof(*asked));
	assert_int_equal(wp_cached_names_run(&namer, fd, &end), 0);
	close(fd);
	assert_false(asked->mixed);
	if (!fails)
		assert_string_equal(end.why, "");
}

static void assert_name(uint32_t i, const char *by)
{
	char want[160];

	snprintf(want, sizeof(want), "%s %llx", by,
		 (unsigned long long)addresses[i].avma);
	assert_non_null(names[i]);
	assert_string_equal(names[i], want);
}

/* N addresses of each of modules [FROM, TO]. */
static void address(uint32_t from, uint32_t to, uint32_t n)
{
	naddresses = 0;
	for (uint32_t m = from; m <= to; m++)
		for (uint32_t i = 0; i < n; i++)
			addresses[naddresses++] = (struct wp_namer_address){
				m, modules[m - 1].module.start_avma + 16 * i
			};
}

static int open_file(const char *name)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	return fd;
}

static int setup(void **state)
{
	char template[] = "/tmp/test_name_cache.XXXXXX";

	(void)state;
	root = strdup(mkdtemp(template));
	roots[0] = root;
	snprintf(cache, sizeof(cache), "%s/cache", root);
	setenv("WALLPROF_CACHE", cache, 1);
	asked = mmap(NULL, sizeof(*asked), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(asked != MAP_FAILED);
	for (uint32_t i = 0; i < NMODULES; i++)
		modules[i] = (struct wp_namer_module){
			i + 1,
			{ START * (i + 1), START * (i + 2), OFF, 0, "/lib/a.so",
			  i < 2 ? &images[i] : NULL, false },
			false
		};
	for (unsigned int i = 0; i < 2; i++)
		images[i] = (struct wp_elf_image){
			.fd = open_file(i ? "b" : "a"),
			.build_id = { 0xab, 0xcd, (uint8_t)i },
			.build_id_len = 3,
		};
	said = (struct wp_symbol_has){ .functions = true, .debug_file = true };
	prefix = "first";
	fails = false;
	link_name = NULL;
	return 0;
}

static int teardown(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		close(images[i].fd);
	munmap(asked, sizeof(*asked));
	snprintf(command, sizeof(command), "rm -rf %s", root);
	free(root);
	return system(command) ? -1 : 0;
}

static void what_was_named_is_not_asked_for_again(void **state)
{
	(void)state;
	address(1, 2, 5);
	run(NULL);
	assert_int_equal(asked->addresses, 10);
	assert_int_equal(asked->children, 1);
	prefix = "second";
	run(NULL);
	assert_int_equal(asked->children, 0);
	for (uint32_t i = 0; i < naddresses; i++)
		assert_name(i, "first");
	assert_true(got[1].functions && got[1].debug_file &&
		    !got[1].filenames && got[2].functions);
	/* Wherever the file is mapped. */
	modules[0].module.start_avma += 0x800;
	modules[0].module.off += 0x10;
	address(1, 1, 4);
	run(NULL);
	assert_int_equal(asked->children, 0);
	modules[0].module.start_avma -= 0x800;
}

static void only_what_is_missing_is_asked_for(void **state)
{
	(void)state;
	address(1, 1, 5);
	run(NULL);
	prefix = "second";
	said = (struct wp_symbol_has){ .line_numbers = true };
	address(1, 2, 7);
	run(NULL);
	assert_int_equal(asked->addresses, 2 + 7);
	for (uint32_t i = 0; i < naddresses; i++)
		assert_name(i, i < 5 ? "first" : "second");
	assert_true(got[1].functions && got[1].line_numbers);
	assert_false(got[2].functions);
	run(NULL);
	assert_int_equal(asked->children, 0);
	assert_name(0, "first");
	assert_name(6, "second");
}

static void a_file_that_has_changed_is_named_anew(void **state)
{
	const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };

	(void)state;
	address(1, 1, 5);
	run(NULL);
	assert_int_equal(futimens(images[0].fd, times), 0);
	run(NULL);
	assert_int_equal(asked->addresses, 5);
	/* Of the same build-id. */
	images[1].build_id[2] = 0;
	address(2, 2, 5);
	run(NULL);
	assert_int_equal(asked->addresses, 5);
	/* By another name: "NAME+0x12" is a name, too. */
	modules[1].module.path = "/lib/b.so";
	run(NULL);
	assert_int_equal(asked->addresses, 5);
	run(NULL);
	assert_int_equal(asked->addresses, 0);
	images[1].build_id[0] = 0;
	run(NULL);
	assert_int_equal(asked->addresses, 5);
}

static void a_debug_file_that_has_come_is_read(void **state)
{
	static const char magic[] = "\177ELF";
	const char *dirs[] = { "usr", "usr/lib", "usr/lib/debug",
			       "usr/lib/debug/.build-id",
			       "usr/lib/debug/.build-id/ab" };
	char path[PATH_MAX];
	int fd;

	(void)state;
	address(1, 1, 5);
	run(NULL);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, dirs[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	fd = open_file("usr/lib/debug/.build-id/ab/cd00.debug");
	assert_int_equal(write(fd, magic, sizeof(magic)), sizeof(magic));
	run(NULL);
	assert_int_equal(asked->addresses, 5);
	run(NULL);
	assert_int_equal(asked->addresses, 0);
	/* One that others can write says what they like. */
	assert_int_equal(fchmod(fd, 0666), 0);
	for (int i = 0; i < 2; i++) {
		run(NULL);
		assert_int_equal(asked->addresses, 5);
	}
	close(fd);
}

/* Names without debug information, where servers are asked, or an hour has passed. */
/* Of a root that the target has made for itself, with our own files in it. */
static void what_another_roots_debug_file_says_is_not_kept(void **state)
{
	static const char magic[] = "\177ELF";
	char path[PATH_MAX];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/lib", root);
	assert_int_equal(mkdir(path, 0755), 0);
	fd = open_file("lib/a.debug");
	assert_int_equal(write(fd, magic, sizeof(magic)), sizeof(magic));
	link_name = "a.debug";
	address(1, 2, 5);
	run(NULL);
	assert_name(9, "first");
	/* Neither what it says of the file, nor of any other. */
	run(NULL);
	assert_int_equal(asked->addresses, 10);
	/* What our own root has there is what anybody is given. */
	roots[0] = "";
	snprintf(path, sizeof(path), "%s/lib/a.so", root);
	modules[0].module.path = path;
	run(NULL);
	assert_int_equal(asked->addresses, 10);
	run(NULL);
	assert_int_equal(asked->addresses, 0);
	/* Unless others can write it. */
	address(1, 2, 6);
	assert_int_equal(fchmod(fd, 0646), 0);
	run(NULL);
	run(NULL);
	assert_int_equal(asked->addresses, 2);
	close(fd);
}

static void plain_names_are_not_kept_for_ever(void **state)
{
	struct timespec times[2] = { { 0, UTIME_OMIT }, { 0, 0 } };
	char path[PATH_MAX + 256];
	struct dirent *entry;
	DIR *dir;

	(void)state;
	said = (struct wp_symbol_has){ .functions = true };
	address(1, 1, 5);
	run(NULL);
	run(NULL);
	assert_int_equal(asked->addresses, 0);
	/* Not used but for what only debuginfod.c knows. */
	run((struct wp_debuginfod *)(uintptr_t)8);
	assert_int_equal(asked->addresses, 5);
	dir = opendir(cache);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", cache,
				 entry->d_name);
			times[1].tv_sec = time(NULL) - WP_NAME_CACHE_PLAIN_S;
			assert_int_equal(utimensat(AT_FDCWD, path, times, 0),
					 0);
		}
	closedir(dir);
	run(NULL);
	assert_int_equal(asked->addresses, 5);
	said.line_numbers = true;
	address(1, 1, 6);
	run(NULL);
	run((struct wp_debuginfod *)(uintptr_t)8);
	assert_int_equal(asked->addresses, 0);
}

/* A debug file that no build-id leads to, or what one shares with others, has come. */
static void plain_names_are_not_kept_with_better_ones(void **state)
{
	(void)state;
	said = (struct wp_symbol_has){ .functions = true,
				       .dwarf_loss = WP_DWARF_LACKS_SHARED };
	address(1, 1, 5);
	run(NULL);
	assert_int_equal(got[1].dwarf_loss, WP_DWARF_LACKS_SHARED);
	said.debug_file = true;
	said.dwarf_loss = WP_DWARF_WHOLE;
	prefix = "second";
	address(1, 1, 6);
	run(NULL);
	assert_int_equal(asked->addresses, 1);
	assert_name(0, "first");
	run(NULL);
	assert_int_equal(asked->addresses, 5);
	run(NULL);
	assert_int_equal(asked->addresses, 0);
	/* What was missing of the first is not. */
	assert_int_equal(got[1].dwarf_loss, WP_DWARF_WHOLE);
	for (uint32_t i = 0; i < naddresses; i++)
		assert_name(i, "second");
}

static void what_others_can_write_is_not_kept(void **state)
{
	(void)state;
	assert_int_equal(fchmod(images[0].fd, 0664), 0);
	address(1, 3, 5);
	run(NULL);
	assert_int_equal(asked->children, 2);
	assert_int_equal(asked->addresses, 15);
	run(NULL);
	assert_int_equal(asked->children, 1);
	assert_int_equal(asked->addresses, 10);
	for (uint32_t i = 0; i < naddresses; i++)
		assert_name(i, "first");
	/* Nor files that cannot be had, or have no build-id. */
	modules[1].is_lost = true;
	run(NULL);
	assert_int_equal(asked->addresses, 15);
	modules[1].is_lost = false;
	images[1].build_id_len = 0;
	run(NULL);
	assert_int_equal(asked->addresses, 15);
	if (geteuid() == 0) {
		images[1].build_id_len = 3;
		assert_int_equal(fchown(images[1].fd, 65534, 65534), 0);
		run(NULL);
		assert_int_equal(asked->addresses, 15);
	}
}

static void what_a_child_did_not_end_is_not_kept(void **state)
{
	(void)state;
	address(1, 1, 5);
	fails = true;
	run(NULL);
	assert_null(names[4]);
	fails = false;
	run(NULL);
	assert_int_equal(asked->addresses, 5);
}

/* The only file of the cache, open. */
static int open_kept(char path[PATH_MAX + 256])
{
	struct dirent *entry;
	unsigned int n = 0;
	DIR *dir = opendir(cache);

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			n++;
			snprintf(path, PATH_MAX + 256, "%s/%s", cache,
				 entry->d_name);
		}
	closedir(dir);
	assert_int_equal(n, 1);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* Each prefix, and each byte changed: names that were had, or are asked for. */
static void a_damaged_file_is_of_no_use(void **state)
{
	char path[PATH_MAX + 256];
	uint8_t data[4096];
	ssize_t n;
	int fd;

	(void)state;
	address(1, 1, 2);
	run(NULL);
	fd = open_kept(path);
	n = pread(fd, data, sizeof(data), 0);
	close(fd);
	assert_in_range(n, 100, sizeof(data) - 1);
	for (ssize_t len = 0; len < n; len++) {
		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		assert_int_equal(write(fd, data, (size_t)len), len);
		close(fd);
		run(NULL);
		/* The end of a name may be missing. */
		assert_in_range(asked->addresses, 1, 2);
		assert_name(0, "first");
		assert_name(1, "first");
	}
	for (ssize_t i = 0; i < n; i++) {
		struct wp_cached_names kept;
		struct wp_name_key key;
		struct wp_protocol_message message;
		struct wp_namer namer = { .roots = roots, .nroots = 1 };
		int dir_fd = wp_name_cache_open();

		assert_int_equal(wp_name_key_init(&key, &namer, &modules[0]),
				 0);
		data[i] ^= 0x41;
		fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
		assert_int_equal(write(fd, data, (size_t)n), n);
		close(fd);
		data[i] ^= 0x41;
		wp_cached_names_load(&kept, dir_fd, &key, true);
		assert_true(kept.nloaded <= 2);
		for (uint32_t k = 0; k < kept.nloaded; k++)
			assert_true(wp_cached_names_find(&kept, kept.v[k].off,
							 &message));
		wp_cached_names_clear(&kept);
		close(dir_fd);
	}
}

static void a_file_and_their_number_are_bounded(void **state)
{
	char path[PATH_MAX + 256];
	struct dirent *entry;
	struct stat st;
	unsigned int n = 0;
	DIR *dir;
	int fd;

	(void)state;
	prefix =
		"a name that is somewhat longer than others, so that four thousand "
		"of it with their files and lines are over a mebibyte";
	for (uint32_t i = 0; i < 2; i++) {
		naddresses = 0;
		for (uint32_t k = 0; k < MANY; k++)
			addresses[naddresses++] = (struct wp_namer_address){
				1, START + MANY * i + k
			};
		run(NULL);
		fd = open_kept(path);
		assert_int_equal(fstat(fd, &st), 0);
		close(fd);
		assert_in_range(st.st_size, WP_NAME_CACHE_BYTES / 2,
				WP_NAME_CACHE_BYTES);
	}
	/* The last ones are those that are kept, and the more the longer. */
	run(NULL);
	assert_true(asked->addresses < MANY / 2);
	run(NULL);
	assert_true(asked->addresses < MANY / 2);
	/* A file of the user's that is older makes no room. */
	snprintf(path, sizeof(path), "%s/0-notes", cache);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(futimens(fd, (struct timespec[2]){ 0 }), 0);
	close(fd);
	for (unsigned int i = 0; i < WP_NAME_CACHE_FILES + 9; i++) {
		images[0].build_id[1] = (uint8_t)i;
		images[0].build_id[2] = (uint8_t)(i >> 8);
		address(1, 1, 1);
		run(NULL);
	}
	dir = opendir(cache);
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	assert_int_equal(n, WP_NAME_CACHE_FILES + 1);
	assert_int_equal(unlink(path), 0);
}

static void the_directory_is_ones_own(void **state)
{
	char home[PATH_MAX];
	struct stat st;
	uid_t uid = geteuid();
	int fd = wp_name_cache_open();

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close(fd);
	assert_int_equal(chmod(cache, 0710), 0);
	assert_int_equal(wp_name_cache_open(), -EPERM);
	assert_int_equal(chmod(cache, 0700), 0);
	if (uid == 0) {
		assert_int_equal(chown(cache, 65534, 65534), 0);
		assert_int_equal(wp_name_cache_open(), -EPERM);
	}
	assert_int_equal(rmdir(cache), 0);
	assert_int_equal(symlink(root, cache), 0);
	assert_int_equal(wp_name_cache_open(), -ENOTDIR);
	setenv("WALLPROF_CACHE", "", 1);
	assert_int_equal(wp_name_cache_open(), -ENOENT);
	setenv("WALLPROF_CACHE", "here", 1);
	assert_int_equal(wp_name_cache_open(), -ENOENT);
	unsetenv("WALLPROF_CACHE");
	if (uid == 0) {
		assert_int_equal(chown(root, 65534, 65534), 0);
		assert_int_equal(seteuid(65534), 0);
	}
	setenv("XDG_CACHE_HOME", root, 1);
	fd = wp_name_cache_open();
	assert_true(fd >= 0);
	close(fd);
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", root, 1);
	assert_int_equal(wp_name_cache_open(), -ENOENT);
	snprintf(home, sizeof(home), "%s/.cache", root);
	assert_int_equal(mkdir(home, 0700), 0);
	fd = wp_name_cache_open();
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(seteuid(uid), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_named_is_not_asked_for_again),
		TEST(only_what_is_missing_is_asked_for),
		TEST(a_file_that_has_changed_is_named_anew),
		TEST(a_debug_file_that_has_come_is_read),
		TEST(what_another_roots_debug_file_says_is_not_kept),
		TEST(plain_names_are_not_kept_for_ever),
		TEST(plain_names_are_not_kept_with_better_ones),
		TEST(what_others_can_write_is_not_kept),
		TEST(what_a_child_did_not_end_is_not_kept),
		TEST(a_damaged_file_is_of_no_use),
		TEST(a_file_and_their_number_are_bounded),
		TEST(the_directory_is_ones_own),
	};

	return cmocka_run_group_tests_name("name_cache", tests, NULL, NULL);
}
