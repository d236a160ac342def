/* SPDX-License-Identifier: Apache-2.0 */
/* resolver.c - see wallprof/symbols.h: modules, and what was resolved. */
#include "wallprof/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "resolver.h"
#include "wallprof/base_name.h"
#include "wallprof/hash.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

enum {
	/* Number of cached addresses after which the cache is emptied. */
	CACHE_MAX = 1 << 17,
};

int wp_symbols_new(struct wp_symbols **ret,
		   const struct wp_symbol_options *options)
{
	struct wp_symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->search.roots = options->roots;
	s->search.nroots = options->nroots;
	s->search.open = options->open_debug;
	s->search.ctx = options->ctx;
	s->names_only = options->names_only;
	if (options->perf_map_fd >= 0 &&
	    wp_perf_map_read(&s->perf_map, options->perf_map_fd) == -ENOMEM) {
		wp_symbols_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void wp_symbols_free(struct wp_symbols *s)
{
	if (!s)
		return;
	wp_dwarf_close(&s->dwarf);
	for (uint32_t i = 0; i < s->nobjects; i++)
		wp_object_free(s->objects[i]);
	free(s->objects);
	free(s->modules);
	free(s->lines);
	free(s->cached);
	wp_index_clear(&s->by_address);
	wp_perf_map_clear(&s->perf_map);
	wp_strpool_clear(&s->strings);
	free(s);
}

/* Where module ID is or would be. */
static uint32_t module_index(const struct wp_symbols *s, uint32_t id)
{
	return WP_LOWER_BOUND(s->nmodules, i, s->modules[i].id < id);
}

static struct wp_module *find_module(const struct wp_symbols *s, uint32_t id)
{
	uint32_t i = module_index(s, id);

	return i < s->nmodules && s->modules[i].id == id ? &s->modules[i] :
							   NULL;
}

/* The object of MODULE's image, made if new; *RET is NULL if it has none. */
static int find_object(struct wp_symbols *s, uint32_t id,
		       const struct wp_symbol_module *module,
		       struct wp_object **ret)
{
	*ret = NULL;
	if (!module->image)
		return 0;
	for (uint32_t i = 0; i < s->nobjects; i++)
		if (s->objects[i]->main.image == module->image) {
			*ret = s->objects[i];
			return 0;
		}
	if (WP_VEC_ROOM(s->objects, s->nobjects, s->objects_cap, 1))
		return -ENOMEM;
	*ret = wp_object_new(module->image, module->path, id);
	if (!*ret)
		return -ENOMEM;
	s->objects[s->nobjects++] = *ret;
	return 0;
}

int wp_symbols_add(struct wp_symbols *s, uint32_t id,
		   const struct wp_symbol_module *module)
{
	struct wp_module m = {
		.id = id,
		.start_avma = module->start_avma,
		.end_avma = module->end_avma,
		.off = module->off,
		.bias = module->bias,
		.is_made = wp_path_is_made(module->path),
		.is_file = *module->path == '/' &&
			   !wp_path_is_made(module->path),
	};
	uint32_t i = module_index(s, id);
	int rc;

	m.name = wp_strpool_add_str(&s->strings,
				    *module->path ? wp_base_name(module->path) :
						    "[anon]");
	if (!m.name)
		return -ENOMEM;
	rc = find_object(s, id, module, &m.object);
	if (rc)
		return rc;
	if (i < s->nmodules && s->modules[i].id == id) {
		s->modules[i] = m;
		return 0;
	}
	rc = WP_VEC_ROOM(s->modules, s->nmodules, s->modules_cap, 1);
	if (rc)
		return rc;
	memmove(&s->modules[i + 1], &s->modules[i],
		(s->nmodules - i) * sizeof(*s->modules));
	s->modules[i] = m;
	s->nmodules++;
	return 0;
}

void wp_symbols_add_has(struct wp_symbol_has *all,
			const struct wp_symbol_has *has)
{
	all->functions |= has->functions;
	all->filenames |= has->filenames;
	all->line_numbers |= has->line_numbers;
	all->inline_frames |= has->inline_frames;
	all->debug_file |= has->debug_file;
	if (has->dwarf_loss > all->dwarf_loss)
		all->dwarf_loss = has->dwarf_loss;
}

static void empty_cache(struct wp_symbols *s)
{
	s->ncached = 0;
	s->nlines = 0;
	wp_index_clear(&s->by_address);
}

static int resolve_in(struct wp_symbols *s, struct wp_module *module,
		      struct wp_object *object, uint64_t svma,
		      const struct wp_symbol_line **ret)
{
	struct wp_cached c = { object, svma, s->nlines, 0, { 0 } };
	uint64_t hash = wp_hash_u64(svma ^ wp_hash_u64((uintptr_t)object));
	uint32_t at = WP_INDEX_FIND(&s->by_address, hash, i,
				    s->cached[i].object == object &&
					    s->cached[i].svma == svma);
	int rc;

	if (at == WP_INDEX_NONE) {
		rc = WP_VEC_ROOM(s->cached, s->ncached, s->cached_cap, 1);
		if (!rc)
			rc = wp_naming_add_lines(s, module->name, &c);
		c.n = s->nlines - c.first;
		if (!rc)
			rc = wp_index_add(&s->by_address, hash, s->ncached);
		if (rc) {
			s->nlines = c.first;
			return rc;
		}
		at = s->ncached++;
		s->cached[at] = c;
	}
	c = s->cached[at];
	wp_symbols_add_has(&module->has, &c.has);
	*ret = &s->lines[c.first];
	return (int)c.n;
}

/* An address in no ELF file. */
static int resolve_outside(struct wp_symbols *s, struct wp_module *module,
			   uint64_t avma, const struct wp_symbol_line **ret)
{
	const char *name = wp_perf_map_find(&s->perf_map, avma);
	uint64_t addr = avma;
	int rc;

	/* In a file the offset is shown, which is the same in the next process;
	 * in anonymous memory the address.  Code that a program made there is
	 * one function per mapping. */
	if (module && module->is_made)
		avma = addr = module->start_avma;
	if (module && (module->object || module->is_file))
		addr = avma - module->start_avma + module->off;
	if (name)
		rc = wp_naming_add_line(s, name, false) ? 0 : -ENOMEM;
	else
		rc = wp_naming_add_place(s, module ? module->name : NULL, addr);
	if (rc)
		return rc;
	if (module && name)
		module->has.functions = true;
	/* Not in the cache; valid until the next call. */
	*ret = &s->lines[--s->nlines];
	return 1;
}

int wp_symbols_resolve(struct wp_symbols *s, uint32_t id, uint64_t avma,
		       const struct wp_symbol_line **ret)
{
	struct wp_module *module = id ? find_module(s, id) : NULL;
	struct wp_object *object = module ? module->object : NULL;
	int rc;

	if (s->ncached >= CACHE_MAX)
		empty_cache(s);
	if (!object)
		return resolve_outside(s, module, avma, ret);
	rc = wp_object_load(object, &s->search, s->names_only);
	if (rc)
		return rc;
	if (!object->is_elf)
		return resolve_outside(s, module, avma, ret);
	return resolve_in(s, module, object, avma - module->bias, ret);
}

struct wp_symbol_has wp_symbols_has(const struct wp_symbols *s, uint32_t id)
{
	const struct wp_module *module = find_module(s, id);

	return module ? module->has : (struct wp_symbol_has){ 0 };
}
