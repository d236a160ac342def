/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: bpf.  wallprof/task_scan.h against /proc/TID/schedstat of threads
 * made here, which sleep, run, begin and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <grp.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wallprof/clock.h"
#include "wallprof/io.h"
#include "wallprof/process.h"
#include "wallprof/procfs.h"
#include "wallprof/task_scan.h"
#include "wallprof/types.h"

enum { THREADS = 24, MANY = 2500, STACK = 65536, NOBODY = 65534, ROUNDS = 200 };

/* Records of a scan for few threads. */
enum { ROOM = 1024 };

struct sleeper {
	pthread_t thread;
	_Atomic pid_t tid;
	sem_t wake;
	/* Times it was woken; set by itself. */
	atomic_int woken;
	atomic_bool end;
};

static void *sleep_until_woken(void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, gettid());
	while (!atomic_load(&s->end)) {
		while (sem_wait(&s->wake))
			;
		atomic_fetch_add(&s->woken, 1);
	}
	return NULL;
}

static int schedstat_of(pid_t tid, struct wp_schedstat *ret)
{
	char path[64], text[96];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", tid);
	n = wp_io_read_at(-1, path, text, sizeof(text));
	return n < 0 ? (int)n : wp_schedstat_parse(ret, text, (size_t)n);
}

static char letter_of(pid_t tid)
{
	struct wp_proc_stat stat = { .state_char = '?' };
	char path[64], text[1024];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	n = wp_io_read_at(-1, path, text, sizeof(text));
	if (n > 0 && wp_proc_stat_parse(&stat, text, (size_t)n))
		return '?';
	return stat.state_char;
}

/* A thread has the letter of sleep before it has left its CPU, when its times still
 * lack its last turn.  /proc/TID/syscall has a number only for one that has left:
 * lib/syscall.c, collect_syscall(). */
static void wait_until_asleep(struct sleeper *s)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", s->tid);
	do {
		while (letter_of(s->tid) != 'S')
			sched_yield();
		assert_true(wp_io_read_at(-1, path, text, sizeof(text)) > 0);
	} while (text[0] < '0' || text[0] > '9');
}

static struct sleeper *begin_sleepers(size_t n)
{
	struct sleeper *v = calloc(n, sizeof(*v));
	pthread_attr_t attr;

	assert_non_null(v);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (size_t i = 0; i < n; i++) {
		sem_init(&v[i].wake, 0, 0);
		assert_int_equal(pthread_create(&v[i].thread, &attr,
						sleep_until_woken, &v[i]),
				 0);
	}
	pthread_attr_destroy(&attr);
	for (size_t i = 0; i < n; i++)
		while (!atomic_load(&v[i].tid))
			sched_yield();
	return v;
}

static struct sleeper *start_sleepers(size_t n)
{
	struct sleeper *v = begin_sleepers(n);

	for (size_t i = 0; i < n; i++)
		wait_until_asleep(&v[i]);
	return v;
}

static void end_sleeper(struct sleeper *s)
{
	atomic_store(&s->end, true);
	sem_post(&s->wake);
	pthread_join(s->thread, NULL);
	/* A thread is joined a little before the kernel forgets it. */
	while (letter_of(s->tid) != '?')
		sched_yield();
	sem_destroy(&s->wake);
}

static void end_sleepers(struct sleeper *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		end_sleeper(&v[i]);
	free(v);
}

/* A kernel that should take the program. */
static bool is_new_enough(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%d.%d", &major, &minor), 2);
	return major * 1000 + minor >= 6007 &&
	       !access("/sys/kernel/btf/vmlinux", R_OK);
}

/* NULL, and why is said, where BPF is not to be had. */
static struct wp_task_scan *open_scan(pid_t pid, size_t nthreads)
{
	struct wp_task_scan *scan = NULL;
	struct wp_err err = WP_ERR_INIT;
	int rc = wp_task_scan_open(&scan, nthreads, &err);

	if (!rc) {
		assert_int_equal(wp_task_scan_add(scan, pid), 0);
		return scan;
	}
	assert_int_equal(rc, err.code);
	assert_true(rc == -EPERM || rc == -ENOTSUP);
	print_message("no BPF here: %s\n", err.msg);
	if (rc == -ENOTSUP)
		assert_true(strstr(err.msg, "built without") ||
			    !is_new_enough());
	return NULL;
}

#define OPEN_OR_SKIP(scan, pid, n)                                             \
	do {                                                                   \
		scan = open_scan(pid, n);                                      \
		if (!scan)                                                     \
			skip();                                                \
	} while (0)

struct found {
	const struct wp_task_record *const *v;
	size_t n;
	/* Of threads that moved: context switches of the machine. */
	uint64_t switches;
};

static struct found read_all(struct wp_task_scan *scan)
{
	struct found found = { .n = 0 };

	assert_int_equal(wp_task_scan_read(scan, &found.v, &found.n), 0);
	for (size_t i = 1; i < found.n; i++)
		assert_true(found.v[i - 1]->pid < found.v[i]->pid ||
			    (found.v[i - 1]->pid == found.v[i]->pid &&
			     found.v[i - 1]->tid < found.v[i]->tid));
	return found;
}

static const struct wp_task_record *find(struct found found, pid_t tid)
{
	for (size_t i = 0; i < found.n; i++)
		if (found.v[i]->tid == tid)
			return found.v[i];
	return NULL;
}

static struct wp_task_record get(struct found found, pid_t tid)
{
	const struct wp_task_record *r = find(found, tid);

	if (!r)
		fail();
	return r ? *r : (struct wp_task_record){ 0 };
}

static void assert_same(const struct wp_task_record *r,
			const struct wp_schedstat *want)
{
	assert_non_null(r);
	assert_int_equal(r->run_ns, want->run_ns);
	assert_int_equal(r->wait_ns, want->wait_ns);
	assert_int_equal(r->slices, want->slices);
}

static void sleeping_threads_are_as_schedstat_says(void **state)
{
	struct sleeper *v;
	struct wp_task_scan *scan;
	struct found found;
	uint64_t begin_ns, end_ns;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), THREADS);
	v = start_sleepers(THREADS);
	begin_ns = wp_clock_ns();
	found = read_all(scan);
	end_ns = wp_clock_ns();
	assert_int_equal(found.n, THREADS + 1);
	assert_non_null(find(found, getpid()));
	for (int i = 0; i < THREADS; i++) {
		const struct wp_task_record *r = find(found, v[i].tid);
		struct wp_schedstat want;

		assert_int_equal(schedstat_of(v[i].tid, &want), 0);
		assert_true(want.slices);
		assert_same(r, &want);
		assert_in_range(r->time_ns, begin_ns, end_ns);
	}
	end_sleepers(v, THREADS);
	wp_task_scan_close(scan);
}

static void only_the_thread_that_was_woken_has_moved(void **state)
{
	struct sleeper *v;
	struct wp_task_scan *scan;
	struct wp_schedstat before[THREADS], now;
	struct found found;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), THREADS);
	v = start_sleepers(THREADS);
	for (int round = 0; round < THREADS; round++) {
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(schedstat_of(v[i].tid, &before[i]), 0);
		sem_post(&v[round].wake);
		while (!atomic_load(&v[round].woken))
			sched_yield();
		wait_until_asleep(&v[round]);
		found = read_all(scan);
		for (int i = 0; i < THREADS; i++) {
			const struct wp_task_record *r = find(found, v[i].tid);

			if (i != round) {
				assert_same(r, &before[i]);
				continue;
			}
			/* Its turn may have taken no time, where all of it was
			 * a hypervisor's: kernel/sched/core.c,
			 * update_rq_clock_task(). */
			assert_int_equal(schedstat_of(v[i].tid, &now), 0);
			assert_same(r, &now);
			assert_true(now.slices > before[i].slices);
		}
	}
	end_sleepers(v, THREADS);
	wp_task_scan_close(scan);
}

/* The threads that were put on a CPU since the last reading, or were ready then. */
static struct found read_moved(struct wp_task_scan *scan)
{
	struct found found = { .n = 0 };

	assert_int_equal(wp_task_scan_read_moved(scan, &found.v, &found.n,
						 &found.switches),
			 0);
	for (size_t i = 1; i < found.n; i++)
		assert_true(found.v[i - 1]->tid < found.v[i]->tid);
	return found;
}

static int try_moved(struct wp_task_scan *scan)
{
	struct found found;

	return wp_task_scan_read_moved(scan, &found.v, &found.n,
				       &found.switches);
}

static void wake(struct sleeper *s)
{
	int before = atomic_load(&s->woken);

	sem_post(&s->wake);
	while (atomic_load(&s->woken) == before)
		sched_yield();
	wait_until_asleep(s);
}

static void only_the_thread_that_was_woken_is_noted(void **state)
{
	struct sleeper *v;
	struct wp_task_scan *scan;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), THREADS);
	v = start_sleepers(THREADS);
	assert_int_equal(wp_task_scan_note_switches(scan, true), 0);
	read_all(scan);
	for (int round = 0; round < THREADS; round++) {
		struct wp_task_record r;
		struct wp_schedstat now;

		/* Until each that is on its way to sleep is there. */
		while (read_moved(scan).n > 1)
			usleep(100);
		wake(&v[round]);
		do {
			struct found found = read_moved(scan);

			assert_int_equal(found.n, 2);
			assert_true(found.switches);
			r = get(found, v[round].tid);
			assert_int_equal(get(found, getpid()).state_char, 0);
		} while (r.is_ready);
		assert_int_equal(schedstat_of(v[round].tid, &now), 0);
		assert_same(&r, &now);
		assert_int_equal(r.state_char, 'S');
	}
	end_sleepers(v, THREADS);
	wp_task_scan_close(scan);
}

static void all_are_to_be_read_where_notes_lack_a_thread(void **state)
{
	struct sleeper *v;
	struct wp_task_scan *scan;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), THREADS);
	v = start_sleepers(THREADS);
	assert_int_equal(try_moved(scan), -EAGAIN);
	assert_int_equal(wp_task_scan_note_switches(scan, true), 0);
	assert_int_equal(try_moved(scan), -EAGAIN);
	read_all(scan);
	assert_int_equal(try_moved(scan), 0);
	/* The process is new to the program. */
	assert_int_equal(wp_task_scan_add(scan, getpid()), 0);
	assert_int_equal(try_moved(scan), -EAGAIN);
	read_all(scan);
	assert_int_equal(try_moved(scan), 0);
	/* A thread has ended.  It leaves its CPU a little after /proc has forgotten it,
	 * which is noted too. */
	end_sleeper(&v[0]);
	assert_int_equal(try_moved(scan), -EAGAIN);
	do
		assert_int_equal(read_all(scan).n, THREADS);
	while (try_moved(scan));
	assert_int_equal(wp_task_scan_note_switches(scan, false), 0);
	assert_int_equal(try_moved(scan), -EAGAIN);
	for (int i = 1; i < THREADS; i++)
		end_sleeper(&v[i]);
	free(v);
	wp_task_scan_close(scan);
}

/* As many have no room in the notes. */
static void so_many_that_move_are_all_read(void **state)
{
	struct sleeper *v;
	struct wp_task_scan *scan;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), MANY);
	v = start_sleepers(MANY);
	assert_int_equal(wp_task_scan_note_switches(scan, true), 0);
	read_all(scan);
	for (int i = 0; i < MANY; i++)
		sem_post(&v[i].wake);
	for (int i = 0; i < MANY; i++)
		while (!atomic_load(&v[i].woken))
			sched_yield();
	assert_int_equal(try_moved(scan), -EAGAIN);
	assert_int_equal(read_all(scan).n, MANY + 1);
	/* Each of them is noted again. */
	for (int i = 0; i < MANY; i += 50) {
		wake(&v[i]);
		assert_non_null(find(read_moved(scan), v[i].tid));
	}
	end_sleepers(v, MANY);
	wp_task_scan_close(scan);
}

static int pid_max(void)
{
	char text[32] = "";

	wp_io_read_at(-1, "/proc/sys/kernel/pid_max", text, sizeof(text) - 1);
	return atoi(text);
}

static bool set_pid_max(int most)
{
	FILE *f = fopen("/proc/sys/kernel/pid_max", "w");
	bool ok = f && fprintf(f, "%d", most) > 0;

	return f && !fclose(f) && ok;
}

/* A process that wakes 1,000 times a second, with a tid over pid_max; 0: pid_max cannot
 * be set. */
static pid_t start_over_pid_max(void)
{
	int most = pid_max();
	pid_t tid = most + 1000, pid;
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uintptr_t)&tid,
				   .set_tid_size = 1 };

	if (!set_pid_max(most + 2000))
		return 0;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			usleep(1000);
	}
	assert_true(set_pid_max(most));
	assert_int_equal(pid, tid);
	return pid;
}

static uint64_t switches_of(pid_t tid)
{
	struct wp_schedstat now;

	assert_int_equal(schedstat_of(tid, &now), 0);
	return now.slices;
}

static void a_thread_over_pid_max_is_no_hindrance(void **state)
{
	struct sleeper *v;
	struct wp_task_scan *scan;
	pid_t other = start_over_pid_max();
	uint64_t before;

	(void)state;
	if (!other)
		skip();
	/* Of a process that is not asked for. */
	OPEN_OR_SKIP(scan, getpid(), THREADS);
	v = start_sleepers(THREADS);
	assert_int_equal(wp_task_scan_note_switches(scan, true), 0);
	read_all(scan);
	before = switches_of(other);
	while (switches_of(other) < before + 10)
		assert_int_equal(try_moved(scan), 0);
	wp_task_scan_close(scan);
	/* Of one that is: nothing can be noted of it. */
	OPEN_OR_SKIP(scan, other, 1);
	assert_int_equal(wp_task_scan_note_switches(scan, true), 0);
	assert_int_equal(read_all(scan).n, 1);
	before = switches_of(other);
	while (switches_of(other) < before + 2)
		;
	assert_int_equal(try_moved(scan), -EAGAIN);
	wp_task_scan_close(scan);
	end_sleepers(v, THREADS);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

struct spinner {
	struct sleeper s;
	/* Whether it runs, and is to. */
	atomic_bool runs, on;
};

static void *spin_when_woken(void *arg)
{
	struct spinner *spinner = arg;

	atomic_store(&spinner->s.tid, gettid());
	while (!atomic_load(&spinner->s.end)) {
		while (sem_wait(&spinner->s.wake))
			;
		atomic_store(&spinner->runs, true);
		while (atomic_load(&spinner->on))
			;
		atomic_store(&spinner->runs, false);
	}
	return NULL;
}

/* From its first instant on a CPU on, and at each reading. */
static void who_runs_is_read_each_time(void **state)
{
	struct spinner spinner = { .runs = false };
	struct wp_task_scan *scan;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), 2);
	sem_init(&spinner.s.wake, 0, 0);
	assert_int_equal(pthread_create(&spinner.s.thread, NULL,
					spin_when_woken, &spinner),
			 0);
	while (!atomic_load(&spinner.s.tid))
		sched_yield();
	wait_until_asleep(&spinner.s);
	assert_int_equal(wp_task_scan_note_switches(scan, true), 0);
	read_all(scan);
	for (int round = 0; round < ROUNDS; round++) {
		while (read_moved(scan).n > 1)
			usleep(10);
		atomic_store(&spinner.on, true);
		sem_post(&spinner.s.wake);
		while (!atomic_load(&spinner.runs))
			sched_yield();
		for (int i = 0; i < 3; i++)
			assert_int_equal(
				get(read_moved(scan), spinner.s.tid).state_char,
				0);
		atomic_store(&spinner.on, false);
		while (atomic_load(&spinner.runs))
			sched_yield();
		wait_until_asleep(&spinner.s);
	}
	end_sleeper(&spinner.s);
	wp_task_scan_close(scan);
}

struct wakers {
	struct sleeper *v;
	atomic_bool on, idle, end;
	unsigned int seed;
};

static void *wake_at_random(void *arg)
{
	struct wakers *w = arg;

	while (!atomic_load(&w->end)) {
		atomic_store(&w->idle, !atomic_load(&w->on));
		if (!atomic_load(&w->idle))
			sem_post(&w->v[rand_r(&w->seed) % THREADS].wake);
		if (atomic_load(&w->idle) || rand_r(&w->seed) % 4 == 0)
			usleep(50);
	}
	return NULL;
}

/* Take what RECORDS tell of threads that are off their CPU.  Returns how many are not
 * yet: they are read again next time. */
static int keep_times(const struct sleeper *v, struct wp_schedstat *last,
		      struct found records)
{
	int nleft = 0;

	for (int i = 0; i < THREADS; i++) {
		const struct wp_task_record *r = find(records, v[i].tid);

		if (r && !r->is_ready)
			last[i] = (struct wp_schedstat){ r->run_ns, r->wait_ns,
							 r->slices };
		nleft += r && r->is_ready;
	}
	return nleft;
}

static void let_all_sleep(struct sleeper *v, struct wakers *w)
{
	int left;

	atomic_store(&w->on, false);
	/* It is set anew once ON has been read anew. */
	atomic_store(&w->idle, false);
	while (!atomic_load(&w->idle))
		usleep(100);
	for (int i = 0; i < THREADS; i++) {
		do
			assert_int_equal(sem_getvalue(&v[i].wake, &left), 0);
		while (left > 0);
		wait_until_asleep(&v[i]);
	}
}

/* What notes tell of threads that another wakes all the time is all that these did: so
 * say the scheduler's books once they sleep again. */
static void no_switch_is_missed(void **state)
{
	struct wakers w = { .seed = 1 };
	struct wp_schedstat last[THREADS], now;
	struct wp_task_scan *scan;
	pthread_t waker;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), THREADS);
	w.v = start_sleepers(THREADS);
	assert_int_equal(pthread_create(&waker, NULL, wake_at_random, &w), 0);
	assert_int_equal(wp_task_scan_note_switches(scan, true), 0);
	keep_times(w.v, last, read_all(scan));
	for (int round = 0; round < 50; round++) {
		atomic_store(&w.on, true);
		for (int look = 0; look < 20; look++) {
			usleep(500);
			keep_times(w.v, last, read_moved(scan));
		}
		let_all_sleep(w.v, &w);
		while (keep_times(w.v, last, read_moved(scan)))
			usleep(100);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(schedstat_of(w.v[i].tid, &now), 0);
			assert_int_equal(last[i].slices, now.slices);
			assert_int_equal(last[i].run_ns, now.run_ns);
		}
	}
	atomic_store(&w.end, true);
	pthread_join(waker, NULL);
	end_sleepers(w.v, THREADS);
	wp_task_scan_close(scan);
}

static void *spin(void *arg)
{
	struct sleeper *s = arg;

	atomic_store(&s->tid, gettid());
	while (!atomic_load(&s->end))
		;
	return NULL;
}

static struct wp_proc_syscall syscall_of(pid_t tid)
{
	struct wp_proc_syscall call = { .running = true };
	char path[64], text[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	n = wp_io_read_at(-1, path, text, sizeof(text));
	assert_true(n > 0);
	assert_int_equal(wp_proc_syscall_parse(&call, text, (size_t)n), 0);
	assert_false(call.running);
	return call;
}

static void sleeping_threads_stand_where_proc_says(void **state)
{
	struct sleeper *v;
	struct wp_task_scan *scan;
	struct found found;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), THREADS);
	v = start_sleepers(THREADS);
	for (int round = 0; round < 3; round++) {
		found = read_all(scan);
		for (int i = 0; i < THREADS; i++) {
			struct wp_task_record r = get(found, v[i].tid);
			struct wp_proc_syscall want = syscall_of(v[i].tid);

			assert_int_equal(r.state_char, 'S');
			assert_int_equal(r.nr, want.nr);
			assert_int_equal(r.regs[WP_REG_SP], want.sp_avma);
			assert_int_equal(r.regs[WP_REG_PC], want.pc_avma);
#if defined(__x86_64__)
			assert_int_equal(r.regs[5], want.args[0]);
			assert_int_equal(r.regs[4], want.args[1]);
#endif
		}
		/* The reader itself is on a CPU. */
		assert_int_equal(get(found, getpid()).state_char, 0);
	}
	end_sleepers(v, THREADS);
	wp_task_scan_close(scan);
}

static void *sleep_under_a_name(void *arg)
{
	pthread_setname_np(pthread_self(), "fifteen letters");
	return sleep_until_woken(arg);
}

static void a_thread_has_its_name_and_when_it_began(void **state)
{
	struct sleeper s[2] = { 0 };
	struct wp_task_scan *scan;
	struct found found;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), 2);
	for (int i = 0; i < 2; i++) {
		sem_init(&s[i].wake, 0, 0);
		assert_int_equal(pthread_create(&s[i].thread, NULL,
						sleep_under_a_name, &s[i]),
				 0);
		while (!atomic_load(&s[i].tid))
			sched_yield();
		wait_until_asleep(&s[i]);
	}
	found = read_all(scan);
	for (int i = 0; i < 2; i++)
		assert_string_equal(get(found, s[i].tid).comm,
				    "fifteen letters");
	assert_true(get(found, s[0].tid).start_ns <
		    get(found, s[1].tid).start_ns);
	for (int i = 0; i < 2; i++)
		end_sleeper(&s[i]);
	wp_task_scan_close(scan);
}

#if defined(__x86_64__)
/* Sleep in read(FD, BYTE, 1) with register N of the callee-saved ones being
 * N * 0x1111. */
void read_with_known_registers(int fd, char *byte);
__asm__(".text\n"
	"read_with_known_registers:\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"mov $0x3333, %ebx; mov $0x6666, %ebp; mov $0xcccc, %r12d\n"
	"mov $0xdddd, %r13d; mov $0xeeee, %r14d; mov $0xffff, %r15d\n"
	"mov $1, %edx; xor %eax, %eax; syscall\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"ret\n");

static void a_waiting_thread_has_all_registers(void **state)
{
	struct wp_task_scan *scan;
	struct wp_task_record r = { 0 };
	int fds[2];
	char byte;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(fds[1]);
		read_with_known_registers(fds[0], &byte);
		_exit(0);
	}
	scan = open_scan(child, 1);
	while (scan && (!r.state_char || r.nr != SYS_read))
		r = get(read_all(scan), child);
	if (scan) {
		assert_int_equal(r.regs[3], 0x3333);
		assert_int_equal(r.regs[6], 0x6666);
		assert_int_equal(r.regs[12], 0xcccc);
		assert_int_equal(r.regs[13], 0xdddd);
		assert_int_equal(r.regs[14], 0xeeee);
		assert_int_equal(r.regs[15], 0xffff);
		assert_int_equal(r.regs[5], fds[0]);
	}
	wp_task_scan_close(scan);
	close(fds[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(fds[0]);
	if (!scan)
		skip();
}
#endif

/* A read before and one after are the bounds of what lies between. */
static void running_thread_lies_between_two_reads(void **state)
{
	struct sleeper s = { .tid = 0 };
	struct wp_task_scan *scan;
	uint64_t first = 0, last = 0;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), 2);
	assert_int_equal(pthread_create(&s.thread, NULL, spin, &s), 0);
	while (!atomic_load(&s.tid))
		sched_yield();
	/* Until it has been seen to move: ticks count its time. */
	for (int i = 0; i < 100 || last == first; i++) {
		struct wp_schedstat low, high;
		const struct wp_task_record *r;

		assert_int_equal(schedstat_of(s.tid, &low), 0);
		r = find(read_all(scan), s.tid);
		assert_int_equal(schedstat_of(s.tid, &high), 0);
		assert_non_null(r);
		assert_in_range(r->run_ns, low.run_ns, high.run_ns);
		assert_in_range(r->wait_ns, low.wait_ns, high.wait_ns);
		assert_in_range(r->slices, low.slices, high.slices);
		first = first ? first : r->run_ns;
		last = r->run_ns;
		sched_yield();
	}
	atomic_store(&s.end, true);
	pthread_join(s.thread, NULL);
	wp_task_scan_close(scan);
}

static void threads_that_begin_and_end_come_and_go(void **state)
{
	struct sleeper *few, *many;
	struct wp_task_scan *scan;
	struct found found;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), THREADS + MANY);
	few = start_sleepers(THREADS);
	assert_int_equal(read_all(scan).n, THREADS + 1);
	many = start_sleepers(MANY);
	found = read_all(scan);
	assert_int_equal(found.n, THREADS + MANY + 1);
	for (int i = 0; i < MANY; i++) {
		struct wp_schedstat want;

		assert_int_equal(schedstat_of(many[i].tid, &want), 0);
		assert_same(find(found, many[i].tid), &want);
	}
	end_sleepers(many, MANY);
	found = read_all(scan);
	assert_int_equal(found.n, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		assert_non_null(find(found, few[i].tid));
	end_sleepers(few, THREADS);
	assert_int_equal(read_all(scan).n, 1);
	wp_task_scan_close(scan);
}

/* Those that are read are not harmed by the others; and there may be room again. */
static void threads_without_room_are_counted(void **state)
{
	struct wp_task_scan *scan;
	struct sleeper *few, *many;
	struct found found;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), 1);
	few = start_sleepers(THREADS);
	assert_int_equal(read_all(scan).n, THREADS + 1);
	assert_int_equal(wp_task_scan_lacks_room(scan), 0);
	many = start_sleepers(MANY);
	found = read_all(scan);
	assert_int_equal(found.n, ROOM);
	assert_int_equal(wp_task_scan_lacks_room(scan), THREADS + MANY + 1);
	for (int i = 0; i < THREADS; i++) {
		struct wp_schedstat want;

		assert_int_equal(schedstat_of(few[i].tid, &want), 0);
		assert_same(find(found, few[i].tid), &want);
	}
	end_sleepers(many, MANY);
	assert_int_equal(read_all(scan).n, THREADS + 1);
	assert_int_equal(wp_task_scan_lacks_room(scan), 0);
	end_sleepers(few, THREADS);
	wp_task_scan_close(scan);
}

static void process_that_has_gone_has_no_threads(void **state)
{
	struct wp_task_scan *scan;
	struct found found;
	int status;
	pid_t child = fork();

	(void)state;
	if (!child) {
		pause();
		_exit(0);
	}
	scan = open_scan(child, 1);
	if (scan) {
		found = read_all(scan);
		assert_int_equal(found.n, 1);
		assert_int_equal(found.v[0]->tid, child);
	}
	kill(child, SIGKILL);
	if (scan) {
		/* A zombie's thread has exited. */
		siginfo_t info;

		waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
		assert_int_equal(read_all(scan).n, 0);
	}
	waitpid(child, &status, 0);
	if (!scan)
		skip();
	assert_int_equal(read_all(scan).n, 0);
	wp_task_scan_close(scan);
}

enum { CHILDREN = 5 };

/* A child that sleeps until it is killed. */
static pid_t start_child(void)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return child;
}

static void end_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static size_t count_of(struct found found, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < found.n; i++)
		n += found.v[i]->pid == pid;
	return n;
}

/* Also of a process that is not asked for. */
static void several_processes_have_their_own_threads(void **state)
{
	struct wp_task_scan *scan;
	struct sleeper *few, *many;
	struct found found;
	pid_t child[CHILDREN];

	(void)state;
	for (int i = 0; i < CHILDREN; i++)
		child[i] = start_child();
	scan = open_scan(child[1], THREADS + MANY);
	for (int i = 2; scan && i < CHILDREN; i++)
		assert_int_equal(wp_task_scan_add(scan, child[i]), 0);
	few = begin_sleepers(THREADS);
	if (scan) {
		found = read_all(scan);
		assert_int_equal(found.n, CHILDREN - 1);
		for (int i = 1; i < CHILDREN; i++)
			assert_int_equal(count_of(found, child[i]), 1);
		assert_int_equal(wp_task_scan_add(scan, getpid()), 0);
		assert_int_equal(count_of(read_all(scan), getpid()),
				 THREADS + 1);
		many = begin_sleepers(MANY);
		found = read_all(scan);
		assert_int_equal(count_of(found, getpid()), THREADS + MANY + 1);
		assert_int_equal(found.n, THREADS + MANY + CHILDREN);
		wp_task_scan_drop(scan, getpid());
		wp_task_scan_drop(scan, child[1]);
		assert_int_equal(read_all(scan).n, CHILDREN - 2);
		end_sleepers(many, MANY);
	}
	end_sleepers(few, THREADS);
	for (int i = 0; i < CHILDREN; i++)
		end_child(child[i]);
	if (!scan)
		skip();
	assert_int_equal(read_all(scan).n, 0);
	wp_task_scan_close(scan);
}

/* A child that runs CHECK; its exit status. */
static int in_child(int (*check)(void))
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(check());
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum { GOOD = 0, SKIPPED = 77 };

/* The first of a new PID namespace: its numbers are 1, 2, 3, and others
 * outside.  /proc here has those of outside. */
static int scan_inside(int to_outer, int from_outer)
{
	struct wp_task_scan *scan = open_scan(getpid(), 2);
	struct sleeper *s;
	struct found found;
	char c = 0;

	if (!scan)
		return SKIPPED;
	s = begin_sleepers(2);
	/* Among all processes, and none outside is taken for it. */
	if (wp_task_scan_add(scan, 1000000))
		return 8;
	found = read_all(scan);
	for (int i = 0; i < 3; i++)
		if (found.n != 3 || found.v[i]->tid != i + 1)
			return 1;
	for (int i = 0; i < 2; i++)
		if (s[i].tid != i + 2)
			return 2;
	return write(to_outer, &c, 1) == 1 && read(from_outer, &c, 1) == 1 ?
		       GOOD :
		       3;
}

/* The same threads from outside, as they are listed there. */
static int scan_from_outside(pid_t pid)
{
	struct wp_process process = WP_PROCESS_INIT;
	struct wp_tids tids = WP_TIDS_INIT;
	struct wp_task_scan *scan = open_scan(pid, 3);
	struct found found;

	if (!scan)
		return SKIPPED;
	found = read_all(scan);
	if (wp_process_open(&process, pid, NULL) ||
	    wp_process_list_threads(&process, &tids) || tids.len != 3 ||
	    found.n != 3)
		return 4;
	for (size_t i = 0; i < 3; i++)
		if (!find(found, tids.v[i]))
			return 5;
	return GOOD;
}

static int look_at_namespace(void)
{
	int to_outer[2], to_inner[2], status, rc = GOOD;
	pid_t inner;
	char c = 0;

	if (pipe(to_outer) || pipe(to_inner))
		return 6;
	if (unshare(CLONE_NEWPID)) {
		print_message("no PID namespace here: %s\n", strerror(errno));
		return SKIPPED;
	}
	inner = fork();
	if (!inner)
		_exit(scan_inside(to_outer[1], to_inner[0]));
	close(to_outer[1]);
	if (read(to_outer[0], &c, 1) == 1)
		rc = scan_from_outside(inner);
	if (write(to_inner[1], &c, 1) != 1)
		return 7;
	waitpid(inner, &status, 0);
	return rc ? rc : WEXITSTATUS(status);
}

static void numbers_are_those_of_the_readers_namespace(void **state)
{
	int rc = in_child(look_at_namespace);

	(void)state;
	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, GOOD);
}

static int be_nobody(void)
{
	struct wp_task_scan *scan = NULL;
	struct wp_err err = WP_ERR_INIT;
	int rc;

	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		return SKIPPED;
	rc = wp_task_scan_open(&scan, 1, &err);
	if (rc == -ENOTSUP)
		return SKIPPED;
	return rc == -EPERM && strstr(err.msg, "not permitted") ? GOOD : 1;
}

static void without_rights_it_says_so(void **state)
{
	int rc = in_child(be_nobody);

	(void)state;
	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, GOOD);
}

static size_t count_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF;
	return n;
}

static void nothing_is_left_open(void **state)
{
	size_t before = count_fds();
	struct wp_task_scan *scan;

	(void)state;
	OPEN_OR_SKIP(scan, getpid(), 1);
	read_all(scan);
	assert_true(count_fds() > before);
	wp_task_scan_close(scan);
	assert_int_equal(count_fds(), before);
	wp_task_scan_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeping_threads_are_as_schedstat_says),
		cmocka_unit_test(only_the_thread_that_was_woken_has_moved),
		cmocka_unit_test(only_the_thread_that_was_woken_is_noted),
		cmocka_unit_test(all_are_to_be_read_where_notes_lack_a_thread),
		cmocka_unit_test(so_many_that_move_are_all_read),
		cmocka_unit_test(a_thread_over_pid_max_is_no_hindrance),
		cmocka_unit_test(no_switch_is_missed),
		cmocka_unit_test(who_runs_is_read_each_time),
		cmocka_unit_test(sleeping_threads_stand_where_proc_says),
		cmocka_unit_test(a_thread_has_its_name_and_when_it_began),
#if defined(__x86_64__)
		cmocka_unit_test(a_waiting_thread_has_all_registers),
#endif
		cmocka_unit_test(running_thread_lies_between_two_reads),
		cmocka_unit_test(threads_that_begin_and_end_come_and_go),
		cmocka_unit_test(threads_without_room_are_counted),
		cmocka_unit_test(process_that_has_gone_has_no_threads),
		cmocka_unit_test(several_processes_have_their_own_threads),
		cmocka_unit_test(numbers_are_those_of_the_readers_namespace),
		cmocka_unit_test(without_rights_it_says_so),
		cmocka_unit_test(nothing_is_left_open),
	};

	return cmocka_run_group_tests_name("task_scan", tests, NULL, NULL);
}
