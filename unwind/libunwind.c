/* SPDX-License-Identifier: Apache-2.0 */
/* libunwind.c - steps by libunwind over our own accessors: see step.h.
 *
 * Each step has a cursor of its own.  What libunwind keeps from one step to the
 * next is its cache of rules, 128 of them in each address space; a larger cache
 * can be asked for, but its hash is one byte.  So pcs are divided among many
 * address spaces.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <libunwind.h>

#include "wallprof/hash.h"

#include "arch.h"
#include "cfi_table.h"

/* libunwind exports this for callers like us and declares it nowhere. */
#define dwarf_search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int dwarf_search_unwind_table(unw_addr_space_t as, unw_word_t ip,
			      unw_dyn_info_t *di, unw_proc_info_t *pi,
			      int need_unwind_info, void *arg);

enum {
	SHARD_BITS = 6,
	NSHARDS = 1 << SHARD_BITS,
	/* Words that one step may read.  In a malformed file an expression may
	 * jump backwards for ever. */
	READS_MAX = 1 << 16,
	/* Reads of the file for one step of an expression. */
	READS_PER_WORK = 16,
};

/* The address at which libunwind reads find_proc_info's table of one entry: not
 * one of a user's memory, and aligned. */
#define TABLE_AVMA UINT64_C(0xfffffffffffff000)

struct libunwind {
	struct wp_unwind_stats *stats;
	struct wp_cfi_tables tables;
	/* NULL: no pc of it was met so far. */
	unw_addr_space_t shards[NSHARDS];
};

/* One step, the ARG of the accessors. */
struct request {
	struct libunwind *self;
	struct wp_step *step;
	/* The words at TABLE_AVMA: a function's start and its FDE, relative to
	 * the FDE. */
	int32_t table[2];
	/* The last aligned word that was read, if HAS_WORD: libunwind reads each
	 * byte of it by itself. */
	uint64_t word_avma;
	uint64_t word;
	unsigned int nreads;
	bool has_word;
	/* libunwind is in find_proc_info, where it follows the pointer to a
	 * function's personality routine, which lies in data.  The step does not
	 * depend on its value. */
	bool is_lookup;
	/* find_proc_info was called; it found the FDE; finding it would take too
	 * long. */
	bool searched;
	bool found;
	bool too_slow;
	/* The value of a register was wanted that is not known. */
	bool asked_unknown_reg;
	/* What became of the last read of the target's memory. */
	enum wp_step_result read;
};

/* Read the aligned word at SVMA, bytes of which may lie outside of IMAGE's
 * segments and are 0 then.  False if all do, or if CONSTANT is wanted and the
 * segment is writable. */
static bool read_image(struct wp_elf_image *image, uint64_t svma, bool constant,
		       uint64_t *ret)
{
	for (uint32_t i = 0; i < image->nloads; i++) {
		const struct wp_elf_load *load = &image->loads[i];
		uint64_t lo = svma, hi = svma + sizeof(*ret);
		uint64_t end = load->svma + load->filesz;
		const uint8_t *bytes;

		if ((constant && load->flags & PF_W) || hi < lo ||
		    end < load->svma)
			continue;
		lo = lo < load->svma ? load->svma : lo;
		hi = hi > end ? end : hi;
		if (lo >= hi)
			continue;
		bytes = wp_elf_image_at(image, load->off + (lo - load->svma),
					hi - lo);
		if (!bytes)
			return false;
		*ret = 0;
		memcpy((uint8_t *)ret + (lo - svma), bytes, (size_t)(hi - lo));
		return true;
	}
	return false;
}

static int access_mem(unw_addr_space_t as, unw_word_t avma, unw_word_t *val,
		      int write, void *arg)
{
	struct request *r = arg;
	const struct wp_step *step = r->step;
	const struct wp_unwind_module *module = step->module;
	uint64_t word;

	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	if (++r->nreads > READS_MAX)
		return -UNW_EINVAL;
	if (r->nreads % READS_PER_WORK == 0)
		r->too_slow |= !wp_step_work(step, 1);
	if (r->too_slow)
		return -UNW_EINVAL;
	if (r->has_word && r->word_avma == avma) {
		*val = r->word;
		return 0;
	}
	if (avma == TABLE_AVMA) {
		memcpy(&word, r->table, sizeof(word));
	} else if (!read_image(module->image, avma - module->bias,
			       !r->is_lookup, &word)) {
		r->too_slow |= !wp_step_work(step, 1);
		if (r->too_slow)
			return -UNW_EINVAL;
		r->read = wp_step_read(step, avma, &word, sizeof(word));
		if (r->read != WP_STEP_OK)
			return -UNW_EINVAL;
	}
	r->word_avma = avma;
	r->word = word;
	r->has_word = true;
	*val = word;
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val,
		      int write, void *arg)
{
	struct request *r = arg;

	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	/* Not -UNW_ENOINFO, which sets libunwind guessing. */
	if (reg < 0 || !wp_reg_known(r->step->regs, (unsigned int)reg)) {
		r->asked_unknown_reg = true;
		return -UNW_EBADREG;
	}
	*val = r->step->regs->v[reg];
	/* The rules are looked up by pc. */
	if (reg == WP_REG_PC && r->step->is_return)
		*val -= 1;
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val,
			int write, void *arg)
{
	(void)as, (void)reg, (void)val, (void)write, (void)arg;
	return -UNW_EBADREG;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip,
			  unw_proc_info_t *pi, int need_unwind_info, void *arg)
{
	struct request *r = arg;
	const struct wp_unwind_module *module = r->step->module;
	unw_dyn_info_t table = { .start_ip = ip, .end_ip = ip + 1 };
	struct wp_cfi_table *cfi = wp_cfi_tables_find_or_add(&r->self->tables,
							     module->image);
	uint64_t fde_svma;
	int rc;

	r->searched = true;
	rc = cfi ? wp_cfi_table_find_last(cfi, ip - module->bias,
					  !r->step->in_stop, &fde_svma) :
		   -ENOMEM;
	r->too_slow = rc == -EAGAIN;
	if (rc)
		return -UNW_EUNSPEC;
	/* One entry, whose function starts below every address. */
	r->table[0] = INT32_MIN;
	r->table[1] = 0;
	table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	table.u.rti.segbase = module->bias + fde_svma;
	table.u.rti.table_data = TABLE_AVMA;
	/* In words of 8, as long as an entry is. */
	table.u.rti.table_len = 1;
	r->is_lookup = true;
	rc = dwarf_search_unwind_table(as, ip, &table, pi, need_unwind_info,
				       arg);
	r->is_lookup = false;
	/* The word may be that of a personality routine. */
	r->has_word = false;
	/* The last function before IP ended before it. */
	if (rc == -UNW_ENOINFO)
		return -UNW_EUNSPEC;
	r->found = true;
	return rc;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	/* The info is in libunwind's own pool, which it frees itself. */
	(void)as, (void)pi, (void)arg;
}

static int find_dyn_info_list(unw_addr_space_t as, unw_word_t *ret, void *arg)
{
	(void)as, (void)ret, (void)arg;
	return -UNW_ENOINFO;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	(void)as, (void)cursor, (void)arg;
	return -UNW_EINVAL;
}

static int find_proc_name(unw_addr_space_t as, unw_word_t ip, char *buf,
			  size_t len, unw_word_t *ret_off, void *arg)
{
	(void)as, (void)ip, (void)buf, (void)len, (void)ret_off, (void)arg;
	return -UNW_EINVAL;
}

static void libunwind_close(void *self)
{
	struct libunwind *u = self;

	for (size_t i = 0; i < NSHARDS; i++)
		if (u->shards[i])
			unw_destroy_addr_space(u->shards[i]);
	wp_cfi_tables_clear(&u->tables);
	free(u);
}

static void *libunwind_open(struct wp_unwind_stats *stats)
{
	struct libunwind *u = calloc(1, sizeof(*u));

	if (u)
		u->stats = stats;
	return u;
}

static void libunwind_flush(void *self)
{
	struct libunwind *u = self;

	/* 0, 0: all addresses. */
	for (size_t i = 0; i < NSHARDS; i++)
		if (u->shards[i])
			unw_flush_cache(u->shards[i], 0, 0);
}

/* The address space of PC, made when the first pc of it is met: most walks need
 * none, and all of them take 700 KB.  NULL without memory. */
static unw_addr_space_t shard_of(struct libunwind *u, uint64_t pc_avma)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = find_dyn_info_list,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
		.get_proc_name = find_proc_name,
	};
	unw_addr_space_t *shard =
		&u->shards[wp_hash_u64(pc_avma) >> (64 - SHARD_BITS)];

	if (!*shard) {
		*shard = unw_create_addr_space(&accessors, 0);
		if (*shard)
			unw_set_caching_policy(*shard, UNW_CACHE_GLOBAL);
	}
	return *shard;
}

/* Why a step failed, by what the accessors saw rather than by libunwind's error. */
static enum wp_step_result classify_failure(const struct request *r)
{
	if (r->asked_unknown_reg)
		return WP_STEP_UNKNOWN_REG;
	if (r->too_slow)
		return WP_STEP_TOO_SLOW;
	if (r->searched && !r->found)
		return WP_STEP_NO_INFO;
	if (r->read != WP_STEP_OK && r->nreads <= READS_MAX)
		return r->read;
	return WP_STEP_BAD_INFO;
}

/* Take the caller's registers out of CURSOR. */
static void read_caller(struct wp_step *step, unw_cursor_t *cursor)
{
	struct wp_regs caller = { .known = 0 };
	unw_word_t val;

	for (unsigned int reg = 0; reg < WP_NREGS; reg++) {
		/* Only the kernel saves what a call may destroy. */
		if (reg == WP_REG_PC || (!(WP_ARCH_CALLEE_SAVED >> reg & 1) &&
					 reg != WP_REG_SP && !step->is_signal))
			continue;
		if (!unw_get_reg(cursor, (int)reg, &val))
			wp_reg_set(&caller, reg, val);
	}
	/* Under its own number it is the callee's on aarch64 (libunwind 1.6). */
	if (!unw_get_reg(cursor, UNW_REG_IP, &val))
		wp_reg_set(&caller, WP_REG_PC, val);
	*step->regs = caller;
}

/* unw_step said that the stack ends: has it read a return address all the same?
 * On x86-64 it says so where the frame pointer is undefined (x86_64/Gstep.c). */
static bool has_return_address(const struct request *r, uint64_t cfa_avma)
{
	return WP_ARCH_FRAMES_TAKE_STACK && r->has_word &&
	       r->word_avma == cfa_avma - 8;
}

static enum wp_step_result libunwind_step(void *self, struct wp_step *step)
{
	struct libunwind *u = self;
	struct request r = { .self = u, .step = step };
	uint64_t pc_avma = step->regs->v[WP_REG_PC];
	uint64_t return_avma;
	unw_addr_space_t shard;
	unw_cursor_t cursor;
	unw_word_t cfa_avma;
	int rc;

	/* The library is for programs of its own width. */
	if (step->is_32bit)
		return WP_STEP_NO_INFO;
	shard = shard_of(u, pc_avma);
	if (!shard)
		return WP_STEP_BAD_INFO;
	if (unw_init_remote(&cursor, shard, &r))
		return WP_STEP_UNKNOWN_REG;
	rc = unw_step(&cursor);
	if (r.searched)
		u->stats->cache_misses++;
	else
		u->stats->cache_hits++;
	if (rc < 0 || (r.searched && !r.found) || r.asked_unknown_reg ||
	    r.read != WP_STEP_OK)
		return classify_failure(&r);
	if (unw_get_reg(&cursor, UNW_REG_SP, &cfa_avma))
		return WP_STEP_BAD_INFO;
	if (rc == 0 && !has_return_address(&r, cfa_avma))
		return WP_STEP_ROOT;
	step->cfa_avma = cfa_avma;
	step->is_signal = wp_arch_is_sigreturn(step->module, step->mem,
					       pc_avma);
	return_avma = r.word;
	read_caller(step, &cursor);
	if (rc == 0)
		wp_reg_set(step->regs, WP_REG_PC, return_avma);
	return WP_STEP_OK;
}

const struct wp_step_ops wp_step_libunwind = {
	.open = libunwind_open,
	.close = libunwind_close,
	.flush = libunwind_flush,
	.step = libunwind_step,
};
