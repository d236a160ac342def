/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: dump.  Who has the mutexes of several processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "../../src/dump/shared_mutex.h"
#include "wallprof/clock.h"

/* Map N pages of memory, as many mappings; returns where. */
static char *map_pages(size_t n, size_t page)
{
	char *p = mmap(NULL, n * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	for (size_t i = 0; i < n; i += 2)
		assert_int_equal(mprotect(p + i * page, page, PROT_READ), 0);
	return p;
}

/* The memory map is read for each thread that waits. */
static void owners_are_sought_for_so_long(void **state)
{
	enum { THREADS = 2000, PAGES = 20000 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct wp_snapshot_process self = { .process = WP_PROCESS_INIT };
	struct wp_snapshot_process *processes[] = { &self };
	struct wp_snapshot snapshot = { .dump = WP_DUMP_INIT,
					.processes = processes };
	char *pages = map_pages(PAGES, page);
	uint64_t began_ns;

	(void)state;
	assert_int_equal(wp_process_open(&self.process, getpid(), NULL), 0);
	assert_non_null(wp_dump_add_process(&snapshot.dump));
	for (int i = 0; i < THREADS; i++) {
		struct wp_dump_thread *t = wp_dump_add_thread(&snapshot.dump);

		assert_non_null(t);
		t->state = WP_STATE_WAITING;
		t->lock.avma = (uint64_t)(uintptr_t)pages;
		t->lock.shared_owner = 1;
	}
	began_ns = wp_clock_cpu_ns();
	wp_shared_mutex_find(&snapshot, NULL);
	assert_true(wp_clock_cpu_ns() - began_ns < 2 * WP_NS_PER_S);
	wp_dump_clear(&snapshot.dump);
	wp_process_clear(&self.process);
	munmap(pages, PAGES * page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_are_sought_for_so_long),
	};

	return cmocka_run_group_tests_name("shared_mutex", tests, NULL, NULL);
}
