/* SPDX-License-Identifier: Apache-2.0 */
/* task_moved.c - threads that were put on a CPU or left it: see wp_task_scan_read_moved of
 * wallprof/task_scan.h. */
#include "wallprof/task_scan.h"

#ifdef WP_HAVE_BPF
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "task_scan_priv.h"
#include "wallprof/io.h"

/* Bits of an entry of a map. */
enum { BITS = 64 };

/* Tids are below this, unless it is raised later. */
static size_t read_pid_max(void)
{
	char text[32];
	ssize_t n = wp_io_read_at(-1, "/proc/sys/kernel/pid_max", text,
				  sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? strtoul(text, NULL, 10) : 4 * 1024 * 1024;
}

int wp_task_moved_set_room(struct wp_task_scan *scan)
{
	size_t words = (read_pid_max() + BITS) / BITS;
	int cpus = libbpf_num_possible_cpus();
	int rc = cpus < 0 ? cpus :
			    wp_task_scan_set_room(scan, "wp_wanted", words);

	if (!rc)
		rc = wp_task_scan_set_room(scan, "wp_listed", words);
	return rc ? rc : wp_task_scan_set_room(scan, "wp_lists", (size_t)cpus);
}

int wp_task_moved_open(struct wp_task_scan *scan, struct wp_err *err)
{
	struct wp_task_moves *m = &scan->moved;
	void *p = mmap(
		NULL, sizeof(*m->shared), PROT_READ | PROT_WRITE, MAP_SHARED,
		bpf_object__find_map_fd_by_name(scan->object, "wp_moved"), 0);

	if (p == MAP_FAILED)
		return wp_err_set(err, -errno,
				  "cannot map what the BPF program finds: %s",
				  strerror(errno));
	m->shared = p;
	m->shared->ncpus = (uint32_t)libbpf_num_possible_cpus();
	m->sorted = calloc(WP_TASK_MOVED, sizeof(*m->sorted));
	return m->sorted ? 0 : wp_err_set(err, -ENOMEM, "no memory");
}

static void stop_noting(struct wp_task_moves *m)
{
	if (m->is_noting)
		close(m->switches_fd);
	m->is_noting = false;
}

void wp_task_moved_close(struct wp_task_scan *scan)
{
	struct wp_task_moves *m = &scan->moved;

	stop_noting(m);
	bpf_link__destroy(m->reader);
	if (m->shared)
		munmap(m->shared, sizeof(*m->shared));
	free((void *)m->sorted);
	*m = (struct wp_task_moves){ 0 };
}

int wp_task_scan_note_switches(struct wp_task_scan *scan, bool on)
{
	struct wp_task_moves *m = &scan->moved;
	struct bpf_program *program = bpf_object__find_program_by_name(
		scan->object, "wp_note_switch");
	int rc = 0;

	if (!on)
		stop_noting(m);
	if (!on || m->is_noting)
		return 0;
	m->is_synced = false;
	if (!m->reader)
		rc = wp_task_scan_attach(scan, "wp_scan_moved", gettid(),
					 &m->reader);
	if (rc)
		return rc;
	/* A link of libbpf's would be memory taken, and given back, between ticks. */
	m->switches_fd = bpf_raw_tracepoint_open(NULL,
						 bpf_program__fd(program));
	if (m->switches_fd < 0)
		return -errno;
	m->is_noting = true;
	return 0;
}

/* Ask for the threads of V[0..N) that were ready to run: they may be put on a CPU no
 * more.  False: they are too many. */
static bool ask_for_ready(struct wp_task_moves *m,
			  const struct wp_task_record *const *v, size_t n)
{
	uint32_t nasked = 0;

	for (size_t i = 0; i < n; i++) {
		if (!v[i]->is_ready)
			continue;
		if (nasked == WP_TASK_MOVED)
			return false;
		m->shared->asked[nasked++] = v[i]->outer_tid;
	}
	m->shared->nasked = nasked;
	return true;
}

void wp_task_moved_sync(struct wp_task_scan *scan)
{
	struct wp_task_moves *m = &scan->moved;

	m->is_synced = m->is_noting &&
		       ask_for_ready(m, scan->sorted, scan->nsorted);
}

/* Sort what was read: of a thread that was read twice the second reading stays.  Returns
 * how many there are. */
static size_t sort(struct wp_task_moves *m)
{
	const struct wp_task_record **v = m->sorted;
	size_t n = 0, found = m->shared->n;

	for (size_t i = 0; i < found; i++)
		v[i] = &m->shared->records[i];
	qsort(v, found, sizeof(*v), wp_task_scan_compare);
	for (size_t i = 0; i < found; i++) {
		if (!n || wp_task_scan_compare(&v[n - 1], &v[i]))
			v[n++] = v[i];
		else if (v[n - 1] < v[i])
			v[n - 1] = v[i];
	}
	return n;
}

int wp_task_scan_read_moved(struct wp_task_scan *scan,
			    const struct wp_task_record *const **ret,
			    size_t *ret_n, uint64_t *ret_switches)
{
	struct wp_task_moves *m = &scan->moved;
	uint32_t found;
	size_t n;
	int rc;

	if (!m->is_noting || !m->is_synced)
		return -EAGAIN;
	m->is_synced = false;
	rc = wp_task_scan_run(m->reader, &found);
	if (rc)
		return rc;
	*ret_switches = m->shared->switches;
	if (m->shared->unknown)
		return -EAGAIN;
	n = sort(m);
	if (!ask_for_ready(m, m->sorted, n))
		return -EAGAIN;
	m->is_synced = true;
	*ret = m->sorted;
	*ret_n = n;
	return 0;
}
#endif
