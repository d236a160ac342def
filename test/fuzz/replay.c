/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - run a fuzzer without libFuzzer: every file of a directory, every
 * prefix of it, and mutations that are the same each time.
 *
 * replay_NAME PATH...: PATH is a directory of inputs, or one input.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "fuzz.h"

enum {
	MUTATIONS = 2000,
	/* Prefixes of longer files are taken in steps. */
	PREFIXES = 2000,
	FILE_MAX = 1 << 20,
	/* Something hangs.  CPU time, so that other work does not matter. */
	SECONDS_MAX = 300,
};

/* For who reads of a crash: what was run. */
static char running[512];
/* The input of that moment, kept for the same. */
static const uint8_t *current;
static size_t current_size;
static const char *crash_path;
static unsigned long runs;

/* The sanitizers' own handlers print and then abort. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return "abort_on_error=1:allocator_may_return_null=1";
}

const char *__ubsan_default_options(void)
{
	return "abort_on_error=1:print_stacktrace=1";
}

static void on_crash(int sig)
{
	int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);

	dprintf(STDERR_FILENO, "replay: signal %d in %s\n", sig, running);
	if (fd >= 0 && write(fd, current, current_size) >= 0)
		dprintf(STDERR_FILENO, "replay: input is in %s\n", crash_path);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void catch_crashes(void)
{
	static const int signals[] = {
		SIGABRT,
		SIGPROF,
		SIGILL,
		SIGFPE,
#if !defined(__SANITIZE_ADDRESS__)
		SIGSEGV,
		SIGBUS,
#endif
	};

	static const struct itimerval limit = {
		.it_value.tv_sec = SECONDS_MAX,
	};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		signal(signals[i], on_crash);
	setitimer(ITIMER_PROF, &limit, NULL);
}

static void run(const uint8_t *data, size_t size)
{
	/* Exactly as long as the input: nothing can be read behind it. */
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	memcpy(exact, data, size);
	current = exact;
	current_size = size;
	LLVMFuzzerTestOneInput(exact, size);
	runs++;
	current_size = 0;
	free(exact);
}

/* Marsaglia's xorshift64. */
static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Values at which lengths and offsets go wrong. */
/* clang-format off */
static const uint64_t odd[] = {
	0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000,
	0xffffffff, UINT64_C(0x7fffffffffffffff), UINT64_C(0x8000000000000000),
	UINT64_MAX,
};
/* clang-format on */

/* Up to 16 bytes from elsewhere to AT. */
static void copy_piece(uint8_t *data, size_t size, size_t at, uint64_t *state)
{
	size_t from = next(state) % size, len = 1 + next(state) % 16;
	size_t left = size - (from > at ? from : at);

	memmove(data + at, data + from, len < left ? len : left);
}

static void mutate(uint8_t *data, size_t size, uint64_t *state)
{
	unsigned int n = 1 + next(state) % 4;

	while (size && n--) {
		size_t at = next(state) % size;
		size_t width = (size_t)1 << next(state) % 4;
		uint64_t val = odd[next(state) % (sizeof(odd) / sizeof(*odd))];

		switch (next(state) % 4) {
		case 0:
			data[at] ^= (uint8_t)(1u << next(state) % 8);
			break;
		case 1:
			data[at] = (uint8_t)next(state);
			break;
		case 2:
			memcpy(data + at, &val,
			       width < size - at ? width : size - at);
			break;
		default:
			copy_piece(data, size, at, state);
		}
	}
}

static void replay(const char *path, const uint8_t *data, size_t size)
{
	size_t step = size / PREFIXES + 1;
	uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	snprintf(running, sizeof(running), "%s", path);
	run(data, size);
	for (size_t n = 0; n < size; n += step) {
		snprintf(running, sizeof(running), "%s, first %zu bytes", path,
			 n);
		run(data, n);
	}
	for (int i = 0; i < MUTATIONS; i++) {
		snprintf(running, sizeof(running), "%s, mutation %d", path, i);
		memcpy(copy, data, size);
		mutate(copy, size, &state);
		run(copy, size);
	}
	free(copy);
}

static void replay_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *data = malloc(FILE_MAX);
	ssize_t n = fd >= 0 && data ? read(fd, data, FILE_MAX) : -1;

	if (n < 0) {
		fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	close(fd);
	replay(path, data, (size_t)n);
	free(data);
}

static int is_input(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static unsigned long replay_path(const char *path)
{
	struct dirent **entries;
	char name[512];
	int n = scandir(path, &entries, is_input, alphasort);

	if (n < 0) {
		replay_file(path);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		replay_file(name);
		free(entries[i]);
	}
	free(entries);
	return (unsigned long)n;
}

int main(int argc, char **argv)
{
	unsigned long files = 0;
	char path[512];

	snprintf(path, sizeof(path), "%s.crash", argv[0]);
	crash_path = path;
	catch_crashes();
	for (int i = 1; i < argc; i++)
		files += replay_path(argv[i]);
	crash_path = NULL;
	printf("%s: %lu runs of %lu files\n",
	       strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0],
	       runs, files);
	/* A fuzzer without inputs shows nothing. */
	return files ? 0 : 1;
}
