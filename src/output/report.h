/* SPDX-License-Identifier: Apache-2.0 */
/* report.h - the text report: what its parts share. */
#ifndef WP_REPORT_H
#define WP_REPORT_H

#include "columns.h"
#include "errors.h"
#include "escape.h"
#include "pairs.h"
#include "view.h"
#include "wallprof/output.h"

struct wp_report {
	const struct wp_profile *profile;
	enum wp_profile_kind kind;
	/* PROFILE's samples of KIND. */
	const struct wp_sample_set *set;
	const struct wp_report_options *options;
	/* The report so far. */
	struct wp_buf out;
	/* Scratch: a name, to be fitted into the columns that are left. */
	struct wp_buf name;
	/* From where on NAME is written in a colour, and the sequence that begins it
	 * (ECMA-48, SGR); NULL: in none. */
	size_t paint_from;
	const char *paint;
	/* Values are bytes, not times. */
	bool is_of_bytes;
	/* Samples have states. */
	bool has_states;
	/* Threads that are idle are not left out. */
	bool shows_idle;
	/* All threads' time. */
	uint64_t total_ns;
	int rc;
};

/* The time by which SAMPLE is ranked; 0: it is left out. */
static inline uint64_t wp_report_ns(const struct wp_report *r,
				    const struct wp_profile_sample *sample)
{
	/* Those that are idle are told in one line. */
	if (wp_columns_is_idle(&r->profile->threads[sample->key.thread],
			       r->kind) &&
	    !r->shows_idle && !r->options->full)
		return 0;
	return wp_profile_time(r->profile, r->kind, sample);
}

/* Bytes for a share or a time: "100.0 %", " 12.3 ms". */
enum {
	WP_CELL = 24,
};

/* Set CELL to NS as "  1.23 s", 8 columns. */
void wp_report_time(char cell[WP_CELL], uint64_t ns);
/* Set CELL to N bytes as "1.23 MiB", 8 columns. */
void wp_report_bytes(char cell[WP_CELL], uint64_t n);
/* Set CELL to VALUE, a time or bytes, as R's values are. */
void wp_report_value(const struct wp_report *r, char cell[WP_CELL],
		     uint64_t value);
/* Set CELL to NS of ALL as " 12.3 %", 7 columns. */
void wp_report_share(char cell[WP_CELL], uint64_t ns, uint64_t all);

/* Set CELL to the same, and if ERRORS are known to the standard error of its row ROW
 * in points: " 12.3 % ±0.4 ", 13 columns; of neither more digits than the error
 * leaves. */
void wp_report_share_error(char cell[WP_CELL], uint64_t ns, uint64_t all,
			   const struct wp_errors *errors, uint32_t row);

/* Begin a section: write an empty line and TITLE. */
void wp_report_title(struct wp_report *r, const char *title);
/* End the line, of which USED columns are used, with r->name, fitted. */
void wp_report_end(struct wp_report *r, size_t used);
/* Write what is added to r->name from now to the end of the line in the colour of
 * STATE and REASON (wp_report_reason), if there are colours. */
void wp_report_paint(struct wp_report *r, enum wp_state state, uint64_t reason);
/* Set r->name to VIEW's function and place. */
void wp_report_name(struct wp_report *r, const struct wp_view *view);

/* A wait reason as a number, with the system call if that is all that is known. */
uint64_t wp_report_reason(const struct wp_sample_key *key);
/* Set r->name to REASON: "poll", "syscall:NAME". */
void wp_report_wait(struct wp_report *r, uint64_t reason);

/* A table of at most LIMIT rows, if not --full, ends after SHOWN rows. */
bool wp_report_hides(const struct wp_report *r, uint32_t shown, uint32_t limit);
/* Write a row: NS, its share of all time with the standard error of row ROW of ERRORS,
 * and r->name. */
void wp_report_row_error(struct wp_report *r, uint64_t ns,
			 const struct wp_errors *errors, uint32_t row);
/* Write how many rows, from FIRST on, are not shown. */
void wp_report_rest(struct wp_report *r, const struct wp_pairs *rows,
		    uint32_t first, unsigned int indent);
/* Add NS to the sum of (A, B); returns its row, NULL: no memory. */
struct wp_pair *wp_report_add(struct wp_report *r, struct wp_pairs *rows,
			      uint64_t a, uint64_t b, uint64_t ns);

/* Where a thread waits: equal for one function and line. */
struct wp_sites_id {
	/* As of wp_view. */
	uint64_t function;
	uint32_t line;
};

/* The place in the program at which KEY's stack waits. */
struct wp_sites_id wp_sites_find(const struct wp_profile *profile,
				 const struct wp_sample_key *key);
/* The same as a frame; the leaf if no frame is the program's own. */
void wp_sites_view(const struct wp_profile *profile,
		   const struct wp_sample_key *key, struct wp_view *view);
bool wp_sites_equal(const struct wp_sites_id *a, const struct wp_sites_id *b);

/* Write the processes by name, if several were recorded. */
void wp_report_processes(struct wp_report *r);
/* Say how many threads are idle, and base shares on the others. */
void wp_report_idle(struct wp_report *r);

/* Write the sections. */
void wp_report_states(struct wp_report *r);
void wp_report_functions(struct wp_report *r);
void wp_report_sites(struct wp_report *r);
/* Of a wake profile: who wakes whom, and how often. */
void wp_report_woken(struct wp_report *r);
/* Of a heap profile: who allocates what is not freed, and how fast that grows. */
void wp_report_leaks(struct wp_report *r);
void wp_report_trees(struct wp_report *r);

/* Keep the first error of the report. */
static inline void wp_report_fail(struct wp_report *r, int rc)
{
	if (!r->rc)
		r->rc = rc;
}

#endif
