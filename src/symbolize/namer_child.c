/* SPDX-License-Identifier: Apache-2.0 */
/* namer_child.c - see namer.h: the child, in the sandbox.
 *
 * Runs after fork(2) without exec(2): it has the parent's memory and none of
 * the parent's rights.
 */
#include "namer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "namer_protocol.h"
#include "wallprof/packet.h"
#include "wallprof/sandbox.h"
#include "wallprof/clock.h"
#include "wallprof/io.h"

enum {
	/* Messages are sent when there are so many bytes, or after FLUSH_NS. */
	FLUSH_BYTES = 32768,
	CPU_MAX_S = 300,
};
#define FLUSH_NS (50 * WP_NS_PER_MS)
/* Address space beside what is reserved already. */
#define MEMORY_MAX (UINT64_C(2) << 30)

struct child {
	const struct wp_namer *namer;
	int sock;
	struct wp_protocol_buf unsent;
	struct wp_symbols *symbols;
	uint64_t flushed_ns;
};

static void flush(struct child *child)
{
	size_t at = 0;

	while (at < child->unsent.len) {
		struct iovec iov = { child->unsent.data + at,
				     child->unsent.len - at };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n = sendmsg(child->sock, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			_exit(1);
		at += n > 0 ? (size_t)n : 0;
	}
	child->unsent.len = 0;
	child->flushed_ns = wp_clock_ns();
}

/* Send the last message and exit. */
static void end(struct child *child, enum wp_protocol_end how, int error)
{
	if (wp_protocol_add_end(&child->unsent, how, error))
		_exit(1);
	flush(child);
	_exit(0);
}

static void check(struct child *child, int rc)
{
	if (rc < 0)
		end(child, WP_PROTOCOL_NO_MEMORY, 0);
}

/* Let the parent do wp_debug_open. */
static int request_debug(void *ctx, const struct wp_debug_query *query,
			 uint32_t *nth)
{
	struct child *child = ctx;
	struct wp_protocol_reply reply = { 0 };
	int fd = -1;

	check(child, wp_protocol_add_open(&child->unsent, query, *nth));
	flush(child);
	if (wp_packet_take(child->sock, &reply, sizeof(reply), true, &fd, 1) !=
	    sizeof(reply))
		_exit(1);
	*nth = reply.nth;
	return reply.found ? fd : -ENOENT;
}

/* The present address space, in which images have reserved what their files
 * need, and MEMORY_MAX. */
static uint64_t memory_bound(void)
{
	char text[128];

	if (wp_io_read_at(-1, "/proc/self/statm", text, sizeof(text)) <= 0)
		return MEMORY_MAX;
	return MEMORY_MAX +
	       strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int enter(struct child *child, pid_t parent)
{
	const struct wp_namer *namer = child->namer;
	struct wp_sandbox sandbox = {
		.keep = calloc((size_t)namer->nmodules + 2, sizeof(int)),
		.parent = parent,
		.memory = memory_bound(),
		.cpu_s = CPU_MAX_S,
	};

	if (!sandbox.keep)
		return -ENOMEM;
	sandbox.keep[sandbox.nkeep++] = child->sock;
	if (namer->perf_map_fd >= 0)
		sandbox.keep[sandbox.nkeep++] = namer->perf_map_fd;
	for (uint32_t i = 0; i < namer->nmodules; i++) {
		const struct wp_elf_image *image =
			namer->modules[i].module.image;

		if (image && image->fd >= 0)
			sandbox.keep[sandbox.nkeep++] = image->fd;
	}
	return wp_sandbox_enter(&sandbox);
}

static void start(struct child *child)
{
	const struct wp_namer *namer = child->namer;
	struct wp_symbol_options options = {
		.open_debug = request_debug,
		.ctx = child,
		.perf_map_fd = namer->perf_map_fd,
	};

	check(child, wp_symbols_new(&child->symbols, &options));
	for (uint32_t i = 0; i < namer->nmodules; i++)
		check(child,
		      wp_symbols_add(child->symbols, namer->modules[i].id,
				     &namer->modules[i].module));
	if (namer->perf_map_fd >= 0)
		close(namer->perf_map_fd);
}

static void name(struct child *child, const struct wp_namer_address *address,
		 bool last_of_module)
{
	const struct wp_symbol_line *lines;
	struct wp_symbol_has has;
	int n = wp_symbols_resolve(child->symbols, address->module,
				   address->avma, &lines);

	check(child, n);
	check(child,
	      wp_protocol_add_answer(&child->unsent, lines, (uint32_t)n));
	if (last_of_module) {
		has = wp_symbols_has(child->symbols, address->module);
		check(child, wp_protocol_add_has(&child->unsent,
						 address->module, &has));
	}
	/* The next module may crash this process. */
	if (last_of_module || child->unsent.len >= FLUSH_BYTES ||
	    wp_clock_ns() - child->flushed_ns >= FLUSH_NS)
		flush(child);
}

void wp_namer_child(const struct wp_namer *namer, uint32_t first, int sock,
		    pid_t parent)
{
	struct child child = { .namer = namer, .sock = sock };
	const struct wp_namer_address *v = namer->addresses;
	int rc = enter(&child, parent);

	if (rc)
		end(&child, WP_PROTOCOL_NO_SANDBOX, -rc);
	start(&child);
	for (uint32_t i = first; i < namer->naddresses; i++)
		name(&child, &v[i],
		     i + 1 == namer->naddresses ||
			     v[i].module != v[i + 1].module);
	end(&child, WP_PROTOCOL_DONE, 0);
	_exit(0);
}
