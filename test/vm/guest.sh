#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guest.sh TREE [EXPR] - in a guest: its kernel in one paragraph, and those of
# $PARTS: checks (checks.sh), unit (the unit tests); between them the end-to-end tests
# that match EXPR (pytest -k), but none that judges speed or shares.  Status 1 if a test or check failed.
#
# BUILD_DIR has the programs, FIXTURES_DIR those to look at.  UNITS: of the unit tests
# those that match one of these words, as test_heap_*.  SYSCTL has names and
# values to set before, as kernel.yama.ptrace_scope=1.  EINTR_STOPS: see checks.sh.
export BUILD_DIR FIXTURES_DIR EINTR_STOPS
cd "$1" || exit 2
expr=${2:-}
mkdir -p /run/tmp
export TMPDIR=/run/tmp
for setting in ${SYSCTL:-}; do
	sysctl -q -w "$setting" || exit 2
done
uname -rm
for name in kernel/yama/ptrace_scope kernel/perf_event_paranoid \
	kernel/kptr_restrict kernel/unprivileged_bpf_disabled; do
	[ ! -e "/proc/sys/$name" ] || echo "$name: $(cat "/proc/sys/$name")"
done
status=0
case $PARTS in *checks*) sh test/vm/checks.sh || status=1 ;; esac
if [ -n "$expr" ]; then
	# To collect all tests takes minutes here: only files whose name has a word of it,
	# or that have one that no name has.
	words=$(echo "$expr" | tr -cs 'a-z0-9_' '\n' | grep -vx 'or\|and\|not\|')
	# Others say which cases of a test.
	tests=$(echo "$words" | grep '^test_') && words=$tests
	files=$(echo "$words" |
		while read -r word; do
			printf '%s\n' test/e2e/test_*.py | grep "$word" ||
				grep -l "$word" test/e2e/test_*.py
		done | sort -u)
	# What has run is told even if the guest is ended.
	{
		# shellcheck disable=SC2086 # a list of files
		/usr/bin/python3 -m pytest -v --no-header --tb short \
			-p no:cacheprovider -p no:xdist --timeout 300 \
			-m 'not soak and not alone' -k "$expr" $files 2>&1
		echo $? >/run/tmp/code
	} | tee /run/tmp/e2e
	code=$(cat /run/tmp/code)
	echo "check: end-to-end tests: $([ "$code" = 0 ] && echo ok || echo no):" \
		"$(tail -n 1 /run/tmp/e2e | tr -d = | sed 's/^ *//; s/, [0-9]* deselected.*//')"
	[ "$code" = 0 ] || status=1
fi
case $PARTS in *unit*) units=${UNITS:-test_*} ;; *) units=none ;; esac
n=0 failed=
# shellcheck disable=SC2086 # a list of patterns
for test in $(cd "$BUILD_DIR" && ls -d $units 2>/dev/null); do
	test=$BUILD_DIR/$test
	case $test in
	*/none | *.* | */test_pprof) continue ;;
	# Its tests compare times that an emulated CPU does not keep.
	*/test_perf_open) continue ;;
	esac
	n=$((n + 1))
	code=0
	# An emulated CPU takes ten times as long, and more.
	UNIT_SECONDS=900 timeout 900 "$test" >/run/tmp/log 2>&1 || code=$?
	if [ $code = 0 ]; then
		echo "unit: $(basename "$test") ok"
		continue
	fi
	failed="$failed $(basename "$test")"
	echo "unit: $(basename "$test") failed"
	[ $code != 124 ] || echo "It did not end within 900 s."
	grep -a -B 4 'FAILED\|error:\|Error\|ERROR' /run/tmp/log | head -n 40 | grep . ||
		{ echo "status $code"; tail -n 5 /run/tmp/log; }
done
if [ "$units" = none ]; then
	:
elif [ -z "$failed" ]; then
	echo "check: unit tests: ok: $n programs"
else
	echo "check: unit tests: no: of $n programs$failed"
	status=1
fi
# Until the next boot: nothing can be looked at after it.
scope=/proc/sys/kernel/yama/ptrace_scope
case $PARTS in *checks*) ;; *) exit $status ;; esac
if echo 3 >$scope 2>/dev/null; then
	"$BUILD_DIR/wallprof" --threads -p 1 >/run/tmp/out 2>/run/tmp/err
	ended=$?
	if [ $ended = 2 ] && grep -q 'ptrace_scope is 3' /run/tmp/err; then
		echo "check: ptrace_scope 3: ok: status $ended, $(head -n 1 /run/tmp/err)"
	else
		echo "check: ptrace_scope 3: no: status $ended, $(head -n 1 /run/tmp/err)"
		status=1
	fi
fi
exit $status
