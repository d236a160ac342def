/* SPDX-License-Identifier: Apache-2.0 */
/* file_lock.c - see wallprof/file_lock.h. */
#include "wallprof/file_lock.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "text_scan.h"

enum { BEST_FIT = 4 };

/* A line of /proc/locks, or of an fdinfo behind "lock:" (fs/locks.c,
 * lock_get_status), as in
 * "3:  -> POSIX  ADVISORY  WRITE 4242 fd:01:131 0 EOF". */
struct line {
	uint64_t id;
	bool waits;
	bool write;
	char type[sizeof(((struct wp_file_lock *)0)->type)];
	pid_t pid;
	uint64_t dev;
	uint64_t ino;
};

/* The next word into BUF, cut to fit. */
static void read_word(struct wp_text_scan *c, char *buf, size_t size)
{
	size_t n = 0;

	wp_text_scan_blanks(c);
	if (c->p == c->end)
		c->bad = true;
	for (; c->p < c->end && *c->p != ' '; c->p++)
		if (n + 1 < size)
			buf[n++] = *c->p;
	buf[n] = '\0';
}

static pid_t read_pid(struct wp_text_scan *c)
{
	bool negative = wp_text_scan_minus(c);
	uint64_t val = wp_text_scan_number(c, 10);

	if (val > INT32_MAX) {
		c->bad = true;
		return 0;
	}
	return negative ? -(pid_t)val : (pid_t)val;
}

/* Parse a line up to its range. */
static bool parse_line(struct line *ret, struct wp_text_scan *c)
{
	uint64_t major_nr, minor_nr;
	char word[16];

	ret->id = wp_text_scan_number(c, 10);
	wp_text_scan_expect(c, ':');
	wp_text_scan_blanks(c);
	ret->waits = c->end - c->p >= 2 && !memcmp(c->p, "->", 2);
	if (ret->waits)
		c->p += 2;
	read_word(c, ret->type, sizeof(ret->type));
	/* ADVISORY, MSNFS, BREAKER, ... */
	read_word(c, word, sizeof(word));
	read_word(c, word, sizeof(word));
	ret->write = !strcmp(word, "WRITE") || !strcmp(word, "RW");
	ret->pid = read_pid(c);
	wp_text_scan_blanks(c);
	major_nr = wp_text_scan_number(c, 16);
	wp_text_scan_expect(c, ':');
	minor_nr = wp_text_scan_number(c, 16);
	wp_text_scan_expect(c, ':');
	ret->ino = wp_text_scan_number(c, 10);
	/* A number that ends where the text does may be cut. */
	wp_text_scan_expect(c, ' ');
	ret->dev = makedev((unsigned int)major_nr, (unsigned int)minor_nr);
	return !c->bad;
}

/* "10 29" or "0 EOF", the last byte included. */
static bool parse_range(struct wp_text_scan *c, uint64_t *ret_first,
			uint64_t *ret_last)
{
	*ret_first = wp_text_scan_number(c, 10);
	wp_text_scan_expect(c, ' ');
	*ret_last = UINT64_MAX;
	if (c->end - c->p == 3 && !memcmp(c->p, "EOF", 3))
		c->p += 3;
	else
		*ret_last = wp_text_scan_number(c, 10);
	return !c->bad && c->p == c->end;
}

/* How well L, up to whose range C has read, fits WAITER's line: 0 if it is another's;
 * its range tells more than its device. */
static int fit(const struct line *l, struct wp_text_scan *c,
	       const struct wp_file_waiter *waiter)
{
	uint64_t first, last;
	bool same_range;

	if (!l->waits || l->pid != waiter->pid || l->ino != waiter->ino ||
	    waiter->is_flock != !strcmp(l->type, "FLOCK"))
		return 0;
	same_range = !waiter->want || (parse_range(c, &first, &last) &&
				       first == waiter->want->first &&
				       last == waiter->want->last);
	return 1 + (l->dev == waiter->dev) + (same_range ? 2 : 0);
}

/* A lock's holder has the line before its waiters, with the same id; a waiter
 * behind another waiter waits for the holder, too. */
int wp_file_lock_find(struct wp_file_lock *ret, const char *text, size_t len,
		      const struct wp_file_waiter *waiter)
{
	const char *p = text, *end = text + len;
	struct line held = { 0 };
	int best = 0;

	while (p < end && best < BEST_FIT) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		struct wp_text_scan c = { p, nl ? nl : end, false };
		struct line l = { 0 };
		int n;

		p = nl ? nl + 1 : end;
		if (!parse_line(&l, &c))
			continue;
		if (!l.waits)
			held = l;
		n = fit(&l, &c, waiter);
		if (n > best && held.id == l.id && held.ino == l.ino &&
		    held.dev == l.dev) {
			memcpy(ret->type, held.type, sizeof(ret->type));
			ret->holder = held.pid;
			ret->write = held.write;
			best = n;
		}
	}
	return best ? 0 : -ENOENT;
}

static bool is_of_kind(const struct line *l, enum wp_file_want_kind kind)
{
	if (kind == WP_FILE_WANT_FLOCK)
		return !strcmp(l->type, "FLOCK");
	return !strcmp(l->type, "OFDLCK") ||
	       (kind == WP_FILE_WANT_OFD && !strcmp(l->type, "POSIX"));
}

bool wp_file_lock_blocks(const struct wp_file_want *want, const char *text,
			 size_t len)
{
	static const char key[] = "lock:\t";
	const size_t n = sizeof(key) - 1;
	const char *p = text, *end = text + len, *nl;

	for (; (nl = memchr(p, '\n', (size_t)(end - p))); p = nl + 1) {
		struct wp_text_scan c = { p + n, nl, false };
		struct line l = { 0 };
		uint64_t first, last;

		if ((size_t)(nl - p) <= n || memcmp(p, key, n) ||
		    !parse_line(&l, &c) || !parse_range(&c, &first, &last))
			continue;
		if (is_of_kind(&l, want->kind) && (l.write || want->write) &&
		    first <= want->last && last >= want->first)
			return true;
	}
	return false;
}
