/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - see columns.h. */
#include "columns.h"

#include <stddef.h>
#include <string.h>

#define VALUE(type, unit, field)                                               \
	{                                                                      \
		type, unit, offsetof(struct wp_profile_sample, field)          \
	}

struct wp_columns wp_columns_of(const struct wp_profile_meta *meta,
				enum wp_profile_kind kind)
{
	static const struct wp_column wall[] = {
		VALUE("samples", "count", count),
		VALUE("wall", "nanoseconds", wall_ns),
		VALUE("cpu_samples", "count", cpu_count),
		VALUE("cpu", "nanoseconds", cpu_ns),
	};
	static const struct wp_column threads[] = {
		VALUE("thread", "count", count),
	};
	/* As Go's block and mutex profiles. */
	static const struct wp_column waits[] = {
		VALUE("contentions", "count", count),
		VALUE("delay", "nanoseconds", wall_ns),
	};
	static const struct wp_column thread_starts[] = {
		VALUE("threadcreate", "count", count),
	};

	static const struct wp_column wakes[] = {
		VALUE("wakes", "count", count),
		VALUE("delay", "nanoseconds", wall_ns),
	};
	/* As Go's goroutine profile. */
	static const struct wp_column goroutines[] = {
		VALUE("goroutine", "count", count),
	};

	/* As Go's heap profile; the last is of the period alone. */
	static const struct wp_column heap[] = {
		VALUE("alloc_objects", "count", count),
		VALUE("alloc_space", "bytes", wall_ns),
		VALUE("inuse_objects", "count", cpu_count),
		VALUE("inuse_space", "bytes", cpu_ns),
		VALUE("space", "bytes", cpu_ns),
	};

	switch (kind) {
	case WP_PROFILE_HEAP:
		return (struct wp_columns){ heap, 4,
					    meta->is_of_allocations ? 1 : 3,
					    4 };
	case WP_PROFILE_GOROUTINE:
		return (struct wp_columns){ goroutines, 1, 0, 0 };
	case WP_PROFILE_THREADS:
		return (struct wp_columns){ threads, 1, 0, 0 };
	case WP_PROFILE_BLOCK:
	case WP_PROFILE_MUTEX:
		return (struct wp_columns){ waits, 2, 1, 0 };
	case WP_PROFILE_WAKE:
		return (struct wp_columns){ wakes, 2, 1, 0 };
	case WP_PROFILE_THREADCREATE:
		return (struct wp_columns){ thread_starts, 1, 0, 0 };
	default:
		return (struct wp_columns){
			meta->has_wall ? wall : wall + 2,
			meta->has_wall && meta->has_cpu ? 4 : 2, 1, 1
		};
	}
}

/* The column that is shown by default; a file that was read says itself what it is. */
static struct wp_column main_column(const struct wp_profile *profile,
				    enum wp_profile_kind kind)
{
	struct wp_columns c = wp_columns_of(&profile->meta, kind);
	struct wp_column column = c.v[c.main];

	if (profile->meta.value_type) {
		column.type = wp_profile_str(profile, profile->meta.value_type);
		column.unit = wp_profile_str(profile, profile->meta.value_unit);
	}
	return column;
}

const char *wp_columns_type(const struct wp_profile *profile,
			    enum wp_profile_kind kind)
{
	return main_column(profile, kind).type;
}

const char *wp_columns_unit(const struct wp_profile *profile,
			    enum wp_profile_kind kind)
{
	return main_column(profile, kind).unit;
}
#undef VALUE

bool wp_columns_are_of_time(const struct wp_profile *profile,
			    enum wp_profile_kind kind)
{
	return !strcmp(wp_columns_unit(profile, kind), "nanoseconds") ||
	       !strncmp(wp_columns_type(profile, kind), "alloc_",
			strlen("alloc_"));
}

bool wp_columns_is_idle(const struct wp_profile_thread *thread,
			enum wp_profile_kind kind)
{
	static const unsigned int of_doers = 1u << WP_PROFILE_MUTEX |
					     1u << WP_PROFILE_WAKE |
					     1u << WP_PROFILE_THREADCREATE |
					     1u << WP_PROFILE_HEAP;

	return thread->idle && !(of_doers >> kind & 1);
}

bool wp_columns_have_states(const struct wp_profile *profile,
			    enum wp_profile_kind kind)
{
	return !profile->meta.stateless && kind != WP_PROFILE_HEAP &&
	       kind != WP_PROFILE_WAKE;
}
