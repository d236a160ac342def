/* SPDX-License-Identifier: Apache-2.0 */
/* option_near.c - what a word that is no option may be meant for: see option_table.h. */
#include <stdint.h>
#include <string.h>

#include "option_table.h"

enum { WORD_MAX = 24 };

/* How many letters to add, drop, change or swap with the next one to make B of
 * A[0..n); UINT32_MAX: too long. */
static unsigned int distance(const char *a, size_t n, const char *b)
{
	unsigned int rows[3][WORD_MAX + 1];
	size_t m = strlen(b);

	if (n > WORD_MAX || m > WORD_MAX)
		return UINT32_MAX;
	for (unsigned int j = 0; j <= m; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		unsigned int *row = rows[i % 3], *last = rows[(i + 2) % 3];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			bool differ = a[i - 1] != b[j - 1];
			unsigned int best = last[j - 1] + differ;

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (differ && i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] &&
			    rows[(i + 1) % 3][j - 2] + 1 < best)
				best = rows[(i + 1) % 3][j - 2] + 1;
			row[j] = best;
		}
	}
	return rows[n % 3][m];
}

/* Are so many wrong letters of N a slip of the hand? */
static bool is_near(unsigned int wrong, size_t n)
{
	return wrong <= (n > 5 ? 3 : n > 2 ? 1 : 0);
}

const struct wp_command_row *wp_command_near(const char *word)
{
	const struct wp_command_row *best = NULL;
	unsigned int least = UINT32_MAX;

	for (size_t i = 0; i < wp_ncommand_rows; i++) {
		unsigned int wrong = distance(word, strlen(word),
					      wp_command_rows[i].name);

		if (wrong >= least || !is_near(wrong, strlen(word)))
			continue;
		least = wrong;
		best = &wp_command_rows[i];
	}
	return best;
}

const struct wp_option_row *wp_option_near(const char *name, size_t n,
					   enum wp_action action)
{
	const struct wp_option_row *best = NULL;
	unsigned int least = UINT32_MAX;

	for (size_t i = 0; i < wp_noption_rows; i++) {
		const struct wp_option_row *row = &wp_option_rows[i];
		unsigned int wrong = distance(name, n, row->name);

		/* Half a letter for being another command's. */
		if (!is_near(wrong, n))
			continue;
		wrong = 2 * wrong + !(row->commands & 1u << action);
		if (wrong >= least)
			continue;
		least = wrong;
		best = row;
	}
	return best;
}
