/* SPDX-License-Identifier: Apache-2.0 */
/* sockets.c - the tables of sockets in /proc/PID/net: see wallprof/fdinfo.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/vec.h"

#include "wallprof/fdinfo.h"

enum {
	/* Number of fields of a line that are parsed. */
	FIELDS = 17,
	/* include/net/tcp_states.h */
	STATE_LISTEN = 10,
	/* A line of these tables is under 300 bytes and a path of 108. */
	LINE_MAX_LEN = 512,
};

static int add_socket(struct wp_fdinfo *fi, uint64_t ino, const char *text)
{
	size_t len = strlen(text) + 1;

	if (WP_VEC_ROOM(fi->sockets, fi->nsockets, fi->cap_sockets, 1) ||
	    WP_VEC_ROOM(fi->texts, fi->texts_len, fi->texts_cap, len))
		return -ENOMEM;
	memcpy(fi->texts + fi->texts_len, text, len);
	fi->sockets[fi->nsockets++] = (struct wp_socket){ ino, fi->texts_len };
	fi->texts_len += len;
	fi->is_sorted = false;
	return 0;
}

/* Split LINE at blanks, in place; returns the number of fields. */
static size_t split(char *line, char **field)
{
	char *save, *word;
	size_t n = 0;

	for (word = strtok_r(line, " \t", &save); word && n < FIELDS;
	     word = strtok_r(NULL, " \t", &save))
		field[n++] = word;
	return n;
}

/* "0100007F:1F90" or 32 digits: 32-bit words of the address as this machine
 * stores them (net/ipv4/tcp_ipv4.c, net/ipv6/tcp_ipv6.c).
 */
static bool format_address(const char *hex, char *buf, size_t size)
{
	const char *colon = strchr(hex, ':');
	uint32_t words[4] = { 0 };
	size_t n = colon ? (size_t)(colon - hex) / 8 : 0;
	char name[INET6_ADDRSTRLEN];
	unsigned long port;
	static const uint32_t mapped_mark = 0xffff;

	if (!colon || (n != 1 && n != 4) || (size_t)(colon - hex) != 8 * n)
		return false;
	for (size_t i = 0; i < n; i++) {
		char digits[9] = "", *end;

		memcpy(digits, hex + 8 * i, 8);
		words[i] = (uint32_t)strtoul(digits, &end, 16);
		if (*end)
			return false;
	}
	port = strtoul(colon + 1, NULL, 16) & 0xffff;
	if (n == 4 && !words[0] && !words[1] &&
	    words[2] == htonl(mapped_mark)) {
		words[0] = words[3];
		n = 1;
	}
	if (!inet_ntop(n == 1 ? AF_INET : AF_INET6, words, name, sizeof(name)))
		return false;
	snprintf(buf, size, n == 1 ? "%s:%lu" : "[%s]:%lu", name, port);
	return true;
}

static bool is_unconnected(const char *address)
{
	size_t n = strlen(address);

	return n > 2 && !strcmp(address + n - 2, ":0");
}

/*  sl  local_address rem_address   st tx:rx tr:tm retrnsmt uid timeout inode */
static int add_inet(struct wp_fdinfo *fi, const char *name, char *line)
{
	enum { LOCAL = 1, REMOTE = 2, STATE = 3, INODE = 9 };
	char *field[FIELDS], local[64], remote[64], text[160];
	size_t proto = strcspn(name, "6");
	uint64_t ino;

	if (split(line, field) <= INODE ||
	    !format_address(field[LOCAL], local, sizeof(local)) ||
	    !format_address(field[REMOTE], remote, sizeof(remote)))
		return 0;
	ino = strtoull(field[INODE], NULL, 10);
	if (!ino)
		return 0;
	if (!strncmp(name, "tcp", 3) &&
	    strtoul(field[STATE], NULL, 16) == STATE_LISTEN)
		snprintf(text, sizeof(text), "%.*s listen %s", (int)proto, name,
			 local);
	else if (is_unconnected(remote))
		snprintf(text, sizeof(text), "%.*s %s", (int)proto, name,
			 local);
	else
		snprintf(text, sizeof(text), "%.*s %s -> %s", (int)proto, name,
			 local, remote);
	return add_socket(fi, ino, text);
}

/* Num RefCount Protocol Flags Type St Inode Path */
static int add_unix(struct wp_fdinfo *fi, char *line)
{
	enum { FLAGS = 3, INODE = 6, PATH = 7, ACCEPTING = 1 << 16 };
	char *field[FIELDS], text[160];
	size_t n = split(line, field);
	uint64_t ino;

	if (n <= INODE)
		return 0;
	ino = strtoull(field[INODE], NULL, 10);
	if (!ino)
		return 0;
	snprintf(text, sizeof(text), "unix%s %s",
		 strtoul(field[FLAGS], NULL, 16) & ACCEPTING ? " listen" : "",
		 n > PATH ? field[PATH] : "(unnamed)");
	return add_socket(fi, ino, text);
}

/* netlink and packet: the inode is the last field. */
static int add_other(struct wp_fdinfo *fi, const char *name, char *line)
{
	char *field[FIELDS];
	size_t n = split(line, field);
	uint64_t ino = n ? strtoull(field[n - 1], NULL, 10) : 0;

	return ino ? add_socket(fi, ino, name) : 0;
}

static int add_line(struct wp_fdinfo *fi, const char *name, char *line)
{
	if (!strcmp(name, "unix"))
		return add_unix(fi, line);
	if (!strcmp(name, "netlink") || !strcmp(name, "packet"))
		return add_other(fi, name, line);
	return add_inet(fi, name, line);
}

static int compare_sockets(const void *a, const void *b)
{
	const struct wp_socket *x = a, *y = b;

	return (x->ino > y->ino) - (x->ino < y->ino);
}

int wp_fdinfo_parse_net(struct wp_fdinfo *fi, const char *name,
			const char *text, size_t len)
{
	const char *p = memchr(text, '\n', len), *end = text + len;
	int rc = 0;

	/* The first line is the heading. */
	for (p = p ? p + 1 : end; p < end && !rc;) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = (size_t)((nl ? nl : end) - p);
		char line[LINE_MAX_LEN];

		if (n < sizeof(line)) {
			memcpy(line, p, n);
			line[n] = '\0';
			rc = add_line(fi, name, line);
		}
		p = nl ? nl + 1 : end;
	}
	return rc;
}

const char *wp_fdinfo_find_socket(struct wp_fdinfo *fi, uint64_t ino)
{
	const struct wp_socket key = { ino, 0 }, *found = NULL;
	const struct wp_socket *end = fi->sockets + fi->nsockets;

	if (fi->nsockets && !fi->is_sorted)
		qsort(fi->sockets, fi->nsockets, sizeof(*fi->sockets),
		      compare_sockets);
	fi->is_sorted = true;
	if (fi->nsockets)
		found = bsearch(&key, fi->sockets, fi->nsockets,
				sizeof(*fi->sockets), compare_sockets);
	if (!found)
		return NULL;
	/* Of lines that differ one is forged: names of unix sockets stand in their table
	 * as they are, and may have newlines. */
	while (found > fi->sockets && found[-1].ino == ino)
		found--;
	for (const struct wp_socket *s = found + 1; s < end && s->ino == ino;
	     s++)
		if (strcmp(fi->texts + s->text, fi->texts + found->text))
			return NULL;
	return fi->texts + found->text;
}
