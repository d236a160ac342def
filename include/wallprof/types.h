/* SPDX-License-Identifier: Apache-2.0 */
/* types.h - the plain data that samples are made of.
 *
 * Layer: base.
 *
 * An address is a uint64_t whose name says its space: _avma, as in the target
 * process; _svma, as in the ELF file's own headers; _off, offset in the file.
 */
#ifndef WP_TYPES_H
#define WP_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers by their DWARF number (x86-64: System V psABI figure 3.36);
 * WP_REG_RESULT has what a system call returned. */
#if defined(__x86_64__)
enum {
	WP_REG_RESULT = 0,
	WP_REG_FP = 6,
	WP_REG_SP = 7,
	WP_REG_PC = 16,
	WP_NREGS = 17,
	/* A thread in 32-bit mode has these in place of r12 and r13, which it lacks:
	 * i386's functions keep them as x86-64's keep those. */
	WP_REG_ESI = 12,
	WP_REG_EDI = 13,
};
#elif defined(__aarch64__)
enum {
	WP_REG_RESULT = 0,
	WP_REG_FP = 29,
	WP_REG_LR = 30,
	WP_REG_SP = 31,
	WP_REG_PC = 32,
	WP_NREGS = 33,
};
#else
#error "wallprof knows x86-64 and aarch64"
#endif

struct wp_regs {
	/* Value per DWARF register number; 0 where not known, but for sp: the lowest
	 * that it can be. */
	uint64_t v[WP_NREGS];
	/* Bit N set: v[N] is the register's value. */
	uint64_t known;
};

static inline bool wp_reg_known(const struct wp_regs *regs, unsigned int n)
{
	return n < WP_NREGS && (regs->known >> n & 1);
}

static inline void wp_reg_set(struct wp_regs *regs, unsigned int n,
			      uint64_t val)
{
	regs->v[n] = val;
	regs->known |= UINT64_C(1) << n;
}

/* REGS' sp is only the lowest that it can be. */
static inline void wp_reg_forget_sp(struct wp_regs *regs)
{
	regs->known &= ~(UINT64_C(1) << WP_REG_SP);
}

#if defined(__x86_64__)
/* Make REGS, all of x86-64's as the kernel saves them, those of a thread in 32-bit
 * mode.  The upper halves are left over from before it came to that mode. */
static inline void wp_regs_narrow(struct wp_regs *regs)
{
	regs->v[WP_REG_ESI] = regs->v[4];
	regs->v[WP_REG_EDI] = regs->v[5];
	for (unsigned int i = 0; i < WP_NREGS; i++)
		regs->v[i] = (uint32_t)regs->v[i];
}
#else
static inline void wp_regs_narrow(struct wp_regs *regs)
{
	regs->known = 0;
}
#endif

enum wp_frame_flags {
	/* PC is a return address: the call is in the instruction before. */
	WP_FRAME_RETURN = 1,
	/* Found without unwind info (frame pointer or known byte pattern). */
	WP_FRAME_GUESSED = 2,
	/* The kernel's signal trampoline; the frame after it is exact. */
	WP_FRAME_SIGNAL = 4,
	/* PC_AVMA is the id of a name in the profile's strings: of a function of the
	 * kernel, if MAPPING is WP_MAPPING_KERNEL; if it is WP_MAPPING_NONE, of a text
	 * that stands in place of a frame. */
	WP_FRAME_NAMED = 8,
};

enum {
	WP_MAPPING_NONE = 0,
	WP_MAPPING_KERNEL = UINT32_MAX,
};

struct wp_frame {
	uint64_t pc_avma;
	/* Id of the executable mapping that holds the pc; WP_MAPPING_NONE: no
	 * mapping holds it. */
	uint32_t mapping;
	/* Bits of enum wp_frame_flags. */
	uint32_t flags;
};

/* The only place that subtracts one: where to look up what FRAME was doing.  No call
 * is before a signal trampoline, though the handler returns to it. */
static inline uint64_t wp_frame_lookup_avma(const struct wp_frame *frame)
{
	const uint32_t kinds = WP_FRAME_RETURN | WP_FRAME_SIGNAL;

	return frame->pc_avma - ((frame->flags & kinds) == WP_FRAME_RETURN);
}

/* Why a walk ended: name, text for a person. */
#define WP_STACK_ENDS(X)                                                       \
	X(ROOT, "reached the thread's first function")                         \
	X(EMPTY, "no stack was read")                                          \
	X(NO_MODULE, "address in no module")                                   \
	X(NO_INFO, "no unwind info")                                           \
	X(BAD_INFO, "malformed unwind info")                                   \
	X(UNKNOWN_REG, "a register was not known")                             \
	X(UNREADABLE, "memory not readable")                                   \
	X(MAP_LOCKED, "memory map locked by another thread")                   \
	X(TOO_SLOW, "too slow to find out")                                    \
	X(BEYOND_COPY, "stack deeper than the copy")                           \
	X(OTHER_STACK, "on another stack than the copy's")                     \
	X(PROBED, "a probe has replaced the return address")                   \
	X(NO_PROGRESS, "no progress")                                          \
	X(DEPTH_LIMIT, "depth limit")                                          \
	X(HOLDER, "holder not recorded")                                       \
	X(NO_RECORD, "what created the thread was not recorded")               \
	X(NO_STOPS, "running, and threads are not to be stopped")              \
	X(NO_CPU, "running, and got no CPU in time to stop")                   \
	X(NOT_STOPPED, "running, and did not stop in time")                    \
	X(REFUSED, "running, and another process traces it")                   \
	X(DENIED, "running, and the kernel denies its stop")                   \
	X(NOT_SEEN, "no look met the thread in it")                            \
	X(WORKER, "a worker of the kernel's")                                  \
	X(NOT_SAMPLED, "CPU time that no CPU sample covers")                   \
	X(DROPPED, "dropped: memory")

enum wp_stack_end {
#define X(name, text) WP_END_##name,
	WP_STACK_ENDS(X)
#undef X
		WP_NSTACK_ENDS
};

struct wp_stack {
	/* frames[0..depth), innermost first, room for CAP; borrowed. */
	struct wp_frame *frames;
	/* cfa_avma[i]: the CFA of frames[i], 0 if the walk ended in it; room for
	 * CAP; borrowed. */
	uint64_t *cfa_avma;
	uint32_t depth;
	uint32_t cap;
	enum wp_stack_end end;
};

/* What became of a read of the target's memory. */
enum wp_mem_result {
	WP_MEM_OK,
	/* The target has no such memory, or it cannot be read. */
	WP_MEM_UNREADABLE,
	/* It is of the stack that was copied, past the copy's end. */
	WP_MEM_BEYOND_COPY,
	/* It is of another stack than the one that was copied. */
	WP_MEM_OTHER_STACK,
	/* It is a return address that the kernel has replaced for a probe, and it is not
	 * known which. */
	WP_MEM_PROBED,
};

/* Reads the target's memory: a copy, a file, or the live process. */
struct wp_mem {
	/* Read LEN bytes at AVMA into BUF, which is undefined unless all of
	 * them could be read. */
	enum wp_mem_result (*read)(void *ctx, uint64_t avma, void *buf,
				   size_t len);
	void *ctx;
};

/* What a thread was doing when it was sampled. */
#define WP_STATES(X)                                                           \
	X(RUNNING, "running")                                                  \
	X(RUNNABLE, "runnable")                                                \
	X(WAITING, "waiting")                                                  \
	X(STOPPED, "stopped")                                                  \
	X(EXITING, "exiting")

enum wp_state {
#define X(name, text) WP_STATE_##name,
	WP_STATES(X)
#undef X
		WP_NSTATES
};

/* What a waiting thread waits for.  SYSCALL: anything else, by call name; GO: a
 * goroutine, in the words of Go's runtime. */
#define WP_WAITS(X)                                                            \
	X(NONE, "")                                                            \
	X(LOCK, "lock")                                                        \
	X(CONDVAR, "condvar")                                                  \
	X(SEMAPHORE, "semaphore")                                              \
	X(JOIN, "join")                                                        \
	X(BARRIER, "barrier")                                                  \
	X(FUTEX, "futex")                                                      \
	X(SLEEP, "sleep")                                                      \
	X(POLL, "poll")                                                        \
	X(SOCKET, "socket")                                                    \
	X(PIPE, "pipe")                                                        \
	X(TTY, "tty")                                                          \
	X(FILE, "file")                                                        \
	X(DISK, "disk")                                                        \
	X(MMAP_LOCK, "mmap-lock")                                              \
	X(CHILD, "child")                                                      \
	X(SIGNAL, "signal")                                                    \
	X(TIMER, "timer")                                                      \
	X(PAGE_FAULT, "page-fault")                                            \
	X(FROZEN, "frozen")                                                    \
	X(CORE_DUMP, "core-dump")                                              \
	X(SYSCALL, "syscall")                                                  \
	X(GO, "goroutine")

enum wp_wait {
#define X(name, text) WP_WAIT_##name,
	WP_WAITS(X)
#undef X
		WP_NWAITS
};

/* What an entry of a profile's threads stands for. */
enum wp_goroutine_part {
	/* A thread. */
	WP_GOROUTINE_NONE,
	/* Goroutines of the program. */
	WP_GOROUTINE_OWN,
	/* Those of Go's runtime (garbage collector, ...); those of them that
	 * wait for work; threads while they run no goroutine. */
	WP_GOROUTINE_RUNTIME,
	WP_GOROUTINE_RUNTIME_IDLE,
	WP_GOROUTINE_SCHEDULER,
};

/* Of goroutines with labels past WP_GOROUTINE_ENTRIES_MAX. */
#define WP_GOROUTINES_OTHER UINT64_MAX

const char *wp_types_state_name(enum wp_state state);
/* Does a thread in STATE run, or wait for a CPU? */
static inline bool wp_types_state_is_ready(enum wp_state state)
{
	return state == WP_STATE_RUNNING || state == WP_STATE_RUNNABLE;
}
const char *wp_wait_name(enum wp_wait wait);
/* A short text for a person, as in WP_STACK_ENDS. */
const char *wp_stack_end_text(enum wp_stack_end end);

#endif
