/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - what the parts of the text report share. */
#ifndef WP_TEXT_H
#define WP_TEXT_H

#include "escape.h"
#include "pairs.h"
#include "view.h"
#include "wallprof/output.h"

struct wp_report {
	const struct wp_profile *profile;
	enum wp_profile_kind kind;
	/* PROFILE's samples of KIND. */
	const struct wp_sample_set *set;
	const struct wp_text_options *options;
	/* The report so far. */
	struct wp_buf out;
	/* A name in the making, so that it can be fitted. */
	struct wp_buf name;
	/* All threads' time, and all samples. */
	uint64_t total_ns;
	uint64_t count;
	int rc;
};

/* The time by which SAMPLE is ranked. */
static inline uint64_t wp_report_ns(const struct wp_report *r,
				    const struct wp_profile_sample *sample)
{
	return wp_profile_time(r->profile, r->kind, sample);
}

/* Room for a share or a time: "100.0 %", " 12.3 ms". */
enum {
	WP_CELL = 24,
};

/* NS as "  1.23 s", 8 columns. */
void wp_report_time(char cell[WP_CELL], uint64_t ns);
/* NS of ALL as " 12.3 %", 7 columns. */
void wp_report_share(char cell[WP_CELL], uint64_t ns, uint64_t all);

/* Begin a section: an empty line, and TITLE. */
void wp_report_title(struct wp_report *r, const char *title);
/* End the line with report->name, fitted to what USED columns leave. */
void wp_report_end(struct wp_report *r, size_t used);
/* Put a function's name and place into report->name. */
void wp_report_name(struct wp_report *r, const struct wp_view *view);

/* A wait reason as one number, with the call's name where that is all. */
uint64_t wp_report_reason(const struct wp_sample_key *key);
/* Put "poll" or "syscall:NAME" into report->name. */
void wp_report_wait(struct wp_report *r, uint64_t reason);

/* Whether a table that has SHOWN rows is to end, LIMIT being its usual size. */
bool wp_report_hides(const struct wp_report *r, uint32_t shown, uint32_t limit);
/* A row: time, share of all time, and report->name INDENT columns in. */
void wp_report_row(struct wp_report *r, uint64_t ns, unsigned int indent);
/* Say how many rows from FIRST on are not shown. */
void wp_report_rest(struct wp_report *r, const struct wp_pairs *rows,
		    uint32_t first, unsigned int indent);
/* Add NS to the sum of (A, B); the row, NULL when there is no memory. */
struct wp_pair *wp_report_add(struct wp_report *r, struct wp_pairs *rows,
			      uint64_t a, uint64_t b, uint64_t ns);

/* The sections. */
void wp_report_states(struct wp_report *r);
void wp_report_functions(struct wp_report *r);
void wp_report_sites(struct wp_report *r);
void wp_report_trees(struct wp_report *r);

/* Keep the first error of the report. */
static inline void wp_report_fail(struct wp_report *r, int rc)
{
	if (!r->rc)
		r->rc = rc;
}

#endif
