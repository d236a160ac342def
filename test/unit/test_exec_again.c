/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: ptrace.  src/ptrace/exec_again.h: copies of id(1) that are root's and set-user-ID,
 * executed by a thread of another user that is traced without CAP_SYS_PTRACE.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/ptrace/exec_again.h"
#include "../../src/ptrace/let_go.h"

enum { NOBODY = 65534 };

/* What is executed, and how. */
struct program {
	const char *path;
	bool no_new_privs;
};

/* What the tracer, a process of its own, tells. */
struct outcome {
	bool executes_again;
	bool lost_rights;
	char said[64];
};

static char dir[] = "/var/tmp/exec_again_XXXXXX", set_id[64], plain[64],
	    script[64], group[64];

static void copy_id(char *path, const char *name, mode_t mode)
{
	char command[256];

	snprintf(path, 64, "%s/%s", dir, name);
	snprintf(command, sizeof(command), "cp /usr/bin/id %s", path);
	assert_int_equal(system(command), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	copy_id(set_id, "set_id", 04755);
	copy_id(group, "group", 02755);
	copy_id(plain, "plain", 0755);
	snprintf(script, sizeof(script), "%s/script", dir);
	file = fopen(script, "w");
	assert_non_null(file);
	fprintf(file, "#!%s -u\n", set_id);
	assert_int_equal(fclose(file), 0);
	return chmod(script, 0755);
}

static int teardown(void **state)
{
	(void)state;
	unlink(set_id);
	unlink(group);
	unlink(plain);
	unlink(script);
	return rmdir(dir);
}

static void execute(const struct program *program, int out, int go)
{
	const char *option = program->path == group ? "-g" : "-u";
	char byte;

	if (program->no_new_privs)
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	dup2(out, 1);
	dup2(out, 2);
	if (read(go, &byte, 1) == 1)
		execl(program->path, program->path, option, (char *)NULL);
	_exit(99);
}

/* Trace PID into its program's first instruction. */
static bool trace_to_entry(pid_t pid, int go)
{
	int status;

	return !ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) &&
	       write(go, "x", 1) == 1 && waitpid(pid, &status, 0) == pid &&
	       status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8) &&
	       !ptrace(PTRACE_INTERRUPT, pid, 0, 0) &&
	       !ptrace(PTRACE_CONT, pid, 0, 0) &&
	       waitpid(pid, &status, 0) == pid && status >> 16;
}

/* In a process of a user without rights. */
static bool trace(const struct program *program, struct outcome *outcome)
{
	struct wp_tracee tracee = { .stopped = true };
	struct wp_stop_facts facts;
	struct wp_regs regs;
	int out[2], go[2];
	ssize_t n;

	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY) ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) || pipe(out) || pipe(go))
		return false;
	tracee.tid = fork();
	if (!tracee.tid)
		execute(program, out[1], go[0]);
	if (!trace_to_entry(tracee.tid, go[1]) ||
	    wp_tracer_read_regs(&tracee, &regs, &facts) || !tracee.entry_avma ||
	    !wp_let_go(&tracee))
		return false;
	close(out[1]);
	n = read(out[0], outcome->said, sizeof(outcome->said) - 1);
	outcome->said[n > 0 ? n : 0] = '\0';
	outcome->executes_again = tracee.executes_again;
	outcome->lost_rights = tracee.lost_rights;
	return waitpid(tracee.tid, NULL, 0) == tracee.tid;
}

static struct outcome outcome_of(const char *path, bool no_new_privs)
{
	struct program program = { path, no_new_privs };
	struct outcome outcome = { 0 };
	struct statvfs fs;
	int status, ends[2];
	pid_t pid;

	assert_int_equal(statvfs(dir, &fs), 0);
	if (geteuid() || (fs.f_flag & ST_NOSUID))
		skip();
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(!trace(&program, &outcome) ||
		      write(ends[1], &outcome, sizeof(outcome)) !=
			      sizeof(outcome));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(ends[0], &outcome, sizeof(outcome)),
			 sizeof(outcome));
	close(ends[0]);
	close(ends[1]);
	return outcome;
}

static void a_set_user_id_program_has_its_owners_rights(void **state)
{
	struct outcome outcome = outcome_of(set_id, false);

	(void)state;
	assert_true(outcome.executes_again);
	assert_false(outcome.lost_rights);
	assert_string_equal(outcome.said, "0\n");
}

static void a_set_group_id_program_has_its_groups_rights(void **state)
{
	struct outcome outcome = outcome_of(group, false);

	(void)state;
	assert_true(outcome.executes_again);
	assert_string_equal(outcome.said, "0\n");
}

static void a_program_without_rights_is_executed_once(void **state)
{
	struct outcome outcome = outcome_of(plain, false);

	(void)state;
	assert_false(outcome.executes_again || outcome.lost_rights);
	assert_string_equal(outcome.said, "65534\n");
}

static void who_renounced_them_is_given_none(void **state)
{
	struct outcome outcome = outcome_of(set_id, true);

	(void)state;
	assert_false(outcome.executes_again || outcome.lost_rights);
	assert_string_equal(outcome.said, "65534\n");
}

/* Its arguments are not those of the call. */
static void the_interpreter_of_a_script_goes_on_without(void **state)
{
	struct outcome outcome = outcome_of(script, false);

	(void)state;
	assert_false(outcome.executes_again);
	assert_true(outcome.lost_rights);
}

/* As it may be made unreadable for that. */
static void a_program_that_may_not_be_read_may_have_lost_some(void **state)
{
	struct outcome outcome;

	(void)state;
	assert_int_equal(chmod(set_id, 04711), 0);
	outcome = outcome_of(set_id, false);
	assert_int_equal(chmod(set_id, 04755), 0);
	assert_false(outcome.executes_again);
	assert_true(outcome.lost_rights);
}

static void who_has_begun_is_not_new(void **state)
{
	struct wp_regs regs = { 0 };

	(void)state;
	assert_false(wp_exec_is_new(&regs));
	wp_reg_set(&regs, WP_REG_PC, 0x7f0000001000);
	assert_false(wp_exec_is_new(&regs));
	wp_reg_set(&regs, WP_REG_SP, 0x7ffc00001000);
	assert_true(wp_exec_is_new(&regs));
	for (unsigned int i = 0; i < WP_NREGS; i++) {
		struct wp_regs other = regs;

		other.v[i] = 1;
		assert_int_equal(wp_exec_is_new(&other),
				 i == WP_REG_SP || i == WP_REG_PC);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_user_id_program_has_its_owners_rights),
		cmocka_unit_test(a_set_group_id_program_has_its_groups_rights),
		cmocka_unit_test(a_program_without_rights_is_executed_once),
		cmocka_unit_test(who_renounced_them_is_given_none),
		cmocka_unit_test(the_interpreter_of_a_script_goes_on_without),
		cmocka_unit_test(
			a_program_that_may_not_be_read_may_have_lost_some),
		cmocka_unit_test(who_has_begun_is_not_new),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
