/* SPDX-License-Identifier: Apache-2.0 */
/* test_proof_rule.c - from what code does to where the return address is.
 *
 * Layer: unwind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../unwind/proof_rule.h"

#if defined(__x86_64__)

enum {
	/* Indices in wp_kept_regs. */
	RBX,
	RBP,
	R12,
	R13,
	R15 = 5,
	FRAME_MAX = 1 << 20,
};

static struct wp_flow_state started(void)
{
	struct wp_flow_state s;

	wp_flow_state_start(&s, 0x400000);
	return s;
}

static void set(struct wp_flow_state *s, unsigned int reg, uint8_t base,
		int64_t off)
{
	s->base[reg] = base;
	s->off[reg] = off;
}

/* A RULE at OFF by rsp, or rbp; kept register REG is WHERE, its slot at REL. */
static void assert_rule(const struct wp_proof_rule *rule, int32_t off,
			bool by_fp, unsigned int reg, enum wp_proof_where where,
			int32_t rel)
{
	assert_int_equal(rule->off, off);
	assert_int_equal(rule->by_fp, by_fp);
	assert_int_equal(rule->where[reg], where);
	if (where == WP_PROOF_SLOT)
		assert_int_equal(rule->rel[reg], rel);
}

static void at_an_exit_rsp_points_to_the_return_address(void **state)
{
	static const struct {
		uint8_t base;
		int64_t off;
		bool ok, by_fp;
	} rows[] = {
		{ WP_BASE_SP, 0, true, false },
		{ WP_BASE_SP, 40, true, false },
		{ WP_BASE_SP, FRAME_MAX, true, false },
		{ WP_BASE_SP, FRAME_MAX + 1, false, false },
		{ WP_BASE_SP, -1, false, false },
		{ WP_BASE_FP, 8, true, true },
		{ WP_BASE_FP, -1, false, true },
		{ WP_BASE_NONE, 8, false, false },
		{ WP_BASE_REG + WP_RBX, 8, false, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_flow_state s = started();
		struct wp_proof_rule rule;

		set(&s, WP_RSP, rows[i].base, rows[i].off);
		assert_int_equal(wp_proof_rule_of_exit(&s, &rule), rows[i].ok);
		if (!rows[i].ok)
			continue;
		for (unsigned int k = 0; k < WP_NKEPT; k++)
			assert_rule(&rule, (int32_t)rows[i].off, rows[i].by_fp,
				    k, WP_PROOF_KEPT, 0);
	}
}

/* What is in kept register REG at an exit with rsp at BASE + 0x20. */
static void assert_kept_at_exit(uint8_t sp_base, uint8_t base, int64_t off,
				uint8_t stored, enum wp_proof_where where)
{
	struct wp_flow_state s = started();
	struct wp_proof_rule rule;

	set(&s, WP_RSP, sp_base, 0x20);
	set(&s, WP_RBX, base, off);
	s.stored = stored;
	assert_true(wp_proof_rule_of_exit(&s, &rule));
	assert_rule(&rule, 0x20, sp_base == WP_BASE_FP, RBX, where,
		    (int32_t)off - 0x20);
	/* Of the others it says nothing. */
	assert_rule(&rule, 0x20, sp_base == WP_BASE_FP, R15, WP_PROOF_KEPT, 0);
}

static void at_an_exit_registers_are_what_was_loaded(void **state)
{
	(void)state;
	/* Its own value, another register's, a sum, nothing known. */
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_REG + WP_RBX, 0, 0,
			    WP_PROOF_KEPT);
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_REG + WP_RBX, 8, 0,
			    WP_PROOF_LOST);
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_REG + WP_R12, 0, 0,
			    WP_PROOF_LOST);
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_NONE, 0, 0, WP_PROOF_LOST);
	/* A word of the frame: from rsp up to below the return address. */
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_AT_SP, 0, 0, WP_PROOF_SLOT);
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_AT_SP, 0x1f, 0, WP_PROOF_SLOT);
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_AT_SP, 0x20, 0, WP_PROOF_LOST);
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_AT_SP, -1, 0, WP_PROOF_LOST);
	assert_kept_at_exit(WP_BASE_FP, WP_BASE_AT_FP, -1, 0, WP_PROOF_SLOT);
	assert_kept_at_exit(WP_BASE_FP, WP_BASE_AT_FP, -FRAME_MAX, 0,
			    WP_PROOF_SLOT);
	assert_kept_at_exit(WP_BASE_FP, WP_BASE_AT_FP, -FRAME_MAX - 1, 0,
			    WP_PROOF_LOST);
	/* By the other register, it is not known where from here. */
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_AT_FP, 0, 0, WP_PROOF_LOST);
	assert_kept_at_exit(WP_BASE_FP, WP_BASE_AT_SP, 0, 0, WP_PROOF_LOST);
	/* It was put there on the way: not there at the start. */
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_AT_SP, 0, 1 << RBX,
			    WP_PROOF_LOST);
	assert_kept_at_exit(WP_BASE_SP, WP_BASE_AT_SP, 0,
			    (uint8_t) ~(1u << RBX), WP_PROOF_SLOT);
}

static void a_prologue_is_known_by_its_push(void **state)
{
	static const struct {
		uint8_t base;
		int64_t off;
		bool is_saved;
		int64_t saved_off;
		bool ok;
		enum wp_proof_where where;
	} rows[] = {
		/* At the start of push %rbp; mov %rsp,%rbp, and between them. */
		{ WP_BASE_SP, -8, true, -8, true, WP_PROOF_KEPT },
		{ WP_BASE_SP, 0, false, 0, true, WP_PROOF_SLOT },
		/* After a pop, sub $16,%rsp or more is not what functions do. */
		{ WP_BASE_SP, 8, true, 8, true, WP_PROOF_KEPT },
		{ WP_BASE_SP, FRAME_MAX, true, FRAME_MAX, true, WP_PROOF_KEPT },
		{ WP_BASE_SP, FRAME_MAX + 1, true, FRAME_MAX + 1, false,
		  WP_PROOF_LOST },
		{ WP_BASE_SP, -9, true, -9, false, WP_PROOF_LOST },
		{ WP_BASE_SP, -16, true, -16, false, WP_PROOF_LOST },
		/* It is not where rbp is. */
		{ WP_BASE_SP, -8, true, -16, false, WP_PROOF_LOST },
		{ WP_BASE_SP, -8, false, -8, false, WP_PROOF_LOST },
		{ WP_BASE_SP, 8, false, 0, false, WP_PROOF_LOST },
		{ WP_BASE_SP, 0, true, -8, false, WP_PROOF_LOST },
		{ WP_BASE_FP, 0, false, 0, false, WP_PROOF_LOST },
		{ WP_BASE_FP, -8, true, -8, false, WP_PROOF_LOST },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_flow_state s = started();
		struct wp_proof_rule rule;

		set(&s, WP_RBP, rows[i].base, rows[i].off);
		if (rows[i].is_saved)
			s.saved = 1 << RBP;
		s.saved_off[RBP] = rows[i].saved_off;
		assert_int_equal(wp_proof_rule_of_prologue(&s, &rule),
				 rows[i].ok);
		if (!rows[i].ok)
			continue;
		assert_rule(&rule, (int32_t)rows[i].off + 8, false, RBP,
			    rows[i].where, -8);
		assert_int_equal(rule.rel[RBP],
				 rows[i].where == WP_PROOF_SLOT ? -8 : 0);
		/* It says nothing of others. */
		assert_rule(&rule, (int32_t)rows[i].off + 8, false, RBX,
			    WP_PROOF_LOST, 0);
		assert_rule(&rule, (int32_t)rows[i].off + 8, false, R15,
			    WP_PROOF_LOST, 0);
	}
}

static void from_an_entry_the_frame_has_grown(void **state)
{
	static const struct {
		uint8_t sp_base;
		int64_t sp_off;
		uint8_t fp_base;
		int64_t fp_off;
		bool ok, by_fp;
		int32_t off;
	} rows[] = {
		{ WP_BASE_SP, 0, WP_BASE_FP, 0, true, false, 0 },
		{ WP_BASE_SP, -24, WP_BASE_SP, -8, true, false, 24 },
		{ WP_BASE_SP, -FRAME_MAX, WP_BASE_FP, 0, true, false,
		  FRAME_MAX },
		{ WP_BASE_SP, -FRAME_MAX - 1, WP_BASE_FP, 0, false, false, 0 },
		/* The return address was popped. */
		{ WP_BASE_SP, 1, WP_BASE_SP, -8, false, false, 0 },
		/* rsp is not known, rbp may be. */
		{ WP_BASE_NONE, 0, WP_BASE_SP, -8, true, true, 8 },
		{ WP_BASE_NONE, 0, WP_BASE_SP, 8, false, true, 0 },
		{ WP_BASE_NONE, 0, WP_BASE_FP, 0, false, true, 0 },
		{ WP_BASE_NONE, 0, WP_BASE_NONE, 0, false, true, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct wp_flow_state s = started();
		struct wp_proof_rule rule;

		set(&s, WP_RSP, rows[i].sp_base, rows[i].sp_off);
		set(&s, WP_RBP, rows[i].fp_base, rows[i].fp_off);
		s.saved = 1 << R12 | 1 << R15;
		s.saved_off[R12] = -16;
		s.saved_off[R15] = -32;
		/* Changed, and not saved; another's value. */
		set(&s, WP_RBX, WP_BASE_REG + WP_RBX, 8);
		set(&s, 13, WP_BASE_REG + WP_R12, 0);
		assert_int_equal(wp_proof_rule_of_entry(&s, &rule), rows[i].ok);
		if (!rows[i].ok)
			continue;
		assert_rule(&rule, rows[i].off, rows[i].by_fp, R12,
			    WP_PROOF_SLOT, -16);
		assert_rule(&rule, rows[i].off, rows[i].by_fp, R15,
			    WP_PROOF_SLOT, -32);
		assert_int_equal(rule.where[RBX], WP_PROOF_LOST);
		assert_int_equal(rule.where[R13], WP_PROOF_LOST);
		assert_int_equal(rule.where[RBP],
				 rows[i].fp_base == WP_BASE_FP ? WP_PROOF_KEPT :
								 WP_PROOF_LOST);
	}
}

static void rules_are_merged_if_they_agree(void **state)
{
	/* What A and B know of a register, and what both do; -1: they differ. */
	static const struct {
		enum wp_proof_where a;
		int32_t a_rel;
		enum wp_proof_where b;
		int32_t b_rel;
		int want, want_rel;
	} rows[] = {
		{ WP_PROOF_LOST, 0, WP_PROOF_LOST, 0, WP_PROOF_LOST, 0 },
		{ WP_PROOF_KEPT, 0, WP_PROOF_LOST, 0, WP_PROOF_KEPT, 0 },
		{ WP_PROOF_LOST, 0, WP_PROOF_KEPT, 0, WP_PROOF_KEPT, 0 },
		{ WP_PROOF_SLOT, -8, WP_PROOF_LOST, 0, WP_PROOF_SLOT, -8 },
		{ WP_PROOF_LOST, 0, WP_PROOF_SLOT, -8, WP_PROOF_SLOT, -8 },
		{ WP_PROOF_SLOT, -8, WP_PROOF_SLOT, -8, WP_PROOF_SLOT, -8 },
		{ WP_PROOF_SLOT, -8, WP_PROOF_SLOT, -16, -1, 0 },
		{ WP_PROOF_SLOT, -8, WP_PROOF_KEPT, -8, -1, 0 },
		{ WP_PROOF_KEPT, 0, WP_PROOF_SLOT, 0, -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (unsigned int reg = 0; reg < WP_NKEPT; reg++) {
			struct wp_proof_rule a = { .off = 1 }, b = { .off = 2 };
			struct wp_proof_rule rule;

			a.where[reg] = (uint8_t)rows[i].a;
			a.rel[reg] = rows[i].a_rel;
			b.where[reg] = (uint8_t)rows[i].b;
			b.rel[reg] = rows[i].b_rel;
			assert_int_equal(wp_proof_rule_merge(&rule, &a, &b),
					 rows[i].want >= 0);
			if (rows[i].want < 0)
				continue;
			assert_int_equal(rule.off, 2);
			assert_int_equal(rule.where[reg], rows[i].want);
			assert_int_equal(rule.rel[reg], rows[i].want_rel);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_an_exit_rsp_points_to_the_return_address),
		cmocka_unit_test(at_an_exit_registers_are_what_was_loaded),
		cmocka_unit_test(a_prologue_is_known_by_its_push),
		cmocka_unit_test(from_an_entry_the_frame_has_grown),
		cmocka_unit_test(rules_are_merged_if_they_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

/* The proofs are x86-64's. */
int main(void)
{
	return 0;
}

#endif
