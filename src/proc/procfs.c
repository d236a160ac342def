/* SPDX-License-Identifier: Apache-2.0 */
/* procfs.c - see wallprof/procfs.h. */
#include "wallprof/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text_scan.h"
#include "wallprof/io.h"

/* The next number after blanks; "0x" is passed in base 16. */
static uint64_t read_number(struct wp_text_scan *c, unsigned int base)
{
	wp_text_scan_blanks(c);
	if (base == 16 && c->end - c->p > 2 && c->p[0] == '0' && c->p[1] == 'x')
		c->p += 2;
	return wp_text_scan_number(c, base);
}

static int64_t read_signed(struct wp_text_scan *c)
{
	bool negative = wp_text_scan_minus(c);
	uint64_t val = read_number(c, 10);

	/* Wraps rather than overflows: no number here is 2^63. */
	return (int64_t)(negative ? -val : val);
}

int wp_schedstat_parse(struct wp_schedstat *ret, const char *text, size_t len)
{
	struct wp_text_scan c = { text, text + len, false };
	struct wp_schedstat s;

	s.run_ns = read_number(&c, 10);
	s.wait_ns = read_number(&c, 10);
	s.slices = read_number(&c, 10);
	/* A number that ends where the text does may have been cut. */
	if (c.bad || c.p == c.end || !strchr("\n ", *c.p))
		return -EBADMSG;
	*ret = s;
	return 0;
}

int wp_proc_syscall_parse(struct wp_proc_syscall *ret, const char *text,
			  size_t len)
{
	static const char running[] = "running";
	struct wp_text_scan c = { text, text + len, false };
	struct wp_proc_syscall s = { 0 };

	if (len >= sizeof(running) - 1 &&
	    !memcmp(text, running, sizeof(running) - 1)) {
		s.running = true;
		*ret = s;
		return 0;
	}
	s.nr = (long)read_signed(&c);
	if (s.nr >= 0)
		for (int i = 0; i < 6; i++)
			s.args[i] = read_number(&c, 16);
	s.sp_avma = read_number(&c, 16);
	s.pc_avma = read_number(&c, 16);
	if (c.bad || c.p == c.end || !strchr("\n ", *c.p))
		return -EBADMSG;
	*ret = s;
	return 0;
}

/* proc(5): fields after the name are counted from 3, the state. */
enum {
	STAT_STATE = 3,
	STAT_PPID = 4,
	STAT_FLAGS = 9,
	STAT_NUM_THREADS = 20,
	STAT_STARTTIME = 22,
	STAT_PROCESSOR = 39,
};

/* A file "status" is read in parts of so many bytes. */
enum { STATUS_PART = 4096 };

/* include/linux/sched.h */
#define PF_KTHREAD 0x00200000
#define PF_WORKERS (0x00000010 | 0x00004000)
#define PF_DUMPS (0x00000008 | 0x00000200)

int wp_proc_stat_parse(struct wp_proc_stat *ret, const char *text, size_t len)
{
	const char *paren = memrchr(text, ')', len);
	struct wp_text_scan c = { paren ? paren + 1 : text, text + len, false };
	struct wp_proc_stat s = { 0 };

	if (!paren)
		return -EBADMSG;
	wp_text_scan_blanks(&c);
	if (c.p == c.end)
		return -EBADMSG;
	s.state_char = *c.p++;
	for (int field = STAT_PPID; field <= STAT_PROCESSOR; field++) {
		int64_t val = read_signed(&c);

		if (field == STAT_PPID)
			s.ppid = (int32_t)val;
		else if (field == STAT_FLAGS) {
			s.kernel_thread = (val & PF_KTHREAD) != 0;
			s.user_worker = (val & PF_WORKERS) != 0;
			s.dumps_core = (val & PF_DUMPS) != 0;
		} else if (field == STAT_NUM_THREADS)
			s.nthreads = val;
		else if (field == STAT_STARTTIME)
			s.start_time = (uint64_t)val;
		else if (field == STAT_PROCESSOR)
			s.cpu = (int32_t)val;
	}
	if (c.bad || c.p == c.end || !strchr("\n ", *c.p))
		return -EBADMSG;
	*ret = s;
	return 0;
}

int wp_proc_stat_read_at(struct wp_proc_stat *ret, int dirfd, const char *path)
{
	char text[1024];
	ssize_t n = wp_io_read_at(dirfd, path, text, sizeof(text));

	return n < 0 ? (int)n : wp_proc_stat_parse(ret, text, (size_t)n);
}

int wp_proc_stat_read(struct wp_proc_stat *ret, int32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return wp_proc_stat_read_at(ret, AT_FDCWD, path);
}

bool wp_proc_stat_has_ended(const struct wp_proc_stat *stat)
{
	return (stat->state_char == 'Z' || stat->state_char == 'X') &&
	       stat->nthreads <= 1;
}

/* The value of line "NAME:"; BAD when there is no such line or it has no end.
 */
static struct wp_text_scan find_line(const char *text, size_t len,
				     const char *name)
{
	const char *p = text, *end = text + len;
	size_t n = strlen(name);

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		if (!nl)
			break;
		if ((size_t)(nl - p) > n && !memcmp(p, name, n) && p[n] == ':')
			return (struct wp_text_scan){ p + n + 1, nl, false };
		p = nl + 1;
	}
	return (struct wp_text_scan){ end, end, true };
}

int wp_proc_status_parse(uint64_t *ret, const char *text, size_t len,
			 const char *name, int base)
{
	struct wp_text_scan c = find_line(text, len, name);
	uint64_t val = read_number(&c, (unsigned int)base);

	/* "Uid" has four numbers. */
	if (c.bad || (c.p != c.end && *c.p != '\t' && *c.p != ' '))
		return -EBADMSG;
	*ret = val;
	return 0;
}

/* Of TEXT[0..len), SIZE bytes at most, move the line that has no end yet to the front:
 * the number of its bytes.  Of one as long as all of TEXT a blank is left, which begins
 * no line that is asked for. */
static size_t keep_begun_line(char *text, size_t len, size_t size)
{
	const char *nl = memrchr(text, '\n', len);
	size_t begun = nl ? (size_t)(text + len - nl) - 1 : len;

	memmove(text, text + len - begun, begun);
	if (begun < size)
		return begun;
	text[0] = ' ';
	return 1;
}

/* Read file PATH of DIRFD, which may be long ("Groups" of 65,536 numbers), until line
 * "NAME:" is in TEXT[0..size): the number of bytes there, without that line if the file
 * has none, or -errno. */
static ssize_t read_to_line(int dirfd, const char *path, const char *name,
			    char *text, size_t size)
{
	int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t len = 0, off = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	for (;;) {
		n = wp_io_pread_at(fd, text + len, size - len, off);
		if (n <= 0)
			break;
		off += (size_t)n;
		len += (size_t)n;
		if (!find_line(text, len, name).bad)
			break;
		len = keep_begun_line(text, len, size);
	}
	close(fd);
	return n < 0 ? n : (ssize_t)len;
}

int wp_proc_status_read_at(uint64_t *ret, int dirfd, const char *path,
			   const char *name, int base)
{
	char text[STATUS_PART];
	ssize_t n = read_to_line(dirfd, path, name, text, sizeof(text));

	return n < 0 ? (int)n :
		       wp_proc_status_parse(ret, text, (size_t)n, name, base);
}

int wp_proc_status_read(uint64_t *ret, int32_t pid, const char *name, int base)
{
	char path[32] = "/proc/self/status";

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return wp_proc_status_read_at(ret, AT_FDCWD, path, name, base);
}

int wp_proc_status_has_word_at(int dirfd, const char *path, const char *name,
			       const char *word)
{
	char text[STATUS_PART];
	ssize_t n = read_to_line(dirfd, path, name, text, sizeof(text));
	struct wp_text_scan c = find_line(text, n < 0 ? 0 : (size_t)n, name);

	if (n < 0)
		return (int)n;
	for (;;) {
		const char *begin;

		wp_text_scan_blanks(&c);
		begin = c.p;
		while (c.p < c.end && *c.p != ' ' && *c.p != '\t')
			c.p++;
		if (begin == c.p)
			return 0;
		if ((size_t)(c.p - begin) == strlen(word) &&
		    !memcmp(begin, word, strlen(word)))
			return 1;
	}
}

/* fs/proc/base.c, show_timer: "signal: NUMBER/VALUE" comes before "notify: HOW/WHOM". */
uint64_t wp_proc_timers_parse(const char *text, size_t len)
{
	static const char signal[] = "signal:", notify[] = "notify: signal/";
	const char *p = text, *end = text + len, *nl;
	uint64_t signals = 0, number = 0;

	for (; p < end && (nl = memchr(p, '\n', (size_t)(end - p)));
	     p = nl + 1) {
		struct wp_text_scan c = { p, nl, false };
		size_t n = (size_t)(nl - p);

		if (n > strlen(signal) && !memcmp(p, signal, strlen(signal))) {
			c.p += strlen(signal);
			number = read_number(&c, 10);
			if (c.bad || number > 64)
				number = 0;
		} else if (n > strlen(notify) && number &&
			   !memcmp(p, notify, strlen(notify))) {
			signals |= UINT64_C(1) << (number - 1);
		}
	}
	return signals;
}

int wp_proc_nspid_parse(int32_t ret[WP_PID_LEVELS], const char *text,
			size_t len)
{
	struct wp_text_scan c = find_line(text, len, "NSpid");
	int32_t pids[WP_PID_LEVELS];
	int n = 0;

	while (!c.bad && c.p < c.end && n < WP_PID_LEVELS) {
		uint64_t val = read_number(&c, 10);

		if (val > INT32_MAX)
			c.bad = true;
		pids[n++] = (int32_t)val;
	}
	if (c.bad || c.p != c.end || !n)
		return -EBADMSG;
	memcpy(ret, pids, (size_t)n * sizeof(*pids));
	return n;
}

int wp_proc_nspid_read(int32_t ret[WP_PID_LEVELS], int dirfd, const char *path)
{
	char text[STATUS_PART];
	ssize_t len = read_to_line(dirfd, path, "NSpid", text, sizeof(text));

	return len < 0 ? (int)len : wp_proc_nspid_parse(ret, text, (size_t)len);
}

int wp_proc_is_in_first_pid_namespace(void)
{
	struct stat st;
	int rc = wp_io_stat_open(AT_FDCWD, "/proc/self/ns/pid", &st);

	return rc ? rc : st.st_ino == 0xeffffffc;
}

bool wp_proc_shares_namespace(int proc_fd, const char *name)
{
	char path[32], theirs[64], ours[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "ns/%s", name);
	n = readlinkat(proc_fd, path, theirs, sizeof(theirs));
	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	m = readlink(path, ours, sizeof(ours));
	return n > 0 && n == m && !memcmp(theirs, ours, (size_t)n);
}
