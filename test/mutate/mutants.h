/* SPDX-License-Identifier: Apache-2.0 */
/* mutants.h - a source with all of its mutants, of which one is alive in a run.
 *
 * mutants.py writes these macros into a copy of a source, which is compiled with
 * -include mutants.h and linked with mutants.c.  N is a mutant's number, from 1.
 */
#ifndef WP_MUTANTS_H
#define WP_MUTANTS_H

/* The mutant that is alive, of the environment variable MUTANT; 0: none. */
extern int wp_mutant;
/* A byte for each mutant, 1 once it was asked for: the file MUTANTS_REACHED. */
extern unsigned char *wp_mutants_reached;

/* A test begins (test/unit/limit.c). */
void wp_mutants_begin_test(__SIZE_TYPE__ nth);

#define MUTANT(n) (wp_mutants_reached[n] = 1, wp_mutant == (n))

/* L OP R; N: OTHER in place of OP; N + 1: the opposite. */
#define MUTANT_COMPARE(n, op, other, l, r)                                     \
	({                                                                     \
		__auto_type l_##n = ((void)0, l);                              \
		__auto_type r_##n = ((void)0, r);                              \
		(MUTANT(n) ? l_##n other r_##n : l_##n op r_##n) ^             \
			MUTANT((n) + 1);                                       \
	})
/* The truth of X; N: its opposite. */
#define MUTANT_NOT(n, x) (!!(x) ^ MUTANT(n))
/* L && R; N: L || R. */
#define MUTANT_AND(n, l, r)                                                    \
	({                                                                     \
		const int or_##n = MUTANT(n);                                  \
		((!!(l) ^ or_##n) && (!!(r) ^ or_##n)) ^ or_##n;               \
	})
/* The other way round. */
#define MUTANT_OR(n, l, r)                                                     \
	({                                                                     \
		const int or_##n = !MUTANT(n);                                 \
		((!!(l) ^ or_##n) && (!!(r) ^ or_##n)) ^ or_##n;               \
	})
/* The number X; N: one more. */
#define MUTANT_MORE(n, x) ((x) + MUTANT(n))
/* What is returned; N: OTHER. */
#define MUTANT_RETURN(n, other, x) (MUTANT(n) ? (other) : (x))

#endif
