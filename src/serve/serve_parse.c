/* SPDX-License-Identifier: Apache-2.0 */
/* serve_parse.c - from a URL to what is asked for; hosts and tokens.
 *
 * Defaults, limits and words of errors are those of Go's net/http/pprof
 * (src/net/http/pprof/pprof.go), as far as it has them.
 */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "wallprof/serve.h"

static const char *const paths[] = {
#define X(name, path) path,
	WP_SERVE_ENDPOINTS(X)
#undef X
};

const char *wp_serve_path(enum wp_serve_endpoint endpoint)
{
	return paths[endpoint];
}

const char *wp_serve_name(enum wp_serve_endpoint endpoint)
{
	return strrchr(paths[endpoint], '/') + 1;
}

/* How an endpoint takes time. */
enum timing {
	/* It is of now. */
	NO_TIME,
	/* Of 30 seconds, or as many as are asked for. */
	ALWAYS,
	/* Of all, or of as many seconds as are asked for. */
	IF_ASKED,
	/* Of the last minute, or another. */
	PAST,
};

static enum timing timing_of(uint32_t endpoint)
{
	switch (endpoint) {
	case WP_SERVE_PROFILE:
	case WP_SERVE_WALL:
	case WP_SERVE_FGPROF:
		return ALWAYS;
	case WP_SERVE_BLOCK:
	case WP_SERVE_MUTEX:
	case WP_SERVE_THREADCREATE:
	case WP_SERVE_DELTA_BLOCK:
	case WP_SERVE_DELTA_MUTEX:
		return IF_ASKED;
	case WP_SERVE_TIMELINE:
		return PAST;
	default:
		return NO_TIME;
	}
}

WP_PRINTF(3, 4)
static unsigned int refuse(char text[WP_SERVE_TEXT_SIZE], unsigned int status,
			   const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, WP_SERVE_TEXT_SIZE, fmt, ap);
	va_end(ap);
	return status;
}

/* A whole number up to MAX, of digits alone. */
static bool read_number(uint32_t *ret, const char *text, uint32_t max)
{
	unsigned long value;

	if (!*text || strlen(text) > 9 || text[strspn(text, "0123456789")])
		return false;
	value = strtoul(text, NULL, 10);
	*ret = (uint32_t)value;
	return value <= max;
}

static unsigned int parse_seconds(struct wp_serve_ask *ask, const char *text,
				  char why[WP_SERVE_TEXT_SIZE])
{
	enum timing timing = timing_of(ask->endpoint);

	if (text && *text && timing == NO_TIME)
		return refuse(why, 400,
			      "\"seconds\" parameter is not supported for this "
			      "profile type");
	if (text && *text) {
		if (!read_number(&ask->seconds, text, WP_SERVE_SECONDS_MAX) ||
		    !ask->seconds)
			return refuse(why, 400,
				      "invalid value for \"seconds\" - must be "
				      "a positive integer, at most %d",
				      WP_SERVE_SECONDS_MAX);
		if (ask->debug)
			return refuse(why, 400,
				      "seconds and debug params are "
				      "incompatible");
	} else if (timing == ALWAYS) {
		ask->seconds = 30;
	} else if (timing == PAST) {
		ask->seconds = ask->ago < WP_SERVE_SECONDS_MAX ?
				       ask->ago :
				       WP_SERVE_SECONDS_MAX;
	}
	return 0;
}

static unsigned int parse_times(struct wp_serve_ask *ask,
				const struct wp_serve_query *query,
				char why[WP_SERVE_TEXT_SIZE])
{
	const char *debug = query->get(query->ctx, "debug");
	const char *ago = query->get(query->ctx, "ago");
	unsigned int status;

	if (debug && *debug && !read_number(&ask->debug, debug, 2))
		return refuse(
			why, 400,
			"invalid value for \"debug\" - must be 0, 1 or 2");
	if (timing_of(ask->endpoint) == PAST)
		ask->ago = 60;
	if (ago && *ago &&
	    (!read_number(&ask->ago, ago, WP_SERVE_AGO_MAX) || !ask->ago))
		return refuse(why, 400,
			      "invalid value for \"ago\" - must be a positive "
			      "number of seconds, at most %d",
			      WP_SERVE_AGO_MAX);
	status = parse_seconds(ask, query->get(query->ctx, "seconds"), why);
	if (!status && ask->ago && !ask->seconds)
		return refuse(why, 400,
			      "\"ago\" goes with \"seconds\", and with a "
			      "profile that takes it");
	return status;
}

static unsigned int parse_choice(struct wp_serve_ask *ask,
				 const struct wp_serve_query *query,
				 char why[WP_SERVE_TEXT_SIZE])
{
	const char *pid = query->get(query->ctx, "pid");
	const char *name = query->get(query->ctx, "name");
	const char *process = query->get(query->ctx, "process");
	uint32_t number = 0;

	if (pid && *pid && (!read_number(&number, pid, 1 << 22) || !number))
		return refuse(why, 400, "invalid value for \"pid\"");
	ask->pid = (int32_t)number;
	/* As the label of profiles and metrics is called. */
	if (!name)
		name = process;
	if (!name)
		return 0;
	if (strlen(name) >= sizeof(ask->name))
		return refuse(why, 400, "\"name\" is too long");
	memcpy(ask->name, name, strlen(name) + 1);
	return 0;
}

unsigned int wp_serve_parse(struct wp_serve_ask *ret,
			    const struct wp_serve_query *query,
			    char text[WP_SERVE_TEXT_SIZE])
{
	struct wp_serve_ask ask = { 0 };
	unsigned int status;

	while (ask.endpoint < WP_SERVE_PUSH &&
	       strcmp(query->path, paths[ask.endpoint]))
		ask.endpoint++;
	if (!strcmp(query->path, "/debug/pprof"))
		ask.endpoint = WP_SERVE_INDEX;
	if (ask.endpoint == WP_SERVE_PUSH)
		return refuse(text, 404,
			      !strncmp(query->path, "/debug/pprof/", 13) ?
				      "Unknown profile" :
				      "404 page not found");
	/* An answer moves the begin of the next one, and HEAD has none. */
	if (query->is_head && (ask.endpoint == WP_SERVE_DELTA_BLOCK ||
			       ask.endpoint == WP_SERVE_DELTA_MUTEX))
		return refuse(text, 405, "405 method not allowed: only GET is");
	status = parse_times(&ask, query, text);
	if (!status)
		status = parse_choice(&ask, query, text);
	if (!status)
		*ret = ask;
	return status;
}

/* HOST without its port, and without brackets, in RET. */
static bool without_port(char *ret, size_t size, const char *host)
{
	const char *end = host[0] == '[' ? strchr(host, ']') :
					   host + strcspn(host, ":");
	size_t skip = host[0] == '[', n;
	const char *port;

	if (!end)
		return false;
	n = (size_t)(end - host) - skip;
	port = end + skip;
	if (!n || n >= size ||
	    (*port && (*port != ':' || !port[1] ||
		       port[1 + strspn(port + 1, "0123456789")])))
		return false;
	memcpy(ret, host + skip, n);
	ret[n] = '\0';
	return true;
}

bool wp_serve_host_is_ours(const char *host, const char *listened)
{
	unsigned char address[16];
	char name[256];

	if (!host || !without_port(name, sizeof(name), host))
		return false;
	return !strcasecmp(name, "localhost") || !strcasecmp(name, listened) ||
	       inet_pton(AF_INET, name, address) == 1 ||
	       inet_pton(AF_INET6, name, address) == 1;
}

bool wp_serve_site_is_ours(const char *site, const char *mode, const char *dest)
{
	/* No browser, or one that asks for itself or its user. */
	if (!site || !strcmp(site, "none") || !strcmp(site, "same-origin"))
		return true;
	return mode && !strcmp(mode, "navigate") && dest &&
	       !strcmp(dest, "document");
}

bool wp_serve_token_is_right(const char *authorization, const char *token)
{
	static const char scheme[] = "Bearer ";
	size_t n = strlen(token);
	unsigned char differ = 0;
	const char *given;

	if (!authorization ||
	    strncasecmp(authorization, scheme, sizeof(scheme) - 1))
		return false;
	given = authorization + sizeof(scheme) - 1;
	if (strlen(given) != n)
		return false;
	for (size_t i = 0; i < n; i++)
		differ |= (unsigned char)(given[i] ^ token[i]);
	return !differ && n;
}
