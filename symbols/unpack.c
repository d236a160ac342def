/* unpack.c - see unpack.h. */
#include "unpack.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "inflate.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* So much is unpacked at a time, at least. */
#define CHUNK ((size_t)128 << 10)

struct wp_unpack {
	/* data[0..room), of which data[0..size) is the section's and
	 * data[0..ready) can be read; owned. */
	uint8_t *data;
	size_t size;
	size_t room;
	size_t ready;
	struct wp_inflate z;
	/* In the list that the handler looks at. */
	struct wp_unpack *next;
};

/* What the handler may unpack.  A signal handler gets no context, hence these
 * statics. */
static struct wp_unpack *volatile live;
static struct sigaction old_action;

/* Make AREA readable to beyond UPTO. */
static int unpack(struct wp_unpack *area, size_t upto)
{
	size_t from = area->ready, to = upto - upto % CHUNK + CHUNK;

	if (to > area->room)
		to = area->room;
	if (mprotect(area->data + from, to - from, PROT_READ | PROT_WRITE))
		return -errno;
	area->ready = to;
	/* Cheaper than a fault for each page; and where it is not known (Linux
	 * before 5.14) those come. */
	madvise(area->data + from, to - from, MADV_POPULATE_WRITE);
	if (to > area->size)
		to = area->size;
	/* After the end of a stream nothing comes, however often it is asked:
	 * the zeros stay. */
	(void)wp_inflate_until(&area->z, area->data, from, to);
	return 0;
}

static void on_sigsegv(int sig, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	int saved = errno;

	(void)context;
	for (struct wp_unpack *area = live; area; area = area->next) {
		uintptr_t start = (uintptr_t)area->data;

		if (addr < start || addr - start >= area->room ||
		    addr - start < area->ready)
			continue;
		if (unpack(area, addr - start))
			break;
		errno = saved;
		return;
	}
	/* Not ours: happens again on return, to whoever was there before. */
	sigaction(sig, &old_action, NULL);
	errno = saved;
}

static void list_add(struct wp_unpack *area)
{
	/* The file that is read meanwhile may be cut: its SIGBUS must come. */
	struct sigaction action = {
		.sa_sigaction = on_sigsegv,
		.sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	if (!live)
		sigaction(SIGSEGV, &action, &old_action);
	area->next = live;
	live = area;
}

static void list_remove(struct wp_unpack *area)
{
	struct wp_unpack *before = live;

	if (before == area) {
		live = area->next;
	} else {
		while (before->next != area)
			before = before->next;
		before->next = area->next;
	}
	if (!live)
		sigaction(SIGSEGV, &old_action, NULL);
}

int wp_unpack_new(struct wp_unpack **ret, const uint8_t *in, size_t len,
		  size_t size, uint8_t **ret_data)
{
	struct wp_unpack *area = malloc(sizeof(*area));
	int rc;

	if (!area)
		return -ENOMEM;
	rc = wp_inflate_init(&area->z, in, len);
	if (rc)
		goto out;
	area->size = size;
	area->room = (size + 4095) & ~(size_t)4095;
	area->ready = 0;
	area->data = mmap(NULL, area->room, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area->data == MAP_FAILED) {
		rc = -ENOMEM;
		goto out;
	}
	list_add(area);
	*ret_data = area->data;
	*ret = area;
	return 0;
out:
	free(area);
	return rc;
}

void wp_unpack_free(struct wp_unpack *area)
{
	if (!area)
		return;
	list_remove(area);
	munmap(area->data, area->room);
	free(area);
}
