/* SPDX-License-Identifier: Apache-2.0 */
/* push_http.c - profiles to the collector by libcurl: see wallprof/push.h. */
#include "wallprof/push.h"

#include <errno.h>

#ifndef WP_curl_SONAME

bool wp_push_is_there(void)
{
	return false;
}

int wp_push_run(const char *url, const char *auth, int sock, pid_t parent)
{
	(void)url;
	(void)auth;
	(void)sock;
	(void)parent;
	return -ENOSYS;
}

#else

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "curl_functions.h"
#include "push_confine.h"
#include "push_queue.h"
#include "serve_confine.h"
#include "wallprof/clock.h"
#include "wallprof/packet.h"

enum {
	CONNECT_MS = 5000,
	ANSWER_MS = 30000,
	/* Of an answer nothing is read, and no more than this. */
	ANSWER_MAX = 65536,
	/* What is left when SOCK is closed has so much time. */
	LAST_MS = 2000,
	TELL_MS = 500,
};

struct push {
	const char *url;
	const char *auth;
	int sock;
	CURLM *multi;
	/* The one under way; NULL: none. */
	CURL *easy;
	curl_mime *form;
	/* Read position in its file, and bytes that were answered. */
	off_t at;
	size_t answered;
	char host[64];
	struct wp_push_queue queue;
	uint64_t told_ns;
	/* When SOCK was closed; 0: it is open. */
	uint64_t closed_ns;
};

static struct wp_curl lib;

bool wp_push_is_there(void)
{
	return WP_LIBRARY_LOAD(WP_curl_SONAME, WP_CURL_FUNCTIONS, &lib);
}

/* In names and labels of series: what every collector takes. */
static void make_plain(char *s)
{
	for (; *s; s++)
		if (!strchr("abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-",
			    *s))
			*s = '_';
}

/* "URL/ingest?name=redis-server{host=a,pid=4711}&from=...&until=..."; owned by the
 * caller; NULL without memory. */
static char *make_url(const struct push *p, const struct wp_push_item *item)
{
	static const char path[] = "/ingest";
	const size_t tail = sizeof(path) - 1;
	char plain[WP_SERVE_NAME_SIZE], name[256], *escaped, *url = NULL;
	size_t n = strlen(p->url);
	bool has_path;

	while (n && p->url[n - 1] == '/')
		n--;
	has_path = n >= tail && !memcmp(p->url + n - tail, path, tail);
	snprintf(plain, sizeof(plain), "%s",
		 *item->name ? item->name : "unnamed");
	make_plain(plain);
	snprintf(name, sizeof(name), "%s{host=%s,pid=%d}", plain, p->host,
		 item->pid);
	escaped = lib.curl_easy_escape(p->easy, name, 0);
	if (escaped &&
	    asprintf(&url,
		     "%.*s%s?name=%s&from=%lld&until=%lld&spyName=wallprof",
		     (int)n, p->url, has_path ? "" : path, escaped,
		     (long long)item->from_s, (long long)item->until_s) < 0)
		url = NULL;
	lib.curl_free(escaped);
	return url;
}

static size_t read_file(char *buffer, size_t size, size_t n, void *ctx)
{
	struct push *p = ctx;
	ssize_t got = pread(p->queue.v[0].file, buffer, size * n, p->at);

	if (got < 0)
		return CURL_READFUNC_ABORT;
	p->at += got;
	return (size_t)got;
}

static int seek_file(void *ctx, curl_off_t offset, int origin)
{
	struct push *p = ctx;

	if (origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	p->at = offset;
	return CURL_SEEKFUNC_OK;
}

static size_t skip_answer(char *data, size_t size, size_t n, void *ctx)
{
	struct push *p = ctx;

	(void)data;
	p->answered += size * n;
	return p->answered <= ANSWER_MAX ? size * n : 0;
}

static bool fill_form(struct push *p, const struct wp_push_entry *entry)
{
	curl_mimepart *part;

	p->form = lib.curl_mime_init(p->easy);
	part = p->form ? lib.curl_mime_addpart(p->form) : NULL;
	return part && !lib.curl_mime_name(part, "profile") &&
	       !lib.curl_mime_filename(part, "profile.pb.gz") &&
	       !lib.curl_mime_type(part, "application/octet-stream") &&
	       !lib.curl_mime_data_cb(part, (curl_off_t)entry->size, read_file,
				      seek_file, NULL, p);
}

static void end_transfer(struct push *p, long status, const char *why)
{
	if (p->easy) {
		lib.curl_multi_remove_handle(p->multi, p->easy);
		lib.curl_easy_cleanup(p->easy);
	}
	lib.curl_mime_free(p->form);
	p->easy = NULL;
	p->form = NULL;
	wp_push_queue_end(&p->queue, status, why, wp_clock_ns());
}

/* libcurl sends it to the host of the URL only. */
static void set_auth(const struct push *p)
{
	bool is_basic = strchr(p->auth, ':');

	if (!*p->auth)
		return;
	lib.curl_easy_setopt(p->easy, CURLOPT_HTTPAUTH,
			     is_basic ? CURLAUTH_BASIC : CURLAUTH_BEARER);
	lib.curl_easy_setopt(
		p->easy, is_basic ? CURLOPT_USERPWD : CURLOPT_XOAUTH2_BEARER,
		p->auth);
}

static void begin_transfer(struct push *p, const struct wp_push_entry *entry)
{
	char *url = NULL;

	p->at = 0;
	p->answered = 0;
	p->easy = lib.curl_easy_init();
	if (p->easy)
		url = make_url(p, &entry->item);
	if (!url || !fill_form(p, entry)) {
		free(url);
		end_transfer(p, 0, "no memory");
		return;
	}
	lib.curl_easy_setopt(p->easy, CURLOPT_URL, url);
	lib.curl_easy_setopt(p->easy, CURLOPT_MIMEPOST, p->form);
	set_auth(p);
	lib.curl_easy_setopt(p->easy, CURLOPT_PROTOCOLS_STR, "http,https");
	lib.curl_easy_setopt(p->easy, CURLOPT_NOSIGNAL, 1L);
	lib.curl_easy_setopt(p->easy, CURLOPT_CONNECTTIMEOUT_MS,
			     (long)CONNECT_MS);
	lib.curl_easy_setopt(p->easy, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS);
	lib.curl_easy_setopt(p->easy, CURLOPT_USERAGENT,
			     "wallprof/" WP_VERSION);
	lib.curl_easy_setopt(p->easy, CURLOPT_WRITEFUNCTION, skip_answer);
	lib.curl_easy_setopt(p->easy, CURLOPT_WRITEDATA, p);
	free(url);
	if (lib.curl_multi_add_handle(p->multi, p->easy))
		end_transfer(p, 0, "no memory");
}

static void take_answer(struct push *p, CURLcode rc)
{
	char why[96], *to = NULL;
	long status = 0;

	lib.curl_easy_getinfo(p->easy, CURLINFO_RESPONSE_CODE, &status);
	lib.curl_easy_getinfo(p->easy, CURLINFO_REDIRECT_URL, &to);
	/* Of an answer that skip_answer ended the status has come, and holds. */
	if (status && rc == CURLE_WRITE_ERROR)
		rc = CURLE_OK;
	snprintf(why, sizeof(why), "%s",
		 rc ? lib.curl_easy_strerror(rc) :
		 to ? to :
		      "");
	end_transfer(p, rc ? 0 : status, why);
}

static void step_transfer(struct push *p)
{
	const struct wp_push_entry *entry;
	CURLMsg *message;
	int n;

	lib.curl_multi_perform(p->multi, &n);
	while ((message = lib.curl_multi_info_read(p->multi, &n)))
		take_answer(p, message->data.result);
	entry = wp_push_queue_begin(&p->queue, wp_clock_ns());
	if (entry)
		begin_transfer(p, entry);
}

static void take_items(struct push *p)
{
	struct wp_push_item item = { .pid = 0 };
	struct stat st;
	ssize_t n;
	int file;

	while (!p->closed_ns &&
	       (n = wp_packet_take(p->sock, &item, sizeof(item), false, &file,
				   1)) != -EAGAIN) {
		item.name[sizeof(item.name) - 1] = '\0';
		if (n == sizeof(item) && file >= 0 && !fstat(file, &st))
			wp_push_queue_add(&p->queue, &item, file,
					  (uint64_t)st.st_size);
		else if (file >= 0)
			close(file);
		if (n > 0)
			continue;
		p->closed_ns = wp_clock_ns();
		/* What waits has one more try. */
		p->queue.next_ns = 0;
	}
}

static void tell(struct push *p)
{
	const struct wp_push_stats *s = &p->queue.stats;

	p->told_ns = wp_clock_ns();
	/* One that is not taken is followed by another. */
	(void)!wp_packet_send(p->sock, s, sizeof(*s), NULL, 0);
}

static int loop(struct push *p)
{
	for (;;) {
		struct curl_waitfd fd = { .fd = p->sock,
					  .events = CURL_WAIT_POLLIN };
		bool is_over = p->closed_ns &&
			       (!p->queue.n || wp_clock_ns() - p->closed_ns >
						       LAST_MS * WP_NS_PER_MS);

		if (is_over) {
			tell(p);
			return 0;
		}
		lib.curl_multi_poll(p->multi, &fd, !p->closed_ns,
				    p->closed_ns ? 50 : TELL_MS, NULL);
		take_items(p);
		step_transfer(p);
		if (wp_clock_ns() - p->told_ns >= TELL_MS * WP_NS_PER_MS)
			tell(p);
	}
}

int wp_push_run(const char *url, const char *auth, int sock, pid_t parent)
{
	const struct wp_serve_http only = { .ask = sock };
	static struct push push;
	struct push *p = &push;
	int rc;

	prctl(PR_SET_NAME, "wp-push");
	wp_serve_close_others(&only);
	p->url = url;
	p->auth = auth;
	p->sock = sock;
	if (gethostname(p->host, sizeof(p->host) - 1))
		snprintf(p->host, sizeof(p->host), "unknown");
	make_plain(p->host);
	rc = wp_push_is_there() ? wp_push_confine(parent) : -ENOSYS;
	if (!rc && lib.curl_global_init(CURL_GLOBAL_DEFAULT))
		rc = -ENOMEM;
	if (!rc) {
		p->multi = lib.curl_multi_init();
		rc = p->multi ? 0 : -ENOMEM;
	}
	return rc ? rc : loop(p);
}

#endif
