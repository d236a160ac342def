/* SPDX-License-Identifier: Apache-2.0 */
/* html_data.c - see html_data.h. */
#include "html_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "call_nodes.h"
#include "columns.h"
#include "errors.h"
#include "json_text.h"
#include "lanes.h"
#include "processes.h"
#include "wallprof/base_name.h"
#include "wallprof/output.h"
#include "wallprof/state.h"

enum {
	/* With more rows times are rounded to 10 us, with many more to 0.1 ms,
	 * which leaves a third of their bytes. */
	MANY_ROWS = 100000,
	MANY_QUANTUM = 10000,
	MOST_ROWS = 500000,
	MOST_QUANTUM = 100000,
};

/* What model.js knows of a frame, bits of its flags. */
enum {
	FRAME_KERNEL = 1,
	FRAME_TEXT = 2,
	/* Of the main program, no library. */
	FRAME_OWN = 4,
	FRAME_MACHINERY = 8,
	FRAME_GUESSED = 16,
};

struct data {
	const struct wp_profile *profile;
	enum wp_profile_kind kind;
	struct wp_lanes lanes;
	struct wp_call_nodes nodes;
	/* (the parts of a sample's key but stack and thread, holder): the
	 * index is the kind of a row. */
	struct wp_pairs kinds;
	/* (node + 1, kind + 1), sorted by number of rows: what threads did; and
	 * by row, its index in there.  RANKS is owned. */
	struct wp_pairs deeds;
	uint32_t *ranks;
	struct wp_errors errors;
	uint64_t quantum;
	/* Borrowed. */
	struct wp_buf *out;
	/* Parts of a list so far. */
	bool comma;
};

/* Between two elements of a list; BEGIN ("[") starts one. */
static void next(struct data *d)
{
	if (d->comma)
		wp_buf_char(d->out, ',');
	d->comma = true;
}

static void begin_list(struct data *d, const char *name)
{
	wp_buf_printf(d->out, ",\"%s\":[", name);
	d->comma = false;
}

static void put_text(struct data *d, const char *name, const char *text)
{
	wp_buf_printf(d->out, ",\"%s\":", name);
	wp_json_text(d->out, text);
}

static void put_counter(void *ctx, const char *line)
{
	struct data *d = ctx;

	next(d);
	wp_json_text(d->out, line);
}

static void put_meta(struct data *d)
{
	const struct wp_profile *p = d->profile;
	const struct wp_profile_meta *m = &p->meta;
	const char *type = wp_columns_type(p, d->kind);
	/* No allocation is sampled at a tick. */
	double hz = d->kind == WP_PROFILE_HEAP ? 0 : m->achieved_hz;

	wp_buf_printf(d->out,
		      "{\"version\":1,\"pid\":%d,\"quantum\":%" PRIu64
		      ",\"time_ms\":%.3f,\"duration_ns\":%" PRId64
		      ",\"period_ns\":%" PRId64 ",\"hz\":%.2f"
		      ",\"window_ns\":%" PRIu64
		      ",\"bytes_per_sample\":%" PRId64,
		      m->pid, d->quantum, (double)m->time_ns / 1e6,
		      m->duration_ns, m->period_ns, hz, p->timeline.window_ns,
		      d->kind == WP_PROFILE_HEAP ? m->heap_period : 0);
	put_text(d, "wallprof", WP_VERSION);
	put_text(d, "kind",
		 m->value_type ? type : wp_profile_kind_name(d->kind));
	put_text(d, "type", type);
	put_text(d, "unit", wp_columns_unit(p, d->kind));
	put_text(d, "who", m->is_of_goroutines ? "goroutine" : "thread");
	put_text(d, "command", wp_profile_str(p, m->command_line));
	put_text(d, "exe", wp_profile_str(p, m->exe));
	put_text(d, "target_end", wp_profile_str(p, m->target_end));
	begin_list(d, "counters");
	wp_counters_lines(p, d->kind, put_counter, d);
	wp_buf_str(d->out, "],\"states\":[");
	d->comma = false;
	for (int i = 0; i < WP_NSTATES; i++) {
		next(d);
		wp_json_text(d->out,
			     !wp_columns_have_states(p, d->kind) ?
				     type :
				     wp_types_state_name((enum wp_state)i));
	}
	wp_buf_char(d->out, ']');
}

static unsigned int flags_of(const struct wp_view *view, const char *own)
{
	const struct wp_named_frame named = { view->function, view->function,
					      view->module };
	unsigned int flags = 0;

	if (view->kernel)
		flags |= FRAME_KERNEL;
	if (view->text)
		flags |= FRAME_TEXT;
	if (*own && !strcmp(view->module, own))
		flags |= FRAME_OWN;
	if (view->function && !view->text && wp_state_is_machinery(&named))
		flags |= FRAME_MACHINERY;
	if (view->guessed)
		flags |= FRAME_GUESSED;
	return flags;
}

static void put_frames(struct data *d)
{
	const char *own = wp_base_name(
		wp_profile_str(d->profile, d->profile->meta.exe));

	begin_list(d, "frames");
	for (uint32_t i = 0; i < d->nodes.nframes; i++) {
		struct wp_view view;

		wp_call_nodes_view(&d->nodes, i, &view);
		next(d);
		wp_buf_char(d->out, '[');
		wp_json_text(d->out, wp_view_name(&view));
		wp_buf_char(d->out, ',');
		wp_json_text(d->out, view.file);
		wp_buf_char(d->out, ',');
		wp_json_text(d->out, view.module);
		wp_buf_printf(d->out, ",%" PRIu32 ",%u]", view.line,
			      flags_of(&view, own));
	}
	wp_buf_char(d->out, ']');
}

/* The index + 1 of ROW's kind, made if new; 0: not watched. */
static uint32_t kind_of(struct data *d, const struct wp_lane_row *row)
{
	const struct wp_sample_key *key = row->key;
	uint32_t i;

	if (!key)
		return 0;
	i = wp_pairs_add(&d->kinds,
			 (uint64_t)key->state << 56 |
				 (uint64_t)key->wait << 48 |
				 (uint64_t)key->syscall << 32 | key->object,
			 row->holder);
	if (i != UINT32_MAX)
		return i + 1;
	d->out->rc = -ENOMEM;
	return 0;
}

static void put_kinds(struct data *d)
{
	begin_list(d, "kinds");
	for (uint32_t i = 0; i < d->kinds.len; i++) {
		const struct wp_pair *k = &d->kinds.v[i];
		enum wp_wait wait = (enum wp_wait)(k->a >> 48 & 0xff);
		const char *call = wp_profile_str(d->profile,
						  k->a >> 32 & 0xffff);
		bool is_go = wait == WP_WAIT_GO && *call;

		next(d);
		wp_buf_printf(d->out, "[%u,", (unsigned int)(k->a >> 56));
		wp_json_text(d->out, is_go ? call : wp_wait_name(wait));
		wp_buf_char(d->out, ',');
		wp_json_text(d->out, is_go ? "" : call);
		wp_buf_char(d->out, ',');
		wp_json_text(d->out,
			     wp_profile_str(d->profile, (uint32_t)k->a));
		wp_buf_printf(d->out, ",%" PRIu64 "]", k->b);
	}
	wp_buf_char(d->out, ']');
}

/* Of S, what standard errors are made of beside the numbers of samples: the time that is
 * known exactly, or the variance of bytes that were sampled. */
static uint64_t exact_of(const struct data *d,
			 const struct wp_profile_sample *s)
{
	return d->kind == WP_PROFILE_HEAP ? s->weight_ns : s->exact_ns;
}

/* How many samples divided the times of THREAD, waits and what was ready to run, or
 * 0; and how many of its times are known exactly, or have a variance. */
static void put_looks(struct data *d, uint32_t thread, uint32_t *at)
{
	const struct wp_errors_pool *pools =
		&d->errors.pools[(size_t)thread * WP_ERRORS_NPARTS];
	uint32_t n = d->profile->sets[d->kind].nsamples, exact = 0;

	for (; *at < n; ++*at) {
		const struct wp_profile_sample *s = wp_errors_sample(&d->errors,
								     *at);

		if (s->key.thread != thread)
			break;
		exact += exact_of(d, s) > 0;
	}
	wp_buf_printf(d->out, ",%.0f,%.0f,%" PRIu32,
		      d->errors.known ? pools[WP_ERRORS_WAITS].looks : 0,
		      d->errors.known ? pools[WP_ERRORS_READY].looks : 0,
		      exact);
}

/* Of several processes: which one T is of, and its pid and name. */
static void put_process(struct data *d, const struct wp_profile_thread *t)
{
	const struct wp_profile_process *process = wp_profile_process_of(
		d->profile, t);

	if (!process || !wp_profile_is_of_many(d->profile))
		return;
	wp_buf_printf(d->out, ",%" PRIu32 ",%d,", t->process, process->pid);
	wp_json_text(d->out, wp_profile_str(d->profile, process->name));
}

static void put_threads(struct data *d)
{
	uint32_t sample = 0;

	begin_list(d, "threads");
	for (uint32_t i = 0; i < d->profile->nthreads; i++) {
		const struct wp_profile_thread *t = &d->profile->threads[i];

		next(d);
		wp_buf_printf(
			d->out, "[%d,%" PRIu64 ",", t->tid,
			t->kinds & 1u << d->kind ? wp_processes_threads(t) : 0);
		wp_json_text(d->out, wp_profile_str(d->profile, t->name));
		wp_buf_printf(d->out, ",%" PRIu64 ",%d,%" PRIu32 ",%d",
			      wp_lanes_start_ns(&d->lanes, i),
			      d->lanes.timed[i],
			      d->lanes.first[i + 1] - d->lanes.first[i],
			      wp_columns_is_idle(t, d->kind));
		put_looks(d, i, &sample);
		put_process(d, t);
		wp_buf_char(d->out, ']');
	}
	wp_buf_char(d->out, ']');
}

static void put_number(struct data *d, uint64_t n)
{
	for (; n > 127; n >>= 7)
		wp_buf_char(d->out, (char)(n | 128));
	wp_buf_char(d->out, (char)n);
}

static void put_nodes(struct data *d)
{
	for (uint32_t i = 0; i < d->nodes.n; i++) {
		put_number(d, i + 1 - d->nodes.v[i].parent);
		put_number(d, d->nodes.v[i].frame);
	}
}

/* Values are rounded so that their sums are right: none drifts. */
static void put_values(struct data *d, uint32_t thread)
{
	uint64_t sum = 0, put = 0;

	for (uint32_t i = d->lanes.first[thread];
	     i < d->lanes.first[thread + 1]; i++) {
		uint64_t until;

		sum += wp_lanes_row(&d->lanes, thread, i).value;
		until = (sum + d->quantum / 2) / d->quantum;
		put_number(d, until - put);
		put = until;
	}
}

static void put_deeds(struct data *d)
{
	for (uint32_t i = 0; i < d->deeds.len; i++) {
		put_number(d, d->deeds.v[i].a);
		put_number(d, d->deeds.v[i].b);
	}
}

static void put_rows(struct data *d, uint32_t thread)
{
	uint32_t first = d->lanes.first[thread],
		 end = d->lanes.first[thread + 1];

	/* Apart, as each compresses by its own frequencies. */
	for (uint32_t i = first; i < end; i++)
		put_number(d, d->ranks[i] & 127);
	for (uint32_t i = first; i < end; i++)
		put_number(d, d->ranks[i] >> 7);
	put_values(d, thread);
}

/* By thread, the stacks whose waits are known exactly, in part or all, or whose bytes
 * have a variance. */
static void put_exact(struct data *d)
{
	uint32_t n = d->profile->sets[d->kind].nsamples;

	for (uint32_t i = 0; i < n; i++) {
		const struct wp_profile_sample *s = wp_errors_sample(&d->errors,
								     i);
		uint64_t exact = exact_of(d, s);

		if (!exact)
			continue;
		put_number(d, d->nodes.leaf[s->key.stack]);
		put_number(d, (exact + d->quantum / 2) / d->quantum);
	}
}

/* Find the deed of each row, and rank deeds. */
static int rank_deeds(struct data *d)
{
	uint32_t *ranks = calloc((size_t)d->lanes.nrows + 1, sizeof(*ranks));
	uint32_t *order;

	d->ranks = ranks;
	for (uint32_t t = 0; ranks && t < d->profile->nthreads; t++) {
		for (uint32_t i = d->lanes.first[t]; i < d->lanes.first[t + 1];
		     i++) {
			struct wp_lane_row row = wp_lanes_row(&d->lanes, t, i);

			ranks[i] = wp_pairs_add(
				&d->deeds,
				row.key ? d->nodes.leaf[row.key->stack] : 0,
				kind_of(d, &row));
			if (ranks[i] == UINT32_MAX)
				return -ENOMEM;
			d->deeds.v[ranks[i]].mark = ranks[i];
			d->deeds.v[ranks[i]].self++;
		}
	}
	order = calloc((size_t)d->deeds.len + 1, sizeof(*order));
	if (!ranks || !order) {
		free(order);
		return -ENOMEM;
	}
	wp_pairs_sort(&d->deeds);
	for (uint32_t i = 0; i < d->deeds.len; i++)
		order[d->deeds.v[i].mark] = i;
	for (uint32_t i = 0; i < d->lanes.nrows; i++)
		ranks[i] = order[ranks[i]];
	free(order);
	return 0;
}

static void put_all(struct data *d)
{
	put_meta(d);
	put_frames(d);
	put_kinds(d);
	put_threads(d);
	wp_buf_printf(d->out, ",\"nodes\":%" PRIu32 ",\"deeds\":%" PRIu32 "}\n",
		      d->nodes.n, d->deeds.len);
	put_nodes(d);
	put_deeds(d);
	for (uint32_t t = 0; t < d->profile->nthreads; t++)
		put_rows(d, t);
	put_exact(d);
}

int wp_html_data_write(const struct wp_profile *profile,
		       enum wp_profile_kind kind, struct wp_buf *out)
{
	struct data d = { .profile = profile,
			  .kind = kind,
			  .kinds = WP_PAIRS_INIT,
			  .deeds = WP_PAIRS_INIT,
			  .out = out,
			  .quantum = 1 };
	int rc = wp_lanes_init(&d.lanes, profile, kind);
	int nodes_rc = wp_call_nodes_init(&d.nodes, profile, kind);
	int errors_rc = wp_errors_init(&d.errors, profile, kind);

	if (!rc)
		rc = nodes_rc ? nodes_rc : errors_rc;
	if (d.lanes.nrows > MANY_ROWS &&
	    !strcmp(wp_columns_unit(profile, kind), "nanoseconds"))
		d.quantum = d.lanes.nrows > MOST_ROWS ? MOST_QUANTUM :
							MANY_QUANTUM;
	if (!rc)
		rc = rank_deeds(&d);
	if (!rc) {
		put_all(&d);
		rc = out->rc;
	}
	wp_pairs_clear(&d.kinds);
	wp_pairs_clear(&d.deeds);
	free(d.ranks);
	wp_errors_clear(&d.errors);
	wp_call_nodes_clear(&d.nodes);
	wp_lanes_clear(&d.lanes);
	return rc;
}
