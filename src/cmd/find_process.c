/* SPDX-License-Identifier: Apache-2.0 */
/* find_process.c - see find_process.h. */
#include "find_process.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"
#include "wallprof/access.h"
#include "wallprof/base_name.h"
#include "wallprof/io.h"
#include "wallprof/process.h"
#include "wallprof/procfs.h"
#include "wallprof/vec.h"

enum {
	/* Candidates that are printed. */
	SHOWN = 20,
	/* The kernel keeps so much of a name, with its NUL (TASK_COMM_LEN). */
	COMM_SIZE = 16,
	COMMAND_MAX = 100,
	/* Ancestors of wallprof that are told from others. */
	DEEPEST = 1000,
};

/* What to look for. */
struct wanted {
	const char *name;
	/* NAME as the path of a program; "": it is none. */
	char path[PATH_MAX];
	/* Those that have that name; that have NAME in their command line. */
	struct wp_tids named;
	struct wp_tids mention;
	bool only_named;
};

/* The command line of PID, its NULs blanks; "" if there is none. */
static void read_command(pid_t pid, char *text, size_t size)
{
	char path[32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	n = wp_io_read_at(-1, path, text, size);
	if (n < 0)
		n = 0;
	while (n > 0 && !text[n - 1])
		n--;
	text[n] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
}

static bool has_comm(pid_t pid, const char *name)
{
	char path[32], comm[COMM_SIZE + 1];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	n = wp_io_read_at(-1, path, comm, sizeof(comm));
	if (n > 0 && comm[n - 1] == '\n')
		comm[n - 1] = '\0';
	return n > 0 && !strncmp(comm, name, COMM_SIZE - 1);
}

/* Is WORD a word of TEXT, or the last part of one that is a path? */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at++)
		if ((at == text || at[-1] == ' ' || at[-1] == '/') &&
		    (!at[n] || at[n] == ' '))
			return true;
	return false;
}

/* Has PID, whose name the kernel has cut and which begins as that of W, all of it?  Its
 * program, EXE, has another: it was started by a link's name, or it is of a script,
 * whose name is one of the arguments.  What cannot be read, or is not to be, is taken for
 * it. */
static bool has_rest(pid_t pid, const struct wanted *w, const char *exe)
{
	bool is_script = strncmp(wp_base_name(exe), w->name, COMM_SIZE - 1);
	char command[4096];

	if (!*exe || w->only_named)
		return is_script;
	read_command(pid, command, sizeof(command));
	if (!is_script)
		command[strcspn(command, " ")] = '\0';
	return has_word(command, w->name);
}

static bool has_name(pid_t pid, const struct wanted *w)
{
	char exe[PATH_MAX];

	wp_process_exe_of(pid, exe, sizeof(exe));
	if (*exe &&
	    (!strcmp(exe, w->path) || !strcmp(wp_base_name(exe), w->name)))
		return true;
	return has_comm(pid, w->name) &&
	       (strlen(w->name) < COMM_SIZE || has_rest(pid, w, exe));
}

/* Who started wallprof (sudo, timeout, a shell) has NAME in its command line too. */
static bool is_ancestor(pid_t pid)
{
	struct wp_proc_stat stat;
	pid_t up = getpid();

	/* A pid that is used again could lead in a circle. */
	for (int i = 0; i < DEEPEST && up > 0 && up != pid; i++)
		up = wp_proc_stat_read(&stat, up) ? 0 : stat.ppid;
	return up == pid;
}

static int look_at(struct wanted *w, pid_t pid)
{
	char command[4096];
	struct wp_tids *list = NULL;
	struct wp_proc_stat stat;

	if (has_name(pid, w)) {
		list = &w->named;
	} else if (!w->only_named) {
		read_command(pid, command, sizeof(command));
		if (strstr(command, w->name) && !is_ancestor(pid))
			list = &w->mention;
	}
	/* A zombie keeps its name. */
	if (!list || wp_proc_stat_read(&stat, pid) ||
	    wp_proc_stat_has_ended(&stat))
		return 0;
	if (WP_VEC_ROOM(list->v, list->len, list->cap, 1))
		return -ENOMEM;
	list->v[list->len++] = pid;
	return 0;
}

static int look_at_all(struct wanted *w)
{
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	int rc = 0;

	if (!dir)
		return -errno;
	while (!rc && (entry = readdir(dir))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		/* Not wallprof itself, which has NAME in its command line, in
		 * two processes. */
		if (pid > 0 && pid != getpid() && pid != getppid())
			rc = look_at(w, pid);
	}
	closedir(dir);
	return rc;
}

static void print_candidates(const struct wp_tids *pids)
{
	char command[COMMAND_MAX];

	for (size_t i = 0; i < pids->len && i < SHOWN; i++) {
		read_command(pids->v[i], command, sizeof(command));
		wp_say("%8d  %s", pids->v[i], command);
	}
	if (pids->len > SHOWN)
		wp_say("     ...  %zu more", pids->len - SHOWN);
}

/* Is NAME a program that could be started? */
static bool is_program(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];

	if (strchr(name, '/'))
		return !access(name, X_OK);
	while (path && *path) {
		size_t n = strcspn(path, ":");

		if (snprintf(file, sizeof(file), "%.*s/%s", (int)n, path,
			     name) < PATH_MAX &&
		    !access(file, X_OK))
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

static int find_one(struct wanted *w, pid_t *ret, struct wp_err *err)
{
	bool is_hidden = wp_access_is_hidden(1);
	int rc = look_at_all(w);

	if (rc)
		return wp_err_set(err, rc, "cannot list processes: %s",
				  strerror(-rc));
	if (w->named.len == 1) {
		*ret = w->named.v[0];
		return 0;
	}
	if (w->named.len) {
		print_candidates(&w->named);
		return wp_err_set(
			err, -ENOTUNIQ,
			"%zu processes are called \"%s\": give the PID "
			"of one",
			w->named.len, w->name);
	}
	print_candidates(&w->mention);
	return wp_err_set(
		err, -ENOENT, "no process%s is called \"%s\"%s%s%s%s",
		is_hidden ? " of yours" : "", w->name,
		is_hidden ? ", and others are hidden from you: /proc is "
			    "mounted with hidepid: run wallprof as root "
			    "(sudo)" :
			    "",
		w->mention.len ? "; these have it in their command "
				 "line, give the PID of one" :
				 "",
		is_program(w->name) ? "; to start it: wallprof -- " : "",
		is_program(w->name) ? w->name : "");
}

static void set_path(struct wanted *w)
{
	if (!strchr(w->name, '/') || !realpath(w->name, w->path))
		w->path[0] = '\0';
}

int wp_find_processes(struct wp_tids *pids, const char *name)
{
	struct wanted w = { .name = name, .named = *pids, .only_named = true };
	int rc;

	set_path(&w);
	rc = look_at_all(&w);
	*pids = w.named;
	return rc;
}

bool wp_find_is_called(pid_t pid, const char *name)
{
	struct wanted w = { .name = name };

	set_path(&w);
	return has_name(pid, &w);
}

int wp_find_process(pid_t *ret, const char *name, struct wp_err *err)
{
	struct wanted w = { .name = name,
			    .named = WP_TIDS_INIT,
			    .mention = WP_TIDS_INIT };
	int rc;

	set_path(&w);
	rc = find_one(&w, ret, err);
	wp_tids_clear(&w.named);
	wp_tids_clear(&w.mention);
	return rc;
}
