/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_namer.c - what the process that names addresses may send.
 *
 * The input is all of it, as the parent receives it, before the end.
 *
 * Layer: symbolize.
 */
#include <errno.h>
#include <sys/socket.h>

#include "../../src/symbolize/namer_session.h"
#include "fuzz.h"

enum { NADDRESSES = 12 };

static const struct wp_namer_module modules[] = {
	{ 1, { 0x1000, 0x2000, 0, 0, "/one/lib.so", NULL, false }, false },
	{ 2, { 0x2000, 0x3000, 0, 0, "", NULL, false }, false },
	{ 7, { 0x5000, 0x6000, 0, 0, "seven", NULL, false }, false },
};

struct got {
	uint32_t nanswers;
	/* So that what the strings hold is read. */
	size_t bytes;
};

static int take_answer(void *ctx, uint32_t index,
		       const struct wp_symbol_line *lines, uint32_t n)
{
	struct got *got = ctx;

	FUZZ_CHECK(index == got->nanswers++ && index < NADDRESSES);
	FUZZ_CHECK(n && n <= WP_PROTOCOL_LEVELS_MAX);
	for (uint32_t i = 0; i < n; i++) {
		FUZZ_CHECK(*lines[i].function && *lines[i].system_name);
		got->bytes += strlen(lines[i].function) +
			      strlen(lines[i].system_name) +
			      strlen(lines[i].file);
	}
	return 0;
}

static void take_has(void *ctx, uint32_t module,
		     const struct wp_symbol_has *has)
{
	(void)ctx;
	(void)has;
	FUZZ_CHECK(module == 1 || module == 2 || module == 7);
}

/* Message by message, from memory that ends where the input does. */
static void parse(const uint8_t *data, size_t size)
{
	struct wp_protocol_message *m = malloc(sizeof(*m));
	size_t at = 0;
	ssize_t n = m ? 1 : 0;

	while (n > 0) {
		n = wp_protocol_parse(m, data + at, size - at);
		FUZZ_CHECK(n >= -EBADMSG && n <= (ssize_t)(size - at));
		at += n > 0 ? (size_t)n : 0;
	}
	free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const volatile sig_atomic_t interrupts;
	static const char *const roots[] = { "/nonexistent" };
	struct wp_namer_address addresses[NADDRESSES] = { { 0, 0 } };
	struct got got = { 0, 0 };
	const struct wp_namer namer = {
		.modules = modules,
		.nmodules = 3,
		.addresses = addresses,
		.naddresses = NADDRESSES,
		.roots = roots,
		.nroots = 1,
		.perf_map_fd = -1,
		.interrupts = &interrupts,
		.answer = take_answer,
		.has = take_has,
		.ctx = &got,
	};
	struct wp_namer_session *s = calloc(1, sizeof(*s));
	int socks[2];

	parse(data, size);
	/* More would have to be sent while it is received. */
	if (s && size <= 65536 &&
	    !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks)) {
		s->namer = &namer;
		s->pid = -1;
		s->sock = socks[0];
		s->end_ns = UINT64_MAX;
		FUZZ_CHECK(send(socks[1], data, size, 0) == (ssize_t)size);
		close(socks[1]);
		wp_namer_session_run(s);
		FUZZ_CHECK(s->how != WP_NAMER_RUNNING && !s->rc);
		FUZZ_CHECK(s->how != WP_NAMER_DONE ||
			   got.nanswers == NADDRESSES);
		close(socks[0]);
		free(s->buf);
	}
	free(s);
	return 0;
}
