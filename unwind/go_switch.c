/* SPDX-License-Identifier: Apache-2.0 */
/* go_switch.c - see go_switch.h. */
#include "go_switch.h"

#include <string.h>

#include "arch.h"
#include "wallprof/go_table.h"

#if defined(__x86_64__)

enum {
	WORD = 8,
	/* call rel32. */
	CALL = 0xe8,
	CALL_LEN = 5,
	/* Words of a caller's frame: those of Go's runtime are smaller.  How many
	 * are read at once. */
	FRAME_WORDS = 512,
	READ_WORDS = 64,
	/* What it costs to read a table of frame sizes, of which 64 KiB may have to be
	 * read (go_table.c). */
	TABLE_WORK = 1 << 10,
};

/* The function that a step leads out of. */
struct callee {
	struct wp_go_table table;
	struct wp_go_func func;
};

static enum wp_step_result find_callee(const struct wp_step *step,
				       struct callee *ret)
{
	uint64_t svma = step->regs->v[WP_REG_PC] - step->is_return -
			step->module->bias;

	return wp_go_table_open(&ret->table, step->module->image) ||
			       wp_go_table_find(&ret->table, svma, &ret->func) ?
		       WP_STEP_BAD_INFO :
		       WP_STEP_OK;
}

/* Is CALLEE called directly by the code before RETURN_SVMA? */
static bool is_called_before(const struct callee *callee, uint64_t return_svma)
{
	const uint8_t *code;
	uint64_t off;
	int32_t rel;

	if (return_svma < CALL_LEN ||
	    !wp_elf_image_offset(callee->table.image, return_svma - CALL_LEN,
				 &off))
		return false;
	code = wp_elf_image_at(callee->table.image, off, CALL_LEN);
	if (!code || code[0] != CALL)
		return false;
	memcpy(&rel, code + 1, sizeof(rel));
	return return_svma + (uint64_t)(int64_t)rel == callee->func.start_svma;
}

/* Is the frame of who calls CALLEE before RETURN_SVMA SIZE bytes large? */
static bool has_frame(const struct callee *callee, uint64_t return_svma,
		      uint64_t size)
{
	struct wp_go_func caller;
	uint32_t found;

	return !wp_go_table_find(&callee->table, return_svma - 1, &caller) &&
	       !wp_go_table_frame(&callee->table, &caller, return_svma - 1,
				  &found) &&
	       found == size;
}

/* STEP's registers are those of who calls and has its return address at SLOT. */
static enum wp_step_result go_to_caller(struct wp_step *step,
					uint64_t slot_avma,
					uint64_t return_avma, uint64_t fp)
{
	step->is_switch = slot_avma < step->regs->v[WP_REG_SP];
	step->regs->known = 0;
	wp_reg_set(step->regs, WP_REG_PC, return_avma);
	wp_reg_set(step->regs, WP_REG_SP, slot_avma + WORD);
	wp_reg_set(step->regs, WP_REG_FP, fp);
	step->cfa_avma = slot_avma + WORD;
	return WP_STEP_OK;
}

/* Make STEP if there is a record of the caller's frame pointer and a return
 * address to CALLEE's caller at RECORD. */
static enum wp_step_result step_by_record(struct wp_step *step,
					  const struct callee *callee,
					  uint64_t record_avma)
{
	struct wp_frame_record record;
	enum wp_step_result result = wp_step_read(step, record_avma, &record,
						  sizeof(record));

	if (result != WP_STEP_OK)
		return result;
	if (!is_called_before(callee, record.return_avma - step->module->bias))
		return WP_STEP_UNKNOWN_REG;
	return go_to_caller(step, record_avma + WORD, record.return_avma,
			    record.caller_fp);
}

/* The search for the return address of a callee without a frame. */
struct search {
	const struct wp_step *step;
	const struct callee *callee;
	uint64_t bias;
	uint64_t fp_avma;
	/* Out: how many there are, and the last. */
	unsigned int nfound;
	uint64_t slot_avma;
	uint64_t return_avma;
};

static enum wp_step_result search_words(struct search *s, uint64_t avma,
					const uint64_t *words)
{
	for (unsigned int i = 0; i < READ_WORDS; i++) {
		uint64_t slot_avma = avma + WORD * i;

		if (!is_called_before(s->callee, words[i] - s->bias))
			continue;
		if (!wp_step_work(s->step, TABLE_WORK))
			return WP_STEP_TOO_SLOW;
		if (!has_frame(s->callee, words[i] - s->bias,
			       s->fp_avma - slot_avma))
			continue;
		s->nfound++;
		s->slot_avma = slot_avma;
		s->return_avma = words[i];
	}
	return WP_STEP_OK;
}

/* Make STEP by the only word below the frame pointer that a call of CALLEE has
 * left at its distance from there. */
static enum wp_step_result step_by_search(struct wp_step *step,
					  const struct callee *callee)
{
	uint64_t fp_avma = step->regs->v[WP_REG_FP];
	struct search s = { .step = step,
			    .callee = callee,
			    .bias = step->module->bias,
			    .fp_avma = fp_avma };
	uint64_t words[READ_WORDS];

	for (uint64_t n = READ_WORDS; n <= FRAME_WORDS; n += READ_WORDS) {
		uint64_t avma = fp_avma - WORD * n;
		enum wp_step_result result = wp_step_read(step, avma, words,
							  sizeof(words));

		/* The stack may end before. */
		if (result != WP_STEP_OK && n > READ_WORDS)
			break;
		if (result != WP_STEP_OK)
			return result;
		result = search_words(&s, avma, words);
		if (result != WP_STEP_OK)
			return result;
	}
	return s.nfound == 1 ?
		       go_to_caller(step, s.slot_avma, s.return_avma, fp_avma) :
		       WP_STEP_UNKNOWN_REG;
}

enum wp_step_result wp_go_switch_step(struct wp_step *step, uint32_t size)
{
	uint64_t fp_avma = step->regs->v[WP_REG_FP];
	enum wp_step_result result, bare;
	struct callee callee;

	if (!wp_reg_known(step->regs, WP_REG_FP))
		return WP_STEP_UNKNOWN_REG;
	result = find_callee(step, &callee);
	if (result != WP_STEP_OK)
		return result;
	if (!size)
		return step_by_search(step, &callee);
	result = step_by_record(step, &callee, fp_avma);
	/* The first and the last instructions are on the goroutine's stack and
	 * have no frame pointer of their own. */
	if (result == WP_STEP_OK || step->is_return || size < WORD)
		return result;
	bare = step_by_record(step, &callee,
			      step->regs->v[WP_REG_SP] + size - WORD);
	/* The goroutine's stack may only not have been copied. */
	return bare == WP_STEP_OK ? bare : result;
}

#else

enum wp_step_result wp_go_switch_step(struct wp_step *step, uint32_t size)
{
	(void)step;
	(void)size;
	return WP_STEP_UNKNOWN_REG;
}

#endif
