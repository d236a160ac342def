/* SPDX-License-Identifier: Apache-2.0 */
/* file_servers.h - mapped files whose server may not answer.
 *
 * Layer: proc.
 *
 * To open a file on FUSE, NFS and their like is to ask a server; of one that is dead
 * the answer is waited for without end, and no signal ends it.  So a child asks
 * first, once for each device.
 */
#ifndef WP_FILE_SERVERS_H
#define WP_FILE_SERVERS_H

#include <stdbool.h>

#include "wallprof/index.h"
#include "wallprof/process.h"

/* A device. */
struct wp_file_server {
	/* makedev(3), as in struct wp_map. */
	uint64_t dev;
	/* Whether it answers is known: it was asked, or has no server. */
	bool was_asked;
	bool answers;
};

struct wp_file_servers {
	/* v[0..len), owned; by DEV. */
	struct wp_file_server *v;
	uint32_t len;
	uint32_t cap;
	struct wp_index index;
	/* Those that gave no answer. */
	unsigned int nsilent;
};

#define WP_FILE_SERVERS_INIT                                                   \
	{                                                                      \
		0                                                              \
	}

/* Add the devices that TEXT[0..len), of /proc/PID/mountinfo (proc(5)), has; those without
 * a file server answer.  Lines that do not parse have none.  0 or -ENOMEM. */
WP_MUST_CHECK
int wp_file_servers_parse(struct wp_file_servers *servers, const char *text,
			  size_t len);

/* The same of PROCESS's mounts; those that cannot be read are none. */
WP_MUST_CHECK
int wp_file_servers_read(struct wp_file_servers *servers,
			 const struct wp_process *process);

/* Is mount MOUNT (fdinfo's "mnt_id") one that TEXT[0..len), of /proc/PID/mountinfo,
 * has, and no file server's?  False also of one that has no path any more. */
bool wp_file_servers_lack(const char *text, size_t len, uint64_t mount);
/* The same of the mount of the open file that FDINFO, relative to PROC_FD, a /proc/PID,
 * tells of ("fdinfo/3"); what cannot be read is false. */
bool wp_file_servers_lack_fd(int proc_fd, const char *fdinfo);

/* May the file of MAP, one of MAPS of PROCESS, be opened?  False if its device has a
 * server, or is on no mount, and gave no answer in a third of a second the first time
 * that it was asked; or was not asked, as three others had given none. */
bool wp_file_servers_answer(struct wp_file_servers *servers,
			    const struct wp_process *process,
			    const struct wp_maps *maps,
			    const struct wp_map *map);

void wp_file_servers_clear(struct wp_file_servers *servers);

#endif
