/* SPDX-License-Identifier: Apache-2.0 */
/* exec_again.c - see exec_again.h. */
#include "exec_again.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#include "regs.h"
#include "wallprof/io.h"
#include "wallprof/procfs.h"

/* Most arguments: they have 6 MiB (execve(2)). */
enum { ARGS_MAX = 6 << 20 };
/* Code of an interpreter that is searched for a system call: ld.so has 150 KiB of it, musl's
 * libc 400; and its program headers, of which they have up to 11. */
enum { CODE_MAX = 1 << 20, CODE_CHUNK = 1 << 14, HEADERS_MAX = 16 };

bool wp_exec_is_new(const struct wp_regs *regs)
{
	for (unsigned int i = 0; i < WP_NREGS; i++)
		if (i != WP_REG_SP && i != WP_REG_PC && regs->v[i])
			return false;
	return regs->v[WP_REG_PC] && regs->v[WP_REG_SP];
}

static ssize_t read_memory(pid_t tid, uint64_t avma, void *buf, size_t len)
{
	struct iovec local = { buf, len };
	struct iovec remote = { (void *)(uintptr_t)avma, len };

	return process_vm_readv(tid, &local, 1, &remote, 1, 0);
}

/* Does FILE give rights that the thread of TASK, /proc/TID, has not?  Its owner and group are
 * those that the thread acts as (proc(5)). */
static bool lacks_rights(pid_t tid, const char *path, const struct stat *file,
			 const struct stat *task)
{
	const mode_t by_group = S_ISGID | S_IXGRP;
	uint64_t caps;

	if ((file->st_mode & S_ISUID) && file->st_uid != task->st_uid)
		return true;
	if ((file->st_mode & by_group) == by_group &&
	    file->st_gid != task->st_gid)
		return true;
	return task->st_uid &&
	       getxattr(path, "security.capability", NULL, 0) > 0 &&
	       !wp_proc_status_read(&caps, tid, "CapPrm", 16) && !caps;
}

/* Are such rights refused to TID for another cause than a tracer? */
static bool gets_none(pid_t tid, const char *path)
{
	struct statvfs fs;
	uint64_t no_new;

	if (!wp_proc_status_read(&no_new, tid, "NoNewPrivs", 10) && no_new)
		return true;
	return !statvfs(path, &fs) && (fs.f_flag & ST_NOSUID);
}

/* What the kernel tells a new program of itself (getauxval(3)); 0: nothing. */
struct told {
	uint64_t path_avma;
	/* Where its interpreter (ld.so) is.  A program without one may take what a
	 * register has at its first instruction for the address of a function. */
	uint64_t interpreter_avma;
};

static struct told read_told(pid_t tid)
{
	struct told told = { 0 };
	uint64_t aux[2 * 64];
	char file[32];
	ssize_t n;

	snprintf(file, sizeof(file), "/proc/%d/auxv", tid);
	n = wp_io_read_at(AT_FDCWD, file, (char *)aux, sizeof(aux));
	for (ssize_t i = 0; i + 1 < n / (ssize_t)sizeof(aux[0]); i += 2) {
		if (aux[i] == AT_EXECFN)
			told.path_avma = aux[i + 1];
		if (aux[i] == AT_BASE)
			told.interpreter_avma = aux[i + 1];
	}
	return told;
}

/* Does the path at PATH_AVMA lead TID to FILE?  Not where FILE is the interpreter of a
 * script, whose arguments are not those of the call. */
static bool leads_to(pid_t tid, uint64_t path_avma, const struct stat *file)
{
	char path[PATH_MAX], full[PATH_MAX + 32];
	ssize_t n = read_memory(tid, path_avma, path, sizeof(path));
	struct stat found;

	if (n <= 0 || !memchr(path, '\0', (size_t)n))
		return false;
	snprintf(full, sizeof(full), "/proc/%d/%s/%s", tid,
		 path[0] == '/' ? "root" : "cwd", path);
	return !stat(full, &found) && found.st_dev == file->st_dev &&
	       found.st_ino == file->st_ino;
}

/* The first of CODE[0..n), which begins at an instruction, that is a system call and a return
 * from it; NULL: there is none. */
static const uint8_t *find_call_code(const uint8_t *code, size_t n)
{
	for (size_t i = 0; i + WP_REGS_CALL_LEN <= n; i += WP_REGS_CODE_ALIGN)
		if (!memcmp(code + i, wp_regs_call_code, WP_REGS_CALL_LEN))
			return code + i;
	return NULL;
}

/* A system call and a return from it in code [START, START + LEN) of TID; 0: there is
 * none. */
static uint64_t find_call(pid_t tid, uint64_t start, uint64_t len)
{
	static uint8_t code[CODE_CHUNK];

	if (len > CODE_MAX)
		len = CODE_MAX;
	/* Chunks overlap, by as much as the bytes looked for. */
	for (uint64_t off = 0; off < len;
	     off += sizeof(code) - WP_REGS_CALL_LEN) {
		size_t want = len - off < sizeof(code) ? (size_t)(len - off) :
							 sizeof(code);
		ssize_t n = read_memory(tid, start + off, code, want);
		const uint8_t *found;

		if (n <= 0)
			return 0;
		found = find_call_code(code, (size_t)n);
		if (found)
			return start + off + (uint64_t)(found - code);
	}
	return 0;
}

/* The same in the interpreter at AVMA, which begins at ENTRY (elf(5)); of its code the
 * first part alone. */
static uint64_t find_call_in(pid_t tid, uint64_t avma, uint64_t entry_avma)
{
	Elf64_Phdr headers[HEADERS_MAX];
	Elf64_Ehdr elf;
	ssize_t n;

	if (read_memory(tid, avma, &elf, sizeof(elf)) != sizeof(elf) ||
	    avma + elf.e_entry != entry_avma)
		return 0;
	n = read_memory(tid, avma + elf.e_phoff, headers, sizeof(headers));
	for (ssize_t i = 0;
	     i < elf.e_phnum && i < n / (ssize_t)sizeof(headers[0]); i++)
		if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_X))
			return find_call(tid, avma + headers[i].p_vaddr,
					 headers[i].p_filesz);
	return 0;
}

/* Set the registers of TRACEE, whose program is in FILE, for that execve(2). */
static int set_call(const struct wp_tracee *tracee, const struct stat *file)
{
	pid_t tid = tracee->tid;
	struct told told = read_told(tid);
	struct wp_exec_call call = {
		.path_avma = told.path_avma,
		.entry_avma = tracee->entry_avma,
		.sp_avma = tracee->entry_sp_avma,
	};
	uint64_t argc, end = 1;

	if (!told.path_avma || !told.interpreter_avma ||
	    !leads_to(tid, told.path_avma, file))
		return -ENOENT;
	/* argc, the arguments, 0, the environment (psABI, "Initial Process Stack"). */
	if (read_memory(tid, call.sp_avma, &argc, sizeof(argc)) != sizeof(argc))
		return -EIO;
	call.argv_avma = call.sp_avma + 8;
	call.envp_avma = call.argv_avma + 8 * (argc + 1);
	if (argc > ARGS_MAX ||
	    read_memory(tid, call.envp_avma - 8, &end, sizeof(end)) !=
		    sizeof(end) ||
	    end)
		return -EINVAL;
	call.code_avma = find_call_in(tid, told.interpreter_avma,
				      call.entry_avma);
	return call.code_avma ? wp_regs_set_exec(tid, &call) : -ENOENT;
}

void wp_exec_again(struct wp_tracee *tracee)
{
	pid_t tid = tracee->tid;
	char exe[32], dir[32];
	struct stat file, task;

	snprintf(exe, sizeof(exe), "/proc/%d/exe", tid);
	snprintf(dir, sizeof(dir), "/proc/%d", tid);
	if (stat(dir, &task))
		return;
	if (stat(exe, &file)) {
		/* A program that may not be read: it may be one of these. */
		tracee->lost_rights = errno == EACCES;
		return;
	}
	if (!lacks_rights(tid, exe, &file, &task) || gets_none(tid, exe))
		return;
	tracee->executes_again = !set_call(tracee, &file);
	tracee->lost_rights = !tracee->executes_again;
}
