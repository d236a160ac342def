/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_labels.c - the labels of a sample: see pprof_writer.h. */
#include <string.h>

#include "columns.h"
#include "escape.h"
#include "pprof_fields.h"
#include "pprof_writer.h"

static void put_label(struct wp_pprof_writer *w, const char *key, uint32_t str)
{
	size_t begin = wp_proto_begin(&w->buf, SAMPLE_LABEL);

	wp_proto_uint(&w->buf, LABEL_KEY, wp_pprof_text_id(w, key));
	wp_proto_uint(&w->buf, LABEL_STR, str);
	wp_proto_end(&w->buf, begin);
}

static void put_number(struct wp_pprof_writer *w, const char *key, int64_t num,
		       const char *unit)
{
	size_t begin = wp_proto_begin(&w->buf, SAMPLE_LABEL);

	wp_proto_uint(&w->buf, LABEL_KEY, wp_pprof_text_id(w, key));
	wp_proto_int(&w->buf, LABEL_NUM, num);
	wp_proto_uint(&w->buf, LABEL_NUM_UNIT, wp_pprof_text_id(w, unit));
	wp_proto_end(&w->buf, begin);
}

static void put_wait(struct wp_pprof_writer *w, const struct wp_sample_key *key)
{
	const char *syscall = wp_profile_str(w->profile, key->syscall);

	if (key->wait == WP_WAIT_GO && *syscall) {
		put_label(w, "wait", wp_pprof_str_id(w, key->syscall));
		return;
	}
	wp_buf_str(&w->scratch, wp_wait_name((enum wp_wait)key->wait));
	if (key->wait == WP_WAIT_SYSCALL && *syscall) {
		wp_buf_char(&w->scratch, ':');
		wp_escape_file(&w->scratch, syscall);
	}
	put_label(w, "wait", wp_pprof_scratch_id(w));
}

/* Put LABEL of the program under its own key, or "label.KEY" where KEY means something
 * to readers of wallprof's files. */
static void put_own_label(struct wp_pprof_writer *w,
			  const struct wp_profile_label *label)
{
	static const char *const ours[] = {
		"cgroup",      "comm",	"container", "exact",	    "goroutine",
		"idle",	       "looks", "object",    "pid",	    "process",
		"runtime",     "state", "thread",    "thread_comm", "thread_id",
		"thread_name", "tid",	"unit",	     "wait",	    "woken",
		"woken by",
	};
	const char *key = wp_profile_str(w->profile, label->key);
	uint32_t value = wp_pprof_str_id(w, label->value);
	bool is_ours = !strncmp(key, "label.", strlen("label."));
	size_t begin = wp_proto_begin(&w->buf, SAMPLE_LABEL);

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		is_ours |= !strcmp(key, ours[i]);
	if (is_ours)
		wp_buf_str(&w->scratch, "label.");
	wp_escape_file(&w->scratch, key);
	wp_proto_uint(&w->buf, LABEL_KEY, wp_pprof_scratch_id(w));
	/* Without text it would be a number. */
	wp_proto_uint(&w->buf, LABEL_STR,
		      value ? value : wp_pprof_text_id(w, "\"\""));
	wp_proto_end(&w->buf, begin);
}

static void put_known(struct wp_pprof_writer *w, const char *key, uint32_t id)
{
	if (wp_pprof_str_id(w, id))
		put_label(w, key, wp_pprof_str_id(w, id));
}

/* Of several processes: the one of T. */
static void put_process(struct wp_pprof_writer *w,
			const struct wp_profile_thread *t)
{
	const struct wp_profile_process *process = wp_profile_process_of(
		w->profile, t);
	uint32_t name;

	if (!process || !wp_profile_is_of_many(w->profile))
		return;
	name = wp_pprof_str_id(w, process->name);
	/* 0: it stands for all processes of its name. */
	if (process->pid)
		put_number(w, "pid", process->pid, "id");
	put_label(w, "process", name ? name : wp_pprof_text_id(w, "[no name]"));
	put_known(w, "cgroup", process->cgroup);
	put_known(w, "container", process->container);
	put_known(w, "unit", process->unit);
}

/* Which goroutine it is, or whether it is one of Go's runtime. */
static void put_goroutine(struct wp_pprof_writer *w,
			  const struct wp_profile_thread *t)
{
	static const char *const words[] = {
		[WP_GOROUTINE_RUNTIME] = "working",
		[WP_GOROUTINE_RUNTIME_IDLE] = "idle",
		[WP_GOROUTINE_SCHEDULER] = "scheduler",
	};

	if (w->profile->meta.has_goroutine_ids && t->goroutine &&
	    t->goroutine != WP_GOROUTINES_OTHER)
		put_number(w, "goroutine", (int64_t)t->goroutine, "id");
	if (t->part > WP_GOROUTINE_OWN)
		put_label(w, "runtime", wp_pprof_text_id(w, words[t->part]));
	if (wp_columns_is_idle(t, w->kind))
		put_label(w, "idle", wp_pprof_text_id(w, "true"));
}

/* State and wait reason, and the program's own labels, as runtime/pprof writes them. */
static void put_goroutine_labels(struct wp_pprof_writer *w,
				 const struct wp_sample_key *key,
				 const struct wp_profile_thread *t)
{
	uint32_t object = wp_pprof_str_id(w, key->object);

	put_label(w, "state",
		  wp_pprof_text_id(
			  w, wp_types_state_name((enum wp_state)key->state)));
	if (w->kind == WP_PROFILE_WALL) {
		if (key->wait != WP_WAIT_NONE)
			put_wait(w, key);
		if (object)
			put_label(w, "object", object);
		put_goroutine(w, t);
	} else if (object) {
		put_label(w, "wait", object);
	}
	put_process(w, t);
	for (uint32_t i = 0; i < t->nlabels; i++)
		put_own_label(w, &w->profile->labels[t->first_label + i]);
}

bool wp_pprof_is_noted(const struct wp_pprof_writer *w)
{
	return w->kind != WP_PROFILE_GOROUTINE && w->profile->nthreads &&
	       w->profile->threads[0].part;
}

static void put_bytes(struct wp_pprof_writer *w, const char *text)
{
	if (*text)
		put_number(w, "bytes", atoll(text), "bytes");
}

void wp_pprof_put_labels(struct wp_pprof_writer *w,
			 const struct wp_profile_sample *s)
{
	const struct wp_sample_key *key = &s->key;
	const struct wp_profile_thread *t = &w->profile->threads[key->thread];
	uint32_t name = wp_pprof_str_id(w, t->name);

	if (wp_pprof_is_noted(w)) {
		put_bytes(w, wp_profile_str(w->profile, key->object));
		return;
	}
	if (t->part) {
		put_goroutine_labels(w, key, t);
		return;
	}
	put_label(w, "thread", name ? name : wp_pprof_text_id(w, "[no name]"));
	/* pprof does not show a unit that it does not know; without a unit it
	 * shows the key. */
	if (t->tid && !t->nmore)
		put_number(w, "tid", t->tid, "id");
	put_process(w, t);
	if (wp_columns_have_states(w->profile, w->kind))
		put_label(w, "state",
			  wp_pprof_text_id(w,
					   wp_types_state_name(
						   (enum wp_state)key->state)));
	if (key->wait != WP_WAIT_NONE)
		put_wait(w, key);
	if (w->kind == WP_PROFILE_HEAP)
		put_bytes(w, wp_profile_str(w->profile, key->object));
	else if (wp_pprof_str_id(w, key->object))
		put_label(w,
			  w->kind == WP_PROFILE_BLOCK ? "woken by" :
			  w->kind == WP_PROFILE_WAKE  ? "woken" :
							"object",
			  wp_pprof_str_id(w, key->object));
	if (wp_columns_is_idle(t, w->kind))
		put_label(w, "idle", wp_pprof_text_id(w, "true"));
	/* Standard errors are made of these. */
	if (s->looks)
		put_number(w, "looks", (int64_t)s->looks, "count");
	if (s->exact_ns)
		put_number(w, "exact", (int64_t)s->exact_ns, "nanoseconds");
	if (w->kind == WP_PROFILE_THREADCREATE && s->count)
		put_number(w, "lifetime", (int64_t)(s->wall_ns / s->count),
			   "nanoseconds");
}
