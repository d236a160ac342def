/* SPDX-License-Identifier: Apache-2.0 */
/* call_argument.c - see wallprof/call_argument.h. */
#include "wallprof/call_argument.h"

#include <errno.h>

#if defined(WP_HAVE_BPF) && defined(__aarch64__)
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* The compiled program: the Makefile gives its directory. */
__asm__(".section .rodata\n"
	".balign 8\n"
	"wp_call_argument_object:\n"
	".incbin \"call_argument.o\"\n"
	"wp_call_argument_object_end:\n"
	".previous\n");
extern const char wp_call_argument_object[]
	__attribute__((visibility("hidden")));
extern const char wp_call_argument_object_end[]
	__attribute__((visibility("hidden")));

static void open_object(struct wp_call_argument *of)
{
	libbpf_set_print(NULL);
	of->tried = true;
	of->object = bpf_object__open_mem(
		wp_call_argument_object,
		(size_t)(wp_call_argument_object_end - wp_call_argument_object),
		NULL);
	if (of->object && bpf_object__load(of->object)) {
		bpf_object__close(of->object);
		of->object = NULL;
	}
}

/* An iterator over thread TID alone; negative errno. */
static int create_iterator(const struct wp_call_argument *of, pid_t tid)
{
	struct bpf_program *program = bpf_object__next_program(of->object,
							       NULL);
	LIBBPF_OPTS(bpf_link_create_opts, options);
	union bpf_iter_link_info info;
	int link, fd;

	memset(&info, 0, sizeof(info));
	info.task.tid = (uint32_t)tid;
	options.iter_info = &info;
	options.iter_info_len = sizeof(info);
	link = bpf_link_create(bpf_program__fd(program), 0, BPF_TRACE_ITER,
			       &options);
	if (link < 0)
		return link;
	fd = bpf_iter_create(link);
	close(link);
	return fd;
}

int wp_call_argument_read(struct wp_call_argument *of, pid_t tid, uint64_t *ret)
{
	/* Kernels before 6.1 tell those of all threads. */
	uint64_t told[2];
	ssize_t n;
	int fd;

	if (!of->tried)
		open_object(of);
	if (!of->object)
		return -ENOTSUP;
	fd = create_iterator(of, tid);
	if (fd < 0)
		return fd;
	n = read(fd, told, sizeof(told));
	close(fd);
	if (n != (ssize_t)sizeof(told[0]))
		return n > 0 ? -ENOTSUP : -ESRCH;
	*ret = told[0];
	return 0;
}

void wp_call_argument_close(struct wp_call_argument *of)
{
	bpf_object__close(of->object);
	*of = (struct wp_call_argument){ 0 };
}
#else
int wp_call_argument_read(struct wp_call_argument *of, pid_t tid, uint64_t *ret)
{
	(void)of;
	(void)tid;
	(void)ret;
	return -ENOTSUP;
}

void wp_call_argument_close(struct wp_call_argument *of)
{
	(void)of;
}
#endif
