/* SPDX-License-Identifier: Apache-2.0 */
/* task_scan.c - see wallprof/task_scan.h. */
#include "wallprof/task_scan.h"

#ifdef WP_HAVE_BPF
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

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

struct wp_task_scan {
	pid_t pid;
	/* Owned: the program and its map. */
	struct bpf_object *object;
	struct bpf_link *link;
	/* The map's memory: records[0..nrecords), MAPPED bytes. */
	const struct wp_task_record *records;
	size_t nrecords;
	size_t mapped;
	/* Copy of the records sorted by tid, of the same size; NULL until records
	 * came in another order; owned. */
	struct wp_task_record *sorted;
};

static int no_print(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

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

/* The iterator that the program uses is new in 6.7. */
static bool is_old_kernel(void)
{
	struct utsname name;
	unsigned int major, minor;

	return !uname(&name) &&
	       sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
	       (major < 6 || (major == 6 && minor < 7));
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
	return wp_err_set(err, -ENOTSUP,
			  "the kernel does not take the BPF program%s: %s%s%s",
			  is_old_kernel() ? " (it wants Linux 6.7)" : "",
			  strerror(-rc), log[0] ? ": " : "", last_line(log));
}

static int load(struct wp_task_scan *scan, struct wp_err *err)
{
	char *log = calloc(1, LOG_SIZE);
	struct bpf_object_open_opts options;
	libbpf_print_fn_t old = libbpf_set_print(no_print);
	struct bpf_map *map;
	int rc = -ENOMEM;

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
	map = rc ? NULL : bpf_object__next_map(scan->object, NULL);
	if (!rc)
		rc = map ? bpf_map__set_max_entries(map,
						    (uint32_t)scan->nrecords) :
			   -ENOENT;
	if (!rc)
		rc = bpf_object__load(scan->object);
	if (rc)
		rc = load_failed(rc, log ? log : (char[1]){ "" }, err);
	libbpf_set_print(old);
	free(log);
	return rc;
}

static int map_records(struct wp_task_scan *scan, struct wp_err *err)
{
	struct bpf_map *map = bpf_object__next_map(scan->object, NULL);
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
	return 0;
}

static int attach(struct wp_task_scan *scan, struct wp_err *err)
{
	struct bpf_program *program = bpf_object__next_program(scan->object,
							       NULL);
	/* Of the thread with that number only: the program finds the rest. */
	union bpf_iter_link_info info;
	struct bpf_iter_attach_opts options;
	libbpf_print_fn_t old = libbpf_set_print(no_print);
	int rc;

	memset(&info, 0, sizeof(info));
	info.task.tid = (uint32_t)scan->pid;
	memset(&options, 0, sizeof(options));
	options.sz = sizeof(options);
	options.link_info = &info;
	options.link_info_len = sizeof(info);
	scan->link = bpf_program__attach_iter(program, &options);
	rc = scan->link ? 0 : -errno;
	libbpf_set_print(old);
	if (rc)
		return wp_err_set(err, rc == -EPERM ? rc : -ENOTSUP,
				  "cannot attach the BPF program: %s",
				  strerror(-rc));
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

int wp_task_scan_open(struct wp_task_scan **ret, pid_t pid, size_t nthreads,
		      struct wp_err *err)
{
	struct wp_task_scan *scan = calloc(1, sizeof(*scan));
	int rc;

	if (!scan)
		return wp_err_set(err, -ENOMEM, "no memory");
	scan->pid = pid;
	scan->nrecords = room_for(nthreads);
	rc = load(scan, err);
	if (!rc)
		rc = map_records(scan, err);
	if (!rc)
		rc = attach(scan, err);
	if (rc) {
		wp_task_scan_close(scan);
		return rc;
	}
	*ret = scan;
	return 0;
}

static int compare_tids(const void *a, const void *b)
{
	const struct wp_task_record *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* The first that is below the one before it. */
static size_t ordered(const struct wp_task_record *v, size_t n)
{
	size_t i = 1;

	while (i < n && v[i - 1].tid < v[i].tid)
		i++;
	return i;
}

/* The kernel lists threads in the order in which they began: that of their
 * numbers until those begin again from below.  The program wants its records
 * where it put them. */
static void sort(struct wp_task_scan *scan, size_t n)
{
	const struct wp_task_record *v = scan->records;
	struct wp_task_record *to = scan->sorted;
	size_t first = ordered(v, n);

	memcpy(to, v + first, (n - first) * sizeof(*to));
	memcpy(to + n - first, v, first * sizeof(*to));
	if (ordered(to, n) < n)
		qsort(to, n, sizeof(*to), compare_tids);
}

/* Run the program: how many threads it found. */
static int run(const struct wp_task_scan *scan, uint32_t *ret_n)
{
	int fd = bpf_iter_create(bpf_link__fd(scan->link));
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

/* Room for more: a map's size cannot be changed, so all is made anew. */
static int grow(struct wp_task_scan *scan, size_t nthreads)
{
	struct wp_task_scan *wider, old = *scan;
	int rc = wp_task_scan_open(&wider, scan->pid, nthreads, NULL);

	if (rc)
		return rc;
	/* NOLINTNEXTLINE: no 0 comes from wp_err_set. */
	*scan = *wider;
	*wider = old;
	wp_task_scan_close(wider);
	return 0;
}

int wp_task_scan_read(struct wp_task_scan *scan,
		      const struct wp_task_record **ret, size_t *ret_n)
{
	uint32_t n;
	int rc = run(scan, &n);

	if (!rc && n > scan->nrecords && scan->nrecords < RECORDS_MAX) {
		rc = grow(scan, n);
		if (!rc)
			rc = run(scan, &n);
	}
	if (rc)
		return rc;
	if (n > scan->nrecords)
		n = (uint32_t)scan->nrecords;
	*ret = scan->records;
	*ret_n = n;
	if (ordered(scan->records, n) >= n)
		return 0;
	if (!scan->sorted)
		scan->sorted = reallocarray(NULL, scan->nrecords,
					    sizeof(*scan->sorted));
	if (!scan->sorted)
		return -ENOMEM;
	sort(scan, n);
	*ret = scan->sorted;
	return 0;
}

void wp_task_scan_close(struct wp_task_scan *scan)
{
	if (!scan)
		return;
	bpf_link__destroy(scan->link);
	if (scan->records)
		munmap((void *)scan->records, scan->mapped);
	bpf_object__close(scan->object);
	free(scan->sorted);
	free(scan);
}
#else
#include <errno.h>

int wp_task_scan_open(struct wp_task_scan **ret, pid_t pid, size_t nthreads,
		      struct wp_err *err)
{
	(void)ret;
	(void)pid;
	(void)nthreads;
	return wp_err_set(err, -ENOTSUP,
			  "built without BPF (clang and libbpf)");
}

int wp_task_scan_read(struct wp_task_scan *scan,
		      const struct wp_task_record **ret, size_t *ret_n)
{
	(void)scan;
	(void)ret;
	(void)ret_n;
	return -ENOTSUP;
}

void wp_task_scan_close(struct wp_task_scan *scan)
{
	(void)scan;
}
#endif
