/* SPDX-License-Identifier: Apache-2.0 */
/* option_table.c - see option_table.h. */
#include "option_table.h"

#include <string.h>

#include "wallprof/enum_name.h"

#define RECORD (1u << WP_ACTION_RECORD)
#define LEAKS (1u << WP_ACTION_LEAKS)
#define DUMP (1u << WP_ACTION_DUMP)
#define CHECK (1u << WP_ACTION_CHECK)
#define RUN (1u << WP_ACTION_RUN)
#define TOP (1u << WP_ACTION_TOP)
#define REPORT (1u << WP_ACTION_REPORT)
#define DIFF (1u << WP_ACTION_DIFF)
#define SERVE (1u << WP_ACTION_SERVE)
#define LIVE (RECORD | LEAKS | DUMP | CHECK | TOP)
#define ALL (LIVE | RUN | REPORT | DIFF | SERVE)

const struct wp_command_row wp_command_rows[] = {
	{ "record", WP_ACTION_RECORD,
	  "[OPTION...] PID | NAME | -- COMMAND ARG...",
	  "sample every thread by wall clock; the word may be left out",
	  "wallprof 4711 -d 30 -o out.html\n"
	  "wallprof record redis-server\n"
	  "wallprof -o out.pb.gz -- make -j4\n" },
	{ "dump", WP_ACTION_DUMP, "[OPTION...] PID | NAME",
	  "every thread once: its stack, what it waits for, who holds that",
	  "wallprof dump 4711\n"
	  "wallprof dump --group mariadbd\n" },
	{ "check", WP_ACTION_CHECK, "[OPTION...] PID | NAME",
	  "look twice: hung (exit status 3, 4), or healthy and idle (0)",
	  "wallprof check 4711 && echo fine\n" },
	{ "run", WP_ACTION_RUN, "[OPTION...] [TIME] [--] COMMAND ARG...",
	  "run a command like timeout(1); a hang leaves a dump",
	  "wallprof run 60 make test\n"
	  "wallprof run --on-deadlock exit -- ./server\n" },
	{ "top", WP_ACTION_TOP, "[OPTION...] PID | NAME",
	  "threads with state, wait and stack, live on the terminal",
	  "wallprof top redis-server\n" },
	{ "report", WP_ACTION_REPORT, "[OPTION...] FILE.pb.gz",
	  "print a saved profile (any pprof), or write it as -o FILE",
	  "wallprof report out.pb.gz\n"
	  "wallprof report out.pb.gz -o out.html\n" },
	{ "diff", WP_ACTION_DIFF, "[OPTION...] BEFORE.pb.gz AFTER.pb.gz",
	  "which functions take more or less, per second of recording",
	  "wallprof diff before.pb.gz after.pb.gz\n"
	  "wallprof diff before.pb.gz after.pb.gz -o diff.html\n" },
	{ "serve", WP_ACTION_SERVE, "[OPTION...] PID | NAME ... | --all",
	  "record in the background; profiles and metrics by HTTP",
	  "wallprof serve redis-server\n"
	  "wallprof serve --listen 127.0.0.1:6060 4711 nginx\n" },
	{ "leaks", WP_ACTION_LEAKS,
	  "[OPTION...] PID | NAME | -- COMMAND ARG...",
	  "who allocates what is not freed, and how fast that grows",
	  "wallprof leaks 4711 -d 60\n" },
};
const size_t wp_ncommand_rows = sizeof(wp_command_rows) /
				sizeof(*wp_command_rows);

const struct wp_option_row wp_option_rows[] = {
	{ 'p', "pid", "PID", LIVE | SERVE, WP_SECTION_WHAT, NULL,
	  "a running process, the same as PID alone; record,\n"
	  "dump, check: several, as A,B or by several -p",
	  "A running process.\n"
	  "The tid of any of its threads will do.\n"
	  "Of `record`, `dump` and `check` several, parted by commas or with several `-p`: see MANY PROCESSES." },
	{ WP_OPT_CHILDREN, "children", NULL, RECORD | LEAKS | SERVE,
	  WP_SECTION_WHAT, NULL,
	  "record also the processes that it starts from now on",
	  "Record the processes, too, that the process or COMMAND starts from now on, and those\n"
	  "that these start." },
	{ WP_OPT_TREE, "tree", "PID", RECORD | LEAKS | DUMP | CHECK | SERVE,
	  WP_SECTION_WHAT, NULL,
	  "a process with all that it has started and will start",
	  "A process with its children and theirs: those that there are, and those that start." },
	{ WP_OPT_NAME, "name", "GLOB", RECORD | LEAKS | DUMP | CHECK | SERVE,
	  WP_SECTION_WHAT, NULL,
	  "all processes whose name matches, now or later, such\n"
	  "as 'php-fpm*'; may be given several times",
	  "All processes whose name, or the last part of whose program's path, matches the shell\n"
	  "pattern: those that there are, and those that come to have such a name.\n"
	  "It may be given several times." },
	{ WP_OPT_CGROUP, "cgroup", "GROUP",
	  RECORD | LEAKS | DUMP | CHECK | SERVE, WP_SECTION_WHAT, NULL,
	  "all processes of a control group: a path, a unit of\n"
	  "systemd, or a container's id",
	  "All processes in a control group or below it, now or later: a path, as\n"
	  "/proc/PID/cgroup has it or below /sys/fs/cgroup; the name of a unit of systemd,\n"
	  "`nginx.service` or `nginx`; or the id of a container, or its first 8 digits or\n"
	  "more.\n"
	  "It may be given several times." },
	{ WP_OPT_ALL, "all", NULL, RECORD | DUMP | CHECK | SERVE,
	  WP_SECTION_WHAT, NULL, "all processes but wallprof's own",
	  "All processes, now or later, but kernel threads and wallprof's own." },
	{ 't', "thread", "GLOB", RECORD | LEAKS | TOP | DUMP | SERVE,
	  WP_SECTION_WHAT, NULL,
	  "only threads whose name matches, such as 'worker-*',\n"
	  "or does not: '!idle*'; may be given several times",
	  "Only threads whose name matches the shell pattern, such as `'worker-*'`; with\n"
	  "`!` before it, only those that do not match.\n"
	  "It may be given several times: a thread is wanted if it matches any of the patterns\n"
	  "without `!`, or there are none of these, and none of the others.\n"
	  "Names are read when a thread is first seen and now and then after that.\n"
	  "Where no thread is left, the names that there are are printed." },
	{ WP_OPT_THREADS_OF_GO, "threads-of-go", NULL, RECORD, WP_SECTION_WHAT,
	  NULL, "record the threads of Go programs, not their goroutines",
	  "Record the threads of programs built by Go, as of any other; without it the wall\n"
	  "profile is one of their goroutines (see GO PROGRAMS).\n"
	  "So do `-t`, `--stop=all` and `--profile cpu` alone." },
	{ WP_OPT_GOROUTINE_IDS, "goroutine-ids", NULL, RECORD, WP_SECTION_WHAT,
	  NULL, "tell goroutines apart: a label with the id of each",
	  "Tell goroutines apart, each by a label `goroutine` with its id, up to as many as\n"
	  "`--own-threads` says; else only their labels and stacks do." },
	{ 'd', "duration", "TIME", RECORD | LEAKS | TOP, WP_SECTION_WHAT, NULL,
	  "stop after 30, 30s, 5m; 0 (default): until the target\n"
	  "exits or Ctrl-C",
	  "Stop after this time: `30`, `30s`, `5m`, `250ms`.\n"
	  "0, the default, records until the target exits or Ctrl-C." },
	{ 'r', "rate", "HZ", RECORD | TOP | SERVE, WP_SECTION_WHAT, NULL,
	  "samples per second of each thread, 1 to 1000;\n"
	  "default 100; -F is the same",
	  "Samples per second of each thread, 1 to 1000; 100 by default (top, serve: 20).\n"
	  "`-F`, which users of perf type, is the same." },
	{ 'i', "interval", "TIME", RECORD | TOP, WP_SECTION_WHAT, NULL,
	  "time between two samples instead, such as 10ms",
	  "The same as the time between samples, with its unit: `10ms`." },
	{ 'k', "kernel", NULL, (LIVE & ~(TOP | LEAKS)) | RUN, WP_SECTION_WHAT,
	  NULL, "add the kernel's stack of waiting threads",
	  "Put the kernel's stack of a waiting thread on top of its own.\n"
	  "Needs CAP_SYS_ADMIN; without it nothing is added, and a line says so." },
	{ WP_OPT_PROFILE, "profile", "LIST", RECORD, WP_SECTION_WHAT,
	  "wall cpu block wake mutex threadcreate heap",
	  "any of wall,cpu (default: two columns of one file),\n"
	  "block (waits, by stack), wake (by who ends them),\n"
	  "mutex (by who holds the lock), threadcreate, heap",
	  "Which profiles to make, separated by commas: `wall`, `cpu`, `block`, `wake`,\n"
	  "`mutex`, `threadcreate`, `heap`; `wall,cpu` by default: columns of one file.\n"
	  "See PROFILES." },
	{ WP_OPT_BLOCK_RATE, "block-rate", "RATE", RECORD | SERVE,
	  WP_SECTION_WHAT, NULL,
	  "block: sample 1/N of the waits, or once per so much\n"
	  "waiting, such as 10us; default: as many as are cheap",
	  "For the block profile: `1/N` takes the stack of one switch in N; a time such as\n"
	  "`10us` keeps one sample for so much delay on average, longer waits always.\n"
	  "For the wake profile: `1/N` takes the stack of one wake in N.\n"
	  "By default as many are taken as are cheap; no rate changes sums on average." },
	{ WP_OPT_HEAP_RATE, "heap-rate", "BYTES", RECORD | LEAKS,
	  WP_SECTION_WHAT, NULL, "heap: bytes for each sample, default 512K",
	  "For the heap profile: one sample for so many bytes allocated, 512K by default.\n"
	  "Fewer bytes are more samples, each of which costs some microseconds." },
	{ WP_OPT_MAX_OVERHEAD, "max-overhead", "PERCENT", RECORD | LEAKS,
	  WP_SECTION_WHAT, NULL, "heap: no probes past this share, default 5",
	  "For the heap profile: the most of the time of the target's threads (of one CPU, if more)\n"
	  "that probes on all allocators may take, 5 by default.  Calls are counted for 20 ms first:\n"
	  "past it there is none, or it ends, or the process that costs most is left out, as is said." },
	{ WP_OPT_HEAP_ANYWAY, "heap-anyway", NULL, RECORD | LEAKS,
	  WP_SECTION_WHAT, NULL, "heap: whatever it costs the target",
	  "For the heap profile: make it whatever it costs the target." },
	{ WP_OPT_HEAP_LARGE, "heap-large", "[=BYTES]", RECORD | LEAKS,
	  WP_SECTION_WHAT, NULL, "heap: only what the kernel gives it: cheap",
	  "For the heap profile: only what the program takes from the kernel, so much at a time." },
	{ WP_OPT_HEAP_CENSUS, "heap-census", NULL, RECORD | LEAKS,
	  WP_SECTION_WHAT, NULL, "heap: by size, not by stack; costs nothing",
	  "For the heap profile: no probes; what glibc's malloc holds by size, at begin and end." },
	{ WP_OPT_HEAP_PROBE, "heap-probe", "HOW", RECORD | LEAKS,
	  WP_SECTION_WHAT, "auto session multi perf",
	  "heap: how calls are probed, default auto",
	  "For the heap profile: `session` (Linux 6.13), `multi` (6.6, some 1 us more for each\n"
	  "call), `perf` (5.10, as much); `auto`: the first that works, of several not session." },
	{ 'o', "output", "FILE", ALL & ~(TOP | SERVE), WP_SECTION_OUTPUT, NULL,
	  ".html page with timeline and flame graph, .pb.gz pprof,\n"
	  ".speedscope.json, .firefox.json, .svg, .folded, .txt\n"
	  "text, .json (of a dump); - is standard output;\n"
	  "default: text there",
	  "The file to write; its ending says the format: `.pb.gz` (also `.pprof`, `.prof`)\n"
	  "for pprof, `.html` for a page with timeline and flame graph, `.speedscope.json` and\n"
	  "`.firefox.json` for these viewers, `.svg` for a picture of a flame graph, `.folded`\n"
	  "(also `.collapsed`) for flame graph tools, `.txt` for the text report, `.json` for a\n"
	  "dump.\n"
	  "`-` is standard output.\n"
	  "The file is written beside its final name, readable by its owner only, and\n"
	  "renamed when it is whole.\n"
	  "Without `-o` the text report goes to standard output.\n"
	  "A descriptor (`/dev/stdout`, `/dev/fd/7`), a device, a fifo and a file that is\n"
	  "mounted at that path are written through." },
	{ 'f', "format", "FORMAT", ALL & ~(TOP | SERVE), WP_SECTION_OUTPUT,
	  "html pprof speedscope firefox svg folded text json go",
	  "html, pprof, speedscope, firefox, svg, folded, text,\n"
	  "json or go, whatever the file's name",
	  "`pprof`, `html`, `speedscope`, `firefox`, `svg`, `folded`, `text` or (dumps only)\n"
	  "`json` or `go`, whatever the file is called.\n"
	  "`go` is the text in which Go's runtime prints all goroutines (goroutine?debug=2),\n"
	  "for tools that read that." },
	{ WP_OPT_TIMELINE, "timeline", NULL, RECORD, WP_SECTION_OUTPUT, NULL,
	  "keep what happened when in a pprof file, too",
	  "Keep what each thread did when in a pprof file, too, as a field that other readers\n"
	  "skip; `wallprof report` then makes a page with a timeline of it." },
	{ WP_OPT_TIMELINE_SIZE, "timeline-size", "N", RECORD | SERVE,
	  WP_SECTION_OUTPUT, NULL,
	  "most memory for what happened when (html, speedscope,\n"
	  "firefox), default 64M; past it old times get coarse",
	  "For formats that tell what happened when (`html`, `speedscope`, `firefox`) and\n"
	  "`--timeline`, the most memory for that: bytes, or with `K`, `M` or `G`, 64M by default.\n"
	  "A thread that does not move takes none; a change takes 24 bytes.\n"
	  "Past it the oldest intervals of one thread in one place are joined within windows of\n"
	  "time, which double as often as that takes: sums stay exact." },
	{ WP_OPT_REPORT, "report", NULL, RECORD | LEAKS, WP_SECTION_OUTPUT,
	  NULL, "with -o FILE: print the text report as well",
	  "With `-o`, print the text report as well." },
	{ WP_OPT_FULL, "full", NULL, RECORD | LEAKS | REPORT | DIFF,
	  WP_SECTION_OUTPUT, NULL,
	  "text report: every function and call, however small",
	  "Show all of the text report instead of what matters." },
	{ 'q', "quiet", NULL, ALL, WP_SECTION_OUTPUT, NULL,
	  "print only errors on standard error",
	  "Print errors only, what could not be named or seen, and why the exit status is\n"
	  "1." },
	{ 'v', "verbose", NULL, ALL, WP_SECTION_OUTPUT, NULL,
	  "with -o FILE: print how it was recorded, as is printed\n"
	  "where standard error is no terminal",
	  "With `-o`, print how it was recorded and what was lost, line by line, as is done\n"
	  "in any case where standard error is no terminal.\n"
	  "Else one line says what is in the file and where most of the time goes, and a second\n"
	  "one what was lost, if something was." },
	{ WP_OPT_THREADS, "threads", "[=dump]", DUMP, WP_SECTION_HANG, NULL,
	  "the same as the command dump", "The same as the command `dump`." },
	{ WP_OPT_CHECK, "check", NULL, CHECK, WP_SECTION_HANG, NULL,
	  "the same as the command check", "The same as the command `check`." },
	{ 'i', "interval", "TIME", CHECK, WP_SECTION_HANG, NULL,
	  "time between the two looks of check, default 2s",
	  "Of `check`: time between the two snapshots, 2s by default." },
	{ WP_OPT_TIMEOUT, "timeout", "TIME", RUN, WP_SECTION_HANG, NULL,
	  "the same as run TIME; 0: no limit",
	  "The same as the command `run` with this time; 0 is no limit." },
	{ WP_OPT_KILL_AFTER, "kill-after", "TIME", RUN, WP_SECTION_HANG, NULL,
	  "from SIGTERM to SIGKILL, default 5s",
	  "From SIGTERM to SIGKILL, 5s by default." },
	{ WP_OPT_DUMP_TIME, "dump-time", "TIME", RUN, WP_SECTION_HANG, NULL,
	  "most time for the dump, default 10s; 0: no dump",
	  "The most time that the dump may take, 10s by default; 0 is no dump.\n"
	  "Functions are named for 60 % of it, and processes looked at for 80 %; the dump\n"
	  "says what it lacks." },
	{ WP_OPT_ON_DEADLOCK, "on-deadlock", "DO", RUN, WP_SECTION_HANG,
	  "exit wait", "exit: end the command as soon as it is in a deadlock",
	  "`exit` ends the command in the same way as soon as some of its threads are in a\n"
	  "deadlock.\n"
	  "Once a second one line of /proc is read for each thread; a snapshot is taken when\n"
	  "other threads stand still than before, and after 1, 2, 4, 8 and each 16 s while\n"
	  "the same do, for at most a fiftieth of the time." },
	{ WP_OPT_PROFILE, "profile", "KIND", DUMP, WP_SECTION_HANG,
	  "goroutine heap block mutex",
	  "of a dump of a Go program: its goroutines, or its own\n"
	  "heap, block or mutex profile, as pprof",
	  "Of `dump`, for a Go program, as a pprof file: its goroutines, or what its runtime\n"
	  "has noted for its own `heap`, `block` or `mutex` profile.\n"
	  "See GO PROGRAMS." },
	{ WP_OPT_GROUP, "group", NULL, DUMP | CHECK | RUN, WP_SECTION_HANG,
	  NULL, "print identical stacks once",
	  "Identical stacks once, with the number and names of their threads." },
	{ WP_OPT_FOLLOW, "follow-processes", NULL, DUMP | CHECK | RUN,
	  WP_SECTION_HANG, NULL,
	  "dump also the processes that threads wait for",
	  "Print the processes that waits lead to as well, and stop their running threads, too." },
	{ WP_OPT_LISTEN, "listen", "WHERE", SERVE, WP_SECTION_SERVE, NULL,
	  "unix:PATH or HOST:PORT, up to four; default\n"
	  "unix:/run/wallprof.sock, or $XDG_RUNTIME_DIR's",
	  "Where to listen: `unix:PATH` or `HOST:PORT`; it may be given four times.\n"
	  "By default that is `unix:/run/wallprof.sock` for root, and `wallprof.sock` in\n"
	  "`$XDG_RUNTIME_DIR` for others; to a unix socket only the same user and root connect.\n"
	  "A HOST must be this machine's own (127.0.0.1), or want a token (`--token-file`)." },
	{ WP_OPT_TOKEN_FILE, "token-file", "FILE", SERVE, WP_SECTION_SERVE,
	  NULL, "answer only who sends this token (Authorization: Bearer)",
	  "A file of 16 characters or more that only its owner may read: clients are answered only\n"
	  "if they send them as `Authorization: Bearer TOKEN`." },
	{ WP_OPT_KEEP, "keep", "TIME", SERVE, WP_SECTION_SERVE, NULL,
	  "how far back the recording goes, default 10m",
	  "How far back the recording goes, 10m by default; `--timeline-size` bounds its\n"
	  "memory, past which the oldest goes first." },
	{ WP_OPT_ON_HANG, "on-hang", "DIR", SERVE, WP_SECTION_SERVE, NULL,
	  "when a process hangs, write a dump and its last minute here",
	  "When a process comes to hang, write a dump of it, and page and profile of its last\n"
	  "minute, to this directory: see SERVING." },
	{ WP_OPT_HANG_WHEN, "hang-when", "LIST", SERVE, WP_SECTION_SERVE, NULL,
	  "a hang, too: lock=50%,idle=30s,runnable=5s",
	  "What `--on-hang` takes for a hang, too: more than so many threads in wait=lock\n"
	  "(`lock=50%`), no thread that ran for so long (`idle=30s`), a thread that was ready to\n"
	  "run for so long without running (`runnable=5s`); one or more, parted by commas." },
	{ WP_OPT_PUSH, "push", "URL", SERVE, WP_SECTION_SERVE, NULL,
	  "send profiles to a collector with Pyroscope's /ingest",
	  "Send the profile of each interval of each process to this collector, which has\n"
	  "Pyroscope's `/ingest` (`http://HOST:4040`)." },
	{ WP_OPT_PUSH_AUTH, "push-auth", "FILE", SERVE, WP_SECTION_SERVE, NULL,
	  "a file with USER:PASSWORD or a bearer token for --push",
	  "A file that only its owner may read: its line, `USER:PASSWORD` or a bearer token, is\n"
	  "what the collector of `--push` wants to see." },
	{ WP_OPT_PUSH_INTERVAL, "push-interval", "TIME", SERVE,
	  WP_SECTION_SERVE, NULL, "time of each profile of --push, default 15s",
	  "Time of each profile that is sent, 1 s to 1 h, 15s by default; at most that of `--keep`." },
	{ WP_OPT_STOP, "stop", "MODE", LIVE | RUN | SERVE, WP_SECTION_HOW,
	  "auto all never",
	  "auto (default): stop running threads only, each for\n"
	  "microseconds; all: stop them at one instant (default\n"
	  "of dumps); never: running threads have no stack",
	  "`auto` stops running threads, one at a time, and waiting ones only when their stack\n"
	  "needs a register that cannot be read otherwise (see `--scan`).\n"
	  "`all`, the default of dumps, stops all threads that run, reads everything at that one\n"
	  "instant, and lets them go.\n"
	  "`never` stops nothing: running threads have the stacks of their CPU samples, or none\n"
	  "without perf events.\n"
	  "Such a stack is truncated where more than 64 KiB of it change before the next look,\n"
	  "or it continues on another one, as below a signal handler with a stack of its own.\n"
	  "\n"
	  "A stop ends the sleep of a thread in a system call, which the kernel then\n"
	  "restarts.\n"
	  "So a waiting thread is not stopped where that would be noticed: in a call whose\n"
	  "time limit would start over (calls on sockets and terminals may have one that\n"
	  "cannot be seen), that would be cut short, or that a file server would be told of\n"
	  "again; and, if the thread has a seccomp filter, in any call but those without a\n"
	  "time limit that do nothing but wait, as the filter's supervisor (seccomp_unotify(2))\n"
	  "would be asked for the call twice.\n"
	  "Such a stack is truncated where it needs a register that only `bpf` gives.\n"
	  "A running thread with a seccomp filter is stopped only where there are no CPU\n"
	  "samples, and only if it has not slept for a millisecond.\n"
	  "What remains: a running thread that goes to sleep in the few microseconds between\n"
	  "the last look and its stop is stopped at the begin of that sleep, which is then\n"
	  "restarted, once." },
	{ WP_OPT_SCAN, "scan", "MODE", RECORD | TOP | SERVE, WP_SECTION_HOW,
	  "auto bpf proc switches",
	  "how to learn which threads have run: bpf: with a BPF\n"
	  "program; proc: read /proc for each; switches: bpf, of\n"
	  "those that were on a CPU; auto (default): bpf from 50\n"
	  "threads on, if permitted, or switches if it takes less",
	  "How threads are asked at each tick whether they have run, and where they wait.\n"
	  "`auto` (default) asks them all at once by a BPF program, where that is permitted (root,\n"
	  "or CAP_BPF and CAP_PERFMON) and Linux is 6.7 or later, if they are 50 or more or\n"
	  "a stack wants a register that /proc does not give; `bpf` asks so in any case; `proc`\n"
	  "reads files of /proc for each.\n"
	  "`switches` asks as `bpf` does, but only those that were on a CPU since the last tick,\n"
	  "which another BPF program notes at each context switch of the machine (some 60 ns);\n"
	  "all of them once a second.\n"
	  "`auto` does so for as long as it takes less than to ask all, by eight times.\n"
	  "With `--stop=all` all are asked at each tick.\n"
	  "The samples are the same, but by /proc a waiting thread whose stack wants such a\n"
	  "register is stopped for it, or has part of its stack where it may not be stopped\n"
	  "(see `--stop`)." },
	{ WP_OPT_MAX_STOPPED, "max-stopped", "PCT", RECORD | TOP | SERVE,
	  WP_SECTION_HOW, NULL,
	  "share of time that stops may cost the target, default\n"
	  "1%; 0: no limit",
	  "How much of the wall time all stops together may take, 1 by default, 0 for no\n"
	  "bound.\n"
	  "Of time in which there was nothing to stop the last ten seconds count.\n"
	  "Past it fewer stops are made; the time of a thread that was not stopped is\n"
	  "given to its next stack (or its last, at the end), so that sums stay right." },
	{ WP_OPT_MAX_CPU, "max-cpu", "PCT", RECORD | SERVE, WP_SECTION_HOW,
	  NULL,
	  "share of one core that sampling may take, default: no\n"
	  "limit, with --all 5%",
	  "How much of one core sampling may take: no limit by default, 5 with `--all`, 0 for\n"
	  "none.\n"
	  "Past it there are fewer ticks and CPU samples of all processes alike, once a second\n"
	  "at least, each of which stands for more time, so that sums stay right; that is said.\n"
	  "What it takes to begin, and to name functions at the end, is not counted." },
	{ WP_OPT_MAX_MEMORY, "max-memory", "SIZE", LIVE | RUN | SERVE,
	  WP_SECTION_HOW, NULL,
	  "what the process can make wallprof take, default\n"
	  "512M; what is beyond is left out, and said",
	  "How much memory the process that is looked at can make wallprof take beside some\n"
	  "8 MiB of its own, 512M by default: five sixteenths of it for distinct stacks, four\n"
	  "for what is read and unpacked of ELF files, of which one file has at most one, two\n"
	  "each for samples and for the log of changes, and one each for executable mappings,\n"
	  "/proc/PID/maps, allocations, and goroutines and their labels; a dump and a verdict,\n"
	  "which have no log, have four for goroutines.\n"
	  "Past it the time of further stacks and samples is that of the frame\n"
	  "`[dropped: memory]`, which also ends the stacks that lead through a file that there\n"
	  "is no room for; how much is left out is said, and the exit status is 1." },
	{ WP_OPT_MAX_DEPTH, "max-depth", "N", LIVE | RUN | SERVE,
	  WP_SECTION_HOW, NULL, "most frames of a stack, default 512",
	  "Frames that are kept of a stack, 512 by default." },
	{ WP_OPT_OWN_THREADS, "own-threads", "N", RECORD | LEAKS | SERVE,
	  WP_SECTION_HOW, NULL,
	  "most threads with an entry of their own, default\n"
	  "30000; later ones share an entry per name",
	  "Threads that are told apart, 30000 by default.\n"
	  "Threads that start later share an entry per name, without a tid, so that memory\n"
	  "is bounded however many there are." },
	{ WP_OPT_UNWINDER, "unwinder", "NAME", LIVE | RUN | SERVE,
	  WP_SECTION_HOW, "rows libunwind", "rows (default) or libunwind",
	  "`rows` (default) evaluates unwind info itself and asks libunwind only for what it\n"
	  "cannot do; `libunwind` asks it for every frame." },
	{ WP_OPT_DEBUGINFOD, "debuginfod", "ASK", RECORD | LEAKS,
	  WP_SECTION_HOW, "yes no",
	  "yes: ask the servers of DEBUGINFOD_URLS for debug\n"
	  "files; default: yes, but no for root",
	  "Whether to ask the servers that the environment variable `DEBUGINFOD_URLS` names for\n"
	  "debug files that are not on this machine: `yes` or `no`.\n"
	  "They learn the build-ids of the programs and libraries that were seen; what they\n"
	  "give is kept where debuginfod_find_debuginfo(3) says.\n"
	  "By default root asks nobody, and others do if the variable is set.\n"
	  "All answers together may take a minute; if they take longer, that is said, and names\n"
	  "are missing." },
	{ WP_OPT_NO_CACHE, "no-cache", NULL,
	  RECORD | LEAKS | DUMP | CHECK | RUN, WP_SECTION_HOW, NULL,
	  "neither use nor keep names that were looked up",
	  "Neither use nor keep the names of functions, files and lines that earlier runs\n"
	  "looked up; see CACHE." },
	{ 'V', "version", NULL, ALL, WP_SECTION_OTHER, NULL,
	  "print the version and exit", "Print the version." },
	{ 'h', "help", NULL, ALL, WP_SECTION_OTHER, NULL,
	  "print this and exit; after a command: its options",
	  "Print a summary of the options; after a command, of those that it has." },
};
const size_t wp_noption_rows = sizeof(wp_option_rows) / sizeof(*wp_option_rows);

const char *wp_option_section_name(enum wp_option_section section)
{
	return WP_ENUM_NAME(WP_OPTION_SECTIONS, section);
}

const struct wp_command_row *wp_command_find(const char *word)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++)
		if (!strcmp(wp_command_rows[i].name, word))
			return &wp_command_rows[i];
	return NULL;
}

const struct wp_command_row *wp_command_of(enum wp_action action)
{
	for (size_t i = 0; i < wp_ncommand_rows; i++)
		if (wp_command_rows[i].action == action)
			return &wp_command_rows[i];
	return NULL;
}
