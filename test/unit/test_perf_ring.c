/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: perf.  src/perf/perf_decode.h and perf_ring.h: records made by hand
 * as linux/perf_event.h lays them out, and everything that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/perf/perf_decode.h"
#include "../../src/perf/perf_ring.h"

enum { ROOM = 4096 };

/* A record that grows word by word. */
struct bytes {
	uint64_t v[ROOM / 8];
	size_t n;
};

static void put(struct bytes *b, uint64_t val)
{
	assert_true(b->n < ROOM / 8);
	b->v[b->n++] = val;
}

static void put2(struct bytes *b, uint32_t lo, uint32_t hi)
{
	put(b, (uint64_t)hi << 32 | lo);
}

static void start(struct bytes *b, uint32_t type, uint16_t misc)
{
	b->n = 0;
	put2(b, type, misc);
}

static void finish(struct bytes *b)
{
	b->v[0] |= (uint64_t)(8 * b->n) << 48;
}

/* pid 11, tid 12, time 1000, cpu 3, id 77. */
static void put_trailer(struct bytes *b)
{
	put2(b, 11, 12);
	put(b, 1000);
	put2(b, 3, 0);
	put(b, 77);
	finish(b);
}

static void put_sample_base(struct bytes *b, uint16_t misc)
{
	start(b, PERF_RECORD_SAMPLE, misc);
	put(b, 77);
	put(b, 0x401000);
	put2(b, 11, 12);
	put(b, 1000);
	put2(b, 3, 0);
}

static void put_regs(struct bytes *b, uint64_t abi)
{
	put(b, abi);
	for (uint64_t i = 0; abi && i < WP_NREGS; i++)
		put(b, 0x100 + i);
}

static void put_stack(struct bytes *b, uint64_t size, uint64_t dyn)
{
	put(b, size);
	for (uint64_t i = 0; i < size / 8; i++)
		put(b, 0x5000 + i);
	if (size)
		put(b, dyn);
}

/* The kernel's part, a user's part that was not asked for. */
static void put_chain(struct bytes *b)
{
	put(b, 5);
	put(b, (uint64_t)PERF_CONTEXT_KERNEL);
	put(b, 0xffffffff81000001);
	put(b, 0xffffffff81000002);
	put(b, (uint64_t)PERF_CONTEXT_USER);
	put(b, 0x401000);
}

static const uint64_t full_type = WP_PERF_SAMPLE_BASE | WP_PERF_SAMPLE_EXTRA;

static void make_full_sample(struct bytes *b)
{
	put_sample_base(b, PERF_RECORD_MISC_KERNEL);
	put_chain(b);
	put_regs(b, PERF_SAMPLE_REGS_ABI_64);
	put_stack(b, 64, 40);
	finish(b);
}

/* LEN bytes of B in a buffer of that size. */
static int parse_len(struct wp_perf_record *rec, uint64_t type,
		     const struct bytes *b, size_t len)
{
	static struct wp_perf_record last;
	struct wp_perf_writer writer = { 0 };
	uint8_t *exact = test_malloc(len ? len : 1);
	int rc;

	memcpy(exact, b->v, len);
	rc = wp_perf_parse(&last, &writer, type, exact, len);
	if (!rc) {
		assert_int_equal(writer.pid, 11);
		assert_int_equal(writer.tid, 12);
	}
	/* So that what it points to can be looked at later. */
	if (last.stack)
		last.stack = (const uint8_t *)b->v + (last.stack - exact);
	if (last.kernel_chain)
		last.kernel_chain = b->v + ((const uint8_t *)last.kernel_chain -
					    exact) /
						   8;
	test_free(exact);
	*rec = last;
	return rc;
}

static int parse(struct wp_perf_record *rec, uint64_t type,
		 const struct bytes *b)
{
	return parse_len(rec, type, b, 8 * b->n);
}

static void registers_get_the_numbers_of_dwarf(void **state)
{
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	make_full_sample(&b);
	assert_int_equal(parse(&rec, full_type, &b), 0);
	assert_int_equal(rec.regs.known, (UINT64_C(1) << WP_NREGS) - 1);
#if defined(__x86_64__)
	/* asm/perf_regs.h: ax bx cx dx si di bp sp ip, then r8..r15. */
	assert_int_equal(wp_perf_regs_mask(), 0xff01ff);
	assert_int_equal(rec.regs.v[0], 0x100);
	assert_int_equal(rec.regs.v[3], 0x101);
	assert_int_equal(rec.regs.v[2], 0x102);
	assert_int_equal(rec.regs.v[1], 0x103);
	assert_int_equal(rec.regs.v[4], 0x104);
	assert_int_equal(rec.regs.v[5], 0x105);
	assert_int_equal(rec.regs.v[WP_REG_FP], 0x106);
	assert_int_equal(rec.regs.v[WP_REG_SP], 0x107);
	assert_int_equal(rec.regs.v[WP_REG_PC], 0x108);
	for (unsigned int i = 8; i < 16; i++)
		assert_int_equal(rec.regs.v[i], 0x101 + i);
#else
	assert_int_equal(wp_perf_regs_mask(), 0x1ffffffff);
	for (unsigned int i = 0; i < WP_NREGS; i++)
		assert_int_equal(rec.regs.v[i], 0x100 + i);
#endif
}

static void a_sample_gives_all_that_is_in_it(void **state)
{
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	make_full_sample(&b);
	assert_int_equal(parse(&rec, full_type, &b), 0);
	assert_int_equal(rec.type, WP_PERF_SAMPLE_CPU);
	assert_int_equal(rec.id, 77);
	assert_int_equal(rec.pid, 11);
	assert_int_equal(rec.tid, 12);
	assert_int_equal(rec.time_ns, 1000);
	assert_int_equal(rec.kernel_len, 2);
	assert_int_equal(rec.kernel_chain[0], 0xffffffff81000001);
	assert_int_equal(rec.kernel_chain[1], 0xffffffff81000002);
	assert_int_equal(rec.stack_len, 40);
	assert_int_equal(rec.stack[0], 0);
	assert_int_equal(rec.stack[1], 0x50);
	assert_int_equal(rec.stack[8], 1);
	assert_false(rec.stack_full);
}

static void a_sample_of_the_least(void **state)
{
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	put_sample_base(&b, PERF_RECORD_MISC_USER);
	finish(&b);
	assert_int_equal(parse(&rec, WP_PERF_SAMPLE_BASE, &b), 0);
	assert_null(rec.stack);
	assert_null(rec.kernel_chain);
	assert_int_equal(rec.regs.known, 0);
	/* Read as if it had more, or as if what it has were not there. */
	assert_int_equal(parse(&rec, full_type, &b), -EBADMSG);
	make_full_sample(&b);
	assert_int_equal(parse(&rec, WP_PERF_SAMPLE_BASE, &b), -EBADMSG);
}

static void registers_and_stack_may_be_missing(void **state)
{
	uint64_t type = WP_PERF_SAMPLE_BASE | PERF_SAMPLE_REGS_USER |
			PERF_SAMPLE_STACK_USER;
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	/* A kernel thread. */
	put_sample_base(&b, PERF_RECORD_MISC_KERNEL);
	put_regs(&b, PERF_SAMPLE_REGS_ABI_NONE);
	put_stack(&b, 0, 0);
	finish(&b);
	assert_int_equal(parse(&rec, type, &b), 0);
	assert_int_equal(rec.regs.known, 0);
	assert_null(rec.stack);

	put_sample_base(&b, PERF_RECORD_MISC_USER);
	put_regs(&b, PERF_SAMPLE_REGS_ABI_32);
	put_stack(&b, 16, 0);
	finish(&b);
	assert_int_equal(parse(&rec, type, &b), 0);
	assert_true(rec.is_32bit);
#if defined(__x86_64__)
	assert_true(wp_reg_known(&rec.regs, WP_REG_PC));
	assert_int_equal(rec.regs.v[WP_REG_ESI], (uint32_t)rec.regs.v[4]);
	assert_int_equal(rec.regs.v[WP_REG_EDI], (uint32_t)rec.regs.v[5]);
#else
	assert_int_equal(rec.regs.known, 0);
#endif
	assert_null(rec.stack);

	put_sample_base(&b, PERF_RECORD_MISC_USER);
	put_regs(&b, 3);
	put_stack(&b, 0, 0);
	finish(&b);
	assert_int_equal(parse(&rec, type, &b), -EBADMSG);
}

static void a_stack_is_full_or_not_and_never_longer_than_its_room(void **state)
{
	static const struct {
		uint64_t size, dyn;
		int rc;
		bool full;
	} rows[] = {
		{ 64, 64, 0, true },
		{ 64, 63, 0, false },
		{ 64, 65, -EBADMSG, false },
		{ 64, UINT64_MAX, -EBADMSG, false },
	};
	uint64_t type = WP_PERF_SAMPLE_BASE | PERF_SAMPLE_STACK_USER;
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		put_sample_base(&b, 0);
		put_stack(&b, rows[i].size, rows[i].dyn);
		finish(&b);
		assert_int_equal(parse(&rec, type, &b), rows[i].rc);
		if (rows[i].rc)
			continue;
		assert_int_equal(rec.stack_full, rows[i].full);
		assert_int_equal(rec.stack_len, rows[i].dyn);
	}
	/* Sizes beyond the record. */
	for (int shift = 0; shift < 64; shift++) {
		put_sample_base(&b, 0);
		put(&b, UINT64_MAX >> shift);
		put(&b, 0);
		finish(&b);
		assert_int_equal(parse(&rec, type, &b), -EBADMSG);
	}
}

static void chains_are_only_the_first_run_of_the_kernel(void **state)
{
	uint64_t type = WP_PERF_SAMPLE_BASE | PERF_SAMPLE_CALLCHAIN;
	const uint64_t k = (uint64_t)PERF_CONTEXT_KERNEL;
	const uint64_t u = (uint64_t)PERF_CONTEXT_USER;
	const struct {
		uint64_t v[6];
		size_t n, want;
	} rows[] = {
		{ { 0 }, 0, 0 },
		{ { k }, 1, 0 },
		{ { 1, 2 }, 2, 0 },
		{ { u, 1, 2 }, 3, 0 },
		{ { u, 1, k, 2, 3 }, 5, 2 },
		{ { k, 1, 2, u, 3 }, 5, 2 },
		{ { k, 1, u, 2, k, 3 }, 6, 1 },
		{ { k, 1, k, 2 }, 4, 1 },
	};
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		put_sample_base(&b, 0);
		put(&b, rows[i].n);
		for (size_t j = 0; j < rows[i].n; j++)
			put(&b, rows[i].v[j]);
		finish(&b);
		assert_int_equal(parse(&rec, type, &b), 0);
		assert_int_equal(rec.kernel_len, rows[i].want);
	}
	for (int shift = 0; shift < 62; shift++) {
		put_sample_base(&b, 0);
		put(&b, UINT64_MAX >> shift);
		put(&b, k);
		finish(&b);
		assert_int_equal(parse(&rec, type, &b), -EBADMSG);
	}
}

static void make_task(struct bytes *b, uint32_t type)
{
	start(b, type, 0);
	put2(b, 11, 11);
	put2(b, 13, 12);
	put(b, 999);
	put_trailer(b);
}

static void make_switch(struct bytes *b, bool wide, uint16_t misc)
{
	start(b, wide ? PERF_RECORD_SWITCH_CPU_WIDE : PERF_RECORD_SWITCH, misc);
	if (wide)
		put2(b, 20, 21);
	put_trailer(b);
}

static void make_lost(struct bytes *b)
{
	start(b, PERF_RECORD_LOST, 0);
	put(b, 77);
	put(b, 1234);
	put_trailer(b);
}

static void make_throttle(struct bytes *b, uint32_t type)
{
	start(b, type, 0);
	put(b, 1000);
	put(b, 77);
	put(b, 78);
	put_trailer(b);
}

static void check_common(const struct wp_perf_record *rec)
{
	assert_int_equal(rec->time_ns, 1000);
	assert_int_equal(rec->id, 77);
	assert_int_equal(rec->pid, 11);
}

static void other_records_are_told_from_each_other(void **state)
{
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	make_task(&b, PERF_RECORD_FORK);
	assert_int_equal(parse(&rec, full_type, &b), 0);
	check_common(&rec);
	assert_int_equal(rec.type, WP_PERF_FORK);
	assert_int_equal(rec.tid, 13);
	assert_int_equal(rec.parent_tid, 12);
	make_task(&b, PERF_RECORD_EXIT);
	assert_int_equal(parse(&rec, full_type, &b), 0);
	assert_int_equal(rec.type, WP_PERF_EXIT);
	assert_int_equal(rec.tid, 13);

	make_lost(&b);
	assert_int_equal(parse(&rec, full_type, &b), 0);
	check_common(&rec);
	assert_int_equal(rec.type, WP_PERF_LOST);
	assert_int_equal(rec.lost, 1234);
	make_throttle(&b, PERF_RECORD_THROTTLE);
	assert_int_equal(parse(&rec, full_type, &b), 0);
	assert_int_equal(rec.type, WP_PERF_THROTTLE);
	make_throttle(&b, PERF_RECORD_UNTHROTTLE);
	assert_int_equal(parse(&rec, full_type, &b), 0);
	assert_int_equal(rec.type, WP_PERF_UNTHROTTLE);

	/* PERF_RECORD_MMAP2, never asked for; and one of tomorrow. */
	start(&b, PERF_RECORD_MMAP2, 0);
	put_trailer(&b);
	assert_int_equal(parse(&rec, full_type, &b), -ENOTSUP);
	start(&b, 4711, 0);
	put_trailer(&b);
	assert_int_equal(parse(&rec, full_type, &b), -ENOTSUP);
}

static void switches_tell_direction_and_why(void **state)
{
	static const struct {
		bool wide;
		uint16_t misc;
		enum wp_perf_type type;
		bool preempted;
	} rows[] = {
		{ false, 0, WP_PERF_SWITCH_IN, false },
		{ true, 0, WP_PERF_SWITCH_IN, false },
		{ false, PERF_RECORD_MISC_SWITCH_OUT, WP_PERF_SWITCH_OUT,
		  false },
		{ true,
		  PERF_RECORD_MISC_SWITCH_OUT |
			  PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
		  WP_PERF_SWITCH_OUT, true },
		{ false, PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, WP_PERF_SWITCH_IN,
		  false },
	};
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		make_switch(&b, rows[i].wide, rows[i].misc);
		assert_int_equal(parse(&rec, full_type, &b), 0);
		check_common(&rec);
		assert_int_equal(rec.type, rows[i].type);
		assert_int_equal(rec.tid, 12);
		assert_int_equal(rec.preempted, rows[i].preempted);
	}
}

enum { NKINDS = 8 };

static void make_any(struct bytes *b, size_t kind)
{
	switch (kind) {
	case 0:
		make_full_sample(b);
		break;
	case 1:
		make_task(b, PERF_RECORD_FORK);
		break;
	case 2:
		make_task(b, PERF_RECORD_EXIT);
		break;
	case 3:
		make_switch(b, false, 0);
		break;
	case 4:
		make_switch(b, true, PERF_RECORD_MISC_SWITCH_OUT);
		break;
	case 5:
		make_lost(b);
		break;
	case 6:
		make_throttle(b, PERF_RECORD_THROTTLE);
		break;
	case 7:
		make_throttle(b, PERF_RECORD_UNTHROTTLE);
		break;
	}
}

/* Whether or not the record's own size is the truth. */
static void make_wake(struct bytes *b, uint64_t flags)
{
	put_sample_base(b, PERF_RECORD_MISC_KERNEL);
	/* 36 bytes: type, flags, preempt count, pid; comm; pid, prio, CPU; and 4
	 * of padding with the size. */
	put(b, UINT64_C(36) | UINT64_C(300) << 32 | flags << 48);
	put(b, 12 | UINT64_C(0x656d6f63) << 32);
	put(b, 0);
	put(b, UINT64_C(4711) << 32);
	put(b, 120);
	finish(b);
}

static void a_wake_tells_who_is_woken_and_by_whom(void **state)
{
	static const struct {
		uint64_t flags;
		bool hard, soft;
	} rows[] = {
		{ 0x00, false, false },
		{ 0x08, true, false },
		{ 0x11, false, true },
	};
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		make_wake(&b, rows[i].flags);
		assert_int_equal(wp_perf_sample_id(b.v, 8 * b.n), 77);
		assert_int_equal(wp_perf_parse(&rec,
					       &(struct wp_perf_writer){ 0 },
					       WP_PERF_WAKE_TYPE, b.v, 8 * b.n),
				 0);
		assert_int_equal(wp_perf_parse_wake(&rec), 0);
		assert_int_equal(rec.type, WP_PERF_WAKE);
		assert_int_equal(rec.tid, 4711);
		assert_int_equal(rec.waker_pid, 11);
		assert_int_equal(rec.waker_tid, 12);
		assert_int_equal(rec.time_ns, 1000);
		assert_int_equal(rec.hard_interrupt, rows[i].hard);
		assert_int_equal(rec.soft_interrupt, rows[i].soft);
	}
	rec.raw_len = 27;
	assert_int_equal(wp_perf_parse_wake(&rec), -EBADMSG);
	/* More data than there are bytes. */
	for (size_t len = 0; len < 8 * b.n; len += 8)
		assert_int_not_equal(
			parse_len(&rec, WP_PERF_WAKE_TYPE, &b, len), 0);
}

static void every_prefix_is_refused(void **state)
{
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	for (size_t kind = 0; kind < NKINDS; kind++) {
		make_any(&b, kind);
		for (size_t n = 0; n < 8 * b.n; n++) {
			struct bytes cut = b;

			assert_int_equal(parse_len(&rec, full_type, &b, n),
					 -EBADMSG);
			cut.v[0] &= ~(UINT64_C(0xffff) << 48);
			cut.v[0] |= (uint64_t)n << 48;
			assert_int_not_equal(
				parse_len(&rec, full_type, &cut, n), 0);
		}
		assert_int_equal(parse(&rec, full_type, &b), 0);
		/* More than there is to it. */
		make_any(&b, kind);
		b.v[0] &= ~(UINT64_C(0xffff) << 48);
		put(&b, 0);
		finish(&b);
		assert_int_not_equal(parse(&rec, full_type, &b), 0);
	}
}

static void garbage_is_survived(void **state)
{
	struct wp_perf_record rec;
	struct bytes b;

	(void)state;
	srandom(1);
	for (int i = 0; i < 200000; i++) {
		size_t kind = (size_t)random() % NKINDS;

		make_any(&b, kind);
		for (long n = random() % 4; n >= 0; n--)
			((uint8_t *)b.v)[8 + (size_t)random() % (8 * b.n - 8)] =
				(uint8_t)random();
		if (random() % 4 == 0)
			b.v[0] ^= (uint64_t)random() & 0x3f;
		(void)!wp_perf_parse(&rec, &(struct wp_perf_writer){ 0 },
				     full_type, b.v, 8 * b.n);
		if (rec.stack)
			assert_true(rec.stack_len <= ROOM);
		assert_true(rec.kernel_len <= ROOM / 8);
	}
}

/* A ring of SIZE bytes in exactly that much memory. */
struct made_ring {
	struct perf_event_mmap_page page;
	struct wp_perf_ring ring;
	uint8_t *data;
	uint8_t *bounce;
};

static void ring_init(struct made_ring *m, size_t size, uint64_t pos)
{
	memset(m, 0, sizeof(*m));
	m->data = test_malloc(size);
	m->bounce = test_malloc(WP_PERF_RECORD_MAX);
	memset(m->data, 0xee, size);
	m->page.data_head = m->page.data_tail = pos;
	m->ring = (struct wp_perf_ring){ .page = &m->page,
					 .data = m->data,
					 .size = size,
					 .pos = pos,
					 .head = pos };
}

static void ring_clear(struct made_ring *m)
{
	test_free(m->data);
	test_free(m->bounce);
}

/* As the kernel does. */
static void ring_put(struct made_ring *m, const struct bytes *b)
{
	for (size_t i = 0; i < 8 * b->n; i++)
		m->data[m->page.data_head++ & (m->ring.size - 1)] =
			((const uint8_t *)b->v)[i];
}

/* At every place a ring can have its end, also that of the counter. */
static void records_around_the_end_come_in_one_piece(void **state)
{
	static const uint64_t bases[] = { 0, UINT64_MAX - 4095 };
	struct wp_perf_writer writer;
	struct wp_perf_record rec;
	struct made_ring m;
	struct bytes b;

	(void)state;
	for (size_t off = 0; off < 2 * 4096; off += 8) {
		ring_init(&m, 4096, bases[off / 4096] + off % 4096);
		make_full_sample(&b);
		for (int i = 0; i < 3; i++)
			ring_put(&m, &b);
		assert_true(wp_perf_ring_load(&m.ring));
		for (int i = 0; i < 3; i++) {
			assert_int_equal(m.ring.len, 8 * b.n);
			assert_int_equal(m.ring.time_ns, 1000);
			assert_int_equal(
				wp_perf_parse(
					&rec, &writer, full_type,
					wp_perf_ring_bytes(&m.ring, m.bounce),
					m.ring.len),
				0);
			assert_int_equal(rec.stack[8 * 4], 4);
			assert_int_equal(rec.regs.v[WP_REG_FP] & ~0xffu, 0x100);
			assert_true(wp_perf_ring_next(&m.ring));
		}
		assert_int_equal(m.ring.len, 0);
		wp_perf_ring_release(&m.ring);
		assert_int_equal(m.page.data_tail, m.page.data_head);
		ring_clear(&m);
	}
}

static void times_are_found_before_a_record_is_read(void **state)
{
	struct made_ring m;
	struct bytes b;

	(void)state;
	for (size_t kind = 0; kind < NKINDS; kind++) {
		make_any(&b, kind);
		ring_init(&m, 1024, 8 * kind);
		ring_put(&m, &b);
		assert_true(wp_perf_ring_load(&m.ring));
		assert_int_equal(m.ring.time_ns, 1000);
		ring_clear(&m);
	}
	assert_int_equal(wp_perf_time_off(PERF_RECORD_SAMPLE, 39), 0);
	assert_int_equal(wp_perf_time_off(PERF_RECORD_SWITCH, 39), 0);
	assert_int_equal(wp_perf_time_off(PERF_RECORD_SWITCH, 40), 16);
}

static void room_is_given_back_in_parts(void **state)
{
	struct made_ring m;
	struct bytes b;
	uint64_t tail = 0;
	int steps = 0;

	(void)state;
	ring_init(&m, 4096, 0);
	make_switch(&b, false, 0);
	for (int i = 0; i < 100; i++)
		ring_put(&m, &b);
	assert_true(wp_perf_ring_load(&m.ring));
	while (m.ring.len) {
		assert_true(wp_perf_ring_next(&m.ring));
		assert_true(m.ring.pos - m.page.data_tail < 4096 / 16);
		steps += m.page.data_tail != tail;
		tail = m.page.data_tail;
	}
	assert_in_range(steps, 2, 16);
	ring_clear(&m);
}

static void what_is_no_sequence_of_records_is_dropped(void **state)
{
	static const uint16_t sizes[] = { 0, 1, 7, 12, 41, 4104, 65528, 65535 };
	struct made_ring m;
	struct bytes b;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		ring_init(&m, 4096, 4096 - 16);
		make_switch(&b, false, 0);
		ring_put(&m, &b);
		b.v[0] &= ~(UINT64_C(0xffff) << 48);
		b.v[0] |= (uint64_t)sizes[i] << 48;
		ring_put(&m, &b);
		assert_true(wp_perf_ring_load(&m.ring));
		assert_int_equal(m.ring.len, 40);
		assert_false(wp_perf_ring_next(&m.ring));
		assert_int_equal(m.ring.len, 0);
		assert_int_equal(m.page.data_tail, m.page.data_head);
		/* What comes after is read again. */
		make_switch(&b, false, 0);
		ring_put(&m, &b);
		assert_true(wp_perf_ring_load(&m.ring));
		assert_int_equal(m.ring.len, 40);
		ring_clear(&m);
	}
	/* More than fits, less than a header, less than nothing. */
	for (int i = 0; i < 3; i++) {
		static const uint64_t heads[] = { 8192, 4, UINT64_MAX };

		ring_init(&m, 4096, 0);
		m.page.data_head = heads[i];
		assert_false(wp_perf_ring_load(&m.ring));
		assert_int_equal(m.ring.len, 0);
		assert_int_equal(m.page.data_tail, heads[i]);
		ring_clear(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registers_get_the_numbers_of_dwarf),
		cmocka_unit_test(a_sample_gives_all_that_is_in_it),
		cmocka_unit_test(a_sample_of_the_least),
		cmocka_unit_test(registers_and_stack_may_be_missing),
		cmocka_unit_test(
			a_stack_is_full_or_not_and_never_longer_than_its_room),
		cmocka_unit_test(chains_are_only_the_first_run_of_the_kernel),
		cmocka_unit_test(other_records_are_told_from_each_other),
		cmocka_unit_test(switches_tell_direction_and_why),
		cmocka_unit_test(a_wake_tells_who_is_woken_and_by_whom),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(garbage_is_survived),
		cmocka_unit_test(records_around_the_end_come_in_one_piece),
		cmocka_unit_test(times_are_found_before_a_record_is_read),
		cmocka_unit_test(room_is_given_back_in_parts),
		cmocka_unit_test(what_is_no_sequence_of_records_is_dropped),
	};

	return cmocka_run_group_tests_name("perf_ring", tests, NULL, NULL);
}
