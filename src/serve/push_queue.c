/* SPDX-License-Identifier: Apache-2.0 */
/* push_queue.c - see push_queue.h. */
#include "push_queue.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "wallprof/clock.h"

#define FIRST_PAUSE_NS WP_NS_PER_S
#define LAST_PAUSE_NS (60 * WP_NS_PER_S)

static void take_out(struct wp_push_queue *q, uint32_t i)
{
	close(q->v[i].file);
	q->stats.queued_bytes -= q->v[i].size;
	memmove(&q->v[i], &q->v[i + 1], (--q->n - i) * sizeof(*q->v));
	q->stats.queued = q->n;
}

void wp_push_queue_add(struct wp_push_queue *q, const struct wp_push_item *item,
		       int file, uint64_t size)
{
	uint32_t first = q->is_sending;

	while (q->n > first &&
	       (q->n == WP_PUSH_QUEUE_MAX ||
		q->stats.queued_bytes + size > WP_PUSH_QUEUE_BYTES)) {
		take_out(q, first);
		q->stats.dropped++;
	}
	if (q->stats.queued_bytes + size > WP_PUSH_QUEUE_BYTES) {
		close(file);
		q->stats.dropped++;
		return;
	}
	q->v[q->n++] = (struct wp_push_entry){ *item, file, size };
	q->stats.queued = q->n;
	q->stats.queued_bytes += size;
}

const struct wp_push_entry *wp_push_queue_begin(struct wp_push_queue *q,
						uint64_t now_ns)
{
	if (!q->n || q->is_sending || now_ns < q->next_ns)
		return NULL;
	q->is_sending = true;
	return &q->v[0];
}

static bool is_taken(long status)
{
	return status >= 200 && status < 300;
}

/* It may be taken later. */
static bool is_passing(long status)
{
	return !status || status == 408 || status == 429 || status >= 500;
}

/* Say in S why it was not taken: STATUS and WHY are those of wp_push_queue_end. */
static void say_why(struct wp_push_stats *s, long status, const char *why)
{
	const char *what =
		status == 401 || status == 403 ?
			" (it wants other credentials: --push-auth)" :
		status == 404 ? " (there is no /ingest at this URL)" :
		status == 407 ? " (a proxy wants credentials)" :
		status == 413 ? " (too large)" :
				"";

	if (!status)
		snprintf(s->why, sizeof(s->why), "%s", why);
	else if (status >= 300 && status < 400)
		snprintf(
			s->why, sizeof(s->why),
			"HTTP status %ld, it is at another address, which is not "
			"followed: %s",
			status, *why ? why : "it does not say which");
	else
		snprintf(s->why, sizeof(s->why), "HTTP status %ld%s", status,
			 what);
}

void wp_push_queue_end(struct wp_push_queue *q, long status, const char *why,
		       uint64_t now_ns)
{
	struct wp_push_stats *s = &q->stats;

	q->is_sending = false;
	s->why[0] = '\0';
	s->is_kept = is_passing(status);
	if (!is_taken(status))
		say_why(s, status, why);
	if (s->is_kept) {
		q->pause_ns = q->pause_ns ? 2 * q->pause_ns : FIRST_PAUSE_NS;
		if (q->pause_ns > LAST_PAUSE_NS)
			q->pause_ns = LAST_PAUSE_NS;
		q->next_ns = now_ns + q->pause_ns;
		s->retries++;
		return;
	}
	q->pause_ns = 0;
	if (is_taken(status)) {
		s->sent++;
		s->sent_bytes += q->v[0].size;
	} else {
		s->rejected++;
	}
	take_out(q, 0);
}
