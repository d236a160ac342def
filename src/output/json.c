/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - a dump as one JSON document: test/data/dump.schema.json.
 *
 * Threads and edges are made and written one at a time, a line for each: a
 * jansson tree of the whole dump takes 1 KB per frame.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "print.h"
#include "wallprof/hash.h"
#include "wallprof/output.h"

enum {
	/* Bytes that are gathered before a write. */
	ENOUGH = 1 << 16,
	/* ASCII, so that all control characters, and those that change the
	 * direction of text, are escaped. */
	FLAGS = JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9),
	/* A power of two. */
	CACHED_FRAMES = 4096,
};

/* A frame and its JSON, as threads share most of their frames. */
struct cached_frame {
	struct wp_dump_frame frame;
	/* Empty: the entry is free. */
	struct wp_buf text;
};

struct writer {
	const struct wp_dump *dump;
	FILE *out;
	struct wp_buf buf;
	/* Scratch: a string made valid UTF-8. */
	struct wp_buf text;
	/* cache[0..CACHED_FRAMES), indexed by hash; owned. */
	struct cached_frame *cache;
	/* The first error in making values. */
	int rc;
};

/* Make VAL OBJECT's member KEY; both may be NULL, for lack of memory. */
static void set(struct writer *w, json_t *object, const char *key, json_t *val)
{
	if (json_object_set_new_nocheck(object, key, val) && !w->rc)
		w->rc = -ENOMEM;
}

static void append(struct writer *w, json_t *array, json_t *val)
{
	if (json_array_append_new(array, val) && !w->rc)
		w->rc = -ENOMEM;
}

/* S as a value, each byte that is not UTF-8 as U+FFFD. */
static json_t *string(struct writer *w, const char *s)
{
	size_t left = strlen(s), n;
	uint32_t code;

	wp_buf_reset(&w->text);
	for (; left; s += n, left -= n) {
		n = wp_utf8_next(s, left, &code);
		if (n)
			wp_buf_add(&w->text, s, n);
		else
			wp_buf_str(&w->text, "\xef\xbf\xbd");
		n += !n;
	}
	/* Also gives an empty text memory. */
	wp_buf_char(&w->text, '\0');
	if (w->text.rc)
		return NULL;
	return json_stringn_nocheck(w->text.data, w->text.len - 1);
}

static json_t *string_id(struct writer *w, uint32_t id)
{
	return string(w, wp_dump_str(w->dump, id));
}

static json_t *address(uint64_t avma)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, avma);
	return json_string_nocheck(text);
}

/* VAL as a value; null if it is not known. */
static json_t *known(bool is_known, uint64_t val)
{
	if (!is_known)
		return json_null();
	return json_integer(val < INT64_MAX ? (json_int_t)val : INT64_MAX);
}

static json_t *number(uint64_t val)
{
	return known(true, val);
}

static int gather(const char *data, size_t n, void *ctx)
{
	struct wp_buf *buf = ctx;

	wp_buf_add(buf, data, n);
	return buf->rc ? -1 : 0;
}

/* Add VALUE to BUF and release it. */
static void put_to(struct writer *w, struct wp_buf *buf, json_t *value,
		   size_t flags)
{
	if (json_dump_callback(value, gather, buf, FLAGS | flags) && !w->rc)
		w->rc = -ENOMEM;
	json_decref(value);
}

static void put(struct writer *w, json_t *value, size_t flags)
{
	put_to(w, &w->buf, value, flags);
	if (w->buf.len > ENOUGH)
		wp_buf_write(&w->buf, w->out);
}

/* Write element I of an array, on a line of its own. */
static void put_element(struct writer *w, uint32_t i, json_t *value)
{
	wp_buf_str(&w->buf, i ? ",\n" : "\n");
	put(w, value, 0);
}

static json_t *make_frame(struct writer *w, const struct wp_dump_frame *frame)
{
	json_t *o = json_object();

	set(w, o, "address", address(frame->pc_avma));
	set(w, o, "function", string_id(w, frame->function));
	set(w, o, "file", string_id(w, frame->file));
	set(w, o, "line", known(frame->line, frame->line));
	set(w, o, "module", string_id(w, frame->module));
	set(w, o, "inlined", json_boolean(frame->inlined));
	set(w, o, "kernel", json_boolean(frame->kernel));
	set(w, o, "guessed", json_boolean(frame->guessed));
	return o;
}

static bool is_same(const struct wp_dump_frame *a,
		    const struct wp_dump_frame *b)
{
	return a->pc_avma == b->pc_avma && a->function == b->function &&
	       a->file == b->file && a->line == b->line &&
	       a->module == b->module && a->inlined == b->inlined &&
	       a->kernel == b->kernel && a->guessed == b->guessed;
}

static void put_frame(struct writer *w, const struct wp_dump_frame *frame)
{
	uint64_t hash = wp_hash_u64(
		wp_hash_u64(frame->pc_avma) ^
		((uint64_t)frame->function << 32 | frame->line));
	struct cached_frame *c = &w->cache[hash % CACHED_FRAMES];

	if (!c->text.len || !is_same(&c->frame, frame)) {
		wp_buf_reset(&c->text);
		put_to(w, &c->text, make_frame(w, frame), 0);
		c->frame = *frame;
	}
	wp_buf_add(&w->buf, c->text.data, c->text.len);
}

static json_t *make_lock(struct writer *w, const struct wp_dump_thread *thread)
{
	const struct wp_lock *lock = &thread->lock;
	json_t *o;

	if (lock->kind == WP_LOCK_NONE)
		return json_null();
	o = json_object();
	set(w, o, "kind", string(w, wp_lock_kind_name(lock->kind)));
	set(w, o, "type", string(w, lock->type ? lock->type : ""));
	set(w, o, "access",
	    string(w, lock->kind == WP_LOCK_RWLOCK_READ	 ? "read" :
		      lock->kind == WP_LOCK_RWLOCK_WRITE ? "write" :
							   ""));
	set(w, o, "address", address(lock->avma));
	set(w, o, "variable", string_id(w, thread->variable));
	set(w, o, "holder", string(w, wp_lock_holder_name(lock->holder)));
	set(w, o, "owner_tid",
	    known(lock->owner_tid > 0, (uint64_t)lock->owner_tid));
	set(w, o, "readers", number(lock->readers));
	return o;
}

static json_t *make_thread(struct writer *w,
			   const struct wp_dump_thread *thread)
{
	char buf[WP_PRINT_CALL_MAX], cut[WP_DUMP_CUT_MAX];
	json_t *o = json_object();

	set(w, o, "tid", json_integer(thread->tid));
	set(w, o, "name", string_id(w, thread->name));
	set(w, o, "state", string(w, wp_types_state_name(thread->state)));
	set(w, o, "wait", string(w, wp_wait_name(thread->wait)));
	set(w, o, "syscall", string(w, wp_print_call_name(&thread->call, buf)));
	set(w, o, "call", string_id(w, thread->call.text));
	set(w, o, "cpu",
	    known(thread->times.cpu >= 0, (uint64_t)thread->times.cpu));
	set(w, o, "waited_ns",
	    known(thread->times.waited_ns != UINT64_MAX,
		  thread->times.waited_ns));
	set(w, o, "timed", json_boolean(thread->call.timed));
	set(w, o, "open_ended", json_boolean(thread->open_ended));
	set(w, o, "still", json_boolean(thread->times.still));
	set(w, o, "stuck", json_boolean(thread->stuck));
	set(w, o, "moved", json_boolean(thread->moved));
	set(w, o, "waiters", number(thread->waiters));
	set(w, o, "lock", make_lock(w, thread));
	set(w, o, "site",
	    known(thread->stack.site < thread->stack.nframes,
		  thread->stack.site));
	set(w, o, "truncated",
	    string(w, wp_dump_cut_text(w->dump, &thread->stack, cut)));
	return o;
}

/* Write STACK as the member NAME, an array. */
static void put_stack(struct writer *w, const char *name,
		      const struct wp_dump_stack *stack)
{
	wp_buf_printf(&w->buf, ", \"%s\": [", name);
	for (uint32_t i = 0; i < stack->nframes; i++) {
		if (i)
			wp_buf_str(&w->buf, ", ");
		put_frame(w, &w->dump->frames[stack->first_frame + i]);
	}
	wp_buf_char(&w->buf, ']');
}

static void put_thread(struct writer *w, const struct wp_dump_thread *thread)
{
	wp_buf_char(&w->buf, '{');
	put(w, make_thread(w, thread), JSON_EMBED);
	put_stack(w, "frames", &thread->stack);
	wp_buf_char(&w->buf, '}');
}

static json_t *make_labels(struct writer *w, const struct wp_dump_goroutine *g)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < g->nlabels; i++) {
		const struct wp_dump_label *label =
			&w->dump->labels[g->first_label + i];
		json_t *pair = json_array();

		append(w, pair, string_id(w, label->key));
		append(w, pair, string_id(w, label->value));
		append(w, a, pair);
	}
	return a;
}

static json_t *make_waits(struct writer *w, const struct wp_dump_goroutine *g)
{
	json_t *a = json_array();

	for (uint32_t i = 0; i < g->nwaits; i++) {
		const struct wp_dump_wait *wait =
			&w->dump->waits[g->first_wait + i];
		json_t *o = json_object();

		set(w, o, "kind", string_id(w, wait->kind));
		set(w, o, "address",
		    wait->avma ? address(wait->avma) : json_null());
		set(w, o, "fd", known(!wait->avma, (uint64_t)wait->fd));
		set(w, o, "length", known(wait->is_channel, wait->len));
		set(w, o, "capacity", known(wait->is_channel, wait->cap));
		set(w, o, "text", string_id(w, wait->text));
		append(w, a, o);
	}
	return a;
}

static json_t *make_goroutine(struct writer *w,
			      const struct wp_dump_goroutine *g)
{
	char cut[WP_DUMP_CUT_MAX];
	json_t *o = json_object();

	set(w, o, "id", number(g->id));
	set(w, o, "parent_id", known(g->parent_id, g->parent_id));
	set(w, o, "state", string_id(w, g->state));
	set(w, o, "reason", string_id(w, g->reason));
	set(w, o, "waited_ns", known(g->waited_ns != UINT64_MAX, g->waited_ns));
	set(w, o, "tid", known(g->tid > 0, (uint64_t)g->tid));
	set(w, o, "locked_tid",
	    known(g->locked_tid > 0, (uint64_t)g->locked_tid));
	set(w, o, "labels", make_labels(w, g));
	set(w, o, "waits_for", make_waits(w, g));
	set(w, o, "site",
	    known(g->stack.site < g->stack.nframes, g->stack.site));
	set(w, o, "truncated",
	    string(w, wp_dump_cut_text(w->dump, &g->stack, cut)));
	return o;
}

static void put_goroutines(struct writer *w,
			   const struct wp_dump_process *process)
{
	wp_buf_str(&w->buf, "], \"goroutines\": [");
	for (uint32_t k = 0; k < process->ngoroutines && !w->rc; k++) {
		const struct wp_dump_goroutine *g =
			&w->dump->goroutines[process->first_goroutine + k];

		wp_buf_str(&w->buf, k ? ",\n{" : "\n{");
		put(w, make_goroutine(w, g), JSON_EMBED);
		put_stack(w, "frames", &g->stack);
		put_stack(w, "created_by", &g->created);
		wp_buf_char(&w->buf, '}');
	}
}

static json_t *make_process(struct writer *w,
			    const struct wp_dump_process *process)
{
	static const char *const hold[] = {
		[WP_HOLD_NONE] = "",
		[WP_HOLD_FROZEN] = "frozen",
		[WP_HOLD_CORE_DUMP] = "core-dump",
	};
	json_t *o = json_object();

	set(w, o, "pid", json_integer(process->pid));
	set(w, o, "ppid", json_integer(process->ppid));
	set(w, o, "command_line", string_id(w, process->command_line));
	set(w, o, "user", string_id(w, process->user));
	set(w, o, "error", string_id(w, process->error));
	set(w, o, "peer", json_boolean(process->is_peer));
	set(w, o, "catches_signals", json_boolean(process->catches_signals));
	set(w, o, "stuck", json_boolean(process->stuck));
	set(w, o, "hold", json_string(hold[process->hold]));
	set(w, o, "pause_ns", number(process->pause_ns));
	set(w, o, "stopped", number(process->nstopped));
	set(w, o, "lost", number(process->nlost));
	set(w, o, "unchosen", number(process->nunchosen));
	set(w, o, "go_version", string_id(w, process->go_version));
	set(w, o, "go_error", string_id(w, process->go_error));
	set(w, o, "lost_goroutines", number(process->nlost_goroutines));
	return o;
}

static void put_process(struct writer *w, uint32_t i)
{
	const struct wp_dump_process *process = &w->dump->processes[i];

	wp_buf_str(&w->buf, i ? ",\n{" : "\n{");
	put(w, make_process(w, process), JSON_EMBED);
	wp_buf_str(&w->buf, ", \"threads\": [");
	for (uint32_t k = 0; k < process->nthreads && !w->rc; k++) {
		wp_buf_str(&w->buf, k ? ",\n" : "\n");
		put_thread(w, &w->dump->threads[process->first_thread + k]);
	}
	put_goroutines(w, process);
	wp_buf_str(&w->buf, "]}");
}

static json_t *make_edge(struct writer *w, const struct wp_edge *edge)
{
	const struct wp_dump_thread *threads = w->dump->threads;
	bool to_thread = edge->to < w->dump->nthreads;
	json_t *o = json_object();

	set(w, o, "kind", string(w, wp_dump_edge_name(edge->kind)));
	set(w, o, "what", string_id(w, edge->what));
	set(w, o, "from_tid", json_integer(threads[edge->from].tid));
	set(w, o, "to_tid",
	    to_thread ? json_integer(threads[edge->to].tid) : json_null());
	set(w, o, "to_pid", json_integer(edge->to_pid));
	return o;
}

static json_t *make_cycle(struct writer *w, uint32_t cycle)
{
	const struct wp_dump *dump = w->dump;
	json_t *a = json_array();

	for (uint32_t i = dump->cycle_first[cycle];
	     i < dump->cycle_first[cycle + 1]; i++)
		append(w, a, number(dump->cycle_edges[i]));
	return a;
}

static json_t *make_root(struct writer *w, const struct wp_dump_thread *thread)
{
	json_t *o = json_object();

	set(w, o, "tid", json_integer(thread->tid));
	set(w, o, "waiters", number(thread->waiters));
	return o;
}

/* TIME_NS as RFC 3339 has it, to the millisecond. */
static json_t *make_time(int64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	unsigned int ms = (unsigned int)(time_ns / 1000000 % 1000);
	char text[64], all[96];
	struct tm tm;

	if (time_ns < 0 || !gmtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		return json_null();
	snprintf(all, sizeof(all), "%s.%03uZ", text, ms % 1000);
	return json_string_nocheck(all);
}

static json_t *make_head(struct writer *w)
{
	const struct wp_dump *dump = w->dump;
	json_t *o = json_object();

	set(w, o, "wallprof", string(w, WP_VERSION));
	set(w, o, "time", make_time(dump->time_ns));
	set(w, o, "interval_seconds",
	    !dump->interval_ns ? json_null() :
				 json_real((double)dump->interval_ns / 1e9));
	return o;
}

static void put_dump(struct writer *w)
{
	const struct wp_dump *dump = w->dump;

	wp_buf_char(&w->buf, '{');
	put(w, make_head(w), JSON_EMBED);
	wp_buf_str(&w->buf, ",\n\"processes\": [");
	for (uint32_t i = 0; i < dump->nprocesses && !w->rc; i++)
		put_process(w, i);
	wp_buf_str(&w->buf, "],\n\"edges\": [");
	for (uint32_t i = 0; i < dump->nedges && !w->rc; i++)
		put_element(w, i, make_edge(w, &dump->edges[i]));
	wp_buf_str(&w->buf, "],\n\"deadlocks\": [");
	for (uint32_t i = 0; i < dump->ncycles && !w->rc; i++)
		put_element(w, i, make_cycle(w, i));
	wp_buf_str(&w->buf, "],\n\"roots\": [");
	for (uint32_t i = 0; i < dump->nroots && !w->rc; i++)
		put_element(w, i, make_root(w, &dump->threads[dump->roots[i]]));
	wp_buf_str(&w->buf, "]}\n");
}

int wp_write_dump_json(const struct wp_dump *dump, FILE *out)
{
	struct writer w = { .dump = dump, .out = out };
	int rc;

	w.cache = calloc(CACHED_FRAMES, sizeof(*w.cache));
	if (!w.cache)
		return -ENOMEM;
	put_dump(&w);
	rc = w.buf.rc ? w.buf.rc : w.rc;
	if (!rc)
		rc = wp_buf_finish(&w.buf, out);
	wp_buf_clear(&w.buf);
	wp_buf_clear(&w.text);
	for (size_t i = 0; i < CACHED_FRAMES; i++)
		wp_buf_clear(&w.cache[i].text);
	free(w.cache);
	return rc;
}
