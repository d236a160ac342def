/* SPDX-License-Identifier: Apache-2.0 */
/* go_locate.c - the runtime's list of goroutines and its wait reasons.
 *
 * Stripped programs have no symbols, so both are known by what they hold, within
 * the variables that moduledata bounds.
 */
#include <errno.h>
#include <stdlib.h>

#include "go_program_priv.h"

enum {
	WORD = 8,
	/* Bytes that are read at a time, and of which ranges no more is looked
	 * through. */
	PIECE = 1 << 20,
	RANGE_MAX = 256 << 20,
	/* Words that a found thing takes. */
	SLICE = 3,
	STRING = 2,
	/* Places that look right and are followed by a read. */
	PROBES_MAX = 1 << 16,
	/* Goroutines of a list that are checked. */
	CHECKED_MAX = 64,
	GOROUTINES_MAX = 1 << 28,
	/* No page below is ever mapped (vm.mmap_min_addr). */
	LOWEST = 0x10000,
	STACK_MAX = 1 << 30,
};

/* The first entries of runtime.waitReasonStrings: "", this, "IO wait". */
static const char first_reason[] = "GC assist marking";
enum {
	FIRST_REASON = sizeof(first_reason) - 1,
	SECOND_REASON = 7,
	/* Words from the first entry on that are looked at. */
	REASON_WORDS = 3 * STRING,
};

int wp_go_scan(struct wp_go_probe *probe, const struct wp_go_range *range,
	       size_t words, wp_go_found_fn is_found)
{
	uint64_t start_avma = range->start_svma + probe->program->bias;
	uint64_t size = range->end_svma - range->start_svma;
	uint64_t *v = malloc(PIECE + REASON_WORDS * WORD);
	int rc = v ? 0 : -ENOMEM;

	if (size > RANGE_MAX)
		size = RANGE_MAX;
	start_avma += -start_avma & (WORD - 1);
	for (uint64_t at = 0; !rc && at < size && probe->left; at += PIECE) {
		uint64_t len = size - at, n;
		struct wp_process_range r = { .avma = start_avma + at,
					      .buf = v };

		if (len > PIECE + (words - 1) * WORD)
			len = PIECE + (words - 1) * WORD;
		r.len = n = len & ~(uint64_t)(WORD - 1);
		rc = probe->program->memory.reader.read(
			probe->program->memory.reader.ctx, &r, 1);
		for (uint64_t i = 0;
		     !rc && r.is_read && probe->left && i + words <= n / WORD;
		     i++)
			if (is_found(probe, v + i, r.avma + i * WORD)) {
				probe->avma = r.avma + i * WORD;
				rc = 1;
			}
	}
	free(v);
	return rc;
}

bool wp_go_is_pointer(uint64_t avma)
{
	return avma >= LOWEST && !(avma & (WORD - 1)) && avma < UINT64_MAX / 2;
}

/* Can the struct G, at AVMA, be a goroutine's?  One that has ended keeps little.
 * Each that lives points to itself from its registers. */
static bool is_g(const struct wp_go_layout *layout, const uint8_t *g,
		 uint64_t avma)
{
	uint64_t lo = wp_go_u64(g, WP_GO_G_LO), hi = wp_go_u64(g, WP_GO_G_HI);
	uint32_t status = wp_go_status(layout, g);

	if (status == WP_GO_IDLE || status == WP_GO_DEAD ||
	    status == WP_GO_DEAD_EXTRA)
		return true;
	return status <= WP_GO_DEAD_EXTRA &&
	       wp_go_u64(g, WP_GO_G_SELF) == avma && lo < hi &&
	       hi - lo <= STACK_MAX && wp_go_u64(g, layout->g_goid);
}

/* Are the first goroutines of the list of LEN at LIST_AVMA all what they should
 * be, and different ones?  The first of all begins in the runtime. */
static bool are_goroutines(struct wp_go_probe *probe, uint64_t list_avma,
			   uint64_t len)
{
	struct wp_go_program *p = probe->program;
	uint64_t at[CHECKED_MAX], ids[CHECKED_MAX];
	size_t n = len < CHECKED_MAX ? len : CHECKED_MAX;
	bool lives = false;
	uint8_t g[WP_GO_G_MAX];

	if (!wp_go_memory_read_at(&p->memory, list_avma, at, n * WORD))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!wp_go_is_pointer(at[i]) ||
		    !wp_go_memory_read_at(&p->memory, at[i], g,
					  wp_go_g_len(p->layout)) ||
		    !is_g(p->layout, g, at[i]) ||
		    (!i &&
		     !wp_go_is_code(p, wp_go_u64(g, p->layout->g_startpc))))
			return false;
		ids[i] = wp_go_u64(g, p->layout->g_goid);
		lives |= wp_go_u64(g, WP_GO_G_SELF) == at[i];
		for (size_t k = 0; k < i; k++)
			if (at[k] == at[i] || (ids[i] && ids[k] == ids[i]))
				return false;
	}
	return lives;
}

/* A slice: pointer, length, capacity. */
static bool is_allgs(struct wp_go_probe *probe, const uint64_t *v,
		     uint64_t avma)
{
	uint64_t first_avma, self_avma;

	(void)avma;
	if (!wp_go_is_pointer(v[0]) || !v[1] || v[1] > v[2] ||
	    v[2] > GOROUTINES_MAX)
		return false;
	probe->left--;
	return wp_go_memory_read_at(&probe->program->memory, v[0], &first_avma,
				    WORD) &&
	       wp_go_is_pointer(first_avma) &&
	       wp_go_memory_read_at(&probe->program->memory,
				    first_avma + WP_GO_G_SELF, &self_avma,
				    WORD) &&
	       self_avma == first_avma && are_goroutines(probe, v[0], v[1]);
}

static bool is_reasons(struct wp_go_probe *probe, const uint64_t *v,
		       uint64_t avma)
{
	char text[FIRST_REASON];

	(void)avma;
	if (v[1] || v[3] != FIRST_REASON || v[5] != SECOND_REASON)
		return false;
	probe->left--;
	return wp_go_memory_read_at(&probe->program->memory, v[2], text,
				    sizeof(text)) &&
	       !memcmp(text, first_reason, sizeof(text));
}

/* Read the texts of the wait reasons at AVMA, up to what is none. */
static void read_reasons(struct wp_go_program *p, uint64_t avma)
{
	for (uint32_t i = 0; i < WP_GO_REASONS_MAX; i++) {
		uint64_t string[STRING];

		if (!wp_go_memory_read_at(&p->memory,
					  avma + (uint64_t)i * STRING * WORD,
					  string, sizeof(string)) ||
		    string[1] >= WP_GO_REASON_LEN || (i && !string[1]) ||
		    !wp_go_memory_read_at(&p->memory, string[0], p->reasons[i],
					  string[1]))
			return;
		p->reasons[i][string[1]] = '\0';
		p->nreasons = i + 1;
	}
}

/* Without them waits have no words, which is no failure. */
static int find_reasons(struct wp_go_program *p)
{
	struct wp_go_probe probe = { .program = p, .left = PROBES_MAX };
	int rc = wp_go_scan(&probe, &p->module.data, REASON_WORDS, is_reasons);

	if (!rc)
		rc = wp_go_scan(&probe, &p->module.noptrdata, REASON_WORDS,
				is_reasons);
	if (rc == 1)
		read_reasons(p, probe.avma);
	return rc < 0 ? rc : 0;
}

int wp_go_locate(struct wp_go_program *program)
{
	struct wp_go_probe probe = { .program = program, .left = PROBES_MAX };
	int rc = wp_go_scan(&probe, &program->module.bss, SLICE, is_allgs);

	if (rc < 0)
		return rc;
	if (!rc)
		return -EAGAIN;
	program->allgs_avma = probe.avma;
	return find_reasons(program);
}
