/* SPDX-License-Identifier: Apache-2.0 */
/* file_servers.c - see wallprof/file_servers.h. */
#include "wallprof/file_servers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text_scan.h"
#include "wallprof/clock.h"
#include "wallprof/hash.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

enum {
	MOUNTINFO_MAX = 8 << 20,
	ANSWER_MS = 333,
	/* Servers of one process that are waited for in vain; of the others then none
	 * is asked. */
	SILENT_MAX = 3,
};

/* Types of file systems that ask somebody else; beside these all that begin with
 * "fuse", but for fusectl. */
static const char *const served[] = {
	"nfs", "nfs4", "cifs",	 "smb3",   "9p",       "virtiofs", "ceph",
	"afs", "coda", "lustre", "beegfs", "orangefs", "gfs2",	   "ocfs2",
};

static bool is_served(const char *type, size_t len)
{
	if (len >= 4 && !strncmp(type, "fuse", 4))
		return len != 7 || strncmp(type, "fusectl", 7) != 0;
	for (size_t i = 0; i < sizeof(served) / sizeof(*served); i++)
		if (strlen(served[i]) == len && !strncmp(type, served[i], len))
			return true;
	return false;
}

/* Move the cursor behind the next blank. */
static void skip_word(struct wp_text_scan *c)
{
	const char *blank = memchr(c->p, ' ', (size_t)(c->end - c->p));

	c->bad |= !blank;
	c->p = blank ? blank + 1 : c->end;
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw": is it a
 * file server's?  *RET_ID: 36, *RET_DEV: 98:0. */
static bool parse_line(struct wp_text_scan *c, uint64_t *ret_id,
		       uint64_t *ret_dev)
{
	uint64_t major_nr, minor_nr;
	const char *type;

	*ret_id = wp_text_scan_number(c, 10);
	skip_word(c);
	skip_word(c);
	major_nr = wp_text_scan_number(c, 10);
	wp_text_scan_expect(c, ':');
	minor_nr = wp_text_scan_number(c, 10);
	for (int i = 0; i < 4; i++)
		skip_word(c);
	/* Any number of optional fields. */
	while (!c->bad && c->p < c->end && *c->p != '-')
		skip_word(c);
	skip_word(c);
	type = c->p;
	skip_word(c);
	*ret_dev = makedev((unsigned int)major_nr, (unsigned int)minor_nr);
	return !c->bad && is_served(type, (size_t)(c->p - 1 - type));
}

static struct wp_file_server *find(const struct wp_file_servers *servers,
				   uint64_t dev)
{
	uint32_t i = WP_INDEX_FIND(&servers->index, wp_hash_u64(dev), k,
				   servers->v[k].dev == dev);

	return i == WP_INDEX_NONE ? NULL : &servers->v[i];
}

/* Enter DEV, which is not there yet. */
static int add(struct wp_file_servers *servers, uint64_t dev, bool is_local)
{
	if (WP_VEC_ROOM(servers->v, servers->len, servers->cap, 1) ||
	    wp_index_add(&servers->index, wp_hash_u64(dev), servers->len))
		return -ENOMEM;
	servers->v[servers->len++] = (struct wp_file_server){
		.dev = dev, .was_asked = is_local, .answers = is_local
	};
	return 0;
}

int wp_file_servers_parse(struct wp_file_servers *servers, const char *text,
			  size_t len)
{
	const char *end = text + len;
	int rc = 0;

	for (const char *line = text; !rc && line < end;) {
		const char *eol = memchr(line, '\n', (size_t)(end - line));
		struct wp_text_scan c = { line, eol ? eol : end, false };
		uint64_t id, dev;
		bool is_local = !parse_line(&c, &id, &dev);

		if (!c.bad && !find(servers, dev))
			rc = add(servers, dev, is_local);
		line = eol ? eol + 1 : end;
	}
	return rc;
}

int wp_file_servers_read(struct wp_file_servers *servers,
			 const struct wp_process *process)
{
	struct wp_text text = WP_TEXT_INIT;
	int rc = wp_text_read(&text, process->proc_fd, "mountinfo",
			      MOUNTINFO_MAX);

	/* What is beyond that is not known to be local. */
	rc = !rc || rc == -EOVERFLOW ?
		     wp_file_servers_parse(servers, text.data, text.len) :
		     0;
	wp_text_clear(&text);
	return rc;
}

bool wp_file_servers_lack(const char *text, size_t len, uint64_t mount)
{
	const char *end = text + len;

	for (const char *line = text; line < end;) {
		const char *eol = memchr(line, '\n', (size_t)(end - line));
		struct wp_text_scan c = { line, eol ? eol : end, false };
		uint64_t id, dev;
		bool is_served = parse_line(&c, &id, &dev);

		if (!c.bad && id == mount)
			return !is_served;
		line = eol ? eol + 1 : end;
	}
	return false;
}

bool wp_file_servers_lack_fd(int proc_fd, const char *fdinfo)
{
	struct wp_text text = WP_TEXT_INIT;
	char info[4096];
	ssize_t n = wp_io_read_at(proc_fd, fdinfo, info, sizeof(info));
	uint64_t mount;
	bool lack = n > 0 &&
		    !wp_proc_status_parse(&mount, info, (size_t)n, "mnt_id",
					  10) &&
		    !wp_text_read(&text, proc_fd, "mountinfo", MOUNTINFO_MAX) &&
		    wp_file_servers_lack(text.data, text.len, mount);

	wp_text_clear(&text);
	return lack;
}

/* In a child: open and read MAP's file, which may take for ever. */
static void ask(const struct wp_process *process, const struct wp_maps *maps,
		const struct wp_map *map)
{
	int fd = wp_process_open_map(process, maps, map);
	char byte;

	/* What cannot be opened was answered. */
	if (fd >= 0)
		(void)!pread(fd, &byte, 1, 0);
	_exit(EXIT_SUCCESS);
}

/* Did the other end of PIPE, a child's, close in time? */
static bool wait_for_end(int pipe)
{
	struct pollfd fd = { pipe, POLLIN, 0 };
	uint64_t now = wp_clock_ns(), end_ns = now + ANSWER_MS * WP_NS_PER_MS;
	int n = 0;

	for (; !n && now < end_ns; now = wp_clock_ns()) {
		n = poll(&fd, 1,
			 (int)((end_ns - now + WP_NS_PER_MS) / WP_NS_PER_MS));
		n = n < 0 && errno == EINTR ? 0 : n;
	}
	return n > 0;
}

static bool answers(const struct wp_process *process,
		    const struct wp_maps *maps, const struct wp_map *map)
{
	int pipes[2];
	bool ended;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC))
		return false;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ask(process, maps, map);
	}
	close(pipes[1]);
	ended = pid > 0 && wait_for_end(pipes[0]);
	close(pipes[0]);
	if (pid > 0 && !ended)
		/* It ends, and is reaped by who waits for it, when the server
		 * does. */
		kill(pid, SIGKILL);
	if (ended)
		waitpid(pid, NULL, 0);
	return ended;
}

bool wp_file_servers_answer(struct wp_file_servers *servers,
			    const struct wp_process *process,
			    const struct wp_maps *maps,
			    const struct wp_map *map)
{
	struct wp_file_server *server = find(servers, map->dev);

	/* Of a mount that has no path any more, or of none. */
	if (!server && !add(servers, map->dev, false))
		server = find(servers, map->dev);
	if (!server)
		return false;
	if (!server->was_asked && servers->nsilent < SILENT_MAX) {
		server->answers = answers(process, maps, map);
		servers->nsilent += !server->answers;
	}
	server->was_asked = true;
	return server->answers;
}

void wp_file_servers_clear(struct wp_file_servers *servers)
{
	free(servers->v);
	wp_index_clear(&servers->index);
	*servers = (struct wp_file_servers)WP_FILE_SERVERS_INIT;
}
