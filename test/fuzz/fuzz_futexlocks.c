/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_futexlocks.c - what a futex is and who holds it, from memory that the
 * target fills: mutexes, rwlocks and threads of glibc and musl.
 *
 * The input begins with a struct header, then come the names of the functions
 * that wait, each ending in NUL, then one NUL, then memory.
 *
 * Layer: lock.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "fuzz.h"
#include "wallprof/lock.h"

#define MEMORY UINT64_C(0x7f0000001000)

enum { FRAMES_MAX = 8, FUTEX_WAITV_NR = 449 };

struct header {
	/* Of the futex word, from the start of the memory. */
	uint16_t at;
	uint16_t op;
	uint32_t val;
	/* Bit 0: there is a timeout; bit 1: futex_waitv. */
	uint8_t flags;
	/* enum wp_wait. */
	uint8_t wait;
	/* Half of the memory is different at each second read. */
	uint8_t changes;
	uint8_t unused;
};

struct target {
	const uint8_t *bytes;
	size_t len;
	bool changes;
	unsigned int nreads;
};

static enum wp_mem_result read_target(void *ctx, uint64_t avma, void *buf,
				      size_t len)
{
	struct target *t = ctx;
	uint64_t off = avma - MEMORY;

	if (avma < MEMORY || off > t->len || len > t->len - off)
		return WP_MEM_UNREADABLE;
	memcpy(buf, t->bytes + off, len);
	if (t->changes && t->nreads++ % 2 && len)
		*(uint8_t *)buf ^= 0x55;
	return WP_MEM_OK;
}

/* Every third number is a thread. */
static int32_t find_thread(void *ctx, int32_t tid)
{
	(void)ctx;
	FUZZ_CHECK(tid > 0);
	return tid % 3 ? 0 : tid + 1000;
}

static void check_lock(const struct wp_lock *lock)
{
	FUZZ_CHECK(lock->kind > WP_LOCK_NONE && lock->kind < WP_NLOCK_KINDS);
	FUZZ_CHECK(wp_lock_kind_name(lock->kind));
	FUZZ_CHECK(wp_lock_holder_name(lock->holder));
	FUZZ_CHECK(lock->type && strlen(lock->type) < 32);
	if (lock->holder == WP_HOLDER_THREAD)
		FUZZ_CHECK(lock->owner_tid > 1000);
}

/* The names at *P as FRAMES[0..n); returns n and moves *P to the memory. */
static uint32_t read_frames(struct wp_lock_frame frames[FRAMES_MAX],
			    const uint8_t **p, const uint8_t *end)
{
	const uint8_t *nul;
	uint32_t n = 0;

	while (*p < end && **p && n < FRAMES_MAX &&
	       (nul = memchr(*p, '\0', (size_t)(end - *p)))) {
		frames[n++] = (struct wp_lock_frame){
			.function = (const char *)*p,
		};
		*p = nul + 1;
	}
	*p = *p < end ? *p + 1 : end;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *p = data + sizeof(struct header);
	struct wp_lock_frame frames[FRAMES_MAX];
	struct wp_lock_wait wait = { .frames = frames };
	struct target target = { 0 };
	const struct wp_lock_query query = { { read_target, &target },
					     find_thread,
					     NULL,
					     false,
					     { NULL, NULL } };
	struct wp_lock_answer answer;
	struct header h;

	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	wait.nframes = read_frames(frames, &p, data + size);
	wait.syscall_nr = h.flags & 2 ? FUTEX_WAITV_NR : SYS_futex;
	wait.args = (const uint64_t[6]){ MEMORY + h.at, h.op, h.val,
					 h.flags & 1 };
	wait.wait = h.wait % WP_NWAITS;
	target.bytes = p;
	target.len = (size_t)(data + size - p);
	target.changes = h.changes & 1;
	wp_lock_decode(&wait, &query, &answer);
	check_lock(&answer.lock);
	FUZZ_CHECK(answer.wait < WP_NWAITS);
	return 0;
}
