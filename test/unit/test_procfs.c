/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: proc.  wallprof/procfs.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guarded.h"
#include "wallprof/procfs.h"

enum { SKIPPED = 77 };

static const char stat_line[] =
	"4242 (a) R (b) S 1 4242 4242 0 -1 4194560 120 0 0 0 5 6 0 0 20 0 3 0 "
	"987654 10000000 500 18446744073709551615 1 2 3 4 5 0 0 0 0 0 0 0 17 1 "
	"0 0 0 0 0 0 0 0 0 0 0 0 0\n";
static const char call_line[] =
	"202 0x7ffe10 0x80 0x2 0x0 0x0 0xffffffffffffffff 0x7ffd30 0x7f1234\n";
static const char sched_line[] = "123456789 98765 42\n";
static const char status_text[] =
	"Name:\tTracerPid:\t7\nUmask:\t0022\nTgid:\t99\nTracerPid:\t5\n"
	"NSpid:\t4242\t17\t1\nCapEff:\t000001ffffffffff\nSeccomp:\t2\n";

static void a_name_with_parens_does_not_fool_stat(void **state)
{
	struct wp_proc_stat s;

	(void)state;
	assert_int_equal(wp_proc_stat_parse(&s, stat_line, strlen(stat_line)),
			 0);
	assert_int_equal(s.state_char, 'S');
	assert_int_equal(s.ppid, 1);
	assert_int_equal(s.start_time, 987654);
	assert_int_equal(s.cpu, 1);
	assert_false(s.kernel_thread);
}

static void kernel_threads_are_told(void **state)
{
	static const char line[] =
		"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 5 "
		"0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0\n";
	struct wp_proc_stat s;

	(void)state;
	assert_int_equal(wp_proc_stat_parse(&s, line, strlen(line)), 0);
	assert_true(s.kernel_thread);
}

/* include/linux/sched.h: PF_IO_WORKER and PF_USER_WORKER, as of io_uring's in Linux 6.18,
 * and the former alone, as before 6.4. */
static void workers_of_the_kernel_are_told(void **state)
{
	static const char *const lines[] = {
		"9 (iou-wrk-8) S 1 8 8 0 -1 4210768 0 0 0 0 0 0 0 0 20 0 3 0 5 "
		"0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0\n",
		"9 (iou-wrk-8) S 1 8 8 0 -1 4194384 0 0 0 0 0 0 0 0 20 0 3 0 5 "
		"0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0\n",
		"9 (vhost-8) S 1 8 8 0 -1 4210752 0 0 0 0 0 0 0 0 20 0 3 0 5 "
		"0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0\n",
	};
	struct wp_proc_stat s;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		assert_int_equal(
			wp_proc_stat_parse(&s, lines[i], strlen(lines[i])), 0);
		assert_true(s.user_worker);
		assert_false(s.kernel_thread);
	}
	assert_int_equal(wp_proc_stat_parse(&s, stat_line, strlen(stat_line)),
			 0);
	assert_false(s.user_worker);
	assert_false(s.dumps_core);
}

/* proc(5): field 20, num_threads. */
static void a_zombie_whose_threads_live_has_not_ended(void **state)
{
	static const struct {
		char state_char;
		int nthreads;
		bool has_ended;
	} of[] = { { 'Z', 1, true }, { 'Z', 2, false }, { 'Z', 0, true },
		   { 'X', 0, true }, { 'S', 1, false }, { 'R', 2, false },
		   { 'X', 3, false } };
	struct wp_proc_stat s;
	char line[200];

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		snprintf(
			line, sizeof(line),
			"2 (a) Z) %c 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 %d 0 5 0 0 "
			"0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0\n",
			of[i].state_char, of[i].nthreads);
		assert_int_equal(wp_proc_stat_parse(&s, line, strlen(line)), 0);
		assert_int_equal(s.nthreads, of[i].nthreads);
		assert_int_equal(s.start_time, 5);
		assert_int_equal(wp_proc_stat_has_ended(&s), of[i].has_ended);
	}
}

static void a_call_has_number_arguments_sp_and_pc(void **state)
{
	struct wp_proc_syscall c;

	(void)state;
	assert_int_equal(
		wp_proc_syscall_parse(&c, call_line, strlen(call_line)), 0);
	assert_false(c.running);
	assert_int_equal(c.nr, 202);
	assert_int_equal(c.args[0], 0x7ffe10);
	assert_int_equal(c.args[5], UINT64_MAX);
	assert_int_equal(c.sp_avma, 0x7ffd30);
	assert_int_equal(c.pc_avma, 0x7f1234);
}

static void outside_a_call_there_are_no_arguments(void **state)
{
	static const char line[] = "-1 0x7ffd30 0x7f1234\n";
	struct wp_proc_syscall c;

	(void)state;
	assert_int_equal(wp_proc_syscall_parse(&c, line, strlen(line)), 0);
	assert_int_equal(c.nr, -1);
	assert_int_equal(c.sp_avma, 0x7ffd30);
	assert_int_equal(c.pc_avma, 0x7f1234);
}

static void running_is_one_word(void **state)
{
	struct wp_proc_syscall c;

	(void)state;
	assert_int_equal(wp_proc_syscall_parse(&c, "running\n", 8), 0);
	assert_true(c.running);
}

static void schedstat_has_three_numbers(void **state)
{
	struct wp_schedstat s;

	(void)state;
	assert_int_equal(wp_schedstat_parse(&s, sched_line, strlen(sched_line)),
			 0);
	assert_int_equal(s.run_ns, 123456789);
	assert_int_equal(s.wait_ns, 98765);
	assert_int_equal(s.slices, 42);
}

static void status_lines_are_found_at_line_starts_only(void **state)
{
	uint64_t val = 77;
	size_t n = strlen(status_text);

	(void)state;
	assert_int_equal(
		wp_proc_status_parse(&val, status_text, n, "TracerPid", 10), 0);
	assert_int_equal(val, 5);
	assert_int_equal(
		wp_proc_status_parse(&val, status_text, n, "CapEff", 16), 0);
	assert_int_equal(val, 0x1ffffffffff);
	/* The first of four. */
	assert_int_equal(wp_proc_status_parse(&val, "Uid:\t61001\t0\t0\t0\n",
					      17, "Uid", 10),
			 0);
	assert_int_equal(val, 61001);
	val = 77;
	assert_int_equal(
		wp_proc_status_parse(&val, status_text, n, "NoSuch", 10),
		-EBADMSG);
	assert_int_equal(val, 77);
}

static void a_process_has_a_number_in_each_namespace(void **state)
{
	static const char *const bad[] = { "NSpid:\n", "NSpid:\t4294967296\n",
					   "NSpid:\t1 x\n", "NSpid:\t12" };
	int32_t pids[WP_PID_LEVELS] = { 0 };

	(void)state;
	assert_int_equal(
		wp_proc_nspid_parse(pids, status_text, strlen(status_text)), 3);
	assert_int_equal(pids[0], 4242);
	assert_int_equal(pids[1], 17);
	assert_int_equal(pids[2], 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(
			wp_proc_nspid_parse(pids, bad[i], strlen(bad[i])),
			-EBADMSG);
	assert_int_equal(pids[0], 4242);
}

static void too_many_namespaces_are_refused(void **state)
{
	char text[512] = "NSpid:";
	int32_t pids[WP_PID_LEVELS];

	(void)state;
	for (int i = 0; i < WP_PID_LEVELS; i++)
		strcat(text, "\t7");
	strcat(text, "\n");
	assert_int_equal(wp_proc_nspid_parse(pids, text, strlen(text)),
			 WP_PID_LEVELS);
	strcpy(text + strlen(text) - 1, "\t7\n");
	assert_int_equal(wp_proc_nspid_parse(pids, text, strlen(text)),
			 -EBADMSG);
}

/* A number that a short read cut must not pass for a smaller one. */
static void every_prefix_is_safe_and_refused(void **state)
{
	static const char *const texts[] = { stat_line, call_line, sched_line,
					     status_text };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		for (size_t n = 0; n < strlen(texts[i]); n++) {
			char *exact = guarded(texts[i], n);
			struct wp_proc_syscall c;
			struct wp_schedstat s;
			struct wp_proc_stat st;
			uint64_t val;
			int32_t pids[WP_PID_LEVELS];

			if (texts[i] == call_line)
				assert_int_equal(
					wp_proc_syscall_parse(&c, exact, n),
					-EBADMSG);
			if (texts[i] == sched_line)
				assert_int_equal(
					wp_schedstat_parse(&s, exact, n),
					-EBADMSG);
			(void)!wp_proc_stat_parse(&st, exact, n);
			(void)!wp_proc_status_parse(&val, exact, n, "Tgid", 10);
			(void)!wp_proc_nspid_parse(pids, exact, n);
			guarded_free(exact, n);
		}
	}
}

static void overlong_numbers_are_refused(void **state)
{
	struct wp_schedstat s;
	static const char line[] = "18446744073709551616 1 1\n";

	(void)state;
	assert_int_equal(wp_schedstat_parse(&s, line, strlen(line)), -EBADMSG);
}

/* Whose negation no int64_t holds: UBSan watches. */
static void the_least_number_is_negated_without_overflow(void **state)
{
	static const char stat[] =
		"7 (a) R 1 1 1 0 -9223372036854775808 0 0 0 "
		"0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 ";
	static const char call[] = "-9223372036854775808 0x1 0x2\n";
	struct wp_proc_syscall c;
	struct wp_proc_stat s;

	(void)state;
	assert_int_equal(wp_proc_stat_parse(&s, stat, strlen(stat)), 0);
	assert_int_equal(s.cpu, 3);
	assert_int_equal(wp_proc_syscall_parse(&c, call, strlen(call)), 0);
	assert_int_equal(c.nr, INT64_MIN);
	assert_int_equal(c.pc_avma, 2);
}

static int parse_call(struct wp_proc_syscall *ret, const char *line)
{
	char *exact = guarded(line, strlen(line));
	int rc = wp_proc_syscall_parse(ret, exact, strlen(line));

	guarded_free(exact, strlen(line));
	return rc;
}

static void calls_that_are_none_are_refused(void **state)
{
	static const char *const lines[] = {
		"runnin",
		"runninX\n",
		"-1 0x1 \n",
		"-1 0x1\n",
		"-1 1x5 0x2\n",
		"-1 0y5 0x2\n",
		"-1 0x 0x2\n",
		"0 0x1 0x2 0x3\n",
		"-1 0x1 0x2x\n",
		"-1 0x1 0xg\n",
		"x 0x1 0x2\n",
		"-1 0x1 0x2",
		"0x5 1 2 3 4 5 6 7 8\n",
	};
	struct wp_proc_syscall c;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_int_equal(parse_call(&c, lines[i]), -EBADMSG);
	assert_int_equal(parse_call(&c, "running"), 0);
	assert_true(c.running);
	/* read(2) has the number 0 on x86-64. */
	assert_int_equal(parse_call(&c, "0 0x1 0x2 0x3 0x4 5 0x6 0x7 0x8\n"),
			 0);
	assert_int_equal(c.nr, 0);
	assert_int_equal(c.args[0], 1);
	assert_int_equal(c.args[4], 5);
	assert_int_equal(c.sp_avma, 7);
	assert_int_equal(c.pc_avma, 8);
}

static void other_numbers_are_decimal(void **state)
{
	static const char *const lines[] = { "0x5 1 1\n", "5 1\n",    "5 1 1",
					     "5 1 1x\n",  "-5 1 1\n", "" };
	struct wp_schedstat s;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_int_equal(
			wp_schedstat_parse(&s, lines[i], strlen(lines[i])),
			-EBADMSG);
}

static void a_value_is_one_number(void **state)
{
	static const struct {
		const char *text;
		int base;
		int rc;
		uint64_t want;
	} rows[] = {
		{ "Tgid:5\n", 10, 0, 5 },
		{ "Tgid:\t0x5\n", 16, 0, 5 },
		{ "Tgid:\t0xa5\n", 16, 0, 0xa5 },
		{ "Tgid:\t 12 kB\n", 10, 0, 12 },
		{ "Tgid:\t5x\n", 10, -EBADMSG, 0 },
		{ "Tgid:\t0x5\n", 10, -EBADMSG, 0 },
		{ "Tgid:\t0x\n", 16, -EBADMSG, 0 },
		{ "Tgid:\t\n", 10, -EBADMSG, 0 },
		{ "Tgid:\t5", 10, -EBADMSG, 0 },
		{ "Tgid\n", 10, -EBADMSG, 0 },
		{ "Tgid 5\n", 10, -EBADMSG, 0 },
		{ "Tgids:\t5\nTgid:\t6\n", 10, 0, 6 },
		{ "\nTgid:\t7\n", 10, 0, 7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = strlen(rows[i].text);
		char *exact = guarded(rows[i].text, n);
		uint64_t val = 0;

		assert_int_equal(wp_proc_status_parse(&val, exact, n, "Tgid",
						      rows[i].base),
				 rows[i].rc);
		assert_int_equal(val, rows[i].want);
		guarded_free(exact, n);
	}
}

static void own_numbers_are_read(void **state)
{
	int32_t pids[WP_PID_LEVELS] = { 0 };
	int n = wp_proc_nspid_read(pids, AT_FDCWD, "/proc/self/status");

	(void)state;
	assert_in_range(n, 1, WP_PID_LEVELS);
	assert_int_equal(pids[n - 1], getpid());
	assert_int_equal(wp_proc_nspid_read(pids, AT_FDCWD, "/proc/self/x"),
			 -ENOENT);
	assert_int_equal(wp_proc_nspid_parse(pids, "NSpid:\t2147483647\n", 18),
			 1);
	assert_int_equal(pids[0], INT32_MAX);
	assert_int_equal(wp_proc_nspid_parse(pids, "NSpid:\t2147483648\n", 18),
			 -EBADMSG);
}

/* The groups of a process may be 65,536, before most of what is asked for. */
static void status_is_read_however_long_it_is(void **state)
{
	int32_t pids[WP_PID_LEVELS] = { 0 };
	uint64_t val = 0;

	(void)state;
	/* Wherever the end of a part falls. */
	for (unsigned int ngroups = 0; ngroups < 65536;
	     ngroups += ngroups < 1000 ? 1 : 60000) {
		int fd = memfd_create("status", MFD_CLOEXEC);
		FILE *f = fdopen(fd, "w");
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		fputs("Name:\tx\nGroups:\t", f);
		for (unsigned int i = 0; i < ngroups; i++)
			fprintf(f, "%u ", 2000000000u + i);
		fputs("\nNSpid:\t4711\t17\nSeccomp:\t2\nNo_end:\t5", f);
		fflush(f);
		assert_int_equal(wp_proc_nspid_read(pids, AT_FDCWD, path), 2);
		assert_int_equal(pids[1], 17);
		assert_int_equal(wp_proc_status_read_at(&val, AT_FDCWD, path,
							"Seccomp", 10),
				 0);
		assert_int_equal(val, 2);
		assert_int_equal(wp_proc_status_read_at(&val, AT_FDCWD, path,
							"No_end", 10),
				 -EBADMSG);
		assert_int_equal(wp_proc_status_read_at(&val, AT_FDCWD, path,
							"2000000000", 10),
				 -EBADMSG);
		assert_int_equal(wp_proc_status_has_word_at(AT_FDCWD, path,
							    "NSpid", "17"),
				 1);
		fclose(f);
	}
}

static void words_of_a_status_line_are_whole_ones(void **state)
{
	static const struct {
		const char *text;
		int has;
	} of[] = {
		{ "x:\tshstk wrss \n", 1 },  { "x:\twrss shstk\n", 1 },
		{ "x:\tshstk\n", 1 },	     { "x:\t\n", 0 },
		{ "x:\twrss\n", 0 },	     { "x:\tshstk2\n", 0 },
		{ "x:\tmyshstk\n", 0 },	     { "y:\tshstk\n", 0 },
		{ "x_locked:\tshstk\n", 0 }, { "x:\tshst\nx:\tk\n", 0 },
		{ "x:\tshstk", 0 },	     { "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		int fd = memfd_create("status", MFD_CLOEXEC);
		ssize_t len = (ssize_t)strlen(of[i].text);
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		assert_int_equal(write(fd, of[i].text, (size_t)len), len);
		assert_int_equal(wp_proc_status_has_word_at(AT_FDCWD, path, "x",
							    "shstk"),
				 of[i].has);
		close(fd);
	}
	assert_int_equal(wp_proc_status_has_word_at(AT_FDCWD, "/nonexistent",
						    "x", "shstk"),
			 -ENOENT);
}

static void stat_has_all_fields_that_are_read(void **state)
{
	/* A blank follows the processor's number. */
	size_t whole = (size_t)(strstr(stat_line, " 17 1 ") + 6 - stat_line);
	struct wp_proc_stat s;

	(void)state;
	for (size_t n = 0; n <= strlen(stat_line); n++) {
		char *exact = guarded(stat_line, n);

		assert_int_equal(wp_proc_stat_parse(&s, exact, n),
				 n < whole ? -EBADMSG : 0);
		guarded_free(exact, n);
	}
}

static void timers_that_send_signals_are_told(void **state)
{
	static const char timers[] = "ID: 5\n"
				     "signal: 34/000055aeb4ac02c0\n"
				     "notify: signal/tid.4294\n"
				     "ClockID: 1\n"
				     "ID: 4\n"
				     "signal: 14/0000000000000001\n"
				     "notify: none/pid.4253\n"
				     "ClockID: 1\n"
				     "ID: 3\n"
				     "signal: 12/0000000000000001\n"
				     "notify: thread/pid.4253\n"
				     "ClockID: 1\n"
				     "ID: 2\n"
				     "signal: 65/0000000000000001\n"
				     "notify: signal/pid.4253\n"
				     "ClockID: 1\n"
				     "ID: 1\n"
				     "signal: 0/0000000000000001\n"
				     "notify: signal/pid.4253\n"
				     "ClockID: 1\n"
				     "ID: 0\n"
				     "signal: 10/0000000000000001\n"
				     "notify: signal/pid.4253\n"
				     "ClockID: 1\n";
	const uint64_t usr1 = 1u << 9, realtime = UINT64_C(1) << 33;

	(void)state;
	assert_true(wp_proc_timers_parse(timers, strlen(timers)) ==
		    (usr1 | realtime));
	assert_true(wp_proc_timers_parse("", 0) == 0);
	for (size_t n = 0; n <= strlen(timers); n++) {
		char *exact = guarded(timers, n);

		assert_true((wp_proc_timers_parse(exact, n) &
			     ~(usr1 | realtime)) == 0);
		guarded_free(exact, n);
	}
}

static int look_from_a_new_namespace(void)
{
	int status = -1;
	pid_t inner;

	if (unshare(CLONE_NEWPID))
		return SKIPPED;
	inner = fork();
	if (!inner)
		_exit(wp_proc_is_in_first_pid_namespace() != 0);
	return waitpid(inner, &status, 0) == inner && status == 0 ? 0 : 1;
}

static void only_the_first_pid_namespace_is_the_first(void **state)
{
	char link[64] = "";
	int status;
	pid_t child;

	(void)state;
	assert_true(readlink("/proc/self/ns/pid", link, sizeof(link) - 1) > 0);
	assert_int_equal(wp_proc_is_in_first_pid_namespace(),
			 !strcmp(link, "pid:[4026531836]"));
	child = fork();
	if (!child)
		_exit(look_from_a_new_namespace());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_with_parens_does_not_fool_stat),
		cmocka_unit_test(kernel_threads_are_told),
		cmocka_unit_test(workers_of_the_kernel_are_told),
		cmocka_unit_test(a_zombie_whose_threads_live_has_not_ended),
		cmocka_unit_test(a_call_has_number_arguments_sp_and_pc),
		cmocka_unit_test(outside_a_call_there_are_no_arguments),
		cmocka_unit_test(running_is_one_word),
		cmocka_unit_test(schedstat_has_three_numbers),
		cmocka_unit_test(status_lines_are_found_at_line_starts_only),
		cmocka_unit_test(a_process_has_a_number_in_each_namespace),
		cmocka_unit_test(too_many_namespaces_are_refused),
		cmocka_unit_test(every_prefix_is_safe_and_refused),
		cmocka_unit_test(calls_that_are_none_are_refused),
		cmocka_unit_test(other_numbers_are_decimal),
		cmocka_unit_test(a_value_is_one_number),
		cmocka_unit_test(own_numbers_are_read),
		cmocka_unit_test(status_is_read_however_long_it_is),
		cmocka_unit_test(words_of_a_status_line_are_whole_ones),
		cmocka_unit_test(stat_has_all_fields_that_are_read),
		cmocka_unit_test(timers_that_send_signals_are_told),
		cmocka_unit_test(only_the_first_pid_namespace_is_the_first),
		cmocka_unit_test(overlong_numbers_are_refused),
		cmocka_unit_test(the_least_number_is_negated_without_overflow),
	};

	return cmocka_run_group_tests_name("procfs", tests, NULL, NULL);
}
