/* SPDX-License-Identifier: Apache-2.0 */
/* heap_sites.c - see heap_sites.h. */
#include "heap_sites.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler_loop.h"
#include "target.h"
#include "wallprof/base_name.h"
#include "wallprof/lower_bound.h"
#include "wallprof/vec.h"

/* Probes that are looked at for what the target has written there, of all mappings. */
enum { PLACES_MAX = 4096 };

static size_t range_index(const struct wp_heap_sites *sites, uint64_t avma)
{
	return WP_LOWER_BOUND(sites->len, i, sites->v[i].end_avma <= avma);
}

static int add_range(struct wp_heap_sites *sites,
		     const struct wp_heap_range *range)
{
	size_t i = range_index(sites, range->start_avma);

	if (WP_VEC_ROOM(sites->v, sites->len, sites->cap, 1))
		return -ENOMEM;
	memmove(&sites->v[i + 1], &sites->v[i],
		(sites->len++ - i) * sizeof(*sites->v));
	sites->v[i] = *range;
	return 0;
}

static const char *path_of(const struct wp_target *target,
			   const struct wp_unwind_module *module)
{
	const struct wp_profile *profile = target->profile;

	return wp_profile_str(profile, profile->mappings[module->mapping].path);
}

static void add_name(char names[256], const char *path)
{
	size_t n = strlen(names);

	snprintf(names + n, 256 - n, "%s%s", n ? ", " : "", wp_base_name(path));
}

/* Enter the file of MODULE, which has the N sites PROBED. */
static void add_names(struct wp_heap_sites *sites,
		      const struct wp_target *target,
		      const struct wp_unwind_module *module,
		      const struct wp_heap_site *probed, size_t n)
{
	const char *path = path_of(target, module);
	bool may_throw = false;

	for (size_t i = 0; i < n; i++)
		may_throw |= wp_heap_call_may_throw(probed[i].call);
	add_name(sites->files, path);
	if (may_throw)
		add_name(sites->throwing, path);
}

/* Is IMAGE the program's own file, all of whose symbols are searched? */
static bool is_program(const struct wp_target *target,
		       const struct wp_elf_image *image)
{
	const struct wp_unwind_modules *view = &target->space.view;

	/* A program is mapped below its libraries. */
	return view->len && view->v[0].image == image;
}

static bool was_searched(const struct wp_heap_sites *sites, uint32_t id)
{
	return id < sites->nsearched && sites->searched[id].is_there;
}

/* Enter that mapping ID was searched, for the first time or once more.  0 or -ENOMEM. */
static int add_searched(struct wp_heap_sites *sites, uint32_t id,
			bool is_allocator)
{
	size_t n = sites->nsearched;

	if (id >= n) {
		if (WP_VEC_ROOM(sites->searched, n, sites->cap_searched,
				id + 1 - n))
			return -ENOMEM;
		memset(sites->searched + n, 0,
		       (id + 1 - n) * sizeof(*sites->searched));
		sites->nsearched = id + 1;
	}
	sites->searched[id] = (struct wp_heap_mapping){ is_allocator, true };
	return 0;
}

/* Have *RET, borrowed until the next call, be what MODULE's file has, which is searched
 * once.  0 or -ENOMEM. */
static int find_functions(struct wp_heap_sites *sites,
			  const struct wp_target *target,
			  const struct wp_unwind_module *module,
			  struct wp_heap_functions **ret)
{
	struct wp_elf_image *image = module->image;
	bool all = is_program(target, image), has_probes = false;
	struct wp_heap_functions *f;
	int rc;

	for (size_t i = 0; i < sites->nfunctions; i++) {
		*ret = &sites->functions[i];
		if ((*ret)->image != image)
			continue;
		if ((*ret)->is_program == all)
			return 0;
		has_probes |= (*ret)->has_probes;
	}
	if (WP_VEC_ROOM(sites->functions, sites->nfunctions,
			sites->cap_functions, 1))
		return -ENOMEM;
	f = &sites->functions[sites->nfunctions];
	*f = (struct wp_heap_functions){ image, all, has_probes, { 0 } };
	rc = wp_allocators_find(&f->found, image, all);
	if (rc) {
		wp_allocators_clear(&f->found);
		return rc;
	}
	sites->nfunctions++;
	sites->ncut += f->found.is_cut;
	sites->nslow += f->found.nslow;
	if (f->found.has_slow_usual && !sites->slow_file[0])
		add_name(sites->slow_file, path_of(target, module));
	*ret = f;
	return 0;
}

/* Forget the functions in mappings that TARGET has no more, or whose search failed.  0 or
 * -ENOMEM. */
static int forget_unmapped(struct wp_heap_sites *sites,
			   const struct wp_target *target)
{
	enum { IN_VIEW = 1, SEARCHED };
	const struct wp_unwind_modules *view = &target->space.view;
	uint8_t *what = calloc(target->profile->nmappings + 1, sizeof(*what));
	size_t n = 0;

	if (!what)
		return -ENOMEM;
	for (size_t i = 0; i < view->len; i++)
		what[view->v[i].mapping] = IN_VIEW;
	for (size_t i = 0; i < sites->nsearched; i++) {
		struct wp_heap_mapping *m = &sites->searched[i];

		m->is_there = m->is_there && what[i];
		if (m->is_there)
			what[i] = SEARCHED;
	}
	for (size_t i = 0; i < sites->len; i++)
		if (what[sites->v[i].mapping] == SEARCHED)
			sites->v[n++] = sites->v[i];
	sites->len = n;
	free(what);
	return 0;
}

/* Is the file of PLACE still where that is? */
static bool is_mapped(const struct wp_heap_place *place,
		      const struct wp_target *target)
{
	const struct wp_unwind_module *module = wp_unwind_find_module(
		&target->space.view, place->avma);

	return module && module->image == place->image;
}

/* Forget the probes whose file is not where they were. */
static void forget_places(struct wp_heap_sites *sites,
			  const struct wp_target *target)
{
	size_t n = 0;

	for (size_t i = 0; i < sites->nplaces; i++)
		if (is_mapped(&sites->places[i], target))
			sites->places[n++] = sites->places[i];
	sites->nplaces = n;
}

static bool has_place(const struct wp_heap_sites *sites, uint64_t avma,
		      const struct wp_elf_image *image)
{
	for (size_t i = 0; i < sites->nplaces; i++)
		if (sites->places[i].avma == avma &&
		    sites->places[i].image == image)
			return true;
	return false;
}

/* Is the function in RANGE to be probed? */
static bool is_wanted(const struct wp_target *target,
		      const struct wp_heap_range *range)
{
	bool large = target->loop->options.heap_large;

	if (!range->is_probed)
		return false;
	/* The allocator's are counted in its calls. */
	if (range->call == WP_HEAP_SBRK)
		return large;
	return !large || wp_heap_call_is_map(range->call);
}

/* Note the probes at SITES[0..N) of its file that are in MODULE. */
static int note_places(struct wp_heap_sites *sites,
		       const struct wp_target *target,
		       const struct wp_unwind_module *module,
		       const struct wp_heap_site *probed, size_t n)
{
	const uint64_t off = target->profile->mappings[module->mapping].off;

	if (WP_VEC_ROOM(sites->places, sites->nplaces, sites->cap_places, n))
		return -ENOMEM;
	for (size_t i = 0; i < n && sites->nplaces < PLACES_MAX; i++) {
		struct wp_heap_place place = {
			.avma = module->start_avma + probed[i].off - off,
			.image = module->image,
		};
		const uint8_t *own;

		/* Where its mapping is another, the program may have written. */
		if (place.avma < module->start_avma ||
		    place.avma >= module->end_avma ||
		    has_place(sites, place.avma, place.image))
			continue;
		own = wp_elf_image_at(module->image, probed[i].off,
				      sizeof(place.own));
		if (own)
			memcpy(place.own, own, sizeof(place.own));
		if (wp_process_read(target->process, place.avma, place.code,
				    sizeof(place.code)) == sizeof(place.code))
			sites->places[sites->nplaces++] = place;
	}
	return 0;
}

/* Is what the kernel has put at PLACE there still?  CODE is. */
static bool is_in_place(const struct wp_heap_place *place, const uint8_t *code)
{
#if defined(__x86_64__)
	/* One byte; Linux 6.18 makes a call of a probe on a nop that is hit. */
	return code[0] == place->code[0] || code[0] == 0xe8;
#else
	return !memcmp(code, place->code, sizeof(place->code));
#endif
}

size_t wp_heap_sites_count_overwritten(const struct wp_heap_sites *sites,
				       const struct wp_target *target)
{
	size_t n = 0;

	for (size_t i = 0; i < sites->nplaces; i++) {
		const struct wp_heap_place *place = &sites->places[i];
		uint8_t code[sizeof(place->code)];

		n += is_mapped(place, target) &&
		     wp_process_read(target->process, place->avma, code,
				     sizeof(code)) == sizeof(code) &&
		     !is_in_place(place, code);
	}
	return n;
}

/* Another file may be mapped by now where MODULE was, and what is probed are offsets of
 * the file that was searched. */
static void path_of_file(const struct wp_target *target,
			 const struct wp_unwind_module *module, char *ret,
			 size_t size)
{
	if (module->image->fd >= 0)
		snprintf(ret, size, "/proc/self/fd/%d", module->image->fd);
	else
		snprintf(ret, size, "/proc/self/fd/%d/map_files/%lx-%lx",
			 target->process->proc_fd,
			 (unsigned long)module->start_avma,
			 (unsigned long)module->end_avma);
}

/* Enter the functions of FILE, which MODULE is of, and have those probed that can be. */
static int probe_found(struct wp_heap_sites *sites, struct wp_target *target,
		       struct wp_heap_probe *probe,
		       const struct wp_unwind_module *module,
		       struct wp_heap_functions *file, struct wp_err *err)
{
	const struct wp_allocators *found = &file->found;
	struct wp_heap_site probed[WP_HEAP_SITES_MAX];
	size_t n = 0;
	char path[80];
	int rc = 0;

	for (size_t i = 0; i < found->len && !rc; i++) {
		const struct wp_allocator *f = &found->v[i];
		struct wp_heap_range range = {
			.start_avma = f->svma + module->bias,
			.end_avma = f->svma + module->bias + f->size,
			.is_probed = f->is_probed,
			.call = f->call,
			.mapping = module->mapping,
		};

		if (!f->is_cheap)
			range.is_probed &= target->loop->options.heap_anyway;
		if (is_wanted(target, &range) && n < WP_HEAP_SITES_MAX)
			probed[n++] = (struct wp_heap_site){ f->probe_off,
							     f->call };
		rc = add_range(sites, &range);
	}
	if (rc || !n)
		return rc;
	/* They are in all mappings of it. */
	if (file->has_probes)
		return note_places(sites, target, module, probed, n);
	path_of_file(target, module, path, sizeof(path));
	rc = wp_heap_probe_attach(probe, path, probed, n, err);
	if (rc == -ENOENT)
		sites->nvanished++;
	if (rc)
		return rc;
	file->has_probes = true;
	rc = note_places(sites, target, module, probed, n);
	for (size_t i = 0; i < n; i++)
		sites->nprobed += target->loop->options.heap_large ||
				  !wp_heap_call_is_map(probed[i].call);
	add_names(sites, target, module, probed, n);
	return rc;
}

/* Is MODULE where a probed call returns to (kernel/events/uprobes.c, xol_add_vma)?  A
 * call from one, which has that as its return address, is seen to be one. */
static bool is_trampoline(const struct wp_target *target,
			  const struct wp_unwind_module *module)
{
	return !strcmp(path_of(target, module), "[uprobes]");
}

/* Search MODULE, number I of TARGET's. */
static int search_module(struct wp_heap_sites *sites, struct wp_target *target,
			 struct wp_heap_probe *probe, size_t i,
			 struct wp_err *err)
{
	struct wp_unwind_modules *view = &target->space.view;
	struct wp_unwind_module *module = &target->space.current[i];
	struct wp_heap_functions *file = NULL;
	int rc;

	if (was_searched(sites, module->mapping))
		return 0;
	if (module->is_unopened)
		view->open(view->ctx, i);
	/* Return addresses are looked up less one, and it begins with such a one.  In a
	 * session each call has one probe: who returns there is probed by others too. */
	if (is_trampoline(target, module))
		rc = add_range(sites,
			       &(struct wp_heap_range){
				       module->start_avma - 1, module->end_avma,
				       wp_heap_probe_tier(probe) !=
					       WP_HEAP_TIER_SESSION,
				       WP_HEAP_TRIAL, module->mapping });
	else if (!module->image)
		return 0;
	else
		rc = find_functions(sites, target, module, &file);
	if (!rc && file && file->found.len)
		rc = probe_found(sites, target, probe, module, file, err);
	if (rc)
		return rc;
	return add_searched(sites, module->mapping,
			    file && !file->is_program &&
				    wp_allocators_have_malloc(&file->found));
}

int wp_heap_sites_search(struct wp_heap_sites *sites, struct wp_target *target,
			 struct wp_heap_probe *probe, struct wp_err *err)
{
	const struct wp_unwind_modules *view = &target->space.view;
	int rc, vanished = 0;

	if (sites->generation == view->generation)
		return 0;
	sites->tried = view->generation;
	rc = forget_unmapped(sites, target);
	for (size_t i = 0; i < view->len && !rc; i++) {
		rc = search_module(sites, target, probe, i, err);
		/* Those behind it are there. */
		if (rc == -ENOENT) {
			vanished = rc;
			rc = 0;
		}
	}
	if (rc)
		return rc;
	forget_places(sites, target);
	sites->generation = view->generation;
	return vanished;
}

/* The function that has AVMA; NULL: none of an allocator. */
static const struct wp_heap_range *find_range(const struct wp_heap_sites *sites,
					      uint64_t avma)
{
	size_t i = range_index(sites, avma);

	return i < sites->len && sites->v[i].start_avma <= avma ? &sites->v[i] :
								  NULL;
}

static bool is_allocators(const struct wp_heap_range *range)
{
	return range->call != WP_HEAP_THREAD &&
	       !wp_heap_call_is_map(range->call);
}

static bool is_in_library(const struct wp_heap_sites *sites, uint32_t mapping)
{
	return mapping < sites->nsearched &&
	       sites->searched[mapping].is_allocator;
}

bool wp_heap_sites_strip(const struct wp_heap_sites *sites,
			 struct wp_stack *stack)
{
	uint32_t n = 0;

	while (n < stack->depth) {
		const struct wp_heap_range *range = find_range(
			sites, wp_frame_lookup_avma(&stack->frames[n]));

		if (!range || !is_allocators(range))
			break;
		if (n && range->is_probed)
			return false;
		n++;
	}
	/* A stack that ends there says why by its last frame. */
	if (n == stack->depth)
		return true;
	stack->frames += n;
	stack->cfa_avma += n;
	stack->depth -= n;
	return true;
}

uint32_t wp_heap_sites_inner(const struct wp_heap_sites *sites,
			     const struct wp_stack *stack)
{
	/* Frames that an allocator has above its callers'. */
	enum { FRAMES_MAX = 64 };
	uint32_t inner = 0;

	bool in_library = true;

	for (uint32_t n = 0; n < stack->depth && n < FRAMES_MAX; n++) {
		const struct wp_heap_range *range = find_range(
			sites, wp_frame_lookup_avma(&stack->frames[n]));

		if (range && range->call == WP_HEAP_THREAD)
			return 0;
		if (range && !is_allocators(range))
			range = NULL;
		/* The first is the system call's, in the C library.  That is
		 * further down too, where it calls the program. */
		in_library &= !n ||
			      is_in_library(sites, stack->frames[n].mapping);
		if (range || (n && in_library))
			inner = n + 1;
	}
	return inner;
}

void wp_heap_sites_clear(struct wp_heap_sites *sites)
{
	free(sites->v);
	free(sites->searched);
	for (size_t i = 0; i < sites->nfunctions; i++)
		wp_allocators_clear(&sites->functions[i].found);
	free(sites->functions);
	free(sites->places);
	*sites = (struct wp_heap_sites){ 0 };
}
