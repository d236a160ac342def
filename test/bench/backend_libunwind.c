/* SPDX-License-Identifier: Apache-2.0 */
/* backend_libunwind.c - libunwind as perf drives it: see backend.h.
 *
 * tools/perf/util/unwind-libunwind-local.c: one address space, a cursor a
 * walk, accessors over the copied stack and the files, and the search in
 * .eh_frame_hdr left to libunwind.
 */
#include <stdlib.h>
#include <string.h>

#include <libunwind.h>

#include "backend.h"

/* libunwind exports this for callers like us and declares it nowhere. */
#define dwarf_search_unwind_table UNW_OBJ(dwarf_search_unwind_table)
int dwarf_search_unwind_table(unw_addr_space_t as, unw_word_t ip,
			      unw_dyn_info_t *di, unw_proc_info_t *pi,
			      int need_unwind_info, void *arg);

/* Rules that the cache is asked to hold; 128 where libunwind refuses. */
enum { CACHE_RULES = 4096 };

struct self {
	unw_addr_space_t space;
	const struct wp_unwind_modules *modules;
	struct snap *snap;
};

/* The usual header alone: version 1, the table's entries relative to it. */
static bool has_table(struct wp_elf_image *image, uint32_t *ret_len)
{
	static const uint8_t usual[] = { 1, 0x1b, 0x03, 0x3b };
	const uint8_t *hdr;

	if (!image || image->eh_frame_hdr.size < 12)
		return false;
	hdr = wp_elf_image_at(image, image->eh_frame_hdr.off, 12);
	if (!hdr || memcmp(hdr, usual, sizeof(usual)) != 0)
		return false;
	memcpy(ret_len, hdr + 8, sizeof(*ret_len));
	return true;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip,
			  unw_proc_info_t *pi, int need_unwind_info, void *arg)
{
	const struct self *self = arg;
	const struct wp_unwind_module *module = wp_unwind_find_module(
		self->modules, ip);
	unw_dyn_info_t table = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };
	uint32_t len;

	if (!module || !has_table(module->image, &len))
		return -UNW_ENOINFO;
	table.start_ip = module->start_avma;
	table.end_ip = module->end_avma;
	table.u.rti.segbase = module->bias + module->image->eh_frame_hdr.svma;
	table.u.rti.table_data = table.u.rti.segbase + 12;
	/* In words of 8, as long as an entry is. */
	table.u.rti.table_len = len;
	return dwarf_search_unwind_table(as, ip, &table, pi, need_unwind_info,
					 arg);
}

static int access_mem(unw_addr_space_t as, unw_word_t avma, unw_word_t *val,
		      int write, void *arg)
{
	struct self *self = arg;

	(void)as;
	if (write || snap_read(self->snap, avma, val, sizeof(*val)))
		return -UNW_EINVAL;
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *val,
		      int write, void *arg)
{
	struct self *self = arg;

	(void)as;
	if (write || reg < 0 || reg >= WP_NREGS)
		return -UNW_EBADREG;
	*val = self->snap->regs.v[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *val,
			int write, void *arg)
{
	(void)as, (void)reg, (void)val, (void)write, (void)arg;
	return -UNW_EBADREG;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
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

static void *open_self(struct snap_set *set, unw_caching_policy_t policy)
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
	struct self *self = calloc(1, sizeof(*self));

	if (!self)
		return NULL;
	self->modules = &set->space.view;
	self->space = unw_create_addr_space(&accessors, 0);
	if (!self->space) {
		free(self);
		return NULL;
	}
	unw_set_caching_policy(self->space, policy);
	if (policy != UNW_CACHE_NONE)
		(void)unw_set_cache_size(self->space, CACHE_RULES, 0);
	return self;
}

static void *open_cached(struct snap_set *set)
{
	return open_self(set, UNW_CACHE_GLOBAL);
}

static void *open_uncached(struct snap_set *set)
{
	return open_self(set, UNW_CACHE_NONE);
}

static size_t walk(void *arg, struct snap *snap, uint64_t *pcs)
{
	struct self *self = arg;
	unw_cursor_t cursor;
	size_t n = 0;

	self->snap = snap;
	if (unw_init_remote(&cursor, self->space, self))
		return 0;
	do {
		unw_word_t pc;

		if (unw_get_reg(&cursor, UNW_REG_IP, &pc) || !pc)
			break;
		pcs[n++] = pc;
	} while (n < SNAP_FRAMES_MAX && unw_step(&cursor) > 0);
	return n;
}

static void close_self(void *arg)
{
	struct self *self = arg;

	unw_destroy_addr_space(self->space);
	free(self);
}

const struct backend backend_libunwind = {
	"libunwind-cached",
	open_cached,
	walk,
	close_self,
};

const struct backend backend_uncached = {
	"libunwind-uncached",
	open_uncached,
	walk,
	close_self,
};
