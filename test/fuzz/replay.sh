#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Replay the kept inputs of fuzzers, as many programs at a time as there are
# CPUs, each for 300 s at most: replay.sh DIRECTORY TOTALS NAME...  Prints each
# that failed, and a line of totals, which build/totals/TOTALS keeps.
export dir="$1"
totals=$2
shift 2
logs=$dir/replay-logs
rm -rf "$logs"
mkdir -p "$logs" build/totals
export logs
# shellcheck disable=SC2016
printf '%s\n' "$@" | xargs -P "$(nproc)" -I{} sh -c '
	timeout 300 "$dir/replay_{}" test/data/fuzz/{} >"$logs/{}" 2>&1 || {
		echo "exit status $?" >>"$logs/{}"
		echo "--- replay_{}"
		cat "$logs/{}"
		mv "$logs/{}" "$logs/{}.failed"; }'
# Each program ends with "NAME: N runs of N files".
awk -v all=$# '/ runs of / { passed++; runs += $2; files += $5 }
END { printf "%d passed, %d failed, 0 skipped (fuzzers; %d inputs, %d runs)\n",
	passed, all - passed, files, runs; exit passed != all }' \
	"$logs"/* >"build/totals/$totals"
status=$?
echo "$totals: $(cat "build/totals/$totals")"
exit $status
