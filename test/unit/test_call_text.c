/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  System calls in words, with this process's own memory and
 * descriptors as the target's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../src/dump/call_text.h"
#include "wallprof/clock.h"
#include "wallprof/syscall_nr.h"

static struct wp_snapshot_process self;

static int open_self(void **state)
{
	(void)state;
	self.process = (struct wp_process)WP_PROCESS_INIT;
	if (wp_process_open(&self.process, getpid(), NULL))
		return -1;
	wp_fdinfo_init(&self.fdinfo, self.process.proc_fd);
	return 0;
}

static int close_self(void **state)
{
	(void)state;
	wp_fdinfo_clear(&self.fdinfo);
	wp_process_clear(&self.process);
	return 0;
}

/* The kernel's function that is found. */
static const char *wchan;

/* The text of CALL, whose memory is copied now. */
static void make_text(char *ret, size_t size, struct wp_dump_call call,
		      const char *object, bool moved)
{
	struct wp_thread_facts facts = { .syscall_nr = call.nr };
	struct wp_call_memory memory;
	const struct wp_call_found found = { 0, object, wchan, &memory, moved };
	struct wp_dump dump = WP_DUMP_INIT;

	memcpy(facts.args, call.args, sizeof(facts.args));
	wp_call_memory_take(&memory, &self.process, &facts, 0);
	assert_int_equal(wp_call_text(&call, &dump.strings, &self, &found), 0);
	snprintf(ret, size, "%s", wp_dump_str(&dump, call.text));
	wp_dump_clear(&dump);
}

static void assert_text(struct wp_dump_call call, const char *object,
			const char *want)
{
	char text[1024];

	make_text(text, sizeof(text), call, object, false);
	assert_string_equal(text, want);
}

#define ADDRESS(x) ((uint64_t)(uintptr_t)(x))

static void no_call_has_no_text(void **state)
{
	(void)state;
	assert_text((struct wp_dump_call){ .nr = -1 }, "fd 3", "");
}

static void a_futex_has_its_address_and_operation(void **state)
{
	struct wp_dump_call call = {
		.nr = SYS_futex,
		.args = { 0x55aa, FUTEX_WAIT | FUTEX_PRIVATE_FLAG },
	};

	(void)state;
	assert_text(call, "", "futex 0x55aa WAIT");
	call.args[1] = FUTEX_LOCK_PI2;
	call.args[3] = 1;
	assert_text(call, "", "futex 0x55aa LOCK_PI2, with a timeout");
	/* An operation of no name. */
	call.args[1] = 99;
	call.args[3] = 0;
	assert_text(call, "", "futex 0x55aa");
}

static void a_poll_names_three_descriptors(void **state)
{
	struct pollfd fds[5] = { { .fd = 900 }, { .fd = 901 }, { .fd = 902 } };
	const struct timespec most = { 2, 500000000 };
	struct wp_dump_call call = {
		.nr = SYS_poll,
		.args = { ADDRESS(fds), 1, 1500 },
	};

	(void)state;
#if defined(__x86_64__)
	assert_text(call, "", "poll of 1 descriptor: fd 900, at most 1.500 s");
	call.args[2] = (uint64_t)-1;
	assert_text(call, "", "poll of 1 descriptor: fd 900");
#endif
	call.nr = SYS_ppoll;
	call.args[1] = 5;
	call.args[2] = ADDRESS(&most);
	assert_text(call, "",
		    "ppoll of 5 descriptors: fd 900, fd 901, fd 902, ..., at "
		    "most 2.500 s");
	/* Unreadable memory costs the descriptors and the time. */
	call.args[0] = call.args[2] = 8;
	assert_text(call, "", "ppoll of 5 descriptors");
}

static void a_select_names_what_it_reads(void **state)
{
	const struct timespec most = { 20, 0 }, none = { 0 };
	struct wp_dump_call call = { .nr = SYS_pselect6 };
	fd_set set;

	(void)state;
	FD_ZERO(&set);
	FD_SET(901, &set);
	FD_SET(77, &set);
	call.args[0] = 902;
	call.args[1] = ADDRESS(&set);
	call.args[4] = ADDRESS(&most);
	assert_text(call, "", "pselect6 to read fd 77, fd 901, at most 20 s");
	/* The kernel has written what is left of it: it ends. */
	call.args[4] = ADDRESS(&none);
	assert_text(call, "", "pselect6 to read fd 77, fd 901");
	call.args[1] = call.args[4] = 0;
	assert_text(call, "", "pselect6");
}

static void watch(int epoll_fd, int fd)
{
	assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd,
				   &(struct epoll_event){ 0 }),
			 0);
}

static void an_epoll_tells_what_it_watches(void **state)
{
	int fd = epoll_create1(EPOLL_CLOEXEC), ends[2], event, other;
	struct wp_dump_call call = {
		.nr = SYS_epoll_pwait,
		.args = { (uint64_t)fd, 0, 0, 250 },
	};
	char want[256];
	struct stat st;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fstat(ends[0], &st), 0);
	watch(fd, ends[0]);
	watch(fd, ends[1]);
	snprintf(want, sizeof(want),
		 "epoll_pwait fd %d watching 2 descriptors: fd %d pipe:[%llu], "
		 "fd %d pipe:[%llu], at most 250 ms",
		 fd, ends[0], (unsigned long long)st.st_ino, ends[1],
		 (unsigned long long)st.st_ino);
	assert_text(call, "", want);
	/* Many are counted by kind. */
	event = eventfd(0, EFD_CLOEXEC);
	other = eventfd(0, EFD_CLOEXEC);
	watch(fd, event);
	watch(fd, other);
	snprintf(want, sizeof(want),
		 "epoll_pwait fd %d watching 4 descriptors: 2 pipe, 2 eventfd, "
		 "at most 250 ms",
		 fd);
	assert_text(call, "", want);
	close(event);
	close(other);
	/* The number is another file's by now. */
	other = dup(ends[0]);
	assert_int_equal(dup2(fd, ends[0]), ends[0]);
	snprintf(want, sizeof(want),
		 "epoll_pwait fd %d watching 2 descriptors: fd %d, closed, "
		 "fd %d pipe:[%llu], at most 250 ms",
		 fd, ends[0], ends[1], (unsigned long long)st.st_ino);
	assert_text(call, "", want);
	close(other);
	close(ends[0]);
	close(ends[1]);
	close(fd);
}

/* A thousand threads may wait in one that watches a hundred thousand. */
static void epolls_are_read_for_so_long(void **state)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);
	struct wp_dump_call call = {
		.nr = SYS_epoll_pwait,
		.args = { (uint64_t)fd, 0, 0, 250 },
	};
	char want[256];

	(void)state;
	self.epolls_ns = 0;
	snprintf(want, sizeof(want),
		 "epoll_pwait fd %d watching 0 descriptors, at most 250 ms",
		 fd);
	assert_text(call, "", want);
	assert_in_range(self.epolls_ns, 1, WP_NS_PER_S - 1);
	self.epolls_ns = WP_NS_PER_S;
	snprintf(want, sizeof(want), "epoll_pwait fd %d, at most 250 ms", fd);
	assert_text(call, "", want);
	self.epolls_ns = 0;
	close(fd);
}

static void a_sleep_has_its_time(void **state)
{
	static const clockid_t ours[] = { CLOCK_REALTIME, CLOCK_TAI,
					  CLOCK_MONOTONIC, CLOCK_BOOTTIME };
	const struct timespec half = { 0, 500000000 }, long_past = { 1, 0 };
	struct wp_dump_call call = {
		.nr = SYS_nanosleep,
		.args = { ADDRESS(&half) },
	};

	(void)state;
	assert_text(call, "", "nanosleep 500 ms");
	call = (struct wp_dump_call){
		.nr = SYS_clock_nanosleep,
		.args = { CLOCK_MONOTONIC, 0, ADDRESS(&half) },
	};
	assert_text(call, "", "clock_nanosleep 500 ms");
	/* Until a time, of which the text has what is left. */
	call.args[1] = TIMER_ABSTIME;
	call.args[2] = ADDRESS(&long_past);
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		call.args[0] = (uint64_t)ours[i];
		assert_text(call, "", "clock_nanosleep for 0 ns more");
	}
	/* A time of CPU time is the program's own. */
	call.args[0] = CLOCK_PROCESS_CPUTIME_ID;
	assert_text(call, "", "clock_nanosleep");
}

static void a_wait_names_the_child(void **state)
{
	struct wp_dump_call call = { .nr = SYS_wait4 };
	char want[128];
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	call.args[0] = (uint64_t)(int64_t)-1;
	assert_text(call, "", "wait4 any child");
	call.args[0] = (uint64_t)(int64_t)-7;
	assert_text(call, "", "wait4 any child of group 7");
	call.args[0] = (uint64_t)pid;
	snprintf(want, sizeof(want), "wait4 pid %d \"test_call_text\"", pid);
	assert_text(call, "", want);
	call = (struct wp_dump_call){ .nr = SYS_waitid, .args = { P_PID, 1 } };
	assert_text(call, "", "waitid pid 1, which is no child");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_file_lock_has_its_file(void **state)
{
	struct wp_dump_call call = {
		.nr = SYS_flock,
		.args = { 5, LOCK_EX },
	};

	(void)state;
	assert_text(call, "fd 5 /x", "flock fd 5 /x exclusively");
	call.args[1] = LOCK_SH;
	assert_text(call, "fd 5 /x", "flock fd 5 /x shared");
	call.nr = SYS_fcntl;
	call.args[1] = F_OFD_SETLKW;
	assert_text(call, "fd 5 /x", "fcntl F_OFD_SETLKW fd 5 /x");
	call.args[1] = WP_F_SETLKW64;
	assert_text(call, "fd 5 /x", "fcntl F_SETLKW64 fd 5 /x");
}

static void a_call_that_moves_data_has_both_ends(void **state)
{
	struct wp_dump_call call = { .nr = SYS_splice, .args = { 5, 0, 777 } };

	(void)state;
	assert_text(call, "fd 5 /x", "splice fd 5 /x to fd 777");
	call = (struct wp_dump_call){ .nr = SYS_tee, .args = { 5, 777 } };
	assert_text(call, "fd 5 /x", "tee fd 5 /x to fd 777");
}

/* Who waits for the lock of its memory map is in D, as for the disk. */
static void a_wait_for_the_disk_has_the_kernels_function(void **state)
{
	const struct wp_dump_call call = { .nr = SYS_munmap };
	char text[1024];

	(void)state;
	wchan = "rwsem_down_write_slowpath";
	assert_text(call, "",
		    "munmap, in rwsem_down_write_slowpath of the kernel");
	/* It is read after the sample. */
	make_text(text, sizeof(text), call, "", true);
	assert_string_equal(text, "munmap");
	wchan = NULL;
	assert_text(call, "", "munmap");
}

static void other_calls_have_their_object(void **state)
{
	(void)state;
	assert_text((struct wp_dump_call){ .nr = SYS_read },
		    "fd 7 tcp 127.0.0.1:80", "read fd 7 tcp 127.0.0.1:80");
	assert_text((struct wp_dump_call){ .nr = SYS_membarrier }, "",
		    "membarrier");
	assert_text((struct wp_dump_call){ .nr = 99999 }, "", "syscall_99999");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_call_has_no_text),
		cmocka_unit_test(a_futex_has_its_address_and_operation),
		cmocka_unit_test(a_poll_names_three_descriptors),
		cmocka_unit_test(a_select_names_what_it_reads),
		cmocka_unit_test(an_epoll_tells_what_it_watches),
		cmocka_unit_test(epolls_are_read_for_so_long),
		cmocka_unit_test(a_sleep_has_its_time),
		cmocka_unit_test(a_wait_names_the_child),
		cmocka_unit_test(a_file_lock_has_its_file),
		cmocka_unit_test(a_call_that_moves_data_has_both_ends),
		cmocka_unit_test(a_wait_for_the_disk_has_the_kernels_function),
		cmocka_unit_test(other_calls_have_their_object),
	};

	return cmocka_run_group_tests_name("call_text", tests, open_self,
					   close_self);
}
