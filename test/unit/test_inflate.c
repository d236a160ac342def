/* Layer: symbols.  symbols/inflate.h and symbols/unpack.h: the truth is what
 * libelf packed, with zlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <gelf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../../symbols/inflate.h"
#include "../../symbols/unpack.h"
#include "make_elf.h"

/* What was packed, data[0..size), and its stream, in[0..len), all from malloc
 * and no longer than they say. */
struct packed {
	uint8_t *data;
	size_t size;
	uint8_t *in;
	size_t len;
};

enum kind { TEXT, RANDOM, RUNS, SHORT, NKINDS };

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Text gets codes of its own, noise is stored, little gets the fixed codes. */
static uint8_t *data_of(enum kind kind, size_t size)
{
	uint8_t *data = malloc(size);
	uint32_t state = 1;

	assert_non_null(data);
	for (size_t i = 0; i < size; i++) {
		uint32_t r = next_random(&state);

		if (kind == RANDOM)
			data[i] = (uint8_t)r;
		else if (kind == RUNS)
			data[i] = (uint8_t)(i / 1000 + i % (1 + i / 5000));
		else if (i > 40000 && r % 8)
			data[i] = data[i - 1 - r % 40 * 1000];
		else
			data[i] = (uint8_t)("etaoin shrdlu"[r % 13] + r % 3);
	}
	return data;
}

static struct packed pack(enum kind kind, size_t size)
{
	struct packed p = { .data = data_of(kind, size), .size = size };
	struct make_section section = { .name = ".debug_info",
					.type = SHT_PROGBITS,
					.data = p.data, .size = size };
	size_t len;
	uint8_t *bytes = make_elf(&section, 1, &len);
	Elf_Data *raw;
	Elf_Scn *scn;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory((char *)bytes, len);
	scn = elf_nextscn(elf, NULL);
	assert_int_equal(elf_compress(scn, ELFCOMPRESS_ZLIB, ELF_CHF_FORCE), 1);
	raw = elf_rawdata(scn, NULL);
	assert_non_null(raw);
	p.len = raw->d_size - sizeof(Elf64_Chdr);
	p.in = malloc(p.len);
	assert_non_null(p.in);
	memcpy(p.in, (uint8_t *)raw->d_buf + sizeof(Elf64_Chdr), p.len);
	elf_end(elf);
	free(bytes);
	return p;
}

static void clear(struct packed *p)
{
	free(p->data);
	free(p->in);
}

static const size_t sizes[NKINDS] = { 300000, 100000, 100000, 40 };

static void it_is_what_was_packed(void **state)
{
	static const size_t steps[] = { 1, 7, 4096, 1 << 20 };

	(void)state;
	for (unsigned int kind = 0; kind < NKINDS; kind++) {
		struct packed p = pack((enum kind)kind, sizes[kind]);

		for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
			uint8_t *out = malloc(p.size);
			struct wp_inflate z;
			size_t pos = 0;

			assert_int_equal(wp_inflate_init(&z, p.in, p.len), 0);
			while (pos < p.size) {
				size_t stop = p.size - pos > steps[i] ?
					pos + steps[i] : p.size;

				pos = wp_inflate_until(&z, out, pos, stop);
				assert_int_equal(pos, stop);
			}
			assert_memory_equal(out, p.data, p.size);
			free(out);
		}
		clear(&p);
	}
}

static void it_ends_where_the_stream_does(void **state)
{
	struct packed p = pack(TEXT, 5000);
	uint8_t *out = malloc(2 * p.size);
	struct wp_inflate z;

	(void)state;
	assert_int_equal(wp_inflate_init(&z, p.in, p.len), 0);
	assert_int_equal(wp_inflate_until(&z, out, 0, 2 * p.size), p.size);
	assert_int_equal(z.state, WP_INFLATE_DONE);
	free(out);
	clear(&p);
}

/* Unpack IN[0..len), in memory of exactly that size. */
static size_t unpack(const uint8_t *in, size_t len, uint8_t *out, size_t size)
{
	uint8_t *exact = malloc(len ? len : 1);
	struct wp_inflate z;
	size_t pos = 0;

	memcpy(exact, in, len);
	if (!wp_inflate_init(&z, exact, len))
		pos = wp_inflate_until(&z, out, 0, size);
	assert_true(pos <= size);
	free(exact);
	return pos;
}

static void every_prefix_gives_the_beginning(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < NKINDS; kind++) {
		struct packed p = pack((enum kind)kind, kind == SHORT ?
							40 : 3000);
		uint8_t *out = malloc(p.size);
		size_t before = 0;

		for (size_t len = 0; len <= p.len; len++) {
			size_t n = unpack(p.in, len, out, p.size);

			assert_true(n >= before);
			assert_memory_equal(out, p.data, n);
			before = n;
		}
		assert_int_equal(before, p.size);
		free(out);
		clear(&p);
	}
}

static void every_wrong_byte_is_safe(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < NKINDS; kind++) {
		struct packed p = pack((enum kind)kind, kind == SHORT ?
							40 : 2000);
		uint8_t *out = malloc(p.size);

		for (size_t i = 0; i < p.len * 8; i++) {
			p.in[i / 8] ^= (uint8_t)(1 << i % 8);
			unpack(p.in, p.len, out, p.size);
			p.in[i / 8] ^= (uint8_t)(1 << i % 8);
		}
		free(out);
		clear(&p);
	}
}

static void bad_codes_are_refused(void **state)
{
	/* After the zlib header and "last block": reserved type 3; a stored
	 * block whose length is not repeated; a distance before the start,
	 * fixed code (RFC 1951, 3.2.6: 257 is 0000001, distance 0 is 00000). */
	static const uint8_t bad[][8] = {
		{ 0x78, 0x9c, 0x07 },
		{ 0x78, 0x9c, 0x01, 4, 0, 4, 0 },
		{ 0x78, 0x9c, 0x03, 0x02, 0, 0, 0, 0 },
	};
	uint8_t out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct wp_inflate z;

		assert_int_equal(wp_inflate_init(&z, bad[i], sizeof(bad[i])),
				 0);
		assert_int_equal(wp_inflate_until(&z, out, 0, sizeof(out)), 0);
		assert_int_equal(z.state, WP_INFLATE_BAD);
		assert_int_equal(wp_inflate_until(&z, out, 0, sizeof(out)), 0);
	}
}

static void what_is_no_stream_is_refused(void **state)
{
	/* Not deflate, a window too large, a dictionary, a wrong check. */
	static const uint8_t bad[][2] = { { 0x79, 0x9b }, { 0x88, 0x1c },
					  { 0x78, 0xbb }, { 0x78, 0x9d } };
	struct wp_inflate z;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(wp_inflate_init(&z, bad[i], 2), -EBADMSG);
	assert_int_equal(wp_inflate_init(&z, (const uint8_t *)"\x78", 1),
			 -EBADMSG);
}

static void memory_unpacks_itself(void **state)
{
	struct packed p = pack(TEXT, sizes[TEXT]), q = pack(RANDOM, 5000);
	struct wp_unpack *area, *other;
	struct sigaction before, after;
	uint8_t *data, *other_data;

	(void)state;
	assert_int_equal(sigaction(SIGSEGV, NULL, &before), 0);
	assert_int_equal(wp_unpack_new(&area, p.in, p.len, p.size, &data), 0);
	assert_int_equal(wp_unpack_new(&other, q.in, q.len, q.size,
				       &other_data), 0);
	/* The middle before the start, one between the other. */
	assert_int_equal(data[p.size / 2], p.data[p.size / 2]);
	assert_int_equal(other_data[0], q.data[0]);
	assert_int_equal(data[p.size - 1], p.data[p.size - 1]);
	assert_memory_equal(data, p.data, p.size);
	assert_memory_equal(other_data, q.data, q.size);
	/* The handler goes with the last one. */
	wp_unpack_free(area);
	assert_int_equal(sigaction(SIGSEGV, NULL, &after), 0);
	assert_true(after.sa_sigaction != before.sa_sigaction);
	wp_unpack_free(other);
	assert_int_equal(sigaction(SIGSEGV, NULL, &after), 0);
	assert_true(after.sa_sigaction == before.sa_sigaction);
	wp_unpack_free(NULL);
	clear(&p);
	clear(&q);
}

static void what_is_not_there_reads_as_zeros(void **state)
{
	struct packed p = pack(TEXT, sizes[TEXT]);
	struct wp_unpack *area;
	size_t n = 0;
	uint8_t *data;

	(void)state;
	assert_int_equal(wp_unpack_new(&area, p.in, p.len / 2, p.size, &data),
			 0);
	assert_int_equal(data[p.size - 1], 0);
	while (n < p.size && data[n] == p.data[n])
		n++;
	assert_true(n > p.size / 4 && n < p.size);
	while (n < p.size && !data[n])
		n++;
	assert_int_equal(n, p.size);
	wp_unpack_free(area);
	clear(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_what_was_packed),
		cmocka_unit_test(it_ends_where_the_stream_does),
		cmocka_unit_test(every_prefix_gives_the_beginning),
		cmocka_unit_test(every_wrong_byte_is_safe),
		cmocka_unit_test(bad_codes_are_refused),
		cmocka_unit_test(what_is_no_stream_is_refused),
		cmocka_unit_test(memory_unpacks_itself),
		cmocka_unit_test(what_is_not_there_reads_as_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
