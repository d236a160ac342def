/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_types.c - what the values of a pprof file are: see pprof_read.h. */
#include <string.h>

#include "pprof_fields.h"
#include "pprof_read.h"

/* Is UNIT the word NAME, or its plural? */
static bool is_unit(const char *unit, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(unit, name, n) && (!unit[n] || !strcmp(unit + n, "s"));
}

/* Nanoseconds in a UNIT of time, by the names that go tool pprof knows
 * (internal/measurement/measurement.go); 0: it is none. */
static uint64_t scale_of(const char *unit)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "nanosecond", 1 },
		{ "ns", 1 },
		{ "microsecond", 1000 },
		{ "us", 1000 },
		{ "millisecond", 1000000 },
		{ "ms", 1000000 },
		{ "second", 1000000000 },
		{ "sec", 1000000000 },
		{ "s", 1000000000 },
		{ "minute", UINT64_C(60000000000) },
		{ "min", UINT64_C(60000000000) },
		{ "hour", UINT64_C(3600000000000) },
		{ "hr", UINT64_C(3600000000000) },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (is_unit(unit, units[i].name))
			return units[i].ns;
	return 0;
}

struct wp_pprof_type wp_pprof_read_type(struct wp_pprof *p, struct wp_reader r)
{
	struct wp_pprof_type type = { 0 };
	struct wp_pprof_field f;

	while (!p->rc && wp_pprof_next(&r, &f)) {
		if (f.number == VALUE_TYPE_TYPE)
			type.type = wp_pprof_str(p, f.value);
		else if (f.number == VALUE_TYPE_UNIT)
			type.unit = wp_pprof_str(p, f.value);
	}
	if (r.failed)
		wp_pprof_bad(p, "its sample types");
	return type;
}

int64_t wp_pprof_period(struct wp_pprof *p, int64_t period,
			const struct wp_pprof_type *type)
{
	const char *name = wp_pprof_text(p, type->type);
	uint64_t scale = scale_of(wp_pprof_text(p, type->unit));

	if ((strcmp(name, "wall") && strcmp(name, "cpu")) || !scale ||
	    period < 0 || (uint64_t)period > INT64_MAX / scale)
		return 0;
	return (int64_t)((uint64_t)period * scale);
}

enum wp_profile_kind wp_pprof_kind(const char *name)
{
	static const enum wp_profile_kind kinds[] = { WP_PROFILE_BLOCK,
						      WP_PROFILE_MUTEX,
						      WP_PROFILE_WAKE };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(name, wp_profile_kind_name(kinds[i])))
			return kinds[i];
	return WP_PROFILE_WALL;
}

void wp_pprof_choose_columns(struct wp_pprof *p, unsigned int shown)
{
	static const struct {
		const char *type;
		enum wp_pprof_column column;
	} own[] = {
		{ "samples", WP_PPROF_COUNT },
		/* pprof-nodejs. */
		{ "sample", WP_PPROF_COUNT },
		{ "wall", WP_PPROF_WALL },
		{ "cpu_samples", WP_PPROF_CPU_COUNT },
		{ "cpu", WP_PPROF_CPU },
		{ "contentions", WP_PPROF_COUNT },
		{ "wakes", WP_PPROF_COUNT },
		{ "delay", WP_PPROF_WALL },
	};
	struct wp_profile_meta *meta = &p->profile->meta;
	const char *type = wp_pprof_text(p, p->types[shown].type);
	const char *unit = wp_pprof_text(p, p->types[shown].unit);
	bool is_of_delays = p->kind != WP_PROFILE_WALL && p->ntypes == 2 &&
			    !strcmp(type, "delay");
	bool is_own = p->ntypes >= 2 && scale_of(unit) &&
		      (is_of_delays || !strcmp(type, "wall") ||
		       (p->ntypes == 2 && !strcmp(type, "cpu") &&
			!strcmp(wp_pprof_text(p, p->types[0].type),
				"cpu_samples")));

	for (unsigned int i = 0; i < p->ntypes; i++) {
		uint64_t scale = scale_of(wp_pprof_text(p, p->types[i].unit));

		p->types[i].scale = scale ? scale : 1;
		for (size_t k = 0; is_own && k < sizeof(own) / sizeof(*own);
		     k++)
			if (!strcmp(wp_pprof_text(p, p->types[i].type),
				    own[k].type))
				p->types[i].column = own[k].column;
		meta->has_cpu |= p->types[i].column == WP_PPROF_CPU;
	}
	if (!is_of_delays)
		p->kind = WP_PROFILE_WALL;
	meta->has_wall = !is_own || strcmp(type, "cpu");
	p->state = strstr(type, "cpu") || !strcmp(type, "samples") ?
			   WP_STATE_RUNNING :
			   WP_STATE_WAITING;
	if (is_own)
		return;
	p->types[shown].column = WP_PPROF_WALL;
	meta->value_type = p->types[shown].type;
	meta->value_unit = scale_of(unit) ?
				   wp_intern_add_str(&p->profile->strings,
						     "nanoseconds") :
				   p->types[shown].unit;
	for (unsigned int i = 0; i < p->ntypes; i++)
		if (i != shown &&
		    !strcmp(wp_pprof_text(p, p->types[i].unit), "count"))
			p->types[i].column = WP_PPROF_COUNT;
}
