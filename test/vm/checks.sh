#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# checks.sh - in a guest, in the tree: what wallprof does to programs there, a line
# "check: WHAT: RESULT" for each; a result begins with "ok", "no", or "refused", where
# the kernel is too old for it and wallprof says so.  Status 1 if one does with "no".
#
# BUILD_DIR and FIXTURES_DIR as for guest.sh.  EINTR_STOPS: the least stops, in each
# mode, of the program whose calls they would end.
program=$BUILD_DIR/wallprof
out=/run/checks
mkdir -p $out
failed=0 pids=
trap 'kill $pids 2>/dev/null' EXIT
say() {
	echo "check: $1: $2"
	case $2 in no*) failed=1 ;; esac
}
# start NAME WORD COMMAND...: in the background until it prints WORD, its pid in $pid.
start() {
	name=$1 word=$2
	shift 2
	"$@" >"$out/$name.out" 2>&1 &
	pid=$!
	pids="$pids $pid"
	await "$word" "$out/$name.out"
}
# await WORD FILE: until FILE has WORD, or $pid has ended.
await() {
	until grep -q "$1" "$2" 2>/dev/null || ! kill -0 "$pid"; do sleep 0.2; done
}
# run NAME ARG...: wallprof with ARGs; its exit status in $status.
run() {
	name=$1
	shift
	timeout 120 "$program" "$@" >"$out/$name.out" 2>"$out/$name.err"
	status=$?
}
# "stacks: 0.1 % of wall time, ..." -> the share that is whole.  An emulated CPU that
# others use as well may be late with a stop: what that took is not judged.
whole() {
	awk '/stacks: [0-9.]+ % of wall time/ { share = 100 - $2 }
	sub(/.*running, and did not stop in time: /, "") { share += $1 }
	END { printf "%.1f", share }' "$1"
}

# record NAME PID: of all time at least 99 % has whole stacks.
record() {
	run "$1" -p "$2" -d 5 --max-stopped 0 -o "$out/$1.pb.gz"
	share=$(whole "$out/$1.err")
	if [ $status -le 1 ] && [ "${share%.*}" -ge 99 ]; then
		say "record $1" "ok: $share % of time with whole stacks"
	else
		say "record $1" "no: ${share:-0} % of time with whole stacks; $(sed -n \
			's/.*stacks: .*without a whole stack; *//p' "$out/$1.err" | head -n 1)"
		cat "$out/$1.err"
	fi
}
start redis Ready redis-server --port 7911 --save '' --daemonize no
redis=$pid
record redis "$redis"
mkdir -p /var/log/nginx /var/lib/nginx
echo 'worker_processes 1; master_process off; daemon off; pid /run/nginx.pid; error_log stderr notice;
events {} http { access_log off; server { listen 7912; root /usr/share; } }' \
	>$out/nginx.conf
start nginx getrlimit nginx -c $out/nginx.conf
record nginx $pid
start python3 READY /usr/bin/python3 -c 'import threading, time, hashlib
all = threading.Barrier(4)
def nap():
  all.wait()
  while 1: time.sleep(0.2)
for i in range(3): threading.Thread(target=nap, daemon=True).start()
all.wait()
print("READY", flush=True)
while 1: hashlib.sha256(b"x" * 100000).hexdigest()'
record python3 $pid
kill $pid
for fixture in shares altstack "deep 200 spin" "waiters 60" "hang abba" vdso \
	"stack-gcc-O2-protected spin"; do
	# shellcheck disable=SC2086 # a name and arguments
	start "$fixture" READY "$FIXTURES_DIR"/$fixture
	record "$fixture" $pid
	kill $pid
done

run dump --threads -p "$redis"
threads=$(grep -c '^thread' $out/dump.out)
if [ $status = 0 ] && ! grep -q truncated $out/dump.out; then
	say dump "ok: $threads threads"
else
	say dump "no: status $status, $(grep -c truncated $out/dump.out) of $threads stacks cut"
fi

start hang READY "$FIXTURES_DIR/hang" abba
run deadlock --check -p $pid
if [ $status = 3 ] && grep -q '^DEADLOCK: 2 threads' $out/deadlock.out; then
	say deadlock ok
else
	say deadlock "no: status $status"
fi
kill $pid

# What tells the other end of a unix socket is a module that a machine may lack.
if /run/busybox rmmod unix_diag 2>/dev/null; then
	start pair READY /usr/bin/python3 -c 'import socket
a, b = socket.socketpair()
print("READY", flush=True)
a.recv(1)'
	run "no unix_diag" --threads -p $pid
	say "no unix_diag" "$(grep -q 'lacks unix_diag' "$out/no unix_diag.err" && [ $status = 0 ] &&
		echo ok || echo no): status $status, $(head -n 1 "$out/no unix_diag.err")"
	kill $pid
	/run/busybox insmod /run/*-unix_diag.ko
fi

# Calls that a stop would end by EINTR.  Those of which a kernel does not tell what they
# were called with do, and are said.
start eintr READY "$FIXTURES_DIR/eintr"
repaired=0 left=0 stops=
# count WORDS: the number before WORDS in what the last run said.
count() {
	sed -n "s/.* \([0-9]*\) $1.*/\1/p" "$out/eintr-$stop.err" | grep . || echo 0
}
for stop in auto all; do
	made=0 n=1
	while [ "$n" -gt 0 ] && [ $made -lt "${EINTR_STOPS:-1}" ]; do
		run eintr-$stop -p $pid -d 10 -r 1000 --stop=$stop --profile wall -v \
			--max-stopped 0 -o $out/eintr.pb.gz
		n=$(count made)
		made=$((made + n))
		repaired=$((repaired + $(count 'EINTR repaired')))
		left=$((left + $(count 'EINTR left')))
	done
	stops="$stops, $made stops by $stop"
done
kill $pid
wait $pid
eintrs=$(grep -o '"eintrs": [0-9]*' $out/eintr.out | awk '{ n += $2 } END { print n + 0 }')
if [ "$repaired" = 0 ] || ! grep -q TRUTH $out/eintr.out; then
	say EINTR "no: $eintrs, $repaired repaired"
elif [ "$eintrs" = 0 ]; then
	say EINTR "ok: 0 of $repaired$stops"
elif [ "$eintrs" -le $left ]; then
	say EINTR "refused: $eintrs calls failed, as this kernel does not tell their arguments; wallprof said $left, and repaired $repaired"
else
	say EINTR "no: $eintrs calls failed, $left said; $repaired repaired"
fi

# refusal REASON: that of a kernel that is too old, that wallprof's user can overrule, or
# another one.
refusal() {
	case $1 in
	*"wants Linux "* | *"give --heap-anyway"*) echo "refused: $1" ;;
	*) echo "no: $1" ;;
	esac
}
start waiters READY "$FIXTURES_DIR/waiters" 60
run scan -p $pid -d 3 --scan bpf -o $out/scan.pb.gz
reason=$(sed -n 's/.*no BPF scan: //p; s/^wallprof: \(.*BPF.*\)/\1/p' $out/scan.err |
	head -n 1)
if [ $status -le 1 ] && [ -z "$reason" ]; then
	say "BPF scan" ok
else
	say "BPF scan" "$(refusal "${reason:-status $status}")"
fi
for anyway in "" --heap-anyway; do
	rm -f $out/heap.pb.gz
	# shellcheck disable=SC2086 # no argument, if there is none
	run heap -p "$redis" -d 2 --profile heap $anyway -o $out/heap.pb.gz
	if [ $status = 0 ] && [ -s $out/heap.pb.gz ]; then
		say "heap${anyway:+ $anyway}" ok
	else
		reason=$(sed -n 's/^wallprof: exit status //p' $out/heap.err)
		[ -n "$reason" ] || reason=$(sed -n 's/^wallprof: //p' $out/heap.err | head -n 1)
		say "heap${anyway:+ $anyway}" "$(refusal "$reason")"
	fi
done
# lack NAME WORDS COMMAND...: COMMAND runs wallprof where something is lacking, which
# records all the same, and says WORDS.
lack() {
	what=$1 words=$2
	shift 2
	rm -f $out/lack.pb.gz
	timeout 120 "$@" -p $pid -d 2 -o $out/lack.pb.gz >$out/lack.out 2>$out/lack.err
	status=$?
	if [ $status -le 1 ] && [ -s $out/lack.pb.gz ] && grep -q "$words" $out/lack.err; then
		say "$what" ok
	else
		say "$what" "no: status $status, $(head -n 1 $out/lack.err)"
		cat $out/lack.err
	fi
}
case $(uname -m) in
aarch64) bpf=280 perf=241 ;;
*) bpf=321 perf=298 ;;
esac
# 38: ENOSYS.
lack "no BPF" "no BPF scan: " "$FIXTURES_DIR/fault_deny" $bpf 38 "$program" --scan bpf
lack "no perf events" "Function not implemented" \
	"$FIXTURES_DIR/fault_deny" $perf 38 "$program" --profile wall,cpu
if [ -d /sys/kernel/btf ]; then
	mount -t tmpfs none /sys/kernel/btf
	lack "no BTF" "no BPF scan: .*\(does not tell its types\|wants Linux\)" "$program" --scan bpf
	umount /sys/kernel/btf
fi
# Half of what a recording may take.
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/small
echo 32M >/sys/fs/cgroup/small/memory.max
lack "cgroup with 32 MB" "" sh -c 'echo $$ >/sys/fs/cgroup/small/cgroup.procs; exec "$@"' \
	sh "$program"
killed=$(sed -n 's/^oom_kill //p' /sys/fs/cgroup/small/memory.events)
[ "$killed" = 0 ] || say "cgroup with 32 MB" "no: $killed killed"
for restrict in 1 2; do
	echo $restrict >/proc/sys/kernel/kptr_restrict
	timeout 120 "$program" -k -p $pid -d 2 -o - -f folded >$out/kptr.out 2>$out/kptr.err
	named=$(grep -c 'futex_wait' $out/kptr.out)
	say "kptr_restrict $restrict" "$([ "$named" != 0 ] && echo ok || echo no): $named stacks with names of the kernel's"
done
echo 0 >/proc/sys/kernel/kptr_restrict
run block -p $pid -d 3 --profile block -o $out/block.pb.gz
by=$(sed -n 's/^wallprof: block: \([^,]* from [^,]*\),.*/\1/p' $out/block.err | head -n 1)
if [ $status -le 1 ] && [ -s $out/block.pb.gz ]; then
	say block "ok: $by"
else
	say block "no: status $status"
fi
kill $pid

# A process of the same user, who is nobody in particular.
setpriv --reuid=65534 --regid=65534 --clear-groups "$FIXTURES_DIR/shares" \
	>$out/shares.out 2>&1 &
pid=$!
pids="$pids $pid"
await READY $out/shares.out
pid=$(sed -n 's/.*pid=\([0-9]*\).*/\1/p' $out/shares.out)
chmod 777 $out
# CPU samples of what is theirs, without a capability and with one: where they are
# refused, it is by what the message names, and its advice helps.
before=$(cat /proc/sys/kernel/perf_event_paranoid)
for paranoid in 2 3 4; do
	echo $paranoid >/proc/sys/kernel/perf_event_paranoid
	result=ok
	for caps in -all +perfmon; do
		timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
			--inh-caps=$caps --ambient-caps=$caps "$program" --profile cpu \
			-p "$pid" -d 1 -o $out/nobody.pb.gz >$out/nobody.err 2>&1
		status=$?
		text=$(head -n 1 $out/nobody.err)
		how=$(sed -n 's/^ *cpu: //p' $out/nobody.err | head -n 1)
		case $caps,$status,$how,$text in
		*,[01],"by perf events"*) result="$result, $caps recorded" ;;
		-all,[01],*"perf_event_paranoid is $paranoid"* | \
			+perfmon,[01],*"wants CAP_SYS_ADMIN"*"CAP_PERFMON is not enough"*)
			result="$result, $caps told why there are no events"
			;;
		-all,2,,*"perf_event_paranoid is $paranoid; run wallprof as root"* | \
			+perfmon,2,,*"wants CAP_SYS_ADMIN"*"CAP_PERFMON is not enough"*)
			result="$result, $caps refused"
			;;
		*) result="no: $caps, status $status, $text, cpu: $how" ;;
		esac
	done
	say "perf_event_paranoid $paranoid" "$result"
done
echo "$before" >/proc/sys/kernel/perf_event_paranoid
# Ends with 0, which what comes later needs.
for scope in 1 2 0; do
	echo $scope >/proc/sys/kernel/yama/ptrace_scope 2>/dev/null || continue
	timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$program" --threads -p "$pid" >$out/nobody.out 2>$out/nobody.err
	status=$?
	case $scope in
	0) wanted=$([ $status = 0 ] && echo yes) ;;
	# It is told what refuses, and what to do.
	*) wanted=$([ $status = 2 ] && grep -q ptrace_scope $out/nobody.err &&
		echo yes) ;;
	esac
	say "ptrace_scope $scope" "$([ -n "$wanted" ] && echo ok || echo no): status $status, $(head -n 1 $out/nobody.err)"
	[ $scope = 2 ] || continue
	timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$program" --timeout 1 -- sleep 100 >$out/nobody.out 2>&1
	status=$?
	say "timeout at ptrace_scope 2" "$([ $status = 124 ] &&
		grep -q 'ptrace_scope is 2' $out/nobody.out && echo ok ||
		echo no): status $status, $(grep ptrace_scope $out/nobody.out | head -n 1)"
done
# A profile of AppArmor's that lets wallprof do all but trace.
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
if [ -d /sys/kernel/security/apparmor ] && command -v aa-exec >/dev/null &&
	command -v apparmor_parser >/dev/null; then
	echo 'profile confined {
		file, capability, network, signal, unix, mount,
		deny ptrace,
	}' | apparmor_parser -r
	# By its name: a path is one from the root that the guest's was mounted in.
	timeout 60 aa-exec -p confined -- "$program" --threads -p "$redis" \
		>$out/confined.out 2>$out/confined.err
	status=$?
	say AppArmor "$([ $status = 2 ] && grep -q 'security module (AppArmor' $out/confined.err &&
		echo ok || echo no): status $status, $(head -n 1 $out/confined.err)"
fi
exit $failed
