/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_writer.h - a pprof file that is being written.
 *
 * Layer: output.  Private to src/output/.
 */
#ifndef WP_PPROF_WRITER_H
#define WP_PPROF_WRITER_H

#include "gzip.h"
#include "ids.h"
#include "proto.h"
#include "wallprof/profile.h"

enum { WP_PPROF_TEXTS = 64 };

struct wp_pprof_writer {
	const struct wp_profile *profile;
	enum wp_profile_kind kind;
	struct wp_gzip gz;
	struct wp_buf buf;
	/* The strings to write, valid UTF-8. */
	struct wp_intern strings;
	/* Per string of the profile its id in STRINGS + 1; 0: not used.
	 * Owned. */
	uint32_t *string_id;
	/* Of texts that were asked for last, by their addresses: each sample has the same
	 * keys. */
	struct {
		const char *text;
		uint32_t id;
	} text_ids[WP_PPROF_TEXTS];
	struct wp_buf scratch;
	struct wp_ids locations;
	struct wp_ids functions;
	/* The profile's, and after them the kernel's. */
	struct wp_ids mappings;
	/* Id 1 is a mapping made for a main binary without samples. */
	bool own_main;
	/* By sample: its number in the file, from 1; 0: not written.  Owned. */
	uint32_t *number;
	uint32_t nwritten;
};

/* The id in the file of the text in SCRATCH, which is emptied; of S, which stays as it
 * is until the file is written; of the profile's string ID.  Without memory BUF has the
 * error. */
uint32_t wp_pprof_scratch_id(struct wp_pprof_writer *w);
uint32_t wp_pprof_text_id(struct wp_pprof_writer *w, const char *s);
uint32_t wp_pprof_str_id(struct wp_pprof_writer *w, uint32_t id);

/* Write the labels of S. */
void wp_pprof_put_labels(struct wp_pprof_writer *w,
			 const struct wp_profile_sample *s);

/* After the samples: set LINE to a comment that tells how many threads or goroutines
 * entries stand for.  False: there is nothing to tell, or no memory (LINE has the error). */
bool wp_pprof_list_entries(struct wp_pprof_writer *w, struct wp_buf *line);

/* Are the samples what a Go program has noted of all its goroutines? */
bool wp_pprof_is_noted(const struct wp_pprof_writer *w);

#endif
