/* SPDX-License-Identifier: Apache-2.0 */
/* demangle.c - see demangle.h.
 *
 * A mangled name of 300 bytes can stand for gigabytes of text (substitutions
 * that double each time), and libiberty has no bound on its output.  So its
 * callback interface is used, and left by longjmp when there is enough: it
 * prints from its own stack frames and holds no memory then.
 */
#include "demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <libiberty/demangle.h>

/* libiberty puts its parse tree on the stack, 40 times the name's length. */
enum { MANGLED_MAX = 8192 };

struct sink {
	char *buf;
	size_t size;
	size_t len;
	jmp_buf full;
};

static void put(const char *s, size_t n, void *opaque)
{
	struct sink *sink = opaque;

	if (n >= sink->size - sink->len)
		longjmp(sink->full, 1);
	/* An empty crate name comes as NULL. */
	if (n)
		memcpy(sink->buf + sink->len, s, n);
	sink->len += n;
	sink->buf[sink->len] = '\0';
}

static bool demangle(const char *mangled, struct sink *sink)
{
	/* Rust's old scheme is C++'s with a hash, so it goes first. */
	if (setjmp(sink->full))
		return false;
	if (rust_demangle_callback(mangled, DMGL_NO_OPTS, put, sink))
		return sink->len > 0;
	sink->len = 0;
	return cplus_demangle_v3_callback(mangled, DMGL_ANSI, put, sink) &&
	       sink->len > 0;
}

/* Whether all of S is a clone's suffix: ".cold", ".part.0", ".isra.0.cold". */
static bool is_clone_suffix(const char *s)
{
	/* What gcc and clang append; a number follows where one must. */
	static const struct {
		const char *text;
		bool number;
	} suffixes[] = {
		{ ".cold", false },	{ ".localalias", false },
		{ ".part", true },	{ ".isra", true },
		{ ".constprop", true }, { ".lto_priv", true },
		{ ".llvm", true },
	};

	while (*s) {
		size_t i = 0, n = 0;

		while (i < sizeof(suffixes) / sizeof(*suffixes)) {
			n = strlen(suffixes[i].text);
			if (!strncmp(s, suffixes[i].text, n) &&
			    (!s[n] || s[n] == '.'))
				break;
			i++;
		}
		if (i == sizeof(suffixes) / sizeof(*suffixes))
			return false;
		s += n;
		n = *s ? strspn(s + 1, "0123456789") : 0;
		if (n && (!s[1 + n] || s[1 + n] == '.'))
			s += 1 + n;
		else if (suffixes[i].number)
			return false;
	}
	return true;
}

/* The length of NAME[0..n) without such a suffix. */
static size_t stem_len(const char *name, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (name[i] == '.' && is_clone_suffix(name + i))
			return i;
	return n;
}

void wp_demangle(const char *symbol, char *buf, size_t size)
{
	static const char plt[] = "@plt";
	struct sink sink = { .buf = buf, .size = size };
	size_t n = strlen(symbol), tail = sizeof(plt) - 1;
	char stem[MANGLED_MAX];
	bool is_plt;

	if (n >= sizeof(stem) || n >= size) {
		snprintf(buf, size, "%s", symbol);
		return;
	}
	memcpy(stem, symbol, n + 1);
	is_plt = n > tail && !strcmp(stem + n - tail, plt);
	if (is_plt)
		stem[n -= tail] = '\0';
	stem[n = stem_len(stem, n)] = '\0';
	if (!demangle(stem, &sink)) {
		memcpy(buf, stem, n + 1);
		sink.len = n;
	}
	if (is_plt && size - sink.len > tail)
		memcpy(buf + sink.len, plt, tail + 1);
}
