/* SPDX-License-Identifier: Apache-2.0 */
/* bare_wakes.c - the least that looks at threads which have run take.
 *
 * bare_wakes HZ SECONDS PID: of the second thread of each child of PID, or of all threads
 * of PID but the first where PID has no children, HZ times a second, its stack is read,
 * 1 KiB from where its stack pointer was at the begin, and its
 * /proc/PID/task/TID/schedstat, which tells whether it has moved meanwhile; after that,
 * for as long again, /proc/PID/task/TID/syscall too, which tells stack pointer and call.
 * Prints the share of a core that each took, in percent.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 4096, STACK = 1024 };

static struct thread {
	int syscall, schedstat;
	pid_t pid;
	unsigned long sp;
} threads[MAX];
static size_t nthreads;

static double clock_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int open_file(long pid, long tid, const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/%s", pid, tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* "230 0x0 0x0 0x7f... ... SP PC": the last word but one. */
static unsigned long stack_pointer(int fd)
{
	char text[256], *word;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	word = strrchr(text, ' ');
	if (!word)
		return 0;
	*word = '\0';
	word = strrchr(text, ' ');
	return word ? strtoul(word, NULL, 0) : 0;
}

static void add(long pid, long tid)
{
	struct thread *t = &threads[nthreads];

	t->syscall = open_file(pid, tid, "syscall");
	t->schedstat = open_file(pid, tid, "schedstat");
	t->pid = (pid_t)pid;
	t->sp = t->syscall < 0 ? 0 : stack_pointer(t->syscall);
	nthreads += t->sp && t->schedstat >= 0;
}

/* Add MOST threads of PID, without the first. */
static void add_threads(long pid, size_t most)
{
	const struct dirent *e;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%ld/task", pid);
	dir = opendir(path);
	while (dir && most && nthreads < MAX && (e = readdir(dir))) {
		long tid = strtol(e->d_name, NULL, 10);

		if (tid > 0 && tid != pid) {
			add(pid, tid);
			most--;
		}
	}
	if (dir)
		closedir(dir);
}

/* Returns how many of the reads told something. */
static unsigned int look(const struct thread *t, int by_proc)
{
	unsigned long sp = by_proc ? stack_pointer(t->syscall) : t->sp;
	char stack[STACK], text[96];
	struct iovec local = { stack, sizeof(stack) };
	struct iovec remote = { (void *)(uintptr_t)sp, sizeof(stack) };

	return (process_vm_readv(t->pid, &local, 1, &remote, 1, 0) > 0) +
	       (pread(t->schedstat, text, sizeof(text), 0) > 0);
}

static double look_for(int hz, int seconds, int by_proc)
{
	double cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	double wall = clock_s(CLOCK_MONOTONIC);
	unsigned long told = 0;
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	for (int r = 0; r < hz * seconds; r++) {
		at.tv_nsec += 1000000000 / hz;
		at.tv_sec += at.tv_nsec / 1000000000;
		at.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		for (size_t i = 0; i < nthreads; i++)
			told += look(&threads[i], by_proc);
	}
	cpu = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = clock_s(CLOCK_MONOTONIC) - wall;
	return told ? 100 * cpu / wall : -1;
}

int main(int argc, char **argv)
{
	char path[96], word[16];
	FILE *f;

	if (argc != 4)
		return 64;
	snprintf(path, sizeof(path), "/proc/%s/task/%s/children", argv[3],
		 argv[3]);
	f = fopen(path, "r");
	while (f && nthreads < MAX && fscanf(f, "%15s", word) == 1)
		add_threads(strtol(word, NULL, 10), 1);
	if (!nthreads)
		add_threads(strtol(argv[3], NULL, 10), MAX);
	if (!f || !nthreads)
		return 1;
	printf("%.3f ", look_for(atoi(argv[1]), atoi(argv[2]), 0));
	printf("%.3f\n", look_for(atoi(argv[1]), atoi(argv[2]), 1));
	fclose(f);
	return 0;
}
