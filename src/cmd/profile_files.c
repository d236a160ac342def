/* SPDX-License-Identifier: Apache-2.0 */
/* profile_files.c - see profile_files.h. */
#include "profile_files.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "wallprof/base_name.h"

/* Where the ending of PATH begins that says what is in the file. */
static size_t ending_of(const char *path)
{
	static const char *const endings[] = { ".pb.gz", ".speedscope.json",
					       ".firefox.json" };
	const char *name = wp_base_name(path);
	const char *dot = strrchr(name, '.');
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t n = strlen(endings[i]);

		if (len > n && !strcmp(path + len - n, endings[i]))
			return len - n;
	}
	return dot && dot > name ? (size_t)(dot - path) : len;
}

static int name_file(char out[PATH_MAX], const char *path,
		     enum wp_profile_kind kind, bool plain)
{
	int at = (int)ending_of(path), n;

	if (plain)
		n = snprintf(out, PATH_MAX, "%s", path);
	else
		n = snprintf(out, PATH_MAX, "%.*s.%s%s", at, path,
			     wp_profile_kind_name(kind), path + at);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int wp_profile_files_open(struct wp_profile_files *set, unsigned int kinds,
			  const char *path, struct wp_err *err)
{
	bool single = !(kinds & (kinds - 1));
	bool is_stream = wp_output_file_is_stream(path);

	set->n = 0;
	for (int kind = 0; kind < WP_NPROFILE_KINDS; kind++) {
		bool plain = single || is_stream || kind == WP_PROFILE_WALL;
		char *name;
		int rc;

		if (!(kinds & 1u << kind))
			continue;
		assert(set->n < WP_PROFILE_FILES_MAX);
		name = set->v[set->n].path;
		set->v[set->n].kind = (enum wp_profile_kind)kind;
		set->v[set->n].file = (struct wp_output_file)
			WP_OUTPUT_FILE_INIT;
		if (path &&
		    name_file(name, path, (enum wp_profile_kind)kind, plain))
			return wp_err_set(err, -ENAMETOOLONG, "name too long");
		/* A signal may end wallprof meanwhile: wp_profile_files_remove. */
		set->n++;
		rc = wp_output_file_open(&set->v[set->n - 1].file,
					 path ? name : NULL, err);
		if (rc)
			return rc;
	}
	return 0;
}

int wp_profile_files_write(struct wp_profile_files *set,
			   int (*write)(void *ctx, enum wp_profile_kind kind,
					FILE *out),
			   void *ctx, struct wp_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < set->n && !rc; i++)
		rc = wp_output_file_commit(
			&set->v[i].file,
			write(ctx, set->v[i].kind, set->v[i].file.stream), err);
	return rc;
}

void wp_profile_files_remove(const void *set)
{
	const struct wp_profile_files *files = set;

	for (size_t i = 0; i < files->n; i++)
		wp_output_file_remove(&files->v[i].file);
}

void wp_profile_files_discard(struct wp_profile_files *set)
{
	for (size_t i = 0; i < set->n; i++)
		wp_output_file_discard(&set->v[i].file);
}
