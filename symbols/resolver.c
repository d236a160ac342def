/* SPDX-License-Identifier: Apache-2.0 */
/* resolver.c - see wallprof/symbols.h: modules, and what was resolved. */
#include "wallprof/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "resolver.h"
#include "wallprof/hash.h"
#include "wallprof/vec.h"

enum {
	/* Addresses whose lines are kept; then it begins anew. */
	CACHE_MAX = 1 << 17,
	FIRST_SLOTS = 1024,
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
	free(s->slot);
	wp_perf_map_clear(&s->perf_map);
	wp_strpool_clear(&s->strings);
	free(s);
}

/* Where module ID is or would be. */
static uint32_t module_index(const struct wp_symbols *s, uint32_t id)
{
	uint32_t lo = 0, hi = s->nmodules;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (s->modules[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct wp_module *find_module(const struct wp_symbols *s, uint32_t id)
{
	uint32_t i = module_index(s, id);

	return i < s->nmodules && s->modules[i].id == id ? &s->modules[i] :
							   NULL;
}

static struct wp_object *find_object(const struct wp_symbols *s,
				     const struct stat *st)
{
	for (uint32_t i = 0; i < s->nobjects; i++)
		if (s->objects[i]->ino == st->st_ino &&
		    s->objects[i]->dev == st->st_dev && st->st_ino)
			return s->objects[i];
	return NULL;
}

static int set_bytes(struct wp_object *object,
		     const struct wp_symbol_module *module)
{
	void *copy;

	if (module->fd >= 0) {
		int rc = wp_file_map_open(&object->main.map, module->fd);

		/* Not a file to map: no names, that is all. */
		return rc == -ENOMEM ? rc : 0;
	}
	copy = malloc(module->elf_len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, module->elf, module->elf_len);
	wp_file_map_adopt(&object->main.map, copy, module->elf_len);
	return 0;
}

static int add_object(struct wp_symbols *s, uint32_t id, const struct stat *st,
		      const struct wp_symbol_module *module,
		      struct wp_object **ret)
{
	struct wp_object *object = calloc(1, sizeof(*object));
	int rc = -ENOMEM;

	if (!object)
		return -ENOMEM;
	object->dev = st->st_dev;
	object->ino = st->st_ino;
	object->module = id;
	object->path = strdup(module->path);
	if (!object->path)
		goto out;
	rc = set_bytes(object, module);
	if (rc)
		goto out;
	rc = WP_VEC_ROOM(s->objects, s->nobjects, s->objects_cap, 1);
	if (rc)
		goto out;
	s->objects[s->nobjects++] = object;
	*ret = object;
	return 0;
out:
	wp_object_free(object);
	return rc;
}

static int get_object(struct wp_symbols *s, uint32_t id,
		      const struct wp_symbol_module *module,
		      struct wp_object **ret)
{
	struct stat st = { 0 };

	*ret = NULL;
	if (module->fd < 0 && (!module->elf || !module->elf_len))
		return 0;
	if (module->fd >= 0 && wp_file_stat(module->fd, &st))
		return 0;
	*ret = find_object(s, &st);
	return *ret ? 0 : add_object(s, id, &st, module, ret);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!*path)
		return "[anon]";
	return slash && slash[1] ? slash + 1 : path;
}

int wp_symbols_add(struct wp_symbols *s, uint32_t id,
		   const struct wp_symbol_module *module)
{
	struct wp_module m = {
		.id = id,
		.start_avma = module->start_avma,
		.end_avma = module->end_avma,
		.off = module->off,
	};
	uint32_t i = module_index(s, id);
	int rc;

	m.name = wp_strpool_add_str(&s->strings, base_name(module->path));
	if (!m.name)
		return -ENOMEM;
	rc = get_object(s, id, module, &m.object);
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

static uint32_t *find_slot(const struct wp_symbols *s, uint32_t *slot,
			   uint32_t nslots, const struct wp_object *object,
			   uint64_t svma)
{
	uint32_t i = (uint32_t)wp_hash_u64(svma ^
					   wp_hash_u64((uintptr_t)object)) &
		     (nslots - 1);

	for (;; i = (i + 1) & (nslots - 1)) {
		const struct wp_cached *c;

		if (!slot[i])
			return &slot[i];
		c = &s->cached[slot[i] - 1];
		if (c->object == object && c->svma == svma)
			return &slot[i];
	}
}

static int grow_slots(struct wp_symbols *s)
{
	uint32_t nslots = s->nslots ? 2 * s->nslots : FIRST_SLOTS;
	uint32_t *slot;

	if (s->ncached < s->nslots / 2)
		return 0;
	slot = calloc(nslots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->ncached; i++)
		*find_slot(s, slot, nslots, s->cached[i].object,
			   s->cached[i].svma) = i + 1;
	free(s->slot);
	s->slot = slot;
	s->nslots = nslots;
	return 0;
}

static void note(struct wp_module *module, const struct wp_symbol_has *has)
{
	module->has.functions |= has->functions;
	module->has.filenames |= has->filenames;
	module->has.line_numbers |= has->line_numbers;
	module->has.inline_frames |= has->inline_frames;
	module->has.debug_file |= has->debug_file;
}

static void empty_cache(struct wp_symbols *s)
{
	s->ncached = 0;
	s->nlines = 0;
	if (s->slot)
		memset(s->slot, 0, s->nslots * sizeof(*s->slot));
}

static int resolve_in(struct wp_symbols *s, struct wp_module *module,
		      struct wp_object *object, uint64_t svma,
		      const struct wp_symbol_line **ret)
{
	struct wp_cached c = { object, svma, s->nlines, 0, { 0 } };
	uint32_t *slot;
	int rc = grow_slots(s);

	if (rc)
		return rc;
	slot = find_slot(s, s->slot, s->nslots, object, svma);
	if (!*slot) {
		rc = WP_VEC_ROOM(s->cached, s->ncached, s->cached_cap, 1);
		if (!rc)
			rc = wp_naming_add_lines(s, module->name, &c);
		c.n = s->nlines - c.first;
		if (rc) {
			s->nlines = c.first;
			return rc;
		}
		s->cached[s->ncached++] = c;
		*slot = s->ncached;
	}
	c = s->cached[*slot - 1];
	note(module, &c.has);
	*ret = &s->lines[c.first];
	return (int)c.n;
}

/* An address that no ELF file explains. */
static int resolve_outside(struct wp_symbols *s, struct wp_module *module,
			   uint64_t avma, const struct wp_symbol_line **ret)
{
	const char *name = wp_perf_map_find(&s->perf_map, avma);
	uint64_t addr = avma;
	int rc;

	/* What is in a file is told by offset, as it is the same in the next
	 * process; anonymous memory by address. */
	if (module && module->object)
		addr = avma - module->start_avma + module->off;
	if (name)
		rc = wp_naming_add_line(s, name) ? 0 : -ENOMEM;
	else
		rc = wp_naming_add_place(s, module ? module->name : NULL, addr);
	if (rc)
		return rc;
	if (module && name)
		module->has.functions = true;
	/* Nothing that the cache knows, but good until the next call. */
	*ret = &s->lines[--s->nlines];
	return 1;
}

int wp_symbols_resolve(struct wp_symbols *s, uint32_t id, uint64_t avma,
		       const struct wp_symbol_line **ret)
{
	struct wp_module *module = id ? find_module(s, id) : NULL;
	struct wp_object *object = module ? module->object : NULL;
	uint64_t svma;
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
	if (!wp_elf_file_svma(&object->main,
			      avma - module->start_avma + module->off, &svma))
		svma = avma - module->start_avma + module->off;
	return resolve_in(s, module, object, svma, ret);
}

struct wp_symbol_has wp_symbols_has(const struct wp_symbols *s, uint32_t id)
{
	const struct wp_module *module = find_module(s, id);

	return module ? module->has : (struct wp_symbol_has){ 0 };
}
