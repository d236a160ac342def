/* SPDX-License-Identifier: Apache-2.0 */
/* firefox_threads.c - see firefox.h: the samples and markers of a thread. */
#include <inttypes.h>

#include "category.h"
#include "firefox.h"
#include "json_text.h"
#include "processes.h"

static void put_stack(struct wp_firefox *f, const struct wp_sample_key *key)
{
	uint32_t stack = wp_firefox_stack(f, key);

	wp_firefox_next(f);
	if (stack == UINT32_MAX)
		wp_buf_str(&f->out, "null");
	else
		wp_buf_printf(&f->out, "%" PRIu32, stack);
}

/* A thread's rows are two samples each: one at its begin with the time of one
 * interval, one at its end with the rest.  So that graphs show a long wait as
 * long. */
struct pass {
	void (*put)(struct wp_firefox *f, const struct wp_lane_row *row,
		    uint64_t at, uint64_t ns, uint64_t *carry);
	const char *name;
};

static void put_sample_stack(struct wp_firefox *f,
			     const struct wp_lane_row *row, uint64_t at,
			     uint64_t ns, uint64_t *carry)
{
	(void)at;
	(void)ns;
	(void)carry;
	put_stack(f, row->key);
}

static void put_sample_time(struct wp_firefox *f, const struct wp_lane_row *row,
			    uint64_t at, uint64_t ns, uint64_t *carry)
{
	(void)row;
	(void)ns;
	(void)carry;
	wp_firefox_ms(f, at);
}

static void put_sample_weight(struct wp_firefox *f,
			      const struct wp_lane_row *row, uint64_t at,
			      uint64_t ns, uint64_t *carry)
{
	(void)row;
	(void)at;
	(void)carry;
	wp_firefox_ms(f, ns);
}

/* CPU time since the sample before, in microseconds. */
static void put_sample_cpu(struct wp_firefox *f, const struct wp_lane_row *row,
			   uint64_t at, uint64_t ns, uint64_t *carry)
{
	(void)at;
	wp_firefox_uint(f, *carry / 1000);
	*carry = row->key && row->key->state == WP_STATE_RUNNING ? ns : 0;
}

static uint32_t each_sample(struct wp_firefox *f, uint32_t thread,
			    const struct pass *pass)
{
	static const struct wp_lane_row none;
	uint64_t at = wp_lanes_start_ns(&f->lanes, thread), carry = 0;
	uint64_t period = (uint64_t)f->profile->meta.period_ns;
	uint32_t n = 0;

	for (uint32_t i = f->lanes.first[thread];
	     i < f->lanes.first[thread + 1]; i++) {
		struct wp_lane_row row = wp_lanes_row(&f->lanes, thread, i);
		uint64_t one = row.value < period ? row.value : period;

		/* Of sums nobody knows when. */
		if (!f->lanes.timed[thread])
			one = row.value;
		if (pass)
			pass->put(f, &row, at, one, &carry);
		at += f->lanes.timed[thread] ? row.value : 0;
		n++;
		if (row.value == one)
			continue;
		if (pass)
			pass->put(f, &row, at - one / 2, row.value - one,
				  &carry);
		n++;
	}
	/* CPU time goes to the sample after. */
	if (pass)
		pass->put(f, &none, at, 0, &carry);
	return n + 1;
}

static void put_samples(struct wp_firefox *f, uint32_t thread)
{
	static const struct pass passes[] = {
		{ put_sample_stack, "stack" },
		{ put_sample_time, "time" },
		{ put_sample_weight, "weight" },
		{ put_sample_cpu, "threadCPUDelta" },
	};

	wp_buf_printf(&f->out,
		      ",\"samples\":{\"weightType\":\"tracing-ms\","
		      "\"length\":%" PRIu32,
		      each_sample(f, thread, NULL));
	for (size_t i = 0; i < sizeof(passes) / sizeof(*passes); i++) {
		wp_firefox_begin(f, ",", passes[i].name);
		each_sample(f, thread, &passes[i]);
		wp_firefox_end(f);
	}
	wp_buf_char(&f->out, '}');
}

static void put_marker_data(struct wp_firefox *f, const struct wp_lane_row *row)
{
	const struct wp_profile *p = f->profile;
	struct wp_buf holder = WP_BUF_INIT;
	uint32_t stack = wp_firefox_stack(f, row->key);

	wp_firefox_next(f);
	wp_buf_str(&f->out, "{\"type\":\"wait\",\"object\":");
	wp_json_text(&f->out, wp_profile_str(p, row->key->object));
	if (row->holder) {
		const struct wp_profile_thread *t =
			&p->threads[row->holder - 1];

		wp_buf_str(&holder, wp_profile_str(p, t->name));
		wp_processes_id(&holder, t);
		wp_buf_char(&holder, '\0');
		wp_buf_str(&f->out, ",\"holder\":");
		wp_json_text(&f->out, holder.rc ? "" : holder.data);
		wp_buf_clear(&holder);
	}
	if (stack != UINT32_MAX)
		wp_buf_printf(&f->out, ",\"cause\":{\"stack\":%" PRIu32 "}",
			      stack);
	wp_buf_char(&f->out, '}');
}

enum marker_part { CATEGORY, DATA, NAME, PHASE, START, END, NPARTS };

/* Put one part of each wait's marker; returns their number. */
static uint32_t each_marker(struct wp_firefox *f, uint32_t thread,
			    enum marker_part part)
{
	uint64_t at = wp_lanes_start_ns(&f->lanes, thread);
	uint32_t n = 0;

	for (uint32_t i = f->lanes.first[thread];
	     i < f->lanes.first[thread + 1] && f->lanes.timed[thread]; i++) {
		struct wp_lane_row row = wp_lanes_row(&f->lanes, thread, i);
		uint64_t from = at;

		at += row.value;
		if (!row.key || row.key->state != WP_STATE_WAITING)
			continue;
		n++;
		if (part == CATEGORY)
			wp_firefox_uint(f, WP_FIREFOX_CATEGORY +
						   wp_category_of(row.key));
		else if (part == NAME)
			/* The first strings are the categories' names. */
			wp_firefox_uint(f, 1 + wp_category_of(row.key));
		else if (part == DATA)
			put_marker_data(f, &row);
		else if (part == PHASE)
			wp_firefox_uint(f, 1);
		else if (part == START || part == END)
			wp_firefox_ms(f, part == START ? from : at);
	}
	return n;
}

static void put_markers(struct wp_firefox *f, uint32_t thread)
{
	static const char *const names[NPARTS] = {
		[CATEGORY] = "category", [DATA] = "data",
		[NAME] = "name",	 [PHASE] = "phase",
		[START] = "startTime",	 [END] = "endTime",
	};

	wp_buf_printf(&f->out, ",\"markers\":{\"length\":%" PRIu32,
		      each_marker(f, thread, NPARTS));
	for (int i = 0; i < NPARTS; i++) {
		wp_firefox_begin(f, ",", names[i]);
		each_marker(f, thread, (enum marker_part)i);
		wp_firefox_end(f);
	}
	wp_buf_char(&f->out, '}');
}

void wp_firefox_thread(struct wp_firefox *f, uint32_t thread)
{
	const struct wp_profile *p = f->profile;
	const struct wp_profile_thread *t = &p->threads[thread];
	uint64_t start = wp_lanes_start_ns(&f->lanes, thread);
	const struct wp_profile_process *process = wp_profile_process_of(p, t);
	bool many = process && wp_profile_is_of_many(p);
	int32_t pid = many ? process->pid : p->meta.pid;

	wp_buf_str(&f->out, "{\"name\":");
	wp_json_text(&f->out, wp_profile_str(p, t->name));
	wp_buf_printf(&f->out,
		      ",\"isMainThread\":%s,\"pid\":\"%d\",\"tid\":\"%d\","
		      "\"pausedRanges\":[],\"processType\":\"default\","
		      "\"processStartupTime\":0,\"processShutdownTime\":null,"
		      "\"registerTime\":%.6f,\"unregisterTime\":null,"
		      "\"showMarkersInTimeline\":true,\"processName\":",
		      t->tid == pid ? "true" : "false", pid, t->tid,
		      (double)start / 1e6);
	wp_json_text(&f->out, wp_profile_str(p, many ? process->name :
						       p->meta.command_line));
	put_samples(f, thread);
	put_markers(f, thread);
	wp_buf_char(&f->out, '}');
}
