/* SPDX-License-Identifier: Apache-2.0 */
/* stack_copy.c - see stack_copy.h. */
#include "stack_copy.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "probed_return.h"
#include "wallprof/clock.h"
#include "wallprof/pages.h"

enum {
	MORE = 65536,
	/* So close below sp only what is over has been. */
	BELOW = 4096,
	/* To copy from a second page costs as much again as from the first. */
	PAGE_REST_MIN = 1024,
	CHUNK = 4096,
};

int wp_stack_copy_init(struct wp_stack_copy *copy)
{
	*copy = (struct wp_stack_copy){
		.page = (uint64_t)sysconf(_SC_PAGESIZE),
		.buf = wp_pages_new(WP_COPY_MAX),
		.piece_buf = wp_pages_new(WP_PIECES_MAX * WP_PIECE_MAX),
	};
	if (copy->buf && copy->piece_buf)
		return 0;
	wp_stack_copy_clear(copy);
	return -ENOMEM;
}

void wp_stack_copy_clear(struct wp_stack_copy *copy)
{
	wp_pages_free(copy->buf, WP_COPY_MAX);
	wp_pages_free(copy->piece_buf, WP_PIECES_MAX * WP_PIECE_MAX);
	*copy = (struct wp_stack_copy){ 0 };
}

/* LEN, or what there is from START_AVMA on of COPY's region. */
static size_t within_region(const struct wp_stack_copy *copy,
			    uint64_t start_avma, size_t len)
{
	uint64_t end_avma = copy->region_end_avma;

	return end_avma > start_avma && end_avma - start_avma < len ?
		       (size_t)(end_avma - start_avma) :
		       len;
}

static ssize_t take_from(struct wp_stack_copy *copy, uint64_t start_avma,
			 size_t len)
{
	copy->start_avma = start_avma;
	len = within_region(copy, start_avma,
			    len < WP_COPY_MAX ? len : WP_COPY_MAX);
	return wp_process_read(copy->space->process, start_avma, copy->buf,
			       len);
}

size_t wp_stack_copy_short(uint64_t start_avma, uint64_t page)
{
	uint64_t rest = page - start_avma % page;

	return rest < WP_STACK_COPY_SHORT && rest >= PAGE_REST_MIN ?
		       (size_t)rest :
		       WP_STACK_COPY_SHORT;
}

/* A copy of up to LEN bytes begins, of what is at SP in SPACE. */
static void begin(struct wp_stack_copy *copy,
		  const struct wp_address_space *space, uint64_t sp_avma,
		  size_t len)
{
	copy->space = space;
	copy->region_end_avma = wp_address_space_stack_end(space, sp_avma);
	copy->len = 0;
	copy->npieces = 0;
	copy->piece_len = len < WP_PIECE_MAX ? len : WP_PIECE_MAX;
	copy->is_sample = copy->may_follow = copy->has_left = false;
	copy->live = copy->beyond = copy->elsewhere = false;
	copy->time_ns = 0;
	copy->kept_avma = copy->nasked = 0;
	copy->read_len = 0;
}

void wp_stack_copy_use(struct wp_stack_copy *copy,
		       const struct wp_address_space *space, uint64_t sp_avma,
		       const uint8_t *data, size_t len)
{
	begin(copy, space, sp_avma, WP_STACK_COPY_SHORT);
	copy->start_avma = sp_avma - WP_RED_ZONE;
	copy->len = within_region(copy, copy->start_avma, len);
	memcpy(copy->buf, data, copy->len);
}

ssize_t wp_stack_copy_take(struct wp_stack_copy *copy,
			   const struct wp_address_space *space,
			   uint64_t sp_avma, size_t len)
{
	ssize_t n;

	begin(copy, space, sp_avma, len);
	if (len == WP_STACK_COPY_SHORT)
		len = wp_stack_copy_short(sp_avma - WP_RED_ZONE, copy->page);
	n = take_from(copy, sp_avma - WP_RED_ZONE, len);
	/* The page below sp may not be there. */
	if (n <= 0)
		n = take_from(copy, sp_avma, len);
	if (n > 0)
		copy->len = (size_t)n;
	return n;
}

void wp_stack_copy_set(struct wp_stack_copy *copy,
		       const struct wp_address_space *space, uint64_t sp_avma,
		       const void *data, size_t len)
{
	begin(copy, space, sp_avma, len);
	copy->start_avma = sp_avma;
	copy->is_sample = true;
	copy->len = len < WP_COPY_MAX ? len : WP_COPY_MAX;
	copy->sample_len = copy->len;
	if (copy->len)
		memcpy(copy->buf, data, copy->len);
}

size_t wp_stack_copy_size(const struct wp_stack_copy *copy)
{
	size_t len = copy->len;

	for (unsigned int i = 0; i < copy->npieces; i++)
		len += copy->pieces[i].len;
	return len;
}

void wp_stack_copy_save(const struct wp_stack_copy *copy, uint8_t *to)
{
	memcpy(to, copy->buf, copy->len);
	to += copy->len;
	for (unsigned int i = 0; i < copy->npieces; i++) {
		memcpy(to, copy->piece_buf + i * WP_PIECE_MAX,
		       copy->pieces[i].len);
		to += copy->pieces[i].len;
	}
}

void wp_stack_copy_restore(struct wp_stack_copy *copy,
			   const struct wp_stack_copy *saved,
			   const uint8_t *from)
{
	uint8_t *buf = copy->buf, *piece_buf = copy->piece_buf;

	*copy = *saved;
	copy->buf = buf;
	copy->piece_buf = piece_buf;
	memcpy(buf, from, copy->len);
	from += copy->len;
	for (unsigned int i = 0; i < copy->npieces; i++) {
		memcpy(piece_buf + i * WP_PIECE_MAX, from, copy->pieces[i].len);
		from += copy->pieces[i].len;
	}
}

/* Make the copy reach over [AVMA, AVMA + LEN): true if it does now. */
static bool extend(struct wp_stack_copy *copy, uint64_t avma, size_t len)
{
	uint64_t need = avma + len - copy->start_avma;
	size_t want = need < WP_COPY_MAX - MORE ? (size_t)need + MORE :
						  WP_COPY_MAX;
	ssize_t n = wp_process_read(copy->space->process,
				    copy->start_avma + copy->len,
				    copy->buf + copy->len, want - copy->len);

	if (n > 0)
		copy->len += (size_t)n;
	return need <= copy->len;
}

bool wp_stack_copy_is_same(const struct wp_stack_copy *copy, size_t from,
			   size_t end)
{
	uint8_t now[CHUNK];

	for (size_t len; from < end; from += len) {
		len = end - from < CHUNK ? end - from : CHUNK;
		if (wp_process_read(copy->space->process,
				    copy->start_avma + from, now,
				    len) != (ssize_t)len ||
		    memcmp(now, copy->buf + from, len) != 0)
			return false;
	}
	return true;
}

/* As extend, of a thread that goes on: it has returned past the sample's end if that is
 * not as it was, from the last frame that the walk found in it.  Whether it has where all
 * is as it was, stack_join.h tells. */
static bool follow(struct wp_stack_copy *copy, uint64_t avma, size_t len)
{
	const size_t had = copy->len;

	if (copy->has_left || copy->sample_len < WP_FOLLOW_SAME)
		return false;
	if (had == copy->sample_len)
		copy->end_at = copy->read_len + WP_FOLLOW_SAME < had ?
				       copy->read_len :
				       had - WP_FOLLOW_SAME;
	if (!extend(copy, avma, len))
		return false;
	copy->has_left = !wp_stack_copy_is_same(copy, copy->end_at,
						copy->sample_len);
	if (copy->has_left)
		copy->len = had;
	return !copy->has_left;
}

/* Make the copy hold [AVMA, AVMA + LEN), which is of its stack: true if it
 * does. */
static bool reach(struct wp_stack_copy *copy, uint64_t avma, size_t len)
{
	size_t need = avma + len - copy->start_avma;
	bool had = need <= copy->len;

	if (copy->live)
		had = had || extend(copy, avma, len);
	else if (need > copy->sample_len && copy->may_follow)
		had = need <= WP_FOLLOW_MAX &&
		      need <= copy->read_len + WP_FOLLOW_STEP &&
		      (had || follow(copy, avma, len));
	if (had && need > copy->read_len)
		copy->read_len = need;
	return had;
}

/* Not of a stack: code, or what a file was mapped for. */
static bool is_lasting(const struct wp_stack_copy *copy, uint64_t avma)
{
	const struct wp_map *map = wp_maps_find(&copy->space->maps, avma);

	return map && (map->exec || map->ino);
}

/* Is [AVMA, AVMA + LEN) of the stack that was copied, and such that a copy
 * could hold it? */
static bool is_same_stack(const struct wp_stack_copy *copy, uint64_t avma,
			  size_t len)
{
	uint64_t at = avma - copy->start_avma;

	return avma >= copy->start_avma && at < WP_COPY_MAX &&
	       len <= WP_COPY_MAX - at &&
	       (at + len <= copy->len || avma + len <= copy->region_end_avma);
}

static uint8_t *piece_bytes(const struct wp_stack_copy *copy, unsigned int i)
{
	return copy->piece_buf + (size_t)i * WP_PIECE_MAX;
}

/* Read from the pieces: true if one of them has it. */
static bool read_pieces(const struct wp_stack_copy *copy, uint64_t avma,
			void *buf, size_t len)
{
	for (unsigned int i = 0; i < copy->npieces; i++) {
		const struct wp_stack_piece *piece = &copy->pieces[i];
		uint64_t at = avma - piece->start_avma;

		if (at < piece->len && len <= piece->len - at) {
			memcpy(buf, piece_bytes(copy, i) + at, len);
			return true;
		}
	}
	return false;
}

void wp_stack_copy_keep(struct wp_stack_copy *copy, uint64_t avma)
{
	unsigned int i = copy->npieces;
	ssize_t n;

	if (i == WP_PIECES_MAX)
		return;
	n = wp_process_read(copy->space->process, avma, piece_bytes(copy, i),
			    copy->piece_len);
	if (n <= 0)
		return;
	copy->pieces[i] = (struct wp_stack_piece){ avma, (size_t)n };
	copy->npieces++;
}

/* Read memory of another stack than the copy's. */
static enum wp_mem_result read_other(struct wp_stack_copy *copy, uint64_t avma,
				     void *buf, size_t len)
{
	copy->elsewhere = true;
	if (read_pieces(copy, avma, buf, len))
		return WP_MEM_OK;
	/* It is of another moment than the copy by now. */
	if (!copy->live) {
		copy->missing_avma = avma;
		return WP_MEM_OTHER_STACK;
	}
	wp_stack_copy_keep(copy, avma);
	return read_pieces(copy, avma, buf, len) ||
			       wp_process_read(copy->space->process, avma, buf,
					       len) == (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

static enum wp_mem_result read_stack(struct wp_stack_copy *copy, uint64_t avma,
				     void *buf, size_t len)
{
	uint64_t at = avma - copy->start_avma;

	if (is_same_stack(copy, avma, len)) {
		copy->beyond |= at + len > copy->len;
		if (!reach(copy, avma, len))
			return copy->len ? WP_MEM_BEYOND_COPY :
					   WP_MEM_UNREADABLE;
		memcpy(buf, copy->buf + at, len);
		return WP_MEM_OK;
	}
	/* Not in samples of perf.  OpenSSL's SHA-256 by AVX2 has its CFA there. */
	if (copy->is_sample && !copy->live && avma < copy->start_avma &&
	    copy->start_avma - avma <= WP_RED_ZONE)
		return WP_MEM_BEYOND_COPY;
	if (!is_lasting(copy, avma)) {
		if (avma > copy->start_avma || copy->start_avma - avma > BELOW)
			return read_other(copy, avma, buf, len);
		if (!copy->live)
			return WP_MEM_UNREADABLE;
	}
	return wp_process_read(copy->space->process, avma, buf, len) ==
			       (ssize_t)len ?
		       WP_MEM_OK :
		       WP_MEM_UNREADABLE;
}

static enum wp_mem_result read_copy(void *ctx, uint64_t avma, void *buf,
				    size_t len)
{
	struct wp_stack_copy *copy = ctx;
	enum wp_mem_result result = read_stack(copy, avma, buf, len);

	return result == WP_MEM_OK && wp_probed_return_may_be(copy) ?
		       wp_probed_return_restore(copy, avma, buf, len) :
		       result;
}

struct wp_mem wp_stack_copy_mem(struct wp_stack_copy *copy)
{
	return (struct wp_mem){ read_copy, copy };
}
