/* SPDX-License-Identifier: Apache-2.0 */
/* allocators.c - see wallprof/allocators.h. */
#include "wallprof/allocators.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wallprof/probe_place.h"
#include "wallprof/vec.h"

enum {
	/* Bytes of a function that are decoded. */
	CODE_MAX = 128,
	/* Bytes of a realloc in which a jump is sought. */
	REALLOC_MAX = 4096,
	/* Of one file; jemalloc has some 30. */
	FUNCTIONS_MAX = 64,
	/* Relocations of one file that are read: each jump may need all of them. */
	LINKS_MAX = 4 << 20,
};

struct known {
	const char *name;
	enum wp_heap_call call;
};

/* Names after the prefix. */
static const struct known functions[] = {
	{ "malloc", WP_HEAP_MALLOC },
	{ "calloc", WP_HEAP_CALLOC },
	{ "realloc", WP_HEAP_REALLOC },
	{ "memalign", WP_HEAP_MEMALIGN },
	{ "aligned_alloc", WP_HEAP_MEMALIGN },
	{ "posix_memalign", WP_HEAP_POSIX_MEMALIGN },
	{ "valloc", WP_HEAP_MALLOC },
	{ "pvalloc", WP_HEAP_MALLOC },
	{ "free", WP_HEAP_FREE },
	{ "cfree", WP_HEAP_FREE },
	/* C23. */
	{ "free_sized", WP_HEAP_FREE },
	{ "free_aligned_sized", WP_HEAP_FREE },
};

/* By which a program and its allocators have memory of the kernel. */
static const struct known kernel[] = {
	{ "mmap", WP_HEAP_MMAP },
	{ "mmap64", WP_HEAP_MMAP },
	{ "mremap", WP_HEAP_MREMAP },
	{ "mprotect", WP_HEAP_MPROTECT },
	{ "sbrk", WP_HEAP_SBRK },
	{ "munmap", WP_HEAP_MUNMAP },
	{ "pthread_create", WP_HEAP_THREAD },
};

/* What malloc jumps to, in musl and jemalloc: not probed, but of the allocator. */
static const struct known inner[] = {
	{ "__libc_malloc_impl", WP_HEAP_TRIAL },
	{ "je_malloc_default", WP_HEAP_TRIAL },
	{ "_rjem_je_malloc_default", WP_HEAP_TRIAL },
};

/* jemalloc's calls of its own, after its prefix or none. */
static const struct known jemalloc[] = {
	{ "mallocx", WP_HEAP_MALLOC },
	{ "rallocx", WP_HEAP_REALLOC },
	{ "dallocx", WP_HEAP_FREE },
	{ "sdallocx", WP_HEAP_FREE },
};

/* mimalloc's, after its prefix.  An alignment follows the size.  (Its calls for a heap
 * of its own are not among them: these call them.) */
static const struct known mimalloc[] = {
	{ "malloc_small", WP_HEAP_MALLOC },
	{ "zalloc", WP_HEAP_MALLOC },
	{ "zalloc_small", WP_HEAP_MALLOC },
	{ "malloc_aligned", WP_HEAP_MALLOC },
	{ "malloc_aligned_at", WP_HEAP_MALLOC },
	{ "zalloc_aligned", WP_HEAP_MALLOC },
	{ "zalloc_aligned_at", WP_HEAP_MALLOC },
	{ "new", WP_HEAP_NEW },
	{ "new_nothrow", WP_HEAP_MALLOC },
	{ "new_aligned", WP_HEAP_NEW },
	{ "new_aligned_nothrow", WP_HEAP_MALLOC },
	{ "mallocn", WP_HEAP_CALLOC },
	{ "new_n", WP_HEAP_NEW_N },
	{ "calloc_aligned", WP_HEAP_CALLOC },
	{ "reallocf", WP_HEAP_REALLOC },
	{ "rezalloc", WP_HEAP_REALLOC },
	{ "realloc_aligned", WP_HEAP_REALLOC },
	{ "rezalloc_aligned", WP_HEAP_REALLOC },
	{ "new_realloc", WP_HEAP_NEW_REALLOC },
	{ "free_size", WP_HEAP_FREE },
	{ "free_aligned", WP_HEAP_FREE },
	{ "free_size_aligned", WP_HEAP_FREE },
};

/* By prefix: glibc's, musl's, jemalloc's (in Rust programs the last), tcmalloc's and
 * mimalloc's. */
static const char *const prefixes[] = { "",    "__libc_", "tc_",
					"mi_", "je_",	  "_rjem_" };
enum { JEMALLOC_PREFIX = 4, MIMALLOC_PREFIX = 3 };

static bool find_known(const struct known *v, size_t n, const char *name,
		       enum wp_heap_call *ret)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i].name, name)) {
			*ret = v[i].call;
			return true;
		}
	return false;
}

/* Is NAME BEGIN, one of TYPES[0..N), and then END or nothing? */
static bool has_types(const char *name, const char *begin,
		      const char *const *types, size_t n, const char *end)
{
	size_t prefix = strlen(begin);

	if (strncmp(name, begin, prefix) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(types[i]);
		const char *rest = name + prefix + len;

		if (!strncmp(name + prefix, types[i], len) &&
		    (!*rest || !strcmp(rest, end)))
			return true;
	}
	return false;
}

/* Itanium C++ ABI, 5.1.5.2: operator new and new[] (nw, na), delete and delete[].  With
 * other arguments they are the program's own, of placement: what those give may be of
 * an arena. */
static bool find_operator(const char *name, enum wp_heap_call *ret)
{
	static const char *const new_types[] = {
		"", "RKSt9nothrow_t", "St11align_val_t",
		"St11align_val_tRKSt9nothrow_t"
	};
	static const char *const delete_types[] = {
		"",  "RKSt9nothrow_t",	 "St11align_val_t",
		"m", "mSt11align_val_t", "St11align_val_tRKSt9nothrow_t"
	};
	const size_t nnew = sizeof(new_types) / sizeof(*new_types);
	const size_t ndelete = sizeof(delete_types) / sizeof(*delete_types);
	/* tcmalloc's, which allocate as well. */
	const char *hint = "12__hot_cold_t";

	if (has_types(name, "_Znwm", new_types, nnew, hint) ||
	    has_types(name, "_Znam", new_types, nnew, hint)) {
		/* operator new(size, alignment) has its arguments the other way
		 * round than memalign: the size is the first as well. */
		*ret = strstr(name, "nothrow") ? WP_HEAP_MALLOC : WP_HEAP_NEW;
		return true;
	}
	*ret = WP_HEAP_FREE;
	return has_types(name, "_ZdlPv", delete_types, ndelete, hint) ||
	       has_types(name, "_ZdaPv", delete_types, ndelete, hint);
}

bool wp_allocator_of_name(const char *name, enum wp_heap_call *ret_call,
			  bool *ret_is_operator)
{
	*ret_is_operator = find_operator(name, ret_call);
	if (*ret_is_operator)
		return true;
	if (find_known(kernel, sizeof(kernel) / sizeof(*kernel), name,
		       ret_call) ||
	    find_known(inner, sizeof(inner) / sizeof(*inner), name, ret_call))
		return true;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], n) != 0)
			continue;
		if (find_known(functions,
			       sizeof(functions) / sizeof(*functions), name + n,
			       ret_call))
			return true;
		if (i == MIMALLOC_PREFIX ?
			    find_known(mimalloc,
				       sizeof(mimalloc) / sizeof(*mimalloc),
				       name + n, ret_call) :
			    (!i || i >= JEMALLOC_PREFIX) &&
				    find_known(jemalloc,
					       sizeof(jemalloc) /
						       sizeof(*jemalloc),
					       name + n, ret_call))
			return true;
	}
	return false;
}

/* A search in one file. */
struct search {
	struct wp_allocators *ret;
	struct wp_elf_image *image;
	/* Of LINKS_MAX. */
	uint64_t links_left;
	bool has_malloc;
	int rc;
};

static bool is_usual(const char *name)
{
	return !strcmp(name, "malloc") || !strcmp(name, "calloc") ||
	       !strcmp(name, "realloc") || !strcmp(name, "free");
}

static bool can_be_probed(enum wp_heap_call call)
{
	return call != WP_HEAP_THREAD && call != WP_HEAP_TRIAL;
}

static void add_function(void *ctx, const char *name, uint64_t svma,
			 uint64_t size)
{
	struct search *s = ctx;
	struct wp_allocators *ret = s->ret;
	enum wp_heap_call call;
	bool is_operator;

	if (s->rc || !wp_allocator_of_name(name, &call, &is_operator))
		return;
	for (size_t i = 0; i < ret->len; i++)
		if (ret->v[i].svma == svma) {
			/* By its other name it may. */
			if (wp_heap_call_may_throw(call))
				ret->v[i].call = call;
			ret->v[i].is_usual |= is_usual(name);
			return;
		}
	if (ret->len == FUNCTIONS_MAX)
		return;
	if (WP_VEC_ROOM(ret->v, ret->len, ret->cap, 1)) {
		s->rc = -ENOMEM;
		return;
	}
	s->has_malloc |= !is_operator && call == WP_HEAP_MALLOC;
	ret->v[ret->len++] = (struct wp_allocator){
		.svma = svma,
		.size = size,
		.call = call,
		.is_usual = is_usual(name),
		.is_probed = !is_operator && can_be_probed(call),
	};
}

/* Bits of the arguments that CALL's probe reads. */
static unsigned int args_of(enum wp_heap_call call)
{
	switch (call) {
	case WP_HEAP_CALLOC:
	case WP_HEAP_REALLOC:
	case WP_HEAP_REGROW:
	case WP_HEAP_NEW_N:
	case WP_HEAP_NEW_REALLOC:
		return 3;
	case WP_HEAP_MEMALIGN:
		return 2;
	case WP_HEAP_POSIX_MEMALIGN:
		return 5;
	case WP_HEAP_MMAP:
	case WP_HEAP_MREMAP:
		return 15;
	case WP_HEAP_MPROTECT:
		return 7;
	case WP_HEAP_MUNMAP:
		return 3;
	default:
		return 1;
	}
}

/* Is the code at SVMA a jump to a function of a name that is known, as the dynamic
 * linker finds it (a PLT's entry)? */
static bool is_link_to_known(struct search *s, uint64_t svma,
			     enum wp_heap_call *ret_call)
{
	enum { ENTRY = 16 };
	uint64_t off;
	const uint8_t *code = wp_elf_image_offset(s->image, svma, &off) ?
				      wp_elf_image_at(s->image, off, ENTRY) :
				      NULL;
	bool is_operator;
	const char *name;
	int32_t distance;
	unsigned int at = 0;

	if (!code)
		return false;
	/* endbr64; bnd. */
	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		at = 4;
	at += code[at] == 0xf2;
	/* jmp *distance(%rip) */
	if (code[at] != 0xff || code[at + 1] != 0x25)
		return false;
	memcpy(&distance, code + at + 2, sizeof(distance));
	name = wp_elf_image_linked_name(
		s->image, svma + at + 6 + (uint64_t)(int64_t)distance,
		&s->links_left);
	return name && wp_allocator_of_name(name, ret_call, &is_operator);
}

#ifdef __x86_64__
enum { JUMP_LEN = 5, JUMP_STEP = 1 };
#else
enum { JUMP_LEN = 4, JUMP_STEP = 4 };
#endif

/* Does CODE begin with a jump of a distance (jmp, aarch64's b)?  How far from CODE on. */
static bool is_jump(const uint8_t *code, int64_t *ret_distance)
{
	uint32_t word;

#ifdef __x86_64__
	memcpy(&word, code + 1, sizeof(word));
	*ret_distance = (int64_t)(int32_t)word + JUMP_LEN;
	return code[0] == 0xe9;
#else
	memcpy(&word, code, sizeof(word));
	*ret_distance = (int32_t)(word << 6) >> 4;
	return word >> 26 == 5;
#endif
}

/* Is the instruction of F's CODE[0..LEN) at AT, which every call reaches, a jump to
 * another function of an allocator?  That is probed: an object would count twice. */
static bool goes_on_in(struct search *s, const struct wp_allocator *f,
		       const uint8_t *code, size_t len, int at)
{
	const struct wp_allocators *others = s->ret;
	enum wp_heap_call call;
	int64_t distance;
	uint64_t svma;

	if ((size_t)at + JUMP_LEN > len || !is_jump(code + at, &distance))
		return false;
	svma = f->svma + (uint64_t)at + (uint64_t)distance;
	for (size_t i = 0; i < others->len; i++)
		if (others->v[i].svma == svma && svma != f->svma &&
		    can_be_probed(others->v[i].call))
			return true;
	return is_link_to_known(s, svma, &call);
}

static bool allocates(enum wp_heap_call call)
{
	return call < WP_HEAP_FREE;
}

/* The call of the function that was found, or of a PLT, at SVMA; WP_HEAP_TRIAL: none. */
static enum wp_heap_call call_at(struct search *s, uint64_t svma)
{
	const struct wp_allocators *others = s->ret;
	enum wp_heap_call call = WP_HEAP_TRIAL;

	for (size_t i = 0; i < others->len; i++)
		if (others->v[i].svma == svma)
			return others->v[i].call;
	(void)is_link_to_known(s, svma, &call);
	return call;
}

/* Has F, which may throw, its memory of another function that is probed (operator new of
 * libstdc++, of malloc)?  That one calls it before it does anything else. */
static bool calls_another(struct search *s, const struct wp_allocator *f,
			  const uint8_t *code, size_t len)
{
	int32_t distance;
	size_t at;

	return wp_heap_call_may_throw(f->call) &&
	       wp_probe_first_call(code, len, &at, &distance) &&
	       allocates(
		       call_at(s, f->svma + at + (uint64_t)(int64_t)distance));
}

/* Does F, which allocates, end in another function that does and is called itself as
 * well?  Its frame is gone there, and an object would count twice.  A realloc goes on in
 * one for some objects only. */
static bool ends_in_another(struct search *s, const struct wp_allocator *f)
{
	size_t len = f->size < CODE_MAX ? (size_t)f->size : CODE_MAX, at = 0;
	const uint8_t *code;
	int32_t distance;
	uint64_t off;

	if ((f->call != WP_HEAP_MALLOC && f->call != WP_HEAP_MEMALIGN &&
	     f->call != WP_HEAP_NEW) ||
	    !wp_elf_image_offset(s->image, f->svma, &off))
		return false;
	code = wp_elf_image_at(s->image, off, len);
	while (code && wp_probe_next_jump(code, len, &at, &distance)) {
		uint64_t svma = f->svma + at + (uint64_t)(int64_t)distance;
		enum wp_heap_call call = svma == f->svma ? WP_HEAP_TRIAL :
							   call_at(s, svma);

		if (call == WP_HEAP_MALLOC || call == WP_HEAP_MEMALIGN ||
		    call == WP_HEAP_NEW)
			return true;
	}
	return false;
}

/* Is there a jump to malloc in F, a realloc?  It is for a realloc of nothing.  Four bytes
 * that tell malloc's distance are no chance: F need not be decoded up to there. */
static bool jumps_to_malloc(struct search *s, const struct wp_allocator *f)
{
	size_t len = f->size < REALLOC_MAX ? (size_t)f->size : REALLOC_MAX;
	const uint8_t *code;
	uint64_t off;

	if (!wp_elf_image_offset(s->image, f->svma, &off))
		return false;
	code = wp_elf_image_at(s->image, off, len);
	for (size_t at = 0; code && at + JUMP_LEN <= len; at += JUMP_STEP) {
		int64_t distance;

		if (is_jump(code + at, &distance) &&
		    call_at(s, f->svma + at + (uint64_t)distance) ==
			    WP_HEAP_MALLOC)
			return true;
	}
	return false;
}

/* Find where F's probe stands; false: its code cannot be read. */
static bool place_probe(struct search *s, struct wp_allocator *f)
{
	size_t len = f->size < CODE_MAX ? (size_t)f->size : CODE_MAX;
	const uint8_t *code;
	uint64_t off;
	int at;

	if (!len || !wp_elf_image_offset(s->image, f->svma, &off))
		return false;
	code = wp_elf_image_at(s->image, off, len);
	if (!code)
		return false;
	at = wp_probe_place(code, len, args_of(f->call),
			    f->call != WP_HEAP_FREE &&
				    !wp_heap_call_may_throw(f->call));
	/* What the kernel does for those takes longer than any probe. */
	f->is_cheap = at >= 0 || wp_heap_call_is_map(f->call);
	f->is_probed = !goes_on_in(s, f, code, len, at > 0 ? at : 0) &&
		       !ends_in_another(s, f) &&
		       !calls_another(s, f, code, len);
	f->probe_off = off + (at > 0 ? (uint64_t)at : 0);
	if (f->call == WP_HEAP_REALLOC && jumps_to_malloc(s, f))
		f->call = WP_HEAP_REGROW;
	return true;
}

static int compare_svmas(const void *a, const void *b)
{
	const struct wp_allocator *x = a, *y = b;

	return (x->svma > y->svma) - (x->svma < y->svma);
}

int wp_allocators_find(struct wp_allocators *ret, struct wp_elf_image *image,
		       bool all)
{
	struct search s = { .ret = ret,
			    .image = image,
			    .links_left = LINKS_MAX };
	size_t n = 0;

	for (int i = 0; i < (all ? WP_ELF_SYMBOL_TABLES : 1); i++)
		ret->is_cut |= !wp_elf_image_each_function(
			image, &image->symbols[i], add_function, &s);
	for (size_t i = 0; !s.rc && i < ret->len; i++) {
		struct wp_allocator f = ret->v[i];

		f.is_probed |= s.has_malloc && can_be_probed(f.call);
		if (f.is_probed && !place_probe(&s, &f))
			continue;
		ret->v[n++] = f;
		if (f.is_probed && !f.is_cheap) {
			ret->nslow++;
			ret->has_slow_usual |= f.is_usual;
		}
	}
	ret->len = n;
	if (n)
		qsort(ret->v, n, sizeof(*ret->v), compare_svmas);
	return s.rc;
}

void wp_allocators_clear(struct wp_allocators *allocators)
{
	free(allocators->v);
	*allocators = (struct wp_allocators){ 0 };
}
