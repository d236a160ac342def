#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What was run, by the files of build/totals: a line for each, and their sum.
# Arguments: the files that there must be.
cd build/totals || exit 1
status=0
for name in "$@"; do
	[ -s "$name" ] || { echo "$name: not run"; status=1; }
done
awk '{ printf "  %-24s %s\n", FILENAME, $0; passed += $1; failed += $3; skipped += $5 }
END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$@"
exit $status
