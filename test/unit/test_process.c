/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  process.h and access.h on real processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/proc/process_priv.h"
#include "wallprof/access.h"
#include "wallprof/procfs.h"

/* The largest page of Linux for aarch64. */
enum { NOBODY = 65534, PAGE_MAX = 65536 };

/* Shared with the processes. */
static struct {
	volatile pid_t tid;
	volatile int go;
	char message[512];
} * shared;
static struct wp_process process;
static struct wp_err err;
static pid_t pid;
static char dir[64];

static int setup(void **state)
{
	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	process = (struct wp_process)WP_PROCESS_INIT;
	err = (struct wp_err)WP_ERR_INIT;
	pid = 0;
	snprintf(dir, sizeof(dir), "/tmp/test_process-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

static void end_process(void)
{
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	pid = 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	if (!getuid())
		assert_int_equal(seteuid(0), 0);
	end_process();
	wp_process_clear(&process);
	munmap(shared, sizeof(*shared));
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void start(void (*main)(void))
{
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		main();
		_exit(0);
	}
}

static void sleep_on(void)
{
	for (;;)
		pause();
}

static int open_it(pid_t which)
{
	return wp_process_open(&process, which, &err);
}

static void *sleep_in_thread(void *arg)
{
	shared->tid = gettid();
	sleep_on();
	return arg;
}

static void start_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, sleep_in_thread, NULL);
}

static void sleep_in_two(void)
{
	start_thread();
	sleep_on();
}

static void leave_a_thread(void)
{
	start_thread();
	while (!shared->tid)
		usleep(1000);
	pthread_exit(NULL);
}

static char state_of(pid_t which)
{
	struct wp_proc_stat stat;
	char path[32], text[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", which);
	n = wp_io_read_at(AT_FDCWD, path, text, sizeof(text));
	return n > 0 && !wp_proc_stat_parse(&stat, text, (size_t)n) ?
		       stat.state_char :
		       '?';
}

static void wait_for_state(char state)
{
	while (state_of(pid) != state)
		usleep(1000);
}

static void a_process_is_opened(void **state)
{
	struct wp_tids tids = WP_TIDS_INIT;
	char text[64];

	(void)state;
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	assert_int_equal(process.pid, pid);
	assert_int_equal(process.reader_tid, pid);
	assert_int_equal(process.uid, getuid());
	assert_true(process.start_time > 0);
	assert_true(process.pidfd >= 0 && process.proc_fd >= 0 &&
		    process.task_fd >= 0 && process.root_fd >= 0);
	assert_true(wp_process_is_alive(&process));
	assert_false(wp_process_is_32bit(&process));
	assert_int_equal(wp_process_count_threads(&process), 1);
	assert_int_equal(wp_process_list_threads(&process, &tids), 0);
	assert_int_equal(tids.len, 1);
	assert_int_equal(tids.v[0], pid);
	wp_tids_clear(&tids);
	assert_int_equal(wp_process_find_living(&process), pid);
	assert_int_equal(wp_process_check_program(&process, &err), 0);
	assert_int_equal(wp_process_recheck(&process, &err), 0);
	wp_process_exe(&process, text, sizeof(text));
	assert_non_null(strstr(text, "test_process"));
	wp_process_command_line(&process, text, sizeof(text));
	assert_non_null(strstr(text, "test_process"));
}

static void a_thread_stands_for_its_process(void **state)
{
	struct wp_tids tids = WP_TIDS_INIT;

	(void)state;
	start(sleep_in_two);
	while (!shared->tid)
		usleep(1000);
	assert_int_equal(open_it(shared->tid), 0);
	assert_int_equal(process.pid, pid);
	assert_int_equal(wp_process_count_threads(&process), 2);
	assert_int_equal(wp_process_list_threads(&process, &tids), 0);
	assert_int_equal(tids.len, 2);
	assert_int_equal(tids.v[0], pid);
	assert_int_equal(tids.v[1], shared->tid);
	wp_tids_clear(&tids);
}

static void who_is_not_there_is_said_to_be_gone(void **state)
{
	(void)state;
	start(sleep_on);
	kill(pid, SIGKILL);
	wait_for_state('Z');
	assert_int_equal(open_it(pid), -ESRCH);
	assert_non_null(strstr(err.msg, "is a zombie"));
	waitpid(pid, NULL, 0);
	err = (struct wp_err)WP_ERR_INIT;
	assert_int_equal(open_it(pid), -ESRCH);
	assert_non_null(strstr(err.msg, "no process with pid"));
	pid = 0;
	assert_int_equal(process.proc_fd, -1);
}

static void a_kernel_thread_is_none(void **state)
{
	struct wp_proc_stat stat;
	char text[1024];
	ssize_t n = wp_io_read_at(AT_FDCWD, "/proc/2/stat", text, sizeof(text));

	(void)state;
	if (n <= 0 || wp_proc_stat_parse(&stat, text, (size_t)n) ||
	    !stat.kernel_thread)
		return;
	assert_int_equal(open_it(2), -ENOTSUP);
	assert_non_null(strstr(err.msg, "is a kernel thread"));
}

static void others_go_on_when_the_first_thread_has_exited(void **state)
{
	struct wp_text text = WP_TEXT_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	static volatile int number = 77;
	int copy = 0, fd;
	char path[32];

	(void)state;
	start(leave_a_thread);
	wait_for_state('Z');
	assert_int_equal(open_it(pid), 0);
	assert_int_equal(process.pid, pid);
	assert_int_equal(process.reader_tid, shared->tid);
	assert_int_equal(wp_process_find_living(&process), shared->tid);
	assert_true(wp_process_has_living(&process, shared->tid));
	assert_false(wp_process_has_living(&process, pid));
	/* Of another process. */
	assert_false(wp_process_has_living(&process, getpid()));
	/* As where it exits while it is looked at. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wp_process_read(&process, (uintptr_t)&number,
						 &copy, sizeof(copy)),
				 sizeof(copy));
		assert_int_equal(copy, 77);
		assert_int_equal(wp_process_read_maps(&process, &text, &maps),
				 0);
		assert_true(maps.len > 3);
		fd = wp_process_open_maps(&process);
		assert_int_equal(read(fd, &copy, sizeof(copy)), sizeof(copy));
		close(fd);
		process.reader_tid = pid;
		close(process.proc_fd);
		snprintf(path, sizeof(path), "/proc/%d", pid);
		process.proc_fd = open(path, O_RDONLY | O_DIRECTORY);
	}
	wp_text_clear(&text);
	wp_maps_clear(&maps);
	assert_true(wp_process_is_alive(&process));
	/* As before Linux 5.3. */
	close(process.pidfd);
	process.pidfd = -1;
	assert_true(wp_process_is_alive(&process));
	assert_int_equal(wp_process_count_threads(&process), 2);
	kill(pid, SIGKILL);
	while (wp_process_find_living(&process))
		usleep(1000);
	assert_false(wp_process_is_alive(&process));
	waitpid(pid, NULL, 0);
	pid = 0;
	assert_false(wp_process_is_alive(&process));
	assert_int_equal(wp_process_read(&process, (uintptr_t)&number, &copy,
					 sizeof(copy)),
			 -ESRCH);
	assert_int_equal(wp_process_find_living(&process), 0);
	assert_false(wp_process_has_living(&process, shared->tid));
	assert_true(wp_process_open_maps(&process) < 0 ||
		    !wp_process_count_threads(&process));
}

static void memory_is_read_as_far_as_it_goes(void **state)
{
	static char buf[2 * PAGE_MAX];
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p;

	(void)state;
	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	memset(p, 'x', 2 * page);
	munmap(p + page, page);
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	assert_int_equal(wp_process_read(&process, (uintptr_t)p, buf, 10), 10);
	assert_memory_equal(buf, "xxxxxxxxxx", 10);
	assert_int_equal(wp_process_read(&process, (uintptr_t)p, buf, 2 * page),
			 page);
	assert_int_equal(
		wp_process_read(&process, (uintptr_t)p + page, buf, 10), 0);
	munmap(p, page);
	assert_int_equal(wp_process_error(ENOENT), -ESRCH);
	assert_int_equal(wp_process_error(ESRCH), -ESRCH);
	assert_int_equal(wp_process_error(EACCES), -EPERM);
	assert_int_equal(wp_process_error(EPERM), -EPERM);
	assert_int_equal(wp_process_error(EMFILE), -EMFILE);
}

/* More ranges than one call takes; every third cannot be read, or not to its
 * end. */
/* Whatever error came before. */
static void a_read_of_nothing_reads_nothing(void **state)
{
	char byte = 'x';

	(void)state;
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	errno = EIO;
	assert_int_equal(wp_process_read(&process, (uintptr_t)&byte, &byte, 0),
			 0);
	assert_int_equal(byte, 'x');
}

static void ranges_are_read_each_by_itself(void **state)
{
	enum { N = 1000, LEN = 16 };
	static struct wp_process_range v[N];
	static char bufs[N][LEN];
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p;

	(void)state;
	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	memset(p, 'x', page);
	munmap(p + page, page);
	for (size_t i = 0; i < N; i++) {
		size_t at = i % 3 == 1 ? page : i % 3 == 2 ? i : page - LEN / 2;

		v[i] = (struct wp_process_range){ .avma = (uintptr_t)p + at,
						  .buf = bufs[i],
						  .len = LEN };
	}
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	assert_int_equal(wp_process_read_ranges(&process, v, N), 0);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(v[i].is_read, i % 3 == 2);
		if (i % 3 == 2)
			assert_memory_equal(bufs[i], "xxxxxxxxxxxxxxxx", LEN);
	}
	assert_int_equal(wp_process_read_ranges(&process, v, 0), 0);
	munmap(p, page);
	end_process();
	assert_int_equal(wp_process_read_ranges(&process, v, N), -ESRCH);
}

static int count_descriptors(void)
{
	struct stat st;
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += !fstat(fd, &st);
	return n;
}

/* As many as one call takes; the one behind them is another's. */
static void ranges_behind_the_last_are_left_alone(void **state)
{
	enum { N = 256 };
	static struct wp_process_range v[N + 1];
	static const char from[] = "x";
	static char bufs[N];

	(void)state;
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	for (int canary = 0; canary <= 1; canary++) {
		for (size_t i = 0; i < N; i++)
			v[i] = (struct wp_process_range){
				.avma = (uintptr_t)from,
				.buf = bufs + i,
				.len = 1
			};
		v[N] = (struct wp_process_range){ .is_read = canary };
		assert_int_equal(wp_process_read_ranges(&process, v, N), 0);
		for (size_t i = 0; i < N; i++)
			assert_true(v[i].is_read && bufs[i] == 'x');
		assert_int_equal(v[N].is_read, canary);
	}
}

static void memory_of_others_is_refused(void **state)
{
	pid_t reader;
	int status;
	char c;

	(void)state;
	if (geteuid())
		skip();
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	reader = fork();
	if (reader == 0)
		_exit(!setresuid(NOBODY, NOBODY, NOBODY) &&
				      wp_process_read(&process, (uintptr_t)dir,
						      &c, 1) == -EPERM ?
			      0 :
			      1);
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
}

/* An opened process takes descriptors, and gives them back; 0 is one. */
static void descriptors_are_given_back(void **state)
{
	int in = dup(STDIN_FILENO), n = count_descriptors(), fd;
	struct wp_process gone = WP_PROCESS_INIT;

	(void)state;
	start(sleep_on);
	assert_int_equal(wp_process_open(&gone, INT32_MAX, &err), -ESRCH);
	close(STDIN_FILENO);
	assert_int_equal(open_it(pid), 0);
	assert_int_equal(process.proc_fd, STDIN_FILENO);
	assert_true(wp_process_is_alive(&process));
	wp_process_clear(&process);
	assert_int_equal(process.proc_fd, -1);
	assert_int_equal(count_descriptors(), n - 1);
	assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(open_it(pid), 0);
	close(STDIN_FILENO);
	fd = wp_process_open_maps(&process);
	assert_int_equal(fd, STDIN_FILENO);
	assert_int_equal(count_descriptors(), n + 4);
	assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
	wp_process_clear(&process);
	assert_int_equal(count_descriptors(), n);
	close(in);
}

/* A new file of a page, NAME in DIR. */
static int make_page(const char *name)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, 4096), 0);
	return fd;
}

/* The map of PROCESS that holds P. */
static const struct wp_map *map_of(const struct wp_maps *maps, const void *p)
{
	for (size_t i = 0; i < maps->len; i++)
		if (maps->v[i].start_avma <= (uintptr_t)p &&
		    (uintptr_t)p < maps->v[i].end_avma)
			return &maps->v[i];
	return NULL;
}

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	return st.st_ino;
}

/* A library that is loaded where another was before. */
static void the_next_file_at_an_address_is_not_that_of_the_map(void **state)
{
	struct wp_text text = WP_TEXT_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	int before = make_page("before"), after = make_page("after");
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, before, 0);
	char path[96];

	(void)state;
	assert_int_equal(open_it(getpid()), 0);
	assert_int_equal(wp_process_read_maps(&process, &text, &maps), 0);
	assert_ptr_equal(
		mmap(p, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, after, 0), p);
	assert_int_equal(inode_of(wp_process_open_map(&process, &maps,
						      map_of(&maps, p))),
			 inode_of(dup(before)));
	snprintf(path, sizeof(path), "%s/before", dir);
	unlink(path);
	assert_int_equal(wp_process_open_map(&process, &maps, map_of(&maps, p)),
			 -ENOENT);
	snprintf(path, sizeof(path), "%s/after", dir);
	unlink(path);
	close(before);
	close(after);
	munmap(p, 4096);
	wp_text_clear(&text);
	wp_maps_clear(&maps);
}

static void mapped_files_are_opened(void **state)
{
	struct wp_text text = WP_TEXT_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	struct wp_map map;
	const struct wp_map *own, *gone;
	char path[96];
	int fd, hidden, in;
	void *p, *zero;

	(void)state;
	snprintf(path, sizeof(path), "%s/gone", dir);
	fd = make_page("gone");
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	zero = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE,
		    open("/dev/zero", O_RDWR), 0);
	unlink(path);
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	assert_int_equal(wp_process_read_maps(&process, &text, &maps), 0);
	own = map_of(&maps, (void *)(uintptr_t)mapped_files_are_opened);
	gone = map_of(&maps, p);
	if (!own || !gone)
		fail();
	assert_int_equal(inode_of(wp_process_open_map(&process, &maps, own)),
			 own->ino);
	assert_int_equal(inode_of(wp_process_open_map(&process, &maps, gone)),
			 inode_of(fd));
	assert_true(wp_process_open_map(&process, &maps, map_of(&maps, zero)) <
		    0);
	assert_true(wp_process_open_map(&process, &maps, map_of(&maps, &text)) <
		    0);
	/* Where map_files may not be read: by path, if it is that file. */
	hidden = process.proc_fd;
	process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(inode_of(wp_process_open_map(&process, &maps, own)),
			 own->ino);
	assert_true(wp_process_open_map(&process, &maps, gone) < 0);
	map = *own;
	map.ino++;
	assert_int_equal(wp_process_open_map(&process, &maps, &map), -ENOENT);
	map = *own;
	map.deleted = true;
	assert_int_equal(wp_process_open_map(&process, &maps, &map), -ENOENT);
	/* The root may have any descriptor, and so may what is found. */
	in = dup(STDIN_FILENO);
	close(STDIN_FILENO);
	map.deleted = false;
	map.ino++;
	assert_int_equal(wp_process_open_map(&process, &maps, &map), -ENOENT);
	fd = process.root_fd;
	process.root_fd = dup(fd);
	assert_int_equal(process.root_fd, STDIN_FILENO);
	assert_int_equal(inode_of(wp_process_open_map(&process, &maps, own)),
			 own->ino);
	process.root_fd = fd;
	assert_int_equal(dup2(in, STDIN_FILENO), STDIN_FILENO);
	close(in);
	close(process.root_fd);
	process.root_fd = -1;
	assert_int_equal(wp_process_open_map(&process, &maps, own), -ENOENT);
	close(hidden);
	munmap(p, 4096);
	munmap(zero, 4096);
	wp_text_clear(&text);
	wp_maps_clear(&maps);
}

static void a_region_is_checked_by_one_call(void **state)
{
	struct wp_text text = WP_TEXT_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	const struct wp_map *own;
	uint64_t pc = (uintptr_t)a_region_is_checked_by_one_call;
	int fd;

	(void)state;
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	assert_int_equal(wp_process_read_maps(&process, &text, &maps), 0);
	own = map_of(&maps, (void *)(uintptr_t)pc);
	assert_non_null(own);
	fd = wp_process_open_maps(&process);
	assert_true(fd >= 0);
	if (wp_process_check_code(fd, pc) != -ENOTSUP) {
		assert_int_equal(wp_process_check_code(fd, pc), 1);
		assert_int_equal(wp_process_check_code(fd, (uintptr_t)&text),
				 0);
		assert_int_equal(wp_process_check_map(fd, pc, own->start_avma,
						      own->off, own->ino),
				 1);
		assert_int_equal(wp_process_check_map(fd, pc,
						      own->start_avma + 1,
						      own->off, own->ino),
				 0);
		assert_int_equal(wp_process_check_map(fd, pc, own->start_avma,
						      own->off + 1, own->ino),
				 0);
		assert_int_equal(wp_process_check_map(fd, pc, own->start_avma,
						      own->off, own->ino + 1),
				 0);
		assert_int_equal(wp_process_check_map(fd, 4096, 4096, 0, 0), 0);
		end_process();
		assert_int_equal(wp_process_check_code(fd, pc), 1);
	}
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	assert_int_equal(wp_process_check_code(fd, pc), -ENOTSUP);
	assert_int_equal(wp_process_check_map(fd, pc, 0, 0, 0), -ENOTSUP);
	close(fd);
	wp_text_clear(&text);
	wp_maps_clear(&maps);
}

static void put(const char *name, const char *text, size_t n)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fwrite(text, 1, n, f);
	fclose(f);
}

static void assert_command_line(size_t size, const char *want)
{
	char buf[64];

	wp_process_command_line(&process, buf, size);
	assert_string_equal(buf, want);
}

static void command_lines_are_one_line(void **state)
{
	(void)state;
	process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	put("comm", "name\n", 5);
	assert_command_line(64, "[name]");
	put("cmdline", "a\0b c\0\0 ", 8);
	assert_command_line(64, "a b c");
	put("cmdline", "a\0b", 3);
	assert_command_line(64, "a b");
	assert_command_line(3, "a");
	put("cmdline", "x", 1);
	assert_command_line(64, "x");
	put("cmdline", "\0\0", 2);
	assert_command_line(64, "[name]");
	assert_command_line(4, "[n]");
	put("comm", "name", 4);
	assert_command_line(64, "[name]");
	put("comm", "", 0);
	assert_command_line(64, "[]");
	assert_command_line(3, "[]");
}

static void assert_exe(const char *target, const char *want)
{
	char path[96], buf[32];

	snprintf(path, sizeof(path), "%s/exe", dir);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
	wp_process_exe(&process, buf, sizeof(buf));
	assert_string_equal(buf, want);
}

static void a_program_is_known_by_its_path(void **state)
{
	char buf[32];

	(void)state;
	process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	wp_process_exe(&process, buf, sizeof(buf));
	assert_string_equal(buf, "");
	assert_exe("/bin/a", "/bin/a");
	assert_exe("/bin/a (deleted)", "/bin/a");
	assert_exe("a (deleted)", "a");
	assert_exe(" (deleted)", " (deleted)");
	assert_exe("0123456789012345678901234567890123456789",
		   "0123456789012345678901234567890");
}

static void put_auxv(uint32_t first, uint32_t second)
{
	const uint32_t words[4] = { first, second, 0x1000 };

	put("auxv", (const char *)words, sizeof(words));
}

#if defined(__x86_64__)
enum { KNOWS_I386 = 1 };
#else
enum { KNOWS_I386 = 0 };
#endif

/* As the kernel writes them: AT_SYSINFO_EHDR (33), AT_SYSINFO (32), AT_HWCAP (16). */
static void the_class_of_a_program_is_in_its_auxiliary_vector(void **state)
{
	(void)state;
	process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_false(wp_process_is_32bit(&process));
	put_auxv(33, 0);
	assert_false(wp_process_is_32bit(&process));
	put_auxv(32, 0xf7fc1570);
	assert_int_equal(wp_process_is_32bit(&process), KNOWS_I386);
	put_auxv(16, 0xbfebfbff);
	assert_int_equal(wp_process_is_32bit(&process), KNOWS_I386);
	/* x32's. */
	put_auxv(33, 1);
	assert_false(wp_process_is_32bit(&process));
	put_auxv(16, 0);
	assert_false(wp_process_is_32bit(&process));
	put("auxv", "", 0);
	assert_false(wp_process_is_32bit(&process));
	put("auxv", "\41\0\0\0\1\0\0", 7);
	assert_false(wp_process_is_32bit(&process));
}

static void names_are_the_kernel_s(void **state)
{
	char buf[16];

	(void)state;
	process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	wp_process_name(&process, buf, sizeof(buf));
	assert_string_equal(buf, "");
	put("comm", "name\n", 5);
	wp_process_name(&process, buf, sizeof(buf));
	assert_string_equal(buf, "name");
	put("comm", "n", 1);
	wp_process_name(&process, buf, sizeof(buf));
	assert_string_equal(buf, "n");
	put("comm", "\n", 1);
	wp_process_name(&process, buf, sizeof(buf));
	assert_string_equal(buf, "");
	assert_command_line(64, "[]");
	put("comm", "n", 1);
	assert_command_line(64, "[n]");
	put("comm", "", 0);
	wp_process_name(&process, buf, sizeof(buf));
	assert_string_equal(buf, "");
}

static void a_program_is_checked_when_it_is_opened(void **state)
{
	(void)state;
	process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	process.pid = 77;
	put("maps", "", 0);
	put("syscall", "", 0);
	process.uid = 12345;
	assert_int_equal(wp_process_check_program(&process, &err), 0);
	assert_int_equal(process.uid, geteuid());
	put_auxv(33, 1);
	assert_int_equal(wp_process_check_program(&process, &err), -ENOTSUP);
	assert_non_null(strstr(err.msg, "process 77 runs a 32-bit program"));
	put_auxv(32, 0xf7fc1570);
	assert_int_equal(wp_process_check_program(&process, &err),
			 KNOWS_I386 ? 0 : -ENOTSUP);
	put_auxv(33, 0);
	if (geteuid())
		return;
	assert_int_equal(fchmod(process.proc_fd, 0755), 0);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "syscall" : "maps";

		assert_int_equal(fchmodat(process.proc_fd, name, 0600, 0), 0);
		assert_int_equal(seteuid(NOBODY), 0);
		err = (struct wp_err)WP_ERR_INIT;
		assert_int_equal(wp_process_check_program(&process, &err),
				 -EPERM);
		assert_int_equal(seteuid(0), 0);
		assert_non_null(strstr(err.msg, "not allowed to look at"));
		assert_int_equal(fchmodat(process.proc_fd, name, 0644, 0), 0);
	}
}

static void make_directory(const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

/* PROCESS's map has one region, which begins at START. */
static void assert_map_begins_at(uint64_t start)
{
	int n = count_descriptors(), fd = wp_process_open_maps(&process);
	struct wp_text text = WP_TEXT_INIT;
	struct wp_maps maps = WP_MAPS_INIT;
	char line[16] = "", want[16];

	assert_int_equal(wp_process_read_maps(&process, &text, &maps), 0);
	assert_int_equal(maps.len, 1);
	assert_int_equal(maps.v[0].start_avma, start);
	assert_false(maps.is_cut);
	assert_true(fd >= 0 && read(fd, line, 5) == 5);
	snprintf(want, sizeof(want), "%lx-", (unsigned long)start);
	assert_string_equal(line, want);
	close(fd);
	assert_int_equal(count_descriptors(), n);
	wp_text_clear(&text);
	wp_maps_clear(&maps);
}

/* The leader's map is empty once it has exited, or it is not there. */
static void a_living_thread_tells_the_map(void **state)
{
	static const char
		own[] = "1000-9000 r--p 0 0:0 0\n",
		other[] = "2000-9000 r--p 0 0:0 0\n",
		living[] = "5 (x) S 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 "
			   "0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n",
		dead[] = "4 (x) Z 1 5 5 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 "
			 "0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0\n";
	struct wp_text text = WP_TEXT_INIT;
	struct wp_maps maps = WP_MAPS_INIT;

	(void)state;
	make_directory("task");
	make_directory("task/4");
	make_directory("task/5");
	process.proc_fd = open(dir, O_RDONLY | O_DIRECTORY);
	process.task_fd = openat(process.proc_fd, "task", O_RDONLY);
	put("task/4/stat", dead, strlen(dead));
	put("task/4/maps", "x", 1);
	put("task/5/stat", dead, strlen(dead));
	assert_int_equal(wp_process_find_living(&process), 0);
	assert_int_equal(wp_process_open_maps(&process), -1);
	assert_int_equal(wp_process_read_maps(&process, &text, &maps), -ESRCH);
	put("task/5/stat", living, strlen(living));
	assert_int_equal(wp_process_find_living(&process), 5);
	put("task/5/maps", other, strlen(other));
	assert_map_begins_at(0x2000);
	put("maps", "", 0);
	assert_map_begins_at(0x2000);
	put("maps", own, strlen(own));
	assert_map_begins_at(0x1000);
	put("maps", "nonsense", 8);
	assert_int_equal(wp_process_read_maps(&process, &text, &maps),
			 -EBADMSG);
	wp_text_clear(&text);
	wp_maps_clear(&maps);
}

/* What another process, PREPARED, is told of why it may not look at WHOM. */
static const char *reason(void (*prepare)(void), pid_t whom)
{
	pid_t asker = fork();

	assert_true(asker >= 0);
	if (asker == 0) {
		prepare();
		wp_access_denied(whom, &err);
		snprintf(shared->message, sizeof(shared->message), "%s",
			 err.msg);
		_exit(err.code == -EPERM ? 0 : 1);
	}
	assert_int_equal(waitpid(asker, NULL, 0), asker);
	return shared->message;
}

static void stay(void)
{
}

static void become_nobody(void)
{
	assert_int_equal(setresuid(NOBODY, NOBODY, NOBODY), 0);
}

static void sleep_as_nobody(void)
{
	become_nobody();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	shared->go = 1;
	sleep_on();
}

static void the_reason_of_a_refusal_is_found(void **state)
{
	pid_t tracer;

	(void)state;
	if (geteuid() || wp_access_yama_scope())
		return;
	start(sleep_on);
	assert_non_null(strstr(reason(become_nobody, pid), "belongs to root"));
	assert_non_null(strstr(reason(stay, pid), "user namespace"));
	assert_int_equal(wp_access_tracer(pid), 0);
	assert_int_equal(wp_access_tracer(-1), 0);
	tracer = fork();
	if (tracer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_SEIZE, pid, 0, 0);
		sleep_on();
	}
	while (wp_access_tracer(pid) != tracer)
		usleep(1000);
	assert_non_null(strstr(reason(stay, pid), "is traced by process"));
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	end_process();
	start(sleep_as_nobody);
	while (!shared->go)
		usleep(1000);
	/* Its own, but not dumpable since it has changed its user. */
	assert_non_null(strstr(reason(become_nobody, pid),
			       "does not let itself be looked at"));
}

static void *trace_parent(void *arg)
{
	(void)arg;
	ptrace(PTRACE_SEIZE, getppid(), 0, 0);
	sleep_on();
	return NULL;
}

/* A debugger, whose second thread traces the process that forked it. */
static void trace_from_a_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, trace_parent, NULL);
	sleep_on();
}

static void who_traces_wallprof_is_not_opened(void **state)
{
	(void)state;
	if (geteuid())
		return;
	start(trace_from_a_thread);
	while (!wp_access_tracer(getpid()))
		usleep(1000);
	assert_int_equal(open_it(pid), -EDEADLK);
	assert_non_null(strstr(err.msg, "traces wallprof"));
	assert_true(wp_access_traces_us(pid));
	assert_false(wp_access_traces_us(getpid()));
	end_process();
	start(sleep_on);
	assert_false(wp_access_traces_us(pid));
	assert_int_equal(open_it(pid), 0);
}

static void compute(void)
{
	for (;;)
		;
}

static void the_time_of_a_process_is_its_own(void **state)
{
	uint64_t ns;

	(void)state;
	start(compute);
	assert_int_equal(open_it(pid), 0);
	while ((ns = wp_process_cpu_ns(&process)) < 1000000)
		usleep(1000);
	while (wp_process_cpu_ns(&process) < ns + 1000000)
		usleep(1000);
	end_process();
	assert_int_equal(wp_process_cpu_ns(&process), 0);
}

static void threads_are_sorted_by_number(void **state)
{
	pid_t v[] = { 7, 3, 2147483647, 3, 1 };
	struct wp_tids tids = { .v = v, .len = 5 }, none = WP_TIDS_INIT;

	(void)state;
	wp_tids_sort(&tids);
	for (int i = 1; i < 5; i++)
		assert_true(v[i - 1] <= v[i]);
	assert_int_equal(v[0], 1);
	assert_int_equal(v[4], 2147483647);
	wp_tids_sort(&none);
}

static void who_is_there_is_known_whoever_it_belongs_to(void **state)
{
	(void)state;
	assert_true(wp_access_exists(getpid()));
	assert_false(wp_access_exists(0));
	assert_false(wp_access_exists(-1));
	start(sleep_on);
	assert_true(wp_access_exists(pid));
	if (!geteuid()) {
		assert_int_equal(seteuid(NOBODY), 0);
		assert_true(wp_access_exists(1));
		assert_int_equal(seteuid(0), 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(wp_access_exists(pid));
	pid = 0;
}

static volatile sig_atomic_t nsignals;

static void count_signal(int nr)
{
	(void)nr;
	nsignals++;
}

/* As Ctrl-C may: an interrupted poll(2) of a living process once ended its recording. */
static void a_signal_does_not_make_a_process_look_dead(void **state)
{
	const struct sigaction count = { .sa_handler = count_signal };
	const struct itimerval often = { { 0, 50 }, { 0, 50 } };
	const struct itimerval never = { { 0, 0 }, { 0, 0 } };
	struct sigaction before;
	long nlooks = 0, nalive = 0;

	(void)state;
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	assert_int_equal(sigaction(SIGALRM, &count, &before), 0);
	nsignals = 0;
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (; nsignals < 2000; nlooks++)
		nalive += wp_process_is_alive(&process);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	assert_int_equal(nalive, nlooks);
}

/* No more descriptors than there are now. */
static void want_for_descriptors(const struct rlimit *limit)
{
	int fd = dup(STDOUT_FILENO);
	const struct rlimit none = { (rlim_t)fd, limit->rlim_max };

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

static void want_of_descriptors_is_no_end(void **state)
{
	struct wp_process second = WP_PROCESS_INIT;
	struct rlimit limit;

	(void)state;
	start(sleep_on);
	assert_int_equal(open_it(pid), 0);
	close(process.pidfd);
	process.pidfd = -1;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	want_for_descriptors(&limit);
	assert_true(wp_process_is_alive(&process));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int free = 0; free < 3; free++) {
		int fds[2], rc;

		for (int i = 0; i < free; i++)
			assert_true((fds[i] = dup(STDOUT_FILENO)) >= 0);
		want_for_descriptors(&limit);
		for (int i = 0; i < free; i++)
			close(fds[i]);
		rc = wp_process_open(&second, pid, &err);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		assert_int_equal(rc, -EMFILE);
		assert_null(strstr(err.msg, "gone"));
		err = (struct wp_err)WP_ERR_INIT;
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_is_opened),
		TEST(a_thread_stands_for_its_process),
		TEST(who_is_not_there_is_said_to_be_gone),
		TEST(a_kernel_thread_is_none),
		TEST(others_go_on_when_the_first_thread_has_exited),
		TEST(memory_is_read_as_far_as_it_goes),
		TEST(a_read_of_nothing_reads_nothing),
		TEST(ranges_are_read_each_by_itself),
		TEST(ranges_behind_the_last_are_left_alone),
		TEST(memory_of_others_is_refused),
		TEST(descriptors_are_given_back),
		TEST(names_are_the_kernel_s),
		TEST(a_program_is_checked_when_it_is_opened),
		TEST(a_living_thread_tells_the_map),
		TEST(the_next_file_at_an_address_is_not_that_of_the_map),
		TEST(mapped_files_are_opened),
		TEST(a_region_is_checked_by_one_call),
		TEST(command_lines_are_one_line),
		TEST(a_program_is_known_by_its_path),
		TEST(the_class_of_a_program_is_in_its_auxiliary_vector),
		TEST(the_reason_of_a_refusal_is_found),
		TEST(who_traces_wallprof_is_not_opened),
		TEST(the_time_of_a_process_is_its_own),
		TEST(threads_are_sorted_by_number),
		TEST(who_is_there_is_known_whoever_it_belongs_to),
		TEST(want_of_descriptors_is_no_end),
		TEST(a_signal_does_not_make_a_process_look_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
