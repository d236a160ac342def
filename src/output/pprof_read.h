/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_read.h - a pprof file that is being read: its messages, field by field. */
#ifndef WP_PPROF_READ_H
#define WP_PPROF_READ_H

#include "pairs.h"
#include "wallprof/profile.h"
#include "wallprof/reader.h"

/* One field of a message. */
struct wp_pprof_field {
	uint32_t number;
	/* Of a number, the number; of bytes, their reader. */
	uint64_t value;
	struct wp_reader bytes;
	bool is_bytes;
};

/* Read the next field of R: false at its end, or R has failed. */
bool wp_pprof_next(struct wp_reader *r, struct wp_pprof_field *ret);
/* Read the next number of a field of numbers, packed or single: false after the
 * last. */
bool wp_pprof_number(struct wp_pprof_field *field, uint64_t *ret);

/* What sample values are stored as. */
enum wp_pprof_column {
	WP_PPROF_NONE,
	WP_PPROF_COUNT,
	WP_PPROF_WALL,
	WP_PPROF_CPU_COUNT,
	WP_PPROF_CPU,
	WP_PPROF_NCOLUMNS
};

enum { WP_PPROF_TYPES_MAX = 64 };

struct wp_pprof_type {
	/* String ids. */
	uint32_t type;
	uint32_t unit;
	enum wp_pprof_column column;
	uint64_t scale;
};

struct wp_pprof {
	struct wp_profile *profile;
	enum wp_profile_kind kind;
	struct wp_err *err;
	/* The whole message, and bytes of the file, which may be packed. */
	struct wp_reader all;
	uint64_t nbytes;
	/* By index of the string table, the profile's string id; owned. */
	uint32_t *strings;
	uint32_t nstrings;
	uint32_t cap_strings;
	/* (id in the file, 0): MARK is the profile's index. */
	struct wp_pairs mappings;
	struct wp_pairs functions;
	struct wp_pairs locations;
	/* (name's string id, tid): the index is the thread's. */
	struct wp_pairs threads;
	/* (process's name, pid), by their index in the profile. */
	struct wp_pairs processes;
	/* By value of a sample, what it is stored as and multiplied by. */
	struct wp_pprof_type types[WP_PPROF_TYPES_MAX];
	unsigned int ntypes;
	/* The state of samples without a label that tells. */
	enum wp_state state;
	/* By sample in the file, its index in the set; owned. */
	uint32_t *samples;
	uint32_t nsamples;
	uint32_t cap_samples;
	/* The location of samples that have none, once it is made. */
	uint32_t no_stack;
	bool has_no_stack;
	/* Functions in the stacks of all samples, inlined ones too. */
	uint64_t nunfolded;
	/* What all samples have, by column. */
	uint64_t sums[WP_PPROF_NCOLUMNS];
	/* Bytes of comments, and of labels that are read to their end. */
	uint64_t ntold;
	/* The frames of a sample; owned. */
	struct wp_frame *frames;
	uint32_t cap_frames;
	/* String id: what the comment "entries:" lists. */
	uint32_t entries;
	/* 0, -ENOMEM or -EBADMSG. */
	int rc;
};

/* The profile's string id of the string at INDEX. */
uint32_t wp_pprof_str(struct wp_pprof *p, uint64_t index);
/* The text of string ID. */
const char *wp_pprof_text(struct wp_pprof *p, uint32_t id);
/* String ID, counted each time, since a small file may name a long one often; "" and the
 * file is bad once that is more than one of its size tells of. */
const char *wp_pprof_told(struct wp_pprof *p, uint32_t id);
/* The profile's string id of string ID without its first N bytes. */
uint32_t wp_pprof_tail(struct wp_pprof *p, uint32_t id, size_t n);
/* There is no memory, which is told unless something else is wrong already. */
void wp_pprof_no_memory(struct wp_pprof *p);
/* The file breaks the rule that WHAT names. */
void wp_pprof_bad(struct wp_pprof *p, const char *what);

/* The string ids of the type that R is. */
struct wp_pprof_type wp_pprof_read_type(struct wp_pprof *p, struct wp_reader r);
/* PERIOD of TYPE in nanoseconds; 0: it is none of time between samples. */
int64_t wp_pprof_period(struct wp_pprof *p, int64_t period,
			const struct wp_pprof_type *type);
/* The kind that a comment of ours NAMEs, if its samples are read as such; else WALL. */
enum wp_profile_kind wp_pprof_kind(const char *name);
/* Decide what each value is stored as, SHOWN being the one that is shown. */
void wp_pprof_choose_columns(struct wp_pprof *p, unsigned int shown);
/* Read the samples, once all else is read. */
void wp_pprof_read_samples(struct wp_pprof *p);
/* Read DATA of the field PROFILE_WALLPROF_TIMELINE, after the samples. */
void wp_pprof_read_timeline(struct wp_pprof *p, struct wp_reader data);
/* After the samples: set how many threads the entries stand for, as p->entries tells. */
void wp_pprof_read_entries(struct wp_pprof *p);

#endif
