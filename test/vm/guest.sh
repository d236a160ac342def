#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# guest.sh TREE [EXPR] - in a guest: its kernel in one paragraph, the unit tests, and
# the end-to-end tests that match EXPR (pytest -k), but none that judges speed
# or shares.  Status 1 if a test failed.
#
# BUILD_DIR has the programs, FIXTURES_DIR those to look at.  SYSCTL has names and
# values to set before, as kernel.yama.ptrace_scope=1.
export BUILD_DIR FIXTURES_DIR
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
for test in "$BUILD_DIR"/test_*; do
	case $test in
	*.* | */test_pprof) continue ;;
	# Its tests compare times that an emulated CPU does not keep.
	*/test_perf_open) continue ;;
	esac
	if ! timeout 300 "$test" >/run/tmp/log 2>&1; then
		status=1
		echo "unit: $(basename "$test") failed"
		grep -a 'FAILED\|error:\|Error' /run/tmp/log | head -n 20
	fi
done
echo "unit: done"
[ -n "$expr" ] || exit $status
/usr/bin/python3 -m pytest -q -p no:cacheprovider \
	-p no:xdist --timeout 900 -m 'not soak and not alone' -k "$expr" test/e2e
exit $((status | $? != 0))
