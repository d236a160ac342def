/* SPDX-License-Identifier: Apache-2.0 */
/* Layer: symbolize.  src/namer.h: what becomes of names when the child fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../src/symbolize/namer.h"
#include "../../src/symbolize/namer_protocol.h"

enum { PER_MODULE = 3, NMODULES = 3, NADDRESSES = PER_MODULE * NMODULES };

static const struct wp_namer_module modules[NMODULES] = {
	{ 1, { 0x1000, 0x2000, 0, 0x1000, "/one", NULL, false }, false },
	{ 2, { 0x2000, 0x3000, 0, 0x2000, "/two\033[2J", NULL, false }, false },
	{ 5, { 0x5000, 0x6000, 0, 0x5000, "/five", NULL, false }, false },
};
static struct wp_namer_address addresses[NADDRESSES];
static volatile sig_atomic_t interrupts;

/* What the parent got. */
static bool answered[NADDRESSES];
static uint32_t nanswers;
static int answer_rc;

static int take_answer(void *ctx, uint32_t index,
		       const struct wp_symbol_line *lines, uint32_t n)
{
	(void)ctx;
	assert_true(index < NADDRESSES && !answered[index]);
	assert_int_equal(n, 1);
	assert_string_equal(lines[0].function, "f");
	answered[index] = true;
	nanswers++;
	return answer_rc;
}

static void take_has(void *ctx, uint32_t module,
		     const struct wp_symbol_has *has)
{
	(void)ctx;
	(void)has;
	assert_true(module == 1 || module == 2 || module == 5);
}

static void send_wire(int sock, struct wp_protocol_buf *wire)
{
	if (send(sock, wire->data, wire->len, MSG_NOSIGNAL) !=
	    (ssize_t)wire->len)
		_exit(1);
	wire->len = 0;
}

static void send_answers(int sock, uint32_t n)
{
	static const struct wp_symbol_line line = { "f", "f", "", 0, 0 };
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;

	for (uint32_t i = 0; i < n; i++)
		if (wp_protocol_add_answer(&wire, &line, 1))
			_exit(1);
	send_wire(sock, &wire);
}

static void __attribute__((noreturn))
send_end(int sock, enum wp_protocol_end how)
{
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;

	if (wp_protocol_add_end(&wire, how, EPERM))
		_exit(1);
	send_wire(sock, &wire);
	_exit(0);
}

static struct wp_namer_end
run(void (*child)(const struct wp_namer *, uint32_t, int, pid_t), int want_rc)
{
	struct wp_namer namer = {
		.modules = modules,
		.nmodules = NMODULES,
		.addresses = addresses,
		.naddresses = NADDRESSES,
		.perf_map_fd = -1,
		.interrupts = &interrupts,
		.child = child,
		.answer = take_answer,
		.has = take_has,
	};
	struct wp_namer_end end;

	for (uint32_t i = 0; i < NADDRESSES; i++)
		addresses[i] = (struct wp_namer_address){
			modules[i / PER_MODULE].id, i
		};
	memset(answered, 0, sizeof(answered));
	nanswers = 0;
	assert_int_equal(wp_namer_run(&namer, &end), want_rc);
	return end;
}

static void good(const struct wp_namer *namer, uint32_t first, int sock,
		 pid_t parent)
{
	(void)parent;
	send_answers(sock, namer->naddresses - first);
	send_end(sock, WP_PROTOCOL_DONE);
}

static void all_are_named(void **state)
{
	struct wp_namer_end end = run(good, 0);

	(void)state;
	assert_string_equal(end.why, "");
	assert_int_equal(nanswers, NADDRESSES);
}

/* In module 2 each time that it comes there. */
static void crashes(const struct wp_namer *namer, uint32_t first, int sock,
		    pid_t parent)
{
	if (first >= 2 * PER_MODULE)
		good(namer, first, sock, parent);
	send_answers(sock, PER_MODULE + 1);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	_exit(1);
}

static void a_crash_costs_the_rest_of_its_module(void **state)
{
	struct wp_namer_end end = run(crashes, 0);

	(void)state;
	assert_string_equal(end.why, "the symboliser was killed by signal 11 "
				     "(Segmentation fault) at two?[2J");
	assert_int_equal(nanswers, NADDRESSES - 2);
	assert_true(answered[3] && !answered[4] && !answered[5] && answered[6]);
}

static void dies_at_once(const struct wp_namer *namer, uint32_t first, int sock,
			 pid_t parent)
{
	(void)namer;
	(void)first;
	(void)sock;
	(void)parent;
	_exit(3);
}

static void one_that_always_dies_is_given_up(void **state)
{
	struct wp_namer_end end = run(dies_at_once, 0);

	(void)state;
	assert_string_equal(end.why, "the symboliser ended too early at one");
	assert_int_equal(nanswers, 0);
}

static void has_no_memory(const struct wp_namer *namer, uint32_t first,
			  int sock, pid_t parent)
{
	if (first >= PER_MODULE)
		good(namer, first, sock, parent);
	send_end(sock, WP_PROTOCOL_NO_MEMORY);
}

static void no_memory_costs_a_module(void **state)
{
	struct wp_namer_end end = run(has_no_memory, 0);

	(void)state;
	assert_string_equal(end.why,
			    "the symboliser had no memory left at one");
	assert_int_equal(nanswers, NADDRESSES - PER_MODULE);
}

static void has_no_sandbox(const struct wp_namer *namer, uint32_t first,
			   int sock, pid_t parent)
{
	(void)namer;
	(void)first;
	(void)parent;
	send_end(sock, WP_PROTOCOL_NO_SANDBOX);
}

static void nothing_is_read_without_a_sandbox(void **state)
{
	struct wp_namer_end end = run(has_no_sandbox, 0);

	(void)state;
	assert_string_equal(end.why, "the symboliser could not give up its "
				     "rights (Operation not permitted) at one");
	assert_int_equal(nanswers, 0);
}

static void ends_early(const struct wp_namer *namer, uint32_t first, int sock,
		       pid_t parent)
{
	(void)namer;
	(void)first;
	(void)parent;
	send_answers(sock, 1);
	send_end(sock, WP_PROTOCOL_DONE);
}

static void answers_too_much(const struct wp_namer *namer, uint32_t first,
			     int sock, pid_t parent)
{
	(void)first;
	(void)parent;
	send_answers(sock, namer->naddresses + 1);
	send_end(sock, WP_PROTOCOL_DONE);
}

static void talks_forever(const struct wp_namer *namer, uint32_t first,
			  int sock, pid_t parent)
{
	static const struct wp_symbol_has has;
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;

	(void)namer;
	(void)first;
	(void)parent;
	for (;;) {
		if (wp_protocol_add_has(&wire, 77, &has))
			_exit(1);
		send_wire(sock, &wire);
	}
}

static void asks_for_what_it_may_not(const struct wp_namer *namer,
				     uint32_t first, int sock, pid_t parent)
{
	const struct wp_debug_query query = {
		WP_DEBUG_BY_LINK, 99, false, NULL, 0, "passwd"
	};
	struct wp_protocol_buf wire = WP_PROTOCOL_INIT;
	char byte;

	(void)namer;
	(void)first;
	(void)parent;
	if (wp_protocol_add_open(&wire, &query, 0))
		_exit(1);
	send_wire(sock, &wire);
	if (recv(sock, &byte, 1, 0) > 0)
		send_answers(sock, namer->naddresses);
	_exit(0);
}

static void liars_are_ended(void **state)
{
	struct wp_namer_end end = run(ends_early, 0);

	(void)state;
	assert_string_equal(end.why, "the symboliser made no sense at one");
	assert_int_equal(nanswers, 3);
	end = run(answers_too_much, 0);
	assert_int_equal(nanswers, NADDRESSES);
	end = run(talks_forever, 0);
	assert_string_equal(end.why, "the symboliser made no sense at one");
	assert_int_equal(nanswers, 0);
	end = run(asks_for_what_it_may_not, 0);
	assert_string_equal(end.why, "the symboliser made no sense at one");
	assert_int_equal(nanswers, 0);
}

static void what_the_parent_fails_at_ends_all(void **state)
{
	(void)state;
	answer_rc = -ENOMEM;
	run(good, -ENOMEM);
	assert_int_equal(nanswers, 1);
	answer_rc = 0;
}

static void hangs(const struct wp_namer *namer, uint32_t first, int sock,
		  pid_t parent)
{
	(void)namer;
	(void)first;
	(void)parent;
	send_answers(sock, 1);
	for (;;)
		pause();
}

static void an_interrupt_ends_it(void **state)
{
	struct wp_namer_end end;

	(void)state;
	interrupts = 2;
	end = run(hangs, 0);
	interrupts = 0;
	assert_true(end.interrupted);
}

static int note_answer(void *ctx, uint32_t index,
		       const struct wp_symbol_line *lines, uint32_t n)
{
	bool *named = ctx;

	(void)lines;
	assert_true(index < NMODULES && n >= 1);
	named[index] = true;
	return 0;
}

/* Let IMAGE be of a file that is cut off after it was opened. */
static void cut_file(struct wp_elf_image *image)
{
	int fd = memfd_create("cut", MFD_CLOEXEC);

	assert_int_equal(sendfile(fd, image->fd, NULL, image->size),
			 image->size);
	wp_elf_image_clear(image);
	assert_int_equal(wp_elf_image_open(image, fd, NULL), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
}

/* What the real child says of three addresses of FILES, each a module's. */
static struct wp_namer_end run_real(struct wp_elf_image files[NMODULES],
				    bool named[NMODULES])
{
	struct wp_namer_module real[NMODULES];
	struct wp_namer_address where[NMODULES];
	struct wp_namer namer = {
		.modules = real,
		.nmodules = NMODULES,
		.addresses = where,
		.naddresses = NMODULES,
		.perf_map_fd = -1,
		.interrupts = &interrupts,
		.child = wp_namer_child,
		.answer = note_answer,
		.has = take_has,
		.ctx = named,
	};
	struct wp_namer_end end;

	for (uint32_t i = 0; i < NMODULES; i++) {
		real[i] = modules[i];
		real[i].module.image = &files[i];
		where[i] = (struct wp_namer_address){
			modules[i].id, modules[i].module.start_avma
		};
		named[i] = false;
	}
	assert_int_equal(wp_namer_run(&namer, &end), 0);
	return end;
}

/* The symboliser maps its files: touching a page that was cut off ends it. */
static void a_file_that_shrinks_costs_the_names_of_its_module(void **state)
{
	struct wp_elf_image files[NMODULES];
	bool named[NMODULES];
	struct wp_namer_end end;

	(void)state;
	for (int i = 0; i < NMODULES; i++)
		assert_int_equal(wp_elf_image_open(&files[i],
						   open("/proc/self/exe",
							O_RDONLY | O_CLOEXEC),
						   NULL),
				 0);
	end = run_real(files, named);
	assert_string_equal(end.why, "");
	assert_true(named[0] && named[1] && named[2]);
	cut_file(&files[1]);
	end = run_real(files, named);
	assert_true(named[0] && !named[1] && named[2]);
	assert_non_null(strstr(end.why, "at two"));
	for (int i = 0; i < NMODULES; i++)
		wp_elf_image_clear(&files[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_named),
		cmocka_unit_test(a_crash_costs_the_rest_of_its_module),
		cmocka_unit_test(one_that_always_dies_is_given_up),
		cmocka_unit_test(no_memory_costs_a_module),
		cmocka_unit_test(nothing_is_read_without_a_sandbox),
		cmocka_unit_test(liars_are_ended),
		cmocka_unit_test(what_the_parent_fails_at_ends_all),
		cmocka_unit_test(an_interrupt_ends_it),
		cmocka_unit_test(
			a_file_that_shrinks_costs_the_names_of_its_module),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
