/* resolver.c - see wallprof/symbols.h.
 *
 * Which name: an address that a symbol table knows has one, whether debug info
 * is installed or not, and the profile should not change with that.  So the
 * function proper is named by the symbol where it starts (of a cold part, where
 * its hot part starts), as perf and eu-stack do, and by DWARF where there is
 * none.  Inlined functions have no symbol: DWARF names them.
 */
#include "wallprof/symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "demangle.h"
#include "object.h"
#include "perf_map.h"
#include "strpool.h"
#include "wallprof/hash.h"
#include "wallprof/vec.h"

enum {
	/* Addresses whose lines are kept; then it begins anew. */
	CACHE_MAX = 1 << 17,
	FIRST_SLOTS = 1024,
};

struct module {
	uint32_t id;
	uint64_t start_avma;
	uint64_t end_avma;
	uint64_t off;
	/* What the path ends with, or "[anon]"; in the pool. */
	const char *name;
	/* NULL without a file. */
	struct wp_object *object;
	struct wp_symbol_has has;
};

/* An address that was resolved: lines[first..first + n). */
struct cached {
	const struct wp_object *object;
	uint64_t svma;
	uint32_t first;
	uint32_t n;
	/* What has come of it, for each module of the object. */
	struct wp_symbol_has has;
};

struct wp_symbols {
	struct wp_debug_search search;
	bool names_only;
	struct wp_strpool strings;
	struct wp_perf_map perf_map;

	/* modules[0..nmodules), sorted by id; owned. */
	struct module *modules;
	uint32_t nmodules;
	uint32_t modules_cap;
	/* objects[0..nobjects), each owned: they do not move. */
	struct wp_object **objects;
	uint32_t nobjects;
	uint32_t objects_cap;

	/* The lines of all cached addresses, end to end; owned. */
	struct wp_symbol_line *lines;
	uint32_t nlines;
	uint32_t lines_cap;
	struct cached *cached;
	uint32_t ncached;
	uint32_t cached_cap;
	/* Open-addressing table of index + 1, 0 = free; owned. */
	uint32_t *slot;
	uint32_t nslots;

	/* The DWARF of one object at a time, as addresses come grouped by
	 * module. */
	struct wp_dwarf dwarf;
	struct wp_object *dwarf_of;
	/* For one address. */
	struct wp_dwarf_lines found;
	char symbol[WP_SYMBOL_NAME_MAX];
	char demangled[WP_SYMBOL_NAME_MAX];
};

int wp_symbols_new(struct wp_symbols **ret,
		   const struct wp_symbol_options *options)
{
	struct wp_symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->search.roots = options->roots;
	s->search.nroots = options->nroots;
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

static struct module *find_module(const struct wp_symbols *s, uint32_t id)
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

static int add_object(struct wp_symbols *s, const struct stat *st,
		      const struct wp_symbol_module *module,
		      struct wp_object **ret)
{
	struct wp_object *object = calloc(1, sizeof(*object));
	int rc = -ENOMEM;

	if (!object)
		return -ENOMEM;
	object->dev = st->st_dev;
	object->ino = st->st_ino;
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

static int get_object(struct wp_symbols *s,
		      const struct wp_symbol_module *module,
		      struct wp_object **ret)
{
	struct stat st = { 0 };

	*ret = NULL;
	if (module->fd < 0 && (!module->elf || !module->elf_len))
		return 0;
	if (module->fd >= 0 && fstat(module->fd, &st))
		return 0;
	*ret = find_object(s, &st);
	return *ret ? 0 : add_object(s, &st, module, ret);
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
	struct module m = {
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
	rc = get_object(s, module, &m.object);
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

/* A level with both names, by SYSTEM_NAME; NULL without memory. */
static struct wp_symbol_line *add_line(struct wp_symbols *s,
				       const char *system_name)
{
	struct wp_symbol_line *line;

	if (WP_VEC_ROOM(s->lines, s->nlines, s->lines_cap, 1))
		return NULL;
	line = &s->lines[s->nlines];
	wp_demangle(system_name, s->demangled, sizeof(s->demangled));
	*line = (struct wp_symbol_line){
		.function = wp_strpool_add_str(&s->strings, s->demangled),
		.system_name = wp_strpool_add_str(&s->strings, system_name),
		.file = wp_strpool_add_str(&s->strings, ""),
	};
	if (!line->function || !line->system_name || !line->file)
		return NULL;
	s->nlines++;
	return line;
}

/* One level that says only where the address is. */
static int add_place(struct wp_symbols *s, const char *module, uint64_t addr)
{
	if (module)
		snprintf(s->symbol, sizeof(s->symbol), "%s+0x%" PRIx64, module,
			 addr);
	else
		snprintf(s->symbol, sizeof(s->symbol), "0x%" PRIx64, addr);
	return add_line(s, s->symbol) ? 0 : -ENOMEM;
}

static int set_place(struct wp_symbols *s, struct wp_symbol_line *line,
		     const struct wp_dwarf_level *level)
{
	const char *file = level->file ? level->file : "";

	if (*file && *file != '/' && level->dir && *level->dir &&
	    strcmp(level->dir, ".")) {
		int n = snprintf(s->symbol, sizeof(s->symbol), "%s/%s",
				 level->dir, file);

		if (n > 0 && (size_t)n < sizeof(s->symbol))
			file = s->symbol;
	}
	line->file = wp_strpool_add_str(&s->strings, file);
	line->line = level->line;
	line->start_line = level->start_line;
	return line->file ? 0 : -ENOMEM;
}

/* The symbol of the function proper, or NULL. */
static const struct wp_symtab_entry *own_symbol(const struct wp_symbols *s,
						const struct wp_object *object,
						uint64_t svma)
{
	const struct wp_dwarf_lines *found = &s->found;

	for (uint32_t i = 0; found->has_function && i < found->nstarts; i++) {
		const struct wp_symtab_entry *entry = wp_symtab_at(
			&object->symtab,
			found->starts[i] - object->debug_bias);

		if (entry)
			return entry;
	}
	return found->has_function && found->nstarts ?
		NULL : wp_symtab_find(&object->symtab, svma);
}

/* The mangled name of level I, "" if it has none. */
static const char *level_name(struct wp_symbols *s,
			      const struct wp_object *object, uint32_t i,
			      uint64_t svma)
{
	const struct wp_dwarf_level *level = &s->found.levels[i];
	const struct wp_symtab_entry *entry = NULL;

	if (i + 1 == s->found.n)
		entry = own_symbol(s, object, svma);
	/* A symbol that holds the address is better than nothing. */
	if (!entry && i + 1 == s->found.n && !level->linkage && !level->name)
		entry = wp_symtab_find(&object->symtab, svma);
	if (entry) {
		wp_symtab_name(&object->symtab, entry, s->symbol,
			       sizeof(s->symbol));
		return s->symbol;
	}
	if (level->linkage && *level->linkage)
		return level->linkage;
	return level->name ? level->name : "";
}

/* Have DWARF tell about SVMA of OBJECT in s->found; 0 levels if it cannot. */
static int look_up_dwarf(struct wp_symbols *s, struct wp_object *object,
			 uint64_t svma)
{
	int rc;

	s->found.n = 0;
	s->found.has_function = false;
	if (!object->dwarf_file)
		return 0;
	if (s->dwarf_of != object) {
		wp_dwarf_close(&s->dwarf);
		wp_dwarf_open(&s->dwarf, object->dwarf_file,
			      object->alt.map.size ? &object->alt : NULL);
		s->dwarf_of = object;
	}
	rc = wp_dwarf_lookup(&s->dwarf, svma + object->debug_bias, &s->found);
	if (rc)
		s->found.n = 0;
	return rc == -ENOMEM ? rc : 0;
}

/* Append the lines of SVMA in OBJECT. */
static int add_lines(struct wp_symbols *s, const struct module *module,
		     struct wp_object *object, struct cached *ret)
{
	uint64_t svma = ret->svma;
	uint32_t n;
	int rc = look_up_dwarf(s, object, svma);

	if (rc)
		return rc;
	n = s->found.n;
	if (!n) {
		s->found.levels[0] = (struct wp_dwarf_level){ 0 };
		s->found.n = n = 1;
	}
	for (uint32_t i = 0; !rc && i < n; i++) {
		const char *name = level_name(s, object, i, svma);
		struct wp_symbol_line *line;

		ret->has.functions |= *name != '\0';
		if (*name)
			rc = add_line(s, name) ? 0 : -ENOMEM;
		else
			rc = add_place(s, module->name, svma);
		if (rc)
			break;
		line = &s->lines[s->nlines - 1];
		rc = set_place(s, line, &s->found.levels[i]);
		ret->has.filenames |= !rc && *line->file;
		ret->has.line_numbers |= line->line != 0;
	}
	ret->has.inline_frames = s->found.has_function;
	ret->has.debug_file = object->debug.map.size != 0;
	return rc;
}

static uint32_t *find_slot(const struct wp_symbols *s, uint32_t *slot,
			   uint32_t nslots, const struct wp_object *object,
			   uint64_t svma)
{
	uint32_t i = (uint32_t)wp_hash_u64(svma ^ wp_hash_u64(
					   (uintptr_t)object)) & (nslots - 1);

	for (;; i = (i + 1) & (nslots - 1)) {
		const struct cached *c;

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

static void note(struct module *module, const struct wp_symbol_has *has)
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

static int resolve_in(struct wp_symbols *s, struct module *module,
		      struct wp_object *object, uint64_t svma,
		      const struct wp_symbol_line **ret)
{
	struct cached c = { object, svma, s->nlines, 0, { 0 } };
	uint32_t *slot;
	int rc = grow_slots(s);

	if (rc)
		return rc;
	slot = find_slot(s, s->slot, s->nslots, object, svma);
	if (!*slot) {
		rc = WP_VEC_ROOM(s->cached, s->ncached, s->cached_cap, 1);
		if (!rc)
			rc = add_lines(s, module, object, &c);
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
static int resolve_outside(struct wp_symbols *s, struct module *module,
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
		rc = add_line(s, name) ? 0 : -ENOMEM;
	else
		rc = add_place(s, module ? module->name : NULL, addr);
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
	struct module *module = id ? find_module(s, id) : NULL;
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
	if (!wp_elf_file_svma(&object->main, avma - module->start_avma +
			      module->off, &svma))
		svma = avma - module->start_avma + module->off;
	return resolve_in(s, module, object, svma, ret);
}

struct wp_symbol_has wp_symbols_has(const struct wp_symbols *s, uint32_t id)
{
	const struct module *module = find_module(s, id);

	return module ? module->has : (struct wp_symbol_has){ 0 };
}
