/* SPDX-License-Identifier: Apache-2.0 */
/* perf_decode.c - see perf_decode.h.  The layouts are those of
 * linux/perf_event.h, enum perf_event_type. */
#include "perf_decode.h"

#include <errno.h>
#include <string.h>

#include "wallprof/reader.h"

/* Sizes of struct perf_event_header and, behind every record but samples, of
 * struct sample_id: pid, tid, time, cpu, res, id. */
enum { HEADER_LEN = 8, TRAILER_LEN = 32, TRAILER_TIME_OFF = 8 };
/* header, id, ip, pid and tid, then the time. */
enum { SAMPLE_TIME_OFF = 32 };

size_t wp_perf_time_off(uint32_t type, size_t size)
{
	if (type == PERF_RECORD_SAMPLE)
		return size >= SAMPLE_TIME_OFF + 8 ? SAMPLE_TIME_OFF : 0;
	if (size < HEADER_LEN + TRAILER_LEN)
		return 0;
	return size - TRAILER_LEN + TRAILER_TIME_OFF;
}

/* Parse the kernel addresses of a call chain, which markers divide into contexts. */
static void parse_chain(struct wp_perf_record *rec, struct wp_reader *r)
{
	uint64_t n = wp_read_u64(r), ctx = 0;
	const uint8_t *p = r->pos;

	if (n > wp_reader_left(r) / 8) {
		r->failed = true;
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint64_t val = wp_read_u64(r);

		if (val >= (uint64_t)PERF_CONTEXT_MAX) {
			ctx = val;
			continue;
		}
		if (ctx != (uint64_t)PERF_CONTEXT_KERNEL)
			continue;
		if (!rec->kernel_chain)
			rec->kernel_chain = (const void *)(p + 8 * i);
		/* Keep only the first contiguous PERF_CONTEXT_KERNEL run. */
		if ((const void *)(rec->kernel_chain + rec->kernel_len) ==
		    (const void *)(p + 8 * i))
			rec->kernel_len++;
	}
}

/* Parse the data of a tracepoint: a size of 32 bits, and as many bytes. */
static void parse_raw(struct wp_perf_record *rec, struct wp_reader *r)
{
	uint32_t size = wp_read_u32(r);

	rec->raw = r->pos;
	rec->raw_len = size;
	wp_read_skip(r, size);
}

static void parse_regs(struct wp_perf_record *rec, struct wp_reader *r)
{
	uint64_t abi = wp_read_u64(r);
	const uint8_t *values = r->pos;

	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	if (abi != PERF_SAMPLE_REGS_ABI_32 && abi != PERF_SAMPLE_REGS_ABI_64)
		r->failed = true;
	wp_read_skip(r, UINT64_C(8) * WP_NREGS);
	if (r->failed)
		return;
	wp_perf_regs_set(&rec->regs, values);
	rec->is_32bit = abi == PERF_SAMPLE_REGS_ABI_32;
	if (rec->is_32bit)
		wp_regs_narrow(&rec->regs);
}

/* Parse a stack copy: size, data[size], number of bytes that were copied; after a
 * size of 0 nothing follows. */
static void parse_stack(struct wp_perf_record *rec, struct wp_reader *r)
{
	uint64_t size = wp_read_u64(r), len;
	const uint8_t *data = r->pos;

	if (!size)
		return;
	wp_read_skip(r, size);
	len = wp_read_u64(r);
	if (len > size)
		r->failed = true;
	if (r->failed || !len)
		return;
	rec->stack = data;
	rec->stack_len = len;
	rec->stack_full = len == size;
}

static void parse_sample(struct wp_perf_record *rec,
			 struct wp_perf_writer *writer, uint64_t sample_type,
			 struct wp_reader *r)
{
	rec->type = WP_PERF_SAMPLE_CPU;
	rec->id = wp_read_u64(r);
	/* The instruction pointer. */
	wp_read_skip(r, 8);
	rec->pid = writer->pid = (pid_t)wp_read_u32(r);
	rec->tid = writer->tid = (pid_t)wp_read_u32(r);
	rec->time_ns = wp_read_u64(r);
	/* The CPU. */
	wp_read_skip(r, 8);
	if (sample_type & PERF_SAMPLE_CALLCHAIN)
		parse_chain(rec, r);
	if (sample_type & PERF_SAMPLE_RAW)
		parse_raw(rec, r);
	if (sample_type & PERF_SAMPLE_REGS_USER)
		parse_regs(rec, r);
	if (sample_type & PERF_SAMPLE_STACK_USER)
		parse_stack(rec, r);
}

/* The data of sched_waking: type (2 bytes), flags, preempt count, pid (4 bytes), as
 * all tracepoints have them (linux/trace_events.h, struct trace_entry), then comm
 * (16 bytes) and pid of the thread that is woken (trace/events/sched.h). */
enum { WAKE_FLAGS_OFF = 2, WAKE_PID_OFF = 24, WAKE_LEN = 28 };
/* linux/trace_events.h, enum trace_flag_type. */
enum { TRACE_HARDIRQ = 0x08, TRACE_SOFTIRQ = 0x10 };

int wp_perf_parse_wake(struct wp_perf_record *rec)
{
	int32_t pid;

	if (rec->raw_len < WAKE_LEN)
		return -EBADMSG;
	memcpy(&pid, rec->raw + WAKE_PID_OFF, sizeof(pid));
	rec->type = WP_PERF_WAKE;
	rec->waker_pid = rec->pid;
	rec->waker_tid = rec->tid;
	rec->hard_interrupt = rec->raw[WAKE_FLAGS_OFF] & TRACE_HARDIRQ;
	rec->soft_interrupt = rec->raw[WAKE_FLAGS_OFF] & TRACE_SOFTIRQ;
	rec->tid = pid;
	return pid > 0 ? 0 : -EBADMSG;
}

uint64_t wp_perf_sample_id(const void *bytes, size_t len)
{
	struct wp_reader r = wp_reader_of(bytes, len);
	uint32_t type = wp_read_u32(&r);

	wp_read_skip(&r, 4);
	return type == PERF_RECORD_SAMPLE ? wp_read_u64(&r) : 0;
}

static void parse_task(struct wp_perf_record *rec, enum wp_perf_type type,
		       struct wp_reader *r)
{
	rec->type = type;
	rec->pid = (pid_t)wp_read_u32(r);
	rec->parent_pid = (pid_t)wp_read_u32(r);
	rec->tid = (pid_t)wp_read_u32(r);
	rec->parent_tid = (pid_t)wp_read_u32(r);
	wp_read_skip(r, 8);
}

/* A name of up to 16 bytes with its NULs, padded to a multiple of 8. */
static void parse_name(struct wp_perf_record *rec, uint16_t misc,
		       struct wp_reader *r)
{
	size_t size;

	rec->type = WP_PERF_NAME;
	rec->by_exec = misc & PERF_RECORD_MISC_COMM_EXEC;
	rec->pid = (pid_t)wp_read_u32(r);
	rec->tid = (pid_t)wp_read_u32(r);
	size = wp_reader_left(r);
	rec->name = (const char *)r->pos;
	wp_read_skip(r, size);
	if (!size || !memchr(rec->name, '\0', size))
		r->failed = true;
}

static void parse_switch(struct wp_perf_record *rec, bool cpu_wide,
			 uint16_t misc, struct wp_reader *r)
{
	bool out = misc & PERF_RECORD_MISC_SWITCH_OUT;

	rec->type = out ? WP_PERF_SWITCH_OUT : WP_PERF_SWITCH_IN;
	rec->preempted = out && (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	/* Who was on the CPU before, or is next. */
	if (cpu_wide)
		wp_read_skip(r, 8);
}

static void parse_throttle(struct wp_perf_record *rec, enum wp_perf_type type,
			   struct wp_reader *r)
{
	rec->type = type;
	wp_read_skip(r, 24);
}

static void parse_lost(struct wp_perf_record *rec, struct wp_reader *r)
{
	rec->type = WP_PERF_LOST;
	wp_read_skip(r, 8);
	rec->lost = wp_read_u64(r);
}

/* Parse what is between the header and the trailer of a record. */
static int parse_body(struct wp_perf_record *rec, uint32_t type, uint16_t misc,
		      struct wp_reader *r)
{
	switch (type) {
	case PERF_RECORD_LOST:
		parse_lost(rec, r);
		break;
	case PERF_RECORD_EXIT:
		parse_task(rec, WP_PERF_EXIT, r);
		break;
	case PERF_RECORD_FORK:
		parse_task(rec, WP_PERF_FORK, r);
		break;
	case PERF_RECORD_COMM:
		parse_name(rec, misc, r);
		break;
	case PERF_RECORD_THROTTLE:
		parse_throttle(rec, WP_PERF_THROTTLE, r);
		break;
	case PERF_RECORD_UNTHROTTLE:
		parse_throttle(rec, WP_PERF_UNTHROTTLE, r);
		break;
	case PERF_RECORD_SWITCH:
		parse_switch(rec, false, misc, r);
		break;
	case PERF_RECORD_SWITCH_CPU_WIDE:
		parse_switch(rec, true, misc, r);
		break;
	default:
		return -ENOTSUP;
	}
	return r->failed || r->pos != r->end ? -EBADMSG : 0;
}

static void parse_trailer(struct wp_perf_record *rec,
			  struct wp_perf_writer *writer, struct wp_reader *r)
{
	writer->pid = (pid_t)wp_read_u32(r);
	writer->tid = (pid_t)wp_read_u32(r);
	rec->time_ns = wp_read_u64(r);
	/* The CPU. */
	wp_read_skip(r, 8);
	rec->id = wp_read_u64(r);
	if (rec->type == WP_PERF_FORK || rec->type == WP_PERF_EXIT ||
	    rec->type == WP_PERF_NAME)
		return;
	rec->pid = writer->pid;
	rec->tid = writer->tid;
}

int wp_perf_parse(struct wp_perf_record *ret, struct wp_perf_writer *ret_writer,
		  uint64_t sample_type, const void *bytes, size_t len)
{
	struct wp_reader r = wp_reader_of(bytes, len), trailer;
	uint32_t type = wp_read_u32(&r);
	uint16_t misc = wp_read_u16(&r), size = wp_read_u16(&r);
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (r.failed || size != len || len % 8)
		return -EBADMSG;
	if (type == PERF_RECORD_SAMPLE) {
		parse_sample(ret, ret_writer, sample_type, &r);
		return r.failed || r.pos != r.end ? -EBADMSG : 0;
	}
	if (wp_reader_left(&r) < TRAILER_LEN)
		return -EBADMSG;
	r.end -= TRAILER_LEN;
	trailer = wp_reader_of(r.end, TRAILER_LEN);
	rc = parse_body(ret, type, misc, &r);
	if (!rc)
		parse_trailer(ret, ret_writer, &trailer);
	return rc;
}
