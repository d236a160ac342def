/* inflate.c - see inflate.h.  RFC 1950 and RFC 1951. */
#include "inflate.h"

#include <errno.h>
#include <string.h>

enum {
	CODE_BITS_MAX = 15,
	LIT_SYMBOLS = 286,
	DIST_SYMBOLS = 30,
	/* The fixed codes have two more of each, that never occur. */
	LIT_FIXED = 288,
	END_OF_BLOCK = 256,
	ORDERS = 19,
	ORDER_BITS = 7,
	MATCH_MAX = 258,
	/* What the fast loop may write, and read, in one turn. */
	FAST_OUT = MATCH_MAX + 32,
	FAST_IN = 32,
};

/* An entry of a table: bits 0-4, how many bits the code takes (in a link, all
 * of the first table's); 5-8, how many more are to be added to the value; from
 * bit 16, the value: a byte, a length, a distance, or where the next table
 * is. */
enum {
	EXTRA_SHIFT = 5,
	EXTRA_MASK = 15,
	CODE_MASK = 31,
	VALUE_SHIFT = 16,
	IS_LITERAL = 1 << 9,
	IS_LINK = 1 << 10,
	IS_END = 1 << 11,
	IS_BAD = 1 << 12,
};

static uint64_t load(const uint8_t *p)
{
	uint64_t val;

	memcpy(&val, p, sizeof(val));
	return val;
}

/* Bits beyond NBITS are either 0 or what comes next anyway, so that a byte may
 * be put over them again. */
static void refill(struct wp_inflate *z)
{
	while (z->nbits < 56 && z->in < z->in_end) {
		z->bits |= (uint64_t)*z->in++ << z->nbits;
		z->nbits += 8;
	}
}

static void skip(struct wp_inflate *z, unsigned int n)
{
	z->bits >>= n;
	z->nbits -= n;
}

/* The next N bits, at most 16; past the end, 0 and BAD. */
static uint32_t take(struct wp_inflate *z, unsigned int n)
{
	uint32_t val;

	refill(z);
	if (n > z->nbits) {
		z->state = WP_INFLATE_BAD;
		return 0;
	}
	val = (uint32_t)(z->bits & ((1u << n) - 1));
	skip(z, n);
	return val;
}

int wp_inflate_init(struct wp_inflate *z, const uint8_t *in, size_t len)
{
	/* RFC 1950, 2.2: deflate, a window of at most 32 KiB, no dictionary. */
	if (len < 2 || (in[0] & 15) != 8 || in[0] >> 4 > 7 || (in[1] & 32) ||
	    (in[0] << 8 | in[1]) % 31)
		return -EBADMSG;
	*z = (struct wp_inflate){ .in = in + 2, .in_end = in + len };
	return 0;
}

static uint32_t reverse(uint32_t code, unsigned int len)
{
	uint32_t ret = 0;

	for (; len; len--, code >>= 1)
		ret = ret << 1 | (code & 1);
	return ret;
}

/* What symbols mean: value and extra bits, without the length of the code. */
static uint32_t lit_meaning(uint32_t symbol)
{
	/* RFC 1951, 3.2.5. */
	static const uint16_t base[] = {
		3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35,
		43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
	};
	uint32_t i = symbol - END_OF_BLOCK - 1, extra = 0;

	if (symbol < END_OF_BLOCK)
		return symbol << VALUE_SHIFT | IS_LITERAL;
	if (symbol == END_OF_BLOCK)
		return IS_END;
	if (symbol >= LIT_SYMBOLS)
		return IS_BAD;
	if (i >= 8 && i < 28)
		extra = (i - 4) / 4;
	return (uint32_t)base[i] << VALUE_SHIFT | extra << EXTRA_SHIFT;
}

static uint32_t dist_meaning(uint32_t symbol)
{
	uint32_t extra = symbol < 4 ? 0 : symbol / 2 - 1;
	uint32_t base = symbol < 4 ? symbol + 1 :
				     ((2 + (symbol & 1)) << extra) + 1;

	return symbol < DIST_SYMBOLS ?
		base << VALUE_SHIFT | extra << EXTRA_SHIFT : IS_BAD;
}

static uint32_t plain_meaning(uint32_t symbol)
{
	return symbol << VALUE_SHIFT;
}

typedef uint32_t meaning_fn(uint32_t symbol);

/* The lengths of a code, sorted. */
struct code {
	/* How many symbols have codes of so many bits. */
	uint16_t count[CODE_BITS_MAX + 1];
	/* The symbols, those with short codes first. */
	uint16_t sorted[LIT_FIXED];
	uint32_t n;
	unsigned int longest;
};

/* 1 if the code is complete, 0 if it is one that is allowed not to be (none or
 * one symbol), -1 if it is none. */
static int sort_code(struct code *code, const uint8_t *lens, uint32_t n,
		     bool may_lack)
{
	uint16_t at[CODE_BITS_MAX + 2] = { 0 };
	int32_t left = 1;

	memset(code->count, 0, sizeof(code->count));
	code->longest = 0;
	for (uint32_t i = 0; i < n; i++)
		code->count[lens[i]]++;
	code->count[0] = 0;
	for (unsigned int len = 1; len <= CODE_BITS_MAX; len++) {
		left = 2 * left - code->count[len];
		if (left < 0)
			return -1;
		if (code->count[len])
			code->longest = len;
		at[len + 1] = (uint16_t)(at[len] + code->count[len]);
	}
	code->n = at[CODE_BITS_MAX + 1];
	for (uint32_t i = 0; i < n; i++)
		if (lens[i])
			code->sorted[at[lens[i]]++] = (uint16_t)i;
	if (!left)
		return 1;
	return may_lack && code->longest <= 1 ? 0 : -1;
}

/* How many bits a table needs for what follows the first BITS of codes from
 * LEN bits on, COUNT of which are left of each length. */
static unsigned int link_bits(const struct code *code, const uint16_t *left,
			      unsigned int len, unsigned int bits)
{
	unsigned int n = len - bits;
	int32_t room = 1 << n;

	for (;; n++, room *= 2) {
		room -= left[n + bits];
		if (room <= 0 || n + bits >= code->longest)
			return n;
	}
}

static void put(uint32_t *table, uint32_t size, uint32_t at, uint32_t step,
		uint32_t entry)
{
	for (; at < size; at += step)
		table[at] = entry;
}

/* Fill TABLE[0..max), which is looked up by BITS bits first, for the symbols of
 * LENS[0..n). */
static bool make_table(uint32_t *table, uint32_t max, unsigned int bits,
		       const uint8_t *lens, uint32_t n, meaning_fn *meaning,
		       bool may_lack)
{
	uint32_t size = 1u << bits, next = size, code_word = 0, sub = 0;
	uint32_t sub_prefix = UINT32_MAX, sub_size = 0;
	unsigned int len = 1;
	struct code code;
	uint16_t *left = code.count;
	int kind = sort_code(&code, lens, n, may_lack);

	if (kind < 0)
		return false;
	if (!kind)
		put(table, size, 0, 1, IS_BAD);
	for (uint32_t i = 0; i < code.n; i++, code_word++) {
		uint32_t entry = meaning(code.sorted[i]), word;

		for (; !left[len]; len++)
			code_word <<= 1;
		word = reverse(code_word, len);
		if (len <= bits) {
			put(table, size, word, 1u << len, entry | len);
			left[len]--;
			continue;
		}
		if ((word & (size - 1)) != sub_prefix) {
			unsigned int n_bits = link_bits(&code, left, len, bits);

			sub_prefix = word & (size - 1);
			sub = next;
			sub_size = 1u << n_bits;
			next += sub_size;
			if (next > max)
				return false;
			table[sub_prefix] = sub << VALUE_SHIFT | IS_LINK |
					    n_bits << EXTRA_SHIFT | bits;
		}
		put(table + sub, sub_size, word >> bits, 1u << (len - bits),
		    entry | (len - bits));
		left[len]--;
	}
	return true;
}

static bool read_fixed(struct wp_inflate *z)
{
	uint8_t lens[LIT_FIXED];

	/* RFC 1951, 3.2.6. */
	memset(lens, 8, 144);
	memset(lens + 144, 9, 112);
	memset(lens + 256, 7, 24);
	memset(lens + 280, 8, 8);
	if (!make_table(z->lit, WP_INFLATE_LIT_MAX, WP_INFLATE_LIT_BITS, lens,
			LIT_FIXED, lit_meaning, false))
		return false;
	memset(lens, 5, 32);
	return make_table(z->dist, WP_INFLATE_DIST_MAX, WP_INFLATE_DIST_BITS,
			  lens, 32, dist_meaning, false);
}

/* The lengths of both codes, themselves in a code.  (RFC 1951, 3.2.7.) */
static bool read_lens(struct wp_inflate *z, const uint32_t *table,
		      uint8_t *lens, uint32_t n)
{
	uint32_t i = 0;

	while (i < n) {
		uint32_t entry, symbol, repeat = 1;
		uint8_t len = 0;

		refill(z);
		entry = table[z->bits & ((1 << ORDER_BITS) - 1)];
		if ((entry & IS_BAD) || (entry & CODE_MASK) > z->nbits)
			return false;
		skip(z, entry & CODE_MASK);
		symbol = entry >> VALUE_SHIFT;
		if (symbol < 16) {
			lens[i++] = (uint8_t)symbol;
			continue;
		}
		if (symbol == 16) {
			if (!i)
				return false;
			len = lens[i - 1];
			repeat = 3 + take(z, 2);
		} else {
			repeat = symbol == 17 ? 3 + take(z, 3) :
						11 + take(z, 7);
		}
		if (z->state == WP_INFLATE_BAD || repeat > n - i)
			return false;
		memset(lens + i, len, repeat);
		i += repeat;
	}
	return true;
}

static bool read_dynamic(struct wp_inflate *z)
{
	static const uint8_t order[ORDERS] = { 16, 17, 18, 0, 8, 7, 9, 6, 10, 5,
					       11, 4, 12, 3, 13, 2, 14, 1, 15 };
	uint32_t nlit = 257 + take(z, 5), ndist = 1 + take(z, 5);
	uint32_t norder = 4 + take(z, 4), table[1 << ORDER_BITS];
	uint8_t lens[LIT_SYMBOLS + DIST_SYMBOLS] = { 0 };

	if (nlit > LIT_SYMBOLS || ndist > DIST_SYMBOLS)
		return false;
	for (uint32_t i = 0; i < norder; i++)
		lens[order[i]] = (uint8_t)take(z, 3);
	if (z->state == WP_INFLATE_BAD ||
	    !make_table(table, 1 << ORDER_BITS, ORDER_BITS, lens, ORDERS,
			plain_meaning, false) ||
	    !read_lens(z, table, lens, nlit + ndist) || !lens[END_OF_BLOCK])
		return false;
	return make_table(z->lit, WP_INFLATE_LIT_MAX, WP_INFLATE_LIT_BITS, lens,
			  nlit, lit_meaning, true) &&
	       make_table(z->dist, WP_INFLATE_DIST_MAX, WP_INFLATE_DIST_BITS,
			  lens + nlit, ndist, dist_meaning, true);
}

/* (RFC 1951, 3.2.4.) */
static bool read_stored(struct wp_inflate *z)
{
	uint32_t len;

	skip(z, z->nbits & 7);
	len = take(z, 16);
	if (take(z, 16) != (len ^ 0xffff) || z->state == WP_INFLATE_BAD)
		return false;
	/* Whole bytes that were read ahead are given back. */
	z->in -= z->nbits / 8;
	z->bits = 0;
	z->nbits = 0;
	z->stored_left = len;
	return true;
}

static void read_block(struct wp_inflate *z)
{
	uint32_t type;
	bool ok = false;

	if (z->last) {
		z->state = WP_INFLATE_DONE;
		return;
	}
	z->last = take(z, 1);
	type = take(z, 2);
	if (z->state == WP_INFLATE_BAD)
		return;
	if (type == 0)
		ok = read_stored(z);
	else if (type == 1)
		ok = read_fixed(z);
	else if (type == 2)
		ok = read_dynamic(z);
	if (!ok)
		z->state = WP_INFLATE_BAD;
	else
		z->state = type ? WP_INFLATE_CODES : WP_INFLATE_STORED;
}

static size_t copy_stored(struct wp_inflate *z, uint8_t *out, size_t pos,
			  size_t stop)
{
	size_t n = stop - pos;

	if (n > z->stored_left)
		n = z->stored_left;
	if (n > (size_t)(z->in_end - z->in)) {
		n = (size_t)(z->in_end - z->in);
		z->state = WP_INFLATE_BAD;
	}
	memcpy(out + pos, z->in, n);
	z->in += n;
	z->stored_left -= (uint32_t)n;
	if (!z->stored_left && z->state != WP_INFLATE_BAD)
		z->state = WP_INFLATE_BLOCK;
	return pos + n;
}

/* Go on with the copy that was begun. */
static size_t copy_match(struct wp_inflate *z, uint8_t *out, size_t pos,
			 size_t stop)
{
	for (; z->copy_left && pos < stop; z->copy_left--, pos++)
		out[pos] = out[pos - z->copy_dist];
	return pos;
}

/* The next entry of TABLE, its code skipped; IS_BAD past the end. */
static uint32_t next_entry(struct wp_inflate *z, const uint32_t *table,
			   unsigned int bits)
{
	uint32_t entry;

	refill(z);
	entry = table[z->bits & ((1u << bits) - 1)];
	if ((entry & CODE_MASK) > z->nbits)
		return IS_BAD;
	skip(z, entry & CODE_MASK);
	if (entry & IS_LINK) {
		uint32_t mask = (1u << (entry >> EXTRA_SHIFT & EXTRA_MASK)) - 1;

		entry = table[(entry >> VALUE_SHIFT) + (z->bits & mask)];
		if ((entry & CODE_MASK) > z->nbits)
			return IS_BAD;
		skip(z, entry & CODE_MASK);
	}
	return entry;
}

static uint32_t value_of(struct wp_inflate *z, uint32_t entry)
{
	return (entry >> VALUE_SHIFT) +
	       take(z, entry >> EXTRA_SHIFT & EXTRA_MASK);
}

/* One literal or match, with every check. */
static size_t step(struct wp_inflate *z, uint8_t *out, size_t pos, size_t stop)
{
	uint32_t entry = next_entry(z, z->lit, WP_INFLATE_LIT_BITS), len;

	if (entry & IS_LITERAL) {
		out[pos] = (uint8_t)(entry >> VALUE_SHIFT);
		return pos + 1;
	}
	if (entry & (IS_END | IS_BAD)) {
		z->state = entry & IS_BAD ? WP_INFLATE_BAD : WP_INFLATE_BLOCK;
		return pos;
	}
	len = value_of(z, entry);
	entry = next_entry(z, z->dist, WP_INFLATE_DIST_BITS);
	if (entry & IS_BAD) {
		z->state = WP_INFLATE_BAD;
		return pos;
	}
	z->copy_dist = value_of(z, entry);
	if (z->copy_dist > pos)
		z->state = WP_INFLATE_BAD;
	if (z->state == WP_INFLATE_BAD)
		return pos;
	z->copy_left = len;
	return copy_match(z, out, pos, stop);
}

/* LEN bytes from DIST before TO; up to 31 more may be written. */
static void copy_wide(uint8_t *to, uint32_t dist, uint32_t len)
{
	const uint8_t *from = to - dist;
	uint8_t *end = to + len;

	if (dist >= 16) {
		do {
			memcpy(to, from, 16);
			to += 16;
			from += 16;
		} while (to < end);
	} else if (dist >= 8) {
		do {
			memcpy(to, from, 8);
			to += 8;
			from += 8;
		} while (to < end);
	} else if (dist == 1) {
		memset(to, *from, len);
	} else {
		while (to < end)
			*to++ = *from++;
	}
}

/* As many turns as fit without asking for the end of input or output.  What
 * it cannot do it leaves to step(), unread. */
static size_t run_fast(struct wp_inflate *z, uint8_t *out, size_t pos,
		       size_t stop)
{
	enum { LIT_MASK = (1 << WP_INFLATE_LIT_BITS) - 1,
	       DIST_MASK = (1 << WP_INFLATE_DIST_BITS) - 1 };
	const uint8_t *in = z->in, *in_stop = z->in_end - FAST_IN;
	uint64_t bits = z->bits, ahead;
	unsigned int nbits = z->nbits, ahead_n, extra;
	uint32_t entry, len, dist;
	uint8_t *to = out + pos, *to_stop = out + stop - FAST_OUT;

/* At least 56 bits. */
#define REFILL() do { \
		bits |= load(in) << nbits; \
		in += (63 - nbits) >> 3; \
		nbits |= 56; \
	} while (0)
#define SKIP(n) do { \
		unsigned int n_ = (n); \
		bits >>= n_; \
		nbits -= n_; \
	} while (0)

	REFILL();
	entry = z->lit[bits & LIT_MASK];
	while (in < in_stop && to < to_stop) {
		/* Three of at most 11 bits, and what follows: at most 20, and
		 * more are asked for before a distance. */
		for (int i = 0; i < 3 && (entry & IS_LITERAL); i++) {
			SKIP(entry & CODE_MASK);
			*to++ = (uint8_t)(entry >> VALUE_SHIFT);
			entry = z->lit[bits & LIT_MASK];
		}
		REFILL();
		if (entry & IS_LITERAL)
			continue;
		ahead = bits;
		ahead_n = nbits;
		if (entry & IS_LINK) {
			extra = entry >> EXTRA_SHIFT & EXTRA_MASK;
			SKIP(WP_INFLATE_LIT_BITS);
			entry = z->lit[(entry >> VALUE_SHIFT) +
				       (bits & ((1u << extra) - 1))];
			if (entry & IS_LITERAL) {
				SKIP(entry & CODE_MASK);
				*to++ = (uint8_t)(entry >> VALUE_SHIFT);
				REFILL();
				entry = z->lit[bits & LIT_MASK];
				continue;
			}
		}
		if (entry & (IS_END | IS_BAD))
			goto undo;
		SKIP(entry & CODE_MASK);
		extra = entry >> EXTRA_SHIFT & EXTRA_MASK;
		len = (entry >> VALUE_SHIFT) +
		      (uint32_t)(bits & ((1u << extra) - 1));
		SKIP(extra);
		/* 36 bits at least are left, a distance takes at most 28. */
		entry = z->dist[bits & DIST_MASK];
		if (entry & IS_LINK) {
			extra = entry >> EXTRA_SHIFT & EXTRA_MASK;
			SKIP(WP_INFLATE_DIST_BITS);
			entry = z->dist[(entry >> VALUE_SHIFT) +
					(bits & ((1u << extra) - 1))];
		}
		if (entry & IS_BAD)
			goto undo;
		SKIP(entry & CODE_MASK);
		extra = entry >> EXTRA_SHIFT & EXTRA_MASK;
		dist = (entry >> VALUE_SHIFT) +
		       (uint32_t)(bits & ((1u << extra) - 1));
		SKIP(extra);
		if (dist > (size_t)(to - out))
			goto undo;
		/* Looked up while the copy goes on. */
		REFILL();
		entry = z->lit[bits & LIT_MASK];
		copy_wide(to, dist, len);
		to += len;
	}
	goto out;
undo:
	bits = ahead;
	nbits = ahead_n;
out:
	z->in = in;
	z->bits = bits;
	z->nbits = nbits;
	return (size_t)(to - out);
#undef REFILL
#undef SKIP
}

static size_t run_codes(struct wp_inflate *z, uint8_t *out, size_t pos,
			size_t stop)
{
	while (z->state == WP_INFLATE_CODES && pos < stop) {
		if (stop - pos > FAST_OUT && z->in_end - z->in > FAST_IN)
			pos = run_fast(z, out, pos, stop);
		pos = step(z, out, pos, stop);
	}
	return pos;
}

size_t wp_inflate_until(struct wp_inflate *z, uint8_t *out, size_t pos,
			size_t stop)
{
	pos = copy_match(z, out, pos, stop);
	while (pos < stop && z->state < WP_INFLATE_DONE) {
		if (z->state == WP_INFLATE_BLOCK)
			read_block(z);
		else if (z->state == WP_INFLATE_STORED)
			pos = copy_stored(z, out, pos, stop);
		else
			pos = run_codes(z, out, pos, stop);
	}
	return pos;
}
