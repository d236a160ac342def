/* SPDX-License-Identifier: Apache-2.0 */
/* task_scan.c - see wallprof/task_scan.h. */
#include "wallprof/task_scan.h"

#ifdef WP_HAVE_BPF
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "task_scan_priv.h"
#include "wallprof/kernel.h"
#include "wallprof/procfs.h"

enum {
	RECORDS_MIN = 1024,
	/* Linux has no more threads than that (PID_MAX_LIMIT). */
	RECORDS_MAX = 4 * 1024 * 1024,
	LOG_SIZE = 16384,
};

/* The compiled program: the Makefile gives its directory. */
__asm__(".section .rodata\n"
	".balign 8\n"
	"wp_task_scan_object:\n"
	".incbin \"task_scan.o\"\n"
	"wp_task_scan_object_end:\n"
	".previous\n");
extern const char wp_task_scan_object[] __attribute__((visibility("hidden")));
extern const char wp_task_scan_object_end[]
	__attribute__((visibility("hidden")));

/* The last line of the verifier's LOG, which says what is wrong. */
static const char *last_line(char *log)
{
	char *end = strstr(log, "\nprocessed "), *line;

	/* Below it stands a count of instructions. */
	if (end)
		*end = '\0';
	line = strrchr(log, '\n');
	return line ? line + 1 : log;
}

static int load_failed(int rc, char *log, struct wp_err *err)
{
	if (rc == -EPERM || rc == -EACCES)
		return wp_err_set(err, -EPERM,
				  "BPF is not permitted (it wants "
				  "root, or CAP_BPF and CAP_PERFMON)");
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return wp_err_set(err, -ENOTSUP,
				  "the kernel does not tell its "
				  "types (/sys/kernel/btf/vmlinux)");
	if (rc == -ENOMEM)
		return wp_err_set(err, rc, "no memory");
	/* The iterator that the program uses is new in 6.7. */
	return wp_err_set(err, -ENOTSUP,
			  "the kernel does not take the BPF program%s: %s%s%s",
			  wp_kernel_is_before(6, 7) ? " (it wants Linux 6.7)" :
						      "",
			  strerror(-rc), log[0] ? ": " : "", last_line(log));
}

int wp_task_scan_set_room(struct wp_task_scan *scan, const char *map, size_t n)
{
	struct bpf_map *m = bpf_object__find_map_by_name(scan->object, map);

	return m ? bpf_map__set_max_entries(m, (uint32_t)n) : -ENOENT;
}

/* Where it is not known whether the reader is nested, the program of a nested one works
 * too. */
static int set_is_nested(struct wp_task_scan *scan)
{
	struct bpf_map *map = bpf_object__find_map_by_name(scan->object,
							   ".rodata");
	const bool is_nested = wp_proc_is_in_first_pid_namespace() != 1;

	return map ? bpf_map__set_initial_value(map, &is_nested,
						sizeof(is_nested)) :
		     -ENOENT;
}

static int load(struct wp_task_scan *scan, struct wp_err *err)
{
	char *log = calloc(1, LOG_SIZE);
	struct bpf_object_open_opts options;
	int rc = -ENOMEM;

	libbpf_set_print(NULL);
	/* libbpf wants the padding at the end of its options zero too. */
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.object_name = "wallprof";
	options.kernel_log_buf = log;
	options.kernel_log_size = LOG_SIZE;
	if (log) {
		scan->object = bpf_object__open_mem(
			wp_task_scan_object,
			(size_t)(wp_task_scan_object_end - wp_task_scan_object),
			&options);
		rc = scan->object ? 0 : -errno;
	}
	if (!rc)
		rc = wp_task_scan_set_room(scan, "wp_records", scan->nrecords);
	if (!rc)
		rc = wp_task_moved_set_room(scan);
	if (!rc)
		rc = set_is_nested(scan);
	if (!rc)
		rc = bpf_object__load(scan->object);
	if (rc)
		rc = load_failed(rc, log ? log : (char[1]){ "" }, err);
	free(log);
	return rc;
}

static int map_records(struct wp_task_scan *scan, struct wp_err *err)
{
	struct bpf_map *map = bpf_object__find_map_by_name(scan->object,
							   "wp_records");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = (scan->nrecords * sizeof(*scan->records) + page - 1) /
		      page * page;
	void *p = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	if (p == MAP_FAILED)
		return wp_err_set(err, -errno,
				  "cannot map the records of the "
				  "BPF program: %s",
				  strerror(errno));
	scan->records = p;
	scan->mapped = size;
	scan->sorted = calloc(scan->nrecords, sizeof(*scan->sorted));
	scan->processes_fd = bpf_object__find_map_fd_by_name(scan->object,
							     "wp_processes");
	return scan->sorted ? 0 : wp_err_set(err, -ENOMEM, "no memory");
}

/* Have the program run once a scan, beginning with process PID. */
static int attach(struct wp_task_scan *scan, pid_t pid)
{
	int rc = wp_task_scan_attach(scan, "wp_scan_tasks", pid, &scan->link);

	if (!rc)
		scan->linked = pid;
	return rc;
}

int wp_task_scan_attach(struct wp_task_scan *scan, const char *name, pid_t pid,
			struct bpf_link **ret)
{
	struct bpf_program *program = bpf_object__find_program_by_name(
		scan->object, name);
	/* Of the thread with that number only: the program finds the rest. */
	struct bpf_link *link;
	union bpf_iter_link_info info;
	struct bpf_iter_attach_opts options;
	int rc;

	memset(&info, 0, sizeof(info));
	info.task.tid = (uint32_t)pid;
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.link_info = &info;
	options.link_info_len = sizeof(info);
	link = bpf_program__attach_iter(program, &options);
	rc = link ? 0 : -errno;
	if (rc)
		return rc;
	bpf_link__destroy(*ret);
	*ret = link;
	return 0;
}

static size_t room_for(size_t nthreads)
{
	size_t n = RECORDS_MIN;

	/* It may have twice as many soon. */
	while (n < 2 * nthreads && n < RECORDS_MAX)
		n *= 2;
	return n;
}

int wp_task_scan_open(struct wp_task_scan **ret, size_t nthreads,
		      struct wp_err *err)
{
	struct wp_task_scan *scan = calloc(1, sizeof(*scan));
	int rc;

	if (!scan)
		return wp_err_set(err, -ENOMEM, "no memory");
	scan->nrecords = room_for(nthreads);
	rc = load(scan, err);
	if (!rc)
		rc = map_records(scan, err);
	if (!rc)
		rc = wp_task_moved_open(scan, err);
	if (rc) {
		wp_task_scan_close(scan);
		return rc;
	}
	*ret = scan;
	return 0;
}

static int put_process(const struct wp_task_scan *scan, uint32_t pid)
{
	const uint8_t none = 0;

	return bpf_map_update_elem(scan->processes_fd, &pid, &none, BPF_ANY);
}

int wp_task_scan_add(struct wp_task_scan *scan, pid_t pid)
{
	int rc = put_process(scan, (uint32_t)pid);

	/* What its threads do is noted once the program has met it. */
	scan->moved.is_synced = false;
	if (rc || scan->linked == pid || scan->is_many)
		return rc;
	if (!scan->link)
		return attach(scan, pid);
	/* The reader is there for as long as it reads. */
	rc = put_process(scan, WP_TASK_SCAN_MANY);
	if (!rc)
		rc = attach(scan, getpid());
	scan->is_many = !rc;
	return rc;
}

void wp_task_scan_drop(struct wp_task_scan *scan, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	bpf_map_delete_elem(scan->processes_fd, &key);
}

static bool is_before(const struct wp_task_record *a,
		      const struct wp_task_record *b)
{
	return a->pid != b->pid ? a->pid < b->pid : a->tid < b->tid;
}

int wp_task_scan_compare(const void *a, const void *b)
{
	const struct wp_task_record *const *x = a, *const *y = b;

	return is_before(*y, *x) - is_before(*x, *y);
}

/* The kernel lists processes, and threads, in the order in which they began: that of
 * their numbers until those begin again from below.  The program wants its records
 * where it put them, and until some begin or end they stand in the same order. */
static void sort(struct wp_task_scan *scan, size_t n)
{
	const struct wp_task_record **v = scan->sorted;
	size_t i = 1;

	for (size_t k = 0; n != scan->nsorted && k < n; k++)
		v[k] = &scan->records[k];
	scan->nsorted = n;
	while (i < n && is_before(v[i - 1], v[i]))
		i++;
	if (i < n)
		qsort(v, n, sizeof(*v), wp_task_scan_compare);
}

int wp_task_scan_run(const struct bpf_link *link, uint32_t *ret_n)
{
	int fd = bpf_iter_create(bpf_link__fd(link));
	uint32_t n = 0;
	ssize_t got;

	if (fd < 0)
		return fd;
	got = read(fd, &n, sizeof(n));
	if (got < 0)
		got = -errno;
	close(fd);
	if (got < 0)
		return (int)got;
	*ret_n = n;
	return 0;
}

int wp_task_scan_read(struct wp_task_scan *scan,
		      const struct wp_task_record *const **ret, size_t *ret_n)
{
	uint32_t n = 0;
	int rc = scan->link ? wp_task_scan_run(scan->link, &n) : 0;

	if (rc)
		return rc;
	scan->nfound = n;
	if (n > scan->nrecords)
		n = (uint32_t)scan->nrecords;
	sort(scan, n);
	wp_task_moved_sync(scan);
	*ret = scan->sorted;
	*ret_n = n;
	return 0;
}

size_t wp_task_scan_lacks_room(const struct wp_task_scan *scan)
{
	return scan->nfound > scan->nrecords && scan->nrecords < RECORDS_MAX ?
		       scan->nfound :
		       0;
}

void wp_task_scan_close(struct wp_task_scan *scan)
{
	if (!scan)
		return;
	bpf_link__destroy(scan->link);
	wp_task_moved_close(scan);
	if (scan->records)
		munmap((void *)scan->records, scan->mapped);
	bpf_object__close(scan->object);
	free((void *)scan->sorted);
	free(scan);
}
#else
#include <errno.h>

int wp_task_scan_open(struct wp_task_scan **ret, size_t nthreads,
		      struct wp_err *err)
{
	(void)ret;
	(void)nthreads;
	return wp_err_set(err, -ENOTSUP,
			  "built without BPF (clang and libbpf)");
}

int wp_task_scan_add(struct wp_task_scan *scan, pid_t pid)
{
	(void)scan;
	(void)pid;
	return -ENOTSUP;
}

void wp_task_scan_drop(struct wp_task_scan *scan, pid_t pid)
{
	(void)scan;
	(void)pid;
}

int wp_task_scan_read(struct wp_task_scan *scan,
		      const struct wp_task_record *const **ret, size_t *ret_n)
{
	(void)scan;
	(void)ret;
	(void)ret_n;
	return -ENOTSUP;
}

int wp_task_scan_note_switches(struct wp_task_scan *scan, bool on)
{
	(void)scan;
	(void)on;
	return -ENOTSUP;
}

int wp_task_scan_read_moved(struct wp_task_scan *scan,
			    const struct wp_task_record *const **ret,
			    size_t *ret_n, uint64_t *ret_switches)
{
	(void)scan;
	(void)ret;
	(void)ret_n;
	(void)ret_switches;
	return -ENOTSUP;
}

size_t wp_task_scan_lacks_room(const struct wp_task_scan *scan)
{
	(void)scan;
	return 0;
}

void wp_task_scan_close(struct wp_task_scan *scan)
{
	(void)scan;
}
#endif
