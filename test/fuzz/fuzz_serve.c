/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_serve.c - what a client says: path, parameters, Host, Authorization; one line
 * each.
 *
 * Layer: serve.
 */
#include "wallprof/serve.h"
#include "fuzz.h"

/* The line after the first N of TEXT, cut off; "": there is none. */
static char *line(char *text, unsigned int n)
{
	char *end;

	while (n-- && (text = strchr(text, '\n')))
		text++;
	if (!text)
		return NULL;
	end = strchr(text, '\n');
	return end ? strndup(text, (size_t)(end - text)) : strdup(text);
}

/* Parameters stand in lines of their own, from the fourth on, in this order. */
static const char *get(void *ctx, const char *key)
{
	static const char *const keys[] = { "debug", "ago", "seconds", "pid",
					    "name" };
	char **lines = ctx;

	for (unsigned int i = 0; i < 5; i++)
		if (!strcmp(key, keys[i]))
			return lines[3 + i];
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[WP_SERVE_TEXT_SIZE], *all = strndup((const char *)data, size);
	char *lines[8];
	struct wp_serve_query query = { .get = get, .ctx = lines };
	struct wp_serve_ask ask;
	unsigned int status;

	FUZZ_CHECK(all);
	for (unsigned int i = 0; i < 8; i++)
		lines[i] = line(all, i);
	query.path = lines[0];
	status = wp_serve_parse(&ask, &query, text);
	if (status) {
		FUZZ_CHECK(status == 400 || status == 404);
		FUZZ_CHECK(memchr(text, '\0', sizeof(text)));
	} else {
		FUZZ_CHECK(ask.endpoint < WP_NSERVE_ENDPOINTS);
		FUZZ_CHECK(ask.seconds <= WP_SERVE_SECONDS_MAX);
		FUZZ_CHECK(ask.ago <= WP_SERVE_AGO_MAX && ask.debug <= 2);
		FUZZ_CHECK(!ask.ago || ask.seconds);
		FUZZ_CHECK(ask.pid >= 0);
		FUZZ_CHECK(memchr(ask.name, '\0', sizeof(ask.name)));
	}
	(void)wp_serve_host_is_ours(lines[1], "box");
	FUZZ_CHECK(!wp_serve_token_is_right(lines[2], ""));
	for (unsigned int i = 0; i < 8; i++)
		free(lines[i]);
	free(all);
	return 0;
}
