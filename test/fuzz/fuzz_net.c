/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_net.c - the tables of sockets in /proc/PID/net, and the links of
 * /proc/PID/fd.  The first line says which table the rest is; the kernel's own
 * heading stands after it.
 *
 * Layer: proc.
 */
#include "fuzz.h"
#include "wallprof/fdinfo.h"

static const char *const tables[] = { "tcp",  "tcp6", "udp",	 "udp6",  "raw",
				      "raw6", "unix", "netlink", "packet" };

static const char *table_of(const char *line, size_t len)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		if (strlen(tables[i]) == len && !memcmp(tables[i], line, len))
			return tables[i];
	return "tcp";
}

static void check_sockets(struct wp_fdinfo *fi)
{
	/* It sorts them. */
	(void)wp_fdinfo_find_socket(fi, 0);
	for (size_t i = 0; i < fi->nsockets; i++) {
		const struct wp_socket *s = &fi->sockets[i];

		FUZZ_CHECK(s->ino);
		FUZZ_CHECK(!i || fi->sockets[i - 1].ino <= s->ino);
		FUZZ_CHECK(s->text < fi->texts_len);
		FUZZ_CHECK(memchr(fi->texts + s->text, '\0',
				  fi->texts_len - s->text));
		FUZZ_CHECK(wp_fdinfo_find_socket(fi, s->ino) ||
			   (i && fi->sockets[i - 1].ino == s->ino) ||
			   (i + 1 < fi->nsockets &&
			    fi->sockets[i + 1].ino == s->ino));
	}
}

static void classify(const uint8_t *data, size_t size)
{
	char *link = malloc(size + 1);
	enum wp_fd_kind kind;

	if (!link)
		return;
	memcpy(link, data, size);
	link[size] = '\0';
	kind = wp_fdinfo_classify(link);
	FUZZ_CHECK(kind < WP_NFD_KINDS && wp_fd_kind_name(kind));
	free(link);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nl = size ? memchr(data, '\n', size) : NULL;
	size_t n = nl ? (size_t)(nl - data) : 0, skip = nl ? n + 1 : 0;
	struct wp_fdinfo fi;

	wp_fdinfo_init(&fi, -1);
	(void)!wp_fdinfo_parse_net(&fi, table_of((const char *)data, n),
				   (const char *)data + skip, size - skip);
	check_sockets(&fi);
	(void)wp_fdinfo_find_socket(&fi, 0);
	wp_fdinfo_clear(&fi);
	classify(data, size);
	return 0;
}
