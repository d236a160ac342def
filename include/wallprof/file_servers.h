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

#include "wallprof/process.h"

struct wp_file_server {
	/* makedev(3), as in struct wp_map. */
	uint64_t dev;
	bool was_asked;
	bool answers;
};

struct wp_file_servers {
	/* v[0..len), owned. */
	struct wp_file_server *v;
	size_t len;
	size_t cap;
};

#define WP_FILE_SERVERS_INIT                                                   \
	{                                                                      \
		0                                                              \
	}

/* Add the devices with a file server that TEXT[0..len), of /proc/PID/mountinfo
 * (proc(5)), has.  Lines that do not parse have none.  0 or -ENOMEM. */
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

/* May the file of MAP, one of MAPS of PROCESS, be opened?  False if its device is
 * one of SERVERS and gave no answer in a third of a second, the first time that it
 * was asked. */
bool wp_file_servers_answer(struct wp_file_servers *servers,
			    const struct wp_process *process,
			    const struct wp_maps *maps,
			    const struct wp_map *map);

void wp_file_servers_clear(struct wp_file_servers *servers);

#endif
